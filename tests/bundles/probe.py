"""Calls a function in the folder of its unpacked bundle; started by a bare interpreter, with nothing else on its path.

`python -I -S probe.py FOLDER HOST EVENT REQUIRED…`; settings come in the environment. Prints one line of JSON: what was
answered or raised, which modules came from elsewhere, and what drawing gave where charts ship.
"""

from __future__ import annotations

import importlib
import json
import sys
import sysconfig
from pathlib import Path
from types import SimpleNamespace
from typing import Any


def main() -> None:
    """One event, and what came of it."""
    folder, host, event = sys.argv[1:4]
    sys.path.insert(0, folder)
    for name in sys.argv[4:]:
        importlib.import_module(name)
    body = Path(event).read_bytes()
    shipped = importlib.import_module("handler")
    try:
        told: Any = {"answer": shipped.handler(body if host == "fc" else json.loads(body), context_of(host))}
    except Exception as err:  # noqa: BLE001 - whatever it is goes to whoever started this
        told = {"error": f"{type(err).__name__}: {err}"}
    told["strangers"] = strangers(folder)
    if Path(folder, "matplotlib").is_dir():
        told["drawn"] = drawn()
    sys.stdout.write(json.dumps(told, default=str) + "\n")


def context_of(host: str) -> Any:
    """The context that the host's runtime hands over."""
    if host == "scf":
        return {"request_id": "r", "time_limit_in_ms": 900_000}
    if host == "fc":
        nothing = SimpleNamespace(access_key_id="", access_key_secret="", security_token="")
        return SimpleNamespace(request_id="r", function=SimpleNamespace(timeout=900), credentials=nothing)
    return SimpleNamespace(aws_request_id="r", get_remaining_time_in_millis=lambda: 900_000)


def strangers(folder: str) -> list[str]:
    """Modules that are neither the bundle's nor the interpreter's own."""
    places = (folder, *(sysconfig.get_path(name) for name in ("stdlib", "platstdlib")))
    files = {name: getattr(module, "__file__", None) for name, module in list(sys.modules.items())}
    here = str(Path(__file__).resolve())
    return sorted(name for name, file in files.items() if file and file != here and not file.startswith(places))


def drawn() -> list[int]:
    """The sizes of a chart as SVG and PNG."""
    from datetime import date

    from costguard.adapters.charts import png, svg
    from costguard.report.charts.values import HeatMap, Said

    def said(text: str) -> Said:
        return Said(text, text)

    days = tuple(date(2026, 3, number) for number in (1, 2, 3))
    steps = tuple(map(said, "abcdef"))
    busy = HeatMap(said("Busy"), (said("训练"),), days, ((None, 3.0, 97.5),), steps, (5, 20, 40, 60, 80), said("none"))
    return [len(svg(busy)), len(png(busy).body)]


if __name__ == "__main__":
    main()
