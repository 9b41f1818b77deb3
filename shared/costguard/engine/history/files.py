"""Histories as files of our own: CSV in the long format of docs/history.md, and Parquet with the same columns."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import repeat
from pathlib import Path
from typing import Any

from costguard.engine.history.book import Book, DeviceSeries, DoubtedValue, Moments, wrong

COLUMNS = ("time", "resource_id", "signal", "device", "value")
HOURLY_COLUMNS = (*COLUMNS, "samples")
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d{1,3})?|[-+]?inf(?:inity)?|nan", re.ASCII | re.IGNORECASE)
_HOUR_SECONDS = 3600
_MOST_SAMPLES = 3600  # an hour of one a second
_KEPT = 200_000


class Numbers:
    """Values by text, remembered: percentages come again and again."""

    def __init__(self) -> None:
        self.known: dict[str, float] = {}

    def __getitem__(self, text: str) -> float:
        known = self.known.get(text)
        if known is None:
            if _NUMBER.fullmatch(text) is None:
                message = f"{text[:60]!r} is no number"
                raise ValueError(message)
            known = float(text)
            if len(self.known) >= _KEPT:
                self.known.clear()
            self.known[text] = known
        return known


def read_rows(header: Sequence[str], lines: Iterator[str], path: str, book: Book) -> None:
    """Every row below a header into the book.

    Raises:
        InvalidInputError: a column that is not known or missing, a row that is not as the header says, a time without
            zone, a row that stands twice or out of order; with file, line and field.
    """
    if checked_header(header, path) == COLUMNS:
        _read_samples(lines, path, book)
    else:
        _read_hours(lines, path, book)


def checked_header(header: Sequence[str], path: str) -> tuple[str, ...]:
    """The columns, if they are those of samples or of hours.

    Raises:
        InvalidInputError: they are not.
    """
    if tuple(header) in {COLUMNS, HOURLY_COLUMNS}:
        return tuple(header)
    unknown = [name for name in header if name not in HOURLY_COLUMNS]
    what = f"unknown column {unknown[0]!r}" if unknown else f"columns {','.join(header)}"
    raise wrong(path, 1, "header", f"{what}; expected {','.join(COLUMNS)} and, of hourly rows, samples")


def _read_samples(lines: Iterator[str], path: str, book: Book) -> None:
    """The loop that a month of minutes goes through 43,200 times a series.

    Each text is looked up once. A row that only adds to the hour being gathered is done with here; what begins an hour,
    or may be wrong, goes the long way.
    """
    moments, numbers = Moments(), Numbers()
    known: dict[str, DeviceSeries] = {}
    moment_of, value_of, series_of = moments.known.get, numbers.known.get, known.get
    quick = 0
    for number, line in enumerate(lines, start=2):
        try:
            time, rest = line.split(",", 1)
            key, text = rest.rsplit(",", 1)
        except ValueError as err:
            if not line.strip():
                continue
            raise wrong(path, number, "", _fields(line, COLUMNS)) from err
        series, moment, value = series_of(key), moment_of(time), value_of(text)
        if series is None or moment is None or value is None:
            series = _long_way(line, path, number, book, moments, numbers)
            if '"' not in line:
                known[key] = series
        elif series.last < moment < series.ends and 0 <= value <= series.most:
            series.last = moment
            series.count += 1
            if value > series.highest:  # noqa: PLR1730 - max() is a call, for every row there is
                series.highest = value
            quick += 1
        else:
            _enter(series, moment, value, text, path, number, book)
    book.rows += quick


def _long_way(line: str, path: str, number: int, book: Book, moments: Moments, numbers: Numbers) -> DeviceSeries:
    """A row of which anything is met for the first time."""
    bare = line.rstrip("\r\n")
    time, rest = bare.split(",", 1)
    key, text = rest.rsplit(",", 1)
    if '"' in bare:
        time, key, text = _unquoted(bare, path, number)
    series = _series(key, path, number, book)
    try:
        value = numbers[text]
    except ValueError as err:
        raise wrong(path, number, "value", str(err)) from err
    numbers.known[line.rpartition(",")[2]] = value  # with the end of its line, as it will come again
    try:
        moment = moments[time]
    except ValueError as err:
        raise wrong(path, number, "time", str(err)) from err
    _enter(series, moment, value, text, path, number, book)
    return series


def _enter(series: DeviceSeries, moment: float, value: float, text: str, path: str, number: int, book: Book) -> None:
    try:
        believed = book.add(series, moment, value, 1)
    except ValueError as err:
        raise wrong(path, number, "time", str(err)) from err
    if not believed:
        book.doubt(DoubtedValue(path, number, "value", text.strip()))


def _read_hours(lines: Iterator[str], path: str, book: Book) -> None:
    moments, numbers = Moments(), Numbers()
    for number, row in enumerate(csv.reader(lines, strict=True), start=2):
        if not row:
            continue
        if len(row) != len(HOURLY_COLUMNS):
            raise wrong(path, number, "", _fields(",".join(row), HOURLY_COLUMNS))
        time, resource_id, signal, device, text, count = row
        series = _series(f"{resource_id},{signal},{device}", path, number, book)
        if not (count.isascii() and count.isdigit() and 0 < int(count) <= _MOST_SAMPLES):
            raise wrong(path, number, "samples", f"{count[:60]!r} is not a number of samples from 1 to {_MOST_SAMPLES}")
        try:
            value = numbers[text]
        except ValueError as err:
            raise wrong(path, number, "value", str(err)) from err
        try:
            believed = book.add(series, on_the_hour(moments[time]), value, int(count))
        except ValueError as err:
            raise wrong(path, number, "time", str(err)) from err
        if not believed:
            book.doubt(DoubtedValue(path, number, "value", text))


def on_the_hour(moment: float) -> float:
    """The same moment, of a row that counts samples.

    Raises:
        ValueError: it is within an hour.
    """
    if moment % _HOUR_SECONDS:
        raise ValueError("a row that counts samples is of a whole hour, and begins on it")
    return moment


def _series(key: str, path: str, number: int, book: Book) -> DeviceSeries:
    parts = key.split(",")
    if len(parts) != len(COLUMNS) - 2:
        raise wrong(path, number, "", _fields(f"?,{key},?", COLUMNS))
    return series_named(parts[0], parts[1], parts[2], path, number, book)


def series_named(resource_id: str, signal: str, device: str, path: str, number: int, book: Book) -> DeviceSeries:
    """The series of a row.

    Raises:
        InvalidInputError: no machine or no such signal is named.
    """
    if not resource_id:
        raise wrong(path, number, "resource_id", "it is empty")
    try:
        return book.series(resource_id, signal, device)
    except ValueError as err:
        raise wrong(path, number, "signal", str(err)) from err


def _unquoted(line: str, path: str, number: int) -> tuple[str, str, str]:
    """A row with quotes, as other programs write it; no field of ours holds a comma."""
    try:
        row = next(csv.reader([line], strict=True))
    except csv.Error as err:
        raise wrong(path, number, "", str(err)) from err
    if len(row) != len(COLUMNS) or any("," in cell for cell in row):
        raise wrong(path, number, "", _fields(line, COLUMNS))
    return row[0], ",".join(row[1:4]), row[4]


def _fields(line: str, columns: Sequence[str]) -> str:
    return f"{line.count(',') + 1} fields; expected {len(columns)}: {','.join(columns)}"


_BATCH = 65_536  # rows at a time
_MICROSECONDS = 1_000_000
_PARQUET_FILES_MOST_SAMPLES = 3600


def read_parquet(path: Path, book: Book, load: Callable[[str], Any]) -> None:
    """Every row of a file into the book. `load` imports what reads Parquet.

    Raises:
        InvalidInputError: pyarrow is not installed, or as with CSV; with file, row and field.
    """
    try:
        arrow, parquet = load("pyarrow"), load("pyarrow.parquet")
    except ImportError as err:
        raise wrong(str(path), 0, "", "reading Parquet needs pyarrow: pip install 'gpu-costguard[history]'") from err
    try:
        with path.open("rb") as raw:
            _read(path, parquet.ParquetFile(raw), arrow, book)
    except (OSError, ValueError) as err:  # pyarrow's own errors are ValueErrors
        raise wrong(str(path), 0, "", f"cannot be read: {err}") from err


def _read(path: Path, file: Any, arrow: Any, book: Book) -> None:
    header = checked_header(list(file.schema_arrow.names), str(path))
    moments, known, row = Moments(), dict[tuple[str, str, str], DeviceSeries](), 0
    for batch in file.iter_batches(batch_size=_BATCH):
        column = [batch.column(at) for at in range(len(header))]
        times = _seconds(column[0], arrow, str(path), moments, row)
        counts = column[5].to_pylist() if header == HOURLY_COLUMNS else None
        names = zip(*(one.to_pylist() for one in column[1:4]), strict=True)
        rows = zip(times, names, column[4].to_pylist(), counts or repeat(1), strict=False)
        row = _add(str(path), rows, known, row, book, hourly=counts is not None)


def _add(
    path: str,
    rows: Iterator[tuple[float, tuple[Any, ...], Any, Any]],
    known: dict[tuple[Any, ...], DeviceSeries],
    before: int,
    book: Book,
    *,
    hourly: bool,
) -> int:
    row = before
    for row, (moment, key, value, count) in enumerate(rows, start=before + 1):
        series = known.get(key)
        if series is None:
            series = known[key] = _parquet_files_series(key, path, row, book)
        if value is None or isinstance(value, str):
            raise wrong(path, row, "value", f"{value!r} is no number")
        if hourly and not (isinstance(count, int) and 0 < count <= _PARQUET_FILES_MOST_SAMPLES):
            raise wrong(path, row, "samples", f"{count!r} is not a number of samples from 1 to {_MOST_SAMPLES}")
        try:
            believed = book.add(series, on_the_hour(moment) if hourly else moment, float(value), count)
        except ValueError as err:
            raise wrong(path, row, "time", str(err)) from err
        if not believed:
            book.doubt(DoubtedValue(path, row, "value", str(value)))
    return row


def _parquet_files_series(key: tuple[Any, ...], path: str, row: int, book: Book) -> DeviceSeries:
    resource_id, signal, device = ("" if part is None else str(part) for part in key)
    return series_named(resource_id, signal, device, path, row, book)


def _seconds(column: Any, arrow: Any, path: str, moments: Moments, before: int) -> Sequence[float]:
    """Unix seconds of a column of times, or of RFC 3339 texts."""
    if arrow.types.is_timestamp(column.type):
        if column.type.tz is None:
            raise wrong(path, before + 1, "time", "this column of times does not say its zone")
        if column.null_count:
            raise wrong(path, before + 1, "time", "a time is missing in this row or one of those that follow")
        whole = column.cast(arrow.timestamp("us", tz=column.type.tz), safe=False).cast(arrow.int64())
        return [value / _MICROSECONDS for value in whole.to_pylist()]
    found = []
    for row, text in enumerate(column.to_pylist(), start=before + 1):
        try:
            found.append(moments["" if text is None else str(text)])
        except ValueError as err:
            raise wrong(path, row, "time", str(err)) from err
    return found
