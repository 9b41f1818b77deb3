"""Scan: read every shard in parallel, examine each as soon as it is read. Changes nothing."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial

from costguard.domain.errors import (
    AccessDeniedError,
    CostguardError,
    InvalidInputError,
    ProviderError,
    ThrottledError,
    TruncatedReadError,
)
from costguard.domain.facts import ShardFacts
from costguard.domain.money import HourlyRate
from costguard.domain.refs import ResourceRef, Shard
from costguard.domain.resources import Gap, GapKind, Instance, InstanceState
from costguard.domain.signals import reads_back
from costguard.engine.turns import in_turn
from costguard.engine.workers import ThreadWorkers, both
from costguard.guards.idle_gpu import examine
from costguard.guards.idle_gpu_rules import IdleBounds, IdleRule
from costguard.ports import Clock, Discovery, InventorySource, PriceSource, SignalReport, SignalSource, Target, Workers

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Reading:
    """The three read-only ports of one cloud."""

    inventory: InventorySource
    signals: SignalSource
    prices: PriceSource


@dataclass(frozen=True, slots=True)
class Lookback:
    """How far back the hours of use are counted, and what counts as idle there."""

    duration: timedelta
    bounds: IdleBounds


@dataclass(frozen=True, slots=True)
class Scan:
    """What all targets together showed; `gaps` are those that belong to no single shard's facts.

    `members` are the accounts found for each target.
    """

    facts: tuple[ShardFacts, ...]
    gaps: tuple[Gap, ...]
    closed_accounts: frozenset[str]
    members: Mapping[Target, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Discovered:
    """Every shard of all targets, each once, and what could not be listed; the rest as in `Scan`."""

    shards: tuple[Shard, ...]
    gaps: tuple[Gap, ...]
    closed_accounts: frozenset[str]
    members: Mapping[Target, tuple[str, ...]]


Progress = Callable[[int, int, str], None]
"""Called with shards done, shards in all, and the shard just read."""


def no_progress(done: int, total: int, shard: str) -> None:
    """For callers that show none."""
    del done, total, shard


def scan(
    readings: Mapping[str, Reading],
    targets: Sequence[Target],
    rules: Sequence[IdleRule],
    clock: Clock,
    *,
    deadline: datetime | None = None,
    lookback: Lookback | None = None,
    progress: Progress = no_progress,
    workers: Workers | None = None,
    begin_at: str | None = None,
) -> Scan:
    """Read and examine every shard of every target; a shard past the deadline is a gap, not a wait.

    `readings` is by cloud. Errors of one shard become its gaps and never touch another. `begin_at` is the shard whose
    turn it is, see `engine.turns`.
    """
    found = discovered(readings, targets)
    shards = found.shards if begin_at is None else in_turn(found.shards, begin_at)
    facts: list[ShardFacts] = []
    workers = workers or ThreadWorkers()
    tasks = [
        partial(_scan_or_skip, readings[shard.cloud], shard, rules, clock, deadline, lookback, workers)
        for shard in shards
    ]
    for done, (place, examined) in enumerate(workers.each(tasks), start=1):
        facts.append(examined)
        progress(done, len(shards), str(shards[place]))
    return Scan(tuple(sorted(facts, key=lambda fact: fact.shard)), found.gaps, found.closed_accounts, found.members)


def discovered(readings: Mapping[str, Reading], targets: Sequence[Target]) -> Discovered:
    """The shards of all targets; a target whose accounts could not be listed is a gap.

    Raises:
        InvalidInputError: a target that cannot be.
    """
    shards: dict[Shard, None] = {}
    gaps: list[Gap] = []
    closed: set[str] = set()
    members: dict[Target, tuple[str, ...]] = {}
    for target in targets:
        found = _discover(readings[target.cloud].inventory, target)
        if isinstance(found, Gap):
            gaps.append(found)
            continue
        shards.update(dict.fromkeys(found.shards))
        gaps.extend(found.gaps)
        closed.update(found.closed_accounts)
        members[target] = tuple(sorted({shard.account for shard in found.shards}))
    return Discovered(tuple(shards), tuple(gaps), frozenset(closed), members)


def scan_shard(
    reading: Reading,
    shard: Shard,
    rules: Sequence[IdleRule],
    now: datetime,
    lookback: Lookback | None = None,
    workers: Workers | None = None,
) -> ShardFacts:
    """Inventory, signals and prices of one shard, examined. Never raises for what a cloud answers."""
    try:
        inventory = reading.inventory.read(shard)
    except ProviderError as err:
        return ShardFacts(shard, (), (gap_of(err, shard, "inventory"),))
    windows = {rule.idle.lasting for rule in rules}
    measured = bool(windows) or lookback is not None  # without either nobody asks how busy anything was
    running = [each for each in inventory.instances if measured and each.state is InstanceState.RUNNING]
    since = now - reads_back((*windows, lookback.duration if lookback else timedelta(0)))
    report, (rates, price_gaps) = both(
        workers or ThreadWorkers(),
        partial(_signals, reading.signals, running, since, now, shard),
        partial(_prices, reading.prices, inventory.instances, shard),
    )
    return examine(
        inventory,
        report.readings,
        rates,
        (*report.gaps, *price_gaps),
        windows,
        now,
        usage_since=now - lookback.duration if lookback else None,
        usage_bounds=lookback.bounds if lookback else None,
    )


def gap_of(err: CostguardError, shard: Shard, what: str) -> Gap:
    """The gap an error leaves, with the operation that failed."""
    if isinstance(err, AccessDeniedError):
        kind = GapKind.DENIED
    elif isinstance(err, ThrottledError):
        kind = GapKind.THROTTLED
    elif isinstance(err, TruncatedReadError):
        kind = GapKind.TRUNCATED
    else:
        kind = GapKind.UNAVAILABLE
    operation = err.operation if isinstance(err, ProviderError) else ""
    fix = f"allow {operation}" if kind is GapKind.DENIED and operation else ""
    return Gap(shard, what, kind, str(err), fix)


def _discover(source: InventorySource, target: Target) -> Discovery | Gap:
    try:
        return source.discover(target)
    except InvalidInputError:
        raise
    except ProviderError as err:
        return gap_of(err, Shard(target.cloud, target.account), "accounts")


def _scan_or_skip(
    reading: Reading,
    shard: Shard,
    rules: Sequence[IdleRule],
    clock: Clock,
    deadline: datetime | None,
    lookback: Lookback | None,
    workers: Workers,
) -> ShardFacts:
    now = clock.now()
    if deadline is not None and now >= deadline:
        gap = Gap(shard, "inventory", GapKind.DEADLINE, "the time allowed was used up before this shard was read")
        return ShardFacts(shard, (), (gap,))
    facts = scan_shard(reading, shard, rules, now, lookback, workers)
    _LOG.info(
        "shard scanned",
        extra={"shard": str(shard), "instances": facts.instances_seen, "accelerators": len(facts.instances)},
    )
    return facts


def _signals(
    source: SignalSource, running: Sequence[Instance], since: datetime, now: datetime, shard: Shard
) -> SignalReport:
    if not running:
        return SignalReport({})
    try:
        return source.read(running, since, now)
    except ProviderError as err:
        return SignalReport({}, (gap_of(err, shard, "signals"),))


def _prices(
    source: PriceSource, instances: Sequence[Instance], shard: Shard
) -> tuple[Mapping[ResourceRef, HourlyRate], tuple[Gap, ...]]:
    if not instances:
        return {}, ()
    try:
        return source.rates(instances), ()
    except ProviderError as err:
        return {}, (gap_of(err, shard, "prices"),)
