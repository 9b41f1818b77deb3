"""Histories as CloudWatch's figures are kept in CSV: one column of times, one column a series.

A column is headed `INSTANCE METRIC [DEVICE]`. With the two columns `timestamp,value` the file's name says that, with
`__` between: `i-0123456789abcdef0__CPUUtilization.csv`. Rows may come in any order, as CloudWatch gives them, but none
twice; they are kept until the file is read.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from pathlib import PurePath

from costguard.engine.history.book import SIGNALS, Book, DeviceSeries, DoubtedValue, wrong
from costguard.engine.history.csv_files import Numbers
from costguard.engine.history.prometheus import Named
from costguard.engine.history.times import Moments

_METRICS = {
    "CPUUtilization": "cpu_percent",
    "nvidia_smi_utilization_gpu": "gpu_percent",
    "nvidia_smi_power_draw": "power_watts",
}
_NAIVE = re.compile(r"(\d{4})[-/](\d\d)[-/](\d\d)[ T](\d\d:\d\d)(:\d\d)?", re.ASCII)
_MOST_ROWS = 200_000  # CloudWatch keeps no more than 15 days of minutes
_PARTS = (2, 3)


def is_cloudwatch(header: Sequence[str]) -> bool:
    """Whether a header begins with a column of times as CloudWatch names it."""
    return len(header) > 1 and header[0].strip().lower() == "timestamp"


def read_columns(
    header: Sequence[str], lines: Iterator[str], path: str, named: Named, book: Book, *, utc: bool
) -> None:
    """Every column of figures into the book; an empty cell was not measured. `utc`: times without a zone are UTC.

    Raises:
        InvalidInputError: a column or cell is wrong, a time has no zone or stands twice; with file, line and field.
    """
    columns = header[1:]
    if len(columns) == 1 and columns[0].strip().lower() == "value":
        columns = (PurePath(path).name.removesuffix(".gz").removesuffix(".csv").replace("__", " "),)
    series = [book.series(*_series_of(column, named, path)) for column in columns]
    moments, numbers = Moments(), Numbers()
    rows: list[tuple[float, int, list[str]]] = []
    for number, cells in enumerate(csv.reader(lines, strict=True), start=2):
        if not cells:
            continue
        if len(cells) != len(header) or len(rows) >= _MOST_ROWS:
            what = f"{len(cells)} fields; the header has {len(header)}"
            raise wrong(path, number, "", what if len(rows) < _MOST_ROWS else f"more than {_MOST_ROWS} rows")
        try:
            rows.append((moments[_zoned(cells[0].strip(), utc=utc)], number, cells[1:]))
        except ValueError as err:
            raise wrong(path, number, "timestamp", str(err)) from err
    for moment, number, values in sorted(rows):
        for one, column, text in zip(series, columns, map(str.strip, values), strict=True):
            if text:
                _enter(one, moment, text, numbers, book, (path, number, column))


def _enter(
    one: DeviceSeries, moment: float, text: str, numbers: Numbers, book: Book, where: tuple[str, int, str]
) -> None:
    try:
        if not book.add(one, moment, numbers[text], 1):
            book.doubt(DoubtedValue(*where, text))
    except ValueError as err:
        raise wrong(*where, str(err)) from err


def _zoned(text: str, *, utc: bool) -> str:
    found = _NAIVE.fullmatch(text)
    if found is None:
        return text
    if not utc:
        message = f"{text!r} does not say its zone; with --cloudwatch-utc such times are UTC"
        raise ValueError(message)
    year, month, day, minute, second = found.groups()
    return f"{year}-{month}-{day}T{minute}{second or ':00'}Z"


def _series_of(column: str, named: Named, path: str) -> tuple[str, str, str]:
    parts = column.split()
    if len(parts) not in _PARTS:
        raise wrong(path, 1, "header", f"column {column[:60]!r} is not INSTANCE METRIC [DEVICE]")
    metric = _METRICS.get(parts[1], parts[1])
    if metric not in SIGNALS:
        known = ", ".join([*_METRICS, *SIGNALS])
        raise wrong(path, 1, "header", f"metric {parts[1][:60]!r} is not known; expected {known}")
    resource_id = named(parts[0])
    if resource_id is None:
        raise wrong(path, 1, "header", f"no machine {parts[0][:60]!r} in the instances file")
    return resource_id, metric, parts[2] if len(parts) > 2 else ""  # noqa: PLR2004 - the optional third
