"""CloudWatch's reading calls, answered from the world's workloads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moto.cloudwatch.exceptions import ValidationError
from moto.cloudwatch.responses import CloudWatchResponse
from moto.core.responses import ActionResult

from cloudstand.aws.compute.metrics import MOST_POINTS
from cloudstand.aws.core.patching import Patch, Request, Wire, asking

MOST_QUERIES = 500  # GetMetricData refuses more
_LIST_PAGE = 500  # ListMetrics


def measuring(wire: Wire) -> tuple[Patch, ...]:
    """Patches of what reads metrics."""
    reason = "dimensions match in some orders only, or as supersets, and two weeks of points take minutes to seed"
    return (
        Patch(CloudWatchResponse, "list_metrics", asking(wire, _list_metrics), "lists one entry a datum; " + reason),
        Patch(CloudWatchResponse, "get_metric_data", asking(wire, _get_metric_data), reason),
        Patch(CloudWatchResponse, "get_metric_statistics", asking(wire, _get_metric_statistics), reason),
    )


def _list_metrics(wire: Wire, request: Request) -> ActionResult:
    asked = request.parameters()
    found = wire.metrics.list(
        request.account,
        request.region,
        namespace=asked.get("Namespace"),
        name=asked.get("MetricName"),
        dimensions=asked.get("Dimensions") or (),
        recently=bool(asked.get("RecentlyActive")),
    )
    first = int(asked.get("NextToken") or 0)
    result: dict[str, Any] = {"Metrics": [series.described() for series in found[first : first + _LIST_PAGE]]}
    if first + _LIST_PAGE < len(found):
        result["NextToken"] = str(first + _LIST_PAGE)
    return ActionResult(result)


def _get_metric_data(wire: Wire, request: Request) -> ActionResult:
    asked = request.parameters()
    queries = asked.get("MetricDataQueries") or []
    if len(queries) > MOST_QUERIES:
        message = f"The collection MetricDataQueries must not have a size greater than {MOST_QUERIES}."
        raise ValidationError(message)
    results: list[dict[str, Any]] = []
    first, left = int(asked.get("NextToken") or 0), int(asked.get("MaxDatapoints") or MOST_POINTS)
    for index, query in enumerate(queries[first:], start=first):
        points = _points(wire, request, query, asked)
        if results and len(points) > left:
            return ActionResult({"MetricDataResults": results, "NextToken": str(index)})
        left -= len(points)
        results.append(
            {
                "Id": query["Id"],
                "Label": query.get("Label") or query["MetricStat"]["Metric"]["MetricName"],
                "Timestamps": [moment for moment, _ in points],
                "Values": [value for _, value in points],
                "StatusCode": "Complete",
            }
        )
    return ActionResult({"MetricDataResults": results})


def _get_metric_statistics(wire: Wire, request: Request) -> ActionResult:
    asked = request.parameters()
    moments: dict[Any, dict[str, Any]] = {}
    for statistic in asked.get("Statistics") or []:
        query = {"Id": "q", "MetricStat": {"Metric": asked, "Period": asked["Period"], "Stat": statistic}}
        for moment, value in _points(wire, request, query, asked):
            moments.setdefault(moment, {"Timestamp": moment})[statistic] = value
    return ActionResult({"Label": asked["MetricName"], "Datapoints": list(moments.values())})


def _points(
    wire: Wire, request: Request, query: Mapping[str, Any], asked: Mapping[str, Any]
) -> list[tuple[Any, float]]:
    statistic = query.get("MetricStat")
    if statistic is None:
        raise ValidationError("The sandbox answers MetricStat queries only, no expressions.")
    series = wire.metrics.find(request.account, request.region, statistic["Metric"])
    if series is None:
        return []
    try:
        points = list(
            wire.metrics.points(
                series, statistic["Stat"], int(statistic["Period"]), asked["StartTime"], asked["EndTime"]
            )
        )
    except ValueError as err:
        raise ValidationError(str(err)) from err
    return points if asked.get("ScanBy") == "TimestampAscending" else points[::-1]
