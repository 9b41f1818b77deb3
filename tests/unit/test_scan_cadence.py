"""How often a sender means to measure is learnt from a day, however short the window that is judged."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta

from tests.builders import NOW, case, detail, instance, policy, rule

from costguard.adapters.ledgers import open_ledger
from costguard.backtest import Machine, Run, Terms, replay
from costguard.cases import Case, ClimbedRung
from costguard.domain.actions import Action, Verb
from costguard.domain.money import HourlyRate, Money
from costguard.domain.reasons import Reason, ReasonCode
from costguard.domain.refs import ResourceRef, Shard
from costguard.domain.resources import Instance, InstanceDetail, Inventory, Volume
from costguard.domain.signals import (
    CADENCE_SHOWS,
    HOUR,
    SignalHistory,
    SignalName,
    SignalReading,
    floor_hour,
    reads_back,
)
from costguard.engine.guards.machines.run import InstanceHandler
from costguard.engine.ledger.memory import Memory
from costguard.engine.ledger.notices import OutboxNotice
from costguard.engine.run.run_context import PrecheckResult
from costguard.engine.run.scan import CloudReaders, scan_shard
from costguard.guards.rules.common import Step
from costguard.guards.rules.idle import IdleBounds
from costguard.ports import Delivery, Discovery, SignalReport, Target

ONE = instance()
WINDOW = timedelta(hours=1)
LOSSY = 3  # hours, the last ones, of which one sample in five arrived


class OneMachine:
    """A cloud with one machine, whose sender measured every minute until it began to lose samples."""

    def discover(self, target: Target) -> Discovery:
        raise AssertionError(target)

    def read(self, shard: Shard) -> Inventory:
        return Inventory(shard, (ONE,), instances_seen=1)

    def details(self, refs: Sequence[ResourceRef]) -> Mapping[ResourceRef, InstanceDetail]:
        return {each: detail(ONE) for each in refs}

    def protections(self, ref: ResourceRef, wanted: Collection[str]) -> tuple[str, ...]:
        del ref, wanted
        return ()

    def rates(self, instances: Sequence[Instance]) -> Mapping[ResourceRef, HourlyRate]:
        del instances
        return {}

    def kept_hourly(self, detail: InstanceDetail) -> Sequence[tuple[str, Money | None]]:
        raise AssertionError(detail)

    def copies_hourly(self, volumes: Sequence[Volume]) -> Money | None:
        raise AssertionError(volumes)


class Sender:
    """Its samples, as far back as is asked: one in five of the last hours, `lossy` of them."""

    def __init__(self, lossy: int = LOSSY) -> None:
        self._lossy = lossy

    def read(self, instances: Sequence[Instance], since: datetime, until: datetime) -> SignalReport:
        start = floor_hour(since)
        hours = int((floor_hour(until) - start) / HOUR) + 1
        counts = [60] * max(0, hours - self._lossy) + [12] * min(hours, self._lossy)
        history = SignalHistory(SignalName.GPU, "0", start, array("d", [1.0] * hours), array("l", counts), "cloudwatch")
        return SignalReport({each.ref: SignalReading((history,), timedelta(0)) for each in instances})


def test_a_sender_that_loses_most_samples_is_not_taken_for_a_slow_one() -> None:
    """In one hour alone, 12 samples of 60 look like all of 12."""
    cloud = OneMachine()
    short = rule(idle=IdleBounds(lasting=WINDOW))

    facts = scan_shard(CloudReaders(cloud, Sender(), cloud), ONE.ref.shard, [short], NOW)  # type: ignore[arg-type]

    reading = facts.instances[0].over(WINDOW)
    assert reading is not None
    assert [signal.coverage < 0.5 for signal in reading.signals] == [True]


def last_look(sender: Sender) -> Reason | PrecheckResult:
    """What stands in the way of a stop, just before the call."""
    short, cloud = rule(idle=IdleBounds(lasting=WINDOW)), OneMachine()
    told = ClimbedRung(Verb.WARN, NOW - 2 * CADENCE_SHOWS, "notice-1")
    ours = case(rule_digest=short.digest, mode=short.mode, rung=1, climbed=(told,))
    stop = Action(
        "action-1", "decision-1", Verb.STOP, ONE.ref, ONE.ref, ONE.run_epoch, "case-1", 1, short.name, short.digest
    )
    store = open_ledger("memory:")
    try:
        reading = CloudReaders(cloud, sender, cloud)  # type: ignore[arg-type]
        memory = Memory.over(store)
        _told(memory, ours)
        hand = InstanceHandler({ONE.ref.cloud: reading}, {})
        return hand.last_look(ours, stop, policy(short), NOW, memory)
    finally:
        store.close()


def _told(memory: Memory, told: Case) -> None:
    """The notice that the case rests on, with its proven delivery."""
    (warned,) = told.climbed
    notice = OutboxNotice(warned.notice, warned.notice, told.key, "slack:#gpu", "title", "text", warned.at)
    memory.outbox.enqueue(notice)
    memory.outbox.delivered([notice], Delivery("ts", proves_delivery=True), warned.at)


def test_the_last_look_before_a_call_sees_as_far_as_the_scan() -> None:
    """One sample in five of the window arrived: four of five jobs would not show."""
    assert isinstance(last_look(Sender(lossy=0)), PrecheckResult)

    found = last_look(Sender())

    assert isinstance(found, Reason)
    assert found.code is ReasonCode.LOW_COVERAGE


def test_every_look_reads_a_day_and_the_longest_window() -> None:
    assert reads_back([]) == reads_back([WINDOW]) == CADENCE_SHOWS
    assert reads_back([WINDOW, 7 * CADENCE_SHOWS]) == 7 * CADENCE_SHOWS


def recorded(counts: Sequence[int], runs: tuple[Run, ...] = ()) -> Machine:
    """A quiet machine with so many samples in each hour."""
    quiet = array("d", [0.0] * len(counts))
    history = SignalHistory(SignalName.GPU, "0", floor_hour(NOW), quiet, array("l", counts), "record")
    return Machine(ONE, None, (history,), runs)


def stops_of(machine: Machine) -> list[float]:
    """After how many hours a rule of one hour would have stopped it, an hour after it said so."""
    start = floor_hour(NOW)
    ladder = (Step(Verb.WARN, timedelta(0)), Step(Verb.STOP, HOUR))
    under = policy(rule(idle=IdleBounds(lasting=WINDOW), ladder=ladder))
    (found,) = replay(under, [machine], Terms(start, start + len(machine.histories[0].samples) * HOUR))
    return [(stop.at - start) / HOUR for stop in found.stops]


def test_a_sender_that_loses_most_samples_is_not_idle_in_a_record_either() -> None:
    """Whole for two hours, of which the first opens a case; then one sample in five."""
    assert stops_of(recorded([60, 60, 60, 60, 60])) == [2]
    assert stops_of(recorded([60, 12, 12, 12, 12])) == []


def test_the_first_minutes_of_a_record_are_no_hour_of_quiet() -> None:
    """Twelve samples in its first hour: it may have begun to run at twelve minutes to."""
    assert stops_of(recorded([12, 60, 60, 60, 60])) == [3]


def test_where_the_record_says_since_when_it_ran_that_counts() -> None:
    began = floor_hour(NOW)
    assert stops_of(recorded([60, 60, 60, 60, 60], (Run(began),))) == [2]
