"""The questions put to Prometheus, as text. Pure.

Every query answers three things for each instance and device, told apart by the label `costguard_part`:
`maximum`, the largest value in the range; `samples`, how often the exporter was scraped; and `density`,
the most scrapes in any five minutes of it, which tells the scrape interval that Prometheus keeps to itself.

A range ends one millisecond before the hour (`offset 1ms`), so that it holds exactly one UTC hour in
Prometheus 3, whose ranges leave out their beginning; Prometheus 2 includes it, which can only add a
sample. The offset stands in the query, not in the evaluation time, because front ends such as Thanos
align evaluation times to the step.

Series of one device split by other labels (pod, job, replica) are put together: the maximum over all;
samples are added within one scrape target and the fullest target counts.
"""

from __future__ import annotations

import math
import re
from array import array
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum

from costguard.domain.errors import InvalidInputError
from costguard.domain.signals import SignalHistory, SignalName

PART_LABEL = "costguard_part"
MAXIMUM = "maximum"
SAMPLES = "samples"
DENSITY = "density"
DEVICE_LABEL = "gpu"
SLICE_LABEL = "GPU_I_ID"  # a MIG instance of a card; absent on an undivided one
_LABEL_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")


class BatchQuestion(str, Enum):
    """What is asked of each batch of instances."""

    GPU_UTILISATION = "gpu_utilisation"
    ENGINE_ACTIVE = "engine_active"
    SMI_UTILISATION = "smi_utilisation"
    TELEGRAF_UTILISATION = "telegraf_utilisation"
    GPU_MEMORY = "gpu_memory"
    POWER = "power"
    SMI_POWER = "smi_power"
    TELEGRAF_POWER = "telegraf_power"
    CPU = "cpu"
    NETWORK = "network"


SIGNAL_OF = {
    BatchQuestion.GPU_UTILISATION: SignalName.GPU,
    BatchQuestion.ENGINE_ACTIVE: SignalName.GPU,
    BatchQuestion.SMI_UTILISATION: SignalName.GPU,
    BatchQuestion.TELEGRAF_UTILISATION: SignalName.GPU,
    BatchQuestion.GPU_MEMORY: SignalName.GPU_MEMORY,
    BatchQuestion.POWER: SignalName.POWER,
    BatchQuestion.SMI_POWER: SignalName.POWER,
    BatchQuestion.TELEGRAF_POWER: SignalName.POWER,
    BatchQuestion.CPU: SignalName.CPU,
    BatchQuestion.NETWORK: SignalName.NETWORK,
}

_POISONED = "max by ({by}) (max_over_time({metric}{range})) + 0 * sum by ({by}) (sum_over_time({metric}{range}))"
# max_over_time skips NaN; zero times a sum that holds NaN or an infinity is NaN, so one bad sample shows

_SAMPLES = "max by ({by}) ({join} by ({scraped_by}) (count_over_time({counted}{range})))"
_DENSITY = (
    "max by ({by}) (max_over_time(({join} by ({scraped_by}) (count_over_time({counted}[299999ms])))[{length}:5m]))"
)

# metrics of dcgm-exporter (percent, share, MiB, watts), of utkuozdemir/nvidia_gpu_exporter (METRICS.md: share, watts),
# of telegraf's nvidia_smi input (README: percent, watts) and of node_exporter (seconds, bytes)
_METRICS = {
    BatchQuestion.GPU_UTILISATION: "DCGM_FI_DEV_GPU_UTIL{{{match}}}",
    BatchQuestion.ENGINE_ACTIVE: "DCGM_FI_PROF_GR_ENGINE_ACTIVE{{{match}}}",
    BatchQuestion.SMI_UTILISATION: "nvidia_smi_utilization_gpu_ratio{{{match}}}",
    BatchQuestion.TELEGRAF_UTILISATION: "nvidia_smi_utilization_gpu{{{match}}}",
    BatchQuestion.GPU_MEMORY: "DCGM_FI_DEV_FB_USED{{{match}}}",
    BatchQuestion.POWER: "DCGM_FI_DEV_POWER_USAGE{{{match}}}",
    BatchQuestion.SMI_POWER: "nvidia_smi_power_draw_watts{{{match}}}",
    BatchQuestion.TELEGRAF_POWER: "nvidia_smi_power_draw{{{match}}}",
    BatchQuestion.CPU: 'node_cpu_seconds_total{{mode="idle",{match}}}',
    BatchQuestion.NETWORK: 'node_network_receive_bytes_total{{device!="lo",{match}}}',
}
_MAXIMA = {
    BatchQuestion.GPU_UTILISATION: _POISONED,
    BatchQuestion.ENGINE_ACTIVE: f"100 * ({_POISONED})",
    BatchQuestion.SMI_UTILISATION: f"100 * ({_POISONED})",
    BatchQuestion.TELEGRAF_UTILISATION: _POISONED,
    BatchQuestion.POWER: _POISONED,
    BatchQuestion.SMI_POWER: _POISONED,
    BatchQuestion.TELEGRAF_POWER: _POISONED,
    # used and free add up to a constant, so the hour's maximum used stands over maximum used and minimum free
    BatchQuestion.GPU_MEMORY: (
        "100 * max by ({by}) (max_over_time({metric}{range})) / (max by ({by}) (max_over_time({metric}{range}))"
        " + min by ({by}) (min_over_time(DCGM_FI_DEV_FB_FREE{{{match}}}{range})))"
    ),
    # five-minute means laid side by side: over 14 days a p5 (192 cores) stays under the server's 50 million samples
    BatchQuestion.CPU: (
        "max by ({by}) (max_over_time(clamp(100 * (1 - avg by ({by}) (rate({metric}[5m]))), 0, 100)[{length}:5m]))"
    ),
    BatchQuestion.NETWORK: (
        "max by ({by}) (max_over_time((sum by ({by}) (rate({metric}[5m]))"
        ' + sum by ({by}) (rate(node_network_transmit_bytes_total{{device!="lo",{match}}}[5m])))[{length}:5m]))'
    ),
}
_COUNTED = {BatchQuestion.CPU: 'node_cpu_seconds_total{{mode="idle",cpu="0",{match}}}'}  # one core a scrape is enough
_PER_MACHINE = frozenset({BatchQuestion.CPU, BatchQuestion.NETWORK})
_DEVICE_LABELS = {
    BatchQuestion.SMI_UTILISATION: ("uuid",),
    BatchQuestion.SMI_POWER: ("uuid",),
    BatchQuestion.TELEGRAF_UTILISATION: ("index",),
    BatchQuestion.TELEGRAF_POWER: ("index",),
    **dict.fromkeys(_PER_MACHINE, ()),
}
_INDEX_OF_UUID = (
    "({expression}) * on ({label}, uuid) group_left (gpu)"
    ' (0 * count_values by ({label}, uuid) ("gpu", max_over_time(nvidia_smi_index{{{match}}}{range})) + 1)'
)
"""One card has one name whoever measures it, else four cards measured twice would pass for eight. The exporter tells a
card's index as a metric of its own, in each of its versions; what has none is not counted."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Which series are meant: `ids` in the label `instance_label`, and what the policy adds to every selector."""

    instance_label: str
    ids: tuple[str, ...]
    extra_matchers: str = ""

    def matchers(self) -> str:
        """The inside of the braces. A label value may go on after the id with `.domain` or `:port`."""
        alternatives = "|".join(re.escape(native_id) for native_id in self.ids)
        # RE2 reads re.escape's backslashes; inside a PromQL string each is doubled
        pattern = f"(?:{alternatives})(?:[.:].*)?".replace("\\", "\\\\").replace('"', '\\"')
        return ",".join(part for part in (f'{self.instance_label}=~"{pattern}"', self.extra_matchers) if part)


def whole_hour(question: BatchQuestion, selection: Selection) -> str:
    """The query that, evaluated on the hour, describes the hour before."""
    return _query(question, selection, "1h", "[1h] offset 1ms")


def hour_so_far(question: BatchQuestion, selection: Selection, milliseconds: int) -> str:
    """The query that describes the last `milliseconds` before its evaluation, both ends included."""
    return _query(question, selection, f"{milliseconds}ms", f"[{milliseconds + 1}ms]")


def checked_label(name: str) -> str:
    """`name`, if it may name a label.

    Raises:
        InvalidInputError: it may not.
    """
    if not _LABEL_NAME.fullmatch(name):
        message = f"{name!r} is not a Prometheus label name; expected letters, digits and _, such as instance_id"
        raise InvalidInputError(message)
    return name


def bare_matchers(text: str) -> str:
    """`{cluster="a",}` → `cluster="a"`: matchers without the braces and commas people write around them."""
    return text.strip().removeprefix("{").removesuffix("}").strip().strip(",").strip()


def id_in(label_value: str) -> str:
    """`i-0abc.us-east-1.compute.internal:9400` → `i-0abc`."""
    return re.split(r"[.:]", label_value, maxsplit=1)[0]


def _query(question: BatchQuestion, selection: Selection, length: str, span: str) -> str:
    matchers = selection.matchers()
    device_labels = _DEVICE_LABELS.get(question, (DEVICE_LABEL, SLICE_LABEL))
    fields = {
        "by": _listed((selection.instance_label, *device_labels)),
        "scraped_by": _listed((selection.instance_label, *device_labels, "job", "instance")),
        "match": matchers,
        "metric": _METRICS[question].format(match=matchers),
        "counted": _COUNTED.get(question, _METRICS[question]).format(match=matchers),
        # a card's series follow one another (its pod changes); cores and interfaces stand side by side
        "join": "max" if question in _PER_MACHINE else "sum",
        "range": span,
        "length": length,
    }
    parts = ((MAXIMUM, _MAXIMA[question]), (SAMPLES, _SAMPLES), (DENSITY, _DENSITY))
    return " or ".join(
        _marked(_by_index(template.format(**fields), device_labels, selection, span), part) for part, template in parts
    )


def _by_index(expression: str, device_labels: tuple[str, ...], selection: Selection, span: str) -> str:
    """The same with each card under its index, which dcgm-exporter calls `gpu`."""
    if device_labels == ("uuid",):
        label, match = selection.instance_label, selection.matchers()
        return _INDEX_OF_UUID.format(expression=expression, label=label, match=match, range=span)
    if device_labels == ("index",):
        return f'label_replace({expression}, "{DEVICE_LABEL}", "$1", "index", "(.*)")'
    return expression


def _marked(expression: str, part: str) -> str:
    return f'label_replace({expression}, "{PART_LABEL}", "{part}", "", "")'


def _listed(labels: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(labels))


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
