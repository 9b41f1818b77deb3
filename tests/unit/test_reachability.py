"""Who is reached from the internet, by what, and what cannot be told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from tests.network_places import (
    ALIBABA,
    AWS,
    LOCAL,
    OUT,
    PUBLIC,
    TENCENT,
    WORLD,
    address,
    allow,
    card,
    deny,
    entries,
    gap,
    group,
    instance,
    out,
    place,
    ref,
)

from costguard.domain.network import (
    AddressState,
    Forward,
    Hop,
    NatGateway,
    NetworkInventory,
    Peering,
    Route,
    RuleOrder,
    Subnet,
    Vpc,
)
from costguard.domain.refs import Shard
from costguard.domain.resources import Instance, InstanceState
from costguard.guards.network.reachability.exposure import Path, PossibleWay, reach

OFFICE = "198.51.100.0/24"
ASKED_V6 = "2001:db8::7"
NAT = "198.51.100.9"
EVERYTHING_OUT = out("out")


def paths(*inventories: NetworkInventory, instances: Sequence[Instance] = ()) -> tuple[Path, ...]:
    found = reach(inventories, instances or [instance(shard=inventories[0].shard)])
    assert found.doubts == ()
    return found.paths


def doubts(*inventories: NetworkInventory, instances: Sequence[Instance] = ()) -> tuple[PossibleWay, ...]:
    found = reach(inventories, instances or [instance(shard=inventories[0].shard)])
    assert found.paths == ()
    return found.doubts


def parts(*inventories: NetworkInventory, instances: Sequence[Instance] = ()) -> set[tuple[str, str]]:
    return {(doubt.part, doubt.detail) for doubt in doubts(*inventories, instances=instances)}


def opened(*inventories: NetworkInventory) -> list[tuple[str, tuple[str, ...]]]:
    """The ports and who reaches them."""
    return [(f"{path.ports[0][0]}-{path.ports[0][1]}", path.peers) for path in paths(*inventories)]


def test_a_path_names_everything_it_goes_through() -> None:
    rule, entry, answer = allow("sgr-1", 22), allow("100"), out("100")
    listed = entries(entry, answer)
    assert paths(place(group(rule, version="7"), listed=listed)) == (
        Path(
            instance=ref("instance", "i-1"),
            family=4,
            protocol="tcp",
            ports=((22, 22),),
            public_ports=((22, 22),),
            peers=(WORLD,),
            address=PUBLIC,
            interface=ref("interface", "eni-1"),
            group=ref("security_group", "sg-1"),
            rule=rule,
            group_version="7",
            access_list=listed.ref,
            entry=entry,
            answer=answer,
            route=OUT,
            gateway="igw-1",
        ),
    )


def test_who_gets_in_is_what_every_part_lets_in() -> None:
    """The group opens to two networks, the list to one of them and to others: the network that is in both remains."""
    rule = allow("sgr-1", 22, 80, peers=("198.51.100.0/24", "8.8.8.0/24"))
    listed = entries(allow("100", 22, 443, peers=("198.51.100.128/25", "9.0.0.0/8")), EVERYTHING_OUT)
    assert opened(place(group(rule), listed=listed)) == [("22-22", ("198.51.100.128/25",))]


def test_private_peers_are_not_the_internet() -> None:
    assert paths(place(group(allow("sgr-1", 22, peers=("10.0.0.0/8", "192.168.0.0/16"))))) == ()


def test_without_a_public_address_nothing_reaches_it() -> None:
    assert paths(place(group(allow()), cards=[card(public_ips=())])) == ()


def test_a_rule_without_a_match_in_the_access_list_is_denied() -> None:
    assert paths(place(group(allow("sgr-1", 22)), listed=entries(allow("100", 80), EVERYTHING_OUT))) == ()
    denied = entries(deny("90", 22), allow("100"), EVERYTHING_OUT)
    assert paths(place(group(allow("sgr-1", 22)), listed=denied)) == ()
    turned = entries(replace(allow("100"), priority=1), replace(deny("90", 22), priority=2), EVERYTHING_OUT)
    assert opened(place(group(allow("sgr-1", 22)), listed=turned)) == [("22-22", (WORLD,))]


@pytest.mark.parametrize(
    ("ports", "is_open"),
    [(((0, 65535),), True), (((32768, 60999),), True), (((1024, 1024),), True), (((0, 1023),), False)],
)
def test_answers_need_a_way_out_of_a_stateless_list_on_the_ports_that_askers_use(ports: Any, *, is_open: bool) -> None:
    listed = entries(allow("100"), out("100", ports=ports))
    assert bool(paths(place(group(allow("sgr-1", 22)), listed=listed))) is is_open


def test_answers_that_several_entries_let_out_are_one_path() -> None:
    some = out("90", ports=((32768, 60999),), priority=90)
    (path,) = paths(place(group(allow("r", 22)), listed=entries(allow("100"), some, out("100", priority=100))))
    assert path.answer == some


def test_answers_go_only_to_whom_the_list_lets_them() -> None:
    listed = entries(allow("100"), out("100", peers=(OFFICE,)))
    assert opened(place(group(allow("sgr-1", 22)), listed=listed)) == [("22-22", (OFFICE,))]


def test_a_group_answers_by_itself() -> None:
    """Groups are stateful: what they let in may answer, whatever they say of the way out."""
    closed_out = deny("e", direction=out("x").direction, protocol="all")
    assert opened(place(group(allow("sgr-1", 22), closed_out, order=RuleOrder.FIRST_MATCH))) == [("22-22", (WORLD,))]


def test_answers_leave_by_the_longest_prefix() -> None:
    nat, to_peer = Route(WORLD, Hop.NAT, "nat-1"), Route("198.51.0.0/16", Hop.OTHER, "tgw-1")
    assert paths(place(group(allow("sgr-1", 22)), routes=(LOCAL, nat))) == ()
    assert opened(place(group(allow("sgr-1", 22)), routes=(LOCAL, nat, Route(OFFICE, Hop.INTERNET, "igw-1")))) == [
        ("22-22", (OFFICE,))
    ]
    inside = allow("sgr-1", 22, peers=(OFFICE,))
    assert paths(place(group(inside), routes=(LOCAL, OUT, to_peer))) == ()
    assert paths(place(group(inside), routes=(LOCAL, OUT, replace(to_peer, destination="198.0.0.0/8")))) == ()
    assert paths(place(group(inside), routes=(LOCAL, replace(to_peer, destination="0.0.0.0/0")))) == ()


def test_a_dead_route_lets_nothing_out() -> None:
    gone = replace(OUT, active=False)
    assert paths(place(group(allow()), routes=(LOCAL, gone))) == ()
    assert paths(place(group(allow()), routes=(LOCAL, OUT, Route("0.0.0.0/1", Hop.INTERNET, active=False))))[
        0
    ].peers == ("128.0.0.0/1",)
    assert paths(place(group(allow(), shard=ALIBABA), shard=ALIBABA, routes=(gone,))) == ()


def test_where_an_address_suffices_no_route_is_needed_and_a_default_one_does_no_harm() -> None:
    for routes in ((), (LOCAL,), (Route(WORLD, Hop.NAT, "ngw-1"),), (Route(WORLD, Hop.INSTANCE, "i-9"),)):
        assert opened(place(group(allow("r", 22), shard=ALIBABA), shard=ALIBABA, routes=routes)) == [
            ("22-22", (WORLD,))
        ]
        (path,) = paths(place(group(allow("r", 22), shard=ALIBABA), shard=ALIBABA, routes=routes))
        assert (path.route, path.gateway) == (None, "")
    elsewhere = (Route("0.0.0.0/1", Hop.OTHER, "cen-1"),)
    assert opened(place(group(allow("r", 22), shard=ALIBABA), shard=ALIBABA, routes=elsewhere)) == [
        ("22-22", ("128.0.0.0/1",))
    ]


def test_a_list_of_networks_as_destination_is_a_doubt_only_where_it_leads_to_the_internet() -> None:
    endpoint, inward = Route("pl-1", Hop.OTHER, "vpce-1"), Route("pl-2", Hop.INTERNET, "igw-1")
    assert opened(place(group(allow("r", 22)), routes=(LOCAL, OUT, endpoint))) == [("22-22", (WORLD,))]
    assert paths(place(group(allow("r", 22)), routes=(LOCAL, endpoint))) == ()
    assert parts(place(group(allow("r", 22)), routes=(LOCAL, inward))) == {("routes", "pl-2 could not be resolved")}
    dead, translated = replace(OUT, active=False), Route("pl-1", Hop.NAT, "ngw-1")
    assert paths(place(group(allow("r", 22), shard=ALIBABA), shard=ALIBABA, routes=(dead, translated))) == ()


def test_ipv6_has_its_own_rules_routes_and_addresses() -> None:
    both = group(allow("v4", 22), allow("v6", 22, peers=("::/0",)))
    cards = [card(ipv6_public=(ASKED_V6,))]
    out_v6 = Route("::/0", Hop.INTERNET, "igw-1")
    found = paths(place(both, cards=cards, routes=(LOCAL, OUT, out_v6)))
    assert [(path.family, path.address, path.rule.rule_id, path.peers) for path in found] == [
        (4, PUBLIC, "v4", (WORLD,)),
        (6, ASKED_V6, "v6", ("::/0",)),
    ]
    only_out = replace(out_v6, hop=Hop.EGRESS_ONLY)
    assert [path.family for path in paths(place(both, cards=cards, routes=(LOCAL, OUT, only_out)))] == [4]
    there = place(
        replace(both, ref=ref("security_group", "sg-1", ALIBABA)),
        cards=[card(shard=ALIBABA, ipv6_public=(ASKED_V6,))],
        shard=ALIBABA,
        routes=(only_out,),
    )
    assert [path.family for path in paths(there)] == [4]


def test_aws_adds_its_groups_up() -> None:
    cards = [card(groups=("sg-1", "sg-2"))]
    found = paths(place(group(allow("a", 22)), group(allow("b", 22, 80), native_id="sg-2"), cards=cards))
    assert [(path.group.native_id, path.rule.rule_id) for path in found] == [("sg-1", "a"), ("sg-2", "b")]


def test_what_adds_up_has_no_denials() -> None:
    assert paths(place(group(deny("d", 22)))) == ()
    assert opened(place(group(deny("d", 22), allow("a", 22)))) == [("22-22", (WORLD,))]


def test_alibaba_reads_the_rules_of_all_groups_by_priority_and_of_equals_the_denial_first() -> None:
    cards = [card(shard=ALIBABA, groups=("sg-1", "sg-2"))]

    def here(first: Any, second: Any) -> list[Any]:
        of_second = group(second, native_id="sg-2", shard=ALIBABA)
        return opened(place(group(first, shard=ALIBABA), of_second, cards=cards, shard=ALIBABA))

    assert here(allow("a", 22, priority=5), deny("d", 22, priority=1)) == []
    assert here(allow("a", 22, priority=5), deny("d", 22, priority=5)) == []
    assert here(allow("a", 22, priority=5), deny("d", 22, priority=6)) == [("22-22", (WORLD,))]
    assert here(deny("d", 22, priority=2, peers=("128.0.0.0/1",)), allow("a", 22, priority=3)) == [
        ("22-22", ("0.0.0.0/1",))
    ]


def test_tencent_goes_through_the_groups_in_their_order_and_each_from_its_top() -> None:
    opens = group(allow("0", 22, priority=0), shard=TENCENT)
    bars = group(deny("0", 22, priority=0), native_id="sg-2", shard=TENCENT)

    def here(*names: str) -> list[Any]:
        return opened(place(opens, bars, cards=[card(shard=TENCENT, groups=names)], shard=TENCENT))

    assert here("sg-1", "sg-2") == [("22-22", (WORLD,))]
    assert here("sg-2", "sg-1") == []
    turned = group(allow("1", 22, priority=1), deny("0", 22, priority=0), shard=TENCENT)
    assert opened(place(turned, shard=TENCENT)) == []


def test_what_nothing_is_said_of_is_denied() -> None:
    for shard in (AWS, ALIBABA, TENCENT):
        assert paths(place(group(shard=shard), shard=shard)) == ()


def test_all_protocols_are_every_one_and_a_number_is_its_name() -> None:
    every = paths(place(group(allow("r", protocol="all"))))
    assert [(path.protocol, path.ports) for path in every] == [
        ("tcp", ((0, 65535),)),
        ("udp", ((0, 65535),)),
        ("icmp", ()),
    ]
    assert [path.protocol for path in paths(place(group(allow("r", 22, protocol="6"))))] == ["tcp"]
    assert [path.protocol for path in paths(place(group(allow("r", protocol="gre", ports=()))))] == ["gre"]


def test_tcp_without_ports_is_not_told_and_never_every_port() -> None:
    assert parts(place(group(allow("r", ports=())))) == {("groups", "sg-1 r: which ports is not told")}


def test_an_address_that_only_its_listing_or_the_instance_tells_counts() -> None:
    bare = [card(public_ips=())]
    kept = address(ip=PUBLIC, state=AddressState.IN_USE, bound_to=ref("instance", "i-1"))
    assert [path.address for path in paths(place(group(allow("r", 22)), cards=bare, addresses=(kept,)))] == [PUBLIC]
    by_card = replace(kept, bound_to=ref("interface", "eni-1"))
    assert [path.address for path in paths(place(group(allow("r", 22)), cards=bare, addresses=(by_card,)))] == [PUBLIC]
    told = [instance(public_ip=PUBLIC)]
    assert [path.address for path in paths(place(group(allow("r", 22)), cards=bare), instances=told)] == [PUBLIC]


def test_a_card_in_no_network_is_reached_by_its_address_alone() -> None:
    classic = card(shard=ALIBABA, vpc=None, subnet=None)
    assert opened(place(group(allow("r", 22), shard=ALIBABA), cards=[classic], shard=ALIBABA)) == [("22-22", (WORLD,))]


def test_an_instance_that_is_gone_is_not_reached_and_a_stopped_one_will_be() -> None:
    here = place(group(allow("r", 22)))
    assert paths(here, instances=[instance(state=InstanceState.TERMINATED)]) == ()
    assert len(paths(here, instances=[instance(state=InstanceState.STOPPED)])) == 1


# forwards


def forwarding(forward: Forward, shard: Shard = ALIBABA, native_id: str = "ngw-1") -> NatGateway:
    return NatGateway(ref("nat_gateway", native_id, shard), ref("vpc", "vpc-1", shard), (NAT,), forwards=(forward,))


SSH = Forward("tcp", NAT, ((2222, 2222),), "10.0.0.7", ((22, 22),), "fwd-1")
BACK = Route(WORLD, Hop.NAT, "ngw-1")


def behind(*gateways: NatGateway, routes: Sequence[Route] = (BACK,), **changes: Any) -> NetworkInventory:
    hidden = [card(shard=ALIBABA, public_ips=())]
    rules = group(allow("r", 22, 80), shard=ALIBABA)
    return place(rules, shard=ALIBABA, cards=hidden, routes=routes, nat_gateways=gateways, **changes)


def test_a_forward_leads_in_on_its_own_ports_and_nothing_else() -> None:
    (path,) = paths(behind(forwarding(SSH)))
    assert (path.ports, path.public_ports, path.address, path.gateway) == (((22, 22),), ((2222, 2222),), NAT, "ngw-1")
    assert path.forward == SSH
    moved = replace(SSH, public_ports=((1000, 1100),), private_ports=((0, 100),))
    assert [each.public_ports for each in paths(behind(forwarding(moved)))] == [((1022, 1022), (1080, 1080))]
    every = replace(SSH, protocol="any", public_ports=(), private_ports=())
    assert [each.public_ports for each in paths(behind(forwarding(every)))] == [((22, 22), (80, 80))]
    assert paths(behind(forwarding(replace(SSH, protocol="udp")))) == ()
    assert paths(behind(forwarding(replace(SSH, private_ip="10.0.0.8")))) == ()
    assert paths(behind(replace(forwarding(SSH), is_private=True))) == ()


def test_the_answers_of_a_forward_go_back_to_its_gateway_or_nowhere() -> None:
    for routes in ((), (Route(WORLD, Hop.NAT, "ngw-2"),), (replace(BACK, active=False),), (OUT,)):
        assert paths(behind(forwarding(SSH), routes=routes)) == ()
    beyond = behind(forwarding(SSH), routes=(Route(WORLD, Hop.OTHER, "cen-1"),))
    assert parts(beyond) == {("routes", "answers go to cen-1, which is not followed")}


FAR = Shard("alibaba", "1234567890123456", "cn-beijing")


def far_end(*, knows: bool = True, told_by: Shard = FAR, active: bool = True, **parts: Any) -> NetworkInventory:
    """A network in another region with the gateway, joined to the one that the instance is in."""
    own = Vpc(ref("vpc", "vpc-9", FAR), ("10.9.0.0/16",), needs_gateway=False)
    gateway = replace(forwarding(SSH, FAR), vpc=own.ref)
    ends = (peering(FAR, "vpc-9", ALIBABA, "vpc-1", active=active),) if knows and told_by == FAR else ()
    return NetworkInventory(FAR, vpcs=(own,), nat_gateways=(gateway,), peerings=ends, **parts)


def peering(shard: Shard, vpc: str, other: Shard, other_vpc: str, *, active: bool = True) -> Peering:
    far = (other.account, other.region, other_vpc)
    return Peering(ref("peering", "pcc-1", shard), ref("vpc", vpc, shard), *far, other_cidrs=(), active=active)


def near_end(**changes: Any) -> NetworkInventory:
    ends = (peering(ALIBABA, "vpc-1", FAR, "vpc-9"),)
    return behind(routes=(LOCAL, Route(WORLD, Hop.PEERING, "pcc-1")), **{"peerings": ends, **changes})


def test_a_path_that_crosses_shards_is_told_once() -> None:
    """Both ends tell of the peering; the gateway in one region leads to the instance in the other, and that once."""
    (path,) = paths(near_end(), far_end())
    assert (path.instance.region, path.address, path.gateway) == ("cn-hangzhou", NAT, "pcc-1")
    assert len(paths(near_end(), far_end(knows=False))) == 1
    assert (
        paths(near_end(peerings=(peering(ALIBABA, "vpc-1", FAR, "vpc-9", active=False),)), far_end(active=False)) == ()
    )


def test_answers_over_another_peering_do_not_come_back() -> None:
    """Neither to a gateway behind another network, nor to one in the instance's own."""
    elsewhere = replace(peering(ALIBABA, "vpc-1", FAR, "vpc-8"), ref=ref("peering", "pcc-2", ALIBABA))
    both = (peering(ALIBABA, "vpc-1", FAR, "vpc-9"), elsewhere)
    astray = behind(routes=(LOCAL, Route(WORLD, Hop.PEERING, "pcc-2")), peerings=both)
    assert paths(astray, far_end()) == ()
    shut = near_end(peerings=(peering(ALIBABA, "vpc-1", FAR, "vpc-9", active=False),))
    assert paths(shut, far_end()) == ()
    own = replace(near_end(), nat_gateways=(forwarding(SSH),))
    assert paths(own, replace(far_end(), nat_gateways=())) == ()


def test_a_path_that_may_come_through_an_unread_shard_is_a_doubt_and_never_closed() -> None:
    assert parts(near_end()) == {("nat_gateways", "alibaba:1234567890123456:cn-beijing was not read")}
    unread = far_end(gaps=(gap("nat_gateways", FAR),))
    assert parts(near_end(), replace(unread, nat_gateways=())) == {("nat_gateways", "denied: not authorised")}
    assert doubts(near_end())[0].ports == ((22, 22), (80, 80))


def test_a_forward_into_an_unread_shard_is_a_doubt_about_the_gateway() -> None:
    found = reach([far_end()], [])
    assert [(doubt.subject.kind, doubt.part, doubt.address) for doubt in found.doubts] == [
        ("nat_gateway", "interfaces", NAT)
    ]
    assert reach([far_end(knows=False)], []).doubts == ()
    assert reach([far_end(active=False)], []).doubts == ()
    untold = far_end(knows=False, gaps=(gap("peerings", FAR),))
    assert [doubt.part for doubt in reach([untold], []).doubts] == ["peerings"]


def test_who_is_reached_only_through_a_joined_network_is_not_reached_from_the_internet() -> None:
    hidden = card(public_ips=())
    joined = peering(AWS, "vpc-1", Shard("aws", "444455556666", "us-east-1"), "vpc-9")
    to_peer = Route("10.9.0.0/16", Hop.PEERING, "pcc-1")
    assert paths(place(group(allow()), cards=[hidden], routes=(LOCAL, OUT, to_peer), peerings=(joined,))) == ()


# what was not read


@pytest.mark.parametrize("part", ["vpcs", "subnets", "routes", "access_lists"])
def test_what_depends_on_a_part_that_was_not_read_is_a_doubt(part: str) -> None:
    assert parts(place(group(allow("r", 22)), gaps=(gap(part),))) == {(part, "denied: not authorised")}


def test_what_is_closed_whatever_an_unread_part_says_is_closed() -> None:
    closed = entries(EVERYTHING_OUT)
    for part in ("groups", "routes"):
        assert paths(place(group(allow("r", 22)), listed=closed, gaps=(gap(part),))) == ()
    assert paths(place(group(), gaps=(gap("routes"), gap("vpcs")))) == ()


def test_rules_that_add_up_open_what_they_say_though_other_groups_were_not_read() -> None:
    found = reach([place(group(allow("r", 22)), gaps=(gap("groups"),))], [instance()])
    assert [path.ports for path in found.paths] == [((22, 22),)]
    assert {doubt.part for doubt in found.doubts} == {"groups"}
    assert all((22, 22) not in doubt.ports for doubt in found.doubts)


@pytest.mark.parametrize("shard", [ALIBABA, TENCENT])
def test_rules_with_an_order_may_have_an_unread_one_before_them(shard: Shard) -> None:
    assert parts(place(group(allow("r", 22), shard=shard), shard=shard, gaps=(gap("groups", shard),))) == {
        ("groups", "denied: not authorised")
    }


@pytest.mark.parametrize("shard", [AWS, ALIBABA, TENCENT])
def test_a_group_that_is_not_among_what_was_read_is_a_doubt(shard: Shard) -> None:
    assert parts(place(shard=shard)) == {("groups", "sg-1 is not among what was read")}


def test_a_group_that_was_not_read_leaves_alone_what_an_earlier_one_decides() -> None:
    first = group(deny("0", 22, priority=0), allow("1", 80, priority=1), shard=TENCENT)
    found = reach(
        [place(first, cards=[card(shard=TENCENT, groups=("sg-1", "sg-2"))], shard=TENCENT)], [instance(shard=TENCENT)]
    )
    assert [path.ports for path in found.paths] == [((80, 80),)]
    tcp = [doubt.ports for doubt in found.doubts if doubt.protocol == "tcp"]
    assert tcp == [((0, 21), (23, 79), (81, 65535))]


def test_a_card_that_names_no_group_is_a_doubt() -> None:
    assert parts(place(cards=[card(groups=())])) == {("groups", "eni-1 names none")}


def test_an_unresolved_list_of_peers_is_a_doubt_and_as_a_denial_makes_one_of_what_follows() -> None:
    listed = allow("r", 22, peers=(), unresolved=("pl-1",))
    assert parts(place(group(listed))) == {("groups", "sg-1 r: pl-1 could not be resolved")}
    barred = group(deny("0", 22, peers=(), unresolved=("pl-1",)), allow("1", 22, priority=1), shard=TENCENT)
    assert parts(place(barred, shard=TENCENT)) == {("groups", "sg-1 0: pl-1 could not be resolved")}
    open_anyway = reach([place(group(allow("a", 22), listed))], [instance()])
    assert (len(open_anyway.paths), open_anyway.doubts) == (1, ())


def test_an_entry_of_an_access_list_that_was_not_resolved_is_a_doubt_either_way() -> None:
    strange = {"peers": (), "unresolved": ("pl-1",)}
    inward = entries(replace(allow("100"), **strange), EVERYTHING_OUT)  # type: ignore[arg-type]
    outward = entries(allow("100"), replace(EVERYTHING_OUT, **strange))  # type: ignore[arg-type]
    for listed, name in ((inward, "100"), (outward, "out")):
        assert parts(place(group(allow("r", 22)), listed=listed)) == {
            ("access_lists", f"acl-1 {name}: pl-1 could not be resolved")
        }


def test_an_instance_in_a_shard_that_was_not_read_is_a_doubt() -> None:
    elsewhere = [instance("i-2", Shard("aws", "111122223333", "eu-west-1"))]
    assert parts(place(group(allow())), instances=elsewhere) == {
        ("interfaces", "aws:111122223333:eu-west-1 was not read")
    }


def test_an_instance_without_any_card_is_a_doubt_and_one_that_may_have_more_as_well() -> None:
    assert parts(place(group(allow()), cards=[])) == {("interfaces", "none of i-1 is told")}
    found = reach([place(group(allow("r", 22)), gaps=(gap("interfaces"),))], [instance()])
    assert len(found.paths) == 1
    assert [(doubt.protocol, doubt.part) for doubt in found.doubts] == [("all", "interfaces")]


def test_a_card_without_a_known_address_may_have_one_where_addresses_were_not_read() -> None:
    hidden = [card(public_ips=())]
    assert parts(place(group(allow("r", 22)), cards=hidden, gaps=(gap("addresses"),))) == {
        ("addresses", "denied: not authorised")
    }
    private = place(group(allow("r", 22)), cards=hidden, routes=(LOCAL,), gaps=(gap("addresses"),))
    assert paths(private) == ()


def test_a_gateway_that_was_not_read_may_forward_except_on_aws() -> None:
    assert parts(behind(gaps=(gap("nat_gateways", ALIBABA),))) == {("nat_gateways", "denied: not authorised")}
    assert paths(behind(routes=(), gaps=(gap("nat_gateways", ALIBABA),))) == ()
    nat = Route(WORLD, Hop.NAT, "nat-1")
    hidden = [card(public_ips=())]
    assert paths(place(group(allow()), cards=hidden, routes=(LOCAL, nat), gaps=(gap("nat_gateways"),))) == ()
    assert paths(place(group(allow()), cards=hidden, gaps=(gap("nat_gateways"), gap("routes")))) == ()


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"subnet": ref("subnet", "subnet-9")}, "subnets"),
        ({"subnet": None}, "subnets"),
        ({"vpc": ref("vpc", "vpc-9")}, "vpcs"),
    ],
)
def test_a_place_that_is_not_among_what_was_read_is_a_doubt(changes: dict[str, Any], part: str) -> None:
    assert {part for part, _ in parts(place(group(allow("r", 22)), cards=[card(**changes)]))} == {part}


def test_a_table_or_list_that_is_named_and_not_read_is_a_doubt() -> None:
    no_table = {"route_table": ref("route_table", "rtb-9")}
    assert parts(place(group(allow("r", 22)), subnet=no_table)) == {("routes", "rtb-9 is not among what was read")}
    assert {part for part, _ in parts(place(group(allow("r", 22)), subnet={"route_table": None}))} == {"routes"}
    no_list = {"access_list": ref("access_list", "acl-9")}
    assert parts(place(group(allow("r", 22)), subnet=no_list)) == {("access_lists", "acl-9 is not among what was read")}


def test_two_subnets_are_two_places() -> None:
    """The same groups, another list: what was reckoned for one place is not taken for another."""
    closed, opens = entries(EVERYTHING_OUT), entries(allow("100"), EVERYTHING_OUT, native_id="acl-2")
    second = Subnet(
        ref("subnet", "subnet-2"), ref("vpc", "vpc-1"), ("10.0.1.0/24",), ref("route_table", "rtb-1"), opens.ref
    )
    here = place(group(allow("r", 22)), listed=closed)
    other = card(
        "eni-2", "i-2", subnet=second.ref, private_ips=("10.0.1.7",), public_ips=(("10.0.1.7", "203.0.113.8"),)
    )
    both = replace(
        here,
        subnets=(*here.subnets, second),
        access_lists=(closed, opens),
        interfaces=(*here.interfaces, other),
    )
    assert [path.instance.native_id for path in paths(both, instances=[instance(), instance("i-2")])] == ["i-2"]
