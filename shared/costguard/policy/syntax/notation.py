"""Values as the policy writes them: `24h`, `5%`, `200 USD`. The same in every language. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum, IntEnum
from typing import Any

from costguard.domain.money import Money
from costguard.guards.rules.common import Selector, Step
from costguard.guards.rules.idle import percent_words

_UNITS = ((timedelta(days=1), "d"), (timedelta(hours=1), "h"), (timedelta(minutes=1), "m"))
_HOURS_UP_TO = timedelta(hours=48)  # people say 24h and 48h, and days beyond
_SCALES = ((1024**3, "GiB/s"), (1024**2, "MiB/s"), (1024, "KiB/s"))


def written(value: object) -> str:
    """One value; nothing for what is left out."""
    if value is None:
        return ""
    return next((form(value) for kind, form in _FORMS if isinstance(value, kind)), str(value))


def duration(value: timedelta) -> str:
    """`24h`, `7d`, `90m`."""
    for unit, name in _UNITS:
        if value and not value % unit and not (name == "d" and value <= _HOURS_UP_TO):
            return f"{value // unit}{name}"
    return f"{value.total_seconds():g}s"


def percent(value: float | None) -> str:
    """A bound in percent."""
    return "" if value is None else f"{value:g}%"


def share(value: float | Decimal) -> str:
    """A share, 0 to 1, as a percentage."""
    return f"{percent_words(Decimal(str(value)))}%"


def rate(value: float | None) -> str:
    """Bytes a second, in the largest unit that leaves a whole number."""
    if value is None:
        return ""
    for size, unit in _SCALES:
        if value >= size and value % size == 0:
            return f"{value / size:g}{unit}"
    return f"{value:g}B/s"


def power(value: float | None) -> str:
    """Watts."""
    return "" if value is None else f"{value:g}W"


def ladder(steps: Iterable[Step]) -> str:
    """`warn → stop 24h → terminate 7d`."""
    return " → ".join(step.verb.value + (f" {duration(step.wait)}" if step.wait else "") for step in steps)


def selection(selector: Any) -> str:
    """Every restriction of a selector, `tags: team=research; regions: us-east-1`; nothing where there is none."""
    found = ((part.name, getattr(selector, part.name)) for part in fields(selector))
    return "; ".join(f"{name}: {written(value)}" for name, value in found if value is not None)


def selections(selectors: Iterable[Selector]) -> str:
    """Several of them, of which one must match."""
    return " | ".join(map(selection, selectors))


_FORMS: tuple[tuple[type, Callable[[Any], str]], ...] = (
    (bool, lambda value: "true" if value else "false"),
    (IntEnum, lambda value: value.name.lower()),
    (Enum, lambda value: str(value.value)),
    (timedelta, duration),
    (Money, lambda value: f"{value.amount.normalize():f} {value.currency}"),
    (Decimal, lambda value: f"{value.normalize():f}"),
    (float, lambda value: f"{value:g}"),
    (date, lambda value: value.isoformat()),  # moments are dates too
    (time, lambda value: f"{value:%H:%M}"),
    (Mapping, lambda value: ", ".join(f"{key}={written(each)}" for key, each in sorted(value.items()))),
    (frozenset, lambda value: ", ".join(sorted(map(written, value)))),
    (tuple, lambda value: ", ".join(map(written, value)) if value else "[]"),
)
"""The first that fits: truth values are numbers, and some enumerations too."""
