"""A page of GetMetricData, taken apart without trust. Pure."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from costguard.domain.errors import AccessDeniedError, ProviderError, TruncatedReadError, UnavailableError
from costguard.domain.refs import ResourceRef
from costguard.domain.resources import AcceleratorKind, Instance, Keeper
from costguard.domain.signals import SignalHistory, SignalName
from costguard.providers.kit.core import fields as documented
from costguard.providers.kit.core.credentials import without_secrets
from costguard.providers.kit.core.fields import as_documented, parts, text

OF_CARDS = frozenset({SignalName.GPU, SignalName.POWER})
"""What is told of cards and not of machines."""

TOGETHER = ", all cards together"
"""Ends the source of what was measured over all cards at once."""
_SAMPLES_PER_HOUR = 60  # the agent's documented default
_DRIFT = 1.05  # it may land 61 to 63 in one hour


@dataclass(frozen=True, slots=True)
class DeviceMetric:
    """A documented metric of single devices: which dimension names the device, and a part of it if any.

    `aggregates`: its sender may have been told to send one series over all devices of the instance.
    """

    namespace: str
    utilization: str
    power: str
    device: str
    part: str = ""
    aggregates: bool = False


@dataclass(frozen=True, slots=True)
class Series:
    """One CloudWatch metric to read, and what it tells of whom. Dimensions stand in the listed order."""

    ref: ResourceRef
    signal: SignalName
    device: str
    part: str
    namespace: str
    metric: str
    dimensions: tuple[tuple[str, str], ...]

    @property
    def key(self) -> tuple[ResourceRef, SignalName, str, str]:
        """What it is folded into: several series may tell of one part of one device."""
        return (self.ref, self.signal, self.device, self.part)


def each_card(together: SignalHistory, cards: int) -> list[SignalHistory]:
    """What one series over all cards says of each: none was busier, and each was seen as often as the count allows.

    More than a sample a minute for each card may as well be fewer cards by a faster agent: then none is covered.
    """
    counts = [count // cards for count in together.samples]
    told = max(counts, default=0) <= _SAMPLES_PER_HOUR * _DRIFT
    samples = array("I", counts if told else [0] * len(counts))
    source = together.source + TOGETHER
    return [
        replace(together, device=str(card), samples=samples, source=source, documented_per_hour=_SAMPLES_PER_HOUR)
        for card in range(cards)
    ]


def device_metrics(instances: Sequence[Instance], namespace: str) -> Mapping[DeviceMetric, Sequence[Instance]]:
    """The device metrics worth listing, and the instances that may send each: no listing without a taker."""
    takers: dict[DeviceMetric, list[Instance]] = {}
    for instance in instances:
        kind = instance.accelerator.kind
        on_kubernetes = instance.managed_by is not None and instance.managed_by.keeper is Keeper.KUBERNETES
        if kind is AcceleratorKind.NVIDIA_GPU:
            joint = " " if instance.operating_system.lower().startswith("windows") else "_"
            agent = DeviceMetric(
                namespace,
                f"nvidia_smi{joint}utilization_gpu",
                f"nvidia_smi{joint}power_draw",
                device="index",
                aggregates=True,
            )
            takers.setdefault(agent, []).append(instance)
            if on_kubernetes:
                insights = DeviceMetric(
                    "ContainerInsights", "node_gpu_utilization", "node_gpu_power_draw", device="GpuDevice"
                )
                takers.setdefault(insights, []).append(instance)
        elif kind is AcceleratorKind.NEURON:
            neuron = DeviceMetric(
                "ContainerInsights", "node_neuroncore_utilization", "", device="NeuronDevice", part="NeuronCore"
            )
            takers.setdefault(neuron, []).append(instance)
    return takers


def device_series(
    listed: Iterable[Mapping[str, Any]],
    metric: DeviceMetric,
    instances: Mapping[str, ResourceRef],
    signals: frozenset[SignalName],
) -> Iterator[Series]:
    """One page of ListMetrics as series of single devices of `instances` (by native id), or of all devices of one.

    Power is asked for under the same dimensions: the agent sends all its metrics of a card with one set.
    """
    for entry in listed:
        pairs = documented.parts(entry, "Dimensions")
        dimensions = tuple((documented.named(pair, "Name"), documented.named(pair, "Value")) for pair in pairs)
        named = dict(dimensions)
        ref = instances.get(named.get("InstanceId", ""))
        device = named.get(metric.device, "")
        part = named.get(metric.part, "") if metric.part else ""
        of_all = metric.aggregates and dimensions == (("InstanceId", named.get("InstanceId", "")),)
        if ref is None or not (device or of_all) or (metric.part and not part):
            continue
        # Container Insights says nvidia0 and device0 where the agent says 0: one name, so that both merge
        device = device.removeprefix("nvidia").removeprefix("device") or device
        for signal, name in ((SignalName.GPU, metric.utilization), (SignalName.POWER, metric.power)):
            if name and signal in signals:
                yield Series(ref, signal, device, part, metric.namespace, name, dimensions)


def ec2_series(instances: Sequence[Instance], signals: frozenset[SignalName]) -> Iterator[Series]:
    """The hypervisor's own metrics, which every instance has: no listing needed."""
    asked = [
        (signal, part, name)
        for signal, part, name in (
            (SignalName.CPU, "", "CPUUtilization"),
            (SignalName.NETWORK, "in", "NetworkIn"),
            (SignalName.NETWORK, "out", "NetworkOut"),
            (SignalName.DISK, "ebs read", "EBSReadBytes"),
            (SignalName.DISK, "ebs write", "EBSWriteBytes"),
            (SignalName.DISK, "local read", "DiskReadBytes"),
            (SignalName.DISK, "local write", "DiskWriteBytes"),
        )
        if signal in signals
    ]
    for instance in instances:
        dimensions = (("InstanceId", instance.ref.native_id),)
        for signal, part, name in asked:
            if part.startswith("local") and instance.local_disk_gib == 0:
                continue  # known to have none
            yield Series(instance.ref, signal, "", part, "AWS/EC2", name, dimensions)


OPERATION = "cloudwatch:GetMetricData"
PARTIAL = "PartialData"
_MOST_DIGITS = 4  # of a query's number; a call has 500 queries


@dataclass(frozen=True, slots=True)
class Answered:
    """The answer to query `letter` + `number`; `error` says why its points are not complete."""

    letter: str
    number: int
    timestamps: Sequence[Any]
    values: Sequence[Any]
    error: ProviderError | None

    @property
    def name(self) -> str:
        """The query's id."""
        return f"{self.letter}{self.number}"


def results_in(page: Mapping[str, Any]) -> list[Answered]:
    """Every result of a page that answers a query of ours.

    Raises:
        TruncatedReadError: a message about the whole call ("maximum number of metrics exceeded"): some was left out.
        ProviderError: the page is not as documented.
    """
    with as_documented(OPERATION):
        found = list(_results(page))
        said = _said(page)
    if said:
        message = f"{OPERATION}: {said}"
        raise TruncatedReadError(message, operation=OPERATION)
    return found


def next_token(page: Mapping[str, Any]) -> str:
    """The token of the next page, empty on the last.

    Raises:
        ProviderError: it is no text.
    """
    with as_documented(OPERATION):
        return text(page, "NextToken")


def worse(known: ProviderError | None, found: ProviderError | None, *, later_page: bool) -> ProviderError | None:
    """What stands of two answers to one query: a failure, unless it only announced the page that has now come."""
    announced = later_page and known is not None and known.code == PARTIAL
    return found if announced or known is None else known


def _results(page: Mapping[str, Any]) -> Iterator[Answered]:
    for result in parts(page, "MetricDataResults"):
        name = text(result, "Id")
        letter, digits = name[:1], name[1:]
        if letter not in {"m", "s"} or not (digits.isascii() and digits.isdigit()) or len(digits) > _MOST_DIGITS:
            continue  # not a query of ours: the one it may stand for goes unanswered
        timestamps, values = _points(result, "Timestamps"), _points(result, "Values")
        error = _failure(result)
        if timestamps is None or values is None or len(timestamps) != len(values):
            message = f"{OPERATION}: as many times as values were expected"
            timestamps, values, error = (), (), UnavailableError(message, operation=OPERATION)
        yield Answered(letter, int(digits), timestamps, values, error)


def _points(result: Mapping[str, Any], key: str) -> Sequence[Any] | None:
    found = result.get(key, ())
    return found if isinstance(found, (list, tuple)) else None


def _failure(result: Mapping[str, Any]) -> ProviderError | None:
    status, said = text(result, "StatusCode"), _said(result)
    if status == "Complete" and not said:
        return None
    message = f"{OPERATION}: {without_secrets(status) or 'no status'}" + (f": {said}" if said else "")
    if status == "Forbidden":
        return AccessDeniedError(message, operation=OPERATION, code=status)
    if status == PARTIAL:
        return TruncatedReadError(message, operation=OPERATION, code=status)
    return UnavailableError(message, operation=OPERATION, code=without_secrets(status))


def _said(fields: Mapping[str, Any]) -> str:
    notes = (f"{text(note, 'Code')}: {text(note, 'Value')}" for note in parts(fields, "Messages"))
    return without_secrets("; ".join(notes))
