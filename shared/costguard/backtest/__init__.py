"""What a policy would have done to recorded use: replayed by the product's own judge and cases. Pure.

    record → judged and advanced run by run → would-be stops → what came back → tallies by rule and team

Nobody knows what a machine would have done after a stop that did not happen. The replay assumes one thing and says
so: it would have been started again when its recorded use comes back, and not sooner.
"""

from costguard.backtest.lately import WINDOWS, lately
from costguard.backtest.model import Machine, Regret, Replay, Run, WouldStop, tallied
from costguard.backtest.replay import Grid, frontier, marked, replay
from costguard.domain.backtests import (
    ASSUMPTIONS,
    HORIZONS,
    BackTest,
    Basis,
    Point,
    Reclaimed,
    RegretCount,
    Tallied,
    Tally,
    Terms,
)

__all__ = [
    "ASSUMPTIONS",
    "HORIZONS",
    "WINDOWS",
    "BackTest",
    "Basis",
    "Grid",
    "Machine",
    "Point",
    "Reclaimed",
    "Regret",
    "RegretCount",
    "Replay",
    "Run",
    "Tallied",
    "Tally",
    "Terms",
    "WouldStop",
    "frontier",
    "lately",
    "marked",
    "replay",
    "tallied",
]
