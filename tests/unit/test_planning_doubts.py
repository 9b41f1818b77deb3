"""Doubts and other guards' cases decide what a plan reads and does, for each machine by its own ladder."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from tests.builders import NOW, case, detail, fact, history, instance, policy, ref, shard_facts

from costguard.cases import Case, ClimbedRung
from costguard.domain.actions import Verb
from costguard.domain.findings import Verdict
from costguard.domain.reasons import Reason, ReasonCode
from costguard.planning import PlanInputs, build_plan, subjects_to_examine

DOUBT = Reason(ReasonCode.BILL_STALE, {"age_hours": 70})


def inputs(**changes: Any) -> PlanInputs:
    """One idle machine."""
    one = fact(instance())
    ordinary = PlanInputs(
        "budget", "run-1", NOW, policy(), (shard_facts(one),), details={one.instance.ref: detail(one.instance)}
    )
    return replace(ordinary, **changes)


def stopping_in_an_hour() -> Case:
    told = NOW - timedelta(hours=23)
    return case(guard="idle_gpu", since=told, climbed=(ClimbedRung(Verb.WARN, told),))


def test_what_is_doubted_is_not_even_looked_at_closer() -> None:
    assert subjects_to_examine(inputs()) == (instance(),)
    assert subjects_to_examine(inputs(doubts={"research": DOUBT})) == ()


def test_a_doubt_is_of_the_rule_it_names_alone() -> None:
    (doubted,) = build_plan(inputs(doubts={"research": DOUBT})).findings
    (sure,) = build_plan(inputs(doubts={"nights": DOUBT})).findings

    assert (doubted.verdict, doubted.reason) == (Verdict.UNMEASURED, DOUBT)
    assert sure.verdict is Verdict.VIOLATION


def test_a_doubt_changes_nothing_that_is_no_violation() -> None:
    busy = fact(instance(), history(value=90.0))

    (found,) = build_plan(inputs(facts=(shard_facts(busy),), doubts={"research": DOUBT})).findings

    assert found.verdict is Verdict.COMPLIANT


@pytest.mark.parametrize(("cannot_stop", "warned"), [("", False), ("one_time_spot", True)])
def test_another_guards_stop_stands_in_for_a_notice_only_where_a_stop_is_what_comes(
    cannot_stop: str,
    warned: bool,  # noqa: FBT001
) -> None:
    """What cannot stop hears of its own rule, whoever said what of a stop."""
    one = fact(instance(cannot_stop=cannot_stop))
    others = {ref(): (stopping_in_an_hour(),)}

    plan = build_plan(inputs(facts=(shard_facts(one),), details={ref(): detail(one.instance)}, others=others))

    assert [action.verb for action in plan.due] == ([Verb.WARN] if warned else [])
