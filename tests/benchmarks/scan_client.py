"""One measured run in a process of its own: reads the fleet in one way, prints what it took as JSON.

`costguard`  the program's own scan: inventory, signals, prices, examined.
`loop`       plain boto3, one GetMetricStatistics a series (hourly Maximum and SampleCount in one answer).
`batched`    plain boto3, GetMetricData in batches of 500 queries, pages followed.
`batched-quick`  the same with batches that fit 100,800 points and a plain timestamp parser.
Times begin after the imports every way shares; the SDK's clients are built inside. Peak memory is VmHWM,
which begins anew with each exec (ru_maxrss would carry the parent's over).
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import sys
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import boto3
import botocore.session
from tests.benchmarks import fleet

START = fleet.NOW - fleet.LOOKBACK


class FixedClock:
    """The fleet's own present."""

    def now(self) -> datetime:
        """Always the same moment."""
        return fleet.NOW

    def sleep(self, seconds: float) -> None:
        """Nobody waits in a scan."""


def costguard(url: str) -> int:
    """The engine's scan over the AWS adapters, read-only, with the last 14 days of use."""
    from costguard.domain.signals import SignalName
    from costguard.engine.run.scan import CloudReaders, Lookback, scan
    from costguard.guards.rules.idle import IdleBounds
    from costguard.ports import Target
    from costguard.providers.aws.billing.prices import AwsPrices
    from costguard.providers.aws.compute.metrics import AwsSignals
    from costguard.providers.aws.compute.source import AwsInventory
    from costguard.providers.aws.core.session import AwsSession

    session = AwsSession(endpoint_url=url, paced=True)
    reading = CloudReaders(
        AwsInventory(session),
        AwsSignals(session, frozenset({SignalName.GPU})),
        AwsPrices(session, (), now=fleet.NOW),
    )
    result = scan(
        {"aws": reading},
        [Target(cloud="aws", regions=(fleet.REGION,))],
        (),
        FixedClock(),
        lookback=Lookback(fleet.LOOKBACK, IdleBounds()),
    )
    gaps = [*result.gaps, *(gap for shard in result.facts for gap in shard.gaps)]
    if gaps:
        raise RuntimeError(gaps[0].detail)
    return sum(
        fact.usage is not None and fact.usage.observed_hours > 0 for shard in result.facts for fact in shard.instances
    )


def loop(url: str) -> int:
    """What a script does: a call for each series."""
    instances, cloudwatch = _listed_instances(url, _session()), _client(_session(), "cloudwatch", url)
    measured = set()
    for dimensions in _listed_series(cloudwatch, instances):
        answer = cloudwatch.get_metric_statistics(
            Namespace=fleet.NAMESPACE,
            MetricName=fleet.METRIC,
            Dimensions=dimensions,
            StartTime=_hour(START),
            EndTime=fleet.NOW,
            Period=3600,
            Statistics=["Maximum", "SampleCount"],
        )
        points = {point["Timestamp"]: (point["Maximum"], point["SampleCount"]) for point in answer["Datapoints"]}
        if points:
            measured.add(dimensions[0]["Value"])
    return len(measured)


def batched(url: str, *, quick: bool = False) -> int:
    """The bare batched loop: the same calls in a row, results kept as they come."""
    session = _session()
    size = 250
    if quick:
        from costguard.providers.aws.core.transport import parse_timestamp

        factory: Any = session.get_component("response_parser_factory")
        factory.set_parser_defaults(timestamp_parser=parse_timestamp)
        size = 100_800 // (len(fleet.hours_between(START, fleet.NOW)) * 2)
    instances, cloudwatch = _listed_instances(url, session), _client(session, "cloudwatch", url)
    every = _listed_series(cloudwatch, instances)
    measured = set()
    for first in range(0, len(every), size):
        batch = every[first : first + size]
        queries = [
            {
                "Id": f"{letter}{number}",
                "MetricStat": {
                    "Metric": {"Namespace": fleet.NAMESPACE, "MetricName": fleet.METRIC, "Dimensions": dimensions},
                    "Period": 3600,
                    "Stat": stat,
                },
            }
            for number, dimensions in enumerate(batch)
            for letter, stat in (("m", "Maximum"), ("s", "SampleCount"))
        ]
        more: dict[str, str] = {}
        while True:
            answer = cloudwatch.get_metric_data(
                MetricDataQueries=queries,
                StartTime=_hour(START),
                EndTime=fleet.NOW,
                ScanBy="TimestampAscending",
                **more,
            )
            for result in answer["MetricDataResults"]:
                if dict(zip(result["Timestamps"], result["Values"], strict=True)):
                    measured.add(batch[int(result["Id"][1:])][0]["Value"])
            if "NextToken" not in answer:
                break
            more = {"NextToken": answer["NextToken"]}
    return len(measured)


WAYS: Mapping[str, Callable[[str], int]] = {
    "costguard": costguard,
    "batched-quick": lambda url: batched(url, quick=True),
    "batched": batched,
    "loop": loop,
}


def _session() -> Any:
    return botocore.session.get_session()


def _client(session: Any, service: str, url: str) -> Any:
    made: Any = boto3.Session(botocore_session=session)  # Any: the stubs want the service spelt out
    return made.client(service, region_name=fleet.REGION, endpoint_url=url)


def _listed_instances(url: str, session: Any) -> set[str]:
    ec2 = _client(session, "ec2", url)
    pages = ec2.get_paginator("describe_instances").paginate(PaginationConfig={"PageSize": 1000})
    return {
        instance["InstanceId"]
        for page in pages
        for reservation in page["Reservations"]
        for instance in reservation["Instances"]
        if instance["InstanceType"] in fleet.GPU_TYPES
    }


def _listed_series(cloudwatch: Any, instances: set[str]) -> list[Any]:
    pages = cloudwatch.get_paginator("list_metrics").paginate(Namespace=fleet.NAMESPACE, MetricName=fleet.METRIC)
    return [
        metric["Dimensions"]
        for page in pages
        for metric in page["Metrics"]
        if metric["Dimensions"][0]["Value"] in instances
    ]


def _hour(moment: datetime) -> datetime:
    return moment.replace(minute=0, second=0, microsecond=0)


def main() -> None:
    """Run one way once."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("way", choices=sorted(WAYS))
    parser.add_argument("url")
    given = parser.parse_args()
    before, began = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    measured = WAYS[given.way](given.url)
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_SELF)
    status = Path("/proc/self/status").read_text(encoding="ascii")
    peak = re.search(r"VmHWM:\s+(\d+) kB", status)
    took = {
        "measured": measured,
        "wall_s": wall,
        "cpu_s": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        "process_cpu_s": after.ru_utime + after.ru_stime,
        "peak_mb": int(peak[1]) / 1024 if peak else 0.0,
    }
    json.dump(took, sys.stdout)


if __name__ == "__main__":
    main()
