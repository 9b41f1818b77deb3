"""The small picture of a window: what it draws, and that it never hides a busy hour."""

from __future__ import annotations

import math
from array import array
from datetime import datetime, timedelta, timezone

from hypothesis import given
from hypothesis import strategies as st

from costguard.domain.findings import Evidence
from costguard.domain.signals import HOUR, OUTLINE_MAX, SignalHistory, SignalName
from costguard.report.plan.evidence import picture

START = datetime(2026, 3, 9, tzinfo=timezone.utc)


def history(*maxima: float, device: str = "0", name: SignalName = SignalName.GPU) -> SignalHistory:
    counts = array("l", [0 if math.isnan(value) else 60 for value in maxima])
    return SignalHistory(name, device, START, array("d", maxima), counts, "cloudwatch")


def evidence(*histories: SignalHistory, hours: int) -> Evidence:
    until = START + hours * HOUR
    return Evidence(START, until, tuple(each.over(START, until) for each in histories))


def test_each_hour_of_a_day_has_its_block() -> None:
    assert picture(evidence(history(0.0, 12.4, 12.6, 50.0, 99.0, 100.0), hours=6)) == "▁▁▂▅██"


def test_an_hour_without_a_sample_is_shown_as_such() -> None:
    assert picture(evidence(history(1.0, math.nan, 1.0), hours=4)) == "▁·▁·"


def test_the_busiest_card_is_drawn() -> None:
    both = (history(1.0, 90.0, 1.0), history(70.0, 1.0, 1.0, device="1"))

    assert picture(evidence(*both, hours=3)) == "▆█▁"


def test_a_machine_without_gpu_samples_is_drawn_by_its_cpu() -> None:
    silent, cpu = history(math.nan, math.nan), history(30.0, 60.0, name=SignalName.CPU, device="")

    assert picture(evidence(silent, cpu, hours=2)) == "▃▅"


def test_nothing_is_drawn_where_nothing_was_measured() -> None:
    assert picture(None) == ""
    assert picture(evidence(history(math.nan), hours=1)) == ""


def test_a_value_nobody_can_believe_is_no_quiet_hour() -> None:
    assert picture(evidence(history(-1.0, math.inf, 5.0), hours=3)) == "··▁"


@given(st.lists(st.floats(0, 100), min_size=1, max_size=400), st.integers(0, 30))
def test_no_busy_hour_is_lost_however_long_the_window(maxima: list[float], minutes: int) -> None:
    """An outline has at most 24 stretches, and their highest is the window's."""
    until = START + len(maxima) * HOUR - timedelta(minutes=minutes)
    outline = history(*maxima).over(START, until).outline

    assert len(outline) <= OUTLINE_MAX
    assert max(value for value in outline if value is not None) == max(maxima)
