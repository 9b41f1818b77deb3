"""Tencent's products as they are asked: versions, hosts, pages, and fields as they send them: nulls, times and tags."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

from costguard.providers.kit.core.fields import Fields, parts, text

VERSIONS = {
    "as": "2018-04-19",
    "billing": "2018-07-09",
    "cam": "2019-01-16",
    "cbs": "2017-03-12",
    "cloudaudit": "2019-03-19",
    "cvm": "2017-03-12",
    "kms": "2019-01-18",
    "monitor": "2018-07-24",
    "organization": "2021-03-31",
    "region": "2022-06-27",
    "ssm": "2019-09-23",
    "sts": "2018-08-13",
    "tag": "2018-08-13",
    "tke": "2018-05-25",
    "vpc": "2017-03-12",
}

GLOBAL = frozenset({"billing", "cam", "organization", "region", "tag"})
"""Products that are asked without a region."""

ROOT_DOMAINS = {"tencent": "tencentcloudapi.com", "tencent-intl": "intl.tencentcloudapi.com"}
"""Where the products of each site are reached; the China site and the international one share no account."""

HOME_REGIONS = {"tencent": "ap-guangzhou", "tencent-intl": "ap-singapore"}
"""Where account-wide questions are asked, by cloud."""

CURRENCIES = {"tencent": "CNY", "tencent-intl": "USD"}

REGIONS = frozenset(
    {
        *("ap-bangkok", "ap-beijing", "ap-chengdu", "ap-chongqing", "ap-guangzhou", "ap-hongkong", "ap-jakarta"),
        *("ap-nanjing", "ap-seoul", "ap-shanghai", "ap-singapore", "ap-tokyo", "eu-frankfurt", "na-ashburn"),
        *("na-siliconvalley", "sa-saopaulo"),
    }
)
"""Regions that every account can use (CVM guide, "Regions and AZs"): where only these are named, none is asked for."""


@dataclass(frozen=True, slots=True)
class Paging:
    """By `Offset` and `Limit`: `most` items a page, in all as many as `total` says. `as_text`: numbers in quotes.

    `may_be_null`: its page says that the list may be null, which is believed where `total` is 0.
    """

    most: int
    total: str = "TotalCount"
    as_text: bool = False
    may_be_null: bool = False

    def asked(self, offset: int) -> dict[str, int | str]:
        """The parameters of the page that begins at `offset`, which is always a multiple of the limit."""
        if self.as_text:
            return {"Offset": str(offset), "Limit": str(self.most)}
        return {"Offset": offset, "Limit": self.most}


PAGES = {
    "as:DescribeAutoScalingInstances": Paging(100),
    "cbs:DescribeDisks": Paging(100),
    "cbs:DescribeSnapshots": Paging(100),
    "cvm:DescribeInstances": Paging(100),
    "kms:ListKeyDetail": Paging(200, may_be_null=True),
    "organization:DescribeOrganizationMembers": Paging(50, total="Total"),
    "tag:DescribeResourceTagsByResourceIds": Paging(100),
    "tke:DescribeClusters": Paging(100),
    "tke:DescribeClusterInstances": Paging(100),
    "vpc:DescribeAddresses": Paging(100),
    "vpc:DescribeAddressTemplateGroups": Paging(100, as_text=True),
    "vpc:DescribeAddressTemplates": Paging(100, as_text=True),
    "vpc:DescribeFlowLogs": Paging(100, total="TotalNum"),
    "vpc:DescribeNatGatewayDestinationIpPortTranslationNatRules": Paging(100),
    "vpc:DescribeNatGateways": Paging(100),
    "vpc:DescribeNetworkAclQuintupleEntries": Paging(100),
    "vpc:DescribeNetworkAcls": Paging(100),
    "vpc:DescribeNetworkInterfaces": Paging(100),
    "vpc:DescribeRouteTables": Paging(100, as_text=True),
    "vpc:DescribeSecurityGroups": Paging(100, as_text=True),
    "vpc:DescribeServiceTemplateGroups": Paging(100, as_text=True),
    "vpc:DescribeServiceTemplates": Paging(100, as_text=True),
    "vpc:DescribeSubnets": Paging(100, as_text=True),
    "vpc:DescribeVpcPeeringConnections": Paging(100),
    "vpc:DescribeVpcs": Paging(100, as_text=True),
}
"""What is not here gives one answer without pages."""


# Times as Tencent's products write them: what has an offset or a `Z` means it, what has none is UTC+8, anywhere.

_BEIJING = timezone(timedelta(hours=8))
_WRITTEN = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d):(\d\d)(?:\.\d{1,9})?(Z|[+-]\d\d:\d\d)?",
    re.ASCII,
)


def parse_moment(written: str) -> datetime:
    """`2022-09-06T03:07:37Z`, `2022-09-06T11:07:37+08:00` and `2022-09-06 11:07:37` are one moment; given in UTC.

    Raises:
        ValueError: no time in any of these forms.
    """
    found = _WRITTEN.fullmatch(written)
    if found is None:
        message = "a time in no documented form"
        raise ValueError(message)
    zone = found[7]
    offset = _BEIJING
    if zone is not None:
        sign = -1 if zone.startswith("-") else 1
        hours, minutes = (0, 0) if zone == "Z" else (int(zone[1:3]), int(zone[4:6]))
        offset = timezone(sign * timedelta(hours=hours, minutes=minutes))
    year, month, day, hour, minute, second = (int(found[place]) for place in range(1, 7))
    return datetime(year, month, day, hour, minute, second, tzinfo=offset).astimezone(timezone.utc)


def moment(fields: Fields, key: str) -> datetime | None:
    """A time; None where absent, empty or null, which is how CVM and CBS say that there is none."""
    if fields.get(key) is None:
        return None
    written = text(fields, key)
    return parse_moment(written) if written else None


def written_local(moment: datetime) -> str:
    """`2022-09-06 11:07:37`, as bills are asked: in UTC+8, without saying so."""
    return moment.astimezone(_BEIJING).strftime("%Y-%m-%d %H:%M:%S")


def told(fields: Mapping[str, Any], *nullable: str) -> Fields:
    """`fields` without those of `nullable` that are null: where a page says "may return null", null means absent."""
    return {key: value for key, value in fields.items() if value is not None or key not in nullable}


def tags_of(fields: Fields, key: str) -> dict[str, str]:
    """The tags under `key`, in every spelling: `Key`, `tagKey` (beside it, on real machines) and `TagKey`.

    The list must be there, if empty: a tag that was left out could be the one that protects.

    Raises:
        ValueError, TypeError: no list of tags, a tag without a name, or a name with two values.
    """
    if key not in fields:
        message = f"{key} is missing"
        raise ValueError(message)
    found: dict[str, str] = {}
    for tag in parts(fields, key):
        names = {text(tag, name) for name in ("Key", "tagKey", "TagKey") if name in tag}
        values = {text(told(tag, name), name) for name in ("Value", "tagValue", "TagValue") if name in tag}
        if len(names) != 1 or "" in names or len(values) > 1:
            message = "a tag without one name and one value"
            raise ValueError(message)
        name = names.pop()
        if name in found:
            message = "a tag is there twice"
            raise ValueError(message)
        found[name] = values.pop() if values else ""
    return found
