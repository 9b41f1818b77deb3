"""What was billed on Alibaba Cloud: BssOpenApi's records by resource and day, against its overview of each cycle.

Permissions: `bssapi:DescribeInstanceBill`, `bss:DescribeBillList`, and for budgets `bss:DescribeCostBudgetsSummary`;
the documents of the two sites differ, permissions.py names both. Days and cycles are those of UTC+8.

* DescribeInstanceBill by day, one record for each resource and kind of bill: region, tags, type and member account.
* QueryBillOverview by cycle: what records do not have (tax, rounding, products without resources), see
  lines.py. QueryAccountBill is made from the records and would only confirm them by themselves.
* Orders of earlier cycles whose terms go on: `EarlierOrders`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from functools import partial
from itertools import chain
from typing import Any

from costguard.domain.errors import ProviderError
from costguard.domain.money import Money, SpendLine, SpendReport, SpendScope, VendorBudget, totals
from costguard.domain.refs import Shard
from costguard.domain.resources import Gap, GapKind
from costguard.ports import Target
from costguard.providers.alibaba.billing.answers import Item, Row, Sum, payer_in, row_of, sum_of
from costguard.providers.alibaba.billing.lines import (
    Payer,
    amortised,
    compared,
    last_filled,
    lines_of,
    region_of,
    tax_lines,
    unrecorded_lines,
    with_known_types,
)
from costguard.providers.alibaba.billing.vendor_budgets import read_budgets, whole_pages
from costguard.providers.alibaba.core import errors
from costguard.providers.alibaba.core.products import HOME_REGIONS, structures_in
from costguard.providers.alibaba.core.session import AlibabaSession
from costguard.providers.kit.billing.calendar import (
    ZONE,
    Month,
    begin_of,
    day_of,
    days_between,
    end_of,
)
from costguard.providers.kit.core.calls import NAMED
from costguard.providers.kit.core.credentials import without_secrets
from costguard.providers.kit.core.fields import as_documented, cut_short, part, whole

SOURCE = "alibaba-bss"
_LAST_OPEN_DAY = 4
"""Of a month for the bill of the month before. Expenses and Costs, "Instructions for using the bill": monthly bill and
spending details "12:00 on the 3rd of the following month", split bills on the 4th, by UTC+8; its adjustments come
"in rare cases" even later."""

DELAY = timedelta(hours=24)
"""How far records lag behind what is used, at most, by the documents; types, names and zones by twice that."""

PAGE, _IN_FLIGHT = 300, 4
CYCLES_KEPT = 18
"""How many cycles the vendor answers for, the present one among them."""

Ask = Callable[[Month, "date | None"], Sequence[Row]]
"""The prepaid records of a cycle, or of one day of it."""


@dataclass(frozen=True, slots=True)
class _Bill:
    """One payer's bill as read: charges, how far they are complete, and what of regions and tags is not understood."""

    lines: Sequence[SpendLine]
    complete_until: datetime | None
    contradictions: Sequence[str] = ()
    strange_regions: Sequence[str] = ()
    strange_tags: Sequence[str] = ()


class AlibabaSpend:
    """`SpendSource` for one site. Threads may share it; orders that are final are asked for once in its life."""

    def __init__(self, session: AlibabaSession, *, now: Callable[[], datetime]) -> None:
        self._session = session
        self._now = now
        self._orders: dict[str, EarlierOrders] = {}

    def read(
        self, target: Target, scopes: Sequence[SpendScope], since: datetime, until: datetime
    ) -> Mapping[SpendScope, SpendReport]:
        """The charges of each scope; one reading serves all. Where something fails there are no charges and one gap."""
        now = self._now()
        asked = [scope for scope in scopes if scope.touches(self._session.cloud)]
        reports = {scope: SpendReport((), until, now, SOURCE) for scope in scopes if scope not in asked}
        if not asked:
            return reports
        try:
            bill = self._bill(target, since, min(until, now), now)
        except ProviderError as err:
            gap = errors.gap(Shard(target.cloud, target.account), "billing", err)
            return {**reports, **{scope: SpendReport((), None, now, SOURCE, (gap,)) for scope in asked}}
        return {**reports, **{scope: _report(bill, scope, target, now) for scope in asked}}

    def budgets(self, target: Target) -> Sequence[VendorBudget]:
        """Budgets of money that are not over; the API tells little of them, see vendor_budgets.py.

        Raises:
            ProviderError: they could not all be read, or the vendor has not opened the API to this account.
        """
        return read_budgets(self._session, self._shard(target))

    def _shard(self, target: Target) -> Shard:
        """Where to ask: the payer, in the region that stands for its site."""
        own = self._session.identity().account
        account = own if target.organisation else target.account or own
        if account != own:
            self._session.for_account(target, account)
        return Shard(self._session.cloud, account, HOME_REGIONS[self._session.cloud])

    def _bill(self, target: Target, since: datetime, until: datetime, now: datetime) -> _Bill:
        shard, days = self._shard(target), days_between(since, until)
        if not days:
            return _Bill((), None)
        by_day = records_by_day(self._session, shard, days)
        cycles = sorted({Month.of(day) for day in days})
        sums = {cycle: overview_of(self._session, shard, cycle) for cycle in cycles}
        whole = [
            cycle for cycle in cycles if cycle.first in by_day and (cycle.last in by_day or day_of(now) == days[-1])
        ]
        payer, known = Payer(shard.cloud, shard.account), self._understood(shard, by_day, now)
        complete_until = _complete_until(payer, by_day, sums, whole, now)
        lines = [line for row in known for line in _charges(payer, row, days, complete_until)]
        for cycle in cycles:
            lines += tax_lines(payer, cycle, sums[cycle], complete_until)
        contradictions = []
        for cycle in whole:
            found = compared(payer, sums[cycle], [row for day in cycle.days() for row in by_day.get(day, ())])
            lines += unrecorded_lines(payer, cycle, found, complete_until)
            if is_final(cycle, day_of(now)):
                contradictions += [f"{money} of {cycle}" for money in found.excess]
        if not target.organisation:
            lines = [line for line in lines if line.sub_account_id == shard.account]
        says_something = any(by_day.values()) or any(sums.values())
        return _Bill(
            lines=sorted(lines, key=lambda line: (line.charge_period_start, line.sub_account_id)),
            complete_until=complete_until if says_something else None,
            contradictions=contradictions,
            strange_regions=_names(row.region for row in known if region_of(row.region) is None),
            strange_tags=_names(row.resource_id or row.product for row in known if row.tags is None),
        )

    def _understood(self, shard: Shard, by_day: Mapping[date, Sequence[Row]], now: datetime) -> list[Row]:
        """The records of these days and of earlier orders that reach into them."""
        first = min(by_day)
        ask = partial(orders_of, self._session, shard)
        orders = self._orders.setdefault(shard.account, EarlierOrders(ask))
        earlier = orders.reaching(first, begin_of(first), day_of(now))
        return with_known_types([*earlier, *chain.from_iterable(by_day.values())])


def _complete_until(
    payer: Payer,
    by_day: Mapping[date, Sequence[Row]],
    sums: Mapping[Month, Sequence[Sum]],
    whole: Iterable[Month],
    now: datetime,
) -> datetime:
    """By the documents, and earlier where the last days are empty though the overview knows of more."""
    documented = begin_of(day_of(now - DELAY))
    found = documented
    for cycle in whole:
        if end_of(cycle.last) > documented:
            counts = {day: rows for day, rows in by_day.items() if Month.of(day) == cycle and end_of(day) <= documented}
            found = min(found, last_filled(payer, cycle, sums[cycle], counts, found))
    return found


def _charges(payer: Payer, row: Row, days: Sequence[date], complete_until: datetime) -> Iterable[SpendLine]:
    """What a record charges on these days; an earlier order only goes on being used up."""
    begin = begin_of(days[0])
    if row.day in days:
        yield from lines_of(payer, row)
    if row.item is Item.ORDER:
        yield from amortised(payer, row, begin, min(end_of(days[-1]), complete_until))


def _report(bill: _Bill, scope: SpendScope, target: Target, now: datetime) -> SpendReport:
    """The part of a bill that is in a scope; a gap where the scope asks for what is not understood."""
    shard = Shard(target.cloud, target.account)
    gaps = [_contradiction(shard, what) for what in bill.contradictions]
    if scope.regions and bill.strange_regions:
        gaps.append(_not_understood(shard, "regions", bill.strange_regions))
    if scope.tags and bill.strange_tags:
        gaps.append(_not_understood(shard, "tags", bill.strange_tags))
    lines = tuple(line for line in bill.lines if scope.holds_line(line))
    return SpendReport(lines, bill.complete_until, now, SOURCE, tuple(gaps), ZONE, final_until(now))


def _contradiction(shard: Shard, what: str) -> Gap:
    detail = f"{OVERVIEW}: {what} stand in records that the final overview has not"
    return Gap(shard, "billing", GapKind.UNREADABLE, detail)


def _not_understood(shard: Shard, what: str, names: Sequence[str]) -> Gap:
    shown = ", ".join([*names[:NAMED], *(["…"] if len(names) > NAMED else [])])
    detail = f"{RECORDS}: {what} that are not understood, so no budget by {what} is whole: {shown}"
    return Gap(shard, "billing", GapKind.UNREADABLE, detail)


def _names(found: Iterable[str]) -> Sequence[str]:
    return sorted({without_secrets(name) for name in found})


RECORDS, OVERVIEW = "bss:DescribeInstanceBill", "bss:QueryBillOverview"


@dataclass(slots=True)
class EarlierOrders:
    """Orders by the day they were made; what is final is asked once in the life of this. Serves many threads.

    A cycle's orders come as one answer without days. Where a term may reach into the time asked about, the days of its
    cycle are asked one by one, until their orders add up to the cycle's.
    """

    ask: Ask
    _final: dict[tuple[Month, date | None], Sequence[Row]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def reaching(self, since: date, begin: datetime, now: date) -> list[Row]:
        """Orders made in cycles before that of `since`, each with its day, whose terms go on after `begin`.

        Raises:
            ProviderError: they could not all be read.
        """
        found: list[Row] = []
        oldest = Month.of(now).plus(1 - CYCLES_KEPT)
        cycle = Month.of(since).plus(-1)
        while cycle >= oldest:
            whole = self._rows(cycle, None, now)
            if any(_may_reach(row, cycle, begin) for row in whole):
                dated = self._dated(cycle, totals(row.due for row in whole), now)
                found += [row for row in dated if row.day and row.term and row.term.end(row.day) > begin]
            cycle = cycle.plus(-1)
        return found

    def _dated(self, cycle: Month, whole: Sequence[Money], now: date) -> list[Row]:
        """The orders of a cycle by day, until they add up to the whole."""
        found: list[Row] = []
        for day in cycle.days():
            found += self._rows(cycle, day, now)
            if totals(row.due for row in found) == whole:
                break
        return found

    def _rows(self, cycle: Month, day: date | None, now: date) -> Sequence[Row]:
        with self._lock:
            known = self._final.get((cycle, day))
        if known is not None:
            return known
        rows = [row for row in self.ask(cycle, day) if row.item is Item.ORDER]
        if is_final(cycle, now):
            with self._lock:
                self._final[cycle, day] = rows
        return rows


def _may_reach(row: Row, cycle: Month, begin: datetime) -> bool:
    return row.item is Item.ORDER and row.term is not None and row.term.end(cycle.last) > begin


def is_final(cycle: Month, today: date) -> bool:
    """Whether its bill no longer changes: it is final "after 12:00 on the third day of the next month"."""
    return today > cycle.plus(1).first.replace(day=_LAST_OPEN_DAY)


def final_until(now: datetime) -> datetime:
    """The begin of the first cycle of which what is read now may still change, by the documents."""
    current = Month.of(now)
    return current.begins if is_final(current.plus(-1), day_of(now)) else current.plus(-1).begins


def records_by_day(session: AlibabaSession, shard: Shard, days: Sequence[date]) -> Mapping[date, Sequence[Row]]:
    """Every day's records. The first day is asked alone: where it is refused, the others would be.

    Raises:
        ProviderError: they could not all be read.
    """
    if not days:
        return {}
    first = rows_of(session, shard, Month.of(days[0]), days[0])
    with ThreadPoolExecutor(_IN_FLIGHT) as pool:
        rest = list(pool.map(lambda day: rows_of(session, shard, Month.of(day), day), days[1:]))
    return dict(zip(days, [first, *rest], strict=True))


def orders_of(session: AlibabaSession, shard: Shard, cycle: Month, day: date | None) -> Sequence[Row]:
    """The prepaid records of a cycle, without days, or of one day of it; raises as `records_by_day`."""
    return rows_of(session, shard, cycle, day, SubscriptionType="Subscription")


def rows_of(session: AlibabaSession, shard: Shard, cycle: Month, day: date | None, **more: str) -> Sequence[Row]:
    """The records of a day, or of a cycle where `day` is None, by resource; raises as `records_by_day`.

    Records of nothing due are read too: they show that a day is there.

    API: BSS DescribeInstanceBill, 300 records a page.
    """
    asked: dict[str, Any] = {"BillingCycle": str(cycle), "Granularity": "MONTHLY", "MaxResults": PAGE, **more}
    if day is not None:
        asked |= {"Granularity": "DAILY", "BillingDate": day.isoformat()}
    found: list[Row] = []
    promised = 0
    for answer in whole_pages(session, shard, RECORDS, asked):
        with as_documented(RECORDS):
            payer, data = payer_in(answer, cycle), part(answer, "Data")
            found += [row_of(item, payer, day) for item in structures_in(answer, "Data.Items", RECORDS)]
            promised = whole(data, "TotalCount") if "TotalCount" in data else 0
    if len(found) < promised:
        raise cut_short(RECORDS, f"{len(found)} of {promised} records came for {day or cycle}", "MissingRecords")
    return found


def overview_of(session: AlibabaSession, shard: Shard, cycle: Month) -> Sequence[Sum]:
    """What a cycle costs in all, by account, product and kind.

    Raises:
        ProviderError: it could not be read.

    API: BSS QueryBillOverview, one answer without pages.
    """
    answer = session.call(shard, "bss", "QueryBillOverview", BillingCycle=str(cycle))
    with as_documented(OVERVIEW):
        payer_in(answer, cycle)
        return [sum_of(item) for item in structures_in(answer, "Data.Items.Item", OVERVIEW)]
