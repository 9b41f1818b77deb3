"""Robots of WeCom groups: one markdown message of at most 4,096 bytes, links within it.

Source: WeCom developer centre, "Message push configuration" (formerly "group robot"): 20 messages a minute for each
robot; the key in the address is all there is, there is no signature; success is `errcode` 0. `markdown` is used and not
`markdown_v2`, which older clients show as plain text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

from costguard.adapters.notifiers.robots.layout import Laid, LayoutPiece, Rank, Sheet, markdown_words
from costguard.adapters.notifiers.robots.notifier import Codes
from costguard.domain.errors import NoticeError

MOST_BYTES = 4096  # of markdown, in UTF-8
_TITLE = 240
_ENVELOPE = _TITLE + 110  # the title's marks, the sentence about the rest
_FORM = "it refuses the form of this message; please report it with the finding it was about"
_CODES = Codes(
    "WeCom",
    {45009: timedelta(minutes=1), 45033: timedelta(seconds=10)},
    {
        40008: _FORM,
        40058: _FORM,
        44004: _FORM,
        45002: _FORM,
        93000: "copy the webhook address from the robot's page into COSTGUARD_ROBOTS again; the robot may be gone",
        93004: "enable the robot in its group again",
        93008: "add the robot to its group again",
    },
)


def rendered(piece: LayoutPiece) -> str:
    """One piece as lines of markdown."""
    if piece.rank is Rank.HEAD:
        return f"\n**{piece.text}**\n"
    if piece.rank is Rank.LINK:
        return f"[{piece.text}]({piece.url})\n"
    return f"> {piece.label}: {piece.text}\n" if piece.label else f"{piece.text}\n"


class WeCom:
    """A `Vendor`: robots of WeCom groups."""

    name = "WeCom"
    sheet = Sheet(
        markdown_words,
        lambda piece: len(rendered(piece).encode()),
        room=MOST_BYTES - _ENVELOPE,
        title=_TITLE,
        value=180,
        line=260,
    )

    def document(self, laid: Laid) -> dict[str, Any]:
        """A markdown message."""
        content = f"## {laid.title}\n" + "".join(map(rendered, laid.pieces)) + laid.rest
        return {"msgtype": "markdown", "markdown": {"content": content}}

    def signed(self, target: str, document: dict[str, Any], secret: str, now: datetime) -> tuple[str, dict[str, Any]]:
        """Nothing to sign with: the key in the address says who it is."""
        del secret, now
        return target, document

    def refusal(self, answer: Mapping[str, Any], robot: str, said: Callable[[str], str]) -> NoticeError | None:
        """By `errcode` alone."""
        message = answer.get("errmsg")
        return _CODES.refusal(answer.get("errcode"), said(message) if isinstance(message, str) else "", robot)
