"""A stand-in for Alibaba Cloud in its own process, lean enough not to be what is measured.

`python -m tests.benchmarks.loopback_alibaba --instances 10000 --gpu-every 10` prints the port it listens on. Points
are written out once and cut into pages of 1,440; no signature is checked, which the emulator of the sandbox does.

Limits: CloudMonitor's and STS's are documented. ECS's are told in Quota Center only; 200 a minute, an example that the
documents give of how limits are told, is assumed for each of its operations.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from tests.benchmarks import fleet
from tests.benchmarks.loopback import Limit, OverLimitError, Request, serve

ACCOUNT = "1234567890123456"
REGION = "cn-hangzhou"
PAGE = 100  # DescribeInstances
MOST_INSTANCES = 50  # DescribeMetricList
MOST_POINTS = 1_440
MOST_TYPES = 10  # DescribeInstanceTypes
METRICS_LIMIT = Limit(50)
GPU_TYPES = ("ecs.gn7i-c8g1.2xlarge", "ecs.gn6i-c4g1.xlarge")
PLAIN_TYPES = ("ecs.g7.large", "ecs.c7.xlarge", "ecs.r7.2xlarge", "ecs.u1-c1m4.large")
GPU_METRICS = frozenset({"gpu_gpu_usedutilization", "gpu_power_readings_power_draw"})
HOST_METRICS = frozenset(
    {
        *("CPUUtilization", "IntranetInRate", "IntranetOutRate", "InternetInRate", "InternetOutRate"),
        *("DiskReadBPS", "DiskWriteBPS"),
    }
)
_PERIODS = {"60": 1, "3600": 60}  # of DescribeMetricList, in minutes

STARTED = fleet.NOW - timedelta(days=2)
_MINUTE_MS = 60_000
_FIRST_MS = int(STARTED.timestamp()) * 1000
_THERE = int((fleet.NOW - STARTED).total_seconds()) // 60  # minutes that are over
_ID, _PREFIX = b"@@@@", "i-bp"
_OF_ECS = ("DescribeInstances", "DescribeInstanceTypes", "DescribePrice", "DescribeRegions")


def native_id(number: int) -> str:
    """`i-bp` and 18 hexadecimal digits."""
    return f"{_PREFIX}{number:018x}"


class Alibaba:
    """`Cloud`: everything a scan asks of one account in one region."""

    content_type = "application/json;charset=utf-8"
    limits: Mapping[str, Limit] = {
        "DescribeMetricList": METRICS_LIMIT,
        "GetCallerIdentity": Limit(100),
        **dict.fromkeys(_OF_ECS, Limit(200, 60.0)),
    }

    def __init__(self, instances: int, gpu_every: int) -> None:
        self._gpu_every = gpu_every
        self._machines = [json.dumps(_machine(number, gpu_every)).encode() for number in range(instances)]
        self._points = {per_card: _points(per_card=per_card) for per_card in (False, True)}

    def operation(self, request: Request) -> str:
        """The action of the query."""
        return _form(request)["Action"]

    def throttled(self) -> tuple[int, bytes]:
        """As CloudMonitor and ECS say it."""
        return (
            400,
            b'{"RequestId":"r","Code":"Throttling.User","Message":"Request was denied due to user flow control."}',
        )

    def answer(self, request: Request) -> bytes:
        """Its answer, of the documented form."""
        form = _form(request)
        action = form["Action"]
        if action == "DescribeMetricList":
            return self._metric_list(form)
        if action == "DescribeInstances":
            return self._instances(form)
        return json.dumps({"RequestId": "r", **_FIXED[action](form)}).encode()

    def _instances(self, form: Mapping[str, str]) -> bytes:
        size = int(form.get("MaxResults", "10"))
        if size > PAGE:
            raise OverLimitError(size, "instances a page")
        machines = self._machines if "InstanceIds" not in form else self._by_id(json.loads(form["InstanceIds"]))
        first = int(form.get("NextToken", "0"))
        last = min(first + size, len(machines))
        token = str(last) if last < len(machines) else ""
        return b'{"RequestId":"r","TotalCount":%d,"NextToken":"%s","Instances":{"Instance":[%s]}}' % (
            len(machines),
            token.encode(),
            b",".join(machines[first:last]),
        )

    def _by_id(self, names: Sequence[str]) -> list[bytes]:
        """Those that there are, as ECS does: an unknown id is no error, and none asked for is none answered."""
        if len(names) > PAGE:
            raise OverLimitError(len(names), "ids a call")
        return [self._machines[number] for number in map(_number, names) if number < len(self._machines)]

    def _metric_list(self, form: Mapping[str, str]) -> bytes:
        asked = [each["instanceId"] for each in json.loads(form["Dimensions"])]
        length = int(form.get("Length", "1000"))
        if len(asked) > MOST_INSTANCES or length > MOST_POINTS or form["Period"] not in _PERIODS:
            raise OverLimitError(len(asked), "instances,", length, "points, one every", form["Period"], "s")
        metric = form["MetricName"]
        if metric not in GPU_METRICS | HOST_METRICS:
            raise OverLimitError("no metric", metric)
        # periods after StartTime up to EndTime
        step = _PERIODS[form["Period"]]
        begin = max(0, (int(form["StartTime"]) - _FIRST_MS) // (step * _MINUTE_MS) + 1)
        end = min(_THERE // step, (int(form["EndTime"]) - _FIRST_MS) // (step * _MINUTE_MS) + 1)
        series = [one for one in asked if metric in HOST_METRICS or self._has_card(one)]
        skip = int(form.get("NextToken", "0"))
        each = max(0, end - begin)
        points = b",".join(self._page(series, begin, each, skip, length, step, per_card=metric in GPU_METRICS))
        after = skip + length
        token = b',"NextToken":"%d"' % after if after < each * len(series) else b""
        period = form["Period"].encode()
        head = b'{"RequestId":"r","Code":"200","Success":true,"Period":"%s","Datapoints":"[' % period
        return head + points + b']"' + token + b"}"

    def _page(
        self, series: Sequence[str], begin: int, each: int, skip: int, length: int, step: int, *, per_card: bool
    ) -> Iterator[bytes]:
        """The points of one page, machine by machine, every `step` minutes; places and counts are in such steps."""
        last = min(skip + length, each * len(series))
        while skip < last:
            place, within = divmod(skip, each)
            count = min(each - within, last - skip)
            kind = self._points[per_card][_number(series[place]) % fleet.KINDS]
            first = (begin + within) * step
            yield b",".join(kind[first : first + count * step : step]).replace(_ID, series[place].encode())
            skip += count

    def _has_card(self, name: str) -> bool:
        return _number(name) % self._gpu_every == 0


def _number(name: str) -> int:
    return int(name.removeprefix(_PREFIX), 16)


def _form(request: Request) -> dict[str, str]:
    return dict(parse_qsl(urlsplit(request.path).query, keep_blank_values=True))


def _points(*, per_card: bool) -> list[list[bytes]]:
    """Every minute that is over, of each kind of history, as it stands within the text `Datapoints`."""
    card = '"gpuId":"0",' if per_card else ""
    found = []
    for kind in range(fleet.KINDS):
        minutes = []
        for minute in range(_THERE):
            most = fleet.maximum(kind, minute)
            point = (
                f'{{"timestamp":{_FIRST_MS + minute * _MINUTE_MS},"userId":"{ACCOUNT}","instanceId":"{_ID.decode()}",'
                f'{card}"Minimum":{most / 4},"Average":{most / 2},"Maximum":{most}}}'
            )
            minutes.append(point.replace('"', '\\"').encode())
        found.append(minutes)
    return found


def _types(form: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    asked = [value for name, value in form.items() if name.startswith("InstanceTypes.")]
    if len(asked) > MOST_TYPES:
        raise OverLimitError(len(asked), "types at once")
    for name in asked:
        yield {
            "InstanceTypeId": name,
            "InstanceTypeFamily": name.rpartition(".")[0],
            "InstanceCategory": "GPU-accelerated compute-optimized",
            "CpuCoreCount": 8,
            "MemorySize": 30.0,
            "GPUAmount": 1,
            "GPUSpec": "NVIDIA A10",
            "GPUMemorySize": 24.0,
        }


def _price(_: Mapping[str, str]) -> dict[str, Any]:
    amounts = {"OriginalPrice": 9.5, "DiscountPrice": 0.0, "TradePrice": 9.5}
    detail = {"Resource": "instanceType", **amounts}
    return {"PriceInfo": {"Price": {"Currency": "CNY", **amounts, "DetailInfos": {"DetailInfo": [detail]}}}}


def _machine(number: int, gpu_every: int) -> dict[str, Any]:
    """One machine, as full as ECS tells it."""
    has_card = number % gpu_every == 0
    kinds = GPU_TYPES if has_card else PLAIN_TYPES
    kind = kinds[number // (gpu_every if has_card else 1) % len(kinds)]
    name, address = native_id(number), f"10.{number // 65_536}.{number // 256 % 256}.{number % 256}"
    tags = {"team": f"team-{number % 12}", "env": "research", "cost-centre": str(number % 40)}
    started = f"{STARTED:%Y-%m-%dT%H:%MZ}"
    return {
        "InstanceId": name,
        "InstanceName": f"node-{number}",
        "HostName": f"node-{number}",
        "Description": "",
        "RegionId": REGION,
        "ZoneId": "cn-hangzhou-k",
        "ClusterId": "",
        "Status": "Running",
        "StoppedMode": "Not-applicable",
        "InstanceType": kind,
        "InstanceTypeFamily": kind.rpartition(".")[0],
        "Cpu": 8,
        "Memory": 30_720,
        "GPUAmount": int(has_card),
        "GPUSpec": "NVIDIA A10" if has_card else "",
        "InstanceChargeType": "PostPaid",
        "SpotStrategy": "NoSpot",
        "SpotPriceLimit": 0.0,
        "CreationTime": started,
        "StartTime": started,
        "ExpiredTime": "2099-12-31T15:59Z",
        "AutoReleaseTime": "",
        "SaleCycle": "",
        "DeletionProtection": False,
        "Recyclable": False,
        "DeviceAvailable": True,
        "IoOptimized": True,
        "ImageId": "ubuntu_22_04_x64_20G_alibase_20260119.vhd",
        "OSName": "Ubuntu 22.04 64位",
        "OSNameEn": "Ubuntu  22.04 64 bit",
        "OSType": "linux",
        "SerialNumber": name[2:],
        "KeyPairName": "",
        "CreditSpecification": "",
        "DeploymentSetId": "",
        "HpcClusterId": "",
        "VlanId": "",
        "ResourceGroupId": "",
        "InstanceNetworkType": "vpc",
        "InternetChargeType": "PayByTraffic",
        "InternetMaxBandwidthIn": 100,
        "InternetMaxBandwidthOut": 0,
        "PublicIpAddress": {"IpAddress": []},
        "InnerIpAddress": {"IpAddress": []},
        "EipAddress": {"IpAddress": "", "AllocationId": "", "InternetChargeType": ""},
        "VpcAttributes": {
            "VpcId": "vpc-1",
            "VSwitchId": "vsw-1",
            "NatIpAddress": "",
            "PrivateIpAddress": {"IpAddress": [address]},
        },
        "SecurityGroupIds": {"SecurityGroupId": ["sg-1"]},
        "NetworkInterfaces": {
            "NetworkInterface": [
                {
                    "NetworkInterfaceId": f"eni-{name[2:]}",
                    "PrimaryIpAddress": address,
                    "MacAddress": "00:16:3e:00:00:01",
                    "Type": "Primary",
                    "PrivateIpSets": {"PrivateIpSet": [{"PrivateIpAddress": address, "Primary": True}]},
                }
            ]
        },
        "RdmaIpAddress": "",
        "OperationLocks": {"LockReason": []},
        "Tags": {"Tag": [{"TagKey": key, "TagValue": value} for key, value in tags.items()]},
        "DedicatedHostAttribute": {"DedicatedHostId": "", "DedicatedHostName": "", "DedicatedHostClusterId": ""},
        "DedicatedInstanceAttribute": {"Affinity": "", "Tenancy": ""},
        "EcsCapacityReservationAttr": {"CapacityReservationId": "", "CapacityReservationPreference": ""},
        "MetadataOptions": {"HttpEndpoint": "", "HttpTokens": ""},
        "CpuOptions": {"CoreCount": 4, "ThreadsPerCore": 2, "Numa": ""},
        "HibernationOptions": {"Configured": False},
    }


_FIXED: Mapping[str, Callable[[Mapping[str, str]], dict[str, Any]]] = {
    "GetCallerIdentity": lambda _: {
        "AccountId": ACCOUNT,
        "Arn": f"acs:ram::{ACCOUNT}:user/scan",
        "IdentityType": "RAMUser",
    },
    "DescribeRegions": lambda _: {"Regions": {"Region": [{"RegionId": REGION, "Status": "available"}]}},
    "DescribeInstanceTypes": lambda form: {"InstanceTypes": {"InstanceType": list(_types(form))}},
    "DescribePrice": _price,
}


if __name__ == "__main__":
    serve(Alibaba, __doc__)
