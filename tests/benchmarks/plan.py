"""What `costguard plan` takes as users run it, a process from its start to its end, beside a bare batched loop.

python tests/benchmarks/plan.py [--smoke] [--instances N] [--idle N] [--latency MS] [--rates vendor] [--due stops]

AWS is the stand-in of `memory_aws.py`: so many machines, of which so many with a GPU are idle and at least as many are
busy. `--due warnings` is a rule that warns, over an empty ledger; `--due stops` one that stops, over a ledger in which
everybody was told a day ago. `--rates vendor` asks no faster than the product asks AWS itself. The loop is boto3 alone,
in full batches, one request after another, for the same machines, GPU hours, disks, copies and addresses; it starts
anew as well. A plan in which not as many machines are due as are idle, or that could not read something, fails the run.
"""

from __future__ import annotations

import argparse
import http.client
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.benchmarks import fleet, loopback_aws, memory_aws  # noqa: E402 - the root is not on the path of a script
from tests.benchmarks.measuring import machine  # noqa: E402

WARNS = """\
version: 1
mode: warn
notify: {default: "slack:#gpu"}
accounts: [{cloud: aws, id: "%s", regions: [%s]}]
idle_gpu:
  - name: research
    idle_when_all: {lasting: 24h, every_gpu_max_below: 5%%}
    then: [warn]
"""
STOPS = """\
version: 1
mode: enforce
notify: {default: "slack:#gpu", messages_per_day: 1000}
accounts: [{cloud: aws, id: "%s", regions: [%s]}]
idle_gpu:
  - name: research
    idle_when_all: {lasting: 24h, every_gpu_max_below: 5%%}
    then: [warn, {stop: {wait: 24h}}]
    safety: {actions_per_day: 100000, fleet_share_per_day: 100%%, hourly_cost_stopped_per_day: [1000000 USD],
             local_disk: lose, scarce: stop}
"""
DUE = {"warnings": (WARNS, "warn"), "stops": (STOPS, "stop")}
_DUE_STATUS = 10


@dataclass(frozen=True)
class Setting:
    """What is measured: the fleet, the distance in milliseconds, and what is due."""

    instances: int
    idle: int
    latency: float
    due: str
    paced: bool

    @property
    def gpus(self) -> int:
        """Machines with a GPU."""
        return len(fleet.gpus(self.instances, memory_aws.gpu_every(self.instances, self.idle)))


@dataclass(frozen=True)
class Run:
    """One process from its start to its end."""

    wall: float
    cpu: float
    peak: float
    asked: Mapping[str, int]

    @property
    def requests(self) -> int:
        """All of them."""
        return sum(self.asked.values())


def floor_of(setting: Setting) -> dict[str, int]:
    """The fewest requests that carry what a plan rests on: full pages and batches, nothing else.

    Two statistics an hour of each GPU; machines by page, and the idle ones by id; disks, copies and addresses by 200.
    """
    by_filter = math.ceil(setting.idle / memory_aws.MOST_VALUES)
    return {
        "DescribeInstances": math.ceil(setting.instances / loopback_aws.PAGE)
        + math.ceil(setting.idle / memory_aws.MOST_IDS),
        "ListMetrics": math.ceil(setting.gpus / loopback_aws.LISTED),
        "GetMetricData": math.ceil(2 * setting.gpus / loopback_aws.MOST_QUERIES),
        "DescribeVolumes": by_filter,
        "DescribeSnapshots": by_filter,
        "DescribeAddresses": by_filter,
    }


def environment(port: int, *, paced: bool) -> dict[str, str]:
    """Nothing of the surroundings of whoever runs this."""
    return {
        "PATH": os.environ.get("PATH", ""),
        "PYTHONPATH": str(ROOT),
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_DEFAULT_REGION": fleet.REGION,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
        **({"COSTGUARD_PACE": "vendor"} if paced else {}),
    }


@contextmanager
def stand_in(instances: int, idle: int) -> Iterator[int]:
    """AWS with this fleet; its port."""
    command = [sys.executable, "-m", "tests.benchmarks.memory_aws", "--instances", str(instances), "--idle", str(idle)]
    with subprocess.Popen(  # noqa: S603 - our own module
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
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


def timed(command: Sequence[str], environ: Mapping[str, str], port: int, folder: Path) -> tuple[Run, int, bytes]:
    """One process, with its exit status and what it wrote; memory and CPU are what the kernel counted for it."""
    ask(port, "/counts")
    written = folder / "written"
    begun = time.perf_counter()
    with written.open("wb") as out:
        process = subprocess.Popen(command, env=dict(environ), cwd=ROOT, stdout=out)  # noqa: S603 - our own command
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)  # else it would be waited for again
    wall = time.perf_counter() - begun
    run = Run(wall, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, ask(port, "/counts"))
    return run, process.returncode, written.read_bytes()


def planned(setting: Setting, port: int, folder: Path) -> Run:
    """`costguard plan`, whose answer has to be right."""
    policy, ledger = folder / "policy.yaml", folder / "ledger.sqlite3"
    command = [str(Path(sys.executable).parent / "costguard"), "plan", "--policy", str(policy), "--json"]
    environ = environment(port, paced=setting.paced) | {"COSTGUARD_LEDGER": f"sqlite:///{ledger}"}
    run, status, written = timed(command, environ, port, folder)
    told = json.loads(written or b"{}")
    verbs = [action["verb"] for action in told.get("due", ())]
    if (status, verbs, told.get("gaps")) != (_DUE_STATUS, [DUE[setting.due][1]] * setting.idle, []):
        message = f"status {status}, due {len(verbs)} of {setting.idle}, gaps {told.get('gaps')}"
        raise SystemExit(message)
    return run


def looped(setting: Setting, port: int, folder: Path) -> Run:
    """The bare batched loop."""
    command = [sys.executable, "-m", "tests.benchmarks.plan_loop"]
    run, status, written = timed(command, environment(port, paced=False), port, folder)
    if status or int(written) != setting.idle:
        message = f"the loop ended with {status} and found {written!r} of {setting.idle}"
        raise SystemExit(message)
    return run


def measure(setting: Setting, repeats: int) -> tuple[Run, Run]:
    """Plan and loop in turn; of each the run with the least wall, and the most memory of all."""
    text, _ = DUE[setting.due]
    with tempfile.TemporaryDirectory() as name, stand_in(setting.instances, setting.idle) as port:
        folder = Path(name)
        (folder / "policy.yaml").write_text(text % (fleet.ACCOUNT, fleet.REGION), "utf-8")
        if setting.due == "stops":
            told_a_day_ago(port, folder)
        ask(port, f"/latency?ms={setting.latency}")
        runs = [(planned(setting, port, folder), looped(setting, port, folder)) for _ in range(repeats)]
    plans, loops = zip(*runs, strict=True)
    return best(plans), best(loops)


def best(runs: Sequence[Run]) -> Run:
    """Other load on the machine only ever adds, so the least is the nearest to the truth."""
    least = min(runs, key=lambda run: run.wall)
    return Run(least.wall, min(run.cpu for run in runs), max(run.peak for run in runs), least.asked)


def told_a_day_ago(port: int, folder: Path) -> None:
    """A ledger in which the owners of all idle machines were told, by a run of yesterday."""
    command = [sys.executable, "-m", "tests.benchmarks.plan_told", str(folder / "policy.yaml")]
    environ = environment(port, paced=False) | {"COSTGUARD_LEDGER": f"sqlite:///{folder / 'ledger.sqlite3'}"}
    subprocess.run(command, env=environ, cwd=ROOT, check=True)  # noqa: S603 - our own module


def row(setting: Setting, repeats: int) -> str:
    """A row of the table, and what was asked."""
    plan, loop = measure(setting, repeats)
    floor = floor_of(setting)
    pace = "vendor's" if setting.paced else "none"
    asked = ", ".join(f"{name} {count}" for name, count in sorted(plan.asked.items()))
    least = ", ".join(f"{name} {count}" for name, count in floor.items())
    return (
        f"| {setting.instances:,} | {setting.gpus:,} | {setting.idle} {setting.due} | {setting.latency:.0f} ms | {pace}"
        f" | {plan.requests} | {sum(floor.values())} | {plan.wall:.2f} | {loop.wall:.2f} | {plan.wall / loop.wall:.2f}"
        f" | {plan.cpu:.2f} | {plan.peak:.0f} |\n\nasked: {asked}\nfloor: {least}\nloop: {loop.requests} requests,"
        f" {loop.cpu:.2f} s CPU, {loop.peak:.0f} MB\n"
    )


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="100 instances, once, in seconds")
    parser.add_argument("--instances", type=int, default=2_000, metavar="N")
    parser.add_argument("--idle", type=int, default=300, metavar="N")
    parser.add_argument("--latency", type=float, default=40, metavar="MS")
    parser.add_argument("--rates", choices=("none", "vendor"), default="none")
    parser.add_argument("--due", choices=tuple(DUE), default="warnings")
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    print(f"{machine('boto3')}; load average before: {os.getloadavg()[0]:.1f}\n")
    names = "instances", "GPUs", "due", "latency", "pace", "requests", "floor", "plan s", "loop s", "÷ loop", "CPU s"
    print(f"| {' | '.join(names)} | peak MB |\n|{'---|' * (len(names) + 1)}")
    if given.smoke:
        for due in DUE:
            print(row(Setting(100, 12, 1, due, paced=True), repeats=1))
        return
    paced = given.rates == "vendor"
    print(row(Setting(given.instances, given.idle, given.latency, given.due, paced), given.repeats))
    print(f"load average after: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
