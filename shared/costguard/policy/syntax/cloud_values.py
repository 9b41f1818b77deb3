"""Reads account ids, regions, roles and resource ids of policy documents. Pure."""

from __future__ import annotations

import re

from costguard.domain.errors import InvalidInputError
from costguard.domain.refs import ResourceRef
from costguard.policy.syntax.problems import BadValueError

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
