"""What EC2's lists say of networks, in neutral words, with a session that only hands out pages."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timezone
from decimal import Decimal
from typing import Any, cast

import pytest

from costguard.domain.errors import AccessDeniedError, ProviderError, ThrottledError
from costguard.domain.network import (
    EVERY_PORT,
    AddressState,
    Direction,
    Hop,
    NetworkInventory,
    Permission,
    Route,
    Unpriced,
)
from costguard.domain.refs import ResourceRef, Shard
from costguard.domain.resources import GapKind
from costguard.providers.aws.compute.instances import imds_v1
from costguard.providers.aws.core.session import AwsSession
from costguard.providers.aws.network.source import AwsNetwork

ACCOUNT, OTHER = "111122223333", "444455556666"
SHARD = Shard("aws", ACCOUNT, "us-east-1")
HELD = {"State": "associated"}
Said = dict[str, Any]


class Ec2:
    """Answers lists from what it was given, in pages as large as asked for; `fails` after the pages there are."""

    def __init__(self, lists: Mapping[str, Sequence[Any]], fails: Mapping[str, ProviderError] | None = None) -> None:
        self._lists, self._fails = lists, dict(fails or {})
        self.calls: Counter[str] = Counter()
        self.priced: list[tuple[Shard, Mapping[str, Any]]] = []

    def pages(self, _: Shard, service: str, operation: str, __: str, /, **asked: Any) -> Iterator[list[Said]]:
        assert service == ("pricing" if operation == "GetProducts" else "ec2")
        if operation == "GetProducts":
            self.priced.append((_, asked))
        items = list(self._lists.get(asked.get("PrefixListId", operation), ()))
        failure = self._fails.get(asked.get("PrefixListId", operation))
        size = asked.get("MaxResults", len(items) or 1)
        for start in range(0, max(len(items), 1), size):
            self.calls[operation] += 1
            if failure is not None and start >= len(items) - size:
                raise failure
            yield items[start : start + size]


def read(lists: Mapping[str, Sequence[Any]], shard: Shard = SHARD, **fails: ProviderError) -> NetworkInventory:
    return AwsNetwork(cast("AwsSession", Ec2(lists, fails))).read(shard)


def denied(operation: str) -> AccessDeniedError:
    return AccessDeniedError("no", operation=f"ec2:{operation}", code="UnauthorizedOperation")


def ref(kind: str, native_id: str, account: str = ACCOUNT) -> ResourceRef:
    return ResourceRef("aws", account, "us-east-1", kind, native_id)


VPC: Said = {"VpcId": "vpc-1", "OwnerId": ACCOUNT, "CidrBlock": "10.0.0.0/16"}
SUBNET: Said = {"SubnetId": "subnet-1", "OwnerId": ACCOUNT, "VpcId": "vpc-1", "CidrBlock": "10.0.1.0/24"}
MAIN = {"Main": True, "RouteTableId": "rtb-main", "AssociationState": HELD}
GROUP: Said = {"GroupId": "sg-1", "GroupName": "gpu", "OwnerId": ACCOUNT, "VpcId": "vpc-1"}
RULE: Said = {
    "SecurityGroupRuleId": "sgr-1",
    "GroupId": "sg-1",
    "GroupOwnerId": ACCOUNT,
    "IsEgress": False,
    "IpProtocol": "tcp",
    "FromPort": 22,
    "ToPort": 22,
    "CidrIpv4": "0.0.0.0/0",
}
CARD: Said = {
    "NetworkInterfaceId": "eni-1",
    "OwnerId": ACCOUNT,
    "VpcId": "vpc-1",
    "SubnetId": "subnet-1",
    "Groups": [{"GroupId": "sg-1"}],
    "PrivateIpAddresses": [{"PrivateIpAddress": "10.0.1.5"}],
}
ADDRESS = {"AllocationId": "eipalloc-1", "PublicIp": "198.51.100.7", "PublicIpv4Pool": "amazon"}
NAT = {
    "NatGatewayId": "nat-1",
    "VpcId": "vpc-1",
    "State": "available",
    "CreateTime": datetime(2026, 1, 2, tzinfo=timezone.utc),
    "NatGatewayAddresses": [{"PublicIp": "198.51.100.9", "NetworkInterfaceId": "eni-nat"}],
}
LOG = {"FlowLogId": "fl-1", "ResourceId": "vpc-1", "TrafficType": "ALL", "FlowLogStatus": "ACTIVE"}
PEERING = {
    "VpcPeeringConnectionId": "pcx-1",
    "RequesterVpcInfo": {"OwnerId": OTHER, "VpcId": "vpc-far", "Region": "eu-west-1", "CidrBlock": "10.9.0.0/16"},
    "AccepterVpcInfo": {"OwnerId": ACCOUNT, "VpcId": "vpc-1", "Region": "us-east-1", "CidrBlock": "10.0.0.0/16"},
    "Status": {"Code": "active"},
}


def table(native_id: str = "rtb-main", *routes: Said, associations: Sequence[Said] = (MAIN,)) -> Said:
    return {
        "RouteTableId": native_id,
        "OwnerId": ACCOUNT,
        "VpcId": "vpc-1",
        "Associations": list(associations),
        "Routes": list(routes),
    }


WHOLE: dict[str, list[Said]] = {
    "DescribeVpcs": [VPC],
    "DescribeSubnets": [SUBNET],
    "DescribeRouteTables": [table("rtb-main", {"DestinationCidrBlock": "0.0.0.0/0", "GatewayId": "igw-1"})],
    "DescribeSecurityGroups": [GROUP],
    "DescribeSecurityGroupRules": [RULE],
    "DescribeNetworkAcls": [
        {"NetworkAclId": "acl-1", "VpcId": "vpc-1", "IsDefault": True, "Entries": [], "Associations": []}
    ],
    "DescribeNetworkInterfaces": [CARD],
    "DescribeAddresses": [ADDRESS],
    "DescribeNatGateways": [NAT],
    "DescribeFlowLogs": [LOG],
    "DescribeVpcPeeringConnections": [PEERING],
}
PARTS = {
    "DescribeVpcs": ("vpcs", "vpcs"),
    "DescribeSubnets": ("subnets", "subnets"),
    "DescribeRouteTables": ("routes", "route_tables"),
    "DescribeSecurityGroups": ("groups", "groups"),
    "DescribeNetworkAcls": ("access_lists", "access_lists"),
    "DescribeNetworkInterfaces": ("interfaces", "interfaces"),
    "DescribeAddresses": ("addresses", "addresses"),
    "DescribeNatGateways": ("nat_gateways", "nat_gateways"),
    "DescribeFlowLogs": ("flow_logs", "flow_logs"),
    "DescribeVpcPeeringConnections": ("peerings", "peerings"),
}


def test_a_large_shard_takes_no_request_more_than_its_pages() -> None:
    groups = [{**GROUP, "GroupId": f"sg-{number}", "GroupName": f"g-{number}"} for number in range(5_000)]
    rules = [
        {**RULE, "SecurityGroupRuleId": f"sgr-{number}", "GroupId": f"sg-{number // 2}", "FromPort": 20 + number % 2}
        for number in range(10_000)
    ]
    cards = [{**CARD, "NetworkInterfaceId": f"eni-{number}"} for number in range(2_000)]
    ec2 = Ec2(
        {
            **WHOLE,
            "DescribeSecurityGroups": groups,
            "DescribeSecurityGroupRules": rules,
            "DescribeNetworkInterfaces": cards,
        }
    )
    found = AwsNetwork(cast("AwsSession", ec2)).read(SHARD)
    # groups, rules and interfaces by the thousand; each of the other lists once; two prices
    floor = 5 + 10 + 2 + 8 + 2
    print(f"requests for 5,000 groups, 10,000 rules, 2,000 interfaces: {ec2.calls.total()}, floor {floor}")  # noqa: T201
    assert ec2.calls.total() == floor
    assert (len(found.groups), sum(len(group.rules) for group in found.groups)) == (5_000, 10_000)
    assert found.gaps == ()


@pytest.mark.parametrize(
    ("operation", "wrong"),
    [
        ("DescribeVpcs", {"CidrBlock": 7}),
        ("DescribeVpcs", {"CidrBlock": "10.0.0.0/99"}),
        ("DescribeVpcs", {"Tags": None}),
        ("DescribeSubnets", {"MapPublicIpOnLaunch": "yes"}),
        ("DescribeSubnets", {"VpcId": None}),
        ("DescribeRouteTables", {"Routes": [{"GatewayId": "igw-1"}]}),
        ("DescribeRouteTables", {"Routes": {}}),
        ("DescribeSecurityGroups", {"OwnerId": 1}),
        ("DescribeNetworkAcls", {"Entries": [{"RuleNumber": -4}]}),
        ("DescribeNetworkAcls", {"Entries": [{"RuleNumber": 1, "Protocol": "6", "RuleAction": "maybe"}]}),
        ("DescribeNetworkInterfaces", {"PrivateIpAddresses": [{}]}),
        ("DescribeNetworkInterfaces", {"TagSet": None}),
        ("DescribeNetworkInterfaces", {"Ipv6Addresses": [{"Ipv6Address": "nonsense"}]}),
        ("DescribeAddresses", {"AssociationId": 4}),
        ("DescribeNatGateways", {"State": None}),
        ("DescribeFlowLogs", {"TrafficType": "SOME"}),
        ("DescribeVpcPeeringConnections", {"Status": {}}),
    ],
)
def test_a_field_that_is_not_as_documented_leaves_its_part_unread_and_the_others_whole(
    operation: str, wrong: Said
) -> None:
    found = read({**WHOLE, operation: [{**WHOLE[operation][0], **wrong}]})
    what, name = PARTS[operation]
    assert {(gap.what, gap.kind) for gap in found.gaps} == {(what, GapKind.UNREADABLE)}
    assert all(f"ec2:{operation}" in gap.detail for gap in found.gaps)
    for _, part in PARTS.values():
        assert bool(getattr(found, part)) is (part != name)


@pytest.mark.parametrize("wrong", [{"IsEgress": None}, {"FromPort": 70_000}, {"FromPort": "22"}, {"CidrIpv4": ""}])
def test_a_rule_that_is_not_as_documented_is_a_gap_of_the_groups(wrong: Said) -> None:
    found = read({**WHOLE, "DescribeSecurityGroupRules": [{**RULE, **wrong}]})
    assert [gap.what for gap in found.gaps] == ["groups"]


def test_a_rule_without_direction_is_never_taken_for_one_that_lets_in() -> None:
    rule = {key: value for key, value in RULE.items() if key != "IsEgress"}
    assert [gap.what for gap in read({**WHOLE, "DescribeSecurityGroupRules": [rule]}).gaps] == ["groups"]


def test_where_nothing_could_be_read_the_error_is_told() -> None:
    every = {operation: denied(operation) for operation in (*PARTS, "DescribeSecurityGroupRules")}
    with pytest.raises(AccessDeniedError):
        AwsNetwork(cast("AwsSession", Ec2({}, every))).read(SHARD)


def test_a_list_that_breaks_off_shows_what_it_has_and_is_a_gap() -> None:
    groups = [{**GROUP, "GroupId": f"sg-{number}", "GroupName": f"g-{number}"} for number in range(1_001)]
    slow = ThrottledError("slow down", operation="ec2:DescribeSecurityGroups", code="RequestLimitExceeded")
    found = read({**WHOLE, "DescribeSecurityGroups": groups}, DescribeSecurityGroups=slow)
    assert len(found.groups) == 1_000
    assert [(gap.what, gap.kind) for gap in found.gaps] == [("groups", GapKind.THROTTLED)]


def test_what_comes_twice_is_there_once() -> None:
    found = read({**WHOLE, "DescribeNetworkInterfaces": [CARD, CARD], "DescribeAddresses": [ADDRESS, ADDRESS]})
    assert (len(found.interfaces), len(found.addresses)) == (1, 1)


def test_a_subnet_that_names_nothing_goes_by_the_main_table_and_the_default_list() -> None:
    own = {"SubnetId": "subnet-own", "RouteTableId": "rtb-own", "AssociationState": HELD}
    left = {"SubnetId": "subnet-left", "RouteTableId": "rtb-own", "AssociationState": {"State": "disassociated"}}
    around = {"NetworkAclId": "acl-own", "VpcId": "vpc-1", "Associations": [{"SubnetId": "subnet-own"}]}
    found = read(
        {
            **WHOLE,
            "DescribeSubnets": [{**SUBNET, "SubnetId": name} for name in ("subnet-own", "subnet-left", "subnet-bare")],
            "DescribeRouteTables": [table(), table("rtb-own", associations=[own, left])],
            "DescribeNetworkAcls": [*WHOLE["DescribeNetworkAcls"], around],
        }
    )
    by = {one.ref.native_id: (one.route_table, one.access_list) for one in found.subnets}
    main = (ref("route_table", "rtb-main"), ref("access_list", "acl-1"))
    assert by["subnet-own"] == (ref("route_table", "rtb-own"), ref("access_list", "acl-own"))
    assert by["subnet-left"] == by["subnet-bare"] == main


def test_where_tables_were_not_all_read_no_subnet_is_said_to_go_by_the_main_one() -> None:
    own = {"SubnetId": "subnet-2", "RouteTableId": "rtb-0", "AssociationState": HELD}
    tables = [table(), *(table(f"rtb-{number}", associations=[own]) for number in range(100))]
    lists = {**WHOLE, "DescribeSubnets": [SUBNET, {**SUBNET, "SubnetId": "subnet-2"}], "DescribeRouteTables": tables}
    found = read(lists, DescribeRouteTables=denied("DescribeRouteTables"))
    assert [gap.what for gap in found.gaps] == ["routes"]
    assert [one.route_table is None for one in found.subnets] == [True, False]


@pytest.mark.parametrize(
    ("target", "hop", "names"),
    [
        ({"GatewayId": "local"}, Hop.LOCAL, ""),
        ({"GatewayId": "igw-1"}, Hop.INTERNET, "igw-1"),
        ({"GatewayId": "vgw-1"}, Hop.VPN, "vgw-1"),
        ({"GatewayId": "vpce-1"}, Hop.OTHER, "vpce-1"),
        ({"EgressOnlyInternetGatewayId": "eigw-1"}, Hop.EGRESS_ONLY, "eigw-1"),
        ({"NatGatewayId": "nat-1"}, Hop.NAT, "nat-1"),
        ({"VpcPeeringConnectionId": "pcx-1"}, Hop.PEERING, "pcx-1"),
        ({"InstanceId": "i-1", "NetworkInterfaceId": "eni-1"}, Hop.INSTANCE, "i-1"),
        ({"NetworkInterfaceId": "eni-1"}, Hop.OTHER, "eni-1"),
        ({"TransitGatewayId": "tgw-1"}, Hop.VPN, "tgw-1"),
        ({"LocalGatewayId": "lgw-1"}, Hop.VPN, "lgw-1"),
        ({"CarrierGatewayId": "cagw-1"}, Hop.OTHER, "cagw-1"),
        ({}, Hop.OTHER, ""),
    ],
)
def test_a_route_says_what_it_leads_to(target: Said, hop: Hop, names: str) -> None:
    routes = [{"DestinationIpv6CidrBlock": "::/0", "State": "blackhole", **target}]
    (found,) = read({**WHOLE, "DescribeRouteTables": [table("rtb-main", *routes)]}).route_tables
    assert found.routes == (Route("::/0", hop, names, active=False),)


@pytest.mark.parametrize(
    ("modes", "hop", "active"),
    [
        (["block-bidirectional", "block-bidirectional"], Hop.INTERNET, False),
        (["block-ingress", "block-bidirectional"], Hop.EGRESS_ONLY, True),
        (["block-bidirectional", "off"], Hop.INTERNET, True),
        (["block-ingress", None], Hop.INTERNET, True),
        (["something-new", "block-ingress"], Hop.INTERNET, True),
    ],
)
def test_block_public_access_counts_where_every_subnet_of_a_table_is_behind_it(
    modes: list[str | None], hop: Hop, *, active: bool
) -> None:
    subnets = [
        {**SUBNET, "SubnetId": f"subnet-{number}"}
        | ({"BlockPublicAccessStates": {"InternetGatewayBlockMode": mode}} if mode else {})
        for number, mode in enumerate(modes)
    ]
    (found,) = read({**WHOLE, "DescribeSubnets": subnets}).route_tables
    assert found.routes == (Route("0.0.0.0/0", hop, "igw-1", active),)


@pytest.mark.parametrize(
    ("said", "protocol", "ports"),
    [
        ({"IpProtocol": "tcp", "FromPort": 20, "ToPort": 30}, "tcp", ((20, 30),)),
        ({"IpProtocol": "17", "FromPort": 0, "ToPort": 65535}, "udp", EVERY_PORT),
        ({"IpProtocol": "-1", "FromPort": -1, "ToPort": -1}, "all", EVERY_PORT),
        ({"IpProtocol": "-1", "FromPort": 8, "ToPort": 9}, "all", EVERY_PORT),
        ({"IpProtocol": "icmp", "FromPort": 8, "ToPort": -1}, "icmp", ()),
        ({"IpProtocol": "58", "FromPort": -1, "ToPort": -1}, "icmpv6", ()),
        ({"IpProtocol": "50", "FromPort": -1, "ToPort": -1}, "50", ()),
    ],
)
def test_a_rule_tells_its_protocol_and_ports(said: Said, protocol: str, ports: object) -> None:
    (group,) = read({**WHOLE, "DescribeSecurityGroupRules": [{**RULE, **said}]}).groups
    (rule,) = group.rules
    assert (rule.protocol, rule.ports, rule.priority) == (protocol, ports, 0)


def test_networks_are_in_canonical_form() -> None:
    rules = [{**RULE, "CidrIpv4": "203.0.113.9/8"}, {**RULE, "SecurityGroupRuleId": "sgr-2", "CidrIpv6": "2001:DB8::7"}]
    rules[1].pop("CidrIpv4")
    (group,) = read({**WHOLE, "DescribeSecurityGroupRules": rules}).groups
    assert [rule.peers for rule in group.rules] == [("203.0.0.0/8",), ("2001:db8::7/128",)]


def test_groups_know_who_names_them_and_whether_anything_is_in_them() -> None:
    peer = {key: value for key, value in RULE.items() if key != "CidrIpv4"}
    naming = {**peer, "GroupId": "sg-2", "SecurityGroupRuleId": "sgr-2", "ReferencedGroupInfo": {"GroupId": "sg-1"}}
    second = {**GROUP, "GroupId": "sg-2", "GroupName": "default"}
    lists = {**WHOLE, "DescribeSecurityGroups": [GROUP, second], "DescribeSecurityGroupRules": [RULE, naming]}
    found = {group.ref.native_id: group for group in read(lists).groups}
    assert [(one.in_use, one.referenced_by, one.is_default) for one in found.values()] == [
        (True, ("sg-2",), False),
        (False, (), True),
    ]
    assert found["sg-2"].rules[0].peer_groups == ("sg-1",)
    blind = read(lists, DescribeNetworkInterfaces=denied("DescribeNetworkInterfaces"))
    assert [one.in_use for one in blind.groups] == [None, None]


@pytest.mark.parametrize(
    ("tag", "kept"),
    [("aws:eks:cluster-name", True), ("kubernetes.io/cluster/gpu", True), ("team", False), ("aws:ecs:service", True)],
)
def test_a_group_of_a_cluster_is_a_services(tag: str, *, kept: bool) -> None:
    (group,) = read({**WHOLE, "DescribeSecurityGroups": [{**GROUP, "Tags": [{"Key": tag, "Value": "x"}]}]}).groups
    assert group.is_service_managed is kept


PERMISSION = {"IpProtocol": "tcp", "FromPort": 22, "ToPort": 22, "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}


def test_where_the_list_of_rules_is_denied_the_groups_own_words_are_judged_by_and_are_a_gap() -> None:
    told = {**GROUP, "IpPermissions": [{**PERMISSION, "Ipv6Ranges": [{"CidrIpv6": "::/0"}]}]}
    told["IpPermissionsEgress"] = [{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": "sg-9"}]}]
    found = read(
        {**WHOLE, "DescribeSecurityGroups": [told]}, DescribeSecurityGroupRules=denied("DescribeSecurityGroupRules")
    )
    (gap,) = found.gaps
    assert (gap.what, gap.kind) == ("groups", GapKind.DENIED)
    assert "ec2:DescribeSecurityGroupRules" in gap.fix
    (group,) = found.groups
    assert [(rule.rule_id, rule.direction, rule.peers, rule.peer_groups) for rule in group.rules] == [
        ("1", Direction.INGRESS, ("0.0.0.0/0",), ()),
        ("2", Direction.INGRESS, ("::/0",), ()),
        ("3", Direction.EGRESS, (), ("sg-9",)),
    ]


def test_a_rule_that_went_between_two_lists_counts_and_one_that_came_does_too() -> None:
    jupyter = {**PERMISSION, "FromPort": 8888, "ToPort": 8888}
    told = {**GROUP, "IpPermissions": [PERMISSION, jupyter]}
    (group,) = read({**WHOLE, "DescribeSecurityGroups": [told]}).groups
    assert [(rule.rule_id, rule.ports) for rule in group.rules] == [("sgr-1", ((22, 22),)), ("2", ((8888, 8888),))]
    (group,) = read({**WHOLE, "DescribeSecurityGroups": [GROUP]}).groups
    assert [rule.rule_id for rule in group.rules] == ["sgr-1"]


BY_LIST = {key: value for key, value in RULE.items() if key != "CidrIpv4"} | {"PrefixListId": "pl-1"}


def test_a_prefix_list_is_read_once_for_all_rules_that_name_it() -> None:
    rules = [{**BY_LIST, "SecurityGroupRuleId": f"sgr-{number}"} for number in range(3)]
    entries = [{"Cidr": f"10.0.{number}.0/24"} for number in range(150)]
    ec2 = Ec2({**WHOLE, "DescribeSecurityGroupRules": rules, "pl-1": entries})
    (group,) = AwsNetwork(cast("AwsSession", ec2)).read(SHARD).groups
    assert [len(rule.peers) for rule in group.rules] == [150, 150, 150]
    assert [rule.unresolved for rule in group.rules] == [(), (), ()]
    assert ec2.calls["GetManagedPrefixListEntries"] == 2, "a hundred networks a page"


def test_a_prefix_list_that_cannot_be_read_leaves_its_rule_unresolved_and_says_so() -> None:
    lists = {**WHOLE, "DescribeSecurityGroupRules": [BY_LIST]}
    found = AwsNetwork(cast("AwsSession", Ec2(lists, {"pl-1": denied("GetManagedPrefixListEntries")}))).read(SHARD)
    (rule,) = found.groups[0].rules
    assert (rule.peers, rule.unresolved) == ((), ("pl-1",))
    (gap,) = found.gaps
    assert (gap.what, gap.kind) == ("prefix_lists", GapKind.DENIED)
    assert gap.detail.startswith("pl-1: ")
    assert gap.fix == "grant ec2:GetManagedPrefixListEntries to these credentials"


def test_an_empty_prefix_list_lets_nobody_in() -> None:
    (group,) = read({**WHOLE, "DescribeSecurityGroupRules": [BY_LIST]}).groups
    assert (group.rules[0].peers, group.rules[0].unresolved) == ((), ())


def test_routes_by_a_prefix_list_are_its_networks_and_a_gateway_endpoints_are_left_out() -> None:
    routes = [
        {"DestinationPrefixListId": "pl-1", "GatewayId": "igw-1", "State": "active"},
        {"DestinationPrefixListId": "pl-s3", "GatewayId": "vpce-1", "State": "active"},
    ]
    lists = {**WHOLE, "DescribeRouteTables": [table("rtb-main", *routes)], "pl-1": [{"Cidr": "0.0.0.0/1"}]}
    ec2 = Ec2(lists)
    (found,) = AwsNetwork(cast("AwsSession", ec2)).read(SHARD).route_tables
    assert found.routes == (Route("0.0.0.0/1", Hop.INTERNET, "igw-1"),)
    assert ec2.calls["GetManagedPrefixListEntries"] == 1, "the list of S3 is not asked about"
    unread = AwsNetwork(cast("AwsSession", Ec2(lists, {"pl-1": denied("GetManagedPrefixListEntries")}))).read(SHARD)
    assert unread.route_tables[0].routes == (Route("pl-1", Hop.INTERNET, "igw-1"),)
    assert [gap.what for gap in unread.gaps] == ["prefix_lists"]


def test_an_access_list_is_in_order_and_without_the_last_entries_that_aws_adds() -> None:
    def entry(number: int, action: str, protocol: str = "-1", **more: Any) -> Said:
        said = {"RuleNumber": number, "RuleAction": action, "Protocol": protocol, "Egress": False}
        return {**said, "CidrBlock": "0.0.0.0/0", **more}

    entries = [
        entry(32767, "deny"),
        entry(32768, "deny", Ipv6CidrBlock="::/0"),
        entry(200, "allow"),
        entry(90, "deny", "6", PortRange={"From": 22, "To": 22}),
        entry(95, "allow", "1", IcmpTypeCode={"Type": 8, "Code": -1}),
        entry(96, "allow", "17"),
    ]
    lists = {**WHOLE, "DescribeNetworkAcls": [{**WHOLE["DescribeNetworkAcls"][0], "Entries": entries}]}
    (found,) = read(lists).access_lists
    assert [(one.rule_id, one.priority, one.permission, one.protocol, one.ports) for one in found.rules] == [
        ("90", 90, Permission.DENY, "tcp", ((22, 22),)),
        ("95", 95, Permission.ALLOW, "icmp", ()),
        ("96", 96, Permission.ALLOW, "udp", EVERY_PORT),
        ("200", 200, Permission.ALLOW, "all", EVERY_PORT),
    ]


def test_an_interface_pairs_every_private_address_with_its_public_one() -> None:
    card = {
        **CARD,
        "PrivateIpAddresses": [
            {"PrivateIpAddress": "10.0.1.5", "Association": {"PublicIp": "198.51.100.5"}},
            {"PrivateIpAddress": "10.0.1.6"},
            {"PrivateIpAddress": "10.0.1.7", "Association": {"PublicIp": "198.51.100.7"}},
        ],
        "Attachment": {"InstanceId": "i-1", "DeviceIndex": 0, "NetworkCardIndex": 0},
        "TagSet": [{"Key": "team", "Value": "nlp"}],
    }
    (found,) = read({**WHOLE, "DescribeNetworkInterfaces": [card]}).interfaces
    assert found.private_ips == ("10.0.1.5", "10.0.1.6", "10.0.1.7")
    assert found.public_ips == (("10.0.1.5", "198.51.100.5"), ("10.0.1.7", "198.51.100.7"))
    assert (found.instance, found.primary, found.tags) == (ref("instance", "i-1"), True, {"team": "nlp"})


@pytest.mark.parametrize(
    ("attachment", "primary"),
    [
        ({"InstanceId": "i-1", "DeviceIndex": 1}, False),
        ({"InstanceId": "i-1", "DeviceIndex": 0, "NetworkCardIndex": 1}, False),
        ({"InstanceId": "i-1", "DeviceIndex": 0}, True),
        ({"InstanceId": "i-1"}, None),
        ({"DeviceIndex": 0}, None),
    ],
)
def test_the_first_device_of_the_first_card_is_the_primary_one(attachment: Said, *, primary: bool | None) -> None:
    (found,) = read({**WHOLE, "DescribeNetworkInterfaces": [{**CARD, "Attachment": attachment}]}).interfaces
    assert found.primary is primary


def test_ipv6_counts_as_public_unless_it_is_local_or_of_a_private_pool() -> None:
    cards: list[Said] = [
        {**CARD, "Ipv6Addresses": [{"Ipv6Address": "2001:db8::5"}, {"Ipv6Address": "fd00::5"}]},
        {
            **CARD,
            "NetworkInterfaceId": "eni-2",
            "SubnetId": "subnet-2",
            "Ipv6Addresses": [{"Ipv6Address": "2001:db8::6"}],
        },
    ]
    private = {"Ipv6CidrBlock": "2001:db8::/64", "Ipv6AddressAttribute": "private"}
    pool = {**SUBNET, "SubnetId": "subnet-2", "Ipv6CidrBlockAssociationSet": [private]}
    lists = {**WHOLE, "DescribeNetworkInterfaces": cards, "DescribeSubnets": [SUBNET, pool]}
    assert [card.ipv6_public for card in read(lists).interfaces] == [("2001:db8::5",), ()]


def test_an_ipv6_prefix_of_a_card_counts_by_its_first_address() -> None:
    card = {**CARD, "Ipv6Prefixes": [{"Ipv6Prefix": "2001:db8:0:0:5::/80"}]}
    (found,) = read({**WHOLE, "DescribeNetworkInterfaces": [card]}).interfaces
    assert found.ipv6_public == ("2001:db8:0:0:5::",)


@pytest.mark.parametrize(
    ("said", "state", "bound_to"),
    [
        ({}, AddressState.UNATTACHED, None),
        ({"InstanceId": "i-1", "AssociationId": "x"}, AddressState.IN_USE, ref("instance", "i-1")),
        ({"NetworkInterfaceId": "eni-1"}, AddressState.IN_USE, ref("interface", "eni-1")),
        ({"NetworkInterfaceId": "eni-nat"}, AddressState.IN_USE, ref("nat_gateway", "nat-1")),
        ({"AssociationId": "x"}, AddressState.IN_USE, None),
    ],
)
def test_an_address_with_any_sign_of_use_is_in_use(
    said: Said, state: AddressState, bound_to: ResourceRef | None
) -> None:
    (found,) = read({**WHOLE, "DescribeAddresses": [{**ADDRESS, **said}]}).addresses
    assert (found.state, found.bound_to, found.allocated_at) == (state, bound_to, None)


@pytest.mark.parametrize(
    ("said", "shard", "priced"),
    [
        ({}, SHARD, True),
        ({}, Shard("aws", ACCOUNT, "eu-north-1"), True),
        ({}, Shard("aws-cn", ACCOUNT, "cn-north-1"), False),
        ({"PublicIpv4Pool": "ipv4pool-ec2-1"}, SHARD, False),
        ({"PublicIpv4Pool": ""}, SHARD, False),
    ],
)
def test_only_amazons_own_addresses_have_a_known_price(said: Said, shard: Shard, *, priced: bool) -> None:
    (found,) = read({**WHOLE, "DescribeAddresses": [{**ADDRESS, **said}]}, shard).addresses
    assert (found.rate is not None) is priced
    if found.rate is not None:
        assert (found.rate.money.amount, found.rate.money.currency) == (Decimal("0.005"), "USD")


def listed(group: str, usage: str, price: str, **more: str) -> str:
    """An entry of the price list, as GetProducts hands it out."""
    currency = more.pop("currency", "USD")
    unit = more.pop("unit", "Hrs")
    attributes = {"group": group, "usagetype": usage, "regionCode": "eu-north-1", **more}
    dimensions = {"d": {"unit": unit, "pricePerUnit": {currency: price}}}
    return json.dumps(
        {
            "product": {"attributes": attributes},
            "terms": {"OnDemand": {"t": {"priceDimensions": dimensions}}},
            "publicationDate": "2026-02-27T00:00:00Z",
        }
    )


NORTH = Shard("aws", ACCOUNT, "eu-north-1")
LIST = [
    listed("VPCPublicIPv4Address", "EUN1-PublicIPv4:InUseAddress", "0.0060000000"),
    listed("VPCPublicIPv4Address", "EUN1-PublicIPv4:IdleAddress", "0.0070000000"),
    listed("VPCPublicIPv4Address", "EUN1-PublicIPv4:ContiguousBlock", "0.0080000000"),
    listed("NGW:NatGateway", "EUN1-NatGateway-Hours", "0.0460000000"),
    listed("NGW:NatGateway", "EUN1-RegionalNatGateway-Hours", "0.0990000000"),
    listed("NGW:NatGateway", "EUN1-NatGateway-Bytes", "0.0460000000", unit="GB"),
]


def rates(entries: Sequence[Any], shard: Shard = NORTH, **fails: ProviderError) -> list[Any]:
    """Amount, currency and source of a bound address, an idle one and a gateway; or why there is none."""
    bound = {**ADDRESS, "AllocationId": "eipalloc-2", "PublicIp": "198.51.100.8", "AssociationId": "eipassoc-1"}
    found = read({**WHOLE, "DescribeAddresses": [bound, ADDRESS], "GetProducts": entries}, shard, **fails)
    priced: list[Any] = [*found.addresses, *found.nat_gateways]
    return [
        one.unpriced
        if one.rate is None
        else (str(one.rate.money.amount.normalize()), one.rate.money.currency, one.rate.source, one.rate.as_of)
        for one in priced
    ]


def test_addresses_and_gateways_of_every_region_are_priced_from_the_price_list() -> None:
    live = ("USD", "aws-pricing", "2026-02-27")
    assert rates(LIST) == [("0.006", *live), ("0.007", *live), ("0.046", *live)]


def test_in_china_the_price_list_answers_in_its_own_currency() -> None:
    china = Shard("aws-cn", ACCOUNT, "cn-north-1")
    entry = listed("NGW:NatGateway", "CNN1-NatGateway-Hours", "0.37", currency="CNY", regionCode="cn-north-1")
    assert rates([entry], china) == [
        Unpriced.UNLISTED,
        Unpriced.UNLISTED,
        ("0.37", "CNY", "aws-pricing", "2026-02-27"),
    ]


def test_a_price_list_is_asked_once_a_region_for_what_is_there_and_in_its_own_region() -> None:
    ec2 = Ec2({**WHOLE, "GetProducts": LIST})
    network = AwsNetwork(cast("AwsSession", ec2))
    network.read(NORTH)
    network.read(NORTH)
    assert [(shard.region, asked["ServiceCode"]) for shard, asked in ec2.priced] == [
        ("us-east-1", "AmazonVPC"),
        ("us-east-1", "AmazonEC2"),
    ]
    none = Ec2({**WHOLE, "DescribeAddresses": [], "DescribeNatGateways": []})
    AwsNetwork(cast("AwsSession", none)).read(NORTH)
    assert not none.priced


def test_without_the_price_list_the_table_answers_and_the_rest_is_not_read() -> None:
    table = ("0.005", "USD", "table", "2026-02-09")
    assert rates((), GetProducts=denied("GetProducts")) == [table, table, Unpriced.NOT_READ]
    assert rates((), SHARD, GetProducts=denied("GetProducts"))[2][0] == "0.045"


def test_a_partition_without_a_price_list_is_not_asked() -> None:
    government = Shard("aws-us-gov", ACCOUNT, "us-gov-west-1")
    assert rates((), government, GetProducts=denied("GetProducts")) == [Unpriced.UNLISTED] * 3


@pytest.mark.parametrize(
    "entries",
    [
        [listed("NGW:NatGateway", "EUN1-NatGateway-Hours", "0.01"), listed("NGW:NatGateway", "NatGateway-Hours", "1")],
        [listed("NGW:NatGateway", "EUN1-NatGateway-Hours", "0.0000000000")],
        [listed("NGW:NatGateway", "EUN1-NatGateway-Hours", "1E+999999999")],
        [listed("NGW:NatGateway", "USE1-NatGateway-Hours", "0.01", regionCode="us-east-1")],
        ["", "[]", "{"],
    ],
)
def test_several_prices_none_and_another_regions_are_no_price(entries: list[str]) -> None:
    assert rates(entries)[2] is Unpriced.UNLISTED


@pytest.mark.parametrize("entry", ['{"product": []}', '{"product": {"attributes": {"usagetype": 3}}}'])
def test_an_entry_of_another_form_leaves_the_list_unread(entry: str) -> None:
    assert rates([entry])[2] is Unpriced.NOT_READ


def test_an_address_of_a_service_is_a_services() -> None:
    (found,) = read({**WHOLE, "DescribeAddresses": [{**ADDRESS, "ServiceManaged": "alb"}]}).addresses
    assert found.is_service_managed


@pytest.mark.parametrize("state", ["failed", "deleting", "deleted"])
def test_a_gateway_that_is_no_more_is_not_there(state: str) -> None:
    assert read({**WHOLE, "DescribeNatGateways": [{**NAT, "State": state}]}).nat_gateways == ()


def test_a_gateway_has_a_price_where_the_table_has_one() -> None:
    rates = [
        read(WHOLE, shard).nat_gateways[0].rate
        for shard in (SHARD, Shard("aws", ACCOUNT, "eu-north-1"), Shard("aws-cn", ACCOUNT, "cn-north-1"))
    ]
    assert [rate and rate.money.amount for rate in rates] == [Decimal("0.045"), None, None]


@pytest.mark.parametrize(
    ("said", "active", "traffic"),
    [
        ({}, True, "all"),
        ({"DeliverLogsStatus": "SUCCESS", "TrafficType": "REJECT"}, True, "rejected"),
        ({"DeliverLogsStatus": "FAILED", "TrafficType": "ACCEPT"}, False, "accepted"),
        ({"FlowLogStatus": "DELETING"}, False, "all"),
    ],
)
def test_a_flow_log_whose_records_do_not_arrive_is_not_active(said: Said, *, active: bool, traffic: str) -> None:
    (found,) = read({**WHOLE, "DescribeFlowLogs": [{**LOG, **said}]}).flow_logs
    assert (found.covers, found.active, found.traffic) == (ref("vpc", "vpc-1"), active, traffic)


def test_flow_logs_of_transit_gateways_are_nobodys_here() -> None:
    assert read({**WHOLE, "DescribeFlowLogs": [{**LOG, "ResourceId": "tgw-1"}]}).flow_logs == ()


def test_a_peering_is_told_from_this_end() -> None:
    (found,) = read(WHOLE).peerings
    assert (found.vpc, found.other_account, found.other_region) == (ref("vpc", "vpc-1"), OTHER, "eu-west-1")
    assert (found.other_vpc, found.other_cidrs, found.active) == ("vpc-far", ("10.9.0.0/16",), True)


@pytest.mark.parametrize(
    ("code", "there"), [("pending-acceptance", True), ("deleted", False), ("rejected", False), ("expired", False)]
)
def test_a_peering_that_is_over_is_not_there_and_one_not_yet_accepted_is_not_active(code: str, *, there: bool) -> None:
    found = read({**WHOLE, "DescribeVpcPeeringConnections": [{**PEERING, "Status": {"Code": code}}]}).peerings
    assert [one.active for one in found] == ([False] if there else [])


def test_what_another_account_owns_keeps_that_account() -> None:
    """A shared subnet: its VPC, table and lists are the owner's, the interface in it is ours."""
    shared = {**SUBNET, "OwnerId": OTHER}
    owners = {**table(), "OwnerId": OTHER}
    found = read(
        {
            **WHOLE,
            "DescribeVpcs": [{**VPC, "OwnerId": OTHER}],
            "DescribeSubnets": [shared],
            "DescribeRouteTables": [owners],
        }
    )
    vpc = ref("vpc", "vpc-1", OTHER)
    assert ([one.ref for one in found.vpcs], found.subnets[0].vpc) == ([vpc], vpc)
    assert found.subnets[0].route_table == ref("route_table", "rtb-main", OTHER)
    assert found.groups[0].ref.account == ACCOUNT
    assert (found.groups[0].vpc, found.interfaces[0].vpc, found.flow_logs[0].covers) == (vpc, vpc, vpc)
    assert found.interfaces[0].subnet == ref("subnet", "subnet-1", OTHER)
    assert found.interfaces[0].ref.account == ACCOUNT


def test_machines_of_others_in_a_shared_subnet_are_theirs() -> None:
    theirs = {**CARD, "OwnerId": OTHER, "Attachment": {"InstanceId": "i-1", "InstanceOwnerId": OTHER}}
    (found,) = read({**WHOLE, "DescribeNetworkInterfaces": [theirs]}).interfaces
    assert (found.ref.account, found.instance) == (OTHER, ref("instance", "i-1", OTHER))


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"HttpTokens": "optional", "HttpEndpoint": "enabled"}, True),
        ({"HttpTokens": "optional"}, True),
        ({"HttpTokens": "required", "HttpEndpoint": "enabled"}, False),
        ({"HttpTokens": "optional", "HttpEndpoint": "disabled"}, False),
        ({"HttpTokens": "sometimes"}, None),
        ({}, None),
    ],
)
def test_metadata_answers_without_a_token_unless_it_wants_one_or_is_off(options: Said, *, told: bool | None) -> None:
    assert imds_v1(options) is told
