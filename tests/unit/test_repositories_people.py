"""What people say: snoozes, approvals, the kill switch."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from tests.contract.ledger_fakes import InterferingStore

from costguard.adapters.ledgers import open_ledger
from costguard.cases.answering import Vote
from costguard.domain.errors import InvalidInputError, LedgerError, VersionConflictError
from costguard.domain.refs import ResourceRef
from costguard.engine.ledger.approvals import Approval, ApprovalRepository
from costguard.engine.ledger.audit.people import told_again
from costguard.engine.ledger.audit.verify import verify
from costguard.engine.ledger.snoozes import KillSwitch, Snooze, SnoozeRepository, SwitchState
from costguard.ports import Record, RecordStore

NOW = datetime(2026, 3, 1, 12, tzinfo=timezone.utc)
HOUR = timedelta(hours=1)
MACHINE = ResourceRef("aws", "111122223333", "us-east-1", "instance", "i-1")


@pytest.fixture
def store() -> Iterator[RecordStore]:
    ledger = open_ledger("memory:")
    yield ledger
    ledger.close()


def audited(store: RecordStore) -> list[dict[str, Any]]:
    assert verify(store).problems == ()
    return [told_again(store, record) for record in store.query("audit")]


def snooze(hours: int = 48, **changes: Any) -> Snooze:
    fields: dict[str, Any] = {"by": "nlp team", "reason": "training", "at": NOW, **changes}
    return Snooze(str(MACHINE), NOW + hours * HOUR, **fields)


def test_a_snooze_is_active_until_its_end(store: RecordStore) -> None:
    snoozes = SnoozeRepository(store)
    snoozes.set(snooze())

    assert snoozes.active(NOW + 48 * HOUR - timedelta(microseconds=1)) == {str(MACHINE): snooze()}
    assert snoozes.active(NOW + 48 * HOUR) == {}


def test_a_later_snooze_takes_the_place_of_an_earlier_one(store: RecordStore) -> None:
    snoozes = SnoozeRepository(store)
    snoozes.set(snooze(48))
    snoozes.set(snooze(2, at=NOW + HOUR))

    assert snoozes.active(NOW + HOUR) == {str(MACHINE): snooze(2, at=NOW + HOUR)}
    assert len(audited(store)) == 2


def test_a_cleared_snooze_is_over(store: RecordStore) -> None:
    snoozes = SnoozeRepository(store)
    snoozes.set(snooze())

    assert snoozes.clear(str(MACHINE), "nlp team", NOW + HOUR)
    assert snoozes.active(NOW + HOUR) == {}
    assert not snoozes.clear(str(MACHINE), "nlp team", NOW + HOUR)
    assert not snoozes.clear("aws:1:r:instance:i-2", "nlp team", NOW)
    assert [fact["reason"] for fact in audited(store)] == ["training", "cleared"]


@pytest.mark.parametrize("wrong", [Snooze("i-1", NOW + HOUR, "a", "b", NOW), Snooze(str(MACHINE), NOW, "a", "b", NOW)])
def test_a_snooze_of_nothing_or_for_no_time_is_refused(store: RecordStore, wrong: Snooze) -> None:
    with pytest.raises(InvalidInputError):
        SnoozeRepository(store).set(wrong)
    assert SnoozeRepository(store).active(NOW - HOUR) == {}


def test_two_snoozes_at_once_both_count_as_said(store: RecordStore) -> None:
    interfering = InterferingStore(store)
    interfering.before_writes.append(lambda: SnoozeRepository(store).set(snooze(2)))

    SnoozeRepository(interfering).set(snooze(48))

    assert SnoozeRepository(store).active(NOW) == {str(MACHINE): snooze(48)}
    assert len(audited(store)) == 2


def test_an_approval_is_valid_for_its_decision_and_time(store: RecordStore) -> None:
    approvals = ApprovalRepository(store)
    granted = approvals.grant("decision-1", "nlp team", NOW, 24 * HOUR)

    assert granted == Approval("decision-1", (Vote("nlp team", NOW, NOW + 24 * HOUR),))
    assert approvals.valid("decision-1", NOW) == granted
    assert approvals.valid("decision-2", NOW) is None
    assert approvals.valid("decision-1", NOW + 24 * HOUR) is None
    assert not approvals.use("decision-1", NOW + 24 * HOUR)


def test_an_approval_is_used_once(store: RecordStore) -> None:
    approvals = ApprovalRepository(store)
    approvals.grant("decision-1", "nlp team", NOW, 24 * HOUR)

    assert [approvals.use("decision-1", NOW + HOUR) for _ in range(2)] == [True, False]
    assert approvals.valid("decision-1", NOW + HOUR) is None
    assert not approvals.use("decision-2", NOW)
    assert [fact["did"] for fact in audited(store)] == ["granted", "used"]


def test_of_many_threads_one_uses_an_approval(store: RecordStore) -> None:
    ApprovalRepository(store).grant("decision-1", "nlp team", NOW, HOUR)
    line = threading.Barrier(6)

    def race(_: int) -> bool:
        line.wait()
        return ApprovalRepository(store).use("decision-1", NOW)

    with ThreadPoolExecutor(6) as pool:
        assert sum(pool.map(race, range(6))) == 1


def test_a_used_approval_needs_a_new_yes(store: RecordStore) -> None:
    approvals = ApprovalRepository(store)
    approvals.grant("decision-1", "nlp team", NOW, HOUR)
    approvals.use("decision-1", NOW)
    approvals.grant("decision-1", "nlp team", NOW, HOUR)

    assert approvals.use("decision-1", NOW)


@pytest.mark.parametrize("valid_for", [timedelta(0), -HOUR])
def test_an_approval_for_no_time_is_refused(store: RecordStore, valid_for: timedelta) -> None:
    with pytest.raises(InvalidInputError):
        ApprovalRepository(store).grant("decision-1", "nlp team", NOW, valid_for)


def test_the_switch_is_off_until_somebody_turns_it(store: RecordStore) -> None:
    switch = KillSwitch(store)
    assert switch.state() == SwitchState(paused=False)

    switch.pause("platform team", "incident", NOW)
    assert switch.state() == SwitchState(paused=True, by="platform team", reason="incident", at=NOW)

    switch.resume("platform team", "over", NOW + HOUR)
    assert switch.state() == SwitchState(paused=False, by="platform team", reason="over", at=NOW + HOUR)
    assert [fact["paused"] for fact in audited(store)] == [True, False]


@pytest.mark.parametrize(
    "body", [{}, {"paused": None}, {"paused": "false"}, {"paused": 0}, {"paused": False, "at": "soon"}]
)
def test_a_switch_that_cannot_be_read_is_an_error_and_never_off(store: RecordStore, body: dict[str, Any]) -> None:
    store.put(Record("switch", "all", body), 0)

    with pytest.raises(LedgerError):
        KillSwitch(store).state()


def test_a_pause_beats_a_resume_at_the_same_moment(store: RecordStore) -> None:
    KillSwitch(store).pause("platform team", "incident", NOW)
    interfering = InterferingStore(store)

    interfering.before_writes.append(lambda: KillSwitch(store).pause("nlp team", "another", NOW))
    with pytest.raises(VersionConflictError):
        KillSwitch(interfering).resume("platform team", "over", NOW)
    assert KillSwitch(store).state().by == "nlp team"

    interfering.before_writes.append(lambda: KillSwitch(store).resume("platform team", "over", NOW))
    KillSwitch(interfering).pause("nlp team", "a third", NOW)
    assert KillSwitch(store).state().paused
