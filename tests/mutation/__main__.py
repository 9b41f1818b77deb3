"""`python -m tests.mutation`: change `cases` and `planning` in every small way, see whether a unit test notices.

Works in a private copy of the tree; takes about twenty minutes on two cores, and an hour where others use them too.
Prints mutants, killed, survived and timeouts by module; exits 1 below 95 % killed, or when the survivors are not
exactly those that `survivors.json` explains. `--record` also writes `last_run.json`. `--only planning/rails.py …`
judges these modules alone, and asks for no share of them. `--check` runs no mutant: it says whether the code or the
tests have moved since the recorded run.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tests.mutation.explained import LAST_RUN, LEAST_KILLED_PERCENT, differences, explained, last_run, stale
from tests.mutation.mutants import Mutant, MutationRunError, run_mutants
from tests.mutation.outside import run_outside
from tests.mutation.tree import ROOT, digests, judges, private_copy, sources


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__.partition("\n")[0])
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--only", nargs="+", metavar="MODULE", choices=sorted(sources()), help="these modules alone")
    parser.add_argument("--json", action="store_true", help="print the figures and the differences as JSON")
    what.add_argument("--record", action="store_true", help="write the figures of this run to last_run.json")
    what.add_argument("--check", action="store_true", help="run nothing: is the recorded run still about this tree?")
    parser.add_argument("--processes", type=int, default=1, help="mutants judged at the same time")
    chosen = parser.parse_args(arguments)
    return _check() if chosen.check else _run(chosen)


def _check() -> int:
    recorded = last_run()
    wrong = stale(explained()) if recorded else ["there is no recorded run"]
    for name, files, added_matters in (("sources", sources(), True), ("tests", judges(), False)):
        then, now = recorded.get(name, {}), digests(files)
        moved = {file for file in then if now.get(file) != then[file]}
        # a test file that came since can only kill more; a module that came since was never judged
        moved |= set(now) - set(then) if added_matters else set()
        wrong += [f"{file} has changed since the recorded run" for file in sorted(moved)]
    if not wrong:
        print(f"The run recorded at {recorded['commit']} is about this tree: {recorded['killed_percent']} % killed.")
        return 0
    print("\n".join(wrong), "Run it again: python -m tests.mutation --record", sep="\n")
    return 1


def _run(chosen: argparse.Namespace) -> int:
    began = time.monotonic()
    modules = chosen.only or list(sources())
    judged = {"commit": _commit(), "sources": digests(sources()), "tests": digests(judges())}
    with tempfile.TemporaryDirectory(prefix="costguard-mutation-") as folder:
        try:
            copy = Path(folder)
            private_copy(copy, modules)
            mutants = [
                *run_outside(copy, modules, _progress),  # before mutmut leaves its own things in the copy
                *run_mutants(copy, processes=chosen.processes, progress=_progress),
            ]
        except MutationRunError as err:
            print(err, file=sys.stderr)
            return 1
    unexplained, gone = differences(mutants, [each for each in explained() if each.module in modules])
    figures = {**_figures(mutants, time.monotonic() - began), **judged}
    enough = bool(chosen.only) or figures["killed_percent"] >= LEAST_KILLED_PERCENT
    if chosen.json:
        print(json.dumps({**figures, "unexplained": unexplained, "no_longer_surviving": gone}, indent=2))
    else:
        _show(figures)
        _list("Survivors that survivors.json does not explain", unexplained)
        _list("Explained in survivors.json, and killed now", gone)
        if not enough:
            print(f"\nFewer than {LEAST_KILLED_PERCENT} % killed.")
    if chosen.record:
        LAST_RUN.write_text(json.dumps(figures, indent=2) + "\n", "utf-8")
    return 0 if enough and not unexplained and not gone else 1


def _figures(mutants: Sequence[Mutant], seconds: float) -> dict[str, Any]:
    modules = {
        module: _counted([mutant for mutant in mutants if mutant.module == module])
        for module in sorted({mutant.module for mutant in mutants})
    }
    return {
        "date": datetime.now(timezone.utc).date().isoformat(),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in ("mutmut", "pytest", "hypothesis")},
        },
        "seconds": round(seconds),
        **_counted(mutants),
        "modules": modules,
    }


def _counted(mutants: Sequence[Mutant]) -> dict[str, Any]:
    killed = sum(mutant.killed for mutant in mutants)
    timeouts = sum(mutant.status == "timeout" for mutant in mutants)
    return {
        "mutants": len(mutants),
        "killed": killed,
        "survived": len(mutants) - killed - timeouts,
        "timeouts": timeouts,
        "killed_percent": int(1000 * killed / len(mutants)) / 10,  # rounded down: 94.99 is not 95
    }


def _commit() -> str:
    """The commit, and whether what was judged differs from it."""
    try:
        head = _git("rev-parse", "--short", "HEAD")
        changed = _git("status", "--porcelain", "--", "shared/costguard", *judges())
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return f"{head} with changes" if changed else head


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(ROOT), *arguments]
    done = subprocess.run(command, check=True, capture_output=True, encoding="utf-8")  # noqa: S603 - fixed arguments
    return done.stdout.strip()


def _progress(count: str) -> None:
    if sys.stderr.isatty():
        print(f"\r{count} ", end="", file=sys.stderr)


def _show(figures: Mapping[str, Any]) -> None:
    versions = ", ".join(f"{name} {number}" for name, number in figures["versions"].items())
    print(f"commit {figures['commit']}; {figures['machine']}; {versions}; {figures['seconds']} s\n")
    print(f"{'module':<24} {'mutants':>8} {'killed':>8} {'survived':>9} {'timeouts':>9} {'score':>8}")
    for name, row in [*figures["modules"].items(), ("all", figures)]:
        counts = f"{row['mutants']:>8} {row['killed']:>8} {row['survived']:>9} {row['timeouts']:>9}"
        print(f"{name:<24} {counts} {row['killed_percent']:>6} %")


def _list(title: str, keys: Sequence[tuple[str, str, str, str]]) -> None:
    if keys:
        print(f"\n{title}:")
    for module, function, line, becomes in keys:  # as an entry of the list, its reason to be written
        entry = {"module": module, "function": function, "line": line, "becomes": becomes, "why": ""}
        print(f"    {json.dumps(entry, ensure_ascii=False)},")


if __name__ == "__main__":
    sys.exit(main())
