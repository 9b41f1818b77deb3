"""The last way in for people is never closed, and what policy names is never touched."""

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

from costguard.domain.mends import Mend, MendKind
from costguard.domain.network import (
    AddressState,
    Hop,
    NetworkInterface,
    NetworkInventory,
    NetworkRule,
    Route,
    SecurityGroup,
)
from costguard.domain.reasons import ReasonCode
from costguard.domain.refs import Shard
from costguard.domain.resources import Instance
from costguard.guards.network_audit import last_admin_path

OFFICE, INSIDE = "198.51.100.0/24", "10.0.0.0/8"
OPEN = allow("open", 22)
LAST = ReasonCode.LAST_ADMIN_PATH


def barred(
    mend: Mend, here: NetworkInventory, machines: Sequence[Instance] | None = None, **rule: Any
) -> ReasonCode | None:
    found = last_admin_path(mend, [here], [instance(shard=here.shard)] if machines is None else machines, audit(**rule))
    return None if found is None else found.code


def revoke(rule: NetworkRule = OPEN, native_id: str = "sg-1", shard: Shard = AWS) -> Mend:
    said = {"rule_id": rule.rule_id, "direction": rule.direction.value, "version": ""}
    return Mend(MendKind.REVOKE_RULE, ref("security_group", native_id, shard), said)


def narrow(*peers: str) -> Mend:
    mend = revoke()
    return replace(mend, kind=MendKind.NARROW_RULE, parameters={**mend.parameters, "peers": ",".join(peers)})


def left(*others: NetworkRule, **parts: Any) -> ReasonCode | None:
    """What is said of revoking the open rule beside these."""
    return barred(revoke(), place(group(OPEN, *others), **parts))


def test_the_last_rule_that_lets_people_in_stays() -> None:
    assert left() is LAST
    assert left(allow("web", 443)) is LAST
    assert left(allow("other", 22, protocol="udp")) is LAST
    assert left(allow("out", 22, direction=out("x").direction)) is LAST


def test_a_rule_goes_where_another_lets_people_in() -> None:
    assert left(allow("office", 22, peers=(OFFICE,))) is None
    assert left(allow("inside", 22, peers=(INSIDE,))) is None
    assert left(allow("all", protocol="all", peers=(INSIDE,))) is None


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
    assert barred(revoke(), place(group(OPEN), inside, cards=[card(), inner])) is None
    assert barred(revoke(), place(group(OPEN), group(native_id="sg-2"), cards=[card(), inner])) is LAST


def test_a_network_that_cannot_get_there_is_no_way() -> None:
    """The office comes from the internet: to a machine without a public address it has no way."""
    hidden = [card(public_ips=())]
    office = allow("office", 22, peers=(OFFICE,))
    assert left(office, cards=hidden) is LAST
    assert left(office, cards=hidden, routes=(LOCAL, Route(OFFICE, Hop.OTHER, "vgw-1"))) is None
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
    assert left(inside, listed=opens) is None
    assert left(inside, listed=shuts) is LAST
    assert left(inside, listed=silent) is LAST


def test_a_denial_that_comes_first_leaves_no_way() -> None:
    ordered = group(OPEN, deny("1", priority=1), allow("2", 22, priority=2, peers=(INSIDE,)), shard=TENCENT)
    assert barred(revoke(shard=TENCENT), place(ordered, shard=TENCENT)) is LAST
    turned = group(OPEN, deny("2", priority=2), allow("1", 22, priority=1, peers=(INSIDE,)), shard=TENCENT)
    assert barred(revoke(shard=TENCENT), place(turned, shard=TENCENT)) is None


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
    assert barred(narrow(OFFICE), here) is None
    assert barred(narrow(INSIDE), here) is None
    assert barred(narrow("192.168.0.0/16"), here) is LAST
    assert barred(narrow(), here) is LAST


def other(native_id: str, machine: str, ip: str, *groups: str, shard: Shard = AWS, **changes: Any) -> NetworkInterface:
    return card(native_id, machine, shard, private_ips=(ip,), public_ips=(), groups=groups, **changes)


def test_a_group_that_is_let_in_is_a_way_only_where_its_members_are_entered_themselves() -> None:
    by_bastion = group(OPEN, allow("b", 22, peers=(), peer_groups=("sg-b",)))
    bastion = other("eni-b", "i-b", "10.0.0.9", "sg-b")
    entered = group(allow("in", 22, peers=(INSIDE,)), native_id="sg-b")
    assert barred(revoke(), place(by_bastion, entered, cards=[card(), bastion])) is None
    assert barred(revoke(), place(by_bastion, entered, cards=[card()])) is LAST
    shut = group(allow("in", 443), native_id="sg-b")
    assert barred(revoke(), place(by_bastion, shut, cards=[card(), bastion])) is LAST


def test_a_way_may_lead_through_several_machines_and_a_circle_of_them_leads_nowhere() -> None:
    def chain(last: SecurityGroup) -> NetworkInventory:
        first = group(OPEN, allow("b", 22, peers=(), peer_groups=("sg-b",)))
        second = group(allow("c", 22, peers=(), peer_groups=("sg-c",)), native_id="sg-b")
        cards = [card(), other("eni-b", "i-b", "10.0.0.9", "sg-b"), other("eni-c", "i-c", "10.0.0.10", "sg-c")]
        return place(first, second, last, cards=cards)

    assert barred(revoke(), chain(group(allow("in", 22, peers=(INSIDE,)), native_id="sg-c"))) is None
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
    office = group(allow("in", 22, peers=(INSIDE,)), native_id="sg-2", shard=ALIBABA)
    entered = other("eni-2", "i-2", "10.0.0.8", "sg-1", "sg-2", shard=ALIBABA)
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
    entered = group(allow("in", 22, peers=(INSIDE,)), native_id="sg-b", shard=TENCENT)
    cards = [card(shard=TENCENT), other("eni-b", "i-b", "10.0.0.9", "sg-b", shard=TENCENT)]
    assert barred(revoke(shard=TENCENT), place(opened, entered, cards=cards, shard=TENCENT)) is LAST


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
DETACH = Mend(MendKind.DETACH_ADDRESS, BOUND.ref, {"ip": PUBLIC, "bound_to": str(ref("instance", "i-1"))})


def test_an_address_by_which_alone_people_get_in_is_not_taken_off() -> None:
    office = group(allow("office", 22, peers=(OFFICE,)))
    assert barred(DETACH, place(office, addresses=(BOUND,))) is LAST
    assert barred(DETACH, place(group(allow("inside", 22, peers=(INSIDE,))), addresses=(BOUND,))) is None
    two = [card(public_ips=(("10.0.0.7", PUBLIC), ("10.0.0.8", "203.0.113.8")))]
    assert barred(DETACH, place(office, cards=two, addresses=(BOUND,))) is None
    untold = [card(public_ips=())]
    assert barred(DETACH, place(office, cards=untold, addresses=(BOUND,))) is LAST


@pytest.mark.parametrize("name", ["eip-1", PUBLIC, "front"])
def test_an_address_that_policy_names_is_never_touched(name: str) -> None:
    here = place(group(), addresses=(BOUND,))
    assert barred(DETACH, here) is None
    for kind in (MendKind.DETACH_ADDRESS, MendKind.RELEASE_ADDRESS):
        assert barred(replace(DETACH, kind=kind), here, keep=(name,)) is ReasonCode.NET_KEPT


@pytest.mark.parametrize("kind", [MendKind.ENABLE_FLOW_LOGS, MendKind.REQUIRE_IMDSV2, MendKind.RESTORE_RULE])
def test_what_closes_nothing_is_not_held(kind: MendKind) -> None:
    assert barred(Mend(kind, ref("instance", "i-1")), place(group(OPEN))) is None
