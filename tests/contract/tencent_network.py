"""VPC of the emulated Tencent Cloud, for the contract suites of `NetworkSource` and `NetworkRemediator`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import fields, replace
from typing import Any

from tests.contract.network_fleet import network_fleet
from tests.contract.network_rigs import EVERY_MEND, START, NetworkRig
from tests.contract.tencent_world import patient_pacer
from tests.world_ports.translate import to_product

from cloudstand.tencent.emulator import TencentEmulator
from cloudstand.tencent.network.desk import NetworkDesk
from cloudstand.wire.faults import Fault, FaultKind
from cloudstand.world.network.networks import PARTS
from costguard.domain.network import Hop, NetworkInventory
from costguard.domain.remediations import RemediationKind
from costguard.domain.resources import Instance
from costguard.providers.kit.iam.permissions import Purpose
from costguard.providers.tencent.compute.instance_types import TencentTypes
from costguard.providers.tencent.compute.source import TencentInventory
from costguard.providers.tencent.core.products import PAGES
from costguard.providers.tencent.core.session import TencentSession
from costguard.providers.tencent.iam.permissions import REACH
from costguard.providers.tencent.network.remediator import TencentNetworkRemediator
from costguard.providers.tencent.network.source import TencentNetwork

TOO_MANY = "LimitExceeded.ActionLimited"
"""Of this product alone: elsewhere what is asked too often has another word."""
_ALWAYS = 100_000
_CHANGING = frozenset(name for name, operation in REACH[Purpose.MEND].items() if operation.changes_something)


class TencentNetworkRig(NetworkRig):
    """The shard behind VPC of the emulator."""

    cloud = "tencent"
    mends = EVERY_MEND - {RemediationKind.REQUIRE_IMDSV2, RemediationKind.ALLOW_IMDSV1}  # CVM has no such setting
    flow_logs: Mapping[str, str] = {"destination": "29a6c8c8-d57d-4e25-84b5-9114734ce6ca", "role": ""}
    changing = _CHANGING
    most_requests = 20
    """Nine lists, addresses twice, the use of groups, the rules of seven of them, and the gateways' forwards."""

    def __init__(self, opened: ExitStack) -> None:
        super().__init__(network_fleet(self.cloud, START))
        self.emulator = opened.enter_context(TencentEmulator(self.door))
        self._opened = opened
        self._catalogue = TencentTypes()
        self._sessions = self._made(PAGES)
        self._small = self._made({name: replace(paging, most=1) for name, paging in PAGES.items()})
        self._in_use = self._sessions

    def _made(self, pages: Mapping[str, Any]) -> Mapping[str, TencentSession]:
        general = TencentSession(
            keys=to_product(self.emulator.keys),
            endpoint=self.emulator.url,
            pacer=patient_pacer(),
            now=self.clock.now,
            pages=pages,
        )
        made = {
            "reading": general,
            "acting": general.acting(),
            "mending": general.only_for(Purpose.MEND),
            "looking": general.only_for(Purpose.MEND, may_change=False),
        }
        for session in made.values():
            self._opened.callback(session.close)
        return made

    def instances(self) -> Sequence[Instance]:
        return TencentInventory(self._in_use["reading"], catalogue=self._catalogue).read(self.shard).instances

    def told_without(self, part: str, told: NetworkInventory) -> NetworkInventory:
        """The ways within a VPC are listed nowhere: they are taken from what the VPC says of its networks."""
        left = super().told_without(part, told)
        if part != "vpcs":
            return left
        tables = (
            replace(table, routes=tuple(route for route in table.routes if route.hop is not Hop.LOCAL))
            for table in left.route_tables
        )
        return replace(left, route_tables=tuple(tables))

    def session(self, kind: str) -> TencentSession:
        return self._in_use[kind]

    def source_over(self, session: Any) -> TencentNetwork:
        return TencentNetwork(session, now=self.clock.now)

    def remediator_over(self, session: Any) -> TencentNetworkRemediator:
        return TencentNetworkRemediator(session)

    def deny_part(self, part: str) -> None:
        self.world.networks.deny(self.cloud, self.shard.account, part)

    def throttle(self, times: int) -> None:
        for name in REACH[Purpose.MEND].keys() - self.changing:
            if name.startswith("vpc:"):
                self._refuse(name, times)

    def throttle_changes(self, times: int) -> None:
        for name in self.changing:
            self._refuse(name, times)

    def _refuse(self, name: str, times: int) -> None:
        self.emulator.faults.add(Fault(FaultKind.REFUSED, name.partition(":")[2], times, code=TOO_MANY))

    def lose_answers(self) -> None:
        for name in self.changing:
            self.emulator.faults.add(Fault(FaultKind.LOST_ANSWER, name.partition(":")[2], _ALWAYS))

    def small_pages(self) -> None:
        self._in_use = self._small

    def as_new(self) -> None:
        self._in_use = self._sessions
        self.emulator.faults.clear()
        self.emulator.calls.clear()
        desk, new = self.emulator.network_desk, NetworkDesk()
        for each in fields(NetworkDesk):
            setattr(desk, each.name, getattr(new, each.name))
        for part in PARTS:
            self.world.networks.allow(self.cloud, self.shard.account, part)

    def requests(self) -> Sequence[str]:
        return [f"{call.service}:{call.action}" for call in self.emulator.calls if call.service != "sts"]

    def reach(self) -> Sequence[str]:
        return list(REACH[Purpose.MEND])


@contextmanager
def tencent_network() -> Iterator[TencentNetworkRig]:
    """For `NETWORKS`."""
    with ExitStack() as opened:
        yield TencentNetworkRig(opened)
