"""Histories as Prometheus answers them: the JSON of `/api/v1/query_range`, saved to a file.

An answer is whole or it is an error: what a warning left out may have been the busy hour. JSON cannot be read in parts
here, so a file has a largest size; ask for fewer days at a time.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from costguard.engine.history.book import SIGNALS, Book, DoubtedValue, wrong

MOST_BYTES = 256 << 20
_METRICS = {"DCGM_FI_DEV_GPU_UTIL": "gpu_percent", "DCGM_FI_DEV_POWER_USAGE": "power_watts"}
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
            resource_id, signal, device = _series_of(labels, named)
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


def _series_of(labels: Mapping[str, str], named: Named) -> tuple[str, str, str]:
    metric = labels.get("__name__", "")
    signal = _METRICS.get(metric, metric)
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
