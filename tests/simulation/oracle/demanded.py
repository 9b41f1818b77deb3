"""The checks of what is stopped for a budget: by which step, on what data, and after which notice."""

from __future__ import annotations

from decimal import Decimal

from tests.simulation.budgets import month_of
from tests.simulation.oracle import money
from tests.simulation.oracle.cancelled import cancelled_after
from tests.simulation.oracle.checks import (
    began_at,
    complete_shard,
    hastened,
    local_disk,
    looked_just_before,
    measured_idle,
    nobody_objected,
    notices,
    once,
    surprises,
    untouchable,
    within_caps,
)
from tests.simulation.oracle.judge import SKEW, Check, Judged
from tests.simulation.oracle.trust import Sight, why_not
from tests.simulation.rules import working_time_after

from costguard.domain.actions import Verb

_CENT = Decimal("0.01")


def only_stopped(judged: Judged) -> str:
    """Rule 9: a budget stops machines; it neither copies nor ends them."""
    return "" if judged.effect.verb is Verb.STOP else "a budget does nothing but stop"


def announced(judged: Judged) -> str:
    """Rule 15: its owner was told by this budget, had the whole grace, and nothing cancelled it since."""
    demand, rule = judged.demand, judged.rule
    if demand is None:
        return ""
    if rule.mode != "enforce":
        return f"the budget only says {rule.mode}"
    since = began_at(judged)
    told = [one for one in notices(judged, since, Verb.STOP) if one.rule.partition("@")[0] == demand.budget.name]
    if not told:
        return f"nobody was told of it since {since:%m-%d %H:%M}"
    hours = demand.step.wait
    over = [one for one in told if working_time_after(one.at, hours, judged.version) <= judged.effect.at + SKEW]
    asked = hastened(judged, told)
    unseen = surprises(judged) if over and not asked else ""
    over += [one for one in asked if one not in over]
    if not over:
        return f"told on {told[0].at:%m-%d %H:%M}, less than {hours} h ago"
    cause = cancelled_after(judged, over[-1].at)
    return f"told on {over[-1].at:%m-%d %H:%M}, then {cause}" if cause else unseen


def trusted(judged: Judged) -> str:
    """Rule 13: nothing the figures rest on was absent, stale, incomplete, without a price or rate, or a guess."""
    return why_not(sight_of(judged), judged.demand.budget) if judged.demand is not None else ""


def reached(judged: Judged) -> str:
    """Rule 13: as much of the budget is spent as its step asks for."""
    if judged.demand is None or money.moved(judged.world):
        return ""
    budget, percent = judged.demand.budget, judged.demand.step.at
    found = _reckoned(judged, budget.name)
    threshold = budget.amount * percent / 100
    if found is None or found.high + _CENT >= threshold:
        return ""
    return f"{found.high:.2f} of {budget.amount} {budget.currency} can be spent, less than {percent} %"


def gentlest(judged: Judged) -> str:
    """Rule 11: where several steps in force ask for the machine, the least destructive counts."""
    if judged.demand is None or money.moved(judged.world):
        return ""
    instance = judged.shown.instance
    asked = [one for budget in judged.version.budgets for one in budget.demands(instance.ref.cloud, instance.tags)]
    of_class = any(one.of_class for one in asked)
    for one in asked:
        found = _reckoned(judged, one.budget.name)
        surely = found is not None and found.low - _CENT >= one.budget.amount * one.step.at / 100
        gentler = one.rule.harshness < judged.rule.harshness
        if surely and gentler and (one.of_class or not of_class):
            return f"{one.rule.name} is gentler and asks for it too"
    return ""


def sight_of(judged: Judged) -> Sight:
    """The run that did it, as the clouds saw it."""
    return Sight(
        judged.world, judged.chronicle, judged.effect.process, judged.version, judged.effect.at, judged.effect.number
    )


def _reckoned(judged: Judged, name: str) -> money.Reckoned | None:
    budget = judged.version.budget(name)
    if budget is None:
        return None
    at = judged.effect.at
    _, since, _ = month_of(at - SKEW, budget.zone)
    until = {}
    for cloud in money.clouds_of(judged.world, budget):
        began = judged.effect.process.began or at
        own = money.known_until(judged.chronicle, budget, cloud, judged.effect.process, began)
        until[cloud] = own[0] if own is not None else since
    span = (since, at)
    rates = judged.version.rates
    return money.reckoned(
        judged.world, judged.chronicle, budget, span, until, rates=rates, posted_before=at - money.KEEPS_FOR
    )


BUDGET_CHECKS: tuple[tuple[int, Check], ...] = (
    (3, complete_shard),
    (5, local_disk),
    (6, once),
    (7, within_caps),
    (8, looked_just_before),
    (9, only_stopped),
    (1, measured_idle),
    (11, gentlest),
    (12, untouchable),
    (13, trusted),
    (13, reached),
    (15, announced),
    (16, nobody_objected),
)
