"""How answers and errors leave the program: JSON for machines, tables for people, errors on standard error."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, NoReturn

import typer
from typing_extensions import assert_never

from costguard.cli.exits import Exit
from costguard.cli.wrapping import cells, wrapped
from costguard.report.words.sentences import clean

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table as RichTable

    from costguard.report.tables import Table, Tone

_PIPED_WIDTH = 200  # of a table that goes to a file, where nothing says how wide the reader's page is
_ROOMY = 160  # columns from which ids and names are kept in one piece
_FEW_COLUMNS, _SHORT_CELL = 4, 30
_CALLED = ("name", "resource", "shard")
_NEVER_FOLDED = frozenset({"resource", "name", "case_id", "decision_id"})
_TONED = frozenset({"name", "share"})
_LONGEST_LINE = 2000
_UNSAFE = re.compile("[\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class CommandResult:
    """What a command found out. People get lines, tables and closing lines; machines get `data`."""

    data: Mapping[str, Any]
    lines: Sequence[str] = ()
    tables: Sequence[Table] = ()
    closing: Sequence[str] = ()
    exit: Exit = Exit.OK


def emit(answer: CommandResult, *, as_json: bool) -> NoReturn:
    """Print the answer and end the command with its exit status.

    Raises:
        typer.Exit: always.
    """
    if as_json:
        for part in json_parts(answer.data):
            typer.echo(part, nl=False)
        typer.echo()
    else:
        show(answer)
    raise typer.Exit(answer.exit)


def show(answer: CommandResult) -> None:
    """Print an answer for people."""
    for line in answer.lines:
        typer.echo(safe(line))
    if answer.tables:
        console = _console()
        for table in answer.tables:
            print_table(console, table)
    for line in answer.closing:
        typer.echo(safe(line))


def heading(text: str) -> None:
    """Print one line that begins something, bold on a terminal."""
    if not sys.stdout.isatty():
        typer.echo(safe(text))
        return
    from rich.text import Text

    _console().print(Text(safe(text), style="bold"), soft_wrap=True)


def to_json(data: Mapping[str, Any]) -> str:
    """Indented JSON, readable in every script, with control and bidi characters escaped."""
    return "".join(json_parts(data))


def json_parts(data: Mapping[str, Any]) -> Iterator[str]:
    """The same in parts, a list item by item: of a long answer there is never a second copy as one text."""
    between = "{"
    for name, value in data.items():
        yield f"{between}\n  {_name(name)}: "
        if isinstance(value, (list, tuple)) and value:
            for number, item in enumerate(value):
                yield f"{',' if number else '['}\n    {_json(item, '    ')}"
            yield "\n  ]"
        else:
            yield _json(value, "  ")
        between = ","
    yield "\n}" if data else "{}"


def _json(value: Any, pad: str = "") -> str:
    """As `json.dumps` with two spaces, in a third of its time: that has no C for indented text."""
    if isinstance(value, dict) and value:
        inside = f"{pad}  "
        items = (f"{inside}{_name(name)}: {_json(item, inside)}" for name, item in value.items())
        return "{\n" + ",\n".join(items) + f"\n{pad}}}"
    if isinstance(value, (list, tuple)) and value:
        inside = f"{pad}  "
        return "[\n" + ",\n".join(f"{inside}{_json(item, inside)}" for item in value) + f"\n{pad}]"
    text = _plain(value)
    return text if text.isascii() and "\x7f" not in text else _UNSAFE.sub(_escaped, text)


@lru_cache(maxsize=1_000)
def _name(name: object) -> str:
    return _json(name if isinstance(name, str) else str(name))


def _escaped(match: re.Match[str]) -> str:
    return f"\\u{ord(match.group()):04x}"


_plain = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode


def safe(text: str) -> str:
    """Several lines, each cleaned; the indentation of carets under a mistake stays."""
    lines = text.split("\n")
    return "\n".join(line[: len(line) - len(line.lstrip(" "))] + clean(line, _LONGEST_LINE) for line in lines)


def complain(error: Exception) -> None:
    """Tell an error on standard error."""
    typer.echo(f"costguard: {safe(str(error))}", err=True)


def _console() -> Console:
    from rich.console import Console

    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=max(console.width, _PIPED_WIDTH))


def print_table(console: Console, whole: Table) -> None:
    """Draw it, or where its sentences would be squeezed into columns of a few letters, tell it row by row."""
    table = _without_empty_columns(whole)
    columns = tuple(zip(*table.rows, strict=True))
    squeezed = console.width < _ROOMY and any(map(_is_long, columns))
    if len(columns) > _FEW_COLUMNS and (squeezed or not (table.foldable or _width(table) <= console.width)):
        heading(table.title)
        for line in _rows_told(table, console.width):
            typer.echo(safe(line))
        return
    if console.is_terminal:
        console.print(_drawn(table, console.width))
        return
    with console.capture() as captured:
        console.print(_drawn(table, console.width))
    for line in captured.get().splitlines():
        typer.echo(line.rstrip())  # in a file no line ends in spaces


def _without_empty_columns(table: Table) -> Table:
    kept = [index for index in range(len(table.columns)) if any(row[index] for row in table.rows)]
    columns = tuple(table.columns[index] for index in kept)
    return replace(table, columns=columns, rows=tuple(tuple(row[index] for index in kept) for row in table.rows))


def _width(table: Table) -> int:
    """How many columns of the page it takes with every cell in one line, two between cells."""
    cells_of = zip(*(tuple(column.title for column in table.columns), *table.rows), strict=True)
    return sum(max(map(cells, column)) + 2 for column in cells_of)


def _is_long(column: Sequence[str]) -> bool:
    return max(map(len, column)) > _SHORT_CELL


def _rows_told(table: Table, width: int) -> Iterator[str]:
    """What a row is called, then its short cells in one line, then each long one."""
    yield ""
    for row in table.rows:
        pairs = [pair for pair in zip(table.columns, row, strict=True) if pair[1]]
        called = [cell for column, cell in pairs if column.key in _CALLED]
        others = [pair for pair in pairs if pair[0].key not in _CALLED]
        short = [f"{column.title} {cell}" for column, cell in others if len(cell) <= _SHORT_CELL]
        yield from wrapped("  ".join(called or short), " ", 2, width)
        if called and short:
            yield from wrapped(" · ".join(short), "   ", 2, width)
        for column, cell in others:
            if len(cell) > _SHORT_CELL:
                yield from wrapped(f"{column.title}: {cell}", "   ", 2, width)
    if table.note:
        yield table.note
    yield ""


def _drawn(table: Table, width: int) -> RichTable:
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    drawn = RichTable(
        title=Text(table.title),
        caption=Text(table.note) if table.note else None,
        title_justify="left",
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        title_style="bold",
        pad_edge=False,
    )
    for column in table.columns:
        drawn.add_column(
            Text(column.title),
            justify="right" if column.numeric else "left",
            overflow="fold",
            no_wrap=column.key in _NEVER_FOLDED and width >= _ROOMY,
        )
    for row, tone in zip_longest(table.rows, table.tones):
        style = "" if tone is None else _style(tone)
        toned = (style if column.key in _TONED else "" for column in table.columns)
        drawn.add_row(*map(Text, row, toned))  # Text, so that brackets in names are no markup
    return drawn


def _style(tone: Tone) -> str:
    from costguard.report.tables import Tone

    if tone is Tone.GOOD:
        return "green"
    if tone is Tone.WARNING:
        return "yellow"
    if tone is Tone.BAD:
        return "bold red"
    assert_never(tone)


def draws_blocks() -> bool:
    """Whether standard output can show block characters; ASCII stands in for them elsewhere."""
    try:
        "▁█░".encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def survive_any_encoding() -> None:
    """Text the terminal's encoding cannot show is replaced, never a crash half way through an answer."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
