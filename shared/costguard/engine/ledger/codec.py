"""Frozen values to records and back, exactly: decimals and times travel as strings, tuples as lists.

How bodies written by an older Costguard become today's is one registry for every kind of record. To change the shape of
a kind, add `(kind, n): upcaster` where n is its newest schema so far; the upcaster takes a body of schema n and returns
one of n + 1. Never edit one that was released.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_origin, get_type_hints

from costguard.domain.errors import InvalidInputError, LedgerError, NewerSchemaError, VersionConflictError
from costguard.domain.refs import ResourceRef
from costguard.ports import Record

if TYPE_CHECKING:
    from pydantic import TypeAdapter

Body = Mapping[str, Any]
Upcasters = Mapping[tuple[str, int], Callable[[Body], Body]]

SAVING = "saving"


def _saving_with_changes(body: Body) -> Body:
    """Schema 1 knew one end, and no reason for it."""
    kept = {name: value for name, value in body.items() if name != "ended_at"}
    ended = body.get("ended_at")
    changes = [{"standing": "restarted", "at": ended}] if ended is not None else []
    return {**kept, "changes": changes}


def _approval_by_votes(body: Body) -> Body:
    """Schema 1 knew one person's word only."""
    vote = {"by": body.get("by"), "at": body.get("granted_at"), "expires_at": body.get("expires_at"), "asked": False}
    kept = {name: body[name] for name in ("decision_id", "used_at") if name in body}
    return {**kept, "votes": [vote], "needed": 1}


def _approval_by_roles(body: Body) -> Body:
    """Schema 2 did not say as what somebody agreed: a program that knows no roles must not use a newer one."""
    return {**body, "apart": False}


UPCASTERS: Upcasters = {
    (SAVING, 1): _saving_with_changes,
    ("approval", 1): _approval_by_votes,
    ("approval", 2): _approval_by_roles,
}


def newest_schema(kind: str, upcasters: Upcasters = UPCASTERS) -> int:
    """The schema this program writes for `kind`."""
    return _newest_known(kind) if upcasters is UPCASTERS else _newest(kind, upcasters)


def _newest(kind: str, upcasters: Upcasters) -> int:
    return 1 + max((schema for known, schema in upcasters if known == kind), default=0)


@cache
def _newest_known(kind: str) -> int:
    return _newest(kind, UPCASTERS)


def upcast(record: Record, upcasters: Upcasters = UPCASTERS) -> Body:
    """The body of `record` in today's shape.

    Raises:
        NewerSchemaError: a newer Costguard wrote it.
        LedgerError: its schema is no number that was ever written.
    """
    newest = newest_schema(record.kind, upcasters)
    if record.schema > newest:
        message = (
            f"record {record.kind}/{record.key} has schema {record.schema}, this Costguard understands up to {newest}; "
            "upgrade this Costguard"
        )
        raise NewerSchemaError(message)
    if record.schema < 1:
        message = f"record {record.kind}/{record.key} is damaged: {record.schema} is no schema number"
        raise LedgerError(message)
    body: Body = record.body
    for schema in range(record.schema, newest):
        body = upcasters[record.kind, schema](body)
    return body


_Value = TypeVar("_Value")
_ADAPTERS: dict[Any, TypeAdapter[Any]] = {}  # building one costs milliseconds


def to_body(value: object) -> dict[str, Any]:
    """The JSON object for a frozen dataclass. Keys of a mapping become their text.

    Raises:
        LedgerError: a field holds what its type does not allow, so that it could not be read again.
    """
    try:
        body: dict[str, Any] = _adapter(type(value)).dump_python(value, mode="json", warnings="error")
    except ValueError as err:  # pydantic's PydanticSerializationError is one
        message = f"a {type(value).__name__} cannot be stored: {err}"
        raise LedgerError(message) from err
    return body


def from_body(type_: type[_Value], body: Mapping[str, Any]) -> _Value:
    """The value that `to_body` was given.

    Raises:
        LedgerError: the body does not describe one.
    """
    described: Any = type_
    by_resource = _fields_by_resource(described)
    kept = {name: item for name, item in body.items() if name not in by_resource}
    try:
        value: _Value = _adapter(type_).validate_json(json.dumps(kept))
        mappings = {name: _by_resource(by_resource[name], body[name]) for name in by_resource if name in body}
    except (TypeError, ValueError, InvalidInputError) as err:  # pydantic's ValidationError is a ValueError
        message = f"a stored {type_.__name__} cannot be read: {err}"
        raise LedgerError(message) from err
    return replace(value, **mappings) if mappings else value  # type: ignore[type-var]


def record_of(kind: str, key: str, value: object) -> Record:
    """A record of today's schema that holds `value`."""
    return Record(kind, key, to_body(value), schema=newest_schema(kind))


def value_of(type_: type[_Value], record: Record) -> _Value:
    """The value a record holds, whichever Costguard wrote it.

    Raises:
        NewerSchemaError: a newer one did.
        LedgerError: it is damaged.
    """
    return from_body(type_, upcast(record))


def _adapter(type_: Any) -> TypeAdapter[Any]:
    if type_ not in _ADAPTERS:
        from pydantic import TypeAdapter

        _ADAPTERS[type_] = TypeAdapter(type_)
    return _ADAPTERS[type_]


@lru_cache(maxsize=64)
def _fields_by_resource(type_: Any) -> dict[str, Any]:
    """Fields that map resources to something, with the type of that: JSON has no such keys."""
    if not is_dataclass(type_):
        return {}
    hints = get_type_hints(type_)
    mappings = {item.name: hints[item.name] for item in fields(type_) if get_origin(hints[item.name]) is Mapping}
    return {name: get_args(hint)[1] for name, hint in mappings.items() if get_args(hint)[0] is ResourceRef}


def _by_resource(type_: Any, body: Mapping[str, Any]) -> dict[ResourceRef, Any]:
    adapter = _adapter(type_)
    return {ResourceRef.parse(text): adapter.validate_json(json.dumps(item)) for text, item in body.items()}


_Result = TypeVar("_Result")

# Each lost race means that another writer got through, so n writers at once need at most n tries each.
_TRIES = 100


def until_uncontested(attempt: Callable[[], _Result], what: str) -> _Result:
    """The result of `attempt`, which reads anew, decides anew and writes, once it loses no race.

    Raises:
        LedgerError: it lost 100 times in a row.
    """
    for _ in range(_TRIES):
        try:
            return attempt()
        except VersionConflictError:
            continue
    message = f"{what}: other writers were first {_TRIES} times in a row; nothing was changed"
    raise LedgerError(message)
