"""The code and the message catalogues agree: what is named is there with its facts, and what is there is said."""

from __future__ import annotations

import re
from functools import cache

import pytest
from tests.words.catalogues import texts
from tests.words.ids import GROUP_OF, Call, calls, constants, counted_with, named_facts, needed_facts

from costguard.domain.reasons import ReasonCode
from costguard.report.words.sentences import Language

OF_CODE = {*GROUP_OF.values(), "risks", "kept", "choices", "gap_subjects", "gap_effects"}
"""Groups whose ids stand in the code as texts; those of the other groups are members of an enum, or stand below."""

MADE_ELSEWHERE = {
    "choices": r"the same hours of the past \d weeks|the past 24 hours",  # estimates/surge.py
}
"""Ids that are neither written out in the code nor made where they are said."""


@cache
def said() -> tuple[Call, ...]:
    return tuple(calls())


def named(call: Call) -> list[str]:
    return [key for group, key in texts("en") if group == call.group and re.fullmatch(call.names, key)]


def test_every_message_that_the_code_names_is_there() -> None:
    assert len(said()) > 500
    assert [call for call in said() if not named(call)] == []


def test_every_fact_that_a_message_cannot_do_without_is_given() -> None:
    lacking = [
        (call.where, key, sorted(names))
        for call in said()
        if call.literal and call.facts is not None
        for key in named(call)
        for text in texts("en")[call.group, key]
        for names in needed_facts(text)
        if not names & call.facts
    ]
    assert lacking == []


def test_no_message_is_left_that_nothing_says() -> None:
    written = constants()
    families = {(call.group, call.names) for call in said() if not call.literal} | set(MADE_ELSEWHERE.items())
    left = [
        (group, key)
        for group, key in texts("en")
        if group in OF_CODE and key not in written
        if not any(of == group and re.fullmatch(pattern, key) for of, pattern in families)
    ]
    assert left == []


def test_only_a_reason_has_a_fix() -> None:
    assert {key for group, key in texts("en") if group == "fixes"} <= {code.value for code in ReasonCode}


@pytest.mark.parametrize("language", list(Language))
def test_what_counts_is_counted_with(language: Language) -> None:
    written = texts(language.value)
    used = {name for forms in written.values() for text in forms for name in counted_with(text)}

    assert used == {key for group, key in written if group == "counts"}


@pytest.mark.parametrize("language", list(Language))
def test_a_message_with_plural_forms_is_chosen_by_the_fact_it_counts(language: Language) -> None:
    """Only the fact `count` chooses, so a message with forms names it; group `counts` is always given it."""
    forms = [said for (group, _), said in texts(language.value).items() if len(said) > 1 and group != "counts"]

    assert [said for said in forms if not any("count" in named_facts(text) for text in said)] == []
