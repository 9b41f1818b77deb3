"""`costguard plan` beside Cloud Custodian and a bare batched loop: one fleet, one stand-in, one run, in turn.

python -m venv DIR && DIR/bin/pip install -r tests/benchmarks/beside_custodian.txt
python tests/benchmarks/beside_custodian.py --custodian DIR/bin/custodian [--instances N] [--idle N] [--latency MS …]

Each is a process from its start to its end, and fails the run where it does not find as many idle machines as there
are. Custodian is asked by its documented command line, `custodian run --dryrun`, with its cache off, for machines with
a GPU whose card stayed below 5 % for a day: it looks at no disks, copies, addresses or prices, and asks for one point a
day of each card where a plan asks for 25 of up to eight metrics. Without `--custodian`, and where no `custodian` is
found, that is said, and plan and loop are compared alone.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.benchmarks import fleet, plan  # noqa: E402 - the root is not on the path of a script
from tests.benchmarks.measuring import machine  # noqa: E402

_NAME = "idle-gpu"
POLICY = f"""\
policies:
  - name: {_NAME}
    resource: aws.ec2
    filters:
      - {{type: value, key: InstanceType, op: in, value: [{", ".join(fleet.GPU_TYPES)}]}}
      - {{type: metrics, name: {fleet.METRIC}, namespace: {fleet.NAMESPACE}, days: 1, period: 86400,
         statistics: Maximum, op: less-than, value: 5}}
"""
_MISSING = (
    "Cloud Custodian is not here, so it is not compared with: install tests/benchmarks/beside_custodian.txt in an"
    " environment of its own, and say --custodian DIR/bin/custodian\n"
)


def custodian(program: str, setting: plan.Setting, port: int, folder: Path) -> plan.Run:
    """`custodian run --dryrun`, whose answer has to be right as well."""
    policy, out = folder / "custodian.yaml", folder / "custodian"
    policy.write_text(POLICY, "utf-8")
    command = [program, "run", "--dryrun", "--cache-period", "0", "-r", fleet.REGION, "-s", str(out), str(policy)]
    environ = {**plan.environment(port, paced=False), "PYTHONPATH": "", "HOME": str(folder)}
    run, status, _ = plan.timed(command, environ, port, folder)
    found = json.loads((out / _NAME / "resources.json").read_bytes()) if status == 0 else []
    if len(found) != setting.idle:
        message = f"custodian ended with {status} and found {len(found)} of {setting.idle}"
        raise SystemExit(message)
    return run


def measure(setting: plan.Setting, program: str | None, repeats: int) -> Mapping[str, plan.Run]:
    """Every way `repeats` times in turn; of each the run with the least wall, and the most memory of all."""
    ways: dict[str, Callable[[plan.Setting, int, Path], plan.Run]] = {
        "costguard plan": plan.planned,
        "bare loop": plan.looped,
    }
    if program is not None:
        ways["custodian"] = lambda asked, port, folder: custodian(program, asked, port, folder)
    runs: dict[str, list[plan.Run]] = {way: [] for way in ways}
    text, _ = plan.DUE[setting.due]
    with tempfile.TemporaryDirectory() as name, plan.stand_in(setting.instances, setting.idle) as port:
        folder = Path(name)
        (folder / "policy.yaml").write_text(text % (fleet.ACCOUNT, fleet.REGION), "utf-8")
        plan.ask(port, f"/latency?ms={setting.latency}")
        for _ in range(repeats):
            for way, run in ways.items():
                runs[way].append(run(setting, port, folder))
    return {way: plan.best(some) for way, some in runs.items()}


def rows(setting: plan.Setting, program: str | None, repeats: int) -> str:
    """The rows of one distance."""
    runs, floor = measure(setting, program, repeats), sum(plan.floor_of(setting).values())
    beside = runs.get("custodian")
    return "\n".join(
        f"| {setting.latency:.0f} ms | {way} | {run.requests} | {floor} | {run.wall:.2f} |"
        f" {'–' if beside is None else f'{run.wall / beside.wall:.2f}'} | {run.wall / runs['bare loop'].wall:.2f} |"
        f" {run.cpu:.2f} | {run.peak:.0f} |"
        for way, run in runs.items()
    )


def version_of(program: str) -> str:
    """What it calls itself."""
    return subprocess.run([program, "version"], capture_output=True, text=True, check=True).stdout.strip()  # noqa: S603


def main(arguments: Sequence[str] | None = None) -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="100 instances, once, in seconds")
    parser.add_argument("--custodian", metavar="PROGRAM", default=shutil.which("custodian"))
    parser.add_argument("--instances", type=int, default=2_000, metavar="N")
    parser.add_argument("--idle", type=int, default=300, metavar="N")
    parser.add_argument("--latency", type=float, nargs="+", default=[0, 40], metavar="MS")
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args(arguments)
    if given.smoke:
        given.instances, given.idle, given.latency, given.repeats = 100, 12, [1], 1
    known = "" if given.custodian is None else f", Cloud Custodian {version_of(given.custodian)}"
    print(f"{machine('boto3')}{known}; load average before: {os.getloadavg()[0]:.1f}")
    print(f"{given.instances:,} instances, {given.idle} of them with an idle GPU\n")
    if given.custodian is None:
        print(_MISSING)
    names = "latency", "way", "requests", "floor", "wall s", "÷ custodian", "÷ loop", "CPU s", "peak MB"
    print(f"| {' | '.join(names)} |\n|{'---|' * len(names)}")
    for latency in given.latency:
        setting = plan.Setting(given.instances, given.idle, latency, "warnings", paced=False)
        print(rows(setting, given.custodian, given.repeats), flush=True)
    print(f"\nload average after: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
