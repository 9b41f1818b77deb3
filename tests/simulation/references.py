"""Reference scenarios: quiet stories in which every boundary gets every fault once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

from tests.simulation.budgets import BudgetSpec, StepSpec
from tests.simulation.rule_spec import RuleSpec
from tests.simulation.rules import PolicyVersion
from tests.simulation.scenario import DAY, HOUR, START, Delivery, Scenario, machine

from cloudstand.world.fleet import Disk, MachineSpec
from cloudstand.world.kinds import Billing

_TWO_DISKS = (Disk(100), Disk(100, device="/dev/sdb", deleted_with_instance=False))
_LADDER = RuleSpec(lasting=4, stop=20, terminate=24)  # 20: a daily run is never a few seconds too early for its stop


def _story(*machines: MachineSpec, rule: RuleSpec = _LADDER, runs: int = 10, beside: int = 0) -> Scenario:
    """Daily runs; `beside` more start with each, a few seconds later."""
    deliveries = [
        Delivery(scheduled=at + n * timedelta(seconds=1), arrives=at + n * timedelta(seconds=2))
        for at in (START + day * DAY for day in range(runs))
        for n in range(beside + 1)
    ]
    return Scenario(
        seed=1,
        machines=machines,
        policy=PolicyVersion((rule,)),
        changes=(),
        deliveries=tuple(deliveries),
        every=DAY,
        fault_rate=0.0,
        kinds=frozenset(),
        switch_rate=0.3 if beside else 0.0,
    )


def _spot() -> MachineSpec:
    return machine("aws", "spot", disks=_TWO_DISKS, one_time_spot=True, billing=Billing.SPOT)


def _with_leave() -> Scenario:
    disk = machine("aws", "disk", local_disk_gib=900.0)
    asked = tuple((START + day * DAY + HOUR, disk.native_id) for day in range(1, 4))
    return replace(_story(disk, runs=4), approvals=asked)


def _spent_budget(*rules: RuleSpec) -> Scenario:
    """A budget spent since days: told, and its idle machine announced and stopped; with `rules` two guards want it."""
    start = START + 8 * DAY
    one = machine("aws", "one", disks=(), launched_at=start - 15 * DAY)
    budget = BudgetSpec(amount=Decimal(300), steps=(StepSpec(100, wait=4),), tell=("slack:#finance",))
    moments = [start + number * 6 * HOUR for number in range(3)]
    deliveries = [Delivery(at, at, guard="budget") for at in moments]
    if rules:
        deliveries += [Delivery(at, at + timedelta(seconds=1)) for at in moments]
    return Scenario(
        seed=1,
        machines=(one,),
        policy=PolicyVersion(rules, budgets=(budget,)),
        changes=(),
        deliveries=tuple(deliveries),
        every=6 * HOUR,
        fault_rate=0.0,
        kinds=frozenset(),
        switch_rate=0.3 if rules else 0.0,
        quiet_runs=5,
        start=start,
    )


REFERENCES: Mapping[str, Scenario] = {
    "ladder-aws": _story(machine("aws", "one", disks=_TWO_DISKS)),
    "ladder-alibaba": _story(machine("alibaba", "one")),
    "ladder-tencent": _story(machine("tencent", "one", recycles=True)),
    "spot": _story(_spot(), rule=replace(_LADDER, unstoppable="terminate"), runs=6),
    "local-disk": _with_leave(),
    "one-a-day": _story(
        machine("aws", "one"), machine("aws", "two"), rule=replace(_LADDER, actions=1, terminate=None), runs=4
    ),
    "budget": _spent_budget(),
    "budget-and-rule": _spent_budget(replace(_LADDER, stop=6, terminate=None)),
    "side-by-side": _story(machine("aws", "one"), rule=replace(_LADDER, terminate=None), runs=4, beside=1),
}
"""By name. Together they climb every rung on every cloud, ask for leave, share a cap, overlap and spend a budget."""
