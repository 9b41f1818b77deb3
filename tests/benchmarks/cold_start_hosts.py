"""From process start to the first cloud request: a built bundle beside an empty boto3 handler, on one runtime.

Both are started as the host starts them: by `awslambdaric` on Lambda, by the runtimes of `fc_runtime.py` and
`scf_runtime.py` else. The bundle's folder is unpacked from the zip; the empty handler's has one file, and boto3 comes
from where the runtime has it. Each has one event delivered; the clock stops when the first byte of a request to a cloud
arrives at a listener on loopback, which never answers, and the process is ended.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
import zipfile
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any, Protocol

from tests.host_runtimes import RoleKey, SmallFunctionCompute, SmallScf
from tests.runtime_api import SmallLambda

ROOT = Path(__file__).resolve().parents[2]
EMPTY_HANDLER = '''"""The least that asks a cloud: a client is made while the function is loaded, as AWS advises."""

import boto3

client = boto3.client("ec2", region_name="us-east-1")


def handler(event, context):
    return client.describe_instances()
'''
_LONGEST_SECONDS = 60
_ROLE = RoleKey("STS.made-up-key", "made-up-secret", "made-up-token")


class Function(Protocol):
    """What every small host offers."""

    def invoke(self, event: object) -> Any:
        """Deliver an event."""

    def end_process(self) -> None:
        """End it."""


Start = Callable[[Path, Path, Mapping[str, str]], "AbstractContextManager[Any]"]


def _lambda(folder: Path, log: Path, environ: Mapping[str, str]) -> AbstractContextManager[Any]:
    return SmallLambda(folder, "handler.handler", log, environ)


def _fc(folder: Path, log: Path, environ: Mapping[str, str]) -> AbstractContextManager[Any]:
    return SmallFunctionCompute(folder, log, environ=environ, role=_ROLE)


def _scf(folder: Path, log: Path, environ: Mapping[str, str]) -> AbstractContextManager[Any]:
    return SmallScf(folder, log, environ=environ, role=_ROLE)


STARTS: Mapping[str, Start] = {"lambda": _lambda, "fc": _fc, "scf": _scf}
_OWN_CLOUD = {"lambda": "aws", "fc": "alibaba", "scf": "tencent"}


def unpacked(bundle: Path, into: Path) -> Path:
    """The bundle as its host has it."""
    with zipfile.ZipFile(bundle) as archive:
        archive.extractall(into)
    return into


def empty(into: Path) -> Path:
    """The folder of the handler to compare with."""
    into.mkdir()
    (into / "handler.py").write_text(EMPTY_HANDLER, "utf-8")
    return into


def environment(host: str, port: int, folder: Path, settings: Mapping[str, str]) -> dict[str, str]:
    """Every cloud is behind one port; nothing of the surroundings of whoever runs this is left."""
    url = f"http://127.0.0.1:{port}"
    return {
        "PATH": os.defpath,
        "HOME": str(folder),
        "AWS_ENDPOINT_URL": url,
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_EC2_METADATA_DISABLED": "true",
        "COSTGUARD_ALIBABA_ENDPOINT": url,
        "COSTGUARD_TENCENT_ENDPOINT": url,
        "COSTGUARD_CLOUD": _OWN_CLOUD[host],
        **settings,
    }


def _ask(function: Function, event: object) -> None:
    """The process is ended while it answers, so that what is told last may be cut."""
    with suppress(OSError, ValueError):
        function.invoke(event)


def until_first_request(host: str, folder: Path, work: Path, settings: Mapping[str, str]) -> float:
    """Seconds from the start of the process until it asked a cloud for the first time."""
    event = json.loads((ROOT / f"events/{host}/idle_gpu.json").read_bytes())
    log = work / "log"
    log.unlink(missing_ok=True)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(_LONGEST_SECONDS)
        given = environment(host, listener.getsockname()[1], work, settings)
        with STARTS[host](folder, log, given) as function:
            running: Function = function
            began = time.perf_counter()
            calling = threading.Thread(target=_ask, args=(running, event))
            calling.start()
            try:
                connection, _ = listener.accept()
                with connection:
                    connection.settimeout(_LONGEST_SECONDS)
                    connection.recv(1)
                    took = time.perf_counter() - began
                    running.end_process()
            except TimeoutError as err:
                running.end_process()
                message = f"{folder}: no request was sent:\n{log.read_text()[-3000:] if log.exists() else ''}"
                raise SystemExit(message) from err
            calling.join()
    return took
