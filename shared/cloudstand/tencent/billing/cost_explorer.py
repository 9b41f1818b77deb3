"""The billing product's daily and monthly series."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from decimal import Decimal

from cloudstand.tencent.billing.bills import Charged, carried, money, region_names
from cloudstand.tencent.billing.requests import of_payer
from cloudstand.tencent.core.asking import Answer, Asked
from cloudstand.tencent.core.errors import ApiError, bad_value
from cloudstand.tencent.core.times import BEIJING, local, moment_of

_DAY = timedelta(days=1)


def describe_cost_explorer_summary(asked: Asked) -> Answer:
    """DescribeCostExplorerSummary: a series by day or month for each value of one dimension."""
    if asked.parameters["BillType"] != "1":
        raise ApiError("UnsupportedOperation", "the consumption bill was not opened.", "未开通消耗账单。")
    begins, ends = (
        moment_of("BeginTime", asked.parameters["BeginTime"]),
        moment_of("EndTime", asked.parameters["EndTime"]),
    )
    series: dict[str, dict[str, Decimal]] = {}
    steps = _steps(begins, ends, by_month=asked.parameters["PeriodType"] == "month")
    for month in sorted({step[:7] for step in steps}):
        for each in _conditioned(asked, of_payer(asked, month)):
            step = _step_of(each.booked, by_month=asked.parameters["PeriodType"] == "month")
            if step in steps:
                of = series.setdefault(_dimension(asked, each), dict.fromkeys(steps, Decimal(0)))
                of[step] += each.cost
    names = sorted(series, key=lambda name: (-sum(series[name].values()), name))
    size = asked.parameters["PageSize"]
    first = (asked.parameters["PageNo"] - 1) * size
    everything = {step: sum((series[name][step] for name in names), Decimal(0)) for step in steps}
    return {
        "Total": len(names),
        "Header": {"Name": "", "Total": "总计", "HeadDetail": [{"Name": step} for step in steps]},
        "ConditionValue": {},
        "Detail": [_series(name, series[name]) for name in names[first : first + size]],
        "TotalDetail": _series("总计", everything),
    }


def _dimension(asked: Asked, charged: Charged) -> str:
    """The name of a charge's group; of products and regions it is the one people read, not the code."""
    kind = asked.parameters["Dimensions"]
    if kind == "tags":
        return carried(asked, charged.tags).get(asked.get("TagKeyStr", ""), "")
    names: Mapping[str, Callable[[], str]] = {
        "default": lambda: "总计",
        "business": lambda: charged.product[1],
        "product": lambda: charged.product[1],
        "region": lambda: region_names(charged.region)[1],
        "actionType": lambda: charged.action_name,
        "payMode": lambda: "包年包月" if charged.prepaid else "按量计费",
        "ownerUin": lambda: charged.account,
        "payerUin": lambda: asked.memory.desk.payer_of(charged.account, asked.accounts.management),
    }
    if kind not in names:
        raise bad_value("Dimensions", f"{kind} is not modelled here", "Emulator.NotModelled")
    return names[kind]()


def _conditioned(asked: Asked, found: Iterable[Charged]) -> list[Charged]:
    wanted = {name: set(str(value).split(",")) for name, value in asked.get("Conditions", {}).items()}
    of: Mapping[str, Callable[[Charged], str]] = {
        "BusinessCodes": lambda each: each.product[0],
        "RegionIds": lambda each: region_names(each.region)[0],
        "PayModes": lambda each: "prePay" if each.prepaid else "postPay",
        "OwnerUins": lambda each: each.account,
        "PayerUins": lambda each: asked.memory.desk.payer_of(each.account, asked.accounts.management),
    }
    return [each for each in found if all(of[name](each) in values for name, values in wanted.items())]


def _steps(begins: datetime, ends: datetime, *, by_month: bool) -> list[str]:
    found: dict[str, None] = {}
    moment = begins
    while moment <= ends:
        found[_step_of(moment, by_month=by_month)] = None
        moment += _DAY
    found[_step_of(ends, by_month=by_month)] = None
    return list(found)


def _step_of(moment: datetime, *, by_month: bool) -> str:
    day = moment.astimezone(BEIJING).replace(hour=0, minute=0, second=0, microsecond=0)
    return local(day.replace(day=1) if by_month else day)


def _series(name: str, money_by_step: Mapping[str, Decimal]) -> Answer:
    return {
        "Name": name,
        "Total": money(sum(money_by_step.values(), Decimal(0))),
        "TimeDetail": [{"Time": step, "Money": money(amount)} for step, amount in money_by_step.items()],
    }
