"""Reads single values of policy documents: what stood in the YAML in, a domain value or BadValueError out. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from enum import Enum
from typing import TypeVar

from costguard.domain.hosts import refused_host
from costguard.domain.money import Money
from costguard.guards.rules.idle import MIN_COVERAGE
from costguard.policy.syntax import units
from costguard.policy.syntax.problems import BadValueError, did_you_mean

T = TypeVar("T")
E = TypeVar("E", bound=Enum)
ALL = "leave the key out to match all"
A_SERVER = "write for example https://prometheus.internal:9090"
_PERCENT = Decimal(100)
_SLACK_USER = re.compile(r"[UW][A-Z0-9]{6,20}", re.ASCII)  # W: in an Enterprise Grid
_LONGEST_MATCHERS = 1000  # the split below looks ahead from every comma
_MATCHERS = re.compile(r'\s*[A-Za-z_][A-Za-z0-9_]*\s*(?:=|!=|=~|!~)\s*"(?:[^"\\]|\\.)*"\s*')


def choice(words: dict[str, T], what: str) -> Callable[[object], T]:
    """One of a few words."""

    def read(raw: object) -> T:
        if isinstance(raw, str) and raw in words:
            return words[raw]
        found = f"{raw!r}" if isinstance(raw, str) else str(raw).lower() if isinstance(raw, bool) else str(raw)
        fix = did_you_mean(str(raw), words) if isinstance(raw, (str, int, float)) else ""
        message = f"{found} is not {what}; expected {', '.join(words)}"
        raise BadValueError(message, fix)

    return read


def choice_of(kind: type[E], what: str) -> Callable[[object], E]:
    """One of the values of an enumeration."""
    return choice({str(member.value): member for member in kind}, what)


def matching(pattern: re.Pattern[str], expected: str, fix: str = "") -> Callable[[str], str]:
    """A text of one form."""

    def check(text: str) -> str:
        if pattern.fullmatch(text) is None:
            message = f"{text!r} is not {expected}"
            raise BadValueError(message, fix)
        return text

    return check


def nonempty(advice: str) -> Callable[[tuple[T, ...]], tuple[T, ...]]:
    """A list with something in it."""

    def check(values: tuple[T, ...]) -> tuple[T, ...]:
        if not values:
            raise BadValueError("an empty list matches nothing", advice)
        return values

    return check


def some(advice: str) -> Callable[[tuple[T, ...]], tuple[T, ...]]:
    """A list with something in it and nothing twice."""

    def check(values: tuple[T, ...]) -> tuple[T, ...]:
        seen: set[T] = set()
        for index, value in enumerate(nonempty(advice)(values)):
            if value in seen:
                message = f"{value} is there twice"
                raise BadValueError(message, "keep one of them", at=(index,))
            seen.add(value)
        return values

    return check


def version(raw: object) -> int:
    """Only 1, as a number."""
    if raw != 1 or isinstance(raw, bool) or not isinstance(raw, int):
        message = f"version {raw!r} is not known; this Costguard reads version 1"
        raise BadValueError(message, "write version: 1")
    return raw


def bound(read: Callable[[object], Decimal]) -> Callable[[object], float]:
    """A bound that something can stay below."""

    def check(raw: object) -> float:
        value = read(raw)
        if value == 0:
            raise BadValueError("nothing is ever below 0, so this matches nothing", "write a small bound such as 5%")
        return float(value)

    return check


def coverage(raw: object) -> float:
    """A share that may only be raised above 95 %."""
    share = units.parse_share(raw)
    if share < Decimal(str(MIN_COVERAGE)):
        floor = f"{Decimal(str(MIN_COVERAGE)) * _PERCENT:f}".rstrip("0").rstrip(".")
        message = f"{raw} of the samples is too little to act on; it may only be raised above {floor}%"
        raise BadValueError(
            message,
            f"write {floor}% or more, or leave it out",
        )
    return float(share)


def count(raw: object) -> int:
    """A whole number; 0 allows nothing."""
    expected = "expected a whole number from 0 up; 0 allows nothing"
    if isinstance(raw, bool) or not isinstance(raw, int):
        fix = f"write {raw} without quotes" if isinstance(raw, str) and raw.isdigit() else ""
        message = f"{raw!r} is not a count; {expected}"
        raise BadValueError(message, fix)
    if raw < 0:
        message = f"{raw} is negative; {expected}"
        raise BadValueError(message, "write 0 to allow nothing")
    return raw


def one_per_currency(amounts: tuple[Money, ...]) -> tuple[Money, ...]:
    """Caps, one for each currency."""
    if not amounts:
        raise BadValueError("an empty list caps every currency at nothing", "write [0 USD], or leave the key out")
    for index, money in enumerate(amounts):
        if money.currency in {earlier.currency for earlier in amounts[:index]}:
            message = f"two caps in {money.currency}"
            raise BadValueError(message, "keep one amount per currency", at=(index,))
    return amounts


def slack_user(text: str) -> str:
    """The id of one person in Slack: names can be taken by anybody."""
    if _SLACK_USER.fullmatch(text) is not None:
        return text
    found = (
        "the id of a group or channel" if re.fullmatch(r"[SCG][A-Z0-9]{6,20}", text, re.ASCII) else "no id of a person"
    )
    message = f"{text!r} is {found} in Slack"
    raise BadValueError(message, "open the person's profile in Slack and copy the member ID: U and capitals and digits")


def server(address: str) -> str:
    """The address of a server that may be asked: what it stands for is judged again when it is."""
    authority = re.split(r"[/?#]", address.partition("://")[2])[0]
    host = re.sub(r":[0-9]*$", "", authority)
    refused = refused_host(host)
    if refused:
        message = f"{host!r} is {refused}, which nothing is asked of"
        raise BadValueError(message, A_SERVER)
    return address


def price(raw: object) -> Money:
    """An amount above 0."""
    money = units.parse_money(raw)
    if money.amount == 0:
        raise BadValueError("a price of 0 would hide the cost", "write the price an hour")
    return money


def tag_patterns(tags: dict[str, str]) -> dict[str, str]:
    """Tags that must all be there, with a pattern for each value."""
    if not tags:
        raise BadValueError("an empty mapping matches nothing", "leave the key out to match all")
    return tags


def matchers(text: str) -> str:
    """PromQL label matchers, to narrow every query."""
    if len(text) > _LONGEST_MATCHERS or not all(
        _MATCHERS.fullmatch(part) for part in re.split(r',(?=(?:[^"]*"[^"]*")*[^"]*$)', text)
    ):
        message = f"{text!r} is not a list of PromQL label matchers"
        raise BadValueError(message, 'write for example \'job="dcgm",cluster="a"\'')
    return text
