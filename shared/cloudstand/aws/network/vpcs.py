"""EC2's networks over those of the world: moto has default ones of its own, chooses every id, and checks little.

Not as EC2: DescribeInstances shows networks, cards and groups of moto's own, with the public addresses of the world;
only the filters listed here are known, others are refused; a world's rule has one peer, or names one prefix list, and
one range of ports; everything takes effect at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from botocore import xform_name
from moto.core.responses import ActionResult
from moto.ec2.exceptions import EC2ClientError
from moto.ec2.responses import EC2Response

from cloudstand.aws.core.answers import Ec2Answer
from cloudstand.aws.core.patching import Patch, Request, Wire, asking
from cloudstand.aws.network import shapes
from cloudstand.world.network.parts import NetworkInventory
from cloudstand.world.places import Place
from cloudstand.world.records import Operation

PARTITIONS = ("aws", "aws-cn", "aws-us-gov")
_GAP = "default networks of moto's own, and ids that nobody else knows"
_FEWEST, _MOST = 5, 1000

Items = Callable[[NetworkInventory], Iterator[shapes.Shape]]


@dataclass(frozen=True, slots=True)
class _List:
    """A describing call: the part that it is, its answer's key, its items, and what it may be asked about.

    `ids` is the parameter that names some, `id_key` the id that they have, `missing` the error's code for what is not
    there; `filters` are filters by the paths of the values they look at.
    """

    part: str
    operation: str
    result_key: str
    items: Items
    ids: str
    id_key: str
    missing: str
    filters: Mapping[str, str]
    most: int = _MOST


_LISTS = (
    _List(
        "vpcs",
        "DescribeVpcs",
        "Vpcs",
        lambda there: map(shapes.vpc, there.vpcs),
        "VpcIds",
        "VpcId",
        "InvalidVpcID.NotFound",
        {"vpc-id": "VpcId"},
    ),
    _List(
        "subnets",
        "DescribeSubnets",
        "Subnets",
        lambda there: map(shapes.subnet, there.subnets),
        "SubnetIds",
        "SubnetId",
        "InvalidSubnetID.NotFound",
        {"vpc-id": "VpcId"},
    ),
    _List(
        "routes",
        "DescribeRouteTables",
        "RouteTables",
        lambda there: (shapes.route_table(each, there) for each in there.route_tables),
        "RouteTableIds",
        "RouteTableId",
        "InvalidRouteTableID.NotFound",
        {"vpc-id": "VpcId"},
        most=100,
    ),
    _List(
        "groups",
        "DescribeSecurityGroups",
        "SecurityGroups",
        lambda there: map(shapes.group, there.groups),
        "GroupIds",
        "GroupId",
        "InvalidGroup.NotFound",
        {"group-id": "GroupId", "vpc-id": "VpcId"},
    ),
    _List(
        "groups",
        "DescribeSecurityGroupRules",
        "SecurityGroupRules",
        lambda there: (shapes.group_rule(group, rule) for group in there.groups for rule in group.rules),
        "SecurityGroupRuleIds",
        "SecurityGroupRuleId",
        "InvalidSecurityGroupRuleId.NotFound",
        {"group-id": "GroupId", "security-group-rule-id": "SecurityGroupRuleId"},
    ),
    _List(
        "access_lists",
        "DescribeNetworkAcls",
        "NetworkAcls",
        lambda there: (shapes.access_list(each, there) for each in there.access_lists),
        "NetworkAclIds",
        "NetworkAclId",
        "InvalidNetworkAclID.NotFound",
        {"vpc-id": "VpcId"},
    ),
    _List(
        "interfaces",
        "DescribeNetworkInterfaces",
        "NetworkInterfaces",
        lambda there: (shapes.interface(each, there) for each in there.interfaces),
        "NetworkInterfaceIds",
        "NetworkInterfaceId",
        "InvalidNetworkInterfaceID.NotFound",
        {
            "network-interface-id": "NetworkInterfaceId",
            "attachment.instance-id": "Attachment.InstanceId",
            "addresses.association.public-ip": "PrivateIpAddresses.Association.PublicIp",
        },
    ),
    _List(
        "nat_gateways",
        "DescribeNatGateways",
        "NatGateways",
        lambda there: (shapes.nat_gateway(each, there) for each in there.nat_gateways),
        "NatGatewayIds",
        "NatGatewayId",
        "NatGatewayNotFound",
        {"vpc-id": "VpcId"},
    ),
    _List(
        "flow_logs",
        "DescribeFlowLogs",
        "FlowLogs",
        lambda there: map(shapes.flow_log, there.flow_logs),
        "FlowLogIds",
        "FlowLogId",
        "InvalidFlowLogId.NotFound",
        {"resource-id": "ResourceId"},
    ),
    _List(
        "peerings",
        "DescribeVpcPeeringConnections",
        "VpcPeeringConnections",
        lambda there: (shapes.peering(each, there) for each in there.peerings),
        "VpcPeeringConnectionIds",
        "VpcPeeringConnectionId",
        "InvalidVpcPeeringConnectionID.NotFound",
        {"requester-vpc-info.vpc-id": "RequesterVpcInfo.VpcId"},
    ),
)

_ADDRESSES = _List(
    "addresses",
    "DescribeAddresses",
    "Addresses",
    lambda there: (shapes.address(each, there) for each in there.addresses),
    "AllocationIds",
    "AllocationId",
    "InvalidAllocationID.NotFound",
    {"instance-id": "InstanceId", "allocation-id": "AllocationId", "public-ip": "PublicIp"},
)


def networking(wire: Wire) -> tuple[Patch, ...]:
    """Patches of what is read of networks."""
    lists = [
        Patch(EC2Response, xform_name(each.operation), asking(wire, partial(_describe, each)), _GAP) for each in _LISTS
    ]
    return (
        *lists,
        Patch(
            EC2Response,
            "get_managed_prefix_list_entries",
            asking(wire, _get_managed_prefix_list_entries),
            "lists of moto's own",
        ),
        Patch(
            EC2Response,
            "describe_addresses",
            _describe_addresses(wire),
            "addresses are 127.x, and taken off in silence when they are released",
        ),
    )


def shard_of(request: Request) -> Place:
    """Where a request was sent."""
    by_region = {"cn": PARTITIONS[1], "us-gov": PARTITIONS[2]}
    prefix = "us-gov" if request.region.startswith("us-gov-") else request.region.partition("-")[0]
    return Place(by_region.get(prefix, PARTITIONS[0]), request.account, request.region)


def require(wire: Wire, shard: Place, operation: Operation, what: str, part: str = "") -> None:
    """Pass, or be refused as a caller without the permission is.

    Raises:
        EC2ClientError: UnauthorizedOperation.
    """
    world = wire.world
    if world.may(shard.cloud, shard.account, operation) and (
        not part or world.networks.may(shard.cloud, shard.account, part)
    ):
        return
    caller = f"arn:{shard.cloud}:sts::{shard.account}:assumed-role/costguard/costguard"
    message = f"You are not authorized to perform this operation. User {caller} lacks ec2:{what}."
    raise EC2ClientError("UnauthorizedOperation", message)


def _describe(what: _List, wire: Wire, request: Request) -> ActionResult:
    shard = shard_of(request)
    require(wire, shard, Operation.NETWORK, what.operation, what.part)
    request.refuse_dry_run()
    found = _chosen(what, list(what.items(wire.world.networks.of(shard))), request)
    asked, token = request.parameter("MaxResults"), str(request.parameter("NextToken") or 0)
    if asked is not None and not _FEWEST <= int(asked) <= what.most:
        message = f"Value ( {asked} ) for parameter maxResults is invalid. Expecting a value from 5 to {what.most}."
        raise EC2ClientError("InvalidParameterValue", message)
    if not token.isdigit():
        raise EC2ClientError("InvalidNextToken", "The token is not valid.")
    first, size = int(token), min(int(asked or what.most), wire.pages.most)
    more = {"NextToken": str(first + size)} if first + size < len(found) else {}
    return Ec2Answer({what.result_key: found[first : first + size], **more})


def _chosen(what: _List, items: list[shapes.Shape], request: Request) -> list[shapes.Shape]:
    """Those that the request names or filters for; a filter that nothing here knows is refused, not passed over."""
    ids = request.parameter(what.ids, [])
    missing = [each for each in ids if each not in {item[what.id_key] for item in items}]
    if missing:
        raise EC2ClientError(what.missing, f"The ID '{missing[0]}' does not exist")
    chosen = [item for item in items if not ids or item[what.id_key] in ids]
    for name, values in request.filters().items():
        if name not in what.filters:
            raise EC2ClientError("InvalidParameterValue", f"The filter '{name}' is invalid")
        chosen = [item for item in chosen if set(_at(item, what.filters[name])) & set(values)]
    return chosen


def _at(item: Any, path: str) -> Iterator[str]:
    """The values at a dotted path, through lists."""
    first, _, rest = path.partition(".")
    for each in item if isinstance(item, list) else [item]:
        found = each.get(first)
        if found is not None:
            yield from _at(found, rest) if rest else [found]


def _get_managed_prefix_list_entries(wire: Wire, request: Request) -> ActionResult:
    """What the world's lists hold; what a rule leaves unresolved stays so."""
    require(wire, shard_of(request), Operation.NETWORK, "GetManagedPrefixListEntries")
    request.refuse_dry_run()
    asked = request.parameter("PrefixListId")
    if asked in wire.world.networks.lists:
        return ActionResult({"Entries": [{"Cidr": each} for each in wire.world.networks.lists[asked]]})
    raise EC2ClientError("InvalidPrefixListID.NotFound", f"The prefix list ID '{asked}' does not exist")


def _describe_addresses(wire: Wire) -> Callable[[Any], ActionResult]:
    by_moto = EC2Response.describe_addresses

    def describe(response: Any) -> ActionResult:
        """Those of the world's networks, and kept ones of machines that stand in no network, which moto has."""
        request = Request(response)
        shard = shard_of(request)
        require(wire, shard, Operation.NETWORK, _ADDRESSES.operation, _ADDRESSES.part)
        request.refuse_dry_run()
        there = wire.world.networks.of(shard)
        placed = {each.ref.native_id for each in there.addresses}
        ids = set(request.parameter("AllocationIds", []))
        if ids and ids <= placed:
            return ActionResult({"Addresses": _chosen(_ADDRESSES, list(_ADDRESSES.items(there)), request)})
        found: Any = by_moto(response).result
        others = [
            each
            for each in found["Addresses"]
            if each.allocation_id not in placed and each.allocation_id in wire.world.addresses
        ]
        own = [] if ids else _chosen(_ADDRESSES, list(_ADDRESSES.items(there)), request)
        return ActionResult({"Addresses": [*own, *others]})

    return describe
