"""A Keep written on a machine does what a Keep in the ledger does; the later of the two counts."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from tests.builders import DAY, NOW, case, detail, fact, finding, instance, policy, ref, seen, shard_facts

from costguard.cases import Case, CaseStatus, advance, claimed, confirming
from costguard.domain.findings import Verdict
from costguard.domain.reasons import Reason, ReasonCode
from costguard.domain.resources import Instance
from costguard.planning import PlanInputs, build_plan

HOUR = timedelta(hours=1)
BY_TAG = Reason(ReasonCode.KEPT_BY_TAG, {"tag": "costguard:keep-until", "until": "2026-03-11T12:30+00:00"})
TOMORROW = NOW + DAY


def snoozed(until: datetime) -> Reason:
    return Reason(ReasonCode.SNOOZED, {"until": until.isoformat(timespec="minutes")})


# a case


@pytest.mark.parametrize(
    ("until", "reason"), [(TOMORROW, BY_TAG), (TOMORROW + HOUR, snoozed(TOMORROW + HOUR))], ids=["tag", "ledger"]
)
def test_a_case_under_a_keep_by_tag_is_snoozed_and_names_whichever_ends_last(until: datetime, reason: Reason) -> None:
    kept = seen(finding=finding(verdict=Verdict.EXEMPT, reason=BY_TAG), snoozed_until=until)
    expected = replace(case(), status=CaseStatus.SNOOZED, snoozed_until=until, reason=reason)
    assert advance(case(), kept).case == expected


def test_a_keep_holds_where_nothing_was_found_of_the_machine() -> None:
    after = advance(case(), seen(finding=None, snoozed_until=TOMORROW)).case
    assert after == replace(case(), status=CaseStatus.SNOOZED, snoozed_until=TOMORROW, reason=snoozed(TOMORROW))


def test_a_keep_by_tag_seen_while_a_stop_was_in_doubt_snoozes_the_case_once_that_is_settled() -> None:
    """Any other exemption would end it."""
    called = confirming(claimed(case(), NOW - 2 * HOUR))
    kept = finding(verdict=Verdict.EXEMPT, reason=BY_TAG)
    after = advance(called, seen(finding=kept, snoozed_until=TOMORROW, intent_written=True)).case
    assert after is not None
    assert (after.status, after.snoozed_until, after.reason) == (CaseStatus.SNOOZED, TOMORROW, BY_TAG)


# a plan


def planned(machine: Instance, said: datetime | None = None) -> Case:
    """What becomes of a case whose stop is due."""
    given = PlanInputs("idle_gpu", "run-1", NOW, policy(), (shard_facts(fact(machine)),), cases=(case(),))
    plan = build_plan(
        replace(given, details={ref(): detail(machine)}, snoozes={} if said is None else {str(ref()): said})
    )
    (move,) = plan.transitions
    return move.after


def tagged(until: datetime) -> Instance:
    return instance(tags={"costguard:keep-until": until.isoformat()})


def test_a_plan_snoozes_what_is_kept_by_its_tag_alone() -> None:
    after = planned(tagged(TOMORROW))
    assert (after.status, after.snoozed_until) == (CaseStatus.SNOOZED, TOMORROW)
    assert after.reason == replace(BY_TAG, facts={**BY_TAG.facts, "utilisation": "idle"})


@pytest.mark.parametrize(("tag", "said"), [(HOUR, DAY), (DAY, HOUR)])
def test_of_a_tag_and_an_answer_the_later_counts(tag: timedelta, said: timedelta) -> None:
    assert planned(tagged(NOW + tag), NOW + said).snoozed_until == TOMORROW


def test_a_tag_that_is_over_snoozes_nothing() -> None:
    assert planned(tagged(NOW - HOUR)).status is CaseStatus.OPEN
    assert planned(tagged(NOW - HOUR), TOMORROW).snoozed_until == TOMORROW
