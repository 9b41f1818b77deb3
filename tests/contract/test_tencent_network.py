"""Networks of Tencent Cloud through the emulator: what its own lists leave out, and what is read in their place."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from tests.contract.network_fleet import LEGACY, NARROW, NAT, NOTEBOOK, OPEN, PRIVATE, TRAINER, WORLD_V4
from tests.contract.tencent_network import TencentNetworkRig, tencent_network
from tests.world_ports.translate import to_product, to_world

from cloudstand.wire.faults import Fault, FaultKind
from cloudstand.world.network.networks import in_their_places
from costguard.domain.errors import RefusedError
from costguard.domain.network import AccessList, NetworkInterface, NetworkRule, Permission, SecurityGroup
from costguard.domain.resources import GapKind
from costguard.providers.kit.iam.permissions import Feature, Purpose
from costguard.providers.tencent.iam.permissions import OPERATIONS, REACH
from costguard.providers.tencent.iam.policy_documents import policy_document

ALWAYS = 1_000
RULES = "DescribeSecurityGroupPolicies"


@pytest.fixture(scope="module")
def provider() -> Iterator[TencentNetworkRig]:
    with tencent_network() as made:
        yield made


@pytest.fixture
def rig(provider: TencentNetworkRig) -> TencentNetworkRig:
    provider.reset()
    return provider


def refuse(rig: TencentNetworkRig, action: str, code: str = "UnauthorizedOperation", times: int = ALWAYS) -> None:
    rig.emulator.faults.add(Fault(FaultKind.REFUSED, action, times, code=code))


def group_of(rig: TencentNetworkRig, name: str) -> SecurityGroup:
    (found,) = (each for each in rig.read().groups if each.ref == rig.ref("security_group", name))
    return found


def with_rule(rig: TencentNetworkRig, rule: NetworkRule) -> None:
    """One more rule, at the top of the group called `NARROW`."""
    there = rig.truth()
    groups = tuple(
        replace(each, rules=to_product(in_their_places(to_world([rule, *each.rules]))))
        if each.ref == rig.ref("security_group", NARROW)
        else each
        for each in there.groups
    )
    rig.world.networks.place(to_world(replace(there, groups=groups)))


def a_rule(rig: TencentNetworkRig) -> NetworkRule:
    return group_of(rig, OPEN).rules[0]


def test_what_templates_stand_for_is_read_where_a_rule_names_one(rig: TencentNetworkRig) -> None:
    desk = rig.emulator.network_desk
    desk.address_templates["ipm-offices"] = ("198.51.100.0/24", "192.0.2.1-192.0.2.2", "2001:db8::1")
    desk.service_templates["ppm-web"] = ("tcp:80", "tcp:8000-8080", "udp:443", "icmp:all")
    with_rule(rig, replace(a_rule(rig), peers=(), unresolved=("ipm-offices",), protocol="ppm-web"))
    rig.emulator.calls.clear()
    rules = [rule for rule in group_of(rig, NARROW).rules if rule.priority == 0 and rule.direction.value == "ingress"]
    assert [(rule.rule_id, rule.protocol, rule.ports) for rule in rules] == [
        ("0", "tcp", ((80, 80), (8000, 8080))),
        ("0", "udp", ((443, 443),)),
        ("0", "icmp", ()),
    ]
    peers = ("198.51.100.0/24", "192.0.2.1/32", "192.0.2.2/32", "2001:db8::1/128")
    assert {rule.peers for rule in rules} == {peers}
    assert {rule.unresolved for rule in rules} == {()}
    asked = rig.requests()
    assert asked.count("vpc:DescribeAddressTemplates") == asked.count("vpc:DescribeServiceTemplates") == 1
    assert "vpc:DescribeAddressTemplateGroups" not in asked, "nothing names a group of templates"


def test_groups_of_templates_are_followed(rig: TencentNetworkRig) -> None:
    desk = rig.emulator.network_desk
    desk.address_templates |= {"ipm-1": ("198.51.100.0/24",), "ipm-2": ("192.0.2.0/24",)}
    desk.address_groups["ipmg-all"] = ("ipm-1", "ipm-2")
    desk.service_templates["ppm-1"] = ("tcp:22",)
    desk.service_groups["ppmg-all"] = ("ppm-1",)
    with_rule(rig, replace(a_rule(rig), peers=(), unresolved=("ipmg-all",), protocol="ppmg-all"))
    rule = group_of(rig, NARROW).rules[0]
    assert (rule.peers, rule.protocol, rule.ports) == (("198.51.100.0/24", "192.0.2.0/24"), "tcp", ((22, 22),))


def test_a_template_that_cannot_be_read_leaves_its_name_and_a_gap_of_its_own(rig: TencentNetworkRig) -> None:
    with_rule(rig, replace(a_rule(rig), peers=(), unresolved=("ipm-offices",)))
    refuse(rig, "DescribeAddressTemplates")
    found = rig.read()
    (rule,) = (each.rules[0] for each in found.groups if each.ref == rig.ref("security_group", NARROW))
    assert (rule.peers, rule.unresolved) == ((), ("ipm-offices",))
    (gap,) = found.gaps
    assert (gap.what, gap.kind, gap.fix) == (
        "templates",
        GapKind.DENIED,
        "grant vpc:DescribeAddressTemplates to these credentials",
    )


def test_a_group_of_templates_that_lacks_one_is_not_taken_for_the_rest(rig: TencentNetworkRig) -> None:
    desk = rig.emulator.network_desk
    desk.address_templates["ipm-1"] = ("198.51.100.0/24",)
    desk.address_groups["ipmg-all"] = ("ipm-1", "ipm-gone")
    with_rule(rig, replace(a_rule(rig), peers=(), unresolved=("ipmg-all",)))
    assert group_of(rig, NARROW).rules[0].unresolved == ("ipmg-all",)


def test_a_group_whose_rules_were_not_read_is_left_out_and_never_shown_without_rules(rig: TencentNetworkRig) -> None:
    refuse(rig, RULES, times=1)
    found = rig.read()
    assert len(found.groups) == len(rig.truth().groups) - 1
    assert [(gap.what, gap.kind) for gap in found.gaps] == [("groups", GapKind.DENIED)]
    assert all(group.rules for group in found.groups)


def test_a_group_that_was_deleted_while_it_was_read_is_gone_and_no_gap(rig: TencentNetworkRig) -> None:
    refuse(rig, RULES, "ResourceNotFound", times=1)
    found = rig.read()
    assert (len(found.groups), found.gaps) == (len(rig.truth().groups) - 1, ())


def test_without_the_use_of_groups_nobody_is_called_unused(rig: TencentNetworkRig) -> None:
    refuse(rig, "DescribeSecurityGroupAssociationStatistics")
    found = rig.read()
    assert {group.in_use for group in found.groups} == {None}
    assert len(found.groups) == len(rig.truth().groups)
    assert [gap.what for gap in found.gaps] == ["groups"]


def test_a_list_of_five_parts_is_read_entry_by_entry(rig: TencentNetworkRig) -> None:
    fence = rig.ref("access_list", "fence")
    desk = rig.emulator.network_desk
    desk.quintuple.add(fence.native_id)
    denial = _entry(_access_list(rig), Permission.DENY)
    assert _access_list(rig) == next(each for each in rig.truth().access_lists if each.ref == fence)
    desk.near[denial.rule_id] = {"SourcePort": "1-1023"}
    narrower = _entry(_access_list(rig), Permission.DENY)
    assert (narrower.peers, len(narrower.unresolved)) == ((), 1), "who is denied only in part is not denied"
    assert rig.requests().count("vpc:DescribeNetworkAclQuintupleEntries") == 3


def test_an_access_list_whose_entries_were_not_read_is_left_out(rig: TencentNetworkRig) -> None:
    """Without any it would deny everything."""
    rig.emulator.network_desk.quintuple.add(rig.ref("access_list", "fence").native_id)
    refuse(rig, "DescribeNetworkAclQuintupleEntries")
    found = rig.read()
    assert found.access_lists == ()
    assert [gap.what for gap in found.gaps] == ["access_lists"]
    assert [each.access_list for each in found.subnets if each.ref == rig.ref("subnet", PRIVATE)] == [
        rig.ref("access_list", "fence")
    ]


def _access_list(rig: TencentNetworkRig) -> AccessList:
    (found,) = rig.read().access_lists
    return found


def _entry(access_list: AccessList, permission: Permission) -> NetworkRule:
    return next(rule for rule in access_list.rules if rule.permission is permission)


def test_forwards_that_a_short_list_of_gateways_leaves_out_are_found(rig: TencentNetworkRig) -> None:
    rig.emulator.network_desk.compact = True
    assert {each.ref: each.forwards for each in rig.read().nat_gateways} == {
        each.ref: each.forwards for each in rig.truth().nat_gateways
    }
    refuse(rig, "DescribeNatGatewayDestinationIpPortTranslationNatRules")
    found = rig.read()
    assert [gap.what for gap in found.gaps] == ["nat_gateways"]
    assert {each.ref for each in found.nat_gateways} >= {rig.ref("nat_gateway", NAT)}


def test_plain_addresses_are_found_whichever_list_tells_them(rig: TencentNetworkRig) -> None:
    rig.emulator.network_desk.hides_plain = True
    found = rig.read()
    legacy = _card(found.interfaces, rig, LEGACY)
    assert legacy.public_ips == _card(rig.truth().interfaces, rig, LEGACY).public_ips != ()
    assert "203.0.113.20" not in {address.ip for address in found.addresses}, "nobody keeps it"
    kept = _card(found.interfaces, rig, NOTEBOOK)
    assert len(kept.public_ips) == 1, "told by both lists, and there once"


def _card(cards: tuple[NetworkInterface, ...], rig: TencentNetworkRig, name: str) -> NetworkInterface:
    return next(card for card in cards if card.ref == rig.ref("interface", name))


def test_addresses_bound_to_a_card_alone_are_in_use(rig: TencentNetworkRig) -> None:
    """BIND_ENI: of no machine, and paid for."""
    there, card = rig.truth(), rig.ref("interface", TRAINER)
    cards = tuple(replace(each, instance=None) if each.ref == card else each for each in there.interfaces)
    rig.world.networks.place(to_world(replace(there, interfaces=cards)))
    rig.world.networks.attach(
        to_world(rig.ref("address", "spare")), to_world(card), "10.20.2.10", rig.clock.now(), "owner"
    )
    assert [each.bound_to for each in rig.read().addresses if each.ref == rig.ref("address", "spare")] == [card]


def test_machines_tell_the_same_networks_as_their_cards(rig: TencentNetworkRig) -> None:
    (page,) = rig.session("reading").pages(rig.shard, "cvm", "DescribeInstances", "InstanceSet")
    cards = {str(card.instance): card for card in rig.truth().interfaces}
    told = {item["InstanceId"]: item for item in page}
    for card in cards.values():
        assert card.instance is not None
        assert card.vpc is not None
        item = told[card.instance.native_id]
        assert item["VirtualPrivateCloud"]["VpcId"] == card.vpc.native_id
        assert (item["SecurityGroupIds"], item["PrivateIpAddresses"]) == (list(card.groups), list(card.private_ips))


def test_regions_of_peers_have_their_whole_names(rig: TencentNetworkRig) -> None:
    rig.emulator.network_desk.short_regions["ap-guangzhou"] = "gz"
    assert rig.read().peerings == rig.truth().peerings


def test_numbers_of_pages_are_in_quotes_where_the_list_wants_that(rig: TencentNetworkRig) -> None:
    session = rig.session("reading")
    for action, limit in (("DescribeVpcs", 100), ("DescribeNetworkAcls", "100"), ("DescribeSubnets", "101")):
        with pytest.raises(RefusedError, match="InvalidParameter"):
            session.call(rig.shard, "vpc", action, Limit=limit)


def test_reading_and_mending_are_granted_apart() -> None:
    changing = {name for name, operation in REACH[Purpose.MEND].items() if operation.changes_something}
    assert len(changing) == 8
    assert not changing & set(OPERATIONS), "no other session has any of them"
    (reading,) = policy_document({Feature.NETWORK})["statement"]
    assert set(reading["action"]) == {name for name in REACH[Purpose.MEND].keys() - changing if name[:3] == "vpc"}
    looks, groups, others = policy_document({Feature.FIX_NETWORK}, account="100012345678")["statement"]
    assert groups["resource"] == ["qcs::vpc::uin/100012345678:sg/*"]
    assert set(groups["action"]) | set(others["action"]) == changing
    assert set(looks["action"]) <= set(reading["action"])


def test_a_world_rule_of_several_networks_is_shown_by_a_template(rig: TencentNetworkRig) -> None:
    """A rule of this cloud has one peer; so what another cloud has in one rule still comes through."""
    with_rule(rig, replace(a_rule(rig), peers=("198.51.100.0/24", WORLD_V4)))
    assert group_of(rig, NARROW).rules[0].peers == ("198.51.100.0/24", WORLD_V4)
