"""One reading of the bill: the months of one or several payers, from which the scopes are cut."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from costguard.domain.errors import ProviderError, RefusedError
from costguard.domain.money import SpendLine, SpendScope
from costguard.domain.refs import Shard
from costguard.domain.resources import Gap, GapKind
from costguard.providers.tencent.billing.cost_explorer import CostExplorer
from costguard.providers.tencent.billing.lines import Charges
from costguard.providers.tencent.billing.requests import (
    DEPUTY_DETAIL,
    BillReader,
    Month,
    NotReadyError,
    Payer,
    TooManyRowsError,
)
from costguard.providers.tencent.billing.totals import Checks, Detailed
from costguard.providers.tencent.core import errors
from costguard.providers.tencent.core.products import CURRENCIES

_MOMENT = timedelta.resolution
_KEPT = 18  # months that the API goes back


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
