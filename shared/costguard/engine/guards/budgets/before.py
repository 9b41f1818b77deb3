"""The period before: judged for alerts until its bills are final, by the amount that the budget had in it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from costguard.engine.ledger.money.budget_periods import BudgetPeriodKnown, BudgetPeriodRepository
from costguard.estimates.period import Period
from costguard.guards.budget.alerts import scope_id
from costguard.guards.budget.judge import BudgetStatus
from costguard.guards.budget.rules import BudgetRule, period_at, period_before
from costguard.ports import RecordStore


@dataclass(frozen=True, slots=True)
class OpenPeriod:
    """A period that is over and not judged for good: `rule` with the amount it had then, and its name then."""

    rule: BudgetRule
    period: Period
    known_as: str


def open_before(store: RecordStore, rules: Iterable[BudgetRule], now: datetime) -> Iterator[OpenPeriod]:
    """The period before the present one of each budget that was seen in it.

    A budget that is new has none: what was spent before it was written is nobody's threshold.
    """
    in_force = tuple(rules)
    names = frozenset(rule.name for rule in in_force)
    for rule in in_force:
        period = period_before(rule.period, now)
        if period is None:
            continue
        then = _then(rule, BudgetPeriodRepository(store).of(scope_id(rule), period.key), names)
        if then is not None and not then.closed:
            yield OpenPeriod(replace(rule, amount=then.amount), period, then.name)


def see_periods(store: RecordStore, rules: Iterable[BudgetRule], now: datetime) -> None:
    """Remember how much each budget is in its present period.

    Raises:
        LedgerError: memory failed.
    """
    known = BudgetPeriodRepository(store)
    for rule in rules:
        period = period_at(rule.period, now)
        if period is not None:
            known.see(scope_id(rule), period.key, rule.name, rule.amount, now)


def close_periods(store: RecordStore, before: Iterable[tuple[OpenPeriod, BudgetStatus]]) -> None:
    """Judge no more what was judged by bills that are final.

    Raises:
        LedgerError: memory failed.
    """
    for one, status in before:
        if status.final:
            BudgetPeriodRepository(store).close(scope_id(one.rule), one.period.key, one.known_as)


def _then(rule: BudgetRule, known: Mapping[str, BudgetPeriodKnown], names: frozenset[str]) -> BudgetPeriodKnown | None:
    """The budget as it was then: of its name, or of one that no budget has any more, for it may have been renamed."""
    if rule.name in known:
        return known[rule.name]
    gone = [one for one in known.values() if one.name not in names]
    return max(gone, key=lambda one: (one.amount == rule.amount, one.seen_at), default=None)
