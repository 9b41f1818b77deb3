"""What Tencent Cloud writes of rules, routes, cards and addresses, and what is made of it."""

from __future__ import annotations

from typing import Any

import pytest

from costguard.domain.network import (
    EVERY_PORT,
    AddressState,
    Direction,
    Hop,
    NetworkInterface,
    NetworkRule,
    Permission,
)
from costguard.domain.refs import ResourceRef, Shard
from costguard.providers.kit.network.reading import network
from costguard.providers.tencent.network.answers import (
    Binding,
    binding,
    to_address,
    to_flow_log,
    to_forward,
    to_interface,
    to_peering,
    to_route_table,
    to_subnet,
    to_vpc,
    with_public,
)
from costguard.providers.tencent.network.rules import (
    UNTOLD_PEER,
    Templates,
    entry_rules,
    group_rules,
    networks_of,
    policy_of,
    ports_of,
    quintuple_rules,
    service_of,
)

SHARD = Shard("tencent", "100012345678", "ap-guangzhou")


def ref(kind: str, native_id: str) -> ResourceRef:
    return ResourceRef(SHARD.cloud, SHARD.account, SHARD.region, kind, native_id)


@pytest.mark.parametrize(
    ("protocol", "said", "ports"),
    [
        ("tcp", "22", ((22, 22),)),
        ("tcp", "80,443", ((80, 80), (443, 443))),
        ("udp", "1000-2000", ((1000, 2000),)),
        ("tcp", "ALL", EVERY_PORT),
        ("tcp", "all", EVERY_PORT),
        ("tcp", "", EVERY_PORT),
        ("all", "ALL", EVERY_PORT),
        ("icmp", "ALL", ()),
        ("gre", "", ()),
    ],
)
def test_ports_are_read_in_every_form(protocol: str, said: str, ports: tuple[tuple[int, int], ...]) -> None:
    assert ports_of(protocol, said) == ports


@pytest.mark.parametrize("said", ["http", "70000", "90-80", "1-2-3", "-", "22;23"])
def test_what_is_no_port_is_not_guessed(said: str) -> None:
    with pytest.raises(ValueError, match="port"):
        ports_of("tcp", said)


def test_networks_have_one_form() -> None:
    assert [network(each) for each in ("0.0.0.0/0", "::/0", "10.1.2.3/8", "192.0.2.7", "2001:DB8::1")] == [
        *("0.0.0.0/0", "::/0", "10.0.0.0/8", "192.0.2.7/32", "2001:db8::1/128"),
    ]
    assert list(networks_of("192.0.2.0-192.0.2.5")) == ["192.0.2.0/30", "192.0.2.4/31"]
    assert list(networks_of("192.0.2.9")) == ["192.0.2.9/32"]


def test_services_are_read_in_every_form() -> None:
    said = ("tcp:80", "UDP:53,123", "tcp:8000-9000", "icmp", "all:all")
    assert [service_of(each) for each in said] == [
        ("tcp", ((80, 80),)),
        ("udp", ((53, 53), (123, 123))),
        ("tcp", ((8000, 9000),)),
        ("icmp", ()),
        ("all", EVERY_PORT),
    ]


def policies(*ingress: dict[str, Any], egress: tuple[dict[str, Any], ...] = ()) -> dict[str, Any]:
    return {"Version": "3", "Ingress": list(ingress), "Egress": list(egress)}


def policy(place: int, **fields: Any) -> dict[str, Any]:
    usual = {"Protocol": "tcp", "Port": "22", "CidrBlock": "0.0.0.0/0", "Action": "ACCEPT"}
    return {"PolicyIndex": place, "Ipv6CidrBlock": "", "SecurityGroupId": "", **usual, **fields}


def test_the_first_rule_is_at_place_0_in_each_direction_whatever_the_order_of_the_answer() -> None:
    said = policies(policy(1, Port="ALL"), policy(0, Action="DROP"), egress=(policy(0, Protocol="ALL", Port="ALL"),))
    found = list(group_rules(said, Templates()))
    assert [(rule.direction.value, rule.rule_id, rule.priority) for rule in found] == [
        ("ingress", "0", 0),
        ("ingress", "1", 1),
        ("egress", "0", 0),
    ]
    assert [rule.permission for rule in found] == [Permission.DENY, Permission.ALLOW, Permission.ALLOW]
    assert found[2].protocol == "all"


@pytest.mark.parametrize(
    "said",
    [
        policies(policy(1)),
        policies(policy(0), policy(0)),
        {"Version": "3", "Ingress": []},
        policies(policy(0, Action="PERHAPS")),
        policies(policy(0, CidrBlock="somewhere")),
        policies({**policy(0), "PolicyIndex": "0"}),
    ],
    ids=["a place is missing", "a place twice", "no egress", "another action", "no network", "a place in quotes"],
)
def test_a_list_that_is_not_as_documented_is_not_believed(said: dict[str, Any]) -> None:
    with pytest.raises((ValueError, LookupError, TypeError)):
        list(group_rules(said, Templates()))


def test_a_rule_whose_peer_is_not_told_may_be_about_anybody() -> None:
    (rule,) = group_rules(policies(policy(0, CidrBlock="")), Templates())
    assert (rule.peers, rule.unresolved) == ((), (UNTOLD_PEER,))


def test_a_template_that_nobody_could_read_stays_a_name_and_one_of_services_may_be_about_anything() -> None:
    """As in the page's example: of what templates stand for there is no field."""
    said = {"PolicyIndex": 0, "Action": "ACCEPT", "AddressTemplate": {"AddressGroupId": "ipmg-1", "AddressId": ""}}
    by_address, by_service = (
        {**said, "Protocol": "tcp", "Port": "22"},
        {**said, "PolicyIndex": 1, "ServiceTemplate": {"ServiceId": "ppm-1", "ServiceGroupId": ""}},
    )
    first, second = group_rules(policies(by_address, by_service), Templates())
    assert (first.protocol, first.ports, first.peers, first.unresolved) == ("tcp", ((22, 22),), (), ("ipmg-1",))
    assert (second.protocol, second.ports, second.unresolved) == ("all", EVERY_PORT, ("ipmg-1", "ppm-1"))


def test_a_rule_that_names_a_template_could_not_be_put_back_whether_or_not_that_was_read() -> None:
    said = policy(0, CidrBlock="", AddressTemplate={"AddressId": "ipm-1", "AddressGroupId": ""})
    for templates in (Templates(), Templates({"ipm-1": ("10.0.0.0/8",)})):
        (rule,) = group_rules(policies(said), templates)
        assert rule.cannot_return == "template"
    (plain,) = group_rules(policies(policy(0)), Templates())
    assert plain.cannot_return == ""


def test_a_rule_is_written_as_its_page_wants_it() -> None:
    def written(protocol: str, ports: tuple[tuple[int, int], ...], **more: Any) -> dict[str, Any] | None:
        peers = more.pop("peers", ("0.0.0.0/0",))
        return policy_of(NetworkRule("0", Direction.INGRESS, Permission.ALLOW, protocol, ports, peers, **more))

    words = {"Action": "ACCEPT", "PolicyDescription": ""}
    assert written("tcp", ((80, 80), (8000, 9000))) == {
        "Protocol": "TCP",
        "Port": "80,8000-9000",
        "CidrBlock": "0.0.0.0/0",
        **words,
    }
    assert written("all", EVERY_PORT) == {"Protocol": "ALL", "Port": "all", "CidrBlock": "0.0.0.0/0", **words}
    six = written("icmpv6", (), peers=("::/0",))
    assert six == {"Protocol": "ICMPV6", "Ipv6CidrBlock": "::/0", **words}
    group = written("udp", EVERY_PORT, peers=(), peer_groups=("sg-1",))
    assert group == {"Protocol": "UDP", "Port": "all", "SecurityGroupId": "sg-1", **words}
    assert written("tcp", EVERY_PORT, peers=("10.0.0.0/8", "192.0.2.0/24")) is None, "that is a template's business"
    assert written("tcp", EVERY_PORT, peers=(), unresolved=("ipm-1",)) is None


def test_entries_of_each_family_count_from_1() -> None:
    entries = [
        {"Protocol": "all", "Ipv6CidrBlock": "::/0", "Action": "Drop", "NetworkAclIpv6EntryId": "six", "Priority": 1},
        {"Protocol": "tcp", "Port": "22", "CidrBlock": "10.0.0.0/8", "Action": "Accept", "Priority": 2}
        | {"NetworkAclIpv4EntryId": "four-2"},
        {"Protocol": "all", "CidrBlock": "0.0.0.0/0", "Action": "Drop", "Priority": 1}
        | {"NetworkAclIpv4EntryId": "four-1"},
    ]
    found = list(entry_rules({"IngressEntries": entries, "EgressEntries": []}))
    assert [(rule.rule_id, rule.priority) for rule in found] == [("six", 0), ("four-1", 0), ("four-2", 1)]
    assert found[2].permission is Permission.ALLOW


def quintuple(**fields: Any) -> dict[str, Any]:
    usual = {
        "Protocol": "TCP",
        "SourcePort": "ALL",
        "SourceCidr": "203.0.113.0/24",
        "DestinationPort": "22",
        "DestinationCidr": "0.0.0.0/0",
        "Action": "DROP",
        "NetworkAclQuintupleEntryId": "five-1",
        "NetworkAclDirection": "INGRESS",
        "Priority": 1,
    }
    return {**usual, **fields}


def test_a_denial_that_says_more_than_the_far_end_is_no_denial_of_all() -> None:
    whole, some, allowed = quintuple_rules(
        [
            quintuple(),
            quintuple(SourcePort="1-1023", Priority=2),
            quintuple(DestinationCidr="10.0.0.7/32", Action="ACCEPT", Priority=3),
        ]
    )
    assert (whole.peers, whole.ports, whole.unresolved) == (("203.0.113.0/24",), ((22, 22),), ())
    assert (some.peers, len(some.unresolved)) == ((), 1)
    assert allowed.peers == ("203.0.113.0/24",), "letting some in counts as letting in all"
    (out,) = quintuple_rules([quintuple(NetworkAclDirection="EGRESS", SourceCidr="0.0.0.0/0", DestinationCidr="::/0")])
    assert (out.direction, out.peers) == (Direction.EGRESS, ("::/0",))


def test_a_vpc_and_a_subnet_have_all_their_networks() -> None:
    vpc = to_vpc(
        SHARD,
        {
            "VpcId": "vpc-1",
            "VpcName": "training",
            "CidrBlock": "10.0.0.0/16",
            "Ipv6CidrBlock": "2001:db8::/56",
            "AssistantCidrSet": [{"CidrBlock": "172.16.0.0/16"}],
            "Ipv6CidrBlockSet": None,
            "IsDefault": True,
            "TagSet": [],
        },
    )
    assert vpc.cidrs == ("10.0.0.0/16", "172.16.0.0/16", "2001:db8::/56")
    assert (vpc.is_default, vpc.needs_gateway) == (True, False)
    subnet = to_subnet(SHARD, {"SubnetId": "subnet-1", "VpcId": "vpc-1", "CidrBlock": "10.0.1.0/24", "TagSet": []})
    assert (subnet.route_table, subnet.access_list) == (None, None)


def test_routes_lead_where_their_gateway_says_and_the_ways_within_come_from_the_vpc() -> None:
    def route(kind: str, **more: Any) -> dict[str, Any]:
        usual = {"DestinationCidrBlock": "0.0.0.0/0", "DestinationIpv6CidrBlock": "", "GatewayId": "g-1"}
        return {**usual, "GatewayType": kind, **more}

    said = [
        route("EIP", GatewayId="0"),
        route("NAT", Enabled=False),
        route("PEERCONNECTION", DestinationCidrBlock="", DestinationIpv6CidrBlock="2001:db8:1::/64"),
        route("NORMAL_CVM"),
        route("DIRECTCONNECT"),
        route("CCN"),
        route("A_NEW_ONE"),
    ]
    item = {"RouteTableId": "rtb-1", "VpcId": "vpc-1", "Main": True, "RouteSet": said}
    table = to_route_table(SHARD, item, {ref("vpc", "vpc-1"): ("10.0.0.0/16",)})
    hops = [Hop.LOCAL, Hop.INTERNET, Hop.NAT, Hop.PEERING, Hop.INSTANCE, Hop.VPN, Hop.VPN, Hop.OTHER]
    assert [each.hop for each in table.routes] == hops
    assert [each.active for each in table.routes] == [True, True, False, True, True, True, True, True]
    assert (table.routes[1].target, table.routes[3].destination) == ("", "2001:db8:1::/64")


def card(**fields: Any) -> dict[str, Any]:
    usual: dict[str, Any] = {
        "NetworkInterfaceId": "eni-1",
        "VpcId": "vpc-1",
        "SubnetId": "subnet-1",
        "GroupSet": ["sg-2", "sg-1"],
        "Primary": True,
        "PrivateIpAddressSet": [{"PrivateIpAddress": "10.0.0.4", "Primary": True, "PublicIpAddress": ""}],
        "Attachment": {"InstanceId": "ins-1"},
        "Ipv6AddressSet": [],
        "TagSet": [],
    }
    return {**usual, **fields}


def test_a_card_belongs_to_a_machine_only_where_it_is_one() -> None:
    assert to_interface(SHARD, card()).instance == ref("instance", "ins-1")
    assert to_interface(SHARD, card()).groups == ("sg-2", "sg-1"), "their order decides"
    assert to_interface(SHARD, card(Attachment=None)).instance is None
    assert to_interface(SHARD, card(Attachment={"InstanceId": "eks-1"})).instance is None


def test_ipv6_is_public_unless_it_is_known_to_be_private() -> None:
    six = [
        {"Address": "2001:db8::1", "AddressType": "GUA"},
        {"Address": "2001:db8::2"},
        {"Address": "fd00::1", "AddressType": "ULA", "PublicIpAddress": ""},
        {"Address": "fd00::2", "AddressType": "ULA", "PublicIpAddress": "2001:db8::3"},
    ]
    found = to_interface(SHARD, card(Ipv6AddressSet=six))
    assert found.ipv6_public == ("2001:db8::1", "2001:db8::2", "2001:db8::3")


@pytest.mark.parametrize("key", ["PrivateIpAddressSet", "GroupSet"])
def test_a_card_without_addresses_or_groups_is_not_believed(key: str) -> None:
    with pytest.raises(ValueError, match=key):
        to_interface(SHARD, {name: value for name, value in card().items() if name != key})


def address(**fields: Any) -> dict[str, Any]:
    usual: dict[str, Any] = {
        "AddressId": "eip-1",
        "AddressName": None,
        "AddressIp": "203.0.113.9",
        "AddressStatus": "BIND",
        "AddressType": "EIP",
        "InstanceId": "ins-1",
        "InstanceType": "CVM",
        "NetworkInterfaceId": "eni-1",
        "PrivateAddressIp": "10.0.0.4",
        "CreatedTime": "2026-01-02T03:04:05Z",
        "TagSet": [],
    }
    return {**usual, **fields}


def test_the_status_of_an_address_counts_and_not_the_machine_that_it_still_tells() -> None:
    """As in the vendor's own example: UNBIND, with the machine that it had been bound to."""
    found = to_address(SHARD, address(AddressStatus="UNBIND"))
    assert (found.state, found.bound_to) == (AddressState.UNATTACHED, None)
    assert binding(SHARD, address(AddressStatus="UNBIND")) is None


@pytest.mark.parametrize(
    ("fields", "state", "bound_to"),
    [
        ({}, AddressState.IN_USE, ref("instance", "ins-1")),
        ({"InstanceId": "nat-1", "InstanceType": "NAT"}, AddressState.IN_USE, ref("nat_gateway", "nat-1")),
        ({"InstanceId": "lb-1", "InstanceType": "CLB"}, AddressState.IN_USE, ref("load_balancer", "lb-1")),
        ({"InstanceType": "ENI"}, AddressState.IN_USE, ref("instance", "ins-1")),
        ({"AddressStatus": "BIND_ENI", "InstanceId": None}, AddressState.IN_USE, ref("interface", "eni-1")),
        ({"AddressStatus": "UNBINDING"}, AddressState.CHANGING, ref("instance", "ins-1")),
        ({"AddressStatus": "A_NEW_ONE"}, AddressState.UNKNOWN, ref("instance", "ins-1")),
    ],
    ids=["machine", "gateway", "balancer", "a machine's further card", "a card alone", "changing", "a new word"],
)
def test_what_an_address_is_bound_to(fields: dict[str, Any], state: AddressState, bound_to: ResourceRef) -> None:
    found = to_address(SHARD, address(**fields))
    assert (found.state, found.bound_to) == (state, bound_to)


def test_an_address_of_a_term_or_of_a_package_is_told_as_such() -> None:
    assert to_address(SHARD, address(InternetChargeType="BANDWIDTH_PREPAID_BY_MONTH")).is_prepaid
    assert to_address(SHARD, address(AntiDDoSPackageId="bgp-1")).is_service_managed


def test_an_address_without_its_tags_is_not_believed() -> None:
    """The tag that protects could be among them."""
    with pytest.raises(ValueError, match="TagSet"):
        to_address(SHARD, {key: value for key, value in address().items() if key != "TagSet"})


def test_public_addresses_that_cards_do_not_tell_are_added_once() -> None:
    machine = ref("instance", "ins-1")
    known = NetworkInterface(
        ref("interface", "eni-1"), None, None, machine, ("10.0.0.4",), (("10.0.0.4", "203.0.113.1"),)
    )
    cards = [known, NetworkInterface(ref("interface", "eni-2"), None, None, machine, ("10.0.0.5",))]
    found = with_public(
        cards,
        [
            Binding("203.0.113.1", known.ref, machine, "10.0.0.4"),
            Binding("203.0.113.2", None, machine, ""),
            Binding("203.0.113.3", ref("interface", "eni-2"), None, "10.0.0.5"),
        ],
    )
    assert [each.public_ips for each in found] == [
        (("10.0.0.4", "203.0.113.1"), ("10.0.0.4", "203.0.113.2")),
        (("10.0.0.5", "203.0.113.3"),),
    ]


def test_a_flow_log_counts_while_it_is_on_and_its_topic_is_there() -> None:
    def log(**fields: Any) -> dict[str, Any]:
        usual = {"FlowLogId": "fl-1", "ResourceType": "NETWORKINTERFACE", "ResourceId": "eni-1", "TrafficType": "ALL"}
        return {**usual, "Enable": True, "CloudLogState": "SUCCESS", **fields}

    found = [to_flow_log(SHARD, each) for each in (log(), log(Enable=False), log(CloudLogState="DELETED"))]
    assert [each is not None and each.active for each in found] == [True, False, False]
    older = to_flow_log(SHARD, log(ResourceType="VPC", ResourceId="vpc-1", TrafficType="REJECT"))
    assert older is not None
    assert (older.covers, older.traffic) == (ref("vpc", "vpc-1"), "rejected")
    assert to_flow_log(SHARD, log(ResourceType="CCN", ResourceId="ccn-1")) is None


def test_a_peering_is_told_from_our_own_end_with_whole_names_of_regions() -> None:
    item = {
        "PeeringConnectionId": "pcx-1",
        "SourceVpcId": "vpc-theirs",
        "PeerVpcId": "vpc-ours",
        "SourceRegion": "sh",
        "DestinationRegion": "gz",
        "SourceUin": 100087654321,
        "DestinationUin": 100012345678,
        "State": "ACTIVE",
        "TagSet": [],
    }
    theirs = to_peering(SHARD, item, frozenset({"vpc-ours"}))
    assert (theirs.vpc.native_id, theirs.other_vpc) == ("vpc-ours", "vpc-theirs")
    assert (theirs.other_account, theirs.other_region) == ("100087654321", "ap-shanghai")
    ours = to_peering(SHARD, item, frozenset({"vpc-ours", "vpc-theirs"}))
    assert (ours.vpc.native_id, ours.other_region) == ("vpc-theirs", "ap-guangzhou")
    assert not to_peering(SHARD, {**item, "State": "PENDING"}, frozenset()).active


def test_a_forward_leads_one_port() -> None:
    said = {"IpProtocol": "TCP", "PublicIpAddress": "203.0.113.9", "PublicPort": 8022}
    found = to_forward({**said, "PrivateIpAddress": "10.0.0.4", "PrivatePort": 22})
    assert (found.protocol, found.public_ports, found.private_ports) == ("tcp", ((8022, 8022),), ((22, 22),))
