"""What is changed about networks on Alibaba Cloud, in its own words: what is sent, refused before, or done by half."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from tests.contract.alibaba_network_stage import Stage, direct_stage, wired_stage
from tests.contract.network_fleet import DEFAULT, MEMBERS, NOTEBOOK, OPEN, SPARE, TRAINER, TRAINING, WORLD_V6

from costguard.domain.actions import Receipt
from costguard.domain.errors import (
    AccessDeniedError,
    InvalidInputError,
    NotFoundError,
    OutcomeUnknownError,
    RefusedError,
    UnavailableError,
)
from costguard.domain.network import AddressState, Direction, NetworkRule, Permission
from costguard.domain.remediations import Remediation, RemediationKind
from costguard.guards.network.rules import rule_text
from costguard.providers.alibaba.iam.permissions import OPERATIONS, REACH
from costguard.providers.alibaba.iam.policy_documents import policy_document
from costguard.providers.alibaba.network.remediator import AlibabaNetworkRemediator
from costguard.providers.kit.iam.permissions import Feature, Purpose

K = RemediationKind
OFFICE, VPN = "198.51.100.0/24", "192.0.2.0/24"


@pytest.fixture
def stage() -> Iterator[Stage]:
    with direct_stage() as made:
        yield made


@pytest.fixture
def wired() -> Iterator[Stage]:
    with wired_stage() as made:
        yield made


def refused_unsent(stage: Stage, mend: Remediation, why: str) -> None:
    """Refused for that reason, and no changing request was made."""
    with pytest.raises((RefusedError, NotFoundError), match=why):
        stage.change(mend)
    assert stage.sent() == []


def detaching(stage: Stage, name: str = NOTEBOOK) -> Remediation:
    private = "10.20.1.10"
    bound = str(stage.address(name).bound_to)
    return stage.about_address(K.DETACH_ADDRESS, name, bound_to=bound, private_ip=private)


def narrowing(stage: Stage, *peers: str, port: int = 8888) -> Remediation:
    return stage.about_rule(K.NARROW_RULE, OPEN, stage.rule(OPEN, port), peers=",".join(peers))


# --- addresses


def test_an_address_is_named_by_its_id_alone(stage: Stage) -> None:
    stage.change(stage.about_address(K.RELEASE_ADDRESS, SPARE))
    assert stage.sent() == [("ReleaseEipAddress", {"AllocationId": stage.ref("address", SPARE).native_id})]


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"is_prepaid": True}, "not paid by use"),
        ({"protected_by": ("deletion_protection",)}, "protected by deletion_protection"),
        ({"protected_by": ("segment",)}, "protected by segment"),
        ({"protected_by": ("locked_financial",)}, "protected by locked_financial"),
        ({"is_service_managed": True}, "a service of the cloud"),
        ({"state": AddressState.CHANGING}, "it is changing"),
    ],
)
def test_what_may_not_be_released_is_never_asked_for(stage: Stage, changed: dict[str, Any], why: str) -> None:
    stage.address(SPARE, **changed)
    refused_unsent(stage, stage.about_address(K.RELEASE_ADDRESS, SPARE), why)


def test_an_address_that_somebody_took_into_use_meanwhile_is_not_released(stage: Stage) -> None:
    mend = stage.about_address(K.RELEASE_ADDRESS, SPARE)
    before = {"ip": "203.0.113.30", "state": "unattached", "bound_to": ""}
    stage.address(SPARE, state=AddressState.IN_USE, bound_to=stage.ref("interface", TRAINER))

    with pytest.raises(RefusedError, match="changed since it was decided on: bound_to, state"):
        stage.remediator.change(mend, before)
    assert stage.sent() == []


def test_a_release_goes_on_after_the_answer_and_then_the_address_is_gone(stage: Stage) -> None:
    stage.change(stage.about_address(K.RELEASE_ADDRESS, SPARE))
    spare = [address for address in stage.read().addresses if address.ref == stage.fleet.ref("address", SPARE)]
    assert [address.state for address in spare] == [AddressState.CHANGING]

    stage.clock.advance(timedelta(seconds=6))
    assert stage.ref("address", SPARE) not in {address.ref for address in stage.read().addresses}


def test_detaching_goes_on_after_the_answer_and_nothing_is_done_meanwhile(stage: Stage) -> None:
    mend = detaching(stage)
    stage.change(mend)
    back = replace(mend, kind=K.ATTACH_ADDRESS)
    with pytest.raises(RefusedError, match="it is changing"):
        stage.remediator.change(back, {})

    stage.clock.advance(timedelta(seconds=6))
    stage.remediator.change(back, {})
    stage.clock.advance(timedelta(seconds=6))
    assert stage.address(NOTEBOOK).bound_to == stage.ref("instance", NOTEBOOK)
    bound = {"InstanceId": stage.ref("instance", NOTEBOOK).native_id, "InstanceType": "EcsInstance"}
    named = {"AllocationId": stage.ref("address", NOTEBOOK).native_id, **bound}
    assert stage.sent() == [("UnassociateEipAddress", named), ("AssociateEipAddress", named)]


def test_the_address_of_a_further_interface_is_named_with_its_private_one(stage: Stage) -> None:
    second = stage.ref("interface", TRAINER).sibling("interface", "eni-bp1second")
    card = next(each for each in stage.truth.interfaces if each.ref == stage.ref("interface", TRAINER))
    pair = (("10.20.2.50", "203.0.113.30"),)
    more = replace(card, ref=second, primary=False, private_ips=("10.20.2.50",), public_ips=pair)
    stage.place(interfaces=(*stage.truth.interfaces, more))
    stage.address(SPARE, state=AddressState.IN_USE, bound_to=second)

    stage.change(stage.about_address(K.DETACH_ADDRESS, SPARE, bound_to=str(second), private_ip="10.20.2.50"))
    ((_, sent),) = stage.sent()
    assert (sent["InstanceType"], sent["InstanceId"]) == ("NetworkInterface", second.native_id)
    assert sent["PrivateIpAddress"] == "10.20.2.50"


def test_an_address_bound_in_another_mode_could_not_be_put_back(stage: Stage) -> None:
    def cut_through(answer: dict[str, Any], _: Mapping[str, Any]) -> dict[str, Any]:
        answer["EipAddresses"]["EipAddress"][0]["Mode"] = "BINDED"
        return answer

    stage.mending.changes["DescribeEipAddresses"] = cut_through
    refused_unsent(stage, detaching(stage), "mode BINDED")


@pytest.mark.parametrize("bound_to", ["", "nothing", "alibaba:1:cn-hangzhou:instance:i-1"])
def test_what_an_address_is_bound_to_must_be_said_and_be_here(stage: Stage, bound_to: str) -> None:
    mend = stage.about_address(K.ATTACH_ADDRESS, SPARE, bound_to=bound_to, private_ip="10.20.2.10")
    refused_unsent(stage, mend, "bound")


# --- rules


def test_a_rule_is_taken_away_by_its_id_and_nothing_else(stage: Stage) -> None:
    """With terms beside it the cloud would take away whatever fits them."""
    rule = stage.rule(OPEN, 22)
    stage.change(stage.about_rule(K.REVOKE_RULE, OPEN, rule))

    group = stage.ref("security_group", OPEN).native_id
    assert stage.sent() == [("RevokeSecurityGroup", {"SecurityGroupId": group, "SecurityGroupRuleId": [rule.rule_id]})]


def test_narrower_rules_come_before_the_wide_one_goes(stage: Stage) -> None:
    receipt = stage.change(narrowing(stage, OFFICE, VPN))

    assert [name for name, _ in stage.sent()] == ["AuthorizeSecurityGroup", "RevokeSecurityGroup"]
    assert [each["SourceCidrIp"] for each in stage.sent()[0][1]["Permissions"]] == [OFFICE, VPN]
    made = {rule.rule_id: rule.peers for rule in stage.group(OPEN).rules}
    assert [made[each] for each in receipt.native_id.split(",")] == [(OFFICE,), (VPN,)]


@pytest.mark.parametrize(
    ("peers", "why"),
    [
        (["2001:db8:77::/48"], "not narrower than 0.0.0.0/0"),
        (["0.0.0.0/0"], "not narrower"),
        ([OFFICE, "0.0.0.0/0"], "not narrower"),
        (["198.51.100.7/24"], "no networks"),
        (["office"], "no networks"),
    ],
)
def test_a_rule_is_narrowed_to_networks_within_it(stage: Stage, peers: list[str], why: str) -> None:
    refused_unsent(stage, narrowing(stage, *peers), why)


def test_a_rule_is_not_narrowed_to_one_that_is_there(stage: Stage) -> None:
    """The cloud would make no second one, and taking ours back would take theirs."""
    wide = stage.rule(OPEN, 8888)
    stage.set_rules(OPEN, wide, replace(wide, rule_id="sgr-theirs", peers=(OFFICE,), description="ours"))
    refused_unsent(stage, narrowing(stage, OFFICE, VPN), "there already")


def test_a_rule_of_ipv6_is_narrowed_to_ipv6(stage: Stage) -> None:
    rule = next(each for each in stage.group(OPEN).rules if each.peers == (WORLD_V6,))
    stage.change(stage.about_rule(K.NARROW_RULE, OPEN, rule, peers="2001:db8:77::/48"))

    assert stage.sent()[0][1]["Permissions"][0]["Ipv6SourceCidrIp"] == "2001:db8:77::/48"


def half_done(stage: Stage, mend: Remediation, match: str) -> None:
    with pytest.raises(OutcomeUnknownError, match=match) as caught:
        stage.change(mend)
    assert caught.value.code == "HalfDone"


def test_narrowed_by_half_the_new_rules_are_named_and_the_wide_one_stands(stage: Stage) -> None:
    stage.mending.refused["RevokeSecurityGroup"] = RefusedError("no", code="InternalError")
    half_done(stage, narrowing(stage, OFFICE), "half done: sgr-[0-9a-f]+ were added, and the wide one stands")
    assert {("0.0.0.0/0",), (OFFICE,)} <= {rule.peers for rule in stage.group(OPEN).rules}


def test_new_rules_that_are_not_seen_keep_the_wide_one(stage: Stage) -> None:
    """The list of rules may lag; what is not seen there lets nobody in."""
    first = stage.group(OPEN).rules
    told: list[dict[str, Any]] = []

    def lagging(answer: dict[str, Any], _: Mapping[str, Any]) -> dict[str, Any]:
        told.append(answer)
        return told[0]

    stage.mending.changes["DescribeSecurityGroupAttribute"] = lagging
    half_done(stage, narrowing(stage, OFFICE), "0 of 1 are seen, and the wide one stands")
    assert set(first) <= set(stage.group(OPEN).rules)


def test_new_rules_that_cannot_be_looked_for_keep_the_wide_one(stage: Stage) -> None:
    def once(answer: dict[str, Any], _: Mapping[str, Any]) -> dict[str, Any]:
        stage.mending.refused["DescribeSecurityGroupAttribute"] = UnavailableError("down", code="ServiceUnavailable")
        return answer

    stage.mending.changes["DescribeSecurityGroupAttribute"] = once
    half_done(stage, narrowing(stage, OFFICE), "rules were added, and the wide one stands: down")
    assert [name for name, _ in stage.sent()] == ["AuthorizeSecurityGroup"]


def test_an_undo_done_by_half_leaves_no_gap(stage: Stage) -> None:
    mend = narrowing(stage, OFFICE)
    rule = stage.rule(OPEN, 8888)
    made = stage.change(mend).native_id
    stage.mending.refused["RevokeSecurityGroup"] = RefusedError("no", code="InternalError")

    back = Remediation(K.RESTORE_RULE, mend.subject, {"rule": rule_text(rule), "instead_of": made})
    half_done(stage, back, "were added, and those in its place stand")
    assert ("0.0.0.0/0",) in {each.peers for each in stage.group(OPEN).rules if each.ports == ((8888, 8888),)}


@pytest.mark.parametrize(
    ("told", "why"),
    [
        ({"SourcePortRange": "1000/2000"}, "more than a source"),
        ({"DestCidrIp": "10.20.1.10"}, "more than a source"),
        ({"PortRange": "", "PortRangeListId": "prl-1"}, "a port list"),
        ({"SourceCidrIp": "", "SourcePrefixListId": "pl-1"}, "a prefix list"),
        (
            {"SourceCidrIp": "", "SourceGroupId": "sg-1", "SourceGroupOwnerAccount": "other@example.com"},
            "of an account",
        ),
        ({"Direction": "egress", "SourceCidrIp": "", "DestCidrIp": "0.0.0.0/0"}, "way out"),
    ],
)
def test_a_rule_that_could_not_be_put_back_is_not_touched(stage: Stage, told: dict[str, str], why: str) -> None:
    rule = stage.rule(OPEN, 22)

    def more(answer: dict[str, Any], _: Mapping[str, Any]) -> dict[str, Any]:
        for each in answer["Permissions"]["Permission"]:
            each.update(told if each["SecurityGroupRuleId"] == rule.rule_id else {})
        return answer

    stage.mending.changes["DescribeSecurityGroupAttribute"] = more
    mend = stage.about_rule(K.REVOKE_RULE, OPEN, rule)
    with pytest.raises(RefusedError, match=why):
        stage.remediator.change(mend, {})
    assert stage.sent() == []


def test_a_rule_of_a_group_is_put_back_as_it_was(stage: Stage) -> None:
    rule = stage.rule(MEMBERS, 9400)
    stage.change(stage.about_rule(K.REVOKE_RULE, MEMBERS, rule))
    subject = stage.ref("security_group", MEMBERS)
    stage.change(Remediation(K.RESTORE_RULE, subject, {"rule": rule_text(rule)}))

    (again,) = stage.group(MEMBERS).rules
    assert replace(again, rule_id="") == replace(rule, rule_id="")


def rule(**more: Any) -> NetworkRule:
    made: dict[str, Any] = {
        "rule_id": "sgr-1",
        "direction": Direction.INGRESS,
        "protocol": "tcp",
        "ports": ((22, 22),),
        "peers": ("10.0.0.0/8",),
        "priority": 1,
    }
    return NetworkRule(**{"permission": Permission.ALLOW, **made, **more})


@pytest.mark.parametrize(
    "image",
    [
        "",
        "{}",
        "[]",
        rule_text(rule(direction=Direction.EGRESS)),
        rule_text(rule(peers=("10.0.0.0/8", "11.0.0.0/8"))),
        rule_text(rule(peers=(), unresolved=("pl-1",))),
        rule_text(rule(ports=((22, 22), (80, 80)))),
        rule_text(rule(priority=0)),
    ],
)
def test_an_image_that_is_no_rule_here_restores_nothing(stage: Stage, image: str) -> None:
    refused_unsent(
        stage, Remediation(K.RESTORE_RULE, stage.ref("security_group", OPEN), {"rule": image}), "nothing was sent"
    )


def test_rules_of_the_way_out_and_versions_are_not_ours(stage: Stage) -> None:
    mend = stage.about_rule(K.REVOKE_RULE, OPEN, stage.rule(OPEN, 22))
    refused_unsent(stage, replace(mend, parameters={**mend.parameters, "direction": "egress"}), "way in")
    refused_unsent(stage, replace(mend, parameters={**mend.parameters, "version": "7"}), "no versions")


def test_a_group_of_a_service_is_refused_by_the_cloud(stage: Stage) -> None:
    kept = tuple(
        replace(group, is_service_managed=group.ref == stage.ref("security_group", OPEN))
        for group in stage.truth.groups
    )
    stage.place(groups=kept)

    with pytest.raises(RefusedError) as caught:
        stage.change(stage.about_rule(K.REVOKE_RULE, OPEN, stage.rule(OPEN, 22)))
    assert caught.value.code == "InvalidOperation.ResourceManagedByCloudProduct"


# --- flow logs


def logging(stage: Stage, destination: str = "flows/gpu") -> Remediation:
    return Remediation(K.ENABLE_FLOW_LOGS, stage.ref("vpc", DEFAULT), {"destination": destination, "role": ""})


def test_a_flow_log_takes_all_traffic_to_a_store(stage: Stage) -> None:
    stage.change(logging(stage))
    ((name, sent),) = stage.sent()

    assert name == "CreateFlowLog"
    assert (sent["ResourceType"], sent["ResourceId"]) == ("VPC", stage.ref("vpc", DEFAULT).native_id)
    assert (sent["TrafficType"], sent["ProjectName"], sent["LogStoreName"]) == ("All", "flows", "gpu")
    assert sent["FlowLogName"].startswith("costguard-")


def test_a_flow_log_logs_nothing_until_it_has_begun(stage: Stage) -> None:
    made = stage.change(logging(stage)).native_id
    assert {log.ref.native_id: log.active for log in stage.read().flow_logs}[made] is False

    stage.clock.advance(timedelta(seconds=6))
    assert {log.ref.native_id: log.active for log in stage.read().flow_logs}[made] is True


@pytest.mark.parametrize("destination", ["", "flows", "flows/", "/gpu", "Flows/gpu", "a/b", "flows/gpu/more"])
def test_a_destination_is_a_project_and_a_store(stage: Stage, destination: str) -> None:
    refused_unsent(stage, logging(stage, destination), "project/logstore")


def test_what_is_logged_already_is_not_logged_again(stage: Stage) -> None:
    (log,) = stage.truth.flow_logs
    refused_unsent(stage, replace(logging(stage), subject=log.covers), "a flow log already")


def test_a_flow_log_of_somebody_else_is_left_alone(stage: Stage) -> None:
    (log,) = stage.truth.flow_logs
    said = {"flow_log": log.ref.native_id}

    refused_unsent(stage, Remediation(K.REMOVE_FLOW_LOGS, log.covers, said), "not one that was made here")
    refused_unsent(stage, Remediation(K.REMOVE_FLOW_LOGS, stage.ref("vpc", DEFAULT), said), "it logs")
    refused_unsent(stage, Remediation(K.REMOVE_FLOW_LOGS, log.covers, {}), "which flow log")
    assert stage.truth.flow_logs == (log,)


# --- metadata


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"HttpEndpoint": "disabled", "HttpTokens": "optional"}, "to nobody"),
        ({"HttpEndpoint": "", "HttpTokens": ""}, "not told"),
        ({"HttpEndpoint": "enabled", "HttpTokens": "required"}, "so already"),
    ],
)
def test_metadata_that_answers_nobody_is_not_switched_on(stage: Stage, options: dict[str, str], why: str) -> None:
    def other(answer: dict[str, Any], _: Mapping[str, Any]) -> dict[str, Any]:
        answer["Instances"]["Instance"][0]["MetadataOptions"] = options
        return answer

    stage.mending.changes["DescribeInstances"] = other
    refused_unsent(stage, Remediation(K.REQUIRE_IMDSV2, stage.ref("instance", NOTEBOOK)), why)


def test_what_else_metadata_tells_stays_as_it_is(stage: Stage) -> None:
    def with_tags(answer: dict[str, Any], _: Mapping[str, Any]) -> dict[str, Any]:
        answer["Instances"]["Instance"][0]["MetadataOptions"]["InstanceMetadataTags"] = "enabled"
        return answer

    stage.mending.changes["DescribeInstances"] = with_tags
    stage.change(Remediation(K.REQUIRE_IMDSV2, stage.ref("instance", NOTEBOOK)))
    ((_, sent),) = stage.sent()
    assert {key: value for key, value in sent.items() if key != "InstanceId"} == {
        "HttpEndpoint": "enabled",
        "HttpTokens": "required",
        "InstanceMetadataTags": "enabled",
    }


# --- who may


def test_a_session_for_mending_can_do_eight_things_and_no_other_session_can() -> None:
    changing = {name for name, one in REACH[Purpose.MEND].items() if one.changes_something}

    assert changing == {
        "vpc:ReleaseEipAddress",
        "vpc:UnassociateEipAddress",
        "vpc:AssociateEipAddress",
        "vpc:CreateFlowLog",
        "vpc:DeleteFlowLog",
        "ecs:RevokeSecurityGroup",
        "ecs:AuthorizeSecurityGroup",
        "ecs:ModifyInstanceMetadataOptions",
    }
    assert not changing & OPERATIONS.keys()


@pytest.mark.parametrize("kind", ["acting", "dry_running", Purpose.MAIL, Purpose.FREEZE, Purpose.ROTATE])
def test_a_mender_takes_no_session_that_can_do_more_or_less(wired: Stage, kind: str | Purpose) -> None:
    other = wired.session.only_for(kind) if isinstance(kind, Purpose) else getattr(wired.session, kind)()
    with pytest.raises(InvalidInputError, match="mending networks needs a session that can do nothing else"):
        AlibabaNetworkRemediator(other)
    other.close()


def test_what_comes_from_a_session_for_mending_is_for_mending(wired: Stage) -> None:
    for other in (
        wired.mending.acting(),
        wired.mending.only_for(Purpose.ROTATE),
        wired.mending.only_for(Purpose.FREEZE),
        wired.mending.only_for(Purpose.MAIL),
    ):
        assert other.purpose is Purpose.MEND
        for service, operation in (("ecs", "DeleteSecurityGroup"), ("vpc", "DeleteVpc"), ("ecs", "StopInstances")):
            with pytest.raises(AccessDeniedError, match="refused before sending"):
                other.call(wired.shard, service, operation)
        other.close()
    with pytest.raises(AccessDeniedError, match="refused before sending"):
        wired.session.acting().call(wired.shard, "vpc", "ReleaseEipAddress", AllocationId="eip-1")


def test_the_generated_policy_for_mending_is_enough_and_no_more(wired: Stage) -> None:
    statements = policy_document({Feature.NETWORK, Feature.FIX_NETWORK})["Statement"]
    wired.cloud.allowed[wired.shard.account] = {action for each in statements for action in each["Action"]}
    wired.cloud.networks.settles_in = timedelta(0)

    def there_and_back(mend: Remediation, back: RemediationKind, **said: str) -> Receipt:
        receipt = wired.change(mend)
        return wired.change(Remediation(back, mend.subject, {**mend.parameters, **said, "flow_log": receipt.native_id}))

    opened = wired.rule(OPEN, 22)
    wired.change(wired.about_address(K.RELEASE_ADDRESS, SPARE))
    there_and_back(detaching(wired), K.ATTACH_ADDRESS)
    there_and_back(wired.about_rule(K.REVOKE_RULE, OPEN, opened), K.RESTORE_RULE, rule=rule_text(opened))
    there_and_back(logging(wired), K.REMOVE_FLOW_LOGS)
    there_and_back(Remediation(K.REQUIRE_IMDSV2, wired.ref("instance", NOTEBOOK)), K.ALLOW_IMDSV1)

    sent = {call.operation for call in wired.mending.calls_made() if call.changes_something}
    assert sent == {name for name, one in REACH[Purpose.MEND].items() if one.changes_something}


def test_the_role_for_mending_may_change_what_it_mends_and_delete_nothing() -> None:
    statements = policy_document({Feature.FIX_NETWORK})["Statement"]
    allowed = {action: each["Resource"] for each in statements for action in each["Action"]}

    assert allowed.keys() == {name for name, one in REACH[Purpose.MEND].items() if one.changes_something}
    assert allowed["ecs:RevokeSecurityGroup"] == ["acs:ecs:*:*:securitygroup/*"]
    assert allowed["ecs:ModifyInstanceMetadataOptions"] == ["acs:ecs:*:*:instance/*"]
    assert [name for name in allowed if "Delete" in name] == ["vpc:DeleteFlowLog"]


def test_each_subject_is_of_its_kind(stage: Stage) -> None:
    vpc = stage.ref("vpc", TRAINING)
    for kind in (K.RELEASE_ADDRESS, K.DETACH_ADDRESS, K.ATTACH_ADDRESS, K.REVOKE_RULE, K.RESTORE_RULE):
        refused_unsent(stage, Remediation(kind, vpc, {"direction": "ingress"}), "it needs|image")
    for kind in (K.REQUIRE_IMDSV2, K.ALLOW_IMDSV1):
        refused_unsent(stage, Remediation(kind, vpc), "it needs instance")
    for kind in (K.ENABLE_FLOW_LOGS, K.REMOVE_FLOW_LOGS):
        refused_unsent(stage, Remediation(kind, stage.ref("instance", NOTEBOOK)), "it needs interface or subnet or vpc")
