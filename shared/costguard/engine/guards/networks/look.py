"""The networks of every target, judged together, and what is to be said of each part. Changes nothing, tells nobody."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial

from costguard.domain.errors import ClosedRegionError, ProviderError
from costguard.domain.findings import Finding, Verdict
from costguard.domain.network import NetworkInventory
from costguard.domain.reasons import Reason, ReasonCode
from costguard.domain.refs import ResourceRef, Shard
from costguard.domain.resources import Gap, GapKind, Instance, Inventory
from costguard.engine.guards.networks.sightings import Sightings, sighted
from costguard.engine.run.scan import CloudReaders, Progress, discovered, gap_of, no_progress, truly_closed
from costguard.engine.run.scan_cursor import in_turn
from costguard.engine.run.workers import ThreadWorkers, both
from costguard.guards.network.judge import judge, last_admin_path, not_returnable, remediation_of
from costguard.planning.exempt import setting_bar
from costguard.planning.remediation import Judged
from costguard.policy.model.ownership import owner_name, resource_owner
from costguard.policy.model.policy import Policy
from costguard.ports import Clock, NetworkSource, Target, Workers
from costguard.report.network.catalogue import Severity, known_entry
from costguard.report.network.order import LookedAt, NetworkLine, NetworkReport

_LOG = logging.getLogger(__name__)
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
