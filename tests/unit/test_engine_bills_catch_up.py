"""A bill that stood still, or began its days in China: what it holds once it goes on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from decimal import Decimal

import pytest
from tests.builders import usd

from costguard.adapters.ledgers.open import open_ledger
from costguard.domain.errors import UnavailableError
from costguard.domain.money import ChargeCategory, SpendLine, SpendReport, SpendScope, VendorBudget
from costguard.engine.guards.budgets.bills import read_bills
from costguard.engine.ledger.budgets import BillRepository
from costguard.engine.run.scan import ThreadWorkers
from costguard.ports import Target

DAY = timedelta(days=1)
CHINA = timedelta(hours=8)
PAYER = Target("tencent", organisation=True)
ALL = SpendScope()
APRIL = datetime(2026, 4, 1, tzinfo=timezone.utc)


@dataclass
class Source:
    """A hundred a day, the days of China or of UTC, billed up to `stands` where it stands still."""

    offset: timedelta = CHINA
    stands: datetime | None = None
    fails: bool = False
    cost: str = "100"

    def read(
        self, target: Target, scopes: Sequence[SpendScope], since: datetime, until: datetime
    ) -> Mapping[SpendScope, SpendReport]:
        del target
        if self.fails:
            raise UnavailableError("no answer", operation="billing:DescribeBillDetail")
        first = since.replace(hour=0) - self.offset
        up_to = self.stands or (until + self.offset).replace(hour=0) - self.offset
        days = (first + number * DAY for number in range((until - first) // DAY + 1))
        lines = tuple(_day(start, self.cost) for start in days if since < start + DAY <= up_to)
        return dict.fromkeys(scopes, SpendReport(lines, up_to, until, "test"))

    def budgets(self, target: Target) -> Sequence[VendorBudget]:
        del target
        return ()


def _day(start: datetime, amount: str) -> SpendLine:
    cost = usd(amount)
    usage = ChargeCategory.USAGE
    return SpendLine("tencent", "1", "1", "ap-guangzhou", "p_cvm", usage, start, start + DAY, cost, cost)


@pytest.fixture
def repository() -> Iterator[BillRepository]:
    store = open_ledger("memory:")
    yield BillRepository(store)
    store.close()


def total(source: Source, repository: BillRepository, now: datetime, since: datetime = APRIL) -> Decimal:
    """What was billed from `since` on, whole days only, as the ledger keeps it."""
    read_bills({"tencent": source}, (PAYER,), {ALL: since}, repository, ThreadWorkers(), now)
    kept = repository.get(PAYER, ALL)
    lines = kept.lines if kept is not None else ()
    return sum((line.effective_cost.amount for line in lines if line.charge_period_end > since), Decimal(0))


def test_a_bill_that_stood_still_over_the_end_of_a_month_is_read_from_where_it_stood(
    repository: BillRepository,
) -> None:
    source = Source(stands=APRIL - 4 * DAY - CHINA)
    for day in range(1, 8):
        total(source, repository, APRIL + timedelta(days=day - 1, hours=9))
    source.stands = None
    march = APRIL.replace(month=3)
    assert total(source, repository, APRIL + timedelta(days=7, hours=9), since=march) == 100 * (31 + 7)


def test_a_bill_that_could_not_be_read_over_the_end_of_a_month_is_read_from_where_it_was_known(
    repository: BillRepository,
) -> None:
    source = Source()
    total(source, repository, APRIL - 3 * DAY)
    source.fails = True
    total(source, repository, APRIL + 2 * DAY)
    source.fails = False
    march = APRIL.replace(month=3)
    assert total(source, repository, APRIL + timedelta(days=7, hours=9), since=march) == 100 * (31 + 7)


def test_a_month_that_begins_in_china_is_known_from_its_first_hour(repository: BillRepository) -> None:
    source = Source(stands=APRIL - CHINA)
    total(source, repository, APRIL + timedelta(days=4, hours=9))
    source.stands = None
    assert total(source, repository, APRIL + timedelta(days=5, hours=9)) == 500
    assert total(source, repository, APRIL + timedelta(days=6, hours=9)) == 600


def test_a_correction_reaches_the_first_day_of_a_month_that_begins_in_china(repository: BillRepository) -> None:
    source = Source()
    assert total(source, repository, APRIL + timedelta(days=9, hours=9)) == 900
    source.cost = "120"
    assert total(source, repository, APRIL + timedelta(days=10, hours=9)) == 1200


def test_the_first_reading_holds_the_day_that_began_before_the_year() -> None:
    store = open_ledger("memory:")
    january = APRIL.replace(month=1)
    assert total(Source(), BillRepository(store), APRIL.replace(month=6), since=january) == 100 * 151
    store.close()
