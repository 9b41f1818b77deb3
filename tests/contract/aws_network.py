"""EC2's networks of the embedded AWS, for the contract suites of `NetworkSource` and `NetworkRemediator`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any

from tests.contract.aws_stand_in import StandIn, patient_pacer
from tests.contract.network_fleet import network_fleet
from tests.contract.network_rigs import START, NetworkRig

from cloudstand.aws.core.server import LoopbackServer
from cloudstand.aws.emulator import EmbeddedAws
from cloudstand.clouds import CLOSED_REGION
from cloudstand.world.network.networks import PARTS
from costguard.cli.sandbox.running import EXTERNAL_ID
from costguard.domain.network import NetworkInventory, PublicAddress
from costguard.domain.resources import Instance
from costguard.providers.aws.compute.source import AwsInventory
from costguard.providers.aws.core.session import AwsSession
from costguard.providers.aws.iam.permissions import REACH
from costguard.providers.aws.network.remediator import AwsNetworkRemediator
from costguard.providers.aws.network.source import AwsNetwork
from costguard.providers.kit.iam.permissions import Feature, Purpose

READS = (
    "DescribeSecurityGroupRules",
    "DescribeSecurityGroups",
    "DescribeNetworkInterfaces",
    "DescribeRouteTables",
    "DescribeSubnets",
    "DescribeVpcs",
    "DescribeNetworkAcls",
    "DescribeAddresses",
    "DescribeNatGateways",
    "DescribeFlowLogs",
    "DescribeVpcPeeringConnections",
)
"""One of each is the least that a whole shard takes."""


class AwsNetworkRig(NetworkRig):
    """The fleet's shard behind EC2's own words."""

    cloud = "aws"
    flow_logs = {"destination": "arn:aws:s3:::flow-logs/gpu"}  # noqa: RUF012 - never written
    changing = frozenset(name for name, one in REACH[Purpose.MEND].items() if one.changes_something)
    most_requests = len(READS) + 2  # prices of addresses and gateways

    def __init__(self, opened: ExitStack) -> None:
        super().__init__(network_fleet("aws", START))
        self.aws = opened.enter_context(EmbeddedAws(self._world, self.door, EXTERNAL_ID, CLOSED_REGION))
        self.stand_in = StandIn(self.aws.gateway)
        server = LoopbackServer(self.stand_in, self.clock)
        opened.callback(server.close)
        own = (self.aws.credentials.access_key_id, self.aws.credentials.secret_access_key)
        general = AwsSession(endpoint_url=server.url, keys=own, pacer=patient_pacer())
        self._sessions = {
            "reading": general,
            "acting": general.acting(),
            "mending": general.only_for(Purpose.MEND),
            "looking": general.only_for(Purpose.MEND, may_change=False),
        }
        for session in self._sessions.values():
            opened.callback(session.close)

    def instances(self) -> Sequence[Instance]:
        return AwsInventory(self.session("reading")).read(self.shard).instances

    def session(self, kind: str) -> AwsSession:
        return self._sessions[kind]

    def source_over(self, session: Any) -> AwsNetwork:
        return AwsNetwork(session)

    def remediator_over(self, session: Any) -> AwsNetworkRemediator:
        return AwsNetworkRemediator(session)

    def told_without(self, part: str, told: NetworkInventory) -> NetworkInventory:
        left = super().told_without(part, told)
        if part == "interfaces":
            return replace(left, groups=tuple(replace(each, in_use=None) for each in left.groups))
        if part == "routes":
            return replace(left, subnets=tuple(replace(each, route_table=None) for each in left.subnets))
        if part == "access_lists":
            return replace(left, subnets=tuple(replace(each, access_list=None) for each in left.subnets))
        if part == "nat_gateways":  # then their addresses are of some interface
            return replace(left, addresses=tuple(_of_interface(each, told) for each in left.addresses))
        return left

    def deny_part(self, part: str) -> None:
        self.world.networks.deny(self.cloud, self.shard.account, part)

    def throttle(self, times: int) -> None:
        for action in READS:
            self.stand_in.fail(action, 503, "RequestLimitExceeded", times=times)

    def throttle_changes(self, times: int) -> None:
        for operation in self.changing:
            self.stand_in.fail(operation.partition(":")[2], 503, "RequestLimitExceeded", times=times)

    def lose_answers(self) -> None:
        for operation in self.changing:
            self.stand_in.lose_answers(operation.partition(":")[2])

    def small_pages(self) -> None:
        self.aws.pages.most = 1

    def as_new(self) -> None:
        self.stand_in.reset()
        self.aws.pages.most = 1_000
        for part in PARTS:
            self.world.networks.allow(self.cloud, self.shard.account, part)

    def requests(self) -> Sequence[str]:
        return [f"ec2:{action}" for action, _ in self.stand_in.requests if action != "GetCallerIdentity"]

    def reach(self) -> Sequence[str]:
        """Without what the SDK's own credential providers send."""
        return [name for name, one in REACH[Purpose.MEND].items() if one.feature is not Feature.IDENTITY]


def _of_interface(address: PublicAddress, told: NetworkInventory) -> PublicAddress:
    if address.bound_to is None or address.bound_to.kind != "nat_gateway":
        return address
    (card,) = (card.ref for card in told.interfaces if address.ip in dict(card.public_ips).values())
    return replace(address, bound_to=card)


@contextmanager
def aws_network() -> Iterator[AwsNetworkRig]:
    """For `NETWORKS`."""
    with ExitStack() as opened:
        yield AwsNetworkRig(opened)
