"""The bill of Alibaba Cloud on its emulator: a rig for the contract suite of `SpendSource`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

from tests.contract.alibaba_world import patient_pacer
from tests.contract.spend_rigs import START, Scene, WireRig, scene
from tests.world_ports.translate import to_product

from cloudstand.alibaba.billing.console_budgets import ConsoleBudget
from cloudstand.alibaba.emulator import AlibabaEmulator
from cloudstand.clock import MovedClock
from cloudstand.wire.door import WorldDoor
from cloudstand.wire.faults import Fault, FaultKind
from cloudstand.world.cloud import World
from cloudstand.world.kinds import Billing
from costguard.domain.money import VendorBudget
from costguard.ports import Target
from costguard.providers.alibaba.billing.source import CYCLES_KEPT, AlibabaSpend
from costguard.providers.alibaba.core.session import AlibabaSession
from costguard.providers.alibaba.iam.permissions import OPERATIONS
from costguard.providers.kit.billing.calendar import begin_of, day_of

_TERMS = timedelta(days=60)
_LONGEST_MONTH = 31


class AlibabaSpendRig(WireRig):
    """Records with six places; orders of every cycle that is kept, and the days of the last one."""

    precision = Decimal("1e-6")
    most_requests = CYCLES_KEPT + 2 * _LONGEST_MONTH

    def __init__(self, scene: Scene, emulator: AlibabaEmulator) -> None:
        super().__init__(scene)
        self.emulator = emulator
        self.session = AlibabaSession(
            keys=to_product(emulator.keys),
            cloud=scene.cloud,
            endpoint=emulator.url,
            pacer=patient_pacer(),
            now=scene.clock.now,
        )
        self._source = AlibabaSpend(self.session, now=scene.clock.now)

    def source(self) -> AlibabaSpend:
        return self._source

    def target(self, *, organisation: bool = True) -> Target:
        return Target(self.cloud, organisation=organisation)

    def set_up_budget(self, budget: VendorBudget) -> None:
        found = ConsoleBudget(budget.account, budget.name, budget.amount.amount, cycle=budget.period)
        self.emulator.bills.budgets.append(found)

    def requests(self) -> Sequence[str]:
        return [f"{call.service}:{call.action}" for call in self.emulator.calls if call.service != "sts"]

    def changes(self) -> Sequence[str]:
        return [name for name in self.requests() if OPERATIONS[name].changes_something]

    def throttle(self, times: int) -> None:
        self.emulator.faults.add(Fault(FaultKind.REFUSED, "DescribeInstanceBill", times, code="Throttling.User"))

    def small_pages(self) -> None:
        """What is kept of earlier orders is forgotten, as in another process."""
        self.emulator.bills.page = 2
        self._source = AlibabaSpend(self.session, now=self.scene.clock.now)


def bought_at_launch(given: Scene) -> Scene:
    """The same scene with prepaid machines launched when a term of theirs began, and terms that begin with a day.

    The bill tells what a term cost and the day of the order: neither its hour nor a term that nobody paid for.
    """
    fleet = []
    for spec in given.world.fleet:
        if spec.billing is Billing.PREPAID and spec.prepaid_until is not None:
            until = begin_of(day_of(spec.prepaid_until))
            fleet.append(replace(spec, prepaid_until=until, launched_at=until - _TERMS))
        else:
            fleet.append(spec)
    world, clock = World(fleet, START), MovedClock(START)
    for other in given.world.other_charges:
        world.charge(other)
    return Scene(given.cloud, world, clock, WorldDoor(world, clock))


@contextmanager
def alibaba_spend(cloud: str = "alibaba") -> Iterator[AlibabaSpendRig]:
    """A rig of its own, closed again."""
    made = bought_at_launch(scene(cloud))
    with AlibabaEmulator(made.door, cloud=cloud) as emulator:
        rig = AlibabaSpendRig(made, emulator)
        try:
            yield rig
        finally:
            rig.session.close()
