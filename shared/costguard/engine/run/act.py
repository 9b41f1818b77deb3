"""Act: for each due action, claim, reserve, re-read, write the intent, call once, write the outcome.

Every step before the call can still say no, and then nothing has happened. After the call only
looking, in a later run, says what came of it.
"""

from __future__ import annotations

import logging
import threading
from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from functools import partial
from itertools import groupby

from costguard.cases import Case, CaseStatus, claimed, confirming, refused, sent_back, unclaimed
from costguard.domain.actions import CAPPED, Action, ActionResult, Outcome, Receipt, Verb
from costguard.domain.errors import (
    AccessDeniedError,
    CostguardError,
    DeniedByOrganisationError,
    LedgerError,
    OutcomeUnknownError,
    ProviderError,
    ThrottledError,
    UnavailableError,
    VersionConflictError,
)
from costguard.domain.money import Money
from costguard.domain.reasons import FactValue, Reason, ReasonCode
from costguard.domain.refs import Shard, Subject
from costguard.domain.remediations import GRANTED_BY
from costguard.engine.ledger.caps import Claim, Reservation
from costguard.engine.ledger.memory import Memory, note
from costguard.engine.run.run_context import ActionHandler, PrecheckResult, RunContext
from costguard.engine.savings import keep_ledger
from costguard.guards.rules.common import Bars
from costguard.planning import Plan, PlanIndex, RuleLimit, Transition, cap_of
from costguard.planning.last_look import not_its_step
from costguard.policy.model.terms import rule_from_terms
from costguard.ports import Workers

_LOG = logging.getLogger(__name__)


def moved(memory: Memory, workers: Workers, steps: Iterable[Transition], run_id: str, now: datetime) -> dict[str, Case]:
    """The cases as they were written, by id; those that another run moved first are left out."""
    by_shard: dict[Shard, list[Transition]] = {}
    for step in steps:
        by_shard.setdefault(step.after.subject.shard, []).append(step)
    written: dict[str, Case] = {}
    for _, cases in workers.each([partial(_moved, memory, own, run_id, now) for own in by_shard.values()]):
        written.update(cases)
    return written


def _moved(memory: Memory, steps: Sequence[Transition], run_id: str, now: datetime) -> dict[str, Case]:
    written: dict[str, Case] = {}
    for step in steps:
        case_id = step.after.case_id
        try:
            written[case_id] = memory.cases.commit(step.before, step.after, run_id=run_id, now=now)
        except VersionConflictError:
            _LOG.info("another run moved this case first", extra={"case": case_id})
    return written


_FULL = frozenset({ReasonCode.CAP_ACTIONS, ReasonCode.CAP_SHARE, ReasonCode.CAP_MONEY})


def settle_observed(memory: Memory, plan: Plan, billed_while_stopped: Collection[Subject] = ()) -> None:
    """Write down what was seen to have happened; safe to repeat.

    A stop just seen complete starts a saving, which is nothing for a subject in `billed_while_stopped`;
    a machine that runs again, is gone or was replaced ends it.
    """
    for step in plan.transitions:
        if _seen_done(step):
            for intent in memory.intents.unsettled(step.after.case_id):
                memory.intents.settle(
                    intent.action, Outcome.TOOK_EFFECT, plan.planned_at, None, "seen complete", plan.run_id
                )
    keep_ledger(memory, plan, billed_while_stopped)


def release_unsent(memory: Memory, plan: Plan) -> None:
    """Give back what a process reserved that died before its intent, for the rules that a cap keeps from acting."""
    full = (held.action for held in plan.held if held.reason.code in _FULL)
    for cap in sorted({cap_of(action.rule, action.verb) for action in full}):
        give_back_unsent(memory, plan.guard, cap, plan.planned_at)


def give_back_unsent(memory: Memory, guard: str, cap: str, now: datetime) -> None:
    """Give back this cap's reservations for which no intent can be written any more; safe beside whoever reserves.

    The case is read before the intents: one that is past its claim gets no intent of it any more. An unknown outcome
    has an intent, and goes on counting.
    """
    reserved = memory.caps.reservations(guard, cap, now)
    unsent = [one for one in reserved if _is_unsent(memory, one)]
    if unsent:
        memory.caps.release_unsent(guard, cap, unsent)
        _LOG.info("reservations without an intent were given back", extra={"cap": cap, "count": len(unsent)})


def _is_unsent(memory: Memory, reserved: Reservation) -> bool:
    claim = reserved.claim
    case = memory.cases.get(claim.key) if claim is not None else None
    if claim is None or case is None or case.version <= claim.version:
        return False
    sent = {intent.action.decision_id for intent in memory.intents.for_case(claim.case_id)}
    return reserved.decision_id not in sent


def _seen_done(step: Transition) -> bool:
    if step.after.status is CaseStatus.CLOSED:
        return step.after.reason.code in {ReasonCode.TERMINATED, ReasonCode.MENDED}
    before = len(step.before.climbed) if step.before is not None else 0
    return any(rung.verb is not Verb.WARN for rung in step.after.climbed[before:])


ACT_WITHIN = timedelta(minutes=5)  # from reserving to calling; a process frozen for longer must look again
_PASSING = (ThrottledError, UnavailableError)  # nobody needs to do anything about one of these
_SPOKEN = frozenset({ReasonCode.CHANGED_SINCE_PLAN})  # somebody spoke at the last moment, and no intent was written
_NEXT_IS_DRAWN = frozenset({ReasonCode.PROTECTED_BY_CLOUD, ReasonCode.CAP_MONEY})


def pause_reason(memory: Memory, *, host_paused: bool) -> Reason | None:
    """Why nothing may be done: a switch that is set, or that cannot be read."""
    if host_paused:
        return Reason(ReasonCode.KILL_SWITCH, {"by": "host"})
    try:
        state = memory.switch.state()
    except LedgerError:
        return Reason(ReasonCode.KILL_SWITCH, {"by": "unreadable"})
    return Reason(ReasonCode.KILL_SWITCH, {"by": state.by, "cause": state.reason}) if state.paused else None


def act(
    plan: Plan, world: RunContext, hand: ActionHandler, deadline: datetime | None = None
) -> tuple[ActionResult, ...]:
    """Carry out `plan.due` by `hand`; a failure of one case never hides or stops another. Results are as planned.

    Where `hand` says that no shard rests on another, shards are acted in side by side; within one it is one case after
    another, so that what became of the first is known before the second. What is next in line follows when all that was
    due is over, for each that gave way to it.

    Raises:
        LedgerError: memory failed: nothing further is attempted, because nothing could be remembered.
    """
    index, halted = PlanIndex.of(plan), threading.Event()
    line: defaultdict[str, deque[tuple[Action, ...]]] = defaultdict(deque)
    for waiting in _by_case(plan.next_in_line):
        line[cap_of(waiting[0].rule, waiting[0].verb)].append(waiting)
    results: list[ActionResult] = []
    turns = list(_by_case(action for action in plan.due if action.verb is not Verb.WARN))
    drawn = False
    while turns:
        lanes: dict[object, list[int]] = {}
        for place, actions in enumerate(turns):
            lanes.setdefault(actions[0].subject.shard if hand.shards_apart else None, []).append(place)
        tasks = [partial(_one_lane, index, turns, own, world, hand, deadline, halted, drawn) for own in lanes.values()]
        done: dict[int, list[ActionResult]] = {}
        for _, found in world.actors.each(tasks):
            done.update(found)
        results.extend(result for place in range(len(turns)) for result in done[place])
        behind = (
            line[cap_of(actions[0].rule, actions[0].verb)]
            for place, actions in enumerate(turns)
            if _gave_way(done[place])
        )
        turns, drawn = [each.popleft() for each in behind if each], True
    return tuple(results)


def _one_lane(
    index: PlanIndex,
    turns: Sequence[Sequence[Action]],
    places: Sequence[int],
    world: RunContext,
    hand: ActionHandler,
    deadline: datetime | None,
    halted: threading.Event,
    drawn: bool,  # noqa: FBT001 - a task has no names
) -> dict[int, list[ActionResult]]:
    """What became of these turns, one after another, until memory fails for anybody."""
    done: dict[int, list[ActionResult]] = {}
    try:
        for place in places:
            if halted.is_set():
                break
            done[place] = _act_on_case(index, turns[place], world, hand, deadline, drawn=drawn)
    except BaseException:
        halted.set()
        raise
    return done


def _by_case(actions: Iterable[Action]) -> Iterator[tuple[Action, ...]]:
    return (tuple(group) for _, group in groupby(actions, key=lambda action: action.case_id))


def _gave_way(done: Sequence[ActionResult]) -> bool:
    """Whether what it had reserved is free for the next: the cloud protects it, or it was next and costs too much."""
    return all(result.outcome is None and result.reason and result.reason.code in _NEXT_IS_DRAWN for result in done)


def _act_on_case(
    index: PlanIndex,
    actions: Sequence[Action],
    world: RunContext,
    hand: ActionHandler,
    deadline: datetime | None,
    *,
    drawn: bool = False,
) -> list[ActionResult]:
    now = world.clock.now()
    if deadline is not None and now >= deadline:
        return _not_done(actions, Reason(ReasonCode.DEADLINE), now)
    paused = pause_reason(world.memory, host_paused=world.host_paused)
    if paused is not None:
        return _not_done(actions, paused, now)
    first = actions[0]
    cases = world.memory.cases
    plan, planned = index.plan, index.cases.get(first.case_id)
    known = cases.get(planned.key) if planned is not None else None
    if known is None or known != planned:  # a plan may say anything of a case: only the ledger's own is moved
        return _not_done(actions, Reason(ReasonCode.CHANGED_SINCE_PLAN, {"what": "case"}), now)
    misplaced = not_its_step(known, actions, drawn=drawn)
    if misplaced is not None:
        return _not_done(actions, misplaced, now)
    try:
        case = cases.commit(known, claimed(known, now), run_id=plan.run_id, now=now)
    except VersionConflictError:
        return _not_done(actions, Reason(ReasonCode.CHANGED_SINCE_PLAN, {"what": "case"}), now)
    full = _reserve(first, plan, case, world, hand, now)
    if full is not None:
        return _left(case, actions, full, world, index)
    found = _last_look(case, first, world, hand, now)
    if isinstance(found, PrecheckResult) and not all(map(found.clears, actions)):
        found = Reason(ReasonCode.CHANGED_SINCE_PLAN, {"what": "step"})
    if isinstance(found, Reason):
        _release(first, plan.guard, world.memory)
        return _left(case, actions, found, world, index)
    results = [_call(action, case, world, plan.run_id, hand, found, now + ACT_WITHIN) for action in actions]
    _settle_case(case, first, results, world, plan.run_id)
    return results


def _left(
    case: Case, actions: Sequence[Action], reason: Reason, world: RunContext, index: PlanIndex
) -> list[ActionResult]:
    """Nothing was called: the case waits again, and says why."""
    now = world.clock.now()
    stoppable = case.subject not in index.unstoppable
    after = _waiting_again(case, actions[0].verb, reason, now, stoppable=stoppable)
    note(world.memory, case, after, index.plan.run_id, now)
    return _not_done(actions, reason, now)


def _waiting_again(case: Case, verb: Verb, reason: Reason, now: datetime, *, stoppable: bool) -> Case:
    """Where a protection at the cloud bars what was announced, that is announced anew once it is lifted.

    Where termination protection bars everything, what it bars waits where it is.
    """
    after = unclaimed(case, reason)
    if reason.code is not ReasonCode.PROTECTED_BY_CLOUD or verb is Verb.MEND:
        return after
    rule = rule_from_terms(case.terms)
    if rule.termination_protection_bars is Bars.EVERYTHING:
        return after
    return sent_back(after, rule.rungs(stoppable=stoppable), reason, now)


def _last_look(
    case: Case, action: Action, world: RunContext, hand: ActionHandler, now: datetime
) -> Reason | PrecheckResult:
    try:
        policy = world.policy_now()
    except CostguardError as err:
        return Reason(ReasonCode.POLICY_STALE, {"cause": str(err)})
    return hand.last_look(case, action, policy, now)


def _release(action: Action, guard: str, memory: Memory) -> None:
    if action.verb in CAPPED:
        memory.caps.release(guard, cap_of(action.rule, action.verb), action.decision_id)


def _reserve(
    action: Action, plan: Plan, case: Case, world: RunContext, hand: ActionHandler, now: datetime
) -> Reason | None:
    """Take it from the caps of the policy in force; of the plan counts only how many of its subjects were seen."""
    if action.verb not in CAPPED:
        return None
    seen = next((limit.seen for limit in plan.limits if limit.rule == action.rule), 0)
    limit = hand.limit(action, world.policy, seen)
    if limit is None:
        return Reason(ReasonCode.RULE_CHANGED, {"rule": action.rule})
    cost = action.saving.stops_billing if action.saving is not None else None
    if action.verb is not Verb.STOP:
        cost = _nothing_more(limit)  # what it cost an hour was counted when it stopped; no mend stops anything
    code = world.memory.caps.reserve(
        plan.guard,
        cap_of(action.rule, action.verb),
        action.decision_id,
        cost,
        max_actions=limit.max_actions,
        max_hourly=limit.max_hourly,
        now=now,
        claim=Claim(case.case_id, case.key, case.version),
    )
    return Reason(code) if code is not None else None


def _nothing_more(limit: RuleLimit) -> Money | None:
    return Money(Decimal(0), limit.max_hourly[0].currency) if limit.max_hourly else None


def _call(
    action: Action,
    case: Case,
    world: RunContext,
    run_id: str,
    hand: ActionHandler,
    cleared: PrecheckResult,
    until: datetime,
) -> ActionResult:
    intents, clock = world.memory.intents, world.clock
    action = replace(action, before=cleared.before)
    if not intents.claim(action, run_id, clock.now(), case, cleared.unchanged):
        if intents.get(action.action_id) is not None:
            return ActionResult(action, None, clock.now(), Reason(ReasonCode.OUTCOME_UNKNOWN), "already claimed")
        return ActionResult(action, None, clock.now(), Reason(ReasonCode.CHANGED_SINCE_PLAN, {"what": "word"}))
    if not until - ACT_WITHIN <= clock.now() <= until:  # frozen since it looked, or a clock that was set
        intents.settle(action, Outcome.REFUSED, clock.now(), None, "not sent: too long since the last look", run_id)
        late = Reason(ReasonCode.CHANGED_SINCE_PLAN, {"what": "time"})
        return ActionResult(action, Outcome.REFUSED, clock.now(), late, "not sent")
    receipt: Receipt | None = None
    outcome, code, detail = Outcome.ACCEPTED, None, ""
    error: dict[str, FactValue] = {}
    try:
        receipt = hand.call(action)
    except OutcomeUnknownError as err:
        outcome, code, detail = Outcome.UNKNOWN, ReasonCode.OUTCOME_UNKNOWN, str(err)
    except ProviderError as err:
        outcome, code, detail = Outcome.REFUSED, _refused_for(err), str(err)
        error = {"call": err.operation, "error": err.code, **({"passes": 1} if isinstance(err, _PASSING) else {})}
    now = clock.now()
    intents.settle(action, outcome, now, receipt, detail, run_id)
    _LOG.info(
        "action called", extra={"verb": action.verb.value, "subject": str(action.subject), "outcome": outcome.value}
    )
    reason = Reason(code, {"detail": detail, **error, **_granted_by(action)}) if code is not None else None
    return ActionResult(action, outcome, now, reason, detail, receipt)


def _refused_for(err: ProviderError) -> ReasonCode:
    if isinstance(err, DeniedByOrganisationError):
        return ReasonCode.DENIED_BY_ORGANISATION
    return ReasonCode.PERMISSION_MISSING if isinstance(err, AccessDeniedError) else ReasonCode.REFUSED_BY_CLOUD


def _granted_by(action: Action) -> dict[str, FactValue]:
    """What `costguard permissions` prints the grant of a mend by."""
    return {} if action.mend is None else {"cloud": action.subject.cloud, "role": GRANTED_BY[action.mend.kind]}


def _settle_case(case: Case, action: Action, results: Sequence[ActionResult], world: RunContext, run_id: str) -> None:
    now = world.clock.now()
    called = [result for result in results if result.outcome is not None]
    if not called:
        spoken = [result.reason for result in results if result.reason and result.reason.code in _SPOKEN]
        if len(spoken) == len(results):
            _release(action, case.guard, world.memory)
            note(world.memory, case, unclaimed(case, spoken[0]), run_id, now)
        return  # else somebody wrote the intent: theirs to settle
    if any(result.outcome is not Outcome.REFUSED for result in called):
        note(world.memory, case, confirming(case), run_id, now)
        return
    _release(action, case.guard, world.memory)
    reason = called[0].reason or Reason(ReasonCode.REFUSED_BY_CLOUD)
    note(world.memory, case, refused(case, reason, now), run_id, now)


def _not_done(actions: Sequence[Action], reason: Reason, now: datetime) -> list[ActionResult]:
    return [ActionResult(action, None, now, reason) for action in actions]
