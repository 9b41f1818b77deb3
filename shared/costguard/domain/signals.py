"""Utilisation as hourly maxima with sample counts, and its summary over a window.

Hourly maxima are exact for "stayed below its bound" and 60 times smaller than one-minute points;
sample counts keep a missing minute visible. A window is widened to whole hours, which can only add
busy samples: the error is always towards leaving an instance alone.
"""

from __future__ import annotations

import heapq
import math
from array import array
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from enum import Enum

HOUR = timedelta(hours=1)
CADENCE_SHOWS = timedelta(hours=24)
"""How often a sender means to measure shows in its fullest hour of a day; in a window of one hour alone, a sender that
loses four samples of five looks like one that measures every five minutes."""
_KNOWN_SAMPLES_PER_HOUR = (12, 60, 120, 180, 360, 720, 3600)  # 5 min, 1 min, 30, 20, 10, 5, 1 s agents
OUTLINE_MAX = 24  # stretches of an outline: a day's hours, or a week's sevens
SUSTAINED_SHARE = 8  # an eighth of the hours of a window: 3 of a day, more than a nightly job takes
_DRIFT = 1.05  # a 60 s agent may land 61 to 63 samples in one hour


class SignalName(str, Enum):
    """What is measured. Percent for GPU and CPU, bytes a second for network and disk, watts for power."""

    GPU = "gpu"
    GPU_MEMORY = "gpu_memory"
    CPU = "cpu"
    NETWORK = "network"
    POWER = "power"
    DISK = "disk"


class Statistic(str, Enum):
    """What one sample is: a device's own value, or a mean over all cards of the instance (Tencent `GpuUtil`)."""

    DEVICE = "device"
    MEAN_OF_CARDS = "mean_of_cards"


@dataclass(frozen=True, slots=True)
class SignalHistory:
    """One signal of one device, hour by hour from `start` (UTC, on the hour).

    `maxima[i]` is the largest sample in hour i, NaN where there was none; `samples[i]` counts them.
    `device` is the index of the card, empty for the whole machine. `source` says who measured. `documented_per_hour` is
    how many samples the source documents, where it does: fewer than those are lost, however regularly. `delay` is how
    late this series may be published, where that is known of it alone.
    """

    name: SignalName
    device: str
    start: datetime
    maxima: array[float]
    samples: array[int]
    source: str
    statistic: Statistic = Statistic.DEVICE
    documented_per_hour: int = 0
    delay: timedelta | None = None

    @property
    def samples_per_hour(self) -> int:
        """The cadence the sender meant, from the fullest hour; at least 12, so a lone point is never full cover."""
        fullest = max(self.documented_per_hour, max(self.samples, default=0))
        for known in _KNOWN_SAMPLES_PER_HOUR:
            if fullest <= known * _DRIFT:
                return known
        return fullest

    def over(self, since: datetime, until: datetime, documented_delay: timedelta | None = None) -> SignalSummary:
        """What was measured from `since` to `until`, both widened outwards to whole hours but never past `until`.

        `documented_delay` is that of its whole reading, which counts where the series has none of its own.
        """
        per_hour = self.samples_per_hour
        first = max(0, math.floor((since - self.start) / HOUR))
        last = min(len(self.maxima), math.ceil((until - self.start) / HOUR))
        missing_before = max(timedelta(0), self.start - since)
        covered = until - min(until, max(self.start + first * HOUR, self.start))
        expected = math.ceil(((covered + missing_before) / HOUR) * per_hour)
        values = [value for value in self.maxima[first:last] if not math.isnan(value)]
        newest: datetime | None = None
        for index in range(last - 1, first - 1, -1):
            if self.samples[index]:
                # n samples at this cadence cannot all lie in the first n-1 periods: a safe lower bound
                filled = min(self.samples[index], per_hour) - 1
                newest = self.start + index * HOUR + filled * (HOUR / per_hour)
                break
        counted = sum(min(count, per_hour) for count in self.samples[first:last])
        return SignalSummary(
            name=self.name,
            device=self.device,
            maximum=_highest(values),
            samples=counted,
            expected=expected,
            newest_at=newest,
            period=HOUR / per_hour,
            source=self.source,
            statistic=self.statistic,
            outline=self._outline(since, until),
            delay=documented_delay if self.delay is None else self.delay,
            sustained=_sustained(values, last - first),
        )

    def _outline(self, since: datetime, until: datetime) -> tuple[float | None, ...]:
        """The window in at most 24 equal stretches, with the largest sample of each; None where none was believable."""
        first, last = math.floor((since - self.start) / HOUR), math.ceil((until - self.start) / HOUR)
        stride = max(1, math.ceil((last - first) / OUTLINE_MAX))
        return tuple(self._highest_of(begin, min(begin + stride, last)) for begin in range(first, last, stride))

    def _highest_of(self, first: int, last: int) -> float | None:
        hours = self.maxima[max(0, first) : max(0, last)]
        return max((value for value in hours if value >= 0 and math.isfinite(value)), default=None)


def _highest(values: list[float]) -> float | None:
    """The largest value; a negative one anywhere is reported as infinite, so that nobody takes it for quiet."""
    if any(value < 0 for value in values):
        return math.inf
    return max(values, default=None)


def _sustained(maxima: list[float], hours: int) -> float | None:
    """The level reached in an eighth of these hours, or in the newest two that were measured, whichever is higher."""
    believable = [value for value in maxima if value >= 0 and math.isfinite(value)]
    needed = max(1, math.ceil(hours / SUSTAINED_SHARE))
    levels = [min(believable[-2:])] if len(believable) > 1 else []
    if len(believable) >= needed:
        levels.append(heapq.nlargest(needed, believable)[-1])
    return max(levels, default=None)


@dataclass(frozen=True, slots=True)
class SignalSummary:
    """One signal over one window: enough to judge, small enough to travel.

    `maximum` is None without samples. `newest_at` is a lower bound for the newest sample's time. `outline` is for
    people's eyes: maxima over at most 24 equal stretches of the window, None where a stretch has no sample. `delay` is
    how late the source may publish a point, by its own documentation; None where it was not written down. `sustained`
    is the level that was reached in at least an eighth of the hours, or in each of the newest two: what a short job
    leaves alone. None where fewer hours were measured.
    """

    name: SignalName
    device: str
    maximum: float | None
    samples: int
    expected: int
    newest_at: datetime | None
    period: timedelta
    source: str
    statistic: Statistic = Statistic.DEVICE
    outline: tuple[float | None, ...] = ()
    delay: timedelta | None = None
    sustained: float | None = None

    @property
    def may_lag(self) -> timedelta:
        """How long ago the time that the newest sample stands for may have ended: beyond it the series is stale."""
        return max(2 * self.period, self.delay or timedelta(0))

    @property
    def unseen(self) -> timedelta:
        """How long before a look a job may have begun that no sample of this series shows.

        The newest sample stands for the period that begins at its time stamp, and may have been taken at its beginning.
        """
        return self.period + self.may_lag

    @property
    def coverage(self) -> float:
        """Share of expected samples that arrived, 0.0 to 1.0."""
        return min(1.0, self.samples / self.expected) if self.expected > 0 else 0.0


@dataclass(frozen=True, slots=True)
class SignalReading:
    """All signals of one instance, and where a device metric was looked for.

    `histories` may be empty: then the instance is unmeasured. `documented_delay` is how late the
    source may publish a point, by its own documentation.
    """

    histories: tuple[SignalHistory, ...]
    documented_delay: timedelta


def reads_back(windows: Iterable[timedelta]) -> timedelta:
    """How far back every look at use reads, whatever it looks for: the longest window, and at least a day."""
    return max(CADENCE_SHOWS, *windows, timedelta(0))


def floor_hour(moment: datetime) -> datetime:
    """The whole hour at or before `moment`, in UTC."""
    return moment.astimezone(timezone.utc).replace(minute=0, second=0, microsecond=0)
