"""CSV that any spreadsheet reads and none runs."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from costguard.report.csv import cell, to_csv
from costguard.report.tables import Column, Table


@pytest.mark.parametrize("text", ["=1+1", "+SUM(A1)", "-2+3", "@cmd", "\t=1", "\r=1", " =1", "\uff1d1"])
def test_formulas_are_neutralised(text: str) -> None:
    assert cell(text).startswith("'")


@pytest.mark.parametrize("text", ["-5", "+5.25", "-1,234.50", "12", "i-0abc", "a=b", "2026-01-01"])
def test_numbers_and_plain_text_stay_as_they_are(text: str) -> None:
    assert cell(text) == text


@given(st.lists(st.tuples(st.text(), st.text()), max_size=5))
def test_every_row_survives_the_round_trip(rows: list[tuple[str, str]]) -> None:
    table = Table("", (Column("a", "A"), Column("b", "B")), tuple(rows))

    back = list(csv.reader(io.StringIO(to_csv(table), newline="")))

    assert back == [["a", "b"], *([cell(one), cell(two)] for one, two in rows)]


def test_a_row_must_fill_its_columns() -> None:
    with pytest.raises(ValueError, match="a row of 1 cells under 2 columns"):
        Table("t", (Column("a", "A"), Column("b", "B")), (("x",),))
