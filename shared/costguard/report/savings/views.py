"""What was saved, for people: sums, tables, and one action explained."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from costguard.domain.money import ExchangeRate, Money, hours, rate_on, totals
from costguard.domain.savings import SavingCause, SavingEntry, SavingsReport, SavingStanding, SavingsTotal, Worth
from costguard.report.plan.evidence import utc_words
from costguard.report.savings.sums import MachineDay
from costguard.report.tables import Column, Table, Tone
from costguard.report.words.sentences import (
    Language,
    clean,
    hourly,
    listed,
    net_source,
    number,
    phrase,
    stays_billed,
    verb,
)

_SUMS = ("predicted", "realised", "still_billed", "actions")
_GROUPS = ("month", "owner", "guard", "cloud")
_ACTION_COLUMNS = (
    *("name", "owner", "verb", "cause", "since", "predicted", "realised", "net"),
    *("still_billed", "standing", "action_id"),
)
_NUMERIC = frozenset({*_SUMS, "net"})
_DAYS_SHOWN = 31
_WORTHLESS = frozenset({Worth.COVERED, Worth.BILLED_ON})
_TONES = {SavingStanding.STOPPED: Tone.GOOD, SavingStanding.TERMINATED: Tone.GOOD, SavingStanding.RELEASED: Tone.GOOD}


@dataclass(frozen=True, slots=True)
class Converted:
    """The totals in one currency, and the rates that made them so; `without` are currencies that no rate was for."""

    currency: str
    predicted: Money
    realised: Money
    still_billed: Money
    rates: tuple[ExchangeRate, ...] = ()
    without: tuple[str, ...] = ()


def converted_totals(report: SavingsReport, currency: str, rates: Sequence[ExchangeRate]) -> Converted:
    """All totals in one currency, by the rates that hold on the last day of the report."""
    nothing = Money(Decimal(0), currency)
    predicted = realised = still_billed = nothing
    used: list[ExchangeRate] = []
    without: list[str] = []
    for total in report.totals:
        rate = rate_on(total.currency, currency, report.until.date(), rates)
        if total.currency != currency and rate is None:
            without.append(total.currency)
            continue
        factor = Decimal(1) if rate is None else rate.rate if rate.base == total.currency else 1 / rate.rate
        if rate is not None:
            used.append(rate)
        predicted += Money(total.predicted.amount * factor, currency)
        realised += Money(total.realised.amount * factor, currency)
        still_billed += Money(total.still_billed.amount * factor, currency)
    return Converted(currency, predicted, realised, still_billed, tuple(dict.fromkeys(used)), tuple(without))


def savings_lines(
    report: SavingsReport, language: Language = Language.EN, converted: Converted | None = None
) -> Iterator[str]:
    """All of it in a few sentences, one for each currency."""
    since, until = utc_words(report.since), utc_words(report.until)
    if not report.entries:
        yield phrase("savings_none", language, since=since, until=until)
        return
    for total in report.totals:
        yield phrase(
            "savings_total",
            language,
            since=since,
            until=until,
            predicted=str(total.predicted),
            realised=str(total.realised),
            still_billed=str(total.still_billed),
            actions=total.actions,
        )
        yield _net_words(total, language)
    for other in report.others:
        yield phrase(
            f"savings_other_{other.cause.value}", language, realised=str(other.realised), actions=other.actions
        )
    if report.others:
        yield phrase("savings_not_added", language)
    if converted is not None:
        yield _converted(converted, language)


def _net_words(total: SavingsTotal, language: Language) -> str:
    if total.realised_net is None:
        return phrase("savings_net_unknown", language, currency=total.currency)
    without = total.actions - total.net_actions
    return phrase("savings_net", language, net=str(total.realised_net), without=without or "")


def savings_tables(report: SavingsReport, language: Language = Language.EN) -> tuple[Table, ...]:
    """By month, owner, guard and cloud, and every action; empty tables left out."""
    groups = (report.by_month, report.by_owner, report.by_guard, report.by_cloud)
    tables = [_sums(name, lines, language) for name, lines in zip(_GROUPS, groups, strict=True)]
    tables.append(_actions(report.entries, language))
    return tuple(table for table in tables if table.rows)


def savings_closing(report: SavingsReport, language: Language = Language.EN) -> Iterator[str]:
    """What makes a figure less than it could be, and where each is explained."""
    for entry in report.entries:
        if entry.billed_anyway is not None:
            yield phrase("savings_billed_anyway", language, name=_name(entry), amount=str(entry.billed_anyway))
        if entry.unpriced and entry.goes_on:
            what = listed((stays_billed(word, language) for word in entry.unpriced), language)
            yield phrase("savings_lower_kept", language, name=_name(entry), what=what)
    counts = {
        "savings_unpriced": sum(entry.worth is Worth.UNPRICED for entry in report.entries),
        "savings_worthless": sum(entry.worth in _WORTHLESS for entry in report.entries),
        "savings_unseen": sum(entry.standing is SavingStanding.UNSEEN for entry in report.entries),
    }
    yield from (phrase(key, language, count=count) for key, count in counts.items() if count)
    if report.entries:
        yield phrase("savings_list_price", language)


def standing_words(entry: SavingEntry, language: Language = Language.EN) -> str:
    """Why a saving counts as far as it does."""
    when = utc_words(entry.standing_since) if entry.standing_since is not None else ""
    return phrase(
        f"savings_standing_{entry.standing.value}",
        language,
        when=when,
        other=entry.replaced_by.native_id if entry.replaced_by is not None else "",
        how=phrase(f"savings_how_{entry.replaced_how}", language) if entry.replaced_how else "",
        shared_with=entry.shared_with,
    ).strip()


def cause_words(entry: SavingEntry, language: Language = Language.EN) -> str:
    """Whose doing it is."""
    return phrase(f"savings_cause_{entry.cause.value}", language)


def explained(entry: SavingEntry, language: Language = Language.EN) -> Iterator[str]:
    """How the figures of one action come about, a line a step."""
    facts = {"case_id": entry.case_id, "guard": clean(entry.guard)}
    yield phrase(
        "savings_explain_title",
        language,
        action_id=entry.action_id,
        verb=verb(entry.verb, language),
        name=_name(entry),
    )
    yield phrase(
        "savings_explain_subject",
        language,
        subject=str(entry.subject),
        instance_type=clean(entry.instance_type),
        owner=clean(entry.owner),
    )
    yield phrase("savings_explain_case", language, rule=clean(entry.rule), **facts)
    yield phrase("savings_explain_cause", language, cause=cause_words(entry, language))
    yield from _price(entry, language)
    yield from _kept(entry, language)
    yield phrase(
        "savings_explain_counted",
        language,
        hours=number(float(hours(entry.counted_until - entry.since))),
        since=utc_words(entry.since),
        until=utc_words(entry.counted_until),
        standing=standing_words(entry, language),
    )
    for key, amounts in (
        ("predicted", entry.predicted),
        ("realised", entry.realised),
        ("discounted", entry.realised_net),
        ("still_billed", entry.still_billed),
    ):
        if amounts:
            yield phrase(f"savings_explain_{key}", language, amount=_amounts(amounts, language))
    yield _bill(entry, language)
    yield phrase("savings_explain_why", language, **facts)


def days_table(days: Sequence[MachineDay], language: Language = Language.EN) -> Table:
    """What one action came to on each of its last days."""
    shown = days[-_DAYS_SHOWN:]
    more = len(days) - len(shown)
    return Table(
        phrase("savings_day_title", language),
        (
            Column("day", phrase("savings_day_column_day", language)),
            *(Column(key, phrase(f"savings_column_{key}", language), numeric=True) for key in _SUMS[:3]),
        ),
        tuple(
            (
                each.day.isoformat(),
                *(_amounts(sums, language) for sums in (each.predicted, each.realised, each.still_billed)),
            )
            for each in shown
        ),
        note=phrase("savings_explain_more", language, count=more) if more else "",
    )


def _price(entry: SavingEntry, language: Language) -> Iterator[str]:
    price, coverage = entry.price, entry.coverage
    if price is None:
        yield phrase("savings_explain_no_price", language)
    else:
        yield phrase(
            "savings_explain_price",
            language,
            amount=hourly(price.money),
            source=price.source,
            as_of=price.as_of,
        )
        net = price.net if price.is_list else None
        if price.is_list:
            yield phrase(
                "savings_explain_list_price",
                language,
                net="" if net is None else hourly(net.money),
                how="" if net is None else net_source(net, language),
            )
    yield phrase(
        f"savings_explain_worth_{entry.worth.value}",
        language,
        amount=hourly(entry.hourly) if entry.hourly is not None else "",
        share=number(float(coverage.uncovered * 100)) if coverage is not None else "",
        source=coverage.source if coverage is not None else "",
        until=utc_words(coverage.until) if coverage is not None else "",
    )


def _kept(entry: SavingEntry, language: Language) -> Iterator[str]:
    for what, cost in entry.kept:
        word = stays_billed(what, language)
        if cost is None:
            yield phrase("savings_explain_kept_unknown", language, what=word)
        else:
            amount = phrase("keeps_hourly", language, amount=hourly(cost))
            yield phrase("savings_explain_kept", language, what=word, amount=amount)
    if entry.hourly is None:
        return
    off = totals(cost for _, cost in entry.kept if cost is not None and cost.currency == entry.hourly.currency)
    if off:
        net = Money(max(entry.hourly.amount - off[0].amount, Decimal(0)), entry.hourly.currency)
        yield phrase("savings_explain_net", language, hourly=hourly(entry.hourly), kept=hourly(off[0]), net=hourly(net))


def _bill(entry: SavingEntry, language: Language) -> str:
    if entry.billed_until is None:
        return phrase("savings_explain_no_bill", language)
    found = (
        phrase("savings_explain_bill_agrees", language)
        if entry.billed_anyway is None
        else phrase("savings_explain_bill_anyway", language, amount=str(entry.billed_anyway))
    )
    return phrase("savings_explain_bill", language, until=utc_words(entry.billed_until), found=found)


def _converted(one: Converted, language: Language) -> str:
    if one.without:
        return phrase("savings_unconverted", language, currency=one.currency, without=", ".join(one.without))
    rates = (
        phrase(
            "savings_rate",
            language,
            base=rate.base,
            quote=rate.quote,
            rate=f"{rate.rate:f}",
            since=rate.since.isoformat(),
        )
        for rate in one.rates
    )
    return phrase(
        "savings_converted",
        language,
        currency=one.currency,
        predicted=str(one.predicted),
        realised=str(one.realised),
        rates=listed(rates, language),
    )


def _sums(name: str, lines: Sequence[SavingsTotal], language: Language) -> Table:
    return Table(
        phrase(f"savings_{name}_title", language),
        (
            Column(name, phrase(f"savings_column_{name}", language)),
            *(Column(key, phrase(f"savings_column_{key}", language), numeric=True) for key in _SUMS),
        ),
        tuple(
            (
                clean(line.name) or _nameless(name, language),
                str(line.predicted),
                str(line.realised),
                str(line.still_billed),
                str(line.actions),
            )
            for line in lines
        ),
    )


def _nameless(group: str, language: Language) -> str:
    return phrase("savings_no_owner" if group == "owner" else "savings_no_guard", language)


def _actions(entries: Sequence[SavingEntry], language: Language) -> Table:
    """Whose doing each is stands there where not all are Costguard's, the net of discounts where any is known."""
    others = any(entry.cause is not SavingCause.COSTGUARD for entry in entries)
    left_out = {*(() if others else ("cause",)), *(() if any(entry.realised_net for entry in entries) else ("net",))}
    shown = [key for key in _ACTION_COLUMNS if key not in left_out]
    cells = [_cells(entry, language) for entry in entries]
    return Table(
        phrase("savings_action_title", language, count=len(entries)),
        tuple(Column(key, phrase(f"savings_column_{key}", language), numeric=key in _NUMERIC) for key in shown),
        tuple(tuple(each[key] for key in shown) for each in cells),
        tones=tuple(_TONES.get(entry.standing, Tone.WARNING) for entry in entries),
    )


def _cells(entry: SavingEntry, language: Language) -> Mapping[str, str]:
    return {
        "name": _name(entry),
        "owner": clean(entry.owner),
        "verb": verb(entry.verb, language),
        "cause": cause_words(entry, language),
        "since": utc_words(entry.since),
        "predicted": _amounts(entry.predicted, language),
        "realised": _amounts(entry.realised, language),
        "net": _amounts(entry.realised_net, language),
        "still_billed": _amounts(entry.still_billed, language),
        "standing": standing_words(entry, language),
        "action_id": entry.action_id,
    }


def _amounts(amounts: Iterable[Money], language: Language) -> str:
    return listed(map(str, amounts), language)


def _name(entry: SavingEntry) -> str:
    return clean(entry.name) or clean(entry.subject.native_id)
