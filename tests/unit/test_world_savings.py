"""A stop that the cloud bills all the same is recorded without a saving."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from tests.builders import DAY, NOW, case, finding, instance, ref, usd

from costguard.cases import Phase
from costguard.cases.moves import climbed
from costguard.domain.actions import Saving, Verb
from costguard.domain.money import HourlyRate
from costguard.domain.refs import ResourceRef
from costguard.engine.aftermath import settle_observed
from costguard.engine.memory import Memory
from costguard.ledgers import open_ledger
from costguard.planning import Plan, Transition
from costguard.planning.savings import confirmed_saving

RATE = HourlyRate(usd("3.06"), "test", "2026-01-01")
KEPT = (("volume", usd("0.02")),)
STOPPED = replace(finding(instance()), rate=RATE)


def test_what_is_billed_while_stopped_saves_nothing_by_its_stop() -> None:
    assert confirmed_saving(STOPPED, KEPT, billed_while_stopped=True) == Saving(None, KEPT)
    assert confirmed_saving(STOPPED, KEPT) == Saving(usd("3.06"), KEPT)


@pytest.mark.parametrize(
    ("billed", "saves"),
    [(frozenset({ref()}), None), (frozenset({ref("i-2")}), usd("3.06")), (frozenset[ResourceRef](), usd("3.06"))],
)
def test_a_stop_seen_complete_is_recorded_with_what_it_really_saves(
    billed: frozenset[ResourceRef], saves: object
) -> None:
    before = case(phase=Phase.CONFIRMING, claimed_at=NOW - timedelta(minutes=5))
    after = climbed(before, Verb.STOP, NOW)
    step = Transition(before, after)
    plan = Plan("idle_gpu", "run", NOW + DAY, "digest", (STOPPED,), (step,), (), (), (), ())
    store = open_ledger("memory:")
    memory = Memory.over(store)
    settle_observed(memory, plan, billed)
    (recorded,) = memory.savings.all()
    store.close()
    assert recorded.action.saving is not None
    assert (recorded.action.saving.stops_billing, recorded.confirmed_at) == (saves, NOW)
