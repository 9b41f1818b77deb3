"""`python -m tests.permissions [WALK …]`: everything the program does, with exactly the generated policies enforced.

Fails where a role was refused anything, and where a document allows what nothing needed. Each walk has a process of its
own, as a program keeps what it once read; all take some six minutes on two cores,
half of them for entering a thousand accounts twice.
"""

from __future__ import annotations

import argparse
import sys
from multiprocessing import get_context

from tests.permissions.excused import EXCUSED
from tests.permissions.place import Record
from tests.permissions.walk import WALKS, walked


def main() -> int:
    """Walk, and say what was missing and what is too much; the status is 1 where anything is."""
    parser = argparse.ArgumentParser(prog="python -m tests.permissions", description=__doc__)
    parser.add_argument("walks", nargs="*", metavar="WALK", help=f"of {', '.join(WALKS)}; all if none is named")
    parser.add_argument("--processes", type=int, default=2, help="how many walks at once (default 2)")
    asked = parser.parse_args()
    unknown = set(asked.walks) - set(WALKS)
    if unknown:
        parser.error(f"no walk is called {', '.join(sorted(unknown))}; known are {', '.join(WALKS)}")
    whole = Record()
    with get_context("spawn").Pool(asked.processes, maxtasksperchild=1) as pool:
        for record in pool.imap_unordered(walked, asked.walks or WALKS):
            whole.join(record)
    missing = sorted(
        {f"{role} on {cloud} was refused {' or '.join(wish.actions)}" for cloud, role, wish in whole.refused}
    )
    too_much = [] if asked.walks else _too_much(whole)  # one walk alone needs little of it
    used = sum(len(names) for names in whole.used.values())
    said = f"{used} permissions needed in {len(whole.used)} documents, {len(missing)} missing"
    lines = (said if asked.walks else f"{said}, {len(too_much)} to explain", *missing, *too_much)
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    return 1 if missing or too_much else 0


def _too_much(whole: Record) -> list[str]:
    """What no walk needed and nothing excuses, and excuses for what some walk needed after all."""
    unused, found = whole.unused(), []
    for document in sorted(unused.keys() | EXCUSED.keys()):
        left, excused = unused.get(document, frozenset()), EXCUSED.get(document, {}).keys()
        found += [f"{document}.json allows {name}, which nothing needed" for name in sorted(left - excused)]
        found += [f"{document}.json: {name} is excused, and was needed" for name in sorted(excused - left)]
    return found


if __name__ == "__main__":
    sys.exit(main())
