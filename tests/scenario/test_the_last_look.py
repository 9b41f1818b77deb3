"""Whatever led to a call: mode, rung, notice, grace and limits are asked of ledger and policy, never of a plan."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import time, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from tests.builders import policy, rule
from tests.scenario.stage import CLOUDS, DAY, START, Stage, idle_machine

from costguard.cases import Case, CaseStatus, ClimbedRung, decision_id
from costguard.domain.actions import Action, Verb
from costguard.domain.reasons import Reason, ReasonCode
from costguard.domain.refs import ResourceRef
from costguard.engine.guards.machines.run import InstanceHandler
from costguard.engine.run.act import act
from costguard.engine.run.run import carry_out, committed
from costguard.engine.run.run_context import PrecheckResult
from costguard.guards.rules.common import Limits, Mode
from costguard.planning import Plan, Transition
from costguard.planning.agreed import in_both
from costguard.policy.model.policy import Policy
from costguard.policy.model.terms import with_digest
from costguard.policy.model.working_time import WorkingCalendar

HOUR = timedelta(hours=1)
WEEKDAYS = WorkingCalendar(zone="UTC", weekdays=frozenset(range(5)), opens=time(9), closes=time(17))


@pytest.fixture(params=CLOUDS)
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stage]:
    """One machine whose owner was told a day ago: its stop is due."""
    made = Stage(tmp_path, idle_machine(cloud=request.param), idle_machine("other", cloud=request.param))
    made.day(0)
    made.clock.advance(25 * HOUR)
    yield made
    made.close()


def due(stage: Stage) -> tuple[Plan, Case, Action]:
    """The plan, committed, with the case and the stop of the first machine."""
    plan = committed(stage.world(), stage.plan())
    action = next(each for each in plan.due if each.subject == stage.ref())
    case = next(step.after for step in plan.transitions if step.after.case_id == action.case_id)
    return plan, case, action


def looked(
    stage: Stage, case: Case, action: Action, under: Policy | None = None, earlier: timedelta = timedelta(0)
) -> Reason | PrecheckResult:
    world = stage.world()
    hand = InstanceHandler(world.readings, world.executors)
    return hand.last_look(case, action, under or stage.policy, stage.clock.now() - earlier, world.memory)


def code_of(found: Reason | PrecheckResult) -> ReasonCode | None:
    return found.code if isinstance(found, Reason) else None


def test_what_is_as_the_ledger_and_the_policy_say_is_cleared_for_its_machine_alone(stage: Stage) -> None:
    _, case, action = due(stage)
    cleared = looked(stage, case, action)
    assert isinstance(cleared, PrecheckResult)
    assert cleared.resources == {stage.ref()}


@pytest.mark.parametrize(("mode", "code"), [(Mode.OBSERVE, ReasonCode.MODE_OBSERVE), (Mode.WARN, ReasonCode.MODE_WARN)])
def test_a_rule_that_only_observes_or_warns_stops_nothing_whoever_asks(
    stage: Stage, mode: Mode, code: ReasonCode
) -> None:
    _, case, action = due(stage)
    (known,) = stage.policy.idle_gpu
    assert code_of(looked(stage, case, action, replace(stage.policy, idle_gpu=(replace(known, mode=mode),)))) is code
    assert code_of(looked(stage, replace(case, mode=mode), action)) is code


def test_an_account_that_is_new_is_only_observed_by_the_last_look_too(stage: Stage) -> None:
    _, case, action = due(stage)
    new = replace(stage.policy, observe_new_accounts_for=3 * DAY)
    assert code_of(looked(stage, case, action, new)) is ReasonCode.ACCOUNT_NEW
    assert code_of(looked(stage, case, action, replace(new, observe_new_accounts_for=DAY))) is None


@pytest.mark.parametrize(
    ("rung", "verb"), [(0, Verb.STOP), (1, Verb.SNAPSHOT), (3, Verb.SNAPSHOT), (4, Verb.TERMINATE), (99, Verb.STOP)]
)
def test_another_rung_than_the_ladder_has_there_is_not_taken(stage: Stage, rung: int, verb: Verb) -> None:
    """A terminate whose stop nobody saw is one as well."""
    _, case, action = due(stage)
    (known,) = stage.policy.idle_gpu
    assert [each.verb.value for each in known.rungs()] == ["warn", "stop", "warn", "snapshot", "terminate"]
    refused = looked(stage, replace(case, rung=rung), replace(action, rung=rung, verb=verb))
    assert refused == Reason(ReasonCode.CHANGED_SINCE_PLAN, {"what": "step"})


def test_a_notice_that_the_outbox_does_not_prove_is_none(stage: Stage) -> None:
    """Whatever the case says of it: not there, of another case, or delivered without proof."""
    _, case, action = due(stage)
    (told,) = case.climbed
    assert code_of(looked(stage, replace(case, climbed=()), action)) is ReasonCode.NOTICE_UNDELIVERED
    elsewhere = next(each for each in stage.memory.cases.active("idle_gpu") if each.subject != case.subject)
    for notice in ("nothing", elsewhere.climbed[0].notice):
        other = replace(case, climbed=(replace(told, notice=notice),))
        assert code_of(looked(stage, other, action)) is ReasonCode.NOTICE_UNDELIVERED


def test_the_notice_of_before_the_stop_is_none_of_what_comes_after_it(stage: Stage) -> None:
    """A machine that was told of once and stopped: a case that lists that notice again has not told of its end."""
    stage.at(25 * HOUR)
    stage.at(26 * HOUR)
    stage.at(27 * HOUR)
    kept = stage.case()
    assert [rung.verb.value for rung in kept.climbed] == ["warn", "stop", "warn"]
    action = replace(due_like(kept), verb=Verb.SNAPSHOT)
    stage.clock.advance(8 * DAY)
    first, stop, second = kept.climbed
    refusals = {
        (first, stop): ReasonCode.CHANGED_SINCE_PLAN,
        (first, stop, first): ReasonCode.NOTICE_UNDELIVERED,
        (first, second): ReasonCode.CHANGED_SINCE_PLAN,
    }
    assert code_of(looked(stage, kept, action)) is None
    for climbed, code in refusals.items():
        assert code_of(looked(stage, replace(kept, climbed=climbed), action)) is code


def due_like(case: Case) -> Action:
    """The next step of a case."""
    named = (decision_id(case), decision_id(case), Verb.STOP, case.subject, case.subject, case.run_epoch)
    return Action(*named, case.case_id, case.rung, case.rule, case.rule_digest)


def test_a_case_of_an_earlier_version_finds_its_notice_by_its_delivery(stage: Stage) -> None:
    _, case, action = due(stage)
    (told,) = case.climbed
    before = replace(case, climbed=(ClimbedRung(told.verb, told.at),))
    assert code_of(looked(stage, before, action)) is None
    other_time = replace(case, climbed=(ClimbedRung(told.verb, told.at - HOUR),))
    assert code_of(looked(stage, other_time, action)) is ReasonCode.NOTICE_UNDELIVERED


def test_the_grace_is_counted_from_the_delivery_that_the_outbox_has(stage: Stage) -> None:
    """A case may say that its wait began long ago; and a calendar that came since is heeded."""
    _, case, action = due(stage)
    long_ago = replace(case, since=START - 30 * DAY)
    assert code_of(looked(stage, long_ago, action, earlier=2 * HOUR)) is ReasonCode.WAITING
    assert code_of(looked(stage, long_ago, action)) is None
    working = replace(stage.policy, calendar=WEEKDAYS)
    assert code_of(looked(stage, case, action, working)) is ReasonCode.WAITING


def test_a_plan_that_says_something_else_of_a_case_than_the_ledger_moves_it_nowhere(stage: Stage) -> None:
    plan, case, _ = due(stage)
    world = stage.world()
    hand = InstanceHandler(world.readings, world.executors)
    kept = stage.case()
    mine = tuple(each for each in plan.due if each.case_id == case.case_id)
    for forged in (replace(case, since=START - DAY), replace(case, owner="mallory"), replace(case, rung=4)):
        told = tuple(Transition(step.before, forged if step.after == case else step.after) for step in plan.transitions)
        (result,) = act(replace(plan, due=mine, transitions=told), world, hand)
        assert result.reason == Reason(ReasonCode.CHANGED_SINCE_PLAN, {"what": "case"})
    (result,) = act(replace(plan, due=mine, transitions=()), world, hand)
    assert result.reason == Reason(ReasonCode.CHANGED_SINCE_PLAN, {"what": "case"})
    assert (stage.case(), stage.verbs()) == (kept, [])


FORGERIES: dict[str, Callable[[Action, ResourceRef], Action]] = {
    "subject": lambda action, other: replace(action, subject=other),
    "resource": lambda action, other: replace(action, resource=other),
    "run": lambda action, _: replace(action, run_epoch="another"),
    "rung": lambda action, _: replace(action, rung=3),
    "verb": lambda action, _: replace(action, verb=Verb.TERMINATE),
    "decision": lambda action, _: replace(action, decision_id="0" * 24),
    "id": lambda action, _: replace(action, action_id="0" * 24),
    "rule": lambda action, _: replace(action, rule_digest="0" * 64),
}


@pytest.mark.parametrize("what", FORGERIES)
def test_an_action_that_is_not_the_step_of_its_case_is_never_called(stage: Stage, what: str) -> None:
    """Also where it stands behind another action of the case that is."""
    plan, _, action = due(stage)
    world = stage.world()
    hand = InstanceHandler(world.readings, world.executors)
    forged = FORGERIES[what](action, stage.ref("other"))
    for group in ((forged,), (action, forged)):
        results = act(replace(plan, due=group), world, hand)
        assert {result.reason.code for result in results if result.reason} == {ReasonCode.CHANGED_SINCE_PLAN}
        assert (len(results), stage.verbs()) == (len(group), [])


def test_caps_are_those_of_the_policy_whatever_a_plan_says(tmp_path: Path) -> None:
    none = rule(limits=Limits(actions_per_day=0, fleet_share_per_day=Decimal(1)))
    stage = Stage(tmp_path, under=policy(with_digest(none)))
    stage.day(0)
    stage.clock.advance(25 * HOUR)
    plan = stage.plan()
    (held,) = plan.held
    step = next(each for each in plan.transitions)
    opened = Transition(step.before, replace(step.after, status=CaseStatus.OPEN))
    limits = tuple(replace(each, max_actions=100, seen=100) for each in plan.limits)
    report = carry_out(stage.world(), replace(plan, due=(held.action,), held=(), limits=limits, transitions=(opened,)))
    assert [result.reason.code for result in report.results if result.reason] == [ReasonCode.CAP_ACTIONS]
    assert stage.verbs() == []
    stage.close()


def test_a_whole_run_of_a_plan_that_nobody_was_told_of_stops_nothing(tmp_path: Path) -> None:
    """Carried out as if it were a run's own: a case is opened as the plan says, and the last look finds no notice."""
    stage = Stage(tmp_path)
    plan = stage.plan()
    (step,), (warn,) = plan.transitions, plan.due
    told = replace(step.after, rung=1, climbed=(ClimbedRung(Verb.WARN, START - 2 * DAY, "x"),), since=START - 2 * DAY)
    told = replace(told, decision_id=decision_id(told))
    stop = replace(warn, verb=Verb.STOP, rung=1, decision_id=told.decision_id, action_id=told.decision_id)
    report = carry_out(stage.world(), replace(plan, due=(stop,), transitions=(Transition(None, told),)))
    assert [result.reason.code for result in report.results if result.reason] == [ReasonCode.NOTICE_UNDELIVERED]
    assert (stage.verbs(), stage.state()) == ([], "running")
    stage.close()


def test_what_was_agreed_to_twice_at_once_is_done_once(stage: Stage) -> None:
    """Two people apply one file: both derive it again before either has acted."""
    agreed = stage.plan()
    first, second = (in_both(agreed, stage.plan()).plan for _ in range(2))
    done, lost = (carry_out(stage.world(), replace(plan, run_id=f"cli-{n}")) for n, plan in enumerate((first, second)))
    assert len(done.results) == len(agreed.due) == len(stage.verbs()) == 2
    assert lost.results == ()


def test_a_machine_that_was_started_again_is_not_stopped_by_a_plan_of_its_run_before(stage: Stage) -> None:
    agreed = stage.plan()
    native_id = stage.ref().native_id
    stage.cloud.stop(native_id, "owner")
    stage.clock.advance(HOUR / 2)
    stage.cloud.tick(stage.clock.now())
    stage.cloud.start(native_id, "owner")
    stage.clock.advance(HOUR / 4)
    both = in_both(agreed, stage.plan())
    refused = [(action.subject, why.code) for action, why in both.answers if isinstance(why, Reason)]
    assert refused == [(stage.ref(), ReasonCode.RESTARTED)]
    carry_out(stage.world(), both.plan)
    assert [call.subject for call in stage.executor.calls] == [stage.ref("other")]
