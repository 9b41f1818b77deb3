"""VPC and ECS of the emulated Alibaba Cloud, for the contract suites of `NetworkSource` and `NetworkRemediator`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

from tests.contract.alibaba_world import patient_pacer
from tests.contract.network_fleet import network_fleet
from tests.contract.network_rigs import START, NetworkRig
from tests.world_ports.translate import to_product

from cloudstand.alibaba.emulator import AlibabaEmulator
from cloudstand.wire.faults import Fault, FaultKind
from cloudstand.world.network.networks import PARTS
from costguard.domain.network import NetworkInventory
from costguard.domain.resources import Instance
from costguard.providers.alibaba.compute.source import AlibabaInventory
from costguard.providers.alibaba.core.session import AlibabaSession
from costguard.providers.alibaba.iam.permissions import OPERATIONS, REACH
from costguard.providers.alibaba.network.remediator import AlibabaNetworkRemediator
from costguard.providers.alibaba.network.source import AlibabaNetwork
from costguard.providers.kit.iam.permissions import Feature, Purpose

_LISTS = 10 + 3  # one for each part; IPv4 gateways, public IPv6 addresses and instances besides
_PRICES = 3  # of addresses, of gateways, and what the latter are made of
_ROUTES, _FORWARDS, _GROUPS, _UNUSED = 3, 2, 7, 1  # a request a route table, gateway and group; unused ones together
_ALWAYS = 100_000


class AlibabaNetworkRig(NetworkRig):
    """The fleet's shard behind the words of VPC, VpcPeer and ECS."""

    cloud = "alibaba"
    flow_logs = {"destination": "flows/gpu"}  # noqa: RUF012 - never written
    changing = frozenset(name for name, one in REACH[Purpose.MEND].items() if one.changes_something)
    most_requests = _LISTS + _ROUTES + _FORWARDS + _GROUPS + _UNUSED + _PRICES

    def __init__(self, opened: ExitStack) -> None:
        super().__init__(network_fleet("alibaba", START))
        self.emulator = opened.enter_context(AlibabaEmulator(self.door))
        general = AlibabaSession(
            keys=to_product(self.emulator.keys), endpoint=self.emulator.url, pacer=patient_pacer(), now=self.clock.now
        )
        self._sessions = {
            "reading": general,
            "acting": general.acting(),
            "mending": general.only_for(Purpose.MEND),
            "looking": general.only_for(Purpose.MEND, may_change=False),
        }
        for session in self._sessions.values():
            opened.callback(session.close)

    def instances(self) -> Sequence[Instance]:
        return AlibabaInventory(self.session("reading")).read(self.shard).instances

    def session(self, kind: str) -> AlibabaSession:
        return self._sessions[kind]

    def source_over(self, session: Any) -> AlibabaNetwork:
        return AlibabaNetwork(session, now=self.clock.now)

    def remediator_over(self, session: Any) -> AlibabaNetworkRemediator:
        return AlibabaNetworkRemediator(session)

    def told_without(self, part: str, told: NetworkInventory) -> NetworkInventory:
        left = super().told_without(part, told)
        if part == "interfaces":
            return replace(left, groups=tuple(replace(each, in_use=None) for each in left.groups))
        return left

    def deny_part(self, part: str) -> None:
        self.world.networks.deny(self.cloud, self.shard.account, part)

    def throttle(self, times: int) -> None:
        reading = {name for name, one in OPERATIONS.items() if one.feature is Feature.NETWORK}
        self._fail(FaultKind.REFUSED, {*reading, "ecs:DescribeInstances", "vpc:DescribeEipAddresses"}, times)

    def throttle_changes(self, times: int) -> None:
        self._fail(FaultKind.REFUSED, self.changing, times)

    def lose_answers(self) -> None:
        self._fail(FaultKind.LOST_ANSWER, self.changing, _ALWAYS)

    def _fail(self, kind: FaultKind, operations: set[str] | frozenset[str], times: int) -> None:
        for name in operations:
            code = "Throttling.User" if kind is FaultKind.REFUSED else ""
            self.emulator.faults.add(Fault(kind, name.partition(":")[2], times, code=code, status=400))

    def small_pages(self) -> None:
        self.emulator.networks.page = 1

    def as_new(self) -> None:
        self.emulator.faults.clear()
        self.emulator.calls.clear()
        desk = self.emulator.networks
        desk.page, desk.settles_in = 1_000, timedelta(0)
        desk.settling.clear()
        desk.by_bandwidth.clear()
        for part in PARTS:
            self.world.networks.allow(self.cloud, self.shard.account, part)

    def requests(self) -> Sequence[str]:
        return [f"{call.service}:{call.action}" for call in self.emulator.calls if call.service != "sts"]

    def reach(self) -> Sequence[str]:
        return list(REACH[Purpose.MEND])


@contextmanager
def alibaba_network() -> Iterator[AlibabaNetworkRig]:
    """For `NETWORKS`."""
    with ExitStack() as opened:
        yield AlibabaNetworkRig(opened)
