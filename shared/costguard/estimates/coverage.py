"""How much of what machines cost is under no commitment: only that can be saved by stopping them. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from decimal import ROUND_FLOOR, Decimal

from costguard.domain.money import Bill, ChargeCategory, Money, PricingCategory
from costguard.domain.savings import Coverage, MachineBill

LOOKED_BACK = timedelta(days=8)  # a week of whole days, and the day in progress
DEEPEST_DISCOUNT = Decimal("0.72")
"""Of Savings Plans and reserved instances, as AWS publishes it. What commitments cover is counted as if it were bought
at this discount, so that covered hours are never taken for too few."""

_PLACES = Decimal("0.0001")


def uncovered_in(bills: Iterable[Bill], account: str, instance_type: str, at: datetime) -> Coverage | None:
    """What share of machines of a type in an account was outside commitments just before `at`; None if no bill tells.

    Bills of several scopes may hold the same charges, so the least of them is taken, not a sum.
    """
    found = [one for bill in bills for one in [_in_bill(bill, account, instance_type, at)] if one is not None]
    return min(found, key=lambda one: one.uncovered, default=None)


def uncovered_before(bill: MachineBill | None, at: datetime) -> Coverage | None:
    """The same for one machine, by the bill's charges for it before `at`; None if there are none."""
    if bill is None:
        return None
    charges = [one for one in bill.charges if at - LOOKED_BACK <= one.start and one.end <= at]
    free, committed = ([one.effective for one in charges if one.committed is under] for under in (False, True))
    share = _share(free, committed)
    return None if share is None else Coverage(share, bill.source, max(one.end for one in charges))


def _in_bill(bill: Bill, account: str, instance_type: str, at: datetime) -> Coverage | None:
    until = min(at, bill.complete_until) if bill.complete_until is not None else None
    if until is None:
        return None
    lines = [
        line
        for line in bill.lines
        if line.accelerated
        and (line.sub_account_id, line.instance_type) == (account, instance_type)
        and line.charge_category is ChargeCategory.USAGE
        and until - LOOKED_BACK <= line.charge_period_start
        and line.charge_period_end <= until
    ]
    free, committed = (
        [line.effective_cost for line in lines if (line.pricing_category is PricingCategory.COMMITTED) is under]
        for under in (False, True)
    )
    share = _share(free, committed)
    return None if share is None else Coverage(share, bill.source, until)


def _share(free: list[Money], committed: list[Money]) -> Decimal | None:
    outside = sum((money.amount for money in free), Decimal(0))
    inside = sum((money.amount for money in committed), Decimal(0)) / (1 - DEEPEST_DISCOUNT)
    if outside < 0 or inside < 0 or outside + inside <= 0:
        return None
    return (outside / (outside + inside)).quantize(_PLACES, ROUND_FLOOR)
