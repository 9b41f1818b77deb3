"""Notices waiting to be delivered: written first, sent after, so that a crash loses none.

Delivery is at least once. A sender claims a notice for five minutes before it sends; a crash between
sending and recording sends that one again. Pending ids are indexed in sixteen records, dead ones singly,
so that nothing here reads the delivered notices of years.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum

from costguard.domain.errors import LedgerError, NoticeError, RateLimitedError, RejectedNoticeError
from costguard.engine.repositories.audit import AuditEntry, AuditTrail, AuditWhat
from costguard.engine.repositories.codec import record_of, value_of
from costguard.engine.repositories.contention import until_uncontested
from costguard.ports import Clock, Delivery, Message, Notifier, Put, RecordStore

_LOG = logging.getLogger(__name__)
_NOTICE, _PENDING, _DEAD = "notice", "outbox_pending", "outbox_dead"
_RUN = "outbox"  # the run id of audit entries about notices
CLAIM_LASTS = timedelta(minutes=5)
_FIRST_RETRY, _LAST_RETRY = timedelta(minutes=1), timedelta(hours=1)
_SHORTEST_WAIT = timedelta(seconds=1)  # a channel that says "after 0 s" for ever must not be asked for ever


class NoticeState(str, Enum):
    """`DEAD` will never be delivered as it is; people are shown it. `DROPPED` came too late to be sent."""

    PENDING = "pending"
    DELIVERED = "delivered"
    DEAD = "dead"
    DROPPED = "dropped"


@dataclass(frozen=True, slots=True)
class Notice:
    """One message for one decision and what became of it.

    From `channel` to `thread` it is a `Message`. `proven` is True only where the channel proves delivery:
    grace is counted from `delivered_at` of such a notice, never of others. After `holds_until` it names
    dates that may be past and is dropped; None means that it is true at any time.
    """

    notice_id: str
    decision_id: str
    case_key: str
    channel: str
    title: str
    text: str
    created_at: datetime
    fields: tuple[tuple[str, str], ...] = ()
    lines: tuple[str, ...] = ()
    thread: str = ""
    holds_until: datetime | None = None
    state: NoticeState = NoticeState.PENDING
    attempts: int = 0
    next_attempt_at: datetime | None = None
    claimed_until: datetime | None = None
    receipt: str = ""
    delivered_at: datetime | None = None
    proven: bool = False
    last_error: str = ""

    def is_late(self, now: datetime) -> bool:
        """Whether it was not delivered in time, and never will be."""
        expired = self.holds_until is not None and now >= self.holds_until
        return self.state is NoticeState.DROPPED or (self.state is NoticeState.PENDING and expired)


@dataclass(frozen=True, slots=True)
class _Ids:
    ids: tuple[str, ...] = ()


@dataclass(slots=True)
class _Patience:
    """How long this round may still wait, and the channels it has given up on."""

    left: timedelta
    limited: set[str]


class OutboxRepository:
    """Keeps notices and delivers them."""

    def __init__(self, store: RecordStore) -> None:
        self._store = store
        self._audit = AuditTrail(store)

    def enqueue(self, notice: Notice) -> bool:
        """Remember a notice to be sent; False, and nothing changed, if its id is known already."""

        def attempt() -> bool:
            if self._store.get(_NOTICE, notice.notice_id) is not None:
                return False
            put = Put(record_of(_NOTICE, notice.notice_id, notice), 0)
            self._store.transact([put, self._listing(notice.notice_id, pending=True)])
            return True

        return until_uncontested(attempt, "the outbox")

    def get(self, notice_id: str) -> Notice | None:
        """One notice, whatever became of it."""
        found = self._read(notice_id)
        return found[0] if found is not None else None

    def due(self, now: datetime) -> tuple[Notice, ...]:
        """Pending notices that may be tried now and that nobody has claimed, oldest first."""
        ids = [one for record in self._store.query(_PENDING) for one in value_of(_Ids, record).ids]
        notices = [notice for notice in map(self.get, ids) if notice is not None and _is_due(notice, now)]
        return tuple(sorted(notices, key=lambda notice: (notice.created_at, notice.notice_id)))

    def dead(self) -> tuple[Notice, ...]:
        """Every notice a channel refused for good."""
        notices = (self.get(record.key) for record in self._store.query(_DEAD))
        return tuple(notice for notice in notices if notice is not None)

    def of_case(self, case_key: str, since: datetime) -> tuple[Notice, ...]:
        """What was told, or is to be told, about a case since it was opened. Reads every notice: for people only."""
        notices = (value_of(Notice, record) for record in self._store.query(_NOTICE))
        return tuple(one for one in notices if one.case_key == case_key and one.created_at >= since)

    def deliver_due(self, notifier: Notifier, clock: Clock, *, max_wait: timedelta) -> tuple[Notice, ...]:
        """Send what is due, once each, and return what was delivered.

        A rate limit is waited out and the notice sent, as long as all waits together stay within
        `max_wait`; beyond that, it and what follows on its channel are left for a later run.

        Raises:
            LedgerError: what was sent last may not be recorded and may be sent again.
        """
        patience = _Patience(max_wait, set())
        delivered: list[Notice] = []
        for waiting in self.due(clock.now()):
            if waiting.channel in patience.limited:
                continue
            claimed = self._claim(waiting.notice_id, clock.now())
            if claimed is None:
                continue
            if claimed.is_late(clock.now()):  # by the clock after the claim: a frozen process may have slept meanwhile
                self._drop(claimed, clock.now())
                continue
            notice = self._deliver(claimed, notifier, clock, patience)
            if notice.state is NoticeState.DELIVERED:
                delivered.append(notice)
        return tuple(delivered)

    def _deliver(self, claimed: Notice, notifier: Notifier, clock: Clock, patience: _Patience) -> Notice:
        words = (claimed.channel, claimed.title, claimed.text, claimed.fields, claimed.lines, claimed.thread)
        message = Message(*words, notice_id=claimed.notice_id)
        while True:
            try:
                delivery = notifier.send(message)
            except RateLimitedError as err:
                wait = max(err.retry_after, _SHORTEST_WAIT)
                if wait > patience.left:
                    patience.limited.add(claimed.channel)
                    return self._failed(claimed, err, clock.now(), wait)
                patience.left -= wait
                clock.sleep(wait.total_seconds())
                renewed = self._renew(claimed, clock.now())
                if renewed is None:
                    return self._must_get(claimed.notice_id)
                claimed = renewed
            except RejectedNoticeError as err:
                return self._rejected(claimed, err, clock.now())
            except NoticeError as err:
                return self._failed(claimed, err, clock.now(), _back_off(claimed.attempts + 1))
            else:
                return self._delivered(claimed, delivery, clock.now())

    def _claim(self, notice_id: str, now: datetime) -> Notice | None:
        return self._change(
            notice_id, lambda one: replace(one, claimed_until=now + CLAIM_LASTS) if _is_due(one, now) else None
        )

    def _drop(self, claimed: Notice, now: datetime) -> None:
        def change(one: Notice) -> Notice | None:
            if not _is_mine(one, claimed):
                return None
            return replace(one, state=NoticeState.DROPPED, next_attempt_at=None, claimed_until=None)

        _LOG.warning("notice came too late and is not sent", extra={"notice": claimed.notice_id})
        self._change(claimed.notice_id, change, now)

    def _renew(self, claimed: Notice, now: datetime) -> Notice | None:
        until = now + CLAIM_LASTS
        return self._change(
            claimed.notice_id, lambda one: replace(one, claimed_until=until) if _is_mine(one, claimed) else None
        )

    def _delivered(self, claimed: Notice, delivery: Delivery, now: datetime) -> Notice:
        def change(one: Notice) -> Notice | None:
            if one.state is NoticeState.DELIVERED:
                return None
            return replace(
                one,
                state=NoticeState.DELIVERED,
                attempts=one.attempts + 1,
                next_attempt_at=None,
                claimed_until=None,
                receipt=delivery.receipt,
                delivered_at=now,
                proven=delivery.proves_delivery,
                last_error="",
            )

        _LOG.info("notice delivered", extra={"notice": claimed.notice_id, "proven": delivery.proves_delivery})
        return self._change(claimed.notice_id, change, now) or self._must_get(claimed.notice_id)

    def _rejected(self, claimed: Notice, err: NoticeError, now: datetime) -> Notice:
        def change(one: Notice) -> Notice | None:
            if not _is_mine(one, claimed):
                return None
            return replace(
                one, state=NoticeState.DEAD, attempts=one.attempts + 1, claimed_until=None, last_error=str(err)
            )

        _LOG.error("notice will never be delivered", extra={"notice": claimed.notice_id, "error": str(err)})
        return self._change(claimed.notice_id, change, now) or self._must_get(claimed.notice_id)

    def _failed(self, claimed: Notice, err: NoticeError, now: datetime, wait: timedelta) -> Notice:
        def change(one: Notice) -> Notice | None:
            if not _is_mine(one, claimed):
                return None
            return replace(
                one, attempts=one.attempts + 1, claimed_until=None, next_attempt_at=now + wait, last_error=str(err)
            )

        _LOG.warning("notice not delivered yet", extra={"notice": claimed.notice_id, "error": str(err)})
        return self._change(claimed.notice_id, change) or self._must_get(claimed.notice_id)

    def _change(
        self, notice_id: str, change: Callable[[Notice], Notice | None], ended_at: datetime | None = None
    ) -> Notice | None:
        """Write what `change` makes of the notice as it is; None, and nothing written, where it makes nothing."""

        def attempt() -> Notice | None:
            found = self._read(notice_id)
            changed = change(found[0]) if found is not None else None
            if found is None or changed is None:
                return None
            put = Put(record_of(_NOTICE, notice_id, changed), found[1])
            if changed.state is NoticeState.PENDING or ended_at is None:
                self._store.transact([put])
                return changed
            operations = [put]
            if found[0].state is NoticeState.PENDING:
                operations.append(self._listing(notice_id, pending=False))
            if changed.state is NoticeState.DEAD:
                operations.append(Put(record_of(_DEAD, notice_id, _Ids()), 0))
            self._audit.commit(operations, _ended(changed, ended_at))
            return changed

        return until_uncontested(attempt, "the outbox")

    def _listing(self, notice_id: str, *, pending: bool) -> Put:
        """The write that puts a notice on, or takes it off, its list of pending ones."""
        key = hashlib.sha256(notice_id.encode()).hexdigest()[0]
        record = self._store.get(_PENDING, key)
        ids = value_of(_Ids, record).ids if record is not None else ()
        others = tuple(one for one in ids if one != notice_id)
        listed = _Ids((*others, notice_id)) if pending else _Ids(others)
        return Put(record_of(_PENDING, key, listed), record.version if record is not None else 0)

    def _read(self, notice_id: str) -> tuple[Notice, int] | None:
        record = self._store.get(_NOTICE, notice_id)
        return (value_of(Notice, record), record.version) if record is not None else None

    def _must_get(self, notice_id: str) -> Notice:
        notice = self.get(notice_id)
        if notice is None:
            message = f"notice {notice_id} is gone from the ledger"
            raise LedgerError(message)
        return notice


def _is_due(notice: Notice, now: datetime) -> bool:
    return (
        notice.state is NoticeState.PENDING
        and (notice.next_attempt_at is None or notice.next_attempt_at <= now)
        and (notice.claimed_until is None or notice.claimed_until <= now)
    )


def _is_mine(notice: Notice, claimed: Notice) -> bool:
    return notice.state is NoticeState.PENDING and notice.claimed_until == claimed.claimed_until


def _back_off(attempts: int) -> timedelta:
    """1, 2, 4 … minutes, never over an hour."""
    doublings = min(attempts - 1, 6)  # 2^6 minutes is over an hour
    return min(_LAST_RETRY, _FIRST_RETRY * (1 << doublings))


def _ended(notice: Notice, at: datetime) -> AuditEntry:
    facts = {
        "notice_id": notice.notice_id,
        "decision_id": notice.decision_id,
        "case_key": notice.case_key,
        "channel": notice.channel,
        "state": notice.state.value,
        "receipt": notice.receipt,
        "proven": notice.proven,
        "error": notice.last_error,
    }
    return AuditEntry(at, _RUN, at.strftime("%Y-%m"), AuditWhat.NOTICE, facts)
