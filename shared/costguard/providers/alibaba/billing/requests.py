"""The questions about bills: records by day, orders of a cycle, its overview, and the console's budgets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from typing import Any

from costguard.domain.errors import TruncatedReadError
from costguard.domain.money import VendorBudget
from costguard.domain.refs import Shard
from costguard.providers.alibaba.billing.answers import Row, Sum, payer_in, row_of, sum_of
from costguard.providers.alibaba.billing.calendar import Cycle
from costguard.providers.alibaba.billing.vendor_budgets import budget_of
from costguard.providers.alibaba.core.fields import structures_in
from costguard.providers.alibaba.core.session import AlibabaSession
from costguard.providers.kit.core.fields import as_documented, part, text, whole
from costguard.providers.kit.core.paging import by_token

RECORDS, OVERVIEW, BUDGETS = "bss:DescribeInstanceBill", "bss:QueryBillOverview", "bss:DescribeCostBudgetsSummary"
PAGE, BUDGETS_A_PAGE = 300, 10
_IN_FLIGHT = 4


def records(session: AlibabaSession, shard: Shard, days: Sequence[date]) -> Mapping[date, Sequence[Row]]:
    """Every day's records. The first day is asked alone: where it is refused, the others would be.

    Raises:
        ProviderError: they could not all be read.
    """
    if not days:
        return {}
    first = rows_of(session, shard, Cycle.of(days[0]), days[0])
    with ThreadPoolExecutor(_IN_FLIGHT) as pool:
        rest = list(pool.map(lambda day: rows_of(session, shard, Cycle.of(day), day), days[1:]))
    return dict(zip(days, [first, *rest], strict=True))


def orders(session: AlibabaSession, shard: Shard, cycle: Cycle, day: date | None) -> Sequence[Row]:
    """The prepaid records of a cycle, without days, or of one day of it; raises as `records`."""
    return rows_of(session, shard, cycle, day, SubscriptionType="Subscription")


def rows_of(session: AlibabaSession, shard: Shard, cycle: Cycle, day: date | None, **more: str) -> Sequence[Row]:
    """The records of a day, or of a cycle where `day` is None, by resource; raises as `records`.

    Records of nothing due are read too: they show that a day is there.

    API: BSS DescribeInstanceBill, 300 records a page.
    """
    asked: dict[str, Any] = {"BillingCycle": str(cycle), "Granularity": "MONTHLY", "MaxResults": PAGE, **more}
    if day is not None:
        asked |= {"Granularity": "DAILY", "BillingDate": day.isoformat()}
    found: list[Row] = []
    promised = 0
    for answer in _pages(session, shard, RECORDS, asked):
        with as_documented(RECORDS):
            payer, data = payer_in(answer, cycle), part(answer, "Data")
            found += [row_of(item, payer, day) for item in structures_in(answer, "Data.Items", RECORDS)]
            promised = whole(data, "TotalCount") if "TotalCount" in data else 0
    if len(found) < promised:
        message = f"{RECORDS}: {len(found)} of {promised} records came for {day or cycle}"
        raise TruncatedReadError(message, operation=RECORDS, code="MissingRecords")
    return found


def overview(session: AlibabaSession, shard: Shard, cycle: Cycle) -> Sequence[Sum]:
    """What a cycle costs in all, by account, product and kind.

    Raises:
        ProviderError: it could not be read.

    API: BSS QueryBillOverview, one answer without pages.
    """
    answer = session.call(shard, "bss", "QueryBillOverview", BillingCycle=str(cycle))
    with as_documented(OVERVIEW):
        payer_in(answer, cycle)
        return [sum_of(item) for item in structures_in(answer, "Data.Items.Item", OVERVIEW)]


def budgets(session: AlibabaSession, shard: Shard) -> Sequence[VendorBudget]:
    """Budgets of money that are not over.

    Raises:
        ProviderError: they could not all be read, or the vendor has not opened the API to this account.

    API: BSS DescribeCostBudgetsSummary, 10 a page.
    """
    found: list[VendorBudget] = []
    asked = {"BudgetType": "cost", "BudgetStatus": "notOverdue", "MaxResults": BUDGETS_A_PAGE}
    for answer in _pages(session, shard, BUDGETS, asked):
        with as_documented(BUDGETS):
            items = structures_in(answer, "Data.Items", BUDGETS)
            found += [budget_of(item, shard.cloud, shard.account) for item in items]
    return found


def _pages(
    session: AlibabaSession, shard: Shard, operation: str, asked: Mapping[str, Any]
) -> Iterator[Mapping[str, Any]]:
    """Every page as a whole answer: more of it matters than its list."""
    action = operation.partition(":")[2]

    def ask(page: dict[str, str]) -> dict[str, Any]:
        return session.call(shard, "bss", action, **{**asked, **page})

    for (answer,) in by_token(operation, ask, lambda answer: [answer], _next_token):
        yield answer


def _next_token(answer: Mapping[str, Any]) -> str:
    data = part(answer, "Data")
    return "" if data.get("NextToken") is None else text(data, "NextToken")
