"""Lines of spend, made of several groupings of the same charges so that each charge is counted once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from functools import reduce
from operator import add

from costguard.domain.money import ChargeCategory, Money, PricingCategory, SpendLine
from costguard.providers.aws.billing.answers import DAY, Costs, Grouped
from costguard.providers.aws.compute.instance_types import names_accelerator

_NO_TYPE = frozenset({"", "noinstancetype"})
_ROUNDING = Decimal("0.000001")  # AWS rounds every figure to ten places or so, and a sum apart from its parts
_SAGEMAKER, _EC2 = "SageMaker", "Amazon Elastic Compute Cloud"  # `EC2 - Other` has disks and traffic, no machines
_PRICES = (PricingCategory.STANDARD, PricingCategory.COMMITTED)


@dataclass(frozen=True, slots=True)
class Slice:
    """What all charges of one question have in common. `accounts` None: of everybody; no region: of every one.

    `net`: effective costs are after discounts, which lines of their own take off the billed ones.
    """

    cloud: str
    payer: str
    accounts: tuple[str, ...] | None
    region: str
    tags: tuple[tuple[str, str], ...]
    net: bool = False

    @property
    def account(self) -> str:
        """The one account it is of, else nothing."""
        return self.accounts[0] if self.accounts is not None and len(self.accounts) == 1 else ""


@dataclass(frozen=True, slots=True)
class MachineUse:
    """Use of machines at one kind of price: of EC2, or of SageMaker (a `platform`), in the words of this bill."""

    services: tuple[str, ...]
    record_types: tuple[str, ...]
    pricing: PricingCategory
    platform: bool


@dataclass(frozen=True, slots=True)
class Groupings:
    """The same charges, grouped three ways.

    `by_service`, by service and record type, holds everything. `by_machine`, by account and instance type, holds each
    of `machine_uses`. `by_account`, by account and record type, holds everything as well; None where accounts need not
    be told apart.
    """

    by_service: Grouped
    by_machine: Mapping[MachineUse, Grouped]
    by_account: Grouped | None


@dataclass(frozen=True, slots=True)
class _Part:
    day: datetime
    account: str
    service: str
    instance_type: str
    kind: tuple[ChargeCategory, PricingCategory]
    costs: Costs
    accelerated: bool


def machine_uses(by_service: Grouped) -> tuple[MachineUse, ...]:
    """What has to be asked for by machine: at most both services at both kinds of price."""
    found: dict[tuple[bool, PricingCategory], list[tuple[str, str]]] = {}
    for _, service, record_type in by_service:
        price = _price_of_machines(service, record_type)
        if price is not None:
            found.setdefault((_SAGEMAKER in service, price), []).append((service, record_type))
    return tuple(
        MachineUse(
            tuple(sorted({name for name, _ in uses})), tuple(sorted({kind for _, kind in uses})), price, platform
        )
        for (platform, price), uses in sorted(found.items())
    )


def lines_of(groupings: Groupings, of: Slice) -> Iterator[SpendLine]:
    """Every charge once.

    Machines with accelerators have account and type, SageMaker's other use has the account. All else is a line by
    service and record type or, where accounts are to be told apart, by account and record type. Whatever `by_machine`
    says, a day adds up to what `by_service`, or `by_account` if there is one, says of it: a bill may be renewed between
    two questions.
    """
    machines = list(_machines(groupings.by_service, groupings.by_machine))
    if groupings.by_account is None:
        parts: Iterable[_Part] = (*machines, *_beside_machines(groupings.by_service))
    else:
        known = [part for part in machines if part.account]
        parts = (*known, *_rest_of_accounts(groupings.by_account, known))
    for part in parts:
        if part.costs.size:
            yield _line(part, of)


def _machines(by_service: Grouped, by_machine: Mapping[MachineUse, Grouped]) -> Iterator[_Part]:
    for use, grouped in by_machine.items():
        rows: dict[datetime, list[tuple[str, str, Costs]]] = {}
        for (day, account, instance_type), costs in grouped.items():
            rows.setdefault(day, []).append((account, instance_type, costs))
        wholes: dict[datetime, dict[str, Costs]] = {}
        for (day, service, record_type), costs in by_service.items():
            if service in use.services and record_type in use.record_types:
                services = wholes.setdefault(day, {})
                services[service] = services[service] + costs if service in services else costs
        for day, services in wholes.items():
            yield from _machines_of_day(day, services, rows.get(day, []), use)


def _machines_of_day(
    day: datetime, services: Mapping[str, Costs], rows: list[tuple[str, str, Costs]], use: MachineUse
) -> Iterator[_Part]:
    """The largest service stands for both, should a renamed one stand beside its old name."""
    service = max(services, key=lambda name: (services[name].size, name))
    blank = _Part(
        day, "", service, "", (ChargeCategory.USAGE, use.pricing), reduce(add, services.values()), use.platform
    )
    found, plain = [], []
    for account, instance_type, costs in rows:
        if names_accelerator(instance_type):
            found.append(replace(blank, account=account, instance_type=instance_type, costs=costs, accelerated=True))
        elif use.platform and instance_type.casefold() in _NO_TYPE:
            found.append(replace(blank, account=account, costs=costs))
        elif use.platform:  # of EC2 these are what is left
            plain.append(costs)
    if plain:
        found.append(replace(blank, costs=reduce(add, plain), accelerated=False))
    left = reduce(Costs.less, (part.costs for part in found), blank.costs)
    yield from _with_rest(found, replace(blank, costs=left))


def _with_rest(parts: list[_Part], rest: _Part) -> Iterator[_Part]:
    """`rest` as well; if it is no more than rounding, in the largest of the others."""
    if not parts or rest.costs.size > _ROUNDING:
        yield from (*parts, rest)
        return
    largest = max(parts, key=lambda part: part.costs.size)
    yield from (replace(part, costs=part.costs + rest.costs) if part is largest else part for part in parts)


def _beside_machines(by_service: Grouped) -> Iterator[_Part]:
    for (day, service, record_type), costs in by_service.items():
        if _price_of_machines(service, record_type) is None:
            kind = kind_of(record_type, costs.billed.amount)
            yield _Part(day, "", service, "", kind, costs, accelerated=_SAGEMAKER in service)


def _rest_of_accounts(by_account: Grouped, machines: Iterable[_Part]) -> Iterator[_Part]:
    """What the accounts were charged for besides `machines`, by kind; the service is not told."""
    left: dict[tuple[datetime, str, tuple[ChargeCategory, PricingCategory]], Costs] = {}
    for (day, account, record_type), costs in by_account.items():
        key = (day, account, kind_of(record_type, costs.billed.amount))
        left[key] = left[key] + costs if key in left else costs
    for part in machines:
        key = (part.day, part.account, part.kind)
        if key in left:
            left[key] = left[key].less(part.costs)
        else:
            left[key] = part.costs.less(part.costs).less(part.costs)
    for (day, account, kind), costs in left.items():
        yield _Part(day, account, "", "", kind, costs, accelerated=False)


def _line(part: _Part, of: Slice) -> SpendLine:
    category, pricing = part.kind
    return SpendLine(
        cloud=of.cloud,
        billing_account_id=of.payer,
        sub_account_id=part.account or of.account,
        region_id=of.region,
        service_name=part.service,
        charge_category=category,
        charge_period_start=part.day,
        charge_period_end=part.day + DAY,
        billed_cost=part.costs.billed,
        effective_cost=part.costs.effective,
        pricing_category=pricing,
        instance_type=part.instance_type,
        accelerated=part.accelerated,
        tags=dict(of.tags),
        list_cost=_list_cost(part) if of.net else None,
    )


def _list_cost(part: _Part) -> Money | None:
    """The unblended cost of use outside commitments: there a contract's discounts are lines of their own.

    https://docs.aws.amazon.com/cur/latest/userguide/discount-details.html, and `LineItemType` in "Line item details".
    """
    outside = part.kind == (ChargeCategory.USAGE, PricingCategory.STANDARD)
    return part.costs.billed if outside and part.accelerated and part.instance_type else None


def _price_of_machines(service: str, record_type: str) -> PricingCategory | None:
    """At what kind of price these charges are for the use of machines; None if they are not."""
    category, pricing = kind_of(record_type, Decimal(0))
    has_machines = service.startswith(_EC2) or _SAGEMAKER in service
    return pricing if has_machines and category is ChargeCategory.USAGE and pricing in _PRICES else None


_KINDS = {
    "usage": (ChargeCategory.USAGE, PricingCategory.STANDARD),
    "discountedusage": (ChargeCategory.USAGE, PricingCategory.COMMITTED),  # paid for by a Reserved Instance
    # billed at list price and taken off again in a line of its own: together nothing
    "savingsplancoveredusage": (ChargeCategory.USAGE, PricingCategory.COMMITTED),
    "savingsplannegation": (ChargeCategory.USAGE, PricingCategory.COMMITTED),
    "savingsplanrecurringfee": (ChargeCategory.PURCHASE, PricingCategory.COMMITTED),
    "savingsplanupfrontfee": (ChargeCategory.PURCHASE, PricingCategory.COMMITTED),
    "rifee": (ChargeCategory.PURCHASE, PricingCategory.COMMITTED),
    "recurring": (ChargeCategory.PURCHASE, PricingCategory.COMMITTED),
    "upfront": (ChargeCategory.PURCHASE, PricingCategory.COMMITTED),
    "fee": (ChargeCategory.PURCHASE, PricingCategory.OTHER),  # upfront payments, support, subscriptions
    "tax": (ChargeCategory.TAX, PricingCategory.OTHER),
    "credit": (ChargeCategory.CREDIT, PricingCategory.OTHER),
    "refund": (ChargeCategory.ADJUSTMENT, PricingCategory.OTHER),
}


def kind_of(record_type: str, billed: Decimal) -> tuple[ChargeCategory, PricingCategory]:
    """FOCUS's words for a charge type. Spot is usage like any other here: only the purchase option tells.

    The console and the API write some of them differently (`Savings Plan Negation`). Discounts, and whatever is not
    known and negative, are corrections: those always count, as credits need not.
    """
    plain = "".join(letter for letter in record_type.casefold() if letter.isalnum())
    known = _KINDS.get(plain)
    if known is not None:
        return known
    corrects = plain.endswith("discount") or billed < 0
    return (ChargeCategory.ADJUSTMENT if corrects else ChargeCategory.USAGE, PricingCategory.OTHER)
