"""How fast the scan reads AWS: requests, wall, CPU and memory, beside plain boto3 and beside the floor.

`python tests/benchmarks/scan_aws.py` from the repository's root; about six minutes. `--smoke` runs every
way once on 100 instances in a few seconds. No figure fails the run: README.md here says what is aimed at.
"""

from __future__ import annotations

import argparse
import http.client
import json
import math
import os
import platform
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.benchmarks import fleet, loopback_aws  # noqa: E402 - the root is not on the path of a script run by name

WAYS = ("costguard", "batched-quick", "batched", "loop")
ENVIRONMENT = {
    "PATH": os.environ.get("PATH", ""),
    "PYTHONPATH": str(ROOT),
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    "AWS_EC2_METADATA_DISABLED": "true",
}


@dataclass(frozen=True)
class Run:
    """One run of one way, as its own process and the stand-in saw it."""

    wall: float
    cpu: float
    peak: float
    asked: Mapping[str, int]


@dataclass(frozen=True)
class Floor:
    """The fewest requests that can carry the data: full calls and pages, nothing else."""

    data: int
    listing: int
    pages: int

    @property
    def requests(self) -> int:
        """All of them."""
        return self.data + self.listing + self.pages

    @classmethod
    def of(cls, instances: int) -> Floor:
        """Two statistics a series, an hour a point, the hour in progress included."""
        series = len(fleet.gpus(instances))
        hours = len(fleet.hours_between(fleet.NOW - fleet.LOOKBACK, fleet.NOW))
        calls = max(2 * series / loopback_aws.MOST_QUERIES, 2 * series * hours / loopback_aws.MOST_POINTS)
        return cls(math.ceil(calls), math.ceil(series / loopback_aws.LISTED), math.ceil(instances / loopback_aws.PAGE))


@contextmanager
def stand_in(instances: int) -> Iterator[int]:
    """The loopback cloud with this many instances; its port."""
    command = [sys.executable, "-m", "tests.benchmarks.loopback_aws", "--instances", str(instances)]
    with subprocess.Popen(  # noqa: S603 - our own module
        command, env=ENVIRONMENT, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        if process.stdin is None or process.stdout is None:
            raise RuntimeError("no pipes to the stand-in")
        try:
            yield int(process.stdout.readline())
        finally:
            process.stdin.close()
            process.wait(timeout=30)


def ask(port: int, path: str) -> dict[str, int]:
    """A word with the stand-in itself."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", path)
    told: dict[str, int] = json.loads(connection.getresponse().read())
    connection.close()
    return told


def run_once(way: str, port: int, instances: int) -> Run:
    """One process, measured by itself."""
    ask(port, "/counts")
    command = [sys.executable, "-m", "tests.benchmarks.scan_client", way, f"http://127.0.0.1:{port}"]
    done = subprocess.run(  # noqa: S603 - our own module
        command, env=ENVIRONMENT, cwd=ROOT, capture_output=True, text=True, check=False
    )
    if done.returncode:
        message = f"{way} failed:\n{done.stderr}"
        raise SystemExit(message)
    took: dict[str, Any] = json.loads(done.stdout)
    if took["measured"] != len(fleet.gpus(instances)):
        message = f"{way} measured {took['measured']} of {len(fleet.gpus(instances))} GPUs"
        raise SystemExit(message)
    return Run(took["wall_s"], took["cpu_s"], took["peak_mb"], ask(port, "/counts"))


def measure(instances: int, latencies: Sequence[int], repeats: int) -> None:
    """Every way at every latency, `repeats` times in turn; the least wall and CPU, the most memory.

    Other load on the machine only ever adds, so the least is the nearest to the truth.
    """
    floor = Floor.of(instances)
    print(
        f"\n### {instances:,} instances, {len(fleet.gpus(instances)):,} GPU series"
        f" — floor {floor.requests} requests: {floor.data} GetMetricData + {floor.listing} ListMetrics"
        f" + {floor.pages} DescribeInstances\n"
    )
    print("| latency | way | requests | ÷ floor | wall s | ÷ loop | CPU s | peak MB |")
    print("|---|---|---|---|---|---|---|---|")
    asked: Mapping[str, int] = {}
    with stand_in(instances) as port:
        for latency in latencies:
            ask(port, f"/latency?ms={latency}")
            runs: dict[str, list[Run]] = {way: [] for way in WAYS}
            for _ in range(repeats):
                for way in WAYS:
                    runs[way].append(run_once(way, port, instances))
            looped = min(run.wall for run in runs["loop"])
            for way in WAYS:
                requests = sum(runs[way][0].asked.values())
                wall = min(run.wall for run in runs[way])
                cpu = min(run.cpu for run in runs[way])
                peak = max(run.peak for run in runs[way])
                print(
                    f"| {latency} ms | {way} | {requests:,} | {requests / floor.requests:.2f} | {wall:.2f}"
                    f" | {wall / looped:.2f} | {cpu:.2f} | {peak:.0f} |"
                )
            asked = runs["costguard"][0].asked
    growing = {"DescribeInstances", "ListMetrics", "GetMetricData"}
    grown = sum(count for name, count in asked.items() if name in growing)
    fixed = {name: count for name, count in asked.items() if name not in growing}
    print(
        f"\ncostguard: {grown} requests that grow with the fleet ({grown / floor.requests:.2f} times the floor), and"
        f" {sum(fixed.values())} that do not: " + ", ".join(f"{name} {count}" for name, count in sorted(fixed.items()))
    )


def machine() -> str:
    """What the figures were taken on."""
    cpuinfo = Path("/proc/cpuinfo")
    models = [line for line in cpuinfo.read_text().splitlines() if "model name" in line] if cpuinfo.exists() else []
    model = models[0].partition(":")[2].strip() if models else platform.processor()
    packages = ", ".join(f"{name} {version(name)}" for name in ("boto3", "botocore", "urllib3"))
    system = f"{platform.system()} {platform.machine()}"
    return f"{os.cpu_count()} cores, {model}, {system}, Python {platform.python_version()}, {packages}"


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="100 instances, once, in seconds")
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000])
    parser.add_argument("--latencies", type=int, nargs="+", default=[0, 40], help="milliseconds")
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    print(f"{machine()}; load average before: {os.getloadavg()[0]:.1f}")
    if given.smoke:
        measure(100, [0], repeats=1)
        return
    for size in given.sizes:
        measure(size, given.latencies, given.repeats)
    print(f"\nload average after: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
