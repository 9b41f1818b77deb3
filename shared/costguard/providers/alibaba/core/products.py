"""The products that are asked, their API versions, and where each answers. Pure.

A request names no product: its version does. Endpoints are written out, never left to the SDK, whose list knows 19
regions and takes Hangzhou for any other.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

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
