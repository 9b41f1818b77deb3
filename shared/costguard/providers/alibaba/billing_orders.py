"""Orders of earlier cycles whose terms reach into the time that is asked about.

A cycle's orders come as one answer without days. Where a term may reach into the time asked about, the days of its
cycle are asked one by one, until their orders add up to the cycle's.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime

from costguard.domain.money import Money, totals
from costguard.providers.alibaba.billing_answers import Item, Row
from costguard.providers.alibaba.billing_calendar import Cycle

CYCLES_KEPT = 18
"""How many cycles the vendor answers for, the present one among them."""

Ask = Callable[[Cycle, "date | None"], Sequence[Row]]
"""The prepaid records of a cycle, or of one day of it."""


@dataclass(slots=True)
class EarlierOrders:
    """Orders by the day they were made; what is final is asked once in the life of this. Serves many threads."""

    ask: Ask
    _final: dict[tuple[Cycle, date | None], Sequence[Row]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def reaching(self, since: date, begin: datetime, now: date) -> list[Row]:
        """Orders made in cycles before that of `since`, each with its day, whose terms go on after `begin`.

        Raises:
            ProviderError: they could not all be read.
        """
        found: list[Row] = []
        oldest = Cycle.of(now).earlier(CYCLES_KEPT - 1)
        cycle = Cycle.of(since).earlier(1)
        while cycle >= oldest:
            whole = self._rows(cycle, None, now)
            if any(_may_reach(row, cycle, begin) for row in whole):
                dated = self._dated(cycle, totals(row.due for row in whole), now)
                found += [row for row in dated if row.day and row.term and row.term.end(row.day) > begin]
            cycle = cycle.earlier(1)
        return found

    def _dated(self, cycle: Cycle, whole: Sequence[Money], now: date) -> list[Row]:
        """The orders of a cycle by day, until they add up to the whole."""
        found: list[Row] = []
        for day in cycle.days():
            found += self._rows(cycle, day, now)
            if totals(row.due for row in found) == whole:
                break
        return found

    def _rows(self, cycle: Cycle, day: date | None, now: date) -> Sequence[Row]:
        with self._lock:
            known = self._final.get((cycle, day))
        if known is not None:
            return known
        rows = [row for row in self.ask(cycle, day) if row.item is Item.ORDER]
        if cycle.is_final(now):
            with self._lock:
                self._final[cycle, day] = rows
        return rows


def _may_reach(row: Row, cycle: Cycle, begin: datetime) -> bool:
    return row.item is Item.ORDER and row.term is not None and row.term.end(cycle.last) > begin
