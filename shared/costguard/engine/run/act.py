"""Act: for each due action, claim, reserve, re-read, write the intent, call once, write the outcome.

Every step before the call can still say no, and then nothing has happened. After the call only
looking, in a later run, says what came of it.
"""

from __future__ import annotations

import logging
import threading
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from functools import partial
from itertools import groupby

from costguard.cases import Case, claimed, confirming, refused, sent_back, unclaimed
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
from costguard.domain.remediations import GRANTED_BY
from costguard.engine.ledger.caps import Claim
from costguard.engine.ledger.codec import until_uncontested
from costguard.engine.ledger.intents import Intent
from costguard.engine.ledger.memory import Memory, before_a_call, before_a_claim, note
from costguard.engine.ledger.snoozes import SWITCH
from costguard.engine.run.run_context import ActionHandler, PrecheckResult, RunContext
from costguard.guards.rules.common import Bars
from costguard.planning import Plan, PlanIndex, RuleLimit, cap_of
from costguard.planning.last_look import not_its_step
from costguard.policy.model.policy import Policy
from costguard.policy.model.terms import rule_from_terms
from costguard.ports import Put

_LOG = logging.getLogger(__name__)


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
    first, plan, planned = actions[0], index.plan, index.cases.get(actions[0].case_id)
    cap = cap_of(first.rule, first.verb)
    try:
        memory = world.memory.read_together(
            before_a_claim(plan.guard, planned, cap) if planned is not None else [SWITCH]
        )
    except LedgerError:
        return _not_done(actions, Reason(ReasonCode.KILL_SWITCH, {"by": "unreadable"}), now)
    paused = pause_reason(memory, host_paused=world.host_paused)
    if paused is not None:
        return _not_done(actions, paused, now)
    known = memory.cases.get(planned.key) if planned is not None else None
    if known is None or known != planned:  # a plan may say anything of a case: only the ledger's own is moved
        return _not_done(actions, Reason(ReasonCode.CHANGED_SINCE_PLAN, {"what": "case"}), now)
    misplaced = not_its_step(known, actions, drawn=drawn)
    if misplaced is not None:
        return _not_done(actions, misplaced, now)
    case, full = _claim(known, first, plan, memory, world, hand, now)
    if full is not None:
        return _left(known, claimed(known, now), actions, full, world, index)
    if case is None:
        return _not_done(actions, Reason(ReasonCode.CHANGED_SINCE_PLAN, {"what": "case"}), now)
    policy = _policy_now(world)
    memory = world.memory.read_together(before_a_call(case))
    found = policy if isinstance(policy, Reason) else hand.last_look(case, first, policy, now, memory)
    if isinstance(found, PrecheckResult) and not all(map(found.clears, actions)):
        found = Reason(ReasonCode.CHANGED_SINCE_PLAN, {"what": "step"})
    if isinstance(found, Reason):
        _release(first, plan.guard, world.memory)
        return _left(case, case, actions, found, world, index)
    until, alone = now + ACT_WITHIN, len(actions) == 1
    results = [_call(one, case, world, memory, plan.run_id, hand, found, until, alone=alone) for one in actions]
    _settle_case(case, first, results, world, plan.run_id)
    return results


def _claim(
    known: Case, action: Action, plan: Plan, memory: Memory, world: RunContext, hand: ActionHandler, now: datetime
) -> tuple[Case | None, Reason | None]:
    """The case as claimed, with its share of the cap, both or neither; None where it was moved, or why the cap is full.

    Where somebody else reserved at this moment the cap is read anew, and so is what is left of it.
    """
    wanted = claimed(known, now)

    def attempt() -> tuple[Case | None, Reason | None]:
        taking = _reserve(action, plan, known, memory, world, hand, now)
        if isinstance(taking, Reason):
            return None, taking
        try:
            (case,) = world.memory.cases.move((known, wanted), run_id=plan.run_id, now=now, beside=taking)
        except VersionConflictError:
            if memory.cases.get(known.key) != known:
                return None, None
            raise
        return case, None

    return until_uncontested(attempt, f"the cap of {action.rule}")


def _left(
    known: Case, case: Case, actions: Sequence[Action], reason: Reason, world: RunContext, index: PlanIndex
) -> list[ActionResult]:
    """Nothing was called: the case waits again, and says why. `known` is as the ledger has it, `case` as claimed."""
    now = world.clock.now()
    stoppable = case.subject not in index.unstoppable
    after = _waiting_again(case, actions[0].verb, reason, now, stoppable=stoppable)
    note(world.memory, known, after, index.plan.run_id, now)
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


def _policy_now(world: RunContext) -> Policy | Reason:
    try:
        return world.policy_now()
    except CostguardError as err:
        return Reason(ReasonCode.POLICY_STALE, {"cause": str(err)})


def _release(action: Action, guard: str, memory: Memory) -> None:
    if action.verb in CAPPED:
        memory.caps.release(guard, cap_of(action.rule, action.verb), action.decision_id)


def _reserve(
    action: Action, plan: Plan, known: Case, memory: Memory, world: RunContext, hand: ActionHandler, now: datetime
) -> Reason | tuple[Put, ...]:
    """What takes it from the caps of the policy in force; of the plan counts only how many subjects were seen."""
    if action.verb not in CAPPED:
        return ()
    seen = next((limit.seen for limit in plan.limits if limit.rule == action.rule), 0)
    limit = hand.limit(action, world.policy, seen)
    if limit is None:
        return Reason(ReasonCode.RULE_CHANGED, {"rule": action.rule})
    cost = action.saving.stops_billing if action.saving is not None else None
    if action.verb is not Verb.STOP:
        cost = _nothing_more(limit)  # what it cost an hour was counted when it stopped; no mend stops anything
    taking = memory.caps.taking(
        plan.guard,
        cap_of(action.rule, action.verb),
        action.decision_id,
        cost,
        max_actions=limit.max_actions,
        max_hourly=limit.max_hourly,
        now=now,
        claim=Claim(known.case_id, known.key, known.version + 1),
    )
    return Reason(taking) if isinstance(taking, ReasonCode) else taking


def _nothing_more(limit: RuleLimit) -> Money | None:
    return Money(Decimal(0), limit.max_hourly[0].currency) if limit.max_hourly else None


def _call(
    action: Action,
    case: Case,
    world: RunContext,
    memory: Memory,
    run_id: str,
    hand: ActionHandler,
    cleared: PrecheckResult,
    until: datetime,
    *,
    alone: bool,
) -> ActionResult:
    intents, clock = world.memory.intents, world.clock
    action, claimed_at = replace(action, before=cleared.before), clock.now()
    if not intents.claim(action, run_id, claimed_at, case, cleared.unchanged, memory.store):
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
    if alone and outcome is not Outcome.REFUSED:
        sent = Intent(action, run_id, claimed_at, outcome, receipt, detail, now)
        _to_be_confirmed(world.memory, case, sent, outcome, now)
    else:
        intents.settle(action, outcome, now, receipt, detail, run_id)
    _LOG.info(
        "action called", extra={"verb": action.verb.value, "subject": str(action.subject), "outcome": outcome.value}
    )
    reason = Reason(code, {"detail": detail, **error, **_granted_by(action)}) if code is not None else None
    return ActionResult(action, outcome, now, reason, detail, receipt)


def _to_be_confirmed(memory: Memory, case: Case, sent: Intent, outcome: Outcome, now: datetime) -> None:
    """Write the outcome of a case's one action, and that the case is to be confirmed; one by one where they moved."""
    put, entry = memory.intents.answer(sent, now)
    try:
        memory.cases.move((case, confirming(case)), run_id=sent.run_id, now=now, beside=[put], told=[entry])
    except VersionConflictError:
        memory.intents.settle(sent.action, outcome, now, sent.receipt, sent.detail, sent.run_id)
        note(memory, case, confirming(case), sent.run_id, now)


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
        if len(results) > 1:  # of one alone that is written with its outcome
            note(world.memory, case, confirming(case), run_id, now)
        return
    _release(action, case.guard, world.memory)
    reason = called[0].reason or Reason(ReasonCode.REFUSED_BY_CLOUD)
    note(world.memory, case, refused(case, reason, now), run_id, now)


def _not_done(actions: Sequence[Action], reason: Reason, now: datetime) -> list[ActionResult]:
    return [ActionResult(action, None, now, reason) for action in actions]
