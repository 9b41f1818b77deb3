"""Reading recorded use from files: ours, Prometheus' and CloudWatch's, into machines that can be replayed."""

from __future__ import annotations

import csv
import gzip
import json
import os
import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, TextIO

from costguard.backtest import Machine, Run
from costguard.domain.errors import InvalidInputError
from costguard.domain.money import HourlyRate, Money
from costguard.domain.refs import ResourceRef
from costguard.domain.resources import (
    Accelerator,
    AcceleratorKind,
    Billing,
    Instance,
    InstanceState,
    Keeper,
    ManagedBy,
)
from costguard.domain.signals import SignalName
from costguard.engine.history.book import Book, DeviceSeries, DoubtedValue, parse_moment, wrong
from costguard.engine.history.files import read_parquet, read_rows
from costguard.engine.history.metrics import MOST_BYTES, is_cloudwatch, read_columns, read_range

NEEDED = ("resource_id", "instance_type", "accelerators")
INSTANCE_COLUMNS = (
    *NEEDED,
    *("accelerator_kind", "name", "owner", "tags", "billing", "resource_group", "managed_by", "cannot_stop"),
    *("hourly_price", "currency", "runs"),
)
_PRICE = re.compile(r"\d{1,9}(?:\.\d{1,18})?", re.ASCII)
_COUNT = re.compile(r"\d{1,3}(?:\.\d{1,4})?", re.ASCII)
_CURRENCY = re.compile(r"[A-Z]{3}")
_SOURCE = "history"


def read_instances(header: Sequence[str], lines: Iterator[str], path: str) -> dict[str, Machine]:
    """Machines without histories, by resource id.

    Raises:
        InvalidInputError: a column, a row or a field is wrong, or a machine stands twice; with file, line and field.
    """
    unknown = [name for name in header if name not in INSTANCE_COLUMNS]
    missing = [name for name in NEEDED if name not in header]
    if unknown or missing or len(set(header)) != len(header):
        what = f"unknown column {unknown[0]!r}" if unknown else f"column {missing[0]!r} is missing" if missing else ""
        expected = f"expected {','.join(INSTANCE_COLUMNS)}, of which {', '.join(NEEDED)} are needed"
        raise wrong(path, 1, "header", f"{what or 'a column stands twice'}; {expected}")
    found: dict[str, Machine] = {}
    for number, cells in enumerate(csv.reader(lines, strict=True), start=2):
        if not cells:
            continue
        if len(cells) != len(header):
            raise wrong(path, number, "", f"{len(cells)} fields; the header has {len(header)}")
        machine = _machine(dict(zip(header, cells, strict=True)), path, number)
        key = str(machine.instance.ref)
        if key in found:
            raise wrong(path, number, "resource_id", f"{key} stands twice")
        found[key] = machine
    return found


def unlisted(resource_id: str, cards: int) -> Machine:
    """A machine of which only its use is known: on demand, at an unknown price.

    Raises:
        InvalidInputError: it is no resource id.
    """
    return Machine(_instance(ResourceRef.parse(resource_id), {}, float(max(cards, 1))), None, ())


def _machine(row: Mapping[str, str], path: str, number: int) -> Machine:
    try:
        ref = ResourceRef.parse(row["resource_id"])
    except InvalidInputError as err:
        raise wrong(path, number, "resource_id", str(err)) from err
    count = row["accelerators"]
    if _COUNT.fullmatch(count) is None or not float(count):
        raise wrong(path, number, "accelerators", f"{count[:60]!r} is not a number of cards, such as 8 or 0.25")
    field = ""
    try:
        field = "tags"
        tags = _tags(row.get(field, ""))
        field = "runs"
        runs = _runs(row.get(field, ""))
        field = "hourly_price"
        rate = _rate(row.get(field, ""), row.get("currency", ""))
        field = "managed_by"
        keeper = _keeper(row.get(field, ""))
        field = "billing"
        billing = _choice(row.get(field, "") or Billing.ON_DEMAND.value, Billing)
        field = "accelerator_kind"
        kind = _choice(row.get(field, "") or AcceleratorKind.NVIDIA_GPU.value, AcceleratorKind)
    except ValueError as err:
        raise wrong(path, number, field, str(err)) from err
    instance = _instance(ref, row, float(count), kind, Billing(billing), tags, keeper)
    return Machine(instance, rate, (), runs, row.get("owner", ""))


def _instance(
    ref: ResourceRef,
    row: Mapping[str, str],
    count: float,
    kind: str = AcceleratorKind.NVIDIA_GPU.value,
    billing: Billing = Billing.ON_DEMAND,
    tags: Mapping[str, str] | None = None,
    keeper: ManagedBy | None = None,
) -> Instance:
    return Instance(
        ref=ref,
        instance_type=row.get("instance_type", ""),
        accelerator=Accelerator(AcceleratorKind(kind), "", count),
        state=InstanceState.RUNNING,
        billing=billing,
        run_epoch="",
        launched_at=None,
        name=row.get("name", ""),
        tags=tags or {},
        managed_by=keeper,
        cannot_stop=row.get("cannot_stop", ""),
        resource_group=row.get("resource_group", ""),
    )


def _choice(text: str, choices: type[Billing | AcceleratorKind]) -> str:
    known = [choice.value for choice in choices]
    if text not in known:
        message = f"{text[:60]!r} is none of {', '.join(known)}"
        raise ValueError(message)
    return text


def _tags(text: str) -> dict[str, str]:
    if not text:
        return {}
    try:
        tags = json.loads(text)
    except (ValueError, RecursionError):
        tags = None
    if not isinstance(tags, dict) or not all(isinstance(value, str) for value in tags.values()):
        raise ValueError('expected a JSON object of texts, such as {"team": "nlp"}')
    return tags


def _runs(text: str) -> tuple[Run, ...]:
    """`2026-11-01T00:00:00Z/2026-11-03T10:00:00Z 2026-11-05T08:00:00Z/` : each from/to, the last one may be open."""
    runs: list[Run] = []
    for part in text.split():
        since, slash, until = part.partition("/")
        if not slash:
            message = f"{part[:60]!r} is no stretch of time; expected FROM/TO, TO empty while it goes on"
            raise ValueError(message)
        run = Run(parse_moment(since), parse_moment(until) if until else None)
        before = runs[-1].until if runs else run.since
        if before is None or run.since < before or (run.until is not None and run.until <= run.since):
            message = f"{part[:60]!r} ends before it begins, or overlaps the one before"
            raise ValueError(message)
        runs.append(run)
    return tuple(runs)


def _rate(price: str, currency: str) -> HourlyRate | None:
    if not price and not currency:
        return None
    if _PRICE.fullmatch(price) is None or _CURRENCY.fullmatch(currency) is None:
        message = f"{price[:30]!r} {currency[:30]!r} is no price; expected 12.50 and in `currency` USD, or both empty"
        raise ValueError(message)
    return HourlyRate(Money(Decimal(price), currency), _SOURCE, "")


def _keeper(text: str) -> ManagedBy | None:
    if not text:
        return None
    kind, _, name = text.partition("/")
    known = [keeper.value for keeper in Keeper]
    if kind not in known:
        message = f"{text[:60]!r}: expected KIND/NAME with KIND one of {', '.join(known)}"
        raise ValueError(message)
    return ManagedBy(Keeper(kind), name)


Progress = Callable[[int, int, str], None]
"""Called with files read, files in all, and the file just read."""
_SUFFIXES = (".csv", ".csv.gz", ".json", ".json.gz", ".parquet")
_MOST_PROCESSES = 8
_PIECE = 1 << 18
_WORTH_A_PROCESS = 20 << 20  # bytes of files: a process takes half a second to begin


@dataclass(frozen=True, slots=True)
class HistoryFiles:
    """What files hold: machines with their histories, and the values that were not believed.

    `unlisted` are machines without a row among the instances: their type, price and runs are not known.
    """

    machines: tuple[Machine, ...]
    rows: int
    doubts: tuple[DoubtedValue, ...] = ()
    doubted: int = 0
    unlisted: int = 0


def read_record(
    paths: Sequence[str],
    *,
    progress: Progress | None = None,
    cloudwatch_utc: bool = False,
    load: Callable[[str], Any] = import_module,
) -> HistoryFiles:
    """All files, and those of the folders among them; instances first, the rest in the order given, folders by name.

    `load` imports what reads Parquet.

    Raises:
        InvalidInputError: a file is not there, or anything in it is wrong; with file, line and field.
    """
    files = list(_files(paths))
    listed: dict[str, Machine] = {}
    rest: list[Path] = []
    for path in files:
        if path.name.endswith((".csv", ".csv.gz")):
            with _opened(path) as (header, lines):
                if set(header) & set(INSTANCE_COLUMNS) - {"resource_id"} and "time" not in header:
                    for key, machine in read_instances(header, lines, str(path)).items():
                        if key in listed:
                            raise wrong(str(path), 0, "resource_id", f"{key} stands in another file too")
                        listed[key] = machine
                    continue
        rest.append(path)
    if not rest:
        message = "no file with a history was given, only instances" if files else "no file was given"
        raise InvalidInputError(message)
    book = Book()
    one = partial(_read_one, named=_by_native_id(listed), cloudwatch_utc=cloudwatch_utc, load=load)
    for done, (path, read) in enumerate(zip(rest, _each(one, rest), strict=True), start=1):
        book.join(read, str(path))
        if progress is not None:
            progress(done, len(rest), path.name)
    return _record(listed, book)


def _each(one: Callable[[Path], Book], paths: Sequence[Path]) -> Iterator[Book]:
    """A book a file, in the order of the files; large ones side by side, each in a process of its own."""
    processes = min(os.cpu_count() or 1, len(paths), _MOST_PROCESSES)
    if processes == 1 or sum(path.stat().st_size for path in paths if path.exists()) < _WORTH_A_PROCESS:
        yield from map(one, paths)
        return
    with ProcessPoolExecutor(processes) as pool:
        yield from pool.map(one, paths)


def _read_one(path: Path, named: Mapping[str, str], *, cloudwatch_utc: bool, load: Callable[[str], Any]) -> Book:
    book = Book()
    _read(path, book, named.get, cloudwatch_utc=cloudwatch_utc, load=load)
    return book


def _record(listed: dict[str, Machine], book: Book) -> HistoryFiles:
    machines: dict[str, Machine] = dict(listed)
    unknown = 0
    for resource_id, found in book.by_resource().items():
        histories = tuple(each.history("history") for each in found if each.first >= 0 or each.hour >= 0)
        if resource_id not in machines:
            unknown += 1
            machines[resource_id] = unlisted(resource_id, _cards(found))
        machines[resource_id] = replace(machines[resource_id], histories=histories)
    return HistoryFiles(tuple(machines.values()), book.rows, tuple(book.doubts), book.doubted, unknown)


def _cards(found: Sequence[DeviceSeries]) -> int:
    return len({each.device for each in found if each.signal == f"{SignalName.GPU.value}_percent"})


def _by_native_id(listed: dict[str, Machine]) -> dict[str, str]:
    """Ids by the cloud's own ids, and by themselves; an id that two machines share names neither."""
    native: dict[str, str] = {}
    for key, machine in listed.items():
        one = machine.instance.ref.native_id
        native[one] = "" if one in native else key
    return {one: key for one, key in {**native, **{key: key for key in listed}}.items() if key}


def _files(paths: Sequence[str]) -> Iterator[Path]:
    for given in paths:
        path = Path(given)
        if path.is_dir():
            inside = sorted(one for one in path.iterdir() if one.name.endswith(_SUFFIXES))
            if not inside:
                raise wrong(given, 0, "", f"no file in this folder ends in {', '.join(_SUFFIXES)}")
            yield from inside
        elif path.name.endswith(_SUFFIXES):
            yield path
        else:
            raise wrong(given, 0, "", f"expected a folder, or a file that ends in {', '.join(_SUFFIXES)}")


def _read(
    path: Path,
    book: Book,
    named: Callable[[str], str | None],
    *,
    cloudwatch_utc: bool,
    load: Callable[[str], Any],
) -> None:
    name = str(path)
    if path.suffix == ".parquet":
        read_parquet(path, book, load)
    elif path.name.endswith((".json", ".json.gz")):
        with _text(path) as stream:
            text = stream.read(MOST_BYTES + 1)
        if len(text) > MOST_BYTES:
            raise wrong(name, 0, "", f"larger than {MOST_BYTES >> 20} MiB; ask for fewer days at a time")
        read_range(text, name, named, book)
    else:
        with _opened(path) as (header, lines):
            if is_cloudwatch(header):
                read_columns(header, lines, name, named, book, utc=cloudwatch_utc)
            else:
                read_rows(header, lines, name, book)


@contextmanager
def _opened(path: Path) -> Iterator[tuple[list[str], Iterator[str]]]:
    """The header of a CSV file and the lines below it."""
    with _text(path) as stream:
        first = stream.readline()
        if not first.strip():
            raise wrong(str(path), 1, "header", "the file is empty")
        header = next(csv.reader([first.removeprefix("\ufeff").rstrip("\r\n")]))
        yield header, _lines(stream)


def _lines(stream: TextIO) -> Iterator[str]:
    """Lines without their ends; by large pieces this takes a third of what a stream's own lines do."""
    rest = ""
    while piece := stream.read(_PIECE):
        lines = (rest + piece).split("\n")
        rest = lines.pop()
        yield from lines
    if rest:
        yield rest


@contextmanager
def _text(path: Path) -> Iterator[TextIO]:
    try:
        opened = gzip.open if path.suffix == ".gz" else open
        with opened(path, "rt", encoding="utf-8", newline="") as stream:
            yield stream
    except (OSError, EOFError, zlib.error) as err:
        raise wrong(str(path), 0, "", f"cannot be read: {getattr(err, 'strerror', None) or err}") from err
    except UnicodeDecodeError as err:
        raise wrong(str(path), 0, "", f"not UTF-8: {err}") from err
    except csv.Error as err:
        raise wrong(str(path), 0, "", f"not CSV: {err}") from err
