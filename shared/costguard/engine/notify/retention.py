"""What a run empties of what was told long ago: the words of notices. Nothing is deleted: the ledger's role may not.

A notice keeps who was told when, by which channel and of what decision, and the dates that it named: grace is counted
from that, and nothing is told twice. It keeps its words as long as somebody may still need them: while it waits to be
sent, or was refused for good, while its message is to be changed, and while a case is open that its message is about.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import islice

from costguard.cases import Case, CaseStatus
from costguard.domain.errors import VersionConflictError
from costguard.engine.ledger.cases import CASE_KIND
from costguard.engine.ledger.codec import record_of, value_of
from costguard.engine.ledger.notices import NOTICE_KIND, NoticeRecords, NoticeState, OutboxNotice
from costguard.engine.ledger.outbox import OutboxRepository
from costguard.ports import Put, Record, RecordStore

_KIND = "retention"  # key: the kind that is gone through
_A_RUN = 80  # notices looked at in one run: with the place, one transaction of the 100 writes that every store takes
_BESIDE = 400  # further ones looked up in one run, of those that went out in one message with them
_OVER = frozenset({NoticeState.DELIVERED, NoticeState.DROPPED})


@dataclass(frozen=True, slots=True)
class _Place:
    """Behind which key the next run goes on; empty: at the begin."""

    after: str = ""


def empty_old_notices(store: RecordStore, kept_for: timedelta, now: datetime) -> int:
    """Empty what was told longer ago, of the next few notices; how many that were.

    Every run goes on where the one before ended, and begins anew at the end: the work of a run does not grow.
    """
    known = store.get(_KIND, NOTICE_KIND)
    after = value_of(_Place, known).after if known is not None else ""
    page = list(islice(store.query(NOTICE_KIND, after=after), _A_RUN))
    read = [(record, value_of(OutboxNotice, record)) for record in page]
    old = [(record, notice) for record, notice in read if _is_old(notice, now - kept_for)]
    old, cut = _looked_up(old)
    needed = _needed(store, [notice for _, notice in old])
    puts = [Put(_emptied(record, notice), record.version) for record, notice in old if notice.notice_id not in needed]
    place = cut or (page[-1].key if len(page) == _A_RUN else "")
    if not puts and place == after:
        return 0
    moved = Put(record_of(_KIND, NOTICE_KIND, _Place(place)), known.version if known is not None else 0)
    try:
        store.transact([*puts, moved])
    except VersionConflictError:
        return 0  # another run is at it, or a notice was changed just now: a later run
    return len(puts)


def _is_old(notice: OutboxNotice, before: datetime) -> bool:
    """Whether nothing happens to it any more, since before then, and it has words still."""
    ended = notice.delivered_at or notice.holds_until or notice.created_at
    return notice.state in _OVER and ended < before and _without_words(notice) != notice


def _looked_up(
    old: Sequence[tuple[Record, OutboxNotice]],
) -> tuple[list[tuple[Record, OutboxNotice]], str]:
    """As many as may be looked up with all that went out with them, and the key behind which the others are left."""
    beside: set[str] = set()
    for place, (_, notice) in enumerate(old):
        beside.update(notice.beside)
        if place and len(beside) > _BESIDE:
            return list(old[:place]), old[place - 1][0].key
    return list(old), ""


def _needed(store: RecordStore, notices: Sequence[OutboxNotice]) -> frozenset[str]:
    """Those whose message is to be changed, or may be: it is about a case that is open, all in it counted."""
    if not notices:
        return frozenset()
    together = {one.notice_id: one for one in notices}
    others = {each for one in notices for each in one.beside} - together.keys()
    together |= NoticeRecords(store).get_many(sorted(others))
    keys = {one.case_key for one in together.values() if one.case_key}
    cases = {key: value_of(Case, record) for key, record in store.get_many(CASE_KIND, sorted(keys)).items()}
    is_open = {key for key, case in cases.items() if case.status is not CaseStatus.CLOSED}
    waiting = {one.notice_id for one in OutboxRepository(store).changed()}

    def matters(notice_id: str) -> bool:
        one = together.get(notice_id)
        return notice_id in waiting or one is None or one.case_key in is_open

    def of(notice: OutboxNotice) -> Iterator[str]:
        yield notice.notice_id
        yield from notice.beside

    return frozenset(one.notice_id for one in notices if any(map(matters, of(one))))


def _emptied(record: Record, notice: OutboxNotice) -> Record:
    return record_of(NOTICE_KIND, record.key, _without_words(notice))


def _without_words(notice: OutboxNotice) -> OutboxNotice:
    """Its title stays: it says in a line what was told."""
    return replace(notice, text="", fields=(), lines=(), picture="", choices=())
