"""A back-test as one page that needs nothing else: a sentence, two charts, and the tables."""

from __future__ import annotations

from collections.abc import Iterator

from costguard.domain.backtests import BackTest, Point, Tally
from costguard.report.backtest.views import A_DAY, backtest_lines, backtest_tables, remarks
from costguard.report.charts.values import BarChart, Chart, Said
from costguard.report.page.markup import Html, element
from costguard.report.page.page import Drawing
from costguard.report.page.style import POLICY, style
from costguard.report.tables import Table
from costguard.report.words.sentences import Language, span
from costguard.report.words.sentences import in_backtest as say


def backtest_page(test: BackTest, language: Language, drawing: Drawing) -> str:
    """The whole page."""
    title, (first, *others) = say("title", language), backtest_lines(test, language)
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=POLICY),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", title),
        Html(f"<style>{style()}</style>"),
    )
    body = element(
        "body",
        element("header", element("h1", title), element("p", first, class_="faint")),
        element(
            "main",
            *(element("p", line) for line in others),
            *_charts(test, language, drawing),
            *(_section(table) for table in backtest_tables(test, language)),
        ),
        element("footer", *(element("p", line, class_="note") for line in remarks(test, language))),
    )
    page = element("html", head, body, lang="zh-CN" if language is Language.ZH else "en")
    return f"<!doctype html>\n{page}\n"


def charts_of(test: BackTest, language: Language) -> tuple[BarChart, ...]:
    """Hours and regrets by setting; without other settings of the new policy and the current one."""
    rows = [(_setting(point), point.tally) for point in test.points] or list(_policies(test, language))
    if not any(tally.stops for _, tally in rows):
        return ()
    labels = tuple(label for label, _ in rows)
    parts = ("chart_no", "chart_undetermined", "chart_yes")
    return (
        BarChart(
            _said("chart_reclaimed", language),
            labels,
            (_said("chart_hours", language),),
            tuple((float(tally.reclaimed_hours),) for _, tally in rows),
        ),
        BarChart(
            _said("chart_regrets", language),
            labels,
            tuple(_said(part, language) for part in parts),
            tuple(_day(tally) for _, tally in rows),
        ),
    )


def _policies(test: BackTest, language: Language) -> Iterator[tuple[Said, Tally]]:
    yield _said("chart_new", language), test.new.total
    if test.current is not None:
        yield _said("chart_current", language), test.current.total


def _setting(point: Point) -> Said:
    threshold = "" if point.threshold is None else f"< {point.threshold:g} %"
    window = "" if point.window is None else span(point.window)
    name = " · ".join(part for part in (threshold, window) if part) or "="
    return Said(name, name)


def _day(tally: Tally) -> tuple[float, float, float]:
    count = next(each for each in tally.regrets if each.hours == A_DAY)
    return float(count.no), float(count.undetermined), float(count.yes)


def _charts(test: BackTest, language: Language, drawing: Drawing) -> Iterator[Html]:
    charts = charts_of(test, language)
    if drawing.draw is None:
        if charts:
            yield element("p", say("no_charts", language, why=drawing.why_not), class_="note")
        return
    for chart in charts:
        yield element("section", element("h2", chart.title.text), _drawn(chart, drawing))


def _drawn(chart: Chart, drawing: Drawing) -> Html:
    drawn = Html("" if drawing.draw is None else drawing.draw(chart))
    return element("div", drawn, class_="chart", tabindex="0", role="group", aria_label=chart.title.text)


def _said(key: str, language: Language) -> Said:
    return Said(say(key, language), say(key, Language.EN))


def _section(table: Table) -> Html:
    kinds = ["number" if column.numeric else None for column in table.columns]
    titles = [column.title for column in table.columns]
    head = element(
        "tr", *(element("th", title, scope="col", class_=kind) for title, kind in zip(titles, kinds, strict=True))
    )
    rows = (
        element(
            "tr",
            *(
                element("td", cell, class_=kind, data_label=title)
                for cell, kind, title in zip(row, kinds, titles, strict=True)
            ),
        )
        for row in table.rows
    )
    drawn = element("table", element("thead", head), element("tbody", *rows))
    note = element("p", table.note, class_="note") if table.note else None
    return element("section", element("h2", table.title), element("div", drawn, class_="scroll"), note)
