"""The last way in for people is never closed, and what policy names is never touched.

The office is trusted by the policy, `INSIDE` is not: of its addresses the first machine has one, and a bastion, where
there is one, another.
"""

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
    audit,
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
    Hop,
    NetworkInterface,
    NetworkInventory,
    NetworkRule,
    Peering,
    Route,
    SecurityGroup,
)
from costguard.domain.reasons import ReasonCode
from costguard.domain.refs import Shard
from costguard.domain.remediations import Remediation, RemediationKind
from costguard.domain.resources import Instance
from costguard.guards.network.judge import last_admin_path

OFFICE, INSIDE = "198.51.100.0/24", "10.0.0.0/8"
OPEN = allow("open", 22)
LAST, UNPROVEN = ReasonCode.LAST_ADMIN_PATH, ReasonCode.ADMIN_PATH_UNPROVEN
SHARDS = (AWS, ALIBABA, TENCENT)


def barred(
    mend: Remediation, here: NetworkInventory, machines: Sequence[Instance] | None = None, **rule: Any
) -> ReasonCode | None:
    machines = [instance(shard=here.shard)] if machines is None else machines
    found = last_admin_path(mend, [here], machines, audit(**{"trusted": (OFFICE,), **rule}))
    return None if found is None else found.code


def revoke(rule: NetworkRule = OPEN, native_id: str = "sg-1", shard: Shard = AWS) -> Remediation:
    said = {"rule_id": rule.rule_id, "direction": rule.direction.value, "version": ""}
    return Remediation(RemediationKind.REVOKE_RULE, ref("security_group", native_id, shard), said)


def narrow(*peers: str) -> Remediation:
    mend = revoke()
    return replace(mend, kind=RemediationKind.NARROW_RULE, parameters={**mend.parameters, "peers": ",".join(peers)})


def left(*others: NetworkRule, trusted: Sequence[str] = (OFFICE,), **parts: Any) -> ReasonCode | None:
    """What is said of revoking the open rule beside these."""
    return barred(revoke(), place(group(OPEN, *others), **parts), trusted=tuple(trusted))


def bastion(shard: Shard = AWS, native_id: str = "sg-b") -> NetworkInterface:
    """The card of a machine with a public address, in a group that the world gets into."""
    public = (("10.0.0.9", "203.0.113.9"),)
    return replace(other("eni-b", "i-b", "10.0.0.9", native_id, shard=shard), public_ips=public)


def world_to(native_id: str = "sg-b", shard: Shard = AWS) -> SecurityGroup:
    return group(allow("in", 22), native_id=native_id, shard=shard)


def beside_a_bastion(*others: NetworkRule, shard: Shard = AWS, **parts: Any) -> ReasonCode | None:
    """What is said of revoking the open rule beside these, with a bastion in the same network."""
    cards = [card(shard=shard), bastion(shard)]
    here = place(group(OPEN, *others, shard=shard), world_to(shard=shard), cards=cards, shard=shard, **parts)
    return barred(revoke(shard=shard), here, trusted=())


def test_the_last_rule_that_lets_people_in_stays() -> None:
    assert left() is LAST
    assert left(allow("web", 443)) is LAST
    assert left(allow("other", 22, protocol="udp")) is LAST
    assert left(allow("out", 22, direction=out("x").direction)) is LAST


def test_a_rule_goes_where_another_lets_people_in() -> None:
    assert left(allow("office", 22, peers=(OFFICE,))) is None
    assert beside_a_bastion(allow("inside", 22, peers=(INSIDE,))) is None
    assert beside_a_bastion(allow("all", protocol="all", peers=(INSIDE,))) is None


@pytest.mark.parametrize("shard", SHARDS, ids=str)
def test_an_address_that_nothing_has_is_no_way(shard: Shard) -> None:
    for peer in ("10.0.0.99/32", INSIDE, "198.51.101.7/32"):
        dead = group(OPEN, allow("dead", 22, peers=(peer,), priority=2), shard=shard)
        assert barred(revoke(shard=shard), place(dead, shard=shard)) is UNPROVEN
    gone = group(OPEN, allow("gone", 22, peers=("10.0.0.9/32",), priority=2), shard=shard)
    cards = [card(shard=shard), bastion(shard)]
    assert barred(revoke(shard=shard), place(gone, world_to(shard=shard), cards=cards, shard=shard)) is None
    unused = [cards[0], replace(cards[1], instance=None, unattached=True)]
    assert barred(revoke(shard=shard), place(gone, world_to(shard=shard), cards=unused, shard=shard)) is UNPROVEN


@pytest.mark.parametrize("shard", SHARDS, ids=str)
@pytest.mark.parametrize("own", ["10.0.0.7/32", f"{PUBLIC}/32", "10.0.0.8/32", "203.0.113.8/32"])
def test_the_machines_own_addresses_are_no_way_even_where_they_are_trusted(shard: Shard, own: str) -> None:
    """Those of its other card neither, nor one that only the listing of addresses tells of."""
    held = group(OPEN, allow("self", 22, peers=(own,), priority=2), shard=shard)
    cards = [card(shard=shard), other("eni-2", "i-1", "10.0.0.8", "sg-1", shard=shard)]
    bound = address(ip="203.0.113.8", shard=shard, state=AddressState.IN_USE, bound_to=ref("interface", "eni-2", shard))
    here = place(held, cards=cards, addresses=(bound,), shard=shard)
    assert barred(revoke(shard=shard), here) is UNPROVEN
    assert barred(revoke(shard=shard), here, trusted=(OFFICE, INSIDE, "203.0.113.0/24")) is UNPROVEN


@pytest.mark.parametrize("shard", SHARDS, ids=str)
def test_a_machine_that_nobody_gets_into_is_no_way_into_another(shard: Shard) -> None:
    cards = [card(shard=shard), bastion(shard)]
    for shut in ((), (allow("office", 22, peers=("198.51.101.7/32",)),), (allow("back", 22, peers=("10.0.0.7/32",)),)):
        rules = group(OPEN, allow("inside", 22, peers=("10.0.0.9/32",), priority=2), shard=shard)
        of_bastion = group(*shut, native_id="sg-b", shard=shard)
        assert barred(revoke(shard=shard), place(rules, of_bastion, cards=cards, shard=shard)) is UNPROVEN


def test_a_bastion_that_calls_by_its_public_address_is_a_way() -> None:
    assert beside_a_bastion(allow("out", 22, peers=("203.0.113.9/32",))) is None
    assert beside_a_bastion(allow("out", 22, peers=("203.0.113.10/32",))) is UNPROVEN


@pytest.mark.parametrize("shard", SHARDS, ids=str)
def test_a_trusted_network_is_a_way_where_it_gets_there_and_inside_only_where_something_is(shard: Shard) -> None:
    def revoked(peer: str, *cards: NetworkInterface, **rule: Any) -> ReasonCode | None:
        rules = group(OPEN, allow("in", 22, peers=(peer,), priority=2), shard=shard)
        return barred(revoke(shard=shard), place(rules, cards=cards or [card(shard=shard)], shard=shard), **rule)

    hidden = card(shard=shard, public_ips=())
    idle = other("eni-2", "i-2", "10.0.0.8", shard=shard)
    assert revoked("198.51.0.0/16") is None  # the office is in it
    assert revoked(OFFICE, trusted=()) is UNPROVEN
    assert revoked(OFFICE, trusted=(), narrow_to=(OFFICE,)) is None  # of its networks the policy says the same there
    assert revoked(OFFICE, hidden) is LAST
    assert revoked(INSIDE, trusted=(INSIDE,)) is UNPROVEN
    assert revoked(INSIDE, card(shard=shard), idle, trusted=(INSIDE,)) is None
    assert revoked("10.0.0.99/32", card(shard=shard), idle, trusted=(INSIDE,)) is UNPROVEN


def test_the_world_is_nobody_in_particular_and_a_rule_that_closes_nothing_goes() -> None:
    assert left(allow("half", 22, peers=("128.0.0.0/1",)), trusted=()) is UNPROVEN
    assert left(allow("again", 22), trusted=()) is None
    web = allow("web", 8888)
    dead = allow("dead", 22, peers=("10.0.0.99/32",))
    assert barred(revoke(web), place(group(web, dead))) is None


FAR = "192.168.0.0/16"


def joined(*routes: Route, peer: str = "192.168.7.0/24", **parts: Any) -> ReasonCode | None:
    return left(allow("far", 22, peers=(peer,)), routes=(LOCAL, OUT, *routes), **parts)


def test_a_peering_is_a_way_only_while_it_lives_and_as_far_as_it_reaches() -> None:
    def peering(**changes: Any) -> Peering:
        ordinary = Peering(
            ref("peering", "pcx-1"), ref("vpc", "vpc-1"), "111122223333", "us-east-1", "vpc-2", ("192.168.0.0/20",)
        )
        return replace(ordinary, **changes)

    over = Route(FAR, Hop.PEERING, "pcx-1")
    assert joined(over, peerings=(peering(),)) is None
    assert joined(over, peerings=(peering(other_cidrs=()),)) is None
    assert joined(over, peerings=(peering(active=False),)) is UNPROVEN
    assert joined(replace(over, active=False), peerings=(peering(),)) is LAST
    assert joined(over, peer="192.168.99.1/32", peerings=(peering(),)) is UNPROVEN
    turned = peering(vpc=ref("vpc", "vpc-2"), other_vpc="vpc-1", other_cidrs=("10.0.0.0/16",))
    assert joined(over, peerings=(turned,)) is None
    assert joined(over) is None  # what joins them is no peering, and the cloud says that the route works
    assert joined(over, gaps=(gap("peerings"),)) is UNPROVEN


def test_a_member_of_a_group_calls_from_a_peered_network_only_where_the_peering_leads() -> None:
    far = replace(other("eni-b", "i-b", "192.168.7.5", "sg-b"), vpc=ref("vpc", "vpc-2"))

    def revoked(*routes: Route) -> ReasonCode | None:
        rules = group(OPEN, allow("b", 22, peers=(), peer_groups=("sg-b",)))
        here = place(rules, world_to(), cards=[card(), far], routes=(LOCAL, OUT, *routes))
        return barred(revoke(), here, trusted=("192.168.7.0/24",))

    assert revoked(Route(FAR, Hop.PEERING, "pcx-1")) is None
    assert revoked(Route("192.168.8.0/24", Hop.PEERING, "pcx-1")) is LAST


def test_a_vpn_is_a_way_and_of_a_default_route_only_what_is_private() -> None:
    assert joined(Route(FAR, Hop.VPN, "vgw-1")) is None
    assert joined(Route(FAR, Hop.VPN, "vgw-1", active=False)) is LAST
    assert joined(Route(FAR, Hop.OTHER, "eni-1")) is UNPROVEN
    assert joined(Route(FAR, Hop.INSTANCE, "i-9")) is UNPROVEN
    through = (LOCAL, Route(WORLD, Hop.VPN, "tgw-1"))
    assert left(allow("far", 22, peers=(FAR,)), routes=through) is None
    assert left(allow("far", 22, peers=("203.0.114.0/24",)), routes=through) is UNPROVEN


def test_what_is_said_of_an_unproven_way_names_what_would_be_left() -> None:
    rules = group(OPEN, *(allow(f"dead-{n}", 22, peers=(f"10.0.{2 * n}.99/32",)) for n in range(5)))
    found = last_admin_path(revoke(), [place(rules)], [instance()], audit())
    assert found is not None
    assert found.facts == {
        "instance": "i-1",
        "instances": 1,
        "port": 22,
        "name": "open",
        "left": "10.0.0.99/32, 10.0.2.99/32, 10.0.4.99/32, …",
    }


def test_a_rule_that_is_no_way_in_for_people_goes() -> None:
    web = allow("web", 443)
    assert barred(revoke(web), place(group(web))) is None
    assert barred(revoke(web), place(group(web, OPEN))) is None


def test_what_is_said_names_the_machine_and_the_port() -> None:
    found = last_admin_path(revoke(), [place(group(OPEN))], [instance()], audit())
    assert found is not None
    assert found.facts == {"instance": "i-1", "instances": 1, "port": 22, "name": "open"}


def test_the_way_of_every_machine_counts_with_or_without_accelerators() -> None:
    """One machine has another group with another way in, the other has not."""
    spare = group(allow("office", 22, peers=(OFFICE,)), native_id="sg-2")
    cards = [card(groups=("sg-1", "sg-2")), card("eni-2", "i-9", private_ips=("10.0.0.8",))]
    assert barred(revoke(), place(group(OPEN), spare, cards=cards[:1])) is None
    assert barred(revoke(), place(group(OPEN), spare, cards=cards)) is LAST
    assert barred(revoke(), place(group(OPEN), spare, cards=[cards[0], replace(cards[1], instance=None)])) is None


def test_another_card_of_the_same_machine_is_a_way_into_it() -> None:
    inner = other("eni-2", "i-1", "10.0.0.8", "sg-2")
    inside = group(allow("inside", 22, peers=(INSIDE,)), native_id="sg-2")
    cards = [card(), inner, bastion()]
    assert barred(revoke(), place(group(OPEN), inside, world_to(), cards=cards)) is None
    assert barred(revoke(), place(group(OPEN), inside, world_to(), cards=cards[:2])) is UNPROVEN
    assert barred(revoke(), place(group(OPEN), group(native_id="sg-2"), world_to(), cards=cards)) is LAST


def test_a_network_that_cannot_get_there_is_no_way() -> None:
    """The office comes from the internet: to a machine without a public address it has no way."""
    hidden = [card(public_ips=())]
    office = allow("office", 22, peers=(OFFICE,))
    assert left(office, cards=hidden) is LAST
    assert left(office, cards=hidden, routes=(LOCAL, Route(OFFICE, Hop.VPN, "vgw-1"))) is None
    assert left(office, routes=(LOCAL, Route(WORLD, Hop.NAT, "nat-1"))) is LAST
    assert left(allow("far", 22, peers=("192.168.0.0/16",))) is LAST
    assert (
        left(allow("far", 22, peers=("192.168.0.0/16",)), routes=(LOCAL, OUT, Route("192.168.0.0/16", Hop.PEERING)))
        is None
    )


def test_an_access_list_that_shuts_a_network_out_leaves_no_way() -> None:
    inside = allow("inside", 22, peers=(INSIDE,))
    opens = entries(allow("100"), out("100"))
    shuts = entries(deny("90", 22, peers=(INSIDE,)), allow("100"), out("100"))
    silent = entries(allow("100"), out("100", peers=(OFFICE,)))
    assert beside_a_bastion(inside, listed=opens) is None
    assert beside_a_bastion(inside, listed=shuts) is LAST
    assert beside_a_bastion(inside, listed=silent) is LAST


def test_a_denial_that_comes_first_leaves_no_way() -> None:
    def revoked(*others: NetworkRule) -> ReasonCode | None:
        return beside_a_bastion(*others, shard=TENCENT)

    assert revoked(deny("1", priority=1), allow("2", 22, priority=2, peers=(INSIDE,))) is LAST
    assert revoked(deny("2", priority=2), allow("1", 22, priority=1, peers=(INSIDE,))) is None


def test_to_where_nobody_got_in_nothing_is_closed() -> None:
    shut = entries(allow("100", 443), out("100"))
    assert left(listed=shut) is None
    assert left(cards=[]) is None


def test_rdp_is_no_way_into_linux_and_one_into_what_is_not_known() -> None:
    rdp = allow("rdp", 3389)
    office = allow("office", 22, peers=(OFFICE,))
    here = place(group(rdp, office))
    assert barred(revoke(rdp), here) is None
    assert barred(revoke(rdp), here, [instance(operating_system="windows")]) is LAST
    assert barred(revoke(rdp), here, []) is LAST


def test_a_narrowed_rule_leaves_the_way_of_those_it_is_narrowed_to() -> None:
    here = place(group(OPEN))
    assert barred(narrow(OFFICE), here, trusted=(), narrow_to=(OFFICE,)) is None
    assert barred(narrow(INSIDE), here) is UNPROVEN
    assert barred(narrow("192.168.0.0/16"), here) is LAST
    assert barred(narrow(), here) is LAST


def other(native_id: str, machine: str, ip: str, *groups: str, shard: Shard = AWS, **changes: Any) -> NetworkInterface:
    return card(native_id, machine, shard, private_ips=(ip,), public_ips=(), groups=groups, **changes)


def test_a_group_that_is_let_in_is_a_way_only_where_its_members_are_entered_themselves() -> None:
    by_bastion = group(OPEN, allow("b", 22, peers=(), peer_groups=("sg-b",)))
    assert barred(revoke(), place(by_bastion, world_to(), cards=[card(), bastion()])) is None
    assert barred(revoke(), place(by_bastion, world_to(), cards=[card()])) is LAST
    shut = group(allow("in", 443), native_id="sg-b")
    assert barred(revoke(), place(by_bastion, shut, cards=[card(), bastion()])) is LAST
    dead = group(allow("in", 22, peers=("10.0.0.99/32",)), native_id="sg-b")
    assert barred(revoke(), place(by_bastion, dead, cards=[card(), bastion()])) is LAST


def test_a_way_may_lead_through_several_machines_and_a_circle_of_them_leads_nowhere() -> None:
    def chain(last: SecurityGroup) -> NetworkInventory:
        first = group(OPEN, allow("b", 22, peers=(), peer_groups=("sg-b",)))
        second = group(allow("c", 22, peers=(), peer_groups=("sg-c",)), native_id="sg-b")
        entered = replace(other("eni-c", "i-c", "10.0.0.10", "sg-c"), public_ips=(("10.0.0.10", "203.0.113.10"),))
        return place(first, second, last, cards=[card(), other("eni-b", "i-b", "10.0.0.9", "sg-b"), entered])

    assert barred(revoke(), chain(world_to("sg-c"))) is None
    assert barred(revoke(), chain(group(allow("in", 22, peers=(), peer_groups=("sg-b",)), native_id="sg-c"))) is LAST


def test_machines_that_only_reach_one_another_are_entered_by_nobody() -> None:
    """The default group of AWS lets itself in, basic groups of Alibaba Cloud need no rule for it."""
    pair = [card(), other("eni-2", "i-2", "10.0.0.8", "sg-1")]
    assert barred(revoke(), place(group(OPEN, allow("self", 22, peers=(), peer_groups=("sg-1",))), cards=pair)) is LAST
    there = [card(shard=ALIBABA), other("eni-2", "i-2", "10.0.0.8", "sg-1", shard=ALIBABA)]
    talking = group(OPEN, shard=ALIBABA, peers_may_talk=True)
    assert barred(revoke(shard=ALIBABA), place(talking, cards=there, shard=ALIBABA)) is LAST


def test_members_that_reach_one_another_are_a_way_to_the_rest_once_one_is_entered() -> None:
    talking = group(OPEN, shard=ALIBABA, peers_may_talk=True)
    office = group(allow("in", 22, peers=(OFFICE,)), native_id="sg-2", shard=ALIBABA)
    entered = replace(bastion(ALIBABA), groups=("sg-1", "sg-2"))
    here = place(talking, office, cards=[card(shard=ALIBABA), entered], shard=ALIBABA)
    assert barred(revoke(shard=ALIBABA), here) is None
    barring = replace(talking, rules=(*talking.rules, deny("no", 22, peers=(INSIDE,), priority=1)))
    assert (
        barred(revoke(shard=ALIBABA), place(barring, office, cards=[card(shard=ALIBABA), entered], shard=ALIBABA))
        is LAST
    )


def test_a_denied_group_is_shut_out_though_another_rule_lets_its_addresses_in() -> None:
    ordered = group(
        OPEN,
        deny("0", 22, peers=(), peer_groups=("sg-b",), priority=0),
        allow("1", 22, peers=(), peer_groups=("sg-b",), priority=1),
        shard=TENCENT,
    )
    opened = replace(ordered, rules=(replace(OPEN, priority=9), *ordered.rules[1:]))
    cards = [card(shard=TENCENT), bastion(TENCENT)]
    here = place(opened, world_to(shard=TENCENT), cards=cards, shard=TENCENT)
    assert barred(revoke(shard=TENCENT), here) is LAST
    undenied = replace(opened, rules=(opened.rules[0], opened.rules[2]))
    here = place(undenied, world_to(shard=TENCENT), cards=cards, shard=TENCENT)
    assert barred(revoke(shard=TENCENT), here) is None


@pytest.mark.parametrize("part", ["interfaces", "subnets", "routes", "vpcs"])
def test_what_would_be_left_and_was_not_read_holds_the_mend(part: str) -> None:
    office = allow("office", 22, peers=(OFFICE,))
    here = place(group(OPEN, office), gaps=(gap(part),))
    found = last_admin_path(revoke(), [here], [instance()], audit())
    assert found is not None
    assert (found.code, found.facts["part"]) == (ReasonCode.NET_UNTOLD, part)


def test_a_way_that_is_in_doubt_does_not_count_as_what_is_left() -> None:
    assert left(allow("list", 22, peers=(), unresolved=("pl-1",))) is LAST
    unread = entries(allow("100", peers=(), unresolved=("pl-1",)), out("100"))
    assert left(allow("office", 22, peers=(OFFICE,)), listed=unread) is LAST


def test_a_shard_or_group_that_was_not_read_holds_the_mend() -> None:
    assert barred(revoke(), place(group(OPEN), shard=AWS)) is LAST
    assert barred(revoke(shard=TENCENT), place(group(OPEN))) is ReasonCode.NET_UNTOLD
    assert barred(revoke(native_id="sg-9"), place(group(OPEN))) is ReasonCode.NET_UNTOLD


@pytest.mark.parametrize("name", ["open", "sg-1", "sg-1/open", "bastion", str(ref("security_group", "sg-1"))])
def test_what_policy_names_is_never_touched(name: str) -> None:
    here = place(group(OPEN, allow("office", 22, peers=(OFFICE,)), name="bastion"))
    assert barred(revoke(), here) is None
    assert barred(revoke(), here, keep=(name,)) is ReasonCode.NET_KEPT


BOUND = address("eip-1", ip=PUBLIC, name="front", state=AddressState.IN_USE, bound_to=ref("instance", "i-1"))
DETACH = Remediation(RemediationKind.DETACH_ADDRESS, BOUND.ref, {"ip": PUBLIC, "bound_to": str(ref("instance", "i-1"))})


def test_an_address_by_which_alone_people_get_in_is_not_taken_off() -> None:
    office = group(allow("office", 22, peers=(OFFICE,)))
    assert barred(DETACH, place(office, addresses=(BOUND,))) is LAST
    inside = group(allow("inside", 22, peers=(INSIDE,)))
    assert barred(DETACH, place(inside, world_to(), cards=[card(), bastion()], addresses=(BOUND,))) is None
    assert barred(DETACH, place(inside, addresses=(BOUND,))) is None  # nothing that got in by it does no longer
    two = [card(public_ips=(("10.0.0.7", PUBLIC), ("10.0.0.8", "203.0.113.8")))]
    assert barred(DETACH, place(office, cards=two, addresses=(BOUND,))) is None
    untold = [card(public_ips=())]
    assert barred(DETACH, place(office, cards=untold, addresses=(BOUND,))) is LAST


def test_an_address_by_which_alone_people_get_from_one_machine_into_another_is_not_taken_off() -> None:
    """The bastion itself is reached by VPN; the other knows it by its public address."""
    knows = group(allow("bastion", 22, peers=("203.0.113.9/32",)))
    kept = address("eip-2", ip="203.0.113.9", state=AddressState.IN_USE, bound_to=ref("instance", "i-b"))
    detach = Remediation(RemediationKind.DETACH_ADDRESS, kept.ref, {"ip": "203.0.113.9"})
    gate = group(allow("vpn", 22, peers=(FAR,)), native_id="sg-b")

    def taken_off(*rules: NetworkRule) -> ReasonCode | None:
        held = replace(knows, rules=(*knows.rules, *rules))
        routes = (LOCAL, OUT, Route(FAR, Hop.VPN, "vgw-1"))
        return barred(detach, place(held, gate, cards=[card(), bastion()], routes=routes, addresses=(kept,)))

    assert taken_off() is UNPROVEN
    assert taken_off(allow("inside", 22, peers=(INSIDE,))) is None
    assert taken_off(allow("office", 22, peers=(OFFICE,))) is None


def test_a_machine_is_entered_by_any_of_its_cards() -> None:
    inner = other("eni-c", "i-b", "10.0.0.10", "sg-c")
    known = group(OPEN, allow("inner", 22, peers=("10.0.0.10/32",)))
    shut = group(native_id="sg-c")
    assert barred(revoke(), place(known, world_to(), shut, cards=[card(), bastion(), inner])) is None
    assert barred(revoke(), place(known, world_to(), shut, cards=[card(), inner])) is UNPROVEN


@pytest.mark.parametrize("name", ["eip-1", PUBLIC, "front"])
def test_an_address_that_policy_names_is_never_touched(name: str) -> None:
    here = place(group(), addresses=(BOUND,))
    assert barred(DETACH, here) is None
    for kind in (RemediationKind.DETACH_ADDRESS, RemediationKind.RELEASE_ADDRESS):
        assert barred(replace(DETACH, kind=kind), here, keep=(name,)) is ReasonCode.NET_KEPT


@pytest.mark.parametrize(
    "kind", [RemediationKind.ENABLE_FLOW_LOGS, RemediationKind.REQUIRE_IMDSV2, RemediationKind.RESTORE_RULE]
)
def test_what_closes_nothing_is_not_held(kind: RemediationKind) -> None:
    assert barred(Remediation(kind, ref("instance", "i-1")), place(group(OPEN))) is None
