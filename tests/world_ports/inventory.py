"""The ports over a world, without any wire: what fast scenario tests and simulations run on."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from decimal import Decimal

from tests.world_ports.hours import histories
from tests.world_ports.translate import to_product, to_world
from tests.world_ports.views import detail_of, instance_of
from typing_extensions import assert_never

from cloudstand.clock import Clock
from cloudstand.world.cloud import World
from cloudstand.world.kinds import Billing
from cloudstand.world.prices import ADDRESS_HOUR, DISK_GIB_MONTH, SNAPSHOT_GIB_MONTH, SPOT_SHARE
from cloudstand.world.records import Operation, Refusal, WorldRefusalError
from cloudstand.world.vendors import vendor_of
from costguard.domain.actions import Action, Receipt, Verb
from costguard.domain.errors import AccessDeniedError, NotFoundError, ProviderError, RefusedError
from costguard.domain.money import HOURS_PER_MONTH, HourlyRate, Money
from costguard.domain.refs import ResourceRef, Shard
from costguard.domain.resources import Gap, GapKind, Instance, InstanceDetail, Inventory, Volume
from costguard.domain.signals import SignalReading
from costguard.guards.rules.common import KEEP_TAG
from costguard.ports import Discovery, SignalReport, Target

DOCUMENTED_DELAY = timedelta(minutes=5)
_BY = "costguard"


class _OverWorld:
    """Brings the world up to the clock before it is looked at."""

    def __init__(self, world: World, clock: Clock) -> None:
        self._world = world
        self._clock = clock

    def _current(self) -> World:
        self._world.tick(self._clock.now())
        return self._world


class WorldInventory(_OverWorld):
    """`InventorySource` over a world."""

    def discover(self, target: Target) -> Discovery:
        """The shards of a target in which anything stands; an organisation is every account of that cloud."""
        shards = {to_product(place) for place in self._world.shards if place.cloud == target.cloud}
        accounts = {shard.account for shard in shards} if target.organisation or not target.account else set[str]()
        wanted = accounts | {target.account}
        regions = target.regions
        found = (shard for shard in shards if shard.account in wanted and (regions is None or shard.region in regions))
        return Discovery(tuple(sorted(found)), accounts=tuple(sorted(wanted - {""})))

    def read(self, shard: Shard) -> Inventory:
        """Every machine of the shard that the cloud still lists; an empty answer that proves nothing is a gap.

        Raises:
            AccessDeniedError: the role may not list, and the cloud says so.
        """
        world = self._current()
        with _translated("list"):
            listed = tuple(instance_of(world, machine) for machine in world.listing(to_world(shard)))
        if not listed and not _may_list(world, shard):
            return Inventory(shard, (), (_empty_by_denial(shard),))
        return Inventory(shard, listed, instances_seen=len(listed))

    def details(self, refs: Sequence[ResourceRef]) -> Mapping[ResourceRef, InstanceDetail]:
        """These machines anew, with disks, copies, addresses and what the listing tells; gone ones are absent.

        Raises:
            AccessDeniedError: the role may not list machines or disks: absence would prove nothing.
        """
        world = self._current()
        found = {}
        for ref in refs:
            with _translated("details"):
                world.require(ref.cloud, ref.account, Operation.LIST)
                world.require(ref.cloud, ref.account, Operation.DISKS)
            machine = world.machines.get(ref.native_id)
            if machine is not None and world.is_listed(machine):
                found[ref] = detail_of(world, machine)
        return found

    def protections(self, ref: ResourceRef, wanted: Collection[str]) -> tuple[str, ...]:
        """What is set of `wanted`, where the listing does not tell.

        Raises:
            AccessDeniedError: the role may not list machines.
            NotFoundError: no such machine.
        """
        world = self._current()
        with _translated("protections"):
            world.require(ref.cloud, ref.account, Operation.LIST)
        machine = world.machines.get(ref.native_id)
        if machine is None or not world.is_listed(machine):
            message = f"no machine {ref.native_id}"
            raise NotFoundError(message, operation="world:protections", code=Refusal.NOT_FOUND.value)
        return () if machine.vendor.lists_protection else tuple(sorted(machine.protections & frozenset(wanted)))


class WorldSignals(_OverWorld):
    """`SignalSource` over a world; hours that are over are worked out once."""

    def read(self, instances: Sequence[Instance], since: datetime, until: datetime) -> SignalReport:
        """Hourly histories of every series that has a sample in the time asked for.

        Raises:
            AccessDeniedError: the role may not read metrics.
        """
        world = self._current()
        until = min(until, world.now)
        readings = {}
        for instance in instances:
            ref = instance.ref
            with _translated("signals"):
                world.require(ref.cloud, ref.account, Operation.SIGNALS)
            machine = world.machines[ref.native_id]
            readings[ref] = SignalReading(histories(machine, since, until), DOCUMENTED_DELAY)
        return SignalReport(readings)


class WorldPrices:
    """`PriceSource` over a world: what its machines quote."""

    def __init__(self, world: World, currency: str = "USD") -> None:
        self._world = world
        self._currency = currency

    def rates(self, instances: Sequence[Instance]) -> Mapping[ResourceRef, HourlyRate]:
        """The quoted price an hour; machines without one are absent."""
        found = {}
        today = self._world.now.date().isoformat()
        for instance in instances:
            spec = self._world.machines[instance.ref.native_id].spec
            if spec.hourly is not None:
                money = to_product(spec.hourly.times(SPOT_SHARE) if spec.billing is Billing.SPOT else spec.hourly)
                found[instance.ref] = HourlyRate(money, "world", today)
        return found

    def kept_hourly(self, detail: InstanceDetail) -> Sequence[tuple[str, Money | None]]:
        """Every disk and kept address goes on billing after a stop."""
        disks = [("volume", self._monthly(volume, DISK_GIB_MONTH)) for volume in detail.volumes]
        addresses = [("public_address", Money(ADDRESS_HOUR, self._currency)) for _ in detail.kept_addresses]
        return [*disks, *addresses]

    def snapshot_hourly(self, volume: Volume) -> Money | None:
        """A full copy, an hour."""
        return self._monthly(volume, SNAPSHOT_GIB_MONTH)

    def _monthly(self, volume: Volume, gib_month: Decimal) -> Money:
        return Money(Decimal(str(volume.size_gib)) * gib_month / HOURS_PER_MONTH, self._currency)


class WorldKeepTagger(_OverWorld):
    """`KeepTagger` over a world."""

    def write(self, machine: ResourceRef, value: str) -> Receipt:
        """Set the tag.

        Raises:
            NotFoundError: no such machine.
        """
        world = self._current()
        with _translated("tag"):
            world.tag(machine.native_id, KEEP_TAG, value, _BY)
        return Receipt("")


class WorldExecutor(_OverWorld):
    """`ActionExecutor` over a world."""

    def execute(self, action: Action) -> Receipt:
        """Do it in the world; it is accepted, not done.

        Raises:
            AccessDeniedError: the role lacks the permission.
            NotFoundError: no such machine or volume.
            RefusedError: the cloud refused; nothing changed.
        """
        world = self._current()
        resource, native_id = action.resource, action.resource.native_id
        with _translated(action.verb.value):
            if action.verb is Verb.STOP:
                world.require(resource.cloud, resource.account, Operation.STOP)
                world.stop(native_id, _BY)
            elif action.verb is Verb.START:
                world.require(resource.cloud, resource.account, Operation.START)
                world.start(native_id, _BY)
            elif action.verb is Verb.TERMINATE:
                world.require(resource.cloud, resource.account, Operation.TERMINATE)
                world.terminate(native_id, _BY)
            elif action.verb is Verb.SNAPSHOT:
                world.require(resource.cloud, resource.account, Operation.SNAPSHOT)
                if action.copies:
                    return _copied_together(world, action)
                snapshot = world.create_snapshot(native_id, _BY, decision_id=action.decision_id)
                return Receipt(f"copy-{snapshot.native_id}", snapshot.native_id)
            elif action.verb is Verb.WARN:
                raise RefusedError("a warning is a notice, not a call", operation="world:warn")
            elif action.verb is Verb.MEND:
                raise RefusedError("keys and networks have ports of their own", operation="world:mend")
            else:
                assert_never(action.verb)
        return Receipt(world.machines[native_id].latest_request_id)


def _copied_together(world: World, action: Action) -> Receipt:
    made = world.create_snapshots(action.resource.native_id, _BY, decision_id=action.decision_id)
    by_volume = {copy.volume: copy.native_id for copy in made}
    named = ",".join(by_volume[each.native_id] for each in action.copies if each.native_id in by_volume)
    return Receipt(f"copies-{made[0].set_id}", named)


def _may_list(world: World, shard: Shard) -> bool:
    """The preflight that an empty answer needs where a denial looks like one: a dry run tells them apart."""
    return not vendor_of(shard.cloud).denied_list_is_empty or world.may(shard.cloud, shard.account, Operation.LIST)


def _empty_by_denial(shard: Shard) -> Gap:
    detail = "the list came back empty, and a dry run of the same call is forbidden"
    return Gap(shard, "inventory", GapKind.DENIED, detail, fix="allow ecs:DescribeInstances")


@contextmanager
def _translated(what: str) -> Iterator[None]:
    """The world's refusals as our errors."""
    try:
        yield
    except WorldRefusalError as err:
        kind: type[ProviderError] = RefusedError
        if err.refusal is Refusal.DENIED:
            kind = AccessDeniedError
        elif err.refusal is Refusal.NOT_FOUND:
            kind = NotFoundError
        raise kind(str(err), operation=f"world:{what}", code=err.refusal.value) from err
