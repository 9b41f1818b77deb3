"""Slack's Block Kit from a neutral message. Pure.

Everything in a notice may come from outside: instance names, tag values, cloud errors. All of it goes
through `escape`; nothing else puts text into a block.

Sources: Block Kit reference (header 150, section text 3,000, field 2,000 and 10 a section, 50 blocks a message).
"""

from __future__ import annotations

from collections.abc import Sequence

from costguard.adapters.notifiers.common import ELLIPSIS, is_chinese, remainder, visible
from costguard.adapters.notifiers.slack.blocks_parts import (
    FIELDS_PER_SECTION,
    field_texts,
    fitting,
    part_blocks,
    weight,
)
from costguard.adapters.notifiers.slack.blocks_text import TEXT_MAX, Block, escape, fallback, fits, mrkdwn, plain_text
from costguard.ports import Message

__all__ = [
    "Block",
    "build_blocks",
    "escape",
    "fallback",
    "fits",
    "message_blocks",
    "parts_that_fit",
    "remainder",
    "visible",
]

BLOCKS_MOST = 50
# Slack refuses some 13,200 characters as msg_blocks_too_long, a limit its reference does not name, and adds a few of
# its own to what it is sent (`emoji`); `weight` says what is counted
MESSAGE_MOST = 12_000
_EDITED_MOST = 13_000  # what became of a part may be longer than its buttons were: no part may vanish for it
_HEADER_MAX = 150
_FIELD_MAX = 2000
_FIELD_LEAST = 80
_TITLE_MAX = 600
_LINE_MAX = 600
_FIELDS_ROOM, _LINES_ROOM = 7400, TEXT_MAX
_FIELDS_ROOM_BESIDE_PARTS, _LINES_ROOM_BESIDE_PARTS = 1200, 900
_NOTE_ROOM = 150  # of the last line, that says what is not shown


def message_blocks(message: Message) -> tuple[Block, ...]:
    """The message: its title, fields, as many of its parts as fit, lines, and how much is not shown."""
    if not message.parts:
        return build_blocks(message.title, message.fields, message.lines)
    head, foot, left_out = _frame(message)
    shown = _fitting_parts(message, head, foot, _EDITED_MOST)
    left_out += len(message.parts) - len(shown)
    parts = (block for part in shown for block in part)
    return (*head, *parts, *foot, *_note(left_out, chinese=_is_chinese(message)))


def parts_that_fit(message: Message) -> int:
    """How many of the first parts one message of Slack's can hold beside the rest of it; at least 1."""
    head, foot, _ = _frame(message)
    return max(1, len(_fitting_parts(message, head, foot, MESSAGE_MOST)))


def _fitting_parts(
    message: Message, head: Sequence[Block], foot: Sequence[Block], most: int
) -> list[tuple[Block, ...]]:
    """The first parts, as many as there is room for; one always is."""
    blocks = len(head) + len(foot) + 1
    weighs = weight(head) + weight(foot) + _NOTE_ROOM
    shown: list[tuple[Block, ...]] = []
    for number in range(len(message.parts)):
        part = _part(message, number)
        blocks += len(part)
        weighs += weight(part)
        if shown and (blocks > BLOCKS_MOST or weighs > most):
            break
        shown.append(part)
    return shown


def _part(message: Message, number: int) -> tuple[Block, ...]:
    part = message.parts[number]
    alone_untitled = len(message.parts) == 1 and (part.title == message.title or not visible(part.title))
    return part_blocks(part, number, titled=not alone_untitled)


def build_blocks(title: str, fields: Sequence[tuple[str, str]] = (), lines: Sequence[str] = ()) -> tuple[Block, ...]:
    """A message without parts: `title`, labelled `fields`, then `lines`. All of it is plain words.

    Long words are cut so that every field has its place; what still does not fit is counted at the end.
    """
    head, fields_out = _head(title, fields, _FIELDS_ROOM)
    foot, lines_out = _foot(lines, _LINES_ROOM)
    chinese = any(is_chinese(label) for label, _ in fields)
    return (*head, *foot, *_note(fields_out + lines_out, chinese=chinese))


def _frame(message: Message) -> tuple[list[Block], list[Block], int]:
    """What stands before and after the parts, and how many fields and lines do not."""
    head, fields_out = _head(message.title, message.fields, _FIELDS_ROOM_BESIDE_PARTS)
    foot, lines_out = _foot(message.lines, _LINES_ROOM_BESIDE_PARTS)
    return head, foot, fields_out + lines_out


def _head(title: str, fields: Sequence[tuple[str, str]], room: int) -> tuple[list[Block], int]:
    heading = escape(title, _HEADER_MAX) or "Costguard"
    blocks: list[Block] = [{"type": "header", "text": plain_text(heading)}]
    if heading.endswith(ELLIPSIS):  # a long name must not push out what will happen, and when
        blocks.append({"type": "section", "text": mrkdwn(escape(title, _TITLE_MAX))})
    texts = field_texts(fields, room, _FIELD_LEAST, _FIELD_MAX)
    blocks.extend(
        {"type": "section", "fields": texts[first : first + FIELDS_PER_SECTION]}
        for first in range(0, len(texts), FIELDS_PER_SECTION)
    )
    return blocks, len(fields) - len(texts)


def _foot(lines: Sequence[str], room: int) -> tuple[list[Block], int]:
    words = [escape(line, _LINE_MAX) for line in lines if visible(line)]
    kept = fitting(words, room)
    blocks: list[Block] = [{"type": "section", "text": mrkdwn("\n".join(kept))}] if kept else []
    return blocks, len(words) - len(kept)


def _note(left_out: int, *, chinese: bool) -> list[Block]:
    if not left_out:
        return []
    return [{"type": "context", "elements": [mrkdwn(remainder(left_out, chinese=chinese))]}]


def _is_chinese(message: Message) -> bool:
    parts = (part.fields for part in message.parts)
    return any(is_chinese(label) for fields in (message.fields, *parts) for label, _ in fields)
