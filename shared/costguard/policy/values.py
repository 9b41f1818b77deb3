"""Reads single values of policy documents: what stood in the YAML in, a domain value or BadValueError out. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import TypeVar

from costguard.domain.errors import InvalidInputError
from costguard.domain.money import Money
from costguard.domain.refs import CLOUDS, ResourceRef
from costguard.domain.resources import Billing
from costguard.guards.idle_gpu_rules import MIN_COVERAGE
from costguard.guards.rules import Consent, Mode
from costguard.policy import units
from costguard.policy.moments import parse_date, parse_moment
from costguard.policy.problems import BadValueError, did_you_mean

T = TypeVar("T")
E = TypeVar("E", bound=Enum)

SHORTEST_WINDOW = timedelta(hours=1)  # signals are kept as hourly maxima
LONGEST_WINDOW = timedelta(days=60)  # CloudWatch keeps points of five minutes for 63 days
_PERCENT = Decimal(100)
_MATCHERS = re.compile(r'\s*[A-Za-z_][A-Za-z0-9_]*\s*(?:=|!=|=~|!~)\s*"(?:[^"\\]|\\.)*"\s*')
_REGION = re.compile(r"[a-z]{2,}(?:-[a-z0-9]+)+")
_HOURS = re.compile(r"([0-9]{2}):([0-9]{2})-([0-9]{2}):([0-9]{2})")
_ACCOUNT_DIGITS = {"aws": (12,), "alibaba": (16,), "tencent": tuple(range(6, 16))}
_ACCOUNT_PATTERN = re.compile(r"[0-9*?]+")
_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_MIDNIGHT_HOUR = 24


def choice(words: dict[str, T], what: str) -> Callable[[object], T]:
    """One of a few words."""

    def read(raw: object) -> T:
        if isinstance(raw, str) and raw in words:
            return words[raw]
        found = f"{raw!r}" if isinstance(raw, str) else str(raw).lower() if isinstance(raw, bool) else str(raw)
        fix = did_you_mean(str(raw), words) if isinstance(raw, (str, int, float)) else ""
        raise BadValueError(f"{found} is not {what}; expected {', '.join(words)}", fix)

    return read


def choice_of(kind: type[E], what: str) -> Callable[[object], E]:
    return choice({str(member.value): member for member in kind}, what)


def matching(pattern: re.Pattern[str], expected: str, fix: str = "") -> Callable[[str], str]:
    def check(text: str) -> str:
        if pattern.fullmatch(text) is None:
            raise BadValueError(f"{text!r} is not {expected}", fix)
        return text

    return check


def some(advice: str) -> Callable[[tuple[T, ...]], tuple[T, ...]]:
    """A list with something in it and nothing twice."""

    def check(values: tuple[T, ...]) -> tuple[T, ...]:
        if not values:
            raise BadValueError("an empty list matches nothing", advice)
        for index, value in enumerate(values):
            if value in values[:index]:
                raise BadValueError(f"{value} is there twice", "keep one of them", at=(index,))
        return values

    return check


def version(raw: object) -> int:
    if raw != 1 or isinstance(raw, bool) or not isinstance(raw, int):
        raise BadValueError(f"version {raw} is not known; this Costguard reads version 1", "write version: 1")
    return raw


def window(raw: object) -> timedelta:
    length = units.parse_duration(raw)
    if length < SHORTEST_WINDOW:
        raise BadValueError(f"{raw} is too short to call anything idle; at least 1h", "write 24h if unsure")
    if length > LONGEST_WINDOW:
        raise BadValueError(f"{raw} is longer than signals are kept; at most 60d", "write 14d or less")
    return length


def bound(read: Callable[[object], Decimal]) -> Callable[[object], float]:
    """A bound that something can stay below."""

    def check(raw: object) -> float:
        value = read(raw)
        if value == 0:
            raise BadValueError("nothing is ever below 0, so this matches nothing", "write a small bound such as 5%")
        return float(value)

    return check


def coverage(raw: object) -> float:
    share = units.parse_share(raw)
    if share < Decimal(str(MIN_COVERAGE)):
        floor = f"{Decimal(str(MIN_COVERAGE)) * _PERCENT:f}".rstrip("0").rstrip(".")
        raise BadValueError(f"{raw} of the samples is too little to act on; it may only be raised above {floor}%", f"write {floor}% or more, or leave it out")
    return float(share)


def count(raw: object) -> int:
    expected = "expected a whole number from 0 up; 0 allows nothing"
    if isinstance(raw, bool) or not isinstance(raw, int):
        fix = f"write {raw} without quotes" if isinstance(raw, str) and raw.isdigit() else ""
        raise BadValueError(f"{raw!r} is not a count; {expected}", fix)
    if raw < 0:
        raise BadValueError(f"{raw} is negative; {expected}", "write 0 to allow nothing")
    return raw


def one_per_currency(amounts: tuple[Money, ...]) -> tuple[Money, ...]:
    if not amounts:
        raise BadValueError("an empty list caps every currency at nothing", "write [0 USD], or leave the key out")
    for index, money in enumerate(amounts):
        if money.currency in {earlier.currency for earlier in amounts[:index]}:
            raise BadValueError(f"two caps in {money.currency}", "keep one amount per currency", at=(index,))
    return amounts


def price(raw: object) -> Money:
    money = units.parse_money(raw)
    if money.amount == 0:
        raise BadValueError("a price of 0 would hide the cost", "write the price an hour")
    return money


def account_ids(texts: tuple[str, ...]) -> tuple[str, ...]:
    """Whole ids, no patterns: they are compared as they are."""
    for index, text in enumerate(texts):
        if not text.isdigit():
            raise BadValueError(f"{text!r} is a pattern; expected whole account ids", "list every account", at=(index,))
    return texts


def account_pattern(text: str) -> str:
    lengths = {length for each in _ACCOUNT_DIGITS.values() for length in each}
    if _ACCOUNT_PATTERN.fullmatch(text) is None or (text.isdigit() and len(text) not in lengths):
        raise BadValueError(f"{text!r} matches no account id", "ids are digits: 12 on aws, 16 on alibaba")
    return text


def tag_patterns(tags: dict[str, str]) -> dict[str, str]:
    if not tags:
        raise BadValueError("an empty mapping matches nothing", "leave the key out to match all")
    return tags


def moment(raw: object) -> datetime:
    expected = "expected a time with its offset, such as 2026-12-01T18:00:00+08:00"
    text = raw if isinstance(raw, str) else str(raw)
    if parse_date(text) is not None:
        raise BadValueError(f"{text} is a date without time and offset; {expected}", f"write {text}T23:59:59Z or an offset of your own")
    found = parse_moment(text)
    if found is None:
        raise BadValueError(f"{text!r} is not a time; {expected}")
    if found.utcoffset() is None:
        raise BadValueError(f"{text} says no offset, so it is another moment in each zone; {expected}", f"write {text}Z or {text}+08:00")
    return found


def day(raw: object) -> date:
    found = parse_date(raw) if isinstance(raw, str) else None
    if found is None:
        raise BadValueError(f"{raw!r} is not a date; expected year-month-day such as 2026-10-01")
    return found


def hours(raw: object) -> tuple[time, time]:
    expected = 'expected opening and closing time such as "10:00-18:00"'
    match = _HOURS.fullmatch(raw) if isinstance(raw, str) else None
    if match is None:
        raise BadValueError(f"{raw!r} is not a span of hours; {expected}")
    start_hour, start_minute, end_hour, end_minute = (int(part) for part in match.groups())
    try:
        opens = time(start_hour, start_minute)
        closes = time(0) if (end_hour, end_minute) == (_MIDNIGHT_HOUR, 0) else time(end_hour, end_minute)
    except ValueError as err:
        raise BadValueError(f"{raw} names a time no clock shows; {expected}") from err
    if end_hour != _MIDNIGHT_HOUR and opens >= closes:
        raise BadValueError(f"{raw} closes before it opens; {expected}", "the end of a day is 24:00; hours over midnight are not supported")
    return opens, closes


def weekdays(raw: object) -> frozenset[int]:
    """`mon-fri`, `mon, wed` or a list of day names."""
    expected = "expected days such as mon-fri or [mon, tue, thu]"
    parts = raw if isinstance(raw, tuple) else tuple(str(raw).split(","))
    days: set[int] = set()
    for part in parts:
        first, dash, last = str(part).strip().casefold().partition("-")
        span = [name.strip() for name in ((first, last) if dash else (first,))]
        for name in span:
            if name not in _DAYS:
                raise BadValueError(f"{name!r} is not a day; {expected}", did_you_mean(name, _DAYS))
        begin, end = _DAYS.index(span[0]), _DAYS.index(span[-1])
        days.update((begin + step) % 7 for step in range((end - begin) % 7 + 1))
    if not days:
        raise BadValueError(f"no day is worked; {expected}", "leave the calendar out to count every hour")
    return frozenset(days)


def holidays(raw: object) -> str | tuple[date, ...]:
    if raw == "cn":
        return "cn"
    if isinstance(raw, tuple):
        return tuple(day(each) for each in raw)
    raise BadValueError(f"{raw!r} is no calendar of holidays; only cn has a name", "write cn, or the dates: [2026-12-25, 2027-01-01]")


def matchers(text: str) -> str:
    if not all(_MATCHERS.fullmatch(part) for part in re.split(r',(?=(?:[^"]*"[^"]*")*[^"]*$)', text)):
        raise BadValueError(f"{text!r} is not a list of PromQL label matchers", "write for example 'job=\"dcgm\",cluster=\"a\"'")
    return text


def resource_id(text: str) -> str:
    if ":" in text:
        try:
            ResourceRef.parse(text)
        except InvalidInputError as err:
            raise BadValueError(str(err)) from err
    elif not re.fullmatch(r"[A-Za-z0-9_-]{3,128}", text):
        raise BadValueError(f"{text!r} is not the id of a resource", "write the cloud's own id, such as i-0123456789abcdef0")
    return text


def regions(raw: object) -> tuple[str, ...] | None:
    """None for all; never for nothing."""
    expected = "expected `all` or a list such as [us-east-1, eu-west-1]"
    if raw == "all":
        return None
    if not isinstance(raw, tuple):
        fix = f"write [{raw}]" if isinstance(raw, str) and _REGION.fullmatch(raw) else "write regions: all"
        raise BadValueError(f"{raw!r} is not a list of regions; {expected}", fix)
    if not raw:
        raise BadValueError(f"an empty list reads no region; {expected}", "write regions: all")
    for index, region in enumerate(raw):
        if not isinstance(region, str) or _REGION.fullmatch(region) is None:
            fix = "write regions: all" if region in {"all", "*"} else ""
            raise BadValueError(f"{region!r} is not a region; {expected}", fix, at=(index,))
        if region in raw[:index]:
            raise BadValueError(f"{region} is there twice", "keep one of them", at=(index,))
    return tuple(raw)


def check_account_id(cloud: str, text: str) -> str:
    """An id of as many digits as the cloud's ids have."""
    lengths = _ACCOUNT_DIGITS[cloud.split("-", 1)[0]]
    if not (text.isascii() and text.isdigit() and len(text) in lengths):
        expected = str(lengths[0]) if len(lengths) == 1 else f"{lengths[0]} to {lengths[-1]}"
        found = f"{text!r} has {len(text)}" if text.isdigit() else f"{text!r} is not digits"
        fix = "an AWS id keeps its leading zeros" if cloud.startswith("aws") else "copy it from the cloud's console"
        raise BadValueError(f"an account id on {cloud} has {expected} digits; {found}", fix)
    return text
