"""A notice as the outbox keeps it, and what may become of it. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum

from costguard.cases import Announced
from costguard.domain.errors import NoticeError
from costguard.domain.money import Money
from costguard.ports import Choice, Delivery

CLAIM_LASTS = timedelta(minutes=5)


class NoticeState(str, Enum):
    """`DEAD` will never be delivered as it is; people are shown it. `DROPPED` came too late to be sent."""

    PENDING = "pending"
    DELIVERED = "delivered"
    DEAD = "dead"
    DROPPED = "dropped"


@dataclass(frozen=True, slots=True)
class OutboxNotice:
    """One message for one decision and what became of it.

    From `channel` to `thread` it is a `Message`, `picture` and `choices` are its one part. Those of one `run_id`,
    channel, owner and thread may travel in one message: `beside` are the ids of all in it, if several. `kind` is what
    it tells, `hourly` what its subject costs, `status` what became of that since. `proven` is True only where the
    channel proves delivery: grace is counted from `delivered_at` of such a notice, never of others. After `holds_until`
    it names dates that may be past and is dropped; None means that it is true at any time. `announced` are the steps to
    come that it names, which come no earlier.
    """

    notice_id: str
    decision_id: str
    case_key: str
    channel: str
    title: str
    text: str
    created_at: datetime
    fields: tuple[tuple[str, str], ...] = ()
    lines: tuple[str, ...] = ()
    thread: str = ""
    holds_until: datetime | None = None
    state: NoticeState = NoticeState.PENDING
    attempts: int = 0
    next_attempt_at: datetime | None = None
    claimed_until: datetime | None = None
    receipt: str = ""
    delivered_at: datetime | None = None
    proven: bool = False
    last_error: str = ""
    run_id: str = ""
    owner: str = ""
    case_id: str = ""
    kind: str = ""
    picture: str = ""
    choices: tuple[Choice, ...] = ()
    hourly: Money | None = None
    beside: tuple[str, ...] = ()
    status: str = ""
    announced: tuple[Announced, ...] = ()

    def is_late(self, now: datetime) -> bool:
        """Whether it was not delivered in time, and never will be."""
        expired = self.holds_until is not None and now >= self.holds_until
        return self.state is NoticeState.DROPPED or (self.state is NoticeState.PENDING and expired)

    def is_due(self, now: datetime) -> bool:
        """Whether it may be sent now, and nobody has claimed it."""
        return (
            self.state is NoticeState.PENDING
            and (self.next_attempt_at is None or self.next_attempt_at <= now)
            and (self.claimed_until is None or self.claimed_until <= now)
        )

    def is_claimed_as(self, claimed: OutboxNotice) -> bool:
        """Whether it still is as somebody claimed it."""
        return self.state is NoticeState.PENDING and self.claimed_until == claimed.claimed_until


def claimed(notice: OutboxNotice, now: datetime) -> OutboxNotice:
    """Taken by one sender for five minutes."""
    return replace(notice, claimed_until=now + CLAIM_LASTS)


def delivered(notice: OutboxNotice, delivery: Delivery, now: datetime, beside: tuple[str, ...]) -> OutboxNotice:
    """Taken by its channel, in one message with those `beside` it."""
    return replace(
        notice,
        state=NoticeState.DELIVERED,
        attempts=notice.attempts + 1,
        next_attempt_at=None,
        claimed_until=None,
        receipt=delivery.receipt,
        delivered_at=now,
        proven=delivery.proves_delivery,
        last_error="",
        beside=beside,
    )


def rejected(notice: OutboxNotice, err: NoticeError) -> OutboxNotice:
    """Refused by its channel for good."""
    return replace(
        notice, state=NoticeState.DEAD, attempts=notice.attempts + 1, claimed_until=None, last_error=str(err)
    )


def failed(notice: OutboxNotice, err: NoticeError, again_at: datetime) -> OutboxNotice:
    """Not arrived this time."""
    return replace(
        notice, attempts=notice.attempts + 1, claimed_until=None, next_attempt_at=again_at, last_error=str(err)
    )


def dropped(notice: OutboxNotice) -> OutboxNotice:
    """Given up, because it came too late."""
    return replace(notice, state=NoticeState.DROPPED, next_attempt_at=None, claimed_until=None)


def revived(notice: OutboxNotice, now: datetime) -> OutboxNotice:
    """A dead one, to be sent again."""
    return replace(notice, state=NoticeState.PENDING, next_attempt_at=now, claimed_until=None)
