"""From one seed to one stretch of a month under budgets, beside the idle guard or without it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from random import Random
from typing import Any

from tests.simulation.budgets import YUAN_A_DOLLAR, BudgetSpec, StepSpec, month_of
from tests.simulation.faults import DRAWN
from tests.simulation.rule_spec import RuleSpec
from tests.simulation.rules import Agreed, PolicyVersion, with_days_off
from tests.simulation.scenario import (
    ACCOUNTS,
    DAY,
    HARMLESS_TAGS,
    HOUR,
    PROTECTING_TAGS,
    REGIONS,
    BillSpell,
    Change,
    Delivery,
    Scenario,
    Spell,
    machine,
    with_clicks,
)

from cloudstand.world import workload
from cloudstand.world.fleet import MachineSpec
from cloudstand.world.kinds import Billing, Keeper, ManagedBy
from cloudstand.world.money import ChargeCategory, Money
from cloudstand.world.records import OtherCharge

STARTS = tuple(
    datetime(2026, month, day, 9, 0, tzinfo=timezone.utc)
    for month, day in ((3, 10), (3, 10), (3, 12), (3, 17), (3, 5), (3, 30), (2, 26), (3, 29))
)
_ADDRESSES = ("slack:#finance", "slack:#research")
_HOURLY = Decimal("1.50")
_OF_EDGES, _EDGE = 5, 3  # every fifth story, so that those who hunt see one soon


@dataclass(frozen=True, slots=True)
class Timetable:
    """When the budget guard runs: from `start` on, `runs` times, `every` so often."""

    start: datetime
    every: timedelta
    runs: int

    @property
    def end(self) -> datetime:
        """The last of them."""
        return self.start + (self.runs - 1) * self.every

    def moment(self, random: Random) -> datetime:
        """One within, to the second."""
        return (self.start + (self.end - self.start) * random.random()).replace(microsecond=0)


def month(seed: int) -> Scenario:
    """The story of a seed: always the same."""
    return with_clicks(_month(seed))


def _month(seed: int) -> Scenario:
    if seed % _OF_EDGES == _EDGE:
        from tests.simulation.month_edges import edge

        return edge(seed)
    random = Random(f"month {seed}")  # noqa: S311 - reproducible on purpose
    if random.random() < 0.5:
        from tests.simulation.month_close_ups import close_up

        return close_up(random, seed)
    every = random.choice((4, 6, 12, 12, 24)) * HOUR
    table = Timetable(random.choice(STARTS), every, random.choice((5, 7, 9)))
    machines = _machines(random, table)
    policy = _policy(random, machines, table)
    deliveries = (*_deliveries(random, table, "budget"), *_idle_deliveries(random, table, policy))
    clouds = sorted({one.cloud for one in machines})
    return Scenario(
        seed=seed,
        machines=machines,
        policy=policy,
        changes=changes(random, policy, machines, table) if random.random() < 0.3 else (),
        deliveries=tuple(sorted(deliveries, key=lambda one: one.arrives)),
        every=every,
        fault_rate=random.choice((0.0, 0.002, 0.005, 0.01, 0.02)),
        kinds=frozenset(fault for fault in DRAWN if random.random() < 0.35),
        switch_rate=random.choice((0.0, 0.05, 0.3)),
        channel_down=_span(random, table, DAY) if random.random() < 0.1 else None,
        durable=random.random() >= 0.02,
        silences=tuple((one.native_id, *_span(random, table, 6 * HOUR)) for one in machines if random.random() < 0.05),
        owner_times=tuple(
            (table.moment(random), random.choice(machines).native_id) for _ in range(random.choice((0, 0, 1, 2)))
        ),
        spells=tuple(_spell(random, one, table) for one in machines if random.random() < 0.12),
        quiet_runs=random.choices((0, 3, 6), (60, 20, 20))[0],
        start=table.start,
        bill_spells=bill_spells(random, clouds, table) if random.random() < 0.25 else (),
        charges=charges(random, clouds, table) if random.random() < 0.35 else (),
    )


def hourly_of(budget: BudgetSpec, machines: tuple[MachineSpec, ...]) -> Decimal:
    """What the machines of a scope cost an hour, roughly: enough to draw an amount by."""
    total = Decimal(0)
    for one in machines:
        if not budget.holds(one.cloud, one.tags) or one.hourly is None:
            continue
        if one.hourly.currency == budget.currency:
            total += one.hourly.amount
        elif budget.currency == "CNY":
            total += one.hourly.amount * YUAN_A_DOLLAR
        else:
            total += one.hourly.amount / YUAN_A_DOLLAR
    return total or _HOURLY


def fitted(random: Random, budget: BudgetSpec, machines: tuple[MachineSpec, ...], table: Timetable) -> BudgetSpec:
    """The budget with an amount of which some share is spent within the story."""
    at = table.moment(random)
    begun = month_of(at, budget.zone)[1]
    spent = Decimal(0)
    for one in machines:
        alone = (
            hourly_of(budget, (one,)) if budget.holds(one.cloud, one.tags) and one.hourly is not None else Decimal(0)
        )
        spent += alone * Decimal(max((at - max(begun, one.launched_at)) / HOUR, 0))
    share = random.choice((Decimal("0.5"), Decimal("0.8"), Decimal(1), Decimal(1), Decimal("1.1"), Decimal(3)))
    return replace(budget, amount=max((spent / share).quantize(Decimal("0.01")), Decimal("5.00")))


def _machines(random: Random, table: Timetable) -> tuple[MachineSpec, ...]:
    count = random.choices((1, 2, 3), (45, 38, 17))[0]
    clouds = random.choice((("aws",), ("aws",), ("alibaba",), ("tencent",), ("aws", "alibaba", "tencent")))
    return tuple(_one_machine(random, random.choice(clouds), f"m{number}", table) for number in range(count))


def _one_machine(random: Random, cloud: str, name: str, table: Timetable) -> MachineSpec:
    made = machine(
        cloud,
        name,
        random.choice(REGIONS[cloud]),
        launched_at=table.start - random.choice((20, 20, 20, 12, 3)) * DAY,
        workload=_load(random, table),
    )
    tags = {"team": random.choice(("research", "research", "research", "product"))}
    tags |= {"env": env} if (env := random.choice(("", "", "dev", "batch"))) else {}
    if random.random() < 0.05:
        tags.update([random.choice((*PROTECTING_TAGS, *HARMLESS_TAGS))])
    made = replace(made, tags=tags)
    what = random.random()
    if what < 0.04:
        return replace(made, hourly=None)
    if what < 0.07:
        return replace(made, hourly=Money(Decimal(1), "EUR"))
    if what < 0.12:
        return replace(made, billing=random.choice((Billing.PREPAID, Billing.RESERVED)))
    if what < 0.15:
        return replace(made, managed_by=ManagedBy(Keeper.KUBERNETES, "group"))
    if what < 0.19:
        return replace(made, local_disk_gib=random.choice((900.0, None)))
    if what < 0.22 and cloud == "aws":
        return replace(made, one_time_spot=True, billing=Billing.SPOT)
    return replace(made, protections=("termination_protection",)) if what > 0.97 else made


def _load(random: Random, table: Timetable) -> workload.Workload:
    what = random.random()
    at = table.moment(random)
    if what < 0.6:
        return workload.idle()
    if what < 0.75:
        return workload.busy()
    if what < 0.85:
        return workload.comes_back(at)
    return workload.busy_until(at) if what < 0.95 else workload.no_data()


def steps(random: Random) -> tuple[StepSpec, ...]:
    """What a budget does: stop idle machines, a class of work, both or nothing."""
    idle = StepSpec(
        random.choice((80, 100, 100, 100)), idle_for=random.choice((1, 1, 4)), wait=random.choice((1, 4, 12))
    )
    classes = random.choice((("dev",), ("dev",), ("dev", "batch")))
    harsher = StepSpec(random.choice((100, 110)), classes, wait=random.choice((4, 8, 24)))
    return random.choice(((idle,), (idle,), (idle,), (idle, harsher), (harsher,), ()))


def _budget(random: Random, name: str, **more: Any) -> BudgetSpec:
    ordinary = random.random() < 0.5
    pick = random.choice
    made = BudgetSpec(
        name=name,
        mode=pick(("enforce",) * 8 + ("warn", "observe")),
        zone=pick(("UTC", "UTC", "Asia/Shanghai")),
        steps=steps(random),
        tell=pick(((), (), _ADDRESSES[:1], _ADDRESSES)),
        estimated=pick((30, 60, 90)),
        bill_hours=pick((36, 48, 80)),
    )
    made = replace(made, **more)
    if ordinary:
        return made
    return replace(
        made,
        alerts=pick(((50, 80, 100), (80,), (60, 90, 100, 120))),
        forecasts=pick(((100,), ())),
        actions=pick((0, 1, 2, 10)),
        share_percent=pick((0, 30, 100, 100)),
        usd=pick((0, 2, 1000, 1000, None)),
        cny=pick((0, 2, 1000, 1000)),
        local_disk=pick(("ask", "keep", "lose")),
    )


def _policy(random: Random, machines: tuple[MachineSpec, ...], table: Timetable) -> PolicyVersion:
    currency = "USD" if machines[0].cloud == "aws" else "CNY"
    budgets = [_budget(random, "research", currency=currency)]
    if random.random() < 0.4:
        budgets.append(_budget(random, "company", team="", currency=random.choice(("USD", "CNY"))))
    if random.random() < 0.25:
        clouds = tuple(sorted({machines[-1].cloud, machines[0].cloud})[:1])
        budgets.append(_budget(random, "cloud", team="", clouds=clouds, currency=currency))
    rules = (_idle_rule(random),) if random.random() < 0.55 else ()
    version = PolicyVersion(
        rules,
        budgets=tuple(fitted(random, budget, machines, table) for budget in budgets),
        rates=random.random() < 0.85,
        working_hours=random.random() < 0.05,
    )
    version = with_days_off(Random(f"{rules} {table.start}"), version, table.start)  # noqa: S311 - of its own
    if random.random() < 0.05:
        agreed = Agreed(str(machines[0].ref), table.start + random.choice((1, 4, 40)) * DAY)
        version = replace(version, exceptions=(agreed,))
    return version


def _idle_rule(random: Random) -> RuleSpec:
    pick = random.choice
    return RuleSpec(
        mode=pick(("enforce", "enforce", "warn", "observe")),
        lasting=pick((4, 12, 24)),
        stop=pick((1, 6, 24)),
        terminate=pick((24, None)),
        local_disk=pick(("ask", "keep", "lose")),
    )


def changes(
    random: Random, policy: PolicyVersion, machines: tuple[MachineSpec, ...], table: Timetable
) -> tuple[Change, ...]:
    """Budgets raised, lowered, renamed, taken out, calmed or changed in what they do, while their month goes on."""
    made = []
    for at in sorted(table.moment(random) for _ in range(random.choice((1, 1, 2)))):
        what = random.randrange(9)
        first, *others = policy.budgets
        if what <= 2:
            factor = (Decimal(2), Decimal("0.5"), Decimal("1.25"))[what]
            changed = replace(first, amount=(first.amount * factor).quantize(Decimal("0.01")))
        elif what == 3:
            changed = replace(first, name="renamed" if first.name == "research" else "research")
        elif what == 4:
            changed = replace(first, mode=random.choice(("observe", "warn", "enforce")))
        elif what == 5:
            changed = replace(first, steps=steps(random))
        elif what == 6:
            changed = replace(first, alerts=(70, 100))
        else:
            changed = first
        budgets = (changed, *others)
        if what == 7 and others:
            budgets = tuple(others)
        policy = replace(policy, budgets=budgets, rates=not policy.rates if what == 8 else policy.rates)
        made.append(Change(at, policy))
    del machines
    return tuple(made)


def _deliveries(random: Random, table: Timetable, guard: str, offset: timedelta = timedelta(0)) -> list[Delivery]:
    skewed = random.random() < 0.3
    crowd = random.choice((1, 1, 1, 1, 2, 3))
    made = []
    for number in range(table.runs):
        scheduled = table.start + number * table.every + offset
        for copy in range(random.randint(1, crowd)):
            twin = copy > 0 and random.random() < 0.5
            made.append(
                Delivery(
                    scheduled=scheduled if copy == 0 or twin else scheduled + copy * timedelta(seconds=1),
                    arrives=scheduled + _lateness(random, table.every),
                    skew=timedelta(minutes=20 * random.random() - 10) if skewed else timedelta(0),
                    deadline=timedelta(seconds=random.choice((5, 20))) if random.random() < 0.02 else None,
                    host_paused=random.random() < 0.01,
                    guard=guard,
                )
            )
    return made


def _idle_deliveries(random: Random, table: Timetable, policy: PolicyVersion) -> list[Delivery]:
    if not policy.rules:
        return []
    offset = random.choice((timedelta(0), timedelta(0), timedelta(minutes=20), HOUR))
    return _deliveries(random, table, "idle_gpu", offset)


def _lateness(random: Random, every: timedelta) -> timedelta:
    if random.random() < 0.93:
        return timedelta(seconds=30 * random.random())
    return every * 1.5 * random.random()


def _span(random: Random, table: Timetable, length: timedelta) -> tuple[datetime, datetime]:
    begin = table.moment(random)
    return begin, begin + length


def _spell(random: Random, one: MachineSpec, table: Timetable) -> Spell:
    begins, ends = _span(random, table, random.choice((6, 13, 25)) * HOUR)
    return Spell(one.native_id, begins, ends, random.choice((*PROTECTING_TAGS[:2], (), (), ())))


def bill_spells(random: Random, clouds: list[str], table: Timetable) -> tuple[BillSpell, ...]:
    """The bill of a cloud stands still, or may not be read, for hours or days."""
    cloud = random.choice(clouds)
    begins = table.start - timedelta(hours=1) if random.random() < 0.2 else table.moment(random)
    length = random.choice((12, 30, 60, 100)) * HOUR
    return (BillSpell(cloud, begins, begins + length, denied=random.random() < 0.5),)


def charges(random: Random, clouds: list[str], table: Timetable) -> tuple[tuple[datetime, OtherCharge], ...]:
    """Refunds, vouchers, late corrections, taxes and platforms, each put on the bill at some moment."""
    made = []
    for _ in range(random.choice((1, 1, 2, 3))):
        at = table.moment(random)
        cloud = random.choice(clouds)
        what = random.choice(("refund", "refund", "credit", "correction", "tax", "ai_platform"))
        amount = Decimal(random.choice((10, 40, 150)))
        category = {
            "refund": ChargeCategory.ADJUSTMENT,
            "correction": ChargeCategory.ADJUSTMENT,
            "credit": ChargeCategory.CREDIT,
            "tax": ChargeCategory.TAX,
            "ai_platform": ChargeCategory.USAGE,
        }[what]
        begins = (at - random.choice((0, 1, 3)) * DAY).replace(minute=0, second=0)
        made.append((at, charge(cloud, what, category, begins, -amount if what in {"refund", "credit"} else amount)))
    return tuple(made)


def charge(cloud: str, what: str, category: ChargeCategory, begins: datetime, amount: Decimal) -> OtherCharge:
    """One hour's charge to research."""
    currency = "USD" if cloud == "aws" else "CNY"
    return OtherCharge(
        cloud,
        ACCOUNTS[cloud],
        REGIONS[cloud][0],
        what,
        category,
        begins,
        begins + HOUR,
        Money(amount, currency),
        tags={"team": "research"},
    )
