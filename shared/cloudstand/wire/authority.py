"""What policy documents let one identity do: those of IAM, RAM and CAM, as far as Costguard's own use them.

Whatever is not understood is an error and never "allowed": a document with another operator needs it here first.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from threading import Lock
from typing import Any

from typing_extensions import Self

ANY = "*"


@dataclass(frozen=True, slots=True)
class Wish:
    """One permission asked for: the names it goes by (any will do), on what, and what the request has to tell.

    `context` has the values of condition keys; a key that is not there is absent from the request.
    """

    actions: tuple[str, ...]
    resources: tuple[str, ...] = (ANY,)
    context: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement, whatever its dialect."""

    allows: bool
    actions: tuple[str, ...]
    resources: tuple[str, ...]
    but_resources: tuple[str, ...]
    conditions: tuple[tuple[str, str, tuple[str, ...]], ...]

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Self:
        """One statement of a document.

        Raises:
            ValueError: it has a part that nothing here understands.
        """
        told = {key.lower(): value for key, value in document.items()}
        unknown = sorted(told.keys() - {"sid", "effect", "action", "resource", "notresource", "condition"})
        if unknown or told["effect"].lower() not in {"allow", "deny"}:
            message = f"no statement that is understood here: {', '.join(unknown) or told['effect']}"
            raise ValueError(message)
        conditions = tuple(
            (operator, key.lower(), _texts(values))
            for operator, keys in told.get("condition", {}).items()
            for key, values in keys.items()
        )
        for operator, _, _ in conditions:
            if operator not in _OPERATORS:
                message = f"the operator {operator} is not understood here"
                raise ValueError(message)
        return cls(
            told["effect"].lower() == "allow",
            _texts(told["action"]),
            _texts(told.get("resource", ())),
            _texts(told.get("notresource", ())),
            conditions,
        )

    def names(self, action: str) -> str:
        """The pattern of this statement that has this action; empty where none has."""
        return next((one for one in self.actions if _like(one.lower(), action.lower())), "")

    def covers(self, resource: str) -> bool:
        """Whether it is about this resource."""
        if self.but_resources:
            return not any(_is_named(one, resource) for one in self.but_resources)
        return any(_is_named(one, resource) for one in self.resources)

    def holds(self, context: Mapping[str, tuple[str, ...]]) -> bool:
        """Whether every condition does."""
        told = {key.lower(): values for key, values in context.items()}
        return all(_holds(operator, told.get(key), wanted) for operator, key, wanted in self.conditions)


class Authority:
    """Decides for one identity, and keeps what it decided; serves many threads.

    Attributes:
        used: what was allowed, as the documents have it written: by it a permission nobody needs is found.
        refused: what was not, in order.
    """

    def __init__(self, documents: Iterable[Mapping[str, Any]]) -> None:
        whole = [one for document in documents for one in document.get("Statement", document.get("statement", ()))]
        self._statements = tuple(Statement.read(one) for one in whole)
        self._lock = Lock()
        self.used: set[str] = set()
        self.refused: list[Wish] = []

    @property
    def granted(self) -> frozenset[str]:
        """Every action that is allowed anywhere."""
        return frozenset(name for one in self._statements if one.allows for name in one.actions)

    def allows(self, *wishes: Wish) -> bool:
        """Whether all of them are; each is asked about, so that all that is missing is known."""
        decided = [self._allows(wish) for wish in wishes]
        return all(decided)

    def _allows(self, wish: Wish) -> bool:
        """Whether each resource is allowed under one of the names, and none is denied under any."""
        by = [self._allowed(wish, resource) for resource in wish.resources]
        denied = any(
            not one.allows and one.names(action) and one.covers(resource) and one.holds(wish.context)
            for one in self._statements
            for action in wish.actions
            for resource in wish.resources
        )
        may = all(by) and not denied
        with self._lock:
            if may:
                self.used |= {name for names in by for name in names}
            else:
                self.refused.append(wish)
        return may

    def _allowed(self, wish: Wish, resource: str) -> set[str]:
        """The patterns that allow it there: all of them, as each name of one permission is one for that purpose."""
        return {
            one.names(action)
            for one in self._statements
            for action in wish.actions
            if one.allows and one.names(action) and one.covers(resource) and one.holds(wish.context)
        }


def _texts(value: Any) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


@lru_cache(maxsize=4096)
def _pattern(glob: str) -> re.Pattern[str]:
    return re.compile("".join({"*": ".*", "?": "."}.get(letter, re.escape(letter)) for letter in glob), re.DOTALL)


def _like(glob: str, text: str) -> bool:
    return _pattern(glob).fullmatch(text) is not None


def _is_named(pattern: str, resource: str) -> bool:
    """Whether the resource is one of those. In CAM's six parts an empty one stands for any region, and one's own."""
    if pattern == ANY:
        return True
    if not pattern.startswith("qcs:"):
        return _like(pattern, resource)
    parts, there = pattern.split(":", 5), resource.split(":", 5)
    return len(parts) == len(there) and all(
        not part or _like(part, other) for part, other in zip(parts, there, strict=True)
    )


_OPERATORS = frozenset(
    {
        "ArnEquals",
        "ArnLike",
        "ArnNotLike",
        "BoolIfExists",
        "ForAllValues:StringEquals",
        "ForAnyValue:StringNotEquals",
        "Null",
        "StringEquals",
        "StringLike",
        "StringNotEquals",
        "for_any_value:string_equal",
    }
)


def _holds(operator: str, told: Sequence[str] | None, wanted: Collection[str]) -> bool:
    """One condition. Where the key is absent hold negations, those with IfExists or for all values, and Null."""
    if operator == "Null":
        return (told is None) is (wanted == ("true",))
    if told is None:
        return operator in {"StringNotEquals", "ArnNotLike", "BoolIfExists", "ForAllValues:StringEquals"}
    if operator in {"ForAllValues:StringEquals", "ForAnyValue:StringNotEquals"}:
        return all(value in wanted for value in told) is (operator == "ForAllValues:StringEquals")
    if operator in {"StringLike", "ArnLike", "ArnEquals"}:
        return any(_like(one, value) for one in wanted for value in told)
    if operator == "ArnNotLike":
        return not any(_like(one, value) for one in wanted for value in told)
    same = any(value in wanted for value in told)
    return not same if operator == "StringNotEquals" else same
