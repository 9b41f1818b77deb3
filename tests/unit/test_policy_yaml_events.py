"""The quick way through a YAML text sees what ruamel.yaml's own does."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from costguard.cli.demo.story import DEMO_POLICY
from costguard.policy.syntax.yaml12 import events_in

SHIPPED = {path.name: path.read_text(encoding="utf-8") for path in sorted(DEMO_POLICY.rglob("*.yaml"))}
PIECES = (
    "a",
    "b: ",
    "- ",
    "? ",
    ": ",
    "[",
    "]",
    "{",
    "}",
    ", ",
    "'",
    '"',
    "|",
    ">",
    "&x ",
    "*x",
    "!t ",
    "#c",
    "%",
    "\n",
)
JUNK = st.lists(st.sampled_from((*PIECES, "\n  ", "---\n", "...\n", "x" * 1030)), max_size=25).map("".join)


def seen(events: Callable[[str], Iterable[Any]], text: str) -> list[Any]:
    """Everything that a reader of policies asks an event, and the words of an end."""
    found: list[Any] = []
    try:
        for event in events(text):
            names = ("value", "style", "anchor", "implicit", "version", "tags")
            marks = [(mark.line, mark.column, mark.index) for mark in (event.start_mark, event.end_mark)]
            told = [getattr(event, name, None) for name in names]
            found.append((type(event), marks, told, str(getattr(event, "ctag", None))))
    except (YAMLError, ValueError) as err:
        found.append((type(err), str(err)))
    return found


def own(text: str) -> Iterable[Any]:
    return YAML(typ="safe", pure=True).parse(text)  # type: ignore[no-any-return]


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_policy_has_the_same_events(name: str) -> None:
    assert len(seen(own, SHIPPED[name])) > 5
    assert seen(events_in, SHIPPED[name]) == seen(own, SHIPPED[name])


@given(JUNK)
def test_whatever_is_written_has_the_same_events_and_the_same_end(text: str) -> None:
    assert seen(events_in, text) == seen(own, text)
