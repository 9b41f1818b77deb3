"""A run's accounts in parts, and the way into each, learned when something in it is looked at closely."""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from costguard.domain.errors import ProviderError
from costguard.domain.refs import Deployment, ResourceRef, Shard
from costguard.domain.resources import Instance, InstanceDetail, Inventory
from costguard.engine.run.run_context import RunContext
from costguard.engine.run.scan import CloudReaders
from costguard.ports import CloudAuditLog, Discovery, InventorySource, LaunchReport, Target


@dataclass(frozen=True, slots=True)
class Share:
    """One account, and `through`: the account of the policy's target that it was found through.

    No role, no secret and no region stands in it: those are the policy's, and are looked up where the share is read.
    """

    cloud: str
    account: str
    through: str


def shares_of(found: Mapping[Target, Discovery]) -> tuple[Share, ...]:
    """Every account once, through the first target that lists it."""
    shares: dict[tuple[str, str], Share] = {}
    for target, listed in found.items():
        for account in listed.accounts or sorted({shard.account for shard in listed.shards}):
            shares.setdefault((target.cloud, account), Share(target.cloud, account, target.account))
    return tuple(shares[own] for own in sorted(shares))


def parted(shares: Sequence[Share], most: int) -> tuple[tuple[Share, ...], ...]:
    """The shares in parts of one cloud and at most so many accounts each.

    An account is never split: the vendors' limits are by account, and each part keeps to them by itself.
    """
    parts: list[list[Share]] = []
    for share in shares:
        if not parts or parts[-1][0].cloud != share.cloud or len(parts[-1]) == most:
            parts.append([])
        parts[-1].append(share)
    return tuple(map(tuple, parts))


def target_for(share: Share, targets: Sequence[Target]) -> Target | None:
    """Its own target, with the role and regions that today's policy says; None where the policy has none any more."""
    for target in targets:
        leads_there = target.organisation or share.account == target.account or not target.account
        if (target.cloud, target.account) == (share.cloud, share.through) and leads_there:
            return replace(target, account=share.account, organisation=False)
    return None


def lists_members(target: Target, targets: Sequence[Target]) -> bool:
    """Whether this is the account that an organisation is listed as: it may be our own, which has no role to assume."""
    own = (target.cloud, target.account)
    return bool(target.role) and any((each.cloud, each.account) == own for each in targets if each.organisation)


def within(shards: Iterable[Shard], shares: Iterable[Share]) -> frozenset[Shard]:
    """Those of the shards that are of these accounts."""
    accounts = {(share.cloud, share.account) for share in shares}
    return frozenset(shard for shard in shards if (shard.cloud, shard.account) in accounts)


_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Doors:
    """Enters each account once, with the role that the policy says; what stays closed is told by whoever asks there."""

    inventories: Mapping[str, InventorySource]
    targets: Sequence[Target]
    shares: Mapping[tuple[str, str], Share]
    _entered: set[Shard] = field(default_factory=set)
    _turn: threading.Lock = field(default_factory=threading.Lock)

    def enter(self, shard: Shard) -> None:
        """Learn the way into the account of `shard`, if it was not learned yet."""
        with self._turn:
            if shard in self._entered:
                return
            self._entered.add(shard)
        share = self.shares.get((shard.cloud, shard.account))
        target = None if share is None else target_for(share, self.targets)
        if target is not None:
            self._enter(replace(ours_first(target, self.targets, self.inventories), regions=(shard.region,)))

    def _enter(self, target: Target) -> None:
        try:
            self.inventories[target.cloud].discover(target)
        except ProviderError as err:
            _LOG.warning("an account could not be entered", extra={"account": target.account, "cause": str(err)})


def ours_first(target: Target, targets: Sequence[Target], inventories: Mapping[str, InventorySource]) -> Target:
    """The target; an organisation's own account without the role, where that is the account we are in."""
    if not lists_members(target, targets):
        return target
    without = replace(target, role="")
    try:
        ours = not inventories[target.cloud].discover(without).gaps
    except ProviderError:
        ours = False
    return without if ours else target


@dataclass(frozen=True, slots=True)
class _Inventory:
    """An `InventorySource` that enters before it looks closely."""

    inner: InventorySource
    doors: Doors

    def discover(self, target: Target) -> Discovery:
        return self.inner.discover(target)

    def read(self, shard: Shard) -> Inventory:
        return self.inner.read(shard)

    def details(self, refs: Sequence[ResourceRef]) -> Mapping[ResourceRef, InstanceDetail]:
        for shard in sorted({ref.shard for ref in refs}):
            self.doors.enter(shard)
        return self.inner.details(refs)

    def protections(self, ref: ResourceRef, wanted: Collection[str]) -> tuple[str, ...]:
        self.doors.enter(ref.shard)
        return self.inner.protections(ref, wanted)


@dataclass(frozen=True, slots=True)
class _Trail:
    """A `CloudAuditLog` that enters before it asks."""

    inner: CloudAuditLog
    doors: Doors

    def launches(self, instances: Sequence[Instance]) -> LaunchReport:
        for shard in sorted({instance.ref.shard for instance in instances}):
            self.doors.enter(shard)
        return self.inner.launches(instances)

    def deployments(self, shard: Shard, since: datetime) -> Mapping[Deployment, datetime]:
        self.doors.enter(shard)
        return self.inner.deployments(shard, since)


def entering(world: RunContext, shares: Mapping[tuple[str, str], Share]) -> RunContext:
    """The same surroundings, which enter an account when something in it is looked at closely."""
    inventories = {cloud: reading.inventory for cloud, reading in world.readings.items()}
    doors = Doors(inventories, world.targets, shares)
    return replace(
        world,
        readings={
            cloud: CloudReaders(_Inventory(reading.inventory, doors), reading.signals, reading.prices)
            for cloud, reading in world.readings.items()
        },
        trails={cloud: _Trail(trail, doors) for cloud, trail in world.trails.items()},
    )
