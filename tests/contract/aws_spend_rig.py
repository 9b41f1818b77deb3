"""Cost Explorer and Budgets of the embedded AWS, for the contract suite of `SpendSource`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from tests.contract.aws_stand_in import patient_pacer
from tests.contract.spend_rigs import Scene, WireRig, scene

from cloudstand.aws.core.server import Call, Refused
from cloudstand.aws.emulator import EmbeddedAws
from cloudstand.clouds import CLOSED_REGION
from cloudstand.world.records import Operation
from costguard.cli.sandbox.running import EXTERNAL_ID, ROLE
from costguard.domain.money import SpendScope, VendorBudget
from costguard.ports import Target
from costguard.providers.aws.billing.source import AwsSpend
from costguard.providers.aws.core.session import AwsSession
from costguard.providers.aws.iam.permissions import OPERATIONS

_PERIODS = {"daily": "DAILY", "monthly": "MONTHLY", "quarterly": "QUARTERLY", "yearly": "ANNUALLY"}
_DIMENSIONS = {"LINKED_ACCOUNT": "accounts", "REGION": "regions"}


@dataclass(frozen=True)
class FewTimes(Refused):
    """A refusal that ends: one for each item of `left`."""

    left: list[int] = field(default_factory=list)

    def matches(self, call: Call) -> bool:
        if not self.left or not super().matches(call):
            return False
        self.left.pop()
        return True


class AwsSpendRig(WireRig):
    """The management account of an organisation of two."""

    precision = Decimal("1e-9")  # Cost Explorer tells ten decimal places
    most_requests = 5  # the costs of everything, of EC2 at two prices and of SageMaker; and for nothing, who pays

    def __init__(self, scene: Scene, aws: EmbeddedAws) -> None:
        super().__init__(scene)
        self.aws = aws
        keys = (aws.credentials.access_key_id, aws.credentials.secret_access_key)
        self.session = AwsSession(endpoint_url=aws.url, keys=keys, pacer=patient_pacer())
        self._source = AwsSpend(self.session, now=scene.clock.now)

    def source(self) -> AwsSpend:
        return self._source

    def target(self, *, organisation: bool = True) -> Target:
        return Target("aws", organisation=organisation)

    def member(self) -> Target:
        """The other account, entered by its role."""
        return Target("aws", account=self.places.member, role=ROLE, external_id=EXTERNAL_ID)

    def requests(self) -> Sequence[str]:
        return [f"{call.service}:{call.action}" for call in self.aws.gateway.calls if call.service != "sts"]

    def changes(self) -> Sequence[str]:
        return [operation for operation in self.requests() if OPERATIONS[operation].changes_something]

    def throttle(self, times: int) -> None:
        message = "You made too many calls in a short period of time. Try again later."
        self.aws.gateway.refused.append(
            FewTimes("ce", "GetCostAndUsage", "LimitExceededException", message, left=[0] * times)
        )

    def small_pages(self) -> None:
        self.aws.gateway.billing.costs.page_size = 3
        self.aws.gateway.billing.budgets.page_size = 1

    def as_new(self) -> None:
        """Nothing refused, asked or set up yet; the world stays as it is."""
        gateway = self.aws.gateway
        gateway.refused.clear()
        gateway.calls.clear()
        gateway.billing.budgets.there.clear()
        gateway.billing.costs.asked.clear()
        gateway.billing.costs.inactive_tags.clear()
        gateway.billing.costs.page_size = gateway.billing.budgets.page_size = 1_000
        self.world.allow("aws", self.places.payer, Operation.BILL)
        self._source = AwsSpend(self.session, now=self.scene.clock.now)

    def console_scope(self) -> SpendScope:
        return SpendScope(
            clouds=("aws",),
            accounts=(self.places.member,),
            regions=(self.places.home,),
            tags=(("project", "vision"), ("team", "research")),
        )

    def set_up_budget(self, budget: VendorBudget) -> None:
        document: dict[str, Any] = {
            "BudgetName": budget.name,
            "BudgetType": "COST",
            "TimeUnit": _PERIODS[budget.period],
            "BudgetLimit": {"Amount": str(budget.amount.amount), "Unit": budget.amount.currency},
        }
        conditions = list(_conditions(budget.scope))
        if conditions:
            document["FilterExpression"] = conditions[0] if len(conditions) == 1 else {"And": conditions}
        notifications = [
            {
                "NotificationType": kind,
                "ComparisonOperator": "GREATER_THAN",
                "Threshold": float(threshold),
                "ThresholdType": "PERCENTAGE",
                "NotificationState": "OK",
            }
            for kind, thresholds in (("ACTUAL", budget.actual_thresholds), ("FORECASTED", budget.forecast_thresholds))
            for threshold in thresholds
        ]
        self.aws.gateway.billing.budgets.set_up(budget.account, document, notifications)


def _conditions(scope: SpendScope) -> Iterator[dict[str, Any]]:
    for key, name in _DIMENSIONS.items():
        values = getattr(scope, name)
        if values is not None:
            yield {"Dimensions": {"Key": key, "Values": list(values), "MatchOptions": ["EQUALS"]}}
    for tag, value in scope.tags:
        yield {"Tags": {"Key": tag, "Values": [value], "MatchOptions": ["EQUALS"]}}


@contextmanager
def aws_spend() -> Iterator[AwsSpendRig]:
    """For `WIRES`."""
    made = scene("aws")
    with EmbeddedAws(made.world, made.door, EXTERNAL_ID, CLOSED_REGION) as aws:
        rig = AwsSpendRig(made, aws)
        try:
            yield rig
        finally:
            rig.session.close()
