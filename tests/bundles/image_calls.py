"""A container started by its image's own command, and called as its platform calls it."""

from __future__ import annotations

import base64
import http.client
import json
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.bundles.calling import check_answer, event_of
from tests.bundles.engine import Engine, processes_below
from tests.bundles.reporting import UnexpectedError
from tests.bundles.runtimes import LAMBDA, RuntimeApi
from tests.unit.test_bundle_container import FC_HEADERS, SCF_HEADERS

_PORT = 9000
_LONGEST_START_SECONDS = 30  # SCF; FC allows 120
_PATIENCE_SECONDS = 60
_NOBODY = 65534
_LAMBDAS_USER = 993  # Lambda starts any image as a user of its own, whatever the image says
_EVENTS = {"fc": ("/invoke", FC_HEADERS, 404), "scf": ("/event-invoke", SCF_HEADERS, 500)}


@dataclass(frozen=True)
class Called:
    """What was answered, by a process of which user, and how soon."""

    answer: Mapping[str, Any]
    user: int
    after: str


def call_over_http(
    engine: Engine,
    container: str,
    image: str,
    host: str,
    function: str,
    settings: Mapping[str, str],
    log: Path,
) -> Called:
    """As FC and SCF call the server of a container."""
    about = engine.configuration(image)
    if about.user != "nobody" or about.ports != {f"{_PORT}/tcp"}:
        raise UnexpectedError(image, "is started as", repr(about.user), "with ports", *about.ports)
    path, headers, failed = _EVENTS[host]
    with log.open("ab") as output:
        started = time.monotonic()
        process = engine.start(container, about.command, settings, output)
        with _ended(process, log):
            _listens(process)
            seconds = time.monotonic() - started
            pid, user = _started(process, "costguard.faas.container")
            if host == "fc":
                _expect(_asked("POST", "/initialize", headers, b""), 200)
            event = event_of(host, function)
            if function == "slack_actions":
                answer = _as_a_request(host, json.loads(event))
                if host == "scf":
                    answer = _expect(_asked("POST", path, headers, event), 200)
            else:
                answer = _expect(_asked("POST", path, headers, event), 200)
                _expect(_asked("POST", "/", {}, event), 404)
                if "errorType" not in _expect(_asked("POST", path, headers, b"[]"), failed):
                    raise UnexpectedError(image, "says nothing of a wrong event")
            os.kill(pid, signal.SIGTERM)
            if process.wait(_PATIENCE_SECONDS):
                raise UnexpectedError(image, "does not end as it is asked to, but with", process.returncode)
    check_answer(host, function, answer)
    if f"{host.upper()} Invoke Start RequestId: " not in log.read_text("utf-8"):
        raise UnexpectedError(image, "marks no call in its log")
    if user != _NOBODY:
        raise UnexpectedError(image, "runs as user", user)
    return Called(answer, user, f"listening after {seconds:.1f} s")


def call_over_runtime_api(
    engine: Engine,
    container: str,
    image: str,
    host: str,
    function: str,
    settings: Mapping[str, str],
    log: Path,
) -> Called:
    """As Lambda calls a container: by its Runtime API, as a user that the image does not know."""
    about = engine.configuration(image)
    with RuntimeApi() as api, log.open("ab") as output:
        environ = {**settings, **LAMBDA, "AWS_LAMBDA_RUNTIME_API": api.address}
        started = time.monotonic()
        process = engine.start(container, about.command, environ, output, f"{_LAMBDAS_USER}:990")
        with _ended(process, log):
            told = api.call(event_of(host, function))
            seconds = time.monotonic() - started
            _, user = _started(process, "awslambdaric")
    if told.kind != "response":
        raise UnexpectedError(image, told.kind, told.body)
    check_answer(host, function, told.body)
    return Called(told.body, user, f"answered after {seconds:.1f} s")


def _as_a_request(host: str, event: Mapping[str, Any]) -> Mapping[str, Any]:
    """The sample's request as it was sent, before the platform made an event of it."""
    body = event["body"]
    raw = base64.b64decode(body) if event.get("isBase64Encoded") else body.encode()
    headers = {**event["headers"], "x-fc-control-path": "/http-invoke"} if host == "fc" else event["headers"]
    status, _ = _asked("POST", "/slack", headers, raw)
    return {"statusCode": status}


def _asked(method: str, path: str, headers: Mapping[str, str], body: bytes) -> tuple[int, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", _PORT, timeout=120)
    try:
        connection.request(method, path, body, dict(headers))
        answer = connection.getresponse()
        text = answer.read().decode()
        return answer.status, json.loads(text) if text.startswith("{") else {}
    finally:
        connection.close()


def _expect(answered: tuple[int, Any], status: int) -> Mapping[str, Any]:
    told: Mapping[str, Any] = answered[1]
    if answered[0] != status:
        raise UnexpectedError("answered", *answered, "and not", status)
    return told


@contextmanager
def _ended(process: subprocess.Popen[bytes], log: Path) -> Iterator[None]:
    """Ended in any case; with the end of its log where something went wrong."""
    try:
        yield
    except (UnexpectedError, OSError, subprocess.TimeoutExpired) as err:
        raise UnexpectedError(err, "\n", log.read_text("utf-8")[-3000:]) from err
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait()


def _listens(process: subprocess.Popen[bytes]) -> None:
    """Wait until somebody does."""
    ends = time.monotonic() + _LONGEST_START_SECONDS
    while time.monotonic() < ends and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", _PORT), timeout=5).close()
        except OSError:
            threading.Event().wait(0.02)
        else:
            return
    raise UnexpectedError("nothing listens on port", _PORT, "; status", process.poll())


def _started(process: subprocess.Popen[bytes], module: str) -> tuple[int, int]:
    """Id and user of the Python process of that module."""
    found = [one for one in processes_below(process.pid) if one.words[1:3] == ["-m", module]]
    if len(found) != 1 or len(set(found[0].users)) != 1:
        raise UnexpectedError("processes of", module, found)
    return found[0].pid, found[0].users[0]
