"""The audit names people by keys: who they are can be erased, and so can old runs, and every chain stays whole."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from tests.contract.ledger_fakes import InterferingStore

from costguard.adapters.ledgers.open import open_ledger
from costguard.cases.answering import Vote
from costguard.domain.errors import InvalidInputError
from costguard.engine.ledger.audit.audit import ENTRY, AuditEntry, AuditTrail, AuditWhat
from costguard.engine.ledger.audit.forget import SHORTEST, find_person, forget, known_people, prunable, prune
from costguard.engine.ledger.audit.people import (
    APART,
    COUNT,
    INDEX,
    PERSON,
    WORDS,
    identity_of,
    people_in,
    told_again,
    who_is,
)
from costguard.engine.ledger.audit.verify import verify
from costguard.engine.ledger.memory import Memory
from costguard.engine.ledger.runs import RUN
from costguard.engine.ledger.snoozes import Snooze
from costguard.ports import Put, Record, RecordStore

NOW = datetime(2026, 3, 2, 9, tzinfo=timezone.utc)
DAY = timedelta(days=1)
MACHINE = "aws:111122223333:us-east-1:instance:i-1"
ANA, BEN = "Ana Test (slack:T1/U7)", "slack:T1/U8"
SECRET_WORDS = "her child is ill"


@pytest.fixture
def store() -> Iterator[RecordStore]:
    ledger = open_ledger("memory:")
    yield ledger
    ledger.close()


@pytest.fixture
def memory(store: RecordStore) -> Memory:
    return Memory.over(store)


def snoozed(memory: Memory, by: str = ANA, reason: str = SECRET_WORDS) -> None:
    memory.snoozes.set(Snooze(MACHINE, NOW + 2 * DAY, by, reason, NOW))


def everything(store: RecordStore) -> str:
    kinds = (
        ENTRY,
        "audit_head",
        PERSON,
        INDEX,
        WORDS,
        RUN,
        "snooze",
        "switch",
        "approval",
        "haste",
        "disowned",
        "notice",
    )
    return json.dumps([[record.key, dict(record.body)] for kind in kinds for record in store.query(kind)])


def entries(store: RecordStore) -> list[dict[str, Any]]:
    return [dict(record.body) for record in store.query(ENTRY)]


# keys


@pytest.mark.parametrize(
    ("text", "who"),
    [
        (ANA, ("slack:T1/U7", "Ana Test")),
        (BEN, ("slack:T1/U8", "")),
        ("cli:ana", ("ana", "")),
        ("ana", ("ana", "")),
        ("link:mailto:ana@example.com", ("mailto:ana@example.com", "")),
        ("Ana (on call)", ("Ana (on call)", "")),
    ],
)
def test_one_person_has_one_identity_however_the_ledger_writes_them(text: str, who: tuple[str, str]) -> None:
    assert identity_of(text) == who


def test_an_entry_holds_a_key_and_neither_name_nor_words(store: RecordStore, memory: Memory) -> None:
    snoozed(memory)
    ((entry),) = entries(store)
    assert (entry["facts"]["by"], entry["facts"]["reason"]) == ("person:1", APART)
    for part in ("Ana", "U7", SECRET_WORDS):
        assert part not in json.dumps(entry)
    (record,) = store.query(ENTRY)
    assert told_again(store, record)["reason"] == SECRET_WORDS
    assert who_is(store, "person:1") == "slack:T1/U7"


def test_the_same_person_keeps_their_key_and_another_gets_the_next(store: RecordStore, memory: Memory) -> None:
    snoozed(memory)
    memory.switch.pause("slack:T1/U7", "", NOW)
    memory.switch.pause(BEN, "", NOW)
    memory.switch.pause("Ana T. (slack:T1/U7)", "", NOW)
    by_chain: dict[str, list[str]] = {entry["shard"]: [] for entry in entries(store)}
    for entry in entries(store):
        by_chain[entry["shard"]].append(entry["facts"]["by"])
    assert by_chain == {"snooze": ["person:1"], "switch": ["person:1", "person:2", "person:1"]}
    assert [person.names for _, person in known_people(store)] == [("Ana Test", "Ana T."), ()]


def test_several_at_once_and_people_inside_a_reason_have_keys_too(store: RecordStore) -> None:
    held = {"reason": "snoozed", "reason_facts": {"by": ANA, "cause": SECRET_WORDS, "until": "x"}}
    AuditTrail(store).append(
        AuditEntry(NOW, "run-1", "s", AuditWhat.TRANSITION, held),
        AuditEntry(NOW, "operator", "approval", AuditWhat.APPROVAL, {"by": f"{BEN}, slack:T1/U7", "did": "used"}),
        AuditEntry(NOW, "outbox", "2026-03", AuditWhat.NOTICE, {"channel": "mailto:ana@example.com", "state": "sent"}),
        AuditEntry(NOW, "outbox", "2026-03", AuditWhat.NOTICE, {"channel": "slack:#gpu", "receipt": "C1:1.2"}),
    )
    facts = {(entry["what"], entry["seq"]): entry["facts"] for entry in entries(store)}
    assert facts["transition", 1] == {
        "reason": "snoozed",
        "reason_facts": {"by": "person:1", "cause": APART, "until": "x"},
    }
    assert facts["approval", 1]["by"] == "person:2, person:1"
    assert facts["notice", 1]["channel"] == "person:3"
    assert facts["notice", 2] == {"channel": "slack:#gpu", "receipt": "C1:1.2"}
    assert [problem for problem in verify(store).problems if "run-1" not in problem] == []


def test_two_who_come_at_the_same_moment_get_two_keys() -> None:
    """The second finds its number taken when it writes, and takes the next."""
    ledger = open_ledger("memory:")
    memory = Memory.over(ledger)
    late = AuditTrail(ledger).operations(AuditEntry(NOW, "operator", "switch", AuditWhat.SWITCH, {"by": BEN}))
    snoozed(memory)
    with pytest.raises(Exception, match="audit_person/00000001"):
        ledger.transact(late)
    memory.switch.pause(BEN, "", NOW)
    assert who_is(ledger, "person:2") == BEN
    ledger.close()


class Counted(InterferingStore):
    """Counts what is read of people."""

    def __init__(self, store: RecordStore) -> None:
        super().__init__(store)
        self.asked = 0

    def get(self, kind: str, key: str) -> Record | None:
        self.asked += kind.startswith("audit_person")
        return super().get(kind, key)

    def query(self, kind: str, prefix: str = "", after: str = "") -> Iterator[Record]:
        self.asked += 1_000 * kind.startswith("audit_person")
        return super().query(kind, prefix, after)


def switched(store: RecordStore, by: str) -> None:
    AuditTrail(store).append(AuditEntry(NOW, "operator", "switch", AuditWhat.SWITCH, {"by": by}))


@pytest.mark.parametrize("people", [3, 60])
def test_naming_somebody_takes_as_many_requests_however_many_there_are(store: RecordStore, people: int) -> None:
    for number in range(people):
        switched(store, f"slack:T1/U{number}")
    counted = Counted(store)
    switched(counted, f"slack:T1/U{people - 1}")
    assert counted.asked == 2
    switched(counted, "slack:T1/Unew")
    assert counted.asked == 2 + 3
    assert [person.id for _, person, _ in people_in(store)][-2:] == [f"slack:T1/U{people - 1}", "slack:T1/Unew"]


def written_by_an_older_costguard(store: RecordStore, number: int, who: str) -> None:
    store.put(Record(PERSON, f"{number:08}", {"id": who, "names": [], "forgotten_at": None}), 0)


def test_people_of_a_ledger_from_before_the_index_keep_their_keys(store: RecordStore) -> None:
    for number in range(1, 31):
        written_by_an_older_costguard(store, number, f"slack:T1/U{number}")
    switched(store, "slack:T1/U7")
    switched(store, "slack:T1/Unew")
    written_by_an_older_costguard(store, 32, "slack:T1/U32")  # beside this one, or after going back to it
    switched(store, "slack:T1/U32")
    switched(store, "slack:T1/Ulast")
    assert [entry["facts"]["by"] for entry in entries(store)] == ["person:7", "person:31", "person:32", "person:33"]
    assert [person.id for _, person, _ in people_in(store)][29:] == [
        f"slack:T1/U{name}" for name in ("30", "new", "32", "last")
    ]


def test_several_newcomers_of_one_entry_have_keys_of_their_own(store: RecordStore) -> None:
    switched(store, ", ".join(f"slack:T1/U{number}" for number in range(20)))
    switched(store, "slack:T1/U19, slack:T1/U20")
    (first, second) = (entry["facts"]["by"] for entry in entries(store))
    assert first == ", ".join(f"person:{number}" for number in range(1, 21))
    assert second == "person:20, person:21"
    count = store.get(COUNT, "all")
    assert count is not None
    assert count.body == {"people": 21}


def test_who_was_forgotten_comes_back_under_a_new_key(store: RecordStore) -> None:
    switched(store, BEN)
    forget(store, "person:1", NOW)
    assert "U8" not in everything(store)
    switched(store, BEN)
    assert [entry["facts"]["by"] for entry in entries(store)] == ["person:1", "person:2"]


# forgetting


def test_forgetting_leaves_a_whole_audit_and_no_trace_of_them(store: RecordStore, memory: Memory) -> None:
    snoozed(memory)
    memory.switch.pause(ANA, SECRET_WORDS, NOW)
    memory.disowned.add(MACHINE, "nlp", "slack:T1/U7", NOW)
    memory.switch.resume(BEN, "over", NOW)
    before = entries(store)

    key, _ = find_person(store, "U7")
    forgotten = forget(store, key, NOW)

    assert (key, forgotten.records >= 3) == ("person:1", True)
    for part in ("Ana", "U7", SECRET_WORDS):
        assert part not in everything(store)
    assert entries(store) == before
    assert verify(store).problems == ()
    assert who_is(store, "person:1") == "person:1"
    assert memory.snoozes.active(NOW)[MACHINE].by == "person:1"
    assert memory.switch.state().by == BEN
    assert forget(store, key, NOW).records == 0  # safe to repeat


def test_who_was_forgotten_is_somebody_new_when_they_come_back(store: RecordStore, memory: Memory) -> None:
    snoozed(memory)
    forget(store, "person:1", NOW)
    memory.switch.pause(ANA, "", NOW)
    assert who_is(store, "person:2") == "slack:T1/U7"


def test_a_vote_that_waits_for_another_is_withdrawn_and_never_counts_twice(store: RecordStore, memory: Memory) -> None:
    memory.approvals.vote("d1", Vote("slack:T1/U7", NOW, NOW + DAY), 2, NOW)
    forget(store, "person:1", NOW)
    assert memory.approvals.votes("d1", NOW) == ()
    again = memory.approvals.vote("d1", Vote("slack:T1/U7", NOW, NOW + DAY), 2, NOW)
    assert not again.valid(NOW)
    assert len(again.votes) == 1
    assert memory.approvals.vote("d1", Vote(BEN, NOW, NOW + DAY), 2, NOW).valid(NOW)


def test_an_approval_that_was_used_keeps_how_many_gave_it(store: RecordStore, memory: Memory) -> None:
    memory.approvals.grant("d1", "slack:T1/U7", NOW, DAY)
    assert memory.approvals.use("d1", NOW)
    forget(store, "person:1", NOW)
    (record,) = store.query("approval")
    assert [vote["by"] for vote in record.body["votes"]] == ["person:1"]


def test_a_bare_name_is_not_taken_out_of_other_words(store: RecordStore, memory: Memory) -> None:
    memory.switch.pause("ops", "x", NOW)
    store.put(
        Record("snooze", "s", {"ref_text": MACHINE, "until": "", "by": "Ben", "reason": "ops asked", "at": ""}), 0
    )
    forget(store, "person:1", NOW)
    (record,) = store.query("snooze")
    assert record.body["reason"] == "ops asked"
    assert memory.switch.state().by == "person:1"


def test_whom_to_forget_must_be_one_person(store: RecordStore, memory: Memory) -> None:
    with pytest.raises(InvalidInputError, match="knows nobody as 'U7'"):
        find_person(store, "U7")
    snoozed(memory)
    memory.switch.pause("Ana Test (slack:T2/U9)", "", NOW)
    with pytest.raises(InvalidInputError, match="may be person:1, person:2"):
        find_person(store, "Ana Test")
    for named in ("person:2", "slack:T2/U9", "U9"):
        assert find_person(store, named)[0] == "person:2"
    with pytest.raises(InvalidInputError, match="there is no 'person:9'"):
        forget(store, "person:9", NOW)


# retention


def with_run(memory: Memory, run_id: str, at: datetime, *, shards: tuple[str, ...] = ("a", "b"), each: int = 3) -> None:
    memory.runs.begin(run_id, "idle_gpu", at)
    for shard in shards:
        for number in range(each):
            facts = {"number": number, "reason_facts": {"by": ANA, "cause": SECRET_WORDS}}
            AuditTrail(memory.store).append(AuditEntry(at, run_id, shard, AuditWhat.TRANSITION, facts))
    memory.runs.finish(run_id, {}, at + timedelta(minutes=1))


def test_old_runs_lose_their_contents_and_the_audit_stays_whole(store: RecordStore, memory: Memory) -> None:
    with_run(memory, "old", NOW - 200 * DAY, each=50)
    with_run(memory, "new", NOW - 99 * DAY)
    kept = [entry for entry in entries(store) if entry["run_id"] == "new"]

    assert prunable(store, 100 * DAY, NOW) == prune(store, 100 * DAY, NOW)

    old = [entry for entry in entries(store) if entry["run_id"] == "old"]
    assert [sorted(entry) for entry in old] == [["hash", "previous", "pruned", "run_id", "seq", "shard"]] * 100
    assert [entry for entry in entries(store) if entry["run_id"] == "new"] == kept
    assert SECRET_WORDS not in json.dumps([dict(one.body) for one in store.query(WORDS) if one.key.startswith("old/")])
    assert verify(store).problems == ()
    assert prune(store, 100 * DAY, NOW).entries == 0
    (said, other) = (entry["facts"] for entry in entries(store) if entry["shard"] == "retention")
    assert (said["chain"], other["chain"], said["entries"]) == ("old/a", "old/b", 50)


def test_nothing_is_pruned_early_or_before_its_run_anchored_it(store: RecordStore, memory: Memory) -> None:
    with pytest.raises(InvalidInputError, match="90 days at least"):
        prune(store, SHORTEST - DAY, NOW)
    memory.runs.begin("open", "idle_gpu", NOW - 300 * DAY)
    AuditTrail(store).append(AuditEntry(NOW - 300 * DAY, "open", "a", AuditWhat.INTENT))
    memory.switch.pause("ana", "", NOW - 300 * DAY)
    assert prune(store, 100 * DAY, NOW).chains == 0


def test_a_pruned_chain_still_shows_what_is_altered_in_it(store: RecordStore, memory: Memory) -> None:
    with_run(memory, "old", NOW - 200 * DAY)
    prune(store, 100 * DAY, NOW)
    stub = next(record for record in store.query(ENTRY, "old/a/"))
    store.put(replace(stub, body={**stub.body, "hash": "0" * 64}), stub.version)
    assert verify(store).problems


def test_contents_that_vanish_without_a_word_are_told(store: RecordStore, memory: Memory) -> None:
    with_run(memory, "old", NOW - 200 * DAY)
    for record in store.query(ENTRY, "old/a/"):
        kept = {name: record.body[name] for name in ("run_id", "shard", "seq", "previous", "hash")}
        store.transact((Put(replace(record, body={**kept, "pruned": True}), record.version),))
    assert any("no entry of operator/retention says so" in problem for problem in verify(store).problems)


def test_contents_that_vanish_before_their_time_are_told(store: RecordStore, memory: Memory) -> None:
    with_run(memory, "young", NOW - 100 * DAY)
    prune(store, SHORTEST, NOW)
    assert verify(store).problems == ()
    with_run(memory, "younger", NOW - 10 * DAY)
    run = memory.runs.get("younger")
    assert run is not None
    assert run.finished_at is not None
    head = run.heads["a"]
    facts = {"did": "pruned", "chain": "younger/a", "entries": head.entries, "head": head.hash}
    said = {**facts, "finished_at": run.finished_at.isoformat(), "older_than_days": 90}
    AuditTrail(store).append(AuditEntry(NOW, "operator", "retention", AuditWhat.RETENTION, said))
    for record in store.query(ENTRY, "younger/a/"):
        kept = {name: record.body[name] for name in ("run_id", "shard", "seq", "previous", "hash")}
        store.transact((Put(replace(record, body={**kept, "pruned": True}), record.version),))
    assert any("before its time" in problem for problem in verify(store).problems)


def test_pruning_that_was_broken_off_goes_on_where_it_was(store: RecordStore, memory: Memory) -> None:
    with_run(memory, "old", NOW - 200 * DAY)
    (first, *_) = store.query(ENTRY, "old/a/")
    prune(store, 100 * DAY, NOW)
    words = store.get(WORDS, first.key)
    assert words is not None
    assert words.body["said"] == {}
    assert verify(store).problems == ()
    assert len([entry for entry in entries(store) if entry["shard"] == "retention"]) == 2
    prune(store, 100 * DAY, NOW + DAY)
    assert len([entry for entry in entries(store) if entry["shard"] == "retention"]) == 2
