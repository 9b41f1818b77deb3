"""Durations, money, shares, rates and power as a policy writes them: always with their unit. Pure.

`parse_…` takes what stood in the YAML and returns the value, or raises BadValueError saying what was expected and,
where it can be told, what to write instead. The others write a value as the policy does: `24h`, `5%`, `200 USD`, the
same in every language.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum, IntEnum
from typing import Any

from costguard.domain.money import Money
from costguard.guards.rules.common import Selector, Step
from costguard.guards.rules.idle import percent_words
from costguard.policy.syntax.problems import BadValueError

_DURATION_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_RATE_UNITS = {
    "B/s": 1,
    "kB/s": 1000,
    "KB/s": 1000,
    "MB/s": 1000**2,
    "GB/s": 1000**3,
    "KiB/s": 1024,
    "MiB/s": 1024**2,
    "GiB/s": 1024**3,
}
_POWER_UNITS = {"W": 1, "kW": 1000}
_LONGEST = timedelta(days=3650)
_ISO_DURATION = re.compile(r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?)?", re.IGNORECASE)
_NUMBER = r"[0-9]{1,15}(?:\.[0-9]{1,9})?"
_DURATION = re.compile(rf"({_NUMBER})\s*([A-Za-z]*)")
_QUANTITY = re.compile(rf"({_NUMBER})\s*(.*)")
_MONEY = re.compile(rf"({_NUMBER}) ([A-Z]{{3}})")
_MONEY_ALIKE = re.compile(r"([^\d\s]{0,4})\s*([0-9][0-9,_]*(?:\.[0-9]+)?)\s*([^\d\s]{0,4})")
_CURRENCY_NAMES = {
    "$": "USD",
    "US$": "USD",
    "¥": "CNY",
    "￥": "CNY",
    "RMB": "CNY",
    "€": "EUR",
    "元": "CNY",
    "CNH": "CNY",
    "NTD": "TWD",
}
_HUNDRED = Decimal(100)
_SAFE_DIGITS = 15  # a YAML number is read as a float, which keeps so many

Raw = object
"""Whatever the YAML held."""


def parse_duration(raw: Raw) -> timedelta:
    """`90s`, `30m` (minutes), `24h`, `7d`, `2w`; a positive whole number and one unit."""
    expected = "expected a duration such as 24h, 7d, 30m or 90s"
    text = _text(raw, expected)
    match = _DURATION.fullmatch(text)
    if match is None:
        message = f"{text!r} is not a duration; {expected}"
        raise BadValueError(message, _from_iso(text))
    number, unit = match.groups()
    if not unit:
        message = f"{text!r} has no unit; {expected}"
        raise BadValueError(message, f"write {number}h if hours were meant")
    if unit not in _DURATION_UNITS:
        near = {"hour": "h", "hr": "h", "day": "d", "min": "m", "sec": "s", "week": "w", "minute": "m", "second": "s"}
        short = near.get(unit.casefold().removesuffix("s"), unit.casefold())
        fix = f"write {number}{short}" if short in _DURATION_UNITS else "the units are s, m (minutes), h, d and w"
        message = f"{unit!r} is not a unit of time; {expected}"
        raise BadValueError(message, fix)
    seconds = Decimal(number) * _DURATION_UNITS[unit]
    if "." in number or match.group() != f"{number}{unit}":
        whole = f"write {seconds / 60:f}".rstrip("0").rstrip(".") + "m" if seconds % 60 == 0 else ""
        message = f"{text!r} is not a whole number and its unit; {expected}"
        raise BadValueError(message, whole or "write it without space")
    if seconds > _LONGEST.total_seconds():
        message = f"{text!r} is longer than ten years"
        raise BadValueError(message, "write a shorter duration")
    return timedelta(seconds=int(seconds))


def parse_percent(raw: Raw, at_most: Decimal = _HUNDRED) -> Decimal:
    """`5%` → 5; from 0 to 100, or to what else is the most."""
    expected = "expected a percentage such as 5%"
    text = _text(raw, expected)
    match = re.fullmatch(rf"({_NUMBER})%", text)
    if match is None:
        number = text.replace(" ", "").rstrip("%")
        fix = f"write {number}%" if re.fullmatch(_NUMBER, number) else ""
        message = f"{text!r} is not a percentage; {expected}"
        raise BadValueError(message, fix)
    value = Decimal(match.group(1))
    if value > at_most:
        message = f"{text} is more than all of it" if at_most == _HUNDRED else f"{text} is more than anybody plans for"
        raise BadValueError(message, f"write at most {at_most}%")
    return value


def parse_share(raw: Raw) -> Decimal:
    """`10%` → 0.1."""
    return parse_percent(raw) / _HUNDRED


def parse_money(raw: Raw) -> Money:
    """`200 USD`: an amount from 0 up, one space, the ISO 4217 code of the currency."""
    expected = "expected an amount and its currency, such as 200 USD or 1400 CNY"
    text = _text(raw, expected)
    match = _MONEY.fullmatch(text)
    if match is None:
        message = f"{text!r} is not an amount of money; {expected}"
        raise BadValueError(message, _money_fix(text))
    number, currency = match.groups()
    if currency in _CURRENCY_NAMES:
        message = f"{currency} is a name, not the ISO 4217 code of a currency; {expected}"
        raise BadValueError(message, f"write {number} {_CURRENCY_NAMES[currency]}")
    return Money(Decimal(number), currency)


def parse_currency(raw: Raw) -> str:
    """`USD`: the ISO 4217 code of a currency."""
    expected = "expected the code of a currency, such as USD or CNY"
    text = _text(raw, expected)
    if re.fullmatch(r"[A-Z]{3}", text) is None or text in _CURRENCY_NAMES:
        code = _CURRENCY_NAMES.get(text.upper(), text.upper())
        message = f"{text!r} is not the code of a currency; {expected}"
        raise BadValueError(message, f"write {code}" if re.fullmatch(r"[A-Z]{3}", code) else "write its three letters")
    return text


def parse_exchange_rate(raw: Raw) -> Decimal:
    """`7.1`: a number above 0, of at most 15 digits, so that nothing is lost on the way from the text."""
    expected = "expected a number such as 7.1"
    text = _text(raw, expected)
    match = re.fullmatch(rf"({_NUMBER})(.*)", text)
    if match is None or match.group(2):
        fix = f"write {match.group(1)}" if match else "write it in decimal"
        message = f"{text!r} is not a rate of exchange; {expected}"
        raise BadValueError(message, fix)
    if len(text.replace(".", "").lstrip("0")) > _SAFE_DIGITS:
        message = f"{text} has more digits than a rate of exchange; at most {_SAFE_DIGITS}"
        raise BadValueError(message, "round it")
    value = Decimal(text)
    if value == 0:
        raise BadValueError("a rate of 0 makes money worth nothing", "write what one unit is worth, such as 7.1")
    return value


def parse_rate(raw: Raw) -> Decimal:
    """`50KiB/s` → bytes a second; K is 1000, Ki is 1024."""
    return _quantity(raw, _RATE_UNITS, "expected bytes a second, such as 50KiB/s or 1MB/s")


def parse_power(raw: Raw) -> Decimal:
    """`80W` → watts."""
    return _quantity(raw, _POWER_UNITS, "expected watts, such as 80W")


def _quantity(raw: Raw, units: dict[str, int], expected: str) -> Decimal:
    text = _text(raw, expected)
    match = _QUANTITY.fullmatch(text)
    if match is None:
        message = f"{text!r} is not a quantity; {expected}"
        raise BadValueError(message)
    number, unit = match.groups()
    if unit not in units:
        alike = {known.casefold(): known for known in units}.get(unit.casefold())
        fix = f"write {number}{alike}" if alike else f"the units are {', '.join(units)}"
        if unit.casefold().endswith(("bps", "bit/s", "bits/s")):
            fix = "bits a second divided by 8 are bytes a second"
        message = f"{text!r} has {'an unknown unit' if unit else 'no unit'}; {expected}"
        raise BadValueError(message, fix)
    return Decimal(number) * units[unit]


def _text(raw: Raw, expected: str) -> str:
    if isinstance(raw, bool) or not isinstance(raw, (str, int, float)):
        found = "a list" if isinstance(raw, tuple) else "a mapping" if isinstance(raw, dict) else str(raw).lower()
        message = f"found {found}; {expected}"
        raise BadValueError(message)
    text = str(raw)
    if text.startswith("-"):
        message = f"{text!r} is negative; {expected}"
        raise BadValueError(message, "write it without the minus sign")
    return text


def _from_iso(text: str) -> str:
    match = _ISO_DURATION.fullmatch(text)
    if not match or not any(match.groups()):
        return "write one whole number and one unit"
    days, hours, minutes = (int(part or 0) for part in match.groups())
    if minutes:
        return f"write {(days * 24 + hours) * 60 + minutes}m"
    return f"write {days * 24 + hours}h"


def _money_fix(text: str) -> str:
    match = _MONEY_ALIKE.fullmatch(text)
    if match is None:
        return ""
    before, amount, after = match.groups()
    name = (before or after).upper()
    currency = _CURRENCY_NAMES.get(name, name)
    number = amount.replace(",", "").replace("_", "")
    if re.fullmatch(r"[A-Z]{3}", currency):
        return f"write {number} {currency}"
    return f"write {number} USD if US dollars were meant" if not currency else ""


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
