"""`python -m tests.deploy_pages [CLOUD …]`: the deploy pages, followed word for word against the sandbox.

Each part is a module here whose `check()` answers what is wrong, a line each; none where all is well.
"""

from __future__ import annotations

import argparse
import sys
import time
from importlib import import_module
from importlib.util import find_spec

from tests.infra.aws_terraform import NotPossibleError

_PARTS = ("aws", "alibaba", "tencent")


def main() -> int:
    """Follow the pages asked for; 0 where nothing is wrong."""
    there = [name for name in _PARTS if find_spec(f"tests.deploy_pages.{name}")]
    options = argparse.ArgumentParser(prog="python -m tests.deploy_pages", description=__doc__)
    options.add_argument("parts", nargs="*", choices=[*there, []], metavar="CLOUD", help=f"of {', '.join(there)}")
    options.add_argument("--if-possible", action="store_true", help="where a program is missing say so, and end well")
    chosen = options.parse_args()
    wrong: list[str] = []
    for name in chosen.parts or there:
        sys.stdout.write(f"deploy pages: {name}\n")
        started = time.monotonic()
        try:
            found = import_module(f"tests.deploy_pages.{name}").check()
        except NotPossibleError as err:
            sys.stderr.write(f"!! deploy pages: {name} is not followed: {err}\n")
            if chosen.if_possible:
                continue
            found = [str(err)]
        wrong += [f"{name}: {problem}" for problem in found]
        sys.stdout.write(f"deploy pages: {name}: {len(found)} wrong, {time.monotonic() - started:.0f} s\n")
    for problem in wrong:
        sys.stderr.write(f"!! {problem}\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
