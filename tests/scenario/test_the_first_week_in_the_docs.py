"""docs/first-week.md, followed day by day against three clouds: its commands answer, and change nothing."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import botocore.session
import pytest
from botocore import xform_name
from tests.contract.cli_sandbox import logging_as_before

from costguard.cli.exits import Exit
from costguard.cli.main import run
from costguard.cli.program import Program
from costguard.cli.sandbox.running import Sandbox
from costguard.settings import Secret, Settings

PAGE = (Path(__file__).parents[2] / "docs" / "first-week.md").read_text(encoding="utf-8")
DAYS: Sequence[tuple[str, str]] = re.findall(r"^## (Days? [^\n]+)\n(.*?)(?=^## )", PAGE, re.MULTILINE | re.DOTALL)
DAY = timedelta(days=1)
EXPECTED: Mapping[str, frozenset[int]] = {"doctor": frozenset({Exit.UNSAFE}), "plan": frozenset({Exit.OK, Exit.DUE})}
"""What the page says of statuses; every other command ends with 0 where everything could be read."""


def commands(text: str) -> Sequence[str]:
    return [line for block in re.findall(r"```sh\n(.*?)```", text, re.DOTALL) for line in block.splitlines()]


def program(sandbox: Sandbox, told: Mapping[str, str]) -> Program:
    bare = Settings(policy=told.get("COSTGUARD_POLICY", ""))
    ledger = Secret(told["COSTGUARD_LEDGER"]) if "COSTGUARD_LEDGER" in told else bare.ledger
    settings = replace(sandbox.settings(bare), ledger=ledger)
    return Program(settings=lambda: settings, clock=sandbox.clock)


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox.start() as started:
        yield started


def test_a_week_by_the_page_reads_everything_and_changes_nothing(
    sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As on a real account: no `--sandbox`, the settings alone say where the clouds are."""
    monkeypatch.chdir(tmp_path)
    Path("event.json").write_text("{}", encoding="utf-8")
    played = []
    for _, text in DAYS:
        for line in commands(text):
            words = shlex.split(line)
            told = dict(word.split("=", 1) for word in words[: words.index("costguard")])
            arguments = words[words.index("costguard") + 1 :]
            with logging_as_before():
                status = run(arguments, program=program(sandbox, told))
            assert status in EXPECTED.get(arguments[0], {Exit.OK}), (line, capsys.readouterr())
            played.append(arguments[0])
        sandbox.advance(DAY)

    assert {"permissions", "scan", "doctor", "budgets", "keys", "networks", "invoke", "plan", "cases"} <= set(played)
    assert [each for each in sandbox.world.history if each.by == "api"] == []
    assert [each for each in sandbox.world.keys.history if each[1] == "api"] == []
    assert [each for each in sandbox.world.networks.history if each[1] == "api"] == []
    assert not sandbox.slack.posted


def test_every_command_of_awss_that_it_names_exists() -> None:
    named = re.findall(r"`aws ([a-z0-9]+) ([a-z-]+)", PAGE)
    session = botocore.session.get_session()

    assert named
    for service, operation in named:
        known = {xform_name(name, "-") for name in session.get_service_model(service).operation_names}
        assert operation in known, (service, operation)
