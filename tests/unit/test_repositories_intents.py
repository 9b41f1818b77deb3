"""NEVER rules 6 and 19: one intent per action, written with its audit entry before anything is called."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from tests.builders import case
from tests.contract.ledger_fakes import CountingStore, InterferingStore, fail

from costguard.adapters.ledgers import open_ledger
from costguard.cases import Case
from costguard.domain.actions import Action, Outcome, Receipt, Verb
from costguard.domain.errors import LedgerError
from costguard.domain.refs import ResourceRef
from costguard.engine.ledger.audit.verify import verify
from costguard.engine.ledger.intents import Intent, IntentRepository
from costguard.engine.ledger.runs import RunRepository
from costguard.ports import RecordStore

NOW = datetime(2026, 3, 1, 12, tzinfo=timezone.utc)
LATER = NOW + timedelta(minutes=5)
MACHINE = ResourceRef("aws", "111122223333", "us-east-1", "instance", "i-1")


def action(action_id: str = "act-1", case_id: str = "case-1", **changes: Any) -> Action:
    fields: dict[str, Any] = {
        "action_id": action_id,
        "decision_id": "decision-1",
        "verb": Verb.STOP,
        "subject": MACHINE,
        "resource": MACHINE,
        "run_epoch": "epoch",
        "case_id": case_id,
        "rung": 1,
        "rule": "research",
        "rule_digest": "digest",
        **changes,
    }
    return Action(**fields)


@pytest.fixture
def store() -> Iterator[RecordStore]:
    ledger = open_ledger("memory:")
    RunRepository(ledger).begin("run-1", "idle_gpu", NOW)
    yield ledger
    ledger.close()


@pytest.fixture
def intents(store: RecordStore) -> IntentRepository:
    return IntentRepository(store)


def audited(store: RecordStore) -> list[tuple[str, str]]:
    return [(record.body["run_id"], record.body["what"]) for record in store.query("audit")]


def test_a_claim_writes_the_intent_and_its_audit_entry(store: RecordStore, intents: IntentRepository) -> None:
    assert intents.claim(action(), "run-1", NOW)

    assert intents.get("act-1") == Intent(action(), "run-1", NOW)
    assert audited(store) == [("run-1", "intent")]
    assert verify(store).problems == ()


def test_a_second_claim_is_refused_and_writes_nothing(store: RecordStore, intents: IntentRepository) -> None:
    intents.claim(action(), "run-1", NOW)

    assert not intents.claim(action(), "run-2", LATER)
    assert not intents.claim(action(case_id="another case"), "run-2", LATER)

    assert intents.get("act-1") == Intent(action(), "run-1", NOW)
    assert audited(store) == [("run-1", "intent")]


def test_a_claim_after_a_refused_call_is_still_refused(intents: IntentRepository) -> None:
    intents.claim(action(), "run-1", NOW)
    intents.settle("act-1", Outcome.REFUSED, NOW, None, "quota", "run-1")

    assert not intents.claim(action(), "run-2", LATER)


def test_of_many_threads_one_claims(store: RecordStore) -> None:
    line = threading.Barrier(6)

    def race(number: int) -> bool:
        line.wait()
        return IntentRepository(store).claim(action(), f"run-{number}", NOW)

    with ThreadPoolExecutor(6) as pool:
        assert sum(pool.map(race, range(6))) == 1
    assert len(audited(store)) == 1


def test_a_claim_lost_between_looking_and_writing_is_refused(store: RecordStore) -> None:
    interfering = InterferingStore(store)
    interfering.before_writes.append(lambda: IntentRepository(store).claim(action(), "run-1", NOW))

    assert not IntentRepository(interfering).claim(action(), "run-2", NOW)
    assert audited(store) == [("run-1", "intent")]


def test_another_action_of_the_same_shard_in_the_same_moment_takes_no_claim_away(store: RecordStore) -> None:
    interfering = InterferingStore(store)
    neighbour = action("act-2", subject=MACHINE.sibling("instance", "i-2"))
    interfering.before_writes.append(lambda: IntentRepository(store).claim(neighbour, "run-1", NOW))

    assert IntentRepository(interfering).claim(action("act-1"), "run-1", NOW)
    assert len(audited(store)) == 2
    assert verify(store).problems == ()


def test_two_cases_never_both_stop_the_same_run_of_a_machine(store: RecordStore) -> None:
    """A machine that is idle and whose budget is spent has a case of each guard; it is stopped once."""
    intents = IntentRepository(store)
    assert intents.claim(action("act-1"), "run-1", NOW)
    assert not intents.claim(action("act-2", case_id="case-2"), "run-2", NOW)
    intents.settle("act-1", Outcome.UNKNOWN, NOW, None, "", "run-1")
    assert not intents.claim(action("act-2", case_id="case-2"), "run-2", NOW)


def test_two_cases_that_begin_in_the_same_moment_stop_once(store: RecordStore) -> None:
    interfering = InterferingStore(store)
    other = action("act-2", case_id="case-2")
    interfering.before_writes.append(lambda: IntentRepository(store).claim(other, "run-2", NOW))

    assert not IntentRepository(interfering).claim(action("act-1"), "run-1", NOW)


@pytest.mark.parametrize("outcome", [Outcome.REFUSED, Outcome.HAD_NO_EFFECT])
def test_a_stop_known_to_have_changed_nothing_leaves_the_machine_to_others(
    store: RecordStore, outcome: Outcome
) -> None:
    intents = IntentRepository(store)
    intents.claim(action("act-1"), "run-1", NOW)
    intents.settle("act-1", outcome, NOW, None, "", "run-1")
    assert intents.claim(action("act-2", case_id="case-2"), "run-2", NOW)


def test_a_later_run_of_the_machine_may_be_stopped_again(store: RecordStore) -> None:
    intents = IntentRepository(store)
    intents.claim(action("act-1"), "run-1", NOW)
    assert intents.claim(action("act-2", case_id="case-2", run_epoch="later"), "run-2", NOW)


def test_without_a_ledger_there_is_no_claim(store: RecordStore) -> None:
    interfering = InterferingStore(store)
    interfering.before_writes.append(fail)

    with pytest.raises(LedgerError):
        IntentRepository(interfering).claim(action(), "run-1", NOW)
    assert IntentRepository(store).get("act-1") is None


def test_an_outcome_is_kept_and_audited(store: RecordStore, intents: IntentRepository) -> None:
    intents.claim(action(), "run-1", NOW)
    receipt = Receipt("req-1", "snap-1")

    intents.settle(action(), Outcome.ACCEPTED, NOW, receipt, "", "run-1")
    settled = intents.settle("act-1", Outcome.TOOK_EFFECT, LATER, None, "seen stopped", "run-2")

    assert settled == Intent(action(), "run-1", NOW, Outcome.TOOK_EFFECT, receipt, "seen stopped", LATER)
    assert intents.get("act-1") == settled
    assert audited(store) == [("run-1", "intent"), ("run-1", "outcome"), ("run-2", "outcome")]


def test_the_same_outcome_twice_is_written_once(store: RecordStore, intents: IntentRepository) -> None:
    intents.claim(action(), "run-1", NOW)
    for moment in (NOW, LATER):
        intents.settle("act-1", Outcome.ACCEPTED, moment, None, "", "run-1")

    assert len(audited(store)) == 2


@pytest.mark.parametrize("final", [Outcome.TOOK_EFFECT, Outcome.HAD_NO_EFFECT, Outcome.REFUSED])
@pytest.mark.parametrize("less", [Outcome.UNKNOWN, Outcome.ACCEPTED])
def test_knowing_less_never_replaces_knowing_more(intents: IntentRepository, final: Outcome, less: Outcome) -> None:
    intents.claim(action(), "run-1", NOW)
    settled = intents.settle("act-1", final, NOW, None, "", "run-1")

    assert intents.settle("act-1", less, LATER, None, "late", "run-2") == settled
    assert intents.get("act-1") == settled


def test_an_effect_that_shows_late_corrects_the_outcome(intents: IntentRepository) -> None:
    intents.claim(action(), "run-1", NOW)
    intents.settle("act-1", Outcome.HAD_NO_EFFECT, NOW, None, "", "run-1")

    assert intents.settle("act-1", Outcome.TOOK_EFFECT, LATER, None, "", "run-2").outcome is Outcome.TOOK_EFFECT


def test_what_was_never_claimed_cannot_be_settled(intents: IntentRepository) -> None:
    with pytest.raises(LedgerError, match="no intent"):
        intents.settle("act-1", Outcome.ACCEPTED, NOW, None, "", "run-1")


def test_a_case_knows_its_intents_and_which_are_open(intents: IntentRepository) -> None:
    outcomes = [None, Outcome.UNKNOWN, Outcome.ACCEPTED, Outcome.REFUSED, Outcome.TOOK_EFFECT, Outcome.HAD_NO_EFFECT]
    for number, outcome in enumerate(outcomes):
        intents.claim(action(f"act-{number}"), "run-1", NOW)
        if outcome is not None:
            intents.settle(f"act-{number}", outcome, NOW, None, "", "run-1")
    for other in ("case-1/x", "case-10", "case"):
        intents.claim(action(f"of {other}", other), "run-1", NOW)

    assert [intent.outcome for intent in intents.for_case("case-1")] == outcomes
    assert [intent.settled for intent in intents.for_case("case-1")] == [False] * 3 + [True] * 3
    assert intents.for_case("unknown") == ()


def decided(number: int) -> Case:
    """The n-th case, with this decision under way."""
    subject = replace(MACHINE, native_id=f"i-{number}")
    return replace(case(subject=subject), case_id=f"case-{number}", decision_id=f"d-{number}")


def for_decision(of: Case, **changes: Any) -> Action:
    named = {"decision_id": of.decision_id, "subject": of.subject, "resource": of.subject, **changes}
    return action(changes.pop("action_id", of.decision_id), of.case_id, **{**named, **changes})


def test_what_many_decisions_began_is_read_together(store: RecordStore, intents: IntentRepository) -> None:
    cases = [decided(number) for number in range(20)]
    for one in cases[:-1]:
        assert intents.claim(for_decision(one), "run-1", NOW)
    counting = CountingStore(store)

    found = IntentRepository(counting).of_decisions(cases)

    assert [len(found[one.case_id]) for one in cases] == [1] * 19 + [0]
    assert counting.asked == [("get_many", "intent"), ("query", "intent")], "the one that has none is looked for"


def test_every_copy_of_a_decision_is_found(intents: IntentRepository) -> None:
    """One action a volume, each under an id of its own; a set of volumes may be one under the decision's."""
    copying = decided(1)
    for volume in ("", "vol-1", "vol-2"):
        named = f"{copying.decision_id}-{volume}" if volume else copying.decision_id
        assert intents.claim(replace(for_decision(copying, verb=Verb.SNAPSHOT), action_id=named), "run-1", NOW)

    assert len(intents.of_decisions([copying])[copying.case_id]) == 3


def test_effects_that_were_seen_are_written_together(store: RecordStore, intents: IntentRepository) -> None:
    cases = [decided(number) for number in range(40)]
    for one in cases:
        assert intents.claim(for_decision(one), "run-1", NOW)
    begun = [intent for found in intents.of_decisions(cases).values() for intent in found]
    counting = CountingStore(store)

    settled = IntentRepository(counting).settle_seen(begun, LATER, "run-1")

    assert [intent.outcome for intent in settled] == [Outcome.TOOK_EFFECT] * 40
    assert settled == [intents.get(intent.action.action_id) for intent in begun]
    assert len(counting.asked) <= 5
    assert verify(store).problems == ()
    assert audited(store).count(("run-1", "outcome")) == 40


def test_an_effect_is_written_although_somebody_settled_another_meanwhile(store: RecordStore) -> None:
    intents, cases = IntentRepository(store), [decided(1), decided(2)]
    for one in cases:
        assert intents.claim(for_decision(one), "run-1", NOW)
    begun = [intent for found in intents.of_decisions(cases).values() for intent in found]
    interfering = InterferingStore(store)
    interfering.before_writes.append(lambda: intents.settle("d-1", Outcome.ACCEPTED, NOW, None, "", "run-1"))

    settled = IntentRepository(interfering).settle_seen(begun, LATER, "run-1")

    assert [intent.outcome for intent in settled] == [Outcome.TOOK_EFFECT] * 2
    assert verify(store).problems == ()
