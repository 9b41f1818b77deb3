"""EC2's changes of networks, made in the world, with EC2's words when it refuses."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from ipaddress import ip_network
from typing import Any

from botocore import xform_name
from moto.core.responses import ActionResult, EmptyResult
from moto.ec2.exceptions import EC2ClientError
from moto.ec2.responses import EC2Response

from cloudstand.aws.core.patching import Patch, Request, Wire, asking
from cloudstand.aws.network import shapes
from cloudstand.aws.network.vpcs import require, shard_of
from cloudstand.world.fleet import made_up_rule_id
from cloudstand.world.network.parts import (
    EVERY_PORT,
    AddressState,
    Direction,
    FlowLog,
    NetworkInterface,
    NetworkInventory,
    NetworkRule,
    Permission,
    PublicAddress,
    SecurityGroup,
)
from cloudstand.world.places import Ref
from cloudstand.world.records import Operation, Refusal, WorldRefusalError

_GAP = "only moto would hear of it, and it refuses less than EC2"
_BY = "api"
_LOGGED = {"VPC": "vpcs", "Subnet": "subnets", "NetworkInterface": "interfaces"}
_TRAFFIC = {"ALL": "all", "ACCEPT": "accepted", "REJECT": "rejected"}

Answer = Callable[[Wire, Request, NetworkInventory], ActionResult]


def mending(wire: Wire) -> tuple[Patch, ...]:
    """Patches of what changes networks."""
    return tuple(
        Patch(EC2Response, xform_name(name), asking(wire, partial(_asked, name, answer)), _GAP)
        for name, answer in _ANSWERS.items()
    )


def _asked(name: str, answer: Answer, wire: Wire, request: Request) -> ActionResult:
    shard = shard_of(request)
    require(wire, shard, Operation.FIX_NETWORK, name)
    request.refuse_dry_run()
    return answer(wire, request, wire.world.networks.of(shard))


def _release_address(wire: Wire, request: Request, there: NetworkInventory) -> ActionResult:
    """What is in use in a default VPC is taken off first, as EC2 does; elsewhere it is refused."""
    one = _address(request, there)
    if request.parameter("NetworkBorderGroup", one.ref.region) != one.ref.region:
        raise EC2ClientError("InvalidAddress.NotFound", f"Address '{one.ip}' not found.")
    if one.state is not AddressState.UNATTACHED:
        card = next((card for card in there.interfaces if one.ip in dict(card.public_ips).values()), None)
        default = {each.ref for each in there.vpcs if each.is_default}
        if card is None or card.vpc not in default:
            raise EC2ClientError("InvalidIPAddress.InUse", f"Address {one.ip} is in use.")
        wire.world.networks.detach(one.ref, wire.world.now, _BY)
    with _in_words("InvalidAllocationID.NotFound"):
        wire.world.networks.release(one.ref, wire.world.now, _BY)
    return EmptyResult()


def _associate_address(wire: Wire, request: Request, there: NetworkInventory) -> ActionResult:
    one = _address(request, there)
    if _is_true(request.parameter("AllowReassociation", "true")):
        raise EC2ClientError("UnsupportedOperation", "The sandbox never moves an address that is in use.")
    card = _card(request, there)
    private_ip = request.parameter("PrivateIpAddress", card.private_ips[0] if card.private_ips else "")
    if private_ip not in card.private_ips:
        message = f"The private IP address {private_ip} is not assigned to {card.ref.native_id}"
        raise EC2ClientError("InvalidParameterValue", message)
    public_ip, kept = dict(card.public_ips).get(private_ip), {each.ip for each in there.addresses}
    if one.bound_to is not None or public_ip in kept:
        raise EC2ClientError("Resource.AlreadyAssociated", f"resource {one.ref.native_id} is already associated")
    networks, now = wire.world.networks, wire.world.now
    if public_ip is not None and card.instance is not None:
        networks.public_ip_changed(card.instance, "")  # EC2 takes back the one it lent
    networks.attach(one.ref, card.ref, private_ip, now, _BY)
    return ActionResult({"AssociationId": shapes.association_id(networks.address(one.ref))})


def _disassociate_address(wire: Wire, request: Request, there: NetworkInventory) -> ActionResult:
    asked = request.parameter("AssociationId", "")
    bound = (each for each in there.addresses if each.bound_to is not None)
    one = next((each for each in bound if shapes.association_id(each) == asked), None)
    if one is None or one.bound_to is None:
        raise EC2ClientError("InvalidAssociationID.NotFound", f"The association ID '{asked}' does not exist")
    if one.bound_to.kind not in {"instance", "interface"}:
        raise EC2ClientError("AuthFailure", "You do not have permission to access the specified resource.")
    wire.world.networks.detach(one.ref, wire.world.now, _BY)
    return EmptyResult()


def _address(request: Request, there: NetworkInventory) -> PublicAddress:
    asked = request.parameter("AllocationId", "")
    one = next((each for each in there.addresses if each.ref.native_id == asked), None)
    if one is None:
        raise EC2ClientError("InvalidAllocationID.NotFound", f"The allocation ID '{asked}' does not exist")
    return one


def _card(request: Request, there: NetworkInventory) -> NetworkInterface:
    native_id, instance = request.parameter("NetworkInterfaceId"), request.parameter("InstanceId")
    cards = [card for card in there.interfaces if card.instance is not None]
    of_instance = [card for card in cards if card.instance is not None and card.instance.native_id == instance]
    if instance and len(of_instance) > 1:
        message = f"There are multiple interfaces attached to instance '{instance}'."
        raise EC2ClientError("InvalidInstanceID", message)
    found = of_instance or [card for card in there.interfaces if card.ref.native_id == native_id]
    if not found:
        message = f"The networkInterface ID '{native_id or instance}' does not exist"
        raise EC2ClientError("InvalidNetworkInterfaceID.NotFound", message)
    return found[0]


def _authorize(wire: Wire, request: Request, there: NetworkInventory) -> ActionResult:
    group = _group(request, there)
    made: list[NetworkRule] = []
    for permission in request.parameter("IpPermissions", []):
        for rule in _rules_of(permission, wire.world.networks.lists):
            if any(_means(rule) == _means(each) for each in (*group.rules, *made)):
                raise EC2ClientError("InvalidPermission.Duplicate", "the specified rule already exists")
            words = (group.ref.native_id, str(_means(rule)), str(len(wire.world.networks.history)))
            made.append(replace(rule, rule_id=made_up_rule_id(*words)))
    if not made:
        raise EC2ClientError("MissingParameter", "Either 'ipPermissions' or 'cidrIp' should be provided.")
    wire.world.networks.set_rules(group.ref, [*group.rules, *made], wire.world.now, _BY, f"authorised {len(made)}")
    return ActionResult({"Return": True, "SecurityGroupRules": [shapes.group_rule(group, rule) for rule in made]})


def _revoke(wire: Wire, request: Request, there: NetworkInventory) -> ActionResult:
    group, ids = _group(request, there), request.parameter("SecurityGroupRuleIds", [])
    known = {rule.rule_id: rule for rule in group.rules if rule.direction is Direction.INGRESS}
    missing = [each for each in ids if each not in known]
    if missing or not ids:
        message = f"The security group rule ID '{missing[0] if missing else ''}' does not exist"
        raise EC2ClientError("InvalidSecurityGroupRuleId.NotFound", message)
    left = [rule for rule in group.rules if rule.rule_id not in ids]
    wire.world.networks.set_rules(group.ref, left, wire.world.now, _BY, f"revoked {', '.join(ids)}")
    gone = [_revoked(group, known[each]) for each in ids]
    return ActionResult({"Return": True, "RevokedSecurityGroupRules": gone})


def _revoked(group: SecurityGroup, rule: NetworkRule) -> shapes.Shape:
    """This answer names a group where the list of rules tells more of it."""
    shown = shapes.group_rule(group, rule)
    referenced = shown.pop("ReferencedGroupInfo", None)
    return {**shown, "ReferencedGroupId": referenced["GroupId"]} if referenced else shown


def _group(request: Request, there: NetworkInventory) -> SecurityGroup:
    asked = request.parameter("GroupId", "")
    group = next((each for each in there.groups if each.ref.native_id == asked), None)
    if group is None:
        raise EC2ClientError("InvalidGroup.NotFound", f"The security group '{asked}' does not exist")
    return group


def _rules_of(permission: Any, lists: Mapping[str, tuple[str, ...]]) -> Iterator[NetworkRule]:
    protocol = {"-1": "all"}.get(permission["IpProtocol"], permission["IpProtocol"])
    first, last = int(permission.get("FromPort", -1)), int(permission.get("ToPort", -1))
    ports = EVERY_PORT if protocol == "all" else ((first, last),) if protocol in {"tcp", "udp"} else ()
    if protocol in {"tcp", "udp"} and first < 0:
        raise EC2ClientError("InvalidParameterValue", "Invalid value for portRange.")
    for key, peer in (
        *(("CidrIp", each) for each in permission.get("IpRanges", [])),
        *(("CidrIpv6", each) for each in permission.get("Ipv6Ranges", [])),
        *(("GroupId", each) for each in permission.get("UserIdGroupPairs", [])),
        *(("PrefixListId", each) for each in permission.get("PrefixListIds", [])),
    ):
        if key == "PrefixListId" and peer[key] not in lists:
            raise EC2ClientError("InvalidPrefixListID.NotFound", f"The prefix list ID '{peer[key]}' does not exist")
        network = lists.get(peer[key], ()) if key in {"GroupId", "PrefixListId"} else (_canonical(peer[key]),)
        yield NetworkRule(
            rule_id="",
            direction=Direction.INGRESS,
            permission=Permission.ALLOW,
            protocol=protocol,
            ports=ports,
            peers=network,
            peer_groups=(peer[key],) if key == "GroupId" else (),
            description=peer.get("Description", ""),
            peer_list=peer[key] if key == "PrefixListId" else "",
        )


def _canonical(network: str) -> str:
    return str(ip_network(network, strict=False))


def _means(rule: NetworkRule) -> NetworkRule:
    return replace(rule, rule_id="", description="")


def _create_flow_logs(wire: Wire, request: Request, there: NetworkInventory) -> ActionResult:
    kind, (asked,) = request.parameter("ResourceType"), request.parameter("ResourceIds")
    of_kind = getattr(there, _LOGGED[kind])
    covers: Ref | None = next((each.ref for each in of_kind if each.ref.native_id == asked), None)
    if covers is None:
        return _unsuccessful(f"Invalid{kind}Id.NotFound", f"The ID '{asked}' does not exist", asked)
    to_group = request.parameter("LogDestinationType", "cloud-watch-logs") == "cloud-watch-logs"
    if to_group and not request.parameter("DeliverLogsPermissionArn"):
        raise EC2ClientError("InvalidParameter", "DeliverLogsPermissionArn can't be empty if LogDestinationType is ...")
    traffic = _TRAFFIC[request.parameter("TrafficType")]
    if any(each.covers == covers and each.active and each.traffic == traffic for each in there.flow_logs):
        message = "There is an existing Flow Log with the same configuration and log destination."
        return _unsuccessful("FlowLogAlreadyExists", message, asked)
    native_id = shapes.made_up("fl", asked, str(len(wire.world.networks.history)))
    log = FlowLog(covers.sibling("flow_log", native_id), covers, active=True, traffic=traffic)
    wire.world.networks.log_flows(log, wire.world.now, _BY)
    return ActionResult({"FlowLogIds": [native_id], "Unsuccessful": []})


def _delete_flow_logs(wire: Wire, request: Request, there: NetworkInventory) -> ActionResult:
    known = {each.ref.native_id: each.ref for each in there.flow_logs}
    for asked in request.parameter("FlowLogIds"):
        if asked not in known:
            raise EC2ClientError("InvalidFlowLogId.NotFound", f"The flow log ID '{asked}' does not exist")
        wire.world.networks.end_flow_log(known[asked], wire.world.now, _BY)
    return ActionResult({"Unsuccessful": []})


def _unsuccessful(code: str, message: str, native_id: str) -> ActionResult:
    failed = {"ResourceId": native_id, "Error": {"Code": code, "Message": message}}
    return ActionResult({"FlowLogIds": [], "Unsuccessful": [failed]})


def _modify_metadata_options(wire: Wire, request: Request, _: NetworkInventory) -> ActionResult:
    machine = wire.machine(request, request.parameter("InstanceId"))
    tokens = request.parameter("HttpTokens")
    if tokens not in {"optional", "required"}:
        raise EC2ClientError("InvalidParameterValue", f"Value ({tokens}) for parameter HttpTokens is invalid.")
    wire.world.networks.set_imds(machine.ref, v1=tokens == "optional", now=wire.world.now, by=_BY)
    wire.bridge.refresh()
    options = {"State": "pending", "HttpTokens": tokens, "HttpEndpoint": "enabled", "HttpPutResponseHopLimit": 1}
    return ActionResult({"InstanceId": machine.native_id, "InstanceMetadataOptions": options})


def _is_true(value: object) -> bool:
    return str(value).lower() == "true"


@contextmanager
def _in_words(not_found: str) -> Iterator[None]:
    try:
        yield
    except WorldRefusalError as err:
        code = not_found if err.refusal is Refusal.NOT_FOUND else "IncorrectState"
        raise EC2ClientError(code, str(err)) from err


_ANSWERS: Mapping[str, Answer] = {
    "ReleaseAddress": _release_address,
    "AssociateAddress": _associate_address,
    "DisassociateAddress": _disassociate_address,
    "AuthorizeSecurityGroupIngress": _authorize,
    "RevokeSecurityGroupIngress": _revoke,
    "CreateFlowLogs": _create_flow_logs,
    "DeleteFlowLogs": _delete_flow_logs,
    "ModifyInstanceMetadataOptions": _modify_metadata_options,
}
CHANGES = frozenset(_ANSWERS)
"""Every change of networks that EC2 has here."""
