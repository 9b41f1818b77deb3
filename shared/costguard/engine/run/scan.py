"""Scan: read every shard in parallel, first what the run before did not reach, and examine each. Changes nothing."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import TypeVar

from costguard.domain.errors import (
    AccessDeniedError,
    ClosedRegionError,
    CostguardError,
    DeniedByOrganisationError,
    InvalidInputError,
    ProviderError,
    ThrottledError,
    TruncatedReadError,
    VersionConflictError,
)
from costguard.domain.findings import ShardFacts
from costguard.domain.money import HourlyRate
from costguard.domain.refs import ResourceRef, Shard
from costguard.domain.resources import Gap, GapKind, Instance, InstanceState
from costguard.domain.signals import reads_back
from costguard.engine.ledger.codec import record_of, value_of
from costguard.guards.idle.judge import examine
from costguard.guards.rules.idle import IdleBounds, IdleRule
from costguard.ports import (
    Clock,
    Discovery,
    InventorySource,
    PriceSource,
    RecordStore,
    SignalReport,
    SignalSource,
    Target,
    Workers,
)

_First = TypeVar("_First")
_Second = TypeVar("_Second")
_Result = TypeVar("_Result")


class ThreadWorkers:
    """At most `threads` tasks at once; each holds a few connections and at most one page of answers."""

    def __init__(self, threads: int = 8) -> None:
        self._threads = threads

    def each(self, tasks: Sequence[Callable[[], _Result]]) -> Iterator[tuple[int, _Result]]:
        """Begin every task; yield the place and the result of each as it ends."""
        if len(tasks) == 1:
            yield 0, tasks[0]()  # nothing to do beside it
        if len(tasks) <= 1:
            return
        with ThreadPoolExecutor(min(self._threads, len(tasks)), thread_name_prefix="read") as pool:
            places = {pool.submit(task): place for place, task in enumerate(tasks)}
            for future in as_completed(places):
                yield places[future], future.result()


def both(workers: Workers, first: Callable[[], _First], second: Callable[[], _Second]) -> tuple[_First, _Second]:
    """The results of two reads that need not wait for each other."""
    one: list[_First] = []
    other: list[_Second] = []
    for _ in workers.each((lambda: one.append(first()), lambda: other.append(second()))):
        pass
    return one[0], other[0]


_KIND = "turn"  # key: guard
_READING = 0.75  # of the time left: what is read must still be judged, acted on and told


@dataclass(frozen=True, slots=True)
class _Turn:
    begin_at: str = ""


class ScanCursor:
    """One record for each guard: the shard that the next run begins with, empty where the last reached them all."""

    def __init__(self, store: RecordStore) -> None:
        self._store = store

    def first(self, guard: str) -> str:
        """The text of the shard to begin with."""
        record = self._store.get(_KIND, guard)
        return value_of(_Turn, record).begin_at if record is not None else ""

    def keep(self, guard: str, begin_at: str) -> None:
        """Remember it; of two runs at once either may say."""
        record = self._store.get(_KIND, guard)
        if (value_of(_Turn, record).begin_at if record is not None else "") == begin_at:
            return
        try:
            self._store.put(record_of(_KIND, guard, _Turn(begin_at)), record.version if record is not None else 0)
        except VersionConflictError:
            return


def in_turn(shards: Sequence[Shard], begin_at: str) -> tuple[Shard, ...]:
    """All of them in one fixed order, beginning with the first that is not before `begin_at`."""
    around = sorted(shards, key=str)
    later = [shard for shard in around if str(shard) >= begin_at]
    return (*later, *around[: len(around) - len(later)])


def not_reached(facts: Sequence[ShardFacts], begin_at: str) -> str:
    """The first shard in turn for which no time was left; empty where there was time for all."""
    return cut_at((gap for fact in facts for gap in fact.gaps), begin_at)


def cut_at(gaps: Iterable[Gap], begin_at: str) -> str:
    """The same of the gaps of a look."""
    cut = {gap.shard for gap in gaps if gap.kind is GapKind.DEADLINE}
    return str(in_turn(tuple(cut), begin_at)[0]) if cut else ""


def reading_until(now: datetime, deadline: datetime | None) -> datetime | None:
    """When to stop reading, so that a run that cannot read everything still acts on what it has read."""
    return None if deadline is None else now + max(deadline - now, timedelta(0)) * _READING


_LOG = logging.getLogger(__name__)
_NARROW = "take the region out of the policy's regions"


@dataclass(frozen=True, slots=True)
class CloudReaders:
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

    `members` are the accounts found for each target. `closed` are shards that the organisation closes: like regions not
    opted in they are in no facts, so that nothing is done there and no case there ends.
    """

    facts: tuple[ShardFacts, ...]
    gaps: tuple[Gap, ...]
    closed_accounts: frozenset[str]
    members: Mapping[Target, tuple[str, ...]] = field(default_factory=dict)
    closed: tuple[Shard, ...] = ()


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
    readings: Mapping[str, CloudReaders],
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
    turn it is, see `scan_cursor`.
    """
    found = discovered(readings, targets)
    shards = found.shards if begin_at is None else in_turn(found.shards, begin_at)
    facts: list[ShardFacts] = []
    shut: dict[Shard, Gap] = {}
    workers = workers or ThreadWorkers()
    tasks = [
        partial(_scan_or_skip, readings[shard.cloud], shard, rules, clock, deadline, lookback, workers)
        for shard in shards
    ]
    for done, (place, examined) in enumerate(workers.each(tasks), start=1):
        if isinstance(examined, Gap):
            shut[shards[place]] = examined
        else:
            facts.append(examined)
        progress(done, len(shards), str(shards[place]))
    closed = truly_closed(shut, [fact.shard for fact in facts if fact.complete])
    facts += [ShardFacts(shard, (), (gap,)) for shard, gap in shut.items() if shard not in closed]
    return Scan(
        tuple(sorted(facts, key=lambda fact: fact.shard)), found.gaps, found.closed_accounts, found.members, closed
    )


def truly_closed(shut: Iterable[Shard], answered: Iterable[Shard]) -> tuple[Shard, ...]:
    """Of the shards that an organisation closes, those of accounts that answer elsewhere.

    Where an account answers in no region, it is the account that cannot be read and no region that is closed: a gap.
    """
    accounts = {(shard.cloud, shard.account) for shard in answered}
    return tuple(sorted(shard for shard in shut if (shard.cloud, shard.account) in accounts))


def discovered(readings: Mapping[str, CloudReaders], targets: Sequence[Target]) -> Discovered:
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
    reading: CloudReaders,
    shard: Shard,
    rules: Sequence[IdleRule],
    now: datetime,
    lookback: Lookback | None = None,
    workers: Workers | None = None,
) -> ShardFacts:
    """Inventory, signals and prices of one shard, examined. Else it raises nothing for what a cloud answers.

    Raises:
        ClosedRegionError: the organisation denies everything there.
    """
    try:
        inventory = reading.inventory.read(shard)
    except ClosedRegionError:
        raise
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
    if isinstance(err, ClosedRegionError):
        return Gap(shard, what, GapKind.UNREADABLE, str(err), _NARROW)
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
    if isinstance(err, DeniedByOrganisationError):
        fix = f"no grant helps: change the organisation's policy, or {_NARROW}"
    return Gap(shard, what, kind, str(err), fix)


def _discover(source: InventorySource, target: Target) -> Discovery | Gap:
    try:
        return source.discover(target)
    except InvalidInputError:
        raise
    except ProviderError as err:
        return gap_of(err, Shard(target.cloud, target.account), "accounts")


def _scan_or_skip(
    reading: CloudReaders,
    shard: Shard,
    rules: Sequence[IdleRule],
    clock: Clock,
    deadline: datetime | None,
    lookback: Lookback | None,
    workers: Workers,
) -> ShardFacts | Gap:
    """The shard examined; a gap where the organisation closes it."""
    now = clock.now()
    if deadline is not None and now >= deadline:
        gap = Gap(shard, "inventory", GapKind.DEADLINE, "the time allowed was used up before this shard was read")
        return ShardFacts(shard, (), (gap,))
    try:
        facts = scan_shard(reading, shard, rules, now, lookback, workers)
    except ClosedRegionError as err:
        _LOG.info("region closed by the organisation", extra={"shard": str(shard)})
        return gap_of(err, shard, "inventory")
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
