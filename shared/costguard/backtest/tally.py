"""Replays counted: by rule, by team, and in all."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal

from costguard.backtest.model import Regret, Replay, WouldStop
from costguard.domain.backtests import HORIZONS, RegretCount, Tallied, Tally
from costguard.domain.money import totals


def tallied(replays: Iterable[Replay], policy_digest: str) -> Tallied:
    """Counted by rule and by team, each in the order of their names."""
    everything = list(replays)
    ruled = [each for each in everything if each.rule]
    rules = sorted({each.rule for each in ruled})
    teams = sorted({each.team for each in ruled})
    return Tallied(
        policy_digest,
        tally("", ruled),
        tuple(tally(name, [each for each in ruled if each.rule == name]) for name in rules),
        tuple(tally(name, [each for each in ruled if each.team == name]) for name in teams),
        len(everything) - len(ruled),
    )


def tally(name: str, replays: Sequence[Replay]) -> Tally:
    """Some replays summed."""
    stops = [stop for each in replays for stop in each.stops]
    hours = [(each, sum(stop.idle_hours for stop in each.stops)) for each in replays]
    return Tally(
        name=name,
        machines=len(replays),
        exempt=sum(bool(each.exempt) for each in replays),
        unmeasured=sum(not each.judged and not each.exempt for each in replays),
        recorded_hours=sum(each.recorded_hours for each in replays),
        idle_hours=sum(each.idle_hours for each in replays),
        unmeasured_hours=sum(each.unmeasured_hours for each in replays),
        stopped=sum(bool(each.stops) for each in replays),
        stops=len(stops),
        terminations=sum(stop.terminated_at is not None for stop in stops),
        came_back_terminated=sum(stop.terminated_at is not None and stop.back_at is not None for stop in stops),
        reclaimed_hours=sum(stop.idle_hours for stop in stops),
        uncounted_hours=sum(stop.unmeasured_hours for stop in stops),
        reclaimed=totals(each.rate.money.times(Decimal(idle)) for each, idle in hours if each.rate and idle),
        unpriced_hours=sum(idle for each, idle in hours if each.rate is None),
        regrets=tuple(_regret(stops, place, horizon) for place, horizon in enumerate(HORIZONS)),
    )


def _regret(stops: Sequence[WouldStop], place: int, horizon: int) -> RegretCount:
    found = [stop.regrets[place] for stop in stops]
    return RegretCount(horizon, found.count(Regret.YES), found.count(Regret.NO), found.count(Regret.UNDETERMINED))
