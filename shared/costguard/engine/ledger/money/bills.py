"""Bills as last read, condensed: what a budget counts by while the vendor renews its own."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

from costguard.domain.errors import VersionConflictError
from costguard.domain.money import Bill, SpendLine, SpendScope
from costguard.engine.ledger.codec import record_of, value_of
from costguard.ports import Put, Record, RecordStore, Target

_DAY = timedelta(days=1)
_HEADER = "bill"  # key: payer / scope
_MONTH = "bill_month"  # key: payer / scope / 2026-11, so that no record grows with a year


@dataclass(frozen=True, slots=True)
class _Header:
    since: datetime
    complete_until: datetime | None
    read_at: datetime
    source: str
    months: tuple[str, ...]
    zone: str = ""
    final_until: datetime | None = None


@dataclass(frozen=True, slots=True)
class _Month:
    lines: tuple[SpendLine, ...]


class BillRepository:
    """One bill per payer and scope; a month read again replaces what was known of it."""

    def __init__(self, store: RecordStore) -> None:
        self._store = store

    def get(self, target: Target, scope: SpendScope) -> Bill | None:
        """The bill as last read, or None."""
        record = self._store.get(_HEADER, _key(target, scope))
        return None if record is None else self._bill(target.cloud, record)

    def of_cloud(self, cloud: str) -> tuple[Bill, ...]:
        """Every bill of a cloud's payers as last read; those of several scopes may hold the same charges."""
        return tuple(self._bill(cloud, record) for record in self._store.query(_HEADER, f"{cloud}:"))

    def put(self, target: Target, scope: SpendScope, bill: Bill, begin: datetime) -> bool:
        """Keep a bill of which the time from `begin` on is new; False where another run wrote first."""
        key = _key(target, scope)
        known = self._store.get(_HEADER, key)
        by_month: dict[str, list[SpendLine]] = {}
        for line in bill.lines:
            by_month.setdefault(_month_of(line.charge_period_start), []).append(line)
        months = tuple(sorted(by_month))
        header = _Header(
            bill.since, bill.complete_until, bill.read_at, bill.source, months, bill.zone, bill.final_until
        )
        operations = [Put(record_of(_HEADER, key, header), known.version if known is not None else 0)]
        for month in months:
            if known is None or month >= _month_of(begin - _DAY):  # and a day that began before, where it is elsewhere
                old = self._store.get(_MONTH, f"{key}/{month}")
                record = record_of(_MONTH, f"{key}/{month}", _Month(tuple(by_month[month])))
                operations.append(Put(record, old.version if old is not None else 0))
        try:
            self._store.transact(operations)
        except VersionConflictError:
            return False
        return True

    def _bill(self, cloud: str, record: Record) -> Bill:
        header = value_of(_Header, record)
        months = (self._store.get(_MONTH, f"{record.key}/{month}") for month in header.months)
        lines = tuple(line for month in months if month is not None for line in value_of(_Month, month).lines)
        return Bill(
            cloud,
            lines,
            header.since,
            header.complete_until,
            header.read_at,
            header.source,
            header.zone,
            header.final_until,
        )


def _month_of(moment: datetime) -> str:
    return moment.astimezone(timezone.utc).strftime("%Y-%m")


def _key(target: Target, scope: SpendScope) -> str:
    """The payer's own name, and a digest of the scope's words."""
    words = (scope.clouds, scope.accounts, scope.regions, scope.tags)
    payer = f"{target.cloud}:{target.account or 'own'}{'+members' if target.organisation else ''}"
    return f"{payer}/{hashlib.sha256(repr(words).encode()).hexdigest()[:24]}"
