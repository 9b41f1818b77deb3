"""`costguard policy check`: every mistake with its place, nothing else touched."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from costguard.cli.exits import Exit
from costguard.cli.main import run
from costguard.report.words.sentences import phrase

VALID = """\
version: 1
mode: observe
idle_gpu:
  - name: research
    then: [warn, {stop: {wait: 24h}}]
"""


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    path = tmp_path / "costguard.yaml"
    path.write_text(VALID, encoding="utf-8")
    return path


def test_a_valid_policy_says_what_each_rule_does(policy: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["policy", "check", str(policy)]) == Exit.OK

    out = capfd.readouterr().out
    assert phrase("policy_valid", rules=1, files=1) in out
    assert "warn the owner → stop (+24h)" in out


def test_a_valid_policy_as_json(policy: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["policy", "check", str(policy), "--json"]) == Exit.OK

    told = json.loads(capfd.readouterr().out)
    assert (told["valid"], told["mode"], told["problems"]) == (True, "observe", [])
    assert told["rules"][0]["ladder"][1] == {"verb": "stop", "after_seconds": 86400}


def test_what_waits_become_under_a_daily_run_is_shown(policy: Path, capfd: pytest.CaptureFixture[str]) -> None:
    policy.write_text(VALID.replace("24h", "36h"), encoding="utf-8")

    assert run(["policy", "check", str(policy)]) == Exit.OK
    assert "What waits become" not in capfd.readouterr().out, "as shipped the function runs every hour"

    assert run(["policy", "check", str(policy), "--runs-every", "24h"]) == Exit.OK
    (row,) = (line.split() for line in capfd.readouterr().out.splitlines() if line.split()[:2] == ["research", "stop"])
    assert row == ["research", "stop", "36h", "24h", "48h"]

    assert run(["policy", "check", str(policy), "--runs-every", "24h", "--json"]) == Exit.OK
    told = json.loads(capfd.readouterr().out)["waits"]
    facts = {"wait_seconds": 129600, "runs_every_seconds": 86400, "becomes_seconds": 172800}
    assert told == [{"guard": "idle_gpu", "rule": "research", "step": "stop", **facts}]


@pytest.mark.parametrize("often", ["0h", "59s", "daily"])
def test_what_is_no_time_between_runs_is_refused(policy: Path, often: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["policy", "check", str(policy), "--runs-every", often]) == Exit.BAD_INPUT
    assert "--runs-every" in capfd.readouterr().err


def test_budgets_are_told_beside_the_rules(policy: Path, capfd: pytest.CaptureFixture[str]) -> None:
    policy.write_text(VALID + "budgets: [{name: team, monthly: 5000 USD, at: {100%: [stop_idle]}}]\n", encoding="utf-8")

    assert run(["policy", "check", str(policy)]) == Exit.OK

    out = capfd.readouterr().out
    assert phrase("policy_valid_budgets", rules=1, budgets=1, files=1) in out
    assert "5,000 USD a month" in out


def test_budgets_alone_are_a_policy(policy: Path, capfd: pytest.CaptureFixture[str]) -> None:
    policy.write_text("version: 1\nbudgets: [{name: team, monthly: 5000 USD}]\n", encoding="utf-8")

    assert run(["policy", "check", str(policy), "--json"]) == Exit.OK

    told = json.loads(capfd.readouterr().out)
    assert (told["rules"], told["budgets"][0]["amount"]) == ([], {"amount": "5000", "currency": "USD"})


def test_words_follow_the_language(policy: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["policy", "check", str(policy), "--lang", "zh"]) == Exit.OK

    assert "策略有效" in capfd.readouterr().out


def test_every_mistake_is_told_with_file_line_column_and_fix(policy: Path, capfd: pytest.CaptureFixture[str]) -> None:
    policy.write_text(VALID.replace("mode: observe", "mdoe: observe"), encoding="utf-8")

    assert run(["policy", "check", str(policy)]) == Exit.BAD_INPUT

    out, err = capfd.readouterr()
    assert out == ""
    assert f"{policy}:2:1: mdoe" in err
    assert "did you mean mode?" in err


def test_mistakes_as_json_go_to_standard_output(policy: Path, capfd: pytest.CaptureFixture[str]) -> None:
    policy.write_text(VALID.replace("24h", "24"), encoding="utf-8")

    assert run(["policy", "check", str(policy), "--json"]) == Exit.BAD_INPUT

    told = json.loads(capfd.readouterr().out)
    assert told["valid"] is False
    assert told["problems"][0]["line"] == 5
    assert told["problems"][0]["fix"]
    shown, caret = told["problems"][0]["excerpt"].split("\n")
    assert shown[caret.index("^") :].startswith("24")


def test_no_policy_at_the_path_is_bad_input(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["policy", "check", str(tmp_path / "none")]) == Exit.BAD_INPUT

    assert "no such file or folder" in capfd.readouterr().err


def test_the_dates_of_holidays_are_written_beside_the_policy(policy: Path, capfd: pytest.CaptureFixture[str]) -> None:
    policy.write_text(VALID + 'calendar: {zone: Asia/Shanghai, hours: "10:00-18:00", holidays: cn}\n', encoding="utf-8")
    run(["policy", "check", str(policy.parent), "--json"])
    before = json.loads(capfd.readouterr().out)["digest"]

    assert run(["policy", "check", str(policy.parent), "--write-holidays"]) == Exit.OK

    written = policy.parent / "holidays.yaml"
    assert str(written) in capfd.readouterr().out.replace("\n", "")
    assert "2026-10-07" in written.read_text(encoding="utf-8")
    run(["policy", "check", str(policy.parent), "--json"])
    assert json.loads(capfd.readouterr().out)["digest"] == before


def test_dates_are_written_into_a_folder_only(policy: Path, capfd: pytest.CaptureFixture[str]) -> None:
    policy.write_text(VALID + 'calendar: {zone: UTC, hours: "10:00-18:00", holidays: cn}\n', encoding="utf-8")

    assert run(["policy", "check", str(policy), "--write-holidays"]) == Exit.BAD_INPUT

    assert "name its folder" in capfd.readouterr().err
