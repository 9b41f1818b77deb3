"""One policy lived through a record: the product's judge and cases, one look a run, nothing of the future in view.

What the world answers is assumed, and `domain.backtests.ASSUMPTIONS` names it: every rule enforces, notices arrive at
once, a stop or a snapshot takes effect before the next run, nobody snoozes or approves, no cap is reached. Looks that
provably change nothing are left out; a test holds the rest equal to a loop that leaves out none.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from typing_extensions import assert_never

from costguard.backtest.model import (
    IDLE,
    UNKNOWN,
    Hours,
    Machine,
    Regret,
    Replay,
    WouldStop,
    hours_of,
    tally,
    until_whole,
)
from costguard.cases import Case, CaseStatus, CaseStep, SubjectSnapshot, advance, claimed, confirming, noticed
from costguard.cases.advance import GraceEnd, plain_time
from costguard.cases.case import climbed
from costguard.domain.actions import Outcome, Verb
from costguard.domain.backtests import HORIZONS, Point, Terms
from costguard.domain.findings import Finding, ShardFacts, Verdict
from costguard.domain.reasons import ReasonCode
from costguard.domain.resources import Instance, InstanceState, Inventory
from costguard.domain.signals import HOUR, SignalHistory, SignalReading, reads_back
from costguard.guards.idle.judge import examine, gentlest_rule
from costguard.guards.rules.common import Mode
from costguard.guards.rules.idle import IdleRule
from costguard.planning import exemption, judge_all
from costguard.policy.model.ownership import owner_name
from costguard.policy.model.policy import Policy
from costguard.policy.model.terms import with_digest

_MEASURED = frozenset({Verdict.VIOLATION, Verdict.COMPLIANT})


@dataclass(slots=True)
class _Life:
    """Where the replay of one machine stands. `back`: when what was stopped runs again, None while it runs."""

    case: Case | None = None
    launched: datetime | None = None
    epoch: str = ""
    stopped: datetime | None = None
    back: datetime | None = None
    terminated: datetime | None = None
    judged: bool = False
    unmeasured: int = 0


@dataclass(frozen=True, slots=True)
class _Lifetime:
    """A recorded run within the terms. `ended`: its own people stopped it; else the record ends there."""

    since: datetime
    until: datetime
    ended: bool


@dataclass(frozen=True, slots=True)
class _Stage:
    """What stays the same while one machine is replayed."""

    machine: Machine
    policy: Policy
    rule: IdleRule
    terms: Terms
    hours: Hours
    lifetimes: tuple[_Lifetime, ...]
    grace_end: GraceEnd
    longest: timedelta


def replay(policy: Policy, machines: Iterable[Machine], terms: Terms) -> Iterator[Replay]:
    """Each machine of the record, as the policy would have dealt with it."""
    for machine in machines:
        yield _replayed(machine, policy, terms)


def in_earnest(policy: Policy, rule: IdleRule) -> Policy:
    """The same policy with this rule alone, enforcing: what only observes can be looked at before it does more.

    Which rule is a machine's own was settled before, by the modes as they are written.
    """
    return replace(policy, mode=Mode.ENFORCE, idle_gpu=(with_digest(replace(rule, mode=Mode.ENFORCE)),))


def _lifetimes(machine: Machine, terms: Terms) -> tuple[_Lifetime, ...]:
    """When it ran, within the terms: as recorded, or from its first sample to the end of its last hour with one.

    Where in its hour the first sample lies is not recorded: as late as the samples of that hour allow, so that a few
    minutes are never taken for an hour of quiet.
    """
    measured = [bounds for each in machine.histories if (bounds := _measured(each)) is not None]
    recorded = min(max((last for _, last in measured), default=terms.until), terms.until)
    if machine.runs:
        ends = ((run.since, run.until) for run in machine.runs)
        found = [
            _Lifetime(since, recorded if until is None else min(until, terms.until), _ended(until, terms))
            for since, until in ends
        ]
    else:
        found = [_Lifetime(min(first for first, _ in measured), recorded, ended=False)] if measured else []
    return tuple(each for each in found if each.since < each.until and each.until > terms.since)


def _ended(until: datetime | None, terms: Terms) -> bool:
    return until is not None and until <= terms.until


def _measured(history: SignalHistory) -> tuple[datetime, datetime] | None:
    places = [place for place, samples in enumerate(history.samples) if samples]
    if not places:
        return None
    per_hour = history.samples_per_hour
    first = min(history.samples[places[0]], per_hour) * (HOUR / per_hour)
    return history.start + (places[0] + 1) * HOUR - first, history.start + (places[-1] + 1) * HOUR


def _replayed(machine: Machine, policy: Policy, terms: Terms) -> Replay:
    instance, lifetimes = machine.instance, _lifetimes(machine, terms)
    rule = gentlest_rule(instance, policy.idle_gpu)
    team = machine.owner or owner_name(instance, policy)
    kept = exemption(instance, policy, terms.since)
    if rule is None or not lifetimes:
        name, exempt = ("", "") if rule is None else (rule.name, kept.code.value if kept else "")
        return Replay(instance.ref, name, team, exempt, judged=False, recorded_hours=0, idle_hours=0,
                      unmeasured_hours=0, stops=(), rate=machine.rate)  # fmt: skip
    start = min([history.start for history in machine.histories], default=terms.since)
    hours = hours_of(instance, machine.histories, rule.idle, start, terms.until)
    grace_end = policy.calendar.after if policy.calendar is not None else plain_time
    enforced = in_earnest(policy, rule)
    longest = reads_back(each.idle.lasting for each in policy.idle_gpu)  # as a scan reads for all rules
    stage = _Stage(machine, enforced, enforced.idle_gpu[0], terms, hours, lifetimes, grace_end, longest)
    life = _Life()
    stops = tuple(_lived(stage, life))
    spans = [(hours.index(max(each.since, terms.since)), _end(hours, each.until)) for each in lifetimes]
    return Replay(
        ref=instance.ref,
        rule=rule.name,
        team=team,
        exempt=kept.code.value if kept else "",
        judged=life.judged,
        recorded_hours=sum(last - first for first, last in spans),
        idle_hours=sum(hours.count(IDLE, first, last) for first, last in spans),
        unmeasured_hours=life.unmeasured,
        stops=stops,
        rate=machine.rate,
    )


def _end(hours: Hours, until: datetime) -> int:
    """The hour before which `until` lies, or with which it ends."""
    return -((hours.start - until) // HOUR)


def _lived(stage: _Stage, life: _Life) -> Iterator[WouldStop]:
    terms = stage.terms
    for run in stage.lifetimes:
        life.case, life.launched, life.epoch = None, run.since, run.since.isoformat()
        now = until_whole(run.since, terms.since, terms.every)
        while now < run.until:
            if life.stopped is not None and life.back is not None and now >= life.back:
                yield _account(stage, life, run)
                _started_again(life, life.back)
            quiet = _nothing_before(stage, life, run, now)
            if quiet is not None:
                now = quiet
                continue
            _look(stage, life, run, now)
            now += terms.every
        if life.stopped is not None:
            yield _account(stage, life, run)
            _started_again(life, run.until)


def _started_again(life: _Life, at: datetime) -> None:
    life.case, life.launched, life.epoch = None, at, at.isoformat()
    life.stopped = life.back = life.terminated = None


def _nothing_before(stage: _Stage, life: _Life, run: _Lifetime, now: datetime) -> datetime | None:
    """The next run that can differ from this one, where this one provably leaves everything as it is.

    Without a case, a machine that was busy within the window is left alone whatever else is known of it, unless a value
    that cannot be makes the whole window unmeasured. A stopped one waits for its return once nothing would follow.
    """
    terms, rule, hours = stage.terms, stage.rule, stage.hours
    if life.stopped is not None:
        over = life.terminated is not None or all(step.verb is not Verb.TERMINATE for step in rule.ladder)
        return until_whole(life.back or terms.until, terms.since, terms.every) if over else None
    if life.case is not None or hours.doubtful:
        return None
    seen = min(hours.index(now), len(hours.kinds)) - 1
    if seen < 0 or hours.last_busy[seen] < max(0, hours.index(now - rule.idle.lasting)):
        return None
    after = hours.at(hours.last_busy[seen] + 1) + rule.idle.lasting
    following = max(until_whole(after, terms.since, terms.every), now + terms.every)
    last = min(following, until_whole(run.until, terms.since, terms.every)) - terms.every
    # exemptions only ever expire: what is exempt in the last of these runs was in all of them
    life.judged = life.judged or exemption(stage.machine.instance, stage.policy, last) is None
    return following


def _look(stage: _Stage, life: _Life, run: _Lifetime, now: datetime) -> None:
    """One run of the guard over this machine, and what the world answers to it."""
    instance = _instance(stage, life)
    finding = _judged(stage, instance, now)
    if life.stopped is None:
        life.judged = life.judged or finding.verdict in _MEASURED
        if finding.verdict is Verdict.UNMEASURED and finding.reason.code is not ReasonCode.TOO_YOUNG:
            life.unmeasured += stage.terms.every // HOUR
    seen = SubjectSnapshot(
        now=now,
        rule=stage.rule,
        finding=finding,
        instance=instance,
        shard_read=True,
        shard_complete=True,
        intent_written=life.stopped is not None,
        last_outcome=Outcome.TOOK_EFFECT if life.stopped is not None else None,
    )
    _answered(stage, life, run, advance(life.case, seen, stage.grace_end), now)


def _answered(stage: _Stage, life: _Life, run: _Lifetime, step: CaseStep, now: datetime) -> None:
    life.case = None if step.case is None or step.case.status is CaseStatus.CLOSED else step.case
    if life.case is None or step.wants is None:
        return
    match step.wants:
        case Verb.WARN:
            life.case = noticed(life.case, now)
        case Verb.SNAPSHOT:
            life.case = climbed(life.case, Verb.SNAPSHOT, now)
        case Verb.STOP:
            life.case = confirming(claimed(life.case, now))
            life.stopped = now
            life.back = _back(stage, run, now)
        case Verb.TERMINATE:
            if life.stopped is None:  # what cannot stop is terminated as it runs
                life.stopped, life.back = now, _back(stage, run, now)
            life.terminated, life.case = now, None
        case Verb.START | Verb.MEND:
            return
        case _:
            assert_never(step.wants)


def _back(stage: _Stage, run: _Lifetime, now: datetime) -> datetime | None:
    """The hour in which recorded use comes back before the recorded run ends."""
    hours = stage.hours
    found = hours.first_busy(hours.index(now), _end(hours, run.until))
    return None if found is None else hours.at(found)


def _instance(stage: _Stage, life: _Life) -> Instance:
    state = InstanceState.RUNNING if life.stopped is None else InstanceState.STOPPED
    return replace(stage.machine.instance, state=state, run_epoch=life.epoch, launched_at=life.launched)


def _judged(stage: _Stage, instance: Instance, now: datetime) -> Finding:
    """What the judge says of it, knowing what a run at this time could have read and nothing later."""
    machine = stage.machine
    histories = tuple(_as_read(each, now - stage.longest, now) for each in machine.histories)
    facts = examine(
        Inventory(instance.ref.shard, (instance,), (), 1),
        {instance.ref: SignalReading(histories, stage.terms.publishing_delay)},
        {} if machine.rate is None else {instance.ref: machine.rate},
        (),
        (stage.rule.idle.lasting,),
        now,
    )
    whole = ShardFacts(facts.shard, facts.instances, (), 1)
    return replace(judge_all(stage.policy, (whole,), now)[0], owner="")


def _as_read(history: SignalHistory, since: datetime, until: datetime) -> SignalHistory:
    """What reading the source at `until` would have given: whole hours from `since` on."""
    first = max(0, math.floor((since - history.start) / HOUR))
    last = max(first, (until - history.start) // HOUR)
    return replace(
        history,
        start=history.start + first * HOUR,
        maxima=history.maxima[first:last],
        samples=history.samples[first:last],
    )


def _account(stage: _Stage, life: _Life, run: _Lifetime) -> WouldStop:
    hours, at = stage.hours, life.stopped or stage.terms.since
    counted = run.until if life.back is None else life.back
    first, last = hours.index(at), _end(hours, counted)
    return WouldStop(
        at=at,
        counted_until=counted,
        back_at=life.back,
        idle_hours=hours.count(IDLE, first, last),
        unmeasured_hours=hours.count(UNKNOWN, first, last),
        regrets=tuple(_regret(stage, run, at, life.back, horizon) for horizon in HORIZONS),
        terminated_at=life.terminated,
    )


def _regret(stage: _Stage, run: _Lifetime, at: datetime, back: datetime | None, horizon: int) -> Regret:
    """Whether use came back within `horizon` hours of a stop; only what was measured throughout says that it did not.

    Where its own people stopped the machine first, nobody missed it from then on.
    """
    within = at + timedelta(hours=horizon)
    if back is not None and back < within:
        return Regret.YES
    if within > run.until and not run.ended:
        return Regret.UNDETERMINED
    hours = stage.hours
    unknown = hours.count(UNKNOWN, hours.index(at), _end(hours, min(within, run.until)))
    return Regret.UNDETERMINED if unknown else Regret.NO


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
