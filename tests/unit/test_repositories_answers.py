"""What people answered, as the ledger keeps it: votes, haste, who disowned what, and requests that count once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from tests.contract.ledger_fakes import InterferingStore

from costguard.adapters.ledgers import open_ledger
from costguard.cases.answering import VOTE_VALID_FOR, Vote
from costguard.domain.answers import AnswerRef
from costguard.domain.errors import LedgerError, UnavailableError, VersionConflictError
from costguard.domain.refs import ResourceRef
from costguard.engine.ledger.approvals import (
    KEPT_FOR,
    Approval,
    ApprovalRepository,
    DisownedRepository,
    ExpediteRepository,
    NonceRepository,
    nonce_of,
)
from costguard.engine.ledger.audit.people import told_again
from costguard.engine.ledger.audit.verify import verify
from costguard.engine.ledger.snoozes import Snooze, SnoozeRepository
from costguard.ports import Record, RecordStore

NOW = datetime(2026, 3, 1, 12, tzinfo=timezone.utc)
HOUR = timedelta(hours=1)
OF = AnswerRef("case1", "decision1")
MACHINE = str(ResourceRef("aws", "111122223333", "us-east-1", "instance", "i-1"))


@pytest.fixture
def store() -> Iterator[RecordStore]:
    ledger = open_ledger("memory:")
    yield ledger
    ledger.close()


def audited(store: RecordStore) -> list[dict[str, Any]]:
    assert verify(store).problems == ()
    return [told_again(store, record) for record in store.query("audit")]


def vote(by: str, at: datetime = NOW, *, asked: bool = False) -> Vote:
    return Vote(by, at, at + VOTE_VALID_FOR, asked)


def test_an_approval_counts_once_enough_different_people_agree(store: RecordStore) -> None:
    approvals = ApprovalRepository(store)

    approvals.vote("decision-1", vote("a"), 2, NOW)
    approvals.vote("decision-1", vote("a", NOW + HOUR), 2, NOW + HOUR)
    assert approvals.valid("decision-1", NOW + HOUR) is None
    assert not approvals.use("decision-1", NOW + HOUR)

    approvals.vote("decision-1", vote("b", NOW + HOUR), 2, NOW + HOUR)
    assert approvals.valid("decision-1", NOW + HOUR) is not None
    assert [approvals.use("decision-1", NOW + HOUR) for _ in range(2)] == [True, False]
    assert [(fact["did"], fact["by"]) for fact in audited(store)] == [
        ("voted", "a"),
        ("granted", "b"),
        ("used", "a, b"),
    ]


def test_votes_that_are_a_day_apart_never_meet(store: RecordStore) -> None:
    approvals = ApprovalRepository(store)
    approvals.vote("decision-1", vote("a"), 2, NOW)
    later = NOW + VOTE_VALID_FOR

    approvals.vote("decision-1", vote("b", later), 2, later)

    assert approvals.valid("decision-1", later) is None
    assert [one.by for one in approvals.votes("decision-1", later)] == ["b"]


def test_what_once_took_two_people_takes_two_also_when_its_price_is_lower_now(store: RecordStore) -> None:
    approvals, haste = ApprovalRepository(store), ExpediteRepository(store)
    approvals.vote("decision-1", vote("a"), 2, NOW)
    haste.vote(OF, vote("a"), 2, NOW)

    assert approvals.vote("decision-1", vote("a"), 1, NOW).needed == 2
    assert haste.vote(OF, vote("a"), 1, NOW).needed == 2
    assert approvals.valid("decision-1", NOW) is None
    assert haste.granted(NOW) == frozenset()


def test_a_vote_of_whoever_asked_never_suffices_alone(store: RecordStore) -> None:
    approvals = ApprovalRepository(store)
    approvals.vote("decision-1", vote("a", asked=True), 1, NOW)
    assert approvals.valid("decision-1", NOW) is None
    approvals.vote("decision-1", vote("b"), 1, NOW)
    assert approvals.valid("decision-1", NOW) is not None


def test_after_a_use_everybody_has_to_say_so_anew(store: RecordStore) -> None:
    approvals = ApprovalRepository(store)
    for by in ("a", "b"):
        approvals.vote("decision-1", vote(by), 2, NOW)
    approvals.use("decision-1", NOW)

    assert approvals.votes("decision-1", NOW) == ()
    approvals.vote("decision-1", vote("a"), 2, NOW)
    assert approvals.valid("decision-1", NOW) is None


def test_two_votes_at_once_both_count(store: RecordStore) -> None:
    interfering = InterferingStore(store)
    interfering.before_writes.append(lambda: ApprovalRepository(store).vote("decision-1", vote("a"), 2, NOW))
    ApprovalRepository(interfering).vote("decision-1", vote("b"), 2, NOW)
    interfering.before_writes.append(lambda: ExpediteRepository(store).vote(OF, vote("a"), 2, NOW))
    ExpediteRepository(interfering).vote(OF, vote("b"), 2, NOW)

    assert ApprovalRepository(store).valid("decision-1", NOW) is not None
    assert ExpediteRepository(store).granted(NOW) == {OF}


def test_an_approval_of_an_earlier_costguard_is_one_persons_word(store: RecordStore) -> None:
    body = {
        "decision_id": "decision-1",
        "by": "nlp team",
        "granted_at": "2026-03-01T12:00:00Z",
        "expires_at": "2026-03-02T12:00:00Z",
        "used_at": None,
    }
    store.put(Record("approval", "decision-1", body, schema=1), 0)
    approvals = ApprovalRepository(store)

    assert approvals.valid("decision-1", NOW) == Approval("decision-1", (vote("nlp team"),))
    assert approvals.valid("decision-1", NOW + VOTE_VALID_FOR) is None
    assert approvals.use("decision-1", NOW)
    store.put(Record("approval", "decision-2", {"decision_id": "decision-2"}, schema=1), 0)
    with pytest.raises(LedgerError):
        approvals.valid("decision-2", NOW)


def test_haste_is_granted_for_a_day_and_known_by_its_case(store: RecordStore) -> None:
    haste = ExpediteRepository(store)
    haste.vote(OF, vote("a"), 1, NOW)
    haste.vote(AnswerRef("case10", "decision1"), vote("b"), 2, NOW)

    assert haste.granted(NOW) == {OF}
    assert haste.granted(NOW + VOTE_VALID_FOR) == frozenset()
    assert [one.of for one in haste.of_case("case1", NOW)] == [OF]
    assert haste.of_case("case1", NOW + VOTE_VALID_FOR) == ()
    assert [fact["did"] for fact in audited(store)] == ["asked to stop now", "voted to stop now"]


def test_the_same_wish_again_writes_nothing(store: RecordStore) -> None:
    haste = ExpediteRepository(store)
    haste.vote(OF, vote("a"), 1, NOW)
    haste.vote(OF, vote("a", NOW + HOUR), 1, NOW + HOUR)
    assert len(audited(store)) == 1


def test_who_was_passed_over_stays_so(store: RecordStore) -> None:
    disowned = DisownedRepository(store)

    assert disowned.add(MACHINE, "nlp", "a", NOW)
    assert not disowned.add(MACHINE, "nlp", "b", NOW)
    assert disowned.add(MACHINE, "vision", "b", NOW)

    assert disowned.all() == {MACHINE: frozenset({"nlp", "vision"})}
    assert disowned.of(MACHINE)[0] == {"nlp", "vision"}
    assert [fact["owner"] for fact in audited(store)] == ["nlp", "vision"]


def test_what_was_read_of_the_disowned_fails_a_transaction_once_it_changed(store: RecordStore) -> None:
    disowned = DisownedRepository(store)
    _, unchanged = disowned.of(MACHINE)
    store.transact([unchanged])
    disowned.add(MACHINE, "nlp", "a", NOW)
    with pytest.raises(VersionConflictError):
        store.transact([unchanged])


def test_a_nonce_is_taken_once_and_forgotten_when_its_signature_is_worthless(store: RecordStore) -> None:
    nonces, nonce = NonceRepository(store), nonce_of("v0=ab", "1531420618")

    assert [nonces.take(nonce, NOW + number * HOUR / 60) for number in range(3)] == [True, False, False]
    assert nonces.take(nonce[:2] + "0" * 62, NOW + KEPT_FOR)

    (record,) = store.query("nonce")
    assert len(record.body["taken"]) == 1  # the old one is swept by whoever comes next
    assert nonce_of("v0=ab", "1531420618") != nonce_of("v0=ab", "1531420619")


def test_of_two_who_bring_the_same_nonce_one_gets_it(store: RecordStore) -> None:
    interfering, nonce = InterferingStore(store), nonce_of("v0=ab", "1")
    interfering.before_writes.append(lambda: NonceRepository(store).take(nonce, NOW))
    assert NonceRepository(interfering).take(nonce, NOW) is False


def test_more_nonces_than_fit_are_refused_and_none_is_forgotten_early(store: RecordStore) -> None:
    nonces = NonceRepository(store)
    taken = [{"nonce": f"00{number:062x}", "at": NOW.isoformat()} for number in range(500)]
    store.put(Record("nonce", "00", {"taken": taken}), 0)
    with pytest.raises(UnavailableError):
        nonces.take("00" + "f" * 62, NOW)
    assert not nonces.take(f"00{0:062x}", NOW)
    assert nonces.take("00" + "f" * 62, NOW + KEPT_FOR)


def test_a_snooze_is_only_ever_lengthened_also_by_two_at_once(store: RecordStore) -> None:
    long, short = (Snooze(MACHINE, NOW + hours * HOUR, "a", "", NOW) for hours in (168, 24))
    interfering = InterferingStore(store)
    interfering.before_writes.append(lambda: SnoozeRepository(store).lengthen(long))

    assert SnoozeRepository(interfering).lengthen(short) == long
    assert SnoozeRepository(store).active(NOW) == {MACHINE: long}
    longer = replace(long, until=NOW + 200 * HOUR)
    assert SnoozeRepository(store).lengthen(longer) == longer
    assert len(audited(store)) == 2
