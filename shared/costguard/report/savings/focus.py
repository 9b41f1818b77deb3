"""Savings in the shape of FOCUS 1.2 or 1.3: a row for each machine, day and currency. Nothing in it was ever charged.

What was not spent is on no invoice, so every cost that FOCUS defines is 0 and what was saved stands in columns of our
own: put beside a bill, these rows change none of its sums. Empty is null.
Columns: https://focus.finops.org/focus-specification/v1-2/ (all that are mandatory, then conditional and recommended
ones, then `x_`). Version 1.3 (…/v1-3/) makes `ServiceProviderName` and `HostProviderName` mandatory; `ProviderName` and
`PublisherName`, which they replace, are deprecated there and stay.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal

from costguard.domain.money import Money, hours
from costguard.domain.refs import ResourceRef, provider_of
from costguard.domain.savings import SavingCause
from costguard.planning.realised import Realised
from costguard.report.json_values import moment
from costguard.report.savings.sums import MachineDay, days_of
from costguard.report.tables import Column, Table
from costguard.report.words.sentences import clean

FOCUS_VERSION = "1.2"
ADDED: Mapping[str, tuple[str, ...]] = {FOCUS_VERSION: (), "1.3": ("HostProviderName", "ServiceProviderName")}
"""The versions that can be written, and what each has beyond the first."""
MANDATORY = (
    "BilledCost",
    "BillingAccountId",
    "BillingAccountName",
    "BillingCurrency",
    "BillingPeriodEnd",
    "BillingPeriodStart",
    "ChargeCategory",
    "ChargeClass",
    "ChargeDescription",
    "ChargePeriodEnd",
    "ChargePeriodStart",
    "ContractedCost",
    "EffectiveCost",
    "InvoiceIssuerName",
    "ListCost",
    "PricingQuantity",
    "PricingUnit",
    "ProviderName",
    "PublisherName",
    "ServiceCategory",
    "ServiceName",
)
CONDITIONAL = ("RegionId", "RegionName", "ResourceId", "ResourceName", "ResourceType", "SubAccountId", "SubAccountName")
"""Due where the one who makes the data knows regions, resources with types, and sub-accounts."""
RECOMMENDED = ("ChargeFrequency", "InvoiceId", "ServiceSubcategory")
OWN = (
    "x_RealisedSaving",
    "x_PredictedSaving",
    "x_StillBilledCost",
    "x_CountedHours",
    "x_Verb",
    "x_Standing",
    "x_ActionId",
    "x_CaseId",
    "x_Guard",
    "x_Rule",
    "x_Owner",
    "x_InstanceType",
    "x_HourlyPrice",
    "x_PriceSource",
    "x_PriceAsOf",
    "x_Cause",
    "x_RealisedEffectiveSaving",
)
_NAMES: Mapping[str, str] = {"aws": "AWS", "alibaba": "Alibaba Cloud", "tencent": "Tencent Cloud"}
_COMPUTE: Mapping[str, str] = {
    "aws": "Amazon Elastic Compute Cloud",
    "alibaba": "Elastic Compute Service",
    "tencent": "Cloud Virtual Machine",
}
_ADDRESSES: Mapping[str, str] = {
    "aws": "Amazon Virtual Private Cloud",
    "alibaba": "Elastic IP Address",
    "tencent": "Elastic IP",
}
_NOTHING = "0.00"  # FOCUS wants decimals, and a reader of CSV takes a bare 0 for an integer
_ONE_DAY = timedelta(days=1)
_PLACES = Decimal("0.0001")


def focus_rows(savings: Iterable[Realised], since: datetime, until: datetime, version: str = FOCUS_VERSION) -> Table:
    """A row for each day in which a machine saved or still cost something, and each currency of that.

    Raises:
        KeyError: no such version of FOCUS can be written.
    """
    added = ADDED[version]
    columns = tuple(Column(name, name) for name in (*MANDATORY, *CONDITIONAL, *RECOMMENDED, *added, *OWN))
    return Table(
        "",
        columns,
        tuple(
            row
            for one in savings
            for day in days_of(one, since, until)
            if day.since < one.until
            for row in _rows(one, day, len(added))
        ),
    )


def _rows(one: Realised, day: MachineDay, added: int) -> Iterator[tuple[str, ...]]:
    name = _name(one)
    currencies = dict.fromkeys(money.currency for each in (day.realised, day.still_billed) for money in each)
    for currency in currencies:
        yield (*_charge(one, day, currency), *(name,) * added, *_about(one, day, currency))


def _name(one: Realised) -> str:
    provider = provider_of(one.saving.action.subject.cloud)
    return _NAMES.get(provider, provider)


def _charge(one: Realised, day: MachineDay, currency: str) -> tuple[str, ...]:
    ref, saving = one.saving.action.subject, one.saving
    provider = provider_of(ref.cloud)
    month = day.day.replace(day=1)
    names = _name(one)
    return (
        _NOTHING,
        ref.account,
        "",
        currency,
        _midnight((month + 31 * _ONE_DAY).replace(day=1)),
        _midnight(month),
        "Adjustment",
        "",
        f"Not charged: what was saved by action {saving.action.action_id} ({saving.action.verb.value})",
        moment(min(day.until, one.until)) or "",
        moment(day.since) or "",
        _NOTHING,
        _NOTHING,
        names,
        _NOTHING,
        "",
        "",
        names,
        names,
        "Compute" if _is_machine(ref) else "Networking",
        (_COMPUTE if _is_machine(ref) else _ADDRESSES).get(provider, provider),
        ref.region,
        ref.region,
        ref.native_id,
        clean(saving.name),
        ref.kind,
        ref.account,
        ref.account,
        "One-Time",
        "",
        "Virtual Machines" if _is_machine(ref) else "Network Infrastructure",
    )


def _about(one: Realised, day: MachineDay, currency: str) -> tuple[str, ...]:
    saving, action = one.saving, one.saving.action
    price = action.saving.price if action.saving is not None else None
    return (
        _in(day.realised, currency) or "0",
        _in(day.predicted, currency) or "0",
        _in(day.still_billed, currency) or "0",
        f"{hours(min(day.until, one.until) - day.since).quantize(_PLACES):f}",
        action.verb.value,
        one.standing.value,
        action.action_id,
        action.case_id,
        clean(saving.guard),
        clean(action.rule),
        clean(saving.owner),
        clean(saving.machine.instance_type) if saving.machine is not None else "",
        f"{price.money.amount:f}" if price is not None and price.money.currency == currency else "",
        clean(price.source) if price is not None else "",
        clean(price.as_of) if price is not None else "",
        (saving.cause or SavingCause.UNATTRIBUTED).value,
        _in(day.net, currency),
    )


def _is_machine(ref: ResourceRef) -> bool:
    return ref.kind == "instance"


def _in(amounts: Iterable[Money], currency: str) -> str:
    return next((f"{money.amount:f}" for money in amounts if money.currency == currency), "")


def _midnight(day: date) -> str:
    return moment(datetime(day.year, day.month, day.day, tzinfo=timezone.utc)) or ""
