"""docs/rollout.md, followed for four weeks: every command answers, and only the team whose day has come is acted on."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from tests.contract.cli_sandbox import logging_as_before

from costguard.cli.exits import Exit
from costguard.cli.main import run
from costguard.cli.program import Program
from costguard.cli.sandbox.running import Sandbox
from costguard.settings import Secret, Settings

PAGE = (Path(__file__).parents[2] / "docs" / "rollout.md").read_text(encoding="utf-8")
WEEKS: Sequence[tuple[str, str]] = re.findall(r"^## (Week \d)[^\n]*\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
POLICY = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)[0]
DAY = timedelta(days=1)
FOUND: Mapping[str, frozenset[int]] = {"doctor": frozenset({Exit.OK, Exit.UNSAFE})}


def play(sandbox: Sandbox, line: str) -> tuple[str, int]:
    words = shlex.split(line)
    told = dict(word.split("=", 1) for word in words[: words.index("costguard")])
    bare = Settings(policy=told.get("COSTGUARD_POLICY", ""))
    ledger = Secret(told["COSTGUARD_LEDGER"]) if "COSTGUARD_LEDGER" in told else bare.ledger
    settings = replace(sandbox.settings(bare), ledger=ledger)
    arguments = words[words.index("costguard") + 1 :]
    with logging_as_before():
        status = run(arguments, program=Program(settings=lambda: settings, clock=sandbox.clock))
    return arguments[0], status


@pytest.mark.slow  # every command of the page over four weeks of runs
def test_four_weeks_by_the_page_lead_to_the_first_stop_of_the_first_team(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("event.json").write_text("{}", encoding="utf-8")
    played: list[str] = []
    stopped: dict[str, set[str]] = {}
    shown = ""
    with Sandbox.start() as sandbox:
        for week, text in WEEKS:
            lines = [line for block in re.findall(r"```sh\n(.*?)```", text, re.DOTALL) for line in block.splitlines()]
            for line in lines:
                command, status = play(sandbox, line)
                out = capsys.readouterr()
                assert status in FOUND.get(command, {Exit.OK}), (line, out)
                shown = out.out if command == "rollout" else shown
                played.append(command)
                if line.startswith("costguard policy init"):
                    Path("gpu-policy/costguard.yaml").write_text(POLICY, encoding="utf-8")
                    for name in ("owners.yaml", "policies", "exceptions.yaml"):
                        found = Path("gpu-policy") / name
                        for each in found.rglob("*.yaml") if found.is_dir() else [found]:
                            each.unlink(missing_ok=True)
            for _ in range(7):
                sandbox.advance(DAY)
                play(sandbox, next(line for line in lines if "invoke" in line))
            history = [each for each in sandbox.world.history if each.by == "api"]
            stopped[week] = {sandbox.world.machines[each.machine].spec.tags["owner"] for each in history}
            capsys.readouterr()
    assert {"scan", "policy", "doctor", "invoke", "rollout", "cases", "shadows", "savings"} <= set(played)
    assert Path("waste.html").stat().st_size > 1000
    assert stopped["Week 1"] == stopped["Week 2"] == set(), "nobody is enforced yet"
    assert stopped["Week 3"] == stopped["Week 4"] == {"vision"}, "the first team is, and no other"
    assert "0 of 20 that are needed" in " ".join(shown.split()), "what was not measured holds its step back"
