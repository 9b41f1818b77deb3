"""What only AWS does to who mends its networks: two calls for one change, answers that are refusals, and its traps."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest
from tests.contract.aws_network import AwsNetworkRig, aws_network
from tests.contract.network_fleet import DEFAULT, LEGACY, NOTEBOOK, OPEN, SPARE, TRAINER, TRAINING, WORLD_V4
from tests.world_ports.translate import to_world

from costguard.domain.actions import Receipt
from costguard.domain.errors import (
    AccessDeniedError,
    NotFoundError,
    OutcomeUnknownError,
    ProviderError,
    RefusedError,
    UnavailableError,
)
from costguard.domain.network import NetworkRule
from costguard.domain.remediations import Remediation, RemediationKind
from costguard.guards.network.remediation import before_of
from costguard.guards.network.rules import rule_text

OFFICE, VPN = "198.51.100.0/24", "2001:db8:5::/48"
AUTHORIZE, REVOKE = "AuthorizeSecurityGroupIngress", "RevokeSecurityGroupIngress"
ROLE = "arn:aws:iam::111122223333:role/flow-logs"
GROUP_ARN = "arn:aws:logs:us-east-1:111122223333:log-group:flows"
PEERED = (
    b"<referencedGroupInfo><groupId>sg-9</groupId><vpcPeeringConnectionId>pcx-1</vpcPeeringConnectionId>"
    b"</referencedGroupInfo>"
)
K = RemediationKind


@pytest.fixture(scope="module")
def aws() -> Iterator[AwsNetworkRig]:
    with aws_network() as made:
        yield made


@pytest.fixture
def rig(aws: AwsNetworkRig) -> AwsNetworkRig:
    aws.reset()
    return aws


def jupyter(rig: AwsNetworkRig) -> NetworkRule:
    """8888 open to the world."""
    rules = rig.truth_of_group(OPEN).rules
    (rule,) = (rule for rule in rules if (rule.peers, rule.ports) == ((WORLD_V4,), ((8888, 8888),)))
    return rule


def about(rig: AwsNetworkRig, kind: RemediationKind, **more: str) -> Remediation:
    said = {"rule_id": jupyter(rig).rule_id, "direction": "ingress", "version": "", **more}
    return Remediation(kind, rig.ref("security_group", OPEN), said)


def of_address(rig: AwsNetworkRig, kind: RemediationKind, name: str, **more: str) -> Remediation:
    (ip,) = (each.ip for each in rig.truth().addresses if each.name == name)
    return Remediation(kind, rig.ref("address", name), {"ip": ip, **more})


def change(rig: AwsNetworkRig, mend: Remediation, before: Mapping[str, str] | None = None) -> Receipt:
    return rig.remediator().change(mend, {} if before is None else before)


def refused(rig: AwsNetworkRig, mend: Remediation, why: str, error: type[ProviderError] = RefusedError) -> None:
    """Refused for this reason, before anything that changes was sent."""
    there, history = rig.truth(), list(rig.world.networks.history)
    with pytest.raises(error, match=why):
        change(rig, mend)
    assert rig.changes() == []
    assert (rig.truth(), rig.world.networks.history) == (there, history)


def sent(rig: AwsNetworkRig, action: str) -> dict[str, list[str]]:
    """What the last request of this action asked for."""
    return [form for name, form in rig.stand_in.requests if name == action][-1]


def replacing(old: bytes, new: bytes) -> Callable[[bytes], bytes]:
    def changed(body: bytes) -> bytes:
        assert old in body
        return body.replace(old, new)

    return changed


# rules


def test_a_rule_is_narrowed_by_letting_the_fewer_in_first(rig: AwsNetworkRig) -> None:
    receipt = change(rig, about(rig, K.NARROW_RULE, peers=f"{OFFICE},{VPN}"))
    assert [each.partition(":")[2] for each in rig.changes()] == [AUTHORIZE, REVOKE]
    made = {rule.rule_id: rule.peers for rule in rig.truth_of_group(OPEN).rules if rule.peers in ((OFFICE,), (VPN,))}
    assert set(receipt.native_id.split(",")) == set(made)
    assert set(made.values()) == {(OFFICE,), (VPN,)}


@pytest.mark.parametrize("code", ["RulesPerSecurityGroupLimitExceeded", "InvalidPermission.Duplicate"])
def test_where_the_fewer_cannot_be_let_in_nothing_is_taken_away(rig: AwsNetworkRig, code: str) -> None:
    there = rig.truth()
    mend = about(rig, K.NARROW_RULE, peers=OFFICE)
    rig.stand_in.fail(AUTHORIZE, 400, code)
    with pytest.raises(RefusedError) as caught:
        change(rig, mend)
    assert caught.value.code == code
    assert rig.changes() == [f"ec2:{AUTHORIZE}"]
    assert rig.truth() == there


@pytest.mark.parametrize(
    ("status", "code"), [(400, "UnauthorizedOperation"), (503, "RequestLimitExceeded"), (500, "InternalError")]
)
def test_a_narrowing_that_is_half_done_is_unknown_and_says_what_was_done(
    rig: AwsNetworkRig, status: int, code: str
) -> None:
    mend = about(rig, K.NARROW_RULE, peers=OFFICE)
    rig.stand_in.fail(REVOKE, status, code)
    with pytest.raises(OutcomeUnknownError) as caught:
        change(rig, mend)
    rules = {rule.peers: rule.rule_id for rule in rig.truth_of_group(OPEN).rules if rule.ports == ((8888, 8888),)}
    told = str(caught.value)
    assert f"made {rules[OFFICE,]} in {mend.subject}" in told
    assert f"could not take away {rules[WORLD_V4,]}" in told
    assert (caught.value.operation, caught.value.code) == (f"ec2:{REVOKE}", code)
    assert len(rig.changes()) == 2, "and nothing is tried again"


def test_a_rule_put_back_is_there_before_what_stands_in_its_place_goes(rig: AwsNetworkRig) -> None:
    mend = about(rig, K.NARROW_RULE, peers=f"{OFFICE},{VPN}")
    before = before_of(mend, rig.truth(), [])
    made = change(rig, mend, before).native_id
    asked = len(rig.changes())
    back = Remediation(K.RESTORE_RULE, mend.subject, {"rule": before["rule"], "instead_of": made})
    receipt = change(rig, back)
    assert rig.changes()[asked:] == [f"ec2:{AUTHORIZE}", f"ec2:{REVOKE}"], "all of them at once"
    assert jupyter(rig).rule_id == receipt.native_id


def test_a_rule_put_back_whose_stand_ins_could_not_be_taken_away_is_half_done(rig: AwsNetworkRig) -> None:
    mend = about(rig, K.NARROW_RULE, peers=OFFICE)
    before = before_of(mend, rig.truth(), [])
    made = change(rig, mend, before).native_id
    rig.stand_in.fail(REVOKE, 400, "UnauthorizedOperation")
    with pytest.raises(OutcomeUnknownError, match=f"could not take away {made}"):
        change(rig, Remediation(K.RESTORE_RULE, mend.subject, {"rule": before["rule"], "instead_of": made}))
    assert jupyter(rig).rule_id != made


def test_a_rule_keeps_its_description_over_revoking_and_restoring(rig: AwsNetworkRig) -> None:
    (ssh,) = (rule for rule in rig.truth_of_group(OPEN).rules if rule.ports == ((22, 22),))
    mend = about(rig, K.REVOKE_RULE, rule_id=ssh.rule_id)
    change(rig, mend, before_of(mend, rig.truth(), []))
    change(rig, Remediation(K.RESTORE_RULE, mend.subject, {"rule": rule_text(ssh)}))
    (again,) = (rule for rule in rig.truth_of_group(OPEN).rules if rule.ports == ((22, 22),))
    assert again == replace(ssh, rule_id=again.rule_id)
    assert again.description == "from anywhere"


def by_list(rig: AwsNetworkRig, *networks: str) -> NetworkRule:
    """8888 open to whoever is in a prefix list, which anybody may change at any time."""
    shard, open_to_all = rig.truth(), jupyter(rig)
    rig.world.networks.lists["pl-1"] = networks
    rule = replace(open_to_all, peers=networks, peer_list="pl-1")
    (group,) = (each for each in shard.groups if each.name == OPEN)
    rules = [rule if each == open_to_all else each for each in group.rules]
    rig.world.networks.set_rules(to_world(group.ref), to_world(rules), rig.world.now, "owner", "names a list")
    return rule


def test_a_rule_that_names_a_prefix_list_is_revoked_by_its_id_and_put_back_by_the_lists(rig: AwsNetworkRig) -> None:
    """The decision looked into the list, the last read before the call does not: it is the same rule."""
    rule = by_list(rig, WORLD_V4, OFFICE)
    mend = Remediation(
        K.REVOKE_RULE, rig.ref("security_group", OPEN), {"rule_id": rule.rule_id, "direction": "ingress"}
    )
    before = before_of(mend, rig.source().read(rig.shard), [])
    others = [each for each in rig.truth_of_group(OPEN).rules if each.rule_id != rule.rule_id]
    rig.world.networks.lists["pl-1"] = (WORLD_V4,)
    change(rig, mend, before)
    assert list(rig.truth_of_group(OPEN).rules) == others
    rig.world.networks.lists["pl-1"] = (WORLD_V4, OFFICE)
    change(rig, Remediation(K.RESTORE_RULE, mend.subject, {"rule": before["rule"]}))
    (back,) = (each for each in rig.truth_of_group(OPEN).rules if each not in others)
    assert replace(back, rule_id=rule.rule_id) == rule
    form = sent(rig, AUTHORIZE)
    assert form["IpPermissions.1.PrefixListIds.1.PrefixListId"] == ["pl-1"]
    assert not [key for key in form if "Cidr" in key]


def test_a_rule_that_names_another_prefix_list_by_now_has_moved(rig: AwsNetworkRig) -> None:
    rule = by_list(rig, WORLD_V4)
    mend = Remediation(
        K.REVOKE_RULE, rig.ref("security_group", OPEN), {"rule_id": rule.rule_id, "direction": "ingress"}
    )
    before = before_of(mend, rig.source().read(rig.shard), [])
    (group,) = (each for each in rig.truth().groups if each.name == OPEN)
    rules = [replace(each, peer_list="pl-2") if each.peer_list else each for each in group.rules]
    rig.world.networks.set_rules(to_world(group.ref), to_world(rules), rig.world.now, "owner", "names another list")
    with pytest.raises(RefusedError, match="changed since it was decided on"):
        change(rig, mend, before)
    assert rig.changes() == []


def test_a_rule_that_names_a_prefix_list_is_narrowed_to_networks_and_put_back(rig: AwsNetworkRig) -> None:
    rule = by_list(rig, WORLD_V4)
    said = {"rule_id": rule.rule_id, "direction": "ingress", "peers": f"{OFFICE},{VPN}"}
    mend = Remediation(K.NARROW_RULE, rig.ref("security_group", OPEN), said)
    before = before_of(mend, rig.source().read(rig.shard), [])
    made = change(rig, mend, before).native_id
    narrowed = {each.peers for each in rig.truth_of_group(OPEN).rules if each.rule_id in made.split(",")}
    assert narrowed == {(OFFICE,), (VPN,)}
    back = Remediation(K.RESTORE_RULE, mend.subject, {"rule": before["rule"], "instead_of": made})
    change(rig, back)
    assert {each.peer_list for each in rig.truth_of_group(OPEN).rules if each.ports == ((8888, 8888),)} >= {"pl-1"}
    assert not [each for each in rig.truth_of_group(OPEN).rules if each.rule_id in made.split(",")]


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (
            b"<cidrIpv4>0.0.0.0/0</cidrIpv4>",
            b"<referencedGroupInfo><groupId>sg-9</groupId><userId>444455556666</userId></referencedGroupInfo>",
            "another VPC or account",
        ),
        (
            b"<cidrIpv4>0.0.0.0/0</cidrIpv4>",
            PEERED,
            "another VPC or account",
        ),
        (b"<ipProtocol>tcp</ipProtocol>", b"<ipProtocol>icmp</ipProtocol>", "one kind of ICMP"),
        (b"<isEgress>false</isEgress>", b"<isEgress>true</isEgress>", "it lets out"),
    ],
)
@pytest.mark.parametrize("kind", [K.REVOKE_RULE, K.NARROW_RULE])
def test_a_rule_that_could_not_be_put_back_as_it_was_is_left_alone(
    rig: AwsNetworkRig, kind: RemediationKind, old: bytes, new: bytes, why: str
) -> None:
    mend = about(rig, kind, peers=OFFICE)
    rig.stand_in.change_answers("DescribeSecurityGroupRules", replacing(old, new))
    refused(rig, mend, why)


def test_a_rule_that_lets_out_is_never_changed(rig: AwsNetworkRig) -> None:
    (out,) = (rule for rule in rig.truth_of_group(OPEN).rules if rule.direction.value == "egress")
    refused(rig, about(rig, K.REVOKE_RULE, rule_id=out.rule_id, direction="egress"), "only rules that let somebody in")
    refused(rig, about(rig, K.REVOKE_RULE, rule_id=out.rule_id), "it lets out, not in")
    image = rule_text(replace(out, rule_id=""))
    refused(
        rig,
        Remediation(K.RESTORE_RULE, rig.ref("security_group", OPEN), {"rule": image}),
        "only rules that let somebody",
    )


def test_a_group_of_a_cluster_is_left_to_it(rig: AwsNetworkRig) -> None:
    networks, shard = rig.world.networks, rig.shard
    there = networks.of(to_world(shard))
    ours = {"kubernetes.io/cluster/gpu": "owned"}
    groups = (replace(group, tags=ours) if group.name == OPEN else group for group in there.groups)
    networks.place(replace(there, groups=tuple(groups)))
    refused(rig, about(rig, K.REVOKE_RULE), "a service or cluster keeps this group")


def test_where_the_group_cannot_be_read_anew_nothing_is_sent(rig: AwsNetworkRig) -> None:
    mend = about(rig, K.REVOKE_RULE)
    rig.deny_part("groups")
    refused(rig, mend, "UnauthorizedOperation", AccessDeniedError)
    rig.as_new()
    rig.stand_in.fail("DescribeSecurityGroupRules", 500, "InternalError")
    refused(rig, mend, "InternalError", UnavailableError)


@pytest.mark.parametrize("image", ["", "{}", "[]", "null", '{"direction": "ingress"}', "nonsense"])
def test_a_rule_is_not_restored_from_what_is_no_image(rig: AwsNetworkRig, image: str) -> None:
    refused(rig, Remediation(K.RESTORE_RULE, rig.ref("security_group", OPEN), {"rule": image}), "nothing was sent")


@pytest.mark.parametrize(
    "changes",
    [
        {"peers": ()},
        {"peers": ("10.0.0.0/8", "10.1.0.0/16")},
        {"peers": (), "unresolved": ("pl-1",)},
        {"ports": ((1, 2), (4, 5))},
        {"protocol": "all", "ports": ((1, 2),)},
    ],
)
def test_an_image_of_what_is_no_rule_of_aws_is_not_restored(rig: AwsNetworkRig, changes: Mapping[str, Any]) -> None:
    image = rule_text(replace(jupyter(rig), **{"peers": ("10.0.0.0/8",), **changes}))
    refused(rig, Remediation(K.RESTORE_RULE, rig.ref("security_group", OPEN), {"rule": image}), "nothing was sent")


@pytest.mark.parametrize("protocol", ["icmp", "icmpv6", "50"])
def test_a_rule_without_ports_is_put_back_for_every_kind_of_its_protocol(rig: AwsNetworkRig, protocol: str) -> None:
    rule = replace(jupyter(rig), protocol=protocol, ports=())
    change(rig, Remediation(K.RESTORE_RULE, rig.ref("security_group", OPEN), {"rule": rule_text(rule)}))
    form = sent(rig, AUTHORIZE)
    ports = [form[f"IpPermissions.1.{name}"] for name in ("IpProtocol", "FromPort", "ToPort")]
    assert ports == [[protocol], ["-1"], ["-1"]]


def test_an_answer_about_fewer_rules_than_were_made_leaves_the_outcome_unknown(rig: AwsNetworkRig) -> None:
    mend = about(rig, K.NARROW_RULE, peers=OFFICE)
    whole = re.compile(rb"<securityGroupRuleSet>.*</securityGroupRuleSet>", re.DOTALL)
    rig.stand_in.change_answers(AUTHORIZE, lambda body: whole.sub(b"<securityGroupRuleSet/>", body))
    with pytest.raises(OutcomeUnknownError, match="answered with 0 rules for 1"):
        change(rig, mend)
    assert jupyter(rig).peers == (WORLD_V4,)


# addresses


def unbound(body: bytes) -> bytes:
    """As if the list of addresses lagged behind."""
    names = b"associationId|instanceId|networkInterfaceId|networkInterfaceOwnerId|privateIpAddress"
    return re.sub(rb"<(" + names + rb")>[^<]*</\1>", b"", body)


def in_default_vpc(rig: AwsNetworkRig) -> Remediation:
    """The spare address, in use by a machine of the default VPC, whose plain one EC2 then takes back."""
    networks, now = rig.world.networks, rig.clock.now()
    networks.public_ip_changed(to_world(rig.ref("instance", LEGACY)), "")
    networks.attach(
        to_world(rig.ref("address", SPARE)), to_world(rig.ref("interface", LEGACY)), "172.31.0.10", now, "owner"
    )
    return of_address(rig, K.RELEASE_ADDRESS, SPARE)


def test_an_address_is_not_released_while_either_list_says_that_it_is_in_use(rig: AwsNetworkRig) -> None:
    """In a default VPC the vendor itself would take it off and release it: the program's check is all there is."""
    mend = in_default_vpc(rig)
    refused(rig, mend, "it is bound to aws:111122223333:us-east-1:instance:")
    rig.stand_in.change_answers("DescribeAddresses", unbound)
    refused(rig, mend, "an interface uses it: eni-")
    rig.session("mending").call(rig.shard, "ec2", "ReleaseAddress", AllocationId=mend.subject.native_id)
    assert mend.subject not in {each.ref for each in rig.truth().addresses}, "EC2 does it"


def test_an_address_that_was_in_use_meanwhile_is_decided_on_anew(rig: AwsNetworkRig) -> None:
    mend = of_address(rig, K.RELEASE_ADDRESS, SPARE)
    with pytest.raises(RefusedError, match="changed since it was decided on: bound_to, state"):
        change(rig, mend, {"ip": mend.parameters["ip"], "state": "in_use", "bound_to": "somebody's"})
    assert rig.changes() == []


def test_where_interfaces_cannot_be_read_nothing_is_released(rig: AwsNetworkRig) -> None:
    mend = of_address(rig, K.RELEASE_ADDRESS, SPARE)
    rig.deny_part("interfaces")
    refused(rig, mend, "UnauthorizedOperation", AccessDeniedError)


def test_elsewhere_ec2_refuses_to_release_what_is_in_use(rig: AwsNetworkRig) -> None:
    mend = of_address(rig, K.RELEASE_ADDRESS, NOTEBOOK)
    with pytest.raises(RefusedError) as caught:
        rig.session("mending").call(rig.shard, "ec2", "ReleaseAddress", AllocationId=mend.subject.native_id)
    assert caught.value.code == "InvalidIPAddress.InUse"


def test_an_address_of_a_local_zone_is_released_by_its_border_group(rig: AwsNetworkRig) -> None:
    mend = of_address(rig, K.RELEASE_ADDRESS, SPARE)
    there = b"<networkBorderGroup>us-east-1</networkBorderGroup>"
    zone = b"<networkBorderGroup>us-east-1-bos-1</networkBorderGroup>"
    rig.stand_in.change_answers("DescribeAddresses", replacing(there, zone))
    with pytest.raises(ProviderError):
        change(rig, mend)
    assert sent(rig, "ReleaseAddress")["NetworkBorderGroup"] == ["us-east-1-bos-1"]


def test_an_address_that_a_service_keeps_is_left_to_it(rig: AwsNetworkRig) -> None:
    there = rig.truth()
    addresses = (replace(each, is_service_managed=True) if each.name == SPARE else each for each in there.addresses)
    rig.world.networks.place(to_world(replace(there, addresses=tuple(addresses))))
    refused(rig, of_address(rig, K.RELEASE_ADDRESS, SPARE), "a service of AWS keeps it")


def test_an_address_is_bound_without_moving_any_other(rig: AwsNetworkRig) -> None:
    where = {"bound_to": str(rig.ref("instance", TRAINER)), "private_ip": "10.20.2.10"}
    change(rig, of_address(rig, K.ATTACH_ADDRESS, SPARE, **where))
    form = sent(rig, "AssociateAddress")
    assert form["AllowReassociation"] == ["false"]
    assert form["NetworkInterfaceId"] == [rig.ref("interface", TRAINER).native_id]
    assert form["PrivateIpAddress"] == ["10.20.2.10"]


@pytest.mark.parametrize(
    ("where", "why"),
    [
        ((LEGACY, "172.31.0.10"), "has a public address already: 203.0.113.20"),
        ((NOTEBOOK, "10.20.1.10"), "has a public address already: 203.0.113.10"),
        ((TRAINER, "10.20.2.99"), "has no address 10.20.2.99"),
        ((TRAINER, ""), "has no address"),
    ],
)
def test_no_public_address_is_lost_to_another(rig: AwsNetworkRig, where: tuple[str, str], why: str) -> None:
    """EC2 takes back a plain address that it lent when a kept one comes in its place."""
    name, private_ip = where
    said = {"bound_to": str(rig.ref("instance", name)), "private_ip": private_ip}
    refused(rig, of_address(rig, K.ATTACH_ADDRESS, SPARE, **said), why)


@pytest.mark.parametrize(
    "bound_to",
    [
        "",
        "nonsense",
        "aws:111122223333:us-east-1:nat_gateway:nat-1",
        "aws:111122223333:eu-west-1:instance:i-1",
        "aws:444455556666:us-east-1:instance:i-1",
    ],
)
def test_an_address_is_only_bound_to_what_is_there(rig: AwsNetworkRig, bound_to: str) -> None:
    said = {"bound_to": bound_to, "private_ip": "10.20.2.10"}
    refused(rig, of_address(rig, K.ATTACH_ADDRESS, SPARE, **said), "nothing was sent")


def test_what_aws_keeps_for_a_service_is_not_taken_off(rig: AwsNetworkRig) -> None:
    """A balancer's interface is somebody else's: what is bound to it is changed there."""
    said = {"bound_to": str(rig.ref("instance", NOTEBOOK)), "private_ip": "10.20.1.10"}
    mend = of_address(rig, K.DETACH_ADDRESS, NOTEBOOK, **said)
    plain = b"<requesterManaged>false</requesterManaged>"
    rig.stand_in.change_answers("DescribeNetworkInterfaces", replacing(plain, plain.replace(b"false", b"true")))
    refused(rig, mend, "AWS keeps the interface")


def test_an_address_that_leads_elsewhere_by_now_is_not_taken_off(rig: AwsNetworkRig) -> None:
    said = {"bound_to": str(rig.ref("instance", NOTEBOOK)), "private_ip": "10.20.1.99"}
    refused(rig, of_address(rig, K.DETACH_ADDRESS, NOTEBOOK, **said), "it leads to 10.20.1.10, not 10.20.1.99")


# flow logs


def logging(rig: AwsNetworkRig, **said: str) -> Remediation:
    return Remediation(K.ENABLE_FLOW_LOGS, rig.ref("vpc", DEFAULT), said)


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        (
            {"destination": "arn:aws:s3:::bucket/flows", "role": ROLE},
            {"LogDestinationType": "s3", "LogDestination": "arn:aws:s3:::bucket/flows"},
        ),
        (
            {"destination": f"{GROUP_ARN}:*", "role": ROLE},
            {
                "LogDestinationType": "cloud-watch-logs",
                "LogDestination": GROUP_ARN,
                "DeliverLogsPermissionArn": ROLE,
            },
        ),
    ],
)
def test_flows_go_to_a_bucket_or_with_a_role_to_a_log_group(
    rig: AwsNetworkRig, said: dict[str, str], asked: dict[str, str]
) -> None:
    receipt = change(rig, logging(rig, **said))
    form = {name: values[0] for name, values in sent(rig, "CreateFlowLogs").items()}
    always = {"ResourceType": "VPC", "ResourceId.1": rig.ref("vpc", DEFAULT).native_id, "TrafficType": "ALL"}
    told = {name: value for name, value in form.items() if name not in {"Action", "Version", "ClientToken"}}
    assert told == {**always, **asked}
    assert receipt.native_id in {log.ref.native_id for log in rig.truth().flow_logs}


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({}, "no ARN of a bucket or log group"),
        ({"destination": "bucket"}, "no ARN of a bucket or log group"),
        ({"destination": "arn:aws-cn:s3:::bucket"}, "of this partition"),
        ({"destination": "arn:aws:firehose:us-east-1:111122223333:deliverystream/x"}, "no ARN of a bucket"),
        ({"destination": GROUP_ARN}, "a log group needs the ARN of a role"),
        ({"destination": GROUP_ARN, "role": "flow-logs"}, "a log group needs the ARN of a role"),
    ],
)
def test_flows_go_nowhere_else(rig: AwsNetworkRig, said: dict[str, str], why: str) -> None:
    refused(rig, logging(rig, **said), why)


def test_a_refusal_inside_an_answer_is_one(rig: AwsNetworkRig) -> None:
    """CreateFlowLogs answers 200 to what it did not do."""
    mend = replace(logging(rig, destination="arn:aws:s3:::bucket"), subject=rig.ref("vpc", TRAINING))
    rig.stand_in.change_answers(
        "DescribeFlowLogs", lambda _: b"<DescribeFlowLogsResponse><flowLogSet/></DescribeFlowLogsResponse>"
    )
    with pytest.raises(RefusedError) as caught:
        change(rig, mend)
    assert caught.value.code == "FlowLogAlreadyExists"


def test_a_flow_log_whose_records_do_not_arrive_stands_in_nobodys_way(rig: AwsNetworkRig) -> None:
    there = rig.truth()
    rig.world.networks.place(
        to_world(replace(there, flow_logs=tuple(replace(log, active=False) for log in there.flow_logs)))
    )
    mend = replace(logging(rig, destination="arn:aws:s3:::bucket"), subject=rig.ref("vpc", TRAINING))
    assert change(rig, mend).native_id


def test_a_flow_log_of_something_else_is_not_ended(rig: AwsNetworkRig) -> None:
    (log,) = rig.truth().flow_logs
    other = Remediation(K.REMOVE_FLOW_LOGS, rig.ref("vpc", DEFAULT), {"flow_log": log.ref.native_id})
    refused(rig, other, "flow log fl-[0-9a-f]* is not there", NotFoundError)


def test_an_answer_without_the_log_that_was_made_leaves_the_outcome_unknown(rig: AwsNetworkRig) -> None:
    rig.stand_in.change_answers("CreateFlowLogs", lambda body: re.sub(rb"<flowLogIdSet>.*</flowLogIdSet>", b"", body))
    with pytest.raises(OutcomeUnknownError):
        change(rig, logging(rig, destination="arn:aws:s3:::bucket"))


# metadata


def test_only_the_token_is_asked_for_and_nothing_else_of_the_metadata_options(rig: AwsNetworkRig) -> None:
    change(rig, Remediation(K.REQUIRE_IMDSV2, rig.ref("instance", NOTEBOOK)), {"imds_v1": "true"})
    form = sent(rig, "ModifyInstanceMetadataOptions")
    native_id = rig.ref("instance", NOTEBOOK).native_id
    assert {name: form[name] for name in form if name not in {"Action", "Version"}} == {
        "HttpTokens": ["required"],
        "InstanceId": [native_id],
    }


def test_a_machine_that_wants_tokens_by_now_is_not_asked_to(rig: AwsNetworkRig) -> None:
    mend = Remediation(K.REQUIRE_IMDSV2, rig.ref("instance", TRAINER))
    with pytest.raises(RefusedError, match="changed since it was decided on: imds_v1"):
        change(rig, mend, {"imds_v1": "true"})
    assert rig.changes() == []


def test_a_machine_whose_options_are_not_told_is_left_alone(rig: AwsNetworkRig) -> None:
    rig.world.networks.imds_v1.clear()
    rig.world.networks.set_imds(to_world(rig.ref("instance", TRAINER)), v1=True, now=rig.clock.now(), by="owner")
    refused(rig, Remediation(K.REQUIRE_IMDSV2, rig.ref("instance", NOTEBOOK)), "tells nothing of its metadata options")


def test_a_machine_that_is_not_there_is_not(rig: AwsNetworkRig) -> None:
    gone = rig.ref("instance", NOTEBOOK).sibling("instance", "i-0123456789abcdef0")
    refused(rig, Remediation(K.REQUIRE_IMDSV2, gone), "NotFound", NotFoundError)


def test_an_answer_that_says_otherwise_leaves_the_outcome_unknown(rig: AwsNetworkRig) -> None:
    said = b"<httpTokens>required</httpTokens>"
    changed = replacing(said, b"<httpTokens>optional</httpTokens>")
    rig.stand_in.change_answers("ModifyInstanceMetadataOptions", changed)
    with pytest.raises(OutcomeUnknownError):
        change(rig, Remediation(K.REQUIRE_IMDSV2, rig.ref("instance", NOTEBOOK)))
