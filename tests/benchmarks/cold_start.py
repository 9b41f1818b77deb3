"""From process start to the first cloud request: a command beside an empty boto3 EC2 script.

`python tests/benchmarks/cold_start.py -- costguard scan` from the repository's root. Both are started in
turn, with AWS_ENDPOINT_URL set to a listener on loopback; the clock stops when the first byte of a request
arrives, and the process is ended. No figure fails the run; a command that never asks does.

`python tests/benchmarks/cold_start.py --bundle bundles/lambda/idle_gpu.zip --host lambda` measures a bundle by its
host's runtime beside an empty boto3 handler (see cold_start_hosts.py). Run it by the Python the bundle was built for.
"""

from __future__ import annotations

import argparse
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.benchmarks import cold_start_hosts
from tests.benchmarks.measuring import machine

EMPTY_SCRIPT = "import boto3; boto3.client('ec2', region_name='us-east-1').describe_instances()"
_LONGEST_START_SECONDS = 60


def until_first_request(command: Sequence[str], listener: socket.socket, folder: str) -> float:
    """Seconds until `command` sent its first byte."""
    port = listener.getsockname()[1]
    environment = {
        "PATH": os.environ.get("PATH", ""),
        "HOME": folder,  # no state of earlier runs, no shared SDK configuration
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    errors = Path(folder) / "stderr"
    with errors.open("wb") as said:
        began = time.perf_counter()
        process = subprocess.Popen(  # noqa: S603 - the command the user gave to be measured
            command, env=environment, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=said
        )
        try:
            return _arrival(listener, process) - began
        except TimeoutError as err:
            message = f"{command[0]} sent no request (exit {process.poll()}):\n{errors.read_text()[-2000:]}"
            raise SystemExit(message) from err
        finally:
            process.kill()
            process.wait()


def _arrival(listener: socket.socket, process: subprocess.Popen[bytes]) -> float:
    deadline = time.perf_counter() + _LONGEST_START_SECONDS
    while time.perf_counter() < deadline:
        try:
            connection, _ = listener.accept()
        except TimeoutError:
            if process.poll() is not None:
                raise
            continue
        with connection:
            connection.settimeout(_LONGEST_START_SECONDS)
            if connection.recv(1):
                return time.perf_counter()
    raise TimeoutError


def interleaved(pairs: int, mine: Callable[[], float], other: Callable[[], float]) -> None:
    """Start both in turn, and print medians. The first pair, which fills the disk cache, does not count."""
    ours, theirs = [], []
    for number in range(pairs + 1):
        other_took, mine_took = other(), mine()
        if number:
            theirs.append(other_took)
            ours.append(mine_took)
    middle, base = statistics.median(ours), statistics.median(theirs)
    ratio = statistics.median(one / another for one, another in zip(ours, theirs, strict=True))
    print(f"{middle * 1000:.0f} ms; the empty one: {base * 1000:.0f} ms")
    print(f"median of {pairs} interleaved pairs; ratio of medians {middle / base:.2f}, median of ratios {ratio:.2f}")


def measure_command(command: Sequence[str], pairs: int) -> None:
    """A command beside a script."""
    empty = [sys.executable, "-c", EMPTY_SCRIPT]
    print(f"{' '.join(command)} beside an empty boto3 EC2 script")
    with socket.create_server(("127.0.0.1", 0)) as listener, tempfile.TemporaryDirectory() as folder:
        listener.settimeout(1.0)
        interleaved(
            pairs,
            lambda: until_first_request(command, listener, folder),
            lambda: until_first_request(empty, listener, folder),
        )


def measure_bundle(bundle: Path, host: str, settings: Mapping[str, str], pairs: int) -> None:
    """A built bundle beside an empty handler, both by the host's runtime."""
    print(f"{bundle.name} by the runtime of {host} beside an empty boto3 handler; {dict(settings)}")
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        ours = cold_start_hosts.unpacked(bundle, work / "bundle")
        theirs = cold_start_hosts.empty(work / "empty")
        interleaved(
            pairs,
            lambda: cold_start_hosts.until_first_request(host, ours, work, settings),
            lambda: cold_start_hosts.until_first_request(host, theirs, work, {}),
        )


def main() -> None:
    """Measure pairs in turn and print medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="two pairs, in seconds")
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--bundle", type=Path, metavar="ZIP", help="measure this bundle of idle_gpu")
    parser.add_argument("--host", choices=cold_start_hosts.STARTS, default="lambda", help="of the bundle")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="settings of the bundle")
    parser.add_argument("command", nargs="*", help="what to measure, after --; default: costguard scan")
    given = parser.parse_args()
    pairs = 2 if given.smoke else given.pairs
    print(f"{machine('boto3')}; load average before: {os.getloadavg()[0]:.1f}")
    if given.bundle is not None:
        settings = dict(one.split("=", 1) for one in given.set)
        measure_bundle(given.bundle, given.host, settings or {"COSTGUARD_LEDGER": "memory:"}, pairs)
    else:
        measure_command(given.command or [str(Path(sys.executable).with_name("costguard")), "scan"], pairs)
    print(f"load average after: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
