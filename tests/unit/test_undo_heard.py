"""Whoever pauses Costguard before the intent of an undo stands is in time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path

import pytest
from tests.scenario.test_a_networks_week import NetworkStage, closing

from costguard.domain.errors import StalePlanError
from costguard.engine.answers.undo import Undoers, undo, undoing_of
from costguard.engine.ledger.memory import Memory
from costguard.ports import Put, Record, RecordStore, VersionCheck
from costguard.ports.records import Name

HOUR = timedelta(hours=1)


class PausedJustBefore:
    """A ledger in which somebody sets the switch the moment before an intent is written."""

    def __init__(self, inner: RecordStore, stage: NetworkStage) -> None:
        self._inner = inner
        self._stage = stage

    @property
    def durable(self) -> bool:
        return self._inner.durable

    def get(self, kind: str, key: str) -> Record | None:
        return self._inner.get(kind, key)

    def query(self, kind: str, prefix: str = "", after: str = "") -> Iterator[Record]:
        return self._inner.query(kind, prefix, after)

    def get_many(self, kind: str, keys: Iterable[str]) -> Mapping[str, Record]:
        return self._inner.get_many(kind, keys)

    def get_each(self, names: Iterable[Name]) -> Mapping[Name, Record]:
        return self._inner.get_each(names)

    def put(self, record: Record, expect_version: int) -> Record:
        return self._inner.put(record, expect_version)

    def transact(self, operations: Sequence[Put | VersionCheck]) -> None:
        if any(isinstance(each, Put) and each.record.kind == "intent" for each in operations):
            self._stage.memory.switch.pause("oncall", "an incident", self._stage.clock.now())
        self._inner.transact(operations)

    def close(self) -> None:
        self._inner.close()


def test_a_pause_between_the_question_and_the_intent_of_an_undo_is_heard(tmp_path: Path) -> None:
    week = NetworkStage(tmp_path, "aws", closing("aws", 8888))
    week.look(timedelta(0))
    week.look(25 * HOUR)
    week.look(26 * HOUR)
    before = week.rules_of("open")
    memory = Memory.over(PausedJustBefore(week.memory.store, week))
    by = Undoers({"aws": week.reading.inventory}, {}, {"aws": lambda: week.remediator})
    calls = len(week.remediator.calls)
    back = undoing_of(memory, week.last_action())
    with pytest.raises(StalePlanError, match="paused meanwhile"):
        undo(memory, back, by, "netops", "needed", week.clock.now(), paused=False)
    assert (len(week.remediator.calls), week.rules_of("open")) == (calls, before)
    week.memory.store.close()
