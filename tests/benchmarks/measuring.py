"""Starts a stand-in and the runs against it, and prints what they took beside what they can take at least."""

from __future__ import annotations

import argparse
import http.client
import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
_ENVIRONMENT = {"PATH": os.environ.get("PATH", ""), "PYTHONPATH": str(ROOT)}
_PAGES = "DescribeInstances"  # by this name in both clouds
_EVERY_SIGNAL = "costguard"
WAYS = (_EVERY_SIGNAL, "costguard-gpu", "loop")


@dataclass(frozen=True)
class Least:
    """What no scan can do without: pages of instances, calls for points, and the seconds that limits make of them.

    `told` says how.
    """

    pages: int
    calls: int
    seconds: float
    told: str

    @property
    def requests(self) -> int:
        """The floor."""
        return self.pages + self.calls


@dataclass(frozen=True)
class Fleet:
    """Instances in all, of which every `gpu_every`th has a GPU; the distance in seconds."""

    instances: int
    gpu_every: int
    latency: float

    @property
    def gpus(self) -> int:
        """How many have one."""
        return -(-self.instances // self.gpu_every)


@dataclass(frozen=True)
class Subject:
    """One cloud to be measured: what asks for points, and `least` of a fleet, with every signal or the GPUs' alone."""

    cloud: str
    sdk: str
    points: str
    least: Callable[[Fleet, bool], Least]


@dataclass(frozen=True)
class Run:
    """One run of one way, as its own process and the stand-in saw it."""

    wall: float
    cpu: float
    peak: float
    asked: Mapping[str, int]
    throttled: int
    busiest: Mapping[str, int]
    served_cpu: float


@contextmanager
def stand_in(cloud: str, fleet: Fleet) -> Iterator[int]:
    """The loopback cloud with this fleet; its port."""
    sizes = ["--instances", str(fleet.instances), "--gpu-every", str(fleet.gpu_every)]
    command = [sys.executable, "-m", f"tests.benchmarks.loopback_{cloud}", *sizes]
    with subprocess.Popen(  # noqa: S603 - our own module
        command, env=_ENVIRONMENT, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        if process.stdin is None or process.stdout is None:
            raise RuntimeError("no pipes to the stand-in")
        try:
            port = int(process.stdout.readline())
            _ask(port, f"/latency?ms={fleet.latency * 1000}")
            yield port
        finally:
            process.stdin.close()
            process.wait(timeout=30)


def _ask(port: int, path: str) -> dict[str, Any]:
    """A word with the stand-in itself."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", path)
    told: dict[str, Any] = json.loads(connection.getresponse().read())
    connection.close()
    return told


def run_once(cloud: str, way: str, port: int, fleet: Fleet) -> Run:
    """One process, measured by itself."""
    before = _ask(port, "/tally")["cpu_s"]
    command = [sys.executable, "-m", "tests.benchmarks.scan_reading", cloud, way, f"http://127.0.0.1:{port}"]
    done = subprocess.run(  # noqa: S603 - our own module
        command, env=_ENVIRONMENT, cwd=ROOT, capture_output=True, text=True, check=False
    )
    tally = _ask(port, "/tally")
    took: dict[str, Any] = json.loads(done.stdout) if done.returncode == 0 else {}
    if took.get("measured") != fleet.gpus or tally["over_limit"]:
        message = f"{way} measured {took.get('measured')} of {fleet.gpus} machines; {tally}\n{done.stderr}"
        raise SystemExit(message)
    return Run(
        took["wall_s"],
        took["cpu_s"],
        took["peak_mb"],
        tally["asked"],
        sum(tally["throttled"].values()),
        tally["busiest"],
        tally["cpu_s"] - before,
    )


def measure(subject: Subject, fleet: Fleet, ways: Sequence[str], repeats: int) -> None:
    """Every way `repeats` times in turn: the run with the least wall, the most memory, and throttles of all runs."""
    print(
        f"\n### {fleet.instances:,} instances, {fleet.gpus:,} with a GPU, {fleet.latency * 1000:.0f} ms away"
        f" (load average {os.getloadavg()[0]:.1f})\n"
    )
    print("| way | requests | ÷ floor | wall s | ÷ limits | CPU s | peak MB | most a second | throttled |")
    print("|---|---|---|---|---|---|---|---|---|")
    remarks = []
    with stand_in(subject.cloud, fleet) as port:
        runs: dict[str, list[Run]] = {way: [] for way in ways}
        for _ in range(repeats):
            for way in ways:
                runs[way].append(run_once(subject.cloud, way, port, fleet))
    for way in ways:
        least = subject.least(fleet, way == _EVERY_SIGNAL)
        best = min(runs[way], key=lambda run: run.wall)
        requests = sum(best.asked.values())
        print(
            f"| {way} | {requests:,} | {requests / least.requests:.2f} | {best.wall:.2f}"
            f" | {best.wall / least.seconds:.2f} | {best.cpu:.2f} | {max(run.peak for run in runs[way]):.0f}"
            f" | {best.busiest[subject.points]}"
            f" | {sum(run.throttled for run in runs[way])} |"
        )
        if way == "loop":
            continue
        fixed = {name: count for name, count in sorted(best.asked.items()) if name not in {subject.points, _PAGES}}
        remarks.append(
            f"\n{way}: floor {least.requests:,} = {least.pages:,} pages + {least.calls:,} calls for points;"
            f" limits {least.seconds:.2f} s = {least.told}; {requests - sum(fixed.values()):,} requests grow with the"
            f" fleet, {sum(fixed.values())} do not: "
            + ", ".join(f"{name} {count}" for name, count in fixed.items())
            + f"; the stand-in worked {best.served_cpu:.2f} s"
        )
    print("".join(remarks))


def machine(sdk: str) -> str:
    """What the figures were taken on."""
    cpuinfo = Path("/proc/cpuinfo")
    models = [line for line in cpuinfo.read_text().splitlines() if "model name" in line] if cpuinfo.exists() else []
    model = models[0].partition(":")[2].strip() if models else platform.processor()
    system = f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"
    return f"{os.cpu_count()} cores, {model}, {system}, {sdk} {version(sdk)}"


def main(subject: Subject, description: str | None) -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="100 instances, once, in seconds")
    parser.add_argument("--instances", type=int, nargs="+", default=[1_000, 10_000], metavar="N")
    parser.add_argument("--gpu-every", type=int, default=10, metavar="N", help="one in so many has a GPU; 1: all")
    parser.add_argument("--latency", type=float, default=40, metavar="MS")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=WAYS)
    given = parser.parse_args()
    print(f"{machine(subject.sdk)}; load average before: {os.getloadavg()[0]:.1f}")
    if given.smoke:
        measure(subject, Fleet(100, 10, 0.005), WAYS, repeats=1)
        return
    for instances in given.instances:
        measure(subject, Fleet(instances, given.gpu_every, given.latency / 1000), given.ways, given.repeats)
    print(f"\nload average after: {os.getloadavg()[0]:.1f}")
