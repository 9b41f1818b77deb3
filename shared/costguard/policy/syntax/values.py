"""Reads single values of policy documents, ids and regions of clouds included. Pure.

What stood in the YAML goes in, a domain value or BadValueError comes out.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from enum import Enum
from typing import TypeVar

from costguard.domain.errors import InvalidInputError
from costguard.domain.hosts import refused_host
from costguard.domain.money import Money
from costguard.domain.refs import ResourceRef
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


def at_least(least: int, what: str) -> Callable[[object], int]:
    """A whole number from `least` up."""

    def check(raw: object) -> int:
        value = count(raw)
        if value < least:
            message = f"{value} is too few; expected at least {least} {what}"
            raise BadValueError(message, f"write {least} or more, or leave it out")
        return value

    return check


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


def discount(raw: object) -> Decimal:
    """What is off a price: more than 0 %, at most all of it."""
    if isinstance(raw, str) and raw.strip().startswith("-"):
        message = f"{raw!r} is less than nothing; expected what is off the list price"
        raise BadValueError(message, "write a discount such as 30%, or leave the entry out")
    share = units.parse_share(raw)
    if share == 0:
        message = f"{raw} takes nothing off"
        raise BadValueError(message, "leave the entry out: list prices are shown anyway")
    return share


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


_REGION = re.compile(r"[a-z]{2,}(?:-[a-z0-9]+)+")
_ACCOUNT_DIGITS = {"aws": (12,), "alibaba": (16,), "tencent": tuple(range(6, 16))}
_ACCOUNT_PATTERN = re.compile(r"[0-9*?]+")
_REGION_PREFIXES = {"aws-cn": ("cn-",), "aws-us-gov": ("us-gov-",)}


def account_pattern(text: str) -> str:
    """Digits, with `*` and `?` where any will do."""
    lengths = {length for each in _ACCOUNT_DIGITS.values() for length in each}
    if _ACCOUNT_PATTERN.fullmatch(text) is None or (text.isdigit() and len(text) not in lengths):
        message = f"{text!r} matches no account id"
        raise BadValueError(message, "ids are digits: 12 on aws, 16 on alibaba")
    return text


def account_ids(texts: tuple[str, ...]) -> tuple[str, ...]:
    """Whole ids, no patterns: they are compared as they are."""
    for index, text in enumerate(texts):
        if not text.isdigit():
            message = f"{text!r} is a pattern; expected whole account ids"
            raise BadValueError(message, "list every account", at=(index,))
    return texts


def regions(raw: object) -> tuple[str, ...] | None:
    """None for all; never for nothing."""
    expected = "expected `all` or a list such as [us-east-1, eu-west-1]"
    if raw == "all":
        return None
    if not isinstance(raw, tuple):
        fix = f"write [{raw}]" if isinstance(raw, str) and _REGION.fullmatch(raw) else "write regions: all"
        message = f"{raw!r} is not a list of regions; {expected}"
        raise BadValueError(message, fix)
    if not raw:
        message = f"an empty list reads no region; {expected}"
        raise BadValueError(message, "write regions: all")
    seen: set[str] = set()
    for index, region in enumerate(raw):
        if not isinstance(region, str) or _REGION.fullmatch(region) is None:
            fix = "write regions: all" if region == "all" else ""  # a list or mapping has no hash
            message = f"{region!r} is not a region; {expected}"
            raise BadValueError(message, fix, at=(index,))
        if region in seen:
            message = f"{region} is there twice"
            raise BadValueError(message, "keep one of them", at=(index,))
        seen.add(region)
    return tuple(raw)


def resource_id(text: str) -> str:
    """A full resource id of ours, or the native id alone."""
    if ":" in text:
        try:
            ResourceRef.parse(text)
        except InvalidInputError as err:
            raise BadValueError(str(err)) from err
    elif not re.fullmatch(r"[A-Za-z0-9_-]{3,128}", text):
        message = f"{text!r} is not the id of a resource"
        raise BadValueError(message, "write the cloud's own id, such as i-0123456789abcdef0")
    return text


def check_account_id(cloud: str, text: str) -> str:
    """An id of as many digits as the cloud's ids have."""
    lengths = _ACCOUNT_DIGITS[cloud.split("-", 1)[0]]
    if not (text.isascii() and text.isdigit() and len(text) in lengths):
        expected = str(lengths[0]) if len(lengths) == 1 else f"{lengths[0]} to {lengths[-1]}"
        found = f"{text!r} has {len(text)}" if text.isdigit() else f"{text!r} is not digits"
        fix = "an AWS id keeps its leading zeros" if cloud.startswith("aws") else "copy it from the cloud's console"
        message = f"an account id on {cloud} has {expected} digits; {found}"
        raise BadValueError(message, fix)
    return text


def check_region(cloud: str, region: str, at: tuple[str | int, ...] = ()) -> None:
    """A region of the partition the account is in; ids of partitions never mix."""
    owner = next((name for name, prefixes in _REGION_PREFIXES.items() if region.startswith(prefixes)), "aws")
    if cloud.startswith("aws") and owner != cloud:
        message = f"{region} is not a region of {cloud}"
        raise BadValueError(message, f"it belongs to {owner}", at=at)


def check_role(cloud: str, role: str) -> str:
    """An ARN of the account's own partition, or a bare name."""
    if cloud.startswith("aws") and role.startswith("arn:") and not role.startswith(f"arn:{cloud}:iam::"):
        message = f"{role} is not a role of {cloud}"
        raise BadValueError(message, f"its ARN begins with arn:{cloud}:iam::")
    return role
