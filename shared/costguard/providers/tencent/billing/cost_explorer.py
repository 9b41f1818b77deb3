"""A month too large to be read record by record: what is paid for after use, by day, as the cost explorer adds it up.

One series for each product where a scope asks for no tag, or for each value of the tag it asks for: one or two requests
for each account and region that a scope names. What it has not: resources, instance types, and vouchers apart. A scope
of several tags cannot be asked for, as the form of such a condition is not published: that is a gap.
What is paid in advance is not asked for here: its records are few, and are read one by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from costguard.domain.errors import RefusedError, TruncatedReadError
from costguard.domain.money import ChargeCategory, Money, SpendLine, SpendScope
from costguard.providers.kit.core.fields import Fields, as_documented, parts, text, whole
from costguard.providers.kit.core.redaction import without_secrets
from costguard.providers.tencent.billing.answers import amount_in, is_platform, region_number
from costguard.providers.tencent.billing.lines import DAY, day_of
from costguard.providers.tencent.billing.requests import Calls, Month, Payer
from costguard.providers.tencent.core.fields import moment, told, written_local
from costguard.providers.tencent.core.products import CURRENCIES

_OPERATION = "billing:DescribeCostExplorerSummary"
_PAGE = 100
_MOST_PAGES = 100
_SECOND = timedelta(seconds=1)
NOT_ASKABLE = "NotAskable"
"""A code of our own: Tencent Cloud publishes no way to ask for this."""


class CostExplorer:
    """Asks for daily series."""

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
        for number in range(1, _MOST_PAGES + 1):
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
                PageSize=_PAGE,
            )
            with as_documented(_OPERATION):
                groups, total = parts(told(answer, "Detail"), "Detail"), whole(answer, "Total")
                points = [point for group in groups for point in _points(group)]
            yield from points
            seen += len(groups)
            if seen >= total:
                return
            if not groups:
                break
        message = f"{_OPERATION}: ended after {seen} series of {month}"
        raise TruncatedReadError(message, operation=_OPERATION, code="EndedEarly")


def _points(group: Fields) -> Iterator[tuple[str, datetime, Decimal]]:
    name = text(told(group, "Name"), "Name")
    for point in parts(group, "TimeDetail"):
        at, cost = moment(point, "Time"), amount_in(point, "Money")
        if at is None:
            message = "a point without time"
            raise ValueError(message)
        if cost:
            yield name, day_of(at), cost


def _not_askable(what: str) -> RefusedError:
    message = f"{_OPERATION}: it cannot be asked for {what}, and the bill is too large to be read one by one"
    return RefusedError(message, operation=_OPERATION, code=NOT_ASKABLE)
