"""Series being read: reduced to hourly maxima with sample counts row by row, so that minutes are never kept.

What cannot be (a negative value, a percentage over 100) makes its hour one that no judge believes; what is no number
was not measured. Both are remembered with file, line and field. Whatever else is wrong ends the reading.
"""

from __future__ import annotations

import math
import re
import sys
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone

from costguard.domain.errors import InvalidInputError
from costguard.domain.signals import SignalHistory, SignalName, Statistic

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_RFC3339 = re.compile(r"(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?([Zz]|[+-]\d\d:\d\d)?", re.ASCII)
_EARLIEST, _LATEST = 2000, 2199
_KEPT = 200_000  # a month of minutes has 43,200


def parse_moment(text: str) -> datetime:
    """One time, aware.

    Raises:
        ValueError: not RFC 3339, without an offset, or not a time there is.
    """
    match = _RFC3339.fullmatch(text)
    if match is None:
        message = f"{text[:60]!r} is no time; expected RFC 3339, such as 2026-11-21T09:00:00Z"
        raise ValueError(message)
    year, month, day, hour, minute, second, fraction, offset = match.groups()
    if not offset:
        message = f"{text!r} does not say its zone; write 2026-11-21T09:00:00Z or +08:00 behind it"
        raise ValueError(message)
    if not _EARLIEST <= int(year) <= _LATEST:
        message = f"{text!r} is not of these centuries"
        raise ValueError(message)
    zone = timezone.utc
    if offset not in "Zz":
        ahead = timedelta(hours=int(offset[1:3]), minutes=int(offset[4:6]))
        zone = timezone(-ahead if offset[0] == "-" else ahead)
    microsecond = int((fraction or "0").ljust(6, "0")[:6])
    return datetime(int(year), int(month), int(day), int(hour), int(minute), int(second), microsecond, zone)


class Moments:
    """Unix seconds by text, remembered: the same minutes come again for every series."""

    def __init__(self) -> None:
        self.known: dict[str, float] = {}

    def __getitem__(self, text: str) -> float:
        known = self.known.get(text)
        if known is None:
            known = (parse_moment(text) - _EPOCH) / timedelta(seconds=1)
            if len(self.known) >= _KEPT:
                self.known.clear()
            self.known[text] = known
        return known


SIGNALS: dict[str, tuple[SignalName, Statistic]] = {
    "gpu_percent": (SignalName.GPU, Statistic.DEVICE),
    "gpu_mean_of_cards_percent": (SignalName.GPU, Statistic.MEAN_OF_CARDS),
    "gpu_memory_percent": (SignalName.GPU_MEMORY, Statistic.DEVICE),
    "cpu_percent": (SignalName.CPU, Statistic.DEVICE),
    "network_bytes_per_second": (SignalName.NETWORK, Statistic.DEVICE),
    "power_watts": (SignalName.POWER, Statistic.DEVICE),
}
"""What a history calls its signals: the unit is in the name."""
MOST_PERCENT = 100.5  # rounding in agents; beyond it a percentage is not one
_LARGEST = sys.float_info.max  # of what has no upper end; infinity is no value
_BOOK_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_HOUR_SECONDS = 3600
_LONGEST_GAP = 24 * 366 * 2  # hours: two years without a row are two records, or a wrong year
_MOST_NAMED = 1000  # remarks told one by one; the rest is counted


@dataclass(frozen=True, slots=True)
class DoubtedValue:
    """A value that was not believed: where it stands and what it says."""

    path: str
    line: int
    field: str
    value: str


@dataclass(slots=True)
class DeviceSeries:
    """One signal of one device. `opened` and `last` are the first and the newest row's time in Unix seconds.

    `hour` is the one being gathered, which ends at `ends`. `most` is the largest value that can be.
    """

    resource_id: str
    signal: str
    device: str
    most: float
    opened: float = math.inf
    last: float = -math.inf
    ends: float = -math.inf
    hour: int = -1
    highest: float = math.nan
    count: int = 0
    first: int = -1
    maxima: array[float] = field(default_factory=lambda: array("d"))
    samples: array[int] = field(default_factory=lambda: array("I"))

    def begin(self, hour: int) -> None:
        """Go on to a later hour; those between were not measured."""
        self.close()
        missing = hour - (self.first + len(self.maxima))
        if self.first < 0:
            self.first, missing = hour, 0
        if missing > _LONGEST_GAP:
            raise ValueError("more than two years lie between this row and the one before")
        self.maxima.extend([math.nan] * missing)
        self.samples.extend([0] * missing)
        self.hour = hour
        self.ends = float((hour + 1) * _HOUR_SECONDS)

    def close(self) -> None:
        """Put the hour that was gathered behind the others."""
        if self.hour >= 0:
            self.maxima.append(self.highest)
            self.samples.append(self.count)
        self.hour, self.highest, self.count = -1, math.nan, 0
        self.ends = -math.inf

    def join(self, later: DeviceSeries) -> None:
        """Put the same series of a later file behind; an hour that both have a part of becomes one.

        Raises:
            ValueError: it does not lie behind.
        """
        if later.opened <= self.last:
            raise ValueError(_order(later.opened, self))
        self.close()
        later.close()
        self.last = later.last
        if not later.maxima:
            return
        if not self.maxima:
            self.first, self.maxima, self.samples = later.first, later.maxima, later.samples
            return
        shared = later.first < self.first + len(self.maxima)
        if shared:
            highest = later.maxima[0]
            if not self.maxima[-1] >= highest:
                self.maxima[-1] = highest
            self.samples[-1] += later.samples[0]
        else:
            self.begin(later.first)
            self.hour = -1
        self.maxima.extend(later.maxima[1:] if shared else later.maxima)
        self.samples.extend(later.samples[1:] if shared else later.samples)

    def history(self, source: str) -> SignalHistory:
        """What was gathered; nothing may be added after it."""
        self.close()
        name, statistic = SIGNALS[self.signal]
        start = _BOOK_EPOCH + timedelta(hours=max(self.first, 0))
        return SignalHistory(name, self.device, start, self.maxima, self.samples, source, statistic)


class Book:
    """Every series read so far, and what was not believed in them."""

    def __init__(self) -> None:
        self._series: dict[tuple[str, str, str], DeviceSeries] = {}
        self.doubts: list[DoubtedValue] = []
        self.doubted = 0
        self.rows = 0

    def series(self, resource_id: str, signal: str, device: str) -> DeviceSeries:
        """The series of this name, new or known.

        Raises:
            ValueError: no such signal.
        """
        key = (resource_id, signal, device)
        if key not in self._series:
            if signal not in SIGNALS:
                message = f"{signal!r} is no signal; expected one of {', '.join(SIGNALS)}"
                raise ValueError(message)
            most = MOST_PERCENT if signal.endswith("_percent") else _LARGEST
            self._series[key] = DeviceSeries(resource_id, signal, device, most)
        return self._series[key]

    def add(self, series: DeviceSeries, moment: float, value: float, count: int) -> bool:
        """One row: `count` samples from `moment` (Unix seconds) on, `value` the largest. False: it is not believed.

        Raises:
            ValueError: it stands twice, or before an earlier one.
        """
        if moment <= series.last:
            raise ValueError(_order(moment, series))
        series.opened = min(series.opened, moment)
        series.last = moment
        self.rows += 1
        if value != value:  # noqa: PLR0124 - NaN
            return False
        hour = int(moment // _HOUR_SECONDS)
        if hour != series.hour:
            series.begin(hour)
        possible = 0 <= value <= series.most
        if not possible:
            value = math.inf
        if not value <= series.highest:  # the first of an hour compares with NaN
            series.highest = value
        series.count += count
        return possible

    def doubt(self, doubt: DoubtedValue) -> None:
        """Remember a value that was not believed; beyond a thousand only their number."""
        self.doubted += 1
        if len(self.doubts) < _MOST_NAMED:
            self.doubts.append(doubt)

    def join(self, later: Book, path: str) -> None:
        """Put what another book read from a later file behind.

        Raises:
            InvalidInputError: a series in it does not lie behind.
        """
        for series in later:
            key = (series.resource_id, series.signal, series.device)
            if key not in self._series:
                self._series[key] = series
                continue
            try:
                self._series[key].join(series)
            except ValueError as err:
                raise wrong(path, 0, "time", str(err)) from err
        self.rows += later.rows
        self.doubted += later.doubted
        self.doubts += later.doubts[: _MOST_NAMED - len(self.doubts)]

    def by_resource(self) -> dict[str, list[DeviceSeries]]:
        """All series of each resource, in the order of their first rows."""
        found: dict[str, list[DeviceSeries]] = {}
        for series in self:
            found.setdefault(series.resource_id, []).append(series)
        return found

    def __iter__(self) -> Iterator[DeviceSeries]:
        return iter(self._series.values())


def _order(moment: float, series: DeviceSeries) -> str:
    when = (_BOOK_EPOCH + timedelta(seconds=moment)).isoformat()
    if moment == series.last:
        return f"{when} stands twice for {series.signal} of device {series.device!r} of {series.resource_id}"
    last = (_BOOK_EPOCH + timedelta(seconds=series.last)).isoformat()
    return f"{when} comes after {last} of the same series; rows of a series must be in the order of time"


def wrong(path: str, line: int, field_name: str, said: str) -> InvalidInputError:
    """An error that names file, line and field."""
    where = f"{path}:{line}" if line else path
    return InvalidInputError(f"{where}: {field_name}: {said}" if field_name else f"{where}: {said}")
