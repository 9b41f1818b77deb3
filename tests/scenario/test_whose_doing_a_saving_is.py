"""A machine stands still: Costguard stopped it, its owner did when told of it, or nobody can say who."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from tests.scenario.stage import CLOUDS, Stage, idle_machine

from cloudstand.world.kinds import Billing
from costguard.domain.savings import SavingCause, SavingEntry, SavingsReport
from costguard.engine.savings import savings_report

HOUR = timedelta(hours=1)


@pytest.fixture(params=CLOUDS)
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stage]:
    opened = Stage(tmp_path, idle_machine(cloud=request.param))
    yield opened
    opened.close()


def report(stage: Stage) -> SavingsReport:
    now = stage.clock.now()
    return savings_report(stage.memory, now - timedelta(days=30), now, now)


def only(stage: Stage) -> SavingEntry:
    (entry,) = report(stage).entries
    return entry


def owner_stops(stage: Stage) -> None:
    stage.clock.advance(2 * HOUR)
    stage.cloud.tick(stage.clock.now())
    stage.cloud.stop(stage.ref().native_id, "owner")
    stage.cloud.tick(stage.clock.now() + HOUR)


def test_what_costguard_stopped_it_caused(stage: Stage) -> None:
    stage.days((0, 1, 2, 3))

    assert only(stage).cause is SavingCause.COSTGUARD
    assert report(stage).totals
    assert report(stage).others == ()


def test_what_its_owner_stopped_after_the_notice_is_labelled_so_and_in_no_total(stage: Stage) -> None:
    stage.day(0)
    owner_stops(stage)
    stage.days((1, 2))

    entry = only(stage)
    assert (entry.cause, entry.standing.value) == (SavingCause.PERSON, "stopped")
    assert entry.counted_until - entry.since == 24 * HOUR, "from the look that saw it to the last look"
    assert entry.realised[0].amount > 0
    assert entry.unpriced == ("volume",), "nobody looked up what its disks cost, which is said"
    assert report(stage).totals == ()
    assert [one.cause for one in report(stage).others] == [SavingCause.PERSON]


def test_it_ends_where_the_owner_starts_it_again(stage: Stage) -> None:
    stage.day(0)
    owner_stops(stage)
    stage.days((1, 2))
    stage.cloud.start(stage.ref().native_id, "owner")
    stage.day(3)

    assert only(stage).standing.value == "restarted"


def test_what_somebody_stopped_who_was_never_told_is_no_saving_of_anybody(stage: Stage) -> None:
    stage.mailbox.down = True
    stage.day(0)
    owner_stops(stage)
    stage.days((1, 2))

    assert report(stage).entries == ()


def test_a_spot_machine_that_stopped_after_its_notice_may_have_been_taken_back(tmp_path: Path) -> None:
    stage = Stage(tmp_path, replace(idle_machine(), billing=Billing.SPOT))
    stage.day(0)
    owner_stops(stage)
    stage.days((1, 2))

    assert only(stage).cause is SavingCause.UNATTRIBUTED
    stage.close()


def test_a_saving_of_a_ledger_without_causes_is_attributed_by_what_is_recorded_of_its_call(tmp_path: Path) -> None:
    stage = Stage(tmp_path, idle_machine())
    stage.days((0, 1, 2, 3))
    store = stage.memory.store
    (record,) = store.query("saving")
    older = {name: value for name, value in record.body.items() if name != "cause"}
    store.put(replace(record, body=older), record.version)
    assert only(stage).cause is SavingCause.COSTGUARD, "its call was accepted, as the intent says"

    (record,) = store.query("saving")
    forgotten = {**older, "action": {**older["action"], "action_id": "of-no-intent"}}
    store.put(replace(record, body=forgotten), record.version)
    assert only(stage).cause is SavingCause.UNATTRIBUTED
    assert report(stage).totals == ()
    stage.close()
