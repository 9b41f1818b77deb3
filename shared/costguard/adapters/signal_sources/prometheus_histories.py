"""From points to hourly histories: cadence, cards cut in slices, two measures of one card. Pure."""

from __future__ import annotations

import math
from array import array
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from costguard.adapters.signal_sources.promql import SIGNAL_OF, BatchQuestion
from costguard.domain.signals import SignalHistory, SignalName

SOURCE = "prometheus"
_LOOKBACK = timedelta(minutes=5)  # how long Prometheus itself takes a sample for current (query.lookback-delta)
_FIVE_MINUTES = 300
_SCRAPE_SECONDS = (5, 10, 15, 20, 30, 45, 60, 90, 120, 150, 300)  # intervals people configure


@dataclass(slots=True)
class Track:
    """What one question found for one device, or one slice of it: largest value and scrapes, by hour.

    `maxima[i]` is NaN where nothing was found; infinity stands for an hour whose samples cannot be believed.
    `density` is the most scrapes found in any five minutes.
    """

    device: str
    part: str
    maxima: array[float]
    samples: array[int]
    density: int = 0

    @classmethod
    def empty(cls, device: str, part: str, hours: int) -> Track:
        """A track on which nothing was found yet."""
        return cls(device, part, array("d", [math.nan]) * hours, array("l", [0]) * hours)

    @property
    def scrape_seconds(self) -> float:
        """The scrape interval: the usual one that fits the densest five minutes, one stray scrape allowed for.

        Where two fit, the shorter: it expects more samples.
        """
        for stray in (0, 1):
            for seconds in _SCRAPE_SECONDS:
                if math.ceil(_FIVE_MINUTES / seconds) == self.density - stray:
                    return seconds
        return _FIVE_MINUTES / max(1, self.density)


@dataclass(frozen=True, slots=True)
class InstanceHistories:
    """Everything found for one instance, by question."""

    tracks: dict[BatchQuestion, dict[tuple[str, str], Track]] = field(default_factory=lambda: defaultdict(dict))

    def track(self, question: BatchQuestion, device: str, part: str, hours: int) -> Track:
        """The track of this device, begun if need be."""
        tracks = self.tracks[question]
        return tracks.setdefault((device, part), Track.empty(device, part, hours))


def histories(found: InstanceHistories, start: datetime) -> tuple[SignalHistory, ...]:
    """One history a signal and card. `start` is the hour of index 0."""
    out = []
    for name in SignalName:
        by_device: dict[str, dict[BatchQuestion, list[Track]]] = defaultdict(lambda: defaultdict(list))
        for question, tracks in found.tracks.items():
            if SIGNAL_OF[question] is name:
                for track in tracks.values():
                    by_device[track.device][question].append(_even(_believable(track)))
        for device, asked in sorted(by_device.items()):
            everything = [track for tracks in asked.values() for track in tracks]
            maxima = _largest(everything)
            samples = _coverage(asked) if name is SignalName.GPU else _most(everything)
            out.append(SignalHistory(name, device, start, maxima, samples, SOURCE))
    return tuple(out)


def delay(found: InstanceHistories) -> timedelta:
    """How late a point may be: five minutes, or two scrapes where scrapes are further apart than that."""
    gpu = [track for question, tracks in found.tracks.items() for track in tracks.values() if _is_gpu(question)]
    slowest = max((track.scrape_seconds for track in gpu), default=0.0)
    return max(_LOOKBACK, timedelta(seconds=2 * slowest))


def _is_gpu(question: BatchQuestion) -> bool:
    return SIGNAL_OF[question] is SignalName.GPU


def _believable(track: Track) -> Track:
    """Scraped, yet without a finite maximum: the samples were NaN or infinite, and busy for all we know.

    So is a negative one, which the other measure of the same card would hide.
    """
    maxima = array(
        "d",
        (
            math.inf if (count and not math.isfinite(value)) or math.isinf(value) or value < 0 else value
            for value, count in zip(track.maxima, track.samples, strict=True)
        ),
    )
    return Track(track.device, track.part, maxima, track.samples, track.density)


def _even(track: Track) -> Track:
    """The same coverage counted in minutes, whatever the scrape interval; rounded so as never to gain.

    Histories know a sample a minute and one in five minutes, but not, say, one in 15 or 45 seconds.
    """
    seconds = track.scrape_seconds
    if seconds >= _FIVE_MINUTES:
        return track
    minutes = array("l", (min(60, math.floor(count * seconds / 60)) for count in track.samples))
    last = next((hour for hour in range(len(minutes) - 1, -1, -1) if minutes[hour]), None)
    if last is not None:
        # n scrapes end (n - 1) intervals after the first: the newest may not be told younger than that
        minutes[last] = max(1, minutes[last] - (math.ceil(seconds / 60) - 1))
    return Track(track.device, track.part, track.maxima, minutes, track.density)


def _largest(tracks: Iterable[Track]) -> array[float]:
    columns = zip(*(track.maxima for track in tracks), strict=True)
    return array("d", (max((v for v in column if not math.isnan(v)), default=math.nan) for column in columns))


def _most(tracks: Iterable[Track]) -> array[int]:
    return array("l", map(max, zip(*(track.samples for track in tracks), strict=True)))


def _coverage(asked: Mapping[BatchQuestion, Sequence[Track]]) -> array[int]:
    """How far one card was measured.

    An undivided card is measured by either metric. A card in MIG slices is measured where every slice
    ever seen is, and only by the engine-active metric: NVIDIA does not attribute utilisation to slices,
    so a calm `DCGM_FI_DEV_GPU_UTIL` there proves nothing (it still counts as busy when it is busy).
    """
    everything = [track for tracks in asked.values() for track in tracks]
    if not any(track.part for track in everything):
        return _most(everything)
    slices = [track for track in asked.get(BatchQuestion.ENGINE_ACTIVE, ()) if track.part]
    if not slices:
        return array("l", [0]) * len(everything[0].samples)
    return array("l", map(min, zip(*(track.samples for track in slices), strict=True)))
