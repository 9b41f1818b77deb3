"""VPC's public addresses: elastic ones, and the plain ones of machines only for who asks for WanIP."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from costguard.sandbox.tencent.asking import Answer, Asked, By, either, filtered, page
from costguard.sandbox.tencent.times import zulu
from costguard.sandbox.world.fleet import made_up_address, made_up_id
from costguard.sandbox.world.records import Machine, WorldAddress

_FILTERS: By = {
    "address-id": lambda entry: [entry["AddressId"]],
    "address-name": lambda entry: [entry["AddressName"]],
    "address-ip": lambda entry: [entry["AddressIp"]],
    "address-status": lambda entry: [entry["AddressStatus"]],
    "instance-id": lambda entry: [entry["InstanceId"]],
    "private-ip-address": None,
    "network-interface-id": None,
    "is-arrears": lambda entry: [str(entry["IsArrears"]).upper()],
    "instance-type": lambda entry: [entry["InstanceType"]],
    "address-type": lambda entry: [entry["AddressType"]],
    "address-isp": lambda entry: [entry["InternetServiceProvider"]],
    "dedicated-cluster-id": None,
    "tag-key": lambda _: [],
    "tag-value": lambda _: [],
    "tag:": lambda _: [],
}


def describe_addresses(asked: Asked) -> Answer:
    """DescribeAddresses. An unbound one may still tell the instance it was bound to: its status is what counts."""
    either(asked, "AddressIds", "InvalidParameter")
    plain = any(wanted["Name"] == "address-type" and "WanIP" in wanted["Values"] for wanted in asked.get("Filters", ()))
    entries = [*_elastic(asked), *(_plain(asked) if plain else ())]
    ids = asked.get("AddressIds")
    if ids:
        entries = [entry for entry in entries if entry["AddressId"] in set(ids)]
    found = filtered(asked.get("Filters", ()), entries, _FILTERS, code="InvalidParameter.InvalidFilter")
    return {"TotalCount": len(found), "AddressSet": page(asked, found)}


def _elastic(asked: Asked) -> Iterator[dict[str, Any]]:
    for address in asked.world.addresses.values():
        home = _home(asked, address)
        if home.shard == asked.shard:
            ip = home.spec.public_ip or made_up_address(address.native_id)
            yield _entry(address.native_id, ip, "EIP", home, bound=bool(address.machine))


def _plain(asked: Asked) -> Iterator[dict[str, Any]]:
    for machine in asked.world.machines_in(asked.shard):
        if machine.public_ip and not asked.world.addresses_of(machine.native_id):
            named = made_up_id("tencent", "address", "plain", machine.native_id)
            yield _entry(named, machine.public_ip, "WanIP", machine, bound=True)


def _home(asked: Asked, address: WorldAddress) -> Machine:
    """The machine an address points at, or did: its account and region are the address's."""
    world, homes = asked.world, asked.memory.homes
    native_id = address.machine or homes.get(address.native_id, "")
    if not native_id:
        for spec in world.fleet:
            homes.setdefault(made_up_id(spec.cloud, "address", spec.native_id), spec.native_id)
        native_id = homes[address.native_id]
    return world.machines[native_id]


def _entry(native_id: str, ip: str, kind: str, home: Machine, *, bound: bool) -> dict[str, Any]:
    return {
        "AddressId": native_id,
        "AddressName": "未命名",
        "AddressIp": ip,
        "AddressStatus": "BIND" if bound else "UNBIND",
        "AddressType": kind,
        "InstanceId": home.native_id,
        "InstanceType": "CVM" if bound else None,
        "NetworkInterfaceId": None,
        "PrivateAddressIp": None,
        "IsArrears": False,
        "IsBlocked": False,
        "IsEipDirectConnection": False,
        "EipAlgType": {"Ftp": False, "Sip": False},
        "LocalBgp": False,
        "CascadeRelease": False,
        "CreatedTime": zulu(home.spec.launched_at),
        "TagSet": [],
        "InternetChargeType": "TRAFFIC_POSTPAID_BY_HOUR",
        "InternetServiceProvider": "BGP",
        "Bandwidth": 10,
        "BandwidthPackageId": None,
        "DeadlineDate": None,
        "Egress": "center_egress1",
    }
