"""What Tencent Cloud billed, by day, resource, region, owner and tag.

Permissions: those of `Feature.BILLING` in permissions.py, and `organization:DescribeOrganizationMembers` where a whole
organisation is meant. All of it is free of charge; amounts are in the site's currency and never converted.

Which reads, and why:

* DescribeBillDetail is the only answer with a day, a resource, its owner, region and tags in one record, and each
  month of it is asked for whole: `BeginTime` and `EndTime` choose a month, never days. 300 records a request, five
  requests a second: a hundred machines by the hour are some 480 requests at the end of a month. All scopes are cut
  from one reading.
* A month beyond `MOST_ROWS` records (Tencent itself advises against reading 200,000 through the API) is read from
  DescribeCostExplorerSummary instead: by day, one or two requests a scope, without resources. See cost_explorer.py.
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

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta

from costguard.domain.errors import ProviderError
from costguard.domain.money import SpendReport, SpendScope, VendorBudget
from costguard.domain.refs import Shard
from costguard.ports import Target
from costguard.providers.kit.core.fields import as_documented, text, whole
from costguard.providers.tencent.billing.cost_explorer import CostExplorer
from costguard.providers.tencent.billing.lines import day_of
from costguard.providers.tencent.billing.reading import Bill, Span, gap
from costguard.providers.tencent.billing.requests import BillReader, Payer, final_until
from costguard.providers.tencent.billing.vendor_budgets import read_budgets
from costguard.providers.tencent.core.fields import told
from costguard.providers.tencent.core.session import TencentSession

SOURCE, COARSE = "tencent-billing", "tencent-cost-explorer"
ZONE = "Asia/Shanghai"  # of the bill's days and months
DELAY = timedelta(hours=48)
MOST_ROWS = 90_000  # 300 requests, a bit more than a minute
MONTHS_OF_TERMS = 12  # terms of a year are the longest that are usual
_PAGE_ROWS = 300
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
            complete = min(until, day_of(now - DELAY))
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
        complete = day_of(now - DELAY)
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
