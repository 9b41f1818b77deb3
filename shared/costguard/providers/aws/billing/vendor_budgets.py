"""Budgets of the AWS console in neutral words, with what of them Costguard cannot express."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal

from costguard.domain.money import Money, SpendScope, VendorBudget
from costguard.providers.aws.billing.answers import money_of
from costguard.providers.kit.core.fields import Fields, amount, flag, moment, named, part, parts, text, texts

_PERIODS = {"DAILY": "daily", "MONTHLY": "monthly", "QUARTERLY": "quarterly", "ANNUALLY": "yearly", "CUSTOM": "dated"}
_NO_END = 2087  # the year of the end date that AWS writes where there is none
_HUNDRED = Decimal(100)
_ALWAYS_COUNTED = (
    "IncludeSubscription",
    "IncludeRefund",
    "IncludeUpfront",
    "IncludeRecurring",
    "IncludeOtherSubscription",
    "IncludeSupport",
    "IncludeDiscount",
)
_BLENDED = frozenset({"BlendedCost", "NormalizedUsageAmount", "UsageQuantity", "Hours"})
_DIMENSIONS = {"LINKED_ACCOUNT": "accounts", "REGION": "regions"}
_FILTERS = {"LinkedAccount": "accounts", "Region": "regions"}
_USER_TAG = "user:"


@dataclass(slots=True)
class _Slice:
    """A filter as far as it is read. `accounts` and `regions` None: every one."""

    accounts: tuple[str, ...] | None = None
    regions: tuple[str, ...] | None = None
    tags: dict[str, str] = field(default_factory=dict)
    unsupported: list[str] = field(default_factory=list)

    def limit(self, part_of_it: str, values: Sequence[str]) -> None:
        """It holds these accounts or regions only; a second limit holds as well."""
        before: tuple[str, ...] | None = getattr(self, part_of_it)
        setattr(self, part_of_it, tuple(value for value in values if before is None or value in before))

    def tag(self, key: str, values: Sequence[str]) -> None:
        """It holds what carries this tag."""
        if len(values) == 1 and values[0] and self.tags.setdefault(key, values[0]) == values[0]:
            return
        self.unsupported.append(f"tag {key} with several values or none")


def budgets_of(
    budgets: Sequence[Fields],
    notified: Sequence[Fields],
    cloud: str,
    account: str,
    *,
    everybody: bool,
    now: datetime,
) -> list[VendorBudget]:
    """The cost budgets of `account`; with `everybody` one without a filter covers all accounts that it pays for.

    `notified` says which notifications belong to which budget.
    """
    thresholds: dict[str, list[Fields]] = {}
    for item in notified:
        thresholds.setdefault(named(item, "BudgetName"), []).extend(parts(item, "Notifications"))
    return [
        _budget(budget, thresholds.get(named(budget, "BudgetName"), ()), cloud, account, everybody=everybody, now=now)
        for budget in budgets
        if named(budget, "BudgetType") == "COST"
    ]


def _budget(
    budget: Fields, notifications: Sequence[Fields], cloud: str, account: str, *, everybody: bool, now: datetime
) -> VendorBudget:
    limit, unsupported = _limit(budget, now)
    scope = _slice(budget)
    if scope.accounts is None and not everybody:
        scope.accounts = (account,)
    actual, forecast, others = _thresholds(notifications, limit)
    spent = part(part(budget, "CalculatedSpend"), "ActualSpend")
    types = part(budget, "CostTypes")
    return VendorBudget(
        cloud=cloud,
        account=account,
        name=named(budget, "BudgetName"),
        amount=limit,
        period=_PERIODS[named(budget, "TimeUnit")],
        scope=SpendScope((cloud,), scope.accounts, scope.regions, tuple(sorted(scope.tags.items()))),
        actual_thresholds=actual,
        forecast_thresholds=forecast,
        spent=money_of(spent) if spent else None,
        amortised=flag(types, "UseAmortized"),
        counts_credits=_included(types, "IncludeCredit"),
        counts_tax=_included(types, "IncludeTax"),
        unsupported="; ".join((*scope.unsupported, *unsupported, *_counted(budget), *others)),
    )


def _limit(budget: Fields, now: datetime) -> tuple[Money, list[str]]:
    """The amount in force, and what moves it."""
    unsupported = []
    if "AutoAdjustData" in budget:
        unsupported.append("an amount that AWS adjusts by itself")
    if text(budget, "BillingViewArn").rpartition("/")[2] not in ("", "primary"):
        unsupported.append("a billing view of its own")
    ends = moment(part(budget, "TimePeriod"), "End")
    if ends is not None and ends.year < _NO_END and named(budget, "TimeUnit") != "CUSTOM":
        unsupported.append(f"an end on {ends:%Y-%m-%d}")
    planned = part(budget, "PlannedBudgetLimits")
    if not planned:
        return money_of(part(budget, "BudgetLimit")), unsupported
    unsupported.append("a planned amount for each period")
    begun = [start for start in planned if int(start) <= now.timestamp()]
    return money_of(part(planned, max(begun or planned, key=int))), unsupported


def _included(types: Fields, name: str) -> bool:
    """AWS counts what is not left out by name."""
    return name not in types or flag(types, name)


def _counted(budget: Fields) -> Iterator[str]:
    """Which charges do not count that a budget of ours always counts."""
    types = part(budget, "CostTypes")
    if flag(types, "UseBlended") or _BLENDED & set(texts(budget, "Metrics")):
        yield "blended costs"
    left_out = [name.removeprefix("Include") for name in _ALWAYS_COUNTED if name in types and not flag(types, name)]
    if left_out:
        yield f"without {', '.join(left_out).lower()}"


def _slice(budget: Fields) -> _Slice:
    found = _Slice()
    expression = part(budget, "FilterExpression")
    if expression:
        _read_expression(expression, found)
        return found
    filters: Mapping[str, object] = part(budget, "CostFilters")
    for name in filters:
        values = texts(filters, name)
        if name in _FILTERS:
            found.limit(_FILTERS[name], values)
        elif name == "TagKeyValue":
            _read_tag_values(values, found)
        else:
            found.unsupported.append(f"filter {name}")
    return found


def _read_tag_values(values: Sequence[str], found: _Slice) -> None:
    """`user:team$research`: of one key any of the values, of several keys all."""
    by_key: dict[str, list[str]] = {}
    for value in values:
        key, _, tagged = value.partition("$")
        by_key.setdefault(key.removeprefix(_USER_TAG), []).append(tagged)
    for key, tagged_values in by_key.items():
        found.tag(key, tagged_values)


def _read_expression(expression: Fields, found: _Slice) -> None:
    """Conditions that must all hold; whatever else an expression can say is not ours."""
    for operator in expression:
        if operator == "And":
            for inner in parts(expression, operator):
                _read_expression(inner, found)
        elif operator in ("Dimensions", "Tags"):
            _read_condition(operator, part(expression, operator), found)
        else:
            found.unsupported.append(f"filter {operator}")


def _read_condition(operator: str, condition: Fields, found: _Slice) -> None:
    key, values = named(condition, "Key"), texts(condition, "Values")
    if set(texts(condition, "MatchOptions")) - {"EQUALS", "CASE_SENSITIVE"}:
        found.unsupported.append(f"filter {key} by a pattern")
    elif operator == "Tags":
        found.tag(key.removeprefix(_USER_TAG), values)
    elif key in _DIMENSIONS:
        found.limit(_DIMENSIONS[key], values)
    else:
        found.unsupported.append(f"filter {key}")


def _thresholds(notifications: Sequence[Fields], limit: Money) -> tuple[tuple[str, ...], tuple[str, ...], list[str]]:
    """Percentages of the amount, of actual and of forecast spend, and what is neither."""
    found: dict[str, set[Decimal]] = {"ACTUAL": set(), "FORECASTED": set()}
    others = []
    for notification in notifications:
        comparison, kind = named(notification, "ComparisonOperator"), named(notification, "NotificationType")
        told = amount(notification, "Threshold")
        if comparison != "GREATER_THAN" or kind not in found or told is None:
            others.append(f"a notification for {kind} {comparison}")
            continue
        threshold = Decimal(repr(told))  # the SDK reads a float: its shortest form is what was written
        if text(notification, "ThresholdType") == "ABSOLUTE_VALUE":
            threshold = threshold / limit.amount * _HUNDRED if limit.amount else Decimal(0)
        found[kind].add(threshold)
    actual, forecast = (tuple(_plain(each) for each in sorted(found[kind])) for kind in ("ACTUAL", "FORECASTED"))
    return actual, forecast, others


def _plain(percent: Decimal) -> str:
    return f"{percent.normalize():f}"
