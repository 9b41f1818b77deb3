"""What mends a finding: only what the rule allows, only the one thing that is wrong, and how it is taken back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from tests.network_places import (
    NOW,
    PUBLIC,
    TENCENT,
    WORLD,
    address,
    allow,
    audit,
    card,
    deny,
    gap,
    group,
    instance,
    place,
    ref,
)

from costguard.domain.errors import InvalidInputError
from costguard.domain.findings import Finding, Verdict
from costguard.domain.network import (
    AddressState,
    Direction,
    FlowLog,
    NetworkInventory,
    NetworkRule,
    Permission,
)
from costguard.domain.refs import ResourceRef, Shard
from costguard.domain.remediations import FINAL, Remediation, RemediationKind
from costguard.guards.network.judge import before_of, inverse, judge, least_change, remediation_of
from costguard.guards.network.reachability.exposure import reach
from costguard.guards.network.rules import AuditRule, NetworkCheck, read_rule, rule_text

DAY = timedelta(days=1)
OFFICE, OFFICE_V6 = "198.51.100.0/24", "2001:db8:1::/48"
REVOKE, NARROW = RemediationKind.REVOKE_RULE, RemediationKind.NARROW_RULE
SPARE = ref("address", "eip-1")


def mends(
    rule: AuditRule,
    here: NetworkInventory,
    first_seen: Mapping[ResourceRef, datetime] | None = None,
    imds_v1: bool | None = True,  # noqa: FBT001, FBT002 - what the cloud tells
) -> list[Remediation]:
    machines = [instance(shard=here.shard, imds_v1=imds_v1)]
    found = judge([here], machines, [rule], NOW, first_seen or {})
    return [mend for each in found if (mend := remediation_of(each, here, rule)) is not None]


def closing(*kinds: RemediationKind, **changes: Any) -> AuditRule:
    return audit(NetworkCheck.OPEN_ADMIN_PORT, mend=frozenset(kinds), **changes)


# rules


def test_nothing_is_mended_that_the_rule_does_not_allow() -> None:
    here = place(
        group(allow("r", 22)),
        addresses=(address("eip-2", ip=PUBLIC, state=AddressState.IN_USE, bound_to=ref("instance", "i-1")), address()),
    )
    seen = {SPARE: NOW - 30 * DAY}
    everything = audit(flow_log_destination="arn:aws:s3:::logs", narrow_to=(OFFICE,), private_subnets=("*",))
    assert mends(everything, here, seen) == []
    every_kind = {each.kind for each in mends(replace(everything, mend=frozenset(RemediationKind)), here, seen)}
    assert every_kind == {
        RemediationKind.RELEASE_ADDRESS,
        RemediationKind.DETACH_ADDRESS,
        RemediationKind.NARROW_RULE,
        RemediationKind.ENABLE_FLOW_LOGS,
        RemediationKind.REQUIRE_IMDSV2,
    }


def test_exactly_the_one_rule_that_opens_is_revoked() -> None:
    here = place(group(allow("a", 443), allow("b", 22), allow("c", 22, peers=(OFFICE,)), version="7"))
    said = {"rule_id": "b", "direction": "ingress", "version": "7", "what": f"tcp 22 from {WORLD}"}
    assert mends(closing(REVOKE), here) == [Remediation(REVOKE, ref("security_group", "sg-1"), said)]


def test_narrowing_comes_before_revoking_and_only_to_networks_that_were_let_in() -> None:
    here = place(group(allow("b", 22)))
    (mend,) = mends(closing(REVOKE, NARROW, narrow_to=(OFFICE, OFFICE_V6, "10.0.0.0/8")), here)
    assert (mend.kind, mend.parameters["peers"]) == (NARROW, f"{OFFICE},10.0.0.0/8")
    part = place(group(allow("b", 22, peers=("8.0.0.0/8",))))
    assert [each.kind for each in mends(closing(REVOKE, NARROW, narrow_to=(OFFICE,)), part)] == [REVOKE]
    assert mends(closing(NARROW, narrow_to=(OFFICE,)), part) == []
    assert mends(closing(NARROW), here) == []


def test_a_rule_is_told_in_words_from_another_that_takes_its_place() -> None:
    """On Tencent Cloud the rule after a revoked one gets its place, and would pass for it."""
    first, second = allow("0", 22), allow("1", 8888, priority=1)
    (mend,) = mends(closing(REVOKE), place(group(first, second, shard=TENCENT), shard=TENCENT))
    moved = place(group(replace(second, rule_id="0", priority=0), shard=TENCENT), shard=TENCENT)
    (after,) = mends(closing(REVOKE), moved)
    assert (mend.parameters["rule_id"], after.parameters["rule_id"]) == ("0", "0")
    assert mend.parameters["what"] != after.parameters["what"]


def test_a_rule_is_revoked_where_whom_it_would_be_narrowed_to_is_let_in_beside_it() -> None:
    beside = place(group(allow("a", 22, peers=(OFFICE,)), allow("b", 22), version="7"))
    (mend,) = mends(closing(NARROW, narrow_to=(OFFICE,)), beside)
    assert (mend.kind, mend.parameters["rule_id"]) == (REVOKE, "b")
    for other in (allow("a", 443, peers=(OFFICE,)), deny("a", 22), allow("a", 22, peers=("10.0.0.0/8",))):
        (mend,) = mends(closing(NARROW, narrow_to=(OFFICE,)), place(group(other, allow("b", 22))))
        assert mend.kind is NARROW


def test_a_rule_of_the_same_words_that_is_read_later_lets_in_as_well_but_not_behind_a_denial() -> None:
    """Tencent Cloud refuses a second rule of the same words, so that the narrowing would never come about."""
    wide, twin = allow("0", 22), allow("2", 22, peers=(OFFICE,), priority=2)
    later = place(group(wide, twin, shard=TENCENT), shard=TENCENT)
    (mend,) = mends(closing(NARROW, narrow_to=(OFFICE,)), later)
    assert (mend.kind, mend.parameters["rule_id"]) == (REVOKE, "0")
    between = replace(deny("1", 22), priority=1)
    cut_off = place(group(wide, between, twin, shard=TENCENT), shard=TENCENT)
    (mend,) = mends(closing(NARROW, narrow_to=(OFFICE,)), cut_off)
    assert (mend.kind, mend.parameters["rule_id"]) == (NARROW, "0")
    outward = replace(between, direction=Direction.EGRESS)
    beside = place(group(wide, outward, twin, shard=TENCENT), shard=TENCENT)
    assert [each.kind for each in mends(closing(NARROW, narrow_to=(OFFICE,)), beside)] == [REVOKE]


def test_a_rule_is_not_narrowed_to_what_would_be_found_again() -> None:
    here = place(group(allow("b", 22)))
    assert mends(closing(NARROW, narrow_to=("8.0.0.0/8",)), here) == []


def test_who_else_a_rule_lets_in_stays_let_in() -> None:
    """A rule of several peers is narrowed to those that may stay, and not revoked from under them."""
    mixed = place(group(allow("b", 22, peers=("10.0.0.0/8", WORLD))))
    (mend,) = mends(closing(REVOKE, NARROW, narrow_to=(OFFICE,)), mixed)
    assert mend.parameters["peers"] == f"10.0.0.0/8,{OFFICE}"
    assert mends(closing(REVOKE), mixed) == []
    for changes in ({"peer_groups": ("sg-2",)}, {"unresolved": ("pl-1",)}):
        others = place(group(replace(allow("b", 22), **changes)))  # type: ignore[arg-type]
        assert mends(closing(REVOKE, NARROW, narrow_to=(OFFICE,)), others) == []


def test_a_group_that_a_service_keeps_and_a_kept_rule_are_left_alone() -> None:
    assert mends(closing(REVOKE), place(group(allow("b", 22), is_service_managed=True))) == []
    assert mends(closing(REVOKE, keep=("b",)), place(group(allow("b", 22)))) == []


def test_a_rule_of_the_other_direction_with_the_same_place_is_not_meant() -> None:
    """On Tencent Cloud a rule is its place in the list of its direction."""
    outward = allow("0", direction=Direction.EGRESS)
    here = place(group(outward, allow("0", 22), shard=TENCENT), shard=TENCENT)
    (mend,) = mends(closing(REVOKE), here)
    assert mend.parameters["direction"] == "ingress"
    assert before_of(mend, here, [])["rule"] == rule_text(allow("0", 22))


def test_only_violations_are_mended_and_of_what_is_still_there() -> None:
    rule = closing(REVOKE)
    here = place(group(allow("b", 22)))
    found = next(each for each in judge([here], [instance()], [rule], NOW, {}) if each.verdict is Verdict.VIOLATION)
    assert remediation_of(found, here, rule) is not None
    for verdict in (Verdict.UNMEASURED, Verdict.EXEMPT, Verdict.COMPLIANT):
        assert remediation_of(replace(found, verdict=verdict), here, rule) is None
    assert remediation_of(found, place(group(allow("c", 22))), rule) is None
    assert remediation_of(found, place(group(allow("b", 22), is_service_managed=True)), rule) is None
    assert remediation_of(found, place(cards=[]), rule) is None


# addresses


def releasing(**changes: Any) -> AuditRule:
    return audit(NetworkCheck.UNATTACHED_ADDRESS, mend=frozenset({RemediationKind.RELEASE_ADDRESS}), **changes)


def test_an_address_is_released_once_it_was_seen_without_use_for_long_enough() -> None:
    here = place(addresses=(address(allocated_at=NOW - 400 * DAY),), cards=[])
    assert mends(releasing(), here, {SPARE: NOW - 7 * DAY}) == [
        Remediation(RemediationKind.RELEASE_ADDRESS, SPARE, {"ip": "203.0.113.9"})
    ]
    assert mends(releasing(), here, {SPARE: NOW - 6 * DAY}) == []
    assert RemediationKind.RELEASE_ADDRESS in FINAL


def test_an_old_address_that_was_not_seen_without_use_is_never_released() -> None:
    """It may have been taken off a machine an hour ago: no cloud tells."""
    here = place(addresses=(address(allocated_at=NOW - 400 * DAY),), cards=[])
    assert mends(releasing(), here) == []
    assert mends(releasing(), place(addresses=(address(),), cards=[])) == []


@pytest.mark.parametrize(
    "changes",
    [
        {"is_prepaid": True},
        {"is_service_managed": True},
        {"protected_by": ("deletion_protection",)},
        {"state": AddressState.IN_USE},
        {"state": AddressState.UNKNOWN},
        {"state": AddressState.CHANGING},
        {"bound_to": ref("instance", "i-1")},
        {"name": "kept"},
    ],
)
def test_what_is_not_free_is_not_released(changes: Any) -> None:
    """Neither by what is said of it nor, should that be out of date, by how it is found."""
    rule, seen = releasing(keep=("kept",)), {SPARE: NOW - 30 * DAY}
    changed = place(addresses=(address(**changes),), cards=[])
    assert mends(rule, changed, seen) == []
    free = place(addresses=(address(),), cards=[])
    (found,) = judge([free], [], [rule], NOW, seen)
    assert remediation_of(found, free, rule) is not None
    assert remediation_of(found, changed, rule) is None


def test_how_long_an_address_was_seen_is_looked_at_again_before_it_is_given_up() -> None:
    """The rule may ask for longer than when the finding was made."""
    free = place(addresses=(address(),), cards=[])
    (found,) = judge([free], [], [releasing()], NOW, {SPARE: NOW - 7 * DAY})
    assert remediation_of(found, free, releasing()) is not None
    assert remediation_of(found, free, releasing(unattached_for=8 * DAY)) is None
    assert remediation_of(found, free, releasing(keep=("eip-1",))) is None


def detaching(**changes: Any) -> AuditRule:
    return audit(NetworkCheck.PUBLIC_IP, mend=frozenset({RemediationKind.DETACH_ADDRESS}), **changes)


BOUND = address("eip-1", ip=PUBLIC, state=AddressState.IN_USE, bound_to=ref("instance", "i-1"))


def test_a_kept_address_is_taken_off_and_put_back() -> None:
    here = place(group(), addresses=(BOUND,))
    (mend,) = mends(detaching(), here)
    said = {"ip": PUBLIC, "bound_to": str(ref("instance", "i-1")), "private_ip": "10.0.0.7"}
    assert mend == Remediation(RemediationKind.DETACH_ADDRESS, SPARE, said)
    before = before_of(mend, here, [])
    assert before == {"ip": PUBLIC, "state": "in_use", "bound_to": str(ref("instance", "i-1"))}
    assert inverse(mend, before, "") == Remediation(RemediationKind.ATTACH_ADDRESS, SPARE, said)


def test_an_address_that_comes_with_the_machine_cannot_be_taken_off() -> None:
    assert mends(detaching(), place(group())) == []


@pytest.mark.parametrize(
    "changes",
    [
        {"is_service_managed": True},
        {"state": AddressState.CHANGING},
        {"name": "kept"},
        {"bound_to": ref("instance", "i-9")},
        {"ip": "203.0.113.99"},
    ],
)
def test_what_is_not_ours_or_not_told_in_whole_is_not_taken_off(changes: Any) -> None:
    assert mends(detaching(keep=("kept",)), place(group(), addresses=(replace(BOUND, **changes),))) == []


def test_an_address_that_the_rule_keeps_is_not_taken_off_whatever_was_found() -> None:
    here = place(group(allow("r", 22)), addresses=(BOUND,))
    found = next(each for each in judge([here], [instance()], [detaching()], NOW, {}))
    assert remediation_of(found, here, detaching()) is not None
    assert remediation_of(found, here, detaching(keep=("eip-1",))) is None


def test_of_two_addresses_the_one_that_is_not_kept_is_taken_off() -> None:
    cards = [card(public_ips=(("10.0.0.7", PUBLIC), ("10.0.0.8", "203.0.113.8")))]
    second = replace(BOUND, ref=ref("address", "eip-2"), ip="203.0.113.8")
    here = place(group(allow("r", 22)), cards=cards, addresses=(BOUND, second))
    assert [each.subject.native_id for each in mends(detaching(), here)] == ["eip-1"]
    assert [each.subject.native_id for each in mends(detaching(keep=(PUBLIC,)), here)] == ["eip-2"]


# flow logs and metadata


def logging(**changes: Any) -> AuditRule:
    said = {"flow_log_destination": "arn:aws:s3:::logs", "flow_log_role": "role", **changes}
    return audit(NetworkCheck.FLOW_LOGS_OFF, mend=frozenset({RemediationKind.ENABLE_FLOW_LOGS}), **said)


def test_flow_logs_are_turned_on_for_the_network_where_there_is_a_place_for_them() -> None:
    here = place(group())
    said = {"destination": "arn:aws:s3:::logs", "role": "role"}
    assert mends(logging(), here) == [Remediation(RemediationKind.ENABLE_FLOW_LOGS, ref("vpc", "vpc-1"), said)]
    assert mends(logging(flow_log_destination=""), here) == []


def test_where_only_cards_have_flow_logs_they_are_turned_on_one_by_one_machines_first() -> None:
    cards = [
        card("eni-1", shard=TENCENT, instance="i-1"),
        replace(card("eni-0", shard=TENCENT), instance=None),
        card("eni-2", shard=TENCENT, instance="i-2"),
    ]
    here = place(group(shard=TENCENT), cards=cards, shard=TENCENT)
    assert [each.subject.native_id for each in mends(logging(), here)] == ["eni-1"]
    logs = tuple(
        FlowLog(ref("flow_log", f"fl-{n}", TENCENT), ref("interface", f"eni-{n}", TENCENT), active=True) for n in (1, 2)
    )
    assert [each.subject.native_id for each in mends(logging(), replace(here, flow_logs=logs))] == ["eni-0"]


def test_the_metadata_service_is_told_to_want_a_token_and_told_back() -> None:
    rule = audit(NetworkCheck.IMDS_V1, mend=frozenset({RemediationKind.REQUIRE_IMDSV2}))
    here = place(group())
    (mend,) = mends(rule, here)
    assert mend == Remediation(RemediationKind.REQUIRE_IMDSV2, ref("instance", "i-1"))
    before = before_of(mend, here, [instance(imds_v1=True)])
    assert before == {"imds_v1": "true"}
    assert inverse(mend, before, "") == Remediation(RemediationKind.ALLOW_IMDSV1, ref("instance", "i-1"))
    assert inverse(mend, {"imds_v1": "false"}, "") is None
    assert before_of(mend, here, [instance(imds_v1=None)]) == {}
    assert mends(rule, here, imds_v1=None) == []


def test_what_only_people_can_mend_is_left_to_people() -> None:
    here = place(group(in_use=False), vpc={"is_default": True}, subnet={"name": "private-a"})
    kinds = frozenset(RemediationKind)
    for check in (NetworkCheck.DEFAULT_VPC, NetworkCheck.PRIVATE_SUBNET_EXPOSED, NetworkCheck.REGION):
        rule = audit(check, mend=kinds, private_subnets=("private-*",), allowed_regions=("eu-*",))
        assert any(each.verdict is Verdict.VIOLATION for each in judge([here], [instance()], [rule], NOW, {}))
        assert mends(rule, here) == []
    spare = place(group(in_use=False), cards=[])
    assert mends(audit(NetworkCheck.UNUSED_GROUP, mend=kinds), spare) == []


# before-images and ways back


def test_a_rule_is_put_back_as_it_was_and_a_narrowed_one_instead_of_what_took_its_place() -> None:
    here = place(group(deny("a", 80), allow("b", 22), version="7"))
    at = ref("security_group", "sg-1")
    revoked = Remediation(REVOKE, at, {"rule_id": "b", "direction": "ingress", "version": "7"})
    before = before_of(revoked, here, [])
    assert before == {"rule": rule_text(allow("b", 22)), "version": "7"}
    assert inverse(revoked, before, "") == Remediation(RemediationKind.RESTORE_RULE, at, {"rule": before["rule"]})
    narrowed = replace(revoked, kind=NARROW, parameters={**revoked.parameters, "peers": OFFICE})
    assert before_of(narrowed, here, []) == before
    instead = {"rule": before["rule"], "instead_of": "c,d", "peers": OFFICE}
    assert inverse(narrowed, before, "c,d") == Remediation(RemediationKind.RESTORE_RULE, at, instead)


def test_nothing_is_taken_back_without_what_is_needed_for_it() -> None:
    at = ref("security_group", "sg-1")
    assert inverse(Remediation(REVOKE, at), {}, "") is None
    assert inverse(Remediation(NARROW, at), {"rule": "r"}, "") is None
    assert inverse(Remediation(NARROW, at), {}, "c") is None
    assert inverse(Remediation(RemediationKind.ENABLE_FLOW_LOGS, ref("vpc", "vpc-1")), {}, "") is None
    assert inverse(Remediation(RemediationKind.ENABLE_FLOW_LOGS, ref("vpc", "vpc-1")), {}, "fl-1") == Remediation(
        RemediationKind.REMOVE_FLOW_LOGS, ref("vpc", "vpc-1"), {"flow_log": "fl-1"}
    )


@pytest.mark.parametrize("kind", [kind for kind in RemediationKind if kind in FINAL])
def test_what_is_final_has_no_way_back(kind: RemediationKind) -> None:
    assert inverse(Remediation(kind, SPARE, {"ip": "203.0.113.9"}), {"ip": "203.0.113.9"}, "x") is None


@pytest.mark.parametrize(
    "kind",
    [
        RemediationKind.ATTACH_ADDRESS,
        RemediationKind.RESTORE_RULE,
        RemediationKind.REMOVE_FLOW_LOGS,
        RemediationKind.ALLOW_IMDSV1,
    ],
)
def test_what_takes_something_back_is_not_taken_back_itself(kind: RemediationKind) -> None:
    assert inverse(Remediation(kind, SPARE), {"rule": "r", "imds_v1": "true"}, "x") is None


def test_what_is_gone_has_no_before_image() -> None:
    empty = place(cards=[])
    for kind in RemediationKind:
        assert (
            before_of(Remediation(kind, ref("vpc", "vpc-1"), {"rule_id": "b", "direction": "ingress"}), empty, []) == {}
        )
    there = place(group(allow("b", 22)))
    wrong = Remediation(REVOKE, ref("security_group", "sg-1"), {"rule_id": "b", "direction": "egress"})
    assert before_of(wrong, there, []) == {}


RULE = NetworkRule(
    "sgr-1",
    Direction.INGRESS,
    Permission.DENY,
    "tcp",
    ports=((22, 22), (8000, 8100)),
    peers=(WORLD, "::/0"),
    peer_groups=("sg-2",),
    unresolved=("pl-1",),
    priority=7,
    description='团队 "ml" \\ \n',
)


def test_a_rule_is_the_same_after_it_was_written_and_read() -> None:
    assert read_rule(rule_text(RULE)) == RULE
    assert rule_text(read_rule(rule_text(RULE))) == rule_text(RULE)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "null",
        "[]",
        "rule",
        rule_text(RULE)[:-1],
        rule_text(RULE).replace('"deny"', '"drop"'),
        rule_text(RULE).replace('"priority":7', '"priority":7.0'),
        rule_text(RULE).replace('"ports":[[22,22]', '"ports":[[22]'),
        rule_text(RULE).replace('"rule_id"', '"rule_idx"'),
        rule_text(RULE).replace('{"description"', '{"comment":1,"description"'),
        f" {rule_text(RULE)}",
    ],
)
def test_what_is_not_the_whole_text_of_a_rule_is_refused_and_nothing_guessed(text: str) -> None:
    with pytest.raises(InvalidInputError):
        read_rule(text)


# the least change


def test_the_least_change_is_to_the_one_rule_of_the_path() -> None:
    here = place(group(allow("a", 22), allow("b", 443), version="7"))
    first = reach([here], [instance()]).paths[0]
    said = {"rule_id": "a", "direction": "ingress", "version": "7", "what": f"tcp 22 from {WORLD}"}
    assert least_change(first) == Remediation(REVOKE, ref("security_group", "sg-1"), said)
    narrowed = least_change(first, (OFFICE, OFFICE_V6))
    assert narrowed == Remediation(NARROW, ref("security_group", "sg-1"), {**said, "peers": OFFICE})
    assert least_change(first, (OFFICE_V6,)).kind is REVOKE


def test_an_unread_shard_mends_nothing() -> None:
    here = place(group(allow("b", 22)), gaps=(gap("groups"), gap("interfaces")))
    found = judge([here], [instance("i-1", Shard("aws", "9", "eu-west-1"))], [closing(REVOKE)], NOW, {})
    unmeasured: list[Finding] = [each for each in found if each.verdict is Verdict.UNMEASURED]
    assert unmeasured
    assert [remediation_of(each, here, closing(REVOKE)) for each in unmeasured] == [None] * len(unmeasured)
