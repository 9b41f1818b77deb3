"""A week of runs, and what is told of it on Monday: from the ledger alone, once, and with nothing hidden."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.builders import policy
from tests.scenario.stage import DAY, START, Stage, idle_machine

from cloudstand.world import workload
from costguard.adapters.object_stores.folder import FolderStore
from costguard.domain.errors import UnavailableError
from costguard.engine.digest import (
    DigestRun,
    FirstPage,
    Means,
    digest_summary,
    look_now,
    plan_digest,
    report_facts,
    run_digest,
    run_first,
)
from costguard.engine.ledger.runs import LookRepository
from costguard.guards.rules.common import Selector
from costguard.policy.model.policy import Owner
from costguard.report.charts.values import Chart
from costguard.report.facts import days_shown
from costguard.report.notices.machines import Notice
from costguard.report.page.page import Drawing
from costguard.report.words.sentences import Language


class Picture:
    """A chart drawn without any library."""

    def __init__(self, chart: Chart) -> None:
        self.body = type(chart).__name__.encode()
        self.replaced: tuple[str, ...] = ()


class FullDisk:
    """A place that keeps nothing any more."""

    def put(self, name: str, body: bytes, content_type: str) -> str:
        del body, content_type
        message = f"folder:put: no space left for {name}"
        raise UnavailableError(message, operation="folder:put")

    def get(self, name: str) -> bytes:
        raise NotImplementedError(name)


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    owners = (
        Owner("vision", Selector(tags={"owner": "vision"}), "slack:#gpu-vision"),
        Owner("speech", Selector(tags={"owner": "speech"})),
    )
    rules = replace(policy(), owners=owners, default_channel="slack:#gpu-costs")
    staged = Stage(
        tmp_path,
        idle_machine(),
        idle_machine("trainer", does=workload.busy()),
        idle_machine("kept", tags={"owner": "speech", "costguard-protect": "true"}),
        under=rules,
    )
    yield staged
    staged.close()


def told(stage: Stage, run_id: str = "monday", means: Means | None = None) -> DigestRun:
    stage.mailbox.messages.clear()
    return run_digest(
        stage.memory,
        stage.policy,
        stage.mailbox,
        stage.clock,
        run_id,
        means or Means(Drawing(lambda _chart: "<svg></svg>"), Picture),
    )


def test_a_week_is_told_to_all_and_to_each_team_with_a_channel(stage: Stage, tmp_path: Path) -> None:
    stage.days(range(5))
    assert stage.state() == "stopped"

    done = told(stage, means=Means(Drawing(lambda _: "<svg></svg>"), Picture, FolderStore(tmp_path / "reports")))

    every, vision = stage.mailbox.messages
    assert (every.channel, vision.channel) == ("slack:#gpu-costs", "slack:#gpu-vision")
    fields = dict(every.fields)
    assert "USD" in fields["Saved since 2026-02-27"]
    assert "idle machines: 1; not to be touched: 1" in fields["Still wasted a day"]  # the protected one
    assert any(line.startswith("Idle for longest: kept (speech)") for line in every.lines)
    assert "kept" not in vision.text
    assert vision.title == "GPU spend this week: vision"
    page = Path(done.kept.page)
    assert f"The whole report: {page}" in every.lines
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert Path(done.kept.chart).read_bytes() == b"BarChart"
    assert page.parent.name == "digests"
    assert page.name.startswith("2026-W10-")
    assert digest_summary(done)["pages_kept"] == 1


def test_the_same_digest_is_told_once(stage: Stage) -> None:
    stage.day(0)
    assert told(stage).delivered == 2

    again = told(stage)

    assert again.duplicate
    assert stage.mailbox.messages == []


def test_the_first_digest_is_one_page_kept_and_told_to_all_once(stage: Stage, tmp_path: Path) -> None:
    means = Means(Drawing(lambda _: ""), None, FolderStore(tmp_path / "reports"))
    first = FirstPage("<!doctype html>", lambda kept: Notice("Day one", (), (kept.page,)), {"idle": 1})
    world = (stage.memory, stage.policy, stage.mailbox, stage.clock)

    done = run_first(*world, "day-one", means, first)
    again = run_first(*world, "day-one", means, first)

    (message,) = stage.mailbox.messages
    assert (message.channel, message.title) == ("slack:#gpu-costs", "Day one")
    assert Path(done.kept.page).read_text(encoding="utf-8") == first.page
    assert done.kept.page in message.text
    assert (digest_summary(done)["idle"], again.duplicate) == (1, True)


def test_a_digest_cut_short_is_finished_and_nobody_hears_it_twice(stage: Stage) -> None:
    stage.day(0)
    stage.mailbox.down = True
    assert told(stage).delivered == 0

    stage.mailbox.down = False
    stage.at(DAY / 2)  # the next run of any guard delivers what is due

    titles = [title for title in stage.mailbox.titles if title.startswith("GPU spend")]
    assert sorted(titles) == ["GPU spend this week", "GPU spend this week: vision"]
    assert told(stage).duplicate


def test_the_next_digest_says_what_changed(stage: Stage) -> None:
    stage.day(0)
    told(stage, "first")
    assert "This is the first digest: there is nothing to compare with." in stage.mailbox.messages[0].lines
    stage.days(range(1, 5))

    told(stage, "second")

    assert "idle machines: 2 then, 1 now" in stage.mailbox.messages[0].lines


def test_a_page_that_cannot_be_kept_is_said_and_holds_nothing_back(stage: Stage) -> None:
    stage.day(0)

    done = told(stage, means=Means(Drawing(None, "no library"), None, FullDisk()))

    assert done.delivered == 2
    assert any("could not be kept: folder:put: no space left" in line for line in stage.mailbox.messages[0].lines)


def test_nothing_to_say_is_one_line_and_no_run_yet_is_another(tmp_path: Path) -> None:
    rules = replace(policy(), default_channel="#all")
    quiet = Stage(tmp_path, idle_machine("trainer", does=workload.busy()), under=rules)
    told(quiet, "before any run")
    assert quiet.mailbox.messages[0].lines == ("Nothing to say: no run has kept what it saw yet.",)
    quiet.day(0)

    told(quiet)

    (message,) = quiet.mailbox.messages
    assert message.fields == ()
    assert message.lines == ("Nothing to say this week: nothing is idle, held, spent or unseen.",)
    quiet.close()


def test_showing_a_digest_tells_nobody_and_writes_nothing(stage: Stage) -> None:
    stage.day(0)
    stage.mailbox.messages.clear()

    shown = plan_digest(stage.memory, stage.policy, "monday", stage.clock.now(), Language.ZH)

    assert [one.channel for one in shown.told] == ["slack:#gpu-costs", "slack:#gpu-vision"]
    assert "每天仍在浪费" in shown.told[0].notice.text
    assert stage.mailbox.messages == []
    assert not told(stage).duplicate


def test_days_add_up_over_runs_without_asking_any_cloud_again(stage: Stage) -> None:
    stage.days(range(3))

    facts = report_facts(stage.memory, START, stage.clock.now())

    (kept,) = [one for one in facts.idle if one.name == "kept"]
    assert kept.may_not_be_touched
    assert len(kept.busy) == 4  # the day before the first run, and three
    assert facts.idle_since(kept) == START.replace(hour=0)  # the day before was not measured whole
    assert facts.saved is not None


def test_a_look_taken_now_shows_fourteen_days_and_writes_nothing(stage: Stage) -> None:
    taken = look_now(stage.world())

    facts = report_facts(stage.memory, START - DAY, stage.clock.now(), taken=[taken])
    assert facts.live
    assert {one.name for one in facts.idle} == {"notebook", "kept"}
    assert len(days_shown(facts)) == 12  # launched ten days ago, in a stretch of time that the day before shares
    assert LookRepository(stage.memory.store).get("idle_gpu") is None
    assert stage.mailbox.messages == []
    assert stage.executor.calls == []
