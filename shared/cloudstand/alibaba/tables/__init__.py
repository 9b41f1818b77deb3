"""The vendor's published parameters, one module a product."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from cloudstand.alibaba.core.parameters import Table
from cloudstand.alibaba.tables.actiontrail import ACTIONTRAIL
from cloudstand.alibaba.tables.bss import BSS
from cloudstand.alibaba.tables.cms import CMS
from cloudstand.alibaba.tables.dm import DM
from cloudstand.alibaba.tables.ecs import ECS
from cloudstand.alibaba.tables.ecs_changes import ECS_CHANGES
from cloudstand.alibaba.tables.kms import KMS
from cloudstand.alibaba.tables.networks import ECS_NETWORKS, VPC_NETWORKS, VPC_PEER
from cloudstand.alibaba.tables.ram import RAM
from cloudstand.alibaba.tables.resource_directory import RESOURCE_DIRECTORY
from cloudstand.alibaba.tables.sts import STS
from cloudstand.alibaba.tables.vpc import VPC

PRODUCTS: Mapping[str, str] = MappingProxyType(
    {
        "2014-05-26": "ecs",
        "2016-04-28": "vpc",
        "2019-01-01": "cms",
        "2015-04-01": "sts",
        "2017-12-14": "bss",
        "2022-04-19": "resourcedirectory",
        "2015-11-23": "dm",
        "2015-05-01": "ram",
        "2016-01-20": "kms",
        "2022-01-01": "vpcpeer",
        "2020-07-06": "actiontrail",
    }
)
"""A request names no product: its Version does. The names are those of RAM permissions."""


def _all(product: str, published: Mapping[str, str]) -> dict[tuple[str, str], Table]:
    owners = product in ("ecs", "vpc")
    return {(product, action): Table(text, owners=owners) for action, text in published.items()}


TABLES: Mapping[tuple[str, str], Table] = MappingProxyType(
    {
        **_all("ecs", ECS),
        **_all("ecs", ECS_CHANGES),
        **_all("vpc", VPC),
        **_all("vpc", VPC_NETWORKS),
        **_all("vpcpeer", VPC_PEER),
        **_all("ecs", ECS_NETWORKS),
        **_all("cms", CMS),
        **_all("sts", STS),
        **_all("bss", BSS),
        **_all("dm", DM),
        **_all("ram", RAM),
        **_all("kms", KMS),
        **_all("actiontrail", ACTIONTRAIL),
        **_all("resourcedirectory", RESOURCE_DIRECTORY),
    }
)
"""The parameters of every action that the emulator has, by product and action."""
