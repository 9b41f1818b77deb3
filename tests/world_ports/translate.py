"""The world's types and the program's, one into the other: the same names and fields, but for those of places."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from enum import Enum
from functools import cache
from types import ModuleType
from typing import Any, overload

from cloudstand.wire import keys as credentials
from cloudstand.world import keys as their_keys
from cloudstand.world import kinds, places, workload
from cloudstand.world import money as their_money
from cloudstand.world.kinds import InstanceState
from cloudstand.world.network import parts as network_parts
from cloudstand.world.network.parts import NetworkInventory
from cloudstand.world.places import Place, Ref
from costguard.domain import keys, money, network, refs, resources, signals
from costguard.domain.refs import ResourceRef, Shard
from costguard.providers.kit.core import credentials as provider_keys

_WORLD = (credentials, places, their_money, kinds, network_parts, their_keys, workload)
_PRODUCT = (refs, money, resources, network, keys, signals, provider_keys)
_PLAIN = (str, bytes, int, float, Decimal, datetime, timedelta)
_CALLED = {"Ref": "ResourceRef", "Place": "Shard"}


@overload
def to_product(value: Ref) -> ResourceRef: ...
@overload
def to_product(value: Place) -> Shard: ...
@overload
def to_product(value: InstanceState) -> resources.InstanceState: ...
@overload
def to_product(value: NetworkInventory) -> network.NetworkInventory: ...
@overload
def to_product(value: credentials.Keys) -> provider_keys.Keys: ...
@overload
def to_product(value: object) -> Any: ...
def to_product(value: Any) -> Any:
    """What the program calls something of the world, and all that is in it."""
    return _as(value, _product_of)


@overload
def to_world(value: ResourceRef) -> Ref: ...
@overload
def to_world(value: Shard) -> Place: ...
@overload
def to_world(value: object) -> Any: ...
def to_world(value: Any) -> Any:
    """What the world calls something of the program's, and all that is in it."""
    return _as(value, _world_of)


def _as(value: Any, other: Callable[[type], Any]) -> Any:
    if isinstance(value, Enum):
        kind = other(type(value))
        return value if kind is None else kind(value.value)
    if isinstance(value, (tuple, list, set, frozenset)):
        return type(value)(_as(each, other) for each in value)
    if isinstance(value, Mapping):
        return {_as(key, other): _as(each, other) for key, each in value.items()}
    if is_dataclass(value):
        kind, shared = _fields(type(value), other)  # type: ignore[arg-type] # mypy sees no hash in a class
        return value if kind is None else kind(**{name: _as(getattr(value, name), other) for name in shared})
    if value is None or isinstance(value, _PLAIN):
        return value
    message = f"{type(value)} cannot be translated"
    raise TypeError(message)


@cache
def _fields(kind: Any, other: Callable[[type], Any]) -> tuple[Any, tuple[str, ...]]:
    """The other side's class, and the fields that both have."""
    found = other(kind)
    there = () if found is None else fields(found)
    return found, tuple(
        field.name for field in there if field.init and field.name in {own.name for own in fields(kind)}
    )


@cache
def _product_of(kind: type) -> Any:
    return _named(_PRODUCT, _CALLED.get(kind.__name__, kind.__name__)) if _is_of(kind, "cloudstand.") else None


@cache
def _world_of(kind: type) -> Any:
    back = {ours: theirs for theirs, ours in _CALLED.items()}
    return _named(_WORLD, back.get(kind.__name__, kind.__name__)) if _is_of(kind, "costguard.") else None


def _is_of(kind: type, package: str) -> bool:
    return kind.__module__.startswith(package)


def _named(modules: tuple[ModuleType, ...], name: str) -> Any:
    return next((vars(module)[name] for module in modules if name in vars(module)), None)
