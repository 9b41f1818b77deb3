"""Histories as metrics backends give them: CloudWatch's figures in CSV, and the JSON that Prometheus answers.

A column is headed `INSTANCE METRIC [DEVICE]`. With the two columns `timestamp,value` the file's name says that, with
`__` between: `i-0123456789abcdef0__CPUUtilization.csv`. Rows may come in any order, as CloudWatch gives them, but none
twice; they are kept until the file is read.

An answer is whole or it is an error: what a warning left out may have been the busy hour. JSON cannot be read in parts
here, so a file has a largest size; ask for fewer days at a time.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from costguard.engine.history.book import SIGNALS, Book, DeviceSeries, DoubtedValue, Moments, wrong
from costguard.engine.history.files import Numbers

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


MOST_BYTES = 256 << 20
_PROMETHEUS_METRICS = {"DCGM_FI_DEV_GPU_UTIL": "gpu_percent", "DCGM_FI_DEV_POWER_USAGE": "power_watts"}
_INSTANCE_LABELS = ("resource_id", "instance_id", "instance")
_DEVICE_LABELS = ("gpu", "device")

Named = Callable[[str], str | None]
"""The whole resource id of a cloud's own id; None where it is not known."""


def read_range(text: str, path: str, named: Named, book: Book) -> None:
    """Every series of a saved answer into the book.

    A series is named by its metric (dcgm-exporter's, or one of ours from a recording rule), its machine by the label
    `resource_id`, `instance_id` or `instance`, its card by `gpu`.

    Raises:
        InvalidInputError: not a whole answer, or a series, time or value in it is wrong; with file and field.
    """
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as err:
        raise wrong(path, 0, "", f"not JSON: {err}") from err
    results = _results(document, path)
    for number, entry in enumerate(results):
        where = f"data.result[{number}]"
        try:
            labels, values = entry["metric"], entry["values"]
            resource_id, signal, device = _prometheus_series_of(labels, named)
            series = book.series(resource_id, signal, device)
            for at, point in enumerate(values):
                where = f"data.result[{number}].values[{at}]"
                if not book.add(series, *_point(point), 1):
                    book.doubt(DoubtedValue(path, 0, where, str(point[1])))
        except (KeyError, TypeError, ValueError, AttributeError) as err:
            raise wrong(path, 0, where, str(err) or type(err).__name__) from err


def _point(point: Any) -> tuple[float, float]:
    moment, value = point
    if isinstance(moment, bool) or not isinstance(moment, int | float) or not isinstance(value, str):
        raise TypeError("expected [Unix seconds, text]")
    return float(moment), float(value)


def _results(document: Any, path: str) -> list[Any]:
    if not isinstance(document, dict) or document.get("status") != "success":
        raise wrong(path, 0, "status", "not a successful answer of /api/v1/query_range")
    for kind in ("warnings", "infos"):
        if document.get(kind):
            raise wrong(path, 0, kind, "something was left out of this answer; ask again for less at a time")
    if document.get("isPartial") or document.get("partial"):
        raise wrong(path, 0, "isPartial", "this answer is partial; ask again for less at a time")
    found = document.get("data")
    if not isinstance(found, dict) or found.get("resultType") != "matrix" or not isinstance(found.get("result"), list):
        raise wrong(path, 0, "data.resultType", "expected a matrix, as /api/v1/query_range answers")
    results: list[Any] = found["result"]
    return results


def _prometheus_series_of(labels: Mapping[str, str], named: Named) -> tuple[str, str, str]:
    metric = labels.get("__name__", "")
    signal = _PROMETHEUS_METRICS.get(metric, metric)
    if signal not in SIGNALS:
        message = f"metric {metric[:60]!r} is not known; expected {', '.join([*_METRICS, *SIGNALS])}"
        raise ValueError(message)
    said = next((labels[name] for name in _INSTANCE_LABELS if labels.get(name)), "")
    device = next((labels[name] for name in _DEVICE_LABELS if name in labels), "")
    for one in (said, said.partition(".")[0], said.rpartition(":")[0]):
        resource_id = named(one) if one else None
        if resource_id is not None:
            return resource_id, signal, device
    message = f"no machine {said[:60]!r} in the instances file (labels {', '.join(_INSTANCE_LABELS)})"
    raise ValueError(message)
