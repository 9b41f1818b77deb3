"""What runs a deployed function: its bundle as Terraform's state names it, in the small FC or SCF, with a log."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from zipfile import ZipFile

from tests.bundles.calling import base_of
from tests.deploy_pages.deployed import Made
from tests.host_runtimes import RoleKey, SmallFunctionCompute, SmallScf, Told
from tests.infra.aws_terraform import NotPossibleError

from costguard.cli.operate.bundling.compiling import find_interpreter


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a function's log."""

    at: float
    request_id: str
    text: str


@dataclass(slots=True)
class Functions:
    """Runs functions, one at a time. `more` is what they need beside their own settings to stay inside the sandbox."""

    folder: Path
    more: dict[str, str]
    logs: dict[str, list[Line]] = field(default_factory=dict)
    _ran: int = 0

    def run(
        self,
        host: str,
        function: Made,
        bundle: Path,
        event: bytes,
        *,
        name: str,
        environ: Mapping[str, str],
        runtime: str,
        role: RoleKey,
        about: Mapping[str, str],
    ) -> tuple[str, Told, float]:
        """Deliver an event: the request's id, what came of it, and the seconds it took."""
        self._ran += 1
        request_id = f"1-{self._ran:08x}-5d1f1a6b"
        code = self._unpacked(name, bundle)
        small = SmallFunctionCompute if host == "fc" else SmallScf
        running = small(
            folder=code,
            log=self.folder / f"{name}-{self._ran}.log",
            handler=function["handler"],
            environ={**about, **environ, **self.more},
            role=role,
            python=python_of(runtime.lower().removeprefix("python")),
            patience_seconds=int(function["timeout"]),
        )
        began = time.time()
        with running:
            told = running.invoke(event, seconds=int(function["timeout"]), request_id=request_id)
            text = running.log_text()  # what the platform writes after the answer too
        lines = [Line(time.time(), request_id, line) for line in text.splitlines() if line.strip()]
        self.logs.setdefault(name, []).extend(lines)
        return request_id, told, time.time() - began

    def _unpacked(self, name: str, bundle: Path) -> Path:
        into = self.folder / f"{name}-{bundle.stat().st_mtime_ns}"
        if not into.exists():
            with ZipFile(bundle) as zipped:
                zipped.extractall(into)
        return into


@cache
def python_of(version: str) -> str:
    """A Python of the host's version with nothing installed.

    Raises:
        NotPossibleError: there is none.
    """
    found = find_interpreter(version)
    if found is None:
        message = f"there is no Python {version}, which runs the functions"
        raise NotPossibleError(message)
    return base_of(found.path)
