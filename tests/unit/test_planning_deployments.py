"""Which of several deployments acts in an account, what is said of the others, and what a plan does there."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from tests.builders import DAY, NOW, case, detail, fact, instance, policy, ref, shard_facts

from costguard.cases import Case
from costguard.domain.actions import Verb
from costguard.domain.reasons import FactValue, Reason, ReasonCode
from costguard.domain.refs import Deployment
from costguard.planning import Plan, PlanInputs, build_plan
from costguard.planning.rails import SEEN_WITHIN, barred_by, leads, names_of, others_of

OWN, EU = Deployment("research", "00000001"), Deployment("platform-eu", "1a2b3c4d")
NAMESAKE = Deployment("research", "00000002")


def barred(**facts: FactValue) -> Reason:
    return Reason(ReasonCode.OTHER_DEPLOYMENT, {"own": "research", **facts})


def test_others_are_all_but_this_one() -> None:
    assert others_of(OWN, {OWN: NOW, EU: NOW - DAY, NAMESAKE: NOW}) == {EU: NOW - DAY, NAMESAKE: NOW}


def test_a_deployment_alone_in_its_account_acts_there() -> None:
    assert others_of(OWN, {OWN: NOW}) == {}
    assert barred_by(OWN, {}, "") is None


def test_a_deployment_that_left_no_mark_for_a_week_is_gone() -> None:
    assert timedelta(days=7) == SEEN_WITHIN


@pytest.mark.parametrize(
    ("leading", "others", "unread", "acts"),
    [
        ("", [EU], False, False),
        ("research", [EU], False, True),
        ("platform-eu", [EU], False, False),
        ("platform-eu", [], False, True),
        ("platform-eu", [], True, False),
        ("", [], True, True),
        ("research", [], True, True),
        ("research", [EU, NAMESAKE], False, False),
        ("platform-eu", [NAMESAKE], False, False),
        ("research", [NAMESAKE], False, False),
    ],
)
def test_who_acts(leading: str, others: list[Deployment], unread: bool, acts: bool) -> None:  # noqa: FBT001
    found = barred_by(OWN, dict.fromkeys(others, NOW), leading, unread=unread)

    assert (found is None) is acts
    assert found is None or found.code is ReasonCode.OTHER_DEPLOYMENT


def test_everything_counts_as_looked_at_unless_it_is_said_otherwise() -> None:
    assert barred_by(OWN, {}, "platform-eu") is None


def test_the_one_that_the_policy_names_leads_unless_another_is_called_like_it() -> None:
    assert leads(OWN, [EU], "research")
    assert not leads(OWN, [EU], "platform-eu")
    assert not leads(OWN, [EU, NAMESAKE], "research")


def test_the_others_are_named_with_the_last_time_that_any_of_them_was_seen() -> None:
    found = barred_by(OWN, {EU: NOW - DAY, Deployment("asia", "0a0b0c0d"): NOW - 2 * DAY}, "")

    others = "asia (0a0b0c0d), platform-eu (1a2b3c4d)"
    assert found == barred(leading="", others=others, seen="2026-03-09T12:30+00:00")
    assert names_of([EU, Deployment("asia", "0a0b0c0d")]) == others


def test_a_deployment_of_the_same_name_is_said_to_have_it() -> None:
    """The policy cannot tell the two apart, so people have to rename one."""
    found = barred_by(OWN, {NAMESAKE: NOW}, "research")

    seen = {"others": "research (00000002)", "seen": "2026-03-10T12:30+00:00"}
    assert found == barred(leading="research", **seen, same_name="research")


def test_where_another_leads_and_the_look_was_incomplete_nobody_is_named() -> None:
    assert barred_by(OWN, {}, "platform-eu", unread=True) == barred(leading="platform-eu")


# what a plan does where another deployment works

WORKS_HERE = barred(leading="")


def planned(told: Case, account: str = "aws:111122223333") -> Plan:
    machine = instance()
    given = PlanInputs("idle_gpu", "run-1", NOW, policy(), (shard_facts(fact(machine)),), cases=(told,))
    return build_plan(replace(given, details={ref(): detail(machine)}, barred={account: WORKS_HERE}))


def test_where_another_deployment_works_a_stop_is_held_for_it() -> None:
    plan = planned(case())
    assert not plan.due
    assert [(held.action.verb, held.reason) for held in plan.held] == [(Verb.STOP, WORKS_HERE)]
    assert [move.after.reason for move in plan.transitions] == [WORKS_HERE]


def test_where_another_deployment_works_owners_are_warned_all_the_same() -> None:
    assert [action.verb for action in planned(case(rung=0)).due] == [Verb.WARN]


def test_another_deployment_in_one_account_bars_nothing_in_the_next() -> None:
    assert [action.verb for action in planned(case(), "aws:444455556666").due] == [Verb.STOP]
