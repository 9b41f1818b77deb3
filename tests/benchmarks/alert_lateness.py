"""How late an alert at 80 % of a budget comes: by the bill alone, and by the bill and what has burned since.

`python tests/benchmarks/alert_lateness.py [--seeds FIRST-LAST] [--jobs N]` from the repository's root; `--smoke`: a
few months. The months are made up (`made_up_months.py`), the same under each vendor's lag; what is spent is reckoned by
the functions of the product, at every full hour, from a bill read every four hours. No figure fails the run.

The crossing is the moment at which 80 % of the budget was really spent. An alert is in time if it comes before it or
within an hour after: hourly runs cannot do better. It is false if the month never really reached 80 %; and false by
more than a margin if it did not even reach 80 % less the margin.
"""

from __future__ import annotations

import argparse
import platform
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from functools import partial
from pathlib import Path
from statistics import median

from cloudstand.world.billing import billed_until, day_offset
from costguard.domain.money import Money
from costguard.estimates.billed import Charge, charges, total_in
from costguard.estimates.burn import KEPT, MeteredFleet, burning
from costguard.estimates.burn import known as known_by
from costguard.estimates.period import days_between, start_of
from costguard.estimates.reconcile import reconciled
from costguard.estimates.spent import RunRate, rest_rate, spent
from costguard.guards.budget.rules import Counted

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.benchmarks.made_up_months import HOUR, MONDAY, MONTH, MONTH_HOURS, Look, Month, month

NOTHING = Money(Decimal(0), "USD")
WAYS = BILL, TOTAL, SOON = "the bill alone", "bill and burn", "costguard"
SHARE = Decimal("0.8")
MARGIN = 0.02
READ_EVERY = 4
DOCUMENTED_DELAY = {"aws": 24, "alibaba": 24, "tencent": 48}  # hours; bills count as complete after it, in whole days
LEARNS_FROM = 14
CHINA = "Asia/Shanghai"
PLAYED = (("aws", "UTC"), ("alibaba", CHINA), ("tencent", CHINA), ("alibaba", "UTC"), ("tencent", "UTC"))
"""Clouds, and the zone of the budget's month: that of the bill's days, or another."""


@dataclass(frozen=True)
class Outcome:
    """One month under one lag: hours into the month of the crossing and of the alerts, None where there was none."""

    crossed: float | None
    reached: float
    told: Mapping[str, float | None]


@dataclass(frozen=True)
class Reading:
    """A bill as last read, and what is learnt from it."""

    charges: Sequence[Charge]
    complete_until: datetime
    known: MeteredFleet
    rest: RunRate | None
    factor: Decimal
    spread: Decimal


def outcome(cloud: str, zone: str, seed: int) -> Outcome:
    """Play one month."""
    truth = month(seed)
    look = Look(cloud, truth, start_of(MONDAY.date(), zone), zone)
    threshold = Decimal(str(truth.budget)) * SHARE
    told: dict[str, float | None] = dict.fromkeys(WAYS)
    first = _first_hour(truth)
    reading, renewed = _read(look, look.start + first * HOUR), (look.begin, look.begin)
    # alerts may come when they can: at every hour of the month, and by the bill for days after it
    for hour in range(first, MONTH_HOURS + 4 * 24):
        now = look.start + hour * HOUR
        if hour % READ_EVERY == 0 and (billed_until(cloud, now), _complete_until(cloud, now)) != renewed:
            reading = _read(look, now)
            renewed = billed_until(cloud, now), _complete_until(cloud, now)
        known = {BILL: total_in(reading.charges, look.start, look.start + MONTH, "USD").amount}
        if hour <= MONTH_HOURS and told[TOTAL] is None:
            known[TOTAL], known[SOON] = _so_far(look, reading, now)
        for way, amount in known.items():
            if told[way] is None and amount >= threshold:
                told[way] = float(hour)
        if told[BILL] is not None and (told[TOTAL] is not None or hour > MONTH_HOURS):
            break
    return Outcome(truth.crossed(float(SHARE)), max(truth.cumulated) / truth.budget, told)


def _first_hour(truth: Month) -> int:
    """When 70 % of the threshold was really spent: nothing alerts before, and the hours until then are not played."""
    return int(truth.crossed(float(SHARE) * 0.7) or MONTH_HOURS) // READ_EVERY * READ_EVERY


def _read(look: Look, now: datetime) -> Reading:
    complete = _complete_until(look.cloud, now)
    given = charges(look.bill(now), Counted())
    metered = look.metered(now - KEPT, now)
    of_metered = known_by(metered)
    days = tuple(days_between(look.begin, complete, look.zone))
    both = [day for day in days if day.start >= now - KEPT]
    learnt = reconciled(given, metered, both[-LEARNS_FROM:], of_metered, "USD")
    return Reading(
        tuple(charge for charge in given if charge.line.charge_period_end > look.start),
        complete,
        of_metered,
        rest_rate(given, days, of_metered, "USD"),
        learnt.factor if learnt is not None else Decimal(1),
        learnt.spread if learnt is not None else Decimal(0),
    )


def _complete_until(cloud: str, now: datetime) -> datetime:
    offset = day_offset(cloud)
    return (now - DOCUMENTED_DELAY[cloud] * HOUR + offset).replace(hour=0) - offset


def _so_far(look: Look, reading: Reading, now: datetime) -> tuple[Decimal, Decimal]:
    """The total, and what the product holds against thresholds."""
    metered = look.metered(now - KEPT, now)
    so_far = spent(
        reading.charges,
        metered,
        reading.rest,
        reading.known,
        since=look.start,
        complete_until=reading.complete_until,
        now=now,
        currency="USD",
        factor=reading.factor,
        spread=reading.spread,
        metered_since=now - KEPT,
    )
    burn = burning(metered, now).of("USD").times(reading.factor)
    rest = reading.rest.per_hour if reading.rest is not None else NOTHING
    return so_far.total.amount, so_far.soon(burn + rest).amount


def _print(what: str, outcomes: Sequence[Outcome]) -> None:
    crossed = [one for one in outcomes if one.crossed is not None]
    never = [one for one in outcomes if one.crossed is None]
    print(f"\n{what}: {len(outcomes)} months, of which {len(crossed)} really reach 80 % and {len(never)} do not")
    if not crossed:
        return
    print(
        "| alert by | in time | hours late: p5, median, p95, worst | never told "
        "| false, of all months | of those that do not | off by > 2 % |"
    )
    for name in WAYS:
        pairs = [(one.told[name], one.crossed) for one in crossed]
        late = sorted(told - really for told, really in pairs if told is not None and really is not None)
        in_time = sum(hours <= 1 for hours in late) / len(crossed)
        false = [one for one in never if one.told[name] is not None]
        far = [one for one in false if one.reached < float(SHARE) * (1 - MARGIN)]
        five, ninety_five = late[len(late) // 20], late[len(late) * 19 // 20]
        print(
            f"| {name} | {in_time:.1%} | {five:.1f}, {median(late):.1f}, {ninety_five:.1f}, {late[-1]:.1f} "
            f"| {len(crossed) - len(late)} | {len(false)} ({len(false) / len(outcomes):.1%}) "
            f"| {len(false) / max(len(never), 1):.1%} | {len(far)} |"
        )


def main() -> None:
    """Play and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--seeds", default="1001-2000", metavar="FIRST-LAST", help="1 to 150 were looked at in building"
    )
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--smoke", action="store_true", help="six months, in seconds")
    given = parser.parse_args()
    first, _, last = ("1-6" if given.smoke else given.seeds).partition("-")
    seeds = range(int(first), int(last or first) + 1)
    began = time.perf_counter()
    print(f"{platform.machine()}, {platform.system()}, Python {platform.python_version()}")
    print(f"seeds {seeds[0]} to {seeds[-1]}")
    with ProcessPoolExecutor(given.jobs) as pool:
        for cloud, zone in PLAYED:
            _print(f"{cloud}, months of {zone}", list(pool.map(partial(outcome, cloud, zone), seeds, chunksize=5)))
    print(f"\n{time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
