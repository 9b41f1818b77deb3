"""The networks of every target, judged together, and what is to be said of each part. Changes nothing, tells nobody."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial

from costguard.domain.errors import ClosedRegionError, ProviderError, VersionConflictError
from costguard.domain.findings import Finding, Verdict
from costguard.domain.network import AddressState, NetworkInventory
from costguard.domain.reasons import Reason, ReasonCode
from costguard.domain.refs import ResourceRef, Shard
from costguard.domain.resources import Gap, GapKind, Instance, Inventory
from costguard.engine.ledger.codec import record_of, until_uncontested, value_of
from costguard.engine.run.scan import (
    CloudReaders,
    Progress,
    ThreadWorkers,
    both,
    discovered,
    gap_of,
    in_turn,
    no_progress,
    truly_closed,
)
from costguard.guards.network.judge import judge, last_admin_path, not_returnable, remediation_of
from costguard.planning.rails import setting_bar
from costguard.planning.remediation import Judged
from costguard.policy.model.ownership import owner_name, resource_owner
from costguard.policy.model.policy import Policy
from costguard.ports import Clock, NetworkSource, Put, RecordStore, Target, Workers
from costguard.report.network.catalogue import Severity, known_entry
from costguard.report.network.order import LookedAt, NetworkLine, NetworkReport

_LOG = logging.getLogger(__name__)
LONGEST_HOLE = timedelta(days=3)
"""Between two looks at a shard; after a longer one nobody can say that an address was without use all the time."""

_KIND = "network_sightings"  # key: shard; a region has some thousand addresses at most, 100 bytes each
_ADDRESSES = "addresses"


@dataclass(frozen=True, slots=True)
class Sightings:
    """The addresses of one shard that were without use at the last look, each with the first look that saw it so."""

    shard: Shard
    looked_at: datetime
    since: Mapping[str, datetime] = field(default_factory=dict)
    """By native id."""


def first_seen(sheets: Iterable[Sightings], now: datetime) -> Mapping[ResourceRef, datetime]:
    """Since when each address is known to be without use, as far as that still holds at `now`."""
    return {
        ResourceRef(sheet.shard.cloud, sheet.shard.account, sheet.shard.region, "address", native_id): since
        for sheet in sheets
        if now - sheet.looked_at <= LONGEST_HOLE
        for native_id, since in sheet.since.items()
    }


def sighted(
    inventories: Sequence[NetworkInventory], known: Mapping[ResourceRef, datetime], now: datetime
) -> Iterator[Sightings]:
    """What is to be remembered of this look; a shard whose addresses were not read in full is left as it was."""
    for read in inventories:
        if read.lacks(_ADDRESSES) is None:
            unused = (each.ref for each in read.addresses if each.state is AddressState.UNATTACHED)
            yield Sightings(read.shard, now, {ref.native_id: known.get(ref, now) for ref in unused})


class SightingsRepository:
    """One record a shard."""

    def __init__(self, store: RecordStore) -> None:
        self._store = store

    def all(self) -> tuple[Sightings, ...]:
        """What was remembered of every shard."""
        return tuple(value_of(Sightings, record) for record in self._store.query(_KIND))

    def put(self, sheets: Iterable[Sightings], known: Iterable[Sightings] = ()) -> None:
        """Remember these in the place of `known`, which the look began with; what another run wrote since stands.

        A slow run would else put back what a quicker one has seen to have ended.
        """
        before = {sheet.shard: sheet for sheet in known}
        for sheet in sheets:
            if not self._swapped(sheet, before.get(sheet.shard)):
                _LOG.info("another run looked at these addresses meanwhile", extra={"shard": str(sheet.shard)})

    def used(self, network: NetworkInventory, now: datetime) -> None:
        """Take off what a read between two looks shows in use: nothing else would know of that hour.

        Raises:
            LedgerError: it could not be written, so that the next look would not know of it.
        """
        in_use = {each.ref.native_id for each in network.addresses if each.state is not AddressState.UNATTACHED}
        until_uncontested(lambda: self._taken_off(network.shard, in_use, now), "addresses seen in use")

    def _taken_off(self, shard: Shard, in_use: Collection[str], now: datetime) -> None:
        record = self._store.get(_KIND, str(shard))
        sheet = value_of(Sightings, record) if record is not None else None
        if record is None or sheet is None or not sheet.since.keys() & in_use:
            return
        kept = {native_id: since for native_id, since in sheet.since.items() if native_id not in in_use}
        written = record_of(_KIND, str(shard), Sightings(shard, max(now, sheet.looked_at), kept))
        self._store.transact([Put(written, record.version)])

    def _swapped(self, sheet: Sightings, before: Sightings | None) -> bool:
        record = self._store.get(_KIND, str(sheet.shard))
        if (None if record is None else value_of(Sightings, record)) != before:
            return False
        written = record_of(_KIND, str(sheet.shard), sheet)
        try:
            self._store.transact([Put(written, 0 if record is None else record.version)])
        except VersionConflictError:
            return False
        return True


NETWORKS, INSTANCES = "networks", "inventory"
PARTS = (
    *("vpcs", "subnets", "routes", "groups", "access_lists", "interfaces"),
    *("addresses", "nat_gateways", "flow_logs", "peerings"),
)
"""The parts of a network that a gap may be about."""

_FAULTS = frozenset({Verdict.VIOLATION, Verdict.UNMEASURED})
_NOBODY: Mapping[ResourceRef, datetime] = {}


@dataclass(frozen=True, slots=True)
class NetworkLook:
    """One look at all networks. `shards` are those that answered, by whether everything of them was read.

    `sightings` are to be remembered until the next look, in the place of those `remembered` when this one began.
    `inventories` and `instances` are what was judged.
    """

    now: datetime
    report: NetworkReport
    judged: tuple[Judged, ...] = ()
    shards: Mapping[Shard, bool] = field(default_factory=dict)
    closed_accounts: frozenset[str] = frozenset()
    inventories: tuple[NetworkInventory, ...] = ()
    instances: tuple[Instance, ...] = ()
    sightings: tuple[Sightings, ...] = ()
    remembered: tuple[Sightings, ...] = ()

    @property
    def seen(self) -> int:
        """How many networks there are."""
        return self.report.seen.networks

    @property
    def gaps(self) -> tuple[Gap, ...]:
        """What could not be read."""
        return self.report.gaps


@dataclass(frozen=True, slots=True)
class _ShardRead:
    """One shard's network and instances. `network` None: not even a part was read; `closed` by the organisation."""

    network: NetworkInventory | None
    instances: tuple[Instance, ...] = ()
    gaps: tuple[Gap, ...] = ()
    closed: bool = False

    def judged_as(self, shard: Shard) -> NetworkInventory:
        """The network for the guard: what is not known of the shard are its gaps, never its absence."""
        about_machines = tuple(gap for gap in self.gaps if gap.what == INSTANCES)
        if self.network is not None:
            return replace(self.network, gaps=(*self.network.gaps, *about_machines))
        unread = next(gap for gap in self.gaps if gap.what == NETWORKS)
        return NetworkInventory(shard, gaps=(*(replace(unread, what=part) for part in PARTS), *about_machines))


def look_at_networks(
    readings: Mapping[str, CloudReaders],
    sources: Mapping[str, NetworkSource],
    targets: Sequence[Target],
    policy: Policy,
    clock: Clock,
    *,
    first_seen: Mapping[ResourceRef, datetime] = _NOBODY,
    deadline: datetime | None = None,
    progress: Progress = no_progress,
    workers: Workers | None = None,
    begin_at: str | None = None,
) -> NetworkLook:
    """Read the network and the instances of every shard side by side, and judge all shards at once.

    Errors of one shard become its gaps and never touch another; a shard past the deadline is a gap, not a wait.
    `begin_at` is the shard whose turn it is, see `scan_cursor`. `first_seen`: since when addresses have been seen
    without use (`network_sightings`).
    """
    workers = workers or ThreadWorkers()
    found = discovered(readings, targets)
    shards = found.shards if begin_at is None else in_turn(found.shards, begin_at)
    tasks = [
        partial(_read_or_skip, sources[shard.cloud], readings[shard.cloud], shard, clock, deadline, workers)
        for shard in shards
    ]
    reads: dict[Shard, _ShardRead] = {}
    for done, (place, read) in enumerate(workers.each(tasks), start=1):
        reads[shards[place]] = read
        progress(done, len(shards), str(shards[place]))
    shut = [shard for shard, read in reads.items() if read.closed]
    closed = truly_closed(shut, [shard for shard, read in reads.items() if read.network is not None])
    reads = {shard: read for shard, read in reads.items() if shard not in closed}
    now = clock.now()
    inventories = tuple(reads[shard].judged_as(shard) for shard in sorted(reads))
    instances = tuple(sorted((one for read in reads.values() for one in read.instances), key=lambda one: one.ref))
    judged = judged_networks(inventories, instances, policy, now, first_seen)
    gaps = [*found.gaps, *(gap for read in reads.values() for gap in _told(read))]
    report = NetworkReport(
        lines=tuple(NetworkLine(each.finding, each.mend, each.bar) for each in judged),
        seen=_counted(inventories, instances),
        gaps=tuple(sorted(gaps, key=lambda gap: (gap.shard, gap.what))),
    )
    return NetworkLook(
        now,
        report,
        judged=judged,
        shards={read.shard: is_whole(read) for read in inventories if reads[read.shard].network is not None},
        closed_accounts=found.closed_accounts,
        inventories=inventories,
        instances=instances,
        sightings=tuple(sighted(inventories, first_seen, now)),
    )


def judged_networks(
    inventories: Sequence[NetworkInventory],
    instances: Sequence[Instance],
    policy: Policy,
    now: datetime,
    first_seen: Mapping[ResourceRef, datetime],
) -> tuple[Judged, ...]:
    """What is to be said, what the policy allows about it, and what of the house's own or of the network forbids it."""
    machines = {one.ref: one for one in instances}
    tags = {**dict(_tagged(inventories)), **{one.ref: one.tags for one in instances}}
    networks = {network.shard: network for network in inventories}
    rules = {rule.name: rule for rule in policy.network_audit}
    found = []
    for finding in judge(inventories, instances, policy.network_audit, now, first_seen):
        subject = finding.subject
        if not isinstance(subject, ResourceRef):
            continue
        machine, tagged, rule = machines.get(subject), tags.get(subject, {}), rules.get(finding.rule)
        owner = owner_name(machine, policy) if machine is not None else resource_owner(subject, tagged, policy)
        owned = _overlaid(replace(finding, owner=owner), subject, policy, now)
        mend, bar = None, None
        network = networks.get(subject.shard)
        if owned.verdict is Verdict.VIOLATION and rule is not None and network is not None:
            mend = remediation_of(owned, network, rule)
        if mend is not None and rule is not None and network is not None:
            bars = (setting_bar(ref, tags.get(ref, {}), policy, now) for ref in {subject, mend.subject})
            bar = next(filter(None, bars), None) or not_returnable(mend, network)
            bar = bar or last_admin_path(mend, inventories, instances, rule)
        found.append(Judged(owned, rule, mend, bar, gravity=_gravity(owned)))
    return tuple(found)


def network_now(
    source: NetworkSource, reading: CloudReaders, shard: Shard, clock: Clock, workers: Workers
) -> tuple[NetworkInventory, tuple[Instance, ...]]:
    """One shard read anew, for a last look before something in it is changed; gaps are the network's."""
    read = _read_or_skip(source, reading, shard, clock, None, workers)
    return read.judged_as(shard), read.instances


def is_whole(network: NetworkInventory) -> bool:
    """Whether absence proves absence there; what a single list of a rule could not tell is unmeasured by itself."""
    return network.lacks(*PARTS, INSTANCES) is None


def _gravity(finding: Finding) -> int:
    entry = known_entry(finding.check)
    return 0 if entry is None else len(Severity) - entry.severity.rank


def _told(read: _ShardRead) -> Iterator[Gap]:
    """Every gap once; what a listing of instances cannot say of their disks or prices is no matter here."""
    if read.network is not None:
        yield from read.network.gaps
    yield from (gap for gap in read.gaps if gap.what in {NETWORKS, INSTANCES})


def _overlaid(finding: Finding, subject: ResourceRef, policy: Policy, now: datetime) -> Finding:
    """The finding, or where an agreed exception names this very resource, that."""
    if finding.verdict not in _FAULTS:
        return finding
    names = {subject.native_id, str(subject)}
    for agreed in policy.active_exemptions(now):
        if names.intersection(agreed.owns.resources or ()):
            until = agreed.expires_at.isoformat(timespec="minutes")
            facts = {"reason": agreed.reason, "approver": agreed.approver, "until": until}
            return replace(finding, verdict=Verdict.EXEMPT, reason=Reason(ReasonCode.EXCEPTION, facts))
    return finding


def _tagged(inventories: Sequence[NetworkInventory]) -> Iterator[tuple[ResourceRef, Mapping[str, str]]]:
    for read in inventories:
        parts = (
            *(read.vpcs, read.subnets, read.groups, read.access_lists),
            *(read.interfaces, read.addresses, read.nat_gateways, read.peerings),
        )
        yield from ((each.ref, each.tags) for part in parts for each in part)


def _counted(inventories: Sequence[NetworkInventory], instances: Sequence[Instance]) -> LookedAt:
    return LookedAt(
        networks=sum(len(read.vpcs) for read in inventories),
        groups=sum(len(read.groups) for read in inventories),
        rules=sum(len(group.rules) for read in inventories for group in read.groups),
        addresses=sum(len(read.addresses) for read in inventories),
        gateways=sum(len(read.nat_gateways) for read in inventories),
        instances=len(instances),
    )


def _read_or_skip(
    source: NetworkSource,
    reading: CloudReaders,
    shard: Shard,
    clock: Clock,
    deadline: datetime | None,
    workers: Workers,
) -> _ShardRead:
    if deadline is not None and clock.now() >= deadline:
        late = Gap(shard, NETWORKS, GapKind.DEADLINE, "the time allowed was used up before this shard was read")
        return _ShardRead(None, gaps=(late, replace(late, what=INSTANCES)))
    network, machines = both(workers, partial(_network, source, shard), partial(_machines, reading, shard))
    closed = isinstance(network, ClosedRegionError) and (isinstance(machines, Gap) or not machines.complete)
    network = gap_of(network, shard, NETWORKS) if isinstance(network, ClosedRegionError) else network
    gaps = (network,) if isinstance(network, Gap) else ()
    instances = () if isinstance(machines, Gap) else machines.instances
    gaps = (*gaps, machines) if isinstance(machines, Gap) else (*gaps, *machines.gaps)
    if isinstance(network, Gap):
        return _ShardRead(None, instances, gaps, closed=closed)
    _LOG.info("network read", extra={"shard": str(shard), "groups": len(network.groups), "vpcs": len(network.vpcs)})
    return _ShardRead(network, instances, gaps)


def _network(source: NetworkSource, shard: Shard) -> NetworkInventory | Gap | ClosedRegionError:
    try:
        return source.read(shard)
    except ClosedRegionError as err:
        return err
    except ProviderError as err:
        return gap_of(err, shard, NETWORKS)


def _machines(reading: CloudReaders, shard: Shard) -> Inventory | Gap:
    try:
        return reading.inventory.read(shard)
    except ProviderError as err:
        return gap_of(err, shard, INSTANCES)
