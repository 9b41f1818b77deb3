"""Tencent's products as they are asked: versions, hosts, and how each operation hands out its pages. Data only."""

from __future__ import annotations

from dataclasses import dataclass

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
