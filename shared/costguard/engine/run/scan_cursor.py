"""Whose turn it is to be read first: where a run was cut by its deadline, the next begins with what was not reached."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from costguard.domain.errors import VersionConflictError
from costguard.domain.findings import ShardFacts
from costguard.domain.refs import Shard
from costguard.domain.resources import Gap, GapKind
from costguard.engine.ledger.codec import record_of, value_of
from costguard.ports import RecordStore

_KIND = "turn"  # key: guard
_READING = 0.75  # of the time left: what is read must still be judged, acted on and told


@dataclass(frozen=True, slots=True)
class _Turn:
    begin_at: str = ""


class ScanCursor:
    """One record for each guard: the shard that the next run begins with, empty where the last reached them all."""

    def __init__(self, store: RecordStore) -> None:
        self._store = store

    def first(self, guard: str) -> str:
        """The text of the shard to begin with."""
        record = self._store.get(_KIND, guard)
        return value_of(_Turn, record).begin_at if record is not None else ""

    def keep(self, guard: str, begin_at: str) -> None:
        """Remember it; of two runs at once either may say."""
        record = self._store.get(_KIND, guard)
        if (value_of(_Turn, record).begin_at if record is not None else "") == begin_at:
            return
        try:
            self._store.put(record_of(_KIND, guard, _Turn(begin_at)), record.version if record is not None else 0)
        except VersionConflictError:
            return


def in_turn(shards: Sequence[Shard], begin_at: str) -> tuple[Shard, ...]:
    """All of them in one fixed order, beginning with the first that is not before `begin_at`."""
    around = sorted(shards, key=str)
    later = [shard for shard in around if str(shard) >= begin_at]
    return (*later, *around[: len(around) - len(later)])


def not_reached(facts: Sequence[ShardFacts], begin_at: str) -> str:
    """The first shard in turn for which no time was left; empty where there was time for all."""
    return cut_at((gap for fact in facts for gap in fact.gaps), begin_at)


def cut_at(gaps: Iterable[Gap], begin_at: str) -> str:
    """The same of the gaps of a look."""
    cut = {gap.shard for gap in gaps if gap.kind is GapKind.DEADLINE}
    return str(in_turn(tuple(cut), begin_at)[0]) if cut else ""


def reading_until(now: datetime, deadline: datetime | None) -> datetime | None:
    """When to stop reading, so that a run that cannot read everything still acts on what it has read."""
    return None if deadline is None else now + max(deadline - now, timedelta(0)) * _READING
