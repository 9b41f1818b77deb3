"""Rules of groups and ACLs, and the parts of VPC: from the vendor's words to ours, and of rules back."""

from __future__ import annotations

from typing import Any

import pytest

from costguard.domain.network import EVERY_PORT, AddressState, Direction, Hop, NetworkRule, Permission
from costguard.domain.refs import Shard
from costguard.providers.alibaba.compute.instances import imds_v1
from costguard.providers.alibaba.network.answers import (
    to_address,
    to_flow_log,
    to_forward,
    to_gateway,
    to_peering,
    to_routes,
    to_vpc,
)
from costguard.providers.alibaba.network.rules import (
    RuleLists,
    lists_named,
    to_entry,
    to_permission,
    to_range,
    to_rule,
)
from costguard.providers.kit.network.reading import network

SHARD = Shard("alibaba", "1234567890123456", "cn-hangzhou")
NONE = RuleLists()


def told(**more: Any) -> dict[str, Any]:
    """A rule that lets the world into port 22, as DescribeSecurityGroupAttribute tells it."""
    return {
        "SecurityGroupRuleId": "sgr-bp1",
        "Direction": "ingress",
        "Policy": "Accept",
        "IpProtocol": "TCP",
        "PortRange": "22/22",
        "Priority": "1",
        "SourceCidrIp": "0.0.0.0/0",
        "NicType": "intranet",
        **more,
    }


def test_a_rule_is_told_in_varying_case_and_its_priority_as_a_text() -> None:
    rule = to_rule(told(Policy="drop", IpProtocol="udp", Priority="100", Description="x"), NONE)

    assert rule == NetworkRule(
        "sgr-bp1",
        Direction.INGRESS,
        Permission.DENY,
        "udp",
        ((22, 22),),
        ("0.0.0.0/0",),
        priority=100,
        description="x",
    )
    assert to_rule(told(Priority=7), NONE).priority == 7


@pytest.mark.parametrize(
    ("protocol", "ports", "found"),
    [
        ("ALL", "-1/-1", EVERY_PORT),
        ("TCP", "-1/-1", EVERY_PORT),
        ("tcp", "1/65535", EVERY_PORT),
        ("UDP", "100/200", ((100, 200),)),
        ("ICMP", "-1/-1", ()),
        ("ICMPv6", "-1/-1", ()),
        ("GRE", "-1/-1", ()),
    ],
)
def test_ports_of_every_protocol(protocol: str, ports: str, found: object) -> None:
    assert to_rule(told(IpProtocol=protocol, PortRange=ports), NONE).ports == found


def test_networks_are_written_in_one_way() -> None:
    assert to_rule(told(SourceCidrIp="203.0.113.7"), NONE).peers == ("203.0.113.7/32",)
    assert to_rule(told(SourceCidrIp="", Ipv6SourceCidrIp="2001:DB8::7"), NONE).peers == ("2001:db8::7/128",)
    assert network("10.1.2.3/8") == "10.0.0.0/8"


def test_a_network_counts_before_a_group_and_a_group_before_nothing() -> None:
    assert to_rule(told(SourceGroupId="sg-1"), NONE).peer_groups == ()
    assert to_rule(told(SourceCidrIp="", SourceGroupId="sg-1"), NONE).peer_groups == ("sg-1",)
    with pytest.raises(ValueError, match="without a source"):
        to_rule(told(SourceCidrIp=""), NONE)


def test_rules_of_the_way_out_name_where_they_lead() -> None:
    rule = to_rule(told(Direction="egress", SourceCidrIp="", DestCidrIp="10.0.0.0/8"), NONE)
    assert (rule.direction, rule.peers) == (Direction.EGRESS, ("10.0.0.0/8",))


def test_lists_are_looked_up_where_nothing_else_is_told() -> None:
    listed = told(SourceCidrIp="", SourcePrefixListId="pl-1", PortRange="", PortRangeListId="prl-1")
    lists = RuleLists({"pl-1": ("10.0.0.0/8", "11.0.0.0/8")}, {"prl-1": ((80, 80), (443, 443))})

    assert lists_named([listed, told(SourcePrefixListId="pl-2", PortRangeListId="prl-2")]) == ({"pl-1"}, {"prl-1"})
    assert to_rule(listed, lists).peers == ("10.0.0.0/8", "11.0.0.0/8")
    assert to_rule(listed, lists).ports == ((80, 80), (443, 443))
    assert to_rule(listed, RuleLists({"pl-1": ()})).peers == ()


def test_what_an_unread_list_allows_may_be_anything() -> None:
    rule = to_rule(told(SourceCidrIp="", SourcePrefixListId="pl-1", PortRange="", PortRangeListId="prl-1"), NONE)
    assert (rule.peers, rule.unresolved, rule.ports) == ((), ("pl-1",), EVERY_PORT)


@pytest.mark.parametrize(
    "more",
    [
        {"SourcePortRange": "1000/2000"},
        {"DestCidrIp": "10.0.0.5"},
        {"Ipv6DestCidrIp": "2001:db8::5"},
        {"PortRange": "", "PortRangeListId": "prl-unread"},
        {"SourceCidrIp": "", "SourcePrefixListId": "pl-unread"},
    ],
)
def test_what_is_denied_in_part_hides_no_way_in(more: dict[str, str]) -> None:
    """A denial with conditions is certain of nothing; what is allowed with the same ones counts in full."""
    denied, allowed = to_rule(told(Policy="Drop", **more), NONE), to_rule(told(**more), NONE)

    assert (denied.peers, denied.peer_groups) == ((), ())
    assert denied.unresolved
    assert allowed.peers or allowed.unresolved


@pytest.mark.parametrize("port", ["", "-1/-1", "1/65535"])
def test_conditions_that_bind_nothing_are_none(port: str) -> None:
    rule = to_rule(told(Policy="Drop", SourcePortRange=port, DestCidrIp="0.0.0.0/0"), NONE)
    assert (rule.peers, rule.unresolved) == (("0.0.0.0/0",), ())


@pytest.mark.parametrize(
    "more",
    [
        {"Policy": "Perhaps"},
        {"Direction": "sideways"},
        {"IpProtocol": ""},
        {"PortRange": "2/x"},
        {"PortRange": "80/22"},
        {"PortRange": "1/70000"},
        {"SourceCidrIp": "anywhere"},
        {"Priority": None},
        {"Priority": True},
        {"Priority": "first"},
        {"SourcePortRange": 7},
    ],
)
def test_a_rule_that_is_not_as_documented_is_no_rule(more: dict[str, Any]) -> None:
    with pytest.raises((ValueError, TypeError)):
        to_rule(told(**more), NONE)


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"Policy": "Drop", "Priority": "50"},
        {"IpProtocol": "ALL", "PortRange": "-1/-1"},
        {"IpProtocol": "TCP", "PortRange": "1/65535", "Description": "all of it"},
        {"IpProtocol": "ICMP", "PortRange": "-1/-1"},
        {"SourceCidrIp": "", "Ipv6SourceCidrIp": "::/0"},
        {"SourceCidrIp": "", "SourceGroupId": "sg-1"},
    ],
)
def test_a_rule_comes_back_as_it_went(more: dict[str, str]) -> None:
    rule = to_rule(told(**more), NONE)
    again = to_rule({"SecurityGroupRuleId": "sgr-bp1", "Direction": "ingress", **to_permission(rule)}, NONE)

    assert again == rule
    assert rule.cannot_return == ""


def test_what_could_not_come_back_says_why() -> None:
    lists = RuleLists({"pl-1": ("198.51.100.0/24",)}, {"prl-1": ((22, 22),)})
    for more, word in (
        ({"SecurityGroupRuleId": ""}, "no_id"),
        ({"SourcePortRange": "1000/2000"}, "more_conditions"),
        ({"DestCidrIp": "10.0.0.5"}, "more_conditions"),
        ({"PortRange": "", "PortRangeListId": "prl-1"}, "port_list"),
        ({"SourceCidrIp": "", "SourcePrefixListId": "pl-1"}, "prefix_list"),
        (
            {"SourceCidrIp": "", "SourceGroupId": "sg-1", "SourceGroupOwnerAccount": "other@example.com"},
            "group_elsewhere",
        ),
    ):
        assert to_rule(told(**more), lists).cannot_return == word


def test_an_entry_of_an_acl_has_its_place_for_a_priority() -> None:
    entry = {
        "NetworkAclEntryId": "nae-1",
        "Policy": "drop",
        "Protocol": "tcp",
        "Port": "22/22",
        "SourceCidrIp": "0.0.0.0/0",
        "DestinationCidrIp": "10.0.0.0/8",
        "EntryType": "custom",
    }
    into, out = to_entry(entry, Direction.INGRESS, 3), to_entry(entry, Direction.EGRESS, 0)

    assert (into.rule_id, into.priority, into.permission, into.ports) == ("nae-1", 3, Permission.DENY, ((22, 22),))
    assert (into.peers, out.peers) == (("0.0.0.0/0",), ("10.0.0.0/8",))
    assert to_entry({**entry, "Protocol": "all", "Port": "-1/-1"}, Direction.INGRESS, 0).ports == EVERY_PORT


def test_ranges_of_ports() -> None:
    assert (to_range("22"), to_range("80/443")) == ((22, 22), (80, 443))
    with pytest.raises(ValueError, match="no range"):
        to_range("443/80")


def route(kind: str, destination: str = "0.0.0.0/0", **more: Any) -> dict[str, Any]:
    hop = {"NextHopType": kind, "NextHopId": "x-1", **more}
    return {"DestinationCidrBlock": destination, "Status": "Available", "NextHops": {"NextHop": [hop]}}


@pytest.mark.parametrize(
    ("kind", "hop"),
    [
        ("local", Hop.LOCAL),
        ("Ipv4Gateway", Hop.INTERNET),
        ("IPv6Gateway", Hop.INTERNET),
        ("NatGateway", Hop.NAT),
        ("VpcPeer", Hop.PEERING),
        ("Instance", Hop.INSTANCE),
        ("NetworkInterface", Hop.INSTANCE),
        ("Attachment", Hop.VPN),
        ("VpnGateway", Hop.VPN),
        ("Ecr", Hop.VPN),
        ("RouterInterface", Hop.VPN),
        ("GatewayEndpoint", Hop.OTHER),
        ("HaVip", Hop.OTHER),
        ("SomethingNew", Hop.OTHER),
    ],
)
def test_where_routes_lead(kind: str, hop: Hop) -> None:
    (found,) = to_routes(route(kind))
    assert (found.hop, found.target, found.active) == (hop, "x-1", True)


def test_router_interfaces_join_vpcs_or_lead_elsewhere() -> None:
    joined = to_routes(route("RouterInterface", NextHopRelatedInfo={"InstanceType": "VPC"}))
    cable = to_routes(route("RouterInterface", NextHopRelatedInfo={"InstanceType": "VBR"}))
    assert [each.hop for each in (*joined, *cable)] == [Hop.PEERING, Hop.VPN]


def test_a_route_has_as_many_next_hops_as_there_are() -> None:
    entry = route("Instance")
    entry["NextHops"]["NextHop"] += [{"NextHopType": "Instance", "NextHopId": "x-2", "Enabled": 0}]
    assert [(each.target, each.active) for each in to_routes(entry)] == [("x-1", True), ("x-2", False)]
    assert not to_routes({**entry, "Status": "Pending"})[0].active
    assert to_routes({**entry, "NextHops": "", "Type": "System"})[0].hop is Hop.LOCAL


def address(**more: Any) -> dict[str, Any]:
    return {
        "AllocationId": "eip-1",
        "IpAddress": "203.0.113.9",
        "Status": "Available",
        "ChargeType": "PostPaid",
        **more,
    }


@pytest.mark.parametrize(
    ("status", "state"),
    [
        ("Available", AddressState.UNATTACHED),
        ("InUse", AddressState.IN_USE),
        ("Associating", AddressState.CHANGING),
        ("Unassociating", AddressState.CHANGING),
        ("Releasing", AddressState.CHANGING),
        ("Frozen", AddressState.UNKNOWN),
    ],
)
def test_states_of_addresses(status: str, state: AddressState) -> None:
    assert to_address(SHARD, address(Status=status)).state is state


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        ("EcsInstance", "instance"),
        ("NetworkInterface", "interface"),
        ("Nat", "nat_gateway"),
        ("SlbInstance", "balancer"),
        ("HaVip", "virtual_ip"),
        ("IpAddress", "private_ip"),
        ("SomethingNew", "other"),
    ],
)
def test_what_addresses_are_bound_to(word: str, kind: str) -> None:
    bound = to_address(SHARD, address(Status="InUse", InstanceType=word, InstanceId="x-1")).bound_to
    assert bound is not None
    assert (bound.kind, bound.native_id) == (kind, "x-1")


def test_an_address_tells_what_keeps_it() -> None:
    found = to_address(
        SHARD,
        address(
            ChargeType="PrePaid",
            ServiceManaged=1,
            DeletionProtection=True,
            SegmentInstanceId="eipsg-1",
            OperationLocks={"LockReason": [{"LockReason": "financial"}]},
            AllocationTime="2026-01-02T03:04:05Z",
            Tags={"Tag": [{"Key": "team", "Value": "vision"}]},
        ),
    )
    assert found.protected_by == ("deletion_protection", "locked_financial", "segment")
    assert (found.is_prepaid, found.is_service_managed, found.rate) == (True, True, None)
    assert (str(found.allocated_at), found.tags) == ("2026-01-02 03:04:05+00:00", {"team": "vision"})


def test_tags_are_key_and_value_but_of_nat_gateways() -> None:
    gateway = {"NatGatewayId": "ngw-1", "VpcId": "vpc-1", "NetworkType": "intranet"}
    found = to_gateway(SHARD, {**gateway, "Tags": {"Tag": [{"TagKey": "team", "TagValue": "vision"}]}}, ())
    assert (found.tags, found.is_private) == ({"team": "vision"}, True)

    with pytest.raises(ValueError, match="TagKey"):
        to_gateway(SHARD, {**gateway, "Tags": {"Tag": [{"Key": "team", "Value": "vision"}]}}, ())
    with pytest.raises(ValueError, match="twice"):
        to_address(SHARD, address(Tags={"Tag": [{"Key": "keep"}, {"Key": "keep"}]}))


def test_forwards_of_one_port_of_several_and_of_all() -> None:
    entry = {"ExternalIp": "203.0.113.9", "InternalIp": "10.0.0.5", "IpProtocol": "TCP", "ForwardEntryId": "fwd-1"}
    one = to_forward({**entry, "ExternalPort": "8022", "InternalPort": "22"})
    some = to_forward({**entry, "ExternalPort": "10/20", "InternalPort": "80/90"})
    every = to_forward({**entry, "IpProtocol": "Any", "ExternalPort": "Any", "InternalPort": "Any"})

    assert (one.protocol, one.public_ports, one.private_ports) == ("tcp", ((8022, 8022),), ((22, 22),))
    assert (some.public_ports, some.private_ports) == (((10, 20),), ((80, 90),))
    assert (every.protocol, every.public_ports, every.private_ports) == ("all", (), ())


@pytest.mark.parametrize(
    ("more", "active"),
    [
        ({}, True),
        ({"Status": "Activating"}, False),
        ({"Status": "Inactive"}, False),
        ({"FlowLogDeliverStatus": "FAILED"}, False),
        ({"BusinessStatus": "FinancialLocked"}, False),
    ],
)
def test_a_flow_log_counts_only_while_it_delivers(more: dict[str, str], active: bool) -> None:  # noqa: FBT001 - a case
    log = {"FlowLogId": "fl-1", "ResourceType": "VSwitch", "ResourceId": "vsw-1", "TrafficType": "Drop"}
    found = to_flow_log(SHARD, {**log, "Status": "Active", **more})
    assert (found.active, found.covers.kind, found.traffic) == (active, "subnet", "rejected")


def peering(owner: object, region: str, accepter: object, far_region: str, status: str = "Activated") -> dict[str, Any]:
    return {
        "InstanceId": "pcc-1",
        "Status": status,
        "OwnerId": owner,
        "RegionId": region,
        "Vpc": {"VpcId": "vpc-asked", "Ipv4Cidrs": ["10.1.0.0/16"]},
        "AcceptingOwnerUid": accepter,
        "AcceptingRegionId": far_region,
        "AcceptingVpc": {"VpcId": "vpc-took", "Ipv4Cidrs": ["10.2.0.0/16"], "Ipv6Cidrs": None},
    }


def test_a_peering_is_told_from_the_end_that_lies_here() -> None:
    ours = int(SHARD.account)
    asked = to_peering(SHARD, peering(ours, "cn-hangzhou", 7, "cn-beijing"))
    took = to_peering(SHARD, peering("7", "cn-beijing", ours, "cn-hangzhou", "Accepting"))
    far = to_peering(SHARD, peering(ours, "cn-beijing", ours, "cn-hangzhou"))

    assert (asked.vpc.native_id, asked.other_account, asked.other_region, asked.other_vpc) == (
        "vpc-asked",
        "7",
        "cn-beijing",
        "vpc-took",
    )
    assert (asked.other_cidrs, asked.active) == (("10.2.0.0/16",), True)
    assert (took.vpc.native_id, took.other_account, took.other_vpc, took.active) == (
        "vpc-took",
        "7",
        "vpc-asked",
        False,
    )
    assert (far.vpc.native_id, far.other_region) == ("vpc-took", "cn-beijing")


def test_a_vpc_has_networks_of_both_families() -> None:
    vpc = {
        "VpcId": "vpc-1",
        "CidrBlock": "10.0.0.0/8",
        "SecondaryCidrBlocks": {"SecondaryCidrBlock": ["172.16.0.0/12"]},
        "Ipv6CidrBlock": "2001:db8::/56",
        "Ipv6CidrBlocks": {"Ipv6CidrBlock": [{"Ipv6CidrBlock": "2001:db8::/56"}, {"Ipv6CidrBlock": "2001:db8:1::/56"}]},
    }
    assert to_vpc(SHARD, vpc, ()).cidrs == ("10.0.0.0/8", "172.16.0.0/12", "2001:db8::/56", "2001:db8:1::/56")


@pytest.mark.parametrize(
    ("endpoint", "tokens", "found"),
    [
        ("enabled", "optional", True),
        ("enabled", "required", False),
        ("disabled", "optional", False),
        ("", "required", False),
        ("", "", None),
        ("enabled", "", None),
        ("enabled", "sometimes", None),
    ],
)
def test_metadata_answers_without_a_token_only_where_that_is_told(
    endpoint: str,
    tokens: str,
    found: bool | None,  # noqa: FBT001 - a case
) -> None:
    assert imds_v1({"MetadataOptions": {"HttpEndpoint": endpoint, "HttpTokens": tokens}}) is found
    assert imds_v1({}) is None
