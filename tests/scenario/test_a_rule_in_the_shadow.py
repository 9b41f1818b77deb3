"""A rule in the shadow lives beside the one that decides: it shows where it would differ, and touches nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from importlib.resources import files
from pathlib import Path

import jsonschema
import pytest
from tests.builders import policy, rule
from tests.scenario.stage import DAY, START, Stage, idle_machine

from cloudstand.world.records import Operation
from cloudstand.world.workload import BUSY, idle
from costguard.domain.actions import Verb
from costguard.domain.findings import Verdict
from costguard.engine.digest import of_owner, report_facts
from costguard.engine.ledger.learned import ShadowRepository
from costguard.engine.run.run import summary
from costguard.guards.rules.common import Mode, Selector, Step
from costguard.guards.rules.idle import IdleRule
from costguard.planning.plan import Differs
from costguard.planning.shadows import ShadowStanding, shadow_guard
from costguard.policy.model.policy import Policy, Shadows
from costguard.policy.model.terms import with_digest
from costguard.report.notices.digest import Kept, digest_notice
from costguard.report.page.page import Drawing, report_page
from costguard.report.page.to_json import report_json
from costguard.report.plan.shadows import planned_lines, shadow_lines, shadow_tables
from costguard.report.words.sentences import Language, phrase

SCHEMA = json.loads(files("costguard.report").joinpath("schemas/report.schema.json").read_text(encoding="utf-8"))
HOUR = timedelta(hours=1)
SLOW = (Step(Verb.WARN, timedelta(0)), Step(Verb.STOP, 3 * DAY))
QUICK = (Step(Verb.WARN, timedelta(0)), Step(Verb.STOP, HOUR))


def shadow_rule(**changes: object) -> IdleRule:
    return rule("quick", **{"mode": Mode.OBSERVE, "ladder": QUICK, **changes})


def with_shadow(decides: IdleRule, shadow: IdleRule) -> Policy:
    return policy(decides, shadows=Shadows(idle_gpu=(shadow,)))


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    """One machine idle for ever, and one that is used again in the evening of the second day."""
    pausing = idle_machine("pausing", does=idle().then(START + DAY + 9 * HOUR, BUSY))
    made = Stage(tmp_path, idle_machine(), pausing, under=with_shadow(rule(ladder=SLOW), shadow_rule()))
    yield made
    made.close()


def standing(stage: Stage) -> ShadowStanding:
    (found,) = ShadowRepository(stage.memory.store).all()
    return found


def test_a_quicker_rule_shows_what_it_would_have_stopped_and_what_it_would_have_regretted(stage: Stage) -> None:
    stage.day(0)
    assert {each.differs for each in standing(stage).differences} == {Differs.SOONER}
    stage.at(timedelta(hours=2))
    assert standing(stage).would_stop == 2
    stage.day(2)  # 15 hours after the pausing machine was used again
    found = standing(stage)

    assert (found.would_stop, found.compared) == (1, 2)
    assert found.tally.stops == 1
    assert (found.tally.busy_within_a_day, found.tally.busy_later) == (0, 1)
    assert stage.verbs() == [], "in force nothing is due before the third day"
    stage.days((3, 4))
    assert stage.verbs() == ["stop"], "and then what is in force decides, as if there were no other rule"
    assert standing(stage).tally.stopped == 1, "the machine was stopped all the same"


def test_use_within_a_day_of_the_stop_that_did_not_happen_is_a_regret(tmp_path: Path) -> None:
    pausing = idle_machine(does=idle().then(START + 10 * HOUR, BUSY))
    stage = Stage(tmp_path, pausing, under=with_shadow(rule(ladder=SLOW), shadow_rule()))

    for hours in (0, 2, 11):
        stage.at(timedelta(hours=hours))

    tally = standing(stage).tally
    assert (tally.stops, tally.busy_within_a_day, tally.idle_hours) == (1, 1, 10.0)
    stage.close()


def test_the_plan_in_force_is_the_same_with_and_without_a_shadow(tmp_path: Path) -> None:
    alone = Stage(tmp_path / "a", idle_machine(), under=policy())
    beside = Stage(tmp_path / "b", idle_machine(), under=with_shadow(rule(), shadow_rule(applies_to=Selector())))

    for day in range(14):
        plans = [stage.day(day).plan for stage in (alone, beside)]
        first, second = (plan for plan in plans if plan is not None)
        assert replace(second, shadows=()) == first, f"day {day}"
    assert alone.verbs() == beside.verbs() == ["stop", "snapshot", "terminate"]
    alone.close()
    beside.close()


def test_a_stricter_shadow_shows_what_only_the_rule_in_force_would_do(tmp_path: Path) -> None:
    blind = shadow_rule(idle=replace(rule().idle, lasting=30 * DAY))
    stage = Stage(tmp_path, idle_machine(), under=with_shadow(rule(), blind))

    stage.day(0)

    (difference,) = standing(stage).differences
    assert difference.differs is Differs.ONLY_IN_FORCE
    assert difference.shadow.verdict is Verdict.UNMEASURED, "younger than its window"
    assert difference.in_force.stops_at is not None
    stage.close()


def test_a_shadow_looks_over_its_own_window(tmp_path: Path) -> None:
    """What is read of signals reaches back as far as the longest of all rules, those in the shadow included."""
    longer = shadow_rule(idle=replace(rule().idle, lasting=9 * DAY))
    stage = Stage(tmp_path, idle_machine(), under=with_shadow(rule(), longer))

    stage.day(0)

    assert [each.differs for each in standing(stage).differences] == [Differs.SOONER]
    stage.close()


def test_a_changed_shadow_begins_its_tally_anew(stage: Stage) -> None:
    stage.at(timedelta(hours=0))
    stage.at(timedelta(hours=2))
    stage.day(2)
    assert standing(stage).tally.stops == 1

    stage.policy = with_shadow(rule(ladder=SLOW), with_digest(replace(shadow_rule(), ladder=SLOW)))
    stage.at(2 * DAY + HOUR)

    assert (standing(stage).tally.stops, standing(stage).since) == (0, START + 2 * DAY + HOUR)


def test_a_shadow_nobody_followed_for_a_week_does_not_count_the_waits_of_the_past(stage: Stage) -> None:
    stage.day(0)
    in_shadow, stage.policy = stage.policy, policy(rule(mode=Mode.OBSERVE))
    stage.day(9)
    stage.policy = in_shadow
    stage.day(10)
    assert stage.memory.cases.active(shadow_guard("quick")) == ()
    stage.at(10 * DAY + HOUR / 2)

    assert standing(stage).would_stop == 0, "its hour of waiting begins now"


def test_two_runs_are_told_by_name_and_in_both_languages(stage: Stage) -> None:
    report = stage.day(0)

    assert summary(report)["shadows"] == {"quick": 2}
    english = shadow_lines([standing(stage)])
    chinese = shadow_lines([standing(stage)], Language.ZH)
    assert english == ("quick (idle_gpu): 2 of 2 differ; it would have stopped 0 that run now.",)
    assert "影子规则" in chinese[0]
    (table,) = shadow_tables([standing(stage)])
    assert [row[3] for row in table.rows] == ["sooner in the shadow"] * 2


def test_where_nothing_was_read_nothing_is_said_to_agree(stage: Stage) -> None:
    stage.cloud.deny(stage.ref().cloud, stage.ref().account, Operation.LIST)
    plan = stage.plan()
    for language in Language:
        (line,) = planned_lines(plan.shadows, "idle_gpu", language)
        assert line == phrase("shadow_unseen", language, rule="quick", guard="idle_gpu")
    assert "nothing was compared" in planned_lines(plan.shadows, "idle_gpu")[0]


def test_the_report_and_the_digest_show_them_until_no_run_follows_them_any_more(stage: Stage) -> None:
    stage.day(0)
    facts = report_facts(stage.memory, START, stage.clock.now())
    page = report_page(facts, Language.EN, Drawing(None, "no charts here"))
    document = json.loads(json.dumps(report_json(facts)))
    jsonschema.validate(document, SCHEMA, cls=jsonschema.Draft202012Validator)
    assert "sooner in the shadow" in page
    assert document["shadows"][0]["differences"][0]["differs"] == "sooner"
    said = digest_notice(facts, Kept(), Language.EN).lines
    assert "quick (idle_gpu): 2 of 2 differ; it would have stopped 0 that run now." in said
    assert of_owner(facts, "nobody").shadows[0].differences == ()

    stage.policy = policy(rule(ladder=SLOW))
    stage.at(timedelta(hours=1))
    assert report_facts(stage.memory, START, stage.clock.now()).shadows == ()
