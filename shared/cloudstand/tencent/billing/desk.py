"""What can be set about an emulator's bill, and the budgets of its console."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from hashlib import blake2b
from typing import Any


@dataclass(slots=True)
class BillDesk:
    """Attributes may be set at any time.

    `ready` False: the bill is being prepared. `total_short_by`: how many records the cached total of the detail lacks.
    `left_out`: resources that stand in the totals and not in the detail. `tag_keys`: those that were made cost
    allocation tags, None for all; no record carries another. `pay_themselves`: members whose charges are not in the
    bill of who leads the organisation. `settled`: by which step a thing that runs is charged, a day or an hour.
    `budget_code`: what the second layer of the budget actions answers, 0 for success.
    """

    ready: bool = True
    total_short_by: int = 0
    left_out: frozenset[str] = frozenset()
    tag_keys: frozenset[str] | None = None
    pay_themselves: frozenset[str] = frozenset()
    settled: timedelta = timedelta(days=1)
    budget_code: int = 0
    budgets: list[Mapping[str, Any]] = field(default_factory=list)

    def payer_of(self, account: str, leader: str) -> str:
        """Who pays for what an account uses."""
        return account if account in self.pay_themselves else leader

    def set_up_budget(
        self,
        name: str,
        quota: str,
        *,
        account: str,
        actual: Sequence[str] = (),
        forecast: Sequence[str] = (),
        cycle: str = "MONTH",
        limits: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> None:
        """Somebody makes a budget in the console of `account`; `more` replaces fields of the record."""
        number = int.from_bytes(blake2b(name.encode(), digest_size=6).digest(), "big")
        kinds = [("ACTUAL", value) for value in actual] + [("FORECAST", value) for value in forecast]
        self.budgets.append(
            {
                "BudgetId": f"19635{number:014d}",
                "BudgetName": name,
                "BudgetQuota": quota,
                "BudgetQuotaJson": None,
                "CycleType": cycle,
                "PlanType": "FIX",
                "BillType": "BILL",
                "FeeType": "REAL_COST",
                "PeriodBegin": "2026-01",
                "PeriodEnd": "2026-12",
                "Dimensions": "COST",
                "DimensionsRange": None if limits is None else dict(limits),
                "WarnJson": [
                    {"WarnType": kind, "CalType": "PERCENTAGE", "ThresholdValue": value} for kind, value in kinds
                ],
                "WaveThresholdJson": [],
                "BudgetStatus": "ACTIVE",
                "BudgetProgress": "0.00",
                "RealCost": "0.00",
                "ForecastCost": None,
                "ForecastProgress": None,
                "HasForecast": "NO_FORECAST",
                "CurDateDesc": "2026-03",
                "MoneyStatus": 1,
                "PayerUin": int(account),
                "BudgetNote": "",
                "BudgetSendInfoForm": [],
                "DefaultMode": 0,
                "RemindTimes": 0,
                "TemplateType": "CUS",
                "CreateTime": "2026-01-02 10:00:00",
                "UpdateTime": "2026-01-02 10:00:00",
                **more,
            }
        )
