"""What a run that saw an action complete writes of its saving, and what later runs make of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from tests.builders import DAY, NOW, case, finding, instance, ref, usd
from tests.savings_builders import HOUR, saving, sighting

from costguard.adapters.ledgers import open_ledger
from costguard.cases import CaseStatus, Phase
from costguard.cases.case import climbed
from costguard.domain.actions import Action, Outcome, Saving, Verb
from costguard.domain.money import Bill, ChargeCategory, HourlyRate, PricingCategory, SpendLine, SpendScope
from costguard.domain.reasons import Reason, ReasonCode
from costguard.domain.refs import ResourceRef, Shard
from costguard.domain.remediations import Remediation, RemediationKind
from costguard.domain.resources import InstanceState
from costguard.domain.savings import SavingChange, SavingStanding, Sighting
from costguard.engine.ledger.listing import lists_are_whole
from costguard.engine.ledger.memory import Memory
from costguard.engine.run.settlement import settle_observed
from costguard.planning import Plan, Transition
from costguard.planning.savings import confirmed_saving
from costguard.ports import Target

RATE = HourlyRate(usd("3.06"), "test", "2026-01-01")
KEPT = (("volume", usd("0.02")),)
STOPPED = replace(finding(instance()), rate=RATE)


def test_what_is_billed_while_stopped_saves_nothing_by_its_stop() -> None:
    assert confirmed_saving(STOPPED, KEPT, billed_while_stopped=True) == Saving(None, KEPT, price=RATE)
    assert confirmed_saving(STOPPED, KEPT) == Saving(usd("3.06"), KEPT, price=RATE)


@pytest.fixture(params=["by lists", "all of them"])
def memory(request: pytest.FixtureRequest) -> Iterator[Memory]:
    """Savings are read by lists, and all of them where an older version was at work: no test may tell."""
    store = open_ledger("memory:")
    made = Memory.over(store)
    if request.param == "by lists":
        made.runs.begin("run-0", "idle_gpu", NOW)
    assert lists_are_whole(store) is (request.param == "by lists")
    yield made
    store.close()


def asked(memory: Memory, verb: Verb = Verb.STOP, **changes: Any) -> Action:
    """What was asked of the cloud for the case, an hour ago."""
    made = Action(f"a-{verb.value}", "d-1", verb, ref(), ref(), "epoch-1", "case-1", 1, "research", "digest")
    action = replace(made, **changes)
    assert memory.intents.claim(action, "run-0", NOW - timedelta(hours=1))
    return action


def plan(*steps: Transition, at: datetime = NOW, **more: Any) -> Plan:
    made = Plan("idle_gpu", "run", at, "digest", (STOPPED,), steps, (), (), (), ())
    return replace(made, **more)


def seen_stopped() -> Transition:
    before = case(phase=Phase.CONFIRMING, claimed_at=NOW - timedelta(minutes=5))
    return Transition(before, climbed(before, Verb.STOP, NOW))


def seen_closed(code: ReasonCode, **changes: Any) -> Transition:
    before = case(phase=Phase.CONFIRMING, **changes)
    return Transition(before, replace(before, status=CaseStatus.CLOSED, reason=Reason(code), closed_at=NOW))


@pytest.mark.parametrize(
    ("billed", "saves"),
    [(frozenset({ref()}), None), (frozenset({ref("i-2")}), usd("3.06")), (frozenset[ResourceRef](), usd("3.06"))],
)
def test_a_stop_seen_complete_is_recorded_with_what_it_really_saves(
    memory: Memory, billed: frozenset[ResourceRef], saves: object
) -> None:
    asked(memory)
    settle_observed(memory, plan(seen_stopped(), at=NOW + DAY), billed)
    (recorded,) = memory.savings.all()
    assert recorded.action.saving is not None
    assert (recorded.action.saving.stops_billing, recorded.confirmed_at) == (saves, NOW)
    assert (recorded.action.action_id, recorded.guard, recorded.billed_on) == ("a-stop", "idle_gpu", saves is None)


def test_what_a_commitment_covers_is_read_from_the_bill_that_a_budget_keeps(memory: Memory) -> None:
    """28 under a Savings Plan is 100 at list price by the deepest discount; as much ran outside of it."""
    asked(memory)
    day = NOW.replace(hour=0, minute=0) - 2 * DAY
    plain = SpendLine(
        "aws", "1", "111122223333", "", "AmazonEC2", ChargeCategory.USAGE, day, day + DAY, usd("100"), usd("100")
    )
    free = replace(plain, instance_type="g5g.xlarge", accelerated=True)
    planned = replace(free, billed_cost=usd("0"), effective_cost=usd("28"), pricing_category=PricingCategory.COMMITTED)
    bill = Bill("aws", (free, planned), NOW - 30 * DAY, NOW - DAY, NOW, "aws-cost-explorer")
    memory.bills.put(Target("aws"), SpendScope(), bill, NOW - 30 * DAY)
    settle_observed(memory, plan(seen_stopped(), sightings=(sighting(),)))
    (recorded,) = memory.savings.all()
    assert recorded.coverage is not None
    assert (recorded.coverage.uncovered, recorded.coverage.source) == (Decimal("0.5000"), "aws-cost-explorer")


def test_it_is_recorded_once_and_also_by_a_later_run(memory: Memory) -> None:
    """A run may end between what it committed and what it wrote of savings."""
    asked(memory)
    still = Transition(seen_stopped().after, seen_stopped().after)
    for _ in range(2):
        settle_observed(memory, plan(still, at=NOW + DAY))
    (recorded,) = memory.savings.all()
    assert recorded.confirmed_at == NOW


def test_what_another_case_stopped_is_recorded_by_that_case(memory: Memory) -> None:
    asked(memory, case_id="case-2", action_id="a-2")
    settle_observed(memory, plan(seen_stopped()))
    assert memory.savings.all() == ()


def test_a_stop_that_was_refused_saved_nothing(memory: Memory) -> None:
    memory.intents.settle(asked(memory), Outcome.REFUSED, NOW, None, "", "run-0")
    settle_observed(memory, plan(seen_stopped()))
    assert memory.savings.all() == ()


def test_a_price_that_is_gone_by_then_is_the_one_it_was_decided_by(memory: Memory) -> None:
    asked(memory, saving=Saving(usd("3.06"), KEPT, price=RATE))
    settle_observed(memory, plan(seen_stopped(), findings=()))
    (recorded,) = memory.savings.all()
    assert recorded.action.saving == Saving(usd("3.06"), KEPT, price=RATE)


def test_a_termination_saves_what_its_stop_did(memory: Memory) -> None:
    asked(memory, saving=Saving(usd("3.06"), KEPT, price=RATE))
    settle_observed(memory, plan(seen_stopped()))
    asked(memory, Verb.TERMINATE, saving=Saving(None, KEPT, price=RATE))
    settle_observed(memory, plan(seen_closed(ReasonCode.TERMINATED), at=NOW + DAY))
    terminated, stop = sorted(memory.savings.all(), key=lambda one: one.action.verb, reverse=True)
    assert (stop.ended_at, terminated.confirmed_at) == (None, NOW + DAY)
    assert terminated.action.saving == stop.action.saving


def test_what_could_not_be_stopped_first_saves_its_price_too(memory: Memory) -> None:
    asked(memory, Verb.TERMINATE, saving=Saving(usd("3.06"), KEPT, price=RATE))
    settle_observed(memory, plan(seen_closed(ReasonCode.TERMINATED)))
    (terminated,) = memory.savings.all()
    assert terminated.action.saving == Saving(usd("3.06"), KEPT, price=RATE)


@pytest.mark.parametrize(
    ("kind", "recorded"),
    [(RemediationKind.RELEASE_ADDRESS, 1), (RemediationKind.DETACH_ADDRESS, 0), (RemediationKind.ENABLE_FLOW_LOGS, 0)],
)
def test_of_all_mends_only_an_address_that_is_released_saves(
    memory: Memory, kind: RemediationKind, recorded: int
) -> None:
    address = ref("eipalloc-1", "address")
    worth = Saving(usd("0.005"), price=RATE)
    asked(memory, Verb.MEND, subject=address, resource=address, mend=Remediation(kind, address), saving=worth)
    settle_observed(memory, plan(seen_closed(ReasonCode.MENDED, subject=address)))
    assert [(one.action.subject, one.confirmed_at) for one in memory.savings.all()] == [(address, NOW)] * recorded


def test_a_closed_case_that_did_nothing_saves_nothing(memory: Memory) -> None:
    asked(memory)
    settle_observed(memory, plan(seen_closed(ReasonCode.RECOVERED)))
    assert memory.savings.all() == ()


def look(*seen: Sighting, at: datetime) -> Plan:
    return plan(at=at, sightings=seen, looked=(ref().shard,))


def test_what_changed_is_written_before_the_look_that_saw_it(memory: Memory) -> None:
    """A run that ends in between counts too little for a while, never too much."""
    memory.savings.record(saving(at=NOW))
    settle_observed(memory, look(sighting(), at=NOW + DAY))
    settle_observed(memory, look(at=NOW + 2 * DAY))
    (gone,) = memory.savings.all()
    assert gone.last == SavingChange(SavingStanding.GONE, NOW + DAY)
    assert memory.savings.looks() == {ref().shard: NOW + 2 * DAY}


def test_a_look_at_another_shard_or_an_older_one_says_nothing(memory: Memory) -> None:
    memory.savings.record(saving(at=NOW))
    settle_observed(memory, look(sighting(), at=NOW + DAY))
    settle_observed(memory, look(at=NOW + HOUR))
    settle_observed(memory, replace(look(at=NOW + 2 * DAY), looked=(Shard("aws", "1", "eu-west-1"),)))
    (known,) = memory.savings.all()
    assert known.changes == ()
    assert memory.savings.looks() == {ref().shard: NOW + DAY}


def test_that_a_terminated_machine_is_gone_is_no_news_of_its_stop(memory: Memory) -> None:
    memory.savings.record(saving(at=NOW))
    memory.savings.record(saving(at=NOW + DAY, verb=Verb.TERMINATE))
    settle_observed(memory, look(at=NOW + 2 * DAY))
    assert [one.changes for one in memory.savings.all()] == [(), ()]


def test_one_new_machine_replaces_one_of_two_that_are_alike(memory: Memory) -> None:
    for name in ("i-1", "i-2"):
        memory.savings.record(saving(name, NOW))
    stopped = (sighting("i-1"), sighting("i-2"))
    new = sighting("i-9", state=InstanceState.RUNNING, run_epoch="e", launched_at=NOW + HOUR)
    for day in (1, 2):
        settle_observed(memory, look(*stopped, new, at=NOW + day * DAY))
    assert [one.last.standing if one.last else None for one in memory.savings.all()] == [SavingStanding.REPLACED, None]


def test_what_costguard_had_stopped_replaces_no_other(memory: Memory) -> None:
    for name in ("i-1", "i-2"):
        memory.savings.record(saving(name, NOW))
    back = sighting("i-2", state=InstanceState.RUNNING, run_epoch="epoch-2", launched_at=NOW + HOUR)
    settle_observed(memory, look(sighting("i-1"), back, at=NOW + DAY))
    first, second = memory.savings.all()
    assert (first.last, second.last) == (None, SavingChange(SavingStanding.RESTARTED, NOW + HOUR))


def test_what_ran_again_replaces_no_other_on_any_later_day(memory: Memory) -> None:
    for name in ("i-1", "i-2"):
        memory.savings.record(saving(name, NOW))
    back = sighting("i-2", state=InstanceState.RUNNING, run_epoch="epoch-2", launched_at=NOW + HOUR)
    for day in range(1, 4):
        settle_observed(memory, look(sighting("i-1"), back, at=NOW + day * DAY))
    first, second = memory.savings.all()
    assert (first.last, second.last) == (None, SavingChange(SavingStanding.RESTARTED, NOW + HOUR))


def test_a_termination_goes_on_from_a_stop_that_was_replaced(memory: Memory) -> None:
    asked(memory, saving=Saving(usd("3.06"), KEPT, price=RATE))
    settle_observed(memory, plan(seen_stopped(), sightings=(sighting(),)))
    new = sighting("i-9", state=InstanceState.RUNNING, run_epoch="e", launched_at=NOW + HOUR)
    settle_observed(memory, look(sighting(), new, at=NOW + DAY))
    asked(memory, Verb.TERMINATE, saving=Saving(None, KEPT, price=RATE))
    settle_observed(memory, plan(seen_closed(ReasonCode.TERMINATED), at=NOW + 2 * DAY))
    stop, terminated = memory.savings.all()
    assert stop.last is not None
    assert (stop.last.standing, terminated.machine) == (SavingStanding.REPLACED, sighting())


def test_a_case_that_stops_twice_saves_once(memory: Memory) -> None:
    """Its machine ran again in between, so that the first saving ended."""
    asked(memory)
    settle_observed(memory, plan(seen_stopped(), sightings=(sighting(),)))
    back = sighting(state=InstanceState.RUNNING, run_epoch="epoch-2", launched_at=NOW + HOUR)
    settle_observed(memory, look(back, at=NOW + DAY))
    asked(memory, action_id="a-stop-2", run_epoch="epoch-2")
    settle_observed(memory, plan(seen_stopped(), at=NOW + 2 * DAY))
    assert [one.action.action_id for one in memory.savings.all()] == ["a-stop"]
