"""What a policy would have reclaimed in the last day, week and month of a record. Pure.

The policy is switched on where the record begins and replayed up to the end, and up to where each window begins: the
difference is the window's own. So a stop that was asked for before the window goes on in it, as it would have.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal

from costguard.backtest.model import Machine, Regret, Replay
from costguard.backtest.replay import replay
from costguard.domain.backtests import HORIZONS, Reclaimed, Terms
from costguard.domain.money import Money, totals
from costguard.domain.refs import ResourceRef
from costguard.domain.signals import HOUR
from costguard.policy.model.policy import Policy

WINDOWS = (timedelta(days=1), timedelta(days=7), timedelta(days=30))
"""A day, a week and a month."""
_A_DAY = HORIZONS.index(24)


def lately(
    policy: Policy, machines: Sequence[Machine], until: datetime, windows: Sequence[timedelta] = WINDOWS
) -> tuple[Reclaimed, ...]:
    """A figure for each window that the record covers, and where it covers not all of them one for all that it has.

    Empty where nothing was measured. `until` is cut to its hour.
    """
    end = until.replace(minute=0, second=0, microsecond=0)
    first = min((begun for machine in machines for begun in _measured(machine)), default=end)
    if first >= end:
        return ()
    whole = tuple(replay(policy, machines, Terms(first, end)))
    covered = [each for each in sorted(windows) if end - each >= first - HOUR]  # of its first hour a part is read
    return (
        *(_since(policy, machines, whole, first, end - window, end) for window in covered),
        *(() if len(covered) == len(windows) else (_all(whole, first, end),)),
    )


def _measured(machine: Machine) -> Iterator[datetime]:
    """When each of its histories begins to tell anything."""
    for history in machine.histories:
        place = next((place for place, samples in enumerate(history.samples) if samples), None)
        if place is not None:
            yield history.start + place * HOUR


def _all(whole: Sequence[Replay], first: datetime, end: datetime) -> Reclaimed:
    return replace(_counted(whole, {}, first, end), whole=True)


def _since(
    policy: Policy,
    machines: Sequence[Machine],
    whole: Sequence[Replay],
    first: datetime,
    since: datetime,
    end: datetime,
) -> Reclaimed:
    if since <= first:
        return _counted(whole, {}, since, end)
    before = {one.ref: _idle(one) for one in replay(policy, machines, Terms(first, since))}
    return _counted(whole, before, since, end)


def _counted(whole: Sequence[Replay], before: Mapping[ResourceRef, int], since: datetime, end: datetime) -> Reclaimed:
    hours = [(one, _idle(one) - before.get(one.ref, 0)) for one in whole]
    stops = [stop for one in whole for stop in one.stops if stop.at >= since]
    priced = [(one.rate, of) for one, of in hours if of and one.rate is not None]
    nets = [(rate.after_discounts(rate.money.times(Decimal(of))), of) for rate, of in priced]
    return Reclaimed(
        since=since,
        until=end,
        stops=len(stops),
        hours=sum(of for _, of in hours),
        money=totals(rate.money.times(Decimal(of)) for rate, of in priced),
        net=totals(net for net, _ in nets if isinstance(net, Money)),
        without_net=sum(of for net, of in nets if net is None),
        unpriced=sum(of for one, of in hours if one.rate is None),
        regretted=sum(stop.regrets[_A_DAY] is Regret.YES for stop in stops),
        untold=sum(stop.regrets[_A_DAY] is Regret.UNDETERMINED for stop in stops),
    )


def _idle(one: Replay) -> int:
    return sum(stop.idle_hours for stop in one.stops)
