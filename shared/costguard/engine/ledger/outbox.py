"""Notices waiting to be delivered: written first, sent after, so that a crash loses none.

A sender claims a notice for five minutes before it sends (engine/notify/delivery.py); a crash between sending and
recording sends it again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from costguard.domain.errors import InvalidInputError, LedgerError, NoticeError
from costguard.engine.ledger.codec import record_of, until_uncontested, value_of
from costguard.engine.ledger.found import notices_of
from costguard.engine.ledger.listing import listed_since
from costguard.engine.ledger.notices import (
    Ids,
    NoticeRecords,
    NoticeState,
    OutboxNotice,
    claimed,
    delivered,
    dropped,
    failed,
    rejected,
    revived,
)
from costguard.ports import Delivery, RecordStore

_LOG = logging.getLogger(__name__)
_CHANGED, _ALL = "outbox_changed", "all"  # the one record of notices whose message is to be changed
_MOST_CHANGED = 500  # messages waiting to be changed; beyond, the oldest stay as they are


_SENT, _A_DAY = "sent_to", timedelta(hours=24)  # key: an address
_MOST_SENT = 1000  # of which nobody asks whether they were more


@dataclass(frozen=True, slots=True)
class _Sent:
    """When an address was sent messages about cases, oldest first."""

    at: tuple[datetime, ...] = ()


def _lately(sent: _Sent, now: datetime) -> tuple[datetime, ...]:
    return tuple(at for at in sent.at if now - at < _A_DAY)


class OutboxRepository:
    """Keeps notices and what became of them."""

    def __init__(self, store: RecordStore) -> None:
        self._store = store
        self._records = NoticeRecords(store)

    def enqueue(self, *notices: OutboxNotice) -> int:
        """Remember notices to be sent, and how many of them were new; those whose id is known stay as they are."""
        return self._records.add(notices)

    def get(self, notice_id: str) -> OutboxNotice | None:
        """One notice, whatever became of it."""
        return self.get_many([notice_id]).get(notice_id)

    def get_many(self, notice_ids: Iterable[str]) -> Mapping[str, OutboxNotice]:
        """The same of many, by id; a hundred take one request."""
        return self._records.get_many(notice_ids)

    def beginning_with(self, prefix: str) -> Iterator[OutboxNotice]:
        """Every notice whose id begins so, whatever became of it."""
        return self._records.beginning_with(prefix)

    def due(self, now: datetime) -> tuple[OutboxNotice, ...]:
        """Pending notices that may be tried now and that nobody has claimed, oldest first."""
        return tuple(notice for notice in self.pending() if notice.is_due(now))

    def pending(self) -> tuple[OutboxNotice, ...]:
        """Every notice still to be sent, oldest first."""
        notices = self.get_many(self._records.pending()).values()
        return tuple(sorted(notices, key=lambda notice: (notice.created_at, notice.notice_id)))

    def waiting(self) -> int:
        """How many are still to be sent; reads none of them."""
        return len(self._records.pending())

    def dead(self) -> tuple[OutboxNotice, ...]:
        """Every notice a channel refused for good."""
        notices = self.get_many(self._records.dead()).values()
        return tuple(notice for notice in notices if notice.state is NoticeState.DEAD)

    def revive(self, notice_id: str, now: datetime) -> OutboxNotice:
        """Let a dead notice be sent again, after somebody has mended its channel.

        Raises:
            InvalidInputError: it is not dead, or names dates that are past: its case tells anew by itself.
        """

        def change(notice: OutboxNotice | None) -> OutboxNotice:
            if notice is None or notice.state is not NoticeState.DEAD:
                message = f"{notice_id!r} is no dead notice; `costguard outbox` lists them"
                raise InvalidInputError(message)
            if notice.holds_until is not None and now >= notice.holds_until:
                message = f"{notice_id} names dates that are past, and its case will be told of anew by itself"
                raise InvalidInputError(message)
            return revived(notice, now)

        return self._records.revive(notice_id, change)

    def of_case(self, case_key: str, since: datetime) -> tuple[OutboxNotice, ...]:
        """What was told, or is to be told, about a case since it was opened."""
        listed = listed_since(self._store)
        whole = listed is None or since < listed
        notices = self._records.all() if whole else self.get_many(notices_of(self._store, case_key)).values()
        return tuple(one for one in notices if one.case_key == case_key and one.created_at >= since)

    def said_of(self, case_id: str) -> OutboxNotice | None:
        """The delivered notice that last told of a case with what comes next: replies go under it."""
        return self.said_of_many([case_id]).get(case_id)

    def said_of_many(self, case_ids: Iterable[str]) -> Mapping[str, OutboxNotice]:
        """The same of many cases, by their id."""
        told = self._records.told(case_ids)
        notices = self.get_many(told.values())
        return {case_id: notices[notice_id] for case_id, notice_id in told.items() if notice_id in notices}

    def mark(self, statuses: Mapping[str, str]) -> int:
        """What became of the subjects of delivered notices, by id, for their messages to show; how many of it was new.

        What is marked so already stays as it is.
        """

        def change(one: OutboxNotice) -> OutboxNotice | None:
            status = statuses[one.notice_id]
            shown = one.status == status or one.state is not NoticeState.DELIVERED
            return None if shown else replace(one, status=status)

        new = self._records.change(statuses, change)
        if new:
            self._list_changed(lambda ids: (*(one for one in ids if one not in new), *new))
        return len(new)

    def changed(self) -> tuple[OutboxNotice, ...]:
        """Delivered notices whose message does not show their status yet, oldest mark first."""
        record = self._store.get(_CHANGED, _ALL)
        return tuple(self.get_many(value_of(Ids, record).ids).values()) if record is not None else ()

    def shown(self, notice_ids: Iterable[str]) -> None:
        """Their messages show it, or never will."""
        done = frozenset(notice_ids)
        self._list_changed(lambda ids: tuple(one for one in ids if one not in done))

    def claim(self, notice_ids: Iterable[str], now: datetime) -> tuple[OutboxNotice, ...]:
        """Take due notices for five minutes; without those that another has, or that are due no more."""
        taken = self._records.change(notice_ids, lambda one: claimed(one, now) if one.is_due(now) else None)
        return tuple(taken.values())

    def renew(self, mine: Sequence[OutboxNotice], now: datetime) -> tuple[OutboxNotice, ...]:
        """Take them for five minutes more; without those that another has by now."""
        return tuple(self._change_claimed(mine, lambda one: claimed(one, now)).values())

    def drop(self, mine: Sequence[OutboxNotice], now: datetime) -> None:
        """Give up notices that came too late."""
        for notice in mine:
            _LOG.warning("notice came too late and is not sent", extra={"notice": notice.notice_id})
        self._change_claimed(mine, dropped, now)

    def sent_lately(self, channel: str, now: datetime) -> int:
        """How many messages about cases this address got in the last 24 hours."""
        record = self._store.get(_SENT, channel) if channel else None
        return 0 if record is None else len(_lately(value_of(_Sent, record), now))

    def note_sent(self, channel: str, now: datetime) -> None:
        """It got another one."""

        def attempt() -> None:
            record = self._store.get(_SENT, channel)
            before = () if record is None else _lately(value_of(_Sent, record), now)
            after = record_of(_SENT, channel, _Sent((*before, now)[-_MOST_SENT:]))
            self._store.put(after, 0 if record is None else record.version)

        until_uncontested(attempt, "the outbox")

    def delivered(
        self, mine: Sequence[OutboxNotice], delivery: Delivery, now: datetime, *, in_digest: bool = False
    ) -> tuple[OutboxNotice, ...]:
        """Their channel took them, all in one message; as they stand now."""
        ids = tuple(notice.notice_id for notice in mine)
        beside = ids if len(ids) > 1 else ()

        def change(one: OutboxNotice) -> OutboxNotice | None:
            if one.state is NoticeState.DELIVERED:
                return None
            return replace(delivered(one, delivery, now, beside), in_digest=in_digest)

        for notice_id in ids:
            _LOG.info("notice delivered", extra={"notice": notice_id, "proven": delivery.proves_delivery})
        changed = self._records.change(ids, change, now)
        known = {**self.get_many(each for each in ids if each not in changed), **changed}
        if len(known) < len(ids):
            message = f"of {len(ids)} notices in one message {len(ids) - len(known)} are gone from the ledger"
            raise LedgerError(message)
        return tuple(known[notice_id] for notice_id in ids)

    def rejected(self, mine: OutboxNotice, err: NoticeError, now: datetime) -> None:
        """Its channel will never take it."""
        _LOG.error("notice will never be delivered", extra={"notice": mine.notice_id, "error": str(err)})
        self._change_claimed([mine], lambda one: rejected(one, err), now)

    def failed(self, mine: Sequence[OutboxNotice], err: NoticeError, now: datetime, wait: timedelta) -> None:
        """They did not arrive this time; again after `wait`."""
        for notice in mine:
            _LOG.warning("notice not delivered yet", extra={"notice": notice.notice_id, "error": str(err)})
        self._change_claimed(mine, lambda one: failed(one, err, now + wait))

    def _change_claimed(
        self,
        mine: Sequence[OutboxNotice],
        change: Callable[[OutboxNotice], OutboxNotice],
        ended_at: datetime | None = None,
    ) -> dict[str, OutboxNotice]:
        """What `change` makes of those that are still as they were claimed."""
        known = {notice.notice_id: notice for notice in mine}

        def changed(one: OutboxNotice) -> OutboxNotice | None:
            return change(one) if one.is_claimed_as(known[one.notice_id]) else None

        return self._records.change(known, changed, ended_at)

    def _list_changed(self, change: Callable[[tuple[str, ...]], tuple[str, ...]]) -> None:
        def attempt() -> None:
            record = self._store.get(_CHANGED, _ALL)
            before = value_of(Ids, record).ids if record is not None else ()
            after = change(before)[-_MOST_CHANGED:]
            if after != before:
                self._store.put(record_of(_CHANGED, _ALL, Ids(after)), record.version if record is not None else 0)

        until_uncontested(attempt, "the outbox")
