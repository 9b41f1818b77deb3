"""Words from outside as Slack shows them literally. Pure.

All text goes through `escape`; nothing else puts text into a block. Limits are Slack's, counted in UTF-16 units.

Source: formatting reference (`&`, `<`, `>` are the characters to escape).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import islice
from typing import Any

from costguard.adapters.notifiers.common import ELLIPSIS, visible

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
