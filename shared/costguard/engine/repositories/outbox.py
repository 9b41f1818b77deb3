"""Notices waiting to be delivered: written first, sent after, so that a crash loses none.

A sender claims a notice for five minutes before it sends (engine/delivery.py); a crash between sending and recording
sends it again. Pending ids are indexed in sixteen records, dead ones singly, so that nothing here reads the delivered
notices of years.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum

from costguard.domain.errors import InvalidInputError, LedgerError, NoticeError
from costguard.domain.money import Money
from costguard.engine.repositories.audit import AuditEntry, AuditTrail, AuditWhat
from costguard.engine.repositories.codec import record_of, value_of
from costguard.engine.repositories.contention import until_uncontested
from costguard.ports import Choice, Delivery, Put, RecordStore

_LOG = logging.getLogger(__name__)
_NOTICE, _PENDING, _DEAD = "notice", "outbox_pending", "outbox_dead"
_TOLD, _CHANGED = "told", "outbox_changed"
_ALL = "all"  # the one record of notices whose message is to be changed
_RUN = "outbox"  # the run id of audit entries about notices
CLAIM_LASTS = timedelta(minutes=5)
_MOST_CHANGED = 500  # messages waiting to be changed; beyond, the oldest stay as they are


class NoticeState(str, Enum):
    """`DEAD` will never be delivered as it is; people are shown it. `DROPPED` came too late to be sent."""

    PENDING = "pending"
    DELIVERED = "delivered"
    DEAD = "dead"
    DROPPED = "dropped"


@dataclass(frozen=True, slots=True)
class Notice:
    """One message for one decision and what became of it.

    From `channel` to `thread` it is a `Message`, `picture` and `choices` are its one part. Those of one `run_id`,
    channel, owner and thread may travel in one message: `beside` are the ids of all in it, if several. `kind` is what
    it tells, `hourly` what its subject costs, `status` what became of that since. `proven` is True only where the
    channel proves delivery: grace is counted from `delivered_at` of such a notice, never of others. After `holds_until`
    it names dates that may be past and is dropped; None means that it is true at any time.
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
    run_id: str = ""
    owner: str = ""
    case_id: str = ""
    kind: str = ""
    picture: str = ""
    choices: tuple[Choice, ...] = ()
    hourly: Money | None = None
    beside: tuple[str, ...] = ()
    status: str = ""

    def is_late(self, now: datetime) -> bool:
        """Whether it was not delivered in time, and never will be."""
        expired = self.holds_until is not None and now >= self.holds_until
        return self.state is NoticeState.DROPPED or (self.state is NoticeState.PENDING and expired)


@dataclass(frozen=True, slots=True)
class _Ids:
    ids: tuple[str, ...] = ()


class OutboxRepository:
    """Keeps notices and what became of them."""

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
        return tuple(notice for notice in self.pending() if _is_due(notice, now))

    def pending(self) -> tuple[Notice, ...]:
        """Every notice still to be sent, oldest first."""
        ids = [one for record in self._store.query(_PENDING) for one in value_of(_Ids, record).ids]
        notices = [notice for notice in map(self.get, ids) if notice is not None]
        return tuple(sorted(notices, key=lambda notice: (notice.created_at, notice.notice_id)))

    def dead(self) -> tuple[Notice, ...]:
        """Every notice a channel refused for good."""
        notices = (self.get(record.key) for record in self._store.query(_DEAD))
        return tuple(notice for notice in notices if notice is not None and notice.state is NoticeState.DEAD)

    def revive(self, notice_id: str, now: datetime) -> Notice:
        """Let a dead notice be sent again, after somebody has mended its channel.

        Raises:
            InvalidInputError: it is not dead, or names dates that are past: its case tells anew by itself.
        """

        def attempt() -> Notice:
            found = self._read(notice_id)
            if found is None or found[0].state is not NoticeState.DEAD:
                message = f"{notice_id!r} is no dead notice; `costguard outbox` lists them"
                raise InvalidInputError(message)
            if found[0].holds_until is not None and now >= found[0].holds_until:
                message = f"{notice_id} names dates that are past, and its case will be told of anew by itself"
                raise InvalidInputError(message)
            pending = replace(found[0], state=NoticeState.PENDING, next_attempt_at=now, claimed_until=None)
            put = Put(record_of(_NOTICE, notice_id, pending), found[1])
            self._store.transact([put, self._listing(notice_id, pending=True)])
            return pending

        return until_uncontested(attempt, "the outbox")

    def of_case(self, case_key: str, since: datetime) -> tuple[Notice, ...]:
        """What was told, or is to be told, about a case since it was opened. Reads every notice: for people only."""
        notices = (value_of(Notice, record) for record in self._store.query(_NOTICE))
        return tuple(one for one in notices if one.case_key == case_key and one.created_at >= since)

    def said_of(self, case_id: str) -> Notice | None:
        """The delivered notice that last told of a case with what comes next: replies go under it."""
        record = self._store.get(_TOLD, case_id)
        return self.get(value_of(_Ids, record).ids[0]) if record is not None else None

    def mark(self, notice_id: str, status: str) -> bool:
        """What became of a delivered notice's subject, for its message to show; False where it is marked so already."""

        def change(one: Notice) -> Notice | None:
            shown = one.status == status or one.state is not NoticeState.DELIVERED
            return None if shown else replace(one, status=status)

        if self._change(notice_id, change) is None:
            return False
        self._list_changed(lambda ids: (*(one for one in ids if one != notice_id), notice_id))
        return True

    def changed(self) -> tuple[Notice, ...]:
        """Delivered notices whose message does not show their status yet, oldest mark first."""
        record = self._store.get(_CHANGED, _ALL)
        ids = value_of(_Ids, record).ids if record is not None else ()
        return tuple(notice for notice in map(self.get, ids) if notice is not None)

    def shown(self, notice_ids: Iterable[str]) -> None:
        """Their messages show it, or never will."""
        done = frozenset(notice_ids)
        self._list_changed(lambda ids: tuple(one for one in ids if one not in done))

    def _list_changed(self, change: Callable[[tuple[str, ...]], tuple[str, ...]]) -> None:
        def attempt() -> None:
            record = self._store.get(_CHANGED, _ALL)
            before = value_of(_Ids, record).ids if record is not None else ()
            after = change(before)[-_MOST_CHANGED:]
            if after != before:
                self._store.put(record_of(_CHANGED, _ALL, _Ids(after)), record.version if record is not None else 0)

        until_uncontested(attempt, "the outbox")

    def claim(self, notice_id: str, now: datetime) -> Notice | None:
        """Take a due notice for five minutes; None where another has it, or it is due no more."""
        return self._change(
            notice_id, lambda one: replace(one, claimed_until=now + CLAIM_LASTS) if _is_due(one, now) else None
        )

    def drop(self, claimed: Notice, now: datetime) -> None:
        """Give up a notice that came too late."""

        def change(one: Notice) -> Notice | None:
            if not _is_mine(one, claimed):
                return None
            return replace(one, state=NoticeState.DROPPED, next_attempt_at=None, claimed_until=None)

        _LOG.warning("notice came too late and is not sent", extra={"notice": claimed.notice_id})
        self._change(claimed.notice_id, change, now)

    def renew(self, claimed: Notice, now: datetime) -> Notice | None:
        """Take it for five minutes more; None where another has it by now."""
        until = now + CLAIM_LASTS
        return self._change(
            claimed.notice_id, lambda one: replace(one, claimed_until=until) if _is_mine(one, claimed) else None
        )

    def delivered(self, claimed: Notice, delivery: Delivery, now: datetime, beside: tuple[str, ...] = ()) -> Notice:
        """Its channel took it, in one message with those `beside` it."""

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
                beside=beside,
            )

        _LOG.info("notice delivered", extra={"notice": claimed.notice_id, "proven": delivery.proves_delivery})
        return self._change(claimed.notice_id, change, now) or self._must_get(claimed.notice_id)

    def rejected(self, claimed: Notice, err: NoticeError, now: datetime) -> Notice:
        """Its channel will never take it."""

        def change(one: Notice) -> Notice | None:
            if not _is_mine(one, claimed):
                return None
            return replace(
                one, state=NoticeState.DEAD, attempts=one.attempts + 1, claimed_until=None, last_error=str(err)
            )

        _LOG.error("notice will never be delivered", extra={"notice": claimed.notice_id, "error": str(err)})
        return self._change(claimed.notice_id, change, now) or self._must_get(claimed.notice_id)

    def failed(self, claimed: Notice, err: NoticeError, now: datetime, wait: timedelta) -> Notice:
        """It did not arrive this time; again after `wait`."""

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
                listed = self._store.get(_DEAD, notice_id)  # there already where it was revived and died again
                version = listed.version if listed is not None else 0
                operations.append(Put(record_of(_DEAD, notice_id, _Ids()), version))
            if changed.state is NoticeState.DELIVERED and changed.case_id and not changed.thread:
                told = self._store.get(_TOLD, changed.case_id)
                version = told.version if told is not None else 0
                operations.append(Put(record_of(_TOLD, changed.case_id, _Ids((notice_id,))), version))
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
