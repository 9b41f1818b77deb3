"""The stand-in of `loopback_aws.py` with what a whole run asks beyond a scan: the volumes of machines that are idle.

`python -m tests.benchmarks.memory_aws --instances 2000` prints the port it listens on and serves until its standard
input closes. The trail of launches and all that is asked in JSON elsewhere is answered with nothing found.
"""

from __future__ import annotations

import argparse
import asyncio
import sys

from tests.benchmarks import loopback_aws

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


class RunServer(loopback_aws.Server):
    """Knows volumes too."""

    def _xml(self, action: str, form: dict[str, list[str]]) -> bytes:
        if action != "DescribeVolumes":
            known = action == "DescribeInstances" or action in self.answers.fixed
            return super()._xml(action, form) if known else _nothing(action)
        asked = (value[0] for name, value in form.items() if name.startswith(("VolumeId.", "Filter.1.Value.")))
        found = "".join(_volume(native_id.rpartition("-")[2]) for native_id in asked)
        return (
            f'<DescribeVolumesResponse xmlns="{_EC2}"><requestId>r</requestId><volumeSet>{found}</volumeSet>'
            "</DescribeVolumesResponse>"
        ).encode()

    def _json(self, operation: str, body: bytes) -> bytes:
        return super()._json(operation, body) if operation in _JSON_KNOWN else _EMPTY.get(operation, b"{}")


def _nothing(action: str) -> bytes:
    """No snapshots, or whatever else was asked for."""
    found = _SETS.get(action, "")
    return f'<{action}Response xmlns="{_EC2}"><requestId>r</requestId>{found}</{action}Response>'.encode()


def _volume(number: str) -> str:
    """Machine and volume have the same digits in that fleet."""
    native_id, instance = f"vol-{number}", f"i-{number}"
    return (
        f"<item><volumeId>{native_id}</volumeId><size>500</size><snapshotId/><status>in-use</status>"
        "<availabilityZone>us-east-1a</availabilityZone><createTime>2026-01-04T08:00:00.000Z</createTime>"
        f"<attachmentSet><item><volumeId>{native_id}</volumeId><instanceId>{instance}</instanceId>"
        "<device>/dev/xvda</device><status>attached</status><attachTime>2026-01-04T08:00:00.000Z</attachTime>"
        "<deleteOnTermination>true</deleteOnTermination></item></attachmentSet><volumeType>gp3</volumeType>"
        "<encrypted>true</encrypted></item>"
    )


async def _until_closed(instances: int) -> None:
    server = RunServer(loopback_aws.Answers(instances))
    listener = await asyncio.start_server(server.serve, "127.0.0.1", 0, limit=2**24)
    print(listener.sockets[0].getsockname()[1], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    listener.close()


def main() -> None:
    """Serve a fleet of `--instances` until standard input closes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--instances", type=int, required=True)
    asyncio.run(_until_closed(parser.parse_args().instances))


if __name__ == "__main__":
    main()
