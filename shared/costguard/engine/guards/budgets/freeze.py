"""Launch freezes: look at what is attached, announce, write the intent, call once, look again; and people's release."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal

from costguard.domain.actions import LaunchFreeze
from costguard.domain.errors import (
    CostguardError,
    InvalidInputError,
    OutcomeUnknownError,
    ProviderError,
    VersionConflictError,
)
from costguard.engine.ledger.audit.audit import AuditWhat
from costguard.engine.ledger.memory import Memory
from costguard.engine.ledger.notices import news
from costguard.engine.run.run_context import RunContext
from costguard.guards.budget.judge import BudgetStatus
from costguard.guards.budget.rules import BudgetRule, BudgetStep, StepKind, period_at
from costguard.guards.rules.common import Mode
from costguard.planning.freeze import FreezePhase, FreezeSeen, FreezeState, FreezeWants, advance_freeze
from costguard.policy.model.policy import Policy
from costguard.ports import VersionCheck
from costguard.report.budget.freeze_notices import FreezeWord, freeze_notice
from costguard.report.words.sentences import Language

_ENDED = frozenset({FreezePhase.OFF, FreezePhase.RELEASED})


@dataclass(frozen=True, slots=True)
class Thawed:
    """What was released: the freeze as it stood, and the period for which it is not wanted."""

    state: FreezeState
    period: str


def thaw(memory: Memory, policy: Policy, name: str, by: str, reason: str, now: datetime) -> Thawed:
    """Release a freeze for the present period of its budget; the next run takes it off, or does not begin it.

    Safe to repeat.

    Raises:
        InvalidInputError: nobody knows such a freeze, or several budgets ask for it and none has begun it.
    """
    state = memory.freezes.get(name)
    asking = [rule for rule in policy.budgets if any(name in step.freezes for step in rule.steps)]
    known = sorted({*(each.name for each in policy.launch_freezes), *(each.name for each in memory.freezes.all())})
    if name not in known:
        there = f"there is {', '.join(known)}" if known else "neither the policy nor the ledger has any"
        message = f"there is no launch freeze {name!r}; {there}"
        raise InvalidInputError(message)
    period = _period(state, asking, now)
    memory.freezes.release(name, period, by, reason, now)
    return Thawed(state, period)


def _period(state: FreezeState, asking: Sequence[BudgetRule], now: datetime) -> str:
    """The present period of the budget that began it, or of the only one that could."""
    begun = next((rule for rule in asking if rule.name == state.budget), None)
    if begun is None and state.phase not in _ENDED:
        return state.period  # the policy no longer has that budget: it is ending already
    periods = {}
    for rule in asking if begun is None else (begun,):
        found = period_at(rule.period, now)
        if found is not None:
            periods[rule.name] = found.key
    if len(set(periods.values())) == 1:
        return next(iter(periods.values()))
    if not periods:
        message = f"no budget of the policy asks for {state.name} now, so there is nothing to release"
    else:
        message = (
            f"{' and '.join(sorted(periods))} ask for {state.name} over different periods, and none of them has begun "
            "it: take it out of the budget where it is not wanted"
        )
    raise InvalidInputError(message)


_LOG = logging.getLogger(__name__)
_CALLS = frozenset({FreezeWants.ATTACH, FreezeWants.DETACH})
_UNDER_WAY = frozenset({FreezePhase.ATTACHING, FreezePhase.ON, FreezePhase.DETACHING, FreezePhase.ANNOUNCED})


@dataclass(frozen=True, slots=True)
class FreezeResult:
    """What became of one freeze in a run; `rehearsed`: a gentler mode only says that it would begin."""

    freeze: LaunchFreeze
    state: FreezeState
    wanted: FreezeWants | None
    failed: str = ""
    rehearsed: bool = False


@dataclass(frozen=True, slots=True)
class _Asked:
    """What the budgets as they stand say of one freeze."""

    asked: bool | None
    status: BudgetStatus | None
    wait: timedelta
    rehearsed: bool
    at: Decimal | None = None


def freeze(world: RunContext, statuses: Sequence[BudgetStatus], run_id: str) -> tuple[FreezeResult, ...]:
    """Move every freeze of the policy, and those remembered that it no longer names, one step at most.

    A cloud is asked only where there is something to look at, and nothing is called while the kill switch is set.
    """
    remembered = {state.name: state for state in world.memory.freezes.all()}
    known = {state.name: state.of for state in remembered.values() if state.of is not None}
    results = []
    for wanted in {**known, **{each.name: each for each in world.policy.launch_freezes}}.values():
        asked = _asked(wanted, statuses)
        if world.policy_problem is not None:  # too old to act on: nothing begins, and only time or people end
            asked = replace(asked, asked=None)
        state = remembered.get(wanted.name, FreezeState(wanted.name))
        begun = state.of is not None and state.phase not in {FreezePhase.OFF, FreezePhase.RELEASED}
        one = state.of if begun and state.of is not None else wanted  # it ends where it was begun
        if state.phase is FreezePhase.OFF and asked.asked is not True:
            if asked.rehearsed:
                results.append(FreezeResult(one, state, None, rehearsed=True))
            continue
        results.append(_moved(world, one, state, asked, run_id))
    return tuple(results)


def _asked(one: LaunchFreeze, statuses: Sequence[BudgetStatus]) -> _Asked:
    """Asked for by any enforcing budget that is certainly spent so far; unsure where any of them is."""
    naming = [
        (status, step)
        for status in statuses
        for step in status.rule.steps
        if step.kind is StepKind.FREEZE and one.name in step.freezes
    ]
    enforcing = [(status, step) for status, step in naming if status.rule.mode is Mode.ENFORCE]
    rehearsed = any(_reached(status, step) for status, step in naming if status.rule.mode is not Mode.ENFORCE)
    for status, step in enforcing:
        if _reached(status, step):
            return _Asked(asked=True, status=status, wait=step.wait, rehearsed=rehearsed, at=step.at)
    for status, step in enforcing:
        if _is_unsure(status):
            return _Asked(asked=None, status=status, wait=step.wait, rehearsed=rehearsed)
    nobody = next((status for status, _ in enforcing), None)
    return _Asked(asked=False, status=nobody, wait=timedelta(0), rehearsed=rehearsed)


def _reached(status: BudgetStatus, step: BudgetStep) -> bool:
    standing = status.standing
    return standing is not None and standing.doubt is None and standing.share is not None and standing.reached(step)


def _is_unsure(status: BudgetStatus) -> bool:
    standing = status.standing
    return standing is not None and (standing.doubt is not None or standing.share is None)


def _moved(
    world: RunContext,
    one: LaunchFreeze,
    state: FreezeState,
    asked: _Asked,
    run_id: str,
) -> FreezeResult:
    memory, now = world.memory, world.clock.now()
    opened = world.freezers.get(one.cloud)
    if opened is None:
        return FreezeResult(one, state, None, f"{one.cloud} is not among the clouds that are guarded")
    try:
        control = opened()
        attached: tuple[str, ...] | None = control.attached(one)
    except (ProviderError, InvalidInputError) as err:  # one freeze, or one cloud, must not keep the rest from running
        return FreezeResult(one, state, None, str(err))
    after, wants = advance_freeze(state, _seen(world, one, state, asked, attached))
    if wants is FreezeWants.ANNOUNCE:
        amount = asked.status.rule.amount if asked.status is not None else None
        announced = f"freeze-{one.name}-{after.period}-{after.attempt}"
        after = replace(after, of=one, announced=announced, at=asked.at, amount=amount)
    barred = _not_asked_now(world, one, state, asked) if wants is FreezeWants.ATTACH else ""
    if barred or after == state:
        return FreezeResult(one, state, None, barred)
    unturned: tuple[VersionCheck, ...] = ()
    what = AuditWhat.TRANSITION
    if wants in _CALLS:
        paused, unchanged = memory.switch.seen()
        if paused.paused or world.host_paused:
            return FreezeResult(one, state, None, "paused")
        what, unturned = AuditWhat.INTENT, (unchanged,)
    facts = {"policy": one.policy, "target": one.target, "before": list(after.before), "budget": after.budget}
    try:
        kept = memory.freezes.move(state, after, what, facts, run_id, now, unturned)
    except VersionConflictError:
        return FreezeResult(one, state, None, "another run moved it first")
    _tell(world, one, state, kept, wants, asked)
    failed = ""
    if wants in _CALLS:
        failed = _call(control.attach if wants is FreezeWants.ATTACH else control.detach, one, world, kept, run_id)
        if failed:
            _say(world, FreezeWord.FAILED, one, kept, asked, f"{kept.period}-{now:%Y-%m-%d}", failed)
    return FreezeResult(one, memory.freezes.get(one.name), wants, failed)


def _not_asked_now(world: RunContext, one: LaunchFreeze, state: FreezeState, asked: _Asked) -> str:
    """The last look: why it may not begin, by the policy and the outbox of this moment. Mode, step, notice and wait."""
    try:
        policy = world.policy_now()
    except CostguardError as err:
        return f"the policy could not be read again: {err}"
    status, now = asked.status, world.clock.now()
    rule = policy.budget(status.rule.name) if status is not None else None
    if status is None or status.standing is None or rule is None or rule.mode is not Mode.ENFORCE:
        return "no budget of the policy asks for it now"
    looked = status.rule
    same = (rule.covers, rule.amount, rule.period) == (looked.covers, looked.amount, looked.period)
    standing = replace(status.standing, rule=rule)
    steps = [
        step
        for step in rule.steps
        if step.kind is StepKind.FREEZE and one.name in step.freezes and standing.reached(step)
    ]
    if not same or not steps or one.name not in {each.name for each in policy.launch_freezes}:
        return "no budget of the policy asks for it now"
    notice = world.memory.outbox.get(state.announced) if state.announced else None
    told = notice.delivered_at if notice is not None and notice.proven else None
    if told is None or now < told + steps[0].wait:
        return "its announcement was not delivered, or the wait after it is not over"
    return ""


def _seen(
    world: RunContext, one: LaunchFreeze, state: FreezeState, asked: _Asked, attached: tuple[str, ...] | None
) -> FreezeSeen:
    status = asked.status
    period = status.period.key if status is not None and status.period is not None else state.period
    release = world.memory.freezes.released(one.name)
    notice = world.memory.outbox.get(state.announced) if state.announced else None
    return FreezeSeen(
        now=world.clock.now(),
        asked=asked.asked,
        budget=status.rule.name if status is not None else state.budget,
        period=period,
        wait=asked.wait,
        policy=one.policy,
        attached=attached,
        delivered_at=notice.delivered_at if notice is not None and notice.proven else None,
        released=release is not None and release.period == period,
    )


def _call(
    change: Callable[[LaunchFreeze], object], one: LaunchFreeze, world: RunContext, state: FreezeState, run_id: str
) -> str:
    """One call; what came of it is seen in the next run, whatever was answered now."""
    outcome, failed = "accepted", ""
    try:
        change(one)
    except OutcomeUnknownError as err:
        outcome, failed = "unknown", str(err)
    except ProviderError as err:
        outcome, failed = "refused", str(err)
    facts = {"policy": one.policy, "target": one.target, "outcome": outcome, "detail": failed}
    with suppress(VersionConflictError):  # another run has looked already, and saw what came of it
        world.memory.freezes.move(state, state, AuditWhat.OUTCOME, facts, run_id, world.clock.now())
    _LOG.info("launch freeze called", extra={"freeze": one.name, "phase": state.phase.value, "outcome": outcome})
    return failed


def _tell(
    world: RunContext,
    one: LaunchFreeze,
    before: FreezeState,
    after: FreezeState,
    wants: FreezeWants | None,
    asked: _Asked,
) -> None:
    word = _word(before, after, wants)
    if word is not None:
        _say(world, word, one, after, asked, str(after.version))


def _say(
    world: RunContext,
    word: FreezeWord,
    one: LaunchFreeze,
    state: FreezeState,
    asked: _Asked,
    once: str,
    detail: str = "",
) -> None:
    """Tell every address of the budget, once for each `once`; the wait is bound to the announcement's own id."""
    now = world.clock.now()
    worded = freeze_notice(word, one, state, asked.status, asked.wait, Language(world.language), detail)
    tell = asked.status.rule.tell if asked.status is not None else ()
    for number, address in enumerate(tell or tuple(filter(None, (world.policy.default_channel,)))):
        announced = state.announced if word is FreezeWord.ANNOUNCED and number == 0 else ""
        notice_id = announced or f"freeze-{one.name}-{once}-{word.value}/{address}"
        world.memory.outbox.enqueue(news(notice_id, address, worded, now, case_key=f"budget/freeze/{one.name}"))


def _word(before: FreezeState, after: FreezeState, wants: FreezeWants | None) -> FreezeWord | None:
    """What people hear: the announcement, that it holds, that it is over; nothing of the steps between."""
    if wants is FreezeWants.ANNOUNCE:
        return FreezeWord.ANNOUNCED
    if after.phase is FreezePhase.ON and before.phase is FreezePhase.ATTACHING:
        return FreezeWord.FROZEN
    ended = after.phase in {FreezePhase.OFF, FreezePhase.RELEASED}
    if ended and before.phase in _UNDER_WAY:
        return FreezeWord.CALLED_OFF if before.phase is FreezePhase.ANNOUNCED else FreezeWord.THAWED
    return None
