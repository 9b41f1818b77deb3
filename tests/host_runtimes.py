"""Small Function Compute and small SCF: one function each, in a process of its own, driven as the platforms do.

What runs inside the process stands in `fc_runtime.py` and `scf_runtime.py`; here is what the platforms do around it:
environment, delivery one event at a time to a warm process, the end at the timeout, a new process where the old one
ended, retries of asynchronous events, and the words of the platform's own errors. docs/hosts.md says what is known how.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import signal
import socket
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from typing_extensions import Self

HERE = Path(__file__).parent
CHANNEL = "HOST_CHANNEL"  # the file descriptor that leads to the platform, in the environment of the process
_PATIENCE_SECONDS = 60  # a loaded machine; nothing waits this long unless something is broken

PROBE = '''"""A function whose run is told by the file `what` in its working directory."""

import hashlib, json, logging, os, pathlib, sys, threading

from costguard.domain.errors import UnavailableError
from costguard.faas.handler import build_handler

calls = 0

def run(function, run_id, deadline, settings, clock):
    global calls
    calls += 1
    told = pathlib.Path("what")
    what = told.read_text() if told.exists() else ""
    secrets = settings.secrets()
    if what == "fail once":
        told.unlink()
    if what.startswith("fail"):
        raise UnavailableError("ecs:DescribeInstances: no answer")
    if what == "leak":
        raise UnavailableError("refused " + " ".join(secrets))
    if what == "chat":
        for level in (logging.DEBUG, logging.INFO, logging.WARNING):
            logging.getLogger("some.sdk").log(level, "sent at level %s with %s", level, " ".join(secrets))
        for shape in ("?SecurityToken=CAISmade-up/%2B&Action=A", "AKID-made_up-0123456789", "STS.NSmadeup0123456789"):
            logging.getLogger("some.sdk").warning("unknown to us: %s", shape)
    if what == "exit":
        sys.exit(3)
    if what == "hang":
        os.write(int(os.environ["HOST_CHANNEL"]), b\'{"kind": "hangs", "body": ""}\\n\')
        threading.Event().wait()
    summary = {"run_id": run_id, "findings": {"violation": 1}, "due": 0, "done": 0, "held": 1, "gaps": 0,
               "calls": calls, "host": settings.host, "function": function, "policy": settings.policy,
               "seconds_left": (deadline - clock.now()).total_seconds(),
               "foreign": sorted({"aws_lambda_powertools", "boto3"} & set(sys.modules))}
    for name in ("alibaba", "tencent"):
        key = settings.access(name).key
        if key is not None:
            parts = key.key_id + key.secret.reveal() + key.token.reveal()
            summary[name] = hashlib.sha256(parts.encode()).hexdigest()
    return {**summary, "findings": {"violation"}} if what == "no json" else summary

handler = build_handler("idle_gpu", run=run)
'''


@dataclass(frozen=True)
class Told:
    """What came of one delivery: `response`, `error`, `exited` or `timed out`, and what the caller is answered.

    A function under test may tell more through the channel; that is then the kind, and the delivery goes on.
    `log` is what was written meanwhile.
    """

    kind: str
    body: Any
    log: str

    def log_lines(self) -> list[dict[str, Any]]:
        """The JSON lines of the log."""
        return [json.loads(line) for line in self.log.splitlines() if line.startswith("{") and line.endswith("}")]


@dataclass(frozen=True)
class RoleKey:
    """The keys of a function's role; empty ones where it has no role."""

    key_id: str = ""
    secret: str = ""
    token: str = ""

    def digest(self) -> str:
        """What the probe tells of a key it was given."""
        return hashlib.sha256(f"{self.key_id}{self.secret}{self.token}".encode()).hexdigest()


@dataclass
class _Process:
    popen: subprocess.Popen[bytes]
    channel: socket.socket
    answers: Any


@dataclass
class SmallHost(ABC):
    """One function; use it as a context manager.

    `folder` holds the handler's module, `handler` is `module.attribute`, `environ` what is configured on the
    function, `role` the keys of its role at this moment: tests let them go out of date by naming others. `python` runs
    it: a bundle wants that of its host's version. An answer is waited for `patience_seconds`.
    """

    folder: Path
    log: Path
    handler: str = "handler.handler"
    environ: Mapping[str, str] = field(default_factory=dict)
    role: RoleKey = field(default_factory=RoleKey)
    python: str = field(default=sys.executable, kw_only=True)
    patience_seconds: float = field(default=_PATIENCE_SECONDS, kw_only=True)
    _process: _Process | None = field(default=None, init=False)
    _calls: int = field(default=0, init=False)
    _before: int = field(default=0, init=False)
    _delivered: dict[str, Any] = field(default_factory=dict, init=False)

    retries = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end_process()

    def invoke(self, event: object, *, seconds: int = 900, request_id: str = "", attempt: int = 0) -> Told:
        """Deliver `event`, to be answered within `seconds`, and wait for what is told."""
        self._calls += 1
        body = event if isinstance(event, bytes) else json.dumps(event).encode()
        request_id = request_id or f"request-{self._calls}"
        self._delivered = {"request_id": request_id, "seconds": seconds, "attempt": attempt}
        if self._process is None or self._process.popen.poll() is not None:
            self.end_process()
            self._process = self._start()
        self._before = len(self._log_bytes())
        about = {**self._delivered, **self.about(), "event": base64.b64encode(body).decode()}
        self._process.channel.sendall(json.dumps(about).encode() + b"\n")
        return self._told()

    def invoke_later(self, event: object, *, seconds: int = 900) -> list[Told]:
        """Deliver `event` as timers do, asynchronously: again after each failure, at most `retries` times."""
        request_id = f"request-{self._calls + 1}"
        told: list[Told] = []
        while len(told) <= self.retries:
            told.append(self.invoke(event, seconds=seconds, request_id=request_id, attempt=len(told)))
            if told[-1].kind == "response":
                break
        return told

    def time_is_up(self) -> Told:
        """What the platform does at the timeout: the process is gone, and the caller reads so."""
        assert self._process is not None
        self.stop(self._process.popen)
        self._process.popen.wait(_PATIENCE_SECONDS)
        told = Told("timed out", self.timed_out(), self._log_bytes()[self._before :].decode())
        self.end_process()
        return told

    def shall(self, what: str) -> None:
        """Tell the probe what to do from now on."""
        (self.folder / "what").write_text(what, "utf-8")

    def end_process(self) -> None:
        """The instance is reclaimed."""
        if self._process is not None:
            self._process.popen.kill()
            self._process.popen.wait(_PATIENCE_SECONDS)
            self._process.answers.close()
            self._process.channel.close()
            self._process = None

    def log_text(self) -> str:
        """All that every process of this function wrote."""
        return self._log_bytes().decode()

    @property
    @abstractmethod
    def program(self) -> Path:
        """What runs in the process."""

    @abstractmethod
    def surroundings(self) -> dict[str, str]:
        """The environment in which the platform starts the process."""

    @abstractmethod
    def about(self) -> dict[str, Any]:
        """What a delivery brings beside the event."""

    @abstractmethod
    def failed(self, body: str) -> Any:
        """What the caller reads where the runtime told an error."""

    @abstractmethod
    def exited(self, code: int) -> Any:
        """What the caller reads where the process ended by itself."""

    @abstractmethod
    def timed_out(self) -> Any:
        """What the caller reads where time was up."""

    @abstractmethod
    def stop(self, process: subprocess.Popen[bytes]) -> None:
        """End the process as the platform does at the timeout."""

    def record(self, text: str) -> None:
        """A line of the platform's own in the log."""
        with self.log.open("a", encoding="utf-8") as output:
            output.write(f"{text}\n")

    def _start(self) -> _Process:
        ours, theirs = socket.socketpair()
        ours.settimeout(self.patience_seconds)
        with self.log.open("ab") as output, theirs:
            popen = subprocess.Popen(  # noqa: S603 - our own interpreter, our own program
                [self.python, "-W", "ignore", str(self.program)],
                env={"PATH": os.defpath, **self.surroundings(), **self.environ, CHANNEL: str(theirs.fileno())},
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                pass_fds=[theirs.fileno()],
            )
        return _Process(popen, ours, ours.makefile("rb"))

    def _told(self) -> Told:
        assert self._process is not None
        line = self._process.answers.readline()
        if not line:
            code = self._process.popen.wait(_PATIENCE_SECONDS)
            kind, body = "exited", self.exited(code)
        else:
            answer = json.loads(line)
            kind, body = answer["kind"], answer["body"]
            if kind == "response":
                body = json.loads(body)
            elif kind == "error":
                body = self.failed(body)
        return Told(kind, body, self._log_bytes()[self._before :].decode())

    def _log_bytes(self) -> bytes:
        return self.log.read_bytes() if self.log.exists() else b""


@dataclass
class SmallFunctionCompute(SmallHost):
    """Function Compute 3.0. `runtime` is `python3.10`, whose context has credentials, or `python3.12`."""

    runtime: str = "python3.10"

    retries = 3

    @property
    def program(self) -> Path:
        return HERE / "fc_runtime.py"

    def surroundings(self) -> dict[str, str]:
        version = "FC_VER_ID" if self.runtime == "python3.10" else "FC_FUNCTION_VERSION"  # Debian 10, Debian 11
        key = self.role
        return {
            "PYTHONIOENCODING": "utf-8:surrogateescape",
            "FC_RUNTIME_API": "127.0.0.1:9001",  # for the runtime alone, which removes it
            "FC_FUNC_CODE_PATH": f"{self.folder}/",
            "FC_ACCOUNT_ID": "1234567890123456",
            "FC_FUNCTION_NAME": "costguard-idle-gpu",
            "FC_FUNCTION_HANDLER": self.handler,
            "FC_FUNCTION_MEMORY_SIZE": "512",
            "FC_REGION": "cn-shanghai",
            "FC_INSTANCE_ID": f"c-65362416-{self._calls:08x}",
            version: "LATEST",
            **({"ALIBABA_CLOUD_ACCESS_KEY_ID": key.key_id} if key.key_id else {}),
            **({"ALIBABA_CLOUD_ACCESS_KEY_SECRET": key.secret} if key.secret else {}),
            **({"ALIBABA_CLOUD_SECURITY_TOKEN": key.token} if key.token else {}),
        }

    def about(self) -> dict[str, Any]:
        keys = [self.role.key_id, self.role.secret, self.role.token]
        return {"runtime": self.runtime, "handler": self.handler, "credentials": keys}

    def failed(self, body: str) -> Any:
        return json.loads(body)

    def exited(self, code: int) -> Any:
        return {"errorMessage": f"Process exited unexpectedly before completing request (code {code})"}

    def timed_out(self) -> Any:
        return {"errorMessage": f"Function timed out after {self._delivered['seconds']} seconds"}

    def stop(self, process: subprocess.Popen[bytes]) -> None:
        """First asked, so that the runtime can write where it stood."""
        process.send_signal(signal.SIGTERM)


@dataclass
class SmallScf(SmallHost):
    """SCF with one of its Python runtimes."""

    retries = 2

    @property
    def program(self) -> Path:
        return HERE / "scf_runtime.py"

    def surroundings(self) -> dict[str, str]:
        return {
            "PYTHONPATH": f"{self.folder}:/opt",
            "PYTHONDONTWRITEBYTECODE": "x",
            "USER_CODE_ROOT": f"{self.folder}/",
            "_SCF_SERVER_PORT": "28902",
            "SOCKETPATH": "/var/run/scf.sock",  # for the runtime alone, which removes it
            "TENCENTCLOUD_RUNENV": "SCF",
            "TENCENTCLOUD_REGION": "ap-shanghai",
            "TENCENTCLOUD_APPID": "1250000000",
            "TENCENTCLOUD_UIN": "100000000001",
            "SCF_FUNCTIONNAME": "costguard-idle-gpu",
            "SCF_FUNCTIONVERSION": "$LATEST",
            "SCF_NAMESPACE": "default",
            "SCF_RUNTIME": "Python3.10",
            "TRIGGER_SRC": "timer",
        }

    def about(self) -> dict[str, Any]:
        key = self.role
        role = {
            "TENCENTCLOUD_SECRETID": key.key_id,
            "TENCENTCLOUD_SECRETKEY": key.secret,
            "TENCENTCLOUD_SESSIONTOKEN": key.token,
        }
        return {"handler": self.handler, "environment": {**(role if key.key_id else {}), "SCF_NAMESPACE": "default"}}

    def invoke(self, event: object, *, seconds: int = 900, request_id: str = "", attempt: int = 0) -> Told:
        """As on every host; SCF writes what is returned to the log, whoever asked."""
        told = super().invoke(event, seconds=seconds, request_id=request_id, attempt=attempt)
        self.record(f"Response RequestId: {self._delivered['request_id']} RetMsg: {json.dumps(told.body)}")
        return told

    def failed(self, body: str) -> Any:
        return self._error(430, "user code exception caught", stackTrace=body)

    def exited(self, code: int) -> Any:
        return self._error(439, "User process exit when running", exitCode=code)

    def timed_out(self) -> Any:
        return self._error(433, f"Invoking task timed out after {self._delivered['seconds']} seconds")

    def stop(self, process: subprocess.Popen[bytes]) -> None:
        process.kill()

    def _error(self, status: int, message: str, **more: object) -> dict[str, Any]:
        about = {"errorCode": -1, "errorMessage": message, "statusCode": status}
        return {**about, "requestId": self._delivered["request_id"], **more}
