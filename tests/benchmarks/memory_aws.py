"""The stand-in of `loopback_aws.py` with what a whole run asks beyond a scan: machines by their ids, and their volumes.

`python -m tests.benchmarks.memory_aws --instances 2000 [--idle 300]` prints the port it listens on and serves until its
standard input closes. As EC2 does it answers with those that were asked for by id or filter, refuses an id that there
is not, more values in a filter than it takes, and a filter that is not known here. With `--idle` so many machines with
a GPU are idle and at least as many are busy; without, they are idle and busy by the place in a question, as in a scan.
What is asked in JSON and not known is answered with nothing found.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tests.benchmarks import fleet, loopback_aws

MOST_VALUES = 200  # in one filter
MOST_IDS = 1_000  # in one DescribeInstances
_JSON_KNOWN = frozenset({"ListMetrics", "GetProducts", "GetMetricData", "GetMetricStatistics"})
_EMPTY = {"LookupEvents": b'{"Events":[]}'}
_SETS = {
    "DescribeSnapshots": "<snapshotSet/>",
    "DescribeAddresses": "<addressesSet/>",
    "DescribeInstanceAttribute": "".join(
        f"<{name}><value>false</value></{name}>" for name in ("disableApiTermination", "disableApiStop")
    ),
}
_EC2 = "http://ec2.amazonaws.com/doc/2016-11-15/"
_QUERY = re.compile(
    rb'"Id": ?"([a-z]+)(\d+)", ?"MetricStat": ?\{"Metric": ?\{.*?"Name": ?"InstanceId", ?"Value": ?"i-([0-9a-f]+)"'
    rb'.*?"Stat": ?"(\w+)"'
)
_OF_ONE = re.compile(rb'"Name": ?"InstanceId", ?"Value": ?"i-([0-9a-f]+)"')
_OF_COUNTS = b"SampleCount"
_IDLE_KIND, _BUSY_KIND = 0, 3  # of `fleet.maximum`: zeros, and up to 99 %


@dataclass
class RunServer(loopback_aws.Server):
    """Knows machines by id, and volumes; `idle` None: whatever they are in a scan."""

    idle: int | None = None

    def xml(self, action: str, form: dict[str, list[str]]) -> bytes:
        """The answer of EC2 or STS; ValueError where the question is none that EC2 would answer."""
        if action == "DescribeInstances":
            return self._instances(form)
        if action == "DescribeVolumes":
            found = "".join(map(_volume, self._numbers(asked_for(form, "VolumeId", "attachment.instance-id"))))
            return _answer(action, f"<volumeSet>{found}</volumeSet>")
        if action == "DescribeInstanceAttribute":
            self._numbers([form["InstanceId"][0]])
        if action in self.answers.fixed:
            return super().xml(action, form)
        return _answer(action, _SETS.get(action, ""))

    def _instances(self, form: dict[str, list[str]]) -> bytes:
        if not any(name.startswith("InstanceId.") for name in form):
            return super().xml("DescribeInstances", form)
        numbers = self._numbers(asked_for(form, "InstanceId", "instance-id"))
        return fleet.instances_answer(numbers, gpu_every=self.answers.gpu_every).encode()

    def _numbers(self, native_ids: Sequence[str]) -> list[int]:
        """Of machines or volumes, which have the same digits in that fleet."""
        numbers = [int(native_id.rpartition("-")[2], 16) for native_id in native_ids]
        if unknown := [number for number in numbers if number >= self.answers.instances]:
            message = f"{len(unknown)} of these there are not"
            raise ValueError(message)
        return numbers

    def json(self, operation: str, body: bytes) -> bytes:
        """The answer of CloudWatch or the price list."""
        if operation not in _JSON_KNOWN:
            return _EMPTY.get(operation, b"{}")
        if self.idle is None or operation not in {"GetMetricData", "GetMetricStatistics"}:
            return super().json(operation, body)
        start, end = loopback_aws.times_in(body)
        if (start, end) not in self.answers.points:
            self.answers.prepare(start, end)
        if operation == "GetMetricStatistics":
            one = _OF_ONE.search(body)
            kind = self._kind(int(one[1], 16)) if one is not None else _BUSY_KIND
            return self.answers.statistics[start, end][kind]
        maxima, counts = self.answers.points[start, end]
        asked = _QUERY.findall(body)
        if len(asked) > loopback_aws.MOST_QUERIES or len(asked) != body.count(b'"MetricStat"'):
            message = f"{len(asked)} queries in one call, of {body.count(b'MetricStat')}"
            raise ValueError(message)
        found = b",".join(
            b'{"Id":"'
            + letter
            + place
            + b'",'
            + (counts if stat == _OF_COUNTS else maxima)[self._kind(int(number, 16))]
            for letter, place, number, stat in asked
        )
        return b'{"MetricDataResults":[' + found + b'],"Messages":[]}'

    def _kind(self, number: int) -> int:
        """Of machines with a GPU every second is idle, until there are `idle` of them."""
        place, rest = divmod(number, self.answers.gpu_every)
        idle = rest == 0 and place % 2 == 0 and place // 2 < (self.idle or 0)
        return _IDLE_KIND if idle else _BUSY_KIND


def gpu_every(instances: int, idle: int) -> int:
    """One machine in so many has a GPU: a tenth, or twice as many as are idle."""
    if 2 * idle > instances:
        message = f"{idle} idle machines and as many busy ones are more than {instances}"
        raise ValueError(message)
    return min(fleet.GPU_SHARE, instances // (2 * idle)) if idle else fleet.GPU_SHARE


def asked_for(form: dict[str, list[str]], parameter: str, filtered_by: str) -> list[str]:
    """The ids that a question names, by parameter or filter.

    Raises:
        ValueError: it names none, too many, or has another filter.
    """
    found = list(_numbered(form, parameter))
    if len(found) > MOST_IDS:
        message = f"{len(found)} ids in one call"
        raise ValueError(message)
    place = 1
    while name := form.get(f"Filter.{place}.Name"):
        values = list(_numbered(form, f"Filter.{place}.Value"))
        if name != [filtered_by] or len(values) > MOST_VALUES:
            message = f"a filter by {name} of {len(values)} values"
            raise ValueError(message)
        found += values
        place += 1
    if not found:
        message = f"no {parameter} asked for"
        raise ValueError(message)
    return found


def _numbered(form: dict[str, list[str]], name: str) -> Iterator[str]:
    """The values of `Name.1`, `Name.2` and so on."""
    place = 1
    while value := form.get(f"{name}.{place}"):
        yield value[0]
        place += 1


def _answer(action: str, found: str) -> bytes:
    return f'<{action}Response xmlns="{_EC2}"><requestId>r</requestId>{found}</{action}Response>'.encode()


def _volume(number: int) -> str:
    native_id, instance = f"vol-{number:017x}", fleet.native_id(number)
    return (
        f"<item><volumeId>{native_id}</volumeId><size>500</size><snapshotId/><status>in-use</status>"
        "<availabilityZone>us-east-1a</availabilityZone><createTime>2026-01-04T08:00:00.000Z</createTime>"
        f"<attachmentSet><item><volumeId>{native_id}</volumeId><instanceId>{instance}</instanceId>"
        "<device>/dev/xvda</device><status>attached</status><attachTime>2026-01-04T08:00:00.000Z</attachTime>"
        "<deleteOnTermination>true</deleteOnTermination></item></attachmentSet><volumeType>gp3</volumeType>"
        "<encrypted>true</encrypted></item>"
    )


async def _until_closed(server: RunServer) -> None:
    listener = await asyncio.start_server(server.serve, "127.0.0.1", 0, limit=2**24)
    print(listener.sockets[0].getsockname()[1], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    listener.close()


def main() -> None:
    """Serve a fleet of `--instances` until standard input closes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--instances", type=int, required=True)
    parser.add_argument("--idle", type=int)
    given = parser.parse_args()
    every = gpu_every(given.instances, given.idle or 0)
    asyncio.run(_until_closed(RunServer(loopback_aws.Answers(given.instances, every), idle=given.idle)))


if __name__ == "__main__":
    main()
