"""The emulator's networks: what VPC and ECS refuse, and in which words; what goes on after an answer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from tests.contract.alibaba_network_stage import Stage, direct_stage, wired_stage
from tests.contract.network_fleet import DEFAULT, IDLE_NAT, LEGACY, NOTEBOOK, OPEN, SPARE, TRAINER, TRAINING
from tests.world_ports.translate import to_world

from costguard.domain.errors import ProviderError
from costguard.domain.network import AddressState, NetworkInventory


@pytest.fixture
def stage() -> Iterator[Stage]:
    with direct_stage() as made:
        made.cloud.networks.settles_in = timedelta(0)
        yield made


def refusal(stage: Stage, api: str, /, **parameters: Any) -> str:
    """The code that the cloud refuses with; empty where it does not."""
    try:
        stage.mending.call(stage.shard, *api.split(":"), **parameters)
    except ProviderError as err:
        return err.code
    return ""


def ask(stage: Stage, api: str, /, **parameters: Any) -> dict[str, Any]:
    return stage.mending.call(stage.shard, *api.split(":"), **parameters)


def native(stage: Stage, kind: str, name: str) -> str:
    return stage.ref(kind, name).native_id


def permission(**more: str) -> dict[str, str]:
    return {"IpProtocol": "TCP", "PortRange": "22/22", "SourceCidrIp": "10.0.0.0/8", "Policy": "accept", **more}


def authorized(stage: Stage, *permissions: dict[str, str], **more: Any) -> str:
    group = native(stage, "security_group", OPEN)
    return refusal(stage, "ecs:AuthorizeSecurityGroup", SecurityGroupId=group, Permissions=list(permissions), **more)


@pytest.mark.parametrize(
    ("api", "parameters", "code"),
    [
        ("vpc:DescribeVpcs", {"PageSize": 51}, "InvalidParameter"),
        ("vpc:DescribeEipAddresses", {"PageSize": 101}, "InvalidParameter"),
        ("vpc:DescribeVpcs", {"IsDefault": True}, "Emulator.NotModelled"),
        ("vpc:DescribeRouteEntryList", {}, "MissingRouteTableId"),
        ("vpc:DescribeRouteEntryList", {"RouteTableId": "vtb-1", "MaxResult": 101}, "InvalidParameter"),
        ("vpc:DescribeRouteEntryList", {"RouteTableId": "vtb-1"}, "InvalidRouteTableId.NotFound"),
        ("vpc:DescribeForwardTableEntries", {}, "MissingParameter"),
        ("vpc:DescribeNetworkAclAttributes", {"NetworkAclId": "nacl-1"}, "InvalidNetworkAcl.NotFound"),
        ("ecs:DescribeSecurityGroups", {"MaxResults": 101}, "InvalidParameter"),
        ("ecs:DescribeSecurityGroupAttribute", {"SecurityGroupId": "sg-1"}, "InvalidSecurityGroupId.NotFound"),
        ("ecs:DescribeSecurityGroupReferences", {"SecurityGroupId": ["sg"] * 11}, "InvalidParameter"),
        ("ecs:DescribePrefixListAttributes", {"PrefixListId": "pl-1"}, "InvalidPrefixListId.NotFound"),
        ("ecs:DescribePortRangeListEntries", {"PortRangeListId": "prl-1"}, "InvalidPortRangeListId.NotFound"),
        ("vpcpeer:ListVpcPeerConnections", {"MaxResults": 101}, "InvalidParameter"),
        ("vpc:ReleaseEipAddress", {"AllocationId": "eip-1"}, "InvalidAllocationId.NotFound"),
        ("vpc:DeleteFlowLog", {"FlowLogId": "fl-1"}, "InvalidFlowLogId.NotFound"),
        ("ecs:ModifyInstanceMetadataOptions", {"InstanceId": "i-1"}, "MissingHttpEndpoint"),
    ],
)
def test_parameters_are_as_published(stage: Stage, api: str, parameters: dict[str, Any], code: str) -> None:
    assert refusal(stage, api, **parameters) == code


def test_totals_of_some_lists_are_texts(stage: Stage) -> None:
    for api in ("vpc:DescribeFlowLogs", "vpc:DescribeNetworkAcls", "vpc:ListIpv4Gateways"):
        assert isinstance(ask(stage, api)["TotalCount"], str), api
    assert ask(stage, "vpc:DescribeFlowLogs")["Success"] == "true"
    assert ask(stage, "vpc:DescribeVpcs")["TotalCount"] == 2


def test_interfaces_come_ten_at_least(stage: Stage) -> None:
    card = stage.truth.interfaces[0]
    more = tuple(replace(card, ref=card.ref.sibling("interface", f"eni-{number}")) for number in range(12))
    stage.place(interfaces=more)
    page = ask(stage, "ecs:DescribeNetworkInterfaces", MaxResults=1)

    assert len(page["NetworkInterfaceSets"]["NetworkInterfaceSet"]) == 10
    assert page["NextToken"]


def test_a_plain_address_is_told_of_the_instance_and_an_elastic_one_of_both(stage: Stage) -> None:
    cards = ask(stage, "ecs:DescribeNetworkInterfaces", MaxResults=100)["NetworkInterfaceSets"]["NetworkInterfaceSet"]
    told = {card["InstanceId"]: card["AssociatedPublicIp"] for card in cards}
    machines = ask(stage, "ecs:DescribeInstances", MaxResults=100)["Instances"]["Instance"]
    legacy = next(each for each in machines if each["InstanceId"] == native(stage, "instance", LEGACY))
    notebook = next(each for each in machines if each["InstanceId"] == native(stage, "instance", NOTEBOOK))

    assert told[native(stage, "instance", LEGACY)] == {}
    assert legacy["PublicIpAddress"]["IpAddress"] == ["203.0.113.20"]
    assert told[native(stage, "instance", NOTEBOOK)]["PublicIpAddress"] == "203.0.113.10"
    assert notebook["EipAddress"]["IpAddress"] == "203.0.113.10"
    assert notebook["VpcAttributes"]["VpcId"] == native(stage, "vpc", TRAINING)


def test_metadata_is_told_only_when_asked_for(stage: Stage) -> None:
    unasked = ask(stage, "ecs:DescribeInstances", MaxResults=100)["Instances"]["Instance"][0]
    asked = ask(stage, "ecs:DescribeInstances", MaxResults=100, AdditionalAttributes=["META_OPTIONS"])

    assert unasked["MetadataOptions"] == {"HttpEndpoint": "", "HttpTokens": ""}
    assert asked["Instances"]["Instance"][0]["MetadataOptions"]["HttpEndpoint"] == "enabled"


def test_metadata_left_out_takes_its_default(stage: Stage) -> None:
    machine = stage.ref("instance", TRAINER)
    ask(stage, "ecs:ModifyInstanceMetadataOptions", InstanceId=machine.native_id, HttpEndpoint="enabled")
    assert stage.world.networks.imds_v1[to_world(machine)] is True


def test_addresses_are_refused_in_the_vendors_words(stage: Stage) -> None:
    spare, notebook = native(stage, "address", SPARE), native(stage, "address", NOTEBOOK)
    trainer = native(stage, "instance", TRAINER)

    def released() -> str:
        return refusal(stage, "vpc:ReleaseEipAddress", AllocationId=spare)

    stage.address(SPARE, is_prepaid=True)
    assert released() == "Forbidden.ChargeTypeIsPrepaid"
    stage.address(SPARE, is_prepaid=False, protected_by=("deletion_protection",))
    assert released() == "InvalidOperation.DeletionProtection"
    stage.address(SPARE, protected_by=("segment",))
    assert released() == "Forbidden.ReleaseSegmentEip"
    stage.address(SPARE, protected_by=(), state=AddressState.CHANGING)
    assert released() == "IncorrectEipStatus"
    stage.address(SPARE, state=AddressState.UNATTACHED)

    assert refusal(stage, "vpc:UnassociateEipAddress", AllocationId=spare) == "IncorrectEipStatus"
    assert refusal(stage, "vpc:UnassociateEipAddress", AllocationId=notebook, InstanceId=trainer) == "InvalidParameter"
    gateway = {"AllocationId": native(stage, "address", IDLE_NAT), "InstanceType": "Nat"}
    assert refusal(stage, "vpc:UnassociateEipAddress", **gateway) == "Emulator.NotModelled"
    card = {"AllocationId": spare, "InstanceType": "NetworkInterface", "InstanceId": "eni-1"}
    assert refusal(stage, "vpc:AssociateEipAddress", **card) == "MissingPrivateIpAddress"
    assert (
        refusal(stage, "vpc:AssociateEipAddress", **card, PrivateIpAddress="10.0.0.5") == "InvalidInstanceId.NotFound"
    )
    taken = {"AllocationId": spare, "InstanceId": native(stage, "instance", NOTEBOOK)}
    assert refusal(stage, "vpc:AssociateEipAddress", **taken) == "InvalidAssociation.Duplicated"
    assert refusal(stage, "vpc:AssociateEipAddress", AllocationId=spare, InstanceId=trainer) == ""
    assert refusal(stage, "vpc:AssociateEipAddress", AllocationId=spare, InstanceId=trainer) == "IncorrectEipStatus"


def test_the_same_client_token_does_nothing_again(stage: Stage) -> None:
    bound = {"AllocationId": native(stage, "address", SPARE), "InstanceId": native(stage, "instance", TRAINER)}
    for _ in range(2):
        ask(stage, "vpc:AssociateEipAddress", **bound, ClientToken="once")
    assert [what for _, _, what, _ in stage.world.networks.history] == ["attached"]


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"IpProtocol": "SCTP"}, "InvalidIpProtocol.ValueNotSupported"),
        ({"PortRange": "22"}, "InvalidParam.PortRange"),
        ({"PortRange": "-1/-1"}, "InvalidParam.PortRange"),
        ({"IpProtocol": "ALL"}, "InvalidParam.PortRange"),
        ({"Priority": "101"}, "InvalidPriority.ValueNotSupported"),
        ({"Policy": "maybe"}, "InvalidPolicy.Malformed"),
        ({"SourceCidrIp": ""}, "MissingParameter.Source"),
        ({"SourceCidrIp": "office"}, "InvalidParam.SourceCidrIp"),
        ({"Ipv6SourceCidrIp": "::/0"}, "InvalidParam.SourceIp"),
        ({"IpProtocol": "ICMPv6", "PortRange": "-1/-1"}, "InvalidParam.Ipv4ProtocolConflictWithIpv6Address"),
        ({"SourcePortRange": "1/2"}, "Emulator.NotModelled"),
    ],
)
def test_rules_are_refused_in_the_vendors_words(stage: Stage, more: dict[str, str], code: str) -> None:
    assert authorized(stage, permission(**more)) == code


def test_a_rule_that_is_there_is_not_made_again_and_nothing_says_so(stage: Stage) -> None:
    there = len(stage.group(OPEN).rules)
    for _ in range(2):
        assert authorized(stage, permission(), permission()) == ""
    assert len(stage.group(OPEN).rules) == there + 1
    assert authorized(stage, permission(Priority="2")) == ""
    assert len(stage.group(OPEN).rules) == there + 2


def test_rules_are_taken_away_by_id_all_or_none(stage: Stage) -> None:
    group, rules = native(stage, "security_group", OPEN), stage.group(OPEN).rules
    ids = [rule.rule_id for rule in rules]

    def revoked(*rule_ids: str) -> str:
        return refusal(stage, "ecs:RevokeSecurityGroup", SecurityGroupId=group, SecurityGroupRuleId=list(rule_ids))

    assert revoked(ids[0], "sgr-other") == "InvalidSecurityGroupRuleId.NotFound"
    assert stage.group(OPEN).rules == rules
    assert refusal(stage, "ecs:RevokeSecurityGroup", SecurityGroupId=group) == "MissingSecurityGroupRuleId"
    terms = {"SecurityGroupId": group, "SecurityGroupRuleId": ids, "Permissions": [{"IpProtocol": "TCP"}]}
    assert refusal(stage, "ecs:RevokeSecurityGroup", **terms) == "Emulator.NotModelled"
    assert revoked(*ids) == ""
    assert stage.group(OPEN).rules == ()


def test_one_resource_has_one_flow_log(stage: Stage) -> None:
    log = {"ResourceType": "VPC", "TrafficType": "All", "ProjectName": "flows", "LogStoreName": "gpu"}
    create = "vpc:CreateFlowLog"

    assert refusal(stage, create, **log, ResourceId="vpc-other") == "InvalidResourceId.NotFound"
    assert refusal(stage, create, **log, ResourceId=native(stage, "vpc", DEFAULT)) == ""
    assert refusal(stage, create, **log, ResourceId=native(stage, "vpc", DEFAULT)) == "OperationDenied.FlowLogExist"


def test_while_a_change_settles_the_address_is_shown_as_it_was(stage: Stage) -> None:
    stage.cloud.networks.settles_in = timedelta(seconds=5)
    ask(stage, "vpc:UnassociateEipAddress", AllocationId=native(stage, "address", NOTEBOOK))

    def shown() -> tuple[str, str]:
        named = {"AllocationId": native(stage, "address", NOTEBOOK)}
        (address,) = ask(stage, "vpc:DescribeEipAddresses", **named)["EipAddresses"]["EipAddress"]
        return address["Status"], address["InstanceId"]

    assert shown() == ("Unassociating", native(stage, "instance", NOTEBOOK))
    stage.clock.advance(timedelta(seconds=5))
    assert shown() == ("Available", "")


def test_a_world_without_networks_still_tells_its_machines_addresses(stage: Stage) -> None:
    stage.world.networks.place(to_world(NetworkInventory(stage.shard)))
    addresses = ask(stage, "vpc:DescribeEipAddresses", PageSize=100)["EipAddresses"]["EipAddress"]

    assert [(each["IpAddress"], each["Status"]) for each in addresses] == [("203.0.113.10", "InUse")]
    assert ask(stage, "ecs:DescribeNetworkInterfaces")["NetworkInterfaceSets"] == {"NetworkInterfaceSet": []}


def test_peerings_answer_under_their_own_version_and_the_permission_of_vpc() -> None:
    with wired_stage() as stage:
        api = ("vpcpeer", "ListVpcPeerConnections")
        (peering,) = stage.session.call(stage.shard, *api)["VpcPeerConnects"]
        stage.cloud.allowed[stage.shard.account] = {"vpc:DescribeVpcs"}
        with pytest.raises(ProviderError, match=r"vpcpeer:ListVpcPeerConnections: Forbidden\.RAM"):
            stage.session.call(stage.shard, *api)
        stage.cloud.allowed[stage.shard.account] = {"vpc:ListVpcPeerConnections"}
        assert stage.session.call(stage.shard, *api)["VpcPeerConnects"] == [peering]
    assert isinstance(peering["AcceptingOwnerUid"], int)
