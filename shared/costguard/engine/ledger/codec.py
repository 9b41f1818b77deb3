"""Frozen values to plain JSON and back, exactly: decimals and times travel as strings, tuples as lists."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_origin, get_type_hints

from costguard.domain.errors import InvalidInputError, LedgerError
from costguard.domain.refs import ResourceRef
from costguard.engine.ledger.schemas import newest_schema, upcast
from costguard.ports import Record

if TYPE_CHECKING:
    from pydantic import TypeAdapter

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
