"""What the budget guard remembers: bills by month, what was told of each period, and launch freezes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from typing import Any

from costguard.domain.errors import VersionConflictError
from costguard.domain.money import Bill, Money, SpendLine, SpendScope
from costguard.engine.ledger.audit.audit import OPERATOR, AuditEntry, AuditTrail, AuditWhat
from costguard.engine.ledger.codec import record_of, until_uncontested, value_of
from costguard.planning.freeze import FreezeState
from costguard.ports import Put, Record, RecordStore, Target, VersionCheck

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


_STATE, _RELEASE = "freeze", "freeze_release"


@dataclass(frozen=True, slots=True)
class Release:
    """Somebody's word that a freeze is not wanted in this period."""

    period: str
    by: str
    reason: str
    at: datetime


class FreezeRepository:
    """Remembers freezes by name."""

    def __init__(self, store: RecordStore) -> None:
        self._store = store
        self._audit = AuditTrail(store)

    def get(self, name: str) -> FreezeState:
        """The freeze as remembered; one never heard of is off."""
        record = self._store.get(_STATE, name)
        return FreezeState(name) if record is None else replace(value_of(FreezeState, record), version=record.version)

    def clouds(self) -> Iterator[str]:
        """Where launch freezes were begun, whatever the policy says by now: they have to be ended there."""
        return (state.of.cloud for state in self.all() if state.of is not None)

    def all(self) -> tuple[FreezeState, ...]:
        """Every freeze ever begun."""
        records = self._store.query(_STATE)
        return tuple(replace(value_of(FreezeState, record), version=record.version) for record in records)

    def move(
        self,
        before: FreezeState,
        after: FreezeState,
        what: AuditWhat,
        facts: dict[str, Any],
        run_id: str,
        now: datetime,
        unchanged: Sequence[VersionCheck] = (),
    ) -> FreezeState:
        """Write `after` in the place of `before`, audited in the same transaction.

        Raises:
            VersionConflictError: another run moved it, or one of `unchanged` has changed; nothing was written.
        """
        stored = replace(after, version=before.version + 1)
        put = Put(record_of(_STATE, after.name, stored), before.version)
        entry = AuditEntry(now, run_id, f"freeze:{after.name}", what, {"phase": after.phase.value, **facts})
        self._audit.commit([put, *unchanged], entry)
        return stored

    def release(self, name: str, period: str, by: str, reason: str, now: datetime) -> None:
        """Take a freeze off, and do not begin it again in this period. Safe to repeat."""

        def attempt() -> None:
            record = self._store.get(_RELEASE, name)
            said = Release(period, by, reason, now)
            put = Put(record_of(_RELEASE, name, said), 0 if record is None else record.version)
            facts = {"name": name, "period": period, "by": by, "reason": reason}
            self._audit.commit([put], AuditEntry(now, OPERATOR, "freeze", AuditWhat.SNOOZE, facts))

        until_uncontested(attempt, f"the release of freeze {name}")

    def released(self, name: str) -> Release | None:
        """The last word on a freeze, or None."""
        record = self._store.get(_RELEASE, name)
        return value_of(Release, record) if record is not None else None
