"""One message for one owner and run; every decision in it keeps its own proof, and later shows what became of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from tests.builders import usd

from costguard.adapters.ledgers import open_ledger
from costguard.domain.answers import AnswerKind, AnswerRef
from costguard.domain.errors import NoticeError, RateLimitedError, RejectedNoticeError
from costguard.engine.ledger.notices import NoticeState, OutboxNotice
from costguard.engine.ledger.outbox import OutboxRepository
from costguard.engine.notify.delivery import EDITS_END, deliver_due
from costguard.ports import Choice, Delivery, Message

NOW = datetime(2026, 3, 1, 12, tzinfo=timezone.utc)
NO_WAIT = timedelta(0)
KEEP = Choice(AnswerKind.KEEP, "Keep 24 h", AnswerRef("c1", "d1"), timedelta(hours=24))


class Clock:
    def __init__(self) -> None:
        self.moment = NOW

    def now(self) -> datetime:
        return self.moment

    def sleep(self, seconds: float) -> None:
        self.moment += timedelta(seconds=seconds)


class Channel:
    """Takes what it is given, in messages of at most `room` parts; refuses each title in `refuses`."""

    def __init__(self, room: int = 50) -> None:
        self.room = room
        self.took: list[Message] = []
        self.edits: list[tuple[str, Message]] = []
        self.refuses: set[str] = set()
        self.trouble: list[NoticeError] = []

    def send(self, message: Message) -> Delivery:
        if self.trouble:
            raise self.trouble.pop(0)
        if self.refuses & {message.title, *(part.title for part in message.parts)}:
            raise RejectedNoticeError("invalid_blocks")
        self.took.append(message)
        return Delivery(f"ts-{len(self.took)}")

    def edit(self, receipt: str, message: Message) -> bool:
        if self.trouble:
            raise self.trouble.pop(0)
        self.edits.append((receipt, message))
        return True

    def capacity(self, message: Message) -> int:
        return min(self.room, len(message.parts))


@pytest.fixture
def outbox() -> Iterator[OutboxRepository]:
    ledger = open_ledger("memory:")
    yield OutboxRepository(ledger)
    ledger.close()


def notice(name: str, **changes: Any) -> OutboxNotice:
    fields = (("What", name), ("Owner", "nlp"))
    plain = OutboxNotice(
        notice_id=f"n-{name}",
        decision_id=f"d-{name}",
        case_key=f"idle_gpu/idle/{name}",
        channel="slack:#gpu",
        title=f"{name} stops",
        text=f"{name} stops\nOwner: nlp",
        created_at=NOW,
        fields=fields,
        lines=("Nothing happens before.",),
        run_id="run-1",
        owner="nlp",
        case_id=f"case-{name}",
        kind="warned",
        picture="▁▁▂",
        choices=(KEEP,),
        hourly=usd("2.5"),
    )
    return replace(plain, **changes)


def delivered(outbox: OutboxRepository, channel: Channel, *notices: OutboxNotice, clock: Clock | None = None) -> None:
    for each in notices:
        outbox.enqueue(each)
    deliver_due(outbox, channel, clock or Clock(), max_wait=NO_WAIT)


def of(outbox: OutboxRepository, name: str) -> OutboxNotice:
    found = outbox.get(f"n-{name}")
    assert found is not None
    return found


def test_what_one_run_has_to_say_to_one_owner_is_one_message(outbox: OutboxRepository) -> None:
    channel = Channel()

    delivered(outbox, channel, notice("a"), notice("b"), notice("c"))

    (message,) = channel.took
    assert [part.title for part in message.parts] == ["a stops", "b stops", "c stops"]
    assert [part.decision_id for part in message.parts] == ["d-a", "d-b", "d-c"]
    assert all(part.picture == "▁▁▂" and part.choices == (KEEP,) for part in message.parts)


def test_each_decision_has_its_own_proof_of_delivery(outbox: OutboxRepository) -> None:
    delivered(outbox, Channel(), notice("a"), notice("b"))

    for name in "ab":
        kept = of(outbox, name)
        assert (kept.state, kept.proven, kept.receipt) == (NoticeState.DELIVERED, True, "ts-1")
        assert kept.beside == ("n-a", "n-b")


def test_what_all_of_them_say_is_said_once(outbox: OutboxRepository) -> None:
    channel = Channel()

    delivered(outbox, channel, notice("a"), notice("b"))

    (message,) = channel.took
    assert ("Owner", "nlp") in message.fields
    assert message.lines == ("Nothing happens before.",)
    assert [part.fields for part in message.parts] == [(("What", "a"),), (("What", "b"),)]
    assert [part.lines for part in message.parts] == [(), ()]


def test_the_heading_counts_them_and_adds_up_what_they_cost(outbox: OutboxRepository) -> None:
    channel = Channel()

    delivered(outbox, channel, notice("a"), notice("b", hourly=None), notice("c"))

    (message,) = channel.took
    assert message.title == "3 idle machines of nlp: each stops unless it is kept"
    assert dict(message.fields)["Cost"].startswith("120.00 USD a day together, and 1 of unknown price")


@pytest.mark.parametrize(
    "apart",
    [{"channel": "slack:#other"}, {"owner": "vision"}, {"run_id": "run-2"}, {"thread": "C:1.2"}, {"run_id": ""}],
)
def test_other_owners_channels_runs_and_threads_have_messages_of_their_own(
    outbox: OutboxRepository, apart: dict[str, str]
) -> None:
    channel = Channel()

    delivered(outbox, channel, notice("a"), notice("b", **apart))

    assert [message.title for message in channel.took] == ["a stops", "b stops"]


def test_a_channel_that_holds_few_parts_gets_more_messages_and_loses_none(outbox: OutboxRepository) -> None:
    channel = Channel(room=2)

    delivered(outbox, channel, *(notice(name) for name in "abcde"))

    assert [[part.decision_id for part in message.parts] for message in channel.took] == [
        ["d-a", "d-b"],
        ["d-c", "d-d"],
        ["d-e"],
    ]


def test_one_notice_that_a_channel_refuses_takes_none_beside_it_along(outbox: OutboxRepository) -> None:
    channel = Channel()
    channel.refuses = {"b stops"}

    delivered(outbox, channel, notice("a"), notice("b"), notice("c"))

    assert [message.title for message in channel.took] == ["a stops", "c stops"]
    assert of(outbox, "b").state is NoticeState.DEAD
    assert {of(outbox, name).state for name in "ac"} == {NoticeState.DELIVERED}


def test_a_channel_that_is_down_keeps_all_of_them_pending(outbox: OutboxRepository) -> None:
    channel, clock = Channel(), Clock()
    channel.trouble = [NoticeError("down")]

    delivered(outbox, channel, notice("a"), notice("b"), clock=clock)
    assert {of(outbox, name).state for name in "ab"} == {NoticeState.PENDING}

    clock.moment += timedelta(minutes=1)
    deliver_due(outbox, channel, clock, max_wait=NO_WAIT)
    assert [len(message.parts) for message in channel.took] == [2]


def test_a_rate_limit_is_waited_out_for_the_whole_message(outbox: OutboxRepository) -> None:
    channel, clock = Channel(), Clock()
    channel.trouble = [RateLimitedError("slow", retry_after=timedelta(seconds=20))]
    for name in "ab":
        outbox.enqueue(notice(name))

    deliver_due(outbox, channel, clock, max_wait=timedelta(seconds=30))

    assert [len(message.parts) for message in channel.took] == [2]


def test_a_late_warning_is_left_out_and_the_others_go(outbox: OutboxRepository) -> None:
    channel = Channel()

    delivered(outbox, channel, notice("a", holds_until=NOW), notice("b"))

    assert [message.title for message in channel.took] == ["b stops"]
    assert of(outbox, "a").state is NoticeState.DROPPED


def test_the_message_shows_what_became_of_one_and_leaves_the_others_as_they_were(outbox: OutboxRepository) -> None:
    channel = Channel()
    delivered(outbox, channel, notice("a"), notice("b"))

    assert outbox.mark({"n-a": "Kept until Friday"})
    delivered(outbox, channel)

    ((receipt, message),) = channel.edits
    assert receipt == "ts-1"
    assert [part.status for part in message.parts] == ["Kept until Friday", ""]


def test_a_mark_is_shown_once(outbox: OutboxRepository) -> None:
    channel = Channel()
    delivered(outbox, channel, notice("a"))
    outbox.mark({"n-a": "Stopped"})
    delivered(outbox, channel)

    assert not outbox.mark({"n-a": "Stopped"})
    delivered(outbox, channel)

    assert len(channel.edits) == 1


def test_two_marks_on_one_message_are_one_edit(outbox: OutboxRepository) -> None:
    channel = Channel()
    delivered(outbox, channel, notice("a"), notice("b"))
    outbox.mark({"n-a": "Stopped"})
    outbox.mark({"n-b": "Kept"})

    delivered(outbox, channel)

    ((_, message),) = channel.edits
    assert [part.status for part in message.parts] == ["Stopped", "Kept"]


def test_an_edit_that_failed_is_tried_in_the_next_run(outbox: OutboxRepository) -> None:
    channel = Channel()
    delivered(outbox, channel, notice("a"))
    outbox.mark({"n-a": "Stopped"})
    channel.trouble = [NoticeError("down")]

    delivered(outbox, channel)
    assert channel.edits == []

    delivered(outbox, channel)
    assert len(channel.edits) == 1


@pytest.mark.parametrize("refused", [True, False])
def test_an_edit_that_can_never_be_made_is_given_up(outbox: OutboxRepository, *, refused: bool) -> None:
    channel, clock = Channel(), Clock()
    delivered(outbox, channel, notice("a"), clock=clock)
    outbox.mark({"n-a": "Stopped"})
    if refused:
        channel.trouble = [RejectedNoticeError("message_not_found")]
    else:
        clock.moment += EDITS_END + timedelta(seconds=1)

    delivered(outbox, channel, clock=clock)

    assert outbox.changed() == ()
    assert channel.edits == []


def test_what_was_never_delivered_has_no_message_to_change(outbox: OutboxRepository) -> None:
    outbox.enqueue(notice("a"))

    assert not outbox.mark({"n-a": "Stopped"})


def test_replies_go_under_the_latest_message_that_was_no_reply_itself(outbox: OutboxRepository) -> None:
    channel = Channel()
    delivered(outbox, channel, notice("a"))
    delivered(outbox, channel, notice("a", notice_id="n-a-stopped", thread="ts-1", run_id="run-2"))

    found = outbox.said_of("case-a")

    assert found is not None
    assert (found.notice_id, found.receipt) == ("n-a", "ts-1")
    assert outbox.said_of("case-unknown") is None


# time


class SlowChannel(Channel):
    """Takes a minute for each message; meanwhile another sender looks for something to send."""

    def __init__(self, outbox: OutboxRepository, clock: Clock, room: int = 1) -> None:
        super().__init__(room)
        self._outbox = outbox
        self._clock = clock
        self.taken_meanwhile: list[OutboxNotice] = []

    def send(self, message: Message) -> Delivery:
        self._clock.moment += timedelta(minutes=1)
        waiting = [each.notice_id for each in self._outbox.pending()]
        self.taken_meanwhile += self._outbox.claim(waiting, self._clock.now())
        return super().send(message)


def test_nothing_is_begun_once_the_time_is_over_and_what_is_left_is_told(
    outbox: OutboxRepository, caplog: pytest.LogCaptureFixture
) -> None:
    clock = Clock()
    channel = SlowChannel(outbox, clock)
    outbox.enqueue(*(notice(f"{n}", created_at=NOW - n * timedelta(minutes=1)) for n in range(5)))

    sent = deliver_due(outbox, channel, clock, max_wait=NO_WAIT, until=NOW + timedelta(minutes=2))

    assert [each.notice_id for each in sent] == ["n-4", "n-3"]  # the oldest
    assert [each.notice_id for each in outbox.pending()] == ["n-2", "n-1", "n-0"]
    assert not any(each.proven or each.delivered_at for each in outbox.pending())
    (said,) = (record for record in caplog.records if "no time left" in record.message)
    assert vars(said)["waiting"] == 3

    clock.moment += timedelta(minutes=5)
    deliver_due(outbox, channel, clock, max_wait=NO_WAIT)
    assert [each.title for each in channel.took] == [f"{n} stops" for n in (4, 3, 2, 1, 0)]


def test_a_wait_that_ends_after_the_time_is_not_begun(outbox: OutboxRepository) -> None:
    clock, channel = Clock(), Channel()
    channel.trouble = [RateLimitedError("slow down", retry_after=timedelta(seconds=20))]
    outbox.enqueue(notice("a"))

    deliver_due(outbox, channel, clock, max_wait=timedelta(minutes=1), until=NOW + timedelta(seconds=20))

    assert (clock.now(), channel.took, of(outbox, "a").next_attempt_at) == (NOW, [], NOW + timedelta(seconds=20))


def test_no_message_is_changed_once_the_time_is_over(outbox: OutboxRepository) -> None:
    channel = Channel()
    delivered(outbox, channel, notice("a"))
    outbox.mark({"n-a": "Stopped"})

    deliver_due(outbox, channel, Clock(), max_wait=NO_WAIT, until=NOW)
    assert (channel.edits, len(outbox.changed())) == ([], 1)
    deliver_due(outbox, channel, Clock(), max_wait=NO_WAIT)
    assert len(channel.edits) == 1


def test_whoever_is_slow_keeps_what_it_has_claimed(outbox: OutboxRepository) -> None:
    """A claim lasts for five minutes; the last of these waits for eight."""
    clock = Clock()
    channel = SlowChannel(outbox, clock)
    outbox.enqueue(*(notice(f"{n}") for n in range(8)))

    assert len(deliver_due(outbox, channel, clock, max_wait=NO_WAIT)) == 8
    assert (len(channel.took), channel.taken_meanwhile) == (8, [])


def test_what_came_to_name_past_dates_while_others_were_sent_is_not_sent(outbox: OutboxRepository) -> None:
    clock = Clock()
    channel = SlowChannel(outbox, clock)
    outbox.enqueue(*(notice(f"{n}", holds_until=NOW + timedelta(minutes=2)) for n in range(4)))

    assert len(deliver_due(outbox, channel, clock, max_wait=NO_WAIT)) == 2
    assert [of(outbox, f"{n}").state for n in range(4)] == [NoticeState.DELIVERED] * 2 + [NoticeState.DROPPED] * 2


def test_no_more_is_claimed_than_may_go_soon(outbox: OutboxRepository) -> None:
    """What lies behind the first hundred is anybody's, should this sender say nothing more."""
    channel = Channel(room=10)
    channel.trouble = [RateLimitedError("slow down", retry_after=timedelta(minutes=1))]
    outbox.enqueue(*(notice(f"{n:03}") for n in range(130)))

    deliver_due(outbox, channel, Clock(), max_wait=NO_WAIT)

    free = [each.notice_id for each in outbox.due(NOW)]
    assert free == [f"n-{n:03}" for n in range(100, 130)]
