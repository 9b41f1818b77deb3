"""Narrow stories of budgets: one machine or two, and one thing that goes wrong or is just reached."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from random import Random
from typing import Any

from tests.simulation.budgets import BudgetSpec, StepSpec, month_of
from tests.simulation.faults import Fault, Port
from tests.simulation.months import STARTS, Timetable, charge, fitted
from tests.simulation.rule_spec import RuleSpec
from tests.simulation.rules import PolicyVersion
from tests.simulation.scenario import DAY, HOUR, BillSpell, Change, Deed, Delivery, Scenario, machine
from tests.world_ports.translate import to_world

from cloudstand.world import workload
from cloudstand.world.fleet import MachineSpec
from costguard.domain.money import ChargeCategory, Money

_CLOUDS = ("aws", "alibaba", "tencent")
_WITHIN = (Port.DETAILS, Port.STORE, Port.LOAD, Port.POLICY, Port.SIGNALS)
STOP_IDLE = StepSpec(100, wait=4)


def close_up(random: Random, seed: int) -> Scenario:
    """One of them."""
    return random.choice(_KINDS)(random, seed)


def one_machine(random: Random, table: Timetable, cloud: str = "", name: str = "one", **more: Any) -> MachineSpec:
    cloud = cloud or random.choice(_CLOUDS)
    return machine(cloud, name, **{"launched_at": table.start - 15 * DAY, "disks": (), **more})


def table_of(random: Random, *, every: int = 6, runs: int = 10) -> Timetable:
    return Timetable(random.choice(STARTS[:4]), every * HOUR, runs)


def budget_of(one: MachineSpec, **more: Any) -> BudgetSpec:
    currency = one.hourly.currency if one.hourly is not None else "USD"
    return replace(BudgetSpec(currency=currency, steps=(STOP_IDLE,)), **more)


def story_of(
    seed: int,
    table: Timetable,
    machines: tuple[MachineSpec, ...],
    budgets: tuple[BudgetSpec, ...],
    *,
    rules: tuple[RuleSpec, ...] = (),
    kinds: tuple[Fault, ...] = (),
    rate: float = 0.0,
    beside: int = 0,
    idle_offset: timedelta = timedelta(0),
    quiet_runs: int = 0,
) -> Scenario:
    moments = [table.start + number * table.every for number in range(table.runs)]
    deliveries = [
        Delivery(at + n * timedelta(seconds=1), at + n * timedelta(seconds=2), guard="budget")
        for at in moments
        for n in range(beside + 1)
    ]
    if rules:
        deliveries += [Delivery(at + idle_offset, at + idle_offset + timedelta(seconds=1)) for at in moments]
    return Scenario(
        seed=seed,
        machines=machines,
        policy=PolicyVersion(rules, budgets=budgets),
        changes=(),
        deliveries=tuple(deliveries),
        every=table.every,
        fault_rate=rate,
        kinds=frozenset(kinds),
        switch_rate=0.4 if beside or rules else 0.0,
        quiet_runs=quiet_runs,
        start=table.start,
    )


def amount_spent(random: Random, one: MachineSpec, table: Timetable, share: str = "1.2") -> Decimal:
    """An amount of which this share is spent when the story begins."""
    begun = table.start.replace(day=1, hour=0)
    ran = Decimal((table.start - max(begun, one.launched_at)) / HOUR)
    del random
    hourly = one.hourly.amount if one.hourly is not None else Decimal(1)
    return (hourly * ran / Decimal(share)).quantize(Decimal("0.01"))


def _exactly(random: Random, seed: int) -> Scenario:
    """A platform's charge is the budget to the cent; the idle machine itself is free."""
    table = table_of(random, every=12, runs=8)
    one = one_machine(random, table, cloud="aws", hourly=Money(Decimal(0), "USD"))
    bought = charge("aws", "support", to_world(ChargeCategory.PURCHASE), table.start - 3 * DAY, Decimal(100))
    amount = Decimal(random.choice((100, 100, 125, 200)))
    at = int(10_000 / amount)
    budget = budget_of(one, amount=amount, steps=(replace(STOP_IDLE, at=at),))
    story = story_of(seed, table, (one,), (budget,), quiet_runs=5)
    return replace(story, charges=((table.start - DAY, bought),))


def _dark(random: Random, seed: int) -> Scenario:
    """Spent, told, and then the bill stands still or may not be read until nobody trusts it any more."""
    table = table_of(random, every=random.choice((6, 12)), runs=14)
    one = one_machine(random, table)
    step = replace(STOP_IDLE, wait=random.choice((12, 30, 60)))
    budget = budget_of(one, amount=amount_spent(random, one, table), steps=(step,), bill_hours=random.choice((36, 48)))
    story = story_of(seed, table, (one,), (budget,))
    begins = table.start + random.choice((-12, -1, 5, 20)) * HOUR
    spell = BillSpell(one.cloud, begins, begins + random.choice((24, 60, 90)) * HOUR, denied=random.random() < 0.5)
    return replace(story, bill_spells=(spell,))


def _half_read(random: Random, seed: int) -> Scenario:
    """Bills and listings that are denied, throttled, end early or are late, while something is due."""
    table = table_of(random, every=random.choice((4, 6)), runs=12)
    one = one_machine(random, table)
    step = replace(STOP_IDLE, wait=random.choice((1, 4, 12)))
    budget = budget_of(one, amount=amount_spent(random, one, table), steps=(step,))
    kinds = (Fault.LOST, Fault.DENIED, Fault.THROTTLED, Fault.TRUNCATED, Fault.REPEATING_TOKEN, Fault.STALE)
    story = story_of(seed, table, (one,), (budget,), kinds=kinds, rate=random.choice((0.03, 0.06)), quiet_runs=5)
    ports = {Port.BILLS} if random.random() < 0.7 else {Port.BILLS, Port.LISTING, Port.PRICES}
    return replace(story, ports=frozenset(ports))


def _young(random: Random, seed: int) -> Scenario:
    """A month that has just begun: most of what it cost is not billed yet."""
    start = STARTS[4].replace(day=random.choice((2, 3, 4)))
    table = Timetable(start, random.choice((4, 6)) * HOUR, 10)
    one = one_machine(random, table)
    hourly = one.hourly.amount if one.hourly is not None else Decimal(1)
    amount = (hourly * Decimal((start - start.replace(day=1, hour=0)) / HOUR)).quantize(Decimal("0.01"))
    budget = budget_of(one, amount=amount, estimated=random.choice((20, 30, 50)), steps=(replace(STOP_IDLE, wait=1),))
    return story_of(seed, table, (one,), (budget,), quiet_runs=random.choice((0, 5)))


def _foreign(random: Random, seed: int) -> Scenario:
    """Two currencies, or a machine whose price nobody knows, and perhaps no rate."""
    table = table_of(random)
    one = one_machine(random, table, cloud="aws")
    other = one_machine(random, table, cloud=random.choice(("alibaba", "tencent")), name="other")
    if random.random() < 0.4:
        other = replace(other, hourly=to_world(random.choice((None, Money(Decimal(1), "EUR")))))
    budget = fitted(random, budget_of(one, team="", currency=random.choice(("USD", "CNY"))), (one, other), table)
    story = story_of(seed, table, (one, other), (budget,), quiet_runs=random.choice((0, 5)))
    return replace(story, policy=replace(story.policy, rates=random.random() < 0.5))


def _two_guards(random: Random, seed: int) -> Scenario:
    """Both guards want the machine, at the same moment or one shortly after the other."""
    table = table_of(random, every=random.choice((4, 6)), runs=10)
    one = one_machine(random, table)
    rule = RuleSpec(
        mode=random.choice(("enforce", "enforce", "enforce", "warn", "observe")),
        lasting=4,
        stop=random.choice((1, 4, 6, 12)),
        terminate=random.choice((None, 24)),
    )
    budget = budget_of(
        one, amount=amount_spent(random, one, table), steps=(replace(STOP_IDLE, wait=random.choice((1, 4, 12))),)
    )
    kinds = random.choice(
        ((), (), (Fault.STALE,), (Fault.LOST_ANSWER, Fault.LOST), (Fault.CRASH_AFTER,), (Fault.FREEZE,))
    )
    story = story_of(
        seed,
        table,
        (one,),
        (budget,),
        rules=(rule,),
        kinds=kinds,
        rate=0.03 if kinds else 0.0,
        beside=random.choice((0, 0, 1)),
        idle_offset=random.choice((timedelta(0), timedelta(0), timedelta(seconds=3), HOUR)),
        quiet_runs=random.choice((0, 5)),
    )
    if kinds in {(Fault.STALE,), (Fault.LOST_ANSWER, Fault.LOST)}:
        story = replace(story, ports=frozenset({Port.ACT, Port.DETAILS}), fault_rate=0.06)
    if random.random() < 0.3:
        again = (table.start + (table.end - table.start) * 0.6, one.native_id, Deed.START)
        story = replace(story, deeds=(again,))
    return story


def _racing(random: Random, seed: int) -> Scenario:
    """Both guards have told the owner, and both stops are due in runs a few seconds apart; looks may be late."""
    table = table_of(random, every=8, runs=4)
    one = one_machine(random, table)
    rule = RuleSpec(lasting=4, stop=6, terminate=random.choice((None, 24)))
    budget = budget_of(one, amount=amount_spent(random, one, table), steps=(replace(STOP_IDLE, wait=4),))
    story = story_of(seed, table, (one,), (budget,), rules=(rule,), kinds=(Fault.STALE,), rate=0.08)
    first, *later = (delivery for delivery in story.deliveries if delivery.guard != "budget")
    shift = timedelta(seconds=24 * random.random())
    moved = [replace(each, arrives=each.arrives + shift) for each in later]
    budgets = [delivery for delivery in story.deliveries if delivery.guard == "budget"]
    return replace(story, deliveries=(*budgets, first, *moved), ports=frozenset({Port.DETAILS}))


def _kept(random: Random, seed: int) -> Scenario:
    """The idle guard keeps a machine for its local disk, for ever; the budget would lose or ask."""
    table = table_of(random, every=random.choice((6, 12)), runs=6)
    one = one_machine(random, table, local_disk_gib=random.choice((900.0, None)))
    rule = RuleSpec(lasting=4, stop=1, terminate=None, local_disk="keep")
    step = replace(STOP_IDLE, wait=random.choice((4, 12)))
    amount = amount_spent(
        random, one, table, share="0.97"
    )  # spent half a day later, when the other guard has told and holds
    budget = budget_of(one, amount=amount, steps=(step,), local_disk=random.choice(("lose", "ask")))
    return story_of(seed, table, (one,), (budget,), rules=(rule,), quiet_runs=5)


def _scoped(random: Random, seed: int) -> Scenario:
    """A class of work in two teams, one budget: only its own team's is stopped, busy or not."""
    table = table_of(random)
    cloud = random.choice(_CLOUDS)
    busy = workload.busy()
    mine = one_machine(random, table, cloud=cloud, workload=busy, tags={"team": "research", "env": "dev"})
    theirs = one_machine(random, table, cloud=cloud, name="theirs", tags={"team": "product", "env": "dev"})
    serving = one_machine(random, table, cloud=cloud, name="serving", workload=busy)
    step = StepSpec(random.choice((100, 110)), ("dev",), wait=4)
    budget = budget_of(mine, steps=(*random.choice(((), (STOP_IDLE,))), step))
    amount = 2 * amount_spent(random, mine, table)
    return story_of(seed, table, (mine, theirs, serving), (replace(budget, amount=amount),), quiet_runs=5)


def _refunded(random: Random, seed: int) -> Scenario:
    """Thresholds passed, then a refund, a voucher or a late correction, and the month goes on."""
    table = table_of(random, every=12, runs=12)
    one = one_machine(random, table, workload=random.choice((workload.idle(), workload.busy())))
    amount = amount_spent(random, one, table, share=random.choice(("0.4", "0.7", "0.9", "1.02")))
    budget = budget_of(one, amount=amount, tell=random.choice(((), ("slack:#finance", "slack:#research"))))
    story = story_of(seed, table, (one,), (budget,), quiet_runs=random.choice((0, 3)))
    at = table.moment(random)
    what, category, sign = random.choice(
        (
            ("refund", ChargeCategory.ADJUSTMENT, -1),
            ("refund", ChargeCategory.ADJUSTMENT, -1),
            ("credit", ChargeCategory.CREDIT, -1),
            ("correction", ChargeCategory.ADJUSTMENT, 1),
        )
    )
    money = sign * (amount * Decimal(random.choice(("0.15", "0.3", "0.6")))).quantize(Decimal("0.01"))
    begins = (at - random.choice((0, 1, 2)) * DAY).replace(minute=0, second=0)
    return replace(story, charges=((at, charge(one.cloud, what, to_world(category), begins, money)),))


def _edited(random: Random, seed: int) -> Scenario:
    """The budget is raised, lowered or renamed after its thresholds were told, or while a run is at work."""
    table = table_of(random, every=random.choice((6, 12)), runs=10)
    one = one_machine(random, table)
    budget = budget_of(one, amount=amount_spent(random, one, table, share=random.choice(("0.7", "0.95", "1.2"))))
    story = story_of(seed, table, (one,), (budget,), quiet_runs=random.choice((0, 5)))
    changed = random.choice(
        (
            replace(budget, amount=budget.amount * 2),
            replace(budget, amount=(budget.amount / 2).quantize(Decimal("0.01"))),
            replace(budget, amount=(budget.amount * Decimal("1.1")).quantize(Decimal("0.01"))),
            replace(budget, name="renamed"),
            replace(budget, mode="observe"),
            replace(budget, steps=(replace(STOP_IDLE, wait=1),)),
            replace(budget, steps=()),
        )
    )
    run = random.randrange(1, table.runs)
    if random.random() < 0.4:  # raised by the very run that would stop it
        run, budget = 1, replace(budget, amount=amount_spent(random, one, table))
        story = replace(story, policy=replace(story.policy, budgets=(budget,)))
        changed = replace(budget, amount=budget.amount * random.choice((2, 3)))
    at = table.start + run * table.every + timedelta(seconds=18 * random.random())
    return replace(story, changes=(Change(at, replace(story.policy, budgets=(changed,))),))


def _turning(random: Random, seed: int) -> Scenario:
    """A month ends while something is due; processes stand still across it."""
    every, zone = random.choice((6, 8)), random.choice(("UTC", "Asia/Shanghai"))
    ends = month_of(STARTS[5], zone)[2]
    table = Timetable(ends - 2 * every * HOUR - random.choice((1, 2, 3)) * HOUR, every * HOUR, 6)
    one = one_machine(random, table)
    hourly = one.hourly.amount if one.hourly is not None else Decimal(1)
    due = 2 * every - 1  # between the last run of the month and the one before
    step = replace(STOP_IDLE, wait=random.choice((4, due, due, due)))
    budget = budget_of(one, amount=(hourly * 24 * random.choice((5, 12, 14))), steps=(step,), zone=zone)
    kinds = random.choice(((), (Fault.FREEZE,), (Fault.FREEZE,)))
    story = story_of(seed, table, (one,), (budget,), kinds=kinds, rate=0.06 if kinds else 0.0)
    return replace(story, ports=frozenset(random.choice(((Port.DETAILS,), tuple(_WITHIN)))))


def _comings(random: Random, seed: int) -> Scenario:
    """A machine that its owner stops and starts between two looks."""
    table = table_of(random, every=random.choice((4, 12)), runs=10)
    one = one_machine(random, table, workload=random.choice((workload.idle(), workload.busy())))
    budget = budget_of(one, amount=amount_spent(random, one, table, share=random.choice(("0.7", "0.9", "1.2"))))
    story = story_of(seed, table, (one,), (budget,), quiet_runs=random.choice((0, 5)))
    moments = sorted(table.moment(random) for _ in range(4))
    deeds = (Deed.STOP, Deed.START, Deed.STOP, Deed.START)
    return replace(story, deeds=tuple((at, one.native_id, deed) for at, deed in zip(moments, deeds, strict=True)))


def _capped(random: Random, seed: int) -> Scenario:
    """Several idle machines under one budget, and a cap for one or two."""
    table = table_of(random, every=random.choice((4, 6)), runs=10)
    cloud = random.choice(_CLOUDS)
    machines = tuple(
        one_machine(random, table, cloud=cloud, name=f"m{number}") for number in range(random.choice((2, 3)))
    )
    budget = budget_of(
        machines[0],
        amount=amount_spent(random, machines[0], table),
        actions=random.choice((0, 1, 2)),
        share_percent=random.choice((30, 60, 100)),
        usd=random.choice((2, 1000)),
        cny=random.choice((2, 1000)),
    )
    return story_of(seed, table, machines, (budget,), beside=random.choice((0, 1)))


def _spoken(random: Random, seed: int) -> Scenario:
    """Snoozes, pauses and owners at every moment of a run."""
    table = table_of(random, every=random.choice((6, 12)), runs=10)
    one = one_machine(random, table, local_disk_gib=random.choice((0.0, 0.0, 900.0)))
    budget = budget_of(one, amount=amount_spent(random, one, table))
    kinds = random.choice(((Fault.PEOPLE,), (Fault.OWNER,)))
    return story_of(seed, table, (one,), (budget,), kinds=kinds, rate=0.02, quiet_runs=random.choice((0, 5)))


def _unheard(random: Random, seed: int) -> Scenario:
    """The channel fails in every way it can while thresholds are passed."""
    table = table_of(random, every=random.choice((4, 12)), runs=12)
    one = one_machine(random, table, workload=workload.busy())
    amount = amount_spent(random, one, table, share=random.choice(("0.4", "0.7", "0.9")))
    budget = budget_of(one, amount=amount, tell=("slack:#finance", "slack:#research"))
    kinds = (Fault.LOST, Fault.LOST_ANSWER, Fault.RATE_LIMITED, Fault.CRASH_AFTER, Fault.CRASH_BEFORE, Fault.REFUSED)
    chosen = tuple(kind for kind in kinds if random.random() < 0.5)
    story = story_of(
        seed, table, (one,), (budget,), kinds=chosen, rate=0.06, quiet_runs=3, beside=random.choice((0, 1))
    )
    return replace(story, ports=frozenset({Port.SEND, Port.STORE}))


_KINDS: tuple[Callable[[Random, int], Scenario], ...] = (
    *(
        _exactly,
        _dark,
        _dark,
        _half_read,
        _half_read,
        _young,
        _foreign,
        _two_guards,
        _two_guards,
        _racing,
        _racing,
        _kept,
    ),
    *(
        _scoped,
        _refunded,
        _refunded,
        _edited,
        _edited,
        _turning,
        _turning,
        _turning,
        _turning,
        _comings,
        _capped,
        _spoken,
        _unheard,
    ),
)
