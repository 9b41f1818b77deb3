"""What was saved as the JSON that `costguard savings --json` documents, and as a row an action."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from costguard.domain.money import Money
from costguard.domain.savings import Coverage, SavingEntry, SavingsReport, SavingsTotal
from costguard.report.json_values import effective_price_json, list_price_json, moment, money_json
from costguard.report.policy.provenance import DecidedBy, decided_json
from costguard.report.savings.sums import MachineDay
from costguard.report.savings.views import Converted, standing_words
from costguard.report.tables import Column, Table
from costguard.report.words.sentences import Language, clean

if TYPE_CHECKING:
    from costguard.report.savings import shapes
    from costguard.report.schemas import values

SAVINGS_SCHEMA: Final = 1

_CSV_COLUMNS = (
    "action_id",
    "case_id",
    "guard",
    "rule",
    "verb",
    "cloud",
    "sub_account_id",
    "region_id",
    "resource_id",
    "name",
    "instance_type",
    "owner",
    "since",
    "counted_until",
    "standing",
    "currency",
    "predicted",
    "realised",
    "still_billed",
    "billed_anyway",
    "hourly_cost",
    "price_source",
    "price_as_of",
    "uncovered_share",
    "words",
    "cause",
    "realised_effective",
)


def savings_json(
    report: SavingsReport,
    language: Language = Language.EN,
    converted: Converted | None = None,
    policies: Sequence[DecidedBy] = (),
) -> shapes.Savings:
    """The report for machines. Amounts are exact decimal strings, one for each currency.

    `policies` are those that the last runs decided by.
    """
    return {
        "schema": SAVINGS_SCHEMA,
        "since": moment(report.since),
        "until": moment(report.until),
        "at": moment(report.at),
        "policies": decided_json(policies),
        "totals": [_sums(line) for line in report.totals],
        "others": [_sums(line) for line in report.others],
        "converted": None if converted is None else _converted(converted),
        "by_month": [_line(line) for line in report.by_month],
        "by_owner": [_line(line) for line in report.by_owner],
        "by_guard": [_line(line) for line in report.by_guard],
        "by_cloud": [_line(line) for line in report.by_cloud],
        "daily": [{"day": each.day.isoformat(), "realised": money_json(each.realised)} for each in report.daily],
        "actions": [entry_json(entry, language) for entry in report.entries],
    }


def entry_json(entry: SavingEntry, language: Language = Language.EN) -> shapes.SavingAction:
    """One action with everything its figures rest on."""
    ref, price = entry.subject, entry.price
    return {
        "action_id": entry.action_id,
        "case_id": entry.case_id,
        "guard": clean(entry.guard),
        "rule": clean(entry.rule),
        "verb": entry.verb.value,
        "id": str(ref),
        "cloud": ref.cloud,
        "sub_account_id": ref.account,
        "region_id": ref.region,
        "name": clean(entry.name),
        "instance_type": clean(entry.instance_type),
        "owner": clean(entry.owner),
        "since": moment(entry.since),
        "counted_until": moment(entry.counted_until),
        "goes_on": entry.goes_on,
        "standing": entry.standing.value,
        "standing_since": moment(entry.standing_since),
        "words": standing_words(entry, language),
        "replaced_by": None if entry.replaced_by is None else str(entry.replaced_by),
        "replaced_how": entry.replaced_how or None,
        "shared_with": entry.shared_with or None,
        "cause": entry.cause.value,
        "worth": entry.worth.value,
        "hourly_cost": money_json(None if price is None else price.money),
        "price_source": None if price is None else clean(price.source),
        "price_as_of": None if price is None else clean(price.as_of),
        "hourly_list_cost": list_price_json(price),
        "effective_price": effective_price_json(price),
        "commitments": None if entry.coverage is None else _coverage(entry.coverage),
        "stops_billing_hourly": money_json(entry.hourly),
        "kept": [{"what": clean(what), "hourly_cost": money_json(cost)} for what, cost in entry.kept],
        "predicted": _each(entry.predicted),
        "realised": _each(entry.realised),
        "realised_effective": _each(entry.realised_net),
        "still_billed": _each(entry.still_billed),
        "billed_anyway": money_json(entry.billed_anyway),
        "billed_until": moment(entry.billed_until),
    }


def explained_json(
    entry: SavingEntry, days: Sequence[MachineDay], language: Language = Language.EN
) -> shapes.Explained:
    """One action, and what it came to day by day."""
    return {
        "schema": SAVINGS_SCHEMA,
        "action": entry_json(entry, language),
        "days": [
            {
                "day": each.day.isoformat(),
                "since": moment(each.since),
                "until": moment(each.until),
                "predicted": _each(each.predicted),
                "realised": _each(each.realised),
                "still_billed": _each(each.still_billed),
            }
            for each in days
        ],
    }


def savings_rows(report: SavingsReport, language: Language = Language.EN) -> Table:
    """Every action, a row for each currency that it has amounts in; amounts are plain numbers, empty where unknown."""
    columns = tuple(Column(name, name) for name in _CSV_COLUMNS)
    return Table("", columns, tuple(row for entry in report.entries for row in _rows(entry, language)))


def _rows(entry: SavingEntry, language: Language) -> Iterable[tuple[str, ...]]:
    ref, price = entry.subject, entry.price
    amounts = (entry.predicted, entry.realised, entry.still_billed)
    currencies = dict.fromkeys(money.currency for each in amounts for money in each)
    for currency in currencies or {"": None}:
        beyond = entry.billed_anyway
        yield (
            entry.action_id,
            entry.case_id,
            entry.guard,
            entry.rule,
            entry.verb.value,
            ref.cloud,
            ref.account,
            ref.region,
            ref.native_id,
            entry.name,
            entry.instance_type,
            entry.owner,
            moment(entry.since) or "",
            moment(entry.counted_until) or "",
            entry.standing.value,
            currency,
            *(_in(each, currency) for each in amounts),
            f"{beyond.amount:f}" if beyond is not None and beyond.currency == currency else "",
            f"{price.money.amount:f}" if price is not None and price.money.currency == currency else "",
            "" if price is None else price.source,
            "" if price is None else price.as_of,
            "" if entry.coverage is None else f"{entry.coverage.uncovered:f}",
            standing_words(entry, language),
            entry.cause.value,
            _in(entry.realised_net, currency),
        )


def _in(amounts: Sequence[Money], currency: str) -> str:
    return next((f"{money.amount:f}" for money in amounts if money.currency == currency), "")


def _each(amounts: Iterable[Money]) -> list[values.Money]:
    return [money_json(money) for money in amounts]


def _sums(line: SavingsTotal) -> shapes.SavingsTotal:
    return {
        "predicted": money_json(line.predicted),
        "realised": money_json(line.realised),
        "still_billed": money_json(line.still_billed),
        "actions": line.actions,
        "cause": line.cause.value,
        "realised_effective": money_json(line.realised_net),
        "effective_actions": line.net_actions,
    }


def _line(line: SavingsTotal) -> shapes.SavingsLine:
    return {"name": clean(line.name), **_sums(line)}


def _coverage(coverage: Coverage) -> shapes.Covered:
    return {
        "uncovered_share": f"{coverage.uncovered:f}",
        "source": clean(coverage.source),
        "until": moment(coverage.until),
    }


def _converted(one: Converted) -> shapes.Converted:
    return {
        "currency": one.currency,
        "predicted": None if one.without else money_json(one.predicted),
        "realised": None if one.without else money_json(one.realised),
        "still_billed": None if one.without else money_json(one.still_billed),
        "rates": [
            {"base": rate.base, "quote": rate.quote, "rate": f"{rate.rate:f}", "since": rate.since.isoformat()}
            for rate in one.rates
        ],
        "without": list(one.without),
    }
