"""A plan's parts by what they are about."""

from __future__ import annotations

from dataclasses import replace

from tests.builders import NOW, case, finding, instance, ref, usd

from costguard.cases import decision_id
from costguard.domain.actions import Action, Saving, Verb
from costguard.planning import Plan, PlanIndex, Transition

MINE = case()
ACTION = Action(
    decision_id(MINE), decision_id(MINE), Verb.STOP, ref(), ref(), "epoch-1", MINE.case_id, 1, "research", "digest"
)


def test_parts_are_found_by_what_they_are_about_and_of_several_the_first() -> None:
    first, second = finding(), finding(name="second")
    saved = replace(ACTION, saving=Saving(usd("1")))
    made = Plan(
        "idle_gpu",
        "run-1",
        NOW,
        "digest",
        findings=(finding(instance("i-2")), first, second),
        transitions=(Transition(None, MINE), Transition(None, replace(MINE, name="second"))),
        due=(saved, ACTION),
        held=(),
        rehearsed=(),
        gaps=(),
        protected_by=((ref(), ("locked_security",)),),
        unstoppable=(ref("i-2"), ref("i-2")),
    )
    index = PlanIndex.of(made)
    assert index.plan is made
    assert index.case_of(ACTION) == MINE
    assert index.cases == {MINE.case_id: MINE}
    assert index.findings == {ref(): first}
    assert index.of_checks == {("idle", ref()): first}
    assert index.savings == {MINE.case_id: saved.saving}
    assert index.protections == {ref(): ("locked_security",)}
    assert index.unstoppable == {ref("i-2")}
