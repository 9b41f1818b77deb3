"""What a cloud refuses is said as it said it, tried again once a day, and forgotten where the wait begins anew."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from tests.builders import DAY, NOW, ref

from costguard.cases import Case, CaseStatus, ClimbedRung
from costguard.cases.remediation import RemediationSeen, advance_remediation
from costguard.domain.actions import Verb
from costguard.domain.findings import Finding, Verdict
from costguard.domain.reasons import Reason, ReasonCode
from costguard.domain.remediations import Remediation, RemediationKind
from costguard.guards.keys.rules import KeyRule, KeySelector
from costguard.guards.rules.common import Mode

KEY = ref("k-1", "key")
RULE = KeyRule("ninety-days", Mode.ENFORCE, KeySelector(), digest="d1")
OFF = Reason(ReasonCode.KEY_ROTATION_OFF)
FOUND = Finding("kms_rotation", "rotation", RULE.name, RULE.digest, KEY, Verdict.VIOLATION, OFF, run_epoch="0")
SEEN = RemediationSeen(
    NOW,
    RULE,
    FOUND,
    Remediation(RemediationKind.SET_ROTATION, KEY, {"days": "90"}),
    shard_read=True,
    shard_complete=True,
)
DENIED = Reason(ReasonCode.PERMISSION_MISSING, {"permission": "kms:EnableKeyRotation"})


def refused(ago: timedelta, failures: int = 5) -> Case:
    """People were told two days ago, and the cloud has said no since, the last time so long ago."""
    opened = advance_remediation(None, SEEN).case
    assert opened is not None
    warned = (ClimbedRung(Verb.WARN, NOW - 2 * DAY),)
    waited = replace(opened, rung=1, climbed=warned, since=NOW - 2 * DAY, decision_id="")
    return replace(waited, failures=failures, refusal=DENIED, refused_at=NOW - ago)


def test_what_a_cloud_refused_five_times_is_held_for_what_it_said() -> None:
    step = advance_remediation(refused(timedelta(hours=1)), SEEN)
    assert step.wants is None
    assert step.case is not None
    assert step.case.status is CaseStatus.HELD
    assert step.case.reason == replace(DENIED, facts={**DENIED.facts, "failures": 5})


@pytest.mark.parametrize(("ago", "wants"), [(DAY - timedelta(seconds=1), None), (DAY, Verb.MEND)])
def test_what_a_cloud_refused_is_tried_again_a_day_later(ago: timedelta, wants: Verb | None) -> None:
    """Somebody may have granted what was missing; more often would only fill the cloud's own trail."""
    assert advance_remediation(refused(ago), SEEN).wants is wants


def test_less_than_five_refusals_are_tried_again_at_once() -> None:
    assert advance_remediation(refused(timedelta(hours=1), failures=4), SEEN).wants is Verb.MEND


def test_what_failed_without_a_refusal_waits_for_a_person_however_long() -> None:
    unheard = replace(refused(9 * DAY), refusal=None, refused_at=None)
    step = advance_remediation(unheard, SEEN)
    assert step.wants is None
    assert step.case is not None
    assert step.case.reason == Reason(ReasonCode.NOT_TAKEN_EFFECT, {"failures": 5})


def test_another_rule_begins_without_what_the_cloud_said_of_the_one_before() -> None:
    step = advance_remediation(refused(timedelta(hours=1)), replace(SEEN, rule=replace(RULE, digest="d2")))
    assert step.wants is Verb.WARN
    assert step.case is not None
    assert (step.case.failures, step.case.refusal, step.case.refused_at) == (0, None, None)
