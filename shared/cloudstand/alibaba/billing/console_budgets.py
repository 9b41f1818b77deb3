"""Budgets that somebody set up in the cloud's console, as DescribeCostBudgetsSummary tells them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any


@dataclass(frozen=True, slots=True)
class ConsoleBudget:
    """One budget. `kind`: cost, byquantity or asset; `cycle`: daily, monthly, quarterly or yearly; months `YYYY-MM`."""

    account: str
    name: str
    amount: Decimal
    cycle: str = "monthly"
    kind: str = "cost"
    over: bool = False
    spent: Decimal = Decimal(0)
    forecast: Decimal = Decimal(0)
    begin: str = "2026-01"
    end: str = "2026-12"


def described(budget: ConsoleBudget) -> Mapping[str, Any]:
    """The record of a budget; in the vendor's examples the inner names begin with small letters."""
    share = budget.spent / budget.amount * 100 if budget.amount else Decimal(0)
    return {
        "BudgetName": budget.name,
        "BudgetStatus": "overdue" if budget.over else "notOverdue",
        "BudgetType": budget.kind,
        "Budget": {"budgetCycleType": budget.cycle, "totalBudgetAmount": float(budget.amount), "budgetMemo": ""},
        "CalculatedValues": {
            "actualConsumeSum": float(budget.spent),
            "actualAddForecastedAmount": float(budget.spent + budget.forecast),
            "actualAndBudgetComparison": f"{share:.2f}%",
        },
        "ConsumePeriod": {"consumePeriodBegin": budget.begin, "consumePeriodEnd": budget.end},
    }
