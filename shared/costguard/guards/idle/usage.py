"""How an instance spent the last days, hour by hour: the figures of the waste report."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime, timedelta

from costguard.domain.findings import Usage
from costguard.domain.resources import Instance, InstanceState
from costguard.domain.signals import HOUR, SignalHistory, SignalName, Statistic, floor_hour
from costguard.guards.rules.idle import IdleBounds


def usage_of(
    instance: Instance, histories: Sequence[SignalHistory], bounds: IdleBounds, since: datetime, until: datetime
) -> Usage:
    """Count complete hours of the current run since `since`: observed, idle, and single idle cards.

    An hour is observed when every card and every named signal has the coverage the bounds ask for;
    idle when all of them stayed below their bounds. Hours before the current start are not counted,
    because nothing says what the machine was then.
    """
    if instance.state is not InstanceState.RUNNING or instance.launched_at is None:
        return Usage(0.0, 0, 0)
    begin = max(since, instance.launched_at)
    running = max(0.0, (until - begin) / HOUR)
    named = dict(bounds.bounds())
    relevant = [history for history in histories if history.name in named]
    cards = [history for history in relevant if history.name is SignalName.GPU]
    expected = math.ceil(instance.accelerator.count)
    aggregated = any(card.statistic is Statistic.MEAN_OF_CARDS for card in cards)
    if not cards or (len(cards) < expected and not aggregated) or {h.name for h in relevant} != set(named):
        return Usage(running, 0, 0)
    limits = [
        named[h.name] / (max(1.0, instance.accelerator.count) if h.statistic is Statistic.MEAN_OF_CARDS else 1.0)
        for h in relevant
    ]
    enough = [h.samples_per_hour * bounds.min_coverage for h in relevant]
    hour = floor_hour(begin) + (HOUR if floor_hour(begin) < begin else timedelta(0))
    observed = idle = card_hours = 0
    while hour + HOUR <= until:
        below = above_cards = below_cards = 0
        for history, limit, needed in zip(relevant, limits, enough, strict=True):
            index = int((hour - history.start) / HOUR)
            if not 0 <= index < len(history.samples) or history.samples[index] < needed:
                break
            under = history.maxima[index] < limit
            below += under
            if history.name is SignalName.GPU:
                below_cards += under
                above_cards += not under
        else:
            observed += 1
            if below == len(relevant):
                idle += 1
            elif above_cards and below_cards:
                card_hours += below_cards
        hour += HOUR
    return Usage(running, observed, idle, card_hours)
