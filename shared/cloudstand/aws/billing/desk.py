"""The services that know money, Cost Explorer and Budgets: who may ask them, where, and what they answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cloudstand.aws.billing.budgets import Budgets
from cloudstand.aws.billing.cost_explorer import CostExplorer
from cloudstand.aws.core.questions import RefusedQuestionError
from cloudstand.world.cloud import World
from cloudstand.world.records import Operation

_CLOUD, _REGION = "aws", "us-east-1"  # the only endpoint of both in this partition
_PERMISSIONS = {"DescribeBudgets": "budgets:ViewBudget", "DescribeBudgetNotificationsForAccount": "budgets:ViewBudget"}

Answer = Callable[[str, Mapping[str, Any]], dict[str, Any]]


class Billing:
    """Both services over one world. `costs` and `budgets` are there to set up what they show."""

    services = frozenset({"ce", "budgets"})

    def __init__(self, world: World, accounts: Sequence[str]) -> None:
        self._world = world
        self.costs = CostExplorer(world, accounts, _CLOUD)
        self.budgets = Budgets(world, self.costs)
        self._answers: Mapping[tuple[str, str], Answer] = {
            ("ce", "GetCostAndUsage"): self.costs.get_cost_and_usage,
            ("ce", "ListCostAllocationTags"): self.costs.list_cost_allocation_tags,
            ("budgets", "DescribeBudgets"): self.budgets.describe_budgets,
            ("budgets", "DescribeBudgetNotificationsForAccount"): self.budgets.describe_notifications,
        }

    def answer(
        self, service: str, action: str, account: str, region: str, request: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Answer one request of `account`.

        Raises:
            RefusedQuestionError: as the service would.
        """
        answer = self._answers.get((service, action))
        if answer is None:
            raise RefusedQuestionError("UnknownOperationException", f"The sandbox has no {action}.")
        if region != _REGION:
            message = f"Credential should be scoped to a valid region, not {region!r}."
            raise RefusedQuestionError("InvalidSignatureException", message)
        if not self._world.may(_CLOUD, account, Operation.BILL):
            permission = _PERMISSIONS.get(action, f"{service}:{action}")
            caller = f"arn:aws:sts::{account}:assumed-role/costguard/costguard"
            message = (
                f"User: {caller} is not authorized to perform: {permission} on resource: arn:aws:{service}:{region}:"
                f"{account}:/{action} because no identity-based policy allows the {permission} action"
            )
            raise RefusedQuestionError("AccessDeniedException", message)
        return answer(account, request)
