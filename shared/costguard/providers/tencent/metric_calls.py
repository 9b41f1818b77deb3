"""Calls of GetMonitorData: which there are, how they are sent, and where their points go.

Permission: `monitor:GetMonitorData`.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Protocol

from costguard.domain.errors import AccessDeniedError, ProviderError, ThrottledError, UnavailableError
from costguard.domain.refs import ResourceRef, Shard
from costguard.domain.signals import HOUR, SignalName
from costguard.providers.documented import as_documented
from costguard.providers.hourly import Cells, Window, fold_counts, fold_values
from costguard.providers.tencent.metric_answers import OPERATION, Points, points_in
from costguard.providers.tencent.metric_pages import LARGER, LESSER, Page, Pages, pieces

NAMESPACE = "QCE/CVM"
_DIMENSION = "InstanceId"
_CALLS_IN_FLIGHT = 8


class Calls(Protocol):
    """The part of `TencentSession` that reading needs."""

    def call(self, shard: Shard, service: str, action: str, /, **parameters: Any) -> dict[str, Any]:
        """One request, retried within the deadline; raises ProviderError."""


@dataclass(frozen=True, slots=True)
class Metric:
    """One series of a machine: what it tells of, the name to ask for, and what one of its units is of ours."""

    signal: SignalName
    name: str
    finest: int
    scale: float = 1.0
    outer: bool = False
    shown: bool = False


@dataclass(frozen=True, slots=True)
class Job:
    """One call: a metric of some machines over an interval."""

    metric: Metric
    refs: tuple[ResourceRef, ...]
    begin: datetime
    end: datetime
    period: int

    @property
    def points(self) -> int:
        """How many points each machine may have in it."""
        return (self.end - self.begin) // timedelta(seconds=self.period)

    def fits(self, page: Page) -> bool:
        """Whether a page has room for it."""
        return page.holds(self.points, len(self.refs))


@dataclass(slots=True)
class Reading:
    """What one `read` has gathered so far; filled by several threads under `lock`."""

    window: Window
    cells: dict[tuple[ResourceRef, Metric], Cells] = field(default_factory=dict)
    periods: dict[Metric, int] = field(default_factory=dict)
    failures: dict[ResourceRef, ProviderError] = field(default_factory=dict)
    lost: set[tuple[ResourceRef, SignalName]] = field(default_factory=set)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def expect(self, jobs: Iterable[Job]) -> None:
        """Make room for what these calls will bring."""
        for job in jobs:
            self.periods[job.metric] = job.period
            for ref in job.refs:
                self.cells.setdefault((ref, job.metric), Cells.empty(self.window.hours))

    def fail_job(self, job: Job, error: ProviderError) -> None:
        """Whoever lacks a signal that is judged was not read; one that is only shown is left out."""
        if job.metric.shown:
            with self.lock:
                self.lost.update((ref, job.metric.signal) for ref in job.refs)
        else:
            self.fail(job.refs, error)

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

    @property
    def page(self) -> Page:
        """How large calls are to be."""
        return self._pages.page

    def run(self, shard: Shard, jobs: Iterable[Job], reading: Reading) -> None:
        """All of them at once; until an answer has shown that the larger page works, the first so large goes alone."""
        left = list(jobs)
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
                if self._pages.proved(job.points, len(job.refs), [len(points.values) for points in found]):
                    _keep(job, found, reading)
                    return
                counted = sum(len(points.values) for points in found)
        parts = cut(job.metric, job.refs, job.begin, job.end, job.period, LESSER)
        taken = [self._take(shard, part, reading) for part in parts]
        if refused:
            useless = any(one is not None for one in taken)
        else:  # since the larger answer each series may have got a point
            useless = counted is not None and sum(one or 0 for one in taken) > counted + len(job.refs)
        if useless:
            self._pages.page = LESSER

    def _take(self, shard: Shard, job: Job, reading: Reading) -> int | None:
        """Ask once and keep the points; how many there were, None where it failed."""
        if all(ref in reading.failures for ref in job.refs):
            return None
        try:
            found = self._ask(shard, job)
        except ProviderError as err:
            reading.fail_job(job, err)
            return None
        _keep(job, found, reading)
        return sum(len(points.values) for points in found)

    def _ask(self, shard: Shard, job: Job) -> list[Points]:
        ids = [ref.native_id for ref in job.refs]
        answer = self._session.call(
            shard,
            "monitor",
            "GetMonitorData",
            Namespace=NAMESPACE,
            MetricName=job.metric.name,
            Period=job.period,
            StartTime=job.begin.isoformat(),
            EndTime=job.end.isoformat(),
            Instances=[{"Dimensions": [{"Name": _DIMENSION, "Value": native_id}]} for native_id in ids],
        )
        return points_in(answer, frozenset(ids), job.begin, job.end, job.period)


def _keep(job: Job, found: Sequence[Points], reading: Reading) -> None:
    by_id = {ref.native_id: ref for ref in job.refs}
    try:
        with reading.lock, as_documented(OPERATION):
            for points in found:
                cells = reading.cells[by_id[points.native_id], job.metric]
                fold(cells, job.metric.signal, reading.window.start, points.timestamps, points.values)
    except ProviderError as err:  # some may be counted already: these are not asked for again
        reading.fail_job(job, err)


def cut(
    metric: Metric, refs: Sequence[ResourceRef], begin: datetime, until: datetime, period: int, page: Page
) -> Iterator[Job]:
    """The calls that read a metric of these machines over an interval: full ones, and few."""
    for piece in pieces((until - begin) // timedelta(seconds=period), len(refs), page):
        end = begin + piece.points * timedelta(seconds=period)
        for first in range(0, len(refs), piece.instances):
            yield Job(metric, tuple(refs[first : first + piece.instances]), begin, end, period)
        begin = end


def fold(
    cells: Cells, signal: SignalName, start: datetime, timestamps: Sequence[datetime], values: Sequence[Any]
) -> None:
    """Merge the points of one call in: hourly maxima, and how many points each hour has in all calls together.

    Raises:
        ValueError, TypeError: as `hourly.fold_values`.
    """
    fold_values(cells, signal, start, timestamps, values)
    counts: dict[int, int] = {}
    for moment in timestamps:
        hour = (moment - start) // HOUR
        counts[hour] = counts.get(hour, 0) + 1
    whole = [cells.samples[hour] + count for hour, count in counts.items()]
    fold_counts(cells, start, [start + hour * HOUR for hour in counts], whole)
