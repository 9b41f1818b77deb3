"""A stand-in for Tencent Cloud in its own process, lean enough not to be what is measured.

`python -m tests.benchmarks.loopback_tencent --instances 10000 --gpu-every 10` prints the port it listens on. Values
are written out once; no signature is checked, which the emulator of the sandbox does. Limits are those of each
operation's page, and 20 a second where a page names none, or two. Over 50 machines or 7,200 points a call, Monitor
answers with a message and empty series, as the real one was seen to; the tally counts it all the same.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

from tests.benchmarks import fleet
from tests.benchmarks.loopback import Limit, OverLimitError, Request, serve

ACCOUNT = "100000000001"
REGION = "ap-guangzhou"
ZONE = "ap-guangzhou-6"
PAGE = 100  # DescribeInstances
MOST_INSTANCES = 50  # GetMonitorData
MOST_POINTS = 7_200
LISTING_LIMIT, METRICS_LIMIT = Limit(40), Limit(20)
GPU_TYPES = ("GN10Xp.2XLARGE40", "PNV4.7XLARGE116")
PLAIN_TYPES = ("S5.MEDIUM4", "SA3.LARGE8", "M6.2XLARGE64", "C4.XLARGE16")
STARTED = fleet.NOW - timedelta(days=2)
_PREFIX = "ins-"
_PERIODS = frozenset({60, 300, 3600})
_METRICS = {"GpuUtil": "%", "CpuUsage": "%", "LanIntraffic": "Mbps", "LanOuttraffic": "Mbps"}
_BY_AGENT = "GpuUtil"


def native_id(number: int) -> str:
    """`ins-` and 8 hexadecimal digits."""
    return f"{_PREFIX}{number:08x}"


class Tencent:
    """`Cloud`: everything a scan asks of one account in one region."""

    content_type = "application/json"
    limits: Mapping[str, Limit] = {
        "DescribeInstances": LISTING_LIMIT,
        "DescribeZoneInstanceConfigInfos": Limit(40),
        "GetMonitorData": METRICS_LIMIT,
        **dict.fromkeys(
            ("GetCallerIdentity", "DescribeBaseMetrics", "DescribeAutoScalingInstances", "DescribeClusters"), Limit(20)
        ),
    }

    def __init__(self, instances: int, gpu_every: int) -> None:
        self._gpu_every = gpu_every
        self._machines = [json.dumps(_machine(number, gpu_every)).encode() for number in range(instances)]

    def operation(self, request: Request) -> str:
        """The action of the headers."""
        return request.headers["x-tc-action"]

    def throttled(self) -> tuple[int, bytes]:
        """An error with status 200, as all of them."""
        return 200, b'{"Response":{"Error":{"Code":"RequestLimitExceeded","Message":"-"},"RequestId":"r"}}'

    def answer(self, request: Request) -> bytes:
        """Its answer, of the documented form."""
        action, given = request.headers["x-tc-action"], json.loads(request.body)
        if action == "GetMonitorData":
            return self._monitor_data(given)
        if action == "DescribeInstances":
            return self._instances(given)
        return json.dumps({"Response": {**_FIXED[action](given), "RequestId": "r"}}).encode()

    def _instances(self, given: Mapping[str, Any]) -> bytes:
        size, first = given.get("Limit", 20), given.get("Offset", 0)
        if size > PAGE:
            raise OverLimitError(size, "instances a page")
        machines = self._machines if "InstanceIds" not in given else self._by_id(given["InstanceIds"])
        return b'{"Response":{"TotalCount":%d,"InstanceSet":[%s],"RequestId":"r"}}' % (
            len(machines),
            b",".join(machines[first : first + size]),
        )

    def _by_id(self, names: Sequence[str]) -> list[bytes]:
        """Those that there are, as CVM does: an unknown id is no error."""
        if len(names) > PAGE:
            raise OverLimitError(len(names), "ids a call")
        return [self._machines[number] for number in map(_number, names) if number < len(self._machines)]

    def _monitor_data(self, given: Mapping[str, Any]) -> bytes:
        metric, period = given["MetricName"], given["Period"]
        names = [each["Dimensions"][0]["Value"] for each in given["Instances"]]
        first, last = _slots(given["StartTime"], given["EndTime"], period)
        points = (last - first) // period
        if metric not in _METRICS or period not in _PERIODS:
            raise OverLimitError(metric, "every", period, "s")
        if len(names) > MOST_INSTANCES or len(names) * points > MOST_POINTS:
            raise OverLimitError(len(names), "machines of", points, "points")
        there = [name for name in names if metric != _BY_AGENT or _number(name) % self._gpu_every == 0]
        times = _times(first, last, period)
        series = b",".join(
            b'{"Dimensions":[{"Name":"InstanceId","Value":"%s"}],"Timestamps":[%s],"Values":[%s]}'
            % (name.encode(), times, _values(_number(name) % fleet.KINDS, first, last, period))
            for name in there
        )
        return b'{"Response":{"Period":%d,"MetricName":"%s","DataPoints":[%s],"Msg":"","RequestId":"r"}}' % (
            period,
            metric.encode(),
            series,
        )


def _number(name: str) -> int:
    return int(name.removeprefix(_PREFIX), 16)


def _slots(start: str, end: str, period: int) -> tuple[int, int]:
    """The first slot, and the one after the last: the end counts, as it was recorded to below an hour."""
    first, last = (int(datetime.fromisoformat(text).timestamp()) for text in (start, end))
    return first - first % period, last - last % period + period


def _seconds(first: int, last: int, period: int) -> Sequence[int]:
    """The slots that exist: since the machines started, and over by now."""
    began, now = int(STARTED.timestamp()), int(fleet.NOW.timestamp())
    return [at for at in range(first, last, period) if began <= at and at + period <= now]


@lru_cache(maxsize=256)
def _times(first: int, last: int, period: int) -> bytes:
    return ",".join(f"{at:.1f}" for at in _seconds(first, last, period)).encode()


@lru_cache(maxsize=4096)
def _values(kind: int, first: int, last: int, period: int) -> bytes:
    return ",".join(str(fleet.maximum(kind, at // period)) for at in _seconds(first, last, period)).encode()


def _offers(given: Mapping[str, Any]) -> list[dict[str, Any]]:
    wanted = {each["Name"]: each["Values"] for each in given.get("Filters", ())}
    charges = wanted.get("instance-charge-type", ["POSTPAID_BY_HOUR", "SPOTPAID", "PREPAID"])
    price = {"UnitPrice": 9.5, "UnitPriceDiscount": 9.5, "ChargeUnit": "HOUR", "OriginalPrice": 0, "DiscountPrice": 0}
    return [
        {
            "Zone": ZONE,
            "InstanceType": name,
            "InstanceFamily": name.split(".")[0],
            "InstanceChargeType": charge,
            "Cpu": 8,
            "Memory": 40,
            "Gpu": 1,
            "GpuCount": 1.0,
            "Fpga": 0,
            "Status": "SELL",
            "Price": price,
            "LocalDiskTypeList": [],
            "StorageBlockAmount": 0,
        }
        for name in wanted["instance-type"]
        for charge in charges
    ]


def _machine(number: int, gpu_every: int) -> dict[str, Any]:
    """One machine, as full as CVM tells it."""
    has_card = number % gpu_every == 0
    kinds = GPU_TYPES if has_card else PLAIN_TYPES
    kind = kinds[number // (gpu_every if has_card else 1) % len(kinds)]
    address = f"10.{number // 65_536}.{number // 256 % 256}.{number % 256}"
    tags = {"team": f"team-{number % 12}", "env": "research", "cost-centre": str(number % 40)}
    uuid = f"{number:08x}-0000-4000-8000-000000000000"
    found: dict[str, Any] = {
        "InstanceId": native_id(number),
        "InstanceName": f"node-{number}",
        "InstanceType": kind,
        "CPU": 8,
        "Memory": 40,
        "Placement": {"Zone": ZONE, "ProjectId": 0, "HostId": None},
        "InstanceState": "RUNNING",
        "RestrictState": "NORMAL",
        "InstanceChargeType": "POSTPAID_BY_HOUR",
        "RenewFlag": None,
        "CreatedTime": f"{STARTED:%Y-%m-%dT%H:%M:%SZ}",
        "ExpiredTime": None,
        "Tags": [{"Key": key, "Value": value, "tagKey": key, "tagValue": value} for key, value in tags.items()],
        "SystemDisk": {"DiskId": f"disk-{number:08x}", "DiskType": "CLOUD_SSD", "DiskSize": 100, "Encrypt": False},
        "DataDisks": None,
        "PrivateIpAddresses": [address],
        "PublicIpAddresses": None,
        "IPv6Addresses": None,
        "PublicIPv6Addresses": [],
        "InternetAccessible": {
            "InternetChargeType": "TRAFFIC_POSTPAID_BY_HOUR",
            "InternetMaxBandwidthOut": 0,
            "PublicIpAssigned": False,
        },
        "VirtualPrivateCloud": {"VpcId": "vpc-1", "SubnetId": "subnet-1", "AsVpcGateway": False},
        "SecurityGroupIds": ["sg-1"],
        "ImageId": "img-487zeit5",
        "OsName": "Ubuntu Server 22.04 LTS 64bit",
        "LoginSettings": {"KeyIds": []},
        "StopChargingMode": "NOT_APPLICABLE",
        "DisableApiTermination": False,
        "CamRoleName": "",
        "LatestOperation": "RunInstances",
        "LatestOperationState": "SUCCESS",
        "LatestOperationRequestId": uuid,
        "LatestOperationErrorMsg": "",
        "IsolatedSource": "NOTISOLATED",
        "Uuid": uuid,
        "HpcClusterId": "",
        "RdmaIpAddresses": None,
        "DedicatedClusterId": "",
        "DisasterRecoverGroupId": "",
        "DefaultLoginUser": "ubuntu",
        "DefaultLoginPort": 22,
        "LicenseType": "TencentCloud",
    }
    if has_card:
        found["GPUInfo"] = {"GPUCount": 1, "GPUId": ["0000:00:08.0"], "GPUType": "NVIDIA T4"}
    return found


_FIXED: Mapping[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    "GetCallerIdentity": lambda _: {
        "Arn": f"qcs::cam:{ACCOUNT}:uin/{ACCOUNT}",
        "AccountId": ACCOUNT,
        "UserId": ACCOUNT,
        "PrincipalId": ACCOUNT,
        "Type": "CAMUser",
    },
    "DescribeBaseMetrics": lambda _: {
        "MetricSet": [{"MetricName": name, "Unit": unit} for name, unit in _METRICS.items()]
    },
    "DescribeZoneInstanceConfigInfos": lambda given: {"InstanceTypeQuotaSet": _offers(given)},
    "DescribeAutoScalingInstances": lambda _: {"TotalCount": 0, "AutoScalingInstanceSet": []},
    "DescribeClusters": lambda _: {"TotalCount": 0, "Clusters": []},
}


if __name__ == "__main__":
    serve(Tencent, __doc__)
