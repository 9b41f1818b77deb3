"""The world's charges as records of the bill's detail."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from hashlib import blake2b
from types import MappingProxyType
from typing import Any

from cloudstand.tencent.compute.catalogue import REGIONS
from cloudstand.tencent.core.asking import Asked
from cloudstand.tencent.core.errors import ApiError
from cloudstand.tencent.core.times import BEIJING, local
from cloudstand.world.billing import Charge, bill, billed_until
from cloudstand.world.money import ChargeCategory, PricingCategory
from cloudstand.world.prices import PREPAID_TERM
from cloudstand.world.records import Machine, OtherCharge

_SECOND, _MINUTE, _DAY = timedelta(seconds=1), timedelta(minutes=1), timedelta(days=1)
_PLACES = Decimal("1e-8")  # what is told is what is added up: totals are sums of rounded records
_PRODUCTS: Mapping[str, tuple[str, str, str]] = MappingProxyType(
    {
        "compute": ("p_cvm", "云服务器CVM", "sp_cvm"),
        "volume": ("p_cbs", "云硬盘CBS", "sp_cbs"),
        "ai_platform": ("p_tione", "TI-ONE训练平台", "sp_tione"),
    }
)
_ACTIONS = {
    "postpay_deduct_h": "按量计费小时结",
    "postpay_deduct_d": "按量计费日结",
    "postpay_deduct_m": "按量计费月结",
    "postpay_deduct_s": "竞价实例小时结",
    "prepay_purchase": "包年包月新购",
    "prepay_renew": "包年包月续费",
    "prepay_return": "包年包月退款",
    "recon_deduct": "调账扣费",
    "recon_increase": "调账补偿",
}
REGION_NUMBERS: Mapping[str, int] = MappingProxyType(
    {
        "ap-guangzhou": 1,
        "ap-shanghai": 4,
        "ap-hongkong": 5,
        "ap-beijing": 8,
        "ap-singapore": 9,
        "na-siliconvalley": 15,
        "ap-chengdu": 16,
        "eu-frankfurt": 17,
        "ap-seoul": 18,
        "ap-chongqing": 19,
        "ap-mumbai": 21,
        "na-ashburn": 22,
        "ap-bangkok": 23,
        "ap-tokyo": 25,
        "ap-nanjing": 33,
        "ap-jakarta": 72,
        "sa-saopaulo": 74,
    }
)


@dataclass(frozen=True, slots=True)
class Charged:
    """One record before it is written: what was charged, for which time, and how it is paid for.

    `listed` is what it would have cost without a contract.
    """

    account: str
    region: str
    service: str
    begins: datetime
    ends: datetime
    booked: datetime
    action: str
    cost: Decimal
    voucher: Decimal
    tax: Decimal
    resource_id: str
    machine: Machine | None
    tags: Mapping[str, str]
    listed: Decimal

    @property
    def prepaid(self) -> bool:
        """Whether it was paid for before it was used."""
        return self.action.startswith("prepay")

    @property
    def action_name(self) -> str:
        """The transaction type in words."""
        return _ACTIONS[self.action]

    @property
    def product(self) -> tuple[str, str, str]:
        """The product's code and name, and its sub-product's code."""
        return _PRODUCTS.get(self.service, (f"p_{self.service}", self.service, f"sp_{self.service}"))

    @property
    def number(self) -> str:
        """The record's own id, always the same for the same charge."""
        words = (self.account, self.resource_id, self.service, self.action, self.begins.isoformat())
        return str(int.from_bytes(blake2b("/".join(words).encode(), digest_size=7).digest(), "big"))


def month_of(text: str) -> tuple[datetime, datetime]:
    """The two ends of a month, `2026-03`, in China's time."""
    year, month = int(text[:4]), int(text[5:7])
    after = (year + month // 12, month % 12 + 1)
    return datetime(year, month, 1, tzinfo=BEIJING), datetime(*after, 1, tzinfo=BEIJING)


def charged_in(asked: Asked, month: str) -> Sequence[Charged]:
    """Everything the bill shows now for a month, the newest first; nothing while it is being prepared."""
    desk = asked.memory.desk
    if not desk.ready:
        return ()
    shown = (asked.now, asked.world.revision, desk.settled)
    if asked.memory.bill_shown != shown:
        asked.memory.bill_shown, asked.memory.bills = shown, {}
    found = asked.memory.bills.get(month)
    if found is None:
        found = asked.memory.bills[month] = sorted(_charged(asked, month), key=_newest, reverse=True)
    return found


def _newest(charged: Charged) -> tuple[datetime, str]:
    return charged.ends, charged.number


def _charged(asked: Asked, month: str) -> Iterator[Charged]:
    begins, ends = month_of(month)
    settled = asked.memory.desk.settled
    for charge in bill(asked.world, asked.settings.cloud, begins, ends, settled):
        if (charge.machine is not None or charge.service == "volume") and charge.billed.amount:
            yield _of_charge(charge, settled)
    yield from _others(asked, begins, ends)


def _of_charge(charge: Charge, settled: timedelta) -> Charged:
    begins, ends = charge.start, charge.end
    action = "postpay_deduct_d" if settled >= _DAY else "postpay_deduct_h"
    if charge.pricing is PricingCategory.DYNAMIC:
        action = "postpay_deduct_s"
    if charge.category is ChargeCategory.PURCHASE and charge.machine is not None:
        begins = _term_begins(charge.machine, charge.start)
        ends = begins + PREPAID_TERM
        action = "prepay_purchase" if begins <= charge.machine.runs[0][0] else "prepay_renew"
    return Charged(
        account=charge.account,
        region=charge.region,
        service=charge.service,
        begins=begins,
        ends=ends,
        booked=begins,
        action=action,
        cost=charge.billed.amount.quantize(_PLACES),
        voucher=Decimal(0),
        tax=Decimal(0),
        resource_id=charge.native_id,
        machine=charge.machine,
        tags=charge.tags or {},
        listed=charge.list_cost.amount.quantize(_PLACES),
    )


def _term_begins(machine: Machine, start: datetime) -> datetime:
    until = machine.spec.prepaid_until or start
    return until - (until - start) // PREPAID_TERM * PREPAID_TERM


def _others(asked: Asked, begins: datetime, ends: datetime) -> Iterator[Charged]:
    """What is no machine: counted to the month of its last day, so that what is settled by the month comes with it."""
    until = billed_until(asked.settings.cloud, asked.now)
    for other in asked.world.other_charges:
        booked = other.end - _SECOND if other.category is ChargeCategory.USAGE else other.start
        if other.cloud == asked.settings.cloud and other.end <= until and begins <= booked < ends:
            if other.category is ChargeCategory.TAX and not asked.settings.abroad:
                raise ApiError("Emulator.NotModelled", "no bill of this site tells a tax: its prices contain it.")
            yield _of_other(other, booked)


def _of_other(other: OtherCharge, booked: datetime) -> Charged:
    amount, none = other.money.amount, Decimal(0)
    action = "postpay_deduct_m" if other.end - other.start > _DAY else "postpay_deduct_d"
    if other.category is ChargeCategory.PURCHASE:
        action = "prepay_purchase"
    elif other.category is ChargeCategory.ADJUSTMENT:
        action = "recon_increase" if amount < 0 else "recon_deduct"
    paid = other.category not in {ChargeCategory.CREDIT, ChargeCategory.TAX}
    return Charged(
        account=other.account,
        region=other.region,
        service=other.service,
        begins=other.start,
        ends=other.end,
        booked=booked,
        action=action,
        cost=amount.quantize(_PLACES) if paid else none,
        voucher=-amount if other.category is ChargeCategory.CREDIT else none,
        tax=amount if other.category is ChargeCategory.TAX else none,
        resource_id=other.native_id,
        machine=None,
        tags=other.tags,
        listed=amount.quantize(_PLACES) if paid else none,
    )


def carried(asked: Asked, tags: Mapping[str, str]) -> dict[str, str]:
    """Of a thing's tags those that bills tell."""
    known = asked.memory.desk.tag_keys
    return {key: value for key, value in tags.items() if known is None or key in known}


def region_names(region: str) -> tuple[str, str]:
    """The number and the name of a region in bills; what has none is in 其他."""
    number = REGION_NUMBERS.get(region)
    return ("0", "其他") if number is None else (str(number), REGIONS.get(region, (region, region))[0])


def written(asked: Asked, charged: Charged, payer: str) -> dict[str, Any]:
    """An element of DetailSet."""
    code, name, part = charged.product
    number, region = region_names(charged.region)
    family = "" if charged.machine is None else charged.machine.spec.instance_type.split(".", 1)[0]
    gpu = charged.machine is not None and charged.machine.spec.accelerator.count > 0
    kind = f"{name}-{'GPU计算型' if gpu else '标准型'}{family}" if family else name
    day = charged.booked.astimezone(BEIJING).replace(hour=0, minute=0, second=0, microsecond=0)
    return {
        "BusinessCodeName": name,
        "ProductCodeName": kind,
        "PayModeName": "包年包月" if charged.prepaid else "按量计费",
        "ProjectName": "默认项目",
        "RegionName": region,
        "ZoneName": "其他",
        "ResourceId": charged.resource_id,
        "ResourceName": "" if charged.machine is None else charged.machine.spec.name,
        "ActionTypeName": charged.action_name,
        "OrderId": f"2026{charged.number}",
        "BillId": f"2026{charged.number}",
        "PayTime": local(charged.booked if charged.prepaid else charged.ends + 15 * _MINUTE),
        "FeeBeginTime": local(charged.begins),
        "FeeEndTime": local(max(charged.begins, charged.ends - _SECOND)),
        "ComponentSet": [_component(charged, abroad=asked.settings.abroad)],
        "PayerUin": payer,
        "OwnerUin": charged.account,
        "OperateUin": charged.account,
        "Tags": [{"TagKey": key, "TagValue": value} for key, value in carried(asked, charged.tags).items()],
        "BusinessCode": code,
        "ProductCode": f"{part}_{family.lower()}" if family else part,
        "ActionType": charged.action,
        "RegionId": number,
        "ProjectId": 0,
        "PriceInfo": [],
        "Formula": "",
        "FormulaUrl": "",
        "BillDay": local(day),
        "BillMonth": local(day.replace(day=1)),
        "Id": charged.number,
        "RegionType": "domestic",
        "RegionTypeName": "国内",
        "ReserveDetail": "",
        "DiscountObject": "",
        "DiscountType": "",
        "DiscountContent": "",
        **({} if asked.settings.abroad else {"ExtendField": ""}),
    }


def _component(charged: Charged, *, abroad: bool) -> dict[str, Any]:
    """What a record consists of (BillDetailComponent): a tax and the currency on the international site only."""
    cost, listed = money(charged.cost), money(charged.listed)
    share = charged.cost / charged.listed if charged.listed else Decimal(1)
    found: dict[str, Any] = {
        "ComponentCodeName": "运算组件" if charged.machine is not None else "组件",
        "ItemCodeName": "",
        "SinglePrice": listed,
        "SpecifiedPrice": listed,
        "PriceUnit": "USD" if abroad else "元",
        "UsedAmount": "1",
        "UsedAmountUnit": "个",
        "RealTotalMeasure": "1",
        "DeductedMeasure": "0",
        "TimeSpan": "1",
        "TimeUnitName": "天",
        "Cost": listed if charged.cost >= 0 else "-",
        "Discount": f"{share:.4f}".rstrip("0").rstrip("."),
        "ReduceType": "" if share == 1 else "折扣",
        "RealCost": cost,
        "VoucherPayAmount": money(charged.voucher),
        "CashPayAmount": money(charged.cost - charged.voucher),
        "IncentivePayAmount": "0",
        "TransferPayAmount": "0",
        "ItemCode": "",
        "ComponentCode": "",
        "ContractPrice": cost,
        "InstanceType": "-",
        "RiTimeSpan": "0.00000000",
        "OriginalCostWithRI": "0.00000000",
        "SPDeductionRate": "0.00000000",
        "SPDeduction": "0.00000000",
        "OriginalCostWithSP": "0.00000000",
        "BlendedDiscount": money(share),
        "ComponentConfig": [],
    }
    if charged.machine is not None:
        found["ComponentConfig"] = [{"Name": "实例类型", "Value": charged.machine.spec.instance_type}]
    if abroad:
        found |= {"TaxAmount": money(charged.tax), "Currency": "USD"}
    return found


def money(amount: Decimal) -> str:
    """Eight places, as all amounts of bills."""
    return f"{amount:.8f}"
