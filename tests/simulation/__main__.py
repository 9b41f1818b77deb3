"""`python -m tests.simulation`: play seeds, hunt planted bugs, try every fault, replay one seed."""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.simulation.campaign import Totals, cores, in_parallel

MONTHS_IN = 5  # of every five seeds one more is a month under budgets: five times as dear, and as many bugs live there
SETTINGS_IN = 5  # and one more is of keys and networks
WIRES_IN = 20  # and one over the wires, twenty times as dear
_BUG_SEEDS = 4000
_WIRE_BUG_SEEDS = 400


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code: 0 when nothing was violated and every bug was caught, else 1."""
    asked = _parser().parse_args(arguments)
    if asked.replay is not None:
        return _replay(asked)
    if asked.bugs is not None:
        return _bugs(asked)
    if asked.exhaustive:
        return _exhaustive(asked)
    return _seeds(asked)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--seeds", default="1-1000", metavar="FIRST-LAST", help="seeds to play (default 1-1000)")
    what.add_argument("--budgets", metavar="FIRST-LAST", help="seeds of months under budgets to play, and no others")
    what.add_argument("--settings", metavar="FIRST-LAST", help="seeds of keys and networks to play, and no others")
    what.add_argument("--wires", metavar="FIRST-LAST", help="seeds over the wires to play, and no others")
    what.add_argument("--exhaustive", action="store_true", help="every fault at every boundary, then every pair")
    what.add_argument("--bugs", nargs="*", metavar="NAME", help="plant these bugs, or all, until each is caught")
    what.add_argument("--replay", metavar="SEED", help="play one seed, or one exhaustive try, and print its trace")
    parser.add_argument("--bug", metavar="NAME", help="with --replay: plant this bug first")
    parser.add_argument(
        "--fingerprints", type=Path, metavar="FILE", help="write a hash of all that happened, a line a seed"
    )
    parser.add_argument("--jobs", type=int, default=cores(), help="processes (default: one a core)")
    parser.add_argument("--json", action="store_true", help="figures for machines")
    return parser


def _seeds(asked: argparse.Namespace) -> int:
    seeds = months = settings = wires = range(0)
    if asked.budgets is not None:
        months = _range(asked.budgets)
    elif asked.settings is not None:
        settings = _range(asked.settings)
    elif asked.wires is not None:
        wires = _range(asked.wires)
    else:
        seeds = _range(asked.seeds)
        months, settings, wires = (_share(seeds, one_in) for one_in in (MONTHS_IN, SETTINGS_IN, WIRES_IN))
    count = len(seeds) + len(months) + len(settings) + len(wires)
    began = time.monotonic()
    progress = _Progress(quiet=asked.json)
    totals = Totals()
    try:
        for some in in_parallel(seeds, asked.jobs, months, settings, wires):
            totals.add(some)
            progress.say(f"{totals.seeds:,} of {count:,} seeds, {len(totals.violations)} violations")
    except KeyboardInterrupt:
        print(f"interrupted after {totals.seeds:,} of {count:,} seeds", file=sys.stderr)
    if asked.fingerprints is not None:
        lines = (f"{name} {digest}\n" for name, digest in sorted(totals.fingerprints.items()))
        asked.fingerprints.write_text("".join(lines), "utf-8")
    return _report(asked, totals, time.monotonic() - began)


def _share(seeds: range, one_in: int) -> range:
    return range(-(-seeds.start // one_in), (seeds.stop - 1) // one_in + 1)


def _range(said: str) -> range:
    first, _, last = said.partition("-")
    return range(int(first), int(last or first) + 1)


def _report(asked: argparse.Namespace, totals: Totals, seconds: float) -> int:
    figures: dict[str, Any] = {
        "seeds": totals.seeds,
        "runs": totals.runs,
        "calls": totals.calls,
        "cloud_calls": totals.cloud_calls,
        "calls_per_core_second": round(totals.calls / max(totals.cpu_seconds, 1e-9)),
        "faults": dict(sorted(totals.faults.items())),
        "actions": dict(sorted(totals.actions.items())),
        "violations": [{"seed": seed, "what": what} for seed, what in sorted(totals.violations)],
        "seconds": round(seconds, 1),
        "machine": machine(asked.jobs),
    }
    if asked.json:
        print(json.dumps(figures, indent=2))
        return 1 if totals.violations else 0
    print(f"{totals.seeds:,} seeds, {totals.runs:,} runs, {totals.calls:,} calls ({totals.cloud_calls:,} to clouds)")
    print("faults:  " + _counted(totals.faults))
    print("actions: " + _counted(totals.actions))
    rate = f"{figures['calls_per_core_second']:,} calls a second on one core"
    print(f"{seconds:.1f} s, {rate}, {figures['machine']}")
    for seed, what in sorted(totals.violations)[:20]:
        print(f"{seed}: {what}\n  python -m tests.simulation --replay {seed}")
    print(f"violations: {len(totals.violations)}")
    return 1 if totals.violations else 0


def _bugs(asked: argparse.Namespace) -> int:
    from tests.simulation.bugs import BUGS
    from tests.simulation.hunt import hunt_all

    names = asked.bugs or [bug.name for bug in BUGS]
    began = time.monotonic()
    found = []
    for caught in hunt_all(names, _BUG_SEEDS, asked.jobs, wires=_WIRE_BUG_SEEDS):
        found.append(caught)
        if not asked.json:
            seen = f"seed {caught.replay}: {caught.violation}" if caught.seed else f"NOT SEEN in {caught.limit} seeds"
            print(f"{caught.bug}: {seen}", flush=True)
    missed = [caught.bug for caught in found if caught.seed is None]
    if asked.json:
        print(json.dumps([_caught_json(caught) for caught in found], indent=2))
    else:
        seconds = time.monotonic() - began
        print(f"{len(found) - len(missed)} of {len(found)} planted bugs caught, {seconds:.1f} s, {machine(asked.jobs)}")
    return 1 if missed else 0


def _caught_json(caught: Any) -> dict[str, Any]:
    return {
        "bug": caught.bug,
        "rules": list(caught.rules),
        "seed": caught.seed,
        "replay": caught.replay,
        "rule": caught.rule,
        "violation": caught.violation,
    }


def _exhaustive(asked: argparse.Namespace) -> int:
    from tests.simulation.exhaustive import tries

    began = time.monotonic()
    progress = _Progress(quiet=asked.json)
    totals = Totals()
    for what, some in tries(asked.jobs):
        totals.add(some)
        progress.say(f"{what}: {totals.seeds:,} tries, {len(totals.violations)} violations")
    return _report(asked, totals, time.monotonic() - began)


def _replay(asked: argparse.Namespace) -> int:
    if asked.bug:
        from tests.simulation.bugs import bug_named
        from tests.simulation.planting import plant

        plant(bug_named(asked.bug))
    from tests.simulation.replaying import replay

    verdict = replay(asked.replay)
    print(verdict.trace, end="")
    print(f"trace hash {verdict.digest}")
    for violation in verdict.violations:
        print(violation)
    print(f"violations: {len(verdict.violations)}")
    return 1 if verdict.violations else 0


def machine(jobs: int) -> str:
    """What the figures were taken on."""
    return f"{jobs} processes on {platform.machine()}, Python {platform.python_version()}"


def _counted(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in sorted(counts.items())) or "none"


class _Progress:
    """Where it stands: in place on a terminal, a line a minute elsewhere."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._terminal = sys.stderr.isatty()
        self._said = time.monotonic()

    def say(self, what: str) -> None:
        """Show it, if it is time."""
        if self._quiet and self._terminal:
            return
        if self._terminal:
            print(f"\r{what}", end="", file=sys.stderr, flush=True)
        elif time.monotonic() - self._said >= 60:
            self._said = time.monotonic()
            print(what, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
