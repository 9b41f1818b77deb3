"""Kept public addresses (EIPs), which bill on whether they are bound or not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from cloudstand.alibaba.compute.instances import address_of
from cloudstand.alibaba.core.ownership import Origin
from cloudstand.alibaba.core.shapes import some, tags
from cloudstand.alibaba.core.site import ApiCall
from cloudstand.alibaba.core.times import NEVER, second
from cloudstand.alibaba.network.pages import networks_of, numbered, shard_of
from cloudstand.world.cloud import World
from cloudstand.world.network.parts import AddressState, NetworkInventory, PublicAddress
from cloudstand.world.records import WorldAddress

BOUND_TYPES: Mapping[str, str] = {
    "instance": "EcsInstance",
    "interface": "NetworkInterface",
    "nat_gateway": "Nat",
    "balancer": "SlbInstance",
    "virtual_ip": "HaVip",
    "private_ip": "IpAddress",
}
"""What an address may be bound to, in neutral words and in the vendor's."""

_STATES = {
    AddressState.IN_USE: "InUse",
    AddressState.UNATTACHED: "Available",
    AddressState.CHANGING: "Associating",
    AddressState.UNKNOWN: "Unknown",
}
_LOCKED = "locked_"


def describe_eip_addresses(call: ApiCall, world: World) -> Mapping[str, Any]:
    """The addresses of one region that fit every filter, by page number.

    Where networks are written down they tell which there are; elsewhere the machines do.
    """
    found = [address for address in _every(call, world) if _fits(address, call)]
    return numbered(call, "EipAddresses", "EipAddress", found)


def _every(call: ApiCall, world: World) -> Iterator[dict[str, Any]]:
    networks = networks_of(call, world)
    if networks == NetworkInventory(networks.shard):
        for kept, origin in call.site.ownership.addresses(shard_of(call)):
            yield _of_machine(world, kept, origin)
        return
    settling = call.site.networks.settling
    going = [each for each in settling.values() if each.until > world.now and each.state == "Releasing"]
    gone = [each.before for each in going if each.before.ref.shard == networks.shard]
    for address in (*networks.addresses, *gone):
        now = settling.get(address.ref.native_id)
        if now is None or now.until <= world.now:
            yield _of_networks(call, networks, address, _STATES[address.state])
        else:
            yield _of_networks(call, networks, now.before, now.state)


def _of_networks(call: ApiCall, networks: NetworkInventory, address: PublicAddress, state: str) -> dict[str, Any]:
    bound, native_id = address.bound_to, address.ref.native_id
    kind = BOUND_TYPES.get(bound.kind, "") if bound else ""
    cards = networks.interfaces if kind == "NetworkInterface" else ()
    private = [private for card in cards for private, public in card.public_ips if public == address.ip]
    locks = [each.removeprefix(_LOCKED) for each in address.protected_by if each.startswith(_LOCKED)]
    return {
        **_described(native_id, address.ip, call.region),
        "Name": address.name,
        "Status": state,
        "InstanceId": bound.native_id if bound else "",
        "InstanceType": kind,
        "InstanceRegionId": call.region if bound else "",
        "PrivateIpAddress": private[0] if private else "",
        "ChargeType": "PrePaid" if address.is_prepaid else "PostPaid",
        **_bandwidth(call.site.networks.by_bandwidth.get(native_id)),
        "AllocationTime": second(address.allocated_at) if address.allocated_at else "",
        "ExpiredTime": NEVER if address.is_prepaid else "",
        "DeletionProtection": "deletion_protection" in address.protected_by,
        "ServiceManaged": int(address.is_service_managed),
        "SegmentInstanceId": f"eipsg-{native_id[4:]}" if "segment" in address.protected_by else "",
        **some("OperationLocks", "LockReason", [{"LockReason": each} for each in locks], native_id),
        **tags(address.tags, native_id, "Key", "Value"),
    }


def _bandwidth(mbps: int | None) -> dict[str, str]:
    return {} if mbps is None else {"InternetChargeType": "PayByBandwidth", "Bandwidth": str(mbps)}


def _of_machine(world: World, address: WorldAddress, origin: Origin) -> dict[str, Any]:
    machine = world.machines[origin.machine]
    bound = bool(address.machine)
    return {
        **_described(address.native_id, address_of(machine, address.native_id), origin.shard.region),
        "Status": "InUse" if bound else "Available",
        "InstanceId": address.machine,
        "InstanceType": "EcsInstance" if bound else "",
        "InstanceRegionId": origin.shard.region if bound else "",
        "AllocationTime": second(machine.spec.launched_at),
        **some("OperationLocks", "LockReason", [], address.native_id),
        **tags({}, address.native_id, "Key", "Value"),
    }


def _described(native_id: str, ip: str, region: str) -> dict[str, Any]:
    """What is told of every address, and of most of them the same."""
    return {
        "AllocationId": native_id,
        "IpAddress": ip,
        "Name": "",
        "Description": "",
        "RegionId": region,
        "ChargeType": "PostPaid",
        "InternetChargeType": "PayByTraffic",
        "Bandwidth": "5",
        "ISP": "BGP",
        "Netmode": "public",
        "ExpiredTime": "",
        "DeletionProtection": False,
        "ServiceManaged": 0,
        "SegmentInstanceId": "",
        "BandwidthPackageId": "",
        "PrivateIpAddress": "",
        "ResourceGroupId": "",
        "BusinessStatus": "Normal",
    }


def _fits(address: Mapping[str, Any], call: ApiCall) -> bool:
    asked = call.asked
    several = {"AllocationId": address["AllocationId"], "EipAddress": address["IpAddress"]}
    exact = {
        "Status": address["Status"],
        "AssociatedInstanceId": address["InstanceId"],
        "AssociatedInstanceType": address["InstanceType"],
        "ChargeType": address["ChargeType"],
    }
    return all(
        not asked.given(name) or value in asked.text(name).split(",") for name, value in several.items()
    ) and all(asked.text(name) in ("", value) for name, value in exact.items())
