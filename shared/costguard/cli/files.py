"""Files that commands write: whole, or an error that names them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from costguard.domain.errors import InvalidInputError

if TYPE_CHECKING:
    from costguard.report.tables import Table

STDOUT = "-"
"""The name that stands for standard output, where a command offers it."""


def write_file(path: str, text: str) -> None:
    """Write `text`, as UTF-8 and just these line ends.

    Raises:
        InvalidInputError: it cannot be written.
    """
    try:
        Path(path).write_bytes(text.encode())
    except OSError as err:
        message = f"{path}: cannot be written: {err.strerror}"
        raise InvalidInputError(message) from err


def write_csv(path: str, table: Table) -> None:
    """Write a table as CSV, to standard output where `path` is `-`.

    Raises:
        InvalidInputError: it cannot be written.
    """
    from costguard.report.csv import to_csv

    if path == STDOUT:
        sys.stdout.write(to_csv(table).replace("\r\n", "\n"))
    else:
        write_file(path, to_csv(table))
