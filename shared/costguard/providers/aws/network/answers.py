"""What EC2 says of VPCs, interfaces, addresses, gateways, flow logs and peerings, in neutral words: no request is made.

Whatever another account owns (a shared subnet, its VPC and route table) keeps that account in its ref.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address, ip_network

from costguard.domain.money import HourlyRate
from costguard.domain.network import (
    AddressState,
    FlowLog,
    NatGateway,
    NetworkInterface,
    Peering,
    PublicAddress,
    Unpriced,
    Vpc,
)
from costguard.domain.refs import ResourceRef, Shard
from costguard.providers.aws.network.prices import NetworkRates, Rate, table_rates
from costguard.providers.aws.network.rules import network
from costguard.providers.kit.core.fields import Fields, flag, moment, named, part, parts, tags_of, text

HELD = frozenset({"associated", "associating", ""})
"""The states of an association that is in force."""

_GONE_PEERINGS = frozenset({"deleted", "deleting", "rejected", "failed", "expired"})
_NAT_STATES = frozenset({"pending", "available"})
_TRAFFIC = {"ALL": "all", "ACCEPT": "accepted", "REJECT": "rejected"}
_AMAZONS_POOL = "amazon"
_UNIQUE_LOCAL = ip_network("fc00::/7")
_COVERED = {"vpc": "vpc", "subnet": "subnet", "eni": "interface"}


@dataclass(slots=True)
class Place:
    """One shard, and whose is what in it."""

    shard: Shard
    known: dict[str, ResourceRef] = field(default_factory=dict)

    def owned(self, kind: str, native_id: str, owner: str = "") -> ResourceRef:
        """The ref of something that tells its owner, remembered for those that only name it."""
        ref = ResourceRef(self.shard.cloud, owner or self.shard.account, self.shard.region, kind, native_id)
        self.known[native_id] = ref
        return ref

    def named(self, kind: str, native_id: str) -> ResourceRef:
        """The ref of something that is only named; where nothing told whose it is, the account's own."""
        return self.known.get(native_id) or ResourceRef(
            self.shard.cloud, self.shard.account, self.shard.region, kind, native_id
        )


def to_vpc(place: Place, said: Fields) -> Vpc:
    """One element of DescribeVpcs. Raises as `fields.py`."""
    tags = tags_of(said)
    return Vpc(
        ref=place.owned("vpc", named(said, "VpcId"), text(said, "OwnerId")),
        cidrs=cidrs_of(said),
        name=tags.get("Name", ""),
        is_default=flag(said, "IsDefault"),
        tags=tags,
    )


def cidrs_of(said: Fields) -> tuple[str, ...]:
    """The networks of a VPC or subnet that are in force. Raises as `fields.py`."""
    found = [text(said, "CidrBlock")]
    for blocks, key, state in (
        ("CidrBlockAssociationSet", "CidrBlock", "CidrBlockState"),
        ("Ipv6CidrBlockAssociationSet", "Ipv6CidrBlock", "Ipv6CidrBlockState"),
    ):
        held = (each for each in parts(said, blocks) if text(part(each, state), "State") in HELD)
        found += [named(each, key) for each in held]
    return tuple(dict.fromkeys(network(each) for each in found if each))


def to_interface(place: Place, said: Fields, private_v6: Collection[str]) -> NetworkInterface:
    """One element of DescribeNetworkInterfaces; `private_v6` are subnets whose IPv6 is (see `has_private_v6`).

    Raises as `kit/core/fields.py`.
    """
    attachment, subnet, vpc = part(said, "Attachment"), text(said, "SubnetId"), text(said, "VpcId")
    instance, device = text(attachment, "InstanceId"), attachment.get("DeviceIndex")
    card = attachment.get("NetworkCardIndex", 0)
    pairs = [
        (named(each, "PrivateIpAddress"), text(part(each, "Association"), "PublicIp"))
        for each in parts(said, "PrivateIpAddresses")
    ]
    v6 = [*(named(each, "Ipv6Address") for each in parts(said, "Ipv6Addresses")), *_first_of_prefixes(said)]
    return NetworkInterface(
        ref=place.owned("interface", named(said, "NetworkInterfaceId"), text(said, "OwnerId")),
        vpc=place.named("vpc", vpc) if vpc else None,
        subnet=place.named("subnet", subnet) if subnet else None,
        instance=_instance(place, said, attachment) if instance else None,
        private_ips=tuple(private for private, _ in pairs),
        public_ips=tuple((private, public) for private, public in pairs if public),
        ipv6_public=tuple(each for each in v6 if ip_address(each) not in _UNIQUE_LOCAL and subnet not in private_v6),
        groups=tuple(named(each, "GroupId") for each in parts(said, "Groups")),
        primary=(device, card) == (0, 0) if instance and device is not None else None,
        unattached=text(said, "Status") == "available",
        tags=tags_of({"Tags": said["TagSet"]} if "TagSet" in said else {}),
    )


def _first_of_prefixes(said: Fields) -> Iterator[str]:
    """Whoever has a whole prefix gets what is sent to any address of it: the first stands for all."""
    for each in parts(said, "Ipv6Prefixes"):
        yield str(ip_network(named(each, "Ipv6Prefix")).network_address)


def _instance(place: Place, said: Fields, attachment: Fields) -> ResourceRef:
    """In a shared subnet the owner sees machines of others."""
    owner = text(attachment, "InstanceOwnerId")
    return place.owned("instance", named(attachment, "InstanceId"), owner if owner.isdigit() else text(said, "OwnerId"))


def to_address(
    place: Place, said: Fields, nat_by_interface: Mapping[str, str], rates: NetworkRates | None = None
) -> PublicAddress:
    """One element of DescribeAddresses. AWS does not tell since when the account has it. Raises as `fields.py`."""
    tags, ip = tags_of(said), text(said, "PublicIp") or text(said, "CarrierIp") or text(said, "CustomerOwnedIp")
    native_id = text(said, "AllocationId") or named(said, "PublicIp")
    bound = any(text(said, key) for key in ("AssociationId", "InstanceId", "NetworkInterfaceId", "PrivateIpAddress"))
    rate = _address_rate(rates or table_rates(place.shard), said, bound=bound)
    return PublicAddress(
        ref=place.owned("address", native_id),
        ip=ip,
        state=AddressState.IN_USE if bound else AddressState.UNATTACHED,
        bound_to=_bound_to(place, said, nat_by_interface),
        name=tags.get("Name", ""),
        rate=_known(rate),
        unpriced=_unknown(rate),
        is_service_managed=bool(text(said, "ServiceManaged")),
        tags=tags,
    )


def _bound_to(place: Place, said: Fields, nat_by_interface: Mapping[str, str]) -> ResourceRef | None:
    instance, interface = text(said, "InstanceId"), text(said, "NetworkInterfaceId")
    if instance:
        return place.named("instance", instance)
    if interface in nat_by_interface:
        return place.named("nat_gateway", nat_by_interface[interface])
    return place.named("interface", interface) if interface else None


def is_amazons(said: Fields) -> bool:
    """Whether an address is one of Amazon's own."""
    return text(said, "PublicIpv4Pool") == _AMAZONS_POOL


def _address_rate(rates: NetworkRates, said: Fields, *, bound: bool) -> Rate:
    """What Amazon's own addresses cost; those that a customer brought cost nothing, of other pools it is not known."""
    if not is_amazons(said):
        return Unpriced.UNLISTED
    return rates.in_use if bound else rates.idle


def _known(rate: Rate) -> HourlyRate | None:
    return rate if isinstance(rate, HourlyRate) else None


def _unknown(rate: Rate) -> Unpriced | None:
    return rate if isinstance(rate, Unpriced) else None


def to_nat_gateway(place: Place, said: Fields, rates: NetworkRates | None = None) -> NatGateway | None:
    """One element of DescribeNatGateways; None where it failed or ended, which AWS lists for an hour.

    Raises as `kit/core/fields.py`.
    """
    if named(said, "State") not in _NAT_STATES:
        return None
    tags, rate = tags_of(said), (rates or table_rates(place.shard)).gateway
    public_ips = (text(each, "PublicIp") for each in parts(said, "NatGatewayAddresses"))
    return NatGateway(
        ref=place.owned("nat_gateway", named(said, "NatGatewayId")),
        vpc=place.named("vpc", named(said, "VpcId")),
        public_ips=tuple(ip for ip in public_ips if ip),
        name=tags.get("Name", ""),
        created_at=moment(said, "CreateTime"),
        is_private=text(said, "ConnectivityType") == "private",
        rate=_known(rate),
        unpriced=_unknown(rate),
        tags=tags,
    )


def nat_interfaces(said: Fields) -> list[tuple[str, str]]:
    """The interfaces of a NAT gateway, with its id. Raises as `fields.py`."""
    interfaces = (text(each, "NetworkInterfaceId") for each in parts(said, "NatGatewayAddresses"))
    return [(interface, named(said, "NatGatewayId")) for interface in interfaces if interface]


def to_flow_log(place: Place, said: Fields) -> FlowLog | None:
    """One element of DescribeFlowLogs; None where it is around something else (a transit gateway).

    One whose records do not arrive is not active. Raises as `kit/core/fields.py`.
    """
    covered = named(said, "ResourceId")
    kind = _COVERED.get(covered.partition("-")[0])
    if kind is None:
        return None
    return FlowLog(
        ref=place.owned("flow_log", named(said, "FlowLogId")),
        covers=place.named(kind, covered),
        active=text(said, "FlowLogStatus") == "ACTIVE" and text(said, "DeliverLogsStatus") != "FAILED",
        traffic=_TRAFFIC[named(said, "TrafficType")],
    )


def to_peering(place: Place, said: Fields) -> Peering | None:
    """One element of DescribeVpcPeeringConnections; None where it is over. Raises as `fields.py`."""
    status = named(part(said, "Status"), "Code")
    if status in _GONE_PEERINGS:
        return None
    near, far = part(said, "RequesterVpcInfo"), part(said, "AccepterVpcInfo")
    if not _is_here(place.shard, near):
        near, far = far, near
    cidrs = [
        *(text(far, "CidrBlock"),),
        *(named(each, "CidrBlock") for each in parts(far, "CidrBlockSet")),
        *(named(each, "Ipv6CidrBlock") for each in parts(far, "Ipv6CidrBlockSet")),
    ]
    return Peering(
        ref=place.owned("peering", named(said, "VpcPeeringConnectionId")),
        vpc=place.named("vpc", named(near, "VpcId")),
        other_account=text(far, "OwnerId"),
        other_region=text(far, "Region") or place.shard.region,
        other_vpc=named(far, "VpcId"),
        other_cidrs=tuple(dict.fromkeys(network(each) for each in cidrs if each)),
        active=status == "active",
        tags=tags_of(said),
    )


def _is_here(shard: Shard, end: Fields) -> bool:
    return text(end, "OwnerId") == shard.account and text(end, "Region") in (shard.region, "")
