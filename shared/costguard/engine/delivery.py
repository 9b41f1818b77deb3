"""From the outbox to people: one message for one owner and run, sent once, and changed when its subject has.

Delivery is at least once: a crash between sending and recording sends again.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from costguard.domain.errors import NoticeError, RateLimitedError, RejectedNoticeError
from costguard.engine.letters import letter
from costguard.engine.repositories.outbox import Notice, NoticeState, OutboxRepository
from costguard.ports import Clock, Delivery, Notifier
from costguard.report.words import Language

_LOG = logging.getLogger(__name__)
_FIRST_RETRY, _LAST_RETRY = timedelta(minutes=1), timedelta(hours=1)
_SHORTEST_WAIT = timedelta(seconds=1)  # a channel that says "after 0 s" for ever must not be asked for ever
_MOST_EDITS = 50  # messages changed in one run: an edit is a courtesy, and channels ration them
EDITS_END = timedelta(days=7)  # a message this old is looked at no more


def deliver_due(
    outbox: OutboxRepository,
    notifier: Notifier,
    clock: Clock,
    *,
    max_wait: timedelta,
    language: Language = Language.EN,
) -> tuple[Notice, ...]:
    """Send what is due, once each, and return what was delivered; then change the messages whose subjects have.

    A rate limit is waited out and the message sent, as long as all waits together stay within
    `max_wait`; beyond that, it and what follows on its channel are left for a later run.

    Raises:
        LedgerError: what was sent last may not be recorded and may be sent again.
    """
    post = _Post(outbox, notifier, clock, language, left=max_wait)
    delivered = [notice for batch in _batches(outbox.due(clock.now())) for notice in post.send(batch)]
    post.edit()
    return tuple(delivered)


def _batches(due: Sequence[Notice]) -> list[list[Notice]]:
    """What may travel together, in the order of the oldest of each: one run's for one owner, channel and thread."""
    found: dict[tuple[str, ...], list[Notice]] = {}
    for notice in due:
        together = (notice.run_id, notice.channel, notice.owner, notice.thread)
        found.setdefault(together if notice.run_id else (notice.notice_id,), []).append(notice)
    return list(found.values())


@dataclass(slots=True)
class _Post:
    """One round of deliveries: how long it may still wait, and the channels it has given up on."""

    outbox: OutboxRepository
    notifier: Notifier
    clock: Clock
    language: Language
    left: timedelta
    limited: set[str] = field(default_factory=set)

    def send(self, batch: Sequence[Notice]) -> Iterator[Notice]:
        """Send what of `batch` is nobody else's, in as few messages as the channel can hold."""
        if batch[0].channel in self.limited:
            return
        waiting = list(self._claimed(batch))
        while waiting:
            if waiting[0].channel in self.limited:
                return  # what was claimed is due again when the claim ends
            together = waiting[: self._room(waiting)]
            waiting = waiting[len(together) :]
            for notice in self._deliver(together):
                if notice.state is NoticeState.DELIVERED:
                    yield notice

    def _claimed(self, batch: Sequence[Notice]) -> Iterator[Notice]:
        for waiting in batch:
            claimed = self.outbox.claim(waiting.notice_id, self.clock.now())
            if claimed is None:
                continue
            if claimed.is_late(self.clock.now()):  # by the clock after the claim: a frozen process may have slept
                self.outbox.drop(claimed, self.clock.now())
                continue
            yield claimed

    def _room(self, notices: Sequence[Notice]) -> int:
        if len(notices) == 1:
            return 1
        try:
            return max(1, self.notifier.capacity(letter(notices, self.language)))
        except NoticeError:
            return 1  # the channel has a word to say against each of them, when it is sent

    def _deliver(self, notices: Sequence[Notice]) -> Sequence[Notice]:
        while notices:
            try:
                delivery = self.notifier.send(letter(notices, self.language))
            except RateLimitedError as err:
                wait = max(err.retry_after, _SHORTEST_WAIT)
                if wait > self.left:
                    self.limited.add(notices[0].channel)
                    return self._failed(notices, err, wait)
                self.left -= wait
                self.clock.sleep(wait.total_seconds())
                renewed = (self.outbox.renew(notice, self.clock.now()) for notice in notices)
                notices = [notice for notice in renewed if notice is not None]
            except RejectedNoticeError as err:
                if len(notices) > 1:  # one of them may be at fault: each by itself
                    return [sent for notice in notices for sent in self._deliver([notice])]
                return [self.outbox.rejected(notices[0], err, self.clock.now())]
            except NoticeError as err:
                return self._failed(notices, err, _back_off(max(notice.attempts for notice in notices) + 1))
            else:
                return self._delivered(notices, delivery, self.clock.now())
        return ()

    def _delivered(self, notices: Sequence[Notice], delivery: Delivery, at: datetime) -> Sequence[Notice]:
        ids = tuple(notice.notice_id for notice in notices) if len(notices) > 1 else ()
        return [self.outbox.delivered(notice, delivery, at, ids) for notice in notices]

    def _failed(self, notices: Sequence[Notice], err: NoticeError, wait: timedelta) -> Sequence[Notice]:
        return [self.outbox.failed(notice, err, self.clock.now(), wait) for notice in notices]

    def edit(self) -> None:
        """Show in earlier messages what became of their subjects."""
        messages: dict[tuple[str, str], list[Notice]] = {}
        for notice in self.outbox.changed():
            messages.setdefault((notice.channel, notice.receipt), []).append(notice)
        for (channel, receipt), changed in list(messages.items())[:_MOST_EDITS]:
            if channel not in self.limited and self._edited(channel, receipt, changed[0]):
                self.outbox.shown(notice.notice_id for notice in changed)

    def _edited(self, channel: str, receipt: str, changed: Notice) -> bool:
        """Whether nothing is left to be done about this message."""
        if changed.delivered_at is None or self.clock.now() - changed.delivered_at > EDITS_END:
            return True
        found = (self.outbox.get(notice_id) for notice_id in changed.beside or (changed.notice_id,))
        try:
            self.notifier.edit(receipt, letter([notice for notice in found if notice is not None], self.language))
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
