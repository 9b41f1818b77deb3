"""What moto finds out anew for every request, found out once."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from moto import backends
from moto.core import responses, serialize
from moto.core.utils import method_names_from_class

from cloudstand.aws.core.patching import Patch


def hastening() -> tuple[Patch, ...]:
    """Patches that change no answer. Together they halve what a request costs."""
    modules = tuple(backends.list_of_moto_modules())
    names_of = lru_cache(maxsize=None)(method_names_from_class)
    serializer = serialize.ResponseSerializer
    return (
        Patch(backends, "list_of_moto_modules", lambda: modules, "reads moto's own folders, twice a request"),
        Patch(responses, "method_names_from_class", names_of, "searches a class of a thousand names, once a request"),
        Patch(serializer, "get_value", _value_of(serializer.get_value), "thinks up names of a field, for each field"),
    )


def _value_of(ask: Callable[[Any, Any, str, Any], Any]) -> Callable[[Any, Any, str, Any], Any]:
    """As `ask`, moto's own way to the value of a field; under which names a dict may hold it is kept by field."""
    names: dict[tuple[Any, Any, str], tuple[str, ...]] = {}

    def get_value(serializer: Any, value: Any, key: str, shape: Any) -> Any:
        picker = serializer._value_picker  # noqa: SLF001 - moto has no public way
        if type(value) is not dict or type(picker) not in _KNOWN or picker.response_transformers:
            return ask(serializer, value, key, shape)
        of = (type(picker), shape, key)
        if of not in names:
            names[of] = tuple(picker.get_possible_keys(serialize.AttributePickerContext(value, key, shape)))
        for name in names[of]:
            if "." in name:
                return ask(serializer, value, key, shape)  # a way through several dicts
            if name in value:
                return value[name]
        return None

    return get_value


_KNOWN = frozenset({serialize.AttributePicker, serialize.XFormedAttributePicker})
"""Whose names depend on the field alone, where the value is a dict."""
