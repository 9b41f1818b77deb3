"""Under a daily run a wait of a day takes a day, and a cap lets as many through on each day as it says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from tests.builders import policy, rule
from tests.scenario.stage import CLOUDS, DAY, START, Mailbox, Recorder, Stage, idle_machine
from tests.scenario.test_a_keys_month import KeyStage
from tests.world_ports.inventory import WorldExecutor

from cloudstand.clock import MovedClock
from costguard.domain.actions import Action, Receipt, Verb
from costguard.domain.money import Money
from costguard.engine.run.run import WAITS_UP_TO, RunReport, run_guard
from costguard.guards.rules.common import Step
from costguard.ports import Delivery, Message

TELLING, CALLING = timedelta(seconds=17), timedelta(seconds=40)
MINUTE = timedelta(minutes=1)


class SlowMailbox(Mailbox):
    """A channel that takes its time for each message."""

    def __init__(self, clock: MovedClock, takes: timedelta) -> None:
        super().__init__()
        self.clock, self.takes = clock, takes

    def send(self, message: Message) -> Delivery:
        self.clock.advance(self.takes)
        return super().send(message)


class SlowRecorder(Recorder):
    """An executor that takes its time, and notes when it was called."""

    def __init__(self, inner: WorldExecutor, clock: MovedClock, takes: timedelta) -> None:
        super().__init__(inner)
        self.clock, self.takes = clock, takes
        self.called_at: list[datetime] = []

    def execute(self, action: Action) -> Receipt:
        self.called_at.append(self.clock.now())
        self.clock.advance(self.takes)
        return super().execute(action)


class SlowStage(Stage):
    """A stage on which telling and calling take as long as they do."""

    def slowly(self, calling: timedelta = CALLING) -> SlowStage:
        self.mailbox = SlowMailbox(self.clock, TELLING)
        self.slow = SlowRecorder(WorldExecutor(self.cloud, self.clock), self.clock, calling)
        self.executor = self.slow
        return self


@pytest.fixture(params=CLOUDS)
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SlowStage]:
    made = SlowStage(tmp_path, idle_machine(cloud=request.param)).slowly()
    yield made
    made.close()


def announced(stage: Stage) -> datetime:
    stop = stage.case().announced_for(Verb.STOP)
    assert stop is not None
    return stop


def test_a_wait_of_a_day_ends_with_the_run_of_the_next_day(stage: SlowStage) -> None:
    stage.days(range(10))

    (told,) = (climbed.at for climbed in stage.case().climbed[:1])
    assert told == START + TELLING
    assert stage.verbs()[0] == "stop"
    assert told + DAY <= stage.slow.called_at[0] <= told + DAY + MINUTE


def test_it_stops_not_a_second_before_what_was_announced(stage: SlowStage) -> None:
    stage.day(0)
    stop, told = announced(stage), stage.case().since
    stage.day(1)
    assert stage.slow.called_at[0] >= max(stop, told + DAY)


def test_what_people_say_while_a_run_waits_is_heard(stage: SlowStage) -> None:
    stage.day(0)
    sleep = stage.clock.sleep

    class Interrupted(MovedClock):
        def sleep(self, seconds: float) -> None:
            stage.memory.switch.pause("root", "wait for me", self.now())
            sleep(seconds)
            self.move_to(stage.clock.now())

    stage.clock.advance(DAY - TELLING)
    watched = Interrupted(stage.clock.now())
    report = run_guard(replace(stage.world(), clock=watched), "second").report
    assert (stage.verbs(), report.plan is not None) == ([], True)


def test_a_run_that_is_earlier_than_that_waits_for_nothing(stage: SlowStage) -> None:
    stage.day(0)
    early = DAY + TELLING - WAITS_UP_TO - MINUTE
    stage.at(early)
    assert (stage.verbs(), stage.clock.now()) == ([], START + early)


def test_a_preview_waits_for_nothing(stage: SlowStage) -> None:
    stage.day(0)
    stage.clock.advance(DAY - TELLING)
    before = stage.clock.now()
    assert [action.verb for action in stage.plan().due] == []
    assert stage.clock.now() == before


def test_a_run_that_has_too_little_time_left_waits_for_nothing(stage: SlowStage) -> None:
    stage.day(0)
    stage.clock.advance(DAY - TELLING)
    now = stage.clock.now()
    report = run_guard(stage.world(), "short", deadline=now + 2 * TELLING).report
    assert isinstance(report, RunReport)
    assert stage.verbs() == []
    assert stage.clock.now() < now + 2 * TELLING


@pytest.mark.parametrize("cloud", CLOUDS)
def test_a_key_is_mended_with_the_run_of_the_next_day(cloud: str, tmp_path: Path) -> None:
    month = KeyStage(tmp_path)
    month.mailbox = SlowMailbox(month.clock, TELLING)
    key = month.key(cloud=cloud)
    month.look(timedelta(0))
    assert (month.mailbox.titles != [], month.rotator.calls) == (True, [])
    month.look(DAY)
    month.close()

    assert month.rotator.calls == [(key.ref.native_id, "every 90")]
    assert month.clock.now() >= START + DAY + TELLING


def capped(folder: Path, cloud: str, calling: timedelta) -> SlowStage:
    """27 machines under a cap of three a day, eleven daily runs, and calls that take so long."""
    limits = replace(
        rule().limits,
        actions_per_day=3,
        fleet_share_per_day=Decimal(1),
        hourly_cost_stopped_per_day=(Money(Decimal(10_000), "USD"),),
    )
    ladder = (Step(Verb.WARN, 0 * DAY), Step(Verb.STOP, DAY))
    fleet = [idle_machine(f"box-{number:02}", cloud=cloud) for number in range(27)]
    stage = SlowStage(folder, *fleet, under=policy(rule(limits=limits, ladder=ladder))).slowly(calling)
    stage.days(range(11))
    stage.close()
    return stage


@pytest.mark.parametrize("cloud", CLOUDS)
def test_a_cap_lets_as_many_through_on_each_day_as_it_says(cloud: str, tmp_path: Path) -> None:
    stage = capped(tmp_path, cloud, timedelta(seconds=2))
    stopped = Counter((at - START) // DAY for at in stage.slow.called_at)
    assert [stopped[day] for day in range(11)] == [0, *[3] * 9, 0]


def test_a_slow_run_waits_for_room_and_no_24_hours_hold_more_than_the_cap(tmp_path: Path) -> None:
    """Its work wanders later by two minutes a day; once that is more than it waits for, most of a day is left out."""
    called = capped(tmp_path, "aws", CALLING).slow.called_at
    for at in called:
        assert sum(at - DAY < one <= at for one in called) <= 3
    stopped = Counter((at - START) // DAY for at in called)
    assert [stopped[day] for day in range(1, 7)] == [3, 3, 3, 3, 1, 3]
