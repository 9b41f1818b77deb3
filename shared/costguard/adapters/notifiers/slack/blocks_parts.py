"""One part of a message as Slack's blocks: what, where, a picture, and buttons or what became of it. Pure.

Sources: Block Kit reference (section 3,000 and 10 fields; actions 25 elements; button text 75, action_id 255, value
2,000; confirm title 100, text 300, its buttons 30). action_id need only be unique within its block: the value says
which decision is meant.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta

from typing_extensions import assert_never

from costguard.adapters.notifiers.common import ELLIPSIS, is_chinese, remainder, visible
from costguard.adapters.notifiers.slack.blocks_text import Block, escape, mrkdwn, plain_text, units
from costguard.domain.answers import AnswerKind, AnswerRef
from costguard.ports import Choice, MessagePart

FIELDS_PER_SECTION = 10
FIELD_COST = 50  # the JSON around the words of a field
_PART_MOST = 7500  # of weight: beside the largest head, one part always has its place
_CHOICES_MOST = 6
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
        case AnswerKind.APPROVE | AnswerKind.NOT_MINE:
            return ""
        case _:
            assert_never(kind)
