"""What waits become as runs come: whole runs, and never less than the policy says."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from costguard.policy.documents.loader import load_policy
from costguard.policy.sections import RUNS_EVERY, RunWait, waits_of, whole_runs
from costguard.ports import PolicyText
from costguard.report.policy.waits import wait_json, waits_table
from costguard.report.words.sentences import Language

HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
ROOT = Path(__file__).parents[2]
POLICY = """\
version: 1
mode: enforce
priority_classes: [{name: dev, applies_when_all: {tags: {stage: dev}}}]
launch_freezes: [{name: folder, cloud: alibaba, via: organisation, policy: cp-1a2b3c4d5e6f7g8h, target: fd-1a2b3c4d5e}]
idle_gpu:
  - name: research
    then: [warn, snapshot, {stop: {wait: 36h}}, {terminate: {wait: 7d}}]
budgets:
  - name: team
    monthly: 5000 USD
    at: {100%: [{stop_idle: {idle_for: 1h, wait: 4h}}], 110%: [{stop: {classes: [dev], wait: 90m}}]}
kms_rotation: [{name: ninety-days, wait: 24h}]
network_audit:
  - {name: told, forbid: [public_ip]}
  - {name: closed, forbid: [unattached_public_address], mend: [release_address], wait: 3d}
"""


def waits(text: str = POLICY, every: timedelta | None = None) -> tuple[RunWait, ...]:
    policy = load_policy(PolicyText({"costguard.yaml": text}, "r1"))
    return waits_of(policy, RUNS_EVERY if every is None else dict.fromkeys(RUNS_EVERY, every))


@given(st.integers(1, 90 * 24 * 60), st.integers(1, 8 * 24 * 60))
def test_a_wait_becomes_whole_runs_and_is_never_shorter(wait: int, every: int) -> None:
    given_, often = timedelta(minutes=wait), timedelta(minutes=every)
    becomes = whole_runs(given_, often)
    assert becomes % often == timedelta(0)
    assert given_ <= becomes < given_ + often


def test_each_guard_runs_as_often_as_its_function_is_scheduled() -> None:
    """By the fields of cron that are stars: every hour, or every day."""
    for guard, every in RUNS_EVERY.items():
        facts: Any = YAML(typ="safe").load((ROOT / "functions" / guard / "function.yaml").read_text(encoding="utf-8"))
        minute, hour, *rest = facts["schedule"].split()
        assert (minute.isdigit(), rest) == (True, ["*", "*", "*"])
        assert every == (HOUR if hour == "*" else DAY)


def test_as_shipped_only_what_is_no_whole_hour_becomes_longer() -> None:
    assert [(each.rule, each.step, each.becomes) for each in waits() if each.is_longer] == [
        ("team", "stop_classes", 2 * HOUR)
    ]


def test_every_wait_is_named_with_what_it_becomes_under_a_daily_run() -> None:
    told = [(each.guard, each.rule, each.step, each.wait, each.becomes) for each in waits(every=DAY)]
    assert told == [
        ("idle_gpu", "research", "stop", 36 * HOUR, 2 * DAY),
        ("idle_gpu", "research", "terminate", 7 * DAY, 7 * DAY),
        ("budget", "team", "stop_idle", 4 * HOUR, DAY),
        ("budget", "team", "stop_classes", 1.5 * HOUR, DAY),
        ("kms_rotation", "ninety-days", "mend", DAY, DAY),
        ("network_audit", "closed", "mend", 3 * DAY, 3 * DAY),
    ]


def test_a_freeze_comes_one_run_later_as_no_run_waits_for_it() -> None:
    text = POLICY.replace("{stop: {classes: [dev], wait: 90m}}", "{freeze: {of: [folder], wait: 4h}}")
    assert [each.becomes for each in waits(text) if each.step == "freeze"] == [5 * HOUR]


def test_with_a_calendar_nobody_can_say_how_long_it_is() -> None:
    told = waits(POLICY + 'calendar: {zone: UTC, days: mon-fri, hours: "09:00-17:00"}\n', every=DAY)
    assert {each.becomes for each in told} == {None}
    assert not any(each.is_longer for each in told)
    assert wait_json(told[0])["becomes_seconds"] is None
    assert "working hours" in waits_table(told).rows[0][-1]


@pytest.mark.parametrize("language", list(Language))
def test_every_step_has_a_word(language: Language) -> None:
    text = POLICY.replace("{stop: {classes: [dev], wait: 90m}}", "{freeze: {of: [folder], wait: 4h}}")
    both = (*waits(every=DAY), *waits(text, every=DAY), *waits(POLICY.replace("snapshot,", "{snapshot: {wait: 1h}},")))
    rows = waits_table(both, language).rows
    assert all(all(row) and not row[1].startswith("policy_wait") for row in rows)
