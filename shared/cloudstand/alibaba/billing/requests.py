"""Bills and budgets: an account's own, and for the account that leads the organisation those of all its members."""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Iterable, Mapping
from datetime import date
from decimal import Decimal
from typing import Any

from cloudstand.alibaba.billing import bills
from cloudstand.alibaba.billing.bills import Record
from cloudstand.alibaba.billing.console_budgets import described
from cloudstand.alibaba.core.errors import RefusedInBody, not_modelled
from cloudstand.alibaba.core.paging import Pages
from cloudstand.alibaba.core.site import ApiCall
from cloudstand.world.billing import CHINA
from cloudstand.world.cloud import World

MOST_CYCLES = 18
_CYCLE = re.compile(r"(\d{4})-(0[1-9]|1[0-2])", re.ASCII)
_HOMES = {"alibaba": "cn-hangzhou", "alibaba-intl": "ap-southeast-1"}  # the region each site's endpoint stands for
_IN_CHINESE = {
    "cn-hangzhou": "华东1（杭州）",
    "cn-shanghai": "华东2（上海）",
    "cn-beijing": "华北2（北京）",
    "cn-shenzhen": "华南1（深圳）",
    "cn-wulanchabu": "华北6（乌兰察布）",
    "cn-hongkong": "中国香港",
    "ap-southeast-1": "新加坡",
    "ap-southeast-6": "菲律宾（马尼拉）",
    "eu-central-1": "德国（法兰克福）",
    "us-west-1": "美国（硅谷）",
}


def describe_instance_bill(call: ApiCall, world: World) -> Mapping[str, Any]:
    """Records of a cycle or a day, by resource, in pages.

    Raises:
        RefusedInBody: another site's account, a cycle that is not kept, or a day that is missing.
    """
    asked, first = call.asked, _cycle(call, world)
    day = _day(call, first)
    found = bills.records(world, call.site.cloud, day or first, day or _last(first))
    found = [record for record in _mine(call, found) if record.product not in call.site.bills.unrecorded]
    found = found if day is not None else bills.of_cycle(found)
    if asked.flag("IsHideZeroCharge"):
        found = [record for record in found if record.due]
    page = Pages("DescribeInstanceBill", asked, most=call.site.bills.page, usual=20).of(found)
    data = {
        **_account(call, first),
        "TotalCount": len(found),
        "MaxResults": page.size,
        "NextToken": page.token,
        "Items": [_described(call, record, day) for record in page.items],
    }
    return _answer(data)


def query_bill_overview(call: ApiCall, world: World) -> Mapping[str, Any]:
    """The sums of a cycle by account, product and kind, with the tax, which has no records. Raises as above."""
    first = _cycle(call, world)
    sums: dict[tuple[str, ...], dict[str, Any]] = {}
    for record in _mine(call, bills.records(world, call.site.cloud, first, _last(first))):
        _add(_sum_of(sums, call, record.owner, record.product, record.item, record.currency), record)
    for owner, currency, tax in bills.taxes(world, call.site.cloud, first, _last(first)):
        if _visible(call, owner):
            mine = next(
                (each for each in sums.values() if (each["OwnerID"], each["Currency"]) == (owner, currency)), None
            )
            each = mine if mine is not None else _sum_of(sums, call, owner, "tax", "Adjustment", currency)
            each["Tax"] += tax
    for each in sums.values():
        each["AfterTaxAmount"] = each["PretaxAmount"] + each["Tax"]
        each["OutstandingAmount"] = each["AfterTaxAmount"]
    items = [{name: _number(value) for name, value in each.items()} for each in sums.values()]
    return _answer({**_account(call, first), "Items": {"Item": items}})


def query_account_bill(call: ApiCall, world: World) -> Mapping[str, Any]:
    """The records of a cycle or a day summed by account, and by product where asked: without tax. Raises as above."""
    asked, first = call.asked, _cycle(call, world)
    day = _day(call, first)
    found = bills.records(world, call.site.cloud, day or first, day or _last(first))
    sums: dict[tuple[str, ...], dict[str, Any]] = {}
    for record in _mine(call, found):
        product = record.product if asked.flag("IsGroupByProduct") else ""
        subscription = record.item if asked.flag("IsGroupByProduct") else ""
        _add(_sum_of(sums, call, record.owner, product, subscription, record.currency), record)
    number, size = asked.whole("PageNum") or 1, asked.whole("PageSize") or 20
    items = [
        {name: _number(value) for name, value in each.items() if name not in _OF_THE_OVERVIEW} for each in sums.values()
    ]
    shown = [
        {**each, "BillingDate": day.isoformat() if day else ""} for each in items[(number - 1) * size : number * size]
    ]
    paging = {"PageNum": number, "PageSize": size, "TotalCount": len(items)}
    return _answer({**_account(call, first), **paging, "Items": {"Item": shown}})


_OF_THE_OVERVIEW = frozenset({"Tax", "AfterTaxAmount", "RoundDownDiscount", "Item"})
"""What QueryBillOverview alone tells (BssOpenApi 2017-12-14)."""


def describe_cost_budgets_summary(call: ApiCall, _: World) -> Mapping[str, Any]:
    """The account's budgets, ten a page, where the vendor has opened this to it.

    Raises:
        RefusedInBody: it has not, or the account is another site's.
    """
    _check_site(call)
    desk, asked = call.site.bills, call.asked
    if desk.beta is not None and call.account not in desk.beta:
        raise RefusedInBody("NotApplicable", "This API is not applicable for caller.")
    status, kind = asked.text("BudgetStatus"), asked.text("BudgetType")
    found = [
        described(budget)
        for budget in desk.budgets
        if budget.account == call.account
        and asked.text("BudgetName") in budget.name
        and kind in ("", budget.kind)
        and status in ("", "overdue" if budget.over else "notOverdue")
    ]
    page = Pages("DescribeCostBudgetsSummary", asked, most=min(10, desk.page), usual=10).of(found)
    data = {"HostId": call.site.cloud, "TotalCount": len(found), "MaxResults": page.size, "NextToken": page.token}
    return _answer({**data, "Items": page.items})


def _answer(data: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"Code": "Success", "Message": "Successful!", "Success": True, "Data": data}


def _account(call: ApiCall, first: date) -> Mapping[str, Any]:
    return {"BillingCycle": f"{first:%Y-%m}", "AccountID": call.account, "AccountName": f"{call.account[-4:]}@aliyun"}


def _check_site(call: ApiCall) -> None:
    """Each site answers at an address of its own; here the region of the request stands for it."""
    if call.region != _HOMES[call.site.cloud]:
        raise RefusedInBody("NotApplicable", "This API is not applicable for caller.")


def _cycle(call: ApiCall, world: World) -> date:
    """The first day of the cycle that is asked about."""
    _check_site(call)
    match = _CYCLE.fullmatch(call.asked.text("BillingCycle"))
    if match is None:
        raise RefusedInBody("InvalidParameter", "The BillingCycle is invalid.")
    first, today = date(int(match[1]), int(match[2]), 1), (world.now + CHINA).date()
    age = (today.year - first.year) * 12 + today.month - first.month
    if not 0 <= age < MOST_CYCLES:
        raise RefusedInBody("InvalidParameter", f"Only the last {MOST_CYCLES} billing cycles are supported.")
    return first


def _last(first: date) -> date:
    return first.replace(day=monthrange(first.year, first.month)[1])


def _day(call: ApiCall, first: date) -> date | None:
    if call.asked.text("Granularity", "MONTHLY") == "MONTHLY":
        return None
    told = call.asked.text("BillingDate")
    try:
        day = date.fromisoformat(told)
    except ValueError as err:
        raise RefusedInBody("InvalidParameter", "The BillingDate is invalid.") from err
    if day.replace(day=1) != first:
        raise not_modelled("a BillingDate of another month than", "BillingCycle")
    return day


def _visible(call: ApiCall, owner: str) -> bool:
    wanted = call.asked.whole("BillOwnerId") or call.asked.whole("OwnerID")
    leads = call.account == call.site.accounts[0]
    return (leads or owner == call.account) and wanted in (None, int(owner))


def _mine(call: ApiCall, found: Iterable[Record]) -> list[Record]:
    """The records that the caller may see and asks for."""
    asked = call.asked
    resource, product, paid = asked.text("InstanceID"), asked.text("ProductCode"), asked.text("SubscriptionType")
    return [
        record
        for record in found
        if _visible(call, record.owner)
        and resource in ("", record.resource)
        and product in ("", record.product)
        and paid in ("", _subscription(record))
    ]


def _subscription(record: Record) -> str:
    return "Subscription" if record.prepaid else "PayAsYouGo"


def _sum_of(
    sums: dict[tuple[str, ...], dict[str, Any]], call: ApiCall, owner: str, product: str, item: str, currency: str
) -> dict[str, Any]:
    nothing = ("PretaxGrossAmount", "PretaxAmount", "DeductedByCashCoupons", "Tax", "AfterTaxAmount", "InvoiceDiscount")
    return sums.setdefault(
        (owner, product, item, currency),
        {
            **dict.fromkeys(nothing, Decimal(0)),
            "RoundDownDiscount": "0",
            "OwnerID": owner,
            "BillAccountID": call.account,
            "ProductCode": product,
            "PipCode": product,
            "Item": item,
            "SubscriptionType": "Subscription" if item == "SubscriptionOrder" else "PayAsYouGo",
            "Currency": currency,
        },
    )


def _add(sums: dict[str, Any], record: Record) -> None:
    sums["PretaxGrossAmount"] += record.listed
    sums["InvoiceDiscount"] += record.listed - record.due
    sums["PretaxAmount"] += record.due
    sums["DeductedByCashCoupons"] += record.vouchers


def _described(call: ApiCall, record: Record, day: date | None) -> Mapping[str, Any]:
    """A record; texts may end in a tab, as in the vendor's own example."""
    names = _IN_CHINESE if call.site.cloud == "alibaba" else {}
    region = names.get(record.region) or call.site.regions.get(record.region, record.region)
    return {
        "BillingDate": day.isoformat() if day is not None else "",
        "BillAccountID": call.account,
        "OwnerID": record.owner,
        "Item": record.item,
        "SubscriptionType": _subscription(record),
        "ProductCode": record.product,
        "PipCode": record.product,
        "CommodityCode": record.product,
        "BillingItem": "云服务器配置" if call.asked.flag("IsBillingItem") else "",
        "InstanceID": record.resource,
        "InstanceSpec": f"{record.instance_type}\t" if record.details and record.instance_type else "",
        "NickName": record.name if record.details else "",
        "Region": region,
        "Tag": "; ".join(f"key:{key} value:{value}" for key, value in record.tags),
        "ServicePeriod": str(record.seconds),
        "ServicePeriodUnit": "秒" if names else "Second",
        "Currency": record.currency,
        "PretaxGrossAmount": _number(record.listed),
        "InvoiceDiscount": _number(record.listed - record.due) if record.listed != record.due else 0,
        "DeductedByCoupons": 0,
        "PretaxAmount": _number(record.due),
        "DeductedByCashCoupons": _number(record.vouchers),
        "DeductedByPrepaidCard": 0,
        "OutstandingAmount": _number(record.due - record.vouchers),
        "PaymentAmount": 0,
        "CashAmount": 0,
    }


def _number(value: Any) -> Any:
    """Amounts are JSON numbers."""
    return float(value) if isinstance(value, Decimal) else value
