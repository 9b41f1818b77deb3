"""How often a sender means to measure is learnt from a day, however short the window that is judged."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from tests.builders import NOW, instance, rule

from costguard.domain.money import HourlyRate, Money
from costguard.domain.refs import ResourceRef, Shard
from costguard.domain.resources import Instance, InstanceDetail, Inventory, Volume
from costguard.domain.signals import HOUR, SignalHistory, SignalName, SignalReading, floor_hour
from costguard.engine.scan import Reading, scan_shard
from costguard.guards.idle_gpu_rules import IdleBounds
from costguard.ports import Discovery, SignalReport, Target

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
        raise AssertionError(refs)

    def rates(self, instances: Sequence[Instance]) -> Mapping[ResourceRef, HourlyRate]:
        del instances
        return {}

    def kept_hourly(self, detail: InstanceDetail) -> Sequence[tuple[str, Money | None]]:
        raise AssertionError(detail)

    def copies_hourly(self, volumes: Sequence[Volume]) -> Money | None:
        raise AssertionError(volumes)


class Sender:
    """Its samples, as far back as is asked."""

    def read(self, instances: Sequence[Instance], since: datetime, until: datetime) -> SignalReport:
        start = floor_hour(since)
        hours = int((floor_hour(until) - start) / HOUR) + 1
        counts = [60] * max(0, hours - LOSSY) + [12] * min(hours, LOSSY)
        history = SignalHistory(SignalName.GPU, "0", start, array("d", [1.0] * hours), array("l", counts), "cloudwatch")
        return SignalReport({each.ref: SignalReading((history,), timedelta(0)) for each in instances})


def test_a_sender_that_loses_most_samples_is_not_taken_for_a_slow_one() -> None:
    """In one hour alone, 12 samples of 60 look like all of 12."""
    cloud = OneMachine()
    short = rule(idle=IdleBounds(lasting=WINDOW))

    facts = scan_shard(Reading(cloud, Sender(), cloud), ONE.ref.shard, [short], NOW)  # type: ignore[arg-type]

    reading = facts.instances[0].over(WINDOW)
    assert reading is not None
    assert [signal.coverage < 0.5 for signal in reading.signals] == [True]
