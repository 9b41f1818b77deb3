"""What was known of a budget in one of its periods: its amount then, and whether the period is judged for good."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from costguard.domain.money import Money
from costguard.engine.ledger.codec import record_of, value_of
from costguard.engine.ledger.contention import until_uncontested
from costguard.ports import RecordStore

_KIND = "budget_period"  # key: what is watched / period / name of the budget


@dataclass(frozen=True, slots=True)
class BudgetPeriodKnown:
    """A budget as it was when it was last seen in a period, by the name it had then.

    `closed`: its bills are final and it was judged by them, so that nothing more is told of it. `again` are the ids of
    early alerts that did not come true, so that they stand for nothing.
    """

    name: str
    amount: Money
    seen_at: datetime
    closed: bool = False
    again: tuple[str, ...] = ()


class BudgetPeriodRepository:
    """Periods by what a budget watches (see `scope_id`) and the period's key, above one store."""

    def __init__(self, store: RecordStore) -> None:
        self._store = store

    def of(self, scope: str, period: str) -> Mapping[str, BudgetPeriodKnown]:
        """Every budget of this scope that was seen in this period, by its name then."""
        found = (value_of(BudgetPeriodKnown, record) for record in self._store.query(_KIND, f"{scope}/{period}/"))
        return {one.name: one for one in found}

    def see(self, scope: str, period: str, name: str, amount: Money, now: datetime) -> None:
        """Remember that a budget is this much in this period; what is known already is not written again.

        Raises:
            LedgerError: memory failed.
        """

        def seen(known: BudgetPeriodKnown | None) -> BudgetPeriodKnown:
            if known is not None and (known.amount == amount or known.seen_at > now):
                return known
            return BudgetPeriodKnown(name, amount, now, again=() if known is None else known.again)

        self._change(f"{scope}/{period}/{name}", seen)

    def arm(self, scope: str, period: str, alert_ids: Iterable[str]) -> None:
        """These early alerts did not come true, whatever the budget was called when they were told.

        Raises:
            LedgerError: memory failed.
        """
        more = tuple(sorted(alert_ids))

        def armed(known: BudgetPeriodKnown | None) -> BudgetPeriodKnown | None:
            return None if known is None else replace(known, again=tuple(dict.fromkeys((*known.again, *more))))

        for name in self.of(scope, period):
            self._change(f"{scope}/{period}/{name}", armed)

    def close(self, scope: str, period: str, name: str) -> None:
        """Nothing more is told of it.

        Raises:
            LedgerError: memory failed.
        """
        self._change(f"{scope}/{period}/{name}", lambda known: None if known is None else replace(known, closed=True))

    def _change(self, key: str, change: Callable[[BudgetPeriodKnown | None], BudgetPeriodKnown | None]) -> None:
        def attempt() -> None:
            record = self._store.get(_KIND, key)
            before = None if record is None else value_of(BudgetPeriodKnown, record)
            after = change(before)
            if after is not None and after != before:
                self._store.put(record_of(_KIND, key, after), 0 if record is None else record.version)

        until_uncontested(attempt, "a budget's period")
