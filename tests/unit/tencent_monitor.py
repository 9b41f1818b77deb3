"""A monitor for tests: it has a point for every slot asked for, unless it is made to answer otherwise."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta, timezone
from typing import Any

from costguard.domain.errors import ProviderError
from costguard.domain.refs import ResourceRef, Shard
from costguard.domain.resources import Accelerator, AcceleratorKind, Billing, Instance, InstanceState
from costguard.domain.signals import SignalHistory, SignalName
from costguard.ports import SignalReport
from costguard.providers.tencent.compute.metrics import TencentSignals

SHARD = Shard("tencent", "100012345678", "ap-guangzhou")
NOW = datetime(2026, 3, 2, 9, 20, tzinfo=timezone.utc)
SINCE = NOW - timedelta(hours=2, minutes=20)
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
MINE = [{"Name": "InstanceId", "Value": "ins-1"}]
KNOWN = {
    "MetricSet": [
        {"MetricName": name, "Unit": unit}
        for name, unit in (
            ("GpuUtil", "%"),
            ("Gpupowdraw", "W"),
            ("CpuUsage", "%"),
            ("LanIntraffic", "Mbps"),
            ("LanOuttraffic", "Mbps"),
            ("WanIntraffic", "Mbps"),
            ("WanOuttraffic", "Mbps"),
        )
    ]
}


def box(native_id: str = "ins-1", *, cards: float = 1, **more: Any) -> Instance:
    return Instance(
        ref=ResourceRef(SHARD.cloud, SHARD.account, SHARD.region, "instance", native_id),
        instance_type="GN7.2XLARGE32",
        accelerator=more.pop("accelerator", Accelerator(AcceleratorKind.NVIDIA_GPU, "T4", cards)),
        state=InstanceState.RUNNING,
        billing=Billing.ON_DEMAND,
        run_epoch="request-1",
        launched_at=NOW - DAY,
        **more,
    )


def by_card(dimensions: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """What is known, with dimensions of each GPU metric: those of cards as a published listing has them."""
    of_cards = {"Dimensions": [{"Dimensions": ["minorNumber", "unInstanceId"]}]} if dimensions is None else dimensions
    return {
        "MetricSet": [
            {**metric, **(of_cards if metric["MetricName"].startswith("Gpu") else {})} for metric in KNOWN["MetricSet"]
        ]
    }


class Monitor:
    """A monitor that has a point for every slot asked for, whose answers can be changed.

    `value` is that of every point, or says it of a series (its dimensions by name) and a moment; None is no point. A
    call may ask for `most` machines and points; what comes of more is `over`'s.
    """

    def __init__(
        self,
        value: float | Callable[[Mapping[str, str], datetime], float | None] = 3.0,
        change: Callable[[dict[str, Any]], None] | None = None,
        *,
        most: tuple[int, int] = (50, 7_200),
        over: Callable[[dict[str, Any]], None] | None = None,
        known: dict[str, Any] | None = None,
    ) -> None:
        self.asked: list[Mapping[str, Any]] = []
        self.known: dict[str, Any] | ProviderError = KNOWN if known is None else known
        self._value = value
        self._change = change
        self._most = most
        self._over = over or beyond
        self._lock = threading.Lock()

    def call(self, shard: Shard, service: str, action: str, /, **parameters: Any) -> dict[str, Any]:
        assert (shard, service) == (SHARD, "monitor")
        if action == "DescribeBaseMetrics":
            if isinstance(self.known, ProviderError):
                raise self.known
            return self.known
        with self._lock:
            self.asked.append(parameters)
        begin = int(datetime.fromisoformat(parameters["StartTime"]).timestamp())
        end = int(datetime.fromisoformat(parameters["EndTime"]).timestamp())
        period = parameters["Period"]
        slots = list(range(begin - begin % period, end + 1, period))  # the end included, as below an hour
        answer = {
            "Period": parameters["Period"],
            "MetricName": parameters["MetricName"],
            "StartTime": "2022-09-26 09:00:00",
            "DataPoints": [self._series(each["Dimensions"], slots) for each in parameters["Instances"]],
            "Msg": "",
        }
        if len(answer["DataPoints"]) > self._most[0] or len(answer["DataPoints"]) * len(slots) > self._most[1]:
            self._over(answer)
        if self._change is not None:
            self._change(answer)
        return answer

    def _series(self, dimensions: list[dict[str, str]], slots: list[int]) -> dict[str, Any]:
        asked = {pair["Name"]: pair["Value"] for pair in dimensions}
        value = self._value if callable(self._value) else lambda *_: self._value
        points = [(float(at), value(asked, datetime.fromtimestamp(at, timezone.utc))) for at in slots]
        known = [(at, found) for at, found in points if found is not None]
        return {
            "Dimensions": dimensions,
            "Timestamps": [at for at, _ in known],
            "Values": [found for _, found in known],
        }


def beyond(answer: dict[str, Any]) -> None:
    """What was recorded over the limits: a success with a message and empty series."""
    answer["Msg"] = "a single call can query up to 10 instances and 1,440 data points"
    empty(answer)


def empty(answer: dict[str, Any]) -> None:
    for series in answer["DataPoints"]:
        series["Timestamps"], series["Values"] = [], []


def read(monitor: Monitor, *instances: Instance, signals: frozenset[SignalName] | None = None) -> SignalReport:
    wanted = frozenset({SignalName.GPU}) if signals is None else signals
    return TencentSignals(monitor, wanted).read(instances or (box(),), SINCE, NOW)


def only(report: SignalReport) -> SignalHistory:
    (reading,) = report.readings.values()
    (history,) = reading.histories
    return history
