"""What Terraform is told of a change: which values will be known later, what makes a resource anew, what came of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from tests.infra.stand_in.schema import Field
from tests.infra.stand_in.values import UNKNOWN

State = dict[str, Any]
Fields = Mapping[str, Field]
Maker = Callable[[str, Field], Any]
"""Name and field of what nobody said → what the cloud would fill in."""


def planned(fields: Fields, proposed: State, prior: State | None) -> State:
    """The proposal with the defaults of the published schema, and with `UNKNOWN` where the cloud will say more."""
    first = _with_defaults(fields, proposed)
    if prior is not None and same(first, prior):
        return first
    return _with_unknown(fields, first, nested_only=prior is not None)


def _with_defaults(fields: Fields, state: State) -> State:
    return _walked(fields, state, lambda _, field: None if field.how == "computed" else field.said.get("default"))


def _with_unknown(fields: Fields, state: State, *, nested_only: bool) -> State:
    """Of a resource that is there already, what it told stays; of a block that comes new, it is not known yet."""
    whole = _walked(fields, state, lambda _, field: UNKNOWN if field.told else None)
    if not nested_only:
        return whole
    return {name: whole[name] if name in fields and fields[name].is_block else state[name] for name in state}


def filled(fields: Fields, state: State, make: Maker) -> State:
    """The state with everything unknown made up."""
    return _walked(fields, state, make, missing=UNKNOWN)


def _walked(fields: Fields, state: State, make: Maker, missing: Any = None) -> State:
    done = dict(state)
    for name, field in fields.items():
        value = state.get(name)
        if value is missing:
            done[name] = make(name, field)
        elif field.is_block and isinstance(field.of, Mapping) and isinstance(value, list):
            inner = field.of
            done[name] = [_walked(inner, one, make, missing) if isinstance(one, dict) else one for one in value]
    return done


def replaced(fields: Fields, prior: State, new: State) -> list[str]:
    """Names of what cannot be changed in place and would be."""
    return [name for name, field in fields.items() if _forces(field, prior.get(name), new.get(name))]


def _forces(field: Field, old: Any, new: Any) -> bool:
    if same(old, new):
        return False
    if field.forces:
        return True
    if not isinstance(field.of, Mapping) or not isinstance(old, list) or not isinstance(new, list):
        return False
    pairs = zip(old, new) if field.type == "list" else ()  # noqa: B905 - more blocks on one side are no change inside one
    return any(replaced(field.of, one, other) for one, other in pairs)


def conformed(fields: Fields, state: State, kept: tuple[str, ...] = ()) -> State:
    """A stored state as the schema of today has it: `kept` beside its fields, no more, and no less."""
    done: State = {name: state[name] for name in kept if name in state}
    for name, field in fields.items():
        value = state.get(name)
        if field.is_block and isinstance(field.of, Mapping):
            inner = field.of
            done[name] = [conformed(inner, one) for one in value or []]
        else:
            done[name] = value
    return done


def same(one: Any, other: Any) -> bool:
    """Whether two values are one: a number may be a text of its digits."""
    if isinstance(one, dict) and isinstance(other, dict):
        return all(same(one.get(name), other.get(name)) for name in {*one, *other})
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if one is UNKNOWN or other is UNKNOWN:
        return False
    if one == other and type(one) is type(other):
        return True
    numbers = [number(value) for value in (one, other)]
    return None not in numbers and numbers[0] == numbers[1]


def number(value: Any) -> Decimal | None:
    """A number of whatever form it travelled in; none where it is no number."""
    if value is None or isinstance(value, bool | dict | list):
        return None
    try:
        return Decimal(str(value))
    except InvalidOperation:
        return None


def unknown_in(value: Any) -> bool:
    """Whether anything in it is known later only."""
    return value is UNKNOWN or any(unknown_in(one) for one in _inside(value))


def _inside(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list):
        yield from value
