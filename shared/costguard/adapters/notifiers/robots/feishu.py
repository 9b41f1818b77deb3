"""Robots of Feishu and Lark groups: a card of plain text, which reads no markup, with buttons that open links.

Source: Feishu Open Platform, "Custom bot usage guide": 100 calls a minute and 5 a second for each robot; a request of
at most 20 KB; `sign` is the base64 of HMAC-SHA256 over nothing, whose key is the timestamp, a line feed and the secret;
success is `code` 0 (older answers: `StatusCode` 0, which some refusals carry beside their `code`).
"""

from __future__ import annotations

import base64
import hmac
import json
import re
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any

from costguard.adapters.notifiers.robots.layout import Laid, LayoutPiece, Rank, Sheet, cut
from costguard.adapters.notifiers.robots.notifier import Codes
from costguard.domain.errors import NoticeError, RateLimitedError

MOST_BYTES = 20_000  # "20 KB", of the whole request
_ENVELOPE = 1500  # card, title, the sentence about the rest, signature
_AROUND: Mapping[Rank, int] = {Rank.HEAD: 160, Rank.LINK: 180, Rank.COMMAND: 90}  # bytes of JSON around a piece
_AT_TAG = re.compile(r"<(?=/?at\b)", re.IGNORECASE)  # plain text reads no tags; none is left all the same
_BAD_REQUEST = 9499
_WINDOW = timedelta(minutes=1)
_CODES = Codes(
    "Feishu",
    {11232: _WINDOW, 99991400: _WINDOW},
    {
        9499: "it refuses the form of this message; please report it with the finding it was about",
        19001: "copy the webhook address from the robot's page into COSTGUARD_ROBOTS again",
        19002: "it refuses the form of this message; please report it with the finding it was about",
        19007: "enable the robot in its group again",
        19021: "copy the robot's signature secret into COSTGUARD_ROBOTS again, and check this machine's clock",
        19022: "add this machine's address to the robot's IP whitelist, or let it check the signature instead",
        19024: "take the keywords out of the robot's security settings, and let it check the signature instead",
    },
)


def signature(secret: str, timestamp: int) -> str:
    """What `sign` is at this second."""
    return base64.b64encode(hmac.new(f"{timestamp}\n{secret}".encode(), b"", sha256).digest()).decode()


def words(text: str, limit: int) -> str:
    """`text` from outside for an element of plain text."""
    return cut(text, limit, lambda plain: _AT_TAG.sub("‹", plain))  # noqa: RUF001


class Feishu:
    """A `Vendor`: custom robots of Feishu (open.feishu.cn) and Lark (open.larksuite.com)."""

    name = "Feishu"
    sheet = Sheet(
        words,
        lambda piece: (
            _AROUND.get(piece.rank, 6)
            + len(json.dumps(piece.label + piece.text + piece.url, ensure_ascii=False).encode())
        ),
        room=MOST_BYTES - _ENVELOPE,
        title=300,
        value=500,
        line=700,
    )

    def document(self, laid: Laid) -> dict[str, Any]:
        """An interactive card; the words of a part stand together, and its buttons in one row."""
        elements: list[dict[str, Any]] = []
        for before, piece in zip((None, *laid.pieces), laid.pieces, strict=False):
            _add(elements, piece, begins=before is None or before.part != piece.part)
        if laid.rest:
            elements.append({"tag": "note", "elements": [_plain(laid.rest)]})
        card = {
            "config": {"wide_screen_mode": True},
            "header": {"title": _plain(laid.title), "template": "orange"},
            "elements": elements or [{"tag": "div", "text": _plain(laid.title)}],
        }
        return {"msg_type": "interactive", "card": card}

    def signed(self, target: str, document: dict[str, Any], secret: str, now: datetime) -> tuple[str, dict[str, Any]]:
        """Time and signature are the document's first fields."""
        seconds = int(now.timestamp())
        seal = {"timestamp": str(seconds), "sign": signature(secret, seconds)} if secret else {}
        return target, {**seal, **document}

    def refusal(self, answer: Mapping[str, Any], robot: str, said: Callable[[str], str]) -> NoticeError | None:
        """`code` and `StatusCode` both have to be 0 where they are there, and one of them has to be."""
        told = [answer[name] for name in ("code", "StatusCode") if name in answer]
        code = next((each for each in told if type(each) is not int or each), told[0] if told else None)
        message = next((answer[name] for name in ("msg", "StatusMessage") if answer.get(name)), "")
        heard = said(message) if isinstance(message, str) else ""
        if code == _BAD_REQUEST and "too many" in heard.lower():  # one code for a wrong form and for too many calls
            return RateLimitedError(f"{robot} is asked to wait: {code} {heard}", retry_after=_WINDOW)
        return _CODES.refusal(code, heard, robot)


def _add(elements: list[dict[str, Any]], piece: LayoutPiece, *, begins: bool) -> None:
    if begins and elements:
        elements.append({"tag": "hr"})
    if piece.rank is Rank.LINK:
        button = {"tag": "button", "text": _plain(piece.text), "type": "default", "url": piece.url}
        if elements and elements[-1]["tag"] == "action":
            elements[-1]["actions"].append(button)
        else:
            elements.append({"tag": "action", "actions": [button]})
        return
    text = f"{piece.label}: {piece.text}" if piece.label else piece.text
    if elements and elements[-1]["tag"] == "div":
        elements[-1]["text"]["content"] += f"\n{text}"
    else:
        elements.append({"tag": "div", "text": _plain(f"■ {text}" if piece.rank is Rank.HEAD else text)})


def _plain(text: str) -> dict[str, str]:
    return {"tag": "plain_text", "content": text}
