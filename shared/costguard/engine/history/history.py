"""Reading recorded use from files: ours, Prometheus' and CloudWatch's, into machines that can be replayed."""

from __future__ import annotations

import csv
import gzip
import os
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, TextIO

from costguard.backtest import Machine
from costguard.domain.errors import InvalidInputError
from costguard.domain.signals import SignalName
from costguard.engine.history.book import Book, DeviceSeries, DoubtedValue, wrong
from costguard.engine.history.cloudwatch import is_cloudwatch, read_columns
from costguard.engine.history.csv_files import read_rows
from costguard.engine.history.instances import INSTANCE_COLUMNS, read_instances, unlisted
from costguard.engine.history.parquet_files import read_parquet
from costguard.engine.history.prometheus import MOST_BYTES, read_range

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
