"""Slack's Block Kit from a neutral message. Pure.

All text goes through `escape`; nothing else puts text into a block. Limits are Slack's, counted in UTF-16 units.

Source: formatting reference (`&`, `<`, `>` are the characters to escape).

Sources: Block Kit reference (section 3,000 and 10 fields; actions 25 elements; button text 75, action_id 255, value
2,000; confirm title 100, text 300, its buttons 30). action_id need only be unique within its block: the value says
which decision is meant.

Everything in a notice may come from outside: instance names, tag values, cloud errors. All of it goes
through `escape`; nothing else puts text into a block.

Sources: Block Kit reference (header 150, section text 3,000, field 2,000 and 10 a section, 50 blocks a message).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import islice
from typing import Any

from typing_extensions import assert_never

from costguard.adapters.notifiers.router import ELLIPSIS, is_chinese, remainder, visible
from costguard.domain.answers import AnswerKind, AnswerRef
from costguard.ports import Choice, Message, MessagePart

Block = dict[str, Any]

TEXT_MAX = 3000
FALLBACK_MAX = 4000  # beyond it chat.postMessage may split the text, and chat.update refuses it
_LOOKED_AT = 4  # times what may be shown: cleaning takes time, and a million letters may be a tag
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
# look-alikes for what Slack would read as bold, strike, code or, at the start of a line, a quotation; `_` only
# where a word begins or ends, so that team_nlp can still be copied, and `:` only where an emoji name could follow
_LOOK_ALIKES = {"*": "∗", "~": "∼", "`": "ˋ"}  # noqa: RUF001 - that they look alike is the point
_EDGE_UNDERSCORE = re.compile(r"(?<![^\W_])_|_(?![^\W_])")
_EMOJI_COLON = re.compile(r"(?<!\w):(?=[\w+'-]+:)")
_QUOTE = re.compile(r"^>", re.MULTILINE)


def escape(text: str, limit: int = TEXT_MAX, *, lines: bool = False) -> str:
    """`text` from outside as Slack shows it literally: no mention, link, emoji or formatting, at most `limit` long."""
    looked_at = text[: _LOOKED_AT * limit]
    return _cut(_literal(looked_at, lines=lines), limit, units, more=len(looked_at) < len(text))


def fallback(text: str) -> str:
    """The text of a message for where its blocks are not shown.

    Counted in bytes: chat.update was seen to refuse 4,121 bytes of 1,993 Chinese characters as msg_too_long.
    """
    looked_at = text[: _LOOKED_AT * FALLBACK_MAX]
    said = _cut(_literal(looked_at, lines=True), FALLBACK_MAX, _bytes, more=len(looked_at) < len(text))
    return said or "Costguard"  # the SDK warns without words


def _literal(text: str, *, lines: bool) -> str:
    plain = visible(text, lines=lines)
    plain = _EMOJI_COLON.sub("∶", plain)  # noqa: RUF001
    plain = _QUOTE.sub("›", plain)  # noqa: RUF001
    plain = _EDGE_UNDERSCORE.sub("ˍ", plain)
    return "".join(_LOOK_ALIKES.get(char, char) for char in plain)


def _cut(text: str, limit: int, size: Callable[[str], int], *, more: bool) -> str:
    """`text` with its entities, cut between characters so that it stays within `limit`; `more` was cut off before."""
    pieces = [_ENTITIES.get(char, char) for char in islice(text, limit + 1)]
    whole = "".join(pieces)
    if not more and len(text) <= limit and size(whole) <= limit:
        return whole
    room = limit - size(ELLIPSIS)
    kept: list[str] = []
    for piece in pieces:
        room -= size(piece)
        if room < 0:
            break
        kept.append(piece)
    return "".join(kept) + ELLIPSIS


def mrkdwn(text: str) -> Block:
    """A text object of escaped words and our own marks."""
    # verbatim: Slack makes no links or mentions of its own from plain words
    return {"type": "mrkdwn", "text": text, "verbatim": True}


def plain_text(text: str) -> Block:
    """A text object of escaped words."""
    return {"type": "plain_text", "text": text}


def fits(text: str, limit: int) -> bool:
    """Whether Slack takes `text` where it allows `limit` characters."""
    return units(text) <= limit


def units(text: str) -> int:
    """Its length in UTF-16 units, as Slack counts."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def _bytes(text: str) -> int:
    return len(text.encode())  # of cleaned words, without lone surrogates


FIELDS_PER_SECTION = 10
FIELD_COST = 50  # the JSON around the words of a field
_PART_MOST = 7500  # of weight: beside the largest head, one part always has its place
_CHOICES_MOST = 7
_BUTTON_MAX, _CONFIRM_TITLE_MAX, _CONFIRM_BUTTON_MAX = 75, 40, 30
_PICTURE_MAX = 200
_LABEL_MAX = 200
_HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class _Limits:
    """How long the words of a part may be; `fields` and `lines` all of them together."""

    title: int
    fields: int
    lines: int
    asks: int
    status: int


_USUAL = _Limits(title=300, fields=3000, lines=1200, asks=300, status=900)
_TIGHT = _Limits(title=200, fields=1200, lines=400, asks=120, status=600)


def part_blocks(part: MessagePart, number: int, *, titled: bool = True) -> tuple[Block, ...]:
    """The blocks of the part with this number; their ids stay the same when the message is edited.

    Long words end in an ellipsis, and what does not fit is counted. `titled` False leaves out its title, which stands
    above it already.
    """
    usual = tuple(_laid_out(part, f"part-{number}", _USUAL, titled=titled))
    if weight(usual) <= _PART_MOST:
        return usual
    return tuple(_laid_out(part, f"part-{number}", _TIGHT, titled=titled))


def weight(value: object) -> int:
    """How much of Slack's room for one message this takes: the length of its JSON, in UTF-16 units.

    Slack counts more than words (11,341 characters in many blocks were refused, 13,297 in one were not, a header costs
    some 100 beyond its own), and says nowhere what; its JSON is at least that.
    """
    if isinstance(value, str):
        return units(value) + 2
    if isinstance(value, dict):
        return 1 + sum(weight(name) + weight(inner) + 2 for name, inner in value.items())
    if isinstance(value, (list, tuple)):
        return 1 + sum(weight(inner) + 1 for inner in value)
    return len(str(value))


def field_texts(fields: Sequence[tuple[str, str]], room: int, least: int, longest: int) -> list[Block]:
    """As many of the fields as have a place of at least `least` in `room`; words longer than their share are cut."""
    shown = fields[: room // (least + FIELD_COST)]
    limit = min(longest, room // max(1, len(shown)) - FIELD_COST)
    return [mrkdwn(_field(label, value, limit)) for label, value in shown]


def _field(label: str, value: str, limit: int) -> str:
    name = f"*{escape(label, min(_LABEL_MAX, limit // 2)) or ELLIPSIS}*\n"
    return name + (escape(value, limit - len(name)) or "–")


def fitting(words: Sequence[str], room: int) -> list[str]:
    """The first of `words` that, one a line, stay within `room`."""
    kept: list[str] = []
    for word in words:
        room -= units(word) + 1
        if room < 0:
            break
        kept.append(word)
    return kept


def _laid_out(part: MessagePart, name: str, limits: _Limits, *, titled: bool) -> Iterator[Block]:
    lines = [escape(line, limits.lines // 2) for line in part.lines if visible(line)]
    told = fitting(lines, limits.lines)
    fields = field_texts(part.fields[:FIELDS_PER_SECTION], limits.fields, limits.fields // 20, limits.fields // 3)
    beside = told or fields or visible(part.picture) or part.status or part.choices
    title = [f"*{escape(part.title, limits.title) or ELLIPSIS}*"] if titled or not beside else []
    section: Block = {"type": "section", "block_id": name}
    if title or told:
        section["text"] = mrkdwn("\n".join((*title, *told)))
    if title or told or fields:  # Slack takes no section without words
        yield section | ({"fields": fields} if fields else {})
    picture = escape(part.picture, _PICTURE_MAX)
    if picture:
        yield {"type": "context", "block_id": f"{name}-picture", "elements": [plain_text(picture)]}
    status = (escape(part.status, limits.status) or ELLIPSIS) if part.status else ""
    offered = [] if part.status else [choice for choice in part.choices if _can_be_answered(choice)][:_CHOICES_MOST]
    if status:
        yield {"type": "section", "block_id": f"{name}-status", "text": mrkdwn(status)}
    for row, choices in enumerate(_rows(offered)):
        block_id = f"{name}-answers" + (f"-{row}" if row else "")
        first_keep = next((choice for choice in offered if choice.kind is AnswerKind.KEEP), None)
        buttons = [_button(choice, limits.asks, primary=choice is first_keep) for choice in choices]
        yield {"type": "actions", "block_id": block_id, "elements": buttons}
    unoffered = 0 if part.status else len(part.choices) - len(offered)
    left_out = len(part.fields) - len(fields) + len(lines) - len(told) + unoffered
    if left_out:
        chinese = any(is_chinese(label) for label, _ in part.fields)
        note = mrkdwn(remainder(left_out, chinese=chinese))
        yield {"type": "context", "block_id": f"{name}-rest", "elements": [note]}


def _can_be_answered(choice: Choice) -> bool:
    """Whether what its button carries would be understood when it comes back; cut, it would mean something else."""
    return AnswerRef.parse(str(choice.of)) == choice.of


def _rows(choices: Sequence[Choice]) -> list[list[Choice]]:
    """In one block, no two buttons may have the same id: another row for each repetition."""
    rows: list[list[Choice]] = []
    for choice in choices:
        name = action_id(choice)
        free = (row for row in rows if all(action_id(other) != name for other in row))
        row = next(free, None)
        if row is None:
            row = []
            rows.append(row)
        row.append(choice)
    return rows


def action_id(choice: Choice) -> str:
    """What Slack calls the button: `costguard:keep:24h`; `costguard:keep` asks how long; else `costguard:KIND`."""
    kept = "" if choice.length is None else f":{max(1, -(-choice.length // _HOUR))}h"  # a part of an hour is kept whole
    return f"costguard:{choice.kind.value}{kept}"


def _button(choice: Choice, asks_max: int, *, primary: bool) -> Block:
    label = escape(choice.label, _BUTTON_MAX) or ELLIPSIS
    button: Block = {
        "type": "button",
        "text": plain_text(label),
        "action_id": action_id(choice),
        "value": str(choice.of),
    }
    style = _style(choice.kind, primary=primary)
    if style:
        button["style"] = style
    asks = escape(choice.asks, asks_max)
    if asks:
        button["confirm"] = {
            "title": plain_text(escape(choice.label, _CONFIRM_TITLE_MAX) or ELLIPSIS),
            "text": plain_text(asks),
            "confirm": plain_text(escape(choice.label, _CONFIRM_BUTTON_MAX) or ELLIPSIS),
            "deny": plain_text("取消" if is_chinese(choice.label) else "Cancel"),
            **({"style": style} if style else {}),
        }
    return button


def _style(kind: AnswerKind, *, primary: bool) -> str:
    """At most one button of a set is to be green."""
    match kind:
        case AnswerKind.KEEP:
            return "primary" if primary else ""
        case AnswerKind.STOP_NOW:
            return "danger"
        case AnswerKind.APPROVE | AnswerKind.NOT_MINE | AnswerKind.START | AnswerKind.EXCEPT:
            return ""
        case _:
            assert_never(kind)


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
