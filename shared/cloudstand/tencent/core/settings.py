"""How one emulator is set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType

PUBLISHED_RATES: Mapping[str, tuple[float, float]] = MappingProxyType(
    {
        # burst and calls a second, per action, account and region: the figures of each action's page
        **dict.fromkeys(
            ("DescribeInstances", "DescribeInstanceTypeConfigs", "DescribeZoneInstanceConfigInfos"), (40, 40)
        ),
        **dict.fromkeys(("StopInstances", "StartInstances", "TerminateInstances", "RebootInstances"), (10, 10)),
        **dict.fromkeys(("ModifyInstancesAttribute", "InquiryPriceRunInstances"), (10, 10)),
        **dict.fromkeys(("DescribeInstancesStatus", "InquiryPriceTerminateInstances"), (10, 10)),
        **dict.fromkeys(("DescribeRegions", "DescribeZones", "DescribeOrganizationMembers"), (20, 20)),
        **dict.fromkeys(("DescribeOrganization", "GetCallerIdentity", "DescribeBaseMetrics"), (20, 20)),
        **dict.fromkeys(
            ("CreateSnapshot", "DeleteSnapshots", "DescribeSnapshots", "InquiryPriceCreateDisks"), (20, 20)
        ),
        **dict.fromkeys(("TagResources", "UnTagResources", "ModifyResourceTags", "GetResources"), (20, 20)),
        **dict.fromkeys(("DescribeAutoScalingInstances", "DescribeClusters", "DescribeClusterInstances"), (20, 20)),
        **dict.fromkeys(
            (
                *("DescribeBillSummary", "DescribeBillSummaryForOrganization", "DescribeBillSummaryByProduct"),
                *("DescribeBillSummaryByRegion", "DescribeBillSummaryByTag", "DescribeCostExplorerSummary"),
                "DescribeBudget",
            ),
            (20, 20),
        ),
        **dict.fromkeys(("ListPoliciesForTarget", "AttachPolicy", "DetachPolicy"), (20, 20)),
        **dict.fromkeys(("ListAttachedGroupPolicies", "AttachGroupPolicy", "DetachGroupPolicy"), (20, 20)),
        **dict.fromkeys(("DescribeBillDetail", "DescribeBillDetailForOrganization"), (5, 5)),
        **dict.fromkeys(("DescribeAddresses", "DescribeEvents"), (20, 20)),
        "InquiryPriceAllocateAddresses": (2, 2),
        **dict.fromkeys(
            (
                *("DescribeVpcs", "DescribeSubnets", "DescribeRouteTables", "DescribeSecurityGroups"),
                *("DescribeSecurityGroupPolicies", "CreateSecurityGroupPolicies", "ReplaceSecurityGroupPolicy"),
                *("DeleteSecurityGroupPolicies", "DescribeNatGateways"),
            ),
            (100, 100),
        ),
        **dict.fromkeys(
            (
                *("DescribeSecurityGroupAssociationStatistics", "DescribeNetworkAcls", "DescribeNetworkInterfaces"),
                *("DescribeNetworkAclQuintupleEntries", "DescribeFlowLogs", "DescribeVpcPeeringConnections"),
                *("DescribeAddressTemplates", "DescribeAddressTemplateGroups", "DescribeServiceTemplates"),
                *("DescribeServiceTemplateGroups", "CreateFlowLog", "DeleteFlowLog"),
                "DescribeNatGatewayDestinationIpPortTranslationNatRules",
            ),
            (20, 20),
        ),
        **dict.fromkeys(("ReleaseAddresses", "AssociateAddress", "DisassociateAddress"), (10, 10)),
        "DescribeDisks": (100, 100),
        **dict.fromkeys(
            (
                *("GetRegions", "GetServiceStatus", "ListKeyDetail", "EnableKeyRotation"),
                "DescribeResourceTagsByResourceIds",
            ),
            (100, 100),
        ),
        "RotateKey": (20, 20),
        **dict.fromkeys(("ListPoliciesForTarget", "AttachPolicy", "DetachPolicy"), (20, 20)),
        **dict.fromkeys(("ListAttachedGroupPolicies", "AttachGroupPolicy", "DetachGroupPolicy"), (20, 20)),
        "GetMonitorData": (20, 20),  # its page names 20 and 50: the stricter
        "AssumeRole": (600, 600),
        "GetSecretValue": (300, 300),
    }
)


class CardSeries(str, Enum):
    """What the monitor tells of single cards: a listing declares their dimensions, no answer for one was published."""

    DECLARED = "declared"
    """A series each, by the dimensions that DescribeBaseMetrics declares: `unInstanceId` and `minorNumber`."""
    DOCUMENTED = "documented"
    """Declared so, and answered by the page's name of the machine: `InstanceId` and `minorNumber`."""
    EMPTY = "empty"
    """Declared, and without points."""
    REFUSED = "refused"
    """Declared, and refused."""
    OVERLOOKED = "overlooked"
    """Declared; the number of the card is overlooked, and the mean over all cards stands under each."""
    UNDECLARED = "undeclared"
    """Every metric has `InstanceId` alone, as the page has it."""


@dataclass(frozen=True, slots=True)
class Settings:
    """`monitor_instances` and `monitor_points` bound one GetMonitorData (pages differ: 10 and 1,440, or 50 and 7,200).

    `monitor_cards`: what it tells of single cards.

    `refuses_stop_charging`: instance types whose stop without charges is refused instead of being ignored.
    `regions` None means all that the cloud is known to have, and those of the fleet.
    """

    cloud: str
    role: str
    monitor_instances: int
    monitor_points: int
    refuses_stop_charging: frozenset[str]
    regions: Sequence[str] | None
    monitor_cards: CardSeries

    @property
    def abroad(self) -> bool:
        """Whether it is the international site, whose schemas differ in places."""
        return self.cloud == "tencent-intl"
