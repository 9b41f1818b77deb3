"""From judged settings to a plan of mends: what is due, held and rehearsed, and by which rail."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.builders import DAY, NOW, SHARD, ref

from costguard.cases import Case, CaseStatus, ClimbedRung
from costguard.domain.actions import Action, Verb
from costguard.domain.findings import Finding, Verdict
from costguard.domain.reasons import Reason, ReasonCode
from costguard.domain.remediations import Remediation, RemediationKind
from costguard.guards.keys.rules import KeyRule, KeySelector
from costguard.guards.rules.common import Mode
from costguard.planning import CapUse, Plan
from costguard.planning.remediation import NOTICES_A_RUN, Judged, RemediationInputs, build_remediation_plan

RULE = KeyRule("ninety-days", Mode.ENFORCE, KeySelector(), digest="d1", actions_per_day=2)
KILLED = Reason(ReasonCode.KILL_SWITCH, {"by": "host"})
PROTECTED = Reason(ReasonCode.PROTECTED_TAG, {"tag": "keep"})


def judged(name: str = "k-1", rule: KeyRule = RULE, **changes: Any) -> Judged:
    key = ref(name, "key")
    off = Reason(ReasonCode.KEY_ROTATION_OFF)
    finding = Finding("kms_rotation", "rotation", rule.name, rule.digest, key, Verdict.VIOLATION, off, run_epoch="0")
    return replace(Judged(finding, rule, Remediation(RemediationKind.SET_ROTATION, key, {"days": "90"})), **changes)


def plan(*found: Judged, rules: tuple[KeyRule, ...] = (RULE,), **changes: Any) -> Plan:
    ordinary = RemediationInputs("kms_rotation", "run", NOW, "p1", found, {SHARD: True}, rules, seen=len(found))
    return build_remediation_plan(replace(ordinary, **changes))


def waited(*found: Judged) -> tuple[Case, ...]:
    """The case of each, with people told a day ago."""
    cases = (step.after for step in plan(*found).transitions)
    warned = (ClimbedRung(Verb.WARN, NOW - DAY),)
    return tuple(replace(c, rung=1, climbed=warned, since=NOW - DAY, decision_id="", attempt=2) for c in cases)


def mends(made: Plan) -> list[str]:
    return [action.subject.native_id for action in made.due if action.verb is Verb.MEND]


def why(made: Plan) -> list[ReasonCode]:
    return [held.reason.code for held in made.held]


def test_people_are_told_and_a_run_after_the_wait_the_mend_is_due() -> None:
    assert [action.verb for action in plan(judged()).due] == [Verb.WARN]
    made = plan(judged(), cases=waited(judged()))
    (action,) = made.due
    assert isinstance(action, Action)
    assert (action.verb, action.mend) == (Verb.MEND, judged().mend)


def test_the_cap_of_a_day_holds_what_is_beyond_it() -> None:
    three = tuple(judged(f"k-{n}") for n in range(3))
    made = plan(*three, cases=waited(*three))
    assert mends(made) == ["k-0", "k-1"]
    assert why(made) == [ReasonCode.CAP_ACTIONS]
    used = plan(*three, cases=waited(*three), caps={RULE.name: CapUse(actions=1)})
    assert mends(used) == ["k-0"]


def test_a_cap_of_zero_allows_nothing() -> None:
    none = replace(RULE, actions_per_day=0)
    one = judged(rule=none)
    assert mends(plan(one, rules=(none,), cases=waited(one))) == []


def test_what_the_house_protects_is_told_of_without_a_promise_and_never_mended() -> None:
    barred = judged(bar=PROTECTED)
    (warning,) = plan(barred).due
    assert warning.mend is None
    made = plan(barred, cases=waited(judged()))
    assert (mends(made), why(made)) == ([], [ReasonCode.PROTECTED_TAG])


def test_a_kill_switch_holds_everything_that_is_no_rehearsal() -> None:
    made = plan(judged(), stop_all=KILLED)
    assert (made.due, why(made)) == ((), [ReasonCode.KILL_SWITCH])
    watch = replace(RULE, mode=Mode.OBSERVE)
    rehearsed = plan(judged(rule=watch), rules=(watch,), stop_all=KILLED)
    assert [item.reason.code for item in rehearsed.rehearsed] == [ReasonCode.MODE_OBSERVE]


def test_a_keep_since_people_were_told_makes_the_wait_begin_anew_for_the_very_resource_it_names() -> None:
    one = judged()
    kept = plan(one, cases=waited(one), kept_at={str(ref("k-1", "key")): NOW - DAY / 2})
    assert [action.verb for action in kept.due] == [Verb.WARN]
    of_another = plan(one, cases=waited(one), kept_at={str(ref("k-2", "key")): NOW - DAY / 2})
    assert mends(of_another) == ["k-1"]


def test_warning_only_rehearses_the_mend() -> None:
    warns = replace(RULE, mode=Mode.WARN)
    one = judged(rule=warns)
    made = plan(one, rules=(warns,), cases=tuple(replace(case, mode=Mode.WARN) for case in waited(one)))
    assert made.due == ()
    assert [item.reason.code for item in made.rehearsed] == [ReasonCode.MODE_WARN]


def test_a_flood_of_findings_is_told_the_gravest_first_and_the_rest_in_later_runs() -> None:
    many = tuple(judged(f"k-{n:03}", gravity=n) for n in range(NOTICES_A_RUN + 5))
    made = plan(*many)
    assert len(made.due) == NOTICES_A_RUN
    assert made.due[0].subject.native_id == f"k-{NOTICES_A_RUN + 4:03}"
    assert len(made.transitions) == NOTICES_A_RUN  # no case is opened for what is told later


def test_a_shard_that_did_not_answer_whole_moves_nothing() -> None:
    for shards in ({}, {SHARD: False}):
        made = plan(judged(), cases=waited(judged()), shards=shards)
        assert made.due == ()
        assert made.transitions[0].after.status is CaseStatus.HELD


def test_the_same_inputs_give_the_same_plan_in_any_order() -> None:
    three = tuple(judged(f"k-{n}") for n in range(3))
    assert plan(*three).due == plan(*reversed(three)).due
