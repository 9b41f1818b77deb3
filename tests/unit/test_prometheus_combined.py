"""Several metrics backends read as one: what one of them could not read is not idle."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta, timezone

from costguard.adapters.signal_sources.combined import CombinedSignals
from costguard.domain.errors import ThrottledError
from costguard.domain.refs import ResourceRef
from costguard.domain.resources import (
    Accelerator,
    AcceleratorKind,
    Billing,
    Gap,
    GapKind,
    Instance,
    InstanceState,
)
from costguard.domain.signals import SignalHistory, SignalName, SignalReading, Statistic
from costguard.ports import SignalReport

UNTIL = datetime(2026, 3, 3, 12, tzinfo=timezone.utc)
SINCE = UNTIL - timedelta(hours=3)
REF = ResourceRef("aws", "111122223333", "us-east-1", "instance", "i-0a")
INSTANCE = Instance(
    ref=REF,
    instance_type="g5.xlarge",
    accelerator=Accelerator(AcceleratorKind.NVIDIA_GPU, "A10G", 1),
    state=InstanceState.RUNNING,
    billing=Billing.ON_DEMAND,
    run_epoch="1",
    launched_at=SINCE,
)
GAP = Gap(REF.shard, "signals", GapKind.DENIED, "no")


class Reported:
    """A source that reports what it was given."""

    def __init__(self, *histories: SignalHistory, delay: timedelta = timedelta(0)) -> None:
        self.report = SignalReport({REF: SignalReading(histories, delay)})

    def read(self, instances: Sequence[Instance], since: datetime, until: datetime) -> SignalReport:  # noqa: ARG002
        return self.report


class Unread(Reported):
    """A source that could not read."""

    def __init__(self) -> None:
        super().__init__()
        self.report = SignalReport({}, (GAP,))


class Raising(Reported):
    """A source that raises."""

    def read(self, instances: Sequence[Instance], since: datetime, until: datetime) -> SignalReport:  # noqa: ARG002
        raise ThrottledError("slow down")


def history(
    maxima: list[float],
    samples: list[int],
    *,
    device: str = "0",
    start: datetime = SINCE,
    source: str = "a",
    statistic: Statistic = Statistic.DEVICE,
) -> SignalHistory:
    return SignalHistory(SignalName.GPU, device, start, array("d", maxima), array("l", samples), source, statistic)


def read(*sources: Reported) -> SignalReport:
    return CombinedSignals(sources).read([INSTANCE], SINCE, UNTIL)


def test_the_busier_source_wins_every_hour() -> None:
    report = read(
        Reported(history([0.0, 90.0, math.nan], [60, 60, 0])),
        Reported(history([5.0, 1.0, 2.0], [30, 60, 60], source="b")),
    )
    (merged,) = report.readings[REF].histories
    assert list(merged.maxima) == [5.0, 90.0, 2.0]
    assert list(merged.samples) == [60, 60, 60]
    assert merged.source == "a+b"


def test_a_source_that_samples_more_often_does_not_make_the_other_look_sparse() -> None:
    report = read(
        Reported(history([0.0] * 3, [12, 12, 12])), Reported(history([math.nan, math.nan, 0.0], [0, 0, 60], source="b"))
    )
    (merged,) = report.readings[REF].histories
    assert list(merged.samples) == [60, 60, 60]
    assert merged.over(SINCE, UNTIL).coverage == 1.0


def test_five_minute_samples_are_never_told_younger_than_they_may_be() -> None:
    slow = history([0.0] * 3, [12, 12, 3])
    (merged,) = read(Reported(slow), Reported(history([0.0], [60], source="b"))).readings[REF].histories
    told = merged.over(SINCE, UNTIL).newest_at
    assert told is not None
    assert told <= SINCE + timedelta(hours=2, minutes=10)  # three samples may lie at :00, :05 and :10


def test_histories_that_begin_apart_are_laid_over_each_other() -> None:
    later = SINCE + timedelta(hours=2)
    report = read(Reported(history([1.0], [60])), Reported(history([9.0, 8.0], [60, 60], start=later)))
    (merged,) = report.readings[REF].histories
    assert merged.start == SINCE
    assert merged.maxima[0] == 1.0
    assert math.isnan(merged.maxima[1])
    assert list(merged.maxima[2:]) == [9.0, 8.0]
    assert list(merged.samples) == [60, 0, 60, 60]


def test_other_devices_and_other_statistics_stand_side_by_side() -> None:
    mean = history([1.0], [60], statistic=Statistic.MEAN_OF_CARDS)
    report = read(Reported(history([1.0], [60])), Reported(history([2.0], [60], device="1"), mean))
    assert len(report.readings[REF].histories) == 3


def test_an_unread_source_leaves_the_instance_unread_whatever_the_other_says() -> None:
    report = read(Reported(history([0.0], [60])), Unread())
    assert report.readings == {}
    assert report.gaps == (GAP,)


def test_a_source_that_raises_is_a_gap() -> None:
    report = read(Reported(history([0.0], [60])), Raising())
    assert report.readings == {}
    assert [gap.kind for gap in report.gaps] == [GapKind.THROTTLED]


def test_a_source_that_does_not_know_the_instance_takes_nothing_away() -> None:
    report = read(Reported(history([0.0], [60]), delay=timedelta(minutes=5)), Reported(delay=timedelta(hours=1)))
    assert len(report.readings[REF].histories) == 1
    assert report.readings[REF].documented_delay == timedelta(minutes=5)


def test_each_series_is_as_late_as_the_sources_that_measured_it() -> None:
    """What tells of the machine every five minutes does not make its cards late."""
    slow = Reported(history([0.0], [12], device="9"), delay=timedelta(minutes=10))
    found = read(Reported(history([0.0], [60]), delay=timedelta(minutes=5)), slow).readings[REF].histories
    assert {one.device: one.delay for one in found} == {"0": timedelta(minutes=5), "9": timedelta(minutes=10)}

    both = Reported(history([0.0], [60]), delay=timedelta(minutes=10))
    (merged,) = read(Reported(history([0.0], [60]), delay=timedelta(minutes=5)), both).readings[REF].histories
    assert merged.delay == timedelta(minutes=10)


def test_a_documented_cadence_is_kept_where_two_sources_are_put_together() -> None:
    lossy = replace(history([0.0, 0.0], [12, 12]), documented_per_hour=60)
    (merged,) = read(Reported(lossy), Reported(replace(lossy, source="b"))).readings[REF].histories
    assert merged.samples_per_hour == 60
    (counted,) = read(Reported(lossy), Reported(history([math.nan], [0]))).readings[REF].histories
    assert counted.samples_per_hour == 60


def test_the_same_gap_is_told_once() -> None:
    assert read(Unread(), Unread()).gaps == (GAP,)


def test_without_sources_nothing_is_measured() -> None:
    assert read().readings[REF].histories == ()
