"""The billing product: a month's detail and totals, and the console's budgets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from cloudstand.tencent.billing.bills import Charged, charged_in, money, region_names, written
from cloudstand.tencent.core.asking import Answer, Asked, page
from cloudstand.tencent.core.errors import ApiError, bad_value, missing
from cloudstand.tencent.core.times import BEIJING

_MONTHS_KEPT = 18
Group = Callable[[Charged], tuple[str, str]]
"""The code and the name of the group that a charge belongs to."""


def describe_bill_detail(asked: Asked) -> Answer:
    """DescribeBillDetail: of who asks, or of a member that pays for itself."""
    return _detail(asked, _payer(asked), of_payer(asked, _month(asked)))


def describe_bill_detail_for_organization(asked: Asked) -> Answer:
    """DescribeBillDetailForOrganization: what somebody else pays for a member; who that is it does not tell."""
    return _detail(asked, "", _paid_by_others(asked, _month(asked)))


def describe_bill_summary_by_product(asked: Asked) -> Answer:
    """DescribeBillSummaryByProduct."""
    return _overview(asked, lambda each: each.product[:2], ("BusinessCode", "BusinessCodeName"), total=True)


def describe_bill_summary_by_region(asked: Asked) -> Answer:
    """DescribeBillSummaryByRegion, which alone has no total."""
    return _overview(asked, lambda each: region_names(each.region), ("RegionId", "RegionName"), total=False)


def describe_bill_summary_by_tag(asked: Asked) -> Answer:
    """DescribeBillSummaryByTag: of a cost allocation tag; what does not carry it has the value "".

    Its groups have no BillMonth (TagSummaryOverviewItem), and its total has two of the six sums (SummaryTotal).
    """
    key = asked.parameters["TagKey"]
    known = asked.memory.desk.tag_keys
    if known is not None and key not in known:
        raise ApiError("FailedOperation.TagKeyNotExist", f"the tag key {key} does not exist.", "不存在该分账标签键。")
    answer = _overview(asked, lambda each: (each.tags.get(key, ""), ""), ("TagValue", ""), total=True)
    if not answer["Ready"]:
        return answer
    groups = [{name: of for name, of in each.items() if name != "BillMonth"} for each in answer["SummaryOverview"]]
    wanted = asked.get("TagValue")
    return {
        **answer,
        "SummaryOverview": [each for each in groups if wanted in {None, each["TagValue"]}],
        "SummaryTotal": {name: answer["SummaryTotal"][name] for name in ("RealTotalCost", "TotalCost")},
    }


def describe_bill_summary(asked: Asked) -> Answer:
    """DescribeBillSummary: any of five groups in one action."""
    return _grouped(asked, of_payer(asked, asked.parameters["Month"]))


def describe_bill_summary_for_organization(asked: Asked) -> Answer:
    """DescribeBillSummaryForOrganization."""
    return _grouped(asked, _paid_by_others(asked, asked.parameters["Month"]))


def describe_budget(asked: Asked) -> Answer:
    """DescribeBudget, whose failures may be answers without an error."""
    desk = asked.memory.desk
    if desk.budget_code:
        return {"Code": desk.budget_code, "Message": "system error"}
    wanted = {"BudgetId": asked.get("BudgetId"), "BudgetName": asked.get("BudgetName")}
    wanted["BudgetStatus"] = asked.get("BudgetStatus")
    found = [
        budget
        for budget in desk.budgets
        if budget["PayerUin"] == int(asked.account)
        and all(value is None or budget[name] == value for name, value in wanted.items())
        and budget["CycleType"] in (asked.get("CycleTypes") or [budget["CycleType"]])
    ]
    size, number = asked.parameters["PageSize"], asked.parameters["PageNo"]
    data = {
        "Current": number,
        "Pages": -(-len(found) // size),
        "Records": found[(number - 1) * size : number * size],
        "Size": size,
        "Total": len(found),
    }
    return {"Code": 0, "Message": "query success", "Data": data}


def _detail(asked: Asked, payer: str, found: Iterable[Charged]) -> Answer:
    left_out = asked.memory.desk.left_out
    kept = [each for each in found if each.resource_id not in left_out and _is_wanted(asked, each)]
    answer: dict[str, Any] = {
        "DetailSet": [_record(asked, each, payer) for each in page(asked, kept)],
        "Total": 0,
        "Context": f"context-{asked.request_id}",
    }
    if asked.get("NeedRecordNum") == 1:
        answer["Total"] = max(0, len(kept) - asked.memory.desk.total_short_by)
    return answer


def _record(asked: Asked, charged: Charged, payer: str) -> dict[str, Any]:
    record = written(asked, charged, payer)
    if not payer:
        return {name: value for name, value in record.items() if name not in _NOT_FOR_MEMBERS}
    return record


_NOT_FOR_MEMBERS = frozenset(
    {
        *("PayerUin", "Id", "RegionType", "RegionTypeName", "ReserveDetail", "DiscountObject", "DiscountType"),
        *("DiscountContent", "ExtendField"),
    }
)


def _is_wanted(asked: Asked, charged: Charged) -> bool:
    mode, action = asked.get("PayMode"), asked.get("ActionType")
    return (
        (mode is None or (mode == "prePay") == charged.prepaid)
        and asked.get("ResourceId", charged.resource_id) == charged.resource_id
        and asked.get("BusinessCode", charged.product[0]) == charged.product[0]
        and action in {None, charged.action, charged.action_name}
    )


def _month(asked: Asked) -> str:
    """Of which month the detail is: two ends only ever choose the month that both lie in."""
    begins, ends = asked.get("BeginTime"), asked.get("EndTime")
    if begins is None and ends is None:
        month = asked.get("Month")
        if month is None:
            raise missing("Month")
        return str(month)
    if begins is None or ends is None:
        raise missing("EndTime" if ends is None else "BeginTime")
    if begins[:7] != ends[:7]:
        raise bad_value("EndTime", "it is in another month than BeginTime", "InvalidParameter")
    return str(begins[:7])


def _checked_month(asked: Asked, month: str) -> str:
    if not 1 <= int(month[5:7]) <= 12:  # noqa: PLR2004 - a year has twelve
        raise bad_value("Month", "there is no such month")
    now = asked.now.astimezone(BEIJING)
    age = (now.year - int(month[:4])) * 12 + now.month - int(month[5:7])
    if age >= _MONTHS_KEPT:
        raise bad_value("Month", f"only {_MONTHS_KEPT} months are kept")
    return month


def _bill(asked: Asked, month: str) -> Sequence[Charged]:
    return charged_in(asked, _checked_month(asked, month))


def _payer(asked: Asked) -> str:
    """Whose bill is meant; of another account only a member that pays for itself, and only by who leads."""
    payer = str(asked.get("PayerUin", asked.account))
    leads = asked.account == asked.accounts.management and payer in asked.accounts.accounts
    if payer != asked.account and not leads:
        raise ApiError("UnauthorizedOperation.CamNoAuth", f"{payer} is no member.", "账号没有cam授权。")
    return payer


def of_payer(asked: Asked, month: str) -> list[Charged]:
    """What stands in the bill of who asks, or of the member that is asked about."""
    payer, leader = _payer(asked), asked.accounts.management
    return [each for each in _bill(asked, month) if asked.memory.desk.payer_of(each.account, leader) == payer]


def _paid_by_others(asked: Asked, month: str) -> list[Charged]:
    leader = asked.accounts.management
    if asked.account == leader:
        raise ApiError("UnsupportedOperation", "the account is no member of an organisation.", "操作不支持。")
    if asked.memory.desk.payer_of(asked.account, leader) == asked.account:
        return []
    return [each for each in _bill(asked, month) if each.account == asked.account]


def _overview(asked: Asked, group: Group, fields: tuple[str, str], *, total: bool) -> Answer:
    month = asked.parameters["BeginTime"]
    if month != asked.parameters["EndTime"]:
        raise bad_value("EndTime", "it is another month than BeginTime", "InvalidParameter")
    if not asked.memory.desk.ready:
        return {"Ready": 0, "SummaryOverview": None, **({"SummaryTotal": None} if total else {})}
    found = of_payer(asked, month)
    entries = []
    for (code, name), members in _groups(found, group).items():
        entry = {fields[0]: code, **_costs(members), "RealTotalCostRatio": "0.00", "BillMonth": month}
        entries.append({**entry, fields[1]: name} if fields[1] else entry)
    return {"Ready": 1, "SummaryOverview": entries, **({"SummaryTotal": _costs(found)} if total else {})}


def _grouped(asked: Asked, found: Sequence[Charged]) -> Answer:
    if not asked.memory.desk.ready:
        return {"Ready": 0, "SummaryDetail": []}
    kind = asked.parameters["GroupType"]
    keys = asked.get("TagKey") or []
    if kind == "tag" and len(keys) != 1:
        raise bad_value("TagKey", "one key is needed")
    groups: Mapping[str, Group] = {
        "business": lambda each: each.product[:2],
        "project": lambda _: ("0", "默认项目"),
        "region": lambda each: region_names(each.region),
        "payMode": lambda each: ("prePay", "包年包月") if each.prepaid else ("postPay", "按量计费"),
        "tag": lambda each: (keys[0], each.tags.get(keys[0], "")),
    }
    return {
        "Ready": 1,
        "SummaryDetail": [
            {
                "GroupKey": code,
                "GroupValue": name,
                **_costs(members),
                "Business": [
                    {"BusinessCode": product, "BusinessCodeName": named, **_costs(within)}
                    for (product, named), within in _groups(members, lambda each: each.product[:2]).items()
                ],
            }
            for (code, name), members in _groups(found, groups[kind]).items()
        ],
    }


def _groups(found: Iterable[Charged], group: Group) -> dict[tuple[str, str], list[Charged]]:
    groups: dict[tuple[str, str], list[Charged]] = {}
    for each in found:
        groups.setdefault(group(each), []).append(each)
    return groups


def _costs(found: Sequence[Charged]) -> dict[str, str]:
    cost = sum((each.cost for each in found), Decimal(0))
    voucher = sum((each.voucher for each in found), Decimal(0))
    return {
        "RealTotalCost": money(cost),
        "TotalCost": "-"
        if any(each.cost < 0 for each in found)
        else money(sum((each.listed for each in found), Decimal(0))),
        "CashPayAmount": money(cost - voucher),
        "IncentivePayAmount": money(Decimal(0)),
        "VoucherPayAmount": money(voucher),
        "TransferPayAmount": money(Decimal(0)),
    }
