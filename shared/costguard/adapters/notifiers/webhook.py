"""Notices to a receiver of one's own: JSON over HTTPS, signed, with a key by which a repetition is known.

docs/notices.md describes the document and how a receiver checks the signature; `SCHEMA` names its version.
"""

from __future__ import annotations

import hmac
import json
import re
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from costguard.adapters.notifiers.outward import OutwardAddress, Resolve, Response, judged, place_of, post, resolved
from costguard.adapters.notifiers.plain import must_hold, parts_that_fit, plain
from costguard.adapters.notifiers.router import retry_after
from costguard.domain.errors import InvalidInputError, NoticeError, RateLimitedError, RejectedNoticeError
from costguard.ports import Choice, Delivery, Message, MessagePart

if TYPE_CHECKING:
    import ssl

SCHEMA = "costguard.notice/1"
SIGNATURE, REPEATED = "Costguard-Signature", "Idempotency-Key"
_GOOD, _REDIRECTS, _REFUSED, _FAULTS = 200, 300, 400, 500
_TOO_MANY, _UNAVAILABLE = 429, 503
_PASSING = frozenset({408, 409, 425})  # Request Timeout, Conflict, Too Early
_RECEIPT = re.compile(r"webhook:(?P<key>[0-9a-f]{32}):.*", re.ASCII | re.DOTALL)
_ANSWER_ANYTHING = frozenset(
    {"open.feishu.cn", "open.larksuite.com", "oapi.dingtalk.com", "api.dingtalk.com", "qyapi.weixin.qq.com"}
)
"""Robots of chat programs: they want words of their own, and say 200 to what they refuse."""


class WebhookNotifier:
    """A `Notifier` for addresses like `https://hooks.example.com/costguard`.

    `secret` signs; `now` dates the signature; `private` lets it call addresses of one's own network, and this machine
    in the clear. `resolve` and `tls` stand in for this system's resolver and certificates.

    Raises:
        InvalidInputError: there is no secret.
    """

    def __init__(
        self,
        secret: str,
        *,
        now: Callable[[], datetime],
        private: bool = False,
        timeout: timedelta = timedelta(seconds=15),
        resolve: Resolve = resolved,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        if not secret:
            raise InvalidInputError("webhooks need a secret to sign with; set COSTGUARD_WEBHOOK_SECRET")
        self._secret = secret.encode()
        self._now = now
        self._private = private
        self._timeout = timeout
        self._resolve = resolve
        self._tls = tls

    def send(self, message: Message) -> Delivery:
        """Post now, once. Any 2xx is the receiver's word that it has the notice.

        One whose answer is lost may have arrived: sent again, it has the same key.
        """
        place = place_of(message.channel, private=self._private)
        if place.host.rstrip(".") in _ANSWER_ANYTHING:
            text = (
                f"the webhook {place.shown} is a chat robot: it says 200 to what it refuses, which proves nothing; "
                "name it in COSTGUARD_ROBOTS and write its name into the policy, such as feishu:research"
            )
            raise RejectedNoticeError(text)
        must_hold(message, self.capacity(message))
        body = document(message)
        key = sha256(message.notice_id.encode() if message.notice_id else body).hexdigest()[:32]
        headers = {
            "Content-Type": "application/json; charset=utf-8",
            "User-Agent": "costguard",
            REPEATED: key,
            SIGNATURE: signature(self._secret, body, self._now()),
        }
        addresses = judged(place, self._resolve, private=self._private)
        answer = post(place, addresses, body, headers, timeout=self._timeout, tls=self._tls)
        if not _GOOD <= answer.status < _REDIRECTS:
            raise _refusal(place, answer)
        return Delivery(f"webhook:{key}:{answer.status} {place.shown}")

    def edit(self, receipt: str, message: Message) -> bool:  # noqa: ARG002 - what was sent stays as it is
        """Nothing can be changed there."""
        return False

    def capacity(self, message: Message) -> int:
        """As many as a document of the size that docs/notices.md promises."""
        return parts_that_fit(message)


def document(message: Message) -> bytes:
    """The body of a notice: JSON in UTF-8, the same for every attempt to deliver it."""
    words = plain(message)
    earlier = _RECEIPT.fullmatch(message.thread)
    said = {
        "schema": SCHEMA,
        "notice_id": message.notice_id,
        "title": words.title,
        "text": words.text,
        "fields": _labelled(words.fields),
        "parts": [_part_document(part) for part in words.parts],
        "lines": list(words.lines),
        "left_out": words.left_out,
        "in_reply_to": earlier["key"] if earlier else "",
    }
    return json.dumps(said, ensure_ascii=False, separators=(",", ":")).encode()


def _labelled(fields: Sequence[tuple[str, str]]) -> list[dict[str, str]]:
    return [{"label": name, "value": value} for name, value in fields]


def _part_document(part: MessagePart) -> dict[str, Any]:
    return {
        "decision_id": part.decision_id,
        "title": part.title,
        "fields": _labelled(part.fields),
        "picture": part.picture,
        "lines": list(part.lines),
        "status": part.status,
        "choices": [_choice_document(choice) for choice in part.choices],
    }


def _choice_document(choice: Choice) -> dict[str, Any]:
    seconds = None if choice.length is None else int(choice.length.total_seconds())
    return {"kind": choice.kind.value, "label": choice.label, "seconds": seconds, "asks": choice.asks}


def signature(secret: bytes, body: bytes, at: datetime) -> str:
    """`t=SECONDS,v1=HEX`: HMAC-SHA256 with `secret` over the seconds, a full stop, and the body."""
    seconds = int(at.timestamp())
    signed = hmac.new(secret, f"{seconds}.".encode() + body, sha256).hexdigest()
    return f"t={seconds},v1={signed}"


def _refusal(place: OutwardAddress, answer: Response) -> NoticeError:
    status = answer.status
    text = f"the webhook {place.shown} answers {status}"
    told = any(name.lower() == "retry-after" for name in answer.headers)
    if status == _TOO_MANY or (status == _UNAVAILABLE and told):
        wait = retry_after(answer.headers)
        return RateLimitedError(f"{text} and asks to wait {wait.total_seconds():.0f} s", retry_after=wait)
    if _REDIRECTS <= status < _REFUSED:
        return RejectedNoticeError(f"{text}, a redirect, which is not followed; name its final address in the policy")
    if _REFUSED <= status < _FAULTS and status not in _PASSING:
        return RejectedNoticeError(f"{text}; check the address, and the secret its receiver knows")
    return NoticeError(text)
