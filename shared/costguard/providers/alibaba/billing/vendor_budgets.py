"""Budgets of the cloud's console, as far as BssOpenApi tells them: name, cycle, amount and what is spent.

It tells neither what a budget covers, nor when it alerts, nor in which currency: the amount is taken to be in that of
the site. The API is in beta, for accounts that the vendor has chosen.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from costguard.domain.money import Money, SpendScope, VendorBudget
from costguard.providers.alibaba.billing.answers import amount_in
from costguard.providers.alibaba.billing.prices import CURRENCIES
from costguard.providers.kit.core.fields import Fields, named, part, text
from costguard.providers.kit.core.redaction import without_secrets

UNTOLD = "what it covers and when it alerts, which the API does not tell"
_CYCLES: Mapping[str, str] = MappingProxyType(
    {"daily": "daily", "monthly": "monthly", "quarterly": "quarterly", "yearly": "yearly"}
)


def budget_of(record: Fields, cloud: str, account: str) -> VendorBudget:
    """One element of `Data.Items` of DescribeCostBudgetsSummary.

    Raises:
        ValueError, TypeError, LookupError: not as documented.
    """
    budget, spent = _lowered(part(record, "Budget")), _lowered(part(record, "CalculatedValues"))
    currency = CURRENCIES[cloud]
    if "totalBudgetAmount" not in budget:
        message = "TotalBudgetAmount is missing"
        raise ValueError(message)
    return VendorBudget(
        cloud=cloud,
        account=account,
        name=without_secrets(named(record, "BudgetName")),
        amount=Money(amount_in(budget, "totalBudgetAmount"), currency),
        period=_CYCLES[text(budget, "budgetCycleType").lower()],
        scope=SpendScope(clouds=(cloud,)),
        spent=Money(amount_in(spent, "actualConsumeSum"), currency) if "actualConsumeSum" in spent else None,
        unsupported=UNTOLD,
    )


def _lowered(fields: Fields) -> Mapping[str, Any]:
    """The documents write these names with a capital, their examples without."""
    return {name[:1].lower() + name[1:]: value for name, value in fields.items()}
