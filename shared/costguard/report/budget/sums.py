"""A budget's spend as it is printed: each amount to the cent, and the parts of each sum up to it exactly.

Every amount is its exact one rounded up or down to the cent. The total is rounded as ever, and its cents are divided
over the parts by the largest remainder: kinds of spend, then clouds, then kinds of charges and machines.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_FLOOR, Decimal
from math import prod

from costguard.domain.money import Money
from costguard.estimates.spent import Spent
from costguard.estimates.traces import CategorySum, MachineHours
from costguard.guards.budget.judge import BudgetStatus

_CENTS = 2
_EXACT_UP_TO = 6  # decimals of a price that is printed whole: clouds list theirs with four, a few with six
_LEAST_PRICE, _MOST_PLACES = 4, 12
_ONE = Decimal(1)


@dataclass(frozen=True, slots=True)
class PrintedParts:
    """What was spent, part by part."""

    billed: Money
    accrued: Money
    estimated: Money
    ahead: Money


@dataclass(frozen=True, slots=True)
class PrintedCloud:
    """One cloud's parts: what was billed by kind of charge, what was accrued by machine."""

    parts: PrintedParts
    kinds: Mapping[CategorySum, Money] = field(default_factory=dict)
    machines: Mapping[MachineHours, Money] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PrintedSums:
    """The whole of it. `rounded`: some amount is not the nearest cent, as the parts would not add up otherwise."""

    total: Money
    parts: PrintedParts
    clouds: Mapping[str, PrintedCloud]
    rounded: bool


def printed_sums(status: BudgetStatus, spent: Spent) -> PrintedSums:
    """The amounts to print of one budget's spend."""
    total, nothing = spent.total.rounded(_CENTS), Money(Decimal(0), spent.total.currency)
    exact = (spent.billed, spent.accrued, spent.estimated, spent.ahead)
    whole = PrintedParts(*divided(total, exact))
    machines: dict[str, list[MachineHours]] = {}
    for one in status.machines:
        machines.setdefault(one.ref.cloud, []).append(one)
    own = {part.cloud: part.spent for part in status.parts}
    clouds = (*own, *(cloud for cloud in sorted(machines) if cloud not in own))
    ran = {cloud: sum((one.money for one in machines.get(cloud, ())), nothing) for cloud in clouds}
    rows = (
        divided(whole.billed, [own[cloud].billed if cloud in own else nothing for cloud in clouds]),
        divided(whole.accrued, [own[cloud].accrued if cloud in own else ran[cloud] for cloud in clouds]),
        divided(whole.estimated, [own[cloud].estimated if cloud in own else nothing for cloud in clouds]),
        divided(whole.ahead, [own[cloud].ahead if cloud in own else nothing for cloud in clouds]),
    )
    kinds = {part.cloud: [each for each in part.categories if each.counts] for part in status.parts}
    found = {}
    for cloud, *amounts in zip(clouds, *rows, strict=True):
        parts = PrintedParts(*amounts)
        worth = [each.worth or nothing for each in kinds.get(cloud, ())]
        costs = [one.money for one in machines.get(cloud, ())]
        found[cloud] = PrintedCloud(
            parts,
            dict(zip(kinds.get(cloud, ()), divided(parts.billed, worth), strict=True)),
            dict(zip(machines.get(cloud, ()), divided(parts.accrued, costs), strict=True)),
        )
    return PrintedSums(total, whole, found, rounded=_is_moved(status, spent, whole, found))


def divided(total: Money, parts: Sequence[Money], places: int = _CENTS) -> tuple[Money, ...]:
    """The parts, each rounded up or down, so that they add up to `total`, which is their sum rounded up or down."""
    if not parts:
        return ()
    unit = Decimal(1).scaleb(-places)
    floors = [part.amount.quantize(unit, rounding=ROUND_FLOOR) for part in parts]
    missing = int((total.amount - sum(floors)) / unit)
    each, more = divmod(missing, len(parts))
    by_remainder = sorted(range(len(parts)), key=lambda place: floors[place] - parts[place].amount)
    up = frozenset(by_remainder[:more])
    return tuple(Money(floor + unit * (each + (place in up)), total.currency) for place, floor in enumerate(floors))


def factors_that_matter(time: Decimal, price: Decimal, *factors: Decimal) -> tuple[Decimal, ...]:
    """Hours, a price and what it is multiplied by, with as few decimals as give their product to the cent."""
    exact = prod((time, price, *factors), start=_ONE)
    for more in range(_MOST_PLACES):
        shown = (_within(time, 1 + more), *(_whole_or(one, _LEAST_PRICE + more) for one in (price, *factors)))
        if round(prod(shown, start=_ONE), _CENTS) == round(exact, _CENTS):
            return shown
    return (time, price, *factors)


def _whole_or(value: Decimal, places: int) -> Decimal:
    whole = _within(value, _EXACT_UP_TO)
    return whole if whole == value else _within(value, places)


def _within(value: Decimal, places: int) -> Decimal:
    return round(value, places)


def _is_moved(status: BudgetStatus, spent: Spent, whole: PrintedParts, clouds: Mapping[str, PrintedCloud]) -> bool:
    nothing = Money(Decimal(0), spent.total.currency)
    own = {part.cloud: part.spent for part in status.parts}
    pairs = list(_pairs(spent, whole))
    for cloud, found in clouds.items():
        if cloud in own:
            pairs += _pairs(own[cloud], found.parts)
        pairs += [(each.worth or nothing, money) for each, money in found.kinds.items()]
        pairs += [(each.money, money) for each, money in found.machines.items()]
    return any(exact.rounded(_CENTS) != money for exact, money in pairs)


def _pairs(exact: Spent, shown: PrintedParts) -> tuple[tuple[Money, Money], ...]:
    return (
        (exact.billed, shown.billed),
        (exact.accrued, shown.accrued),
        (exact.estimated, shown.estimated),
        (exact.ahead, shown.ahead),
    )
