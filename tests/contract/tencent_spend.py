"""The bill of Tencent Cloud on its emulator: a rig for the contract suite of `SpendSource`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

from tests.contract.spend_rigs import START, Scene, WireRig, scene
from tests.contract.tencent_world import patient_pacer
from tests.world_ports.translate import to_product

from cloudstand.clock import MovedClock
from cloudstand.tencent.emulator import TencentEmulator
from cloudstand.wire.door import WorldDoor
from cloudstand.wire.faults import Fault, FaultKind
from cloudstand.world.cloud import World
from cloudstand.world.kinds import Billing
from costguard.domain.money import VendorBudget
from costguard.ports import Target
from costguard.providers.tencent.billing.source import TencentSpend
from costguard.providers.tencent.core.session import TencentSession
from costguard.providers.tencent.iam.permissions import OPERATIONS

_TERMS = timedelta(days=60)
_LOOK_BACK = 1  # months of terms: the scene has one of thirty days


class TencentSpendRig(WireRig):
    """Charges settled by the day; bills have eight places."""

    precision = Decimal("1e-8")
    most_requests = 4 + _LOOK_BACK  # totals, detail, members; and the terms paid for in the months before

    def __init__(self, scene: Scene, emulator: TencentEmulator) -> None:
        super().__init__(scene)
        self.emulator = emulator
        self._session = TencentSession(
            cloud=scene.cloud,
            keys=to_product(emulator.keys),
            endpoint=emulator.url,
            pacer=patient_pacer(),
            now=scene.clock.now,
        )
        self._source = TencentSpend(self._session, now=scene.clock.now, months_of_terms=_LOOK_BACK)

    def close(self) -> None:
        self._session.close()

    def source(self) -> TencentSpend:
        return self._source

    def target(self, *, organisation: bool = True) -> Target:
        return Target(self.cloud, organisation=organisation)

    def set_up_budget(self, budget: VendorBudget) -> None:
        self.emulator.desk.set_up_budget(
            budget.name,
            str(budget.amount.amount),
            account=budget.account,
            actual=budget.actual_thresholds,
            forecast=budget.forecast_thresholds,
        )

    def requests(self) -> Sequence[str]:
        return [f"{call.service}:{call.action}" for call in self.emulator.calls if call.service != "sts"]

    def changes(self) -> Sequence[str]:
        return [name for name in self.requests() if OPERATIONS[name].changes_something]

    def throttle(self, times: int) -> None:
        self.emulator.faults.add(
            Fault(FaultKind.REFUSED, "DescribeBillSummaryByProduct", times, code="RequestLimitExceeded")
        )

    def small_pages(self) -> None:
        self._source = TencentSpend(self._session, now=self.scene.clock.now, page_rows=3, months_of_terms=_LOOK_BACK)


def bought_at_launch(given: Scene) -> Scene:
    """The same scene with prepaid machines launched when a term of theirs began.

    The bill tells what a term cost, on the day it was paid for, and never a day's share of it: a machine that the world
    lets begin in the middle of a term that nobody paid for cannot be told in it.
    """
    fleet = [
        replace(spec, launched_at=spec.prepaid_until - _TERMS)
        if spec.billing is Billing.PREPAID and spec.prepaid_until is not None
        else spec
        for spec in given.world.fleet
    ]
    world, clock = World(fleet, START), MovedClock(START)
    for other in given.world.other_charges:
        world.charge(other)
    return Scene(given.cloud, world, clock, WorldDoor(world, clock))


@contextmanager
def tencent_spend(cloud: str = "tencent") -> Iterator[TencentSpendRig]:
    """A rig of its own, closed again."""
    made = bought_at_launch(scene(cloud))
    with TencentEmulator(made.door, cloud=cloud) as emulator:
        rig = TencentSpendRig(made, emulator)
        try:
            yield rig
        finally:
            rig.close()
