"""A change is made only after a notice that announced it: one sent while a rail stood in its way promised nothing."""

from __future__ import annotations

from dataclasses import replace

from tests.builders import DAY, NOW, SHARD, ref

from costguard.cases import Case, ClimbedRung
from costguard.domain.actions import Verb
from costguard.domain.findings import Finding, Verdict
from costguard.domain.reasons import Reason, ReasonCode
from costguard.domain.remediations import Remediation, RemediationKind
from costguard.guards.keys.rules import KeyRule, KeySelector
from costguard.guards.rules.common import Mode
from costguard.planning import Plan
from costguard.planning.remediation import Judged, RemediationInputs, build_remediation_plan

RULE = KeyRule("ninety-days", Mode.ENFORCE, KeySelector(), digest="d1")
KEY = ref("k-1", "key")
PROTECTED = Reason(ReasonCode.PROTECTED_TAG, {"tag": "keep"})


def plan(bar: Reason | None = None, *cases: Case, version: str = "0") -> Plan:
    off = Reason(ReasonCode.KEY_ROTATION_OFF)
    finding = Finding(
        "kms_rotation", "rotation", RULE.name, RULE.digest, KEY, Verdict.VIOLATION, off, run_epoch=version
    )
    found = Judged(finding, RULE, Remediation(RemediationKind.SET_ROTATION, KEY, {"days": "90"}), bar)
    return build_remediation_plan(
        RemediationInputs("kms_rotation", "run", NOW, "p1", (found,), {SHARD: True}, (RULE,), cases)
    )


def told(made: Plan) -> Case:
    """The case of a plan, two days after its notice was delivered."""
    (step,) = made.transitions
    delivered = NOW - 2 * DAY
    warned = (ClimbedRung(Verb.WARN, delivered),)
    return replace(step.after, rung=1, climbed=warned, since=delivered, decision_id="", attempt=2)


def test_what_was_told_while_a_rail_stood_in_the_way_is_announced_anew_once_it_is_gone() -> None:
    case = told(plan(PROTECTED))
    assert plan(PROTECTED, case).due == ()
    made = plan(None, case)
    assert [(action.verb, action.mend is not None) for action in made.due] == [(Verb.WARN, True)]
    assert [action.verb for action in plan(None, told(made)).due] == [Verb.MEND]


def test_a_rail_that_came_after_the_notice_holds_and_costs_no_second_notice() -> None:
    made = plan(PROTECTED, told(plan()))
    assert [held.reason.code for held in made.held] == [ReasonCode.PROTECTED_TAG]
    held = made.transitions[0].after
    assert [action.verb for action in plan(None, held).due] == [Verb.MEND]


def test_a_key_that_somebody_rotated_meanwhile_is_announced_anew_and_not_waited_for_in_vain() -> None:
    case = told(plan())
    made = plan(None, case, version="1")
    assert [(action.verb, action.run_epoch) for action in made.due] == [(Verb.WARN, "1")]
    (mend,) = plan(None, told(made), version="1").due
    assert (mend.verb, mend.run_epoch) == (Verb.MEND, "1")
