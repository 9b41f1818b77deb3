"""Histories as Parquet: the columns of the CSV in their own types, read batch by batch where pyarrow is installed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import repeat
from pathlib import Path
from typing import Any

from costguard.engine.history.book import Book, DeviceSeries, DoubtedValue, wrong
from costguard.engine.history.csv_files import HOURLY_COLUMNS, checked_header, on_the_hour, series_named
from costguard.engine.history.times import Moments

_BATCH = 65_536  # rows at a time
_MICROSECONDS = 1_000_000
_MOST_SAMPLES = 3600


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
            series = known[key] = _series(key, path, row, book)
        if value is None or isinstance(value, str):
            raise wrong(path, row, "value", f"{value!r} is no number")
        if hourly and not (isinstance(count, int) and 0 < count <= _MOST_SAMPLES):
            raise wrong(path, row, "samples", f"{count!r} is not a number of samples from 1 to {_MOST_SAMPLES}")
        try:
            believed = book.add(series, on_the_hour(moment) if hourly else moment, float(value), count)
        except ValueError as err:
            raise wrong(path, row, "time", str(err)) from err
        if not believed:
            book.doubt(DoubtedValue(path, row, "value", str(value)))
    return row


def _series(key: tuple[Any, ...], path: str, row: int, book: Book) -> DeviceSeries:
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
