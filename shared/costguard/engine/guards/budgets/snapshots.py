"""Where budgets stood when they were last looked at, kept so that reports and digests ask no bill."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from decimal import Decimal

from costguard.engine.guards.budgets.look import BudgetLook
from costguard.engine.ledger.looks import LookRepository
from costguard.engine.ledger.memory import Memory
from costguard.guards.budget.judge import BudgetStatus
from costguard.report.facts import BudgetSnapshot


def keep_budgets(memory: Memory, looked: BudgetLook) -> None:
    """Remember where every budget stands.

    Raises:
        LedgerError: memory failed.
    """
    LookRepository(memory.store).keep_budgets(budget_sights(looked))


def budget_sights(looked: BudgetLook) -> Iterator[BudgetSnapshot]:
    """Where each budget stands that has a period now."""
    for status in looked.statuses:
        if status.period is None or status.spent is None:
            continue
        days = status.period.days
        ahead = status.forecast
        yield BudgetSnapshot(
            name=status.rule.name,
            at=looked.now,
            period=status.period.key,
            first=days[0].day,
            last=days[-1].day,
            amount=status.rule.amount,
            spent=status.spent.total,
            days=tuple(_days(status)),
            billed=status.spent.billed,
            burn_per_hour=status.burn_per_hour,
            best=None if ahead is None else ahead.low,
            expected=None if ahead is None else ahead.expected,
            worst=None if ahead is None else ahead.high,
            unread=status.unread,
            doubts=status.doubts,
        )


def _days(status: BudgetStatus) -> Iterator[tuple[date, Decimal]]:
    first = status.period.days[0].day if status.period is not None else date.max
    yield from ((one.day, one.spent.amount) for one in status.history if one.day >= first)
