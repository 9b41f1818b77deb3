"""What a file may hold that says it is a plan: refused in words, at once, whatever it is."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests import builders as b

from costguard.cli.decide.plan_file import plan_hash, read_plan, write_plan
from costguard.domain.errors import InvalidInputError
from costguard.planning import Plan, PlanInputs, build_plan
from costguard.report.words.sentences import Language


@pytest.fixture
def saved(tmp_path: Path) -> dict[str, Any]:
    write_plan(tmp_path / "made.json", a_plan(), Language.EN)
    document: dict[str, Any] = json.loads((tmp_path / "made.json").read_text("utf-8"))
    return document


def a_plan() -> Plan:
    return build_plan(PlanInputs("idle_gpu", "cli-1", b.NOW, b.policy(), (b.shard_facts(b.fact()),), (b.case(),)))


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


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


@pytest.fixture
def open_to_all() -> Iterator[None]:
    """A process whose files everybody may read and write, unless it says otherwise."""
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.usefixtures("open_to_all")
def test_a_plan_file_is_its_owners_alone_also_where_another_stood(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    write_plan(path, a_plan(), Language.EN)
    assert mode_of(path) == 0o600
    path.write_text("an older one, open to all", "utf-8")
    path.chmod(0o666)
    with path.open("rb") as somebody_reads:
        write_plan(path, a_plan(), Language.EN)
        assert somebody_reads.read() == b"an older one, open to all", "what was open before never holds the new plan"
    assert (mode_of(path), read_plan(path)) == (0o600, a_plan())
    assert [each.name for each in tmp_path.iterdir()] == ["plan.json"]


@pytest.mark.parametrize("target", ["a file", "nothing"])
def test_a_plan_is_not_written_through_a_link(tmp_path: Path, target: str) -> None:
    elsewhere, link = tmp_path / "elsewhere", tmp_path / "plan.json"
    if target == "a file":
        elsewhere.write_text("precious", "utf-8")
    link.symlink_to(elsewhere)
    with pytest.raises(InvalidInputError, match="it is a link"):
        write_plan(link, a_plan(), Language.EN)
    assert link.is_symlink()
    assert elsewhere.exists() == (target == "a file")
    assert target == "nothing" or elsewhere.read_text("utf-8") == "precious"


def test_a_plan_takes_no_other_things_place(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (pipe, tmp_path, tmp_path / "nowhere" / "plan.json", Path("a\x00b")):
        with pytest.raises(InvalidInputError, match="cannot be written"):
            write_plan(path, a_plan(), Language.EN)
    assert [each.name for each in tmp_path.iterdir()] == ["pipe"]
