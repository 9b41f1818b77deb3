"""Many charges as few: what a ledger keeps of a bill."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from costguard.domain.money import Money
from costguard.domain.spend import SpendLine


def condensed(lines: Iterable[SpendLine]) -> tuple[SpendLine, ...]:
    """Charges alike in time, kind and currency as one line, in order of time; their sums stay exact.

    What tells resources apart is dropped; account, service and type stay where accelerators were charged for.
    """
    found: dict[tuple[object, ...], SpendLine] = {}
    for line in lines:
        kind = replace(
            line,
            sub_account_id=line.sub_account_id if line.accelerated else "",
            region_id="",
            service_name=line.service_name if line.accelerated else "",
            instance_type=line.instance_type if line.accelerated else "",
            resource_id="",
            resource_name="",
            tags={},
        )
        key = (*_order(kind), line.cloud, line.billing_account_id)
        known = found.get(key)
        found[key] = kind if known is None else _together(known, kind)
    return tuple(found[key] for key in sorted(found, key=str))


def _together(one: SpendLine, other: SpendLine) -> SpendLine:
    return replace(
        one, billed_cost=one.billed_cost + other.billed_cost, effective_cost=one.effective_cost + other.effective_cost
    )


def _order(line: SpendLine) -> tuple[object, ...]:
    money: tuple[Money, Money] = (line.billed_cost, line.effective_cost)
    return (
        line.charge_period_start.isoformat(),
        line.charge_period_end.isoformat(),
        line.charge_category.value,
        line.pricing_category.value,
        line.sub_account_id,
        line.service_name,
        line.instance_type,
        line.accelerated,
        *(each.currency for each in money),
    )
