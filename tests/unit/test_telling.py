"""Telling thousands takes requests by the hundred, and no look through the whole plan for each of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.benchmarks.virtual import DynamoLike, Time
from tests.scenario.stage import DAY, START, Stage, idle_machine
from tests.simulation.store import MemoryLedger, Shelf

from costguard.cases import Phase
from costguard.cases.answering import Vote
from costguard.engine.ledger.memory import Memory, claim_views, notice_views
from costguard.engine.ledger.notices import NoticeState, OutboxNotice
from costguard.engine.ledger.outbox import OutboxRepository
from costguard.engine.notify.delivery import tell
from costguard.engine.notify.notices import INSTANCE_WORDS
from costguard.engine.run.run import committed, longest_wait
from costguard.planning import Plan
from costguard.ports import Delivery

NO_WAIT = timedelta(0)


class Watched:
    """A part of a plan that counts how often it was gone through."""

    def __init__(self, items: tuple[object, ...]) -> None:
        self._items = items
        self.times = 0

    def __iter__(self) -> Iterator[object]:
        self.times += 1
        return iter(self._items)

    def __reversed__(self) -> Iterator[object]:
        self.times += 1
        return reversed(self._items)


def times_gone_through(folder: Path, machines: int) -> dict[str, int]:
    stage = Stage(folder, *(idle_machine(f"idle-{number}") for number in range(machines)), ledger="memory:")
    stage.memory = Memory.over(MemoryLedger(Shelf()))
    world = stage.world()
    plan = committed(world, stage.plan())
    parts: dict[str, Any] = {
        name: Watched(getattr(plan, name)) for name in ("transitions", "findings", "due", "held", "gaps")
    }
    told = tell(world, replace(plan, **parts), INSTANCE_WORDS, NO_WAIT)
    assert len(told) == machines
    return {name: part.times for name, part in parts.items()}


def test_a_plan_is_gone_through_as_often_for_many_as_for_few(tmp_path: Path) -> None:
    few, many = times_gone_through(tmp_path, 2), times_gone_through(tmp_path, 9)
    assert few == many


def notice(number: int) -> OutboxNotice:
    return OutboxNotice(
        notice_id=f"decision-{number:03}",
        decision_id=f"decision-{number:03}",
        case_key=f"idle_gpu/idle/{number}",
        channel="slack:#gpu",
        title="idle",
        text="idle",
        created_at=START + timedelta(seconds=number),
        case_id=f"case-{number}",
        run_id="run-1",
    )


@pytest.fixture
def store() -> DynamoLike:
    return DynamoLike(Time())


def requests(store: DynamoLike) -> int:
    """How many were sent since they were counted last."""
    sent = sum(store.sent.requests.values())
    store.sent.requests.clear()
    return sent


def test_notices_by_the_hundred_take_requests_by_the_dozen(store: DynamoLike) -> None:
    outbox, many = OutboxRepository(store), [notice(number) for number in range(200)]
    store.get("case", "a")
    requests(store)

    assert outbox.enqueue(*many, many[0]) == 200
    assert requests(store) == 5 * 3 + 1  # for forty: whether they are known, their lists, both written; one is known
    assert outbox.due(START + DAY) == tuple(many)
    assert requests(store) == 1 + 2
    mine = outbox.claim((each.notice_id for each in many), START + DAY)
    assert (len(mine), requests(store)) == (200, 3 * 2)
    delivered = outbox.delivered(mine[:10], Delivery("ts-1"), START + DAY)
    assert {each.state for each in delivered} == {NoticeState.DELIVERED}
    assert requests(store) == 5  # what they are, their lists, what was told before, the audit's head, all of it written
    assert len(outbox.said_of_many(each.case_id for each in many)) == 10
    assert requests(store) == 2 + 1
    outbox.drop(mine[10:], START + DAY)
    assert requests(store) == 4 * 13  # for fifteen, which are audited
    assert (outbox.waiting(), requests(store)) == (0, 1)


def test_an_id_that_is_enqueued_twice_at_once_is_told_once(store: DynamoLike) -> None:
    outbox = OutboxRepository(store)
    assert outbox.enqueue(notice(1), replace(notice(1), text="other words")) == 1
    assert outbox.enqueue(notice(1), notice(2)) == 1
    assert [(each.notice_id, each.text) for each in outbox.pending()] == [
        ("decision-001", "idle"),
        ("decision-002", "idle"),
    ]


def test_what_a_plan_asks_of_the_ledger_for_its_cases_takes_requests_by_the_hundred(tmp_path: Path) -> None:
    store = DynamoLike(Time())
    memory = Memory.over(store)
    stage = Stage(tmp_path, ledger="memory:")
    stage.day(0)
    (told,) = stage.memory.cases.active("idle_gpu")
    stage.close()
    cases = tuple(
        replace(told, case_id=f"case-{number}", decision_id=f"decision-{number:03}", phase=Phase.CLAIMED)
        for number in range(250)
    )
    memory.outbox.enqueue(*(notice(number) for number in range(249)))
    memory.approvals.vote("decision-007", Vote("ana", START, START + DAY), 1, START)
    requests(store)

    views = notice_views(memory, cases, START)
    assert (len(views), requests(store)) == (249, 3)
    assert claim_views(memory, cases, views) == {}
    assert requests(store) == 2  # of the one decision that has no notice: under its id, and then by its case
    decisions = [case.decision_id for case in cases]
    assert (list(memory.approvals.valid_among(decisions, START)), requests(store)) == (["decision-007"], 3)
    assert list(memory.approvals.valid_among(decisions, START + DAY)) == []


def test_no_case_is_written_for_lack_of_time(tmp_path: Path) -> None:
    """What a run leaves untold is as its plan left it, so that the next run's plan has it due again."""
    stage = Stage(tmp_path, ledger="memory:")
    stage.memory = Memory.over(MemoryLedger(Shelf()))
    world = stage.world()
    plan: Plan = committed(world, stage.plan())
    assert tell(world, plan, INSTANCE_WORDS, NO_WAIT, deadline=START) == ()
    assert stage.memory.cases.active("idle_gpu") == tuple(step.after for step in plan.transitions)
    assert stage.memory.outbox.pending() == ()


@pytest.mark.parametrize(("left", "seconds"), [(None, 30), (-10, 30), (40, 30), (120, 60), (810, 300), (86_400, 300)])
def test_a_function_waits_for_channels_half_of_its_time_and_five_minutes_at_most(
    left: int | None, seconds: int
) -> None:
    """The other half is for channels that do not ask to be waited for."""
    deadline = None if left is None else START + timedelta(seconds=left)
    assert longest_wait(START, deadline) == timedelta(seconds=seconds)
