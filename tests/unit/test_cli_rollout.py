"""`costguard rollout`: of each entry the mode now, the next step, its condition as measured, what holds it back."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import typer

from cloudstand.clock import MovedClock
from costguard.adapters.ledgers import open_ledger
from costguard.adapters.policy_sources.files import FilePolicySource
from costguard.cli.look.rollout import rollout
from costguard.cli.main import run
from costguard.cli.program import Program
from costguard.engine.ledger.learned import ShadowRepository
from costguard.engine.ledger.memory import Memory
from costguard.engine.ledger.notices import OutboxNotice
from costguard.planning.rollout import announcement_id
from costguard.planning.shadows import ShadowStanding, ShadowTally, TeamTally
from costguard.policy.documents.loader import load_policy
from costguard.ports import Delivery
from costguard.settings import Secret, load_settings

VALID = jsonschema.Draft202012Validator(
    json.loads(files("costguard.report").joinpath("schemas/rollout.schema.json").read_text(encoding="utf-8"))
)
ALONE = typer.Typer()
ALONE.command()(rollout)
NOW, DAY = datetime(2026, 12, 22, 9, tzinfo=timezone.utc), timedelta(days=1)
POLICY = """\
version: 1
mode: enforce
owners: [{name: nlp, owns: {tags: {team: nlp}}}, {name: vision, owns: {tags: {team: vision}}}]
notify: {default: "slack:#gpu"}
idle_gpu: [{name: research}, {name: try-out, shadow: true}]
rollout:
  - team: nlp
    steps:
      - {mode: warn, since: 2026-12-07}
      - {mode: enforce, since: 2026-12-21, when: {regret_below: 10%, in_shadow: try-out}}
  - {team: vision, steps: [{mode: warn, since: 2026-12-07}]}
  - {team: "*", steps: [{mode: warn, since: 2027-01-11}]}
"""
Shown = Callable[..., tuple[int, str]]


@pytest.fixture
def shown(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Shown:
    (tmp_path / "costguard.yaml").write_text(POLICY, encoding="utf-8")
    policy = load_policy(FilePolicySource(str(tmp_path / "costguard.yaml")).read())
    url = f"sqlite:///{tmp_path / 'ledger.sqlite3'}"
    store = open_ledger(url)
    memory = Memory.over(store)
    for team in (1, 2):  # in the order of their names: *, nlp, vision
        entry = policy.rollout[team]
        one = OutboxNotice(announcement_id(entry, entry.steps[0]), "", "", "slack:#gpu", "t", "t", NOW - 20 * DAY)
        memory.outbox.enqueue(one)
        memory.outbox.delivered([one], Delivery("ts"), NOW - 20 * DAY)
    digest = policy.shadows.idle_gpu[0].digest
    tally = TeamTally("nlp", "111122223333", ShadowTally(busy_within_a_day=3, busy_later=17))
    standing = ShadowStanding("idle_gpu", "try-out", digest, NOW - 20 * DAY, NOW - DAY, compared=9, by=(tally,))
    ShadowRepository(store).keep(standing)
    store.close()

    def show(*arguments: str) -> tuple[int, str]:
        settings = replace(load_settings({}), ledger=Secret(url), policy=str(tmp_path / "costguard.yaml"))
        code = run(arguments, commands=ALONE, program=Program(settings=lambda: settings, clock=MovedClock(NOW)))
        return code, capfd.readouterr().out

    return show


def entries(text: str) -> list[dict[str, Any]]:
    document = json.loads(text)
    VALID.validate(document)
    return list(document["entries"])


def test_each_entry_says_where_it_stands_and_what_the_next_step_waits_for(shown: Shown) -> None:
    code, text = shown("--json")
    rest, nlp, vision = entries(text)
    assert code == 0
    assert (nlp["team"], nlp["mode"], nlp["next"]["mode"]) == ("nlp", "warn", "enforce")
    assert nlp["next"]["measured"] == {"stops": 20, "regretted": 3, "share": 0.15}
    assert nlp["next"]["held"]["reason"] == "rollout_regret"
    assert (vision["mode"], vision["next"]) == ("warn", None)
    assert (rest["team"], rest["mode"], rest["next"]["held"]) == ("*", "observe", None)


def test_people_read_it_as_a_table_in_both_languages(shown: Shown) -> None:
    _, english = shown()
    for said in ("all others", "warn", "enforce", "15 %", "2026-12-21 00:00 UTC", "Announced a week ahead"):
        assert said in " ".join(english.split()), said
    _, chinese = shown("--lang", "zh")
    assert "推行进度" in chinese


def test_one_team_alone(shown: Shown) -> None:
    assert [each["team"] for each in entries(shown("--team", "nlp", "--json")[1])] == ["nlp"]


def test_a_policy_without_a_rollout_says_so(shown: Shown, tmp_path: Path) -> None:
    (tmp_path / "costguard.yaml").write_text("version: 1\nidle_gpu: [{name: a}]\n", encoding="utf-8")
    assert "no `rollout`" in shown()[1]
    assert entries(shown("--json")[1]) == []
