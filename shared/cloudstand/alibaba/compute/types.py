"""Instance types and their prices, as the cloud tells them."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from cloudstand.alibaba.compute.catalogue import CNY_OF_A_DOLLAR, DISK_GIB_HOUR, TYPES, TypeFacts, facts_of
from cloudstand.alibaba.core.errors import FORBIDDEN, ApiError, invalid, missing, not_modelled
from cloudstand.alibaba.core.paging import Pages
from cloudstand.alibaba.core.parameters import Asked
from cloudstand.alibaba.core.site import ApiCall
from cloudstand.world.cloud import World
from cloudstand.world.prices import SPOT_SHARE

_HUNDRED = 100  # MaxResults, since November 2023; older documents say 1,600
_SYSTEM_DISK = ("cloud_efficiency", 20)  # what a price includes of which nothing was said
_CENT = Decimal("0.000001")


def describe_instance_types(call: ApiCall, world: World) -> Mapping[str, Any]:
    """Every type that fits, in pages of a hundred; they are the same in every region."""
    asked = call.asked
    fleet = (facts_of(spec) for spec in world.fleet if spec.cloud == call.site.cloud)
    known = {**TYPES, **{facts.name: facts for facts in fleet}}
    found = [facts for _, facts in sorted(known.items()) if _fits(facts, asked)]
    page = Pages("DescribeInstanceTypes", asked, most=_HUNDRED, usual=_HUNDRED).of(found)
    answer: dict[str, Any] = {"InstanceTypes": {"InstanceType": [_described(facts) for facts in page.items]}}
    return {**answer, "NextToken": page.token}


def describe_price(call: ApiCall, world: World) -> Mapping[str, Any]:
    """What an hour costs, part by part; the sum includes a system disk that nobody asked for.

    Raises:
        ApiError: nobody quotes this type or disk, or it is not asked by the hour.
    """
    asked = call.asked
    if asked.text("PriceUnit", "Hour") != "Hour" or (asked.whole("Period") or 1) != 1:
        raise not_modelled("prices for longer than an hour")
    kind = asked.text("ResourceType", "instance")
    if kind == "instance":
        details = _instance_details(call, world)
    elif kind == "disk":
        details = [_disk_detail("dataDisk", disk) for disk in asked.groups("DataDisk")]
        if not details:
            raise missing("DataDisk.1.Category")
    else:
        raise not_modelled("prices of", kind)
    amount = asked.whole("Amount") or 1
    listed = [(name, full * amount, paid * amount) for name, full, paid in details]
    if call.site.currency == "USD":
        listed = [(name, full / CNY_OF_A_DOLLAR, paid / CNY_OF_A_DOLLAR) for name, full, paid in listed]
    parts = [{"Resource": name, **_amounts(full, paid), "SubRules": {"Rule": []}} for name, full, paid in listed]
    total = _amounts(sum((full for _, full, _ in listed), Decimal(0)), sum((paid for _, _, paid in listed), Decimal(0)))
    price = {"Currency": call.site.currency, **total, "DetailInfos": {"DetailInfo": parts}}
    return {"PriceInfo": {"Price": price, "Rules": {"Rule": []}}}


def _instance_details(call: ApiCall, world: World) -> list[tuple[str, Decimal, Decimal]]:
    asked = call.asked
    name = asked.text("InstanceType")
    if not name:
        raise missing("InstanceType")
    hourly = _hourly_cny(call, world, name)
    if hourly is None:
        message = "The specified InstanceType does not exist or beyond the permitted range."
        raise ApiError("InvalidInstanceType.ValueNotSupported", message, FORBIDDEN)
    spot = asked.text("SpotStrategy", "NoSpot") != "NoSpot"
    category = asked.text("SystemDisk.Category", _SYSTEM_DISK[0])
    system = {"Category": category, "Size": asked.whole("SystemDisk.Size") or _SYSTEM_DISK[1]}
    return [
        ("instanceType", hourly, hourly * SPOT_SHARE if spot else hourly),
        _disk_detail("systemDisk", system),
        *(_disk_detail("dataDisk", disk) for disk in asked.groups("DataDisk")),
        ("bandwidth", Decimal(0), Decimal(0)),
        ("image", Decimal(0), Decimal(0)),
    ]


def _hourly_cny(call: ApiCall, world: World, name: str) -> Decimal | None:
    """The list price in CNY: the fleet's own quote where there is one, else the catalogue's."""
    for spec in world.fleet:
        if spec.cloud == call.site.cloud and spec.instance_type == name:
            if spec.hourly is None:
                return None
            return spec.hourly.amount * (CNY_OF_A_DOLLAR if spec.hourly.currency == "USD" else 1)
    facts = TYPES.get(name)
    return None if facts is None else facts.hourly_cny


def _disk_detail(name: str, disk: Mapping[str, Any]) -> tuple[str, Decimal, Decimal]:
    category, size = str(disk.get("Category", "")), disk.get("Size")
    if category not in DISK_GIB_HOUR:
        raise ApiError("InvalidDiskCategory.ValueNotSupported", "The specified disk category is not supported.")
    if not size:
        raise invalid("DataDisk.N.Size")
    hourly = DISK_GIB_HOUR[category] * int(size)
    return name, hourly, hourly


def _amounts(full: Decimal, paid: Decimal) -> dict[str, float]:
    """Prices are JSON numbers, to six places."""
    listed, traded = full.quantize(_CENT), paid.quantize(_CENT)
    return {"OriginalPrice": float(listed), "DiscountPrice": float(listed - traded), "TradePrice": float(traded)}


def _described(facts: TypeFacts) -> dict[str, Any]:
    told = {
        "InstanceTypeId": facts.name,
        "InstanceTypeFamily": facts.family,
        "InstanceFamilyLevel": "EnterpriseLevel",
        "InstanceCategory": facts.category,
        "CpuCoreCount": facts.cores,
        "CpuArchitecture": "X86",
        "MemorySize": float(facts.memory_gib),
        "GPUAmount": facts.gpus,
        "GPUSpec": facts.gpu_spec,
        "GPUMemorySize": float(facts.gpu_gib) if facts.gpu_gib else None,
        "LocalStorageCategory": facts.local_kind,
        "LocalStorageAmount": facts.local_disks or None,
        "LocalStorageCapacity": facts.local_gib or None,
        "EniQuantity": 4,
        "DiskQuantity": 17,
        "NvmeSupport": "unsupported",
    }
    return {name: value for name, value in told.items() if value is not None}


def _fits(facts: TypeFacts, asked: Asked) -> bool:
    least, most = asked.whole("MinimumGPUAmount"), asked.whole("MaximumGPUAmount")
    return (
        (not asked.given("InstanceTypes") or facts.name in asked.many("InstanceTypes"))
        and asked.text("InstanceTypeFamily") in ("", facts.family)
        and asked.text("InstanceCategory") in ("", facts.category)
        and asked.text("GPUSpec").lower() in facts.gpu_spec.lower()
        and (least is None or facts.gpus >= least)
        and (most is None or facts.gpus <= most)
    )
