"""The command line on a sandbox that a test keeps: one start for a whole module."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from costguard.cli.main import run
from costguard.cli.program import Program
from costguard.cli.sandbox.running import Sandbox


@contextmanager
def logging_as_before() -> Iterator[None]:
    """A function that was invoked logs to the output of this test, which is gone in the next."""
    logger = logging.getLogger("costguard")
    before = (logger.handlers[:], logger.propagate, logger.level)
    logger.handlers[:] = []  # one that another test left would be given this test's output, and keep it
    try:
        yield
    finally:
        logger.handlers[:], logger.propagate, level = before
        logger.setLevel(level)


@cache
def _validator(name: str) -> jsonschema.protocols.Validator | None:
    found = files("costguard.report").joinpath(f"schemas/{name}.schema.json")
    if not found.is_file():
        return None
    schema = json.loads(found.read_text(encoding="utf-8"))
    return jsonschema.validators.validator_for(schema)(schema)


@dataclass(frozen=True)
class Answered:
    """What a command said. Where its answers have a schema, `json` is held to it."""

    command: str
    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        answer, known = json.loads(self.out), _validator(self.command)
        if known is not None:
            known.validate(answer)
        return answer


class Cli:
    """Runs commands with `--sandbox`, with a ledger of the test's own."""

    def __init__(self, sandbox: Sandbox, folder: Path, capture: pytest.CaptureFixture[str]) -> None:
        self.sandbox = sandbox
        self.folder = folder
        self.ledger = f"sqlite:///{folder / 'ledger.db'}"
        self._capture = capture
        self._program = Program(sandbox=sandbox)

    def __call__(self, *arguments: str, ledger: bool = True) -> Answered:
        self._capture.readouterr()
        where = ["--ledger", self.ledger] if ledger else []
        with logging_as_before():
            status = run([*arguments, "--sandbox", *where], program=self._program)
        out, err = self._capture.readouterr()
        return Answered(arguments[0], status, out, err)

    def id_of(self, name: str) -> str:
        """The cloud's own id of a machine."""
        return next(spec.native_id for spec in self.sandbox.world.fleet if spec.name == name)
