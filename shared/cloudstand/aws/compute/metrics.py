"""CloudWatch over the world: which series exist, by their exact dimensions, and their statistics at the moved clock."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

from cloudstand.aws.compute.catalogue import TYPES
from cloudstand.aws.core.seeding import IMAGE
from cloudstand.world.cloud import World
from cloudstand.world.records import Machine
from cloudstand.world.sensors import PERIOD_SECONDS, Sensor, sensors_of
from cloudstand.world.workload import SignalName

LISTED_FOR = timedelta(days=14)  # ListMetrics shows series with data in the last two weeks
RECENTLY = timedelta(hours=3)  # RecentlyActive=PT3H, the one value there is
MOST_POINTS = 100_800  # in one GetMetricData answer
_AGENT = {SignalName.GPU: "nvidia_smi_utilization_gpu", SignalName.POWER: "nvidia_smi_power_draw"}
_EC2 = {SignalName.CPU: ("CPUUtilization",), SignalName.NETWORK: ("NetworkIn", "NetworkOut")}
_ONE_WAY = {"NetworkIn": 0.7, "NetworkOut": 0.3}  # how the bytes of both ways divide

Dimensions = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Series:
    """One CloudWatch metric. `factor` turns what the sensor says into what CloudWatch stores for one period."""

    namespace: str
    name: str
    dimensions: Dimensions
    sensor: Sensor
    factor: float = 1.0

    @property
    def key(self) -> tuple[str, str, frozenset[tuple[str, str]]]:
        """What identifies it: the exact set of dimensions, in any order."""
        return self.namespace, self.name, frozenset(self.dimensions.items())

    def described(self) -> dict[str, Any]:
        """As ListMetrics says it."""
        dimensions = [{"Name": name, "Value": value} for name, value in self.dimensions.items()]
        return {"Namespace": self.namespace, "MetricName": self.name, "Dimensions": dimensions}

    def value(self, statistic: str, begin: int, end: int, windows: Sequence[tuple[float, float]]) -> float | None:
        """One statistic over one bucket, None where no sample fell into it. `windows`: when samples exist.

        Raises:
            ValueError: a statistic the stand-in does not compute.
        """
        if statistic == "SampleCount":
            return float(self.sensor.count_within(begin, end, windows)) or None
        if statistic == "Maximum":
            peak, _ = self.sensor.peak_within(begin, end, windows)
            return None if peak is None else peak * self.factor
        samples = self.sensor.samples_within(begin, end, windows)
        if not samples:
            return None
        if statistic == "Minimum":
            return min(samples) * self.factor
        if statistic in ("Sum", "Average"):
            return sum(samples) * self.factor / (1 if statistic == "Sum" else len(samples))
        message = f"the sandbox computes no {statistic!r}"
        raise ValueError(message)


class Metrics:
    """Every series of one world's AWS accounts. Series are found by hash, so a fleet of hundreds answers quickly."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._by_shard: dict[tuple[str, str], dict[Any, Series]] = {}
        for machine in world.machines.values():
            if machine.ref.provider != "aws":
                continue
            shard = self._by_shard.setdefault((machine.spec.account, machine.spec.region), {})
            shard.update((series.key, series) for series in _series_of(machine))

    def list(
        self,
        account: str,
        region: str,
        *,
        namespace: str | None = None,
        name: str | None = None,
        dimensions: Sequence[Mapping[str, str]] = (),
        recently: bool = False,
    ) -> Sequence[Series]:
        """The series with recent data that have at least these dimensions, always in the same order."""
        since = self._world.now - (RECENTLY if recently else LISTED_FOR)
        return [
            series
            for series in self._by_shard.get((account, region), {}).values()
            if (namespace is None or series.namespace == namespace)
            and (name is None or series.name == name)
            and all(_has(series.dimensions, wanted) for wanted in dimensions)
            and series.sensor.has_samples(since, self._world.now)
        ]

    def find(self, account: str, region: str, metric: Mapping[str, Any]) -> Series | None:
        """The series with exactly these dimensions, in whatever order they come."""
        dimensions = frozenset((pair["Name"], pair["Value"]) for pair in metric.get("Dimensions") or ())
        key = (metric["Namespace"], metric["MetricName"], dimensions)
        return self._by_shard.get((account, region), {}).get(key)

    def points(
        self, series: Series, statistic: str, period: int, start: datetime, end: datetime
    ) -> Iterator[tuple[datetime, float]]:
        """The buckets with data from `start` to before `end`, oldest first, aligned to whole periods.

        Raises:
            ValueError: a statistic the stand-in does not compute.
        """
        now = self._world.now
        first = int(start.timestamp())
        first -= first % period
        last = min(int(end.timestamp()), int(now.timestamp()) + 1)
        step = max(period, PERIOD_SECONDS[series.sensor.signal])
        first += -first % step  # asked for finer than it was stored: only the stored moments
        windows = series.sensor.windows(now)
        for begin in range(first, last, step):
            value = series.value(statistic, begin, begin + step, windows)
            if value is not None:
                yield datetime.fromtimestamp(begin, timezone.utc), value


def _has(dimensions: Dimensions, wanted: Mapping[str, str]) -> bool:
    found = dimensions.get(wanted["Name"])
    return found is not None and wanted.get("Value") in (None, found)


def _series_of(machine: Machine) -> Iterator[Series]:
    spec = machine.spec
    for sensor in sensors_of(machine):
        if sensor.card is not None:
            facts = TYPES.get(spec.instance_type)
            dimensions = {
                "InstanceId": spec.native_id,
                "ImageId": IMAGE,
                "InstanceType": spec.instance_type,
                "index": sensor.device,
                "name": f"NVIDIA {spec.accelerator.model}",
                "arch": facts.family if facts else "Unknown",
                "host": f"ip-10-0-0-{sum(spec.native_id.encode()) % 250}",
            }
            yield Series("CWAgent", _AGENT[sensor.signal], dimensions, sensor)
        else:
            for name in _EC2[sensor.signal]:
                # the cloud stores bytes of five minutes, not bytes a second
                factor = _ONE_WAY[name] * PERIOD_SECONDS[sensor.signal] if name in _ONE_WAY else 1.0
                yield Series("AWS/EC2", name, {"InstanceId": spec.native_id}, sensor, factor)
