"""A report that ends by its deadline, or is killed, goes on: in a retry or in the next run, with nothing told twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from tests.contract.ledger_fakes import InterferingStore
from tests.scenario.stage import DAY, START, Mailbox, Stage, idle_machine
from tests.simulation.store import MemoryLedger, Shelf

from cloudstand.clock import MovedClock
from cloudstand.world import workload
from cloudstand.world.fleet import MachineSpec
from costguard.adapters.object_stores.folder import FolderStore
from costguard.cases import CaseStatus, Phase
from costguard.engine.ledger.memory import Memory
from costguard.engine.run.phases.phases import Phases
from costguard.engine.run.run import RunReport, carry_out, run_guard, summary
from costguard.ports import Delivery, Message

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
MACHINES = tuple(f"idle-{number}" for number in range(4))


class Killed(BaseException):
    """The host ended the process."""


class SlowMailbox(Mailbox):
    """One warning a message, a minute each; `dies_after` so many messages the process is killed."""

    def __init__(self, stage: Stage) -> None:
        super().__init__()
        self._stage = stage
        self.dies_after: int | None = None

    def send(self, message: Message) -> Delivery:
        if self.dies_after is not None and len(self.messages) >= self.dies_after:
            raise Killed
        delivery = super().send(message)
        self._stage.clock.advance(MINUTE)
        return delivery

    def capacity(self, message: Message) -> int:
        del message
        return 1

    @property
    def told(self) -> Counter[str]:
        """How often each machine was told of with the dates of what comes."""
        return Counter(name for each in self.messages for name in MACHINES if name in each.text and not each.thread)


def in_memory(folder: Path, *fleet: MachineSpec) -> Stage:
    """A stage with a slow mailbox, and a ledger that lasts as long as the story does."""
    made = Stage(folder, *fleet, ledger="memory:")
    made.memory.store.close()
    made.memory = Memory.over(MemoryLedger(Shelf()))
    made.mailbox = SlowMailbox(made)
    return made


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    """Four idle machines of one owner."""
    made = in_memory(tmp_path, *(idle_machine(name) for name in MACHINES))
    yield made
    made.close()


@pytest.fixture
def mailbox(stage: Stage) -> SlowMailbox:
    assert isinstance(stage.mailbox, SlowMailbox)
    return stage.mailbox


def told_up_to(stage: Stage, folder: Path, at: timedelta) -> Callable[[timedelta | None], RunReport]:
    """A run in phases that is about to report; each call reports with surroundings of its own, in so much time."""
    stage.clock.advance(START + at - stage.clock.now())
    run_id, objects = f"{stage.clock.now():run-%m%d%H%M}", FolderStore(folder / "objects")

    def phases() -> Phases:
        return Phases(stage.world(), run_id, objects)

    for part in range(phases().targets() or 0):
        phases().scan(part)
    for part in range(phases().plan()):
        phases().act(part)

    def report(time: timedelta | None) -> RunReport:
        return phases().report(None if time is None else stage.clock.now() + time)

    return report


def waiting(stage: Stage) -> int:
    return stage.memory.outbox.waiting()


def test_what_could_not_be_sent_in_time_is_sent_by_the_next_run(
    stage: Stage, mailbox: SlowMailbox, tmp_path: Path
) -> None:
    cut = told_up_to(stage, tmp_path, 0 * DAY)(1.5 * MINUTE)
    first = dict(mailbox.told)
    assert (len(first), waiting(stage)) == (2, 2)
    figures = summary(cut)
    assert (figures["notices"], figures["done"], figures["not_done"], figures["notices_waiting"]) == (2, 2, 2, 2)
    assert not any(notice.proven for notice in stage.memory.outbox.pending())
    assert sorted(stage.case(name).climbed != () for name in MACHINES) == [False] * 2 + [True] * 2

    whole = told_up_to(stage, tmp_path, 10 * MINUTE)(None)
    assert "notices_waiting" not in summary(whole)
    assert mailbox.told == dict.fromkeys(MACHINES, 1)

    told_up_to(stage, tmp_path, 20 * MINUTE)(None)
    begun = {name: stage.case(name).climbed[0].at for name in MACHINES}
    assert all((begun[name] - START < 10 * MINUTE) is (name in first) for name in MACHINES)  # by delivery, not by run
    told_up_to(stage, tmp_path, DAY + HOUR)(None)
    assert stage.verbs().count("stop") == len(MACHINES)
    assert mailbox.told == dict.fromkeys(MACHINES, 1)


def test_what_could_not_be_written_in_time_is_due_again_in_the_next_run(
    stage: Stage, mailbox: SlowMailbox, tmp_path: Path
) -> None:
    report = told_up_to(stage, tmp_path, 0 * DAY)
    cut = report(0 * MINUTE)
    assert (mailbox.messages, waiting(stage), summary(cut)["not_done"]) == ([], 0, len(MACHINES))
    assert {stage.case(name).phase for name in MACHINES} == {Phase.WAITING}
    assert report(None).duplicate  # the run is closed: what was left is the next one's

    told_up_to(stage, tmp_path, 10 * MINUTE)(None)
    assert mailbox.told == dict.fromkeys(MACHINES, 1)


def test_a_report_that_was_killed_goes_on_when_it_is_called_again(
    stage: Stage, mailbox: SlowMailbox, tmp_path: Path
) -> None:
    report = told_up_to(stage, tmp_path, 0 * DAY)
    mailbox.dies_after = 2
    with pytest.raises(Killed):
        report(None)
    mailbox.dies_after = None
    assert (sum(mailbox.told.values()), waiting(stage)) == (2, 2)

    stage.clock.advance(6 * MINUTE)  # a sender that says nothing more has what it claimed for five minutes
    again = report(None)
    assert not again.duplicate
    assert mailbox.told == dict.fromkeys(MACHINES, 1)

    told_up_to(stage, tmp_path, HOUR)(None)  # finds what arrived while nobody could note it
    assert all(stage.case(name).climbed for name in MACHINES)
    told_up_to(stage, tmp_path, DAY + HOUR)(None)
    assert stage.verbs().count("stop") == len(MACHINES)
    assert mailbox.told == dict.fromkeys(MACHINES, 1)


def test_warnings_claimed_and_never_written_are_told_an_hour_later(
    stage: Stage, mailbox: SlowMailbox, tmp_path: Path
) -> None:
    told = told_up_to(stage, tmp_path, 0 * DAY)
    ledger = stage.memory

    def killed() -> None:
        raise Killed

    dying = InterferingStore(ledger.store)
    dying.before_writes.extend([lambda: None, killed])  # after the claims, which are one write
    stage.memory = Memory.over(dying)
    with pytest.raises(Killed):
        told(None)
    stage.memory = ledger
    assert {stage.case(name).phase for name in MACHINES} == {Phase.CLAIMED}
    assert (mailbox.messages, waiting(stage)) == ([], 0)

    for later in (10 * MINUTE, HOUR + MINUTE, HOUR + 10 * MINUTE):
        told_up_to(stage, tmp_path, later)(None)
    assert mailbox.told == dict.fromkeys(MACHINES, 1)


def test_news_is_kept_however_little_time_there_is(tmp_path: Path) -> None:
    """No later run would have it: the move that it tells of is made once."""
    back = workload.comes_back(START + HOUR)
    stage = in_memory(tmp_path, *(idle_machine(name, does=back) for name in MACHINES))
    stage.day(0)
    stage.clock.advance(3 * HOUR)
    cut = run_guard(stage.world(), "cut", deadline=stage.clock.now() + MINUTE).report
    assert (len(cut.notices), waiting(stage)) == (1, len(MACHINES) - 1)
    assert {stage.case(name).status for name in MACHINES} == {CaseStatus.CLOSED}

    stage.at(5 * HOUR)
    told, news = stage.mailbox.messages[: len(MACHINES)], stage.mailbox.messages[len(MACHINES) :]
    assert len(news) == len(MACHINES)
    assert {each.thread for each in news} == {f"ts-{number}" for number in range(1, len(told) + 1)}
    stage.close()


def test_a_run_that_is_late_already_still_tells_somebody(stage: Stage) -> None:
    """Else one that is late every time would never tell anybody, and nothing would ever be stopped."""
    late = carry_out(stage.world(), stage.plan(), deadline=START - MINUTE)
    assert (len(late.notices), waiting(stage)) == (1, len(MACHINES) - 1)


@dataclass(frozen=True)
class TickingClock:
    """Moves on by a millisecond whenever somebody looks, as real ones do."""

    moved: MovedClock

    def now(self) -> datetime:
        self.moved.advance(timedelta(milliseconds=1))
        return self.moved.now()

    def sleep(self, seconds: float) -> None:
        self.moved.advance(timedelta(seconds=seconds))


def test_the_case_that_was_opened_first_is_told_first(tmp_path: Path) -> None:
    """Whoever waits for the longest is not overtaken by those found since."""
    younger = [idle_machine(f"a-young-{number}", launched_at=START - 23 * HOUR) for number in range(6)]
    stage = in_memory(tmp_path, *younger, idle_machine("z-old"))
    told_up_to(stage, tmp_path, 0 * DAY)(0 * MINUTE)  # opens the case of the old one, and has no time to tell of it
    assert (stage.case("z-old").opened_at, stage.mailbox.messages) == (START, [])
    stage.clock.advance(2 * HOUR)
    run_guard(replace(stage.world(), clock=TickingClock(stage.clock)), "whole")
    assert ["z-old" in each.text for each in stage.mailbox.messages] == [True, *(False for _ in younger)]
    stage.close()
