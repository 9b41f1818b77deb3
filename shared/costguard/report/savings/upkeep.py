"""What Costguard itself costs a month, line by line: a table for people, and the JSON of `costguard deploy --cost`."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Final

from costguard.domain.money import Money
from costguard.estimates.upkeep import CostLine, Upkeep
from costguard.report.json_values import money_json
from costguard.report.tables import Column, Table
from costguard.report.words.sentences import Language, label, listed, phrase

if TYPE_CHECKING:
    from costguard.report.savings import shapes

UPKEEP_SCHEMA: Final = 1
_TINY = Decimal("0.005")
_PLACES = 10


def upkeep_table(upkeep: Upkeep, language: Language = Language.EN) -> Table:
    """A row for each thing that is paid for, dearest first, those that nobody knows last."""
    columns = (
        Column("item", label("upkeep_item", language)),
        Column("quantity", label("upkeep_quantity", language), numeric=True),
        Column("unit", label("upkeep_unit", language)),
        Column("price", label("upkeep_price", language), numeric=True),
        Column("amount", label("upkeep_amount", language), numeric=True),
        Column("source", label("upkeep_source", language)),
    )
    rows = tuple(_row(line, language) for line in _ordered(upkeep))
    return Table(phrase("upkeep_title", language, cloud=upkeep.cloud), columns, rows, foldable=False)


def upkeep_lines(upkeep: Upkeep, language: Language = Language.EN) -> tuple[str, ...]:
    """The sum, what is not in it, and what was assumed."""
    assumed = upkeep.assumed
    known = listed((str(each) for each in upkeep.known), language)
    missing = listed((phrase(f"upkeep_of_{line.item.value}", language) for line in upkeep.unknown), language)
    said = [phrase("upkeep_known", language, amount=known)]
    if upkeep.unknown:
        said.append(phrase("upkeep_unknown", language, items=missing))
    said.append(
        phrase(
            "upkeep_assumed",
            language,
            machines=assumed.machines,
            cards=assumed.cards,
            budgets=assumed.budgets,
            seconds=int(assumed.run_time.total_seconds()),
        )
    )
    return (*said, phrase(f"upkeep_prices_{upkeep.cloud}", language))


def upkeep_json(upkeep: Upkeep, language: Language = Language.EN) -> shapes.DeployCost:
    """Amounts are exact; null where nobody knows, which never means zero."""
    assumed = upkeep.assumed
    return {
        "schema": UPKEEP_SCHEMA,
        "cloud": upkeep.cloud,
        "region_id": upkeep.region,
        "known": [money_json(each) for each in upkeep.known],
        "complete": not upkeep.unknown,
        "assumed": {
            "machines": assumed.machines,
            "cards": assumed.cards,
            "budgets": assumed.budgets,
            "run_seconds": int(assumed.run_time.total_seconds()),
        },
        "lines": [_line_json(line, language) for line in _ordered(upkeep)],
        "words": list(upkeep_lines(upkeep, language)),
    }


def _ordered(upkeep: Upkeep) -> list[CostLine]:
    return sorted(upkeep.lines, key=lambda line: (line.amount is None, -(line.amount.amount if line.amount else 0)))


def _line_json(line: CostLine, language: Language) -> shapes.CostLine:
    price = line.price
    return {
        "item": line.item.value,
        "words": phrase(f"upkeep_of_{line.item.value}", language),
        "quantity": _plain(line.quantity, 4),
        "unit": line.unit,
        "unit_price": None if price is None else {"amount": _plain(price.amount, _PLACES), "currency": price.currency},
        "monthly_cost": None if line.amount is None else money_json(line.amount.rounded(4)),
        "unknown": None if line.unknown is None or price is not None else line.unknown.value,
        "source": None if price is None else price.source,
        "as_of": None if price is None else price.as_of,
    }


def _row(line: CostLine, language: Language) -> tuple[str, ...]:
    unit = phrase(f"upkeep_in_{line.unit}", language)
    item = phrase(f"upkeep_of_{line.item.value}", language)
    price = line.price
    if price is None or line.amount is None:
        why = phrase(f"upkeep_why_{line.unknown.value}", language) if line.unknown is not None else ""
        return item, _number(line.quantity), unit, "", label("upkeep_not_known", language), why
    return item, _number(line.quantity), unit, _plain(price.amount, _PLACES), _cost(line.amount), _page(line, language)


def _page(line: CostLine, language: Language) -> str:
    if line.price is None:
        return ""
    return phrase("upkeep_page", language, source=line.price.source, as_of=line.price.as_of)


def _cost(amount: Money) -> str:
    if not amount.amount:
        return f"0 {amount.currency}"
    return str(amount) if amount.amount >= _TINY else f"< 0.01 {amount.currency}"


def _number(quantity: Decimal) -> str:
    return f"{quantity.quantize(Decimal(1)):,}" if quantity >= 10 else _plain(quantity, 2)  # noqa: PLR2004 - two digits


def _plain(value: Decimal, places: int) -> str:
    """Without exponent and trailing zeros."""
    text = f"{value.quantize(Decimal(1).scaleb(-places)):f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
