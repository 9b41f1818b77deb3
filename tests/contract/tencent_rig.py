"""Monitor with points of one's own choosing: what `tests/contract/test_signal_source.py` needs of Tencent Cloud."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from statistics import fmean
from typing import Any

from costguard.domain.errors import AccessDeniedError
from costguard.domain.refs import ResourceRef, Shard
from costguard.domain.resources import Accelerator, AcceleratorKind, Billing, Instance, InstanceState
from costguard.domain.signals import SignalName, Statistic
from costguard.providers.tencent.compute.metrics import TencentSignals

Hours = Mapping[int, tuple[float, int]]
"""Hour → (largest sample, number of samples)."""

_MINUTE = 60
_MEGABIT = 125_000  # bytes
_UNITS = {"GpuUtil": "%", "GpuPowDraw": "W", "CpuUsage": "%", "LanIntraffic": "Mbps", "LanOuttraffic": "Mbps"}


class TencentRig:
    """One series a machine: of every minute the mean over its cards, of longer periods the largest minute."""

    statistic = Statistic.MEAN_OF_CARDS

    _METRICS: Mapping[SignalName, tuple[tuple[str, float], ...]] = {
        SignalName.GPU: (("GpuUtil", 1.0),),
        SignalName.POWER: (("GpuPowDraw", 1.0),),
        SignalName.CPU: (("CpuUsage", 1.0),),
        SignalName.NETWORK: (("LanIntraffic", 0.75 / _MEGABIT), ("LanOuttraffic", 0.25 / _MEGABIT)),
    }

    def __init__(self, start: datetime) -> None:
        self._start = start
        self._minutes: dict[tuple[str, str], dict[int, list[float]]] = {}
        self._refused = False
        self._made = 0

    def device(self, card: str) -> str:
        """The name of a card's history: none has one of its own."""
        del card
        return ""

    def instance(self) -> Instance:
        self._made += 1
        return Instance(
            ref=ResourceRef("tencent", "100012345678", "ap-guangzhou", "instance", f"ins-{self._made}"),
            instance_type="GN7.10XLARGE160",
            accelerator=Accelerator(AcceleratorKind.NVIDIA_GPU, "T4", 2),
            state=InstanceState.RUNNING,
            billing=Billing.ON_DEMAND,
            run_epoch="request-1",
            launched_at=self._start,
        )

    def measured(self, instance: Instance, signal: SignalName, device: str, hours: Hours) -> None:
        del device
        for metric, factor in self._METRICS[signal]:
            minutes = self._minutes.setdefault((instance.ref.native_id, metric), {})
            for hour, (value, count) in hours.items():
                for minute in range(count):
                    at = int((self._start + timedelta(hours=hour, minutes=minute)).timestamp())
                    sample = value if minute == 0 else min(value, 0.0)
                    minutes.setdefault(at, []).append(sample * factor)

    def source(self, *signals: SignalName) -> TencentSignals:
        return TencentSignals(self, frozenset(signals))

    def refuse(self) -> None:
        self._refused = True

    def call(self, shard: Shard, service: str, action: str, /, **parameters: Any) -> dict[str, Any]:
        """What `TencentSession.call` is to the source."""
        operation = f"{service}:{action}"
        if self._refused:
            message = f"{shard}: {operation}: UnauthorizedOperation: no"
            raise AccessDeniedError(message, operation=operation, code="UnauthorizedOperation")
        if action == "DescribeBaseMetrics":
            return {"MetricSet": [{"MetricName": name, "Unit": unit} for name, unit in _UNITS.items()]}
        return {
            "Period": parameters["Period"],
            "MetricName": parameters["MetricName"],
            "Msg": "",
            "DataPoints": [self._series(each["Dimensions"], parameters) for each in parameters["Instances"]],
        }

    def _series(self, dimensions: list[dict[str, str]], asked: Mapping[str, Any]) -> dict[str, Any]:
        found = dict(self._points(dimensions[0]["Value"], asked))
        return {"Dimensions": dimensions, "Timestamps": list(found), "Values": list(found.values())}

    def _points(self, native_id: str, asked: Mapping[str, Any]) -> Iterator[tuple[float, float]]:
        begin, end = (int(datetime.fromisoformat(asked[key]).timestamp()) for key in ("StartTime", "EndTime"))
        minutes = self._minutes.get((native_id, asked["MetricName"]), {})
        for at in range(begin, end + 1, asked["Period"]):  # the end included
            inside = [fmean(minutes[one]) for one in range(at, at + asked["Period"], _MINUTE) if one in minutes]
            if inside:
                yield float(at), max(inside)
