"""Slack's Block Kit from plain words. Pure.

Everything in a notice may come from outside: instance names, tag values, cloud errors. All of it goes
through `escape`; nothing else puts text into a block. Limits are Slack's, counted in UTF-16 units.

Sources: Block Kit reference (header 150, section text 3,000, field 2,000 and 10 a section, 50
blocks a message); formatting reference (`&`, `<`, `>` are the characters to escape).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from itertools import islice
from typing import Any

Block = dict[str, Any]

HEADER_MAX = 150
TEXT_MAX = 3000
FIELD_MAX = 2000
FIELDS_PER_SECTION = 10
FALLBACK_MAX = 4000  # beyond it Slack may split the text
# Slack refuses some 13,200 characters of blocks as msg_blocks_too_long, a limit its reference does not name:
# title 150 + 600, fields 8,000, lines 3,000 stay below
_TITLE_MAX = 600
_FIELDS_ROOM = 8000
_FIELD_LEAST = 80  # so at most 100 fields, in ten sections
_LABEL_MAX = 200
_LINE_MAX = 600
_ELLIPSIS = "…"
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
# look-alikes for what Slack would read as bold, strike, code or, at the start of a line, a quotation; `_` only
# where a word begins or ends, so that team_nlp can still be copied, and `:` only where an emoji name could follow
_LOOK_ALIKES = {"*": "∗", "~": "∼", "`": "ˋ"}  # noqa: RUF001 - that they look alike is the point
_EDGE_UNDERSCORE = re.compile(r"(?<![^\W_])_|_(?![^\W_])")
_EMOJI_COLON = re.compile(r"(?<!\w):(?=[\w+'-]+:)")
_QUOTE = re.compile(r"^>", re.MULTILINE)
# control, bidi and other formatting, lone surrogates, unassigned, line separators
_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def visible(text: str, *, lines: bool = False) -> str:
    """`text` without characters that hide, reorder or command; each becomes a space, runs of them one.

    With `lines`, line feeds stay.
    """
    cleaned = "".join(
        char if (lines and char == "\n") or unicodedata.category(char) not in _INVISIBLE else "\0" for char in text
    )
    return re.sub(r"\0+", " ", cleaned).strip()


def escape(text: str, limit: int = TEXT_MAX, *, lines: bool = False) -> str:
    """`text` from outside as Slack shows it literally: no mention, link, emoji or formatting, at most `limit` long."""
    plain = visible(text, lines=lines)
    plain = _EMOJI_COLON.sub("∶", plain)  # noqa: RUF001
    plain = _QUOTE.sub("›", plain)  # noqa: RUF001
    plain = _EDGE_UNDERSCORE.sub("ˍ", plain)
    return _cut("".join(_LOOK_ALIKES.get(char, char) for char in plain), limit)


def build_blocks(title: str, fields: Sequence[tuple[str, str]] = (), lines: Sequence[str] = ()) -> tuple[Block, ...]:
    """A message: `title`, labelled `fields`, then `lines`. All of it is plain words.

    Long words are cut so that every field has its place; what still does not fit is counted at the end.
    """
    heading = escape(title, HEADER_MAX) or "Costguard"
    blocks: list[Block] = [{"type": "header", "text": {"type": "plain_text", "text": heading}}]
    if heading.endswith(_ELLIPSIS):  # a long name must not push out what will happen, and when
        blocks.append({"type": "section", "text": _mrkdwn(escape(title, _TITLE_MAX))})
    shown = fields[: _FIELDS_ROOM // _FIELD_LEAST]
    limit = min(FIELD_MAX, _FIELDS_ROOM // max(1, len(shown)))
    texts = [_mrkdwn(_field(label, value, limit)) for label, value in shown]
    blocks.extend(
        {"type": "section", "fields": texts[first : first + FIELDS_PER_SECTION]}
        for first in range(0, len(texts), FIELDS_PER_SECTION)
    )
    words = [escape(line, _LINE_MAX) for line in lines if visible(line)]
    kept = _fitting(words, TEXT_MAX)
    if kept:
        blocks.append({"type": "section", "text": _mrkdwn("\n".join(kept))})
    left_out = len(fields) - len(shown) + len(words) - len(kept)
    if left_out:
        note = _mrkdwn(f"{_ELLIPSIS} and {left_out} more, not shown here")
        blocks.append({"type": "context", "elements": [note]})
    return tuple(blocks)


def _field(label: str, value: str, limit: int) -> str:
    name = f"*{escape(label, min(_LABEL_MAX, limit // 2)) or _ELLIPSIS}*\n"
    return name + (escape(value, limit - len(name)) or "–")


def _fitting(words: Sequence[str], room: int) -> list[str]:
    """The first of `words` that, one a line, stay within `room`."""
    kept: list[str] = []
    for word in words:
        room -= _units(word) + 1
        if room < 0:
            break
        kept.append(word)
    return kept


def _mrkdwn(text: str) -> Block:
    # verbatim: Slack makes no links or mentions of its own from plain words
    return {"type": "mrkdwn", "text": text, "verbatim": True}


def fits(text: str, limit: int) -> bool:
    """Whether Slack takes `text` where it allows `limit` characters."""
    return _units(text) <= limit


def _cut(text: str, limit: int) -> str:
    """`text` with its entities, cut between characters so that it stays within `limit` UTF-16 units."""
    pieces = [_ENTITIES.get(char, char) for char in islice(text, limit + 1)]
    if len(text) <= limit and sum(map(_units, pieces)) <= limit:
        return "".join(pieces)
    room = limit - len(_ELLIPSIS)
    kept: list[str] = []
    for piece in pieces:
        room -= _units(piece)
        if room < 0:
            break
        kept.append(piece)
    return "".join(kept) + _ELLIPSIS


def _units(text: str) -> int:
    return sum(2 if ord(char) > 0xFFFF else 1 for char in text)  # noqa: PLR2004 - beyond the first plane
