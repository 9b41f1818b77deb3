"""Networks as VPC and ECS tell them: what they leave out, hand out in pieces, or keep from who may not ask."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest
from tests.contract.alibaba_network_stage import Stage, direct_stage, wired_stage
from tests.contract.network_fleet import DEFAULT, LEGACY, NOTEBOOK, OPEN, ORDERED, SPARE, TRAINER, TRAINING
from tests.contract.network_rigs import plain

from costguard.domain.errors import UnavailableError
from costguard.domain.network import AddressState, NetworkInterface, NetworkInventory, SecurityGroup
from costguard.domain.resources import GapKind
from costguard.providers.alibaba.iam.permissions import OPERATIONS
from costguard.providers.alibaba.iam.policy_documents import policy_document
from costguard.providers.alibaba.network.source import AlibabaNetwork
from costguard.providers.kit.iam.permissions import Feature

READ = {
    "DescribeVpcs": 1,
    "ListIpv4Gateways": 1,
    "DescribeVSwitches": 1,
    "DescribeRouteTableList": 1,
    "DescribeRouteEntryList": 3,
    "DescribeNetworkAcls": 1,
    "DescribeEipAddresses": 1,
    "DescribeNatGateways": 1,
    "DescribeForwardTableEntries": 2,
    "DescribeFlowLogs": 1,
    "ListVpcPeerConnections": 1,
    "DescribeNetworkInterfaces": 1,
    "DescribeInstances": 1,
    "DescribeIpv6Addresses": 1,
    "DescribeSecurityGroups": 1,
    "DescribeSecurityGroupAttribute": 7,
    "DescribeSecurityGroupReferences": 1,
    "GetPayAsYouGoPrice": 2,
    "DescribePricingModule": 1,
}
"""What the fleet's shard costs: no list is asked twice, and one by one only what has no list."""


@pytest.fixture
def stage() -> Iterator[Stage]:
    with direct_stage() as made:
        yield made


@pytest.fixture
def wired() -> Iterator[Stage]:
    with wired_stage() as made:
        yield made


def granted(*features: Feature) -> set[str]:
    statements = policy_document(set(features))["Statement"]
    return {action for each in statements if each["Effect"] == "Allow" for action in each["Action"]}


def gaps_of(found: NetworkInventory) -> list[tuple[str, GapKind]]:
    return [(gap.what, gap.kind) for gap in found.gaps]


def card_of(found: NetworkInventory, stage: Stage, name: str) -> NetworkInterface:
    return next(card for card in found.interfaces if card.ref == stage.ref("interface", name))


def empty(answer: dict[str, Any], _: Mapping[str, Any]) -> dict[str, Any]:
    """The same answer with nothing in it."""
    return {**{key: {} if isinstance(value, dict) else value for key, value in answer.items()}, "TotalCount": 0}


# --- what it costs, and what it takes


def test_a_shard_is_read_by_the_fewest_requests(stage: Stage) -> None:
    assert stage.read().gaps == ()
    assert stage.asked() == READ


def test_groups_that_hold_nothing_and_are_around_nothing_are_not_asked_about(stage: Stage) -> None:
    empty = tuple(
        SecurityGroup(
            stage.ref("security_group", OPEN).sibling("security_group", f"sg-empty{number:03}"),
            stage.ref("vpc", TRAINING),
            stage.group(OPEN).order,
            (),
            in_use=False,
            peers_may_talk=True,
        )
        for number in range(123)
    )
    stage.place(groups=(*stage.truth.groups, *empty))

    assert plain(stage.read()).groups == plain(stage.truth).groups
    assert stage.asked()["DescribeSecurityGroups"] == 2
    assert stage.asked()["DescribeSecurityGroupAttribute"] == READ["DescribeSecurityGroupAttribute"]
    assert stage.asked()["DescribeSecurityGroupReferences"] == 13  # 124 that seem unused, ten at once


def test_the_generated_policy_for_reading_is_enough_and_no_more(wired: Stage) -> None:
    stage = wired
    stage.cloud.allowed[stage.shard.account] = granted(Feature.NETWORK)
    stage.cloud.networks.tells_no_entries.add(stage.ref("access_list", "fence").native_id)
    listed = replace(stage.rule(OPEN, 22), peers=("10.0.0.0/8", "11.0.0.0/8"), ports=((22, 22), (80, 81)))
    stage.set_rules(OPEN, listed)

    assert stage.read().gaps == ()
    sent = {call.operation for call in stage.session.calls_made()} - {"sts:GetCallerIdentity"}
    reading = {name for name, one in OPERATIONS.items() if one.feature is Feature.NETWORK}
    assert sent == reading | {"ecs:DescribeInstances", "vpc:DescribeEipAddresses"}


def test_pages_are_as_large_as_the_vendor_allows(stage: Stage) -> None:
    stage.read()
    sizes = {name: parameters.get("PageSize") for name, parameters in stage.session.asked if "PageSize" in parameters}
    tokens = {name: parameters["MaxResults"] for name, parameters in stage.session.asked if "MaxResults" in parameters}

    assert sizes.pop("DescribeEipAddresses") == 100
    assert set(sizes.values()) == {50}
    assert tokens == {
        "ListIpv4Gateways": 100,
        "ListVpcPeerConnections": 100,
        "DescribeNetworkInterfaces": 500,
        "DescribeInstances": 100,
        "DescribeSecurityGroups": 100,
        "DescribeSecurityGroupAttribute": 1000,
    }


# --- what is kept from us


@pytest.mark.parametrize(
    ("operation", "part"),
    [
        ("DescribeVpcs", "vpcs"),
        ("DescribeVSwitches", "subnets"),
        ("DescribeNatGateways", "nat_gateways"),
        ("DescribeEipAddresses", "addresses"),
        ("DescribeSecurityGroups", "groups"),
    ],
)
def test_an_empty_list_counts_only_where_asking_is_permitted(stage: Stage, operation: str, part: str) -> None:
    product = "ecs" if operation == "DescribeSecurityGroups" else "vpc"
    stage.cloud.allowed[stage.shard.account] = granted(Feature.NETWORK) - {f"{product}:{operation}"}
    stage.session.hides.add(operation)
    denied = stage.read()
    del stage.cloud.allowed[stage.shard.account]
    stage.session.changes[operation] = empty

    assert (part, GapKind.DENIED) in gaps_of(denied)
    assert part not in {gap.what for gap in stage.read().gaps}


def test_interfaces_that_only_instances_tell_of_are_asked_about_once_more(stage: Stage) -> None:
    """An instance that began between the two lists."""

    def late(answer: dict[str, Any], parameters: Mapping[str, Any]) -> dict[str, Any]:
        first = "NetworkInterfaceId" not in parameters
        listed = answer["NetworkInterfaceSets"]["NetworkInterfaceSet"]
        return {**answer, "NetworkInterfaceSets": {"NetworkInterfaceSet": listed[1:] if first else listed}}

    stage.session.changes["DescribeNetworkInterfaces"] = late
    found = stage.read()

    assert plain(found) == plain(stage.truth)
    assert stage.asked()["DescribeNetworkInterfaces"] == 2


def test_interfaces_that_stay_away_are_a_gap_and_nobody_knows_what_is_in_use(stage: Stage) -> None:
    stage.session.changes["DescribeNetworkInterfaces"] = empty
    found = stage.read()

    assert gaps_of(found) == [("interfaces", GapKind.TRUNCATED)]
    assert stage.ref("interface", NOTEBOOK).native_id in found.gaps[0].detail
    assert {group.in_use for group in found.groups} == {None}


def test_no_interfaces_are_none_where_there_are_no_instances_provably(stage: Stage) -> None:
    stage.session.changes["DescribeNetworkInterfaces"] = empty
    stage.session.changes["DescribeInstances"] = empty
    assert stage.read().gaps == ()

    stage.cloud.allowed[stage.shard.account] = granted(Feature.NETWORK) - {"ecs:DescribeInstances"}
    stage.session.hides.add("DescribeInstances")
    assert gaps_of(stage.read()) == [("interfaces", GapKind.DENIED)]


def test_a_group_whose_rules_are_unread_is_left_out_and_named(stage: Stage) -> None:
    """Without its rules it would look closed."""

    def other(answer: dict[str, Any], parameters: Mapping[str, Any]) -> dict[str, Any]:
        wrong = parameters["SecurityGroupId"] == stage.ref("security_group", OPEN).native_id
        return {**answer, "SecurityGroupId": "sg-other"} if wrong else answer

    stage.session.changes["DescribeSecurityGroupAttribute"] = other
    found = stage.read()

    assert stage.ref("security_group", OPEN) not in {group.ref for group in found.groups}
    assert len(found.groups) == len(stage.truth.groups) - 1
    assert gaps_of(found) == [("groups", GapKind.UNREADABLE)]
    assert stage.ref("security_group", OPEN).native_id in found.gaps[0].detail


@pytest.mark.parametrize(
    ("operation", "path", "part"),
    [
        ("DescribeVpcs", ("Vpcs", "Vpc"), "vpcs"),
        ("DescribeFlowLogs", ("FlowLogs", "FlowLog"), "flow_logs"),
        ("DescribeNetworkAcls", ("NetworkAcls", "NetworkAcl"), "access_lists"),
    ],
)
def test_a_list_that_is_shorter_than_its_total_moved(
    stage: Stage, operation: str, path: tuple[str, str], part: str
) -> None:
    """Two of these write their totals as texts."""

    def shorter(answer: dict[str, Any], _: Mapping[str, Any]) -> dict[str, Any]:
        return {**answer, path[0]: {path[1]: answer[path[0]][path[1]][1:]}}

    stage.session.changes[operation] = shorter
    assert gaps_of(stage.read()) == [(part, GapKind.TRUNCATED)]


@pytest.mark.parametrize(
    ("operation", "path", "field", "part"),
    [
        ("DescribeVpcs", ("Vpcs", "Vpc"), {"CidrBlock": "10.0.0.0/33"}, "vpcs"),
        ("DescribeVSwitches", ("VSwitches", "VSwitch"), {"Tags": {"Tag": [{"Key": 1}]}}, "subnets"),
        ("DescribeRouteTableList", ("RouterTableList", "RouterTableListType"), {"VpcId": None}, "routes"),
        ("DescribeRouteEntryList", ("RouteEntrys", "RouteEntry"), {"DestinationCidrBlock": ""}, "routes"),
        ("DescribeEipAddresses", ("EipAddresses", "EipAddress"), {"ServiceManaged": "1"}, "addresses"),
        ("DescribeNatGateways", ("NatGateways", "NatGateway"), {"IpLists": [1]}, "nat_gateways"),
        (
            "DescribeForwardTableEntries",
            ("ForwardTableEntries", "ForwardTableEntry"),
            {"ExternalPort": "x"},
            "nat_gateways",
        ),
        ("DescribeFlowLogs", ("FlowLogs", "FlowLog"), {"TrafficType": "Some"}, "flow_logs"),
        (
            "DescribeNetworkInterfaces",
            ("NetworkInterfaceSets", "NetworkInterfaceSet"),
            {"PrivateIpAddress": 1},
            "interfaces",
        ),
        ("DescribeSecurityGroupAttribute", ("Permissions", "Permission"), {"Policy": "Perhaps"}, "groups"),
        ("DescribeSecurityGroups", ("SecurityGroups", "SecurityGroup"), {"RuleCount": "3"}, "groups"),
    ],
)
def test_what_is_not_as_documented_is_a_gap_and_never_none(
    stage: Stage, operation: str, path: tuple[str, str], field: dict[str, Any], part: str
) -> None:
    def strange(answer: dict[str, Any], _: Mapping[str, Any]) -> dict[str, Any]:
        listed = (answer.get(path[0]) or {}).get(path[1]) or []
        return {**answer, path[0]: {path[1]: [{**each, **field} for each in listed]}}

    stage.session.changes[operation] = strange
    found = stage.read()
    assert set(gaps_of(found)) == {(part, GapKind.UNREADABLE)}


def test_nothing_at_all_is_an_error(stage: Stage) -> None:
    stage.session.refused = dict.fromkeys(READ, UnavailableError("down", code="ServiceUnavailable"))
    with pytest.raises(UnavailableError):
        stage.read()


# --- which address leads where


def test_a_plain_address_is_told_of_its_instance_only(stage: Stage) -> None:
    found = stage.read()

    assert card_of(found, stage, LEGACY).public_ips == (("172.31.0.10", "203.0.113.20"),)
    assert "203.0.113.20" not in {address.ip for address in found.addresses}


def test_instances_are_not_listed_where_interfaces_tell_every_address(stage: Stage) -> None:
    kept = tuple(card for card in stage.truth.interfaces if card.ref == stage.ref("interface", NOTEBOOK))
    stage.place(interfaces=kept)
    found = stage.read()

    assert card_of(found, stage, NOTEBOOK).public_ips == (("10.20.1.10", "203.0.113.10"),)
    assert "DescribeInstances" not in stage.asked()


def test_an_elastic_address_is_followed_where_the_interface_does_not_tell_it(stage: Stage) -> None:
    """Of a secondary interface it leads to the private address that it is bound to."""
    second = replace(
        card_of(stage.truth, stage, TRAINER),
        ref=stage.ref("interface", TRAINER).sibling("interface", "eni-bp1second"),
        primary=False,
        private_ips=("10.20.2.50", "10.20.2.51"),
        public_ips=(("10.20.2.51", "203.0.113.30"),),
    )
    stage.place(interfaces=(*stage.truth.interfaces, second))
    stage.address(SPARE, state=AddressState.IN_USE, bound_to=second.ref)

    def silent(answer: dict[str, Any], _: Mapping[str, Any]) -> dict[str, Any]:
        for card in answer["NetworkInterfaceSets"]["NetworkInterfaceSet"]:
            card.pop("AssociatedPublicIp")
            for each in card["PrivateIpSets"]["PrivateIpSet"]:
                each.pop("AssociatedPublicIp")
        return answer

    stage.session.changes["DescribeNetworkInterfaces"] = silent
    assert plain(stage.read()) == plain(stage.truth)


def test_ipv6_reaches_the_internet_only_with_bandwidth_for_it(stage: Stage) -> None:
    stage.session.changes["DescribeIpv6Addresses"] = empty
    assert card_of(stage.read(), stage, NOTEBOOK).ipv6_public == ()


def test_ipv6_counts_as_open_where_nobody_may_ask(stage: Stage) -> None:
    stage.cloud.allowed[stage.shard.account] = granted(Feature.NETWORK) - {"vpc:DescribeIpv6Addresses"}
    found = stage.read()

    assert card_of(found, stage, NOTEBOOK).ipv6_public == ("2001:db8:20::10",)
    assert gaps_of(found) == [("interfaces", GapKind.DENIED)]


def test_ipv6_is_the_same_however_it_is_written(stage: Stage) -> None:
    def at_length(answer: dict[str, Any], _: Mapping[str, Any]) -> dict[str, Any]:
        for told in answer["Ipv6Addresses"]["Ipv6Address"]:
            told["Ipv6Address"] = "2001:0DB8:0020:0:0:0:0:0010"
        return answer

    stage.session.changes["DescribeIpv6Addresses"] = at_length
    assert card_of(stage.read(), stage, NOTEBOOK).ipv6_public == ("2001:db8:20::10",)


def test_ipv6_prefixes_are_a_gap(stage: Stage) -> None:
    def with_prefix(answer: dict[str, Any], _: Mapping[str, Any]) -> dict[str, Any]:
        answer["NetworkInterfaceSets"]["NetworkInterfaceSet"][0]["Ipv6PrefixSets"] = {
            "Ipv6PrefixSet": [{"Ipv6Prefix": "2001:db8:20:1::/80"}]
        }
        return answer

    stage.session.changes["DescribeNetworkInterfaces"] = with_prefix
    assert gaps_of(stage.read()) == [("interfaces", GapKind.UNREADABLE)]


def test_an_active_ipv4_gateway_makes_routes_count(stage: Stage) -> None:
    gated = stage.ref("vpc", TRAINING)
    stage.place(vpcs=tuple(replace(vpc, needs_gateway=vpc.ref == gated) for vpc in stage.truth.vpcs))

    assert {vpc.ref: vpc.needs_gateway for vpc in stage.read().vpcs} == {gated: True, stage.ref("vpc", DEFAULT): False}


def test_where_gateways_may_not_be_asked_about_an_address_counts_as_enough(stage: Stage) -> None:
    stage.place(vpcs=tuple(replace(vpc, needs_gateway=True) for vpc in stage.truth.vpcs))
    stage.cloud.allowed[stage.shard.account] = granted(Feature.NETWORK) - {"vpc:ListIpv4Gateways"}
    found = stage.read()

    assert [vpc.needs_gateway for vpc in found.vpcs] == [False, False]
    assert gaps_of(found) == [("vpcs", GapKind.DENIED)]


# --- rules


def test_lists_that_rules_name_are_read_once(stage: Stage) -> None:
    one = replace(stage.rule(OPEN, 22), peers=("10.0.0.0/8", "11.0.0.0/8"), ports=((22, 22), (80, 81)))
    stage.set_rules(OPEN, one)
    by_lists = stage.read()
    assert stage.asked()["DescribePrefixListAttributes"] == 1

    stage.set_rules(OPEN, replace(one, cannot_return="port_list"))  # what it is told as: no image has the list
    assert plain(by_lists).groups == plain(stage.truth).groups
    assert (stage.asked()["DescribePrefixListAttributes"], stage.asked()["DescribePortRangeListEntries"]) == (1, 1)


def test_a_list_that_cannot_be_read_may_be_anything(stage: Stage) -> None:
    rule = stage.rule(OPEN, 22)
    stage.set_rules(OPEN, replace(rule, peers=(), unresolved=("pl-others",)))
    found = next(group for group in stage.read().groups if group.ref == stage.ref("security_group", OPEN))

    assert [each.unresolved for each in found.rules] == [("pl-others",)]
    assert [each.peers for each in found.rules] == [()]


def test_rules_come_in_pages_of_their_own(stage: Stage) -> None:
    rule = stage.rule(OPEN, 22)
    stage.set_rules(
        OPEN, *(replace(rule, rule_id=f"sgr-bp1{port:017}", ports=((port, port),)) for port in range(1, 1002))
    )
    found = next(group for group in stage.read().groups if group.ref == stage.ref("security_group", OPEN))

    assert len(found.rules) == 1001
    assert stage.asked()["DescribeSecurityGroupAttribute"] == READ["DescribeSecurityGroupAttribute"] + 1


def test_members_reach_one_another_where_the_group_says_so(stage: Stage) -> None:
    apart = stage.ref("security_group", ORDERED)
    groups = tuple(replace(group, peers_may_talk=group.ref != apart) for group in stage.truth.groups)
    stage.place(groups=groups)

    assert {group.ref for group in stage.read().groups if not group.peers_may_talk} == {apart}


def test_an_empty_advanced_group_never_lets_members_talk(stage: Stage) -> None:
    ref = stage.ref("security_group", OPEN).sibling("security_group", "sg-bp1advanced")
    group = SecurityGroup(ref, stage.ref("vpc", TRAINING), stage.group(OPEN).order, (), in_use=False)
    stage.place(groups=(*stage.truth.groups, group))
    stage.cloud.networks.advanced.add(ref.native_id)

    assert plain(stage.read()).groups == plain(stage.truth).groups


def test_groups_of_other_accounts_may_name_an_unused_one(stage: Stage) -> None:
    unused = next(group for group in stage.truth.groups if not group.in_use)
    named = replace(unused, referenced_by=("sg-of-another-account",))
    stage.place(groups=tuple(named if group.ref == unused.ref else group for group in stage.truth.groups))

    assert plain(stage.read()).groups == plain(stage.truth).groups


def test_entries_that_are_not_listed_are_asked_for(stage: Stage) -> None:
    stage.cloud.networks.tells_no_entries.add(stage.ref("access_list", "fence").native_id)

    assert plain(stage.read()) == plain(stage.truth)
    assert stage.asked()["DescribeNetworkAclAttributes"] == 1


def test_two_readings_of_one_session_do_not_mix(stage: Stage) -> None:
    source = AlibabaNetwork(stage.session, now=stage.clock.now)
    elsewhere = replace(stage.shard, region="eu-central-1")

    assert source.read(elsewhere) == NetworkInventory(elsewhere)
    assert plain(source.read(stage.shard)) == plain(stage.truth)
