"""The outbox loses no notice, sends none twice on purpose, and honours Retry-After."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from tests.contract.ledger_fakes import InterferingStore, fail

from costguard.adapters.ledgers import open_ledger
from costguard.domain.errors import InvalidInputError, LedgerError, NoticeError, RateLimitedError, RejectedNoticeError
from costguard.engine.ledger.audit.verify import verify
from costguard.engine.ledger.notices import CLAIM_LASTS, NoticeState, OutboxNotice
from costguard.engine.ledger.outbox import OutboxRepository
from costguard.engine.notify.delivery import deliver_due
from costguard.ports import Delivery, Message, RecordStore

NOW = datetime(2026, 3, 1, 12, tzinfo=timezone.utc)
MINUTE = timedelta(minutes=1)
NO_WAIT = timedelta(0)


class FakeClock:
    def __init__(self) -> None:
        self.moment = NOW
        self.slept: list[float] = []

    def now(self) -> datetime:
        return self.moment

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.moment += timedelta(seconds=seconds)


class FakeNotifier:
    """Answers as told, then with deliveries; remembers what reached it and what it took."""

    def __init__(self, *answers: Exception | Callable[[], object], proves: bool = True) -> None:
        self.answers = list(answers)
        self.proves = proves
        self.tried: list[str] = []
        self.took: list[Message] = []

    def send(self, message: Message) -> Delivery:
        self.tried.append(message.text)
        answer = self.answers.pop(0) if self.answers else None
        if isinstance(answer, Exception):
            raise answer
        if answer is not None:
            answer()
        self.took.append(message)
        return Delivery(f"ts-{len(self.took)}", proves_delivery=self.proves)

    def edit(self, receipt: str, message: Message) -> bool:  # noqa: ARG002 - nothing can be changed here
        return False

    def capacity(self, message: Message) -> int:
        return max(1, len(message.parts))


def limited(seconds: float) -> RateLimitedError:
    return RateLimitedError("slow down", retry_after=timedelta(seconds=seconds))


def notice(notice_id: str = "n-1", **changes: Any) -> OutboxNotice:
    plain = OutboxNotice(
        notice_id=notice_id,
        decision_id="decision-1",
        case_key="idle_gpu/idle/x",
        channel="slack:#gpu",
        title="idle",
        text=notice_id,
        created_at=NOW,
        fields=(("cost", "3 USD"),),
        lines=("say keep",),
    )
    return replace(plain, **changes)


@pytest.fixture
def store() -> Iterator[RecordStore]:
    ledger = open_ledger("memory:")
    yield ledger
    ledger.close()


@pytest.fixture
def outbox(store: RecordStore) -> OutboxRepository:
    return OutboxRepository(store)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def kept(outbox: OutboxRepository, notice_id: str = "n-1") -> OutboxNotice:
    found = outbox.get(notice_id)
    assert found is not None
    return found


def test_a_notice_is_delivered_with_proof(outbox: OutboxRepository, clock: FakeClock) -> None:
    notifier = FakeNotifier()
    assert outbox.enqueue(notice())

    delivered = deliver_due(outbox, notifier, clock, max_wait=NO_WAIT)

    assert delivered == (kept(outbox),)
    assert kept(outbox) == notice(
        state=NoticeState.DELIVERED, attempts=1, receipt="ts-1", delivered_at=NOW, proven=True
    )
    assert notifier.took == [
        Message("slack:#gpu", "idle", "n-1", fields=(("cost", "3 USD"),), lines=("say keep",), notice_id="n-1")
    ]


def test_a_delivered_notice_is_not_sent_again(outbox: OutboxRepository, clock: FakeClock) -> None:
    notifier = FakeNotifier()
    outbox.enqueue(notice())
    for _ in range(3):
        deliver_due(outbox, notifier, clock, max_wait=NO_WAIT)

    assert len(notifier.took) == 1


def test_looking_for_due_notices_does_not_read_what_ended(
    store: RecordStore, outbox: OutboxRepository, clock: FakeClock
) -> None:
    for number in range(3):
        outbox.enqueue(notice(f"n-{number}"))
    deliver_due(outbox, FakeNotifier(RejectedNoticeError("no"), NoticeError("down")), clock, max_wait=NO_WAIT)

    assert [one for record in store.query("outbox_pending") for one in record.body["ids"]] == ["n-1"]


def test_a_channel_that_proves_nothing_delivers_without_proof(outbox: OutboxRepository, clock: FakeClock) -> None:
    outbox.enqueue(notice())
    deliver_due(outbox, FakeNotifier(proves=False), clock, max_wait=NO_WAIT)

    assert kept(outbox).state is NoticeState.DELIVERED
    assert not kept(outbox).proven


def test_enqueuing_again_changes_nothing_even_after_delivery(outbox: OutboxRepository, clock: FakeClock) -> None:
    notifier = FakeNotifier()
    outbox.enqueue(notice())
    assert not outbox.enqueue(notice(text="other words"))
    deliver_due(outbox, notifier, clock, max_wait=NO_WAIT)

    assert not outbox.enqueue(notice(text="other words"))
    assert deliver_due(outbox, notifier, clock, max_wait=NO_WAIT) == ()
    assert notifier.tried == ["n-1"]


def test_the_oldest_notice_goes_first(outbox: OutboxRepository, clock: FakeClock) -> None:
    notifier = FakeNotifier()
    for number in range(12):
        outbox.enqueue(notice(f"n-{number:02}", created_at=NOW - number * MINUTE))

    deliver_due(outbox, notifier, clock, max_wait=NO_WAIT)

    assert notifier.tried == [f"n-{number:02}" for number in reversed(range(12))]


def test_a_notice_for_later_waits(outbox: OutboxRepository) -> None:
    outbox.enqueue(notice(next_attempt_at=NOW + MINUTE))

    assert outbox.due(NOW) == ()
    assert outbox.due(NOW + MINUTE) == (notice(next_attempt_at=NOW + MINUTE),)


def test_a_rate_limit_is_waited_out_and_the_notice_sent(outbox: OutboxRepository, clock: FakeClock) -> None:
    """Not slept and then returned without sending."""
    notifier = FakeNotifier(limited(20))
    outbox.enqueue(notice())

    deliver_due(outbox, notifier, clock, max_wait=MINUTE)

    assert clock.slept == [20]
    assert notifier.tried == ["n-1", "n-1"]
    assert kept(outbox).state is NoticeState.DELIVERED
    assert kept(outbox).delivered_at == NOW + timedelta(seconds=20)


def test_waits_together_stay_within_the_limit(outbox: OutboxRepository, clock: FakeClock) -> None:
    notifier = FakeNotifier(limited(40), limited(15), limited(10))
    outbox.enqueue(notice())

    assert deliver_due(outbox, notifier, clock, max_wait=MINUTE) == ()

    assert clock.slept == [40, 15]
    assert kept(outbox).state is NoticeState.PENDING
    assert kept(outbox).next_attempt_at == clock.now() + timedelta(seconds=10)


def test_a_rate_limit_too_long_to_wait_is_kept_for_later_and_its_channel_left_alone(
    outbox: OutboxRepository, clock: FakeClock
) -> None:
    notifier = FakeNotifier(limited(3600))
    outbox.enqueue(notice("n-1", created_at=NOW - MINUTE))
    outbox.enqueue(notice("n-2"))
    outbox.enqueue(notice("n-3", channel="slack:#other"))

    delivered = deliver_due(outbox, notifier, clock, max_wait=MINUTE)

    assert clock.slept == []
    assert notifier.tried == ["n-1", "n-3"]
    assert [one.notice_id for one in delivered] == ["n-3"]
    assert kept(outbox, "n-1").next_attempt_at == NOW + timedelta(hours=1)
    assert [one.notice_id for one in outbox.due(NOW)] == ["n-2"]
    assert [one.notice_id for one in outbox.due(NOW + timedelta(hours=1))] == ["n-1", "n-2"]


def test_a_rate_limit_of_no_time_is_not_asked_for_ever(outbox: OutboxRepository, clock: FakeClock) -> None:
    notifier = FakeNotifier(*(limited(seconds) for seconds in (0, -5, 0, 0, 0, 0)))
    outbox.enqueue(notice())

    deliver_due(outbox, notifier, clock, max_wait=timedelta(seconds=3))

    assert clock.slept == [1, 1, 1]
    assert kept(outbox).state is NoticeState.PENDING


def test_failures_back_off_from_a_minute_to_an_hour(outbox: OutboxRepository, clock: FakeClock) -> None:
    notifier = FakeNotifier(*(NoticeError("down") for _ in range(9)))
    outbox.enqueue(notice())
    waits = []
    for _ in range(9):
        deliver_due(outbox, notifier, clock, max_wait=NO_WAIT)
        next_attempt_at = kept(outbox).next_attempt_at
        assert next_attempt_at is not None
        waits.append((next_attempt_at - clock.now()) / MINUTE)
        clock.moment = next_attempt_at

    assert waits == [1, 2, 4, 8, 16, 32, 60, 60, 60]
    assert (kept(outbox).attempts, kept(outbox).last_error) == (9, "down")
    deliver_due(outbox, notifier, clock, max_wait=NO_WAIT)
    assert kept(outbox).state is NoticeState.DELIVERED


def test_one_failure_stops_no_other_notice(outbox: OutboxRepository, clock: FakeClock) -> None:
    notifier = FakeNotifier(NoticeError("down"), RejectedNoticeError("no such channel"))
    for number in range(3):
        outbox.enqueue(notice(f"n-{number}"))

    deliver_due(outbox, notifier, clock, max_wait=NO_WAIT)

    assert [kept(outbox, f"n-{number}").state.value for number in range(3)] == ["pending", "dead", "delivered"]


def test_a_rejected_notice_is_dead_and_shown(outbox: OutboxRepository, clock: FakeClock) -> None:
    notifier = FakeNotifier(RejectedNoticeError("no such channel"))
    outbox.enqueue(notice())
    deliver_due(outbox, notifier, clock, max_wait=NO_WAIT)
    clock.moment += timedelta(days=9)

    assert deliver_due(outbox, notifier, clock, max_wait=NO_WAIT) == ()
    assert outbox.dead() == (notice(state=NoticeState.DEAD, attempts=1, last_error="no such channel"),)
    assert notifier.tried == ["n-1"]


def test_two_runs_at_once_do_not_send_the_same_notice(outbox: OutboxRepository, clock: FakeClock) -> None:
    """The second run starts while the first is sending."""
    other = FakeNotifier()
    notifier = FakeNotifier(lambda: deliver_due(outbox, other, clock, max_wait=NO_WAIT))
    outbox.enqueue(notice())

    deliver_due(outbox, notifier, clock, max_wait=NO_WAIT)

    assert (len(notifier.took), len(other.took)) == (1, 0)


def test_two_runs_that_saw_the_same_notice_due_do_not_both_claim_it(store: RecordStore, clock: FakeClock) -> None:
    other, notifier = FakeNotifier(), FakeNotifier()
    OutboxRepository(store).enqueue(notice())
    interfering = InterferingStore(store)
    interfering.before_writes.append(lambda: deliver_due(OutboxRepository(store), other, clock, max_wait=NO_WAIT))

    deliver_due(OutboxRepository(interfering), notifier, clock, max_wait=NO_WAIT)

    assert (len(other.took), len(notifier.took)) == (1, 0)


def test_a_crash_while_sending_sends_that_notice_again_after_its_claim(store: RecordStore, clock: FakeClock) -> None:
    for number in range(3):
        OutboxRepository(store).enqueue(notice(f"n-{number}"))
    interfering = InterferingStore(store)
    first = FakeNotifier(lambda: None, lambda: interfering.before_writes.append(fail))
    with pytest.raises(LedgerError):
        deliver_due(OutboxRepository(interfering), first, clock, max_wait=NO_WAIT)

    second = FakeNotifier()
    deliver_due(OutboxRepository(store), second, clock, max_wait=NO_WAIT)
    assert second.tried == ["n-2"]
    clock.moment += CLAIM_LASTS
    deliver_due(OutboxRepository(store), second, clock, max_wait=NO_WAIT)

    assert first.tried == ["n-0", "n-1"]
    assert second.tried == ["n-2", "n-1"]
    assert all(kept(OutboxRepository(store), f"n-{n}").state is NoticeState.DELIVERED for n in range(3))


def test_a_delivery_slower_than_its_claim_is_still_recorded(outbox: OutboxRepository, clock: FakeClock) -> None:
    """Another run took the notice over and failed to send it; it did arrive."""

    def take_over() -> None:
        clock.moment += CLAIM_LASTS
        deliver_due(outbox, FakeNotifier(NoticeError("down")), clock, max_wait=NO_WAIT)

    outbox.enqueue(notice())
    deliver_due(outbox, FakeNotifier(take_over), clock, max_wait=NO_WAIT)

    assert kept(outbox).state is NoticeState.DELIVERED
    assert outbox.due(clock.now() + timedelta(days=1)) == ()


def test_a_slow_failure_does_not_undo_anothers_delivery(outbox: OutboxRepository, clock: FakeClock) -> None:
    class SlowNotifier(FakeNotifier):
        def send(self, message: Message) -> Delivery:
            clock.moment += CLAIM_LASTS
            deliver_due(outbox, FakeNotifier(), clock, max_wait=NO_WAIT)
            raise RejectedNoticeError(message.text)

    outbox.enqueue(notice())
    deliver_due(outbox, SlowNotifier(), clock, max_wait=NO_WAIT)

    assert kept(outbox).state is NoticeState.DELIVERED
    assert outbox.dead() == ()


def test_a_wait_longer_than_a_claim_gives_way_to_whoever_took_over(store: RecordStore) -> None:
    class SleepingClock(FakeClock):
        def sleep(self, seconds: float) -> None:
            super().sleep(seconds)
            deliver_due(OutboxRepository(store), other, self, max_wait=NO_WAIT)

    clock, other, notifier = SleepingClock(), FakeNotifier(), FakeNotifier(limited(600))
    OutboxRepository(store).enqueue(notice())
    deliver_due(OutboxRepository(store), notifier, clock, max_wait=timedelta(hours=1))

    assert (len(other.took), len(notifier.took)) == (1, 0)


def test_what_became_of_a_notice_is_audited(store: RecordStore, outbox: OutboxRepository, clock: FakeClock) -> None:
    outbox.enqueue(notice("n-0"))
    outbox.enqueue(notice("n-1"))
    deliver_due(outbox, FakeNotifier(RejectedNoticeError("no")), clock, max_wait=NO_WAIT)

    facts = [record.body["facts"] for record in store.query("audit")]
    assert [(fact["notice_id"], fact["state"], fact["proven"]) for fact in facts] == [
        ("n-0", "dead", False),
        ("n-1", "delivered", True),
    ]
    assert verify(store).problems == ()


def test_enqueuing_beside_another_run_loses_neither(store: RecordStore) -> None:
    """All sixteen lists of pending notices are contended for."""
    interfering = InterferingStore(store)
    for number in range(40):
        other = f"theirs-{number}"
        interfering.before_writes.append(lambda other=other: OutboxRepository(store).enqueue(notice(other)))  # type: ignore[misc]
        OutboxRepository(interfering).enqueue(notice(f"mine-{number}"))
        interfering.before_writes.clear()

    assert len(OutboxRepository(store).due(NOW)) == 80


def test_a_dead_notice_is_sent_again_once_somebody_says_so(outbox: OutboxRepository, clock: FakeClock) -> None:
    outbox.enqueue(notice())
    deliver_due(outbox, FakeNotifier(RejectedNoticeError("is_archived")), clock, max_wait=NO_WAIT)

    outbox.revive("n-1", NOW)
    again = FakeNotifier()
    deliver_due(outbox, again, clock, max_wait=NO_WAIT)

    assert again.tried == ["n-1"]
    assert (kept(outbox).state, outbox.dead(), outbox.pending()) == (NoticeState.DELIVERED, (), ())


def test_a_notice_that_dies_again_is_dead_once(outbox: OutboxRepository, clock: FakeClock) -> None:
    outbox.enqueue(notice())
    for _ in range(2):
        deliver_due(outbox, FakeNotifier(RejectedNoticeError("is_archived")), clock, max_wait=NO_WAIT)
        assert [one.notice_id for one in outbox.dead()] == ["n-1"]
        outbox.revive("n-1", NOW)


@pytest.mark.parametrize(
    ("dead", "words"), [(False, "is no dead notice"), (True, "names dates that are past")], ids=["pending", "late"]
)
def test_only_a_dead_notice_that_is_still_true_is_sent_again(
    outbox: OutboxRepository, clock: FakeClock, words: str, *, dead: bool
) -> None:
    outbox.enqueue(notice(holds_until=NOW + MINUTE))
    if dead:
        deliver_due(outbox, FakeNotifier(RejectedNoticeError("is_archived")), clock, max_wait=NO_WAIT)

    with pytest.raises(InvalidInputError, match=words):
        outbox.revive("n-1", NOW + MINUTE)
    with pytest.raises(InvalidInputError, match="is no dead notice"):
        outbox.revive("n-2", NOW)
