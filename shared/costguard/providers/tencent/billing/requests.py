"""What the billing product answers, request by request: a month's totals, its detail page by page, and daily series."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Protocol

from costguard.domain.errors import ProviderError, RefusedError
from costguard.domain.money import ChargeCategory, Money, SpendLine, SpendScope
from costguard.domain.refs import Shard
from costguard.providers.kit.billing.calendar import DAY, Month, begin_of
from costguard.providers.kit.core.credentials import without_secrets
from costguard.providers.kit.core.fields import Fields, as_documented, cut_short, parts, text, whole
from costguard.providers.tencent.billing.answers import Row, amount_in, is_platform, region_number, region_of, to_row
from costguard.providers.tencent.core.products import CURRENCIES, moment, told, written_local

DETAIL, DEPUTY_DETAIL = "DescribeBillDetail", "DescribeBillDetailForOrganization"
BY_PRODUCT, BY_REGION, BY_TAG = (
    "DescribeBillSummaryByProduct",
    "DescribeBillSummaryByRegion",
    "DescribeBillSummaryByTag",
)
DEPUTY_SUMMARY = "DescribeBillSummaryForOrganization"
_LARGEST_PAGE = {DETAIL: 300, DEPUTY_DETAIL: 100}
_MOST_PAGES = 10_000
_GROUPS = "SummaryOverview"
TAG_UNKNOWN = "FailedOperation.TagKeyNotExist"
_NOT_READY = "FailedOperation.SummaryDataNotReady"
SETTLED = timedelta(days=5)
"""After the end of a month; from then on its bill changes by corrections only. DescribeBillDownloadUrl says when it is
generated: on the China site "次月1号19:00", on the international site, for partners' customers, "at 1:00 on the 5th of
the next month", by UTC+8."""

_FINAL = timedelta(days=10)  # the same, with room for corrections: what is kept for good
_SERIES = "billing:DescribeCostExplorerSummary"
_SERIES_PAGE = 100
_MOST_SERIES_PAGES = 100
_SECOND = timedelta(seconds=1)
NOT_ASKABLE = "NotAskable"
"""A code of our own: Tencent Cloud publishes no way to ask for this."""


class Calls(Protocol):
    """The part of `TencentSession` that bills need."""

    @property
    def cloud(self) -> str:
        """The site."""

    def call(self, shard: Shard, service: str, action: str, /, **parameters: Any) -> dict[str, Any]:
        """One request; raises ProviderError."""


class NotReadyError(ProviderError):
    """The bill is being prepared: it says nothing yet, and that is not zero."""


class TooManyRowsError(ProviderError):
    """A month has more records than are worth reading one by one."""


def final_until(now: datetime) -> datetime:
    """The begin of the first month of which what is read now may still change, by the documents."""
    current = Month.of(now)
    return current.begins if current.begins + SETTLED < now else current.plus(-1).begins


@dataclass(frozen=True, slots=True)
class Payer:
    """Whose bill is read with whose credentials: `uin` is given where it is not the asking account's own."""

    shard: Shard
    uin: str = ""
    detail: str = DETAIL

    @property
    def account(self) -> str:
        """The account that pays; unknown where somebody else pays for the asking one."""
        return "" if self.detail == DEPUTY_DETAIL else self.uin or self.shard.account

    @property
    def asked(self) -> dict[str, str]:
        """The parameter that names it."""
        return {"PayerUin": self.uin} if self.uin else {}

    def of(self, month: Month) -> dict[str, str]:
        """The parameters of a month's totals, which take two ends and only ever the whole month between them."""
        return {"BeginTime": str(month), "EndTime": str(month), **self.asked}


class BillReader:
    """Asks. `most_rows` bounds the records of a month that are read one by one, `page_rows` those of a page.

    Attributes:
        product_codes: by their names, as the totals by product told them.
    """

    def __init__(self, session: Calls, *, most_rows: int, page_rows: int) -> None:
        self._session = session
        self._most_rows = most_rows
        self._page_rows = page_rows
        self._currency = CURRENCIES[session.cloud]
        self.product_codes: dict[str, str] = {}
        self._terms: dict[tuple[Payer, Month], tuple[Row, ...]] = {}

    def by_product(self, payer: Payer, month: Month) -> Mapping[str, Decimal]:
        """What a month cost after discounts, by the product's code.

        Raises:
            NotReadyError: the bill is being prepared.
            ProviderError: another of its kinds.
        """
        if payer.detail == DEPUTY_DETAIL:
            asked = {"Month": str(month), "GroupType": "business"}
            return self._totals(payer, DEPUTY_SUMMARY, "SummaryDetail", lambda group: text(group, "GroupKey"), asked)
        return self._totals(payer, BY_PRODUCT, _GROUPS, self._product, payer.of(month))

    def by_region(self, payer: Payer, month: Month) -> Mapping[str, Decimal]:
        """The same by region; "" is what belongs to none, or to one that is not known. Raises as `by_product`."""
        return self._totals(payer, BY_REGION, _GROUPS, region_of, payer.of(month))

    def by_tag(self, payer: Payer, month: Month, key: str) -> Mapping[str, Decimal]:
        """The same by the value of a tag; "" is what does not carry it. Raises as `by_product`.

        A key that was not made a cost allocation tag is refused with `TAG_UNKNOWN`.
        """
        asked = {**payer.of(month), "TagKey": key}
        return self._totals(payer, BY_TAG, _GROUPS, lambda group: text(group, "TagValue"), asked)

    def detail(self, payer: Payer, month: Month, **only: str) -> Iterator[list[Row]]:
        """The records of a month, page by page; each once, though pages shift while a bill grows.

        The total is counted once a day and may be too small, never too large: a page that is not full is the last.
        `Context`, handed from page to page, makes it faster.

        Raises:
            TooManyRowsError: more records than `most_rows`, as far as the total tells.
            TruncatedReadError: fewer records than announced, or the same page again.
            ProviderError: another of its kinds.
        """
        operation = f"billing:{payer.detail}"
        seen: set[str] = set()
        place = {"Offset": 0, "Limit": min(_LARGEST_PAGE[payer.detail], self._page_rows)}
        asked: dict[str, Any] = {"Month": str(month), **payer.asked, **only, "NeedRecordNum": 1}
        announced = 0
        for _ in range(_MOST_PAGES):
            answer = self._session.call(payer.shard, "billing", payer.detail, **asked, **place)
            with as_documented(operation):
                fields = told(answer, "DetailSet", "Total", "Context")
                records = parts(fields, "DetailSet")
                rows = [to_row(record, self._currency) for record in records]
                if place["Offset"] == 0:
                    announced = whole(fields, "Total") if "Total" in fields else 0
                context = text(fields, "Context")
            if announced > self._most_rows:
                message = f"{operation}: {announced} records in {month}"
                raise TooManyRowsError(message, operation=operation, code="TooManyRecords")
            fresh = _unseen(rows, seen)
            if rows and not fresh:
                raise cut_short(operation, f"the same page came twice in {month}", "RepeatedPage")
            yield fresh
            place["Offset"] += len(records)
            if len(records) < place["Limit"]:
                if place["Offset"] < announced:
                    raise cut_short(operation, f"{place['Offset']} of {announced} records of {month}", "EndedEarly")
                return
            asked["NeedRecordNum"] = 0
            if context:
                asked["Context"] = context
        raise cut_short(operation, f"more than {_MOST_PAGES} pages", "TooManyPages")

    def terms(self, payer: Payer, month: Month, now: datetime) -> Iterable[Row]:
        """What was paid for in advance in a month, and refunds of it; kept once the month is long over.

        Raises as `detail`.
        """
        known = self._terms.get((payer, month))
        if known is None:
            known = tuple(row for rows in self.detail(payer, month, PayMode="prePay") for row in rows)
            if month.plus(1).begins + _FINAL < now:
                self._terms[payer, month] = known
        return known

    def _product(self, group: Fields) -> str:
        code = text(group, "BusinessCode")
        self.product_codes[text(told(group, "BusinessCodeName"), "BusinessCodeName")] = code
        return code

    def _totals(
        self, payer: Payer, action: str, groups: str, named: Callable[[Fields], str], asked: Mapping[str, str]
    ) -> Mapping[str, Decimal]:
        operation = f"billing:{action}"
        try:
            answer = self._session.call(payer.shard, "billing", action, **asked)
        except ProviderError as err:
            if err.code == _NOT_READY:
                raise NotReadyError(str(err), operation=operation, code=err.code) from err
            raise
        with as_documented(operation):
            if whole(answer, "Ready") != 1:
                message = f"{operation}: the bill is being prepared"
                raise NotReadyError(message, operation=operation, code="NotReady")
            found: dict[str, Decimal] = {}
            for each in parts(told(answer, groups), groups):
                group = told(each, "BusinessCode", "GroupKey", "RegionId", "RegionName", "TagValue", "RealTotalCost")
                name = named(group)
                found[name] = found.get(name, Decimal(0)) + amount_in(group, "RealTotalCost")
            return found


def _unseen(rows: Iterable[Row], seen: set[str]) -> list[Row]:
    """Those whose id was not there before; what has no id cannot be told from another charge alike, and counts."""
    fresh: list[Row] = []
    for row in rows:
        if row.row_id not in seen:
            fresh.append(row)
            if row.row_id:
                seen.add(row.row_id)
    return fresh


class CostExplorer:
    """A month too large to be read record by record: what is paid for after use, by day, as Tencent adds it up.

    One series for each product where a scope asks for no tag, or for each value of the tag it asks for: one or two
    requests for each account and region that a scope names. What it has not: resources, instance types, and vouchers
    apart. A scope of several tags cannot be asked for, as the form of such a condition is not published: that is a gap.
    What is paid in advance is not asked for here: its records are few, and are read one by one.
    """

    def __init__(self, session: Calls) -> None:
        self._session = session

    def lines(
        self, payer: Payer, month: Month, scope: SpendScope, until: datetime, products: Mapping[str, str]
    ) -> Iterator[SpendLine]:
        """What `scope` was charged for after use in a month, up to `until`. `products` has their codes by their names.

        Raises:
            RefusedError: there is no way to ask for it.
            ProviderError: another of its kinds.
        """
        if len(scope.tags) > 1:
            raise _not_askable("several tags together")
        for account in ("",) if scope.accounts is None else scope.accounts:
            for region in ("",) if scope.regions is None else scope.regions:
                yield from self._slice(payer, month, until, account, region, scope.tags, products)

    def _slice(
        self,
        payer: Payer,
        month: Month,
        until: datetime,
        account: str,
        region: str,
        tags: tuple[tuple[str, str], ...],
        products: Mapping[str, str],
    ) -> Iterator[SpendLine]:
        conditions = {"PayModes": "postPay", **({"PayerUins": payer.uin} if payer.uin else {})}
        if account:
            conditions["OwnerUins"] = account
        if region:
            number = region_number(region)
            if not number:
                raise _not_askable("region " + without_secrets(region))
            conditions["RegionIds"] = number
        asked: dict[str, Any] = {"Dimensions": "business", "Conditions": conditions}
        if tags:
            asked |= {"Dimensions": "tags", "TagKeyStr": tags[0][0]}
        currency = CURRENCIES[self._session.cloud]
        for name, day, cost in self._series(payer, month, until, asked):
            if tags and name != tags[0][1]:
                continue
            service = "" if tags else products.get(name, name)
            yield SpendLine(
                cloud=payer.shard.cloud,
                billing_account_id=payer.account,
                sub_account_id=account,
                region_id=region,
                service_name=service,
                charge_category=ChargeCategory.USAGE,
                charge_period_start=day,
                charge_period_end=day + DAY,
                billed_cost=Money(cost, currency),
                effective_cost=Money(cost, currency),
                accelerated=is_platform(service, name),
                tags=dict(tags),
            )

    def _series(
        self, payer: Payer, month: Month, until: datetime, asked: Mapping[str, Any]
    ) -> Iterator[tuple[str, datetime, Decimal]]:
        last = min(until, month.plus(1).begins) - _SECOND
        period = {"BeginTime": written_local(month.begins), "EndTime": written_local(last)}
        seen = 0
        for number in range(1, _MOST_SERIES_PAGES + 1):
            answer = self._session.call(
                payer.shard,
                "billing",
                "DescribeCostExplorerSummary",
                **period,
                **asked,
                BillType="1",
                PeriodType="day",
                FeeType="cost",
                PageNo=number,
                PageSize=_SERIES_PAGE,
            )
            with as_documented(_SERIES):
                groups, total = parts(told(answer, "Detail"), "Detail"), whole(answer, "Total")
                points = [point for group in groups for point in _points(group)]
            yield from points
            seen += len(groups)
            if seen >= total:
                return
            if not groups:
                break
        raise cut_short(_SERIES, f"ended after {seen} series of {month}", "EndedEarly")


def _points(group: Fields) -> Iterator[tuple[str, datetime, Decimal]]:
    name = text(told(group, "Name"), "Name")
    for point in parts(group, "TimeDetail"):
        at, cost = moment(point, "Time"), amount_in(point, "Money")
        if at is None:
            message = "a point without time"
            raise ValueError(message)
        if cost:
            yield name, begin_of(at), cost


def _not_askable(what: str) -> RefusedError:
    message = f"{_SERIES}: it cannot be asked for {what}, and the bill is too large to be read one by one"
    return RefusedError(message, operation=_SERIES, code=NOT_ASKABLE)
