"""The budgets of the console, in Costguard's words, with what of them it cannot express."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal

from costguard.domain.errors import ProviderError
from costguard.domain.money import Money, SpendScope, VendorBudget
from costguard.domain.refs import Shard
from costguard.providers.kit.core.credentials import without_secrets
from costguard.providers.kit.core.fields import Fields, as_documented, cut_short, named, part, parts, text, texts, whole
from costguard.providers.tencent.billing.answers import amount_in, region_word
from costguard.providers.tencent.billing.requests import Calls
from costguard.providers.tencent.core.products import CURRENCIES, told

_OPERATION = "billing:DescribeBudget"
_PAGE = 50
_MOST_PAGES = 200
_PERIODS = {"DAY": "daily", "MONTH": "monthly", "QUARTER": "quarterly", "YEAR": "yearly"}
_OVER = ("EXPIRED", "UNACTIVATED")
_OTHER_LIMITS = (
    *("Business", "PayMode", "ProductCodes", "ComponentCodes", "ZoneIds", "ProjectIds", "ActionTypes"),
    *("ConsumptionTypes", "PayerUins", "TreeNodeUniqKeys"),
)
_NULLABLE = ("DimensionsRange", "BudgetQuotaJson", "WaveThresholdJson", "CurDateDesc", "RealCost", "WarnJson")


def read_budgets(session: Calls, shard: Shard) -> Sequence[VendorBudget]:
    """Every budget that is not over.

    Success has a second layer here: an answer without an error whose `Code` is not 0 has failed all the same.

    Raises:
        ProviderError: they could not all be read.
    """
    found: list[VendorBudget] = []
    seen = 0
    for number in range(1, _MOST_PAGES + 1):
        answer = session.call(shard, "billing", "DescribeBudget", PageNo=number, PageSize=_PAGE)
        with as_documented(_OPERATION):
            _check(answer)
            page = told(part(answer, "Data"), "Records")
            records, total = parts(page, "Records"), whole(page, "Total")
            found += [_budget(session.cloud, shard, record) for record in records if _is_current(record)]
        seen += len(records)
        if seen >= total:
            return found
        if not records:
            break
    raise cut_short(_OPERATION, f"ended after {seen} budgets", "EndedEarly")


def _check(answer: Fields) -> None:
    code = answer["Code"]
    if isinstance(code, bool) or not isinstance(code, int):
        message = "Code is no number"
        raise TypeError(message)
    if code != 0:
        message = f"{_OPERATION}: {code}: {without_secrets(text(told(answer, 'Message'), 'Message'))}"
        raise ProviderError(message, operation=_OPERATION, code=f"Code.{code}")


def _is_current(record: Fields) -> bool:
    return text(record, "BudgetStatus") not in _OVER


def _budget(cloud: str, shard: Shard, record: Fields) -> VendorBudget:
    known, currency = told(record, *_NULLABLE), CURRENCIES[cloud]
    limits = told(part(known, "DimensionsRange"), "RegionIds", "OwnerUins", "Tags", *_OTHER_LIMITS)
    unsupported: list[str] = []
    warnings = parts(known, "WarnJson")
    return VendorBudget(
        cloud=cloud,
        account=shard.account,
        name=named(known, "BudgetName"),
        amount=Money(_amount(known, unsupported), currency),
        period=_PERIODS[named(known, "CycleType")],
        scope=_scope(cloud, limits, unsupported),
        actual_thresholds=tuple(_thresholds(warnings, "ACTUAL", unsupported)),
        forecast_thresholds=tuple(_thresholds(warnings, "FORECAST", unsupported)),
        spent=Money(amount_in(known, "RealCost"), currency) if text(known, "RealCost") else None,
        unsupported="; ".join(dict.fromkeys([*unsupported, *_other(known, limits)])),
    )


def _amount(known: Fields, unsupported: list[str]) -> Decimal:
    if text(known, "PlanType") != "CYCLE":
        return amount_in(known, "BudgetQuota")
    plans = parts(known, "BudgetQuotaJson")
    unsupported.append("its amount differs from period to period; this is the present one")
    now = text(known, "CurDateDesc")
    present = [plan for plan in plans if text(told(plan, "DateDesc"), "DateDesc") == now] or plans[:1]
    if not present:
        message = "a plan without amounts"
        raise ValueError(message)
    return amount_in(present[0], "Quota")


def _scope(cloud: str, limits: Fields, unsupported: list[str]) -> SpendScope:
    numbers = texts(limits, "RegionIds")
    regions = tuple(filter(None, (region_word(number) for number in numbers)))
    if len(regions) < len(numbers):
        unsupported.append("it is limited to a region of unknown number")
    tags: dict[str, str] = {}
    for tag in parts(limits, "Tags"):
        key, values = named(tag, "TagKey"), texts(told(tag, "TagValue"), "TagValue")
        if len(values) == 1:
            tags[key] = values[0]
        else:
            unsupported.append(f"it takes any of {len(values)} values of the tag {without_secrets(key)}")
    return SpendScope(
        clouds=(cloud,),
        accounts=tuple(texts(limits, "OwnerUins")) or None,
        regions=regions or None,
        tags=tuple(sorted(tags.items())),
    )


def _thresholds(warnings: Iterable[Fields], kind: str, unsupported: list[str]) -> Iterator[str]:
    for warning in warnings:
        if text(warning, "WarnType") != kind:
            continue
        if text(warning, "CalType") == "PERCENTAGE":
            yield f"{amount_in(warning, 'ThresholdValue').normalize():f}"
        else:
            unsupported.append("a threshold is an amount, not a percentage")


def _other(known: Fields, limits: Mapping[str, object]) -> Iterator[str]:
    for name in _OTHER_LIMITS:
        if limits.get(name):
            yield f"it is limited by {name}"
    if text(known, "FeeType") != "REAL_COST":
        yield f"it counts {without_secrets(text(known, 'FeeType'))}, not what is paid after discounts"
    if text(known, "Dimensions") not in {"", "COST"}:
        yield f"it counts {without_secrets(text(known, 'Dimensions'))}, not cost"
    if parts(known, "WaveThresholdJson"):
        yield "it also alerts on changes from day to day or month to month"
