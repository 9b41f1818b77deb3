"""`python -m tests.infra [CLOUD …]`: Terraform's own checks of infra/, and ours of what it says.

`--apply` sets infra/aws up in the sandbox, calls every function there, and takes it down again (some six minutes); and
infra/alibaba and infra/tencent with stand-ins for their providers (a minute).
`--if-possible` says aloud that there is no Terraform, or no provider for it, and is content.
Each part is a module here whose `check()` answers what is wrong, a line each; none where all is well.
"""

from __future__ import annotations

import argparse
import sys
import time
from importlib import import_module
from importlib.util import find_spec

from tests.infra.aws_terraform import NotPossibleError

_PARTS = ("aws", "alibaba", "tencent", "parity")


def main() -> int:
    """Run the parts asked for; 0 where nothing is wrong."""
    there = [name for name in _PARTS if find_spec(f"tests.infra.{name}")]
    options = argparse.ArgumentParser(prog="python -m tests.infra", description=__doc__)
    options.add_argument("parts", nargs="*", choices=[*there, []], metavar="PART", help=f"of {', '.join(there)}")
    options.add_argument("--apply", action="store_true", help="set the modules up and take them down as well")
    options.add_argument("--if-possible", action="store_true", help="without Terraform say so, and end well")
    chosen = options.parse_args()
    wrong: list[str] = []
    for name in chosen.parts or there:
        started = time.monotonic()
        try:
            check = import_module(f"tests.infra.{name}").check
            found = check() if name == "parity" else check(apply=chosen.apply)
        except NotPossibleError as err:
            sys.stderr.write(f"!! infra: {name} is not checked: {err}\n")
            if chosen.if_possible:
                continue
            found = [str(err)]
        wrong += [f"{name}: {problem}" for problem in found]
        sys.stdout.write(f"infra: {name}: {len(found)} wrong, {time.monotonic() - started:.0f} s\n")
    for problem in wrong:
        sys.stderr.write(f"!! {problem}\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
