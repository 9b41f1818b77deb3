"""Functions called from their unpacked bundles through their host's runtime, on an interpreter of the host's version.

Lambda's is `awslambdaric`, fetched for that version; for FC and SCF the processes that behave as theirs do.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, Queue
from types import TracebackType
from typing import Any

from tests.bundles.calling import ROOT, check_answer, event_of
from tests.bundles.reporting import UnexpectedError, done
from tests.host_runtimes import SmallFunctionCompute, SmallScf
from tests.runtime_api import Told, _Server
from typing_extensions import Self

from costguard.cli.operate.bundling.recipes import Arch, Recipe
from costguard.cli.operate.bundling.wheels import WheelTarget

_RELAY = Path(__file__).with_name("relay.py")
_BARE = ("-s", "-S", "-W", "ignore")
_PATIENCE_SECONDS = 120
LAMBDA = {
    "AWS_LAMBDA_FUNCTION_NAME": "costguard-idle-gpu",
    "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "512",
    "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST",
}
"""What Lambda tells every function."""


class RuntimeApi:
    """Lambda's Runtime API on loopback for one process, however that is started."""

    def __init__(self) -> None:
        self._events: Queue[tuple[str, bytes, float] | None] = Queue()
        self._told: Queue[Told] = Queue()
        self._server = _Server(self._events, self._told)
        self._serving = threading.Thread(target=self._server.serve_forever, args=(0.05,))

    @property
    def address(self) -> str:
        """What AWS_LAMBDA_RUNTIME_API has to be."""
        return f"127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._serving.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._events.put(None)
        self._server.server_close()
        self._serving.join()

    def call(self, event: bytes) -> Told:
        """Deliver the event and wait for what is told.

        Raises:
            UnexpectedError: nothing.
        """
        self._events.put(("request-1", event, time.time() + 900))
        try:
            return self._told.get(timeout=_PATIENCE_SECONDS)
        except Empty:
            raise UnexpectedError("nothing was told within", _PATIENCE_SECONDS, "seconds") from None


def runtime_client(python: str, into: Path) -> Path:
    """A folder with `awslambdaric` for that Python, as the base image and the managed runtime have it."""
    platforms = WheelTarget(python, 28, Arch.X86_64).platforms
    command: list[str | Path] = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    command += ["--target", into]
    command += ["--only-binary", ":all:", "--implementation", "cp", "--python-version", python]
    command += [word for platform in platforms for word in ("--platform", platform)]
    done([*command, "--constraint", ROOT / ".ci/constraints.txt", "awslambdaric"])
    return into


@dataclass
class _FunctionCompute(SmallFunctionCompute):
    @property
    def program(self) -> Path:
        return _RELAY


@dataclass
class _Scf(SmallScf):
    @property
    def program(self) -> Path:
        return _RELAY


def through_its_runtime(
    recipe: Recipe, bare: str, folder: Path, settings: Mapping[str, str], aside: Path
) -> Mapping[str, Any]:
    """What a function answered to its host's event."""
    host, function = recipe.host.name, recipe.function
    event = event_of(host, function).replace(b"2026-03-", b"2026-04-")  # another run than the probe's
    log = aside / f"{host}-{recipe.python}-{function}.log"
    if host == "lambda":
        client = aside / f"awslambdaric-{recipe.python}"
        told = _on_lambda(bare, folder, client, settings, event, log)
    else:
        relayed = {"fc": "fc_runtime.py", "scf": "scf_runtime.py"}[host]
        words = [bare, *_BARE, str(ROOT / "tests" / relayed)]
        environ = {**settings, "RELAY": json.dumps(words)}
        small = (
            _FunctionCompute(folder, log, environ=environ, runtime=f"python{recipe.python}")
            if host == "fc"
            else _Scf(folder, log, environ=environ)
        )
        with small:
            answered = small.invoke(event)
            told = Told(answered.kind, answered.body)
    if told.kind != "response":
        raise UnexpectedError(host, function, told.kind, told.body, log.read_text("utf-8")[-2000:])
    check_answer(host, function, told.body)
    answer: Mapping[str, Any] = told.body
    return answer


def _on_lambda(bare: str, folder: Path, client: Path, settings: Mapping[str, str], event: bytes, log: Path) -> Told:
    with RuntimeApi() as api, log.open("ab") as output:
        environ = {
            **settings,
            **LAMBDA,
            "PYTHONPATH": f"{folder}:{client}",
            "LAMBDA_TASK_ROOT": str(folder),
            "AWS_LAMBDA_RUNTIME_API": api.address,
        }
        command: Sequence[str] = [bare, *_BARE, "-m", "awslambdaric", "handler.handler"]
        process = subprocess.Popen(  # noqa: S603 - an interpreter that was found
            command, cwd=folder, env=environ, stdout=output, stderr=subprocess.STDOUT
        )
        try:
            return api.call(event)
        finally:
            process.kill()
            process.wait()
