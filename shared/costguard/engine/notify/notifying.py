"""From a plan to people: news and warnings are written to the outbox, sent, and the grace of what arrived begins."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from costguard.cases import Case, CaseStatus, claimed, confirming, held, noticed
from costguard.domain.actions import Verb
from costguard.domain.reasons import Reason, ReasonCode
from costguard.engine.ledger.memory import Memory
from costguard.engine.ledger.outbox.notice import OutboxNotice
from costguard.engine.notify.delivery import deliver_due
from costguard.engine.notify.messages import statuses
from costguard.engine.notify.notices import Words, zone_of
from costguard.engine.run.case_transitions import moved
from costguard.engine.run.run_context import RunContext
from costguard.planning import Plan, PlanIndex, Transition
from costguard.report.words.sentences import Language

_LOG = logging.getLogger(__name__)
_TOGETHER = 100  # warnings that are claimed, then written; a claim without its notice waits for an hour
_WRITING = 3  # the share of the time for writing is a third: sending has its own, and so has noting what came of it


def tell(
    world: RunContext, plan: Plan, words: Words, longest_wait: timedelta, deadline: datetime | None = None
) -> tuple[OutboxNotice, ...]:
    """Put this run's notices into the outbox, deliver what is due, and start the grace of what arrived.

    A warning claims its case first, so that two runs never both send it. News is written whatever the time, since no
    later run would have it; of warnings the case opened first comes first, and one that was not written is due again in
    the next run. What was written and not sent by the deadline stays in the outbox. Returns what was delivered.
    """
    memory, clock, index = world.memory, world.clock, PlanIndex.of(plan)
    begun = clock.now()
    _mark(world, plan)
    memory.outbox.enqueue(*_replies(memory, words.news(world, index)))
    written = _warned(world, index, words, begun, deadline)
    spent = clock.now() - begun
    delivered = deliver_due(
        memory.outbox,
        world.notifier,
        clock,
        max_wait=longest_wait,
        until=None if deadline is None else deadline - spent,  # noting what arrived takes as long as writing it did
        language=Language(world.language),
    )
    _note_arrivals(world, plan.run_id, written)
    return delivered


def _warned(
    world: RunContext, index: PlanIndex, words: Words, begun: datetime, deadline: datetime | None
) -> dict[str, Case]:
    """Claim and write the warnings that are due; the claimed cases, by decision."""
    warnings = [action for action in index.plan.due if action.verb is Verb.WARN]
    due = sorted(warnings, key=lambda action: index.case_of(action).opened_at)
    written: dict[str, Case] = {}
    for at in range(0, len(due), _TOGETHER):
        if deadline is not None and world.clock.now() >= begun + (deadline - begun) / _WRITING:
            _LOG.warning("no time left to write more warnings; the next run does", extra={"left": len(due) - at})
            break
        together = due[at : at + _TOGETHER]
        now = world.clock.now()
        steps = [Transition(case, claimed(case, now)) for case in map(index.case_of, together)]
        claims = moved(world.memory, world.workers, steps, index.plan.run_id, now)
        ours = [(action, claims[action.case_id]) for action in together if action.case_id in claims]
        world.memory.outbox.enqueue(*(words.warning(world, index, action, claim) for action, claim in ours))
        written.update((claim.decision_id, claim) for _, claim in ours)
    return written


def _note_arrivals(world: RunContext, run_id: str, written: Mapping[str, Case]) -> None:
    """Start the grace of what arrived; what did not is looked for by the next run."""
    clock, known = world.clock, world.memory.outbox.get_many(written)
    steps: list[Transition] = []
    for decision, case in written.items():
        arrived = known.get(decision)
        if arrived is not None and arrived.proven and arrived.delivered_at is not None:
            after = noticed(case, arrived.delivered_at, arrived.announced)
        else:
            after = held(confirming(case), Reason(ReasonCode.NOTICE_UNDELIVERED))
        steps.append(Transition(case, after))
    moved(world.memory, world.workers, steps, run_id, clock.now())


def _replies(memory: Memory, news: Iterator[OutboxNotice]) -> Iterator[OutboxNotice]:
    """Each under the message that told of its case with what comes next, where that went to the same channel."""
    told = tuple(news)
    said = memory.outbox.said_of_many(notice.case_id for notice in told)
    for notice_ in told:
        earlier = said.get(notice_.case_id)
        in_place = earlier is not None and earlier.channel == notice_.channel
        yield replace(notice_, thread=earlier.receipt) if earlier is not None and in_place else notice_


def _mark(world: RunContext, plan: Plan) -> None:
    """Let the messages about the cases that moved say so."""
    memory, now = world.memory, plan.planned_at
    snoozed = any(step.after.status is CaseStatus.SNOOZED for step in plan.transitions)
    kept = {ref: (each.until, each.by) for ref, each in memory.snoozes.active(now).items()} if snoozed else {}
    moved_ = {case.case_id: status for case, status in statuses(plan, kept, zone_of(world), Language(world.language))}
    said = memory.outbox.said_of_many(moved_)
    memory.outbox.mark({earlier.notice_id: moved_[case_id] for case_id, earlier in said.items()})
