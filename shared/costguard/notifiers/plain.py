"""A notice cut to a size that every mailbox and receiver takes. Pure.

Words from outside have no bound: a tag may be long, a plan may have thousands of machines. What does not fit is
counted, never dropped in silence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from costguard.notifiers.blocks import visible
from costguard.ports import Message

TITLE_MAX = 100  # what DirectMail once allowed as a subject; longer ones are cut by mail programs anyway
_LABEL_MAX = 200
_FIELD_MAX = 2000
_LINE_MAX = 1000
_ROOM = 60_000  # bytes of HTML: of fields and lines, and of the text; DirectMail takes 80 KB of each
_MARKUP = 100  # bytes around a row of a table
_MOST = _ROOM // _MARKUP  # fields or lines that could fit, were they empty
_LOOKED_AT = 4  # times what is kept: cleaning takes time, and a million letters may be a tag
_ELLIPSIS = "…"


@dataclass(frozen=True, slots=True)
class PlainNotice:
    """A notice without characters that hide, reorder or command, and of bounded length.

    `left_out` counts the fields and lines that did not fit.
    """

    title: str
    text: str
    fields: tuple[tuple[str, str], ...]
    lines: tuple[str, ...]
    left_out: int = 0


def plain(message: Message) -> PlainNotice:
    """The words of `message`, fit to be shown anywhere as they are."""
    fields = [(_cut(name, _LABEL_MAX), _cut(value, _FIELD_MAX)) for name, value in message.fields[:_MOST]]
    lines = [line for line in (_cut(line, _LINE_MAX) for line in message.lines[:_MOST]) if line]
    unread = max(0, len(message.fields) - _MOST) + max(0, len(message.lines) - _MOST)
    sizes = [_MARKUP + _size(name) + _size(value) for name, value in fields]
    shown = _fitting(sizes, _ROOM)
    told = _fitting([_MARKUP + _size(line) for line in lines], _ROOM - sum(sizes[:shown]))
    return PlainNotice(
        title=_cut(message.title, TITLE_MAX) or "Costguard",
        text=_cut_to_room(message.text),
        fields=tuple(fields[:shown]),
        lines=tuple(lines[:told]),
        left_out=unread + len(fields) - shown + len(lines) - told,
    )


def _fitting(sizes: Sequence[int], room: int) -> int:
    """How many of the first fit into `room` bytes."""
    for count, size in enumerate(sizes):
        room -= size
        if room < 0:
            return count
    return len(sizes)


def _size(text: str) -> int:
    """Its bytes as HTML."""
    return len(escape(text).encode())


def _cut(words: str, limit: int) -> str:
    text = visible(words[: _LOOKED_AT * limit])
    return text if len(text) <= limit else text[: limit - len(_ELLIPSIS)] + _ELLIPSIS


def _cut_to_room(words: str) -> str:
    text = visible(words[: _LOOKED_AT * _ROOM], lines=True)
    kept = _fitting([_size(char) for char in text[:_ROOM]], _ROOM)
    whole = kept == len(text) and len(words) <= _LOOKED_AT * _ROOM
    return text if whole else f"{text[:kept]}\n{_ELLIPSIS} cut here"
