"""Every Tencent Cloud operation Costguard may call, and the CAM permissions it needs; see `kit/iam/permissions.py`."""

from __future__ import annotations

from functools import partial

from costguard.providers.kit.iam.permissions import (
    Feature,
    Operation,
    Purpose,
    changes,
    known,
    names,
    permissions_of,
    reaches,
    reads,
)

TABLE = (
    Operation("sts:GetCallerIdentity", Feature.IDENTITY, ()),
    *reads(Feature.MEMBERS, "sts: AssumeRole"),
    *reads(Feature.ORGANISATION, "organization: DescribeOrganizationMembers"),
    *reads(
        Feature.INVENTORY,
        "region: DescribeRegions",
        "cvm: DescribeInstances DescribeZoneInstanceConfigInfos DescribeInstanceTypeConfigs",
        "as: DescribeAutoScalingInstances",
        "tke: DescribeClusters DescribeClusterInstances",
        "cbs: DescribeDisks DescribeSnapshots",
        "vpc: DescribeAddresses",
    ),
    *reads(Feature.METRICS, "monitor: DescribeBaseMetrics GetMonitorData"),
    *reads(Feature.PRICES, "cbs: InquiryPriceCreateDisks"),
    *reads(Feature.TRAIL, "cloudaudit: DescribeEvents"),
    *reads(Feature.KEYS, "kms: GetRegions GetServiceStatus ListKeyDetail", "tag: DescribeResourceTagsByResourceIds"),
    # vpc:DescribeAddresses is above: kept addresses are a part of the inventory
    *reads(
        Feature.NETWORK,
        "vpc: DescribeVpcs DescribeSubnets DescribeRouteTables DescribeSecurityGroups",
        "vpc: DescribeSecurityGroupAssociationStatistics DescribeSecurityGroupPolicies",
        "vpc: DescribeAddressTemplates DescribeAddressTemplateGroups",
        "vpc: DescribeServiceTemplates DescribeServiceTemplateGroups",
        "vpc: DescribeNetworkAcls DescribeNetworkAclQuintupleEntries DescribeNetworkInterfaces",
        "vpc: DescribeNatGateways DescribeNatGatewayDestinationIpPortTranslationNatRules",
        "vpc: DescribeFlowLogs DescribeVpcPeeringConnections InquiryPriceAllocateAddresses",
    ),
    # the bill's actions stand under `finance` in CAM ("Granting Billing-related CAM Access")
    *(
        Operation(name, Feature.BILLING, (name.replace("billing:", "finance:"),))
        for name in names(
            "billing: DescribeBillDetail DescribeBillDetailForOrganization DescribeBillSummaryByProduct",
            "billing: DescribeBillSummaryByRegion DescribeBillSummaryByTag DescribeBillSummaryForOrganization",
            "billing: DescribeCostExplorerSummary DescribeBudget",
        )
    ),
    *changes(Feature.STOP, "cvm: StopInstances"),
    *changes(Feature.START, "cvm: StartInstances"),
    *changes(Feature.TERMINATE, "cvm: TerminateInstances"),
    *changes(Feature.SNAPSHOT, "cbs: CreateSnapshot"),
    *changes(Feature.KEEP_TAG, "tag: TagResources"),
    *reads(Feature.FREEZE, "organization: ListPoliciesForTarget", "cam: ListAttachedGroupPolicies"),
    *changes(Feature.FREEZE, "organization: AttachPolicy DetachPolicy", "cam: AttachGroupPolicy DetachGroupPolicy"),
    *changes(Feature.ROTATE, "kms: EnableKeyRotation RotateKey"),
    *changes(
        Feature.FIX_NETWORK,
        "vpc: ReleaseAddresses DisassociateAddress AssociateAddress CreateSecurityGroupPolicies",
        "vpc: ReplaceSecurityGroupPolicy DeleteSecurityGroupPolicies CreateFlowLog DeleteFlowLog",
    ),
    *reads(Feature.SECRETS, "ssm: GetSecretValue"),
)

REACH = reaches(*TABLE, also={Purpose.ROTATE: ("cbs:DescribeDisks",), Purpose.MEND: ("vpc:DescribeAddresses",)})
OPERATIONS = REACH[Purpose.GUARD]
KNOWN_OPERATIONS = known(REACH)
permission_for = partial(permissions_of, KNOWN_OPERATIONS)
