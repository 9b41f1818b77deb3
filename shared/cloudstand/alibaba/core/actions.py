"""Every action of the emulator: what answers it, which permission it takes, and how a denial looks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType

from cloudstand.alibaba.billing import requests as billing
from cloudstand.alibaba.compute import changes, disks, instances, monitoring, snapshots, tagging, trail, types
from cloudstand.alibaba.core import mailing, regions, secrets
from cloudstand.alibaba.core.site import Handler
from cloudstand.alibaba.iam import identity, policies
from cloudstand.alibaba.kms import changes as key_changes
from cloudstand.alibaba.kms import keys as kms
from cloudstand.alibaba.kms import successors as key_successors
from cloudstand.alibaba.network import (
    address_changes,
    addresses,
    cards,
    flow_logs,
    gateways,
    group_changes,
    groups,
    routes,
    vpcs,
)
from cloudstand.alibaba.network import prices as network_prices
from cloudstand.world.records import Operation


class Denial(str, Enum):
    """What who lacks the permission is answered."""

    FORBIDDEN = "forbidden"  # HTTP 403 Forbidden.RAM
    EMPTY = "empty"  # HTTP 200 and an empty list, unless it is a dry run
    NO_PERMISSION = "no permission"  # HTTP 403 NoPermission, the code of STS and Resource Directory
    ACCESS_FORBIDDEN = "access forbidden"  # HTTP 403 AccessForbidden, CloudMonitor's own
    NO_KEY_PERMISSION = "no key permission"  # HTTP 403 Forbidden.NoPermission, KMS's own
    NOT_AUTHORIZED = "not authorized"  # HTTP 200 and NotAuthorized in the body, as bills refuse


@dataclass(frozen=True, slots=True)
class Action:
    """One action. `permissions` are alternatives: any of them will do; none is needed where there are none.

    `operation` is what the world itself may deny, `part` the part of its networks. `per_account`: its rate is shared by
    all regions. `dry_run`: with DryRun=true only the permission is checked here, and DryRunOperation is the answer;
    other actions look further.
    """

    handler: Handler
    permissions: tuple[str, ...] = ()
    operation: Operation | None = None
    denial: Denial = Denial.FORBIDDEN
    when_denied: Handler | None = None
    per_account: bool = False
    dry_run: bool = False
    part: str = ""


PUBLISHED_RATES: Mapping[str, tuple[float, float]] = MappingProxyType(
    {
        "AssumeRole": (100, 100),
        "DescribeMetricList": (50, 50),
        "DescribeMetricLast": (50, 50),
        "DescribeInstanceBill": (10, 10),
        "QueryBillOverview": (10, 10),
        "QueryAccountBill": (10, 10),
        "ListKeys": (50, 50),
        "DescribeKey": (50, 50),
        "ListAliases": (50, 50),
        "ListResourceTags": (300, 300),
        "UpdateRotationPolicy": (30, 30),
        "CreateKeyVersion": (30, 30),
        "LookupEvents": (2, 2),
    }
)
"""Burst and calls a second by account, of keys by region too, where the vendor says them.

Those of ECS stand in the Quota Center only.
"""


def _list(handler: Handler, permission: str, operation: Operation | None, empty: Handler | None = None) -> Action:
    denial = Denial.EMPTY if empty else Denial.FORBIDDEN
    return Action(handler, (permission,), operation, denial, when_denied=empty, dry_run=True)


def _cms() -> dict[tuple[str, str], Action]:
    """CloudMonitor counts calls by account, whatever the region, and has a code of its own for a denial."""
    reading = {
        "DescribeMetricList": (monitoring.describe_metric_list, ("cms:QueryMetricList",)),  # documents name both
        "DescribeMetricLast": (monitoring.describe_metric_last, ("cms:QueryMetricLast",)),
        "DescribeMetricMetaList": (monitoring.describe_metric_meta_list, ("cms:QueryMetricMeta",)),
        "DescribeMonitoringAgentStatuses": (monitoring.describe_monitoring_agent_statuses, ()),
    }
    return {
        ("cms", name): Action(
            handler,
            (f"cms:{name}", *more),
            Operation.SIGNALS if name in ("DescribeMetricList", "DescribeMetricLast") else None,
            Denial.ACCESS_FORBIDDEN,
            per_account=True,
        )
        for name, (handler, more) in reading.items()
    }


def _bss() -> dict[tuple[str, str], Action]:
    """Bills, by either of two names: `bssapi:` and the action's own, or the console's ("API calling authorization")."""
    reading = {
        "DescribeInstanceBill": (billing.describe_instance_bill, ("bssapi:DescribeInstanceBill",)),
        "QueryBillOverview": (billing.query_bill_overview, ("bss:DescribeBillList", "bssapi:QueryBillOverview")),
        "QueryAccountBill": (billing.query_account_bill, ("bss:DescribeBillList", "bssapi:QueryAccountBill")),
        "DescribeCostBudgetsSummary": (
            billing.describe_cost_budgets_summary,
            ("bss:DescribeCostBudgetsSummary", "bssapi:DescribeCostBudgetsSummary"),
        ),
    }
    return {
        ("bss", name): Action(handler, permissions, Operation.BILL, Denial.NOT_AUTHORIZED, per_account=True)
        for name, (handler, permissions) in reading.items()
    }


def _policies() -> dict[tuple[str, str], Action]:
    """What attaches and detaches policies; both products deny in the words of the other."""
    handlers: dict[tuple[str, str], Handler] = {
        (
            "resourcedirectory",
            "ListControlPolicyAttachmentsForTarget",
        ): policies.list_control_policy_attachments_for_target,
        ("resourcedirectory", "AttachControlPolicy"): policies.attach_control_policy,
        ("resourcedirectory", "DetachControlPolicy"): policies.detach_control_policy,
        ("ram", "ListPoliciesForGroup"): policies.list_policies_for_group,
        ("ram", "AttachPolicyToGroup"): policies.attach_policy_to_group,
        ("ram", "DetachPolicyFromGroup"): policies.detach_policy_from_group,
    }
    return {
        (product, name): Action(
            handler,
            (f"{product}:{name}", *((f"resourcemanager:{name}",) if product == "resourcedirectory" else ())),
            denial=Denial.NO_PERMISSION,
            per_account=True,
        )
        for (product, name), handler in handlers.items()
    }


def _kms() -> dict[tuple[str, str], Action]:
    """Keys, which are counted and denied by region; where KMS is offered anybody may ask."""
    reading: dict[str, Handler] = {
        "ListKeys": kms.list_keys,
        "ListAliases": kms.list_aliases,
        "DescribeKey": kms.describe_key,
        "ListResourceTags": kms.list_resource_tags,
        "ListTagResources": kms.list_tag_resources,
        "DescribeAccountKmsStatus": kms.describe_account_kms_status,
    }
    changing: dict[str, Handler] = {
        "UpdateRotationPolicy": key_changes.update_rotation_policy,
        "CreateKeyVersion": key_changes.create_key_version,
    }
    succeeding: dict[str, Handler] = {
        "GetKeyPolicy": key_successors.get_key_policy,
        "CreateKey": key_successors.create_key,
        "UpdateAlias": key_successors.update_alias,
        "Encrypt": key_successors.encrypt,
        "Decrypt": key_successors.decrypt,
    }
    by_operation = ((Operation.KEYS, reading), (Operation.ROTATE, changing), (Operation.SUCCEED, succeeding))
    found = {("kms", "DescribeRegions"): Action(kms.describe_regions)}
    kept, permissions = secrets.get_secret_value, ("kms:GetSecretValue",)
    found["kms", "GetSecretValue"] = Action(kept, permissions, Operation.SECRETS, Denial.NO_KEY_PERMISSION)
    for operation, handlers in by_operation:
        for name, handler in handlers.items():
            found["kms", name] = Action(handler, (f"kms:{name}",), operation, Denial.NO_KEY_PERMISSION)
    return found


def _networks() -> dict[tuple[str, str], Action]:
    """Networks: each part of them may be denied alone. VPC and ECS refuse who may not ask."""
    reading: dict[str, dict[tuple[str, str], Handler]] = {
        "vpcs": {
            ("vpc", "DescribeVpcs"): vpcs.describe_vpcs,
            ("vpc", "ListIpv4Gateways"): vpcs.list_ipv4_gateways,
        },
        "subnets": {("vpc", "DescribeVSwitches"): vpcs.describe_vswitches},
        "routes": {
            ("vpc", "DescribeRouteTableList"): routes.describe_route_table_list,
            ("vpc", "DescribeRouteEntryList"): routes.describe_route_entry_list,
        },
        "groups": {
            ("ecs", "DescribeSecurityGroups"): groups.describe_security_groups,
            ("ecs", "DescribeSecurityGroupAttribute"): groups.describe_security_group_attribute,
            ("ecs", "DescribeSecurityGroupReferences"): groups.describe_security_group_references,
            ("ecs", "DescribePrefixListAttributes"): groups.describe_prefix_list_attributes,
            ("ecs", "DescribePortRangeListEntries"): groups.describe_port_range_list_entries,
        },
        "access_lists": {
            ("vpc", "DescribeNetworkAcls"): routes.describe_network_acls,
            ("vpc", "DescribeNetworkAclAttributes"): routes.describe_network_acl_attributes,
        },
        "interfaces": {
            ("ecs", "DescribeNetworkInterfaces"): cards.describe_network_interfaces,
            ("vpc", "DescribeIpv6Addresses"): gateways.describe_ipv6_addresses,
        },
        "addresses": {("vpc", "DescribeEipAddresses"): addresses.describe_eip_addresses},
        "nat_gateways": {
            ("vpc", "DescribeNatGateways"): gateways.describe_nat_gateways,
            ("vpc", "DescribeForwardTableEntries"): gateways.describe_forward_table_entries,
        },
        "flow_logs": {("vpc", "DescribeFlowLogs"): flow_logs.describe_flow_logs},
        "peerings": {("vpcpeer", "ListVpcPeerConnections"): vpcs.list_vpc_peer_connections},
    }
    changing: dict[tuple[str, str], Handler] = {
        ("vpc", "ReleaseEipAddress"): address_changes.release_eip_address,
        ("vpc", "UnassociateEipAddress"): address_changes.unassociate_eip_address,
        ("vpc", "AssociateEipAddress"): address_changes.associate_eip_address,
        ("vpc", "CreateFlowLog"): flow_logs.create_flow_log,
        ("vpc", "DeleteFlowLog"): flow_logs.delete_flow_log,
        ("ecs", "AuthorizeSecurityGroup"): group_changes.authorize_security_group,
        ("ecs", "RevokeSecurityGroup"): group_changes.revoke_security_group,
        ("ecs", "ModifyInstanceMetadataOptions"): flow_logs.modify_instance_metadata_options,
    }
    prices: dict[str, tuple[Handler, tuple[str, ...]]] = {
        "GetPayAsYouGoPrice": (network_prices.get_pay_as_you_go_price, ("bss:DescribePrice",)),
        "DescribePricingModule": (
            network_prices.describe_pricing_module,
            ("bss:DescribeProduct", "bss:DescribePricingModule"),
        ),
    }
    quoted = {
        ("bss", name): Action(
            handler, (*more, f"bssapi:{name}"), Operation.NETWORK, Denial.NOT_AUTHORIZED, per_account=True
        )
        for name, (handler, more) in prices.items()
    }
    found = quoted | {
        named: Action(handler, _permission(*named), Operation.NETWORK, dry_run=named[1] in _DRY_RUNS, part=part)
        for part, handlers in reading.items()
        for named, handler in handlers.items()
    }
    return found | {
        named: Action(handler, _permission(*named), Operation.FIX_NETWORK) for named, handler in changing.items()
    }


_DRY_RUNS = frozenset(
    {
        "DescribeVpcs",
        "DescribeVSwitches",
        "DescribeNatGateways",
        "DescribeEipAddresses",
        "DescribeSecurityGroups",
    }
)


def _permission(product: str, name: str) -> tuple[str]:
    return (f"{product.removesuffix('peer')}:{name}",)


ACTIONS: Mapping[tuple[str, str], Action] = MappingProxyType(
    {
        ("sts", "GetCallerIdentity"): Action(identity.get_caller_identity, per_account=True),
        ("sts", "AssumeRole"): Action(
            identity.assume_role, ("sts:AssumeRole",), denial=Denial.NO_PERMISSION, per_account=True
        ),
        ("resourcedirectory", "ListAccounts"): Action(
            identity.list_accounts,
            ("resourcedirectory:ListAccounts", "resourcemanager:ListAccounts"),  # pages differ
            denial=Denial.NO_PERMISSION,
            per_account=True,
        ),
        **_cms(),
        **_bss(),
        **_policies(),
        **_kms(),
        ("actiontrail", "LookupEvents"): Action(
            trail.lookup_events,
            ("actiontrail:LookupEvents",),
            Operation.TRAIL,
            Denial.NO_PERMISSION,
            per_account=True,
        ),
        ("dm", "SingleSendMail"): Action(mailing.single_send_mail, ("dm:SingleSendMail",), per_account=True),
        **_networks(),
        ("ecs", "DescribeRegions"): Action(regions.describe_regions, ("ecs:DescribeRegions",)),
        ("ecs", "DescribeInstanceTypes"): Action(types.describe_instance_types, ("ecs:DescribeInstanceTypes",)),
        ("ecs", "DescribePrice"): Action(types.describe_price, ("ecs:DescribePrice",)),
        ("ecs", "DescribeDisks"): _list(disks.describe_disks, "ecs:DescribeDisks", Operation.DISKS, disks.no_disks),
        ("ecs", "DescribeSnapshots"): _list(snapshots.describe_snapshots, "ecs:DescribeSnapshots", None),
        ("ecs", "CreateSnapshot"): Action(snapshots.create_snapshot, ("ecs:CreateSnapshot",), Operation.SNAPSHOT),
        ("ecs", "TagResources"): Action(tagging.tag_resources, ("ecs:TagResources",)),
        ("ecs", "UntagResources"): Action(tagging.untag_resources, ("ecs:UntagResources",)),
        ("ecs", "ModifyInstanceAttribute"): Action(tagging.modify_instance_attribute, ("ecs:ModifyInstanceAttribute",)),
        ("ecs", "DescribeInstances"): _list(
            instances.describe_instances, "ecs:DescribeInstances", Operation.LIST, instances.no_instances
        ),
        ("ecs", "DescribeInstanceStatus"): Action(
            instances.describe_instance_status, ("ecs:DescribeInstanceStatus",), Operation.LIST
        ),
        ("ecs", "DescribeInstanceAttribute"): Action(
            instances.describe_instance_attribute, ("ecs:DescribeInstanceAttribute",), Operation.LIST
        ),
        ("ecs", "StopInstances"): Action(changes.stop_instances, ("ecs:StopInstances",), Operation.STOP),
        ("ecs", "StopInstance"): Action(changes.stop_instance, ("ecs:StopInstance",), Operation.STOP),
        ("ecs", "StartInstances"): Action(changes.start_instances, ("ecs:StartInstances",), Operation.START),
        ("ecs", "StartInstance"): Action(changes.start_instance, ("ecs:StartInstance",), Operation.START),
        ("ecs", "DeleteInstances"): Action(changes.delete_instances, ("ecs:DeleteInstances",), Operation.TERMINATE),
        ("ecs", "DeleteInstance"): Action(changes.delete_instance, ("ecs:DeleteInstance",), Operation.TERMINATE),
    }
)
"""By product and action, as RAM names them."""
