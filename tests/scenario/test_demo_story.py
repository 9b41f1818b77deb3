"""`costguard demo`: twelve days, and what became of everybody. One demo, told as facts and as text."""

from __future__ import annotations

import io
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import typer
from tests.docs_zh.in_step import facts_of

from costguard.cli.demo.demo import live_through
from costguard.cli.demo.facts import DemoDay, Names, demo_json, names_of
from costguard.cli.demo.story import EVENTS
from costguard.cli.demo.text import day_heading, day_lines
from costguard.cli.main import app
from costguard.cli.output import to_json
from costguard.cli.program import Program, workplace
from costguard.report.words.sentences import Language

AGREED = "batch-transcoder"  # its owner and an approver let its local disk go
STOPPED = ["ad-ranking-dev", "cloud-desktop", "npc-notebook", "staging-inference", "thesis-notebook"]
TERMINATED = ["npc-notebook", "thesis-notebook"]


@pytest.fixture(scope="module")
def lived() -> tuple[Any, str, str]:
    """One demo, as facts, as `costguard demo > file` leaves it, and its first days told once more in Chinese."""
    context, told = typer.Context(typer.main.get_command(app), obj=Program()), io.StringIO()
    with workplace(context, lang=Language.EN, sandbox=True) as here, redirect_stdout(told):
        days, ending = live_through(here, 12, show=True)
    chinese = "\n".join(_in_chinese(days[:2], names_of(days[0].plan)))
    return json.loads(to_json(demo_json(days, ending, Language.EN))), told.getvalue(), chinese


def _in_chinese(days: Sequence[DemoDay], names: Names) -> Iterator[str]:
    for before, day in zip((None, *days), days, strict=False):
        yield day_heading(day, Language.ZH)
        yield from day_lines(day, before, names, Language.ZH)


@pytest.fixture(scope="module")
def story(lived: tuple[Any, str, str]) -> Any:
    """The whole demo as facts."""
    return lived[0]


@pytest.fixture(scope="module")
def text(lived: tuple[Any, str, str]) -> str:
    """The whole demo as people read it."""
    return lived[1]


def on(story: Any, day: int) -> Any:
    return story["days"][day]


def names(day: Any, what: str, verb: str) -> list[str]:
    return sorted({one["name"] for one in day[what] if one["verb"] == verb})


def titles(day: Any) -> str:
    return "\n".join(told["title"] for told in day["told"])


def test_twelve_days_pass_and_an_hour_after_them_the_last_step_is_seen(story: Any) -> None:
    assert [day["day"] for day in story["days"]] == [*range(13), 12]
    assert on(story, 0)["at"] == "2026-03-02T09:00:00Z"
    assert on(story, 13)["at"] == "2026-03-14T10:00:00Z"


def test_owners_are_told_a_day_before_anything_is_stopped(story: Any) -> None:
    told = on(story, 0)

    assert names(told, "due", "warn") == [
        "ad-ranking-dev",
        "batch-transcoder",
        "click-model-p100",
        "cloud-desktop",
        "npc-notebook",
        "spot-worker",
        "staging-inference",
        "thesis-notebook",
    ]
    assert names(told, "due", "stop") == []
    assert {one["channel"].removeprefix("#gpu-") for one in told["told"]} == {
        *("media", "platform", "search", "speech", "vision", "recsys", "games", "costs"),
    }
    assert names(on(story, 1), "done", "stop") == STOPPED
    assert {one["outcome"] for one in on(story, 1)["done"]} == {"accepted"}


def test_an_owner_saves_a_machine_just_in_time(story: Any) -> None:
    assert "ablation-runs" in names(on(story, 1), "due", "warn")
    assert "presses Keep until … below ablation-runs" in on(story, 2)["news"][0]
    assert not any("ablation-runs" in names(day, "done", "stop") for day in story["days"])
    assert next(one for one in story["left_alone"] if one["name"] == "ablation-runs")["reason"] == "snoozed"


def test_a_local_disk_is_lost_once_its_owner_has_read_which_and_approved(story: Any) -> None:
    asked = next(one for one in on(story, 1)["held"] if one["name"] == AGREED)
    assert asked["reason"] == "approval_needed"
    assert "its 8,000 GB local disk will be empty" in titles(on(story, 1))
    assert "presses Approve" in on(story, 2)["news"][1]
    assert names(on(story, 2), "done", "stop") == [AGREED]
    assert AGREED in names(on(story, 3), "seen", "stop")
    dear = [one for day in story["days"][1:] for one in day["held"] if one["name"] == "click-model-p100"]
    assert {one["reason"] for one in dear} == {"approval_needed"}, "nobody agreed, so nothing was done"


def test_who_works_again_is_left_in_peace(story: Any) -> None:
    assert "nightly-eval is safe" in titles(on(story, 3))
    assert not any("nightly-eval" in names(day, "done", "stop") for day in story["days"])
    assert names(on(story, 2), "seen", "stop") == STOPPED


def test_a_machine_is_started_again_by_the_button_below_the_news_of_its_stop(story: Any) -> None:
    assert "presses Start again" in on(story, 6)["news"][0]
    assert [one["name"] for one in on(story, 6)["started"]] == ["staging-inference"]
    assert "staging-inference runs again" in titles(on(story, 7))
    assert [day["day"] for day in story["days"] if day["started"]] == [6]
    stops = [day["day"] for day in story["days"] if "staging-inference" in names(day, "done", "stop")]
    assert stops == [1], "its owner works on it: it is left in peace"


def test_nothing_is_stopped_at_a_weekend_and_the_story_says_why(story: Any) -> None:
    assert "nightly-eval" in names(on(story, 4), "due", "warn")
    assert "2026-03-09 09:00" in titles(on(story, 4))
    assert "It is Saturday" in on(story, 5)["news"][0]
    weekends = [day for day in story["days"] if datetime.fromisoformat(day["at"][:10]).weekday() >= 5]
    assert len(weekends) >= 3
    assert [name for day in weekends for name in names(day, "done", "stop")] == []
    assert "nightly-eval is safe" in titles(on(story, 7))


def test_the_machine_that_nobody_misses_is_copied_whole_and_then_terminated(story: Any) -> None:
    copied = [one["id"] for one in on(story, 10)["done"] if one["verb"] == "snapshot"]

    assert len(copied) == len(set(copied)) == 4
    assert names(on(story, 11), "seen", "snapshot") == TERMINATED
    assert names(on(story, 12), "done", "terminate") == TERMINATED
    assert names(on(story, 13), "seen", "terminate") == TERMINATED
    assert all(f"{name} was terminated" in titles(on(story, 13)) for name in TERMINATED)
    assert [name for day in story["days"] for name in names(day, "done", "terminate")] == TERMINATED


def test_what_it_refused_to_touch_is_told_with_its_reason(story: Any) -> None:
    assert {one["name"]: one["reason"] for one in story["left_alone"]} == {
        "reserved-capacity": "reserved",
        "ablation-runs": "snoozed",
        "paper-demo": "protected_tag",
        "world-model-8": "partly_idle",
        "cluster-trial": "partly_idle",
        "spot-worker": "mode_warn",
        "eks-gpu-node-2": "kubernetes",
        "shared-login-node": "protected_by_cloud",
        "asg-inference-7": "autoscaled",
        "click-model-p100": "approval_needed",
        "annotation-yearly": "prepaid",
        "tke-gpu-node-1": "kubernetes",
    }
    touched = {one["name"] for day in story["days"] for one in day["done"]}
    assert touched == {*STOPPED, *TERMINATED, AGREED}


def test_what_nobody_can_judge_is_told(story: Any) -> None:
    assert {one["name"] for one in story["unmeasured"]} == {
        "trainium-pilot",
        "embedding-service",
        "translation-canary",
        "legacy-ocr",
    }


def test_the_money_is_counted_from_what_was_seen_less_what_stays_billed(story: Any) -> None:
    saved = story["saved"]
    machines = {one["name"]: one for one in saved["machines"]}
    total = {"CNY": 0.0, "USD": 0.0}
    for one in saved["machines"]:
        net = float(one["hourly_cost"]["amount"]) - float(one["stays_billed_hourly"]["amount"])
        total[one["hourly_cost"]["currency"]] += float(one["hours"]) * net

    assert sorted(machines) == sorted([*STOPPED, AGREED])
    assert (machines["staging-inference"]["hours"], machines["staging-inference"]["until"]) == (
        "96",
        "2026-03-08T09:00:00Z",
    )
    assert machines["thesis-notebook"]["until"] is None
    others = [one for one in saved["machines"] if one["name"] != AGREED]  # the price of its disk is not known
    assert all(float(one["stays_billed_hourly"]["amount"]) > 0 for one in others)
    assert {one["currency"]: float(one["amount"]) for one in saved["total"]} == pytest.approx(total)
    dollars = next(one for one in saved["hourly"] if one["currency"] == "USD")
    going_on = [one for one in saved["machines"] if one["until"] is None and one["hourly_cost"]["currency"] == "USD"]
    left = sum(float(one["hourly_cost"]["amount"]) - float(one["stays_billed_hourly"]["amount"]) for one in going_on)
    assert float(dollars["amount"]) == pytest.approx(left, abs=0.001)
    assert float(saved["copies_hourly_at_most"][0]["amount"]) > 0


def test_budgets_alert_as_the_days_pass_once_each(story: Any) -> None:
    """One in dollars, one in yuan, and the company's around both."""
    told = [one["title"] for day in story["days"] for one in day["told"] if one["title"].startswith("Budget ")]
    of_research = [title.removeprefix("Budget research: ") for title in told if "research" in title]
    shares = [float(day["budgets"][-1]["share_percent"]) for day in story["days"]]

    assert len(told) == len(set(told)) == 7
    assert of_research == [
        "100 % of 12,000.00 USD will be passed by the end of the period",
        *(f"{share} % of 12,000.00 USD is spent" for share in (50, 80, 100)),
    ]
    assert shares == sorted(shares)
    spent = {one["name"]: (one["amount"]["currency"], one["spent"]["currency"]) for one in story["budgets"]}
    assert spent == {"company": ("CNY", "CNY"), "games": ("CNY", "CNY"), "research": ("USD", "USD")}


def test_a_budget_is_sure_once_the_bills_have_caught_up(story: Any) -> None:
    sure = [{one["name"] for one in day["budgets"] if one["sure"]} for day in story["days"]]
    assert sure[0] == set()
    assert sure[-1] == {"company", "games", "research"}


def test_the_audit_is_whole(story: Any) -> None:
    assert story["audit"]["whole"] is True
    assert story["audit"]["entries"] > 50


def test_the_text_is_clean_narrow_and_names_every_machine(text: str) -> None:
    lines = text.splitlines()

    assert "\x1b" not in text
    assert [line for line in lines if len(line) > 80 or line != line.rstrip()] == []
    assert 120 <= len(lines) <= 300
    assert [
        line for line in lines if re.search(r"\bi-[0-9a-f]{17}\b(?! was terminated \(thesis-notebook\))", line)
    ] == []
    assert text.count("Day ") == 14


def test_the_same_days_in_chinese(lived: tuple[Any, str, str]) -> None:
    """Told from the same facts: living through them in another language takes as long again and shows no more."""
    assert "第 1 天，2026-03-03 09:00 UTC" in lived[2]
    assert "停机 ad-ranking-dev" in lived[2] or "停机：ad-ranking-dev" in lived[2]
    assert all(event.text_zh.strip() and not event.text_zh.isascii() for event in EVENTS)


def transcript() -> list[str]:
    """What the README shows of the demo, but for what it leaves out."""
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    shown = readme.partition("```text\n")[2].partition("```")[0]
    return [line for line in shown.splitlines() if line.strip() not in {"", "…"}]


def test_the_readme_shows_the_machines_and_figures_of_the_demo(text: str) -> None:
    """The first thing anybody sees must be true."""
    shown = facts_of("\n".join(transcript()))
    assert len(shown) > 60
    assert shown - facts_of(text) == Counter()


@pytest.mark.release
def test_the_readme_shows_what_the_demo_prints_word_for_word(text: str) -> None:
    printed = text.splitlines()
    assert len(transcript()) > 40
    assert [line for line in transcript() if line not in printed] == []
