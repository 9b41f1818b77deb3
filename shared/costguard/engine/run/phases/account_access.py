"""The way into an account, learned when something in it is looked at closely: only who scanned it knows it already."""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from costguard.domain.errors import ProviderError
from costguard.domain.refs import Deployment, ResourceRef, Shard
from costguard.domain.resources import Instance, InstanceDetail, Inventory
from costguard.engine.run.phases.shares import Share, lists_members, target_for
from costguard.engine.run.run_context import RunContext
from costguard.engine.run.scan import CloudReaders
from costguard.ports import CloudAuditLog, Discovery, InventorySource, LaunchReport, Target

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
