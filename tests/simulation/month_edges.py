"""Stories at the edges of a budget: another amount or name, a rate of the month's first, a charge that comes late."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from random import Random

from tests.simulation.budgets import month_of
from tests.simulation.month_close_ups import amount_spent, budget_of, one_machine, story_of, table_of
from tests.simulation.months import Timetable, charge, fitted
from tests.simulation.scenario import DAY, HOUR, Change, Scenario

from cloudstand.world import workload
from cloudstand.world.billing import zone_of
from cloudstand.world.money import ChargeCategory
from costguard.estimates.period import day_of

_MARCH = datetime(2026, 3, 20, tzinfo=timezone.utc)
_TWO = ("slack:#finance", "slack:#research")


def edge(seed: int) -> Scenario:
    """One of them."""
    random = Random(f"edge {seed}")  # noqa: S311 - reproducible on purpose
    return random.choice(_KINDS)(random, seed)


def _amended(random: Random, seed: int) -> Scenario:
    """Half of it or all of it was told; then it is halved or doubled, so that the same money is another share."""
    table = table_of(random, every=random.choice((6, 12)), runs=10)
    one = one_machine(random, table, workload=random.choice((workload.idle(), workload.busy())))
    share, factor = random.choice((("0.55", "0.5"), ("0.7", "0.5"), ("0.9", "0.5"), ("1.05", "2"), ("1.3", "2")))
    amount = 2 * (amount_spent(random, one, table, share=share) / 2).quantize(Decimal("0.01"))
    budget = budget_of(one, amount=amount, steps=(), forecasts=(), tell=random.choice(((), _TWO)))
    story = story_of(seed, table, (one,), (budget,), quiet_runs=random.choice((0, 3)))
    amended = replace(budget, amount=(amount * Decimal(factor)).quantize(Decimal("0.01")))
    at = table.start + random.randrange(1, 6) * table.every + timedelta(minutes=5)
    name = random.choice(("research", "research", "renamed"))
    return replace(story, changes=(Change(at, replace(story.policy, budgets=(replace(amended, name=name),))),))


def _renamed(random: Random, seed: int) -> Scenario:
    """It gets another name, perhaps its old one again, and is otherwise as it was."""
    table = table_of(random, every=random.choice((6, 12)), runs=10)
    one = one_machine(random, table, workload=workload.busy())
    amount = amount_spent(random, one, table, share=random.choice(("0.45", "0.55", "0.75", "0.95", "1.1")))
    budget = budget_of(one, amount=amount, steps=(), tell=random.choice(((), _TWO)))
    story = story_of(seed, table, (one,), (budget,), quiet_runs=random.choice((0, 3)))
    first, second = sorted(random.sample(range(1, 9), 2))
    names = ((first, "renamed"), (second, random.choice(("research", "vision"))))
    changes = tuple(
        Change(
            table.start + run * table.every + timedelta(minutes=5),
            replace(story.policy, budgets=(replace(budget, name=name),)),
        )
        for run, name in names
    )
    return replace(story, changes=changes)


def _dated(random: Random, seed: int) -> Scenario:
    """The rate of exchange is dated the first of the month, by the calendar of the budget."""
    table = table_of(random, every=random.choice((6, 12)), runs=10)
    one = one_machine(random, table)
    home = one.hourly.currency if one.hourly is not None else "USD"
    budget = budget_of(
        one, currency="CNY" if home == "USD" else "USD", zone=random.choice(("UTC", "Asia/Shanghai", "Asia/Shanghai"))
    )
    story = story_of(seed, table, (one,), (fitted(random, budget, (one,), table),), quiet_runs=random.choice((0, 5)))
    return replace(story, policy=replace(story.policy, rates_since=table.start.replace(day=1).date()))


def _late(random: Random, seed: int) -> Scenario:
    """The bill shows on the first days of a month what was used on the last days of the month before."""
    zone, every = random.choice(("UTC", "Asia/Shanghai")), random.choice((8, 12))
    ends = month_of(_MARCH, zone)[2]
    table = Timetable(ends - random.choice((20, 30)) * HOUR, every * HOUR, random.choice((12, 20)))
    one = one_machine(random, table, workload=random.choice((workload.idle(), workload.busy())))
    hourly = one.hourly.amount if one.hourly is not None else Decimal(1)
    spent = hourly * Decimal((ends - one.launched_at) / HOUR)
    amount = (spent / Decimal(random.choice(("0.55", "0.75", "0.9")))).quantize(Decimal("0.01"))
    budget = budget_of(one, amount=amount, zone=zone, tell=random.choice(((), _TWO)), forecasts=())
    story = story_of(seed, table, (one,), (budget,), quiet_runs=random.choice((0, 3)))
    at = ends + random.choice((10, 30, 50, 70)) * HOUR
    used = day_of(ends - random.choice((1, 2)) * DAY, zone_of(one.cloud)).start
    late = charge(one.cloud, "storage", ChargeCategory.USAGE, used, (amount * Decimal("0.4")).quantize(Decimal("0.01")))
    changed = random.choice(
        (budget, budget, budget, replace(budget, name="renamed"), replace(budget, amount=2 * amount))
    )
    change = Change(ends + 2 * HOUR, replace(story.policy, budgets=(changed,)))
    return replace(story, charges=((at, late),), changes=(change,) if changed != budget else ())


def _once(random: Random, seed: int) -> Scenario:
    """Something is charged once, where nothing was charged before, and later once more."""
    table = table_of(random, every=random.choice((8, 12)), runs=16)
    one = one_machine(random, table, tags={"team": "product"})
    amount = Decimal(random.choice((200, 1000)))
    budget = budget_of(one, amount=amount, zone=random.choice(("UTC", "Asia/Shanghai")), estimated=90)
    story = story_of(seed, table, (one,), (budget,), quiet_runs=random.choice((0, 3)))
    moments = (table.start + random.choice((-30, -10, 4)) * HOUR, table.start + random.choice((90, 120)) * HOUR)
    shares = (random.choice(("0.4", "0.55", "0.6")), random.choice(("0.3", "0.45")))
    posted = tuple(
        (
            at + 3 * HOUR,
            charge(
                one.cloud,
                "storage",
                ChargeCategory.USAGE,
                at,
                (amount * Decimal(share)).quantize(Decimal("0.01")),
            ),
        )
        for at, share in zip(moments, shares, strict=True)
    )
    return replace(story, charges=posted)


def _fallen(random: Random, seed: int) -> Scenario:
    """A platform is charged every day; a refund comes once its estimate has crossed a threshold, and it goes on."""
    table = table_of(random, every=random.choice((6, 12)), runs=24)
    one = one_machine(random, table, tags={"team": "product"}, launched_at=table.start - 40 * DAY)
    a_day = Decimal(24)
    first = table.start.replace(hour=0) - 38 * DAY - (DAY if one.cloud == "aws" else 32 * HOUR)
    start = table.start - 12 * HOUR
    begins = [first + number * DAY + HOUR for number in range(60)]
    posted = [
        (max(moment + 2 * HOUR, start), charge(one.cloud, "ai_platform", ChargeCategory.USAGE, moment, a_day))
        for moment in begins
    ]
    spent = a_day * (table.start.day - 1)
    amount = (spent / Decimal(random.choice(("0.7", "0.76", "0.94")))).quantize(Decimal("0.01"))
    budget = budget_of(one, amount=amount, steps=(), forecasts=(), tell=random.choice(((), _TWO)))
    story = story_of(seed, table, (one,), (budget,), quiet_runs=random.choice((0, 3)))
    at = table.start + random.choice((30, 40, 50, 60, 70)) * HOUR
    back = -(amount * Decimal(random.choice(("0.1", "0.25")))).quantize(Decimal("0.01"))
    refund = charge(one.cloud, "refund", ChargeCategory.ADJUSTMENT, table.start - 4 * DAY, back)
    return replace(story, start=start, charges=(*posted, (at, refund)))


_KINDS: tuple[Callable[[Random, int], Scenario], ...] = (
    *(_amended, _amended, _renamed, _dated, _late, _late),
    *(_once, _fallen, _fallen),
)
