"""Requests to Cost Explorer, taken as strictly as the API documents them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from typing import Any

from cloudstand.aws.billing.cost_facts import CostFact

MOST_GROUPS_BY = 2
_METRICS = frozenset(
    {
        "AmortizedCost",
        "BlendedCost",
        "NetAmortizedCost",
        "NetUnblendedCost",
        "NormalizedUsageAmount",
        "UnblendedCost",
        "UsageQuantity",
    }
)
_KNOWN = frozenset(
    {"LINKED_ACCOUNT", "REGION", "SERVICE", "INSTANCE_TYPE", "RECORD_TYPE", "PURCHASE_TYPE", "USAGE_TYPE"}
)
_GROUPABLE = _KNOWN - {"REGION"}  # the list in the API's documentation does not have it
_FIELDS = frozenset({"TimePeriod", "Granularity", "Filter", "Metrics", "GroupBy", "BillingViewArn", "NextPageToken"})
_OPERATORS = ("And", "Or", "Not", "Dimensions", "Tags", "CostCategories")
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_OLDEST = timedelta(days=396)  # 13 months; older days have to be asked for in the console first

Holds = Callable[[CostFact], bool]


class RefusedQuestionError(Exception):
    """What the service answers with instead: its code and message."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


@dataclass(frozen=True, slots=True)
class Question:
    """One GetCostAndUsage request, understood. `since` and `until` are days, the second outside."""

    since: datetime
    until: datetime
    monthly: bool
    holds: Holds
    metrics: Sequence[str]
    keys: Sequence[tuple[str, str]]

    def group_of(self, fact: CostFact) -> tuple[str, ...]:
        """What a charge is grouped under."""
        return tuple(
            fact.dimensions[key] if kind == "DIMENSION" else f"{key}${fact.tags.get(key, '')}"
            for kind, key in self.keys
        )


def understood(request: Mapping[str, Any], now: datetime) -> Question:
    """What a GetCostAndUsage request asks for.

    Raises:
        RefusedQuestionError: the service would not take it.
    """
    unknown = sorted(set(request) - _FIELDS)
    if unknown:
        message = f"Unknown parameters: {', '.join(unknown)}"
        raise invalid(message)
    granularity = request.get("Granularity")
    if granularity == "HOURLY":
        raise RefusedQuestionError("AccessDeniedException", "Hourly granularity is not enabled for this account")
    if granularity not in ("DAILY", "MONTHLY"):
        raise invalid("Granularity must be one of DAILY, MONTHLY, HOURLY")
    metrics = request.get("Metrics")
    if not isinstance(metrics, list) or not metrics or not set(metrics) <= _METRICS:
        raise invalid("Metrics must name at least one valid metric")
    since, until = _period(request.get("TimePeriod"), now)
    return Question(
        since=since,
        until=until,
        monthly=granularity == "MONTHLY",
        holds=expression(request["Filter"]) if "Filter" in request else lambda _: True,
        metrics=metrics,
        keys=_keys(request.get("GroupBy", [])),
    )


def expression(node: Any) -> Holds:
    """Which charges a filter keeps.

    Raises:
        RefusedQuestionError: not exactly one operator, too few operands, or a dimension nobody has.
    """
    if not isinstance(node, dict) or len(node) != 1 or next(iter(node)) not in _OPERATORS:
        raise invalid("Expression must have exactly one operator")
    operator, operand = next(iter(node.items()))
    if operator in ("And", "Or"):
        if not isinstance(operand, list) or len(operand) < 2:  # noqa: PLR2004 - the documented minimum
            message = f"{operator} expression must have at least 2 operands"
            raise invalid(message)
        inner = [expression(each) for each in operand]
        chosen = all if operator == "And" else any
        return lambda fact: chosen(holds(fact) for holds in inner)
    if operator == "Not":
        negated = expression(operand)
        return lambda fact: not negated(fact)
    if operator == "Dimensions":
        return _dimension(operand)
    if operator == "Tags":
        return _tag(operand)
    raise invalid("The sandbox has no cost categories")


def _dimension(operand: Any) -> Holds:
    key, values = _key_and_values(operand)
    if key not in _KNOWN:
        message = f"The sandbox has no dimension {key}"
        raise invalid(message)
    if not values:
        raise invalid("Values must not be empty")
    return lambda fact: fact.dimensions[key] in values


def _tag(operand: Any) -> Holds:
    """An empty value stands for resources without the tag as well."""
    key, values = _key_and_values(operand)
    if "ABSENT" in operand.get("MatchOptions", []):
        return lambda fact: key not in fact.tags
    if not values:
        raise invalid("Values must not be empty")
    return lambda fact: fact.tags.get(key, "") in values


def _key_and_values(operand: Any) -> tuple[str, Sequence[str]]:
    if not isinstance(operand, dict) or not set(operand) <= {"Key", "Values", "MatchOptions"}:
        raise invalid("A filter has Key, Values and MatchOptions")
    key, values = operand.get("Key"), operand.get("Values", [])
    texts = isinstance(values, list) and all(isinstance(value, str) for value in values)
    if not isinstance(key, str) or not key or not texts:
        raise invalid("A filter needs a Key and a list of Values")
    return key, values


def _keys(group_by: Any) -> list[tuple[str, str]]:
    if not isinstance(group_by, list) or len(group_by) > MOST_GROUPS_BY:
        raise invalid("You can group by up to two different groups")
    keys = [(str(each.get("Type")), str(each.get("Key"))) for each in group_by]
    if len(set(keys)) != len(keys):
        raise invalid("Groups must differ")
    for kind, key in keys:
        if kind not in ("DIMENSION", "TAG") or (kind == "DIMENSION" and key not in _GROUPABLE):
            message = f"Group Definition dimension is invalid: {key}"
            raise invalid(message)
    return keys


def _period(told: Any, now: datetime) -> tuple[datetime, datetime]:
    if not isinstance(told, dict) or set(told) != {"Start", "End"}:
        raise invalid("TimePeriod needs Start and End")
    since, until = _day(told["Start"]), _day(told["End"])
    if since >= until:
        raise invalid("Start date (and hour) should be before end date (and hour)")
    if since > now:
        raise invalid("Start date must be equal to or no later than the current date")
    if until > now + timedelta(days=1):
        raise invalid("End date is in the future")
    if since < now - _OLDEST:
        raise invalid("You haven't enabled historical data beyond 14 months")
    return since, until


def _day(told: Any) -> datetime:
    try:
        found = date.fromisoformat(told) if isinstance(told, str) and _DAY.fullmatch(told) else None
    except ValueError:
        found = None
    if found is None:
        message = f"{told!r} is no date of the form YYYY-MM-DD"
        raise invalid(message)
    return datetime(found.year, found.month, found.day, tzinfo=timezone.utc)


def invalid(message: str) -> RefusedQuestionError:
    """What AWS calls a request that does not fit."""
    return RefusedQuestionError("ValidationException", message)
