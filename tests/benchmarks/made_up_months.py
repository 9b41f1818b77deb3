"""Months of GPU spend that never were: fleets, weekdays, a new fleet at midnight, refunds; all known to the second.

`Month` is the truth; `Look` is what a program that looks every hour knows of it under one vendor's lag.
"""

from __future__ import annotations

import math
import random
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from functools import cached_property

from cloudstand.world.billing import billed_until, day_offset
from costguard.domain.money import ChargeCategory, Money, SpendLine
from costguard.domain.refs import ResourceRef
from costguard.estimates.burn import Metered

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
MONDAY = datetime(2026, 8, 31, tzinfo=timezone.utc)  # the first day of a history, in the zone of its month
BEFORE = 63 * DAY  # as far back as the product keeps bills
MONTH = 30 * DAY
MONTH_HOURS = MONTH // HOUR
HOURS = (BEFORE + MONTH) // HOUR
ACCOUNT = "111122223333"
RATES = {"g.small": Decimal("1.20"), "p.large": Decimal("12.00"), "p.huge": Decimal("60.00")}
_WEEKEND = 5


@dataclass(frozen=True)
class Machine:
    """One run of one machine; hours since the history begins, with fractions."""

    name: str
    kind: str
    begins: float
    ends: float


@dataclass(frozen=True)
class Month:
    """The truth of one month and the nine weeks before it.

    `paid` is what of the list price is really paid. `rest` is by the hour: everything no meter sees. `refunds` are
    (hour, amount), amounts below zero.
    """

    machines: Sequence[Machine]
    paid: float
    rest: Sequence[float]
    platform: Sequence[float]
    refunds: Sequence[tuple[int, float]]
    budget: float

    @cached_property
    def by_kind(self) -> dict[str, list[float]]:
        """What machines of each kind really cost, by the hour."""
        found = {kind: [0.0] * HOURS for kind in RATES}
        for one in self.machines:
            rate = float(RATES[one.kind]) * self.paid
            for hour in range(int(one.begins), min(math.ceil(one.ends), HOURS)):
                found[one.kind][hour] += rate * (min(one.ends, hour + 1) - max(one.begins, hour))
        return found

    @cached_property
    def cumulated(self) -> list[float]:
        """What the month has really cost at the start of each of its hours, and at its end."""
        first = HOURS - MONTH_HOURS
        refunds = dict.fromkeys(range(HOURS), 0.0)
        for hour, amount in self.refunds:
            refunds[hour] += amount
        total, sums = 0.0, [0.0]
        for hour in range(first, HOURS):
            total += sum(kind[hour] for kind in self.by_kind.values()) + self.rest[hour] + self.platform[hour]
            total += refunds[hour]
            sums.append(total)
        return sums

    def crossed(self, share: float) -> float | None:
        """Hours into the month at which this share of the budget was really spent; None where it never was."""
        wanted = self.budget * share
        for hour, (before, after) in enumerate(zip(self.cumulated, self.cumulated[1:], strict=False)):
            if after >= wanted:
                return hour + (wanted - before) / (after - before) if after > before else float(hour)
        return None


def month(seed: int) -> Month:
    """The month of this seed. The budget is set by what is usual, not by what comes."""
    chance = random.Random(seed)  # noqa: S311 - not for secrets
    machines = [*_steady(chance), *_office_hours(chance), *_bursts(chance)]
    listed = sum(float(RATES[one.kind]) * (one.ends - one.begins) for one in machines) or 2000.0
    paid = chance.choice((1.0, 1.0, 1.0, 0.95, 0.9, 0.8, 0.7))
    an_hour = listed * paid / HOURS
    rest = _wandering(chance, an_hour * chance.uniform(0.1, 0.6))
    platform = _days_of_platform(chance, an_hour) if chance.random() < 0.2 else [0.0] * HOURS
    usual = (listed * paid + sum(rest) + sum(platform)) / HOURS * MONTH_HOURS
    if chance.random() < 0.3:
        machines += _new_fleet(chance)
    refunds = []
    if chance.random() < 0.15:
        refunds.append((chance.randrange(HOURS - MONTH_HOURS, HOURS), -usual * chance.uniform(0.02, 0.15)))
    return Month(machines, paid, rest, platform, refunds, usual * chance.uniform(0.9, 1.6))


def _steady(chance: random.Random) -> Iterator[Machine]:
    for number in range(chance.randint(0, 4)):
        yield Machine(f"i-steady{number}", chance.choice(tuple(RATES)), 0.0, float(HOURS))


def _office_hours(chance: random.Random) -> Iterator[Machine]:
    kinds = [chance.choice(tuple(RATES)[:2]) for _ in range(chance.randint(0, 10))]
    for day in range(HOURS // 24):
        if day % 7 >= _WEEKEND:
            continue
        for number, kind in enumerate(kinds):
            if chance.random() < 0.9:
                begins = day * 24 + chance.uniform(8, 11)
                yield Machine(f"i-office{number}-{day}", kind, begins, begins + chance.uniform(7, 13))


def _bursts(chance: random.Random) -> Iterator[Machine]:
    kind = chance.choice(tuple(RATES)[1:])
    a_day = chance.choice((0.0, 0.2, 0.5))
    at = 0.0
    while a_day:
        at += chance.expovariate(a_day) * 24
        if at >= HOURS:
            return
        length = min(chance.lognormvariate(math.log(8), 1.0), 200.0)
        for number in range(chance.randint(1, 6)):
            yield Machine(f"i-burst{at:.2f}-{number}", kind, at, min(at + length, float(HOURS)))


def _new_fleet(chance: random.Random) -> Iterator[Machine]:
    """At midnight, of the dearest kind, for one to twenty days."""
    begins = float(HOURS - MONTH_HOURS + 24 * chance.randrange(30))
    ends = min(begins + 24 * chance.uniform(1, 20), float(HOURS))
    for number in range(chance.randint(2, 16)):
        yield Machine(f"i-fleet{number}", "p.huge", begins, ends)


def _wandering(chance: random.Random, an_hour: float) -> list[float]:
    """Lower at weekends and at night, another amount each day, and a level that wanders."""
    weekend, night = chance.uniform(0.5, 1.0), chance.uniform(0.5, 1.0)
    level, hours = an_hour, []
    for day in range(HOURS // 24):
        level *= math.exp(chance.gauss(0, 0.03))
        today = level * math.exp(chance.gauss(0, 0.08)) * (weekend if day % 7 >= _WEEKEND else 1)
        hours += [today * (1.0 if hour < 12 else night) for hour in range(24)]
    return hours


def _days_of_platform(chance: random.Random, an_hour: float) -> list[float]:
    """Accelerators behind a managed service, on some days: billed, listed in no inventory."""
    a_day = [an_hour * chance.uniform(0.1, 0.4) if chance.random() < 0.6 else 0.0 for _ in range(HOURS // 24)]
    return [amount for amount in a_day for _ in range(24)]


@dataclass(frozen=True)
class Look:
    """What can be known of a month on one cloud: its bill by the vendor's lag, its machines by an hourly look."""

    cloud: str
    of: Month
    begin: datetime
    zone: str
    _parts: dict[tuple[datetime, datetime], list[SpendLine]] = field(default_factory=dict)

    def bill(self, now: datetime) -> list[SpendLine]:
        """The bill as it can be read at `now`: by the vendor's days, the last one in part."""
        until = billed_until(self.cloud, now)
        lines: list[SpendLine] = []
        start = self.begin
        while start < until:
            offset = day_offset(self.cloud)
            whole = (start + offset).replace(hour=0, minute=0, second=0) + DAY - offset
            end = min(whole, until, self.start + MONTH)
            if end <= start:
                break
            if (start, end) not in self._parts:
                self._parts[start, end] = list(self._lines(start, end))
            lines += self._parts[start, end]
            start = end
        return lines

    def _lines(self, start: datetime, end: datetime) -> Iterator[SpendLine]:
        first, last = (start - self.begin) // HOUR, (end - self.begin) // HOUR
        for kind, hours in self.of.by_kind.items():
            yield self._line(sum(hours[first:last]), start, end, kind=kind)
        yield self._line(sum(self.of.rest[first:last]), start, end)
        yield self._line(sum(self.of.platform[first:last]), start, end, kind="ml.p")
        for hour, amount in self.of.refunds:
            if first <= hour < last:
                yield self._line(amount, start, end, category=ChargeCategory.ADJUSTMENT)

    def _line(
        self,
        amount: float,
        start: datetime,
        end: datetime,
        *,
        kind: str = "",
        category: ChargeCategory = ChargeCategory.USAGE,
    ) -> SpendLine:
        cost = Money(Decimal(str(round(amount, 6))), "USD")
        return SpendLine(
            cloud=self.cloud,
            billing_account_id=ACCOUNT,
            sub_account_id=ACCOUNT,
            region_id="",
            service_name="compute",
            charge_category=category,
            charge_period_start=start,
            charge_period_end=end,
            billed_cost=cost,
            effective_cost=cost,
            instance_type=kind,
            accelerated=bool(kind),
        )

    @property
    def start(self) -> datetime:
        """When the month begins, nine weeks after the history."""
        return self.begin + BEFORE

    @cached_property
    def _runs(self) -> list[tuple[datetime, datetime, Metered]]:
        """Every run a look at full hours can see: when it began, when it ended, and how it is metered at its end."""
        found = []
        for one in self.of.machines:
            begins, ends = self.begin + one.begins * HOUR, self.begin + one.ends * HOUR
            last_seen = self.begin + math.floor(one.ends) * HOUR
            if last_seen > begins:  # what began and ended between two looks was never seen
                ref = ResourceRef(self.cloud, ACCOUNT, "r", "instance", one.name)
                found.append((begins, ends, Metered(ref, begins, last_seen, Money(RATES[one.kind], "USD"), one.kind)))
        return sorted(found, key=lambda run: run[0])

    def metered(self, since: datetime, now: datetime) -> list[Metered]:
        """What the meter holds at `now` of the time since: a run is known once seen, and ends where last seen."""
        begun = self._runs[: bisect_right(self._begins, now)]
        return [
            one if ends <= now else Metered(one.ref, one.since, None, one.hourly, one.instance_type)
            for begins, ends, one in begun
            if ends > since
        ]

    @cached_property
    def _begins(self) -> list[datetime]:
        return [begins for begins, _, _ in self._runs]
