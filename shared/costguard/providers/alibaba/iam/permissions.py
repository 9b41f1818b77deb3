"""Every Alibaba Cloud operation Costguard may call, and the RAM permissions it needs; see `kit/iam/permissions.py`."""

from __future__ import annotations

from functools import partial

from costguard.providers.kit.iam.permissions import (
    Feature,
    Operation,
    Purpose,
    changes,
    known,
    permissions_of,
    reaches,
    reads,
)

TABLE = (
    *reads(
        Feature.NETWORK,
        "vpc: DescribeVpcs DescribeVSwitches DescribeRouteTableList DescribeRouteEntryList DescribeNetworkAcls",
        "vpc: DescribeNetworkAclAttributes DescribeEipAddresses DescribeNatGateways DescribeForwardTableEntries",
        "vpc: DescribeFlowLogs ListIpv4Gateways DescribeIpv6Addresses",
        "ecs: DescribeSecurityGroups DescribeSecurityGroupAttribute DescribeSecurityGroupReferences",
        "ecs: DescribeNetworkInterfaces DescribePrefixListAttributes DescribePortRangeListEntries",
        "ecs: DescribeInstances",  # which plain public address is whose, and whether metadata answers without a token
    ),
    Operation("vpcpeer:ListVpcPeerConnections", Feature.NETWORK, ("vpc:ListVpcPeerConnections",)),
    # what addresses and gateways cost; named as bills are, and on the page of DescribePricingModule in a third way
    Operation("bss:GetPayAsYouGoPrice", Feature.NETWORK, ("bss:DescribePrice", "bssapi:GetPayAsYouGoPrice")),
    Operation(
        "bss:DescribePricingModule",
        Feature.NETWORK,
        ("bss:DescribeProduct", "bss:DescribePricingModule", "bssapi:DescribePricingModule"),
    ),
    *reads(
        Feature.KEYS,
        "kms: ListKeys ListAliases DescribeKey ListTagResources DescribeAccountKmsStatus",
        "ecs: DescribeDisks",  # which disks a key is used by
    ),
    Operation("kms:DescribeRegions", Feature.KEYS, ()),  # asks for no permission, by its documents
    Operation("sts:GetCallerIdentity", Feature.IDENTITY, ()),
    *reads(Feature.MEMBERS, "sts: AssumeRole"),
    # the documents of the two products that list members name the permission differently
    Operation(
        "resourcedirectory:ListAccounts",
        Feature.ORGANISATION,
        ("resourcemanager:ListAccounts", "resourcedirectory:ListAccounts"),
    ),
    *reads(
        Feature.INVENTORY,
        "ecs: DescribeRegions DescribeInstances DescribeInstanceTypes DescribeDisks DescribeSnapshots",
        "vpc: DescribeEipAddresses",
    ),
    # CloudMonitor's documents name both; which one decides is not told
    Operation("cms:DescribeMetricList", Feature.METRICS, ("cms:DescribeMetricList", "cms:QueryMetricList")),
    *reads(Feature.PRICES, "ecs: DescribePrice"),
    *reads(Feature.TRAIL, "actiontrail: LookupEvents"),
    # either `bssapi:` with the operation's name, or a name of the console's, `bss:` (BSS documents, "API calling
    # authorization"); the operations' own pages name one of them, not all the same one: all are granted
    Operation("bss:DescribeInstanceBill", Feature.BILLING, ("bssapi:DescribeInstanceBill", "bss:DescribeBillList")),
    Operation("bss:QueryBillOverview", Feature.BILLING, ("bss:DescribeBillList", "bssapi:QueryBillOverview")),
    Operation(
        "bss:DescribeCostBudgetsSummary",
        Feature.BILLING,
        ("bss:DescribeCostBudgetsSummary", "bssapi:DescribeCostBudgetsSummary"),
    ),
    *changes(Feature.STOP, "ecs: StopInstances"),
    *changes(Feature.START, "ecs: StartInstances"),
    *changes(Feature.TERMINATE, "ecs: DeleteInstances"),
    # tags set while creating are authorised by the creating call, except where a policy demands ecs:TagResources
    Operation(
        "ecs:CreateSnapshot", Feature.SNAPSHOT, ("ecs:CreateSnapshot", "ecs:TagResources"), changes_something=True
    ),
    *changes(Feature.MAIL, "dm: SingleSendMail"),
    *changes(Feature.KEEP_TAG, "ecs: TagResources"),
    *(
        # as with the list of members, the documents of two products name the permission differently
        Operation(
            f"resourcedirectory:{name}",
            Feature.FREEZE,
            (f"resourcemanager:{name}", f"resourcedirectory:{name}"),
            changes_something=not name.startswith("List"),
        )
        for name in ("ListControlPolicyAttachmentsForTarget", "AttachControlPolicy", "DetachControlPolicy")
    ),
    *reads(Feature.FREEZE, "ram: ListPoliciesForGroup"),
    *changes(Feature.FREEZE, "ram: AttachPolicyToGroup DetachPolicyFromGroup"),
    *changes(Feature.ROTATE, "kms: UpdateRotationPolicy CreateKeyVersion"),
    *reads(Feature.SUCCEED, "kms: GetKeyPolicy Encrypt Decrypt"),
    Operation("kms:CreateKey", Feature.SUCCEED, ("kms:CreateKey", "kms:TagResource"), changes_something=True),
    *changes(Feature.SUCCEED, "kms: UpdateAlias"),
    *changes(
        Feature.FIX_NETWORK,
        "vpc: ReleaseEipAddress UnassociateEipAddress AssociateEipAddress CreateFlowLog DeleteFlowLog",
        "ecs: RevokeSecurityGroup AuthorizeSecurityGroup ModifyInstanceMetadataOptions",
    ),
    *reads(Feature.SECRETS, "kms: GetSecretValue"),
)

REACH = reaches(*TABLE)
OPERATIONS = REACH[Purpose.GUARD]
KNOWN_OPERATIONS = known(REACH)
permission_for = partial(permissions_of, KNOWN_OPERATIONS)
