"""Every AWS operation Costguard may call, and the IAM permissions it needs; see `kit/iam/permissions.py`."""

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

SNAPSHOTTING = ("CreateSnapshot", "CreateSnapshots")  # as `ec2:CreateAction` names them: tags are set in no other call

TABLE = (
    *reads(
        Feature.NETWORK,
        "ec2: DescribeVpcs DescribeSubnets DescribeRouteTables DescribeSecurityGroups DescribeSecurityGroupRules",
        "ec2: DescribeNetworkAcls DescribeNetworkInterfaces DescribeAddresses DescribeNatGateways DescribeFlowLogs",
        "ec2: DescribeVpcPeeringConnections GetManagedPrefixListEntries",
        "ec2: DescribeInstances",  # whether their metadata answers without a token
        "pricing: GetProducts",  # what addresses and NAT gateways cost
    ),
    *reads(
        Feature.KEYS,
        "kms: ListKeys ListAliases DescribeKey GetKeyRotationStatus ListKeyRotations ListResourceTags",
        "ec2: DescribeVolumes",  # which disks a key is used by
    ),
    Operation("sts:GetCallerIdentity", Feature.IDENTITY, ()),
    # issued by the SDK's own credential providers when a profile or a web identity says so; they change nothing
    Operation("sts:AssumeRoleWithWebIdentity", Feature.IDENTITY, ()),
    Operation("sso:GetRoleCredentials", Feature.IDENTITY, ()),
    Operation("sso-oidc:CreateToken", Feature.IDENTITY, ()),
    Operation("signin:CreateOAuth2Token", Feature.IDENTITY, ()),
    *reads(Feature.MEMBERS, "sts: AssumeRole"),
    *reads(Feature.ORGANISATION, "organizations: ListAccounts"),
    *reads(
        Feature.INVENTORY,
        "ec2: DescribeRegions DescribeInstances DescribeInstanceTypes DescribeSpotInstanceRequests",
        "ec2: DescribeReservedInstances DescribeVolumes DescribeSnapshots DescribeAddresses",
        "ec2: DescribeInstanceAttribute",
    ),
    *reads(Feature.METRICS, "cloudwatch: ListMetrics GetMetricData"),
    *reads(Feature.TRAIL, "cloudtrail: LookupEvents"),
    *reads(Feature.PRICES, "pricing: GetProducts", "ec2: DescribeSpotPriceHistory"),
    *reads(Feature.BILLING, "ce: GetCostAndUsage ListCostAllocationTags", "organizations: DescribeOrganization"),
    Operation("budgets:DescribeBudgets", Feature.BILLING, ("budgets:ViewBudget",)),
    Operation("budgets:DescribeBudgetNotificationsForAccount", Feature.BILLING, ("budgets:ViewBudget",)),
    *changes(Feature.STOP, "ec2: StopInstances"),
    *changes(Feature.START, "ec2: StartInstances"),
    *changes(Feature.TERMINATE, "ec2: TerminateInstances"),
    *(
        Operation(f"ec2:{name}", Feature.SNAPSHOT, (f"ec2:{name}", "ec2:CreateTags"), changes_something=True)
        for name in SNAPSHOTTING
    ),
    # a mail as it is written counts as raw
    Operation("sesv2:SendEmail", Feature.MAIL, ("ses:SendEmail", "ses:SendRawEmail"), changes_something=True),
    *changes(Feature.KEEP_TAG, "ec2: CreateTags"),
    *reads(Feature.FREEZE, "organizations: ListPoliciesForTarget", "iam: ListAttachedGroupPolicies"),
    *changes(Feature.FREEZE, "organizations: AttachPolicy DetachPolicy", "iam: AttachGroupPolicy DetachGroupPolicy"),
    *changes(Feature.ROTATE, "kms: EnableKeyRotation RotateKeyOnDemand"),
    *reads(Feature.SUCCEED, "kms: GetKeyPolicy Encrypt Decrypt Sign Verify"),
    Operation("kms:CreateKey", Feature.SUCCEED, ("kms:CreateKey", "kms:TagResource"), changes_something=True),
    *changes(Feature.SUCCEED, "kms: UpdateAlias"),
    *changes(
        Feature.FIX_NETWORK,
        "ec2: ReleaseAddress DisassociateAddress AssociateAddress RevokeSecurityGroupIngress",
        "ec2: AuthorizeSecurityGroupIngress ModifyInstanceMetadataOptions",
    ),
    # passing a role only where records go to a log group, delivering only where they do not
    Operation(
        "ec2:CreateFlowLogs",
        Feature.FIX_NETWORK,
        ("ec2:CreateFlowLogs", "logs:CreateLogDelivery", "iam:PassRole"),
        changes_something=True,
    ),
    Operation(
        "ec2:DeleteFlowLogs",
        Feature.FIX_NETWORK,
        ("ec2:DeleteFlowLogs", "logs:DeleteLogDelivery"),
        changes_something=True,
    ),
    *reads(Feature.SECRETS, "secretsmanager: GetSecretValue"),
)

REACH = reaches(*TABLE, by_sdk={Feature.IDENTITY, Feature.MEMBERS})  # credentials of a profile may be a role's
OPERATIONS = REACH[Purpose.GUARD]
KNOWN_OPERATIONS = known(REACH)
permission_for = partial(permissions_of, KNOWN_OPERATIONS)
