"""What is open, in lists beside the records, so that a run reads what is open and not all that ever was.

A list is changed in the transaction that opens or closes what it names: it never misses what this version opened. What
an older version opened it does not have. That such a version is at work, or was lately, shows in the latest run of each
guard, which every version writes when it begins: as long as an older one began one of them, everything is read, as it
was before there were lists. Two days later, when nothing of that version can run any more, a run fills the lists once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from functools import partial

from costguard.domain.errors import VersionConflictError
from costguard.engine.ledger.codec import record_of, to_body, until_uncontested, value_of
from costguard.ports import Put, Record, RecordStore

LATEST = "run_latest"  # key: guard
_LISTS = 128  # of one guard: DynamoDB gives as many in one page, and with 3,000 open cases one has 1.5 KB
_OUTLASTED = timedelta(days=2)  # the longest run of any host is a day: Function Compute, `timeout` up to 86,400 s


@dataclass(frozen=True, slots=True)
class Listing:
    """What the latest run of a guard says of the lists; a version that keeps none leaves it out.

    `whole`: they have all that is open, whoever opened it. `unlisted_at`: when a version without lists last began one.
    """

    whole: bool
    unlisted_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class _Begun:
    """What matters here of the latest run of a guard."""

    started_at: datetime
    lists: Listing | None = None

    @property
    def after(self) -> Listing:
        """What the next run of this guard says."""
        return self.lists or Listing(whole=False, unlisted_at=self.started_at)


@dataclass(frozen=True, slots=True)
class _Names:
    names: tuple[str, ...] = ()


def listing_after(latest: Record | None) -> Listing:
    """What a run says that begins after this one of its guard; where there was none, nothing was opened either."""
    return Listing(whole=True) if latest is None else value_of(_Begun, latest).after


def lists_are_whole(store: RecordStore) -> bool:
    """Whether the lists have all that is open; where nobody ever began a run, that is not known."""
    return listed_since(store) is not None


def listed_since(store: RecordStore) -> datetime | None:
    """From when on all that was written is listed, whoever wrote it; None where lists are not whole."""
    begun = [value_of(_Begun, record).after for record in store.query(LATEST)]
    if not begun or not all(each.whole for each in begun):
        return None
    first = datetime.min.replace(tzinfo=timezone.utc)
    return max((each.unlisted_at + _OUTLASTED for each in begun if each.unlisted_at is not None), default=first)


class OpenLists:
    """The lists of one kind, of keys that begin with their guard, or with another name of what is read at once."""

    def __init__(self, store: RecordStore, kind: str) -> None:
        self._store = store
        self._kind = kind

    def keys(self, guard: str) -> list[str]:
        """The keys that are listed of a guard, in order; of some an older version may have closed the record."""
        found = self._store.query(self._kind, f"{guard}/")
        return sorted(f"{guard}/{name}" for record in found for name in value_of(_Names, record).names)

    def changes(self, moved: Mapping[str, bool]) -> list[Put]:
        """The writes that list keys (True) or take them off. Always a write, so that whoever fills a list meets it."""
        by_list: dict[str, dict[str, bool]] = {}
        for key, is_open in moved.items():
            where, name = _place(key)
            by_list.setdefault(where, {})[name] = is_open
        known = self._store.get_many(self._kind, by_list)
        puts = []
        for where, named in by_list.items():
            others = (one for one in _names(known.get(where)) if one not in named)
            names = (*others, *(name for name, is_open in named.items() if is_open))
            puts.append(self._put(where, known.get(where), names))
        return puts

    def fill(self, keys: Iterable[str], open_of: Callable[[Sequence[str]], Iterable[str]]) -> None:
        """List those of `keys` that `open_of` finds open, and take off what it does not."""
        by_list: dict[str, set[str]] = {}
        for key in keys:
            by_list.setdefault(_place(key)[0], set()).add(key)
        for where, found in by_list.items():
            until_uncontested(partial(self._fill, where, found, open_of), f"the list {where}")

    def _fill(self, where: str, keys: Iterable[str], open_of: Callable[[Sequence[str]], Iterable[str]]) -> None:
        record = self._store.get(self._kind, where)  # first: what is opened or closed from now on changes the list
        guard = where.partition("/")[0]
        listed = {f"{guard}/{name}" for name in _names(record)}
        names = tuple(sorted(_place(key)[1] for key in open_of(sorted(listed.union(keys)))))
        if set(names) != set(_names(record)):
            put = self._put(where, record, names)
            self._store.put(put.record, put.expect_version)

    def _put(self, where: str, record: Record | None, names: tuple[str, ...]) -> Put:
        return Put(record_of(self._kind, where, _Names(names)), record.version if record is not None else 0)


def fill_lists(store: RecordStore, now: datetime, fills: Iterable[Callable[[], None]]) -> None:
    """Have the lists filled, where they are not whole and no version without lists can be at work any more."""
    begun = [(record, value_of(_Begun, record).after) for record in store.query(LATEST)]
    lacking = [(record, listing) for record, listing in begun if not listing.whole]
    if not lacking or any(one.unlisted_at is None or now < one.unlisted_at + _OUTLASTED for _, one in lacking):
        return
    for fill in fills:
        fill()
    for record, listing in lacking:
        body = {**record.body, "lists": to_body(replace(listing, whole=True))}
        try:
            store.put(Record(LATEST, record.key, body, schema=record.schema), record.version)
        except VersionConflictError:
            continue  # another run of this guard began meanwhile, perhaps of an older version: a later run fills


def _place(key: str) -> tuple[str, str]:
    """The list that a key belongs on, and its name there."""
    guard, _, name = key.partition("/")
    return f"{guard}/{int(hashlib.sha256(name.encode()).hexdigest()[:4], 16) % _LISTS:03d}", name


def _names(record: Record | None) -> tuple[str, ...]:
    return value_of(_Names, record).names if record is not None else ()
