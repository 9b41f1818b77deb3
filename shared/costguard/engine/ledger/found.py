"""Ways to a case and its notices that do not lead over all of them: by name, by the day on which it ended, by case.

Written with what they lead to, in one transaction, and never changed. What an older version wrote has none: they are
believed where the lists of open cases are (`listing`), and what tells of a time only from `listed_since` on.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from functools import partial

from costguard.cases import Case
from costguard.engine.ledger.codec import record_of, until_uncontested, value_of
from costguard.ports import Put, RecordStore

_NAMED = "case_named"  # key: hash of a name / hash of the case's key
_ENDED = "case_ended"  # key: day / hash of what `case_closed` has it under
_TOLD = "notice_of"  # key: hash of the case's key / hash of the notice's id
_PARTS_BEFORE_ID = 4  # of cloud:account:region:kind:native_id
_TOGETHER = 50  # in one transaction, which takes 100 writes: two names each


@dataclass(frozen=True, slots=True)
class _Key:
    key: str


def is_called(case: Case, name: str) -> bool:
    """Whether its resource has this id, whole or as its vendor has it, or the case itself."""
    return name in {str(case.subject), case.subject.native_id, case.case_id}


def naming(store: RecordStore, cases: Iterable[Case], *, anew: bool = False) -> list[Put]:
    """The writes by which these are found by name, without those that there are; `anew`: nothing was ever there."""
    names = ((name, case.key) for case in cases for name in (case.subject.native_id, case.case_id))
    wanted = {f"{_hash(name)}/{_hash(key)}": key for name, key in names}
    known = {} if anew else store.get_many(_NAMED, wanted)
    return [Put(record_of(_NAMED, at, _Key(key)), 0) for at, key in wanted.items() if at not in known]


def fill_names(store: RecordStore, cases: Sequence[Case]) -> None:
    """Have them found by name, whichever version opened them. Safe to repeat, and to break off."""
    for at in range(0, len(cases), _TOGETHER):
        some = cases[at : at + _TOGETHER]
        until_uncontested(partial(_fill, store, some), "the names of cases")


def _fill(store: RecordStore, cases: Sequence[Case]) -> None:
    store.transact(naming(store, cases))


def keys_named(store: RecordStore, name: str) -> list[str]:
    """The keys of the cases that may be called so."""
    names = {name, *name.split(":", _PARTS_BEFORE_ID)[_PARTS_BEFORE_ID:]}
    found = (record for each in names for record in store.query(_NAMED, f"{_hash(each)}/"))
    return sorted({value_of(_Key, record).key for record in found})


def ending(store: RecordStore, case: Case, kept_key: str, *, anew: bool) -> list[Put]:
    """The write by which a closed case is found by its day; `anew`: it was not closed before."""
    if case.closed_at is None:
        return []
    at = f"{_day(case.closed_at)}/{_hash(kept_key)}"
    there = not anew and store.get(_ENDED, at) is not None
    return [] if there else [Put(record_of(_ENDED, at, _Key(kept_key)), 0)]


def keys_ended(store: RecordStore, since: datetime) -> Iterator[str]:
    """What `case_closed` has those under that ended on this day or later."""
    day_before = _day(since - timedelta(days=1))
    return (value_of(_Key, one).key for one in store.query(_ENDED, after=f"{day_before}/~"))


def telling(case_key: str, notice_id: str) -> Put:
    """The write by which a new notice of a case is found."""
    return Put(record_of(_TOLD, f"{_hash(case_key)}/{_hash(notice_id)}", _Key(notice_id)), 0)


def notices_of(store: RecordStore, case_key: str) -> list[str]:
    """The ids of the notices about the cases with this key."""
    return sorted(value_of(_Key, record).key for record in store.query(_TOLD, f"{_hash(case_key)}/"))


def _day(moment: datetime) -> str:
    return f"{moment.astimezone(timezone.utc):%Y-%m-%d}"


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]
