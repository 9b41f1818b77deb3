"""What a changed policy means: who becomes matched, what loosens, what tightens. Not what its text says. Pure.

Looser: Costguard may do more, sooner or harder, or listen to more people. What cannot be proved a tightening counts as
looser, as it does for the cases that are open (`diff.idle.loosens`), and so does a field that no table here names. What
only people see, such as an alert or a channel, is neither.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from enum import Enum
from operator import attrgetter
from typing import Any, TypeVar

from costguard.policy.syntax.units import written

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


Looser = Callable[[Any, Any], "bool | None"]
"""Whether the second of two different values is looser than the first; None: neither is."""


@dataclass(frozen=True, slots=True)
class Part:
    """What one field of an entry says, and which way of it is tighter.

    `looser` None: only people see it. `key` is the policy's word for it, without one its path. `value` makes of the
    field what is compared and `shown`. With `whole`, `looser` is asked of the entries: of the first, and of the first
    with this field of the second. Where `told` is False another part tells of it, or nobody has to.
    """

    looser: Looser | None
    key: str = ""
    shown: Callable[[Any], str] = written
    value: Callable[[Any], Any] | None = None
    whole: bool = False
    told: bool = True


Parts = Mapping[str, Part]
"""Of one kind of entry: the parts by the path of their field, such as `limits.actions_per_day`, in the order shown."""


def any_change(before: Any, after: Any) -> bool:
    """No change can be proved a tightening."""
    del before, after
    return True


NOT_TOLD = Part(None, told=False)
"""What no difference follows from by itself."""
_UNDECLARED = Part(any_change)
"""A field that no table names: nobody has said which way of it is tighter."""


def changed(old: Any, new: Any, parts: Parts) -> Iterator[tuple[str, Part]]:
    """The fields of two entries that differ, by path; those that no part names come last, and count as looser."""
    for path, part in parts.items():
        if _value(old, path, part) != _value(new, path, part):
            yield path, part
    for path in _undeclared(old, new, parts, ""):
        yield path, _UNDECLARED


def loosened(old: Any, new: Any, parts: Parts) -> bool:
    """Whether anything of the second entry is looser than in the first; `whole` parts are asked of both as they are."""
    return any(_looser(old, new, path, part) for path, part in changed(old, new, parts))


def compared(section: str, name: str, old: Any, new: Any, parts: Parts) -> Iterator[Difference]:
    """What of one entry is not as it was."""
    for path, part in changed(old, new, parts):
        if part.told:
            before, after = (part.shown(_value(each, path, part)) for each in (old, new))
            looser = _looser(old, _with(old, path.split("."), new) if part.whole else new, path, part)
            way = Direction.OTHER if looser is None else Direction.LOOSER if looser else Direction.TIGHTER
            yield Difference(section, name, part.key or path, before, after, way)


def _looser(old: Any, new: Any, path: str, part: Part) -> bool | None:
    if part.looser is None:
        return None
    return part.looser(old, new) if part.whole else part.looser(_value(old, path, part), _value(new, path, part))


def _value(entry: Any, path: str, part: Part) -> Any:
    found = attrgetter(path)(entry)
    return found if part.value is None else part.value(found)


def _undeclared(old: Any, new: Any, parts: Parts, prefix: str) -> Iterator[str]:
    """Every field that differs and that no part names. One that has parts below it is looked into."""
    for field in fields(old):
        path, before, after = prefix + field.name, getattr(old, field.name), getattr(new, field.name)
        if not field.compare or path in parts or before == after:
            continue
        if any(known.startswith(f"{path}.") for known in parts):
            yield from _undeclared(before, after, parts, f"{path}.")
        else:
            yield path


def _with(old: Any, path: Sequence[str], new: Any) -> Any:
    """`old` with this one field of `new`."""
    name, *below = path
    after = getattr(new, name)
    return replace(old, **{name: _with(getattr(old, name), below, after) if below else after})


def listed(
    section: str,
    old: Mapping[str, _Entry],
    new: Mapping[str, _Entry],
    parts: Parts,
    *,
    shown: Callable[[_Entry], str],
    added: Callable[[_Entry], Direction],
    removed: Callable[[_Entry], Direction],
) -> Iterator[Difference]:
    """The differences of two lists of entries, by name."""
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


def loosening(differences: Iterable[Difference]) -> tuple[Difference, ...]:
    """Those that loosen."""
    return tuple(each for each in differences if each.direction is Direction.LOOSER)
