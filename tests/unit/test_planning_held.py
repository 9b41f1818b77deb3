"""What a plan holds is shown with what would be done and why not; what was heard of a decision settles it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from tests.builders import DAY, NOW, case, detail, fact, history, instance, policy, ref, rule, shard_facts, usd

from costguard.cases import Case, CaseStatus, ClimbedRung, Phase, claimed, confirming, decision_id
from costguard.domain.actions import Action, Outcome, Saving, Verb
from costguard.domain.findings import InstanceFact
from costguard.domain.money import HourlyRate
from costguard.domain.reasons import FactValue, Reason, ReasonCode
from costguard.domain.resources import InstanceState
from costguard.guards.rules.common import Step
from costguard.planning import ClaimView, Held, NoticeView, Plan, PlanInputs, Transition, build_plan
from costguard.policy.model.terms import terms

HOUR = timedelta(hours=1)
STOPPED = instance(state=InstanceState.STOPPED)
SPOT = instance(cannot_stop="one_time_spot")
HALTED = (ClimbedRung(Verb.WARN, NOW - 10 * DAY), ClimbedRung(Verb.STOP, NOW - 9 * DAY))


def inputs(one: InstanceFact | None = None, **changes: Any) -> PlanInputs:
    """One machine, noticed a day ago and read closely."""
    one = one or fact()
    ordinary = PlanInputs(
        "idle_gpu",
        "run-1",
        NOW,
        policy(),
        (shard_facts(one),),
        cases=(case(),),
        details={one.instance.ref: detail(one.instance)},
    )
    return replace(ordinary, **changes)


def kept_back(plan: Plan) -> tuple[Verb, Reason]:
    (held,) = plan.held
    assert plan.due == ()
    return held.action.verb, held.reason


def moved(plan: Plan) -> Case:
    (move,) = plan.transitions
    return move.after


def test_a_rail_holds_the_case_with_its_decision_open() -> None:
    """The owner approves this very decision."""
    machine = fact(instance(local_disk_gib=125.0))
    plan = build_plan(inputs(machine))
    why = Reason(ReasonCode.APPROVAL_NEEDED, {"local_disk_gib": 125.0})
    decision = decision_id(case())
    expected = Action(
        action_id=decision,
        decision_id=decision,
        verb=Verb.STOP,
        subject=ref(),
        resource=ref(),
        run_epoch="epoch-1",
        case_id="case-1",
        rung=1,
        rule="research",
        rule_digest=rule().digest,
        saving=Saving(usd("1.00"), (), ("local_disk_lost",), HourlyRate(usd("1.00"), "test", "2026-01-01"), 125.0),
    )
    assert plan.held == (Held(expected, why),)
    after = replace(case(), status=CaseStatus.HELD, reason=why, decision_id=decision)
    assert plan.transitions == (Transition(case(), after),)


def test_a_case_that_cannot_be_judged_shows_what_it_would_do() -> None:
    silent = fact(instance(), history(missing=range(25)))
    plan = build_plan(inputs(silent))
    verb, why = kept_back(plan)
    assert (verb, why.code) == (Verb.STOP, ReasonCode.UNMEASURED)
    assert plan.held[0].action.decision_id == decision_id(case()), "shown under the decision it would be"
    assert moved(plan).decision_id == ""


def test_a_case_in_an_unread_shard_shows_what_it_would_do() -> None:
    plan = build_plan(inputs(facts=()))
    why = Reason(ReasonCode.ACCOUNT_UNREAD, {"shard": "aws:111122223333:us-east-1"})
    assert kept_back(plan) == (Verb.STOP, why)
    assert plan.held[0].action.saving is None, "its price was not read either"
    assert plan.transitions == (Transition(case(), replace(case(), status=CaseStatus.HELD, reason=why)),)


def test_a_quarantined_machine_in_an_unread_shard_shows_its_snapshots() -> None:
    copying = case(rung=3, climbed=HALTED, since=NOW - 8 * DAY)
    assert kept_back(build_plan(inputs(facts=(), details={}, cases=(copying,))))[0] is Verb.SNAPSHOT


def test_a_case_that_only_waits_its_time_is_not_shown_as_held() -> None:
    assert build_plan(inputs(cases=(case(since=NOW),))).held == ()


def test_a_held_snapshot_of_a_machine_not_read_closely_is_one_action() -> None:
    copying = case(rung=3, climbed=HALTED, since=NOW - 8 * DAY)
    plan = build_plan(inputs(fact(STOPPED), cases=(copying,), details={}))
    assert kept_back(plan) == (Verb.SNAPSHOT, Reason(ReasonCode.DETAIL_UNREAD))
    assert (plan.held[0].action.resource, plan.held[0].action.saving) == (ref(), None)


def test_a_machine_without_volumes_is_held_as_one_action() -> None:
    copying = case(rung=3, climbed=HALTED, since=NOW - 8 * DAY)
    bare = {STOPPED.ref: detail(STOPPED, volumes=())}
    plan = build_plan(inputs(fact(STOPPED), cases=(copying,), details=bare))
    assert kept_back(plan) == (Verb.SNAPSHOT, Reason(ReasonCode.NO_VOLUMES))


def test_what_cannot_stop_is_shown_as_a_stop_that_cannot_be() -> None:
    copies_first = rule(ladder=(Step(Verb.SNAPSHOT, DAY), Step(Verb.STOP, DAY)))
    told = case(rung=1, rule_digest=copies_first.digest, terms=terms(copies_first))
    plan = build_plan(inputs(fact(SPOT), policy=policy(copies_first), cases=(told,)))
    assert kept_back(plan) == (Verb.STOP, Reason(ReasonCode.CANNOT_STOP, {"cause": "one_time_spot"}))


def test_a_held_case_whose_rule_is_gone_shows_no_step() -> None:
    """There is no ladder to say what would come next."""
    called = confirming(claimed(case(rule="gone"), NOW))
    plan = build_plan(inputs(facts=(), cases=(called,), policy=policy()))
    assert (plan.held, plan.due) == ((), ())
    assert moved(plan).status is CaseStatus.HELD


def asked(**changes: Any) -> Case:
    """A notice asked for two hours ago."""
    return confirming(claimed(case(rung=0, **changes), NOW - 2 * HOUR))


def heard(view: NoticeView | None, before: Case | None = None) -> Case:
    before = before or asked()
    notices = {} if view is None else {before.decision_id: view, "another": NoticeView(NOW - DAY)}
    return moved(build_plan(inputs(cases=(before,), notices=notices)))


def test_a_delivered_notice_starts_the_grace() -> None:
    after = heard(NoticeView(NOW - HOUR))
    assert (after.rung, after.since) == (1, NOW - HOUR)


@pytest.mark.parametrize("dead", [False, True])
def test_an_undelivered_notice_is_held_as_pending_or_rejected(dead: bool) -> None:  # noqa: FBT001 - a case of two
    facts: dict[str, FactValue] = {"dead": int(dead)}
    assert heard(NoticeView(None, dead)).reason == Reason(ReasonCode.NOTICE_UNDELIVERED, facts)


def test_a_notice_that_came_too_late_is_decided_anew() -> None:
    after = heard(NoticeView(None, late=True))
    assert (after.phase, after.failures) == (Phase.WAITING, 0)


def test_what_became_of_a_notice_is_pending_until_something_is_known() -> None:
    assert NoticeView(None) == NoticeView(None, dead=False, late=False)


def test_a_notice_that_nobody_wrote_is_decided_anew() -> None:
    after = heard(None)
    assert (after.phase, after.failures) == (Phase.WAITING, 1)


def test_a_claim_whose_notice_is_not_in_the_outbox_yet_is_pending() -> None:
    """The intent is written before the notice is."""
    before = asked()
    plan = build_plan(inputs(cases=(before,), claims={before.decision_id: ClaimView(None, "")}))
    assert moved(plan).reason == Reason(ReasonCode.NOTICE_UNDELIVERED, {"dead": 0})


@pytest.mark.parametrize(
    ("claims", "code"),
    [
        ({}, ReasonCode.NOT_TAKEN_EFFECT),
        ({"this": ClaimView(Outcome.REFUSED, "")}, ReasonCode.NOT_TAKEN_EFFECT),
        ({"this": ClaimView(Outcome.ACCEPTED, "")}, ReasonCode.OUTCOME_UNKNOWN),
        ({"this": ClaimView(None, "")}, ReasonCode.OUTCOME_UNKNOWN),
        ({"another": ClaimView(Outcome.ACCEPTED, "")}, ReasonCode.NOT_TAKEN_EFFECT),
    ],
)
def test_what_came_of_a_terminate_is_read_from_its_own_intents(claims: dict[str, ClaimView], code: ReasonCode) -> None:
    called = confirming(claimed(case(rung=4, climbed=HALTED), NOW - 2 * HOUR))
    own = {called.decision_id if name == "this" else name: view for name, view in claims.items()}
    assert moved(build_plan(inputs(fact(STOPPED), cases=(called,), claims=own))).reason.code is code


def test_a_snooze_holds_until_its_last_minute_and_no_longer() -> None:
    asleep = build_plan(inputs(snoozes={str(ref()): NOW + timedelta(minutes=1)}))
    assert (asleep.due, moved(asleep).status) == ((), CaseStatus.SNOOZED)
    awake = build_plan(inputs(snoozes={str(ref()): NOW}))
    assert [action.verb for action in awake.due] == [Verb.STOP]
    long_over = build_plan(inputs(snoozes={str(ref()): NOW - DAY}))
    assert [action.verb for action in long_over.due] == [Verb.STOP]


def test_a_keep_since_the_notice_begins_its_wait_anew_though_it_is_over() -> None:
    told = case(climbed=(ClimbedRung(Verb.WARN, NOW - DAY),))
    kept = build_plan(inputs(cases=(told,), kept_at={str(ref()): NOW - HOUR}))
    assert [action.verb for action in kept.due] == [Verb.WARN]
    of_another = build_plan(inputs(cases=(told,), kept_at={str(ref("i-2")): NOW - HOUR}))
    assert [action.verb for action in of_another.due] == [Verb.STOP]
