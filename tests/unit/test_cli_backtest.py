"""`costguard policy backtest`: one record, four shapes of answer, and what is wrong told before anything is read."""

from __future__ import annotations

import json
import re
from datetime import datetime, timedelta, timezone
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import typer

from costguard.backtest import ASSUMPTIONS
from costguard.cli.exits import Exit
from costguard.cli.main import run
from costguard.cli.policy.backtest import backtest
from costguard.cli.program import Program
from costguard.report.backtest.markdown import inert
from costguard.report.words.sentences import Language
from costguard.report.words.sentences import in_backtest as say
from costguard.settings import load_settings

SCHEMA = json.loads(files("costguard.report").joinpath("schemas/backtest.schema.json").read_text(encoding="utf-8"))
VALID = jsonschema.Draft202012Validator(SCHEMA)
ALONE = typer.Typer()
ALONE.command()(backtest)
START = datetime(2026, 3, 2, tzinfo=timezone.utc)
POLICY = """\
version: 1
idle_gpu:
  - name: research
    idle_when_all: {lasting: %s, every_gpu_max_below: 5%%}
    then: [warn, {stop: {wait: 2h}}]
"""


def use(native_id: str, values: list[float]) -> str:
    """A row an hour of one card."""
    ref = f"aws:111122223333:us-east-1:instance:{native_id}"
    return "".join(
        f"{(START + timedelta(hours=hour)).strftime('%Y-%m-%dT%H:%M:%SZ')},{ref},gpu_percent,0,{value},60\n"
        for hour, value in enumerate(values)
    )


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two policies, and a record of two machines: one comes back after half a day, one never."""
    folder = tmp_path_factory.mktemp("backtest")
    (folder / "new.yaml").write_text(POLICY % "3h", encoding="utf-8")
    (folder / "old.yaml").write_text(POLICY % "24h", encoding="utf-8")
    (folder / "none.yaml").write_text("version: 1\nkms_rotation: [{name: all, rotate_every: 90d}]\n", encoding="utf-8")
    history = folder / "history"
    history.mkdir()
    (history / "instances.csv").write_text(
        "resource_id,instance_type,accelerators,owner,hourly_price,currency\n"
        "aws:111122223333:us-east-1:instance:i-1,g5.xlarge,1,[nlp](http://x) @team|,2.50,USD\n"
        "aws:111122223333:us-east-1:instance:i-2,g5.xlarge,1,vision,7,CNY\n",
        encoding="utf-8",
    )
    (history / "use.csv").write_text(
        "time,resource_id,signal,device,value,samples\n"
        + use("i-1", [0.0] * 12 + [90.0] * 6 + [101.0] + [0.0] * 5)
        + use("i-2", [0.0] * 100),
        encoding="utf-8",
    )
    return folder


def told(desk: Path, capfd: pytest.CaptureFixture[str], *options: str) -> tuple[int, str, str]:
    arguments = [str(desk / "new.yaml"), "--history", str(desk / "history"), *options]
    status = run(arguments, ALONE, Program(settings=lambda: load_settings({})))
    out, err = capfd.readouterr()
    return status, out, err


def test_json_has_the_documented_shape_and_adds_up(desk: Path, capfd: pytest.CaptureFixture[str]) -> None:
    options = ["--current", str(desk / "old.yaml"), "--grid", "5%,10%,3h,24h", "--json"]

    status, out, _ = told(desk, capfd, *options)

    found: Any = json.loads(out)
    VALID.validate(found)
    assert status == Exit.OK
    assert (found["new"]["total"]["stops"], found["current"]["total"]["stops"]) == (2, 1)
    assert found["new"]["total"]["reclaimed_hours"] == (12 - 5) + (100 - 5)
    assert found["new"]["total"]["reclaimed"] == [
        {"amount": "665", "currency": "CNY"},
        {"amount": "17.50", "currency": "USD"},
    ]
    day = found["new"]["total"]["regret"][2]
    assert (day["within_hours"], day["yes"], day["no"], day["undetermined"]) == (24, 1, 1, 0)
    assert [each["stops"] for each in found["new"]["by_team"]] == [1, 1]
    assert [(each["gpu_max_below_percent"], each["window_seconds"]) for each in found["grid"]] == [
        (5.0, 10800),
        (5.0, 86400),
        (10.0, 10800),
        (10.0, 86400),
    ]
    assert [(doubt["line"], doubt["value"]) for doubt in found["doubts"]] == [(20, "101.0")]


def test_people_are_told_in_their_language_and_told_what_is_assumed(
    desk: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    _, english, _ = told(desk, capfd, "--lang", "en")
    _, chinese, _ = told(desk, capfd, "--lang", "zh")

    assert "It would have stopped 2 machines 2 times, reclaimed 102 idle hours" in english
    assert "会停止 2 台机器共 2 次" in chinese
    for language, out in ((Language.EN, english), (Language.ZH, chinese)):
        assert all(say(f"assumes_{name}", language) in out for name in ASSUMPTIONS)


def test_the_markdown_comment_holds_no_mark_up_from_outside(desk: Path, capfd: pytest.CaptureFixture[str]) -> None:
    target = desk / "comment.md"
    told(desk, capfd, "--current", str(desk / "old.yaml"), "--markdown", str(target))

    text = target.read_text("utf-8")
    assert text.startswith("### Back-test of a policy\n")
    assert "| Stops | 2 | 1 | +1 |" in text
    assert "| Reclaimed (CNY) | 665.00 | 518.00 | +147 |" in text
    assert "| Reclaimed (USD) | 17.50 | 0 | +17.5 |" in text
    assert "[nlp](" not in text
    assert "@team" not in text
    rows = [line for line in text.splitlines() if "nlp" in line]
    assert [len(re.findall(r"(?<!\\)\|", row)) for row in rows] == [12]
    assert inert("a|b<c>") == r"a\|b\<c\>"


def test_the_page_needs_nothing_else(desk: Path, capfd: pytest.CaptureFixture[str]) -> None:
    target = desk / "page.html"
    told(desk, capfd, "--html", str(target), "--lang", "zh")

    text = target.read_text("utf-8")
    assert text.startswith('<!doctype html>\n<html lang="zh-CN">')
    assert "<script" not in text
    assert "http" not in re.sub(r"\[nlp\]\(http://x\)|http-equiv", "", text)
    assert "策略回测" in text


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--every", "90m"], "--every 90m: whole hours"),
        (["--every", "soon"], "--every: "),
        (["--since", "2026-03-02T00:30:00Z"], "expected a whole hour"),
        (["--since", "2026-03-02T00:00:00"], "does not say its zone"),
        (["--since", "2027-03-02T00:00:00Z"], "is not before --until"),
        (["--grid", "5"], "--grid: '5' has no unit"),
        (["--html", "/no/where/x.html"], "/no/where/x.html: cannot be written"),
        (["--current", "nothing.yaml"], "nothing.yaml"),
        (["--history", "nothing.csv"], "nothing.csv: cannot be read"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_is_made_up(
    options: list[str], said: str, desk: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    status, out, err = told(desk, capfd, *options)

    assert (status, out) == (Exit.BAD_INPUT, "")
    assert said in err


def test_a_policy_without_idle_rules_has_nothing_to_replay(desk: Path, capfd: pytest.CaptureFixture[str]) -> None:
    status = run([str(desk / "none.yaml"), "--history", str(desk / "history")], ALONE, Program())

    assert status == Exit.BAD_INPUT
    assert "nothing to replay" in capfd.readouterr().err
