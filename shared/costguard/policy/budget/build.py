"""From accepted documents to the frozen budgets, rates and classes. Imported only while a policy is loaded."""

from __future__ import annotations

from collections.abc import Iterable

from typing_extensions import assert_never

from costguard.domain.money import Money, SpendScope
from costguard.estimates.exchange import ExchangeRate
from costguard.guards.budget.rules import (
    BudgetPeriod,
    BudgetRule,
    Counted,
    PeriodKind,
    Trust,
)
from costguard.guards.rules.common import Limits, Mode
from costguard.policy.budget.documents import BudgetDocument, CoversDocument, ExchangeRateDocument
from costguard.policy.budget.steps import budget_steps, shares_at
from costguard.policy.budget.terms import ordered_scope, with_budget_digest

_UTC = "UTC"


def budget_of(budget: BudgetDocument, ceiling: Mode, zone: str | None) -> BudgetRule:
    """The rule; `zone` is that of the policy's calendar."""
    safety = budget.safety
    period, amount = _period(budget, budget.zone or zone or _UTC)
    return with_budget_digest(
        BudgetRule(
            name=budget.name,
            mode=ceiling if budget.mode is None else budget.mode,
            covers=SpendScope() if budget.covers is None else _scope(budget.covers),
            period=period,
            amount=amount,
            alert_at=(*budget.alert_at, *shares_at(budget.at)),
            forecast_alert_at=budget.forecast_alert_at,
            steps=budget_steps(budget.at),
            tell=budget.tell,
            counted=Counted(budget.counts.cost, budget.counts.credits, budget.counts.tax),
            trust=Trust(budget.trust.bill_not_older_than, budget.trust.estimated_at_most),
            limits=Limits(
                actions_per_day=safety.actions_per_day,
                fleet_share_per_day=safety.fleet_share_per_day,
                hourly_cost_stopped_per_day=safety.hourly_cost_stopped_per_day,
                local_disk=safety.local_disk,
            ),
            surge_alert=budget.surge_alert,
        )
    )


def exchange_rates_of(rates: Iterable[ExchangeRateDocument]) -> tuple[ExchangeRate, ...]:
    """Every rate, by pair and day."""
    found = (ExchangeRate(each.base, each.quote, each.rate, each.since) for each in rates)
    return tuple(sorted(found, key=lambda rate: (rate.base, rate.quote, rate.since)))


def _period(budget: BudgetDocument, zone: str) -> tuple[BudgetPeriod, Money]:
    for kind in PeriodKind:
        amount = _amount(budget, kind)
        if amount is not None:
            return BudgetPeriod(kind, zone, budget.first, budget.last), amount
    message = f"budget {budget.name} has no amount"  # its document does not allow it
    raise AssertionError(message)


def _amount(budget: BudgetDocument, kind: PeriodKind) -> Money | None:
    if kind is PeriodKind.MONTHLY:
        return budget.monthly
    if kind is PeriodKind.QUARTERLY:
        return budget.quarterly
    if kind is PeriodKind.YEARLY:
        return budget.yearly
    if kind is PeriodKind.DATED:
        return budget.total
    assert_never(kind)


def _scope(covers: CoversDocument) -> SpendScope:
    return ordered_scope(SpendScope(covers.clouds, covers.accounts, covers.regions, tuple((covers.tags or {}).items())))
