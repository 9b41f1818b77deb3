"""What a run writes of cases before and after it acts: its transitions, what was seen done, reservations given back."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial

from costguard.cases import Case, CaseStatus, Phase
from costguard.domain.actions import Verb
from costguard.domain.errors import VersionConflictError
from costguard.domain.reasons import ReasonCode
from costguard.domain.refs import Shard, Subject
from costguard.engine.ledger.caps import Reservation
from costguard.engine.ledger.cases import MOST_MOVES
from costguard.engine.ledger.intents import Intent
from costguard.engine.ledger.memory import Memory
from costguard.engine.savings import keep_ledger
from costguard.planning import Plan, Transition, cap_of
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
    for some in together(steps):
        pairs = [(step.before, step.after) for step in some if step.before is not None]
        with suppress(VersionConflictError):  # another run moved one of them: each is moved by itself
            if len(some) > 1:
                written.update((case.case_id, case) for case in memory.cases.move(*pairs, run_id=run_id, now=now))
                continue
        for step in some:
            case_id = step.after.case_id
            try:
                written[case_id] = memory.cases.commit(step.before, step.after, run_id=run_id, now=now)
            except VersionConflictError:
                _LOG.info("another run moved this case first", extra={"case": case_id})
    return written


def together(steps: Sequence[Transition]) -> Iterator[Sequence[Transition]]:
    """The steps in order, those in one that one transaction takes: each of another case that was open and stays so."""
    some: dict[str, Transition] = {}
    for step in steps:
        alone = step.before is None or CaseStatus.CLOSED in {step.before.status, step.after.status}
        if some and (alone or step.after.key in some or len(some) == MOST_MOVES):
            yield tuple(some.values())
            some = {}
        if alone:
            yield (step,)
        else:
            some[step.after.key] = step
    if some:
        yield tuple(some.values())


_FULL = frozenset({ReasonCode.CAP_ACTIONS, ReasonCode.CAP_SHARE, ReasonCode.CAP_MONEY})


def settle_observed(memory: Memory, plan: Plan, billed_while_stopped: Collection[Subject] = ()) -> None:
    """Write down what was seen to have happened; safe to repeat.

    A stop just seen complete starts a saving, which is nothing for a subject in `billed_while_stopped`;
    a machine that runs again, is gone or was replaced ends it.
    """
    done = [step for step in plan.transitions if _seen_done(step)]
    sent = _sent_for(memory, done)
    unsettled = [intent for intents in sent.values() for intent in intents if not intent.settled]
    settled = {one.action.action_id: one for one in memory.intents.settle_seen(unsettled, plan.planned_at, plan.run_id)}
    known = {case: [settled.get(one.action.action_id, one) for one in intents] for case, intents in sent.items()}
    keep_ledger(memory, plan, billed_while_stopped, known)


def _sent_for(memory: Memory, done: Sequence[Transition]) -> dict[str, tuple[Intent, ...]]:
    """By case id what was sent for what is done, as far as it may not be settled."""
    claims = [step.before for step in done if step.before is not None and _is_the_first_try(step.before)]
    sent = memory.intents.of_decisions(claims)
    for step in done:
        if not sent.get(step.after.case_id):
            sent[step.after.case_id] = memory.intents.for_case(step.after.case_id)
    return sent


def _is_the_first_try(case: Case) -> bool:
    """Whether no decision before this claim is left without its outcome: each rung was climbed by the first."""
    return case.phase is not Phase.WAITING and case.attempt == 1 + len(case.climbed)


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
