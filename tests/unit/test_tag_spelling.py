"""Sparing is generous, harming is exact: how tags are compared where they spare, and where they do not."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.builders import NOW, instance, policy, ref, rule

from costguard.domain.reasons import ReasonCode
from costguard.domain.resources import Instance
from costguard.guards.idle.judge import gentlest_rule
from costguard.guards.network.rules import AuditRule, NetworkCheck, NetworkSelector
from costguard.guards.rules.common import TAGS_DENIED_BY_ROLE, Mode, Protection, Selector
from costguard.guards.rules.idle import BudgetCause
from costguard.guards.rules.spelling import spares_no_less, tags_spare, value_spares
from costguard.planning import exemption
from costguard.policy.diff.idle import loosens
from costguard.policy.documents.loader import load_policy
from costguard.policy.model.matching import matches_of
from costguard.policy.model.policy import Exemption
from costguard.policy.remarks import remarks
from costguard.ports import PolicyText

DEMO = Selector(tags={"purpose": "customer-demo"})
SPELLINGS = [
    {"purpose": "customer-demo"},
    {"Purpose": "Customer-Demo"},
    {"PURPOSE": "customer_demo"},
    {"pur-pose": "CustomerDemo"},
    {"purpose/": "customer/demo"},
    {" purpose ": "customer  demo"},
    {"\uff50urpose": "customer\uff0ddemo"},
    {"purpose": "no", "Purpose": "customer.demo"},
]


def tagged(**tags: str) -> Instance:
    return instance(tags=tags)


@pytest.mark.parametrize("tags", SPELLINGS)
def test_an_exception_of_a_rule_spares_whatever_the_spelling(tags: dict[str, str]) -> None:
    assert gentlest_rule(instance(tags=tags), [rule(except_for=(DEMO,))]) is None


@pytest.mark.parametrize("tags", SPELLINGS)
def test_an_agreed_exception_spares_whatever_the_spelling(tags: dict[str, str]) -> None:
    agreed = Exemption(DEMO, "nlp", "demo", "finops", NOW + timedelta(days=1))
    why = exemption(instance(tags=tags), policy(exemptions=(agreed,)), NOW)
    assert why is not None
    assert why.code is ReasonCode.EXCEPTION


@pytest.mark.parametrize("tags", SPELLINGS[1:-1])
def test_a_selector_brings_nothing_under_a_rule_by_another_spelling(tags: dict[str, str]) -> None:
    assert gentlest_rule(instance(tags=tags), [rule(applies_to=DEMO)]) is None
    assert gentlest_rule(tagged(purpose="customer-demo"), [rule(applies_to=DEMO)]) is not None


@pytest.mark.parametrize(
    "tags",
    [
        {},
        {"purpose": "training"},
        {"purposes": "customer-demo"},
        {"purpose": "customer-demo-2"},
        {"-": "customer-demo"},
    ],
)
def test_another_tag_or_value_spares_nothing(tags: dict[str, str]) -> None:
    assert gentlest_rule(instance(tags=tags), [rule(except_for=(DEMO,))]) is not None


def test_what_a_budget_leaves_to_a_class_is_compared_as_the_class_compares() -> None:
    """Else a machine of nearly that tag would be in neither of the two rules."""
    cause = BudgetCause("company", Decimal(1))
    of_budget = rule(except_for=(DEMO,), cause=cause)
    assert gentlest_rule(tagged(Purpose="customer-demo"), [of_budget]) is not None
    assert gentlest_rule(tagged(purpose="customer-demo"), [of_budget]) is None


def test_parts_of_networks_are_spared_alike() -> None:
    audited = AuditRule("a", Mode.OBSERVE, frozenset(NetworkCheck), except_for=(NetworkSelector(tags=DEMO.tags),))
    assert not audited.covers(ref(), {"Purpose": "customer_demo"})
    assert audited.covers(ref(), {"Purpose": "training"})
    network = NetworkSelector(tags=DEMO.tags)
    assert network.spares(ref(), {"Purpose": "customer_demo"})
    assert not network.matches(ref(), {"Purpose": "customer_demo"})
    assert not NetworkSelector(tags=DEMO.tags, regions=("eu-*",)).spares(ref(), {"Purpose": "customer_demo"})


@pytest.mark.parametrize(
    ("value", "pattern"),
    [
        ("Prod-EU", "prod*"),
        ("PROD_eu", "prod-*"),
        ("node7", "node-?"),
        ("Team-B", "team-[a-c]"),
        ("", ""),
        ("anything", "*"),
        ("a-b", "*-*"),
    ],
)
def test_a_glob_spares_in_other_spellings(value: str, pattern: str) -> None:
    assert value_spares(value, pattern)


@pytest.mark.parametrize(("value", "pattern"), [("ab", "*-*"), ("team-d", "team-[a-c]"), ("x", ""), ("", "prod*")])
def test_a_glob_spares_no_more_than_it_means(value: str, pattern: str) -> None:
    assert not value_spares(value, pattern)


def test_no_tag_asked_for_spares_nothing() -> None:
    assert not tags_spare({"purpose": "demo"}, {})
    assert not Selector(tags={}).spares(tagged(purpose="demo"))


@pytest.mark.parametrize("name", ["keepalive", "keep-alive", "keeper", "protectorate", "nonstop", "persistent", "team"])
def test_a_tag_that_only_begins_like_a_known_one_does_not_protect(name: str) -> None:
    assert exemption(instance(tags={name: "yes"}), policy(), NOW) is None


@pytest.mark.parametrize(
    "name",
    [
        *(
            "do-not-terminate",
            "do_not_stop",
            "DoNotShutdown",
            "do not shut down",
            "dont-stop",
            "no-stop",
            "never-terminate",
        ),
        *(
            "costguard/protect",
            "keep",
            "KEEP",
            "protected",
            "Protect",
            "keep/running",
            "do/not\u2010delete",
            "DO.NOT.TOUCH",
        ),
    ],
)
def test_plain_words_that_ask_to_be_left_alone_protect(name: str) -> None:
    why = exemption(instance(tags={name: ""}), policy(), NOW)
    assert why is not None
    assert why.code is ReasonCode.PROTECTED_TAG
    assert exemption(instance(tags={name: "No"}), policy(), NOW) is None


def test_the_names_of_before_still_protect_and_are_those_that_roles_deny() -> None:
    assert (
        Protection().tag_names[:4]
        == TAGS_DENIED_BY_ROLE
        == ("costguard-protect", "do-not-stop", "do-not-delete", "keep")
    )


WORDS = st.text(alphabet="abAB-_/ *?[", max_size=6)
TAGS = st.dictionaries(st.sampled_from(["team", "Team", "te-am", "env"]), WORDS, max_size=2)


@given(tags=TAGS, wanted=TAGS)
def test_whatever_matches_exactly_is_spared(tags: dict[str, str], wanted: dict[str, str]) -> None:
    assert not Selector(tags=wanted).matches(instance(tags=tags)) or tags_spare(tags, wanted)


@given(tags=TAGS, kept=TAGS, wider=TAGS)
@example(tags={"team": "AB"}, kept={"team": "a-b"}, wider={"team": "a?b"})
@example(tags={"team": "A_b"}, kept={"Team": "a-b"}, wider={"team": "A B"})
@example(tags={"team": "ab"}, kept={"team": "ab"}, wider={"team": "*-*"})
def test_what_provably_spares_no_less_spares_no_less(
    tags: dict[str, str], kept: dict[str, str], wider: dict[str, str]
) -> None:
    if spares_no_less(kept, wider) and tags_spare(tags, kept):
        assert tags_spare(tags, wider)


def test_another_spelling_of_an_exception_loosens_nothing() -> None:
    before, after = rule(except_for=(DEMO,)), rule(except_for=(Selector(tags={"Purpose": "CustomerDemo"}),))
    assert not loosens(before, after)
    assert loosens(before, rule(except_for=(Selector(tags={"purpose": "customer?demo"}),)))
    cause = BudgetCause("company", Decimal(1))
    assert loosens(rule(except_for=before.except_for, cause=cause), rule(except_for=after.except_for, cause=cause))


def test_an_explanation_shows_by_which_tag_an_exception_holds() -> None:
    (match,) = matches_of(tagged(Purpose="customer_demo"), [rule(except_for=(DEMO,))])
    ((asked,),) = match.excepted
    assert not match.applies
    assert (asked.key, asked.wanted, asked.found, asked.holds) == (
        "tags.purpose",
        "customer-demo",
        "Purpose: customer_demo",
        True,
    )


RULE = "{name: r, applies_when_all: {tags: {team: research}}, except_when_any: [%s]}"


def said(rules: str, rest: str = "") -> list[str]:
    read = load_policy(PolicyText({"costguard.yaml": f"version: 1\nidle_gpu: [{rules}]\n{rest}"}, "r1"))
    return [str(each) for each in remarks(read, NOW)]


@pytest.mark.parametrize(
    ("written", "near"),
    [
        ("do-not-stp", "do-not-stop"),
        ("do-nto-stop", "do-not-stop"),
        ("kepp", "keep"),
        ("Costgard_Protect", "costguard-protect"),
    ],
)
def test_a_near_miss_of_a_protecting_tag_is_a_remark(written: str, near: str) -> None:
    expected = [f"rule r: the tag {written} is nearly {near}, which protects; is it mistyped?"]
    assert said(RULE % f'{{tags: {{{written}: "*"}}}}') == expected


def test_a_near_miss_among_the_tags_that_are_added_is_a_remark() -> None:
    found = said("{name: r}", "protect: {tags: [do-not-termniate], expiry_tags: [keep-untill]}\n")
    assert found == [
        "protect: the tag do-not-termniate is nearly do-not-terminate, which protects anyway; is it mistyped?",
        "protect: the tag keep-untill is nearly keep-until, which protects anyway; is it mistyped?",
    ]


def test_a_sparing_tag_that_the_rest_of_the_policy_writes_otherwise_is_a_remark() -> None:
    expected = ["rule r: the tag tema is nearly team, as this policy says elsewhere; is it mistyped?"]
    assert said(RULE % "{tags: {tema: vision}}") == expected


def test_an_exact_tag_that_is_spelled_otherwise_elsewhere_is_a_remark() -> None:
    found = said(RULE % "{tags: {Team: vision}}")
    assert found == ["rule r: the tag team is compared exactly here; Team, as written elsewhere, is another tag"]
    found = said(
        "{name: a, applies_when_all: {tags: {team: nlp-a}}}, {name: b, applies_when_all: {tags: {team: NLP_a}}}"
    )
    assert found == [
        "rule a: team: nlp-a is compared exactly here; NLP_a, as written elsewhere, is another value",
        "rule b: team: NLP_a is compared exactly here; nlp-a, as written elsewhere, is another value",
    ]


@pytest.mark.parametrize(
    "written",
    ["project: demo", "projects: x", "stage: prod", "purpose: demo", "Keep: yes", "do_not_stop: x", "env: dev"],
)
def test_ordinary_tags_and_known_ones_are_no_near_miss(written: str) -> None:
    assert said(RULE % f"{{tags: {{{written}}}}}") == []
