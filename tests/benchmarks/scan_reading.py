"""One measured run in a process of its own: reads a made-up fleet of one cloud, prints what it took as JSON.

`costguard`      what `costguard scan` does for one named region under the shipped rule: inventory, GPU, CPU and
                 network of the last 24 hours, what is shown beside them, prices, every machine judged.
`costguard-gpu`  the same under a rule that names the GPU alone: all the rest is only shown.
`loop`           the vendor's SDK alone, request after request: the pages of machines, then the points of each machine
                 with a GPU, which are counted and dropped.
Times begin after the imports. Peak memory is VmHWM, which begins anew with each exec.
"""

from __future__ import annotations

import argparse
import importlib
import json
import re
import resource
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.benchmarks import fleet, loopback_alibaba, loopback_tencent

from costguard.connections import Connections
from costguard.domain.findings import Verdict
from costguard.engine.run import scan as scanning
from costguard.planning.build import judge_all
from costguard.policy.model.policy import default_policy
from costguard.ports import Target
from costguard.settings import load_settings

WINDOW = timedelta(hours=24)
_ATTEMPTS = 20
_KEY = {"id": "AKIDbenchmark", "secret": "benchmark"}
_REGIONS = {"alibaba": loopback_alibaba.REGION, "tencent": loopback_tencent.REGION}


_IMPORTED = {  # by every way, so that nobody's time has it
    "alibaba": (
        "aliyunsdkcore.client",
        "aliyunsdkcore.request",
        "costguard.providers.alibaba.compute.source",
        "costguard.providers.alibaba.compute.metrics",
        "costguard.providers.alibaba.billing.prices",
    ),
    "tencent": (
        "tencentcloud.common.common_client",
        "costguard.providers.tencent.compute.source",
        "costguard.providers.tencent.compute.metrics",
        "costguard.providers.tencent.billing.prices",
    ),
}


class FixedClock:
    """The fleet's own present."""

    def now(self) -> datetime:
        """Always the same moment."""
        return fleet.NOW

    def sleep(self, seconds: float) -> None:
        """Nobody waits in a scan."""


def costguard(cloud: str, url: str, *, gpu_alone: bool = False) -> int:
    """How many machines were read, measured and judged."""
    settings = load_settings(
        {
            f"COSTGUARD_{cloud.upper()}_ENDPOINT": url,
            "COSTGUARD_PACE": "vendor",
            "ALIBABA_CLOUD_ACCESS_KEY_ID": _KEY["id"],
            "ALIBABA_CLOUD_ACCESS_KEY_SECRET": _KEY["secret"],
            "TENCENTCLOUD_SECRETID": _KEY["id"],
            "TENCENTCLOUD_SECRETKEY": _KEY["secret"],
        }
    )
    policy = default_policy()
    if gpu_alone:
        rule = policy.idle_gpu[0]
        idle = replace(rule.idle, cpu_max_below_percent=None, network_max_below_bytes_per_second=None)
        policy = replace(policy, idle_gpu=(replace(rule, idle=idle),))
    target = Target(cloud=cloud, regions=(_REGIONS[cloud],))
    clock = FixedClock()
    with Connections(settings, policy, clock) as connections:
        connections.open([target])
        seen = scanning.scan(connections.readings, [target], policy.idle_gpu, clock)
    gaps = [*seen.gaps, *(gap for shard in seen.facts for gap in shard.gaps)]
    if gaps:
        raise RuntimeError(gaps[0].detail)
    if any(fact.rate is None for shard in seen.facts for fact in shard.instances):
        raise RuntimeError("a machine without a price")
    return sum(finding.verdict is not Verdict.UNMEASURED for finding in judge_all(policy, seen.facts, fleet.NOW))


def loop_alibaba(url: str) -> int:
    """With one client, as the SDK's own examples do."""
    from aliyunsdkcore.client import AcsClient
    from aliyunsdkcore.request import CommonRequest

    client = AcsClient(_KEY["id"], _KEY["secret"], loopback_alibaba.REGION)

    def ask(version: str, action: str, **parameters: str) -> dict[str, Any]:
        request = CommonRequest(version=version, action_name=action)
        request.set_domain(url)
        request.set_method("POST")
        for name, value in parameters.items():
            request.add_query_param(name, value)
        found: dict[str, Any] = json.loads(client.do_action_with_exception(request))
        return found

    machines: list[str] = []
    more: dict[str, str] = {}
    while more or not machines:
        answer = ask("2014-05-26", "DescribeInstances", MaxResults="100", **more)
        machines += [each["InstanceId"] for each in answer["Instances"]["Instance"] if each["GPUAmount"]]
        more = {"NextToken": answer["NextToken"]} if answer["NextToken"] else {}
    measured = 0
    for machine in machines:
        points = 0
        more = {}
        while True:
            answer = ask(
                "2019-01-01",
                "DescribeMetricList",
                Namespace="acs_ecs_dashboard",
                MetricName="gpu_gpu_usedutilization",
                Dimensions=json.dumps([{"instanceId": machine}]),
                StartTime=str(int((fleet.NOW - WINDOW).timestamp()) * 1000 - 1),
                EndTime=str(int(fleet.NOW.timestamp()) * 1000 - 1),
                Period="60",
                Length="1440",
                **more,
            )
            points += len(json.loads(answer["Datapoints"]))
            if "NextToken" not in answer:
                break
            more = {"NextToken": answer["NextToken"]}
        measured += points > 0
    return measured


def loop_tencent(url: str) -> int:
    """With one client for each product, as the SDK's own examples do."""
    from tencentcloud.common.common_client import CommonClient
    from tencentcloud.common.credential import Credential
    from tencentcloud.common.profile.client_profile import ClientProfile
    from tencentcloud.common.profile.http_profile import HttpProfile

    profile = ClientProfile(httpProfile=HttpProfile(protocol="http", endpoint=urlsplit(url).netloc))
    key = Credential(_KEY["id"], _KEY["secret"])
    cvm = CommonClient("cvm", "2017-03-12", key, loopback_tencent.REGION, profile=profile)
    monitor = CommonClient("monitor", "2018-07-24", key, loopback_tencent.REGION, profile=profile)
    machines: list[str] = []
    seen, total = 0, 1
    while seen < total:
        answer = cvm.call_json("DescribeInstances", {"Offset": seen, "Limit": 100})["Response"]
        machines += [each["InstanceId"] for each in answer["InstanceSet"] if "GPUInfo" in each]
        seen, total = seen + len(answer["InstanceSet"]), answer["TotalCount"]
    measured = 0
    for machine in machines:
        question = {
            "Namespace": "QCE/CVM",
            "MetricName": "GpuUtil",
            "Period": 60,
            "StartTime": (fleet.NOW - WINDOW).isoformat(),
            "EndTime": (fleet.NOW - timedelta(minutes=1)).isoformat(),
            "Instances": [{"Dimensions": [{"Name": "InstanceId", "Value": machine}]}],
        }
        answer = _asked_again(partial(monitor.call_json, "GetMonitorData", question))["Response"]
        measured += len(answer["DataPoints"][0]["Values"]) > 0
    return measured


def _asked_again(ask: Callable[[], Any]) -> Any:
    """What a script does about a limit of rate: wait, ask again. The SDK's own retryer asks again after success too."""
    from tencentcloud.common.exception import TencentCloudSDKException

    for _ in range(_ATTEMPTS):
        try:
            return ask()
        except TencentCloudSDKException as err:
            if err.get_code() != "RequestLimitExceeded":
                raise
            time.sleep(0.1)
    return ask()


LOOPS: Mapping[str, Callable[[str], int]] = {"alibaba": loop_alibaba, "tencent": loop_tencent}
WAYS: Mapping[str, Callable[[str, str], int]] = {
    "costguard": costguard,
    "costguard-gpu": lambda cloud, url: costguard(cloud, url, gpu_alone=True),
    "loop": lambda cloud, url: LOOPS[cloud](url),
}


def main() -> None:
    """Run one way once."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cloud", choices=sorted(LOOPS))
    parser.add_argument("way", choices=sorted(WAYS))
    parser.add_argument("url")
    given = parser.parse_args()
    for name in _IMPORTED[given.cloud]:
        importlib.import_module(name)
    before, began = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    measured = WAYS[given.way](given.cloud, given.url)
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_SELF)
    status = Path("/proc/self/status").read_text(encoding="ascii")
    peak = re.search(r"VmHWM:\s+(\d+) kB", status)
    took = {
        "measured": measured,
        "wall_s": wall,
        "cpu_s": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        "peak_mb": int(peak[1]) / 1024 if peak else 0.0,
    }
    json.dump(took, sys.stdout)


if __name__ == "__main__":
    main()
