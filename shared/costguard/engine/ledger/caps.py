"""NEVER rule 7: how much a rule may do in any rolling 24 hours, over all shards, runs and processes.

One record per (guard, cap) holds its reservations, so that whoever reserves has seen all others. A rule has one cap,
and one more for its terminations (`planning.cap_of`).

A process may die after it reserved and before its intent. Such a reservation names the claim it was made for, and is
given back once that claim can lead to no intent any more: see `Claim`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from costguard.domain.money import Money, totals
from costguard.domain.reasons import ReasonCode
from costguard.engine.ledger.codec import record_of, until_uncontested, value_of
from costguard.ports import Put, RecordStore
from costguard.ports.records import Name

_KIND = "cap"
_WINDOW = timedelta(hours=24)
_KEPT = timedelta(hours=48)  # twice the window: a clock that is ahead must not drop what still counts elsewhere


@dataclass(frozen=True, slots=True)
class Claim:
    """The case a reservation was made for, at the version at which it was claimed.

    An intent is written only while its case is at the version of its claim, and versions only grow: once the case has
    moved on and there is no intent, none will ever be.
    """

    case_id: str
    key: str
    version: int


@dataclass(frozen=True, slots=True)
class Reservation:
    """One decision's share of a cap, counted for 24 hours from `at`. `claim` None: made before claims were kept."""

    decision_id: str
    at: datetime
    cost: Money | None
    claim: Claim | None = None


@dataclass(frozen=True, slots=True)
class CapUsage:
    """What counts now: actions, and their hourly cost with one sum per currency."""

    actions: int
    hourly_cost: tuple[Money, ...]


@dataclass(frozen=True, slots=True)
class _Reserved:
    reservations: tuple[Reservation, ...] = ()


class CapRepository:
    """Reserves before acting. Nothing here reads an absent, empty or zero cap as "no limit"."""

    def __init__(self, store: RecordStore) -> None:
        self._store = store

    def usage(self, guard: str, cap: str, now: datetime) -> CapUsage:
        """What is reserved in the 24 hours up to `now`."""
        return _usage(_counting(self._read(guard, cap)[0].reservations, now))

    def reserve(
        self,
        guard: str,
        cap: str,
        decision_id: str,
        cost: Money | None,
        *,
        max_actions: int,
        max_hourly: tuple[Money, ...],
        now: datetime,
        claim: Claim | None = None,
    ) -> ReasonCode | None:
        """Take one action and `cost` an hour from the caps; None when they were taken, else why not.

        A decision that reserved before is counted once, from `now` on. Safe to repeat.

        Raises:
            LedgerError: the ledger failed, or was too contended: nothing is reserved, do nothing.
        """

        def attempt() -> ReasonCode | None:
            taking = self.taking(
                guard, cap, decision_id, cost, max_actions=max_actions, max_hourly=max_hourly, now=now, claim=claim
            )
            if isinstance(taking, ReasonCode):
                return taking
            self._store.transact(taking)
            return None

        return until_uncontested(attempt, f"the cap {cap}")

    def taking(
        self,
        guard: str,
        cap: str,
        decision_id: str,
        cost: Money | None,
        *,
        max_actions: int,
        max_hourly: tuple[Money, ...],
        now: datetime,
        claim: Claim | None = None,
    ) -> ReasonCode | tuple[Put, ...]:
        """What `reserve` writes, for a transaction with the claim that it is for; else why it may not be taken.

        The transaction fails where anybody reserved meanwhile: ask again, and never write it by another version.
        """
        reserved, version = self._read(guard, cap)
        mine = next((one for one in reserved.reservations if one.decision_id == decision_id), None)
        others = tuple(one for one in reserved.reservations if one.decision_id != decision_id)
        refusal = _refusal(_usage(_counting(others, now)), cost, max_actions, max_hourly)
        if refusal is not None:
            return refusal
        at = now if mine is None else max(now, mine.at)
        wanted = Reservation(decision_id, at, cost, claim)
        if wanted == mine:
            return ()
        kept = tuple(one for one in others if now - one.at < _KEPT)
        return (Put(record_of(*cap_name(guard, cap), _Reserved((*kept, wanted))), version),)

    def release(self, guard: str, cap: str, decision_id: str) -> None:
        """Give a reservation back, for an action that provably changed nothing. Safe to repeat."""

        def attempt() -> None:
            reserved, version = self._read(guard, cap)
            kept = tuple(one for one in reserved.reservations if one.decision_id != decision_id)
            if kept != reserved.reservations:
                self._store.put(record_of(*cap_name(guard, cap), _Reserved(kept)), version)

        until_uncontested(attempt, f"the cap {cap}")

    def reservations(self, guard: str, cap: str, now: datetime) -> tuple[Reservation, ...]:
        """What counts against this cap in the 24 hours up to `now`."""
        return _counting(self._read(guard, cap)[0].reservations, now)

    def room_again(self, guard: str, now: datetime) -> Iterator[datetime]:
        """When each reservation that counts at `now`, under any cap of this guard, counts no more."""
        for record in self._store.query(_KIND, f"{guard}/"):
            for one in _counting(value_of(_Reserved, record).reservations, now):
                yield one.at + _WINDOW

    def release_unsent(self, guard: str, cap: str, unsent: Collection[Reservation]) -> None:
        """Give back these very reservations; one that was made anew meanwhile, for a later claim, stays."""

        def attempt() -> None:
            reserved, version = self._read(guard, cap)
            kept = tuple(one for one in reserved.reservations if one not in unsent)
            if kept != reserved.reservations:
                self._store.put(record_of(*cap_name(guard, cap), _Reserved(kept)), version)

        until_uncontested(attempt, f"the cap {cap}")

    def _read(self, guard: str, cap: str) -> tuple[_Reserved, int]:
        record = self._store.get(*cap_name(guard, cap))
        return (_Reserved(), 0) if record is None else (value_of(_Reserved, record), record.version)


def cap_name(guard: str, cap: str) -> Name:
    """Where a cap's reservations stand."""
    return _KIND, f"{guard}/{cap}"


def _counting(reservations: tuple[Reservation, ...], now: datetime) -> tuple[Reservation, ...]:
    """Those of the last 24 hours; one from a clock that is ahead counts as well."""
    return tuple(one for one in reservations if now - one.at < _WINDOW)


def _usage(counting: tuple[Reservation, ...]) -> CapUsage:
    return CapUsage(len(counting), totals(one.cost for one in counting if one.cost is not None))


def _refusal(used: CapUsage, cost: Money | None, max_actions: int, max_hourly: tuple[Money, ...]) -> ReasonCode | None:
    if used.actions + 1 > max_actions:
        return ReasonCode.CAP_ACTIONS
    if cost is None or not cost.amount.is_finite() or cost.amount < 0:
        return ReasonCode.PRICE_UNKNOWN
    limits = [cap.amount for cap in max_hourly if cap.currency == cost.currency and cap.amount.is_finite()]
    if not limits:
        return ReasonCode.CURRENCY_UNCAPPED
    total = sum((money.amount for money in used.hourly_cost if money.currency == cost.currency), cost.amount)
    return ReasonCode.CAP_MONEY if total > min(limits) else None
