"""The budgets of the Billing console, which moto answers in part: set up here in process, read over the wire."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from cloudstand.aws.billing.cost_explorer import CostExplorer
from cloudstand.aws.core.questions import Question, RefusedQuestionError, expression
from cloudstand.world.cloud import World

_NEVER_ENDS = 3706473600  # 15 June 2087, which stands for no end
_DEFAULT_PAGE = 100
_MOST = 1_000
_DEFAULT_COST_TYPES = {
    "IncludeTax": True,
    "IncludeSubscription": True,
    "UseBlended": False,
    "IncludeRefund": True,
    "IncludeCredit": True,
    "IncludeUpfront": True,
    "IncludeRecurring": True,
    "IncludeOtherSubscription": True,
    "IncludeSupport": True,
    "IncludeDiscount": True,
    "UseAmortized": False,
}


@dataclass(frozen=True, slots=True)
class ConsoleBudget:
    """One budget as somebody set it up: the API's own `Budget` and `Notification` structures."""

    account: str
    budget: Mapping[str, Any]
    notifications: Sequence[Mapping[str, Any]] = ()


class Budgets:
    """AWS Budgets of every account: those `there`. `page_size` caps a page however many are asked for."""

    def __init__(self, world: World, costs: CostExplorer) -> None:
        self._world = world
        self._costs = costs
        self.there: list[ConsoleBudget] = []
        self.page_size = _MOST

    def set_up(self, account: str, budget: Mapping[str, Any], notifications: Sequence[Mapping[str, Any]] = ()) -> None:
        """Somebody makes a budget in the console of `account`, or changes it."""
        name = budget["BudgetName"]
        kept = [one for one in self.there if (one.account, one.budget["BudgetName"]) != (account, name)]
        self.there = [*kept, ConsoleBudget(account, budget, tuple(notifications))]

    def describe_budgets(self, account: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Answer one DescribeBudgets request.

        Raises:
            RefusedQuestionError: as the service would.
        """
        with_filter = request.get("ShowFilterExpression") is True
        return self._paged(
            account, request, "Budgets", [self._shown(one, with_filter=with_filter) for one in self._of(account)]
        )

    def describe_notifications(self, account: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Answer one DescribeBudgetNotificationsForAccount request.

        Raises:
            RefusedQuestionError: as the service would.
        """
        found = [
            {"BudgetName": one.budget["BudgetName"], "Notifications": [dict(each) for each in one.notifications]}
            for one in self._of(account)
        ]
        return self._paged(account, request, "BudgetNotificationsForAccount", found)

    def _of(self, account: str) -> list[ConsoleBudget]:
        return [one for one in self.there if one.account == account]

    def _paged(
        self, account: str, request: Mapping[str, Any], key: str, items: Sequence[dict[str, Any]]
    ) -> dict[str, Any]:
        if request.get("AccountId") != account:
            message = f"Account {account} is not authorized to see the budgets of {request.get('AccountId')}"
            raise RefusedQuestionError("AccessDeniedException", message)
        most, token = request.get("MaxResults", _DEFAULT_PAGE), request.get("NextToken") or "0"
        if not isinstance(most, int) or not 1 <= most <= _MOST:
            raise RefusedQuestionError("InvalidParameterException", "MaxResults must be from 1 to 1000")
        if not str(token).isdigit():
            raise RefusedQuestionError("InvalidNextTokenException", "The pagination token is invalid.")
        first, size = int(token), min(most, self.page_size)
        answer: dict[str, Any] = {key: items[first : first + size]}
        if first + size < len(items):
            answer["NextToken"] = str(first + size)
        return answer

    def _shown(self, one: ConsoleBudget, *, with_filter: bool) -> dict[str, Any]:
        month = self._world.now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
        shown: dict[str, Any] = {
            "CostTypes": _DEFAULT_COST_TYPES,
            "TimePeriod": {"Start": month.timestamp(), "End": _NEVER_ENDS},
            "LastUpdatedTime": month.timestamp(),
            "CalculatedSpend": self._spend(one, month),
            **one.budget,
        }
        if not with_filter:
            shown.pop("FilterExpression", None)
        return shown

    def _spend(self, one: ConsoleBudget, month: datetime) -> dict[str, Any]:
        """This month's, by the filter in the new form; what a period of another length says is for its maker."""
        given = one.budget.get("FilterExpression")
        question = Question(
            since=month,
            until=self._world.now + timedelta(days=1),
            monthly=True,
            holds=expression(given) if given else lambda _: True,
            metrics=(),
            keys=(),
        )
        unit = one.budget.get("BudgetLimit", {}).get("Unit", "USD")
        return {"ActualSpend": {"Amount": f"{self._costs.spent(one.account, question):.3f}", "Unit": unit}}
