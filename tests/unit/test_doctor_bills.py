"""The doctor reads the bill where there are budgets, and never takes silence for zero."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from tests.builders import policy, usd
from tests.unit.test_budget import line

from costguard.domain.errors import AccessDeniedError, ThrottledError
from costguard.domain.money import SpendReport, SpendScope, VendorBudget
from costguard.domain.refs import Shard
from costguard.domain.resources import Gap, GapKind
from costguard.engine.doctor.doctor import examine_bills
from costguard.guards.budget.rules import BudgetPeriod, BudgetRule
from costguard.guards.rules.common import Mode
from costguard.ports import Target
from costguard.report.doctor.checks import Code, DoctorCheck, Health

NOW = datetime(2026, 11, 21, 12, tzinfo=timezone.utc)
WHOLE = SpendReport((line(NOW - timedelta(days=2)),), NOW - timedelta(hours=30), NOW, "cost-explorer")
BUDGET = BudgetRule("all", Mode.OBSERVE, SpendScope(), BudgetPeriod(), usd("5"))


class Source:
    """A bill that answers this, or fails with that."""

    def __init__(self, answer: SpendReport | Exception) -> None:
        self.answer = answer
        self.asked = 0

    def read(
        self, target: Target, scopes: Sequence[SpendScope], since: datetime, until: datetime
    ) -> Mapping[SpendScope, SpendReport]:
        del target, since, until
        self.asked += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        return dict.fromkeys(scopes, self.answer)

    def budgets(self, target: Target) -> Sequence[VendorBudget]:
        del target
        return ()


def examined(answer: SpendReport | Exception, *budgets: BudgetRule) -> tuple[list[DoctorCheck], Source]:
    source = Source(answer)
    said = replace(policy(), budgets=budgets)
    return list(examine_bills(said, [Target("aws", "111122223333")], {"aws": source}, NOW)), source


def test_without_budgets_nobody_pays_for_the_question() -> None:
    checks, source = examined(WHOLE)
    assert (checks, source.asked) == ([], 0)


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (WHOLE, Code.BILL_READ),
        (replace(WHOLE, lines=()), Code.BILL_SAYS_NOTHING),
        (replace(WHOLE, complete_until=None), Code.BILL_SAYS_NOTHING),
        (replace(WHOLE, gaps=(Gap(Shard("aws", ""), "bill", GapKind.TRUNCATED, "page 2"),)), Code.BILL_UNTOLD),
        (ThrottledError("slow down"), Code.BILL_UNTOLD),
        (AccessDeniedError("no", operation="ce:GetCostAndUsage"), Code.BILL_DENIED),
    ],
)
def test_every_answer_has_its_code(answer: Any, code: Code) -> None:
    (check,), _ = examined(answer, BUDGET)
    assert check.code is code
    assert check.health is (Health.OK if code is Code.BILL_READ else Health.WARNING)


def test_a_denied_bill_names_the_permission() -> None:
    (check,), _ = examined(AccessDeniedError("no", operation="ce:GetCostAndUsage"), BUDGET)
    assert check.details[0].fix == "allow ce:GetCostAndUsage"
