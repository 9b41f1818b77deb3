"""Robots of DingTalk groups: one markdown message, links within it.

Source: DingTalk Open Platform, "Custom robots": 20 messages a minute, and who sends more is stopped for ten; a request
of at most 20,000 bytes; `timestamp` in milliseconds, `sign` the url-encoded base64 of HMAC-SHA256 with the secret over
the timestamp, a line feed and the secret; success is `errcode` 0. Nobody is mentioned unless `at` says so.
"""

from __future__ import annotations

import base64
import hmac
import json
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any
from urllib.parse import quote

from costguard.adapters.notifiers.robots.layout import Laid, LayoutPiece, Rank, Sheet, markdown_words
from costguard.adapters.notifiers.robots.notifier import Codes
from costguard.domain.errors import NoticeError

MOST_BYTES = 20_000  # of the whole request
_ENVELOPE = 2000  # the title twice, the sentence about the rest
_BETWEEN = "\n\n"  # a single line feed is none here
_STOPPED = timedelta(minutes=10)
_HOOK = "copy the webhook address from the robot's page into COSTGUARD_ROBOTS again"
_CONTENT = "it objects to the words of this message; see it in `costguard outbox`"
_FORM = "it refuses the form of this message; please report it with the finding it was about"
_CODES = Codes(
    "DingTalk",
    {130101: _STOPPED, 410100: _STOPPED, 660026: _STOPPED},
    {
        40035: _FORM,
        43004: _FORM,
        101002: _FORM,
        300001: _HOOK,
        300005: _HOOK,
        310000: "compare the robot's security settings: let it check the signature alone, without keywords and IP "
        "addresses, copy its secret into COSTGUARD_ROBOTS again, and check this machine's clock",
        400013: "the group was dissolved; name another robot in the policy",
        400101: _HOOK,
        400102: "enable the robot in its group again",
        400105: _FORM,
        400106: "add the robot to its group again",
        430101: _CONTENT,
        430102: _CONTENT,
        430103: _CONTENT,
        430104: _CONTENT,
        460101: _FORM,
    },
)


def signature(secret: str, timestamp: int) -> str:
    """What `sign` is at this millisecond, before it is encoded for an address."""
    signed = hmac.new(secret.encode(), f"{timestamp}\n{secret}".encode(), sha256).digest()
    return base64.b64encode(signed).decode()


def rendered(piece: LayoutPiece) -> str:
    """One piece as markdown, which begins and ends a paragraph."""
    if piece.rank is Rank.HEAD:
        return f"---{_BETWEEN}#### {piece.text}"
    if piece.rank is Rank.STATUS:
        return f"> {piece.text}"
    if piece.rank is Rank.LINK:
        return f"[{piece.text}]({piece.url})"
    return f"**{piece.label}**: {piece.text}" if piece.label else piece.text


class DingTalk:
    """A `Vendor`: custom robots of DingTalk groups."""

    name = "DingTalk"
    sheet = Sheet(
        markdown_words,
        lambda piece: len(json.dumps(rendered(piece) + _BETWEEN, ensure_ascii=False).encode()),
        room=MOST_BYTES - _ENVELOPE,
        title=300,
        value=500,
        line=700,
    )

    def document(self, laid: Laid) -> dict[str, Any]:
        """A markdown message; `title` is what shows in the list of chats."""
        paragraphs = [f"### {laid.title}", *map(rendered, laid.pieces), *([laid.rest] if laid.rest else [])]
        markdown = {"title": laid.title, "text": _BETWEEN.join(paragraphs)}
        return {"msgtype": "markdown", "markdown": markdown, "at": {"isAtAll": False}}

    def signed(self, target: str, document: dict[str, Any], secret: str, now: datetime) -> tuple[str, dict[str, Any]]:
        """Time and signature stand in the address."""
        if not secret:
            return target, document
        milliseconds = int(now.timestamp() * 1000)
        sign = quote(signature(secret, milliseconds), safe="")
        return f"{target}&timestamp={milliseconds}&sign={sign}", document

    def refusal(self, answer: Mapping[str, Any], robot: str, said: Callable[[str], str]) -> NoticeError | None:
        """By `errcode` alone."""
        message = answer.get("errmsg")
        return _CODES.refusal(answer.get("errcode"), said(message) if isinstance(message, str) else "", robot)
