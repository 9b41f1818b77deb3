"""From process start to the first cloud request: a command beside an empty boto3 EC2 script.

`python tests/benchmarks/cold_start.py -- costguard scan` from the repository's root. Both are started in
turn, with AWS_ENDPOINT_URL set to a listener on loopback; the clock stops when the first byte of a request
arrives, and the process is ended. No figure fails the run; a command that never asks does.
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
from collections.abc import Sequence
from pathlib import Path

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


def main() -> None:
    """Measure pairs in turn and print medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="two pairs, in seconds")
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("command", nargs="*", help="what to measure, after --; default: costguard scan")
    given = parser.parse_args()
    command = given.command or [str(Path(sys.executable).with_name("costguard")), "scan"]
    empty = [sys.executable, "-c", EMPTY_SCRIPT]
    pairs = 2 if given.smoke else given.pairs
    ours, theirs = [], []
    with socket.create_server(("127.0.0.1", 0)) as listener, tempfile.TemporaryDirectory() as folder:
        listener.settimeout(1.0)
        for number in range(pairs + 1):
            empty_took = until_first_request(empty, listener, folder)
            command_took = until_first_request(command, listener, folder)
            if number:  # the first pair fills the disk cache
                theirs.append(empty_took)
                ours.append(command_took)
    middle, base = statistics.median(ours), statistics.median(theirs)
    ratio = statistics.median(mine / other for mine, other in zip(ours, theirs, strict=True))
    print(f"{' '.join(command)}: {middle * 1000:.0f} ms; empty boto3 EC2 script: {base * 1000:.0f} ms")
    print(f"median of {pairs} interleaved pairs; ratio of medians {middle / base:.2f}, median of ratios {ratio:.2f}")


if __name__ == "__main__":
    main()
