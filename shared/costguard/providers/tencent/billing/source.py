"""What Tencent Cloud billed, by day, resource, region, owner and tag.

Permissions: those of `Feature.BILLING` in permissions.py, and `organization:DescribeOrganizationMembers` where a whole
organisation is meant. All of it is free of charge; amounts are in the site's currency and never converted.

Which reads, and why:

* DescribeBillDetail is the only answer with a day, a resource, its owner, region and tags in one record, and each
  month of it is asked for whole: `BeginTime` and `EndTime` choose a month, never days. 300 records a request, five
  requests a second: a hundred machines by the hour are some 480 requests at the end of a month. All scopes are cut
  from one reading.
* A month beyond `MOST_ROWS` records (Tencent itself advises against reading 200,000 through the API) is read from
  DescribeCostExplorerSummary instead: by day, one or two requests a scope, without resources. See `CostExplorer`.
* The totals by product (one request a month, and by region or tag where a scope names one) say whether the bill is
  ready at all, and what the detail leaves out: that is a line of its own and a gap, never hidden. They are issued a
  day later than the detail, so that less in them than in the detail means nothing while a month lasts.
* Terms paid in advance stand in the bill once. So the records of prepaid purchases of the twelve months before are
  read as well (one request a month) and spread over their terms; Tencent tells no amortised cost in this bill.
* A charge settled after its month ended may stand in the next month's bill: that one is read where it has begun.

How late: hourly charges come within hours, what is settled by the day comes some time during the next day, and totals
are issued the day after ("T+1"): two days after an hour of use, all of it is there. Nothing later than 48 hours ago,
and no day that was not over then, counts as complete.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from costguard.domain.errors import ProviderError, RefusedError
from costguard.domain.money import SpendLine, SpendReport, SpendScope, VendorBudget
from costguard.domain.refs import Shard
from costguard.domain.resources import Gap, GapKind
from costguard.ports import Target
from costguard.providers.kit.billing.calendar import ZONE, Month, begin_of
from costguard.providers.kit.core.fields import as_documented, text, whole
from costguard.providers.tencent.billing.lines import Charges, Checks, Detailed
from costguard.providers.tencent.billing.requests import (
    DEPUTY_DETAIL,
    BillReader,
    CostExplorer,
    NotReadyError,
    Payer,
    TooManyRowsError,
    final_until,
)
from costguard.providers.tencent.billing.vendor_budgets import read_budgets
from costguard.providers.tencent.core import errors
from costguard.providers.tencent.core.products import CURRENCIES, told
from costguard.providers.tencent.core.session import TencentSession

SOURCE, COARSE = "tencent-billing", "tencent-cost-explorer"
DELAY = timedelta(hours=48)
MOST_ROWS = 90_000  # 300 requests, a bit more than a minute
MONTHS_OF_TERMS = 12  # terms of a year are the longest that are usual
_PAGE_ROWS = 300
_MOMENT = timedelta.resolution
_KEPT = 18  # months that the API goes back
_MEMBERS = "organization:DescribeOrganizationMembers"


class TencentSpend:
    """`SpendSource` for one site of Tencent Cloud. `now` is the clock on the wall."""

    def __init__(
        self,
        session: TencentSession,
        *,
        now: Callable[[], datetime],
        most_rows: int = MOST_ROWS,
        page_rows: int = _PAGE_ROWS,
        months_of_terms: int = MONTHS_OF_TERMS,
    ) -> None:
        self._session = session
        self._now = now
        self._reader = BillReader(session, most_rows=most_rows, page_rows=page_rows)
        self._explorer = CostExplorer(session)
        self._months_of_terms = months_of_terms

    def read(
        self, target: Target, scopes: Sequence[SpendScope], since: datetime, until: datetime
    ) -> Mapping[SpendScope, SpendReport]:
        """The charges of each scope by day, cut from one reading of the bill; see the module for what is asked.

        With `target.organisation` also the bills of members that pay for themselves. Without it only what the
        account itself used, whoever pays for it.
        """
        now = self._now()
        nothing = SpendReport((), until, now, SOURCE)
        wanted = [scope for scope in scopes if _can_hold(scope, target.cloud)]
        if not wanted or since >= min(until, now):
            complete = min(until, begin_of(now - DELAY))
            return {
                scope: nothing
                if scope not in wanted
                else SpendReport((), complete, now, SOURCE, zone=ZONE, final_until=final_until(now))
                for scope in scopes
            }
        whole_account = Shard(target.cloud, target.account)
        try:
            whole_account = self._entered(target)
            account = "" if target.organisation else whole_account.account
            bill = Bill(
                self._reader,
                self._explorer,
                whole_account,
                wanted,
                Span(since, min(until, now), now, self._months_of_terms),
                account=account,
            )
            bill.read(Payer(whole_account))
            if not target.organisation:
                bill.read_what_others_pay()
        except ProviderError as err:
            failed = SpendReport((), None, now, SOURCE, (gap(whole_account, err),))
            return {scope: failed if scope in wanted else nothing for scope in scopes}
        if target.organisation:
            self._read_members(bill, whole_account)
        source = COARSE if bill.coarse else SOURCE
        complete = begin_of(now - DELAY)
        return {
            scope: SpendReport(
                tuple(bill.lines_of(scope)), complete, now, source, tuple(bill.gaps_of(scope)), ZONE, final_until(now)
            )
            if scope in wanted
            else nothing
            for scope in scopes
        }

    def budgets(self, target: Target) -> Sequence[VendorBudget]:
        """The budgets of the account's own console that are not over; see `vendor_budgets.py`.

        Raises:
            ProviderError: they could not all be read.
        """
        return read_budgets(self._session, self._entered(target))

    def _entered(self, target: Target) -> Shard:
        """The account that is asked, with credentials for it at hand."""
        own = self._session.identity().account
        account = target.account or own
        if account != own:
            self._session.for_account(target, account)
        return Shard(target.cloud, account)

    def _read_members(self, bill: Bill, leader: Shard) -> None:
        try:
            members = self._members_that_pay(leader)
        except ProviderError as err:
            bill.gaps.append(gap(leader, err))
            return
        for member in members:
            try:
                bill.read(Payer(leader, member))
            except ProviderError as err:
                bill.gaps.append(gap(Shard(leader.cloud, member), err))

    def _members_that_pay(self, leader: Shard) -> list[str]:
        """Members whose charges do not stand in the leader's own bill."""
        found: list[str] = []
        for page in self._session.pages(leader, "organization", "DescribeOrganizationMembers", "Items"):
            with as_documented(_MEMBERS):
                for item in page:
                    member, payer = str(whole(item, "MemberUin")), text(told(item, "PayUin"), "PayUin")
                    if leader.account not in {member, payer}:
                        found.append(member)
        return sorted(set(found))


def _can_hold(scope: SpendScope, cloud: str) -> bool:
    return scope.touches(cloud) and scope.accounts != () and scope.regions != ()


@dataclass(frozen=True, slots=True)
class Span:
    """The time from `since` to `until`, none of it later than `now`, and how many months before it are of interest."""

    since: datetime
    until: datetime
    now: datetime
    months_before: int

    @property
    def oldest(self) -> Month:
        """The first month that is still kept."""
        return Month.of(self.now).plus(1 - _KEPT)

    @property
    def first(self) -> Month:
        """The first month that is asked for."""
        return max(Month.of(self.since), self.oldest)

    def months(self) -> Iterator[Month]:
        """Those of the span, and the next where it has begun, in order; none from the future."""
        after = Month.of(self.until - _MOMENT).plus(1)
        month, last = self.first, min(after, Month.of(self.now))
        while month <= last:
            yield month
            month = month.plus(1)

    def before(self) -> Iterator[Month]:
        """Those before the span, as far as they are kept."""
        for back in range(self.months_before, 0, -1):
            month = self.first.plus(-back)
            if month >= self.oldest:
                yield month

    def holds(self, line: SpendLine) -> bool:
        """Whether a charge falls into the span, if only in part."""
        return self.since < line.charge_period_end and line.charge_period_start < self.until


class Bill:
    """What was charged in a span of time.

    `account` limits it to what that account used; empty: everything that the payer pays for. `coarse` says whether
    some month was too large to be read record by record.
    """

    def __init__(
        self,
        reader: BillReader,
        explorer: CostExplorer,
        shard: Shard,
        scopes: Sequence[SpendScope],
        span: Span,
        *,
        account: str,
    ) -> None:
        self.gaps: list[Gap] = []
        self.coarse = False
        self._checks = Checks(reader, scopes, span.now)
        self._reader = reader
        self._explorer = explorer
        self._shard = shard
        self._scopes = scopes
        self._span = span
        self._account = account
        self._lines: list[SpendLine] = []
        self._lines_of: dict[SpendScope, list[SpendLine]] = {}
        self._gaps_of: dict[SpendScope, list[Gap]] = {}
        self._seen = False
        if Month.of(span.since) < span.oldest:
            detail = f"billing:DescribeBillDetail: Tencent Cloud keeps {_KEPT} months, back to {span.oldest}"
            self.gaps.append(Gap(shard, "billing", GapKind.UNREADABLE, detail))

    def read(self, payer: Payer) -> None:
        """All months of this payer's bill.

        Raises:
            ProviderError: it could not all be read; nothing of it counts.
        """
        charges = Charges(self._shard.cloud, payer.account, self._span.since, self._span.until)
        found: list[SpendLine] = []
        for month in self._span.months():
            totals = self._reader.by_product(payer, month)
            detailed = Detailed(payer, month, CURRENCIES[self._shard.cloud])
            try:
                for rows in self._reader.detail(payer, month):
                    charges.take(rows)
                    detailed.take(rows)
            except TooManyRowsError:
                if payer.detail == DEPUTY_DETAIL:
                    raise  # the series of an account are of its own bill
                detailed = Detailed(payer, month, CURRENCIES[self._shard.cloud])
                for rows in self._reader.detail(payer, month, PayMode="prePay"):
                    charges.take(rows)
                    detailed.take(rows)
                self._read_coarsely(payer, month, detailed)
            else:
                self._checks.regions_and_tags(detailed)
            found += self._checks.products(detailed, totals)
            self._seen = self._seen or bool(totals) or bool(detailed.products)
        for month in self._span.before():
            charges.take_terms(self._reader.terms(payer, month, self._span.now))
        self._lines += [*charges.lines(), *(line for line in found if self._span.holds(line))]

    def read_what_others_pay(self) -> None:
        """Where the account's own bill has nothing at all, somebody else may pay for it: that is read instead.

        Raises:
            ProviderError: whether there is such a bill could not be told: the empty one proves nothing.
        """
        if not self._seen:
            self.read(Payer(self._shard, detail=DEPUTY_DETAIL))

    def lines_of(self, scope: SpendScope) -> Iterator[SpendLine]:
        """The charges of one scope."""
        for line in self._lines:
            if scope.holds_line(line) and self._account in {"", line.sub_account_id}:
                yield line
        yield from self._lines_of.get(scope, ())

    def gaps_of(self, scope: SpendScope) -> Iterator[Gap]:
        """What one scope may lack."""
        yield from self.gaps
        yield from self._checks.gaps_of(scope)
        yield from self._gaps_of.get(scope, ())

    def _read_coarsely(self, payer: Payer, month: Month, detailed: Detailed) -> None:
        """Each scope by itself; and all together, so that a condition that is understood otherwise is seen."""
        self.coarse = True
        codes = self._reader.product_codes
        for line in self._explorer.lines(payer, month, SpendScope(), self._span.now, codes):
            detailed.add(line.service_name, line.billed_cost.amount)
        for scope in self._scopes:
            narrowed = self._narrowed(scope)
            if narrowed is None or month.begins >= self._span.until:
                continue
            try:
                lines = list(self._explorer.lines(payer, month, narrowed, self._span.until, codes))
            except RefusedError as err:
                self._gaps_of.setdefault(scope, []).append(gap(payer.shard, err))
            else:
                self._lines_of.setdefault(scope, []).extend(line for line in lines if self._span.holds(line))

    def _narrowed(self, scope: SpendScope) -> SpendScope | None:
        if not self._account:
            return scope
        if scope.accounts is not None and self._account not in scope.accounts:
            return None
        return replace(scope, accounts=(self._account,))


def gap(shard: Shard, err: ProviderError) -> Gap:
    """The gap that `err` leaves in a bill."""
    if isinstance(err, NotReadyError):
        return Gap(shard, "billing", GapKind.UNAVAILABLE, str(err), "run again in ten minutes")
    return errors.gap(shard, "billing", err)
