"""The products that are asked, their API versions, where each answers, and how they write lists and times. Pure.

A request names no product: its version does. Endpoints are written out, never left to the SDK, whose list knows 19
regions and takes Hangzhou for any other. Lists are numbered parameters one way, and wrapped twice the other.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from costguard.providers.kit.core.fields import Fields, cut_short, named, text

HOME_REGIONS = {"alibaba": "cn-hangzhou", "alibaba-intl": "ap-southeast-1"}
"""Where account-wide questions are asked, by cloud."""

_REGION = re.compile(r"[a-z]{2,10}(?:-[a-z0-9]{1,20}){1,4}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Product:
    """One API: its version, and its host with `{region}`, or a host for each cloud where it is not regional.

    `in_body`: parameters travel in the body, as they would not fit an address. `money`: its answers hold amounts, whose
    numbers are read as `Decimal`.
    """

    version: str
    host: str = ""
    hosts: Mapping[str, str] | None = None
    in_body: bool = False
    money: bool = False


PRODUCTS: Mapping[str, Product] = {
    "sts": Product("2015-04-01", "sts.{region}.aliyuncs.com"),
    "ecs": Product("2014-05-26", "ecs.{region}.aliyuncs.com"),
    "vpc": Product("2016-04-28", "vpc.{region}.aliyuncs.com"),
    # its permissions are those of vpc
    "vpcpeer": Product("2022-01-01", hosts={"alibaba": "vpcpeer.aliyuncs.com", "alibaba-intl": "vpcpeer.aliyuncs.com"}),
    "kms": Product("2016-01-20", "kms.{region}.aliyuncs.com"),  # HTTPS only
    "cms": Product("2019-01-01", "metrics.{region}.aliyuncs.com"),
    "resourcedirectory": Product(
        "2022-04-19",
        hosts={
            "alibaba": "resourcedirectory.aliyuncs.com",
            "alibaba-intl": "resourcedirectory-intl.aliyuncs.com",
        },
    ),
    "actiontrail": Product("2020-07-06", "actiontrail.{region}.aliyuncs.com"),
    "ram": Product("2015-05-01", hosts={"alibaba": "ram.aliyuncs.com", "alibaba-intl": "ram.aliyuncs.com"}),
    # by the site an account is of, whatever its regions; each refuses the other's accounts with NotApplicable
    "bss": Product(
        "2017-12-14",
        hosts={"alibaba": "business.aliyuncs.com", "alibaba-intl": "business.ap-southeast-1.aliyuncs.com"},
        money=True,
    ),
    "dm": Product(
        "2015-11-23",
        hosts={"alibaba": "dm.aliyuncs.com", "alibaba-intl": "dm.ap-southeast-1.aliyuncs.com"},
        in_body=True,
    ),
}
"""By a short name, for most of them the one that RAM gives the product in permissions."""

SERVICES: Mapping[str, str] = {product.version: service for service, product in PRODUCTS.items()}
"""Which product a version belongs to: what leaves the process tells nothing else."""


def is_region(name: str) -> bool:
    """Whether this can be the name of a region: it becomes part of a host name."""
    return _REGION.fullmatch(name) is not None


def host_of(cloud: str, service: str, region: str) -> str:
    """The host of a product in a region.

    Raises:
        ValueError: no name of a region.
    """
    product = PRODUCTS[service]
    if product.hosts is not None:
        return product.hosts[cloud]
    if not is_region(region):
        message = f"{region!r} is no region"
        raise ValueError(message)
    return product.host.format(region=region)


# DescribeInstances tells minutes, disks and snapshots seconds; the documents give some fields both ways
_FORM = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d)(?::(\d\d)(?:\.\d{1,6})?)?Z", re.ASCII)


def time_of(fields: Mapping[str, Any], key: str) -> datetime | None:
    """A time; None where it is absent or empty."""
    found = text(fields, key)
    if not found:
        return None
    match = _FORM.fullmatch(found)
    if match is None:
        message = f"{key} is no time"
        raise ValueError(message)
    year, month, day, hour, minute = (int(match[group]) for group in range(1, 6))
    return datetime(year, month, day, hour, minute, int(match[6] or 0), tzinfo=timezone.utc)


def needed_time(fields: Mapping[str, Any], key: str) -> datetime:
    """A time that must be there.

    Raises:
        ValueError: it is not, or of another form.
    """
    found = time_of(fields, key)
    if found is None:
        message = f"{key} is missing"
        raise ValueError(message)
    return found


def flattened(parameters: Mapping[str, Any]) -> dict[str, str]:
    """Parameters as this API writes them: `InstanceId.1`, `Tag.1.Key`, `true`.

    Raises:
        TypeError: a value that has no such form. An empty list has none: left out, it would mean all.
    """
    flat: dict[str, str] = {}
    for name, value in parameters.items():
        if isinstance(value, bool):
            flat[name] = "true" if value else "false"
        elif isinstance(value, (str, int)):
            flat[name] = str(value)
        elif isinstance(value, (list, tuple)) and value:
            flat |= flattened({f"{name}.{number}": each for number, each in enumerate(value, start=1)})
        elif isinstance(value, Mapping) and value:
            flat |= flattened({f"{name}.{key}": each for key, each in value.items()})
        else:
            message = f"{name} is of type {type(value).__name__}, or empty"
            raise TypeError(message)
    return flat


def json_list(values: Sequence[Any]) -> str:
    """A list as the parameters take it that are JSON texts.

    Raises:
        ValueError: it is empty, which the cloud reads as a filter that nothing passes, or as none at all.
    """
    if not values:
        message = "a list without anything in it"
        raise ValueError(message)
    return json.dumps(list(values), separators=(",", ":"))


def items_in(answer: Mapping[str, Any], result_key: str, operation: str) -> list[Any]:
    """The list at `Outer.Inner`. Where there is nothing, the cloud may leave out either, or write an empty text.

    Raises:
        TruncatedReadError: something else is there.
    """
    found: Any = answer
    for key in result_key.split("."):
        if isinstance(found, Mapping):
            found = found.get(key, "")
        if found in ("", {}):
            return []
    if not isinstance(found, list):
        raise cut_short(operation, f"answered without {result_key}: not as documented", "MissingResult")
    return found


def structures_in(fields: Fields, result_key: str, operation: str) -> list[Fields]:
    """As `items_in`, where each item must be a structure.

    Raises:
        TypeError: one is not.
    """
    found = items_in(fields, result_key, operation)
    if not all(isinstance(each, Mapping) for each in found):
        message = f"{result_key} is no list of structures"
        raise TypeError(message)
    return found


def tags_of(fields: Fields, operation: str, key: str = "TagKey", value: str = "TagValue") -> dict[str, str]:
    """`Tags` as ECS writes them, or as VPC does (`Key`, `Value`).

    A name twice is no answer of a cloud, and one of the two may protect.
    """
    tags = structures_in(fields, "Tags.Tag", operation)
    found = {named(tag, key): text(tag, value) for tag in tags}
    if len(found) != len(tags):
        message = "a tag is there twice"
        raise ValueError(message)
    return found
