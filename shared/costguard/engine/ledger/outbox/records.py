"""How notices are kept: each in a record, and lists of those that are pending, dead, or what a case was last told with.

Pending ids are indexed in sixteen records, dead ones singly, so that nothing here reads the delivered notices of years.
Many notices take few requests: a hundred are read at once, and what is written of several is one transaction.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from costguard.engine.ledger.audit.audit import AuditEntry, AuditTrail, AuditWhat
from costguard.engine.ledger.codec import record_of, value_of
from costguard.engine.ledger.contention import until_uncontested
from costguard.engine.ledger.outbox.notice import NoticeState, OutboxNotice
from costguard.ports import Put, Record, RecordStore

_NOTICE, _PENDING, _DEAD, _TOLD = "notice", "outbox_pending", "outbox_dead", "told"
_RUN = "outbox"  # the run id of audit entries about notices
_TOGETHER = 80  # in one transaction, which takes 100 writes, with the sixteen lists
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
        return (value_of(OutboxNotice, record) for record in self._store.query(_NOTICE, prefix))

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
            until_uncontested(partial(self._added, notices[at : at + _TOGETHER]), "the outbox")
            for at in range(0, len(notices), _TOGETHER)
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
            put = Put(record_of(_NOTICE, notice_id, pending), version)
            self._store.transact([put, *self._listings([notice_id], pending=True)])
            return pending

        return until_uncontested(attempt, "the outbox")

    def _added(self, notices: Sequence[OutboxNotice]) -> int:
        known = self._store.get_many(_NOTICE, [notice.notice_id for notice in notices])
        new = {notice.notice_id: notice for notice in reversed(notices) if notice.notice_id not in known}
        puts = [Put(record_of(_NOTICE, notice_id, notice), 0) for notice_id, notice in new.items()]
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
        operations = [Put(record_of(_NOTICE, each, changed[each]), found[each][1]) for each in changed]
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
        found = self._store.get_many(_NOTICE, wanted)
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
