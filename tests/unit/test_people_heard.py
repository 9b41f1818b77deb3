"""What people said while a step was on its way: read last before the call, and its records must not move after that."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
from tests.builders import NOW, case

from costguard.adapters.ledgers import open_ledger
from costguard.domain.reasons import Reason, ReasonCode
from costguard.engine.ledger.memory import Memory
from costguard.engine.ledger.snoozes import Snooze
from costguard.engine.run.run_context import people_heard

OURS = case(owner="nlp")


@pytest.fixture
def memory() -> Iterator[Memory]:
    store = open_ledger("memory:")
    yield Memory.over(store)
    store.close()


def test_nobody_said_anything(memory: Memory) -> None:
    heard = people_heard(memory, OURS, NOW)

    assert not isinstance(heard, Reason)
    assert {check.kind for check in heard} == {"snooze", "switch", "disowned"}


def test_a_snooze_speaks_against_it(memory: Memory) -> None:
    memory.snoozes.set(Snooze(str(OURS.subject), NOW + timedelta(hours=1), "nlp", "", NOW))

    heard = people_heard(memory, OURS, NOW)

    assert isinstance(heard, Reason)
    assert heard.code is ReasonCode.SNOOZED


def test_an_owner_who_said_that_it_is_not_theirs_speaks_against_it(memory: Memory) -> None:
    """Whoever owns it was not told yet."""
    memory.disowned.add(str(OURS.subject), "nlp", "slack:T1/U1", NOW)

    heard = people_heard(memory, OURS, NOW)

    assert isinstance(heard, Reason)
    assert heard.code is ReasonCode.OWNER_CHANGED


def test_what_another_owner_said_before_does_not(memory: Memory) -> None:
    memory.disowned.add(str(OURS.subject), "vision", "slack:T1/U1", NOW)

    assert not isinstance(people_heard(memory, OURS, NOW), Reason)


def test_a_pause_speaks_against_it(memory: Memory) -> None:
    memory.switch.pause("operator", "look first", NOW)

    heard = people_heard(memory, OURS, NOW)

    assert isinstance(heard, Reason)
    assert heard.code is ReasonCode.KILL_SWITCH
