"""The bare batched loop that `plan.py` compares with: boto3 alone, for what a plan rests on, in full batches.

Prints how many machines were idle over the last 24 hours by the GPU alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta, timezone
from typing import Any

import boto3
from tests.benchmarks import fleet

_BELOW = 5.0
_VALUES = 200  # of one filter
_IDS = 1_000


def main() -> None:
    """Ask, one request after another."""
    ec2, cloudwatch = boto3.client("ec2"), boto3.client("cloudwatch")
    there = {
        instance["InstanceId"]
        for page in ec2.get_paginator("describe_instances").paginate(PaginationConfig={"PageSize": 1000})
        for reservation in page["Reservations"]
        for instance in reservation["Instances"]
        if instance["InstanceType"] in fleet.GPU_TYPES
    }
    series = [
        metric["Dimensions"]
        for page in cloudwatch.get_paginator("list_metrics").paginate(
            Namespace=fleet.NAMESPACE, MetricName=fleet.METRIC
        )
        for metric in page["Metrics"]
        if metric["Dimensions"][0]["Value"] in there
    ]
    idle = list(_idle(cloudwatch, series))
    for ids in _batches(idle, _IDS):
        ec2.describe_instances(InstanceIds=ids)
    for ids in _batches(idle, _VALUES):
        volumes = ec2.describe_volumes(Filters=[{"Name": "attachment.instance-id", "Values": ids}])["Volumes"]
        for some in _batches([volume["VolumeId"] for volume in volumes], _VALUES):
            ec2.describe_snapshots(OwnerIds=["self"], Filters=[{"Name": "volume-id", "Values": some}])
        ec2.describe_addresses(Filters=[{"Name": "instance-id", "Values": ids}])
    print(len(idle))


def _idle(cloudwatch: Any, series: Sequence[Any]) -> Iterator[str]:
    now = datetime.now(timezone.utc)
    end = now.replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)
    start = end - timedelta(hours=25)
    for batch in _batches(series, 250):
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
        answer = cloudwatch.get_metric_data(MetricDataQueries=queries, StartTime=start, EndTime=end)
        for result in answer["MetricDataResults"]:
            if result["Id"][0] == "m" and result["Values"] and max(result["Values"]) < _BELOW:
                yield batch[int(result["Id"][1:])][0]["Value"]


def _batches(values: Sequence[Any], most: int) -> Iterator[list[Any]]:
    for first in range(0, len(values), most):
        yield list(values[first : first + most])


if __name__ == "__main__":
    main()
