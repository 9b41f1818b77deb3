"""A back-test as tables and sentences for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta

from costguard.domain.backtests import ASSUMPTIONS, HORIZONS, BackTest, Point, Tally
from costguard.report.plan.evidence import utc_words
from costguard.report.tables import Column, Table, Tone
from costguard.report.words.sentences import Language, clean, number, span
from costguard.report.words.sentences import in_backtest as say

A_DAY = 24
_FIGURES = (
    *("machines", "exempt", "unmeasured", "recorded_hours", "idle_hours", "unmeasured_hours"),
    *("stopped", "stops", "terminations", "came_back_terminated", "reclaimed_hours", "uncounted_hours"),
)
_BY_NAME = ("machines", "exempt", "unmeasured", "stops", "terminations", "reclaimed_hours")


def backtest_lines(test: BackTest, language: Language) -> Iterator[str]:
    """What was replayed, and what came of it in a sentence."""
    terms, total = test.terms, test.new.total
    yield say(
        "span",
        language,
        machines=total.machines + test.new.unmatched,
        since=utc_words(terms.since),
        until=utc_words(terms.until),
        every=terms.every // timedelta(hours=1),
        rows=f"{test.basis.rows:,}",
    )
    yield headline(total, language)
    if test.current is not None:
        was = test.current.total
        yield say(
            "compared", language, stops=was.stops, hours=f"{was.reclaimed_hours:,}", regrets=regretted(was, A_DAY)[0]
        )


def headline(total: Tally, language: Language) -> str:
    """Stops, hours, money and regrets in one sentence."""
    if not total.stops:
        return say("nothing", language)
    regrets, undetermined = regretted(total, A_DAY)
    return say(
        "headline",
        language,
        stopped=total.stopped,
        stops=total.stops,
        terminations=total.terminations or "",
        hours=f"{total.reclaimed_hours:,}",
        money=_money(total),
        regrets=regrets,
        undetermined=undetermined,
    )


def backtest_tables(test: BackTest, language: Language) -> tuple[Table, ...]:
    """All in all beside the current policy, by rule, by team, and the other settings where they were tried."""
    tables = [totals_table(test, language), _named_table("rule", test.new.by_rule, language)]
    tables.append(_named_table("team", test.new.by_team, language))
    if test.points:
        tables.append(grid_table(test.points, language))
    return tuple(table for table in tables if table.rows)


def remarks(test: BackTest, language: Language) -> Iterator[str]:
    """What is not in the figures, and what they take for granted."""
    for key, count in (
        ("doubted", test.basis.doubted),
        ("unlisted", test.basis.unlisted),
        ("unmatched", test.new.unmatched),
        ("unpriced", test.new.total.unpriced_hours),
    ):
        if count:
            yield say(key, language, count=f"{count:,}")
    yield f"{say('assumes_title', language)}:"
    for name in ASSUMPTIONS:
        yield f"  - {say(f'assumes_{name}', language)}"


def totals_table(test: BackTest, language: Language) -> Table:
    """A row a figure; with a current policy its figures and the change beside them."""
    totals = [test.new.total, *([] if test.current is None else [test.current.total])]
    currencies = sorted({each.currency for total in totals for each in total.reclaimed})
    new, current = _figures(test.new.total, currencies, language), None
    keys = ["figure", "new"]
    if test.current is not None:
        current = dict(_figures(test.current.total, currencies, language))
        keys += ["current", "change"]
    rows = []
    for title, text in new:
        row = (title, text)
        rows.append(row if current is None else (*row, current.get(title, ""), _change(text, current.get(title, ""))))
    columns = tuple(Column(key, say(f"column_{key}", language), numeric=key != "figure") for key in keys)
    return Table(say("totals_title", language), columns, tuple(rows), note=say("regret_note", language))


def _figures(tally: Tally, currencies: Sequence[str], language: Language) -> list[tuple[str, str]]:
    figures = [(say(f"column_{key}", language), f"{getattr(tally, key):,}") for key in _FIGURES]
    sums = {each.currency: each for each in tally.reclaimed}
    for currency in currencies:
        amount = sums[currency].rounded().amount if currency in sums else 0
        figures.append((f"{say('column_reclaimed', language)} ({currency})", f"{amount:,}"))
    for horizon in HORIZONS:
        yes, undetermined = regretted(tally, horizon)
        figures.append((say("column_regret", language, hours=horizon), f"{yes:,}"))
        figures.append((say("column_undetermined", language, hours=horizon), f"{undetermined:,}"))
        figures.append((say("column_per_regret", language, hours=horizon), _per_regret(tally, horizon, language)))
    return figures


def _change(new: str, current: str) -> str:
    try:
        difference = float(new.replace(",", "")) - float(current.replace(",", ""))
    except ValueError:
        return ""
    return f"{'+' if difference > 0 else ''}{number(difference)}" if difference else "="


def _named_table(what: str, tallies: Sequence[Tally], language: Language) -> Table:
    columns = (
        Column(what, say(f"column_{what}", language)),
        *(Column(key, say(f"column_{key}", language), numeric=True) for key in _BY_NAME),
        Column("reclaimed", say("column_reclaimed", language), numeric=True),
        Column("regret", say("column_regret", language, hours=A_DAY), numeric=True),
        Column("undetermined", say("column_undetermined", language, hours=A_DAY), numeric=True),
        Column("per_regret", say("column_per_regret", language, hours=A_DAY), numeric=True),
    )
    rows = tuple(
        (
            clean(each.name) or say("no_team", language),
            *(f"{getattr(each, key):,}" for key in _BY_NAME),
            _money(each),
            *(f"{count:,}" for count in regretted(each, A_DAY)),
            _per_regret(each, A_DAY, language),
        )
        for each in tallies
    )
    return Table(say(f"{what}s_title", language), columns, rows)


def grid_table(points: Sequence[Point], language: Language) -> Table:
    """A row a setting; the ones worth choosing from carry a star."""
    columns = (
        Column("threshold", say("column_threshold", language), numeric=True),
        Column("window", say("column_window", language), numeric=True),
        Column("stops", say("column_stops", language), numeric=True),
        Column("reclaimed_hours", say("column_reclaimed_hours", language), numeric=True),
        Column("share", say("column_share", language), numeric=True),
        *(Column(f"regret_{each}", say("column_regret", language, hours=each), numeric=True) for each in HORIZONS),
        Column("undetermined", say("column_undetermined", language, hours=A_DAY), numeric=True),
        Column("per_regret", say("column_per_regret", language, hours=A_DAY), numeric=True),
        Column("best", say("column_best", language)),
    )
    rows = tuple(
        (
            say("own", language) if each.threshold is None else f"{each.threshold:g} %",
            say("own", language) if each.window is None else span(each.window),
            f"{each.tally.stops:,}",
            f"{each.tally.reclaimed_hours:,}",
            share(each.tally),
            *(f"{regretted(each.tally, horizon)[0]:,}" for horizon in HORIZONS),
            f"{regretted(each.tally, A_DAY)[1]:,}",
            _per_regret(each.tally, A_DAY, language),
            "★" if each.best else "",
        )
        for each in points
    )
    tones = tuple(Tone.GOOD if each.best else Tone.WARNING for each in points)
    return Table(say("grid_title", language), columns, rows, note=say("grid_note", language), tones=tones)


def regretted(tally: Tally, horizon: int) -> tuple[int, int]:
    """Stops regretted within so many hours, and those of which nobody can tell."""
    count = next(each for each in tally.regrets if each.hours == horizon)
    return count.yes, count.undetermined


def share(tally: Tally) -> str:
    """Reclaimed hours of all that were recorded idle."""
    return f"{100 * tally.reclaimed_hours / tally.idle_hours:.0f} %" if tally.idle_hours else ""


def _per_regret(tally: Tally, horizon: int, language: Language) -> str:
    hours = tally.hours_per_regret(horizon)
    return say("no_regret", language) if hours is None else number(hours)


def _money(tally: Tally) -> str:
    return ", ".join(str(each) for each in tally.reclaimed)
