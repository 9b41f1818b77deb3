"""`python -m tests.races --store sqlite|postgresql|dynamodb [--races N | --kills LIVES]`: processes on a real store."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
from pathlib import Path
from time import perf_counter
from typing import Any

from tests.races.contests import CONTESTS
from tests.races.crew import Crew
from tests.races.kills import DAYS, live
from tests.races.places import NoPlaceError, Place, place_for
from tests.races.racing import LEAST_CONTESTED, Tally, hold

_SHOWN = 20  # breaches printed; all are counted


def main() -> int:
    """0: nothing was breached, and writes did meet; 1: otherwise; 2: the store cannot be had here."""
    asked = _arguments()
    with tempfile.TemporaryDirectory(prefix="costguard-races-") as folder:
        try:
            with place_for(asked.store, Path(folder)) as place:
                if asked.kills:
                    return _killed(asked, place, Path(folder))
            with place_for(asked.store, Path(folder)) as place, Crew(asked.processes, careless=asked.careless) as crew:
                tally = hold(place, crew, asked.races, seed=asked.seed, kinds=asked.only)
                found = _found(asked, place, tally)
        except NoPlaceError as err:
            sys.stderr.write(f"{err}\n")
            return 2
    sys.stdout.write(json.dumps(found, indent=1) + "\n" if asked.json else _lines(found))
    return 0 if tally.proves else 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.races", description=__doc__)
    parser.add_argument("--store", choices=("sqlite", "postgresql", "dynamodb"), required=True)
    parser.add_argument("--races", type=int, default=1000)
    parser.add_argument("--kills", type=int, metavar="LIVES", help=f"in place of races: {DAYS} days of runs that die")
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0, help="what varies between races; timing varies by itself")
    parser.add_argument("--only", nargs="+", choices=tuple(CONTESTS), default=tuple(CONTESTS), metavar="KIND")
    parser.add_argument("--careless", action="store_true", help="ignore expected versions: breaches must be found")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    if asked.races < 1 or asked.processes < 4:  # two race, one shares a decision, one releases
        parser.error("at least one race, of at least 4 processes")
    if asked.kills and (asked.careless or asked.json or asked.kills < 0):
        parser.error("--kills takes a number of lives, and neither --careless nor --json")
    return asked


def _killed(asked: argparse.Namespace, place: Place, folder: Path) -> int:
    began = perf_counter()
    toll = live(place, folder, range(asked.kills), seed=asked.seed)
    killed = ", ".join(f"{times} {when} a request" for when, times in sorted(toll.kills.items()))
    heard = ", ".join(f"{times} {verb}" for verb, times in sorted(toll.heard.items()))
    lines = [
        f"{asked.store}: {toll.lives} lives, {toll.runs} runs, {toll.kills.total()} killed ({killed})",
        f"the clouds heard {heard}",
        f"machines at the end: {'; '.join(f'{times} {end}' for end, times in toll.ends.most_common())}",
        f"{len(toll.breaches)} breaches, {perf_counter() - began:.0f} s; {place.versions}; {platform.python_version()}",
        *toll.breaches[:_SHOWN],
    ]
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    return 1 if toll.breaches or not toll.kills else 0


def _found(asked: argparse.Namespace, place: Place, tally: Tally) -> dict[str, Any]:
    return {
        "store": asked.store,
        "versions": place.versions,
        "machine": f"{os.cpu_count()} cores of {_processor()}, {platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "processes": asked.processes,
        "races": tally.races,
        "breaches": len(tally.breaches),
        "errors": len(tally.errors),
        "first_breach_in_race": tally.first_breach,
        "seconds": round(tally.seconds, 1),
        "races_a_second": round(tally.races / tally.seconds, 1),
        "attempts": tally.attempts,
        "attempts_told_no": tally.lost,
        "writes_refused": tally.refused_writes,
        "contested_races": tally.races_contested,
        "contested_share": round(tally.races_contested / tally.races, 4),
        "audit_entries_verified": tally.audit_entries,
        "by_kind": {
            name: {"races": held, "contested": tally.contested[name], "breached": tally.breached[name]}
            for name, held in tally.by_contest.items()
        },
        "too_rarely_contested": tally.uncontested_kinds,
        "shown": [*tally.breaches, *tally.errors][:_SHOWN],
    }


def _lines(found: dict[str, Any]) -> str:
    told = argparse.Namespace(**found)
    lines = [
        f"{told.store}: {told.races} races of {told.processes}: {told.breaches} breaches, {told.errors} errors",
        f"{told.races_a_second} races a second, {told.seconds} s",
        f"{told.attempts} attempts, {told.attempts_told_no} told no; {told.writes_refused} writes came second",
        f"{told.contested_races} races contested ({told.contested_share:.1%}); {LEAST_CONTESTED:.0%} of a kind must:",
        *(
            f"  {name:12} {kind['races']:6} races, {kind['contested']:6} contested, {kind['breached']:6} breached"
            for name, kind in told.by_kind.items()
        ),
        f"{told.audit_entries_verified} audit entries verified",
        f"{told.versions}; Python {told.python}; {told.machine}",
    ]
    if found["first_breach_in_race"] is not None:
        lines.append(f"the first breach was in race {found['first_breach_in_race']}")
    if found["too_rarely_contested"]:
        lines.append(f"PROVES LITTLE: too rarely contested: {', '.join(found['too_rarely_contested'])}")
    return "\n".join([*lines, *found["shown"]]) + "\n"


def _processor() -> str:
    """The processor's name where the system tells it."""
    table = Path("/proc/cpuinfo")
    lines = table.read_text().splitlines() if table.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or "unknown"


if __name__ == "__main__":
    raise SystemExit(main())
