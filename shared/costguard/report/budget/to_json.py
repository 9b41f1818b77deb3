"""Where budgets stand as the JSON that `costguard budgets --json` documents; its shape is `budgets.schema.json`.

Amounts are exact decimals as text with their currency, shares and hours decimals as text.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, overload

from costguard.domain.money import VendorBudget, hours
from costguard.estimates.commitments import Commitment
from costguard.estimates.forecast import Forecast
from costguard.estimates.reconcile import Reconciled
from costguard.estimates.spent import RunRate, Spent
from costguard.estimates.traces import MachineHours
from costguard.guards.budget.judge import BudgetStatus, CloudPart, age_of_bill
from costguard.guards.rules.idle import percent_words
from costguard.report.budget.rules import budget_rule_json
from costguard.report.budget.views import BudgetReport, gaps_of
from costguard.report.json_values import gap_json, moment, money_json, reason_json
from costguard.report.words.sentences import Language, clean

if TYPE_CHECKING:
    from costguard.report.budget import shapes

BUDGETS_SCHEMA: Final = 1
_PLACES = Decimal("0.0001")


def budgets_json(reports: Sequence[BudgetReport], now: datetime, language: Language = Language.EN) -> shapes.Budgets:
    """All budgets asked for; `explain` gives the one."""
    return {
        "schema": BUDGETS_SCHEMA,
        "at": moment(now),
        "budgets": [_budget(one, language) for one in reports],
        "gaps": [gap_json(each, language) for each in gaps_of(reports)],
    }


def vendor_budget_json(budget: VendorBudget, name: str, policy: str, refused: str) -> dict[str, Any]:
    """A budget of a cloud's own console and what it becomes: `policy` is YAML, empty where it was `refused`."""
    return {
        "cloud": budget.cloud,
        "sub_account_id": budget.account,
        "vendor_name": clean(budget.name),
        "name": name,
        "amount": money_json(budget.amount),
        "period": budget.period,
        "spent": money_json(budget.spent),
        "unsupported": clean(budget.unsupported),
        "refused": refused,
        "policy": policy,
    }


def _budget(one: BudgetReport, language: Language) -> shapes.Budget:
    status = one.status
    period, ahead = status.period, status.full_in
    return {
        "rule": budget_rule_json(status.rule),
        "period": None
        if period is None
        else {"key": period.key, "start": moment(period.start), "end": moment(period.end), "zone": period.zone},
        "spent": None if status.spent is None else _spent(status, status.spent, one.now),
        "clouds": [_cloud(part, one.now) for part in status.parts],
        "unread_clouds": list(status.unread),
        "machines": [_machine(each, one) for each in status.machines],
        "exchange_rates": [
            {"base": rate.base, "quote": rate.quote, "rate": f"{rate.rate:f}", "since": rate.since.isoformat()}
            for rate in status.rates
        ],
        "burn_per_hour": money_json(status.burn_per_hour),
        "full_at": None if ahead is None else moment(one.now + ahead),
        "forecast": None if status.forecast is None else _forecast(status.forecast, one),
        "surge": None
        if status.surge is None
        else {
            "now": money_json(status.surge.now),
            "usual": money_json(status.surge.usual),
            "factor": None if status.surge.factor is None else f"{status.surge.factor:f}",
            "compared": status.surge.compared,
        },
        "history": [{"day": day.day.isoformat(), "spent": money_json(day.spent)} for day in status.history],
        "sure": period is not None and not status.doubts,
        "doubts": [reason_json(doubt, language) for doubt in status.doubts],
        "told": [
            {
                "kind": told.kind.value,
                "at_percent": percent_words(told.share),
                "title": clean(told.title),
                "channel": clean(told.where),
                "delivered_at": moment(told.at),
            }
            for told in one.told
        ],
        "steps_in_force": _in_force(status),
        "machines_under_way": [str(ref) for ref in one.under_way],
    }


def _spent(status: BudgetStatus, spent: Spent, now: datetime) -> shapes.Spent:
    return {
        "total": money_json(spent.total),
        "share_percent": _decimal(status.share * 100),
        "lower_bound": bool(status.unread),
        "estimated_share_percent": _decimal(spent.estimated_share * 100),
        "bill_age_hours": _decimal(age_of_bill(status, now)),
        **_parts(spent),
    }


def _parts(spent: Spent) -> shapes.Parts:
    return {
        "billed": money_json(spent.billed),
        "accrued": money_json(spent.accrued),
        "estimated": money_json(spent.estimated),
        "ahead": money_json(spent.ahead),
        "may_lack": money_json(spent.doubt),
    }


def _cloud(part: CloudPart, now: datetime) -> shapes.CloudSpend:
    until = part.complete_until
    return {
        "cloud": part.cloud,
        "source": part.source,
        "read_at": moment(part.read_at),
        "complete_until": moment(until),
        "bill_age_hours": None if until is None else _decimal(hours(now - until)),
        "reckoned_since": moment(part.reckoned_since),
        **_parts(part.spent),
        "burn_per_hour": money_json(part.burn_per_hour),
        "categories": [
            {"category": each.category.value, "counts": each.counts, "cost": money_json(each.money)}
            for each in part.categories
        ],
        "run_rate": None if part.rest is None else _run_rate(part.rest),
        "reconciled": None if part.reconciled is None else _reconciled(part.reconciled),
        "unexplained": [
            {
                "sub_account_id": each.account,
                "service_name": clean(each.service_name),
                "resource_ids": [clean(native_id) for native_id in each.resources],
                "cost": money_json(each.money),
            }
            for each in part.unexplained
        ],
        "without_rate": [money_json(money) for money in part.unconverted],
    }


def _run_rate(rest: RunRate) -> shapes.RunRate:
    return {"per_hour": money_json(rest.per_hour), "days": rest.days}


def _reconciled(learnt: Reconciled) -> shapes.Reconciled:
    return {
        "days": learnt.days,
        "metered": money_json(learnt.metered),
        "billed": money_json(learnt.billed),
        "error_percent": _decimal(learnt.error * 100),
        "factor": f"{learnt.factor:f}",
        "bounded": learnt.bounded,
    }


def _machine(each: MachineHours, one: BudgetReport) -> shapes.MachineSpend:
    return {
        "id": str(each.ref),
        "name": one.name_of(each.ref),
        "instance_type": clean(each.instance_type),
        "hours": _decimal(each.hours),
        "hourly": money_json(each.hourly),
        "cost": money_json(each.money),
    }


def _forecast(ahead: Forecast, one: BudgetReport) -> shapes.Forecast:
    return {
        "low": money_json(ahead.low),
        "expected": money_json(ahead.expected),
        "high": money_json(ahead.high),
        "at_this_burn": money_json(ahead.at_this_burn),
        "method": ahead.method,
        "backtest_error_percent": None if ahead.backtest_error is None else _decimal(ahead.backtest_error * 100),
        "tested": ahead.tested,
        "held": ahead.held,
        "commitments": [_commitment(each, one) for each in ahead.commitments],
    }


def _commitment(each: Commitment, one: BudgetReport) -> shapes.Commitment:
    return {
        "known_from": each.ground.value,
        "id": None if each.ref is None else str(each.ref),
        "name": clean(each.name) if each.ref is None else one.name_of(each.ref),
        "cloud": each.cloud,
        "sub_account_id": each.account,
        "due": moment(each.due),
        "times": each.times,
        "cost": money_json(each.money),
        "billed_cost_before": money_json(each.own),
        "certain": each.sure,
        "spread": each.spread,
        "list_price": each.by_list,
        "charged_before": [day.isoformat() for day in each.seen],
    }


def _in_force(status: BudgetStatus) -> list[shapes.StepInForce]:
    standing = status.standing
    if standing is None or standing.share is None:
        return []
    return [
        {"at_percent": percent_words(step.at), "step": step.kind.value}
        for step in status.rule.steps
        if standing.reached(step)
    ]


@overload
def _decimal(value: Decimal) -> str: ...
@overload
def _decimal(value: Decimal | None) -> str | None: ...
def _decimal(value: Decimal | None) -> str | None:
    return None if value is None else f"{value.quantize(_PLACES).normalize():f}"
