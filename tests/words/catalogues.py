"""The catalogues as Babel reads them, and what is compiled of them for the product."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, cast

from babel.messages.catalog import Catalog, Message
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po

LOCALE = Path(__file__).parents[2] / "shared" / "costguard" / "report" / "words" / "locale"
Id = tuple[str, str]
"""Group and id of a message."""


def source_of(language: str) -> Path:
    """The file that people write."""
    return LOCALE / language / "LC_MESSAGES" / "costguard.po"


def read(language: str) -> Catalog:
    """A catalogue as people wrote it.

    Raises:
        PoFileError: it cannot be read; the line is named.
    """
    with source_of(language).open("rb") as file:
        return read_po(file, locale=language, abort_invalid=True)


def messages(catalog: Catalog) -> Mapping[Id, Message]:
    """Its messages; the header is none."""
    return {(str(one.context), _id(one)): one for one in catalog if one.id}


def forms(message: Message) -> tuple[str, ...]:
    """Its text, or its texts by plural form."""
    return message.string if isinstance(message.string, tuple) else (str(message.string),)


@cache
def texts(language: str) -> Mapping[Id, tuple[str, ...]]:
    """What people read, as the catalogue has it."""
    return {key: forms(one) for key, one in messages(read(language)).items()}


def compiled(language: str) -> bytes:
    """What the product reads: the same bytes whenever it is made, by the same Babel."""
    return packed(read(language))


def packed(catalog: Catalog) -> bytes:
    """A catalogue compiled; its header says what gettext needs, and neither when nor by which Babel it was made."""
    file = io.BytesIO()
    write_mo(file, cast("Catalog", _Undated(catalog)))
    return file.getvalue()


def is_stale(language: str) -> bool:
    """Whether the compiled catalogue is not what its source makes."""
    kept = source_of(language).with_suffix(".mo")
    return not kept.is_file() or kept.read_bytes() != compiled(language)


class _Undated:
    """What `write_mo` reads of a catalogue."""

    charset = "utf-8"

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def __iter__(self) -> Iterator[Any]:
        said = {"Content-Type": "text/plain; charset=utf-8", "Plural-Forms": self._catalog.plural_forms}
        yield Message("", "".join(f"{name}: {value}\n" for name, value in said.items()))
        yield from (one for one in self._catalog if one.id)


def _id(message: Message) -> str:
    return message.id if isinstance(message.id, str) else message.id[0]
