"""From a plan to the outbox, and on to people: one message for one owner and run, sent once, changed with its subject.

Delivery is at least once: a crash between sending and recording sends again.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from costguard.cases import Case, CaseStatus, claimed, confirming, held, noticed
from costguard.domain.actions import Action, Verb
from costguard.domain.errors import NoticeError, RateLimitedError, RejectedNoticeError
from costguard.domain.reasons import Reason, ReasonCode
from costguard.engine.ledger.memory import Memory
from costguard.engine.ledger.notices import CLAIM_LASTS, NoticeState, OutboxNotice
from costguard.engine.ledger.outbox import OutboxRepository
from costguard.engine.notify.letter import letter
from costguard.engine.notify.notices import Words, statuses, zone_of
from costguard.engine.run.run_context import RunContext
from costguard.engine.run.settlement import moved
from costguard.planning import Plan, PlanIndex, Transition
from costguard.policy.model.ownership import channel_of
from costguard.policy.model.policy import MESSAGES_PER_DAY
from costguard.ports import Clock, Notifier
from costguard.report.words.sentences import Language

_LOG = logging.getLogger(__name__)
_FIRST_RETRY, _LAST_RETRY = timedelta(minutes=1), timedelta(hours=1)
_SHORTEST_WAIT = timedelta(seconds=1)  # a channel that says "after 0 s" for ever must not be asked for ever
_MOST_AHEAD = 100  # notices claimed ahead of their message: as many as any channel shows in one
_MOST_EDITS = 50  # messages changed in one run: an edit is a courtesy, and channels ration them
EDITS_END = timedelta(days=7)  # a message this old is looked at no more


def deliver_due(
    outbox: OutboxRepository,
    notifier: Notifier,
    clock: Clock,
    *,
    max_wait: timedelta,
    until: datetime | None = None,
    language: Language = Language.EN,
    most: int = MESSAGES_PER_DAY,
) -> tuple[OutboxNotice, ...]:
    """Send what is due, once each, and return what was delivered; then change the messages whose subjects have.

    The oldest goes first, and with it what may travel in its message: the wait that is longest in coming begins first.
    A rate limit is waited out and the message sent, as long as all waits together stay within `max_wait`; beyond that,
    it and what follows on its channel are left for a later run. So is everything that was not begun by `until`.

    An address gets at most `most` messages about cases in 24 hours: what would take more goes in digests, and what
    does not fit then waits. News of what was done never waits.

    Raises:
        LedgerError: what was sent last may not be recorded and may be sent again.
    """
    post = _Post(outbox, notifier, clock, language, until, left=max_wait, most=most)
    allotted = list(post.allotted(_batches(outbox.due(clock.now()))))  # by the room there is before any is sent
    delivered = [notice for batch, in_digest in allotted for notice in post.send(batch, in_digest=in_digest)]
    post.edit()
    if post.is_over() and (waiting := outbox.waiting()):
        _LOG.warning("no time left to send more notices; a later run goes on", extra={"waiting": waiting})
    return tuple(delivered)


def _batches(due: Sequence[OutboxNotice]) -> list[list[OutboxNotice]]:
    """What may travel together, in the order of the oldest of each: one run's for one owner, channel and thread."""
    found: dict[tuple[str, ...], list[OutboxNotice]] = {}
    for notice in due:
        together = (notice.run_id, notice.channel, notice.owner, notice.thread)
        found.setdefault(together if notice.run_id else (notice.notice_id,), []).append(notice)
    return list(found.values())


_MAY_WAIT = frozenset({"warned", "warned_only", "mend_comes"})  # what is still to be done; never that it was


def _is_warning(batch: Sequence[OutboxNotice]) -> bool:
    """Whether nothing is lost if it waits: what was not announced is not done, and is written anew with other dates."""
    return all(notice.case_id and notice.kind in _MAY_WAIT for notice in batch)


@dataclass(slots=True)
class _Post:
    """One round of deliveries: how long it may still wait, and the channels it has given up on."""

    outbox: OutboxRepository
    notifier: Notifier
    clock: Clock
    language: Language
    until: datetime | None
    left: timedelta
    most: int
    limited: set[str] = field(default_factory=set)
    room: dict[str, int] = field(default_factory=dict)

    def is_over(self, wait: timedelta = timedelta(0)) -> bool:
        """Whether there is no time for another message, or will be none after this wait."""
        return self.until is not None and self.clock.now() + wait >= self.until

    def allotted(self, batches: Sequence[list[OutboxNotice]]) -> Iterator[tuple[list[OutboxNotice], bool]]:
        """Each batch, and whether it goes in digests: where an address would get more messages than it may.

        Where even a digest for each owner would be too many, what its owners have to be warned of goes in one.
        """
        runs: dict[str, list[list[OutboxNotice]]] = {}
        for batch in batches:
            if batch[0].case_id:
                runs.setdefault(batch[0].channel, []).append(batch)
        merged: set[str] = set()
        for batch in batches:
            channel, of_channel = batch[0].channel, runs.get(batch[0].channel, [])
            if not batch[0].case_id or self._fit(of_channel):
                yield batch, False
            elif self._messages(of_channel, in_digest=True) <= self._room_today(channel) or not _is_warning(batch):
                yield batch, True
            elif channel not in merged:
                merged.add(channel)
                yield [notice for each in of_channel if _is_warning(each) for notice in each], True

    def _fit(self, batches: Sequence[Sequence[OutboxNotice]]) -> bool:
        room = self._room_today(batches[0][0].channel)
        return sum(map(len, batches)) <= room or self._messages(batches) <= room

    def _messages(self, batches: Sequence[Sequence[OutboxNotice]], *, in_digest: bool = False) -> int:
        return sum(-(-len(batch) // self._room(batch, in_digest=in_digest)) for batch in batches)

    def _room_today(self, channel: str) -> int:
        if channel not in self.room:
            self.room[channel] = self.most - self.outbox.sent_lately(channel, self.clock.now())
        return self.room[channel]

    def _must_wait(self, notices: Sequence[OutboxNotice]) -> bool:
        """Whether its address has had its messages of today: a warning waits, and with it whatever it announces."""
        return _is_warning(notices) and self._room_today(notices[0].channel) <= 0

    def send(self, batch: Sequence[OutboxNotice], *, in_digest: bool = False) -> Iterator[OutboxNotice]:
        """Send what of `batch` is nobody else's, in as few messages as the channel can hold."""
        rest, mine = deque(batch), list[OutboxNotice]()
        while batch[0].channel not in self.limited and not self.is_over() and not self._must_wait(batch):
            mine = self._still_mine(mine)
            ahead = [rest.popleft() for _ in range(min(len(rest), _MOST_AHEAD - len(mine)))]
            mine += self._in_time(self.outbox.claim((notice.notice_id for notice in ahead), self.clock.now()))
            if mine:
                together = mine[: self._room(mine, in_digest=in_digest)]
                mine = mine[len(together) :]  # what is claimed and not sent is due again when the claim ends
                for notice in self._deliver(together, in_digest=in_digest):
                    if notice.state is NoticeState.DELIVERED:
                        yield notice
            elif not rest:
                return

    def _still_mine(self, claimed: Sequence[OutboxNotice]) -> list[OutboxNotice]:
        """Without what came to name dates that are past; a claim that may end before its turn comes is renewed."""
        now = self.clock.now()
        mine = self._in_time(claimed)
        if any(notice.claimed_until is None or notice.claimed_until - now < CLAIM_LASTS / 2 for notice in mine):
            return list(self.outbox.renew(mine, now))
        return mine

    def _in_time(self, claimed: Sequence[OutboxNotice]) -> list[OutboxNotice]:
        now = self.clock.now()  # the clock after the claim: a frozen process may have slept
        late = [notice for notice in claimed if notice.is_late(now)]
        if late:
            self.outbox.drop(late, now)
        return [notice for notice in claimed if not notice.is_late(now)]

    def _room(self, notices: Sequence[OutboxNotice], *, in_digest: bool) -> int:
        if len(notices) == 1:
            return 1
        try:
            return max(1, self.notifier.capacity(letter(notices, self.language, in_digest=in_digest)))
        except NoticeError:
            return 1  # the channel has a word to say against each of them, when it is sent

    def _deliver(self, notices: Sequence[OutboxNotice], *, in_digest: bool) -> Sequence[OutboxNotice]:
        while notices and not self._must_wait(notices):
            try:
                delivery = self.notifier.send(letter(notices, self.language, in_digest=in_digest))
            except RateLimitedError as err:
                wait = max(err.retry_after, _SHORTEST_WAIT)
                if wait > self.left or self.is_over(wait):
                    self.limited.add(notices[0].channel)
                    self.outbox.failed(notices, err, self.clock.now(), wait)
                    return ()
                self.left -= wait
                self.clock.sleep(wait.total_seconds())
                notices = self.outbox.renew(notices, self.clock.now())
            except RejectedNoticeError as err:
                if len(notices) > 1:  # one of them may be at fault: each by itself
                    return [sent for notice in notices for sent in self._deliver([notice], in_digest=in_digest)]
                self.outbox.rejected(notices[0], err, self.clock.now())
                return ()
            except NoticeError as err:
                wait = _back_off(max(notice.attempts for notice in notices) + 1)
                self.outbox.failed(notices, err, self.clock.now(), wait)
                return ()
            else:
                self._count(notices)
                return self.outbox.delivered(notices, delivery, self.clock.now(), in_digest=in_digest)
        return ()

    def _count(self, notices: Sequence[OutboxNotice]) -> None:
        channel = notices[0].channel
        if notices[0].case_id:
            self.room[channel] = self._room_today(channel) - 1
            self.outbox.note_sent(channel, self.clock.now())

    def edit(self) -> None:
        """Show in earlier messages what became of their subjects."""
        messages: dict[tuple[str, str], list[OutboxNotice]] = {}
        for notice in self.outbox.changed():
            messages.setdefault((notice.channel, notice.receipt), []).append(notice)
        for (channel, receipt), changed in list(messages.items())[:_MOST_EDITS]:
            if channel not in self.limited and not self.is_over() and self._edited(channel, receipt, changed[0]):
                self.outbox.shown(notice.notice_id for notice in changed)

    def _edited(self, channel: str, receipt: str, changed: OutboxNotice) -> bool:
        """Whether nothing is left to be done about this message."""
        if changed.delivered_at is None or self.clock.now() - changed.delivered_at > EDITS_END:
            return True
        found = self.outbox.get_many(changed.beside or (changed.notice_id,))
        try:
            shown = letter(tuple(found.values()), self.language, in_digest=changed.in_digest)
            self.notifier.edit(receipt, shown)
        except RejectedNoticeError as err:
            _LOG.warning("message cannot be changed", extra={"notice": changed.notice_id, "error": str(err)})
        except NoticeError as err:
            if isinstance(err, RateLimitedError):
                self.limited.add(channel)
            _LOG.info("message not changed yet", extra={"notice": changed.notice_id, "error": str(err)})
            return False
        return True


def _back_off(attempts: int) -> timedelta:
    """1, 2, 4 … minutes, never over an hour."""
    doublings = min(attempts - 1, 6)  # 2^6 minutes is over an hour
    return min(_LAST_RETRY, _FIRST_RETRY * (1 << doublings))


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
        most=world.policy.messages_per_day,
    )
    _note_arrivals(world, plan.run_id, written)
    return delivered


def _warned(
    world: RunContext, index: PlanIndex, words: Words, begun: datetime, deadline: datetime | None
) -> dict[str, Case]:
    """Claim and write the warnings that are due; the claimed cases, by decision."""
    warnings = [action for action in index.plan.due if action.verb is Verb.WARN]
    due = sorted(_with_room(world, index, warnings), key=lambda action: index.case_of(action).opened_at)
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


def _with_room(world: RunContext, index: PlanIndex, warnings: Sequence[Action]) -> list[Action]:
    """Those whose address may get another message today; a later run writes the others, with dates of its own."""
    now, policy = world.clock.now(), world.policy
    addressed = [(channel_of(index.case_of(action).owner, policy), action) for action in warnings]
    most, outbox = policy.messages_per_day, world.memory.outbox
    full = {channel for channel in {to for to, _ in addressed} if outbox.sent_lately(channel, now) >= most}
    kept = [
        action
        for channel, action in addressed
        if channel not in full or index.case_of(action).climbed_at(Verb.STOP) is not None
    ]
    if len(kept) < len(warnings):
        left = len(warnings) - len(kept)
        _LOG.warning("addresses have had their messages of today; warnings wait", extra={"left": left})
    return kept


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
    said = memory.outbox.said_of_many(notice.case_id for notice in told if notice.case_id)
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


DIGEST = "digest"
LONGEST_BETWEEN = timedelta(days=8)  # a week, as functions/digest/function.yaml has it, and a day to notice


def tell_of_overdue_digest(memory: Memory, now: datetime) -> None:
    """Write the line that alarms look for (infra/*/alarms.tf), in each run until there is a digest again.

    Of one that never ran nothing is known: many ledgers have none. Whether it is deployed the alarm knows.

    Raises:
        LedgerError: memory failed.
    """
    began = memory.runs.began_last(DIGEST)
    if began is not None and now - began > LONGEST_BETWEEN:
        _LOG.warning("the weekly digest is overdue", extra={"began_last": began.isoformat(timespec="seconds")})
