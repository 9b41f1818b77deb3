"""Termination protection as the clouds mean it: what it bars in either reading, and how people are told."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from tests.builders import (
    DAY,
    NOW,
    case,
    detail,
    fact,
    finding,
    instance,
    policy,
    ref,
    rule,
    seen,
    shard_facts,
    snapshot,
)

from costguard.cases import Case, CaseStatus, ClimbedRung, Phase, advance
from costguard.domain.actions import Outcome, Verb
from costguard.domain.findings import Verdict
from costguard.domain.reasons import Reason, ReasonCode
from costguard.domain.resources import Instance, InstanceState
from costguard.guards.budget.steps import BudgetStanding, machine_rules
from costguard.guards.idle.judge import judge_instance, kept_reason
from costguard.guards.rules.common import Bars, Protection, Step, barring
from costguard.guards.rules.idle import IdleRule
from costguard.planning import Plan, PlanInputs, build_plan, exemption, world_rail
from costguard.policy.diff.differences import Direction
from costguard.policy.diff.idle import loosens
from costguard.policy.diff.policies import policy_differences
from costguard.policy.documents.loader import load_policy
from costguard.policy.model.policy import Policy
from costguard.policy.model.terms import rule_from_terms, terms, with_digest
from costguard.ports import PolicyText

TERMINATION, STOP, LOCK = "termination_protection", "stop_protection", "locked_security"
LOOSE = rule(termination_protection_bars=Bars.TERMINATE)
STOPPED = instance(state=InstanceState.STOPPED)
RUNGS: dict[Verb, int] = {
    verb: place for place, verb in enumerate(rung.verb for rung in LOOSE.rungs()) if verb is not Verb.WARN
}
SECOND_NOTICE = RUNGS[Verb.STOP] + 1


def loose_case(rung: int = 1, *climbed: Verb, **changes: Any) -> Case:
    steps = tuple(ClimbedRung(verb, NOW - 9 * DAY) for verb in climbed)
    ordinary = case(rung=rung, climbed=steps, rule_digest=LOOSE.digest, terms=terms(LOOSE), since=NOW - 8 * DAY)
    return replace(ordinary, **changes)


def held_by(*protections: str) -> Reason:
    return Reason(ReasonCode.PROTECTED_BY_CLOUD, {"protection": ", ".join(protections)})


def rail(
    verb: Verb, *protections: str, on: Case | None = None, of: IdleRule = LOOSE, listed: bool = False
) -> Reason | None:
    on = on or loose_case(0 if verb is Verb.WARN else RUNGS[verb])
    subject = instance() if on.climbed_at(Verb.STOP) is None else STOPPED
    subject = replace(subject, protected_by=protections) if listed else subject
    found = detail(subject, protected_by=() if listed else protections, snapshots=(snapshot(started_at=NOW - DAY),))
    return world_rail(verb, on, of, subject, found, approved=False)


BEHIND_STOP = (Verb.WARN, Verb.STOP)


@pytest.mark.parametrize("listed", [True, False])
def test_termination_protection_bars_terminate_and_neither_warn_nor_stop(*, listed: bool) -> None:
    assert rail(Verb.WARN, TERMINATION, listed=listed) is None
    assert rail(Verb.STOP, TERMINATION, listed=listed) is None
    at_the_end = loose_case(RUNGS[Verb.TERMINATE], *BEHIND_STOP, Verb.WARN, Verb.SNAPSHOT)
    assert rail(Verb.TERMINATE, TERMINATION, on=at_the_end, listed=listed) == held_by(TERMINATION)
    assert rail(Verb.TERMINATE, on=at_the_end) is None


@pytest.mark.parametrize("listed", [True, False])
def test_what_only_leads_to_a_barred_end_is_barred_with_it(*, listed: bool) -> None:
    noticed = loose_case(SECOND_NOTICE, *BEHIND_STOP)
    copying = loose_case(RUNGS[Verb.SNAPSHOT], *BEHIND_STOP, Verb.WARN)
    assert rail(Verb.WARN, TERMINATION, on=noticed, listed=listed) == held_by(TERMINATION)
    assert rail(Verb.SNAPSHOT, TERMINATION, on=copying, listed=listed) == held_by(TERMINATION)
    assert rail(Verb.WARN, on=noticed) is None
    assert rail(Verb.SNAPSHOT, on=copying) is None


@pytest.mark.parametrize("of", [rule(), LOOSE])
def test_stop_protection_bars_stop_in_both_readings(of: IdleRule) -> None:
    assert rail(Verb.STOP, STOP, of=of) == held_by(STOP)
    assert rail(Verb.WARN, STOP, of=of) == held_by(STOP)


def test_stop_protection_bars_terminate_too_as_ec2_says() -> None:
    assert rail(Verb.TERMINATE, STOP, on=loose_case(RUNGS[Verb.TERMINATE], *BEHIND_STOP)) == held_by(STOP)


def test_where_only_a_notice_is_asked_for_neither_protection_bars_it() -> None:
    telling = with_digest(replace(LOOSE, ladder=(Step(Verb.WARN, timedelta(0)),)))
    assert rail(Verb.WARN, TERMINATION, STOP, of=telling) is None
    assert rail(Verb.WARN, TERMINATION, STOP, of=rule(ladder=telling.ladder)) == held_by(STOP, TERMINATION)


def test_copies_asked_for_by_themselves_are_made() -> None:
    copying = with_digest(replace(LOOSE, ladder=(Step(Verb.WARN, timedelta(0)), Step(Verb.SNAPSHOT, timedelta(0)))))
    assert rail(Verb.SNAPSHOT, TERMINATION, on=loose_case(1, Verb.WARN), of=copying) is None


@pytest.mark.parametrize("verb", [Verb.WARN, Verb.STOP])
def test_a_lock_bars_everything_in_both_readings(verb: Verb) -> None:
    assert rail(verb, LOCK, TERMINATION) == held_by(LOCK)
    assert kept_reason(instance(protected_by=(LOCK, TERMINATION)), Bars.TERMINATE) == held_by(LOCK)
    assert kept_reason(instance(protected_by=(LOCK, TERMINATION)), Bars.EVERYTHING) == held_by(LOCK, TERMINATION)


def test_a_protection_nobody_knows_bars_everything() -> None:
    assert barring(("new_kind_of_protection",), Verb.WARN, Bars.TERMINATE) == ("new_kind_of_protection",)


def test_a_listing_that_tells_of_termination_protection_makes_no_machine_exempt() -> None:
    """Alibaba Cloud and Tencent Cloud list it, AWS shows it up close: the verdict is the same."""
    listed = instance(protected_by=(TERMINATION,))
    assert judge_instance(fact(listed), LOOSE, NOW).verdict is Verdict.VIOLATION
    assert judge_instance(fact(listed), rule(), NOW).verdict is Verdict.EXEMPT
    house = policy(LOOSE, protection=Protection(termination_protection_bars=Bars.TERMINATE))
    assert exemption(listed, house, NOW) is None
    assert exemption(listed, policy(), NOW) == held_by(TERMINATION)


# what was announced before the protection


@pytest.mark.parametrize("at", [Verb.SNAPSHOT, Verb.TERMINATE])
def test_protection_set_after_the_notice_sends_the_case_back_to_it(at: Verb) -> None:
    """Else the machine would be gone within a run of the protection's end, on a notice of long ago."""
    told = loose_case(RUNGS[at], *BEHIND_STOP, Verb.WARN)
    of_it = {"rule": LOOSE, "finding": finding(STOPPED, Verdict.COMPLIANT)}
    step = advance(told, seen(STOPPED, detail=detail(STOPPED, protected_by=(TERMINATION,)), **of_it))
    assert step.wants is None
    assert step.case is not None
    assert (step.case.rung, step.case.status, step.case.reason) == (
        SECOND_NOTICE,
        CaseStatus.HELD,
        held_by(TERMINATION),
    )
    assert [rung.verb for rung in step.case.climbed] == [Verb.STOP]
    again = advance(step.case, seen(STOPPED, detail=detail(STOPPED), **of_it))
    assert again.wants is Verb.WARN


def test_a_listing_that_shows_the_protection_in_the_middle_of_a_wait_is_enough() -> None:
    waits = loose_case(RUNGS[Verb.SNAPSHOT], *BEHIND_STOP, Verb.WARN, since=NOW - DAY)
    listed = replace(STOPPED, protected_by=(TERMINATION,))
    step = advance(waits, seen(listed, rule=LOOSE, finding=finding(listed, Verdict.COMPLIANT)))
    assert step.case is not None
    assert (step.wants, step.case.rung, step.case.reason) == (None, SECOND_NOTICE, held_by(TERMINATION))


def test_protection_seen_while_a_copy_is_confirmed_counts_at_once() -> None:
    made = snapshot(started_at=NOW - DAY)
    copying = loose_case(RUNGS[Verb.SNAPSHOT], *BEHIND_STOP, Verb.WARN, phase=Phase.CONFIRMING)
    found = detail(STOPPED, protected_by=(TERMINATION,), snapshots=(made,))
    step = advance(copying, seen(STOPPED, rule=LOOSE, finding=finding(STOPPED, Verdict.COMPLIANT), detail=found))
    assert step.case is not None
    assert (step.case.phase, step.case.rung) == (Phase.WAITING, SECOND_NOTICE)
    assert step.case.reason == held_by(TERMINATION)


def test_where_termination_protection_bars_everything_a_case_waits_where_it_is() -> None:
    told = case(rung=RUNGS[Verb.SNAPSHOT], climbed=loose_case(0, *BEHIND_STOP, Verb.WARN).climbed, since=NOW - 8 * DAY)
    found = seen(
        STOPPED, detail=detail(STOPPED, protected_by=(TERMINATION,)), finding=finding(STOPPED, Verdict.COMPLIANT)
    )
    assert advance(told, found).wants is Verb.SNAPSHOT


def test_what_cannot_stop_is_read_by_its_own_ladder() -> None:
    """Its notice announces an end and no stop, so what bars the end bars the notice, and sends the case back to it."""
    limits = replace(LOOSE.limits, unstoppable_may_terminate=True)
    ending = with_digest(replace(LOOSE, limits=limits))
    spot = instance(cannot_stop="one_time_spot")
    protected = detail(spot, protected_by=(TERMINATION,))
    opened = loose_case(0, rule_digest=ending.digest, terms=terms(ending))
    assert world_rail(Verb.WARN, opened, ending, spot, protected, approved=False) == held_by(TERMINATION)
    assert world_rail(Verb.WARN, opened, LOOSE, spot, protected, approved=False) is None

    noticed = replace(opened, rung=1, climbed=(ClimbedRung(Verb.WARN, NOW - 9 * DAY),), since=NOW - 9 * DAY)
    step = advance(noticed, seen(spot, rule=ending, detail=protected))
    assert step.case is not None
    assert (step.wants, step.case.rung, step.case.reason) == (None, 0, held_by(TERMINATION))
    assert advance(noticed, seen(spot, rule=ending, detail=detail(spot))).wants is Verb.SNAPSHOT


def test_what_cannot_stop_any_more_is_sent_back_to_the_notice_of_its_own_ladder() -> None:
    """That ladder has no second notice behind a stop: in its place stands the end, which would come unannounced."""
    limits = replace(LOOSE.limits, unstoppable_may_terminate=True)
    ending = with_digest(replace(LOOSE, limits=limits))
    spot = replace(STOPPED, cannot_stop="one_time_spot")
    told = loose_case(1, *BEHIND_STOP, Verb.WARN, rule_digest=ending.digest, terms=terms(ending))
    of_it = {"rule": ending, "finding": finding(spot, Verdict.COMPLIANT)}
    step = advance(told, seen(spot, detail=detail(spot, protected_by=(TERMINATION,)), **of_it))
    assert step.case is not None
    assert (step.wants, step.case.rung, step.case.reason) == (None, 0, held_by(TERMINATION))


def test_all_that_sends_a_case_back_to_its_notice_is_named() -> None:
    both = detail(STOPPED, protected_by=(TERMINATION, STOP))
    told = loose_case(RUNGS[Verb.SNAPSHOT], *BEHIND_STOP, Verb.WARN)
    step = advance(told, seen(STOPPED, rule=LOOSE, finding=finding(STOPPED, Verdict.COMPLIANT), detail=both))
    assert step.case is not None
    assert step.case.reason == held_by(STOP, TERMINATION)


def test_a_notice_that_is_yet_to_be_given_is_no_reason_to_go_back() -> None:
    """The rail before the notice holds it, and shows what it would do."""
    barred = detail(STOPPED, protected_by=(TERMINATION,))
    found = seen(STOPPED, rule=LOOSE, finding=finding(STOPPED, Verdict.COMPLIANT), detail=barred)
    step = advance(loose_case(SECOND_NOTICE, *BEHIND_STOP), found)
    assert step.case is not None
    assert (step.wants, step.case.attempt) == (Verb.WARN, 1)


def test_a_ladder_that_ends_with_the_stop_has_nothing_left_to_bar() -> None:
    stopping = with_digest(replace(LOOSE, ladder=LOOSE.ladder[:2]))
    told = loose_case(1, Verb.WARN, rule_digest=stopping.digest, terms=terms(stopping))
    stopped_now = replace(told, phase=Phase.CONFIRMING, claimed_at=NOW - DAY)
    protected = detail(STOPPED, protected_by=(TERMINATION,))
    ours = {"intent_written": True, "last_outcome": Outcome.ACCEPTED}
    of_it = {"rule": stopping, "finding": finding(STOPPED, Verdict.COMPLIANT), **ours}
    step = advance(stopped_now, seen(STOPPED, detail=protected, **of_it))
    assert step.case is not None
    assert (step.case.rung, step.case.phase, step.case.status) == (2, Phase.WAITING, CaseStatus.OPEN)


# the reading is a part of every rule


def test_the_strict_reading_leaves_the_digests_of_before() -> None:
    assert "termination_protection" not in terms(rule())
    assert rule_from_terms(terms(rule())) == rule()


def test_the_loose_reading_is_in_the_digest_and_comes_back_from_it() -> None:
    assert LOOSE.digest != rule().digest
    assert rule_from_terms(terms(LOOSE)) == LOOSE


def test_to_loosen_the_reading_loosens_and_to_tighten_it_does_not() -> None:
    assert loosens(rule(), LOOSE)
    assert not loosens(LOOSE, rule())
    assert not loosens(LOOSE, LOOSE)


def test_setting_the_key_begins_an_open_case_again_with_a_notice() -> None:
    noticed = case(rung=1, climbed=(ClimbedRung(Verb.WARN, NOW - DAY),))
    assert advance(noticed, seen()).wants is Verb.STOP
    step = advance(noticed, seen(rule=LOOSE))
    assert step.wants is Verb.WARN
    assert step.case is not None
    assert (step.case.rung, step.case.climbed, step.case.rule_digest) == (0, (), LOOSE.digest)


def text(protect: str = "", more: str = "") -> Policy:
    whole = f"version: 1\nmode: enforce\nidle_gpu: [{{name: research}}]\n{protect}{more}"
    return load_policy(PolicyText({"costguard.yaml": whole}, "r1"))


KEY = "protect: {termination_protection_bars: terminate}\n"


def test_a_policy_that_does_not_set_the_key_is_strict_and_one_that_does_is_not() -> None:
    assert text().protection.termination_protection_bars is Bars.EVERYTHING
    assert text().idle_gpu[0].termination_protection_bars is Bars.EVERYTHING
    assert text(KEY).idle_gpu[0].termination_protection_bars is Bars.TERMINATE
    assert text(KEY).idle_gpu[0].digest != text().idle_gpu[0].digest
    assert text(KEY.replace("terminate}", "everything}")).idle_gpu == text().idle_gpu


def test_rules_in_the_shadow_read_it_alike() -> None:
    shadowed = "idle_gpu: [{name: a}, {name: b, shadow: true}]\n"
    read = load_policy(PolicyText({"costguard.yaml": f"version: 1\n{shadowed}{KEY}"}, "r1"))
    assert read.shadows.idle_gpu[0].termination_protection_bars is Bars.TERMINATE


def test_the_difference_is_told_and_loosens() -> None:
    key = "protect.termination_protection_bars"
    (found,) = policy_differences(text(), text(KEY))
    assert (found.key, found.before, found.after, found.direction) == (key, "everything", "terminate", Direction.LOOSER)
    (back,) = policy_differences(text(KEY), text())
    assert (back.key, back.direction) == (key, Direction.TIGHTER)


BUDGET = "budgets: [{name: company, monthly: 5000 USD, at: {100%: [stop_idle]}}]\n"


def test_what_a_spent_budget_makes_of_its_steps_reads_it_alike() -> None:
    (budget,) = text(KEY, BUDGET).budgets
    (loose,) = machine_rules([BudgetStanding(budget, Decimal(2))], (), Bars.TERMINATE).rules
    (strict,) = machine_rules([BudgetStanding(budget, Decimal(2))], ()).rules
    assert loose.termination_protection_bars is Bars.TERMINATE
    assert with_digest(loose).digest != with_digest(strict).digest
    assert {each.key for each in policy_differences(text("", BUDGET), text(KEY, BUDGET))} == {
        "protect.termination_protection_bars"
    }


# plans


def planned(subject: Instance, *protections: str, cases: tuple[Case, ...] = ()) -> Plan:
    house = policy(LOOSE, protection=Protection(termination_protection_bars=Bars.TERMINATE))
    given = PlanInputs("idle_gpu", "run-1", NOW, house, (shard_facts(fact(subject)),), cases=cases)
    return build_plan(replace(given, details={subject.ref: detail(subject, protected_by=protections)}))


def test_a_plan_warns_and_stops_and_holds_what_leads_to_the_end() -> None:
    assert [action.verb for action in planned(instance(), TERMINATION).due] == [Verb.WARN]
    noticed = loose_case(1, Verb.WARN)
    assert [action.verb for action in planned(instance(), TERMINATION, cases=(noticed,)).due] == [Verb.STOP]
    last = planned(STOPPED, TERMINATION, cases=(loose_case(SECOND_NOTICE, *BEHIND_STOP),))
    assert not last.due
    assert [(held.action.verb, held.reason) for held in last.held] == [(Verb.WARN, held_by(TERMINATION))]
    assert last.protected_by == ((ref(), (TERMINATION,)),)


def test_a_plan_names_the_protections_that_the_listing_told_of() -> None:
    listed = instance(protected_by=(STOP,))
    assert planned(listed, TERMINATION).protected_by == ((ref(), (STOP, TERMINATION)),)
