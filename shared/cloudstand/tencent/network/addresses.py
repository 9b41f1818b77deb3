"""VPC's public addresses: elastic ones, and the plain ones of machines only for who asks for WanIP."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cloudstand.tencent.core.asking import Answer, Asked, By, either, filtered, page
from cloudstand.tencent.core.times import zulu
from cloudstand.tencent.network.vpcs import MADE_AT, inventory, tag_set
from cloudstand.world.fleet import made_up_address, made_up_id
from cloudstand.world.network.parts import AddressState, PublicAddress
from cloudstand.world.places import Ref
from cloudstand.world.records import Machine, WorldAddress

_FILTERS: By = {
    "address-id": lambda entry: [entry["AddressId"]],
    "address-name": lambda entry: [entry["AddressName"]],
    "address-ip": lambda entry: [entry["AddressIp"]],
    "address-status": lambda entry: [entry["AddressStatus"]],
    "instance-id": lambda entry: [entry["InstanceId"]],
    "private-ip-address": lambda entry: [entry["PrivateAddressIp"] or ""],
    "network-interface-id": None,
    "is-arrears": lambda entry: [str(entry["IsArrears"]).upper()],
    "instance-type": lambda entry: [entry["InstanceType"]],
    "address-type": lambda entry: [entry["AddressType"]],
    "address-isp": lambda entry: [entry["InternetServiceProvider"]],
    "dedicated-cluster-id": None,
    "tag-key": lambda entry: [tag["Key"] for tag in entry["TagSet"]],
    "tag-value": lambda entry: [tag["Value"] for tag in entry["TagSet"]],
    "tag:": lambda entry: [f"{tag['Key']}={tag['Value']}" for tag in entry["TagSet"]],
}
_STATES = {
    AddressState.IN_USE: "BIND",
    AddressState.UNATTACHED: "UNBIND",
    AddressState.CHANGING: "UNBINDING",
    AddressState.UNKNOWN: "FROZEN",
}
_TYPES = {"instance": "CVM", "nat_gateway": "NAT", "interface": "ENI", "load_balancer": "CLB"}


def describe_addresses(asked: Asked) -> Answer:
    """DescribeAddresses. An unbound one may still tell the instance it was bound to: its status is what counts."""
    either(asked, "AddressIds", "InvalidParameter")
    plain = any(wanted["Name"] == "address-type" and "WanIP" in wanted["Values"] for wanted in asked.get("Filters", ()))
    entries = [*_kept(asked), *_elastic(asked), *(_plain(asked) if plain else ())]
    ids = asked.get("AddressIds")
    if ids:
        entries = [entry for entry in entries if entry["AddressId"] in set(ids)]
    found = filtered(asked.get("Filters", ()), entries, _FILTERS, code="InvalidParameter.InvalidFilter")
    return {"TotalCount": len(found), "AddressSet": page(asked, found)}


def _kept(asked: Asked) -> Iterator[dict[str, Any]]:
    """Those of the world's networks."""
    for address in inventory(asked).addresses:
        yield _of_network(asked, address)


def _elastic(asked: Asked) -> Iterator[dict[str, Any]]:
    """Those of machines that no network tells of."""
    known = {address.ref.native_id for address in inventory(asked).addresses}
    for address in asked.world.addresses.values():
        if address.native_id in known:
            continue
        home = _home(asked, address)
        if home is not None and home.shard == asked.shard:
            ip = home.spec.public_ip or made_up_address(address.native_id)
            yield _entry(address.native_id, ip, "EIP", home, bound=bool(address.machine))


def _plain(asked: Asked) -> Iterator[dict[str, Any]]:
    for machine in asked.world.machines_in(asked.shard):
        if machine.public_ip and not asked.world.addresses_of(machine.native_id):
            named = made_up_id("tencent", "address", "plain", machine.native_id)
            entry = _entry(named, machine.public_ip, "WanIP", machine, bound=True)
            yield {**entry, **_card_of(asked, machine.public_ip, machine.ref)}


def _home(asked: Asked, address: WorldAddress) -> Machine | None:
    """The machine an address points at, or did: its account and region are the address's. None: it never had one."""
    world, homes = asked.world, asked.memory.homes
    native_id = address.machine or homes.get(address.native_id, "")
    if not native_id:
        for spec in world.fleet:
            homes.setdefault(made_up_id(spec.cloud, "address", spec.native_id), spec.native_id)
        native_id = homes.get(address.native_id, "")
    return world.machines.get(native_id)


def _of_network(asked: Asked, address: PublicAddress) -> dict[str, Any]:
    bound_to, native_id = address.bound_to, address.ref.native_id
    free = bound_to is not None and bound_to.kind == "interface"
    made = MADE_AT if address.allocated_at is None else zulu(address.allocated_at)
    return {
        **_details(native_id, address.ip, "EIP", made),
        "AddressName": address.name,
        "AddressStatus": "BIND_ENI" if free else _STATES[address.state],
        "InstanceId": None if bound_to is None or free else bound_to.native_id,
        "InstanceType": None if bound_to is None else _TYPES.get(bound_to.kind, "HAVIP"),
        "CascadeRelease": native_id in asked.memory.networks.cascades,
        "TagSet": tag_set(address.tags),
        "InternetChargeType": "BANDWIDTH_PREPAID_BY_MONTH" if address.is_prepaid else "TRAFFIC_POSTPAID_BY_HOUR",
        "AntiDDoSPackageId": "bgp-00000abc" if address.is_service_managed else "",
        **_billed(asked, native_id),
        **_card_of(asked, address.ip, bound_to),
    }


def _billed(asked: Asked, native_id: str) -> dict[str, Any]:
    set_up = asked.memory.networks.billed.get(native_id)
    return {} if set_up is None else {"InternetChargeType": set_up[0], "Bandwidth": set_up[1]}


def _card_of(asked: Asked, ip: str, bound_to: Ref | None) -> dict[str, str | None]:
    """The interface and private address that a public one leads to."""
    for card in inventory(asked).interfaces if bound_to is not None else ():
        for private, public in card.public_ips:
            if public == ip and bound_to in {card.ref, card.instance}:
                return {"NetworkInterfaceId": card.ref.native_id, "PrivateAddressIp": private}
    return {"NetworkInterfaceId": None, "PrivateAddressIp": None}


def _entry(native_id: str, ip: str, kind: str, home: Machine, *, bound: bool) -> dict[str, Any]:
    return {
        **_details(native_id, ip, kind, zulu(home.spec.launched_at)),
        "AddressStatus": "BIND" if bound else "UNBIND",
        "InstanceId": home.native_id,
        "InstanceType": "CVM" if bound else None,
    }


def _details(native_id: str, ip: str, kind: str, made: str) -> dict[str, Any]:
    return {
        "AddressId": native_id,
        "AddressName": "未命名",
        "AddressIp": ip,
        "AddressType": kind,
        "NetworkInterfaceId": None,
        "PrivateAddressIp": None,
        "IsArrears": False,
        "IsBlocked": False,
        "IsEipDirectConnection": False,
        "EipAlgType": {"Ftp": False, "Sip": False},
        "LocalBgp": False,
        "CascadeRelease": False,
        "CreatedTime": made,
        "TagSet": [],
        "InternetChargeType": "TRAFFIC_POSTPAID_BY_HOUR",
        "InternetServiceProvider": "BGP",
        "Bandwidth": 10,
        "BandwidthPackageId": None,
        "DeadlineDate": None,
        "Egress": "center_egress1",
    }


MBPS_HOUR = (0.063, 0.25)
"""What a Mbit/s costs an hour, up to five and beyond."""
_FIRST = 5


def inquiry_price_allocate_addresses(asked: Asked) -> Answer:
    """InquiryPriceAllocateAddresses: bandwidth by the hour or by the month, or a gigabyte of traffic.

    The fee of an address that is bound to nothing is in none of them; of traffic the unit is called HOUR all the same.
    """
    mbps, charge = asked.get("InternetMaxBandwidthOut", 1), asked.parameters["InternetChargeType"]
    near, far = MBPS_HOUR
    hourly = round(min(mbps, _FIRST) * near + max(0, mbps - _FIRST) * far, 4)
    if charge == "BANDWIDTH_PREPAID_BY_MONTH":
        months = asked.parameters["AddressChargePrepaid"]["Period"]
        total = round(hourly * 400 * months, 2)
        return {"Price": {"AddressPrice": {"OriginalPrice": total, "DiscountPrice": total}}}
    price = 0.8 if charge == "TRAFFIC_POSTPAID_BY_HOUR" else hourly
    return {"Price": {"AddressPrice": {"UnitPrice": price, "DiscountPrice": price, "ChargeUnit": "HOUR"}}}
