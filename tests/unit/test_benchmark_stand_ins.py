"""What benchmarks are measured against answers as the clouds do: with what was asked for, and no more."""

from __future__ import annotations

import json
import re
from urllib.parse import urlencode

import pytest
from tests.benchmarks import fleet, loopback_alibaba, loopback_tencent
from tests.benchmarks.loopback import OverLimitError, Request
from tests.benchmarks.loopback_aws import Answers
from tests.benchmarks.memory_aws import RunServer, gpu_every

_POINTS = b'"StartTime":1767225600,"EndTime":1767315600'


def _ec2(server: RunServer, action: str, **given: str) -> str:
    form = {name.replace("_", "."): [value] for name, value in given.items()}
    return server.xml(action, form).decode()


def test_ec2_describes_the_machines_asked_for_by_id() -> None:
    server = RunServer(Answers(20))

    told = _ec2(server, "DescribeInstances", InstanceId_1=fleet.native_id(3), InstanceId_2=fleet.native_id(7))

    assert re.findall("<instanceId>(.*?)</instanceId>", told) == [fleet.native_id(3), fleet.native_id(7)]


def test_ec2_refuses_an_id_that_there_is_not() -> None:
    with pytest.raises(ValueError, match="there are not"):
        _ec2(RunServer(Answers(20)), "DescribeInstances", InstanceId_1=fleet.native_id(20))


def test_ec2_lists_the_volumes_of_the_machines_filtered_by() -> None:
    told = _ec2(
        RunServer(Answers(20)),
        "DescribeVolumes",
        Filter_1_Name="attachment.instance-id",
        Filter_1_Value_1=fleet.native_id(5),
    )

    assert re.findall("<instanceId>(.*?)</instanceId>", told) == [fleet.native_id(5)]


def test_ec2_refuses_a_filter_that_is_not_played() -> None:
    with pytest.raises(ValueError, match="a filter by"):
        _ec2(RunServer(Answers(20)), "DescribeVolumes", Filter_1_Name="status", Filter_1_Value_1="in-use")


def test_as_many_machines_are_idle_as_were_asked_for_and_as_many_busy() -> None:
    server = RunServer(Answers(100, gpu_every(100, 10)), idle=10)
    queries = ",".join(
        f'{{"Id":"m{place}","MetricStat":{{"Metric":{{"Namespace":"CWAgent","MetricName":"m","Dimensions":'
        f'[{{"Name":"InstanceId","Value":"{native_id}"}}]}},"Period":3600,"Stat":"Maximum"}}}}'
        for place, native_id in enumerate(fleet.gpus(100, gpu_every(100, 10)))
    )

    told = json.loads(
        server.json("GetMetricData", b'{"MetricDataQueries":[' + queries.encode() + b"]," + _POINTS + b"}")
    )

    idle = [one for one in told["MetricDataResults"] if max(one["Values"]) == 0]
    assert (len(idle), len(told["MetricDataResults"])) == (10, 20)


def test_ecs_describes_the_machines_asked_for_by_id_and_passes_over_what_there_is_not() -> None:
    cloud = loopback_alibaba.Alibaba(20, 2)
    ids = [loopback_alibaba.native_id(number) for number in (3, 25)]
    query = urlencode({"Action": "DescribeInstances", "MaxResults": "100", "InstanceIds": json.dumps(ids)})

    told = json.loads(cloud.answer(Request(f"/?{query}", {}, b"")))

    assert [one["InstanceId"] for one in told["Instances"]["Instance"]] == ids[:1]


def test_cvm_describes_the_machines_asked_for_by_id_and_no_more_than_a_hundred() -> None:
    cloud = loopback_tencent.Tencent(200, 2)
    ids = [loopback_tencent.native_id(number) for number in range(101)]

    def asked(some: list[str]) -> Request:
        return Request(
            "/", {"x-tc-action": "DescribeInstances"}, json.dumps({"InstanceIds": some, "Limit": 100}).encode()
        )

    told = json.loads(cloud.answer(asked(ids[4:6])))["Response"]

    assert [one["InstanceId"] for one in told["InstanceSet"]] == ids[4:6]
    with pytest.raises(OverLimitError):
        cloud.answer(asked(ids))
