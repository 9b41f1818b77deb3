"""What a reviewer goes by: where nothing is told to loosen, no machine comes under a looser rule."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.builders import instance, rule

from costguard.domain.actions import Verb
from costguard.domain.refs import ResourceRef
from costguard.domain.resources import Billing
from costguard.guards.idle.judge import gentlest_rule
from costguard.guards.rules.common import Mode, Selector, Step
from costguard.guards.rules.idle import IdleBounds, IdleRule
from costguard.policy.diff.differences import loosening
from costguard.policy.diff.idle import idle_differences, loosens

PATTERNS = st.sampled_from(["a", "b", "a*", "*"])
WORDS = st.sampled_from(["a", "b", "ab"])
SELECTORS = st.builds(
    Selector,
    regions=st.none() | st.lists(PATTERNS, min_size=1, max_size=2).map(tuple),
    tags=st.none() | st.dictionaries(st.just("k"), PATTERNS, min_size=1),
    billing=st.none() | st.just((Billing.SPOT,)) | st.just((Billing.ON_DEMAND,)),
)
LADDERS = st.sampled_from(
    [
        (Step(Verb.WARN, timedelta(0)),),
        (Step(Verb.WARN, timedelta(0)), Step(Verb.STOP, timedelta(hours=4))),
        (Step(Verb.WARN, timedelta(0)), Step(Verb.STOP, timedelta(hours=24))),
        (Step(Verb.WARN, timedelta(0)), Step(Verb.SNAPSHOT, timedelta(hours=24)), Step(Verb.STOP, timedelta(hours=4))),
    ]
)


def rules_named(name: str) -> st.SearchStrategy[IdleRule]:
    return st.builds(
        lambda mode, selector, kept, ladder, hours: rule(
            name,
            mode=mode,
            applies_to=selector,
            except_for=kept,
            ladder=ladder,
            idle=IdleBounds(lasting=timedelta(hours=hours)),
        ),
        st.sampled_from(Mode),
        SELECTORS,
        st.lists(SELECTORS, max_size=1).map(tuple),
        LADDERS,
        st.sampled_from([12, 24]),
    )


@st.composite
def rule_sets(draw: st.DrawFn) -> tuple[tuple[IdleRule, ...], tuple[IdleRule, ...]]:
    """Before and after: of each rule both, one, or the same."""
    old = {name: draw(rules_named(name)) for name in draw(st.sets(st.sampled_from("abc")))}
    new = {name: each for name, each in old.items() if draw(st.integers(0, 3))}
    for name in draw(st.sets(st.sampled_from("abc"), max_size=1)):
        new[name] = draw(rules_named(name))
    return tuple(old.values()), tuple(new.values())


@settings(max_examples=40, deadline=None)
@given(rule_sets(), WORDS, WORDS, st.sampled_from([Billing.SPOT, Billing.ON_DEMAND]))
def test_where_nothing_loosens_no_machine_comes_under_a_looser_rule(
    sets: tuple[tuple[IdleRule, ...], tuple[IdleRule, ...]], region: str, tag: str, billing: Billing
) -> None:
    """The promise that a reviewer goes by, whichever rule of several decides before and after."""
    old, new = sets
    ref = ResourceRef("aws", "111122223333", region, "instance", "i-1")
    machine = instance(ref=ref, tags={"k": tag}, billing=billing)
    before, after = gentlest_rule(machine, old), gentlest_rule(machine, new)

    if not loosening(idle_differences(old, new)) and after is not None and after.mode is not Mode.OBSERVE:
        assert before is not None
        assert not loosens(before, replace(after, name=before.name))
