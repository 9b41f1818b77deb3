"""Network interfaces as ECS tells them: of public addresses only the elastic ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cloudstand.alibaba.core.shapes import some, tags, wrapped
from cloudstand.alibaba.core.site import ApiCall
from cloudstand.alibaba.network.pages import by_token, id_of, networks_of
from cloudstand.world.cloud import World
from cloudstand.world.network.parts import NetworkInterface

_MADE = "2025-01-15T08:00Z"


def describe_network_interfaces(call: ApiCall, world: World) -> Mapping[str, Any]:
    """DescribeNetworkInterfaces, by token."""
    found = networks_of(call, world)
    elastic = {address.ip: address.ref.native_id for address in found.addresses}
    wanted, asked = call.asked.many("NetworkInterfaceId"), call.asked
    chosen = [
        card
        for card in found.interfaces
        if (not asked.given("NetworkInterfaceId") or card.ref.native_id in wanted)
        and all(asked.text(key) in ("", told(card)) for key, told in _EXACT.items())
    ]
    page, token = by_token(call, chosen, most=500, usual=10, least=10)
    told = [_card(call, card, _told_here(world, card, elastic)) for card in page]
    return {
        "NetworkInterfaceSets": wrapped("NetworkInterfaceSet", told),
        "NextToken": token,
        "PageNumber": 1,
        "PageSize": 0,
        "TotalCount": 0,  # by token it means nothing
    }


def type_of(card: NetworkInterface) -> str:
    """Primary or secondary."""
    return "Secondary" if card.primary is False else "Primary"


_EXACT: Mapping[str, Callable[[NetworkInterface], str]] = {
    "InstanceId": lambda card: id_of(card.instance),
    "VpcId": lambda card: id_of(card.vpc),
    "VSwitchId": lambda card: id_of(card.subnet),
    "PrimaryIpAddress": lambda card: card.private_ips[0],
    "Type": type_of,
    "Status": lambda card: "Available" if card.unattached else "InUse",
}


def _told_here(world: World, card: NetworkInterface, elastic: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Public addresses by private one, with the id of elastic ones; a machine's plain one is told of the machine."""
    machine = world.machines.get(id_of(card.instance))
    return {
        private: (public, elastic.get(public, ""))
        for private, public in card.public_ips
        if public in elastic or machine is None or machine.public_ip != public
    }


def _card(call: ApiCall, card: NetworkInterface, public: Mapping[str, tuple[str, str]]) -> dict[str, Any]:
    native_id = card.ref.native_id
    return {
        "NetworkInterfaceId": native_id,
        "NetworkInterfaceName": "",
        "Description": "",
        "Type": type_of(card),
        "Status": "Available" if card.unattached else "InUse",
        "InstanceId": id_of(card.instance),
        "Attachment": {"InstanceId": id_of(card.instance), "DeviceIndex": 0},
        "VpcId": id_of(card.vpc),
        "VSwitchId": id_of(card.subnet),
        "ZoneId": f"{call.region}-i",
        "MacAddress": "00:16:3e:00:00:01",
        "OwnerId": call.account,
        "PrivateIpAddress": card.private_ips[0],
        "PrivateIpSets": wrapped("PrivateIpSet", [_private(card, each, public) for each in card.private_ips]),
        "AssociatedPublicIp": _associated(public.get(card.private_ips[0])),
        **some("Ipv6Sets", "Ipv6Set", [{"Ipv6Address": each} for each in card.ipv6_public], native_id),
        **some("Ipv6PrefixSets", "Ipv6PrefixSet", [], native_id[::2]),
        "SecurityGroupIds": wrapped("SecurityGroupId", card.groups),
        "ServiceManaged": False,
        "DeleteOnRelease": True,
        "CreationTime": _MADE,
        "ResourceGroupId": "",
        **tags(card.tags, native_id),
    }


def _private(card: NetworkInterface, address: str, public: Mapping[str, tuple[str, str]]) -> dict[str, Any]:
    return {
        "PrivateIpAddress": address,
        "Primary": address == card.private_ips[0],
        "AssociatedPublicIp": _associated(public.get(address)),
    }


def _associated(public: tuple[str, str] | None) -> dict[str, str]:
    return {"PublicIpAddress": public[0], "AllocationId": public[1]} if public else {}


def interfaces_of(cards: Sequence[NetworkInterface]) -> list[dict[str, Any]]:
    """What DescribeInstances tells of a machine's interfaces."""
    return [
        {
            "NetworkInterfaceId": card.ref.native_id,
            "PrimaryIpAddress": card.private_ips[0],
            "MacAddress": "00:16:3e:00:00:01",
            "Type": type_of(card),
            "PrivateIpSets": wrapped("PrivateIpSet", [{"PrivateIpAddress": card.private_ips[0], "Primary": True}]),
        }
        for card in cards
    ]
