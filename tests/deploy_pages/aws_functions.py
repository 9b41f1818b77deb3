"""Lambda in front of the sandbox: what is invoked runs from the zip that was uploaded, by its role, with a log."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from io import BytesIO
from pathlib import Path
from typing import Any
from uuid import uuid4
from zipfile import ZipFile

from moto.awslambda.models import lambda_backends
from moto.iam.models import get_account_id_from
from moto.logs.models import logs_backends
from moto.sts.models import sts_backends
from tests.deploy_pages.aws_trust import as_trusted

from costguard.cli.sandbox.running import Sandbox

_INVOKED = re.compile(r"/2015-03-31/functions/([^/]+)/invocations/?")
_LIMITS = re.compile(r"/2016-08-19/account-settings/?")  # moto has none
LAMBDA_PYTHON = (3, 13)
"""Which runtime infra/aws asks for."""
_VERSION = "3.13"
_ANSWER = "ANSWER "
_START = """\
import importlib, json, sys, time
sys.path[0:0] = [sys.argv[1]]

class Context:
    aws_request_id, ends = sys.argv[4], time.monotonic() + float(sys.argv[3])
    def get_remaining_time_in_millis(self):
        return int(1000 * (self.ends - time.monotonic()))

module, _, name = sys.argv[2].rpartition(".")
handler = getattr(importlib.import_module(module), name)
print("ANSWER " + json.dumps(handler(json.load(sys.stdin), Context())))
"""


@dataclass(frozen=True, slots=True)
class Invoked:
    """What one call of a function came to; `error` is what `X-Amz-Function-Error` says, empty where none."""

    function: str
    answer: Any
    error: str
    log: str


@dataclass(slots=True)
class Functions:
    """WSGI in front of the sandbox's gateway, whose clock it keeps at the present moment.

    `Invoke` is answered here, outside the sandbox's lock, since the function asks the sandbox; all else is handed on.
    `more` is what functions need beside their own settings to stay inside the sandbox. Code runs by `python` without
    anything that is installed there, so that only what the zip holds can be imported.
    """

    sandbox: Sandbox
    unpacked: Path
    more: dict[str, str] = field(default_factory=dict)
    invoked: list[Invoked] = field(default_factory=list)

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        """Answer one request."""
        found = _INVOKED.fullmatch(environ["PATH_INFO"])
        if _LIMITS.fullmatch(environ["PATH_INFO"]):
            return _replied({"AccountLimit": {"UnreservedConcurrentExecutions": 1000}}, start_response)
        if found is None or environ["REQUEST_METHOD"] != "POST":
            with self.sandbox.door.lock:
                passed = datetime.now(timezone.utc) - self.sandbox.clock.now()
                if passed.total_seconds() > 0:
                    self.sandbox.clock.advance(passed)
                return self.sandbox.gateway(as_trusted(environ), start_response)
        body: bytes = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        done = self._run(found[1], body or b"{}", environ["HTTP_AUTHORIZATION"])
        self.invoked.append(done)
        more = [("X-Amz-Executed-Version", "$LATEST")]
        return _replied(
            done.answer, start_response, *more, *([("X-Amz-Function-Error", done.error)] if done.error else [])
        )

    def _run(self, name: str, event: bytes, authorization: str) -> Invoked:
        key, _, region, _, _ = authorization.partition("Credential=")[2].partition(",")[0].split("/")
        account = get_account_id_from(key)
        made = lambda_backends[account][region].get_function(name)
        request = str(uuid4())
        began, moment = time.monotonic(), datetime.now(timezone.utc)
        folder = self._folder(name, made.code_sha_256, made.code_bytes)
        command = [
            _plain_python(),
            "-I",
            "-S",
            "-c",
            _START,
            str(folder),
            str(made.handler),
            str(made.timeout),
            request,
        ]
        try:
            ran = subprocess.run(  # noqa: S603 - this project's own code
                command,
                input=event,
                env=self._environ(made, account, region),
                cwd=folder,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=made.timeout,
                check=False,
            )
            status, text = ran.returncode, ran.stdout.decode("utf-8", "replace")
        except subprocess.TimeoutExpired as err:
            status, text = -1, (err.stdout or b"").decode("utf-8", "replace")
        lines = text.splitlines()
        answered = [line for line in lines if line.startswith(_ANSWER)]
        log = [line for line in lines if not line.startswith(_ANSWER)]
        spent = 1000 * (time.monotonic() - began)
        about = f"REPORT RequestId: {request}\tDuration: {spent:.2f} ms\tMemory Size: {made.memory_size} MB"
        log = [f"START RequestId: {request} Version: $LATEST", *log, f"END RequestId: {request}", about]
        self._keep(made, account, region, moment, log)
        if status == 0 and answered:
            return Invoked(name, json.loads(answered[-1].removeprefix(_ANSWER)), "", "\n".join(log))
        gone = f"{moment:%Y-%m-%dT%H:%M:%SZ} {request} Task timed out after {made.timeout} seconds"
        said = gone if status == -1 else (lines or ["ended without a word"])[-1]
        return Invoked(name, {"errorMessage": said, "errorType": "Unhandled"}, "Unhandled", "\n".join(log))

    def _environ(self, made: Any, account: str, region: str) -> Mapping[str, str]:
        """As Lambda makes it: what is configured, and the keys of the function's role."""
        with self.sandbox.door.lock:
            role = sts_backends[account]["aws"].assume_role(region, made.function_name, made.role, "", 3600, "")
        return {
            "PATH": os.defpath,
            "LANG": "en_US.UTF-8",
            "TZ": ":UTC",
            "LAMBDA_TASK_ROOT": "/var/task",
            "AWS_EXECUTION_ENV": f"AWS_Lambda_python{_VERSION}",
            "AWS_LAMBDA_FUNCTION_NAME": made.function_name,
            "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(made.memory_size),
            "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST",
            "AWS_REGION": region,
            "AWS_DEFAULT_REGION": region,
            "AWS_ACCESS_KEY_ID": role.access_key_id,
            "AWS_SECRET_ACCESS_KEY": role.secret_access_key,
            "AWS_SESSION_TOKEN": role.session_token,
            **{name: str(value) for name, value in made.environment_vars.items()},
            **self.more,
        }

    def _folder(self, name: str, digest: str, code: bytes) -> Path:
        """Where this very zip is unpacked."""
        folder = self.unpacked / f"{name}-{re.sub('[^A-Za-z0-9]', '-', digest)}"
        if not folder.exists():
            with ZipFile(BytesIO(code)) as zipped:
                zipped.extractall(folder)
        return folder

    def _keep(self, made: Any, account: str, region: str, moment: datetime, lines: list[str]) -> None:
        group = made.get_configuration().get("LoggingConfig", {}).get("LogGroup", made.logs_group_name)
        stream = f"{moment:%Y/%m/%d}/[$LATEST]{uuid4().hex}"
        events = [{"timestamp": int(1000 * time.time()), "message": line} for line in lines]
        with self.sandbox.door.lock:
            logs = logs_backends[account][region]
            logs.create_log_stream(group, stream)
            logs.put_log_events(group, stream, events)


def _replied(answer: Any, start_response: Callable[..., Any], *more: tuple[str, str]) -> Iterable[bytes]:
    start_response("200 OK", [("Content-Type", "application/json"), *more])
    return [json.dumps(answer).encode()]


def _plain_python() -> str:
    """This interpreter outside of any virtual environment."""
    return str(Path(sys.base_prefix) / "bin" / f"python{_VERSION}")
