"""What a changed policy means: who becomes matched, what loosens, what tightens. Not what its text says. Pure.

Looser: Costguard may do more, sooner or harder, or listen to more people. What cannot be proved a tightening counts as
looser, as it does for the cases that are open (`changes.loosens`). What only people see, such as an alert or a channel,
is neither.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Generic, TypeVar

from costguard.policy.syntax.notation import written

_Entry = TypeVar("_Entry")


class Direction(str, Enum):
    """Which way a difference goes."""

    LOOSER = "looser"
    TIGHTER = "tighter"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference. `section` and `key` are the policy's words, `name` the entry's; `before` and `after` as written.

    An empty `key` speaks of the whole entry: without `before` it is new, without `after` it is gone. The key `falls_to`
    tells that machines of the rule `name` may now come under the harsher rule `after`.
    """

    section: str
    name: str
    key: str
    before: str
    after: str
    direction: Direction


@dataclass(frozen=True, slots=True)
class Part(Generic[_Entry]):
    """One thing an entry says. `looser` tells of two different values whether the second is; None: neither is."""

    key: str
    value: Callable[[_Entry], Any]
    looser: Callable[[Any, Any], bool | None] | None
    shown: Callable[[Any], str] = written


def compared(section: str, name: str, old: _Entry, new: _Entry, parts: Iterable[Part[_Entry]]) -> Iterator[Difference]:
    """What of one entry is not as it was."""
    for part in parts:
        before, after = part.value(old), part.value(new)
        if before != after:
            yield Difference(
                section, name, part.key, part.shown(before), part.shown(after), direction(part.looser, before, after)
            )


def direction(looser: Callable[[Any, Any], bool | None] | None, before: Any, after: Any) -> Direction:
    """Which way from one value to another."""
    found = None if looser is None else looser(before, after)
    if found is None:
        return Direction.OTHER
    return Direction.LOOSER if found else Direction.TIGHTER


def listed(
    section: str,
    old: Mapping[str, _Entry],
    new: Mapping[str, _Entry],
    parts: Iterable[Part[_Entry]],
    *,
    shown: Callable[[_Entry], str],
    added: Callable[[_Entry], Direction],
    removed: Callable[[_Entry], Direction],
) -> Iterator[Difference]:
    """The differences of two lists of entries, by name."""
    parts = tuple(parts)
    for name in sorted(old.keys() | new.keys()):
        if name not in old:
            yield Difference(section, name, "", "", shown(new[name]), added(new[name]))
        elif name not in new:
            yield Difference(section, name, "", shown(old[name]), "", removed(old[name]))
        else:
            yield from compared(section, name, old[name], new[name], parts)


def higher(before: Any, after: Any) -> bool:
    """More is looser."""
    return bool(after > before)


def lower(before: Any, after: Any) -> bool:
    """Less is looser."""
    return bool(after < before)


def more(before: Any, after: Any) -> bool:
    """Anything that was not there is looser."""
    return not set(after or ()) <= set(before or ())


def fewer(before: Any, after: Any) -> bool:
    """Anything that is gone is looser."""
    return more(after, before)


def any_change(before: Any, after: Any) -> bool:
    """No change can be proved a tightening."""
    del before, after
    return True


def loosening(differences: Iterable[Difference]) -> tuple[Difference, ...]:
    """Those that loosen."""
    return tuple(each for each in differences if each.direction is Direction.LOOSER)
