"""What a delivered notice named is kept with the case, and no step comes before the moment that was named for it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from tests.builders import DAY, NOW, SHARD, case, detail, fact, instance, policy, ref, rule, seen, shard_facts

from costguard.cases import (
    Announced,
    Case,
    ClimbedRung,
    SubjectSnapshot,
    advance,
    claimed,
    decision_id,
    due_at,
    noticed,
)
from costguard.cases.case import climbed
from costguard.cases.remediation import RemediationSeen, advance_remediation, remediation_terms
from costguard.domain.actions import Verb
from costguard.domain.findings import Finding, Verdict
from costguard.domain.reasons import Reason, ReasonCode
from costguard.domain.remediations import Remediation, RemediationKind
from costguard.guards.keys.rules import KeyRule, KeySelector
from costguard.guards.rules.common import Mode, Rung
from costguard.planning import NoticeView, PlanInputs, build_plan
from costguard.planning.remediation import Judged, RemediationInputs, build_remediation_plan

HOUR = timedelta(hours=1)
NAMED = (Announced(Verb.STOP, NOW + 30 * HOUR), Announced(Verb.TERMINATE, NOW + 9 * DAY))
STOP_RUNG = Rung(Verb.STOP, DAY)
KEY = ref("k-1", "key")
KEYS = KeyRule("ninety-days", Mode.ENFORCE, KeySelector(), digest="d1")
MEND = Remediation(RemediationKind.SET_ROTATION, KEY, {"days": "90"})
UNROTATED = Finding(
    "kms_rotation",
    "rotation",
    KEYS.name,
    KEYS.digest,
    KEY,
    Verdict.VIOLATION,
    Reason(ReasonCode.KEY_ROTATION_OFF),
    run_epoch="0",
)


def told(*announced: Announced, **changes: object) -> Case:
    """Warned a day ago."""
    warned = ClimbedRung(Verb.WARN, NOW - DAY, "notice-1", announced)
    return replace(case(rung=1, climbed=(warned,), since=NOW - DAY), **changes)  # type: ignore[arg-type]


def test_a_step_is_due_when_its_wait_is_over_and_not_before_the_moment_that_was_named() -> None:
    assert due_at(told(), STOP_RUNG) == NOW
    assert due_at(told(Announced(Verb.STOP, NOW + HOUR)), STOP_RUNG) == NOW + HOUR
    assert due_at(told(Announced(Verb.STOP, NOW - HOUR)), STOP_RUNG) == NOW
    assert due_at(told(Announced(Verb.TERMINATE, NOW + HOUR)), STOP_RUNG) == NOW


def test_what_was_named_is_waited_for_though_the_grace_is_over() -> None:
    later = told(Announced(Verb.STOP, NOW + HOUR))
    assert advance(told(), seen()).wants is Verb.STOP
    assert advance(later, seen()).wants is None
    assert advance(later, seen(now=NOW + HOUR)).wants is Verb.STOP


def test_the_last_notice_counts_for_every_step_behind_it() -> None:
    stopped = climbed(told(*NAMED), Verb.STOP, NOW)
    assert stopped.climbed[-1] == ClimbedRung(Verb.STOP, NOW)
    assert stopped.announced_for(Verb.TERMINATE) == NOW + 9 * DAY
    again = noticed(stopped, NOW + HOUR, (Announced(Verb.TERMINATE, NOW + 20 * DAY),))
    assert again.announced_for(Verb.TERMINATE) == NOW + 20 * DAY
    assert again.announced_for(Verb.STOP) is None
    assert case(climbed=()).announced_for(Verb.STOP) is None


def test_a_notice_that_named_nothing_puts_nothing_off() -> None:
    """As those of earlier versions, in ledgers of today."""
    assert noticed(case(rung=0), NOW).climbed[-1].announced == ()
    assert SubjectSnapshot(NOW, rule(), None, None, shard_read=True, shard_complete=True).announced == ()
    assert RemediationSeen(NOW, KEYS, UNROTATED, MEND, shard_read=True, shard_complete=True).announced == ()


@pytest.mark.parametrize("named", [(), NAMED])
def test_a_plan_keeps_what_a_delivered_notice_named(named: tuple[Announced, ...]) -> None:
    warned = claimed(case(rung=0, since=NOW - HOUR), NOW - HOUR)
    notices = {warned.decision_id: NoticeView(NOW - HOUR / 2, announced=named)}
    machine = fact(instance())
    given = PlanInputs("idle_gpu", "run-1", NOW, policy(), (shard_facts(machine),), cases=(warned,), notices=notices)
    plan = build_plan(replace(given, details={machine.instance.ref: detail(machine.instance)}))
    (step,) = plan.transitions
    assert step.after.climbed == (ClimbedRung(Verb.WARN, NOW - HOUR / 2, warned.decision_id, named),)


@pytest.mark.parametrize("named", [(), (Announced(Verb.MEND, NOW + 3 * DAY),)])
def test_a_plan_of_settings_keeps_what_a_delivered_notice_named(named: tuple[Announced, ...]) -> None:
    opened = advance_remediation(
        None, RemediationSeen(NOW, KEYS, UNROTATED, MEND, shard_read=True, shard_complete=True)
    ).case
    assert opened is not None
    warned = claimed(opened, NOW - HOUR)
    notices = {warned.decision_id: NoticeView(NOW - HOUR / 2, announced=named)}
    found = (Judged(UNROTATED, KEYS, MEND),)
    given = RemediationInputs("kms_rotation", "run-1", NOW, "p1", found, {SHARD: True}, (KEYS,), seen=1)
    (step,) = build_remediation_plan(replace(given, cases=(warned,), notices=notices)).transitions
    assert step.after.climbed == (ClimbedRung(Verb.WARN, NOW - HOUR / 2, warned.decision_id, named),)
    assert (warned.terms, decision_id(opened)) == (remediation_terms(KEYS, MEND), warned.decision_id)
    after_grace = replace(given, cases=(step.after,), now=NOW + 2 * DAY)
    mended = [action.verb for action in build_remediation_plan(after_grace).due]
    assert mended == ([] if named else [Verb.MEND])
