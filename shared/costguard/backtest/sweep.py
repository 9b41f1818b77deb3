"""The same policy at other thresholds and windows: what each would reclaim, and at what regret."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from costguard.backtest.model import Machine
from costguard.backtest.replay import replay
from costguard.backtest.tally import tally
from costguard.domain.backtests import Point, Terms
from costguard.guards.rules.idle import IdleRule
from costguard.policy.diff.rule_changes import with_digest
from costguard.policy.model.policy import Policy

_A_DAY = 24


@dataclass(frozen=True, slots=True)
class Grid:
    """The settings to try: GPU thresholds in percent and windows; an empty one keeps each rule's own."""

    thresholds: tuple[float, ...] = ()
    windows: tuple[timedelta, ...] = ()

    def settings(self) -> tuple[tuple[float | None, timedelta | None], ...]:
        """Every pair; None keeps what the rule says."""
        return tuple(
            (threshold, window) for threshold in self.thresholds or (None,) for window in self.windows or (None,)
        )


def frontier(policy: Policy, machines: Sequence[Machine], terms: Terms, grid: Grid) -> Iterator[Point]:
    """Every setting of the grid replayed, in order; `marked` says which are worth choosing from."""
    for threshold, window in grid.settings():
        changed = replace(policy, idle_gpu=tuple(with_setting(rule, threshold, window) for rule in policy.idle_gpu))
        yield Point(threshold, window, tally("", [one for one in replay(changed, machines, terms) if one.rule]))


def marked(points: Sequence[Point]) -> tuple[Point, ...]:
    """The same points, those marked that no other beats in both hours reclaimed and regrets within a day."""
    return tuple(replace(one, best=not any(_beats(other, one) for other in points)) for one in points)


def with_setting(rule: IdleRule, threshold: float | None, window: timedelta | None) -> IdleRule:
    """The rule with another threshold or window."""
    idle = rule.idle
    if threshold is not None:
        idle = replace(idle, every_gpu_max_below_percent=threshold)
    if window is not None:
        idle = replace(idle, lasting=window)
    return with_digest(replace(rule, idle=idle))


def _beats(other: Point, one: Point) -> bool:
    theirs, mine = _worth(other), _worth(one)
    return theirs != mine and theirs[0] >= mine[0] and theirs[1] <= mine[1]


def _worth(point: Point) -> tuple[int, int]:
    day = next(count for count in point.tally.regrets if count.hours == _A_DAY)
    return point.tally.reclaimed_hours, day.yes + day.undetermined  # what nobody can tell counts as regretted
