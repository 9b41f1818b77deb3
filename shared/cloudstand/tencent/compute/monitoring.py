"""The monitor: what it can tell, and what it tells. Over its limits it tells nothing, and calls that a success."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from cloudstand.tencent.compute.metrics import CARD, MACHINE, METRICS, PERIODS, Metric, Point, points, slots
from cloudstand.tencent.core.asking import Answer, Asked
from cloudstand.tencent.core.errors import ApiError, bad_value
from cloudstand.tencent.core.settings import CardSeries
from cloudstand.tencent.core.times import BEIJING, moment_of, offset
from cloudstand.world.records import Machine

NAMESPACE = "QCE/CVM"
_AVERAGE, _LARGEST, _SMALLEST = 1, 2, 4


def get_monitor_data(asked: Asked) -> Answer:
    """GetMonitorData: one metric of some instances. Too many instances or points: `Msg` says so, and all is empty."""
    if asked.parameters["Namespace"].upper() != NAMESPACE:
        raise bad_value("Namespace", f"only {NAMESPACE} is here")
    metric = METRICS.get(asked.parameters["MetricName"].lower())
    if metric is None:
        raise bad_value("MetricName", "there is no such metric")
    period = asked.get("Period", 300)
    if period not in PERIODS:
        raise bad_value("Period", f"{period} is none of the metric's periods")
    until = _moment(asked, "EndTime", asked.now)
    midnight = asked.now.astimezone(BEIJING).replace(hour=0, minute=0, second=0, microsecond=0)
    since = _moment(asked, "StartTime", midnight)
    if until < since:
        raise bad_value("EndTime", "it lies before StartTime")
    instances, covered = asked.parameters["Instances"], slots(period, since, until)
    most_instances, most_points = asked.settings.monitor_instances, asked.settings.monitor_points
    too_many = len(instances) > most_instances or len(instances) * len(covered) > most_points
    limit = f"a single call can query up to {most_instances} instances and {most_points} data points"
    return {
        "StartTime": offset(datetime.fromtimestamp(covered.start, BEIJING)),
        "EndTime": offset(datetime.fromtimestamp(covered[-1] if covered else covered.start, BEIJING)),
        "Period": period,
        "MetricName": asked.parameters["MetricName"],
        "DataPoints": [_series(asked, each, metric, range(0) if too_many else covered) for each in instances],
        "Msg": limit if too_many else "",
    }


def describe_base_metrics(asked: Asked) -> Answer:
    """DescribeBaseMetrics."""
    if asked.parameters["Namespace"].upper() != NAMESPACE:
        return {"MetricSet": []}
    wanted = asked.get("MetricName", "").lower()
    declared = asked.settings.monitor_cards is not CardSeries.UNDECLARED
    known = (metric for name, metric in METRICS.items() if wanted in {"", name})
    return {"MetricSet": [_described(metric, metric.dimensions if declared else MACHINE) for metric in known]}


def _moment(asked: Asked, name: str, usual: datetime) -> datetime:
    text = asked.get(name)
    return usual if text is None else moment_of(name, text)


def _series(asked: Asked, instance: Answer, metric: Metric, covered: range) -> Answer:
    dimensions = instance["Dimensions"]
    machine, card = _subject(asked, metric, dimensions)
    period = covered.step
    found = [*points(machine, metric, period, covered, asked.now, card)] if machine is not None and covered else []
    # the order of dimensions is not kept
    told: dict[str, Any] = {"Dimensions": [*reversed(dimensions)], "Timestamps": [float(at.timestamp) for at in found]}
    statistic = metric.statistics.get(period, "avg")
    told["Values"] = _values(found, statistic)
    chosen = asked.get("SpecifyStatistics", 0)
    for bit, name in ((_AVERAGE, "AvgValues"), (_LARGEST, "MaxValues"), (_SMALLEST, "MinValues")):
        if chosen & bit:  # "may be wrong" where the metric is kept by another statistic: it is that one again
            told[name] = told["Values"]
    return told


def _values(found: Sequence[Point], statistic: str) -> list[float]:
    if statistic == "max":
        return [round(point.largest, 6) for point in found]
    return [round(point.average, 6) for point in found]


def _subject(asked: Asked, metric: Metric, dimensions: Sequence[Answer]) -> tuple[Machine | None, int | None]:
    """The instance that is meant, and the card; of one that nobody knows there are no points."""
    named = {dimension["Name"].lower(): dimension["Value"] for dimension in dimensions}
    by_machine, by_card = {name.lower() for name in MACHINE}, _names_of_cards(asked.settings.monitor_cards)
    if set(named) != by_machine and (metric.dimensions != CARD or set(named) != by_card):
        raise ApiError("InvalidParameterValue", "these are not the dimensions of the metric.", "维度取值错误。")
    number = named.pop("minornumber", None)
    (native_id,) = named.values()
    machine = asked.world.machines.get(native_id)
    if machine is None or machine.shard != asked.shard:
        return None, None
    if number is None or asked.settings.monitor_cards is CardSeries.OVERLOOKED:
        return machine, None
    there = number.isdigit() and asked.settings.monitor_cards is not CardSeries.EMPTY
    return (machine, int(number)) if there else (None, None)


def _names_of_cards(told: CardSeries) -> set[str]:
    """The dimensions of a card that are answered, in lower case."""
    if told in {CardSeries.REFUSED, CardSeries.UNDECLARED}:
        return set()
    return {"minornumber", "instanceid" if told is CardSeries.DOCUMENTED else "uninstanceid"}


def _described(metric: Metric, dimensions: Sequence[str]) -> Answer:
    return {
        "Namespace": NAMESPACE,
        "MetricName": metric.name,
        "MetricCName": metric.name,
        "MetricEName": metric.name,
        "Unit": metric.unit,
        "UnitCname": metric.unit,
        "Period": [*metric.statistics],
        "Periods": [{"Period": str(period), "StatType": [kind]} for period, kind in metric.statistics.items()],
        "Dimensions": [{"Dimensions": [*dimensions]}],
        "Meaning": {"En": metric.name, "Zh": metric.name},
    }
