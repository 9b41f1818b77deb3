"""Every action there is: by product, version and name, with its parameters, its answer, and what it needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from cloudstand.tencent.billing import cost_explorer, pricing
from cloudstand.tencent.billing import requests as billing
from cloudstand.tencent.compute import changes as acting
from cloudstand.tencent.compute import disks, keepers, trail
from cloudstand.tencent.compute import instances as cvm
from cloudstand.tencent.compute import monitoring as monitor
from cloudstand.tencent.compute import tagging as tags
from cloudstand.tencent.core import secrets
from cloudstand.tencent.core.asking import Answer, Asked
from cloudstand.tencent.core.parameters import Table
from cloudstand.tencent.iam import identity, policies
from cloudstand.tencent.kms import keys as kms
from cloudstand.tencent.network import address_changes, addresses, flow_logs, group_changes, groups
from cloudstand.tencent.network import cards as network_cards
from cloudstand.tencent.network import vpcs as networks
from cloudstand.tencent.tables import billing as b
from cloudstand.tencent.tables import cvm as c
from cloudstand.tencent.tables import identity as i
from cloudstand.tencent.tables import keepers as k
from cloudstand.tencent.tables import keys as e
from cloudstand.tencent.tables import monitor as m
from cloudstand.tencent.tables import network as n
from cloudstand.tencent.tables import policies as p
from cloudstand.tencent.tables import storage as s
from cloudstand.tencent.tables import trail as t
from cloudstand.world.records import Operation

Handler = Callable[[Asked], Answer]


@dataclass(frozen=True, slots=True)
class Action:
    """One action. `regional`: it is asked of a region. `operation`: what the world's own denials call it.

    `part`: the part of networks that it tells, which can be denied alone.
    """

    parameters: Table
    answer: Handler
    operation: Operation | None = None
    regional: bool = True
    part: str = ""


@dataclass(frozen=True, slots=True)
class Product:
    """One version of a product, with its own words for a denial and for too many calls; `cam` is its name in CAM."""

    version: str
    actions: Mapping[str, Action]
    denied: str = "UnauthorizedOperation"
    throttled: str = "RequestLimitExceeded"
    cam: str = ""


def _global(parameters: Table, answer: Handler, operation: Operation | None = None) -> Action:
    return Action(parameters, answer, operation, regional=False)


_STS = {
    "AssumeRole": _global(i.ASSUME_ROLE, identity.assume_role),
    "GetCallerIdentity": _global(i.GET_CALLER_IDENTITY, identity.get_caller_identity),
}
_ORGANIZATION = {
    "DescribeOrganization": _global(i.DESCRIBE_ORGANIZATION, identity.describe_organization),
    "DescribeOrganizationMembers": _global(i.DESCRIBE_ORGANIZATION_MEMBERS, identity.describe_organization_members),
    "ListPoliciesForTarget": _global(p.LIST_POLICIES_FOR_TARGET, policies.list_policies_for_target),
    "AttachPolicy": _global(p.ATTACH_POLICY, policies.attach_policy),
    "DetachPolicy": _global(p.DETACH_POLICY, policies.detach_policy),
}
_CAM = {
    "ListAttachedGroupPolicies": _global(p.LIST_ATTACHED_GROUP_POLICIES, policies.list_attached_group_policies),
    "AttachGroupPolicy": _global(p.ATTACH_GROUP_POLICY, policies.attach_group_policy),
    "DetachGroupPolicy": _global(p.DETACH_GROUP_POLICY, policies.detach_group_policy),
}
_REGION = {
    "DescribeRegions": _global(i.DESCRIBE_REGIONS, identity.describe_regions),
    "DescribeZones": Action(i.DESCRIBE_ZONES, identity.describe_zones),
}
_CVM = {
    "DescribeRegions": _global(c.NOTHING, identity.describe_cvm_regions),
    "DescribeZones": Action(c.NOTHING, identity.describe_zones),
    "DescribeInstances": Action(c.DESCRIBE_INSTANCES, cvm.describe_instances, Operation.LIST),
    "DescribeInstancesStatus": Action(c.DESCRIBE_INSTANCES_STATUS, cvm.describe_instances_status, Operation.LIST),
    "DescribeInstanceTypeConfigs": Action(c.DESCRIBE_INSTANCE_TYPE_CONFIGS, pricing.describe_instance_type_configs),
    "DescribeZoneInstanceConfigInfos": Action(
        c.DESCRIBE_ZONE_INSTANCE_CONFIG_INFOS, pricing.describe_zone_instance_config_infos
    ),
    "InquiryPriceRunInstances": Action(c.INQUIRY_PRICE_RUN_INSTANCES, pricing.inquiry_price_run_instances),
    "InquiryPriceTerminateInstances": Action(
        c.INQUIRY_PRICE_TERMINATE_INSTANCES, pricing.inquiry_price_terminate_instances
    ),
    "StopInstances": Action(c.STOP_INSTANCES, acting.stop_instances, Operation.STOP),
    "StartInstances": Action(c.START_INSTANCES, acting.start_instances, Operation.START),
    "RebootInstances": Action(c.REBOOT_INSTANCES, acting.reboot_instances),
    "TerminateInstances": Action(c.TERMINATE_INSTANCES, acting.terminate_instances, Operation.TERMINATE),
    "ModifyInstancesAttribute": Action(c.MODIFY_INSTANCES_ATTRIBUTE, acting.modify_instances_attribute),
}
_CBS = {
    "DescribeDisks": Action(s.DESCRIBE_DISKS, disks.describe_disks, Operation.DISKS),
    "DescribeSnapshots": Action(s.DESCRIBE_SNAPSHOTS, disks.describe_snapshots, Operation.DISKS),
    "CreateSnapshot": Action(s.CREATE_SNAPSHOT, disks.create_snapshot, Operation.SNAPSHOT),
    "DeleteSnapshots": Action(s.DELETE_SNAPSHOTS, disks.delete_snapshots),
    "InquiryPriceCreateDisks": Action(s.INQUIRY_PRICE_CREATE_DISKS, pricing.inquiry_price_create_disks),
}


def _network(part: str, parameters: Table, answer: Handler) -> Action:
    return Action(parameters, answer, Operation.NETWORK, part=part)


def _mends(parameters: Table, answer: Handler) -> Action:
    return Action(parameters, answer, Operation.FIX_NETWORK)


_VPC = {
    "DescribeVpcs": _network("vpcs", n.DESCRIBE_VPCS, networks.describe_vpcs),
    "DescribeSubnets": _network("subnets", n.DESCRIBE_SUBNETS, networks.describe_subnets),
    "DescribeRouteTables": _network("routes", n.DESCRIBE_ROUTE_TABLES, networks.describe_route_tables),
    "DescribeSecurityGroups": _network("groups", n.DESCRIBE_SECURITY_GROUPS, groups.describe_security_groups),
    "DescribeSecurityGroupAssociationStatistics": _network(
        "groups",
        n.DESCRIBE_SECURITY_GROUP_ASSOCIATION_STATISTICS,
        groups.describe_security_group_association_statistics,
    ),
    "DescribeSecurityGroupPolicies": _network(
        "groups", n.DESCRIBE_SECURITY_GROUP_POLICIES, groups.describe_security_group_policies
    ),
    "DescribeAddressTemplates": _network("groups", n.DESCRIBE_ADDRESS_TEMPLATES, groups.describe_address_templates),
    "DescribeAddressTemplateGroups": _network(
        "groups", n.DESCRIBE_ADDRESS_TEMPLATE_GROUPS, groups.describe_address_template_groups
    ),
    "DescribeServiceTemplates": _network("groups", n.DESCRIBE_SERVICE_TEMPLATES, groups.describe_service_templates),
    "DescribeServiceTemplateGroups": _network(
        "groups", n.DESCRIBE_SERVICE_TEMPLATE_GROUPS, groups.describe_service_template_groups
    ),
    "DescribeNetworkAcls": _network("access_lists", n.DESCRIBE_NETWORK_ACLS, networks.describe_network_acls),
    "DescribeNetworkAclQuintupleEntries": _network(
        "access_lists",
        n.DESCRIBE_NETWORK_ACL_QUINTUPLE_ENTRIES,
        networks.describe_network_acl_quintuple_entries,
    ),
    "DescribeNetworkInterfaces": _network(
        "interfaces", n.DESCRIBE_NETWORK_INTERFACES, network_cards.describe_network_interfaces
    ),
    "DescribeAddresses": _network("addresses", s.DESCRIBE_ADDRESSES, addresses.describe_addresses),
    "InquiryPriceAllocateAddresses": Action(
        n.INQUIRY_PRICE_ALLOCATE_ADDRESSES, addresses.inquiry_price_allocate_addresses, Operation.NETWORK
    ),
    "DescribeNatGateways": _network("nat_gateways", n.DESCRIBE_NAT_GATEWAYS, network_cards.describe_nat_gateways),
    "DescribeNatGatewayDestinationIpPortTranslationNatRules": _network(
        "nat_gateways",
        n.DESCRIBE_NAT_GATEWAY_DESTINATION_IP_PORT_TRANSLATION_NAT_RULES,
        network_cards.describe_nat_gateway_forwards,
    ),
    "DescribeFlowLogs": _network("flow_logs", n.DESCRIBE_FLOW_LOGS, flow_logs.describe_flow_logs),
    "DescribeVpcPeeringConnections": _network(
        "peerings", n.DESCRIBE_VPC_PEERING_CONNECTIONS, network_cards.describe_vpc_peering_connections
    ),
    "ReleaseAddresses": _mends(n.RELEASE_ADDRESSES, address_changes.release_addresses),
    "DisassociateAddress": _mends(n.DISASSOCIATE_ADDRESS, address_changes.disassociate_address),
    "AssociateAddress": _mends(n.ASSOCIATE_ADDRESS, address_changes.associate_address),
    "CreateSecurityGroupPolicies": _mends(
        n.CREATE_SECURITY_GROUP_POLICIES, group_changes.create_security_group_policies
    ),
    "ReplaceSecurityGroupPolicy": _mends(n.REPLACE_SECURITY_GROUP_POLICY, group_changes.replace_security_group_policy),
    "DeleteSecurityGroupPolicies": _mends(
        n.DELETE_SECURITY_GROUP_POLICIES, group_changes.delete_security_group_policies
    ),
    "CreateFlowLog": _mends(n.CREATE_FLOW_LOG, flow_logs.create_flow_log),
    "DeleteFlowLog": _mends(n.DELETE_FLOW_LOG, flow_logs.delete_flow_log),
}
_TAG = {
    "TagResources": _global(m.TAG_RESOURCES, tags.tag_resources),
    "UnTagResources": _global(m.UNTAG_RESOURCES, tags.untag_resources),
    "ModifyResourceTags": _global(m.MODIFY_RESOURCE_TAGS, tags.modify_resource_tags),
    "GetResources": _global(m.GET_RESOURCES, tags.get_resources),
    "DescribeResourceTagsByResourceIds": _global(
        e.DESCRIBE_RESOURCE_TAGS_BY_RESOURCE_IDS, kms.describe_resource_tags_by_resource_ids
    ),
}
_MONITOR = {
    "GetMonitorData": Action(m.GET_MONITOR_DATA, monitor.get_monitor_data, Operation.SIGNALS),
    "DescribeBaseMetrics": Action(m.DESCRIBE_BASE_METRICS, monitor.describe_base_metrics),
}
_AS = {
    "DescribeAutoScalingInstances": Action(k.DESCRIBE_AUTO_SCALING_INSTANCES, keepers.describe_auto_scaling_instances)
}
_TKE = {
    "DescribeClusters": Action(k.DESCRIBE_CLUSTERS, keepers.describe_clusters),
    "DescribeClusterInstances": Action(k.DESCRIBE_CLUSTER_INSTANCES, keepers.describe_cluster_instances),
}
_KMS = {
    "GetRegions": _global(e.GET_REGIONS, kms.get_regions),
    "GetServiceStatus": Action(e.GET_SERVICE_STATUS, kms.get_service_status, Operation.KEYS),
    "ListKeyDetail": Action(e.LIST_KEY_DETAIL, kms.list_key_detail, Operation.KEYS),
    "EnableKeyRotation": Action(e.ENABLE_KEY_ROTATION, kms.enable_key_rotation, Operation.ROTATE),
    "RotateKey": Action(e.ROTATE_KEY, kms.rotate_key, Operation.ROTATE),
}
_SSM = {"GetSecretValue": Action(e.GET_SECRET_VALUE, secrets.get_secret_value, Operation.SECRETS)}
_BILLING = {
    "DescribeBillDetail": _global(b.DETAIL, billing.describe_bill_detail, Operation.BILL),
    "DescribeBillDetailForOrganization": _global(
        b.DETAIL_FOR_ORGANIZATION, billing.describe_bill_detail_for_organization, Operation.BILL
    ),
    "DescribeBillSummary": _global(b.SUMMARY, billing.describe_bill_summary, Operation.BILL),
    "DescribeBillSummaryForOrganization": _global(
        b.SUMMARY_FOR_ORGANIZATION, billing.describe_bill_summary_for_organization, Operation.BILL
    ),
    "DescribeBillSummaryByProduct": _global(b.BY_PRODUCT, billing.describe_bill_summary_by_product, Operation.BILL),
    "DescribeBillSummaryByRegion": _global(b.BY_REGION, billing.describe_bill_summary_by_region, Operation.BILL),
    "DescribeBillSummaryByTag": _global(b.BY_TAG, billing.describe_bill_summary_by_tag, Operation.BILL),
    "DescribeCostExplorerSummary": _global(
        b.COST_EXPLORER, cost_explorer.describe_cost_explorer_summary, Operation.BILL
    ),
    "DescribeBudget": _global(b.BUDGET, billing.describe_budget, Operation.BILL),
}
_CLOUDAUDIT = {"DescribeEvents": Action(t.DESCRIBE_EVENTS, trail.describe_events, Operation.TRAIL)}
_GATE = "AuthFailure.UnauthorizedOperation"  # some products leave the refusal to the gate before them

PRODUCTS: Mapping[str, Product] = MappingProxyType(
    {
        "sts": Product("2018-08-13", _STS, throttled="InvalidParameter.OverLimit"),
        "organization": Product("2021-03-31", _ORGANIZATION),
        "cam": Product("2019-01-16", _CAM, _GATE),
        "region": Product("2022-06-27", _REGION, _GATE),
        "cvm": Product("2017-03-12", _CVM),
        "cbs": Product("2017-03-12", _CBS),
        "vpc": Product("2017-03-12", _VPC, throttled="LimitExceeded.ActionLimited"),
        "tag": Product("2018-08-13", _TAG, _GATE),
        "kms": Product("2019-01-18", _KMS),
        "ssm": Product("2019-09-23", _SSM),
        "cloudaudit": Product("2019-03-19", _CLOUDAUDIT, _GATE),
        "monitor": Product("2018-07-24", _MONITOR, _GATE),
        "as": Product("2018-04-19", _AS, _GATE),
        "billing": Product("2018-07-09", _BILLING, "UnauthorizedOperation.CamNoAuth", cam="finance"),
        "tke": Product("2018-05-25", _TKE, "UnauthorizedOperation.CamNoAuth"),
    }
)
