"""In an account that nobody remembers every rule only observes, for as long as the policy says."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
from tests.builders import DAY, NOW, SHARD, case, detail, fact, policy, ref, rule, shard_facts

from costguard.cases import ClimbedRung, decision_id
from costguard.domain.actions import Verb
from costguard.domain.answers import AnswerRef
from costguard.domain.findings import Finding, Verdict
from costguard.domain.reasons import Reason, ReasonCode
from costguard.domain.remediations import Remediation, RemediationKind
from costguard.guards.keys.rules import KeyRule, KeySelector
from costguard.guards.rules.common import Mode
from costguard.planning import Plan, PlanInputs, build_plan
from costguard.planning.rails import observing
from costguard.planning.remediation import Judged, RemediationInputs, build_remediation_plan

HERE, ELSEWHERE = {"aws:111122223333": NOW + DAY}, {"aws:444455556666": NOW + DAY}


def of_machines(new: dict[str, datetime]) -> Plan:
    found = fact()
    details = {found.instance.ref: detail(found.instance)}
    return build_plan(
        PlanInputs("idle_gpu", "run-1", NOW, policy(rule()), (shard_facts(found),), details=details, observing=new)
    )


def of_keys(new: dict[str, datetime]) -> Plan:
    key, of = ref("k-1", "key"), KeyRule("ninety-days", Mode.ENFORCE, KeySelector(), digest="d1", actions_per_day=2)
    off = Reason(ReasonCode.KEY_ROTATION_OFF)
    found = Finding("kms_rotation", "rotation", of.name, of.digest, key, Verdict.VIOLATION, off, run_epoch="e1")
    judged = Judged(found, of, Remediation(RemediationKind.SET_ROTATION, key, {"days": "90"}))
    return build_remediation_plan(
        RemediationInputs("kms_rotation", "run", NOW, "p1", (judged,), {SHARD: True}, (of,), observing=new)
    )


@pytest.mark.parametrize("planned", [of_machines, of_keys])
def test_in_a_new_account_a_rule_rehearses_and_in_others_it_acts(
    planned: Callable[[dict[str, datetime]], Plan],
) -> None:
    there, elsewhere = planned(HERE), planned(ELSEWHERE)
    assert [step.after.mode for step in there.transitions] == [Mode.OBSERVE]
    assert [each.reason.code for each in there.rehearsed] == [ReasonCode.ACCOUNT_NEW]
    assert not there.due
    assert [step.after.mode for step in elsewhere.transitions] == [Mode.ENFORCE]
    assert [action.verb for action in elsewhere.due] == [Verb.WARN]


@pytest.mark.parametrize("asked", [True, False])
def test_only_the_stop_that_people_asked_for_is_hastened(*, asked: bool) -> None:
    found = fact()
    told = case(since=NOW - DAY / 24, climbed=(ClimbedRung(Verb.WARN, NOW - DAY / 24),))
    answer = AnswerRef(told.case_id, decision_id(told) if asked else "other")
    made = build_plan(
        PlanInputs(
            "idle_gpu",
            "run-1",
            NOW,
            policy(rule()),
            (shard_facts(found),),
            cases=(told,),
            details={found.instance.ref: detail(found.instance)},
            hastened=frozenset({answer}),
        )
    )
    assert [action.verb for action in made.due] == ([Verb.STOP] if asked else [])


@pytest.mark.parametrize(
    ("first_seen", "until"),
    [
        ({}, NOW + 7 * DAY),
        ({"aws:1": NOW - 6 * DAY}, NOW + DAY),
        ({"aws:1": NOW - 7 * DAY}, None),
        ({"aws:1": NOW - 8 * DAY}, None),
        ({"aws:2": NOW - 8 * DAY}, NOW + 7 * DAY),
    ],
)
def test_an_account_is_only_observed_until_it_is_known_long_enough(
    first_seen: dict[str, datetime], until: datetime | None
) -> None:
    assert observing(["aws:1"], first_seen, 7 * DAY, NOW) == ({} if until is None else {"aws:1": until})


def test_without_a_wait_no_account_is_new() -> None:
    assert observing(["aws:1"], {"aws:1": NOW + DAY}, timedelta(0), NOW) == {}
