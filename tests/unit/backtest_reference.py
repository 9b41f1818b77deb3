"""The slow, obvious way to replay a machine: every run looked at, every hour looked up, nothing kept for later."""

from __future__ import annotations

import math
from array import array
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from costguard.backtest import HORIZONS, Machine, Regret, Terms, WouldStop
from costguard.backtest.replay import in_earnest
from costguard.cases import Case, CaseStatus, SubjectSnapshot, advance, claimed, confirming, noticed
from costguard.cases.case import climbed
from costguard.domain.actions import Outcome, Verb
from costguard.domain.findings import ShardFacts, Verdict
from costguard.domain.reasons import ReasonCode
from costguard.domain.resources import InstanceState, Inventory
from costguard.domain.signals import SignalHistory, SignalName, SignalReading, Statistic
from costguard.guards.idle.judge import examine, gentlest_rule
from costguard.guards.rules.idle import IdleRule
from costguard.planning import judge_all
from costguard.policy.model.policy import Policy

ONE_HOUR = timedelta(hours=1)


@dataclass
class Lived:
    """What came of one machine, as `Replay` has it."""

    stops: list[WouldStop]
    judged: bool = False
    unmeasured: int = 0


def lived(policy: Policy, machine: Machine, terms: Terms) -> Lived:  # noqa: C901, PLR0912 - one loop, all in view
    """Replay one machine under the rule that applies to it, which there must be."""
    written = gentlest_rule(machine.instance, policy.idle_gpu)
    assert written is not None
    longest = max(24 * ONE_HOUR, *(rule.idle.lasting for rule in policy.idle_gpu))
    policy = in_earnest(policy, written)
    rule = policy.idle_gpu[0]
    found = Lived([])
    for since, until, ended in recorded_runs(machine, terms):
        case: Case | None = None
        launched, stopped, back, terminated = since, None, None, None
        now = terms.since
        while now < until:
            if now < since:
                now += terms.every
                continue
            if stopped is not None and back is not None and now >= back:
                found.stops.append(account(machine, rule, terms, stopped, back, until, terminated, ended=ended))
                case, launched, stopped, back, terminated = None, back, None, None, None
            state = InstanceState.RUNNING if stopped is None else InstanceState.STOPPED
            instance = replace(machine.instance, state=state, run_epoch=launched.isoformat(), launched_at=launched)
            reading = SignalReading(
                tuple(known(each, now - longest, now) for each in machine.histories), terms.publishing_delay
            )
            inventory = Inventory(instance.ref.shard, (instance,))
            examined = examine(inventory, {instance.ref: reading}, {}, (), [rule.idle.lasting], now)
            fact = examined.instances[0]
            finding = judge_all(policy, (ShardFacts(instance.ref.shard, (fact,)),), now)[0]
            if stopped is None:
                found.judged |= finding.verdict in {Verdict.VIOLATION, Verdict.COMPLIANT}
                if finding.verdict is Verdict.UNMEASURED and finding.reason.code is not ReasonCode.TOO_YOUNG:
                    found.unmeasured += int(terms.every / ONE_HOUR)
            took: Outcome | None = Outcome.TOOK_EFFECT if stopped is not None else None
            seen = SubjectSnapshot(
                now,
                rule,
                finding,
                instance,
                shard_read=True,
                shard_complete=True,
                intent_written=stopped is not None,
                last_outcome=took,
            )
            step = advance(case, seen) if policy.calendar is None else advance(case, seen, policy.calendar.after)
            case = None if step.case is None or step.case.status is CaseStatus.CLOSED else step.case
            if case is not None and terminated is None:
                if step.wants is Verb.WARN:
                    case = noticed(case, now)
                elif step.wants is Verb.SNAPSHOT:
                    case = climbed(case, Verb.SNAPSHOT, now)
                elif step.wants is Verb.STOP:
                    case = confirming(claimed(case, now))
                    stopped, back = now, comes_back(machine, rule, now, until)
                elif step.wants is Verb.TERMINATE:
                    if stopped is None:
                        stopped, back = now, comes_back(machine, rule, now, until)
                    terminated = now
            if terminated is not None:
                case = None
            now += terms.every
        if stopped is not None:
            found.stops.append(account(machine, rule, terms, stopped, back, until, terminated, ended=ended))
    return found


def known(history: SignalHistory, since: datetime, now: datetime) -> SignalHistory:
    """What a scan at `now` reads of it: the hours of its window, as far as they are over."""
    places = [
        place
        for place in range(len(history.maxima))
        if history.start + (place + 1) * ONE_HOUR > since and history.start + (place + 1) * ONE_HOUR <= now
    ]
    return replace(
        history,
        start=history.start + places[0] * ONE_HOUR if places else max(history.start, now),
        maxima=array("d", [history.maxima[place] for place in places]),
        samples=array("I", [history.samples[place] for place in places]),
    )


def recorded_runs(machine: Machine, terms: Terms) -> list[tuple[datetime, datetime, bool]]:
    measured = [
        each.start + place * ONE_HOUR
        for each in machine.histories
        for place in range(len(each.samples))
        if each.samples[place] > 0
    ]
    end = min(max(measured) + ONE_HOUR, terms.until) if measured else terms.until
    runs = []
    if machine.runs:
        for run in machine.runs:
            if run.until is None:
                runs.append((run.since, end, False))
            else:
                runs.append((run.since, min(run.until, terms.until), run.until <= terms.until))
    elif measured:
        runs.append((min(began(each) for each in machine.histories if any(each.samples)), end, False))
    return [run for run in runs if run[0] < run[1] and run[1] > terms.since]


def began(history: SignalHistory) -> datetime:
    """Its first sample at the latest: the samples of its first hour may all lie at the end of it."""
    place = next(place for place, samples in enumerate(history.samples) if samples)
    whole = history.samples_per_hour
    missing = whole - min(whole, history.samples[place])
    return history.start + place * ONE_HOUR + missing * (ONE_HOUR / whole)


def comes_back(machine: Machine, rule: IdleRule, now: datetime, until: datetime) -> datetime | None:
    hour = now
    while hour < until:
        if kind(machine, rule, hour) == "busy":
            return hour
        hour += ONE_HOUR
    return None


def kind(machine: Machine, rule: IdleRule, hour: datetime) -> str:
    """`busy`, `idle` or `unknown`."""
    count = machine.instance.accelerator.count
    bounds = dict(rule.idle.bounds())
    cover: dict[SignalName, set[str]] = {}
    means, partly = set(), False
    for history in machine.histories:
        if history.name not in bounds:
            continue
        bound = bounds[history.name]
        if history.statistic is Statistic.MEAN_OF_CARDS:
            bound /= max(1.0, count)
            means.add(history.name)
        place = int((hour - history.start) / ONE_HOUR) if hour >= history.start else -1
        inside = 0 <= place < len(history.samples)
        value = history.maxima[place] if inside else math.nan
        possible = 0 <= value < math.inf and (value <= 100.5 or history.name in {SignalName.NETWORK, SignalName.POWER})
        if possible and value >= bound:
            return "busy"
        if possible and history.samples[place] >= rule.idle.min_coverage * history.samples_per_hour:
            cover.setdefault(history.name, set()).add(history.device)
        else:
            partly = True
    for name in bounds:
        cards = name in {SignalName.GPU, SignalName.POWER} and name not in means
        if len(cover.get(name, ())) < (math.ceil(count) if cards else 1):
            return "unknown"
    return "unknown" if partly else "idle"


def account(
    machine: Machine,
    rule: IdleRule,
    terms: Terms,
    stopped: datetime,
    back: datetime | None,
    until: datetime,
    terminated: datetime | None,
    *,
    ended: bool,
) -> WouldStop:
    kinds = []
    hour = stopped
    while hour < (back or until):
        kinds.append(kind(machine, rule, hour) if hour < terms.until else "unknown")
        hour += ONE_HOUR
    return WouldStop(
        at=stopped,
        counted_until=back or until,
        back_at=back,
        idle_hours=kinds.count("idle"),
        unmeasured_hours=kinds.count("unknown"),
        regrets=tuple(regret(machine, rule, stopped, back, until, within, ended=ended) for within in HORIZONS),
        terminated_at=terminated,
    )


def regret(
    machine: Machine,
    rule: IdleRule,
    stopped: datetime,
    back: datetime | None,
    until: datetime,
    within: int,
    *,
    ended: bool,
) -> Regret:
    for after in range(within):
        hour = stopped + after * ONE_HOUR
        if back is not None and hour >= back:
            return Regret.YES
    for after in range(within):
        hour = stopped + after * ONE_HOUR
        if hour >= until and ended:
            return Regret.NO
        if hour >= until or kind(machine, rule, hour) == "unknown":
            return Regret.UNDETERMINED
        if hour + ONE_HOUR > until and not ended:
            return Regret.UNDETERMINED
    return Regret.NO
