"""How to ask DescribeMetricList: which instances together, and over which minutes. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import ceil

from costguard.domain.resources import Instance
from costguard.providers.alibaba.metric_answers import Metric

MOST_INSTANCES = 50  # of one question
MOST_POINTS = 1440  # of one page
_PAGES_OF_A_BATCH = 64
_PAGES_OF_A_SPAN = 8  # at least: fewer are not worth a question of their own, as each costs one where nothing reports


@dataclass(frozen=True, slots=True)
class Span:
    """Minutes of the window, from `first` to before `last`."""

    first: int
    last: int


def series_of(instance: Instance, metric: Metric) -> int:
    """How many series there are of it: one for each card, or one."""
    return max(1, ceil(instance.accelerator.count)) if metric.per_card else 1


def batched(instances: Sequence[Instance], metric: Metric, minutes: int) -> Iterator[tuple[Instance, ...]]:
    """As many instances a question as it takes, and as give some dozens of full pages.

    Of pages that follow one another only the last is not full, so the more of them the fewer requests in all; but
    they are read one after the other. A question ends where its last page is as full as can be: 48 series of 1,470
    points are 49 pages, 50 are 52.
    """
    rest = list(instances)
    while rest:
        points = list(accumulate(series_of(each, metric) * minutes for each in rest[:MOST_INSTANCES]))
        most = max(1, bisect_right(points, _PAGES_OF_A_BATCH * MOST_POINTS))
        if most < len(rest):
            most = max(range(most // 2, most), key=lambda place: (_fullness(points[place]), place)) + 1
        yield tuple(rest[:most])
        del rest[:most]


def cut(whole: Span, series: int, parts: int) -> list[Span]:
    """The span in up to so many parts, cut where pages are full, so that the parts have as many pages as the whole."""
    pages = series * (whole.last - whole.first) / MOST_POINTS
    parts = min(parts, int(pages // _PAGES_OF_A_SPAN))
    if parts <= 1:
        return [whole]
    length = ceil(pages / parts) * MOST_POINTS // series
    ends = range(whole.first + length, whole.last, length)
    return [Span(first, last) for first, last in zip([whole.first, *ends], [*ends, whole.last], strict=True)]


def _fullness(points: int) -> float:
    """How much of its pages this many points fill."""
    return points / (ceil(points / MOST_POINTS) * MOST_POINTS)
