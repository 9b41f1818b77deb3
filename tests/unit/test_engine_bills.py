"""Bills: who pays, when they are read anew, and what an unread one leaves standing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from tests.builders import usd

from costguard.adapters.ledgers.open import open_ledger
from costguard.domain.errors import ThrottledError
from costguard.domain.money import ChargeCategory, SpendLine, SpendReport, SpendScope, VendorBudget
from costguard.domain.refs import Shard
from costguard.domain.resources import Gap, GapKind
from costguard.engine.guards.budgets.bills import READ_EVERY, Bills, payers, read_bills
from costguard.engine.ledger.budgets import BillRepository
from costguard.engine.run.scan import ThreadWorkers
from costguard.estimates.billed import condensed
from costguard.ports import RecordStore, Target

NOW = datetime(2026, 11, 21, 12, tzinfo=timezone.utc)
MONTH = NOW.replace(day=1, hour=0)
DAY = timedelta(days=1)
FINAL_AFTER = 7  # days, the bill of the month before
ALL = SpendScope()
ORGANISATION = Target("aws", organisation=True)


class Source:
    """A bill of a hundred a day, one line each, that remembers how it was asked."""

    def __init__(self, **changes: Any) -> None:
        self.asked: list[tuple[Target, tuple[SpendScope, ...], datetime]] = []
        self.fails = False
        self.cost = "100"
        self.changes = changes

    def read(
        self, target: Target, scopes: Sequence[SpendScope], since: datetime, until: datetime
    ) -> Mapping[SpendScope, SpendReport]:
        self.asked.append((target, tuple(scopes), since))
        if self.fails:
            raise ThrottledError("slow down", operation="ce:GetCostAndUsage")
        days = range((until - since).days)
        lines = tuple(charge(since + n * DAY, self.cost, cloud=target.cloud) for n in days)
        month = until.replace(day=1, hour=0)
        final = month if until.day > FINAL_AFTER else (month - DAY).replace(day=1)
        ordinary = SpendReport(lines, until - DAY, until, "test", final_until=final)
        return dict.fromkeys(scopes, replace(ordinary, **self.changes))

    def budgets(self, target: Target) -> Sequence[VendorBudget]:
        del target
        return ()


def charge(start: datetime, cost: str = "100", **changes: Any) -> SpendLine:
    paid = usd(cost)
    ordinary = SpendLine(
        "aws", "1", "1", "us-east-1", "AmazonEC2", ChargeCategory.USAGE, start, start + DAY, paid, paid
    )
    return replace(ordinary, **changes)


class Reader:
    """Reads one scope again and again over one ledger."""

    def __init__(self, store: RecordStore, *targets: Target, **changes: Any) -> None:
        self.source = Source(**changes)
        self.targets = targets or (ORGANISATION,)
        self.repository = BillRepository(store)

    def at(self, now: datetime, since: datetime = MONTH, scope: SpendScope = ALL, *, remember: bool = True) -> Bills:
        spends = {target.cloud: self.source for target in self.targets}
        return read_bills(
            spends, self.targets, {scope: since}, self.repository, ThreadWorkers(), now, remember=remember
        )

    @property
    def since(self) -> list[str]:
        return [f"{begin:%m-%d}" for _, _, begin in self.source.asked]


@pytest.fixture
def store() -> Iterator[RecordStore]:
    ledger = open_ledger("memory:")
    yield ledger
    ledger.close()


def total(bills: Bills, scope: SpendScope = ALL) -> Decimal:
    return sum((line.effective_cost.amount for bill in bills.of[scope] for line in bill.lines), Decimal(0))


def test_the_first_reading_goes_back_far_enough_to_forecast_and_whole_months(store: RecordStore) -> None:
    reader = Reader(store)
    bills = reader.at(NOW)
    assert reader.since == ["09-01"]
    assert total(bills) == 8100


def test_a_yearly_budget_is_read_from_its_beginning(store: RecordStore) -> None:
    reader = Reader(store)
    reader.at(NOW)
    reader.at(NOW, since=NOW.replace(month=1, day=1, hour=0))
    assert reader.since == ["09-01", "01-01"]


def test_a_bill_is_not_asked_for_again_before_it_can_have_changed(store: RecordStore) -> None:
    reader = Reader(store)
    reader.at(NOW)
    assert total(reader.at(NOW + READ_EVERY - timedelta(seconds=1))) == 8100
    assert len(reader.source.asked) == 1
    reader.at(NOW + READ_EVERY)
    assert reader.since[1:] == ["11-01"]


def test_early_in_a_month_the_month_before_is_read_again_for_it_is_not_final(store: RecordStore) -> None:
    reader = Reader(store)
    reader.at(NOW)
    reader.at(NOW.replace(month=12, day=3))
    assert reader.since[1:] == ["11-01"]


def test_a_month_is_read_once_more_after_it_is_final_and_then_no_more(store: RecordStore) -> None:
    """The last reading before that moment may lack what came just before it."""
    reader = Reader(store)
    reader.at(NOW)
    for day in (6, 7, 8, 9, 20):
        reader.at(NOW.replace(month=12, day=day))
    assert reader.since[1:] == ["11-01", "11-01", "11-01", "12-01", "12-01"]


def test_a_bill_of_which_nobody_says_when_it_is_final_is_read_with_the_month_before(store: RecordStore) -> None:
    reader = Reader(store, final_until=None)
    reader.at(NOW)
    reader.at(NOW + DAY)
    assert reader.since[1:] == ["10-01"]


def test_what_is_final_in_china_is_not_read_again_for_the_hours_before_it_in_utc(store: RecordStore) -> None:
    reader = Reader(store, final_until=MONTH - timedelta(hours=8), zone="Asia/Shanghai")
    reader.at(NOW)
    reader.at(NOW + DAY)
    assert reader.since[1:] == ["11-01"]


def test_corrections_replace_and_never_add_to_what_was_known(store: RecordStore) -> None:
    reader = Reader(store)
    reader.at(NOW)
    reader.source.cost = "50"
    assert total(reader.at(NOW + READ_EVERY)) == 61 * 100 + 20 * 50
    assert total(reader.at(NOW + READ_EVERY)) == 61 * 100 + 20 * 50


def test_a_bill_that_cannot_be_read_leaves_the_older_one_and_a_gap(store: RecordStore) -> None:
    reader = Reader(store)
    reader.at(NOW)
    reader.source.fails = True
    bills = reader.at(NOW + READ_EVERY)
    assert total(bills) == 8100
    assert [gap.what for gap in bills.gaps[ALL]] == ["bill"]
    assert bills.unread[ALL] == ()


def test_a_bill_never_read_is_named_unread(store: RecordStore) -> None:
    reader = Reader(store)
    reader.source.fails = True
    bills = reader.at(NOW)
    assert bills.of[ALL] == ()
    assert bills.unread[ALL] == ("aws",)


def test_a_report_with_a_gap_replaces_nothing(store: RecordStore) -> None:
    reader = Reader(store)
    reader.at(NOW)
    reader.source.changes = {"gaps": (Gap(Shard("aws", ""), "bill", GapKind.TRUNCATED, "page 2"),), "lines": ()}
    bills = reader.at(NOW + READ_EVERY)
    assert total(bills) == 8100
    assert bills.gaps[ALL][0].kind is GapKind.TRUNCATED


def test_a_bill_still_being_prepared_is_asked_for_at_every_run(store: RecordStore) -> None:
    reader = Reader(store, complete_until=None)
    reader.at(NOW)
    reader.at(NOW + timedelta(hours=1))
    assert len(reader.source.asked) == 2


def test_looking_without_remembering_writes_nothing(store: RecordStore) -> None:
    reader = Reader(store)
    assert total(reader.at(NOW, remember=False)) == 8100
    assert reader.repository.get(ORGANISATION, ALL) is None


def test_a_scope_that_holds_nothing_of_a_cloud_is_not_asked_for_there(store: RecordStore) -> None:
    reader = Reader(store, ORGANISATION, Target("tencent"))
    china = SpendScope(clouds=("tencent",))
    assert len(reader.at(NOW, scope=china).of[china]) == 1
    assert [target.cloud for target, _, _ in reader.source.asked] == ["tencent"]


def test_an_account_inside_an_organisation_that_is_read_is_not_counted_twice() -> None:
    member, stranger = Target("aws", "222222222222"), Target("aws", "999999999999")
    members = {ORGANISATION: ("111111111111", "222222222222"), member: ("222222222222",), stranger: ("999999999999",)}
    assert payers((ORGANISATION, member, stranger), members) == (ORGANISATION, stranger)
    assert payers((member, stranger), members) == (member, stranger)


def test_the_ledger_keeps_whose_days_a_bill_counts_in_and_opens_one_that_does_not_say(store: RecordStore) -> None:
    reader = Reader(store, zone="Asia/Shanghai")
    reader.at(NOW)
    known = reader.repository.get(ORGANISATION, ALL)
    assert known is not None
    assert known.zone == "Asia/Shanghai"
    (record,) = store.query("bill")
    before = {name: value for name, value in record.body.items() if name != "zone"}  # as it was written once
    store.put(replace(record, body=before), record.version)
    assert reader.repository.get(ORGANISATION, ALL) == replace(known, zone="")


def test_charges_alike_become_one_and_sums_stay_exact() -> None:
    lines = [charge(MONTH, "0.1", resource_id=f"i-{number}", tags={"n": str(number)}) for number in range(30)]
    (merged,) = condensed(lines)
    assert merged.effective_cost == usd("3.0")
    assert (merged.resource_id, dict(merged.tags), merged.service_name) == ("", {}, "")


@pytest.mark.parametrize(
    "changes",
    [
        {"charge_category": ChargeCategory.TAX},
        {"accelerated": True},
        {"billed_cost": replace(usd("1"), currency="CNY"), "effective_cost": replace(usd("1"), currency="CNY")},
        {"charge_period_end": MONTH + 2 * DAY},
    ],
)
def test_charges_of_another_kind_stay_apart(changes: dict[str, Any]) -> None:
    assert len(condensed([charge(MONTH), charge(MONTH, **changes)])) == 2
