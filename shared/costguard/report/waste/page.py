"""Day one on one page of print: what idles by team and cloud, how sure that is, and what could have been reclaimed.

Nothing in it is a guess: what was not read is named, and what the record does not cover is not shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from decimal import Decimal

from costguard.domain.backtests import Reclaimed
from costguard.domain.money import totals
from costguard.report.charts.values import BarChart, Said
from costguard.report.page.markup import Html, element
from costguard.report.page.page import Drawing
from costguard.report.page.style import POLICY, style
from costguard.report.plan.evidence import utc_words
from costguard.report.tables import Column, Table
from costguard.report.waste.day_one import OwnerWaste, WasteReport, by_owner_and_cloud, never_touched
from costguard.report.waste.reclaim import reclaim_lines
from costguard.report.waste.views import amounts, calls_statement
from costguard.report.words.sentences import Language, clean, gap, label, number, percent, phrase, sentence, short

_MOST_TEAMS, _MOST_GAPS = 8, 4
_MONTH = timedelta(days=30)
_PRINT = """
@media print{
@page{size:A4;margin:10mm}
body{font-size:10px;line-height:1.3}
main,header,footer{max-width:none;padding:0}
header{padding-top:0}
h1{font-size:17px}
h2{font-size:12px;margin:8px 0 2px;padding-top:4px}
p{margin:2px 0}
table{font-size:9px;margin:2px 0}
th{font-size:8.5px}
th,td{padding:1.5px 8px 1.5px 0}
.cards{gap:6px;margin:6px 0 0;grid-template-columns:repeat(4,1fr)}
.card{padding:4px 6px}
.card h2,.card p,.note,small{font-size:8.5px}
.card .figure{font-size:12px}
.chart svg{max-height:110px;width:auto}
footer{padding:4px 0 0}
section,table{break-inside:avoid}
}
"""


def first_page(
    report: WasteReport, reclaimed: Sequence[Reclaimed], language: Language, drawing: Drawing, *, of_machines: int
) -> str:
    """The whole page; `reclaimed` is what the shipped policy would have, by the use of so many machines."""
    title = phrase("first_title", language)
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=POLICY),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="robots", content="noindex"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", title),
        Html(f"<style>{style()}{_PRINT}</style>"),
    )
    span = phrase("first_span", language, since=utc_words(report.since), until=utc_words(report.until))
    body = element(
        "body",
        element(
            "header",
            element("h1", title),
            element("p", span, class_="faint"),
            element("div", *(_card(*card) for card in cards(report, reclaimed, language)), class_="cards"),
        ),
        element("main", *_sections(report, reclaimed, language, drawing, of_machines)),
        element("footer", *(element("p", line, class_="note") for line in _small_print(report, language))),
    )
    page = element("html", head, body, lang="zh-CN" if language is Language.ZH else "en")
    return f"<!doctype html>\n{page}\n"


def cards(
    report: WasteReport, reclaimed: Sequence[Reclaimed], language: Language
) -> Iterator[tuple[str, str, Sequence[str]]]:
    """Title, figure and lines: wasted by list price and net, how sure it is, and what could have been reclaimed."""
    total = report.total
    kept = amounts(totals(money for _, of in never_touched(report) for money in of.idle_cost))
    lines = [phrase("first_kept_amount", language, amount=kept)] if kept else []
    lines += [phrase("first_unpriced", language, count=total.unpriced)] if total.unpriced else []
    yield phrase("first_wasted", language), _list(total.idle_cost, language), lines
    yield phrase("first_net", language), _net(total, language), list(_without(total, language))
    measured = percent(1 - report.unmeasured_share) if report.instances else "-"
    unread = phrase("first_unread", language, count=len(report.gaps)) if report.gaps else ""
    yield phrase("first_confidence", language), measured, [phrase("first_measured", language), *filter(None, (unread,))]
    last = reclaimed[-1] if reclaimed else None
    figure = phrase("first_nothing_measured", language) if last is None else _list(last.money, language)
    net = "" if last is None or not last.hours else f"{phrase('first_net', language)}: {_net_of(last, language)}"
    lines = [] if last is None else [_window(last, language), *filter(None, (net,))]
    yield phrase("first_reclaimed", language), figure, lines


def _sections(
    report: WasteReport, reclaimed: Sequence[Reclaimed], language: Language, drawing: Drawing, of_machines: int
) -> Iterator[Html]:
    yield from _section(teams_table(report, language), *reclaim_lines(report.reclaim, language))
    yield from _charts(report, language, drawing)
    yield from _section(reclaimed_table(reclaimed, language), *_assumed(reclaimed, language, of_machines))
    yield from _section(excluded_table(report, language))
    if report.gaps:
        shown = [element("li", gap(each, language)) for each in report.gaps[:_MOST_GAPS]]
        more = len(report.gaps) - len(shown)
        rest = [element("li", phrase("first_more", language, count=more))] if more else []
        yield element("section", element("h2", phrase("first_gaps", language)), element("ul", *shown, *rest))


def teams_table(report: WasteReport, language: Language) -> Table:
    """Waste by cloud and team, dearest first; what is too much for a page is one row."""
    rows = by_owner_and_cloud(report)
    keys = ("cloud", "owner", "instances", "idle_hours", "idle_cost", "idle_cost_net", "untouchable")
    more = len(rows) - _MOST_TEAMS
    return Table(
        phrase("first_teams", language),
        tuple(Column(key, label(key, language), numeric=key not in {"cloud", "owner"}) for key in keys),
        tuple(_team(cloud, waste, language) for cloud, waste in rows[:_MOST_TEAMS]),
        note=phrase("first_more_teams", language, count=more) if more > 0 else "",
    )


def _team(cloud: str, waste: OwnerWaste, language: Language) -> tuple[str, ...]:
    return (
        clean(cloud),
        clean(waste.owner) or phrase("no_owner", language),
        str(waste.instances),
        f"{waste.idle_hours:,}",
        amounts(waste.idle_cost),
        _net(waste, language) if waste.idle_hours else "",
        str(waste.untouchable or ""),
    )


def reclaimed_table(reclaimed: Sequence[Reclaimed], language: Language) -> Table:
    """What the shipped policy would have reclaimed in each time that the record covers."""
    keys = ("window", "stops", "hours", "list", "net", "regretted")
    return Table(
        phrase("first_reclaimed", language),
        tuple(Column(key, phrase(f"first_column_{key}", language), numeric=key != "window") for key in keys),
        tuple(
            (
                _window(one, language),
                str(one.stops),
                f"{one.hours:,}",
                _list(one.money, language),
                _net_of(one, language),
                phrase("first_regretted", language, count=one.regretted, untold=one.untold or ""),
            )
            for one in reclaimed
        ),
    )


def excluded_table(report: WasteReport, language: Language) -> Table:
    """What is in the waste and may never be touched, and what is in no figure, each with why."""
    keys = ("why", "instances", "idle_cost")
    kept = (
        (phrase("first_kept", language, why=short(code, language)), str(of.instances), amounts(of.idle_cost))
        for code, of in never_touched(report)
    )
    unknown = (
        (phrase("first_unmeasured", language, why=sentence(group.reason, language)), str(len(group.instances)), "")
        for group in report.unmeasured
    )
    unpriced = report.total.unpriced
    rows = [*kept, *unknown, *([(phrase("first_no_price", language), str(unpriced), "")] if unpriced else [])]
    columns = tuple(Column(key, label(key, language), numeric=key != "why") for key in keys)
    return Table(phrase("first_excluded", language), columns, tuple(rows))


def _charts(report: WasteReport, language: Language, drawing: Drawing) -> Iterator[Html]:
    """Idle cost by team, a chart a currency: what may be touched, and what may not."""
    if drawing.draw is None:
        yield element("p", phrase("first_no_charts", language, why=drawing.why_not), class_="note")
        return
    for currency in [money.currency for money in report.total.idle_cost]:
        rows = [(waste.owner, *_split(report, waste.owner, currency)) for waste in report.owners]
        rows = [row for row in rows if row[1] + row[2]][:_MOST_TEAMS]
        chart = BarChart(
            _said("first_chart", language, currency=currency),
            tuple(Said(clean(owner), clean(owner)) if owner else _said("no_owner", language) for owner, *_ in rows),
            (_said("first_chart_open", language), _said("first_chart_kept", language)),
            tuple((float(free), float(kept)) for _, free, kept in rows),
        )
        yield element("div", Html(drawing.draw(chart)), class_="chart", role="group", aria_label=chart.title.text)


def _split(report: WasteReport, owner: str, currency: str) -> tuple[Decimal, Decimal]:
    free, kept = Decimal(0), Decimal(0)
    for waste in report.instances:
        if waste.owner == owner and waste.idle_cost is not None and waste.idle_cost.currency == currency:
            if waste.untouchable is None:
                free += waste.idle_cost.amount
            else:
                kept += waste.idle_cost.amount
    return free, kept


def _said(key: str, language: Language, **facts: str) -> Said:
    return Said(phrase(key, language, **facts), phrase(key, Language.EN, **facts))


def _assumed(reclaimed: Sequence[Reclaimed], language: Language, of_machines: int) -> Iterator[str]:
    if not reclaimed:
        yield phrase("first_nothing_measured", language)
        return
    begun = min(one.since for one in reclaimed)
    if reclaimed[-1].until - begun < _MONTH:
        days = number((reclaimed[-1].until - begun) / timedelta(days=1))
        yield phrase("first_less_than_a_month", language, days=days)
    yield phrase("first_assumed", language, begun=utc_words(begun), machines=of_machines)


def _window(one: Reclaimed, language: Language) -> str:
    length = one.until - one.since
    key = {timedelta(days=1): "day", timedelta(days=7): "week", _MONTH: "month"}.get(length)
    if one.whole or key is None:
        return phrase("first_window_all", language, days=number(length / timedelta(days=1)))
    return phrase(f"first_window_{key}", language)


def _list(money: Sequence[object], language: Language) -> str:
    return " + ".join(map(str, money)) or phrase("first_none", language)


def _net(waste: OwnerWaste, language: Language) -> str:
    return amounts(waste.idle_cost_net) or phrase("first_net_unknown", language)


def _net_of(one: Reclaimed, language: Language) -> str:
    if not one.hours:
        return ""
    return " + ".join(map(str, one.net)) or phrase("first_net_unknown", language)


def _without(total: OwnerWaste, language: Language) -> Iterator[str]:
    if total.idle_cost_net and total.without_net:
        yield phrase("first_without_net", language, count=total.without_net)
    elif not total.idle_cost_net:
        yield phrase("first_declare", language)


def _small_print(report: WasteReport, language: Language) -> Iterator[str]:
    yield phrase("first_prices", language)
    yield calls_statement(report, language)


def _card(title: str, figure: str, lines: Sequence[str]) -> Html:
    return element(
        "section",
        element("h2", title),
        element("div", element("span", figure), class_="figure"),
        *(element("p", line) for line in lines),
        class_="card",
    )


def _section(table: Table, *notes: str) -> Iterator[Html]:
    said = [element("p", note, class_="note") for note in (*notes, *([table.note] if table.note else []))]
    if not table.rows:
        if notes:
            yield element("section", element("h2", table.title), *said)
        return
    kinds = ["number" if column.numeric else None for column in table.columns]
    pairs = list(zip(table.columns, kinds, strict=True))
    head = element("tr", *(element("th", column.title, scope="col", class_=kind) for column, kind in pairs))
    rows = [
        element(
            "tr",
            *(
                element("td", cell, class_=kind, data_label=column.title)
                for cell, (column, kind) in zip(row, pairs, strict=True)
            ),
        )
        for row in table.rows
    ]
    drawn = element("table", element("thead", head), element("tbody", *rows))
    yield element("section", element("h2", table.title), element("div", drawn, class_="scroll"), *said)
