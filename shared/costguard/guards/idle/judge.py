"""Is this accelerator instance idle? Three stages: examine a shard, judge an instance, never guess.

An instance is idle only when every card, and every other signal the rule names, was seen below its
bound over the whole window. One busy sample proves the opposite however little else was measured;
anything in between is unmeasured and never acts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from costguard.domain.actions import Verb
from costguard.domain.findings import Evidence, Finding, InstanceFact, ShardFacts, Usage, Verdict, WindowReading
from costguard.domain.money import HourlyRate
from costguard.domain.reasons import FactValue, Reason, ReasonCode
from costguard.domain.refs import ResourceRef
from costguard.domain.resources import AcceleratorKind, Billing, Gap, Instance, InstanceState, Inventory, Keeper
from costguard.domain.signals import (
    HOUR,
    SignalHistory,
    SignalName,
    SignalReading,
    SignalSummary,
    Statistic,
    floor_hour,
)
from costguard.guards import BUDGET, IDLE_GPU
from costguard.guards.idle.contradiction import contradiction
from costguard.guards.rules.common import Bars, barring
from costguard.guards.rules.idle import (
    FREE_SIGNALS,
    SPENT,
    BudgetCause,
    IdleBounds,
    IdleRule,
    percent_words,
)

NAME = IDLE_GPU
CHECK = "idle"
_PERCENT_SIGNALS = frozenset({SignalName.GPU, SignalName.CPU, SignalName.GPU_MEMORY})
_MAX_PERCENT = 100.5  # rounding in agents; beyond it a percentage is not one
_READING_HOLDS = timedelta(hours=1)
"""A large organisation is judged many minutes after its first shard was read. How old a sample is counts from when it
was asked for: else whatever was read five minutes before would be called stale. Nothing is stopped on this alone: act
reads again."""
_MEASURABLE = frozenset({AcceleratorKind.NVIDIA_GPU, AcceleratorKind.AMD_GPU, AcceleratorKind.NEURON})

_KEEPER_REASONS: Mapping[Keeper, ReasonCode] = {
    Keeper.AUTOSCALING: ReasonCode.AUTOSCALED,
    Keeper.KUBERNETES: ReasonCode.KUBERNETES,
    Keeper.CLOUD_SERVICE: ReasonCode.CLOUD_SERVICE,
    Keeper.CONTROLLER: ReasonCode.CONTROLLER,
    Keeper.COSTGUARD: ReasonCode.COSTGUARD_ITSELF,
}
_BILLING_REASONS: Mapping[Billing, ReasonCode] = {
    Billing.PREPAID: ReasonCode.PREPAID,
    Billing.RESERVED: ReasonCode.RESERVED,
    Billing.UNKNOWN: ReasonCode.BILLING_UNKNOWN,
}


def examine(
    inventory: Inventory,
    readings: Mapping[ResourceRef, SignalReading],
    rates: Mapping[ResourceRef, HourlyRate],
    signal_gaps: Sequence[Gap],
    windows: Iterable[timedelta],
    now: datetime,
    *,
    usage_since: datetime | None = None,
    usage_bounds: IdleBounds | None = None,
) -> ShardFacts:
    """Summarise one shard over each window; with `usage_since`, also how the hours since then were spent."""
    lengths = sorted(set(windows))
    facts = []
    listed = {instance.ref: instance for instance in inventory.instances}  # a page that came twice counts once
    for instance in listed.values():
        reading = readings.get(instance.ref)
        histories = reading.histories if reading else ()
        delay = reading.documented_delay if reading else timedelta(0)
        facts.append(
            InstanceFact(
                instance=instance,
                rate=rates.get(instance.ref),
                readings=tuple(
                    WindowReading(
                        lasting,
                        now - lasting,
                        now,
                        tuple(history.over(now - lasting, now, delay) for history in histories),
                    )
                    for lasting in lengths
                ),
                documented_delay=delay,
                signals_read=reading is not None,
                usage=None
                if usage_since is None
                else usage_of(instance, histories, usage_bounds or IdleBounds(), usage_since, now),
            )
        )
    return ShardFacts(inventory.shard, tuple(facts), (*inventory.gaps, *signal_gaps), inventory.instances_seen)


def judge(facts: Iterable[InstanceFact], rules: Sequence[IdleRule], now: datetime) -> tuple[Finding, ...]:
    """One finding an instance, by the gentlest rule that applies to it."""
    return tuple(judge_instance(fact, gentlest_rule(fact.instance, rules), now) for fact in facts)


def gentlest_rule(instance: Instance, rules: Sequence[IdleRule]) -> IdleRule | None:
    """Of the rules that apply, the least destructive: gentler mode, weaker last verb, longer waits and window."""
    applying = [rule for rule in rules if rule.applies_to.matches(instance) and not rule.leaves_out(instance)]
    return min(applying, key=IdleRule.harshness, default=None)


def judge_instance(fact: InstanceFact, rule: IdleRule | None, now: datetime) -> Finding:
    """The verdict of one rule on one instance; committed capacity and managed nodes are exempt but still measured."""
    instance = fact.instance
    if rule is None:
        return _finding(fact, None, Verdict.EXEMPT, Reason(ReasonCode.NO_RULE), None)
    reading = fact.over(rule.idle.lasting)
    evidence = _evidence(reading, rule.idle) if reading else None
    verdict, reason = _utilisation(fact, rule.idle, reading, now)
    if rule.cause is not None:
        verdict, reason = _by_budget(rule.cause, instance, verdict, reason)
    kept = kept_reason(instance, rule.termination_protection_bars)
    if kept is not None:
        facts = {**kept.facts, "utilisation": reason.code.value}
        return _finding(fact, rule, Verdict.EXEMPT, Reason(kept.code, facts), evidence)
    return _finding(fact, rule, verdict, reason, evidence)


def _evidence(reading: WindowReading, bounds: IdleBounds) -> Evidence:
    judged, shown = _parted(reading, bounds)
    return Evidence(reading.since, reading.until, tuple(judged), tuple(shown))


def _parted(reading: WindowReading, bounds: IdleBounds) -> tuple[list[SignalSummary], list[SignalSummary]]:
    """The signals that the rule names, and what was read beside them."""
    named = {name for name, _ in bounds.bounds()}
    judged = [signal for signal in reading.signals if signal.name in named]
    return judged, [signal for signal in reading.signals if signal.name not in named]


def _by_budget(cause: BudgetCause, instance: Instance, verdict: Verdict, reason: Reason) -> tuple[Verdict, Reason]:
    """The verdict under a spent budget: a class of work whatever its use, everything else where it is idle."""
    facts: dict[str, FactValue] = {"budget": cause.budget, "at_percent": percent_words(cause.at)}
    if cause.priority_class:
        if instance.state is not InstanceState.RUNNING:
            return verdict, reason
        facts |= {"priority_class": cause.priority_class, "utilisation": reason.code.value}
        return Verdict.VIOLATION, Reason(ReasonCode.BUDGET_CLASS, facts)
    if verdict is Verdict.VIOLATION:
        return verdict, Reason(ReasonCode.BUDGET_IDLE, {**facts, **reason.facts})
    return verdict, reason


def kept_reason(instance: Instance, reading: Bars) -> Reason | None:
    """Why an instance may be shown but never touched, from how it is paid for, who manages it and what protects it."""
    if instance.managed_by is not None:
        code = _KEEPER_REASONS[instance.managed_by.keeper]
        return Reason(code, {"manager": instance.managed_by.name})
    if instance.billing in _BILLING_REASONS:
        until = instance.paid_until
        facts = {} if until is None else {"until": until.date().isoformat()}
        return Reason(_BILLING_REASONS[instance.billing], facts)
    barred = barring(instance.protected_by, Verb.WARN, reading)
    return Reason(ReasonCode.PROTECTED_BY_CLOUD, {"protection": ", ".join(barred)}) if barred else None


def _utilisation(
    fact: InstanceFact, bounds: IdleBounds, reading: WindowReading | None, now: datetime
) -> tuple[Verdict, Reason]:
    instance = fact.instance
    if instance.state is not InstanceState.RUNNING:
        return Verdict.COMPLIANT, Reason(ReasonCode.NOT_RUNNING, {"state": instance.state.value})
    if reading is None or not fact.signals_read:
        return Verdict.UNMEASURED, Reason(ReasonCode.SIGNALS_UNREAD)
    named = bounds.bounds()
    relevant, others = _parted(reading, bounds)
    implausible = next((signal for signal in relevant if not _plausible(signal)), None)
    if implausible is not None:
        facts = {"signal": implausible.name.value, "device": implausible.device, "value": str(implausible.maximum)}
        return Verdict.UNMEASURED, Reason(ReasonCode.IMPLAUSIBLE, facts)
    busy = _busiest(relevant, dict(named), instance)
    idle_cards = [s for s in relevant if s.name is SignalName.GPU and s.maximum is not None and s not in busy]
    busy_cards = [signal for signal in busy if signal.name is SignalName.GPU]
    if busy and not (idle_cards and busy_cards):
        return Verdict.COMPLIANT, _busy_reason(busy[0], dict(named))
    lack = _lacking(fact, bounds, relevant, reading, now)
    if lack is not None:
        return (Verdict.COMPLIANT, _busy_reason(busy[0], dict(named))) if busy else (Verdict.UNMEASURED, lack)
    if busy:
        cards = {"idle_cards": len(idle_cards), "cards": len(idle_cards) + len(busy_cards)}
        return Verdict.COMPLIANT, Reason(ReasonCode.PARTLY_IDLE, cards)
    contradicted = contradiction(instance, relevant, others)
    if contradicted is not None:
        return Verdict.UNMEASURED, contradicted
    highest = max((s.maximum or 0.0 for s in relevant if s.name is SignalName.GPU), default=0.0)
    seen: dict[str, FactValue] = {
        "hours": round(bounds.lasting / timedelta(hours=1), 2),
        "gpu_max_percent": round(highest, 2),
    }
    if bounds.unlooked:
        seen["unlooked"] = ",".join(name.value for name in bounds.unlooked)
    return Verdict.VIOLATION, Reason(ReasonCode.IDLE, seen)


def bound_for(signal: SignalSummary, bound: float, instance: Instance) -> float:
    """The bound a signal must stay below; a mean over N cards may hide one card at N times the mean."""
    if signal.statistic is Statistic.MEAN_OF_CARDS:
        return bound / max(1.0, instance.accelerator.count)
    return bound


def _busiest(
    signals: Sequence[SignalSummary], bounds: Mapping[SignalName, float], instance: Instance
) -> list[SignalSummary]:
    """Signals at or over their bound, other signals before cards: a busy CPU speaks for the whole machine."""
    over = [s for s in signals if s.maximum is not None and s.maximum >= bound_for(s, bounds[s.name], instance)]
    return sorted(over, key=lambda s: (s.name is SignalName.GPU, -(s.maximum or 0.0)))


def _busy_reason(signal: SignalSummary, bounds: Mapping[SignalName, float]) -> Reason:
    maximum = signal.maximum or 0.0
    return Reason(
        ReasonCode.BUSY,
        {
            "signal": signal.name.value,
            "device": signal.device,
            "maximum": round(maximum, 2),
            "bound": bounds[signal.name],
        },
    )


def _plausible(signal: SignalSummary) -> bool:
    if signal.maximum is None:
        return True
    if not math.isfinite(signal.maximum) or signal.maximum < 0:
        return False
    return signal.name not in _PERCENT_SIGNALS or signal.maximum <= _MAX_PERCENT


def _lacking(
    fact: InstanceFact, bounds: IdleBounds, signals: Sequence[SignalSummary], reading: WindowReading, now: datetime
) -> Reason | None:
    """What is missing before "idle" may be said; None when nothing is."""
    instance = fact.instance
    if instance.launched_at is None or instance.launched_at > reading.since:
        running = (now - instance.launched_at) / timedelta(hours=1) if instance.launched_at else 0.0
        wanted = bounds.lasting / timedelta(hours=1)
        return Reason(ReasonCode.TOO_YOUNG, {"running_hours": round(running, 1), "window_hours": wanted})
    cards = [signal for signal in signals if signal.name is SignalName.GPU]
    if not cards:
        measurable = instance.accelerator.kind in _MEASURABLE
        return Reason(ReasonCode.NO_DEVICE_METRIC, {"kind": instance.accelerator.kind.value, "exporter": measurable})
    if all(card.samples == 0 for card in cards):
        return Reason(ReasonCode.NO_DATA, {"source": cards[0].source})
    expected_cards = math.ceil(instance.accelerator.count)
    asked_at = reading.until if now - reading.until <= _READING_HOLDS else now
    for name, _ in bounds.bounds():
        found = [signal for signal in signals if signal.name is name]
        per_card = name in {SignalName.GPU, SignalName.POWER} and not any(
            signal.statistic is Statistic.MEAN_OF_CARDS for signal in found
        )
        wanted = expected_cards if per_card else 1
        measured = len({signal.device for signal in found if signal.samples})
        if measured < wanted:
            code = ReasonCode.DEVICE_MISSING if name is SignalName.GPU else ReasonCode.SIGNAL_MISSING
            return Reason(code, {"signal": name.value, "found": measured, "expected": wanted})
    for signal in signals:
        coverage = _coverage(signal, reading)
        if coverage < bounds.min_coverage:
            return Reason(
                ReasonCode.LOW_COVERAGE,
                {
                    "signal": signal.name.value,
                    "device": signal.device,
                    "coverage_percent": math.floor(coverage * 1000) / 10,
                    "needed_percent": round(bounds.min_coverage * 100, 1),
                },
            )
        allowed = max(signal.may_lag, fact.documented_delay) if signal.delay is None else signal.may_lag
        # a sample stands for the period that begins at its time stamp
        if signal.newest_at is None or asked_at - (signal.newest_at + signal.period) > allowed:
            age = (asked_at - signal.newest_at) / timedelta(minutes=1) if signal.newest_at else -1.0
            return Reason(
                ReasonCode.STALE,
                {"signal": signal.name.value, "device": signal.device, "age_minutes": round(age)},
            )
    return None


def _coverage(signal: SignalSummary, reading: WindowReading) -> float:
    """How much of what can have arrived did. Of the machine itself the newest samples may still be on their way.

    They come every five minutes and ten late, which an hour's window would take for losses for ever; that they are not
    too late is asked of the newest. Cards are given no such leave.
    """
    if signal.name not in FREE_SIGNALS or signal.newest_at is None:
        return signal.coverage
    silent = max(timedelta(0), reading.until - (signal.newest_at + signal.period))
    on_the_way = min(math.ceil(silent / signal.period), signal.may_lag // signal.period)
    return min(1.0, signal.samples / max(1, signal.expected - on_the_way)) if signal.expected > 0 else 0.0


def _finding(
    fact: InstanceFact, rule: IdleRule | None, verdict: Verdict, reason: Reason, evidence: Evidence | None
) -> Finding:
    by_budget = rule is not None and rule.cause is not None
    return Finding(
        guard=BUDGET if by_budget else NAME,
        check=SPENT if by_budget else CHECK,
        rule=rule.name if rule else "",
        rule_digest=rule.digest if rule else "",
        subject=fact.instance.ref,
        verdict=verdict,
        reason=reason,
        evidence=evidence,
        run_epoch=fact.instance.run_epoch,
        name=fact.instance.name,
        instance_type=fact.instance.instance_type,
        rate=fact.rate,
        usage=fact.usage,
    )


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
