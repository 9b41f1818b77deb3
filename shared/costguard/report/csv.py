"""A table as CSV (RFC 4180) that a spreadsheet will not run.

Cells that a spreadsheet would take for a formula get a leading apostrophe; numbers stay numbers.
https://owasp.org/www-community/attacks/CSV_Injection
"""

from __future__ import annotations

import csv
import io
import re

from costguard.report.tables import Table
from costguard.report.words.sentences import clean

_FORMULA_STARTS = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")  # also their full-width forms
_NUMBER = re.compile(r"[+-]?\d{1,3}(,?\d{3})*(\.\d+)?|[+-]?\d+(\.\d+)?")


def to_csv(table: Table) -> str:
    """Header of column keys, then the rows; CRLF line ends."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow([column.key for column in table.columns])
    writer.writerows([cell(value) for value in row] for row in table.rows)
    return out.getvalue()


def cell(value: str) -> str:
    """One cell, cleaned and without the power to be a formula."""
    text = clean(value, limit=len(value) + 1)
    if text.startswith(_FORMULA_STARTS) and not _NUMBER.fullmatch(text):
        return "'" + text
    return text
