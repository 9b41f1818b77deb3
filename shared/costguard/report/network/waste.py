"""Addresses and gateways that are paid for and do nothing, and what they come to."""

from __future__ import annotations

from collections.abc import Sequence

from costguard.domain.findings import Finding
from costguard.domain.money import HOURS_PER_MONTH, Money, totals
from costguard.domain.network import Unpriced
from costguard.report.network.order import PAID_FOR_NOTHING, NetworkLine, NetworkReport, check_id, named, shard_of
from costguard.report.tables import Column, Table
from costguard.report.words.sentences import Language, clean, hourly, phrase

_COLUMNS = ("name", "shard", "check", "cost", "month", "owner")


def cost_words(finding: Finding, language: Language = Language.EN) -> str:
    """What it costs an hour; empty of what costs nothing by itself."""
    if finding.reason.code not in PAID_FOR_NOTHING:
        return ""
    if finding.rate is not None:
        return hourly(finding.rate.money)
    why = finding.reason.facts.get("unpriced")
    known = why in {each.value for each in Unpriced}
    return phrase(f"networks_{why}" if known else "networks_price_unknown", language)


def waste_table(report: NetworkReport, language: Language = Language.EN) -> Table:
    """What is paid for nothing, with what it comes to: one sum for each currency, unknown prices counted."""
    lines = report.waste
    return Table(
        phrase("networks_waste_title", language, count=len(lines)),
        tuple(Column(key, phrase(f"networks_{key}", language), numeric=key in {"cost", "month"}) for key in _COLUMNS),
        tuple(_waste_row(line, language) for line in lines),
        note=_waste_total(lines, language),
    )


def _waste_total(lines: Sequence[NetworkLine], language: Language) -> str:
    rates = [line.finding.rate.money for line in lines if line.finding.rate is not None]
    sums = phrase("networks_list", language).join(
        phrase("networks_sum", language, hour=hourly(each), month=str(_monthly(each))) for each in totals(rates)
    )
    return phrase("networks_waste_total", language, sums=sums, unknown=(len(lines) - len(rates)) or "")


def _monthly(money: Money) -> Money:
    return money.times(HOURS_PER_MONTH)


def _waste_row(line: NetworkLine, language: Language) -> tuple[str, ...]:
    finding = line.finding
    month = "" if finding.rate is None else str(_monthly(finding.rate.money))
    cost, owner = cost_words(finding, language), clean(finding.owner)
    return (named(finding), shard_of(finding), check_id(finding), cost, month, owner)
