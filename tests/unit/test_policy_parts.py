"""The generic difference of two frozen values: one table says which way of each field is tighter."""

from __future__ import annotations

from dataclasses import dataclass, field, make_dataclass, replace
from typing import Any

import pytest

from costguard.policy.diff import differences as d
from costguard.policy.diff.differences import NOT_TOLD, Direction, Part

L, T, N = Direction.LOOSER, Direction.TIGHTER, Direction.OTHER


@dataclass(frozen=True)
class Caps:
    """A part with parts of its own."""

    actions: int = 10
    share: int = 5


@dataclass(frozen=True)
class Toy:
    """An entry of a policy."""

    name: str = "a"
    wait: int = 24
    caps: Caps = Caps()
    channel: str = "x"
    where: str = field(default="", compare=False)


PARTS = {
    "name": NOT_TOLD,
    "wait": Part(d.lower),
    "caps.actions": Part(d.higher, "safety.actions"),
    "caps.share": Part(lambda old, new: new.caps.share > old.caps.share, whole=True),
    "channel": Part(None),
}


def told(old: Any, new: Any) -> list[tuple[str, str, str, Direction]]:
    found = d.compared("toys", "a", old, new, PARTS)
    return [(each.key, each.before, each.after, each.direction) for each in found]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"wait": 12}, ("wait", "24", "12", L)),
        ({"wait": 48}, ("wait", "24", "48", T)),
        ({"caps": Caps(actions=20)}, ("safety.actions", "10", "20", L)),
        ({"caps": Caps(share=1)}, ("caps.share", "5", "1", T)),
        ({"channel": "y"}, ("channel", "x", "y", N)),
    ],
)
def test_the_table_says_which_way_a_field_goes(
    change: dict[str, Any], expected: tuple[str, str, str, Direction]
) -> None:
    assert told(Toy(), replace(Toy(), **change)) == [expected]
    assert d.loosened(Toy(), replace(Toy(), **change), PARTS) is (expected[-1] is L)


def test_what_is_no_part_of_the_meaning_is_no_difference() -> None:
    assert told(Toy(), replace(Toy(), name="b", where="costguard.yaml:3:5")) == []


def test_a_field_that_nobody_declared_counts_as_looser() -> None:
    """Whichever way it goes, and however deep it is: a table that was forgotten may not let a change through."""
    wider = make_dataclass("Wider", [("pace", int, 1)], bases=(Toy,), frozen=True)
    deeper = make_dataclass("Deeper", [("pace", int, 1)], bases=(Caps,), frozen=True)

    assert told(wider(pace=1), wider(pace=2)) == told(wider(pace=1), wider(pace=2)) == [("pace", "1", "2", L)]
    assert told(wider(pace=2), wider(pace=1)) == [("pace", "2", "1", L)]
    assert told(Toy(caps=deeper(pace=1)), Toy(caps=deeper(pace=2))) == [("caps.pace", "1", "2", L)]
    assert d.loosened(wider(pace=2), wider(pace=1), PARTS)
