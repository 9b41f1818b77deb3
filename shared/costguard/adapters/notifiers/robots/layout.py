"""A message as pieces that fit into what a robot may post: the same for all vendors, in markup of their own. Pure.

Robots take little: what does not fit is counted and said, never dropped in silence. What a machine is, what happens to
it and how to keep it come before everything else.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING

from costguard.adapters.notifiers.router import visible
from costguard.domain.answers import AnswerKind
from costguard.ports import Choice, Message, MessagePart

if TYPE_CHECKING:
    from costguard.adapters.notifiers.plain import Link

_MOST, _MOST_OF_PART = 100, 30  # fields, lines and parts; more than any robot can show
_LONGEST_TEXT = 40_000
_LOOKED_AT = 2  # times what is kept: cleaning takes time, and a million letters may be a tag
_ELLIPSIS = "…"
_REST = {"en": "… and {count} more, not shown here", "zh": "……另有 {count} 项未在此显示"}
_COMMANDS = {
    AnswerKind.KEEP: "costguard snooze {case} --for {hours}h",
    AnswerKind.APPROVE: "costguard approve {case}",
    AnswerKind.START: "costguard start {case}",
}


class Rank(int, Enum):
    """What goes in first where not everything fits."""

    HEAD = 0
    STATUS = 1
    LINK = 2
    FIELD = 3
    COMMAND = 4
    LINE = 5
    PICTURE = 6


@dataclass(frozen=True, slots=True)
class LayoutPiece:
    """One thing to show. `part` counts from 1; 0 is before all parts, and closing lines have one after the last."""

    rank: Rank
    part: int
    text: str
    label: str = ""
    url: str = ""


@dataclass(frozen=True, slots=True)
class Sheet:
    """What a vendor's message can hold, in bytes of `size`.

    `words` is its one way from words of outside to words that are shown as they are, cut to so many bytes of UTF-8.
    """

    words: Callable[[str, int], str]
    size: Callable[[LayoutPiece], int]
    room: int
    title: int
    value: int
    line: int


@dataclass(frozen=True, slots=True)
class Laid:
    """What is shown, in order, all of it in the vendor's words already. `rest` says what is not; empty: nothing."""

    title: str
    pieces: tuple[LayoutPiece, ...]
    rest: str = ""


def laid_out(message: Message, address: str, sheet: Sheet, link: Link | None, language: str) -> Laid:
    """`message` for the robot with this address, as much of it as fits."""
    found = list(_bounded(message, address, sheet, link))
    sizes = [sheet.size(piece) for piece in found]
    chosen = _fitting(found, sizes, sheet.room)
    left_out = len(found) - len(chosen) + _unread(message)
    title = sheet.words(message.title, sheet.title) or "Costguard"
    rest = _REST.get(language, _REST["en"]).format(count=left_out) if left_out else ""
    return Laid(title, tuple(found[index] for index in sorted(chosen)), rest)


def room_for(message: Message, address: str, sheet: Sheet, link: Link | None) -> int:
    """How many of the first parts fit whole beside everything else; at least one."""
    outside = replace(message, parts=())
    room = sheet.room - sum(map(sheet.size, _bounded(outside, address, sheet, link)))
    fits = 0
    for number, part in enumerate(message.parts[:_MOST], start=1):
        room -= sum(map(sheet.size, _of_part(part, number, address, sheet, link)))
        if room < 0:
            break
        fits = number
    return max(1, fits)


def _fitting(pieces: Sequence[LayoutPiece], sizes: Sequence[int], room: int) -> set[int]:
    """The indexes of what is shown: by rank, and of one rank the first; nothing of a part whose head is not."""
    chosen: set[int] = set()
    headless: set[int] = set()
    for index in sorted(range(len(pieces)), key=lambda index: (pieces[index].rank, index)):
        piece = pieces[index]
        if piece.part in headless:
            continue
        if sizes[index] <= room:
            room -= sizes[index]
            chosen.add(index)
        elif piece.rank is Rank.HEAD:
            headless.add(piece.part)
    return chosen


def _bounded(message: Message, address: str, sheet: Sheet, link: Link | None) -> Iterator[LayoutPiece]:
    yield from _fields(message.fields[:_MOST], 0, sheet)
    for number, part in enumerate(message.parts[:_MOST], start=1):
        yield from _of_part(part, number, address, sheet, link)
    yield from _lines(message.lines[:_MOST], len(message.parts) + 1, sheet)
    if not (message.fields or message.parts or message.lines):  # then the plain words are all there is
        said = message.text[:_LONGEST_TEXT].splitlines()
        said = said[1:] if said and said[0] == message.title else said
        yield from _lines(said[:_MOST], 1, sheet)


def _of_part(part: MessagePart, number: int, address: str, sheet: Sheet, link: Link | None) -> Iterator[LayoutPiece]:
    title = sheet.words(part.title, sheet.title)
    if title:  # the only part of a message needs none
        yield LayoutPiece(Rank.HEAD, number, title)
    if visible(part.status[: sheet.line]):
        yield LayoutPiece(Rank.STATUS, number, sheet.words(part.status, sheet.line))
    if visible(part.picture[: sheet.line]):
        yield LayoutPiece(Rank.PICTURE, number, sheet.words(part.picture, sheet.line))
    yield from _fields(part.fields[:_MOST_OF_PART], number, sheet)
    yield from _lines(part.lines[:_MOST_OF_PART], number, sheet)
    for choice in () if part.status else part.choices:
        yield from _offered(choice, number, address, sheet, link)


def _offered(choice: Choice, number: int, address: str, sheet: Sheet, link: Link | None) -> Iterator[LayoutPiece]:
    """A link for what one can be made for, else the command that says the same."""
    label = sheet.words(choice.label, sheet.value)
    url = link(choice, address) if link is not None else ""
    if url:
        yield LayoutPiece(Rank.LINK, number, label, url=url)
    elif choice.kind in _COMMANDS and (choice.kind is not AnswerKind.KEEP or choice.length is not None):
        hours = int(choice.length.total_seconds() // 3600) if choice.length is not None else 0
        command = _COMMANDS[choice.kind].format(case=choice.of.case_id, hours=hours)
        yield LayoutPiece(Rank.COMMAND, number, sheet.words(command, sheet.line), label=label)


def _fields(fields: Sequence[tuple[str, str]], part: int, sheet: Sheet) -> Iterator[LayoutPiece]:
    for label, value in fields:
        name = sheet.words(label, sheet.value) or _ELLIPSIS
        yield LayoutPiece(Rank.FIELD, part, sheet.words(value, sheet.value) or "–", label=name)


def _lines(lines: Sequence[str], part: int, sheet: Sheet) -> Iterator[LayoutPiece]:
    for line in lines:
        text = sheet.words(line, sheet.line)
        if text:
            yield LayoutPiece(Rank.LINE, part, text)


def _unread(message: Message) -> int:
    """What is beyond the most that is even looked at."""
    lists: list[Sequence[object]] = [message.fields, message.lines, message.parts]
    of_parts = [some for part in message.parts[:_MOST] for some in (part.fields, part.lines)]
    beyond = sum(max(0, len(some) - _MOST) for some in lists)
    return beyond + sum(max(0, len(some) - _MOST_OF_PART) for some in of_parts)


# what markdown dialects read as bold, struck, code, a link or emoji in brackets, a tag, and what they escape with; none
# of them documents a way to escape, so look-alikes stand in
_LOOK_ALIKES = str.maketrans(
    {"*": "∗", "~": "∼", "`": "ˋ", "[": "［", "]": "］", "<": "‹", ">": "›", "\\": "＼", "|": "｜"}  # noqa: RUF001
)
_EDGE_UNDERSCORE = re.compile(r"(?<![^\W_])_|_(?![^\W_])")
_MENTION = re.compile(r"(?<!\w)@")  # that of a mail address stays
_ENTITY = re.compile(r"&(?=#|[A-Za-z]+;)")
_HEADING = re.compile(r"^#")
_WEB = re.compile(r":(?=//)")  # an address in a tag is no link of ours


def markdown_words(text: str, limit: int) -> str:
    """`text` from outside as a markdown robot shows it literally: no mention, link, emoji or formatting."""
    return cut(text, limit, _inert)


def _inert(text: str) -> str:
    plain = _EDGE_UNDERSCORE.sub("ˍ", text)
    for pattern, stand_in in ((_MENTION, "＠"), (_ENTITY, "＆"), (_HEADING, "＃"), (_WEB, "∶")):  # noqa: RUF001
        plain = pattern.sub(stand_in, plain)
    return plain.translate(_LOOK_ALIKES)


def cut(text: str, limit: int, change: Callable[[str], str]) -> str:
    """`text` from outside without characters that hide, reorder or command, changed, and at most `limit` bytes long."""
    whole = change(visible(text[: _LOOKED_AT * limit]))
    encoded = whole.encode()
    if len(encoded) <= limit and len(text) <= _LOOKED_AT * limit:
        return whole
    kept = encoded[: max(0, limit - len(_ELLIPSIS.encode()))].decode("utf-8", "ignore")
    return kept + _ELLIPSIS
