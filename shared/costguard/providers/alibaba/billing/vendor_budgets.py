"""Budgets of the cloud's console, as far as BssOpenApi tells them: name, cycle, amount and what is spent.

It tells neither what a budget covers, nor when it alerts, nor in which currency: the amount is taken to be in that of
the site. The API is in beta, for accounts that the vendor has chosen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from costguard.domain.money import Money, SpendScope, VendorBudget
from costguard.domain.refs import Shard
from costguard.providers.alibaba.billing.answers import amount_in
from costguard.providers.alibaba.billing.prices import CURRENCIES
from costguard.providers.alibaba.core.products import structures_in
from costguard.providers.alibaba.core.session import AlibabaSession
from costguard.providers.kit.core.calls import by_token
from costguard.providers.kit.core.credentials import without_secrets
from costguard.providers.kit.core.fields import Fields, as_documented, named, part, text

_BUDGETS, _PAGE = "bss:DescribeCostBudgetsSummary", 10
UNTOLD = "what it covers and when it alerts, which the API does not tell"
_CYCLES: Mapping[str, str] = MappingProxyType(
    {"daily": "daily", "monthly": "monthly", "quarterly": "quarterly", "yearly": "yearly"}
)


def read_budgets(session: AlibabaSession, shard: Shard) -> Sequence[VendorBudget]:
    """Budgets of money that are not over.

    Raises:
        ProviderError: they could not all be read, or the vendor has not opened the API to this account.

    API: BSS DescribeCostBudgetsSummary, 10 a page.
    """
    found: list[VendorBudget] = []
    asked = {"BudgetType": "cost", "BudgetStatus": "notOverdue", "MaxResults": _PAGE}
    for answer in whole_pages(session, shard, _BUDGETS, asked):
        with as_documented(_BUDGETS):
            items = structures_in(answer, "Data.Items", _BUDGETS)
            found += [budget_of(item, shard.cloud, shard.account) for item in items]
    return found


def budget_of(record: Fields, cloud: str, account: str) -> VendorBudget:
    """One element of `Data.Items` of DescribeCostBudgetsSummary."""
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


def whole_pages(
    session: AlibabaSession, shard: Shard, operation: str, asked: Mapping[str, Any]
) -> Iterator[Mapping[str, Any]]:
    """Every page as a whole answer: more of it matters than its list."""
    action = operation.partition(":")[2]

    def ask(page: dict[str, str]) -> dict[str, Any]:
        return session.call(shard, "bss", action, **{**asked, **page})

    for (answer,) in by_token(operation, ask, lambda answer: [answer], _next_token):
        yield answer


def _next_token(answer: Mapping[str, Any]) -> str:
    data = part(answer, "Data")
    return "" if data.get("NextToken") is None else text(data, "NextToken")
