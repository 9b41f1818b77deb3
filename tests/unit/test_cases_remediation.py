"""The life of a violation that a changed setting mends: told, waited for, sent once, found out by looking."""

from __future__ import annotations

from dataclasses import replace
from datetime import time, timedelta
from typing import Any

import pytest
from tests.builders import DAY, NOW, ref

from costguard.cases import Case, CaseStatus, CaseStep, ClimbedRung, Phase, claimed, confirming
from costguard.cases.remediation import (
    RemediationSeen,
    advance_remediation,
    remediation_rungs,
    remediation_terms,
    rungs_told,
)
from costguard.domain.actions import Outcome, Verb
from costguard.domain.findings import Finding, Verdict
from costguard.domain.reasons import Reason, ReasonCode
from costguard.domain.remediations import Remediation, RemediationKind
from costguard.guards.keys.rules import KeyRule, KeySelector
from costguard.guards.rules.common import Mode, Rung
from costguard.policy.model.working_time import WorkingCalendar

KEY = ref("1234abcd", "key")
RULE = KeyRule("ninety-days", Mode.ENFORCE, KeySelector(), digest="d1")
MEND = Remediation(RemediationKind.SET_ROTATION, KEY, {"days": "90"})
WARNED = ClimbedRung(Verb.WARN, NOW - DAY)


def found(verdict: Verdict = Verdict.VIOLATION, code: ReasonCode = ReasonCode.KEY_ROTATION_OFF) -> Finding:
    return Finding("kms_rotation", "rotation", RULE.name, RULE.digest, KEY, verdict, Reason(code), run_epoch="0")


def seen(**changes: Any) -> RemediationSeen:
    ordinary = RemediationSeen(NOW, RULE, found(), MEND, shard_read=True, shard_complete=True)
    return replace(ordinary, **changes)


def opened(**changes: Any) -> Case:
    step = advance_remediation(None, seen(**changes))
    assert step.case is not None
    return step.case


def told(**changes: Any) -> Case:
    """People were told a day ago: the wait is just over."""
    case = replace(opened(), rung=1, climbed=(WARNED,), since=NOW - DAY, decision_id="", attempt=2)
    return replace(case, **changes)


def sent(age: timedelta = timedelta(minutes=1)) -> Case:
    """The mend was called some time ago, and nobody has looked since."""
    return confirming(claimed(told(), NOW - age))


def code_of(step: CaseStep) -> ReasonCode:
    assert step.case is not None
    return step.case.reason.code


def test_a_violation_opens_a_case_and_people_are_told_first() -> None:
    step = advance_remediation(None, seen())
    assert step.wants is Verb.WARN
    assert step.case is not None
    assert (step.case.subject, step.case.check, step.case.run_epoch) == (KEY, "rotation", "0")
    assert remediation_rungs(RULE, MEND) == (Rung(Verb.WARN, timedelta(0)), Rung(Verb.MEND, DAY))


@pytest.mark.parametrize(
    "changes",
    [
        {"finding": found(Verdict.COMPLIANT)},
        {"finding": found(Verdict.UNMEASURED)},
        {"finding": found(Verdict.EXEMPT)},
        {"finding": None},
        {"rule": None},
        {"shard_complete": False},
        {"snoozed_until": NOW + DAY},
        {"rule": replace(RULE, mode=Mode.OBSERVE), "mend": None},
    ],
)
def test_nothing_else_opens_a_case(changes: dict[str, Any]) -> None:
    assert advance_remediation(None, seen(**changes)).case is None


def test_an_address_that_was_used_after_its_notice_is_told_of_anew() -> None:
    """Seen in use by a last look alone: no run finds it as asked, only not without use for long enough."""
    counting = found(Verdict.UNMEASURED, ReasonCode.NET_UNATTACHED_YET)
    ended = advance_remediation(told(), seen(finding=counting, mend=None))
    assert ended.case is not None
    assert (ended.case.status, code_of(ended)) == (CaseStatus.CLOSED, ReasonCode.NET_UNATTACHED_YET)
    assert advance_remediation(ended.case, seen()).wants is Verb.WARN


def test_what_the_policy_allows_nothing_about_is_told_once_and_stays() -> None:
    case = replace(opened(mend=None), rung=1, climbed=(WARNED,), since=NOW - 9 * DAY)
    step = advance_remediation(case, seen(mend=None))
    assert (step.wants, code_of(step)) == (None, ReasonCode.LADDER_DONE)


def test_the_mend_waits_for_the_whole_grace_in_working_time_where_there_is_a_calendar() -> None:
    assert advance_remediation(told(since=NOW - DAY + timedelta(seconds=1)), seen()).wants is None
    assert advance_remediation(told(), seen()).wants is Verb.MEND
    week = WorkingCalendar("Asia/Shanghai", frozenset(range(5)), time(10), time(18))
    assert advance_remediation(told(), seen(), week.after).wants is None


def test_observing_rehearses_the_notice_and_then_the_mend() -> None:
    watch = replace(RULE, mode=Mode.OBSERVE)
    first = advance_remediation(None, seen(rule=watch))
    assert first.wants is Verb.WARN
    assert first.case is not None
    assert first.case.climbed[0].verb is Verb.WARN
    assert advance_remediation(replace(first.case, since=NOW - DAY), seen(rule=watch)).wants is Verb.MEND


def test_what_was_mended_is_over_and_says_so() -> None:
    step = advance_remediation(sent(), seen(finding=found(Verdict.COMPLIANT), mend=None, intent_written=True))
    assert step.case is not None
    assert (step.case.status, code_of(step)) == (CaseStatus.CLOSED, ReasonCode.MENDED)
    assert step.case.climbed[-1] == ClimbedRung(Verb.MEND, NOW)


def test_a_violation_for_another_reason_shows_that_the_mend_took_effect() -> None:
    overdue = found(code=ReasonCode.KEY_OVERDUE)
    step = advance_remediation(sent(), seen(finding=overdue, mend=None, intent_written=True))
    assert code_of(step) is ReasonCode.MENDED


def test_a_released_address_is_gone_from_the_inventory() -> None:
    assert code_of(advance_remediation(sent(), seen(finding=None, mend=None, intent_written=True))) is ReasonCode.MENDED
    assert code_of(advance_remediation(told(), seen(finding=None, mend=None))) is ReasonCode.VANISHED


@pytest.mark.parametrize("outcome", [Outcome.ACCEPTED, Outcome.UNKNOWN, None])
def test_what_shows_no_effect_is_never_sent_again(outcome: Outcome | None) -> None:
    fresh = advance_remediation(sent(), seen(intent_written=True, last_outcome=outcome))
    assert fresh.case == sent()
    late = advance_remediation(sent(timedelta(hours=2)), seen(intent_written=True, last_outcome=outcome))
    assert (late.wants, code_of(late)) == (None, ReasonCode.OUTCOME_UNKNOWN)
    assert late.case is not None
    assert late.case.phase is Phase.CONFIRMING
    again = advance_remediation(late.case, seen(now=NOW + 30 * DAY, intent_written=True, last_outcome=outcome))
    assert again.wants is None


def test_a_claim_without_an_intent_becomes_a_new_decision() -> None:
    claim = claimed(told(), NOW - timedelta(hours=2))
    step = advance_remediation(claim, seen())
    assert step.case is not None
    assert (step.case.phase, step.case.attempt) == (Phase.WAITING, claim.attempt + 1)


def test_an_unmeasured_key_proves_nothing_of_the_mend() -> None:
    blind = found(Verdict.UNMEASURED, ReasonCode.KEY_STATE)
    assert advance_remediation(sent(), seen(finding=blind, mend=None, intent_written=True)).case == sent()
    assert code_of(advance_remediation(told(), seen(finding=blind, mend=None))) is ReasonCode.UNMEASURED


def test_a_refused_mend_did_not_take_effect_whatever_is_found() -> None:
    gone = seen(finding=found(Verdict.COMPLIANT), intent_written=True, last_outcome=Outcome.REFUSED)
    step = advance_remediation(sent(), gone)
    assert code_of(step) is not ReasonCode.MENDED


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"shard_read": False, "shard_complete": False, "finding": None}, ReasonCode.ACCOUNT_UNREAD),
        ({"shard_complete": False, "finding": None}, ReasonCode.SHARD_INCOMPLETE),
        ({"shard_complete": False, "finding": found(Verdict.COMPLIANT)}, ReasonCode.SHARD_INCOMPLETE),
    ],
)
def test_nothing_moves_in_a_shard_that_was_not_read_whole(changes: dict[str, Any], code: ReasonCode) -> None:
    step = advance_remediation(told(), seen(**changes))
    assert (step.wants, code_of(step)) == (None, code)
    assert step.case is not None
    assert step.case.status is CaseStatus.HELD


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"finding": found(Verdict.COMPLIANT)}, ReasonCode.AS_ASKED),
        ({"finding": found(Verdict.EXEMPT, ReasonCode.EXCEPTION)}, ReasonCode.EXCEPTION),
        ({"rule": None}, ReasonCode.RULE_GONE),
        ({"rule": replace(RULE, mode=Mode.OBSERVE)}, ReasonCode.MODE_CHANGED),
        ({"account_closed": True}, ReasonCode.VANISHED),
    ],
)
def test_a_case_ends_when_there_is_nothing_left_to_mend(changes: dict[str, Any], code: ReasonCode) -> None:
    step = advance_remediation(told(), seen(**changes))
    assert step.case is not None
    assert (step.case.status, code_of(step)) == (CaseStatus.CLOSED, code)


@pytest.mark.parametrize(
    "changes",
    [
        {"rule": replace(RULE, digest="d2")},
        {"mend": replace(MEND, parameters={"days": "30"})},
        {"mend": Remediation(RemediationKind.ROTATE_KEY, KEY)},
    ],
)
def test_another_rule_or_another_mend_begins_with_a_notice_of_its_own(changes: dict[str, Any]) -> None:
    step = advance_remediation(told(), seen(**changes))
    assert step.wants is Verb.WARN
    assert step.case is not None
    assert (step.case.rung, step.case.climbed) == (0, ())
    assert step.case.decision_id != opened().decision_id


def test_a_version_that_moved_around_the_mend_changes_no_decision() -> None:
    def revoke(version: str) -> Remediation:
        return Remediation(
            RemediationKind.REVOKE_RULE, KEY, {"rule_id": "3", "direction": "ingress", "version": version}
        )

    assert remediation_terms(RULE, revoke("39")) == remediation_terms(RULE, revoke("40"))


def test_a_keep_that_no_run_saw_hold_cancels_the_notice_before_it() -> None:
    step = advance_remediation(told(), seen(kept_at=WARNED.at + timedelta(minutes=1)))
    assert step.wants is Verb.WARN
    assert step.case is not None
    assert (step.case.climbed, step.case.since) == ((), NOW)
    assert advance_remediation(told(), seen(kept_at=WARNED.at - timedelta(hours=1))).wants is Verb.MEND


def test_a_snooze_stops_it_and_the_whole_grace_begins_again_afterwards() -> None:
    slept = advance_remediation(told(), seen(snoozed_until=NOW + DAY)).case
    assert slept is not None
    assert slept.status is CaseStatus.SNOOZED
    woken = advance_remediation(slept, seen(now=NOW + 2 * DAY))
    assert woken.wants is Verb.WARN


def test_a_delivered_notice_starts_the_wait() -> None:
    claim = claimed(opened(), NOW - timedelta(hours=1))
    step = advance_remediation(claim, seen(intent_written=True, notice_delivered_at=NOW - timedelta(minutes=50)))
    assert step.case is not None
    assert step.case.climbed == (ClimbedRung(Verb.WARN, NOW - timedelta(minutes=50), claim.decision_id),)
    unproven = advance_remediation(replace(claim, claimed_at=NOW - DAY), seen(intent_written=True))
    assert code_of(unproven) is ReasonCode.NOTICE_UNDELIVERED


def test_failures_in_a_row_wait_for_a_person() -> None:
    assert advance_remediation(told(failures=4), seen()).wants is Verb.MEND
    step = advance_remediation(told(failures=5), seen())
    assert (step.wants, code_of(step)) == (None, ReasonCode.NOT_TAKEN_EFFECT)


def test_the_steps_that_were_announced_are_read_from_what_people_were_told() -> None:
    patient = replace(RULE, wait=timedelta(days=3))
    assert rungs_told(patient, remediation_terms(patient, MEND)) == (
        Rung(Verb.WARN, timedelta(0)),
        Rung(Verb.MEND, timedelta(days=3)),
    )
    assert rungs_told(patient, remediation_terms(patient, None)) == (Rung(Verb.WARN, timedelta(0)),)


def test_a_subject_that_changed_is_told_of_once_and_then_waited_for() -> None:
    """Else each run would take it for another one, and its notice would be sent every day for ever."""
    changed = seen(finding=replace(found(), run_epoch="1"))
    again = advance_remediation(told(), changed)
    assert again.wants is Verb.WARN
    assert again.case is not None
    assert again.case.run_epoch == "1"
    waiting = replace(again.case, rung=1, climbed=(WARNED,), since=NOW - DAY, decision_id="")
    assert advance_remediation(waiting, changed).wants is Verb.MEND
