"""What a file may hold that says it is a plan: refused in words, at once, whatever it is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests import builders as b

from costguard.cli.plan_file import plan_hash, read_plan, write_plan
from costguard.domain.errors import InvalidInputError
from costguard.planning import PlanInputs, build_plan
from costguard.report.words import Language


@pytest.fixture
def saved(tmp_path: Path) -> dict[str, Any]:
    inputs = PlanInputs("idle_gpu", "cli-1", b.NOW, b.policy(), (b.shard_facts(b.fact()),), (b.case(),))
    write_plan(tmp_path / "made.json", build_plan(inputs), Language.EN)
    document: dict[str, Any] = json.loads((tmp_path / "made.json").read_text("utf-8"))
    return document


def refused(folder: Path, document: Any) -> str:
    path = folder / "plan.json"
    path.write_text(document if isinstance(document, str) else json.dumps(document), "utf-8")
    with pytest.raises(InvalidInputError) as caught:
        read_plan(path)
    return str(caught.value)


def forged(document: dict[str, Any]) -> dict[str, Any]:
    """With a hash that fits: it binds a plan, and signs nothing."""
    return {**document, "plan_hash": plan_hash(document["plan"])}


@pytest.mark.parametrize("body", ['{"a": NaN}', '{"a": -Infinity}', '{"a": "\\ud800"}', '{"\\ud800": 1}'])
def test_a_body_that_json_cannot_carry_has_no_hash(tmp_path: Path, body: str) -> None:
    assert "altered" in refused(tmp_path, f'{{"language": "en", "plan_hash": "x", "plan": {body}}}')


@pytest.mark.parametrize("language", [[], {}, None, 1])
def test_a_language_that_is_none_is_refused(tmp_path: Path, language: object) -> None:
    assert "not a plan" in refused(tmp_path, {"language": language, "plan_hash": "x", "plan": {}})


@pytest.mark.parametrize("amount", ["1E+999999999", "1E-999999999", "NaN", "9" * 5000])
def test_an_amount_is_not_written_out_before_it_is_looked_at(
    tmp_path: Path, saved: dict[str, Any], amount: str
) -> None:
    saved["plan"]["findings"][0]["rate"]["money"]["amount"] = amount
    assert "plan again" in refused(tmp_path, forged(saved))


@pytest.mark.parametrize("stamp", ["2026-03-10T12:30:00", "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59"])
def test_a_time_without_offset_or_at_the_edge_of_the_calendar_is_refused(
    tmp_path: Path, saved: dict[str, Any], stamp: str
) -> None:
    saved["plan"]["planned_at"] = stamp
    assert "plan again" in refused(tmp_path, forged(saved))


def test_what_is_kept_by_resource_must_be_kept_by_resource(tmp_path: Path, saved: dict[str, Any]) -> None:
    saved["plan"]["kept"] = "nothing"
    assert "plan again" in refused(tmp_path, forged(saved))


def test_a_name_with_a_nul_is_no_file() -> None:
    with pytest.raises(InvalidInputError, match="cannot be read"):
        read_plan(Path("a\x00b"))
