"""CVM's types and prices, and the CBS's: in yuan on the Chinese site, in dollars on the international one."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import ROUND_HALF_UP, Decimal
from itertools import groupby
from math import ceil
from types import MappingProxyType
from typing import Any

from cloudstand.tencent.compute.catalogue import TYPES, InstanceType
from cloudstand.tencent.compute.changes import named_machines
from cloudstand.tencent.compute.machines import type_of
from cloudstand.tencent.core.asking import Answer, Asked, By, filtered
from cloudstand.tencent.core.errors import ApiError, missing
from cloudstand.tencent.iam.identity import zones_of
from cloudstand.world.kinds import Billing
from cloudstand.world.money import HOURS_PER_MONTH
from cloudstand.world.prices import SPOT_SHARE

_MONTHLY_SHARE = Decimal("0.55")  # what a prepaid month costs of a month by the hour
_TRAFFIC_GB = 0.8
_NO_PRICE = dict.fromkeys(
    (
        *("UnitPrice", "UnitPriceDiscount", "UnitPriceSecondStep", "UnitPriceDiscountSecondStep"),
        *("UnitPriceThirdStep", "UnitPriceDiscountThirdStep", "OriginalPrice", "DiscountPrice", "Discount"),
        *("OriginalPriceOneYear", "DiscountPriceOneYear", "DiscountOneYear", "OriginalPriceThreeYear"),
        *("DiscountPriceThreeYear", "DiscountThreeYear", "OriginalPriceFiveYear", "DiscountPriceFiveYear"),
        "DiscountFiveYear",
    ),
    0,
)
"""What is not used is 0, and neither null nor absent."""

DISK_HOURLY: Mapping[str, Decimal] = MappingProxyType(
    {
        # a GiB an hour
        "CLOUD_BASIC": Decimal("0.00030"),
        "CLOUD_PREMIUM": Decimal("0.00042"),
        "CLOUD_BSSD": Decimal("0.00070"),
        "CLOUD_SSD": Decimal("0.00100"),
        "CLOUD_HSSD": Decimal("0.00120"),
        "CLOUD_TSSD": Decimal("0.00180"),
    }
)

Row = tuple[str, InstanceType, str]
"""A zone, a type in it, and the charge type it is offered in."""

_FILTERS: By = {
    "zone": lambda row: [row[0]],
    "instance-family": lambda row: [row[1].family],
    "instance-type": lambda row: [row[1].name],
}
_CHARGES: By = {**_FILTERS, "instance-charge-type": lambda row: [row[2]]}
_SORTS = {"cpu": lambda row: row[1].cpus, "mem": lambda row: row[1].memory_gib}


def describe_instance_type_configs(asked: Asked) -> Answer:
    """DescribeInstanceTypeConfigs: spells its cards GPU."""
    rows = filtered(asked.get("Filters", ()), _rows(asked, ("",)), _FILTERS)
    return {
        "InstanceTypeConfigSet": [
            {
                "Zone": zone,
                "InstanceType": kind.name,
                "InstanceFamily": kind.family,
                "CPU": kind.cpus,
                "Memory": kind.memory_gib,
                "GPU": ceil(kind.gpus),
                "GpuCount": kind.gpus,
                "FPGA": 0,
                **({"GpuType": kind.model, "GpuMemory": kind.gpu_memory_gib} if kind.gpus > 0 else {}),
            }
            for zone, kind, _ in rows
        ]
    }


def describe_zone_instance_config_infos(asked: Asked) -> Answer:
    """DescribeZoneInstanceConfigInfos: spells its cards Gpu, and has the prices."""
    filters = asked.get("Filters", ())
    rows = _rows(asked, ("PREPAID", "POSTPAID_BY_HOUR", "SPOTPAID"))
    rows = filtered([each for each in filters if each["Name"] != "sort-keys"], rows, _CHARGES)
    for sorting in (each for each in filters if each["Name"] == "sort-keys"):
        for key, _, direction in (value.partition(":") for value in reversed(sorting["Values"])):
            if key not in _SORTS or direction not in {"asc", "desc"}:
                raise ApiError("InvalidFilter", f"nothing is sorted by {key}:{direction}.", "无效的过滤器`sort-keys`。")
            rows.sort(key=_SORTS[key], reverse=direction == "desc")
    quoted = _quoted(asked)
    return {"InstanceTypeQuotaSet": [_offer(row, quoted.get(row[1].name, row[1].hourly)) for row in rows]}


def inquiry_price_run_instances(asked: Asked) -> Answer:
    """InquiryPriceRunInstances: the price of the instance holds its disks."""
    name = asked.get("InstanceType", "S5.MEDIUM4")
    kind = TYPES.get(name)
    if kind is None:
        raise ApiError("InvalidParameterValue.InstanceTypeNotFound", f"there is no type {name}.", "指定机型不存在。")
    if asked.parameters["Placement"]["Zone"] not in zones_of(asked):
        raise ApiError("InvalidZone.MismatchRegion", "the zone is not in this region.", "指定的`zone`不存在。")
    charge = asked.get("InstanceChargeType", "POSTPAID_BY_HOUR")
    if charge == "PREPAID" and "InstanceChargePrepaid" not in asked.parameters:
        raise missing("InstanceChargePrepaid")
    count = asked.get("InstanceCount", 1)
    disks = [asked.get("SystemDisk", {}), *asked.get("DataDisks", ())]
    more = sum((_disk_hourly(disk) for disk in disks), Decimal(0))
    price = _price(kind, charge, _quoted(asked).get(kind.name, kind.hourly), more, count)
    if charge == "PREPAID":
        months = asked.parameters["InstanceChargePrepaid"]["Period"]
        price |= {name: round(price[name] * months, 2) for name in ("OriginalPrice", "DiscountPrice")}
    bandwidth = {**_NO_PRICE, "UnitPrice": _TRAFFIC_GB, "UnitPriceDiscount": _TRAFFIC_GB, "ChargeUnit": "GB"}
    return {"Price": {"InstancePrice": price, "BandwidthPrice": bandwidth}}


def inquiry_price_terminate_instances(asked: Asked) -> Answer:
    """InquiryPriceTerminateInstances: what is given back for the rest of a prepaid term."""
    found = []
    for machine in named_machines(asked):
        if machine.spec.billing is not Billing.PREPAID:
            raise ApiError(
                "UnsupportedOperation.InstanceChargeType", "it is not prepaid.", "请求不支持该实例计费模式。"
            )
        until = machine.spec.prepaid_until or asked.now
        hours = Decimal(max((until - asked.now).total_seconds(), 0)) / 3600
        refund = float(round(hours * type_of(machine.spec).hourly * _MONTHLY_SHARE, 2))
        found.append({"InstanceId": machine.native_id, "Refunds": refund, "PriceDetail": f"退款：{refund}元"})
    return {"InstanceRefundsSet": found}


def inquiry_price_create_disks(asked: Asked) -> Answer:
    """InquiryPriceCreateDisks: what does not apply is null here, and small prices are whole in `…High` only."""
    size, count = asked.parameters["DiskSize"], asked.get("DiskCount", 1)
    hourly = DISK_HOURLY[asked.parameters["DiskType"]] * size * count
    if asked.parameters["DiskChargeType"] == "POSTPAID_BY_HOUR":
        return {"DiskPrice": _both(hourly, "UnitPrice", "UnitPriceDiscount", unit="HOUR")}
    if "DiskChargePrepaid" not in asked.parameters:
        raise missing("DiskChargePrepaid")
    months = asked.parameters["DiskChargePrepaid"]["Period"]
    whole = hourly * HOURS_PER_MONTH * _MONTHLY_SHARE * months
    return {"DiskPrice": _both(whole, "OriginalPrice", "DiscountPrice", unit=None)}


def _both(price: Decimal, *names: str, unit: str | None) -> dict[str, Any]:
    found: dict[str, Any] = dict.fromkeys(("OriginalPrice", "DiscountPrice", "UnitPrice", "UnitPriceDiscount"))
    found |= {f"{name}High": None for name in [*found]}
    for name in names:
        found[name] = float(price.quantize(Decimal("0.01"), ROUND_HALF_UP))
        found[f"{name}High"] = f"{price.normalize():f}"
    return {**found, "ChargeUnit": unit}


def _rows(asked: Asked, charges: tuple[str, ...]) -> list[Row]:
    """What can be had here: the catalogue, and every type that stands here."""
    here = {machine.spec.instance_type: type_of(machine.spec) for machine in asked.world.machines_in(asked.shard)}
    kinds = {**TYPES, **{name: kind for name, kind in here.items() if name not in TYPES}}
    return [(zone, kind, charge) for zone in zones_of(asked) for kind in kinds.values() for charge in charges]


def _quoted(asked: Asked) -> dict[str, Decimal | None]:
    """What the machines here are quoted at, where that is another price than the catalogue's; None: at nothing."""
    machines = sorted(asked.world.machines_in(asked.shard), key=lambda machine: machine.spec.instance_type)
    found = {}
    for name, same in groupby(machines, key=lambda machine: machine.spec.instance_type):
        price = next(same).spec.hourly
        found[name] = None if price is None else price.amount
    return found


def _offer(row: Row, hourly: Decimal | None) -> Answer:
    zone, kind, charge = row
    return {
        "Zone": zone,
        "InstanceType": kind.name,
        "InstanceFamily": kind.family,
        "InstanceChargeType": charge,
        "TypeName": kind.family,
        "Cpu": kind.cpus,
        "Memory": kind.memory_gib,
        "Gpu": ceil(kind.gpus),
        "GpuCount": kind.gpus,
        "Fpga": 0,
        "Status": "SOLD_OUT" if kind.sold_out else "SELL",
        "StatusCategory": "WithoutStock" if kind.sold_out else "EnoughStock",
        "SoldOutReason": "ResourcesSoldOut.SpecifiedInstanceType" if kind.sold_out else "",
        "Price": _price(kind, charge, hourly),
        "LocalDiskTypeList": _local_disks(kind),
        "StorageBlockAmount": 0,
        "Externals": {},
        "NetworkCard": 25,
        "CpuType": "",
        "Frequency": "",
        "InstanceBandwidth": 10.0,
        "InstancePps": 120,
        "Remark": "",
    }


def _local_disks(kind: InstanceType) -> list[Answer]:
    if not kind.local_disk_gib:
        return []
    size = kind.local_disk_gib
    here = {"Type": "LOCAL_NVME", "PartitionType": "DATA", "MinSize": size, "MaxSize": size, "Required": "REQUIRED"}
    return [here]


def _price(
    kind: InstanceType, charge: str, hourly: Decimal | None, more: Decimal = Decimal(0), count: int = 1
) -> dict[str, Any]:
    found: dict[str, Any] = {**_NO_PRICE, "ChargeUnit": "HOUR"}
    if hourly is None:
        return found
    if charge == "PREPAID":
        month = float(round((hourly + more) * HOURS_PER_MONTH * _MONTHLY_SHARE * count, 2))
        return {**found, "OriginalPrice": month, "DiscountPrice": month, "Discount": 100.0}
    steps = [hourly * SPOT_SHARE] if charge == "SPOTPAID" else [hourly, *(kind.later or ())]
    for step, price in zip(("", "SecondStep", "ThirdStep"), steps, strict=False):
        found[f"UnitPrice{step}"] = found[f"UnitPriceDiscount{step}"] = float((price + more) * count)
    return {**found, "Discount": 100.0}


def _disk_hourly(disk: Mapping[str, Any]) -> Decimal:
    if not disk:
        return Decimal(0)
    return DISK_HOURLY.get(disk.get("DiskType", "CLOUD_PREMIUM"), Decimal(0)) * int(disk.get("DiskSize", 50))
