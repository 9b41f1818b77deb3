"""What is said of networks: every check, by the gentlest rule, and nothing unread taken for good."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from tests.network_places import (
    ALIBABA,
    AWS,
    LOCAL,
    NOW,
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

from costguard.domain.findings import Finding, Verdict
from costguard.domain.money import HourlyRate, Money
from costguard.domain.network import (
    AddressState,
    FlowLog,
    Forward,
    Hop,
    NatGateway,
    NetworkInventory,
    Peering,
    PublicAddress,
    Route,
    Unpriced,
)
from costguard.domain.reasons import ReasonCode
from costguard.domain.refs import ResourceRef, Shard
from costguard.domain.remediations import RemediationKind
from costguard.domain.resources import Instance, InstanceState
from costguard.guards.network.judge import gentlest, judge
from costguard.guards.network.rules import AuditRule, NetworkCheck, NetworkSelector
from costguard.guards.rules.common import Mode

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
VIOLATION, COMPLIANT, UNMEASURED, EXEMPT = Verdict.VIOLATION, Verdict.COMPLIANT, Verdict.UNMEASURED, Verdict.EXEMPT
PRICE = HourlyRate(Money(Decimal("0.005"), "USD"), "table", "2026-11-01")
HIDDEN = [card(public_ips=())]


def told(
    check: NetworkCheck,
    *inventories: NetworkInventory,
    instances: Sequence[Instance] = (),
    first_seen: Mapping[ResourceRef, datetime] | None = None,
    rules: Sequence[AuditRule] = (),
    **rule: Any,
) -> list[Finding]:
    machines = instances or [instance(shard=inventories[0].shard)]
    return list(judge(inventories, machines, rules or [audit(check, **rule)], NOW, first_seen or {}))


def said(check: NetworkCheck, *inventories: NetworkInventory, **others: Any) -> list[tuple[str, Verdict, ReasonCode]]:
    found = told(check, *inventories, **others)
    return [
        (each.subject.native_id, each.verdict, each.reason.code)
        for each in found
        if isinstance(each.subject, ResourceRef)
    ]


def of(found: Sequence[Finding], native_id: str) -> Finding:
    return next(each for each in found if isinstance(each.subject, ResourceRef) and each.subject.native_id == native_id)


# open ports


def test_a_port_open_to_the_world_is_said_of_the_group_with_its_path_and_what_closes_it() -> None:
    listed = entries(allow("100"), out("100"))
    found = of(
        told(NetworkCheck.OPEN_ADMIN_PORT, place(group(allow("sgr-1", 80, 8888, 22), name="notebooks"), listed=listed)),
        "sg-1",
    )
    assert (found.verdict, found.reason.code, found.name) == (VIOLATION, ReasonCode.NET_OPEN_PORT, "notebooks")
    assert (found.check, found.rule, found.rule_digest, found.guard) == (
        "open_admin_port",
        "gpu-hosts",
        "d",
        "network_audit",
    )
    assert found.reason.facts == {
        "group": "sg-1",
        "rule": "sgr-1",
        "rules": 1,
        "direction": "ingress",
        "protocol": "tcp",
        "ports": "22,8888",
        "peers": WORLD,
        "reaches": 1,
        "severity": "critical",
        "port": 22,
        "instance": "i-1",
        "address": PUBLIC,
        "path": "203.0.113.7 > igw-1 > acl-1/100 > sg-1/sgr-1 > eni-1 > i-1:22",
        "least": "revoke_rule",
    }


def test_a_forward_is_shown_with_the_port_that_is_asked_for() -> None:
    forward = Forward("tcp", "198.51.100.9", ((2222, 2222),), "10.0.0.7", ((22, 22),))
    gateway = NatGateway(ref("nat_gateway", "ngw-1", ALIBABA), ref("vpc", "vpc-1", ALIBABA), (), forwards=(forward,))
    here = place(
        group(allow("r", 22), shard=ALIBABA),
        shard=ALIBABA,
        cards=[card(shard=ALIBABA, public_ips=())],
        routes=(Route(WORLD, Hop.NAT, "ngw-1"),),
        nat_gateways=(gateway,),
    )
    found = of(told(NetworkCheck.OPEN_ADMIN_PORT, here, narrow_to=("198.51.100.0/24",)), "sg-1")
    assert found.reason.facts["path"] == "198.51.100.9:2222 > ngw-1 > sg-1/r > eni-1 > i-1:22"
    assert found.reason.facts["least"] == "narrow_rule"


def test_an_open_group_that_reaches_no_gpu_instance_is_a_smaller_matter() -> None:
    for here in (place(group(allow("r", 22)), cards=HIDDEN), place(group(allow("r", 22)), cards=[])):
        facts = of(told(NetworkCheck.OPEN_ADMIN_PORT, here), "sg-1").reason.facts
        assert (facts["reaches"], facts["severity"], facts["port"]) == (0, "medium", 22)
        assert "path" not in facts


def test_an_access_list_that_lets_in_only_the_office_leaves_nobody_of_the_world() -> None:
    listed = entries(allow("100", peers=("198.51.100.0/24",)), out("100"))
    found = told(NetworkCheck.OPEN_ADMIN_PORT, place(group(allow("r", 22)), listed=listed))
    assert of(found, "sg-1").reason.facts["reaches"] == 0
    assert of(found, "i-1").verdict is COMPLIANT


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ({}, VIOLATION),
        ({"peers": ("8.0.0.0/8",)}, VIOLATION),
        ({"peers": ("8.8.0.0/15",)}, VIOLATION),
        ({"peers": ("8.8.0.0/16",)}, COMPLIANT),
        ({"peers": ("8.8.0.0/16", "8.9.0.0/24")}, VIOLATION),
        ({"peers": ("0.0.0.0/1", "128.0.0.0/1")}, VIOLATION),
        ({"peers": ("10.0.0.0/8",)}, COMPLIANT),
        ({"peers": ("::/0",)}, VIOLATION),
        ({"peers": ("2001:db8::/47",)}, VIOLATION),
        ({"peers": ("2001:db8::/48",)}, COMPLIANT),
        ({"peers": ("fd00::/8",)}, COMPLIANT),
        ({"ports": ((443, 443),)}, COMPLIANT),
        ({"ports": ((0, 65535),)}, VIOLATION),
        ({"ports": ((20, 30),)}, VIOLATION),
        ({"protocol": "udp"}, VIOLATION),
        ({"protocol": "all"}, VIOLATION),
        ({"protocol": "icmp", "ports": ()}, COMPLIANT),
        ({"direction": out("x").direction}, COMPLIANT),
        ({"permission": deny("x").permission}, COMPLIANT),
    ],
)
def test_what_counts_as_open_to_the_world(changes: dict[str, Any], verdict: Verdict) -> None:
    assert of(told(NetworkCheck.OPEN_ADMIN_PORT, place(group(allow("r", 22, **changes)))), "sg-1").verdict is verdict


def test_trusted_networks_are_not_the_world_however_wide() -> None:
    wide = place(group(allow("r", 22, peers=("8.0.0.0/8",))))
    assert of(told(NetworkCheck.OPEN_ADMIN_PORT, wide, trusted=("8.0.0.0/8",)), "sg-1").verdict is COMPLIANT
    assert of(told(NetworkCheck.OPEN_ADMIN_PORT, wide, trusted=("8.0.0.0/9",)), "sg-1").verdict is VIOLATION
    assert of(told(NetworkCheck.OPEN_ADMIN_PORT, wide, widest_v4=8), "sg-1").verdict is COMPLIANT


def test_only_watched_ports_count_and_allowed_ones_never() -> None:
    here = place(group(allow("r", 22)))
    assert of(told(NetworkCheck.OPEN_ADMIN_PORT, here, ports=(8888,)), "sg-1").verdict is COMPLIANT
    assert of(told(NetworkCheck.OPEN_ADMIN_PORT, here, allowed_ports=(22,)), "sg-1").verdict is COMPLIANT


def test_the_gravest_rule_comes_first_and_the_others_are_counted() -> None:
    here = place(group(allow("a", 9400, peers=("::/0",)), allow("b", 8888)))
    facts = of(told(NetworkCheck.OPEN_ADMIN_PORT, here), "sg-1").reason.facts
    assert (facts["rule"], facts["rules"], facts["reaches"], facts["port"]) == ("b", 2, 1, 8888)


def test_how_many_instances_are_reached_is_counted_once_each() -> None:
    cards = [card(ipv6_public=("2001:db8::7",)), card("eni-2", "i-2", private_ips=("10.0.0.8",))]
    here = place(
        group(allow("r", peers=(WORLD, "::/0"))), cards=cards, routes=(LOCAL, OUT, Route("::/0", Hop.INTERNET))
    )
    found = told(NetworkCheck.OPEN_ADMIN_PORT, here, instances=[instance(), instance("i-2")])
    assert of(found, "sg-1").reason.facts["reaches"] == 2


def test_what_an_earlier_denial_covers_is_not_open() -> None:
    barred = group(deny("0", 22, priority=0), allow("1", priority=1), shard=TENCENT)
    facts = of(told(NetworkCheck.OPEN_ADMIN_PORT, place(barred, shard=TENCENT)), "sg-1").reason.facts
    assert "22" not in str(facts["ports"]).split(",")
    whole = group(deny("0", priority=1), allow("1", 22, priority=1), shard=ALIBABA)
    assert of(told(NetworkCheck.OPEN_ADMIN_PORT, place(whole, shard=ALIBABA)), "sg-1").verdict is COMPLIANT


def test_a_rule_of_which_denials_leave_little_is_not_wide() -> None:
    halves = (
        "8.0.0.0/9",
        "8.128.0.0/10",
        "8.192.0.0/11",
        "8.224.0.0/12",
        "8.240.0.0/13",
        "8.248.0.0/14",
        "8.252.0.0/15",
    )
    carved = group(deny("0", peers=halves), allow("1", 22, peers=("8.0.0.0/8",), priority=1), shard=TENCENT)
    assert of(told(NetworkCheck.OPEN_ADMIN_PORT, place(carved, shard=TENCENT)), "sg-1").verdict is VIOLATION
    more = group(deny("0", peers=(*halves, "8.254.0.0/16")), carved.rules[1], shard=TENCENT)
    assert of(told(NetworkCheck.OPEN_ADMIN_PORT, place(more, shard=TENCENT)), "sg-1").verdict is COMPLIANT


def test_a_kept_rule_is_exempt_and_does_not_hide_another() -> None:
    here = place(group(allow("a", 22), name="bastion"))
    for kept in ("a", "sg-1", "sg-1/a", "bastion", f"{ref('security_group', 'sg-1')}"):
        assert of(told(NetworkCheck.OPEN_ADMIN_PORT, here, keep=(kept,)), "sg-1").reason.code is ReasonCode.NET_KEPT
    two = place(group(allow("a", 22), allow("b", 8888)))
    assert of(told(NetworkCheck.OPEN_ADMIN_PORT, two, keep=("a",)), "sg-1").reason.facts["rule"] == "b"


def test_a_group_that_a_service_keeps_is_exempt() -> None:
    managed = of(told(NetworkCheck.OPEN_ADMIN_PORT, place(group(allow("a", 22), is_service_managed=True))), "sg-1")
    assert (managed.verdict, managed.reason.code) == (EXEMPT, ReasonCode.CLOUD_SERVICE)


def test_a_list_of_peers_that_was_not_read_is_unmeasured() -> None:
    listed = place(group(allow("r", 22, peers=(), unresolved=("pl-1",))))
    found = of(told(NetworkCheck.OPEN_ADMIN_PORT, listed), "sg-1")
    assert (found.verdict, found.reason.code) == (UNMEASURED, ReasonCode.NET_UNTOLD)
    assert found.reason.facts == {"part": "groups", "detail": "sg-1 r: pl-1 could not be resolved"}


def test_an_instance_is_said_of_only_where_it_cannot_be_told_or_is_safe() -> None:
    assert said(NetworkCheck.OPEN_ADMIN_PORT, place(group(allow("r", 443)))) == [
        ("i-1", COMPLIANT, ReasonCode.NET_AS_ASKED),
        ("sg-1", COMPLIANT, ReasonCode.NET_AS_ASKED),
    ]
    assert [each[0] for each in said(NetworkCheck.OPEN_ADMIN_PORT, place(group(allow("r", 22))))] == ["sg-1"]
    unread = said(NetworkCheck.OPEN_ADMIN_PORT, place(group(allow("r", 22)), gaps=(gap("routes"),)))
    assert ("i-1", UNMEASURED, ReasonCode.NET_UNTOLD) in unread
    beside = said(NetworkCheck.OPEN_ADMIN_PORT, place(group(allow("r", 443)), gaps=(gap("routes"),)))
    assert ("i-1", COMPLIANT, ReasonCode.NET_AS_ASKED) in beside


def test_groups_that_were_not_read_are_unmeasured_as_a_region_and_one_by_one() -> None:
    found = told(NetworkCheck.OPEN_ADMIN_PORT, place(group(allow("r", 443)), gaps=(gap("groups"),)))
    assert {(each.subject.kind, each.verdict) for each in found if isinstance(each.subject, ResourceRef)} == {
        ("instance", UNMEASURED),
        ("region", UNMEASURED),
        ("security_group", UNMEASURED),
    }
    assert {each.reason.facts["detail"] for each in found} == {"denied: not authorised"}


def test_a_forward_that_leads_to_what_was_not_read_is_said_of_its_gateway() -> None:
    forward = Forward("tcp", "198.51.100.9", ((22, 22),), "10.9.0.7", ((22, 22),))
    gateway = NatGateway(ref("nat_gateway", "ngw-1"), ref("vpc", "vpc-1"), (), forwards=(forward,))
    far = Peering(ref("peering", "pcx-1"), ref("vpc", "vpc-1"), "444455556666", "us-east-1", "vpc-9")
    found = said(NetworkCheck.OPEN_ADMIN_PORT, place(group(), cards=[], nat_gateways=(gateway,), peerings=(far,)))
    assert ("ngw-1", UNMEASURED, ReasonCode.NET_UNTOLD) in found


# wide rules


def test_a_wide_rule_is_one_on_whatever_port_that_is_not_allowed() -> None:
    here = place(group(allow("r", 443)))
    found = of(told(NetworkCheck.WIDE_RULE, here), "sg-1")
    assert (found.verdict, found.reason.code) == (VIOLATION, ReasonCode.NET_WIDE_RULE)
    assert (found.reason.facts["port"], found.reason.facts["severity"]) == (443, "high")
    assert of(told(NetworkCheck.WIDE_RULE, here, allowed_ports=(443,)), "sg-1").verdict is COMPLIANT
    gre = place(group(allow("r", protocol="gre", ports=())))
    assert of(told(NetworkCheck.WIDE_RULE, gre), "sg-1").reason.facts["protocol"] == "gre"
    ping = place(group(allow("r", protocol="icmp", ports=())))
    assert of(told(NetworkCheck.WIDE_RULE, ping), "sg-1").verdict is COMPLIANT


def test_a_rule_is_told_once_as_an_open_port_and_not_again_as_wide() -> None:
    here = place(group(allow("a", 22), allow("b", 443)))
    found = told(NetworkCheck.WIDE_RULE, here, rules=[audit(NetworkCheck.WIDE_RULE, NetworkCheck.OPEN_ADMIN_PORT)])
    told_of = {each.check: each.reason.facts.get("rule") for each in found if each.verdict is VIOLATION}
    assert told_of == {"open_admin_port": "a", "wide_rule": "b"}


# unused groups


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ({"in_use": False}, VIOLATION),
        ({"in_use": True}, COMPLIANT),
        ({"in_use": None}, UNMEASURED),
        ({"in_use": False, "referenced_by": ("sg-2",)}, COMPLIANT),
    ],
)
def test_a_group_is_unused_where_the_cloud_says_so_and_nobody_names_it(changes: Any, verdict: Verdict) -> None:
    assert of(told(NetworkCheck.UNUSED_GROUP, place(group(**changes), cards=[])), "sg-1").verdict is verdict


def test_a_group_on_a_card_is_used_whatever_is_told_and_without_cards_read_none_is_unused() -> None:
    assert of(told(NetworkCheck.UNUSED_GROUP, place(group(in_use=False))), "sg-1").verdict is COMPLIANT
    unread = place(group(in_use=False), cards=[], gaps=(gap("interfaces"),))
    assert of(told(NetworkCheck.UNUSED_GROUP, unread), "sg-1").verdict is UNMEASURED
    spare = place(group(in_use=False), cards=[])
    assert of(told(NetworkCheck.UNUSED_GROUP, spare, keep=("sg-1",)), "sg-1").verdict is EXEMPT
    for others in (group(in_use=False, is_default=True), group(in_use=False, is_service_managed=True)):
        assert said(NetworkCheck.UNUSED_GROUP, place(others, cards=[])) == []


# public addresses


def test_a_public_address_is_said_of_the_instance_with_what_it_lets_in() -> None:
    kept = address("eip-1", ip=PUBLIC, state=AddressState.IN_USE, bound_to=ref("instance", "i-1"), rate=PRICE)
    (found,) = told(NetworkCheck.PUBLIC_IP, place(group(allow("r", 22, 443)), addresses=(kept,)))
    assert (found.verdict, found.reason.code, found.rate) == (VIOLATION, ReasonCode.NET_PUBLIC_IP, PRICE)
    facts = found.reason.facts
    assert (facts["address"], facts["ports"], facts["severity"], facts["reaches"]) == (PUBLIC, "22,443", "high", 1)
    closed = told(NetworkCheck.PUBLIC_IP, place(group()))[0].reason.facts
    assert (closed["address"], closed["severity"], closed["reaches"]) == (PUBLIC, "medium", 0)


def test_an_instance_without_a_public_address_is_as_asked_once_all_was_read() -> None:
    hidden = place(group(allow()), cards=HIDDEN)
    assert said(NetworkCheck.PUBLIC_IP, hidden) == [("i-1", COMPLIANT, ReasonCode.NET_AS_ASKED)]
    for part in ("interfaces", "addresses"):
        assert told(NetworkCheck.PUBLIC_IP, replace(hidden, gaps=(gap(part),)))[0].verdict is UNMEASURED
    assert told(NetworkCheck.PUBLIC_IP, place(group(), cards=[]))[0].verdict is UNMEASURED
    elsewhere = [instance("i-2", Shard("aws", "111122223333", "eu-west-1"))]
    assert told(NetworkCheck.PUBLIC_IP, hidden, instances=elsewhere)[0].verdict is UNMEASURED


def test_an_ipv6_address_is_public_where_answers_leave_by_an_internet_gateway() -> None:
    cards = [card(public_ips=(), ipv6_public=("2001:db8::7",))]
    by_gateway = place(group(), cards=cards, routes=(Route("::/0", Hop.INTERNET),))
    assert told(NetworkCheck.PUBLIC_IP, by_gateway)[0].reason.facts["address"] == "2001:db8::7"
    only_out = place(group(), cards=cards, routes=(Route("::/0", Hop.EGRESS_ONLY),))
    assert told(NetworkCheck.PUBLIC_IP, only_out)[0].verdict is COMPLIANT
    assert told(NetworkCheck.PUBLIC_IP, replace(by_gateway, gaps=(gap("routes"),)))[0].verdict is UNMEASURED


def test_an_address_that_policy_names_is_exempt() -> None:
    kept = address("eip-1", ip=PUBLIC, name="gateway", state=AddressState.IN_USE, bound_to=ref("instance", "i-1"))
    for name in ("eip-1", PUBLIC, "gateway"):
        (found,) = told(NetworkCheck.PUBLIC_IP, place(group(), addresses=(kept,)), keep=(name,))
        assert (found.verdict, found.reason.code) == (EXEMPT, ReasonCode.NET_KEPT)


def test_an_instance_that_is_gone_is_not_judged() -> None:
    assert told(NetworkCheck.PUBLIC_IP, place(group()), instances=[instance(state=InstanceState.TERMINATED)]) == []


# metadata and regions


@pytest.mark.parametrize(("told_v1", "verdict"), [(True, VIOLATION), (False, COMPLIANT), (None, UNMEASURED)])
def test_metadata_that_answers_anybody_is_a_violation_and_untold_is_unmeasured(
    *, told_v1: bool | None, verdict: Verdict
) -> None:
    assert told(NetworkCheck.IMDS_V1, place(group()), instances=[instance(imds_v1=told_v1)])[0].verdict is verdict


def test_metadata_of_an_instance_that_is_reached_is_graver() -> None:
    v1 = [instance(imds_v1=True)]
    assert told(NetworkCheck.IMDS_V1, place(group(allow("r", 443))), instances=v1)[0].reason.facts["severity"] == "high"
    assert told(NetworkCheck.IMDS_V1, place(group()), instances=v1)[0].reason.facts["severity"] == "medium"
    assert told(NetworkCheck.IMDS_V1, place(group()), instances=v1, keep=("i-1",))[0].verdict is EXEMPT


def test_an_instance_outside_the_allowed_regions_is_a_violation() -> None:
    found = told(NetworkCheck.REGION, place(group()), allowed_regions=("eu-*", "cn-*"))
    assert [(each.verdict, each.reason.facts["region"]) for each in found] == [(VIOLATION, "us-east-1")]
    assert told(NetworkCheck.REGION, place(group()), allowed_regions=("us-*",))[0].verdict is COMPLIANT
    assert told(NetworkCheck.REGION, place(group()), allowed_regions=())[0].verdict is VIOLATION
    assert told(NetworkCheck.REGION, place(group()), allowed_regions=None) == []


@pytest.mark.parametrize("check", [NetworkCheck.PUBLIC_IP, NetworkCheck.IMDS_V1, NetworkCheck.REGION])
def test_instances_that_were_not_all_listed_are_unmeasured_as_a_region(check: NetworkCheck) -> None:
    unread = place(group(), gaps=(gap("inventory"),))
    assert ("us-east-1", UNMEASURED, ReasonCode.NET_UNTOLD) in said(check, unread, allowed_regions=("us-*",))


# addresses and gateways in nobody's use

SPARE = ref("address", "eip-1")


def spare(**changes: Any) -> NetworkInventory:
    return place(addresses=(address(**{"allocated_at": NOW - 400 * DAY, "rate": PRICE, **changes}),), cards=[])


def test_an_address_without_use_is_said_with_its_price_once_it_was_so_long_enough() -> None:
    (found,) = told(NetworkCheck.UNATTACHED_ADDRESS, spare(), first_seen={SPARE: NOW - 7 * DAY})
    assert (found.verdict, found.reason.code, found.rate) == (VIOLATION, ReasonCode.NET_UNATTACHED, PRICE)
    assert found.reason.facts["seen_hours"] == 168
    (sooner,) = told(NetworkCheck.UNATTACHED_ADDRESS, spare(), first_seen={SPARE: NOW - 7 * DAY + HOUR})
    assert (sooner.verdict, sooner.reason.code, sooner.rate) == (UNMEASURED, ReasonCode.NET_UNATTACHED_YET, PRICE)
    assert sooner.reason.facts["seen_hours"] == 167


def test_the_age_of_an_address_tells_only_how_young_it_is() -> None:
    for allocated_at in (NOW - 400 * DAY, None):
        never_seen = told(NetworkCheck.UNATTACHED_ADDRESS, spare(allocated_at=allocated_at))[0]
        assert (never_seen.verdict, never_seen.reason.facts["seen_hours"]) == (UNMEASURED, 0)
    assert told(NetworkCheck.UNATTACHED_ADDRESS, spare(allocated_at=NOW - DAY))[0].verdict is COMPLIANT
    another = spare(allocated_at=NOW - DAY)
    assert told(NetworkCheck.UNATTACHED_ADDRESS, another, first_seen={SPARE: NOW - 30 * DAY})[0].verdict is COMPLIANT
    anew = told(
        NetworkCheck.UNATTACHED_ADDRESS, spare(allocated_at=NOW - 10 * DAY), first_seen={SPARE: NOW - 30 * DAY}
    )[0]
    assert anew.reason.facts["seen_hours"] == 240


@pytest.mark.parametrize(
    ("changes", "verdict", "code"),
    [
        ({"is_prepaid": True}, EXEMPT, ReasonCode.PREPAID),
        ({"is_service_managed": True}, EXEMPT, ReasonCode.CLOUD_SERVICE),
        ({"protected_by": ("deletion_protection",)}, EXEMPT, ReasonCode.PROTECTED_BY_CLOUD),
        ({"name": "kept"}, EXEMPT, ReasonCode.NET_KEPT),
        ({"state": AddressState.CHANGING}, UNMEASURED, ReasonCode.NET_UNTOLD),
        ({"state": AddressState.UNKNOWN}, UNMEASURED, ReasonCode.NET_UNTOLD),
        ({"state": AddressState.IN_USE}, COMPLIANT, ReasonCode.NET_AS_ASKED),
        ({"bound_to": ref("instance", "i-1")}, COMPLIANT, ReasonCode.NET_AS_ASKED),
    ],
)
def test_what_an_address_is_says_whether_it_is_judged(changes: Any, verdict: Verdict, code: ReasonCode) -> None:
    seen = {SPARE: NOW - 30 * DAY}
    assert said(NetworkCheck.UNATTACHED_ADDRESS, spare(**changes), first_seen=seen, keep=("kept",)) == [
        ("eip-1", verdict, code)
    ]


def test_addresses_that_were_not_listed_are_unmeasured() -> None:
    found = told(NetworkCheck.UNATTACHED_ADDRESS, place(cards=[], gaps=(gap("addresses"),)))
    assert [(str(each.subject), each.verdict) for each in found] == [
        ("aws:111122223333:us-east-1:region:us-east-1", UNMEASURED)
    ]


def bound(**changes: Any) -> PublicAddress:
    return address(**{"state": AddressState.IN_USE, "bound_to": ref("instance", "i-1"), "rate": PRICE, **changes})


def machine(**changes: Any) -> Instance:
    return instance(**{"state": InstanceState.STOPPED, "name": "trainer", **changes})


IDLE = ReasonCode.NET_IDLE_ADDRESS


def test_an_address_that_waits_for_a_stopped_machine_names_it_and_what_it_costs() -> None:
    stopped = machine(stopped_at=NOW - 9 * DAY)
    (found,) = told(NetworkCheck.IDLE_ADDRESS, place(addresses=(bound(),)), instances=[stopped])
    assert (found.verdict, found.reason.code, found.rate, found.subject) == (VIOLATION, IDLE, PRICE, SPARE)
    assert found.reason.facts == {
        "address": "203.0.113.9",
        "instance": "i-1",
        "machine": "trainer",
        "stopped_hours": 216,
        "wanted_hours": 168,
        "reaches": 0,
        "severity": "low",
    }


def test_why_there_is_no_price_is_told_with_it() -> None:
    free = bound(rate=None, unpriced=Unpriced.FREE_WHILE_BOUND)
    (found,) = told(NetworkCheck.IDLE_ADDRESS, place(addresses=(free,)), instances=[machine()])
    assert (found.rate, found.reason.facts["unpriced"]) == (None, "free_while_bound")
    unread = spare(rate=None, unpriced=Unpriced.NOT_READ)
    (found,) = told(NetworkCheck.UNATTACHED_ADDRESS, unread, first_seen={SPARE: NOW - 30 * DAY})
    assert (found.rate, found.reason.facts["unpriced"]) == (None, "price_not_read")
    assert (
        told(NetworkCheck.UNATTACHED_ADDRESS, unread)[0].reason.facts["unpriced"] == "price_not_read"
    )  # not long enough yet
    here = place(group(), cards=[], nat_gateways=(gateway(rate=None, unpriced=Unpriced.UNLISTED),))
    assert told(NetworkCheck.IDLE_NAT_GATEWAY, here)[0].reason.facts["unpriced"] == "price_unlisted"


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ({}, VIOLATION),  # not told since when
        ({"stopped_at": NOW - 7 * DAY}, VIOLATION),
        ({"stopped_at": NOW - 7 * DAY + HOUR}, COMPLIANT),
        ({"state": InstanceState.RUNNING}, COMPLIANT),
        ({"state": InstanceState.STOPPING}, COMPLIANT),
        ({"state": InstanceState.PENDING}, COMPLIANT),
        ({"state": InstanceState.UNKNOWN}, UNMEASURED),
    ],
)
def test_an_address_is_idle_once_its_machine_was_stopped_long_enough(changes: Any, verdict: Verdict) -> None:
    (found,) = told(NetworkCheck.IDLE_ADDRESS, place(addresses=(bound(),)), instances=[machine(**changes)])
    assert found.verdict is verdict


@pytest.mark.parametrize(
    ("changes", "held", "verdict", "code"),
    [
        ({"bound_to": ref("interface", "eni-1")}, {}, VIOLATION, IDLE),
        ({"bound_to": ref("interface", "eni-1")}, {"instance": None}, COMPLIANT, ReasonCode.NET_AS_ASKED),
        (
            {"bound_to": ref("interface", "eni-1")},
            {"instance": None, "unattached": True},
            VIOLATION,
            ReasonCode.NET_IDLE_CARD,
        ),
        ({"bound_to": ref("interface", "eni-9")}, {}, UNMEASURED, ReasonCode.NET_UNTOLD),
        ({"bound_to": ref("nat_gateway", "nat-1")}, {}, COMPLIANT, ReasonCode.NET_AS_ASKED),
        ({"bound_to": None, "state": AddressState.UNATTACHED}, {}, COMPLIANT, ReasonCode.NET_AS_ASKED),
        ({"state": AddressState.CHANGING}, {}, UNMEASURED, ReasonCode.NET_UNTOLD),
        ({"is_prepaid": True}, {}, EXEMPT, ReasonCode.PREPAID),
        ({"is_service_managed": True}, {}, EXEMPT, ReasonCode.CLOUD_SERVICE),
        ({"name": "kept"}, {}, EXEMPT, ReasonCode.NET_KEPT),
    ],
)
def test_what_an_address_is_bound_to_says_whether_it_waits_in_vain(
    changes: Any, held: Any, verdict: Verdict, code: ReasonCode
) -> None:
    here = place(addresses=(bound(**changes),), cards=[replace(card(), **held)])
    assert said(NetworkCheck.IDLE_ADDRESS, here, instances=[machine()], keep=("kept",)) == [("eip-1", verdict, code)]


def test_a_machine_that_is_not_read_is_no_stopped_one() -> None:
    other = bound(bound_to=ref("instance", "i-without-gpu"))
    assert said(NetworkCheck.IDLE_ADDRESS, place(addresses=(other,))) == []
    unread = place(addresses=(other,), gaps=(gap("inventory"),))
    assert ("eip-1", UNMEASURED, ReasonCode.NET_UNTOLD) in said(NetworkCheck.IDLE_ADDRESS, unread)
    cards_unread = place(addresses=(bound(bound_to=ref("interface", "eni-9")),), gaps=(gap("interfaces"),))
    assert said(NetworkCheck.IDLE_ADDRESS, cards_unread) == [("eip-1", UNMEASURED, ReasonCode.NET_UNTOLD)]


def gateway(**changes: Any) -> NatGateway:
    ordinary = NatGateway(
        ref("nat_gateway", "nat-1"), ref("vpc", "vpc-1"), ("198.51.100.9",), created_at=NOW - 90 * DAY, rate=PRICE
    )
    return replace(ordinary, **changes)


TO_NAT = Route(WORLD, Hop.NAT, "nat-1")


@pytest.mark.parametrize(
    ("routes", "cards", "changes", "verdict"),
    [
        ((LOCAL, OUT), HIDDEN, {}, VIOLATION),
        ((LOCAL, TO_NAT), HIDDEN, {}, COMPLIANT),
        ((LOCAL, TO_NAT), [], {}, VIOLATION),
        ((LOCAL, replace(TO_NAT, active=False)), HIDDEN, {}, VIOLATION),
        ((LOCAL, replace(TO_NAT, target="nat-2")), HIDDEN, {}, VIOLATION),
        ((LOCAL, OUT), HIDDEN, {"forwards": (Forward("tcp", "x", (), "10.0.0.7", ()),)}, COMPLIANT),
        ((LOCAL, OUT), HIDDEN, {"created_at": NOW - DAY}, COMPLIANT),
        ((LOCAL, OUT), HIDDEN, {"created_at": None}, VIOLATION),
        ((LOCAL, OUT), HIDDEN, {"name": "kept"}, EXEMPT),
    ],
)
def test_a_gateway_that_nothing_goes_through_is_idle(routes: Any, cards: Any, changes: Any, verdict: Verdict) -> None:
    here = place(group(), cards=cards, routes=routes, nat_gateways=(gateway(**changes),))
    (found,) = told(NetworkCheck.IDLE_NAT_GATEWAY, here, keep=("kept",))
    assert (found.verdict, found.rate) == (verdict, PRICE)


@pytest.mark.parametrize("part", ["routes", "subnets", "interfaces"])
def test_a_gateway_is_not_idle_while_who_uses_it_was_not_read(part: str) -> None:
    here = place(group(), cards=[], nat_gateways=(gateway(),), gaps=(gap(part),))
    assert told(NetworkCheck.IDLE_NAT_GATEWAY, here)[0].verdict is UNMEASURED


# networks


def test_a_default_network_is_a_violation_once_a_machine_is_in_it() -> None:
    default = {"is_default": True}
    facts = told(NetworkCheck.DEFAULT_VPC, place(group(allow("r", 22)), vpc=default))[0].reason.facts
    assert facts == {"instances": 1, "accelerators": 1, "reaches": 1, "severity": "medium"}
    others = place(group(), cards=[card(instance="i-9")], vpc=default)
    assert told(NetworkCheck.DEFAULT_VPC, others)[0].reason.facts["severity"] == "low"
    empty = place(group(), cards=[], vpc=default)
    assert told(NetworkCheck.DEFAULT_VPC, empty)[0].verdict is COMPLIANT
    assert told(NetworkCheck.DEFAULT_VPC, replace(empty, gaps=(gap("interfaces"),)))[0].verdict is UNMEASURED
    assert told(NetworkCheck.DEFAULT_VPC, place(group(), vpc=default), keep=("vpc-1",))[0].verdict is EXEMPT
    assert told(NetworkCheck.DEFAULT_VPC, place(group())) == []


def log(kind: str, native_id: str, shard: Shard = AWS, *, active: bool = True) -> FlowLog:
    return FlowLog(ref("flow_log", "fl-1", shard), ref(kind, native_id, shard), active)


@pytest.mark.parametrize(
    ("logs", "verdict"),
    [
        ((), VIOLATION),
        ((log("vpc", "vpc-1"),), COMPLIANT),
        ((log("vpc", "vpc-1", active=False),), VIOLATION),
        ((log("vpc", "vpc-2"),), VIOLATION),
        ((log("subnet", "subnet-1"),), COMPLIANT),
        ((log("interface", "eni-1"),), COMPLIANT),
        ((log("interface", "eni-2"),), VIOLATION),
    ],
)
def test_flow_logs_cover_a_network_its_subnets_or_every_card(logs: Any, verdict: Verdict) -> None:
    assert told(NetworkCheck.FLOW_LOGS_OFF, place(group(), flow_logs=logs))[0].verdict is verdict


def test_flow_logs_that_were_not_read_are_not_off_and_an_empty_network_needs_none_where_only_cards_have_them() -> None:
    for part in ("flow_logs", "interfaces", "subnets"):
        assert told(NetworkCheck.FLOW_LOGS_OFF, place(group(), gaps=(gap(part),)))[0].verdict is UNMEASURED
    assert told(NetworkCheck.FLOW_LOGS_OFF, place(group(), cards=[]))[0].verdict is VIOLATION
    assert told(NetworkCheck.FLOW_LOGS_OFF, place(cards=[], shard=TENCENT))[0].verdict is COMPLIANT
    assert told(NetworkCheck.FLOW_LOGS_OFF, place(group()), keep=("vpc-1",))[0].verdict is EXEMPT


def private(routes: Sequence[Route], shard: Shard = AWS, **parts: Any) -> NetworkInventory:
    return place(group(shard=shard), routes=routes, shard=shard, subnet={"name": "private-a"}, **parts)


def exposed(here: NetworkInventory, **rule: Any) -> list[Finding]:
    return told(NetworkCheck.PRIVATE_SUBNET_EXPOSED, here, **{"private_subnets": ("private-*",), **rule})


def test_a_private_subnet_that_leads_to_the_internet_is_exposed() -> None:
    (found,) = exposed(private((LOCAL, OUT)))
    assert (found.verdict, found.reason.facts["gateway"], found.reason.facts["route"]) == (VIOLATION, "igw-1", WORLD)
    assert exposed(private((LOCAL, TO_NAT)))[0].verdict is COMPLIANT
    assert exposed(private((LOCAL, replace(OUT, active=False))))[0].verdict is COMPLIANT
    assert exposed(private((LOCAL,), gaps=(gap("routes"),)))[0].verdict is UNMEASURED
    assert exposed(private((LOCAL,), gaps=(gap("vpcs"),)))[0].verdict is COMPLIANT
    assert exposed(private((LOCAL, OUT)), private_subnets=("inner-*",)) == []
    assert exposed(private((LOCAL, OUT)), private_subnets=("subnet-1",))[0].verdict is VIOLATION
    assert exposed(private((LOCAL, OUT)), keep=("private-a",))[0].verdict is EXEMPT


def test_where_an_address_suffices_a_public_one_exposes_a_private_subnet() -> None:
    assert exposed(private((LOCAL,), ALIBABA))[0].reason.facts["address"] == PUBLIC
    hidden = [card(shard=ALIBABA, public_ips=())]
    assert exposed(private((LOCAL,), ALIBABA, cards=hidden))[0].verdict is COMPLIANT
    unread = private((LOCAL,), ALIBABA, cards=hidden, gaps=(gap("addresses", ALIBABA),))
    assert exposed(unread)[0].verdict is UNMEASURED


def joined(*routes: Route, shard: Shard = AWS, other: str = "444455556666", **changes: Any) -> NetworkInventory:
    end = Peering(ref("peering", "pcx-1", shard), ref("vpc", "vpc-1", shard), other, shard.region, "vpc-9")
    return place(group(shard=shard), routes=routes, shard=shard, peerings=(replace(end, **changes),))


TO_PEER = Route("10.8.0.0/16", Hop.PEERING, "pcx-1")


def test_a_peering_is_wide_where_more_is_routed_to_it_than_policy_names() -> None:
    allowed: dict[str, Any] = {"peering_cidrs": ("10.8.0.0/15",)}
    assert told(NetworkCheck.WIDE_PEERING, joined(TO_PEER), **allowed)[0].verdict is COMPLIANT
    wide = replace(TO_PEER, destination="10.0.0.0/8")
    (found,) = told(NetworkCheck.WIDE_PEERING, joined(wide), **allowed)
    assert (found.verdict, found.reason.facts["route"], found.subject) == (
        VIOLATION,
        "10.0.0.0/8",
        ref("peering", "pcx-1"),
    )
    assert told(NetworkCheck.WIDE_PEERING, joined(replace(wide, target="pcx-2")), **allowed)[0].verdict is COMPLIANT
    assert told(NetworkCheck.WIDE_PEERING, joined(wide, active=False), **allowed)[0].verdict is COMPLIANT
    assert told(NetworkCheck.WIDE_PEERING, joined(replace(wide, active=False)), **allowed)[0].verdict is COMPLIANT
    assert told(NetworkCheck.WIDE_PEERING, joined(wide), peering_cidrs=())[0].verdict is VIOLATION
    assert told(NetworkCheck.WIDE_PEERING, joined(wide), peering_cidrs=None) == []
    assert told(NetworkCheck.WIDE_PEERING, joined(wide), keep=("pcx-1",), **allowed)[0].verdict is EXEMPT
    unread = replace(joined(TO_PEER), gaps=(gap("routes"),))
    assert told(NetworkCheck.WIDE_PEERING, unread, **allowed)[0].verdict is UNMEASURED


def test_a_peering_is_judged_once_with_the_routes_of_both_its_ends() -> None:
    there = Shard("aws", "444455556666", "us-east-1")
    wide = Route("10.0.0.0/8", Hop.PEERING, "pcx-1")
    ends = (joined(TO_PEER), joined(wide, shard=there, other="111122223333"))
    found = told(NetworkCheck.WIDE_PEERING, *ends, peering_cidrs=("10.8.0.0/16",))
    assert [(each.subject, each.verdict) for each in found] == [(ref("peering", "pcx-1"), VIOLATION)]


# rules


def test_the_gentlest_rule_that_forbids_it_speaks() -> None:
    stern = audit(NetworkCheck.PUBLIC_IP, name="a", mode=Mode.ENFORCE)
    mending = audit(NetworkCheck.PUBLIC_IP, name="b", mode=Mode.WARN, mend=frozenset({RemediationKind.DETACH_ADDRESS}))
    only_says = audit(NetworkCheck.PUBLIC_IP, name="x", mode=Mode.WARN)
    patient = audit(NetworkCheck.PUBLIC_IP, name="y", mode=Mode.WARN, wait=9 * DAY)
    other = audit(NetworkCheck.REGION, name="d", mode=Mode.OBSERVE)
    at = ref("instance", "i-1")
    assert gentlest(at, {}, NetworkCheck.PUBLIC_IP, [stern, mending, patient, other]) is patient
    assert gentlest(at, {}, NetworkCheck.PUBLIC_IP, [only_says, patient]) is patient
    assert gentlest(at, {}, NetworkCheck.PUBLIC_IP, [stern, mending, only_says]) is only_says
    assert gentlest(at, {}, NetworkCheck.PUBLIC_IP, [stern, mending, other]) is mending
    assert gentlest(at, {}, NetworkCheck.PUBLIC_IP, [stern, other]) is stern
    assert gentlest(at, {}, NetworkCheck.IMDS_V1, [stern, other]) is None
    longer = audit(NetworkCheck.UNATTACHED_ADDRESS, name="z", unattached_for=30 * DAY)
    sooner = audit(NetworkCheck.UNATTACHED_ADDRESS, name="a")
    assert gentlest(at, {}, NetworkCheck.UNATTACHED_ADDRESS, [sooner, longer]) is longer


def test_a_rule_speaks_of_what_it_names_and_nothing_is_said_of_the_rest() -> None:
    here = place(group(allow("r", 22)))
    assert said(NetworkCheck.PUBLIC_IP, here, applies_to=NetworkSelector(tags={"team": "nlp"})) == []
    tagged = [instance(tags={"team": "nlp"})]
    assert (
        told(NetworkCheck.PUBLIC_IP, here, instances=tagged, applies_to=NetworkSelector(tags={"team": "n*"}))[0].verdict
        is VIOLATION
    )
    assert said(NetworkCheck.PUBLIC_IP, here, except_for=(NetworkSelector(resources=("i-1",)),)) == []
    assert said(NetworkCheck.PUBLIC_IP, here, applies_to=NetworkSelector(clouds=("tencent",))) == []


def test_a_region_that_was_not_listed_is_told_though_the_rule_is_about_tags() -> None:
    here = place(cards=[], gaps=(gap("groups"),))
    by_tags = NetworkSelector(tags={"team": "nlp"}, resources=("sg-1",))
    assert ("us-east-1", UNMEASURED, ReasonCode.NET_UNTOLD) in said(NetworkCheck.UNUSED_GROUP, here, applies_to=by_tags)
    assert said(NetworkCheck.UNUSED_GROUP, here, applies_to=NetworkSelector(regions=("eu-*",))) == []


def test_at_most_one_finding_of_each_check_about_a_subject() -> None:
    """Cases are kept by check and subject: two would be taken for one."""
    here = place(
        group(allow("a", 22), allow("b", 8888, peers=("::/0",)), allow("c", 443)),
        group(allow("a", 3389), native_id="sg-2"),
        cards=[card(groups=("sg-1", "sg-2"), ipv6_public=("2001:db8::7",))],
        addresses=(address(),),
        gaps=(gap("flow_logs"), gap("peerings")),
    )
    found = judge([here], [instance(imds_v1=None)], [audit(private_subnets=("*",), peering_cidrs=())], NOW, {})
    keys = [(each.check, each.subject) for each in found]
    assert len(keys) == len(set(keys))
