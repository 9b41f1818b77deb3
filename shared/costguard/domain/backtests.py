"""What a back-test comes to: the figures of policies replayed over recorded use."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

from costguard.domain.money import Money
from costguard.domain.signals import HOUR

HORIZONS = (1, 6, 24, 72)
"""Hours within which use that comes back is a regret."""
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
PUBLISHING_DELAY = timedelta(minutes=10)  # the longest that any cloud's agent documents; see docs/signals.md
ASSUMPTIONS = ("enforced", "delivered", "started_again", "no_people", "no_caps", "hourly")
"""What a replay takes for granted; `report` has the words."""


@dataclass(frozen=True, slots=True)
class Terms:
    """How a record is replayed: a run each `every` whole hours from `since` on, the last one before `until`.

    Both ends are whole hours of UTC. Nothing after `until` is looked at. `publishing_delay` is what the record's
    source may be late by, as with live signals.
    """

    since: datetime
    until: datetime
    every: timedelta = timedelta(hours=1)
    publishing_delay: timedelta = PUBLISHING_DELAY

    def __post_init__(self) -> None:
        moments = (self.since - _EPOCH, self.until - _EPOCH, self.every)
        if self.every <= timedelta(0) or any(each % HOUR for each in moments):
            raise ValueError("a replay looks at whole hours: hourly maxima show no finer")


@dataclass(frozen=True, slots=True)
class Reclaimed:
    """What a policy would have reclaimed from `since` to `until`, had it been switched on when the record begins.

    `whole`: that is all of the record, for it begins later than was asked for. `money` is list price times measured
    idle hours, `net` the same after discounts, of machines whose discount is known: `without_net` hours are not in it,
    and `unpriced` hours in neither. `regretted` stops had their use come back within a day; of `untold` the record
    does not tell.
    """

    since: datetime
    until: datetime
    stops: int
    hours: int
    money: tuple[Money, ...]
    net: tuple[Money, ...] = ()
    without_net: int = 0
    unpriced: int = 0
    regretted: int = 0
    untold: int = 0
    whole: bool = False


@dataclass(frozen=True, slots=True)
class RegretCount:
    """How many stops were regretted within so many hours, how many surely not, and of how many nobody can tell."""

    hours: int
    yes: int
    no: int
    undetermined: int


@dataclass(frozen=True, slots=True)
class Tally:
    """What some machines came to. Money is list price times measured idle hours, one sum a currency.

    `unpriced_hours` are reclaimed hours of machines whose price nobody knows. `unmeasured` are machines that no run
    could judge, `exempt` those that are only shown. `came_back_terminated`: use that came back after a termination.
    """

    name: str
    machines: int
    exempt: int
    unmeasured: int
    recorded_hours: int
    idle_hours: int
    unmeasured_hours: int
    stopped: int
    stops: int
    terminations: int
    came_back_terminated: int
    reclaimed_hours: int
    uncounted_hours: int
    reclaimed: tuple[Money, ...]
    unpriced_hours: int
    regrets: tuple[RegretCount, ...]

    def hours_per_regret(self, horizon: int) -> float | None:
        """Reclaimed hours for each stop regretted within `horizon` hours; None without a regret."""
        count = next(each for each in self.regrets if each.hours == horizon)
        return self.reclaimed_hours / count.yes if count.yes else None


@dataclass(frozen=True, slots=True)
class Tallied:
    """One policy's account. `unmatched` machines are under no rule."""

    policy_digest: str
    total: Tally
    by_rule: tuple[Tally, ...]
    by_team: tuple[Tally, ...]
    unmatched: int


@dataclass(frozen=True, slots=True)
class Point:
    """One setting and what it comes to. `best`: no other setting tried reclaims as much with fewer regrets in a day."""

    threshold: float | None
    window: timedelta | None
    tally: Tally
    best: bool = False


@dataclass(frozen=True, slots=True)
class Basis:
    """What the record rests on: rows read, values in them that were not believed, machines that no file describes."""

    rows: int
    doubted: int = 0
    unlisted: int = 0


@dataclass(frozen=True, slots=True)
class BackTest:
    """A policy replayed, beside the current one where that is known, and at the other settings asked for."""

    terms: Terms
    basis: Basis
    new: Tallied
    current: Tallied | None = None
    points: tuple[Point, ...] = ()
