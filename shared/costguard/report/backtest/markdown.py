"""A back-test as the Markdown comment of a pull request: the change first, everything else folded away."""

from __future__ import annotations

import re
from collections.abc import Iterator

from costguard.domain.backtests import BackTest
from costguard.report.backtest.views import backtest_lines, backtest_tables, remarks
from costguard.report.tables import Table
from costguard.report.words.sentences import Language
from costguard.report.words.sentences import in_backtest as say

_MARKS = re.compile(r"([\\`*_{}\[\]<>|#~])")  # what Markdown and HTML are made of


def backtest_markdown(test: BackTest, language: Language) -> str:
    """The whole comment."""
    return "\n".join(_lines(test, language)) + "\n"


def _lines(test: BackTest, language: Language) -> Iterator[str]:
    yield f"### {say('title', language)}"
    for line in backtest_lines(test, language):
        yield ""
        yield inert(line)
    first, *others = backtest_tables(test, language)
    yield from _table(first)
    if others:
        yield ""
        yield f"<details><summary>{say('markdown_more', language)}</summary>"
        for table in others:
            yield ""
            yield f"**{inert(table.title)}**"
            yield from _table(table)
        yield ""
        yield "</details>"
    yield ""
    for line in remarks(test, language):
        yield f"- {inert(line[4:])}" if line.startswith("  - ") else inert(line)


def _table(table: Table) -> Iterator[str]:
    yield ""
    yield f"| {' | '.join(inert(column.title) for column in table.columns)} |"
    yield f"|{'|'.join('---:' if column.numeric else '---' for column in table.columns)}|"
    for row in table.rows:
        yield f"| {' | '.join(inert(cell) for cell in row)} |"
    if table.note:
        yield ""
        yield inert(table.note)


def inert(text: str) -> str:
    """Text in which nothing is mark-up and nobody is mentioned."""
    return _MARKS.sub(r"\\\1", text).replace("@", "@\u200b")  # a name behind a bare @ would be told of it
