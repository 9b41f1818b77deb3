"""One record of a bill's detail, at its documented types: pure, apart from any request.

Amounts are decimal strings in the site's currency, `-` or empty where there is none; times are UTC+8 and tell the
last second of use. Which charges are which stands in `ActionType`, whose codes and Chinese names are both published;
a record with neither is judged by its sign and by how it is paid for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal, InvalidOperation
from types import MappingProxyType

from costguard.domain.money import ChargeCategory
from costguard.providers.kit.core.fields import Fields, named, parts, text
from costguard.providers.tencent.compute.instance_types import is_named_for_accelerator
from costguard.providers.tencent.core.products import moment, tags_of, told

# Regions as bills name them, by number or in words, in the words of every other product (`ap-guangzhou`).

_REGIONS = (
    # number, region, and what stands in the brackets of its name: `华南地区（广州）`, `South China (Guangzhou)`
    (1, "ap-guangzhou", "广州", "Guangzhou"),
    (4, "ap-shanghai", "上海", "Shanghai"),
    (5, "ap-hongkong", "中国香港", "Hong Kong"),
    (6, "na-toronto", "多伦多", "Toronto"),
    (7, "ap-shanghai-fsi", "上海金融", "Shanghai Finance"),
    (8, "ap-beijing", "北京", "Beijing"),
    (9, "ap-singapore", "新加坡", "Singapore"),
    (11, "ap-shenzhen-fsi", "深圳金融", "Shenzhen Finance"),
    (15, "na-siliconvalley", "硅谷", "Silicon Valley"),
    (16, "ap-chengdu", "成都", "Chengdu"),
    (17, "eu-frankfurt", "法兰克福", "Frankfurt"),
    (18, "ap-seoul", "首尔", "Seoul"),
    (19, "ap-chongqing", "重庆", "Chongqing"),
    (21, "ap-mumbai", "孟买", "Mumbai"),
    (22, "na-ashburn", "弗吉尼亚", "Virginia"),
    (23, "ap-bangkok", "曼谷", "Bangkok"),
    (25, "ap-tokyo", "东京", "Tokyo"),
    (33, "ap-nanjing", "南京", "Nanjing"),
    (46, "ap-beijing-fsi", "北京金融", "Beijing Finance"),
    (72, "ap-jakarta", "雅加达", "Jakarta"),
    (74, "sa-saopaulo", "圣保罗", "São Paulo"),
)
_NUMBERS: Mapping[str, str] = MappingProxyType({str(number): region for number, region, *_ in _REGIONS})
_NAMES: Mapping[str, str] = MappingProxyType(
    {name.casefold(): region for _, region, *names in _REGIONS for name in names}
    | {"香港": "ap-hongkong", "sao paulo": "sa-saopaulo", "ashburn": "na-ashburn"}
)
_WORD = re.compile(r"(?:ap|na|eu|sa|me|af)-[a-z]+(?:-[a-z]+)?", re.ASCII)
_IN_BRACKETS = re.compile(r"[(（]([^()（）]+)[)）]")


def region_word(number: str, name: str = "") -> str:
    """The region of this number, or of this name where the number is unknown; empty where neither is known.

    A charge that belongs to no region has the number 0 and the name 其他.
    """
    if _WORD.fullmatch(number):
        return number
    known = _NUMBERS.get(number)
    if known is not None:
        return known
    found = _IN_BRACKETS.search(name)
    return _NAMES.get((found[1] if found else name).strip().casefold(), "")


def region_number(region: str) -> str:
    """What a bill calls this region; empty where that is unknown."""
    return next((number for number, known in _NUMBERS.items() if known == region), "")


_LAST_SECOND = timedelta(seconds=1)
_AMOUNT = re.compile(r"-?\d{1,18}(?:\.\d{1,12})?", re.ASCII)
_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_TYPE = re.compile(r"[A-Za-z0-9]{2,12}\.[A-Z0-9]{4,24}", re.ASCII)  # GN10Xp.2XLARGE40
_FAMILY = re.compile(r"sp_cvm_([a-z0-9]+)", re.ASCII)  # sp_cvm_s2
_PLATFORMS = re.compile(r"(?:^|_)(?:ti|tione|tiplatform|tiems|tiacc|hai)(?:_|$)", re.ASCII)
_PLATFORM_NAMES = ("TI-ONE", "TI-EMS", "TI平台", "TI 平台", "TI Platform", "智能钛", "高性能应用服务")

_USAGE, _PURCHASE, _ADJUSTMENT = ChargeCategory.USAGE, ChargeCategory.PURCHASE, ChargeCategory.ADJUSTMENT
_SPOT = frozenset({"postpay_deduct_s", "竞价实例小时结"})
_RETURNS = frozenset({"prepay_return", "pre_to_post", "包年包月退款", "包年包月转按量"})
_ACTIONS: Mapping[str, ChargeCategory] = MappingProxyType(
    {
        **dict.fromkeys(("postpay_deduct", "postpay_deduct_h", "postpay_deduct_d", "postpay_deduct_m"), _USAGE),
        **dict.fromkeys(("postpay_deduct_s", "ri_hour_pay", "svp_hour_pay"), _USAGE),
        **dict.fromkeys(("offline_deduct", "online_deduct"), _USAGE),
        **dict.fromkeys(("按量计费扣费", "按量计费小时结", "按量计费日结", "按量计费月结"), _USAGE),
        **dict.fromkeys(("竞价实例小时结", "小时费用", "节省计划小时费用", "线下项目扣费", "线下产品扣费"), _USAGE),
        **dict.fromkeys(("prepay_purchase", "prepay_renew", "prepay_modify", "ripay_purchase"), _PURCHASE),
        **dict.fromkeys(("pre_purchase", "pre_renew", "pre_upgrade", "pre_downgrade"), _PURCHASE),
        **dict.fromkeys(("prePurchase", "preRenew", "preUpgrade", "preDowngrade"), _PURCHASE),
        **dict.fromkeys(("包年包月新购", "包年包月续费", "包年包月配置变更", "预付费用"), _PURCHASE),
        **dict.fromkeys(("recon_deduct", "recon_increase", "recon_guarantee"), _ADJUSTMENT),
        **dict.fromkeys(("调账扣费", "调账补偿", "线下项目调账补偿", "线下产品调账补偿"), _ADJUSTMENT),
        **dict.fromkeys(("优惠扣费", "优惠补偿", "保底扣款", "预留实例退款", "按量计费冲正"), _ADJUSTMENT),
        **dict.fromkeys(_RETURNS, _ADJUSTMENT),
    }
)


@dataclass(frozen=True, slots=True)
class Row:
    """One record. `cost` is after discounts and before vouchers; `given` is what vouchers and free credit paid of it.

    `booked` is the day it is counted to, `begins` and `ends` the time it is for (`ends` is outside). `returns`: it
    gives back what is left of a term. `listed` is the cost before discounts; None where the bill does not tell it.
    """

    row_id: str
    payer: str
    owner: str
    region: str
    service: str
    category: ChargeCategory
    booked: datetime
    begins: datetime
    ends: datetime
    cost: Decimal
    given: Decimal
    tax: Decimal
    currency: str
    resource_id: str
    resource_name: str
    instance_type: str
    accelerated: bool
    spot: bool
    returns: bool
    tags: tuple[tuple[str, str], ...]
    listed: Decimal | None = None


def to_row(record: Fields, currency: str) -> Row:
    """One element of DetailSet."""
    known = told(record, *_NULLABLE)
    components = [told(each, *_NULLABLE_AMOUNTS) for each in parts(known, "ComponentSet")]
    cost = sum((amount_in(each, "RealCost") for each in components), Decimal(0))
    booked = _day(known, "BillDay") or moment(known, "PayTime")
    begins, ends = moment(known, "FeeBeginTime"), moment(known, "FeeEndTime")
    start = begins or booked
    if start is None:
        message = "a charge without any time"
        raise ValueError(message)
    code, action = text(known, "ActionType"), text(known, "ActionTypeName")
    return Row(
        row_id=text(known, "Id"),
        payer=text(known, "PayerUin"),
        owner=text(known, "OwnerUin"),
        region=region_of(known),
        service=named(known, "BusinessCode"),
        category=_category(code, action, text(known, "PayModeName"), cost),
        booked=booked or start,
        begins=start,
        ends=max(start, start if ends is None else ends + _LAST_SECOND),
        cost=cost,
        given=sum(
            (amount_in(each, key) for each in components for key in ("VoucherPayAmount", "IncentivePayAmount")),
            Decimal(0),
        ),
        tax=sum((amount_in(each, "TaxAmount") for each in components), Decimal(0)),
        currency=next((text(each, "Currency") for each in components if text(each, "Currency")), "") or currency,
        resource_id=text(known, "ResourceId"),
        resource_name=text(known, "ResourceName"),
        instance_type=_instance_type(components),
        accelerated=_is_accelerated(known, components),
        spot=code in _SPOT or action in _SPOT,
        returns=code in _RETURNS or action in _RETURNS,
        tags=tuple(sorted(tags_of(known, "Tags").items())) if "Tags" in known else (),
        listed=_listed(components),
    )


def region_of(fields: Fields) -> str:
    """The region of a charge or of a group of charges; empty where it has none, or one that is not known."""
    return region_word(_number(fields, "RegionId"), text(fields, "RegionName"))


def amount_in(fields: Fields, key: str) -> Decimal:
    """An amount of money; 0 where it is absent, empty or `-`, which is how bills say that there is none."""
    written = text(fields, key)
    if written in {"", "-"}:
        return Decimal(0)
    if not _AMOUNT.fullmatch(written):
        message = f"{key} is no amount"
        raise ValueError(message)
    try:
        return Decimal(written)
    except InvalidOperation as err:
        message = f"{key} is no amount"
        raise ValueError(message) from err


def _listed(components: list[Fields]) -> Decimal | None:
    """What all of it comes to at list price (`Cost`), where every component tells it and no commitment paid for any.

    A customer with a price of its own has `-` there, as a reserved instance or a savings plan has an amount beside it.
    https://www.tencentcloud.com/document/product/555/30757, BillDetailComponent and SummaryDetail.
    """
    found = Decimal(0)
    for each in components:
        covered = any(amount_in(each, key) for key in ("OriginalCostWithRI", "OriginalCostWithSP"))
        if covered or text(each, "Cost") in {"", "-"}:
            return None
        found += amount_in(each, "Cost")
    return found if components else None


def _number(fields: Fields, key: str) -> str:
    """A number that some of the bill's actions put in quotes, and others do not; empty where absent."""
    found = fields.get(key)
    return str(found) if isinstance(found, int) and not isinstance(found, bool) else text(fields, key)


def _day(fields: Fields, key: str) -> datetime | None:
    """A day, with or without the midnight that it begins with."""
    written = text(fields, key)
    return moment({key: f"{written} 00:00:00"} if _DAY.fullmatch(written) else fields, key)


def is_platform(code: str, name: str) -> bool:
    """Whether a product runs on cards and is no machine of the account's own: TI and its kin, and HAI."""
    return bool(_PLATFORMS.search(code)) or any(word in name for word in _PLATFORM_NAMES)


def _category(code: str, action: str, pay_mode: str, cost: Decimal) -> ChargeCategory:
    known = _ACTIONS.get(code) or _ACTIONS.get(action)
    if known is not None:
        return known
    if cost < 0:
        return _ADJUSTMENT
    return _PURCHASE if pay_mode in {"包年包月", "prePay", "Monthly subscription"} else _USAGE


def _instance_type(components: list[Fields]) -> str:
    """A type as CVM writes it, where a component's configuration has one."""
    for component in components:
        for each in parts(component, "ComponentConfig"):
            value = text(told(each, "Name", "Value"), "Value")
            if _TYPE.fullmatch(value):
                return value
    return ""


def _is_accelerated(record: Fields, components: list[Fields]) -> bool:
    """By the type or the sub-product (`sp_cvm_gn7`, `云服务器CVM-GPU计算型GN7`), or a platform that runs on cards."""
    codes = [text(record, "BusinessCode"), text(record, "ProductCode")]
    names = [text(record, "BusinessCodeName"), text(record, "ProductCodeName")]
    if any(is_platform(code, name) for code, name in zip(codes, names, strict=True)):
        return True
    if codes[0] != "p_cvm":
        return False
    family = _FAMILY.fullmatch(codes[1])
    own = _instance_type(components)
    return (
        (bool(own) and is_named_for_accelerator(own))
        or (family is not None and is_named_for_accelerator(family[1]))
        or "GPU" in names[1].upper()
    )


_NULLABLE = (
    *("BusinessCodeName", "ProductCodeName", "PayModeName", "ProjectName", "RegionName", "ZoneName"),
    *("ResourceId", "ResourceName", "ActionType", "ActionTypeName", "PayTime", "FeeBeginTime", "FeeEndTime"),
    *("PayerUin", "OwnerUin", "Tags", "ProductCode", "RegionId", "BillDay", "Id", "ComponentSet"),
)
_NULLABLE_AMOUNTS = (
    *("RealCost", "VoucherPayAmount", "IncentivePayAmount", "TaxAmount", "Currency", "ComponentConfig"),
    *("Cost", "OriginalCostWithRI", "OriginalCostWithSP"),
)
