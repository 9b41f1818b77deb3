"""CloudMonitor: points of metrics as text within JSON, and errors that look like success."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from typing import Any

from cloudstand.alibaba.compute.instances import cards_of, public_ips
from cloudstand.alibaba.compute.metrics import METRICS, Metric, Series, Statistics, agent_runs, kept_for, series_of
from cloudstand.alibaba.core.errors import RefusedInBody, not_modelled
from cloudstand.alibaba.core.paging import Pages, place_of, token_of
from cloudstand.alibaba.core.site import ApiCall
from cloudstand.world.cloud import World
from cloudstand.world.kinds import InstanceState
from cloudstand.world.places import Place
from cloudstand.world.records import Machine
from cloudstand.world.workload import SignalName

NAMESPACE = "acs_ecs_dashboard"
MOST_INSTANCES = 50
USUAL_LENGTH, MOST_LENGTH = 1000, 1440
LONGEST_SPAN = timedelta(days=31)
_CHINA = timezone(timedelta(hours=8))  # in which times without a zone are written
_MILLISECONDS = 1000


def describe_metric_list(call: ApiCall, world: World) -> Mapping[str, Any]:
    """Every point of one metric after StartTime and up to EndTime, of at most fifty machines, in pages.

    Raises:
        RefusedInBody: a metric that does not exist, or a question out of range: HTTP 200 all the same.
    """
    metric, period = _metric(call)
    since, until = _span(call, world, period)
    found = _series(call, world, metric)
    length = _length(call)
    skip = place_of("DescribeMetricList", call.asked.text("NextToken")) if call.asked.given("NextToken") else 0
    points: list[str] = []
    more = False
    for series in found:
        stamps = series.stamps(since, until, period)
        wanted = stamps[skip : skip + length - len(points)]
        more = len(stamps) > skip + len(wanted)
        skip = max(0, skip - len(stamps))
        points += _points(call, series, wanted, period)
        if more:
            break
        if len(points) == length and series is not found[-1]:
            more = True
            break
    answer = _answered(points, found, period)
    if more:
        before = place_of("DescribeMetricList", call.asked.text("NextToken")) if call.asked.given("NextToken") else 0
        answer["NextToken"] = token_of("DescribeMetricList", before + len(points))
    return answer


def describe_metric_last(call: ApiCall, world: World) -> Mapping[str, Any]:
    """The newest point of each series of the last two hours, or of what is asked for.

    Raises:
        RefusedInBody: as for DescribeMetricList.
    """
    metric, period = _metric(call)
    now = int(world.now.timestamp())
    since = _moment(call, "StartTime") if call.asked.given("StartTime") else now - 7200
    until = _moment(call, "EndTime") if call.asked.given("EndTime") else now
    found = _series(call, world, metric)
    points: list[str] = []
    for series in found[: _length(call)]:
        points += _points(call, series, series.stamps(since, until, period)[-1:], period)
    return _answered(points, found, period)


def describe_metric_meta_list(call: ApiCall, _: World) -> Mapping[str, Any]:
    """Which metrics there are, with their dimensions, periods and statistics."""
    wanted = call.asked.text("MetricName")
    fits = call.asked.text("Namespace", NAMESPACE) in ("", NAMESPACE)
    found = [metric for metric in METRICS.values() if fits and wanted in ("", metric.name)]
    page = Pages("DescribeMetricMetaList", call.asked, most=10_000, usual=30).of(found, by_token=False)
    resources = [
        {
            "Namespace": NAMESPACE,
            "MetricName": metric.name,
            "Description": metric.name,
            "Dimensions": ",".join(metric.dimensions),
            "Periods": ",".join(str(period) for period in metric.periods),
            "Statistics": "Average,Minimum,Maximum",
            "Unit": metric.unit,
            "Labels": "[]",
        }
        for metric in page.items
    ]
    return {"Code": "200", "Success": True, "Resources": {"Resource": resources}, "TotalCount": str(len(found))}


def describe_monitoring_agent_statuses(call: ApiCall, world: World) -> Mapping[str, Any]:
    """Whether the agent runs within each machine: what tells an idle card from one that nobody watches."""
    now = world.now.timestamp()
    statuses = []
    for native_id in filter(None, call.asked.text("InstanceIds").split(",")):
        machine = world.machines.get(native_id)
        if machine is None or machine.shard != Place(call.site.cloud, call.account, call.region):
            continue
        runs = machine.state is InstanceState.RUNNING and agent_runs(machine, now)
        known = "stopped" if machine.workload.agent else "not_installed"
        statuses.append({"InstanceId": native_id, "AutoInstall": True, "Status": "running" if runs else known})
    return {"Code": "200", "Success": True, "NodeStatusList": {"NodeStatus": statuses}}


def _answered(points: Sequence[str], found: Sequence[Series], period: int) -> dict[str, Any]:
    """No point at all is an empty list where series exist, and an empty text where there never was one."""
    text = f"[{','.join(points)}]" if points or found else ""
    return {"Code": "200", "Success": True, "Period": str(period), "Datapoints": text}


def _points(call: ApiCall, series: Series, stamps: Sequence[int], period: int) -> Iterator[str]:
    """Points as JSON, written by hand: a scan of ten thousand machines asks for a million of them."""
    part = "" if series.card is None else f'"gpuId":"{series.card}",'
    part += f'"ip":"{series.ip}",' if series.ip else ""
    of = f'"userId":"{call.account}","instanceId":"{series.machine.native_id}",{part}'
    written: dict[Statistics, str] = {}  # by the minute, one sample of five minutes comes five times
    for stamp, measured in zip(stamps, series.statistics(stamps, period), strict=True):
        text = written.get(measured)
        if text is None:
            low, mean, high = measured
            text = f'"Minimum":{round(low, 4)},"Average":{round(mean, 4)},"Maximum":{round(high, 4)}'
            written[measured] = text
        yield f'{{"timestamp":{stamp * _MILLISECONDS},{of}{text}}}'


def _metric(call: ApiCall) -> tuple[Metric, int]:
    asked = call.asked
    metric = METRICS.get(asked.text("MetricName")) if asked.text("Namespace") == NAMESPACE else None
    if metric is None:
        raise RefusedInBody("404", "The specified resource is not found.")
    text = asked.text("Period", str(metric.periods[0]))
    if text not in {str(period) for period in metric.periods}:
        raise RefusedInBody("400", f"The specified parameter Period is not valid: {text}.")
    return metric, int(text)


def _length(call: ApiCall) -> int:
    text = call.asked.text("Length", str(USUAL_LENGTH))
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= MOST_LENGTH):
        raise RefusedInBody("400", f"The specified parameter Length is not valid. Maximum: {MOST_LENGTH}.")
    return int(text)


def _span(call: ApiCall, world: World, period: int) -> tuple[int, int]:
    for name in ("StartTime", "EndTime"):
        if not call.asked.given(name):
            raise not_modelled("a query of metrics without", name)
    since, until = _moment(call, "StartTime"), _moment(call, "EndTime")
    if since >= until:
        raise RefusedInBody("400", "StartTime must be earlier than EndTime.")
    if until - since > LONGEST_SPAN.total_seconds():
        raise RefusedInBody("400", "The interval between StartTime and EndTime must not exceed 31 days.")
    oldest = int((world.now - kept_for(period)).timestamp())
    return max(since, oldest), until


def _moment(call: ApiCall, name: str) -> int:
    """A time in seconds: milliseconds since 1970, or written out, in China's time unless it ends in Z."""
    text = call.asked.text(name)
    if text.isascii() and text.isdigit():
        return int(text) // _MILLISECONDS
    for form, zone in (("%Y-%m-%d %H:%M:%S", _CHINA), ("%Y-%m-%dT%H:%M:%SZ", timezone.utc)):
        try:
            return int(datetime.strptime(text, form).replace(tzinfo=zone).timestamp())
        except ValueError:
            continue
    raise RefusedInBody("400", f"The specified parameter {name} is not valid: {text}.")


def _series(call: ApiCall, world: World, metric: Metric) -> list[Series]:
    """The series that are asked for; machines of other accounts or regions have none here."""
    shard, now = Place(call.site.cloud, call.account, call.region), world.now.timestamp()
    cards = cards_of(call, world) if metric.signal is SignalName.NETWORK else {}

    def told(machine: Machine) -> Iterator[Series]:
        ips = [*public_ips(world, machine, cards.get(machine.ref, ()))] if metric.signal is SignalName.NETWORK else []
        for series in series_of(machine, metric, now, ips):
            if series.ip not in call.site.networks.unmeasured:
                yield series

    if not call.asked.given("Dimensions"):
        return [series for machine in world.machines_in(shard) for series in told(machine)]
    found = []
    for wanted in _dimensions(call, metric):
        machine = world.machines.get(wanted.get("instanceId", ""))
        if machine is None or machine.shard != shard or wanted.get("userId", call.account) != call.account:
            continue
        card, ip = wanted.get("gpuId"), wanted.get("ip")
        found += [each for each in told(machine) if card in (None, str(each.card)) and ip in (None, each.ip)]
    return found


def _dimensions(call: ApiCall, metric: Metric) -> list[Mapping[str, str]]:
    try:
        found = json.loads(call.asked.text("Dimensions"))
    except ValueError as err:
        raise RefusedInBody("400", "The specified parameter Dimensions is no JSON.") from err
    entries = found if isinstance(found, list) else [found]
    for entry in entries:
        if not isinstance(entry, dict) or not all(isinstance(value, str) for value in entry.values()):
            raise RefusedInBody("400", "The specified parameter Dimensions is no list of names and values.")
        if not set(entry) <= set(metric.dimensions) or "instanceId" not in entry:
            raise RefusedInBody("400", f"The dimensions of {metric.name} are {', '.join(metric.dimensions)}.")
    if len(entries) > MOST_INSTANCES:
        raise RefusedInBody("400", f"Dimensions has more than {MOST_INSTANCES} instances.")
    return entries
