"""What a world is charged, in the dimensions that Cost Explorer filters and groups by."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal

from typing_extensions import assert_never

from cloudstand.world.billing import Charge, bill
from cloudstand.world.cloud import World
from cloudstand.world.money import ChargeCategory, PricingCategory

_COMPUTE = "Amazon Elastic Compute Cloud - Compute"
_SERVICES = {
    "compute": _COMPUTE,
    "volume": "EC2 - Other",
    "ai_platform": "Amazon SageMaker",
    "support": "AWS Support (Business)",
    "tax": "Tax",
    "credit": _COMPUTE,  # both stand with the service that they are given for
    "refund": _COMPUTE,
}
_USAGE_TYPES = {"volume": "EBS:VolumeUsage.gp3", "ai_platform": "Studio:KernelGateway"}


@dataclass(frozen=True, slots=True)
class CostFact:
    """One charge of one day. `dimensions` holds every dimension that this stand-in knows."""

    day: datetime
    account: str
    dimensions: Mapping[str, str]
    tags: Mapping[str, str]
    metrics: Mapping[str, Decimal]
    currency: str


def cost_facts(world: World, cloud: str, since: datetime, until: datetime) -> Iterator[CostFact]:
    """What the bill shows at this moment for the days from `since` to `until`."""
    for charge in bill(world, cloud, since, until):
        off = charge.list_cost.amount - charge.billed.amount
        yield _fact(charge, _dimensions(charge), off)
        if off:
            yield _discount(charge, off)


def _fact(charge: Charge, dimensions: Mapping[str, str], off: Decimal) -> CostFact:
    return CostFact(
        day=charge.start.replace(hour=0, minute=0, second=0, microsecond=0),
        account=charge.account,
        dimensions=dimensions,
        tags=charge.tags or {},
        metrics={
            "UnblendedCost": charge.billed.amount + off,
            "NetUnblendedCost": charge.billed.amount,
            "BlendedCost": charge.billed.amount + off,
            "AmortizedCost": charge.effective.amount + off,
            "NetAmortizedCost": charge.effective.amount,
            "UsageQuantity": charge.hours,
            "NormalizedUsageAmount": charge.hours,
        },
        currency=charge.billed.currency,
    )


def _discount(charge: Charge, off: Decimal) -> CostFact:
    """What a contract takes off: a line of its own in the costs before discounts, and nothing in the net ones.

    https://docs.aws.amazon.com/cur/latest/userguide/discount-details.html, and `LineItemType` in "Line item details".
    """
    nothing = charge.billed.times(0)
    line = replace(charge, billed=nothing, effective=nothing, hours=Decimal(0), listed=None)
    return _fact(line, {**_dimensions(charge), "RECORD_TYPE": "EdpDiscount"}, -off)


def _dimensions(charge: Charge) -> Mapping[str, str]:
    machine = charge.instance_type
    return {
        "LINKED_ACCOUNT": charge.account,
        "REGION": charge.region or "NoRegion",
        "SERVICE": _SERVICES.get(charge.service, charge.service),
        "INSTANCE_TYPE": machine or "NoInstanceType",
        "RECORD_TYPE": _record_type(charge),
        "PURCHASE_TYPE": _purchase_type(charge.pricing),
        "USAGE_TYPE": f"BoxUsage:{machine}" if machine else _USAGE_TYPES.get(charge.service, "NoUsageType"),
    }


def _record_type(charge: Charge) -> str:
    if charge.category is ChargeCategory.USAGE:
        return "DiscountedUsage" if charge.pricing is PricingCategory.COMMITTED else "Usage"
    if charge.category is ChargeCategory.PURCHASE:
        return "Fee"
    if charge.category is ChargeCategory.TAX:
        return "Tax"
    if charge.category is ChargeCategory.CREDIT:
        return "Credit"
    if charge.category is ChargeCategory.ADJUSTMENT:
        return "Refund"
    assert_never(charge.category)


def _purchase_type(pricing: PricingCategory) -> str:
    if pricing is PricingCategory.COMMITTED:
        return "Standard Reserved Instances"
    return "Spot Instances" if pricing is PricingCategory.DYNAMIC else "On Demand Instances"
