"""What a whole run takes in memory: `idle_gpu` from its built bundle over 2,000 instances, in its own process.

`python tests/benchmarks/memory_run.py --bundle bundles/lambda/idle_gpu.zip` from the root, with a bundle that was built
with `--ledger sql` for the Python that runs this. Lambda's own runtime client starts it, AWS is the stand-in that
scan_aws.py reads, the ledger is in memory (so that its records count too), and Linux tells the most that the process
held (VmHWM). The run fails where instances were not all seen; no figure fails it.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.benchmarks.cold_start_hosts import environment
from tests.benchmarks.measuring import machine
from tests.runtime_api import SmallLambda

ROOT = Path(__file__).resolve().parents[2]

AIM_MIB = 256
MEASURED = '''"""The function, and what its process held at most."""

import pathlib

import handler as shipped


def handler(event, context):
    told = shipped.handler(event, context)
    status = pathlib.Path("/proc/self/status").read_text()
    told["peak_kib"] = int(status.partition("VmHWM:")[2].split()[0])
    return told
'''


@contextmanager
def stand_in(instances: int) -> Iterator[int]:
    """AWS with this many instances; its port."""
    command = [sys.executable, "-m", "tests.benchmarks.memory_aws", "--instances", str(instances)]
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


def measure(bundle: Path, instances: int) -> None:
    """One run in a new process."""
    event = json.loads((ROOT / "events/lambda/idle_gpu.json").read_bytes())
    with tempfile.TemporaryDirectory() as name, stand_in(instances) as port:
        folder = Path(name) / "bundle"
        with zipfile.ZipFile(bundle) as archive:
            archive.extractall(folder)
        (folder / "measured.py").write_text(MEASURED, "utf-8")
        log = Path(name) / "log"
        given = environment("lambda", port, Path(name), {"COSTGUARD_LEDGER": "memory:"})
        with SmallLambda(folder, "measured.handler", log, given) as function:
            told = function.invoke(event)
            if told.kind != "response" or told.body["instances_seen"] != instances:
                message = f"{told.kind}: {told.body}\n{function.log_text()[-3000:]}"
                raise SystemExit(message)
            unread = [line["detail"] for line in function.log_lines() if line.get("message") == "could not be read"]
    peak = told.body["peak_kib"] / 1024
    print(f"{instances:,} instances seen, gaps {told.body['gaps']}, findings {told.body['findings']}")
    print("".join(f"not read: {detail}\n" for detail in unread), end="")
    print(f"peak memory of the function's process: {peak:.0f} MiB (aim: under {AIM_MIB})")


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bundle", type=Path, required=True, metavar="ZIP")
    parser.add_argument("--instances", type=int, nargs="+", default=[2_000])
    given = parser.parse_args()
    print(f"{machine('boto3')}; load average before: {os.getloadavg()[0]:.1f}")
    for instances in given.instances:
        measure(given.bundle, instances)


if __name__ == "__main__":
    main()
