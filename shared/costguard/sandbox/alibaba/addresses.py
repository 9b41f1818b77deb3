"""Kept public addresses (EIPs), which bill on whether they are bound or not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from costguard.domain.refs import Shard
from costguard.sandbox.alibaba.instances import address_of
from costguard.sandbox.alibaba.ownership import Origin
from costguard.sandbox.alibaba.paging import Pages
from costguard.sandbox.alibaba.shapes import some, tags
from costguard.sandbox.alibaba.site import ApiCall
from costguard.sandbox.alibaba.times import second
from costguard.sandbox.world.cloud import World
from costguard.sandbox.world.records import WorldAddress


def describe_eip_addresses(call: ApiCall, world: World) -> Mapping[str, Any]:
    """The addresses of one region that fit every filter, by page number."""
    shard = Shard(call.site.cloud, call.account, call.region)
    every = (_described(world, address, origin) for address, origin in call.site.ownership.addresses(shard))
    found = [address for address in every if _fits(address, call)]
    page = Pages("DescribeEipAddresses", call.asked, most=100, usual=10).of(found, by_token=False)
    return {
        "EipAddresses": {"EipAddress": page.items},
        "PageNumber": page.number,
        "PageSize": page.size,
        "TotalCount": len(found),
    }


def _described(world: World, address: WorldAddress, origin: Origin) -> dict[str, Any]:
    machine = world.machines[origin.machine]
    bound = bool(address.machine)
    return {
        "AllocationId": address.native_id,
        "IpAddress": address_of(machine, address.native_id),
        "Name": "",
        "Description": "",
        "RegionId": origin.shard.region,
        "Status": "InUse" if bound else "Available",
        "InstanceId": address.machine,
        "InstanceType": "EcsInstance" if bound else "",
        "InstanceRegionId": origin.shard.region if bound else "",
        "ChargeType": "PostPaid",
        "InternetChargeType": "PayByTraffic",
        "Bandwidth": "5",
        "ISP": "BGP",
        "Netmode": "public",
        "AllocationTime": second(machine.spec.launched_at),
        "ExpiredTime": "",
        "DeletionProtection": False,
        "ServiceManaged": 0,
        "SegmentInstanceId": "",
        "BandwidthPackageId": "",
        "ResourceGroupId": "",
        "BusinessStatus": "Normal",
        **some("OperationLocks", "LockReason", [], address.native_id),
        **tags({}, address.native_id, "Key", "Value"),
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
