"""Permissions that no walk needs, each with the reason why the documents have it all the same, and where it is sent."""

from __future__ import annotations

from collections.abc import Mapping

_LAST_WAY = "the demo's machines on AWS have one way in each, which stays; sent in test_network_remediator.py"
_LISTS = "no rule of the demo names a list; judged in test_aws_network.py"
_ALIBABA_LISTS = "nothing of the demo names a list, another group or IPv6; sent in test_alibaba_network.py"
_TEMPLATES = "no rule of the demo names a template; sent in test_tencent_network.py"
_TYPES = "asked where the list of zones leaves out a type, and none of the demo is; sent in test_inventory_tencent.py"
_LONG = "asked of months with very many records; judged in test_tencent_billing.py"
_BANDWIDTH = "no address of the demo pays for bandwidth; sent in test_tencent_network_prices.py"
_NO_GATEWAY = "the demo has no NAT gateway there; sent in test_tencent_network.py"
_DEPUTY = "asked by a member whose organisation pays, where it is guarded alone; sent in test_billing_tencent.py"

_SCANS: dict[str, dict[str, str]] = {
    "aws/scan-network_audit": {"ec2:GetManagedPrefixListEntries": _LISTS},
    "alibaba/scan-network_audit": {
        "ecs:DescribePortRangeListEntries": _ALIBABA_LISTS,
        "ecs:DescribePrefixListAttributes": _ALIBABA_LISTS,
        "ecs:DescribeSecurityGroupReferences": _ALIBABA_LISTS,
        "vpc:DescribeIpv6Addresses": _ALIBABA_LISTS,
        "vpc:DescribeNetworkAclAttributes": _ALIBABA_LISTS,
    },
    "tencent/scan-idle_gpu": {"cvm:DescribeInstanceTypeConfigs": _TYPES},
    "tencent/scan-budget": {
        "cvm:DescribeInstanceTypeConfigs": _TYPES,
        "finance:DescribeBillDetailForOrganization": _DEPUTY,
        "finance:DescribeBillSummaryForOrganization": _DEPUTY,
        "finance:DescribeCostExplorerSummary": _LONG,
    },
    "tencent/scan-network_audit": {
        "cvm:DescribeInstanceTypeConfigs": _TYPES,
        "vpc:DescribeAddressTemplateGroups": _TEMPLATES,
        "vpc:DescribeAddressTemplates": _TEMPLATES,
        "vpc:DescribeNatGatewayDestinationIpPortTranslationNatRules": _NO_GATEWAY,
        "vpc:DescribeNetworkAclQuintupleEntries": "the demo has no list of five parts; sent in test_tencent_network.py",
        "vpc:DescribeServiceTemplateGroups": _TEMPLATES,
        "vpc:DescribeServiceTemplates": _TEMPLATES,
        "vpc:InquiryPriceAllocateAddresses": _BANDWIDTH,
    },
}
_ACTS: dict[str, dict[str, str]] = {
    "aws/fix_network": {"ec2:AssociateAddress": _LAST_WAY, "ec2:DisassociateAddress": _LAST_WAY},
}


def _of_members(documents: Mapping[str, Mapping[str, str]], member: str) -> dict[str, dict[str, str]]:
    """A member's role has what any function has: what none of them needs, it does not need either."""
    found: dict[str, dict[str, str]] = {}
    for name, excused in documents.items():
        found.setdefault(f"{name.partition('/')[0]}/{member}", {}).update(excused)
    return found


EXCUSED: Mapping[str, Mapping[str, str]] = {
    **_SCANS,
    **_ACTS,
    **_of_members(_SCANS, "member-scan"),
    **_of_members(_ACTS, "member-act"),
}
