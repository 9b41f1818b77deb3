"""What a case of a mend says of itself at each turn of its life: every word of it reaches people or a ledger."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from tests.builders import DAY, NOW, SHARD, ref

from costguard.cases import Case, CaseStatus, CaseStep, ClimbedRung, Phase, claimed, confirming, decision_id
from costguard.cases.remediation import RemediationSeen, advance_remediation, remediation_terms
from costguard.cases.resolve import MAX_FAILURES, SETTLE
from costguard.domain.actions import Outcome, Verb
from costguard.domain.findings import Finding, Verdict
from costguard.domain.reasons import Reason, ReasonCode
from costguard.domain.remediations import Remediation, RemediationKind
from costguard.guards.keys.rules import KeyRule, KeySelector
from costguard.guards.rules.common import Mode

KEY = ref("1234abcd", "key")
RULE = KeyRule("ninety-days", Mode.ENFORCE, KeySelector(), digest="d1")
MEND = Remediation(RemediationKind.SET_ROTATION, KEY, {"days": "90"})
OFF = Reason(ReasonCode.KEY_ROTATION_OFF, {"days": 90})
UNTIL = NOW + 2 * DAY


def found(verdict: Verdict = Verdict.VIOLATION, **changes: Any) -> Finding:
    ordinary = Finding("kms_rotation", "rotation", RULE.name, RULE.digest, KEY, verdict, OFF, run_epoch="0")
    return replace(ordinary, owner="nlp", name="training", **changes)


def seen(**changes: Any) -> RemediationSeen:
    return replace(RemediationSeen(NOW, RULE, found(), MEND, shard_read=True, shard_complete=True), **changes)


def of(step: CaseStep) -> Case:
    assert step.case is not None
    return step.case


def told(**changes: Any) -> Case:
    """People were told a day ago: the wait is just over. It is held, so that every move has to open it."""
    case = of(advance_remediation(None, seen()))
    warned = (ClimbedRung(Verb.WARN, NOW - DAY),)
    ordinary = {"rung": 1, "climbed": warned, "since": NOW - DAY, "decision_id": "", "attempt": 2}
    return replace(case, **{**ordinary, "status": CaseStatus.HELD, "reason": OFF, **changes})


def sent(age: timedelta) -> Case:
    return confirming(claimed(told(status=CaseStatus.OPEN), NOW - age))


def test_a_new_case_has_all_of_its_finding() -> None:
    case = of(advance_remediation(None, seen()))

    assert (case.guard, case.check, case.rule, case.rule_digest) == ("kms_rotation", "rotation", "ninety-days", "d1")
    assert (case.owner, case.name, case.run_epoch, case.mode) == ("nlp", "training", "0", Mode.ENFORCE)
    assert (case.opened_at, case.since, case.rung, len(case.case_id)) == (NOW, NOW, 0, 16)
    assert (case.status, case.reason) == (CaseStatus.OPEN, Reason(ReasonCode.WAITING, {"verb": "warn"}))
    assert case.decision_id == decision_id(replace(case, decision_id=""))


def test_the_terms_are_the_same_words_for_the_same_promise() -> None:
    """A ledger holds them against those of an older version."""
    mend = replace(MEND, parameters={"note": "x", "days": "90", "version": "7"})

    assert remediation_terms(RULE, mend) == (
        f'{{"mend":{{"kind":"set_rotation","parameters":{{"days":"90"}},"subject":"{KEY}"' + '},"rule":"d1"}'
    )
    assert remediation_terms(RULE, None) == '{"mend":null,"rule":"d1"}'


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"account_closed": True}, Reason(ReasonCode.VANISHED, {"account": "111122223333"})),
        ({"finding": None}, Reason(ReasonCode.VANISHED)),
        ({"rule": None}, Reason(ReasonCode.RULE_GONE, {"rule": "ninety-days"})),
        ({"rule": replace(RULE, mode=Mode.WARN)}, Reason(ReasonCode.MODE_CHANGED, {"mode": "warn"})),
        ({"finding": found(Verdict.EXEMPT)}, OFF),
        ({"finding": found(Verdict.COMPLIANT)}, Reason(ReasonCode.AS_ASKED)),
    ],
)
def test_a_case_that_ends_says_why_and_has_climbed_nothing(changes: dict[str, Any], reason: Reason) -> None:
    case = of(advance_remediation(told(), seen(**changes)))

    assert (case.status, case.reason, case.closed_at) == (CaseStatus.CLOSED, reason, NOW)
    assert [rung.verb for rung in case.climbed] == [Verb.WARN]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"shard_read": False, "shard_complete": False}, Reason(ReasonCode.ACCOUNT_UNREAD, {"shard": str(SHARD)})),
        ({"shard_complete": False}, Reason(ReasonCode.SHARD_INCOMPLETE, {"shard": str(SHARD)})),
        (
            {"finding": found(Verdict.UNMEASURED)},
            Reason(ReasonCode.UNMEASURED, {"days": 90, "cause": ReasonCode.KEY_ROTATION_OFF.value}),
        ),
    ],
)
def test_a_case_that_cannot_see_is_held_and_says_of_what(changes: dict[str, Any], reason: Reason) -> None:
    case = of(advance_remediation(told(status=CaseStatus.OPEN), seen(**changes)))

    assert (case.status, case.reason, case.rung) == (CaseStatus.HELD, reason, 1)


def test_what_failed_too_often_waits_for_a_person() -> None:
    case = of(advance_remediation(told(failures=MAX_FAILURES), seen()))

    assert (case.status, case.reason) == (
        CaseStatus.HELD,
        Reason(ReasonCode.NOT_TAKEN_EFFECT, {"failures": MAX_FAILURES}),
    )


def test_a_case_that_waits_says_for_what_and_until_when() -> None:
    step = advance_remediation(told(since=NOW - timedelta(hours=23)), seen())

    reason = Reason(ReasonCode.WAITING, {"verb": "mend", "due": "2026-03-10T13:30+00:00"})
    assert (of(step).status, of(step).reason, step.wants) == (CaseStatus.OPEN, reason, None)


def test_a_case_whose_turn_it_is_is_open_and_says_so() -> None:
    step = advance_remediation(told(), seen())

    assert (of(step).status, of(step).reason) == (CaseStatus.OPEN, Reason(ReasonCode.WAITING, {"verb": "mend"}))
    assert step.wants is Verb.MEND
    assert of(step).decision_id


def test_after_the_last_rung_nothing_follows() -> None:
    case = of(advance_remediation(told(rung=2), seen()))

    assert (case.status, case.reason) == (CaseStatus.OPEN, Reason(ReasonCode.LADDER_DONE))


def test_a_rehearsed_notice_is_climbed_when_it_would_have_been_sent() -> None:
    watch = replace(RULE, mode=Mode.OBSERVE)
    step = advance_remediation(None, seen(rule=watch))

    assert step.wants is Verb.WARN
    assert (of(step).status, of(step).climbed) == (CaseStatus.OPEN, (ClimbedRung(Verb.WARN, NOW),))


# snoozed, and begun anew


SNOOZED = Reason(ReasonCode.SNOOZED, {"until": "2026-03-12T12:30+00:00"})


def test_a_snoozed_case_says_until_when() -> None:
    case = of(advance_remediation(told(), seen(snoozed_until=UNTIL)))

    assert (case.status, case.snoozed_until, case.reason) == (CaseStatus.SNOOZED, UNTIL, SNOOZED)


def test_so_does_one_whose_notice_arrives_meanwhile_and_one_that_is_not_settled_does_not() -> None:
    warned = confirming(claimed(replace(told(), rung=0, climbed=()), NOW - timedelta(minutes=1)))
    arrived = seen(snoozed_until=UNTIL, notice_delivered_at=NOW, intent_written=True)

    case = of(advance_remediation(warned, arrived))
    assert (case.status, case.snoozed_until, case.reason, case.rung) == (CaseStatus.SNOOZED, UNTIL, SNOOZED, 1)
    open_ = of(advance_remediation(warned, replace(arrived, notice_delivered_at=None)))
    assert (open_.phase, open_.snoozed_until) == (Phase.CONFIRMING, None)


def test_after_a_snooze_everything_begins_anew_under_a_new_decision() -> None:
    before = told(
        status=CaseStatus.SNOOZED, snoozed_until=NOW - DAY, failures=2, decision_id="old", since=NOW - 9 * DAY
    )
    step = advance_remediation(before, seen())

    case = of(step)
    assert (case.rung, case.climbed, case.since, case.attempt, case.failures) == (0, (), NOW, 3, 0)
    assert (case.snoozed_until, case.status, step.wants) == (None, CaseStatus.OPEN, Verb.WARN)
    assert case.decision_id == decision_id(replace(case, decision_id=""))


def test_another_rule_begins_it_anew_on_its_own_terms() -> None:
    other = replace(RULE, name="thirty-days", digest="d2")
    case = of(advance_remediation(told(since=NOW - 9 * DAY), seen(rule=other)))

    assert (case.rule, case.rule_digest, case.terms) == ("thirty-days", "d2", remediation_terms(other, MEND))
    assert (case.rung, case.climbed, case.since, case.attempt) == (0, (), NOW, 3)


def test_after_a_snooze_that_ends_unseen_no_old_decision_is_left() -> None:
    before = told(status=CaseStatus.SNOOZED, snoozed_until=NOW - DAY, decision_id="old")

    case = of(advance_remediation(before, seen(finding=found(Verdict.UNMEASURED))))

    assert (case.status, case.reason.code, case.decision_id) == (CaseStatus.HELD, ReasonCode.UNMEASURED, "")


def test_what_comes_in_the_way_before_anybody_was_told_is_no_promise_any_more() -> None:
    untold = told(rung=0, climbed=(), since=NOW - timedelta(minutes=1))

    case = of(advance_remediation(untold, seen(barred=True)))

    assert (case.terms, case.attempt) == (remediation_terms(RULE, None), 3)
    assert of(advance_remediation(told(), seen(barred=True))).terms == remediation_terms(RULE, MEND)


def test_another_rule_begins_it_anew_though_something_stands_in_the_way() -> None:
    other = replace(RULE, digest="d2")

    case = of(advance_remediation(told(), seen(rule=other, barred=True)))

    assert (case.terms, case.rung) == (remediation_terms(other, None), 0)


# what came of a mend that was sent


def test_a_mend_that_was_sent_is_waited_for_and_then_left_to_a_person() -> None:
    young = advance_remediation(sent(SETTLE - timedelta(seconds=1)), seen(intent_written=True))
    old = of(advance_remediation(sent(SETTLE), seen(intent_written=True)))

    assert of(young) == sent(SETTLE - timedelta(seconds=1))
    assert (old.status, old.reason) == (CaseStatus.HELD, Reason(ReasonCode.OUTCOME_UNKNOWN, {"verb": "mend"}))


def test_one_that_was_never_sent_is_tried_again_after_the_same_time() -> None:
    young = advance_remediation(sent(SETTLE - timedelta(seconds=1)), seen())
    old = of(advance_remediation(sent(SETTLE), seen()))

    assert of(young) == sent(SETTLE - timedelta(seconds=1))
    assert (old.phase, old.failures, old.reason) == (
        Phase.WAITING,
        1,
        Reason(ReasonCode.NOT_TAKEN_EFFECT, {"failures": 1}),
    )


def test_a_mend_that_took_effect_is_climbed_and_the_case_over() -> None:
    case = of(advance_remediation(sent(SETTLE), seen(intent_written=True, finding=found(Verdict.COMPLIANT))))

    assert (case.status, case.reason.code, case.closed_at) == (CaseStatus.CLOSED, ReasonCode.MENDED, NOW)
    assert case.climbed[-1] == ClimbedRung(Verb.MEND, NOW)
    refused = seen(intent_written=True, finding=found(Verdict.COMPLIANT), last_outcome=Outcome.REFUSED)
    assert of(advance_remediation(sent(SETTLE), refused)).reason.code is not ReasonCode.MENDED


def test_a_notice_is_neither_dead_nor_late_unless_somebody_says_so() -> None:
    assert (seen().notice_dead, seen().notice_late) == (False, False)
