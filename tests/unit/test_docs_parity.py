"""docs/parity.md is what the providers say of themselves."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.parity.alibaba import ROWS as ALIBABA
from tests.parity.aws import ROWS as AWS
from tests.parity.rows import Row, table
from tests.parity.tencent import ROWS as TENCENT

PAGE = Path(__file__).parents[2] / "docs" / "parity.md"
BEGINS, ENDS = "<!-- rows -->\n", "<!-- end of rows -->\n"


def written() -> str:
    return table({"AWS": AWS, "Alibaba Cloud": ALIBABA, "Tencent Cloud": TENCENT})


@pytest.mark.release
def test_the_page_shows_the_rows_as_the_code_has_them() -> None:
    """Where this fails: put what it expects between the two marks of the page."""
    text = PAGE.read_text(encoding="utf-8")
    shown = text.partition(BEGINS)[2].partition(ENDS)[0]
    assert shown == written(), json.dumps(written())


def test_every_provider_answers_every_row_in_one_line() -> None:
    for rows in (AWS, ALIBABA, TENCENT):
        assert set(rows) == set(Row)
        assert [row for row, said in rows.items() if "\n" in said or "|" in said or not said] == []
