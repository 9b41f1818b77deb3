"""A table as a value: the terminal, CSV and JSON show the same one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum


class Tone(str, Enum):
    """How grave a row is; a terminal shows it in colour."""

    GOOD = "good"
    WARNING = "warning"
    BAD = "bad"


@dataclass(frozen=True, slots=True)
class Column:
    """`key` names the column in CSV and JSON in every language; `title` is for people. Numbers align right."""

    key: str
    title: str
    numeric: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of text, one cell a column. `note` stands below.

    `tones` are one a row, or none at all. Where `foldable` is False a cell in two lines would say nothing.
    """

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""
    tones: tuple[Tone, ...] = ()
    foldable: bool = True

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                message = f"{self.title!r}: a row of {len(row)} cells under {len(self.columns)} columns"
                raise ValueError(message)

    def records(self) -> Sequence[dict[str, str]]:
        """Each row by column key."""
        keys = [column.key for column in self.columns]
        return [dict(zip(keys, row, strict=True)) for row in self.rows]
