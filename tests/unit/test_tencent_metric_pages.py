"""How much one call of GetMonitorData asks for: the larger page until Monitor is seen not to take it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from math import ceil
from typing import Any

import pytest
from tests.unit.tencent_monitor import DAY, HOUR, NOW, SINCE, Monitor, beyond, box, empty

from costguard.domain.errors import AccessDeniedError, ProviderError, RefusedError, ThrottledError, UnavailableError
from costguard.domain.resources import Instance
from costguard.domain.signals import SignalName
from costguard.providers.tencent.compute.metric_calls import LARGER, LESSER, Page, Pages, Piece, pages_for, pieces
from costguard.providers.tencent.compute.metrics import TencentSignals

OLDER = (10, 1_440)
PAGES = pytest.mark.parametrize("page", [LESSER, LARGER], ids=["lesser", "larger"])


def boxes(number: int) -> list[Instance]:
    return [box(f"ins-{place}") for place in range(number)]


def read(
    monitor: Monitor, pages: Pages, machines: int, signal: SignalName = SignalName.CPU, since: timedelta = NOW - SINCE
) -> dict[str, int]:
    """How many samples each machine has."""
    source = TencentSignals(monitor, frozenset({signal}), pages=pages)
    report = source.read(boxes(machines), NOW - since, NOW)
    assert report.gaps == ()
    return {ref.native_id: sum(sum(one.samples) for one in found.histories) for ref, found in report.readings.items()}


def sizes(monitor: Monitor) -> list[int]:
    return [len(asked["Instances"]) for asked in monitor.asked]


@pytest.mark.parametrize(
    ("points", "machines", "calls"),
    [
        (0, 2520, 0),
        (1, 2520, 252),
        (143, 2520, 252),
        (292, 2520, 532),  # nine and ten machines a call; four would waste a sixth
        (1439, 2520, 2520),
        (1470, 1, 2),
        (1470, 2, 3),
        (1470, 100, 103),  # a call for each machine and one in ten for the last half hour would be 110
        (10080, 1, 8),
    ],
)
def test_calls_are_few(points: int, machines: int, calls: int) -> None:
    assert calls_for(pieces(points, machines, LESSER), machines) == calls


@pytest.mark.parametrize(
    ("points", "machines", "calls"), [(1, 50, 1), (143, 50, 1), (1470, 1, 1), (1470, 4, 1), (1470, 100, 21)]
)
def test_calls_of_the_larger_page_are_a_fifth(points: int, machines: int, calls: int) -> None:
    assert calls_for(pieces(points, machines, LARGER), machines) == calls


def calls_for(found: Sequence[Piece], machines: int) -> int:
    return sum(ceil(machines / piece.instances) for piece in found)


@PAGES
@pytest.mark.parametrize("points", [1439, 1440, 1461, 1470, 1499, 10_080, 21_600])
def test_many_machines_waste_hardly_any_call(points: int, page: Page) -> None:
    assert calls_for(pieces(points, 1000, page), 1000) <= 1.01 * points * 1000 / page.points


@PAGES
@pytest.mark.parametrize("machines", [1, 3, 10, 1000])
@pytest.mark.parametrize("points", [1, 12, 144, 300, 719, 800, 1438, 1440, 1441, 1500, 2016, 8928, 10_140, 44_640])
def test_no_call_asks_for_more_than_it_may_even_with_its_end(points: int, machines: int, page: Page) -> None:
    found = pieces(points, machines, page)
    assert sum(piece.points for piece in found) == points
    assert all((piece.points + 1) * piece.instances <= page.points for piece in found)
    assert all(piece.instances <= page.instances for piece in found)


def test_the_larger_page_is_asked_for_where_monitor_takes_it() -> None:
    monitor, pages = Monitor(), Pages()
    assert set(read(monitor, pages, 25).values()) == {28}
    assert sizes(monitor) == [25]


def refused(_: dict[str, Any]) -> None:
    message = "too many"
    raise RefusedError(message, operation="monitor:GetMonitorData", code="InvalidParameterValue")


def without_series(answer: dict[str, Any]) -> None:
    beyond(answer)
    answer["DataPoints"] = None


@pytest.mark.parametrize("over", [beyond, refused, without_series])
def test_what_does_not_fit_the_larger_page_is_read_by_the_lesser_and_that_is_remembered(
    over: Callable[[dict[str, Any]], None],
) -> None:
    monitor, pages = Monitor(most=OLDER, over=over), Pages()
    assert set(read(monitor, pages, 25).values()) == {28}
    assert sizes(monitor)[0] == 25
    assert sorted(sizes(monitor)[1:]) == [5, 10, 10]
    assert pages.page is LESSER

    monitor.asked.clear()
    assert set(read(monitor, pages, 25).values()) == {28}
    assert sorted(sizes(monitor)) == [5, 10, 10]


def test_one_call_alone_tries_the_larger_page() -> None:
    """The others wait for it, also those of another region."""
    monitor = Monitor(most=OLDER)
    assert set(read(monitor, Pages(), 5, SignalName.GPU, 6 * DAY).values()) == {6 * 1440 + 20}
    too_large = [asked for asked in monitor.asked if not fits(asked)]
    assert len(too_large) == 1


def fits(asked: Any) -> bool:
    from datetime import datetime

    span = datetime.fromisoformat(asked["EndTime"]) - datetime.fromisoformat(asked["StartTime"])
    points = span // timedelta(seconds=asked["Period"]) + 1
    return len(asked["Instances"]) <= 10 and len(asked["Instances"]) * points <= 1_440


def half_of_the_machines(answer: dict[str, Any]) -> None:
    del answer["DataPoints"][10:]


def first_points(answer: dict[str, Any]) -> None:
    room = OLDER[1]
    for series in answer["DataPoints"]:
        for name in ("Timestamps", "Values"):
            series[name] = series[name][:room]
        room -= len(series["Values"])


@pytest.mark.parametrize(
    ("machines", "signal", "since", "over"),
    [(25, SignalName.CPU, HOUR, half_of_the_machines), (3, SignalName.GPU, DAY, first_points)],
)
def test_a_larger_page_that_is_cut_in_silence_loses_nothing(
    machines: int, signal: SignalName, since: timedelta, over: Callable[[dict[str, Any]], None]
) -> None:
    monitor, pages = Monitor(most=OLDER, over=over), Pages()
    found = read(monitor, pages, machines, signal, since)
    assert len(found) == machines
    assert len(set(found.values())) == 1
    assert pages.page is LESSER


def test_a_page_of_many_machines_proves_nothing_of_many_points() -> None:
    """They are two limits: each is proved by an answer that is larger in it."""
    monitor, pages = Monitor(most=(50, 1_440), over=first_points), Pages()
    read(monitor, pages, 25, SignalName.CPU, HOUR)
    assert pages.page is LARGER
    found = read(monitor, pages, 3, SignalName.GPU, DAY)
    assert set(found.values()) == {1_440 + 20}
    assert pages.page is LESSER


def test_no_points_are_no_word_on_the_page() -> None:
    """Machines without an agent are asked once more by the lesser page, and the larger stays to be tried."""
    monitor, pages = Monitor(change=empty), Pages()
    assert set(read(monitor, pages, 25).values()) == {0}
    assert sorted(sizes(monitor)) == [5, 10, 10, 25]
    assert pages.page is LARGER


@pytest.mark.parametrize("error", [AccessDeniedError, ThrottledError])
def test_what_says_nothing_of_the_page_is_not_asked_again(error: type[ProviderError]) -> None:
    def fails(_: dict[str, Any]) -> None:
        message = "no"
        raise error(message, operation="monitor:GetMonitorData")

    monitor, pages = Monitor(change=fails), Pages()
    report = TencentSignals(monitor, frozenset({SignalName.CPU}), pages=pages).read(boxes(25), SINCE, NOW)
    assert report.readings == {}
    assert (len(monitor.asked), pages.page) == (1, LARGER)


def test_a_larger_page_that_fails_for_a_while_is_tried_again() -> None:
    def fails(_: dict[str, Any]) -> None:
        message = "timed out"
        raise UnavailableError(message, operation="monitor:GetMonitorData")

    monitor, pages = Monitor(most=OLDER, over=fails), Pages()
    assert set(read(monitor, pages, 25).values()) == {28}
    assert pages.page is LARGER


def test_a_refusal_that_the_lesser_page_meets_too_is_no_word_on_the_page() -> None:
    monitor, pages = Monitor(change=refused), Pages()
    report = TencentSignals(monitor, frozenset({SignalName.CPU}), pages=pages).read(boxes(25), SINCE, NOW)
    assert (report.readings, len(report.gaps)) == ({}, 1)
    assert pages.page is LARGER


def test_what_was_learned_is_kept_for_the_process_and_each_site_and_not_for_stand_ins() -> None:
    assert pages_for("tencent", "") is pages_for("tencent", "")
    assert pages_for("tencent", "") is not pages_for("tencent-intl", "")
    assert pages_for("tencent", "http://127.0.0.1:1") is not pages_for("tencent", "http://127.0.0.1:1")
