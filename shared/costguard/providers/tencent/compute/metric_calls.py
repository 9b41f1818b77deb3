"""Calls of GetMonitorData: which there are, how they are sent, and where their points go.

Permission: `monitor:GetMonitorData`.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cache, lru_cache
from math import ceil
from typing import Any, NamedTuple

from costguard.domain.errors import AccessDeniedError, ProviderError, ThrottledError, UnavailableError
from costguard.domain.refs import ResourceRef, Shard
from costguard.domain.signals import HOUR, SignalName
from costguard.providers.kit.compute.metrics import Cells, Window, fold_counts, fold_values
from costguard.providers.kit.core.calls import Calls
from costguard.providers.kit.core.fields import as_documented
from costguard.providers.kit.core.pacing import on_this_machine
from costguard.providers.tencent.compute.metric_answers import OPERATION, Points, points_in


@dataclass(frozen=True, slots=True)
class Page:
    """The most series one call may ask for, and the most points of all of them."""

    instances: int
    points: int

    def holds(self, points: int, instances: int) -> bool:
        """Whether so many points of each of so many fit. An interval may be answered with its end included."""
        return instances <= self.instances and (points + 1) * instances <= self.points


LARGER = Page(50, 7_200)
LESSER = Page(10, 1_440)


@dataclass(frozen=True, slots=True)
class Piece:
    """`points` of each of `instances` machines: what fits one call."""

    points: int
    instances: int


class Pages:
    """How much one call of GetMonitorData asks for, and what a process has learned of it; may be shared by threads.

    The API description (tccli 3.1.189) allows 50 instances and 7,200 points a call, its page of 2023 (248/33881) 10 and
    1,440. Answers recorded in 2022 keep to the lesser limits: beyond them the call succeeds, a message stands in `Msg`,
    and series are empty that are not. No account was at hand to tell which holds today. So the larger page is asked for
    until it was seen not to work, and whatever it did not bring is read again by the lesser one.

    Attributes:
        probing: held while the first call of the larger page is under way.
    """

    def __init__(self, page: Page = LARGER) -> None:
        self.page = page
        self.probing = threading.Lock()
        self._series = self._points = False

    @property
    def unsure(self) -> bool:
        """Whether no answer has shown yet that the larger page works."""
        return self.page is LARGER and not (self._series or self._points)

    def proved(self, points: int, instances: int, found: Sequence[int]) -> bool:
        """Whether a larger page is known to be answered whole, by this answer or by one before.

        `points` of each of `instances` were asked for, and as many as `found` says came of each. More series than the
        lesser page holds, or more points, show that this limit is not there. An answer of fewer shows nothing: what is
        missing may not exist, or was left out.
        """
        self._series |= sum(map(bool, found)) > LESSER.instances
        self._points |= sum(found) > LESSER.points
        few = instances <= LESSER.instances or self._series
        return few and ((points + 1) * instances <= LESSER.points or self._points)


def pages_for(cloud: str, endpoint: str) -> Pages:
    """What this process knows of one site's Monitor; a stand-in on this machine is another each time."""
    return Pages() if on_this_machine(endpoint) else _known(cloud, endpoint)


@cache
def _known(cloud: str, endpoint: str) -> Pages:
    del cloud, endpoint
    return Pages()


_MANY = 2520  # machines that fill calls of every size up to ten: for more, the best cut is hardly another


def pieces(points: int, machines: int, page: Page) -> tuple[Piece, ...]:
    """How to cut so many points of each of so many machines into the fewest calls.

    A call of 1,439 points for one machine costs as much as one of 143 points for ten. An interval may be answered with
    its end included, so each has room for one point more than it is long.
    """
    return _cheapest(points, min(machines, _MANY), page)


@lru_cache(maxsize=256)
def _cheapest(points: int, machines: int, page: Page) -> tuple[Piece, ...]:
    """The fewest calls for every length up to the whole.

    A full call for one machine wastes nothing, so those go first: only what is left, less than two of them, is weighed.
    """
    single = page.points - 1
    alone = max(0, points // single - 1)
    left = points - alone * single
    # of sizes that make as many calls the smallest has room for the most points
    costs = {ceil(machines / each): each for each in range(min(page.instances, max(1, machines)), 0, -1)}
    sizes = [(cost, page.points // each - 1) for cost, each in costs.items()]
    calls, lengths = [0, *[left * machines + 1] * left], [0] * (left + 1)
    for cost, most in sizes:  # by size, then by length: a third of the time of the other order
        for length in range(1, left + 1):
            fewest = calls[length - most] + cost if length > most else cost
            if fewest < calls[length]:
                calls[length], lengths[length] = fewest, min(length, most)
    found = [Piece(single, 1)] * alone
    while left > 0:
        found.append(Piece(lengths[left], min(page.instances, page.points // (lengths[left] + 1))))
        left -= lengths[left]
    return tuple(found)


NAMESPACE = "QCE/CVM"
BY_MACHINE = ("InstanceId",)
"""The dimension of every metric of a machine, by its page (248/6843)."""
_CALLS_IN_FLIGHT = 8


@dataclass(frozen=True, slots=True)
class Metric:
    """One series of a machine: what it tells of, the name to ask for, and what one of its units is of ours.

    `of_card` are the dimensions that Monitor declares of its cards; None where it declares none, or they do not matter.
    """

    signal: SignalName
    name: str
    finest: int
    scale: float = 1.0
    outer: bool = False
    shown: bool = False
    of_card: tuple[str, str] | None = None


class Target(NamedTuple):
    """What one series is of: a machine, or one card of it by its number."""

    ref: ResourceRef
    card: str = ""

    @property
    def key(self) -> tuple[str, str]:
        """As answers have it."""
        return self.ref.native_id, self.card


@dataclass(frozen=True, slots=True)
class Job:
    """A metric of some machines, or of some cards, over an interval. `names` are those of the dimensions."""

    metric: Metric
    targets: tuple[Target, ...]
    begin: datetime
    end: datetime
    period: int
    names: tuple[str, ...] = BY_MACHINE

    @property
    def points(self) -> int:
        """How many points each target may have in it."""
        return (self.end - self.begin) // timedelta(seconds=self.period)

    def fits(self, page: Page) -> bool:
        """Whether a page has room for it."""
        return page.holds(self.points, len(self.targets))

    def parts(self, page: Page) -> Iterator[Job]:
        """The same in calls that fit a page: full ones, and few."""
        begin = self.begin
        for piece in pieces(self.points, len(self.targets), page):
            end = begin + piece.points * timedelta(seconds=self.period)
            for first in range(0, len(self.targets), piece.instances):
                yield replace(self, targets=self.targets[first : first + piece.instances], begin=begin, end=end)
            begin = end


@dataclass(slots=True)
class Reading:
    """What one `read` has gathered so far; filled by several threads under `lock`."""

    window: Window
    cells: dict[tuple[Target, Metric], Cells] = field(default_factory=dict)
    periods: dict[Metric, int] = field(default_factory=dict)
    failures: dict[ResourceRef, ProviderError] = field(default_factory=dict)
    lost: set[tuple[ResourceRef, SignalName]] = field(default_factory=set)
    cards_lost: dict[tuple[ResourceRef, Metric], ProviderError] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def expect(self, jobs: Iterable[Job]) -> None:
        """Make room for what these calls will bring."""
        for job in jobs:
            self.periods[job.metric] = job.period
            for target in job.targets:
                self.cells.setdefault((target, job.metric), Cells.empty(self.window.hours))

    def fail_job(self, job: Job, error: ProviderError) -> None:
        """Whoever lacks a signal that is judged was not read; one that is only shown is left out.

        Cards that were not read leave the mean over them, which is asked for by itself.
        """
        refs = [target.ref for target in job.targets]
        if job.names != BY_MACHINE:
            with self.lock:
                self.cards_lost.update(dict.fromkeys(((ref, job.metric) for ref in refs), error))
        elif job.metric.shown:
            with self.lock:
                self.lost.update((ref, job.metric.signal) for ref in refs)
        else:
            self.fail(refs, error)

    def fail(self, refs: Iterable[ResourceRef], error: ProviderError) -> None:
        """These were not read."""
        with self.lock:
            for ref in refs:
                self.failures.setdefault(ref, error)


class Asking:
    """Sends calls and keeps what comes; may be shared by threads."""

    def __init__(self, session: Calls, pages: Pages) -> None:
        self._session = session
        self._pages = pages

    def run(self, shard: Shard, jobs: Iterable[Job], reading: Reading) -> None:
        """All of them at once, in full calls and few.

        Until an answer has shown that the larger page works, the first call so large goes alone.
        """
        left = [part for job in jobs for part in job.parts(self._pages.page)]
        reading.expect(left)
        if self._pages.unsure:
            with self._pages.probing:
                large = next((job for job in left if not job.fits(LESSER)), None)
                if large is not None:
                    left.remove(large)
                    self._do(shard, large, reading)
        if left:
            with ThreadPoolExecutor(min(_CALLS_IN_FLIGHT, len(left))) as pool:
                list(pool.map(lambda job: self._do(shard, job, reading), left))

    def _do(self, shard: Shard, job: Job, reading: Reading) -> None:
        """Read a job. What a larger page was refused, or may have left out, is read by the lesser one.

        The larger one is given up where the lesser is answered and it was not, or brings more: an answer that both lack
        says nothing of pages, and neither does a fault that passes.
        """
        if job.fits(LESSER):
            self._take(shard, job, reading)
            return
        counted, refused = None, False
        if self._pages.page is LARGER:
            try:
                found = self._ask(shard, job)
            except (AccessDeniedError, ThrottledError) as err:
                reading.fail_job(job, err)
                return
            except ProviderError as err:
                refused = not isinstance(err, UnavailableError)
            else:
                if self._pages.proved(job.points, len(job.targets), [len(points.values) for points in found]):
                    _keep(job, found, reading)
                    return
                counted = sum(len(points.values) for points in found)
        taken = [self._take(shard, part, reading) for part in job.parts(LESSER)]
        if refused:
            useless = any(one is not None for one in taken)
        else:  # since the larger answer each series may have got a point
            useless = counted is not None and sum(one or 0 for one in taken) > counted + len(job.targets)
        if useless:
            self._pages.page = LESSER

    def _take(self, shard: Shard, job: Job, reading: Reading) -> int | None:
        """Ask once and keep the points; how many there were, None where it failed."""
        if all(target.ref in reading.failures for target in job.targets):
            return None
        try:
            found = self._ask(shard, job)
        except ProviderError as err:
            reading.fail_job(job, err)
            return None
        _keep(job, found, reading)
        return sum(len(points.values) for points in found)

    def _ask(self, shard: Shard, job: Job) -> list[Points]:
        answer = self._session.call(
            shard,
            "monitor",
            "GetMonitorData",
            Namespace=NAMESPACE,
            MetricName=job.metric.name,
            Period=job.period,
            StartTime=job.begin.isoformat(),
            EndTime=job.end.isoformat(),
            Instances=[
                {
                    "Dimensions": [
                        {"Name": name, "Value": value} for name, value in zip(job.names, target.key, strict=False)
                    ]
                }
                for target in job.targets
            ],
        )
        asked = frozenset(target.key for target in job.targets)
        return points_in(answer, asked, job.begin, job.end, job.period)


def _keep(job: Job, found: Sequence[Points], reading: Reading) -> None:
    by_key = {target.key: target for target in job.targets}
    try:
        with reading.lock, as_documented(OPERATION):
            for points in found:
                cells = reading.cells[by_key[points.native_id, points.card], job.metric]
                fold(cells, job.metric.signal, reading.window.start, points.timestamps, points.values)
    except ProviderError as err:  # some may be counted already: these are not asked for again
        reading.fail_job(job, err)


def fold(
    cells: Cells, signal: SignalName, start: datetime, timestamps: Sequence[datetime], values: Sequence[Any]
) -> None:
    """Merge the points of one call in: hourly maxima, and how many points each hour has in all calls together.

    Raises:
        ValueError, TypeError: as `fold_values`.
    """
    fold_values(cells, signal, start, timestamps, values)
    counts: dict[int, int] = {}
    for moment in timestamps:
        hour = (moment - start) // HOUR
        counts[hour] = counts.get(hour, 0) + 1
    whole = [cells.samples[hour] + count for hour, count in counts.items()]
    fold_counts(cells, start, [start + hour * HOUR for hour in counts], whole)
