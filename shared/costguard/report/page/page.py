"""The report as one page that needs nothing else: what a manager understands first, then what it rests on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from costguard.report.charts.of_facts import (
    MOST_ROWS,
    burn_charts,
    busy_chart,
    busy_rows,
    idle_charts,
    keys_chart,
    saved_charts,
)
from costguard.report.charts.values import Chart
from costguard.report.facts import ReportFacts
from costguard.report.guard_views import Subjects
from costguard.report.page.headline import Card, cards, changes
from costguard.report.page.markup import Child, Html, element, joined
from costguard.report.page.style import POLICY, style
from costguard.report.page.tables import detail_tables, idle_tables, keys_table, other_tables
from costguard.report.plan.evidence import utc_words
from costguard.report.plan.shadows import shadow_lines, shadow_tables
from costguard.report.policy.provenance import decided_lines
from costguard.report.tables import Table
from costguard.report.words.sentences import Language, clean, explain, gap, label
from costguard.report.words.sentences import in_digest as say

_STEP = " > "  # between the steps of a way in, as the guard writes it
_MOST_WAYS = 25

Draw = Callable[[Chart], str]
"""Draws a chart as an SVG element: `charts.svg`."""


@dataclass(frozen=True, slots=True)
class Drawing:
    """What draws charts here; None where nothing does, and why."""

    draw: Draw | None
    why_not: str = ""


def report_page(facts: ReportFacts, language: Language, drawing: Drawing) -> str:
    """The whole page."""
    title = say("report_title", language)
    whose = say("report_all", language) if facts.owner is None else say("report_of", language, owner=facts.owner)
    span = "report_span_live" if facts.live else "report_span"
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=POLICY),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="robots", content="noindex"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", f"{title} · {whose}"),
        Html(f"<style>{style()}</style>"),
    )
    body = element(
        "body",
        element(
            "header",
            element("h1", title),
            element("p", whose),
            element("p", say(span, language, since=utc_words(facts.since), until=utc_words(facts.at)), class_="faint"),
            element("div", *(_card(card) for card in cards(facts, language)), class_="cards"),
        ),
        element("main", *_sections(facts, language, drawing)),
        element(
            "footer",
            *(element("p", line, class_="note") for line in decided_lines(facts.policies, language)),
            element("p", say("list_price", language), class_="note"),
            element("p", say("made_by", language, when=utc_words(facts.at)), class_="note"),
        ),
    )
    page = element("html", head, body, lang="zh-CN" if language is Language.ZH else "en")
    return f"<!doctype html>\n{page}\n"


def _sections(facts: ReportFacts, language: Language, drawing: Drawing) -> Iterator[Html]:
    if drawing.draw is None:
        yield element("p", say("no_charts", language, why=drawing.why_not), class_="note")
    if facts.before is not None:
        yield _section(say("change_title", language, when=utc_words(facts.before.at)), _changes(facts, language))
    yield _section(say("busy_title", language), *_busy(facts, language, drawing))
    for saved in saved_charts(facts, language):
        yield _charted(saved, say("saved_note", language), drawing)
    for budget, burn in burn_charts(facts, language):
        doubt = explain(budget.doubts[0], language) if budget.doubts else ""
        yield _charted(burn, say("burn_note", language, doubt=doubt), drawing)
    for idle in idle_charts(facts, language):
        yield _charted(idle, say("idle_note", language), drawing)
    yield from (_section(table.title, _table(table)) for table in idle_tables(facts, language) if table.rows)
    ages = keys_chart(facts, language)
    if ages is not None:
        yield _charted(ages, say("keys_note", language), drawing)
    keys = keys_table(facts, language)
    if keys.rows:
        yield _section(keys.title, _table(keys))
    if facts.looks_at(Subjects.NETWORKS):
        yield _section(say("ways_title", language), *_ways(facts, language))
    tables = (*other_tables(facts, language), *detail_tables(facts, language))
    yield from (_section(table.title, _table(table)) for table in tables if table.rows)
    yield from _last_sections(facts, language)


def _last_sections(facts: ReportFacts, language: Language) -> Iterator[Html]:
    if facts.shadows:
        yield _section(say("report_shadows", language), *_shadows(facts, language))
    if facts.gaps:
        rows = [element("li", gap(each, language)) for each in facts.gaps[:MOST_ROWS]]
        yield _section(say("gaps_title", language), element("ul", *rows, class_="changes"))


def _shadows(facts: ReportFacts, language: Language) -> Iterator[Html]:
    yield from (element("p", line) for line in shadow_lines(facts.shadows, language))
    yield from (_table(table) for table in shadow_tables(facts.shadows, language=language, most=MOST_ROWS))


def _card(card: Card) -> Html:
    tone = {True: " good", False: " bad", None: ""}[card.good]
    return element(
        "section",
        element("h2", card.title),
        element("div", *(element("span", figure) for figure in card.figures), class_="figure"),
        *(element("p", line) for line in card.lines),
        class_=f"card{tone}",
    )


def _changes(facts: ReportFacts, language: Language) -> Html:
    return element("ul", *(element("li", line) for line in changes(facts, language)), class_="changes")


def _busy(facts: ReportFacts, language: Language, drawing: Drawing) -> Iterator[Html]:
    chart = busy_chart(facts, language)
    if chart is None:
        yield element("p", say("busy_none", language))
        return
    yield element("p", say("busy_note", language), class_="note")
    yield _chart(chart, drawing)
    more = len(busy_rows(facts)) - MOST_ROWS
    if more > 0:
        yield element("p", say("busy_more", language, count=more), class_="note")


def _ways(facts: ReportFacts, language: Language) -> Iterator[Html]:
    if not facts.ways_in:
        yield element("p", say("ways_none", language))
    for one in facts.ways_in[:_MOST_WAYS]:
        name = clean(one.name) or clean(one.ref.native_id)
        steps = (say("way_internet", language), *str(one.reason.facts.get("path", "")).split(_STEP))
        yield element(
            "div",
            element("strong", name),
            element("small", f" {one.ref.cloud} {one.ref.account} {one.ref.region} {one.ref.native_id}"),
            element("ol", *(element("li", element("span", clean(step, 300))) for step in steps)),
            element("p", explain(one.reason, language)),
            element("p", f"{label('owner', language)}: {clean(one.owner)}", class_="note") if one.owner else None,
            class_="way",
        )


def _charted(chart: Chart, note: str, drawing: Drawing) -> Html:
    return _section(chart.title.text, element("p", note, class_="note"), _chart(chart, drawing))


def _chart(chart: Chart, drawing: Drawing) -> Html:
    if drawing.draw is None:
        return Html("")
    # a chart wider than the page scrolls: by keys too, for who uses no mouse
    return element(
        "div", Html(drawing.draw(chart)), class_="chart", tabindex="0", role="group", aria_label=chart.title.text
    )


def _section(title: str, *children: Child) -> Html:
    return element("section", element("h2", title), *children)


def _table(table: Table) -> Html:
    def kind(numeric: bool) -> str | None:  # noqa: FBT001 - a column's own word
        return "number" if numeric else None

    head = element("tr", *(element("th", one.title, scope="col", class_=kind(one.numeric)) for one in table.columns))
    rows = [
        element(
            "tr",
            *(
                element("td", cell, class_=kind(column.numeric), data_label=column.title)
                for column, cell in zip(table.columns, row, strict=True)
            ),
        )
        for row in table.rows
    ]
    note = element("p", table.note, class_="note") if table.note else None
    return joined((_scrolled(element("table", element("thead", head), element("tbody", *rows))), note))


def _scrolled(*children: Html) -> Html:
    return element("div", *children, class_="scroll")
