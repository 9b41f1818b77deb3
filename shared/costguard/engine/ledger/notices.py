"""Notices as they are kept, and the records of the outbox: which are pending, dead, or told last of a case."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum
from functools import partial
from typing import Protocol

from costguard.cases import Announced
from costguard.domain.errors import NoticeError
from costguard.domain.money import Money
from costguard.engine.ledger.audit.audit import AuditEntry, AuditTrail, AuditWhat
from costguard.engine.ledger.codec import record_of, until_uncontested, value_of
from costguard.engine.ledger.found import telling
from costguard.ports import Choice, Delivery, Put, Record, RecordStore

CLAIM_LASTS = timedelta(minutes=5)


class NoticeState(str, Enum):
    """`DEAD` will never be delivered as it is; people are shown it. `DROPPED` came too late to be sent."""

    PENDING = "pending"
    DELIVERED = "delivered"
    DEAD = "dead"
    DROPPED = "dropped"


@dataclass(frozen=True, slots=True)
class OutboxNotice:
    """One message for one decision and what became of it.

    From `channel` to `thread` it is a `Message`, `picture` and `choices` are its one part. Those of one `run_id`,
    channel, owner and thread may travel in one message: `beside` are the ids of all in it, if several. `kind` is what
    it tells, `hourly` what its subject costs, `status` what became of that since. `proven` is True only where the
    channel proves delivery: grace is counted from `delivered_at` of such a notice, never of others. After `holds_until`
    it names dates that may be past and is dropped; None means that it is true at any time. `announced` are the steps to
    come that it names, which come no earlier. `in_digest`: it was sent in a line or two among others.
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
    announced: tuple[Announced, ...] = ()
    in_digest: bool = False

    def is_late(self, now: datetime) -> bool:
        """Whether it was not delivered in time, and never will be."""
        expired = self.holds_until is not None and now >= self.holds_until
        return self.state is NoticeState.DROPPED or (self.state is NoticeState.PENDING and expired)

    def is_due(self, now: datetime) -> bool:
        """Whether it may be sent now, and nobody has claimed it."""
        return (
            self.state is NoticeState.PENDING
            and (self.next_attempt_at is None or self.next_attempt_at <= now)
            and (self.claimed_until is None or self.claimed_until <= now)
        )

    def is_claimed_as(self, claimed: OutboxNotice) -> bool:
        """Whether it still is as somebody claimed it."""
        return self.state is NoticeState.PENDING and self.claimed_until == claimed.claimed_until


class Worded(Protocol):
    """The words of a message, as `report` makes them."""

    @property
    def title(self) -> str:
        """One line."""

    @property
    def text(self) -> str:
        """All of it, for channels that show nothing else."""

    @property
    def fields(self) -> tuple[tuple[str, str], ...]:
        """Names and what they are."""

    @property
    def lines(self) -> tuple[str, ...]:
        """What stands below."""


def news(
    notice_id: str,
    channel: str,
    worded: Worded,
    now: datetime,
    *,
    case_key: str = "",
    holds_until: datetime | None = None,
    choices: tuple[Choice, ...] = (),
) -> OutboxNotice:
    """A notice that is about no decision: nothing waits for its delivery. It may be sent from `now` on."""
    return OutboxNotice(
        notice_id=notice_id,
        decision_id="",
        case_key=case_key,
        channel=channel,
        title=worded.title,
        text=worded.text,
        fields=worded.fields,
        lines=worded.lines,
        created_at=now,
        next_attempt_at=now,
        holds_until=holds_until,
        choices=choices,
    )


def claimed(notice: OutboxNotice, now: datetime) -> OutboxNotice:
    """Taken by one sender for five minutes."""
    return replace(notice, claimed_until=now + CLAIM_LASTS)


def delivered(notice: OutboxNotice, delivery: Delivery, now: datetime, beside: tuple[str, ...]) -> OutboxNotice:
    """Taken by its channel, in one message with those `beside` it."""
    return replace(
        notice,
        state=NoticeState.DELIVERED,
        attempts=notice.attempts + 1,
        next_attempt_at=None,
        claimed_until=None,
        receipt=delivery.receipt,
        delivered_at=now,
        proven=delivery.proves_delivery,
        last_error="",
        beside=beside,
    )


def rejected(notice: OutboxNotice, err: NoticeError) -> OutboxNotice:
    """Refused by its channel for good."""
    return replace(
        notice, state=NoticeState.DEAD, attempts=notice.attempts + 1, claimed_until=None, last_error=str(err)
    )


def failed(notice: OutboxNotice, err: NoticeError, again_at: datetime) -> OutboxNotice:
    """Not arrived this time."""
    return replace(
        notice, attempts=notice.attempts + 1, claimed_until=None, next_attempt_at=again_at, last_error=str(err)
    )


def dropped(notice: OutboxNotice) -> OutboxNotice:
    """Given up, because it came too late."""
    return replace(notice, state=NoticeState.DROPPED, next_attempt_at=None, claimed_until=None)


def revived(notice: OutboxNotice, now: datetime) -> OutboxNotice:
    """A dead one, to be sent again."""
    return replace(notice, state=NoticeState.PENDING, next_attempt_at=now, claimed_until=None)


NOTICE_KIND, _PENDING, _DEAD, _TOLD = "notice", "outbox_pending", "outbox_dead", "told"
_RUN = "outbox"  # the run id of audit entries about notices
_TOGETHER = 80  # in one transaction, which takes 100 writes, with the sixteen lists
_NEW_TOGETHER = 40  # the same of new ones: two writes each
_ENDED_TOGETHER = 15  # the same of those that are audited: six writes each, if each names somebody who is new


@dataclass(frozen=True, slots=True)
class Ids:
    """A list of ids."""

    ids: tuple[str, ...] = ()


class NoticeRecords:
    """Reads and writes notices, and keeps the lists of them true."""

    def __init__(self, store: RecordStore) -> None:
        self._store = store
        self._audit = AuditTrail(store)

    def get_many(self, notice_ids: Iterable[str]) -> dict[str, OutboxNotice]:
        """Those that there are, by id, in the order asked for."""
        return {notice_id: notice for notice_id, (notice, _) in self._read(notice_ids).items()}

    def all(self) -> Iterator[OutboxNotice]:
        """Every notice of all time."""
        return self.beginning_with("")

    def beginning_with(self, prefix: str) -> Iterator[OutboxNotice]:
        """Those whose id begins so."""
        return (value_of(OutboxNotice, record) for record in self._store.query(NOTICE_KIND, prefix))

    def pending(self) -> tuple[str, ...]:
        """The ids of those still to be sent."""
        return tuple(one for record in self._store.query(_PENDING) for one in value_of(Ids, record).ids)

    def dead(self) -> tuple[str, ...]:
        """The ids of those that were ever refused for good."""
        return tuple(record.key for record in self._store.query(_DEAD))

    def told(self, case_ids: Iterable[str]) -> Mapping[str, str]:
        """By case the id of the notice that last told of it with what comes next."""
        found = self._store.get_many(_TOLD, case_ids)
        return {case_id: value_of(Ids, record).ids[0] for case_id, record in found.items()}

    def add(self, notices: Sequence[OutboxNotice]) -> int:
        """Write those whose id is not known yet; how many that were."""
        return sum(
            until_uncontested(partial(self._added, notices[at : at + _NEW_TOGETHER]), "the outbox")
            for at in range(0, len(notices), _NEW_TOGETHER)
        )

    def change(
        self,
        notice_ids: Iterable[str],
        change: Callable[[OutboxNotice], OutboxNotice | None],
        ended_at: datetime | None = None,
    ) -> dict[str, OutboxNotice]:
        """Write what `change` makes of each notice as it is; those that it makes nothing of are left as they are.

        With `ended_at` those that are pending no more leave the list of pending ones, and are audited.
        """
        wanted = list(dict.fromkeys(notice_ids))
        together = _TOGETHER if ended_at is None else _ENDED_TOGETHER
        changed: dict[str, OutboxNotice] = {}
        for at in range(0, len(wanted), together):
            attempt = partial(self._changed, wanted[at : at + together], change, ended_at)
            changed.update(until_uncontested(attempt, "the outbox"))
        return changed

    def revive(self, notice_id: str, change: Callable[[OutboxNotice | None], OutboxNotice]) -> OutboxNotice:
        """Write what `change` makes of a notice that is pending no more, and list it as pending."""

        def attempt() -> OutboxNotice:
            notice, version = self._read([notice_id]).get(notice_id, (None, 0))
            pending = change(notice)
            put = Put(record_of(NOTICE_KIND, notice_id, pending), version)
            self._store.transact([put, *self._listings([notice_id], pending=True)])
            return pending

        return until_uncontested(attempt, "the outbox")

    def _added(self, notices: Sequence[OutboxNotice]) -> int:
        known = self._store.get_many(NOTICE_KIND, [notice.notice_id for notice in notices])
        new = {notice.notice_id: notice for notice in reversed(notices) if notice.notice_id not in known}
        puts = [Put(record_of(NOTICE_KIND, notice_id, notice), 0) for notice_id, notice in new.items()]
        puts += [telling(notice.case_key, notice_id) for notice_id, notice in new.items() if notice.case_key]
        if new:
            self._store.transact([*puts, *self._listings(new, pending=True)])
        return len(new)

    def _changed(
        self,
        notice_ids: Sequence[str],
        change: Callable[[OutboxNotice], OutboxNotice | None],
        ended_at: datetime | None,
    ) -> dict[str, OutboxNotice]:
        found = self._read(notice_ids)
        made = ((notice_id, change(notice)) for notice_id, (notice, _) in found.items())
        changed = {notice_id: notice for notice_id, notice in made if notice is not None}
        if not changed:
            return changed
        operations = [Put(record_of(NOTICE_KIND, each, changed[each]), found[each][1]) for each in changed]
        if ended_at is None:
            self._store.transact(operations)
            return changed
        ended = [notice for notice in changed.values() if notice.state is not NoticeState.PENDING]
        off = [each.notice_id for each in ended if found[each.notice_id][0].state is NoticeState.PENDING]
        operations += self._listings(off, pending=False)
        operations += self._marks(_DEAD, {one.notice_id: Ids() for one in ended if one.state is NoticeState.DEAD})
        last = {one.case_id: Ids((one.notice_id,)) for one in ended if _tells_what_comes(one)}
        operations += self._marks(_TOLD, last)
        self._audit.commit(operations, *(_entry(one, ended_at) for one in ended))
        return changed

    def _marks(self, kind: str, values: Mapping[str, Ids]) -> Iterator[Put]:
        known = self._store.get_many(kind, values)  # a dead one may be listed: it was revived and died again
        return (Put(record_of(kind, key, ids), _version(known.get(key))) for key, ids in values.items())

    def _listings(self, notice_ids: Iterable[str], *, pending: bool) -> Iterator[Put]:
        """The writes that put notices on, or take them off, their lists of pending ones."""
        by_list: dict[str, dict[str, None]] = {}
        for notice_id in notice_ids:
            by_list.setdefault(hashlib.sha256(notice_id.encode()).hexdigest()[0], {})[notice_id] = None
        known = self._store.get_many(_PENDING, by_list)
        for key, moved in by_list.items():
            record = known.get(key)
            before = value_of(Ids, record).ids if record is not None else ()
            others = tuple(one for one in before if one not in moved)
            listed = Ids((*others, *moved)) if pending else Ids(others)
            yield Put(record_of(_PENDING, key, listed), _version(record))

    def _read(self, notice_ids: Iterable[str]) -> dict[str, tuple[OutboxNotice, int]]:
        wanted = list(notice_ids)
        found = self._store.get_many(NOTICE_KIND, wanted)
        return {each: (value_of(OutboxNotice, found[each]), found[each].version) for each in wanted if each in found}


def _version(record: Record | None) -> int:
    return record.version if record is not None else 0


def _tells_what_comes(notice: OutboxNotice) -> bool:
    return notice.state is NoticeState.DELIVERED and bool(notice.case_id) and not notice.thread


def _entry(notice: OutboxNotice, at: datetime) -> AuditEntry:
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
