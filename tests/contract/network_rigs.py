"""What the contract suites of `NetworkSource` and `NetworkRemediator` need of a provider, and the world without a wire.

A further provider writes a `NetworkRig` in a module of its own and adds it to `NETWORKS` in `network_worlds.py`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timezone
from typing import Any

from tests.contract.network_fleet import NetworkFleet, network_fleet
from tests.world_ports.inventory import WorldInventory
from tests.world_ports.networks import WorldNetworkRemediator, WorldNetworks
from tests.world_ports.translate import to_product, to_world

from cloudstand.clock import MovedClock
from cloudstand.wire.door import WorldDoor
from cloudstand.world.cloud import World
from cloudstand.world.network.networks import PARTS
from cloudstand.world.records import Operation
from costguard.domain.actions import Receipt
from costguard.domain.errors import OutcomeUnknownError, ThrottledError
from costguard.domain.network import Hop, NetworkInventory, NetworkRule, Route, SecurityGroup
from costguard.domain.refs import ResourceRef, Shard
from costguard.domain.remediations import Remediation, RemediationKind
from costguard.domain.resources import Instance
from costguard.ports import NetworkRemediator, NetworkSource

START = datetime(2026, 3, 2, 9, tzinfo=timezone.utc)
EVERY_MEND = frozenset(RemediationKind) - {RemediationKind.SET_ROTATION, RemediationKind.ROTATE_KEY}


class NetworkRig(ABC):
    """One provider with the shard of `network_fleet.py` in a world.

    `lacks`: a part that may be denied by itself → the parts that then have a gap; by default each its own. `mends`: the
    kinds of change that the vendor has; `flow_logs`: where they go, in its own form. `changing`: the operations that
    may change something, as `requests` has them; `most_requests` is what one whole read may cost. `has_pages`: lists
    come in pages that can be made small.
    """

    cloud: str
    lacks: Mapping[str, frozenset[str]] = {part: frozenset({part}) for part in PARTS}
    mends: frozenset[RemediationKind] = EVERY_MEND
    flow_logs: Mapping[str, str] = {"destination": "flow-logs", "role": "flow-logs-writer"}
    changing: frozenset[str]
    most_requests: int
    has_pages = True

    def __init__(self, fleet: NetworkFleet) -> None:
        self.fleet = fleet
        self.clock = MovedClock(START)
        self._world = World(fleet.machines.values(), START)
        self.door = WorldDoor(self._world, self.clock)

    @property
    def shard(self) -> Shard:
        return self.fleet.shard

    @property
    def empty(self) -> Shard:
        """A region of the account with nothing in it, that the provider may be asked about."""
        regions = {"aws": "eu-north-1", "alibaba": "eu-central-1", "tencent": "ap-shanghai"}
        return replace(self.shard, region=regions[self.shard.provider])

    @property
    def world(self) -> World:
        """The truth, up to the present moment."""
        with self.door.opened() as world:
            return world

    def reset(self) -> None:
        """The networks as they begin; nothing denied, nothing goes wrong, nothing was asked."""
        with self.door.opened() as world:
            self.fleet.place(world)
            for operation in (Operation.NETWORK, Operation.FIX_NETWORK):
                world.allow(self.cloud, self.shard.account, operation)
        self.as_new()

    def ref(self, kind: str, name: str) -> ResourceRef:
        """A part of the fleet by its name."""
        return self.fleet.ref(kind, name)

    def truth(self) -> NetworkInventory:
        """The shard as it is now."""
        return to_product(self.world.networks.of(to_world(self.shard)))

    def truth_of_group(self, name: str) -> SecurityGroup:
        found: SecurityGroup = to_product(self.world.networks.group(to_world(self.ref("security_group", name))))
        return found

    def read(self) -> NetworkInventory:
        return self.source().read(self.shard)

    def deny(self, operation: Operation) -> None:
        """From now on the program's own role may not do this."""
        self.world.deny(self.cloud, self.shard.account, operation)

    def told(self, truth: NetworkInventory) -> NetworkInventory:
        """What the cloud tells of these networks; a vendor that tells less or otherwise changes it here."""
        return truth

    def told_without(self, part: str, told: NetworkInventory) -> NetworkInventory:
        """What is told when this part is denied; where other parts then know less, a vendor says so here."""
        return replace(told, **{PARTS[lacking]: () for lacking in self.lacks[part]})  # type: ignore[arg-type]

    def source(self) -> NetworkSource:
        """The adapter, over a reading session."""
        return self.source_over(self.session("reading"))

    def remediator(self) -> NetworkRemediator:
        """The adapter, over a session that can do nothing else."""
        return self.remediator_over(self.session("mending"))

    def changes(self) -> Sequence[str]:
        """The requests that could have changed something, and whatever else does not read."""
        reads = ("Describe", "Get", "List", "Read")
        return [each for each in self.requests() if not each.rpartition(":")[2].startswith(reads)]

    @abstractmethod
    def instances(self) -> Sequence[Instance]:
        """The machines of the shard, as the provider's `InventorySource` reads them."""

    @abstractmethod
    def session(self, kind: str) -> Any:
        """A session for `reading`, `acting`, `mending` or `looking` (mending that may change nothing)."""

    @abstractmethod
    def source_over(self, session: Any) -> NetworkSource: ...

    @abstractmethod
    def remediator_over(self, session: Any) -> NetworkRemediator:
        """The adapter over any session, if it takes it."""

    @abstractmethod
    def deny_part(self, part: str) -> None:
        """From now on the program's own role may not read this part; `as_new` lifts it."""

    @abstractmethod
    def throttle(self, times: int) -> None:
        """The next `times` calls of each reading operation are throttled in the vendor's way."""

    @abstractmethod
    def throttle_changes(self, times: int) -> None:
        """The next `times` calls of each changing operation are throttled in the vendor's way."""

    @abstractmethod
    def lose_answers(self) -> None:
        """From now on changing requests take effect, and their answers are lost."""

    @abstractmethod
    def small_pages(self) -> None:
        """From now on every list comes in more than one page."""

    @abstractmethod
    def as_new(self) -> None:
        """Nothing goes wrong and nothing was asked."""

    @abstractmethod
    def requests(self) -> Sequence[str]:
        """The operations that arrived so far (`ec2:DescribeVpcs`), in order, without those that ask who we are."""

    @abstractmethod
    def reach(self) -> Sequence[str]:
        """Every operation in the table of a session for mending."""


class BareRig(NetworkRig):
    """The world without a wire, behind a pretence of one: it throttles, and loses answers, as the suites ask it to."""

    changing = frozenset({"world:ChangeNetwork"})
    most_requests = 1
    has_pages = False

    def __init__(self, cloud: str) -> None:
        self.cloud = cloud
        super().__init__(network_fleet(cloud, START))
        if self.shard.provider == "tencent":  # flow logs are of interfaces, and nothing is told of metadata
            self.mends = EVERY_MEND - {RemediationKind.REQUIRE_IMDSV2, RemediationKind.ALLOW_IMDSV1}
        self._asked: list[str] = []
        self._throttled = 0
        self._loses = False

    def instances(self) -> Sequence[Instance]:
        return WorldInventory(self._world, self.clock).read(self.shard).instances

    def session(self, kind: str) -> str:
        return kind

    def source_over(self, session: Any) -> NetworkSource:  # noqa: ARG002 - there are no sessions
        return _Reading(self)

    def remediator_over(self, session: Any) -> NetworkRemediator:  # noqa: ARG002 - there are no sessions
        return _Mending(self)

    def ask(self, operation: str, *, patience: int) -> None:
        for _ in range(patience):
            self._asked.append(operation)
            if self._throttled <= 0:
                return
            self._throttled -= 1
        raise ThrottledError("slow down", operation=operation)

    def answered(self, receipt: Receipt) -> Receipt:
        if self._loses:
            raise OutcomeUnknownError("the answer was lost", operation="world:ChangeNetwork")
        return receipt

    def deny_part(self, part: str) -> None:
        self.world.networks.deny(self.cloud, self.shard.account, part)

    def throttle(self, times: int) -> None:
        self._throttled = times

    def throttle_changes(self, times: int) -> None:
        self._throttled = times

    def lose_answers(self) -> None:
        self._loses = True

    def small_pages(self) -> None:
        """A world has no pages."""

    def as_new(self) -> None:
        self._asked.clear()
        self._throttled, self._loses = 0, False
        for part in PARTS:
            self.world.networks.allow(self.cloud, self.shard.account, part)

    def requests(self) -> Sequence[str]:
        return self._asked

    def reach(self) -> Sequence[str]:
        return ["world:ReadNetworks", "world:ChangeNetwork"]


class _Reading:
    def __init__(self, rig: BareRig) -> None:
        self._rig = rig

    def read(self, shard: Shard) -> NetworkInventory:
        self._rig.ask("world:ReadNetworks", patience=5)
        return WorldNetworks(self._rig.world, self._rig.clock).read(shard)


class _Mending:
    def __init__(self, rig: BareRig) -> None:
        self._rig = rig

    def change(self, mend: Remediation, before: Mapping[str, str]) -> Receipt:
        self._rig.ask("world:ChangeNetwork", patience=1)
        return self._rig.answered(WorldNetworkRemediator(self._rig.world, self._rig.clock).change(mend, before))


@contextmanager
def bare(cloud: str) -> Iterator[NetworkRig]:
    """For `NETWORKS`: the world behind no wire."""
    yield BareRig(cloud)


def plain(found: NetworkInventory) -> NetworkInventory:
    """The same in one order, without rates (no world knows a vendor's price) and without names of what is local."""
    return replace(
        found,
        vpcs=_sorted(replace(each, cidrs=_sorted(each.cidrs)) for each in found.vpcs),
        subnets=_sorted(replace(each, cidrs=_sorted(each.cidrs)) for each in found.subnets),
        route_tables=_sorted(replace(each, routes=_sorted(map(_route, each.routes))) for each in found.route_tables),
        groups=_sorted(
            replace(each, rules=in_order(each.rules), referenced_by=_sorted(each.referenced_by))
            for each in found.groups
        ),
        access_lists=_sorted(replace(each, rules=in_order(each.rules)) for each in found.access_lists),
        interfaces=_sorted(
            replace(each, groups=_sorted(each.groups), public_ips=_sorted(each.public_ips)) for each in found.interfaces
        ),
        addresses=_sorted(replace(each, rate=None, unpriced=None) for each in found.addresses),
        nat_gateways=_sorted(
            replace(each, rate=None, unpriced=None, public_ips=_sorted(each.public_ips)) for each in found.nat_gateways
        ),
        flow_logs=_sorted(found.flow_logs),
        peerings=_sorted(found.peerings),
    )


def in_order(rules: Sequence[NetworkRule]) -> tuple[NetworkRule, ...]:
    return tuple(sorted(rules, key=lambda rule: (rule.direction.value, rule.priority, rule.rule_id)))


def _sorted(parts: Any) -> tuple[Any, ...]:
    return tuple(sorted(parts, key=lambda part: str(getattr(part, "ref", part))))


def _route(route: Route) -> Route:
    return replace(route, target="") if route.hop is Hop.LOCAL else route
