"""The savings ledger: what is written once, what an older Costguard wrote, and what bills say to it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal

import pytest
from tests.builders import ref, usd
from tests.savings_builders import DAY, HOUR, MIDNIGHT, saving, sighting

from costguard.adapters.ledgers import open_ledger
from costguard.domain.money import Bill, ChargeCategory, Money, PricingCategory, SpendLine, SpendReport, SpendScope
from costguard.domain.refs import Shard
from costguard.domain.savings import SavingChange, SavingStanding
from costguard.engine.ledger.codec import to_body
from costguard.engine.ledger.memory import Memory
from costguard.engine.savings import keep_bill
from costguard.estimates.coverage import uncovered_in
from costguard.ports import Record, Target

HERE, THERE = Shard("aws", "111122223333", "us-east-1"), Shard("aws", "111122223333", "eu-west-1")
PAYER = Target("aws", "111122223333")
SCOPE, NARROW = SpendScope(), SpendScope(tags=(("team", "vision"),))


@pytest.fixture
def memory() -> Iterator[Memory]:
    store = open_ledger("memory:")
    yield Memory.over(store)
    store.close()


def test_a_saving_is_recorded_once_and_ends_once(memory: Memory) -> None:
    assert memory.savings.record(saving())
    assert not memory.savings.record(saving())
    gone = SavingChange(SavingStanding.GONE, MIDNIGHT + HOUR)
    memory.savings.change(saving(), gone)
    memory.savings.change(saving(), SavingChange(SavingStanding.RESTARTED, MIDNIGHT + 2 * HOUR))
    assert memory.savings.all() == (replace(saving(), changes=(gone,)),)


def test_the_same_change_is_written_once(memory: Memory) -> None:
    memory.savings.record(saving())
    for hour in (1, 2):
        memory.savings.change(saving(), SavingChange(SavingStanding.UNSEEN, MIDNIGHT + hour * HOUR))
    (known,) = memory.savings.all()
    assert known.changes == (SavingChange(SavingStanding.UNSEEN, MIDNIGHT + HOUR),)
    assert known.ended_at is None


def test_a_change_of_what_was_never_recorded_is_nothing(memory: Memory) -> None:
    memory.savings.change(saving(), SavingChange(SavingStanding.GONE, MIDNIGHT))
    assert memory.savings.all() == ()


def test_a_later_look_stands(memory: Memory) -> None:
    memory.savings.looked([HERE, THERE], MIDNIGHT + HOUR)
    memory.savings.looked([HERE], MIDNIGHT)
    memory.savings.looked([THERE], MIDNIGHT + 2 * HOUR)
    assert memory.savings.looks() == {HERE: MIDNIGHT + HOUR, THERE: MIDNIGHT + 2 * HOUR}


@pytest.mark.parametrize("ended_at", [None, "2026-03-11T00:00:00Z"])
def test_what_an_older_costguard_wrote_is_still_read(memory: Memory, ended_at: str | None) -> None:
    """Its one end had no reason; what it saved counts as far as it did."""
    action = to_body(saving().action)
    del action["saving"]["price"]
    body = {
        "action": action,
        "confirmed_at": "2026-03-10T00:00:00Z",
        "ended_at": ended_at,
    }
    memory.store.put(Record("saving", "case-i-1/case-i-1", body, schema=1), 0)
    (known,) = memory.savings.all()
    assert known.confirmed_at == MIDNIGHT
    assert known.ended_at == (MIDNIGHT + DAY if ended_at else None)
    assert (known.machine, known.guard) == (None, "")


def line(day: int, cost: str, native_id: str = "i-1", **changes: object) -> SpendLine:
    start = MIDNIGHT + day * DAY
    money = usd(cost)
    ordinary = SpendLine(
        "aws",
        "111122223333",
        "111122223333",
        "us-east-1",
        "ecs",
        ChargeCategory.USAGE,
        start,
        start + DAY,
        money,
        money,
    )
    return replace(ordinary, resource_id=native_id, **changes)  # type: ignore[arg-type]


def report(*lines: SpendLine, until: int) -> SpendReport:
    return SpendReport(lines, MIDNIGHT + until * DAY, MIDNIGHT + until * DAY, "test-bill")


def kept(memory: Memory) -> dict[str, list[str]]:
    return {
        bill.subject.native_id: [f"{charge.billed.amount}" for charge in bill.charges]
        for bill in memory.savings.bills().values()
    }


def test_a_bill_that_tells_of_the_machine_is_kept(memory: Memory) -> None:
    memory.savings.record(saving())
    read = report(line(-9, "7"), line(-1, "72"), line(2, "5"), line(2, "9", "i-other"), until=3)
    keep_bill(memory, PAYER, SCOPE, read, MIDNIGHT - 20 * DAY)
    assert kept(memory) == {"i-1": ["72", "5"]}, "of a week before the stop and since"


def test_a_bill_that_tells_of_no_machine_proves_nothing(memory: Memory) -> None:
    memory.savings.record(saving())
    keep_bill(memory, PAYER, SCOPE, report(line(-1, "72", ""), until=3), MIDNIGHT - 20 * DAY)
    keep_bill(memory, PAYER, SCOPE, replace(report(line(-1, "72"), until=3), complete_until=None), MIDNIGHT)
    keep_bill(memory, PAYER, SCOPE, report(line(-1, "72", sub_account_id="999900001111"), until=3), MIDNIGHT)
    keep_bill(memory, Target("alibaba"), SCOPE, report(line(-1, "72"), until=3), MIDNIGHT)
    assert kept(memory) == {}


def test_purchases_and_tax_are_no_running_cost(memory: Memory) -> None:
    memory.savings.record(saving())
    fee = line(1, "500", charge_category=ChargeCategory.PURCHASE)
    keep_bill(memory, PAYER, SCOPE, report(line(-1, "72"), fee, until=3), MIDNIGHT - 20 * DAY)
    assert kept(memory) == {"i-1": ["72"]}


def test_a_bill_read_again_replaces_what_it_holds_anew(memory: Memory) -> None:
    memory.savings.record(saving())
    keep_bill(memory, PAYER, SCOPE, report(line(-1, "72"), line(1, "3"), until=2), MIDNIGHT - 20 * DAY)
    keep_bill(memory, PAYER, SCOPE, report(line(2, "4"), until=3), MIDNIGHT)
    (bill,) = memory.savings.bills().values()
    assert (kept(memory), bill.complete_until) == ({"i-1": ["72", "4"]}, MIDNIGHT + 3 * DAY)


def test_a_scope_that_does_not_hold_the_machine_says_nothing_of_it(memory: Memory) -> None:
    """Else a budget of another team would confirm every saving by its silence."""
    memory.savings.record(saving())
    keep_bill(memory, PAYER, SCOPE, report(line(-1, "72"), until=1), MIDNIGHT - 20 * DAY)
    keep_bill(memory, PAYER, NARROW, report(until=4), MIDNIGHT - 20 * DAY)
    keep_bill(memory, PAYER, NARROW, report(line(2, "9"), until=4), MIDNIGHT - 20 * DAY)
    (bill,) = memory.savings.bills().values()
    assert (bill.scope, bill.complete_until) == (SCOPE, MIDNIGHT + DAY)
    keep_bill(memory, PAYER, NARROW, report(line(2, "9"), until=9), MIDNIGHT - 20 * DAY)
    (bill,) = memory.savings.bills().values()
    assert (bill.scope, bill.complete_until) == (NARROW, MIDNIGHT + 9 * DAY), "the other is read no more"


def condensed(*lines: SpendLine, until: int = 0) -> Bill:
    moment = MIDNIGHT + until * DAY
    return Bill("aws", lines, MIDNIGHT - 60 * DAY, moment, moment, "aws-cost-explorer")


def covered(*lines: SpendLine) -> Decimal | None:
    found = uncovered_in([condensed(*lines)], "111122223333", "g5g.xlarge", MIDNIGHT + 9 * HOUR)
    return None if found is None else found.uncovered


def of_type(day: int, cost: str, **changes: object) -> SpendLine:
    return line(day, cost, "", accelerated=True, instance_type="g5g.xlarge", **changes)


COMMITTED = {"pricing_category": PricingCategory.COMMITTED}


def test_what_commitments_cover_is_taken_at_the_deepest_discount() -> None:
    assert covered(of_type(-2, "100"), of_type(-2, "28", **COMMITTED)) == Decimal("0.5000")
    assert covered(of_type(-2, "28", **COMMITTED)) == Decimal(0)
    assert covered(of_type(-2, "100")) == Decimal(1)


def test_only_the_week_before_and_the_same_kind_of_machine_tell() -> None:
    assert covered() is None
    assert covered(of_type(-20, "100"), of_type(0, "100")) is None
    assert covered(replace(of_type(-2, "100"), instance_type="p5.48xlarge")) is None
    assert covered(replace(of_type(-2, "100"), sub_account_id="999900001111")) is None
    assert covered(replace(of_type(-2, "100"), charge_category=ChargeCategory.TAX)) is None


def test_of_several_bills_the_least_counts() -> None:
    bills = [
        condensed(of_type(-2, "100")),
        condensed(of_type(-2, "28", **COMMITTED)),
        replace(condensed(), complete_until=None),
    ]
    found = uncovered_in(bills, "111122223333", "g5g.xlarge", MIDNIGHT)
    assert found is not None
    assert (found.uncovered, found.source) == (Decimal(0), "aws-cost-explorer")


def test_the_bills_of_a_cloud_are_found_whatever_their_scope(memory: Memory) -> None:
    for scope in (SCOPE, NARROW):
        memory.bills.put(PAYER, scope, condensed(of_type(-2, "1")), MIDNIGHT - 30 * DAY)
    memory.bills.put(Target("aws-cn", "1"), SCOPE, replace(condensed(), cloud="aws-cn"), MIDNIGHT)
    assert len(memory.bills.of_cloud("aws")) == 2
    assert [bill.cloud for bill in memory.bills.of_cloud("aws-cn")] == ["aws-cn"]
    assert memory.bills.of_cloud("tencent") == ()


def test_what_is_written_reads_back_as_it_was(memory: Memory) -> None:
    whole = saving(
        machine=sighting(group="autoscaling:a", launched_by="user/vision", stopped_by="r"),
        changes=(SavingChange(SavingStanding.REPLACED, MIDNIGHT, ref("i-2"), "name"),),
        stop_request="r",
        worth=replace(saving().action.saving, kept=(("volume", Money(Decimal("0.10"), "CNY")), ("snapshot", None))),  # type: ignore[type-var]
    )
    memory.savings.record(whole)
    assert memory.savings.all() == (whole,)
