"""From a channel address to the notifier that serves it: `slack:#gpu`, `mailto:ops@example.com`, `https://…`."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

from costguard.domain.errors import RejectedNoticeError
from costguard.ports import Delivery, Message, Notifier

ELLIPSIS = "…"
_IDEOGRAPH = re.compile("[\u4e00-\u9fff]")
# control, bidi and other formatting, lone surrogates, unassigned, line separators
_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_DEFAULT_WAIT = timedelta(seconds=30)
_LONGEST_WAIT = timedelta(days=1)  # a Retry-After beyond it is a mistake


def visible(text: str, *, lines: bool = False) -> str:
    """`text` without characters that hide, reorder or command; each becomes a space, runs of them one.

    With `lines`, line feeds stay.
    """
    if (text.replace("\n", "") if lines else text).isprintable():  # nearly always, and quick: none of `_INVISIBLE`
        return text.strip()
    cleaned = "".join(
        char if (lines and char == "\n") or unicodedata.category(char) not in _INVISIBLE else "\0" for char in text
    )
    return re.sub(r"\0+", " ", cleaned).strip()


def is_chinese(text: str) -> bool:
    """Whether there is a Chinese character in it: asked of labels, which are in the language of the notice."""
    return _IDEOGRAPH.search(text) is not None


def remainder(count: int, *, chinese: bool) -> str:
    """What is said of that which did not fit."""
    return (
        f"{ELLIPSIS}{ELLIPSIS}还有 {count} 项未在此显示" if chinese else f"{ELLIPSIS} and {count} more, not shown here"
    )


def retry_after(headers: Mapping[str, str]) -> timedelta:
    """What `Retry-After` asks for; 30 s where it is missing, no whole number of seconds, or over a day."""
    value = next((value for name, value in headers.items() if name.lower() == "retry-after"), "").strip()
    if not (value.isascii() and value.isdigit()) or len(value) > len(str(int(_LONGEST_WAIT.total_seconds()))):
        return _DEFAULT_WAIT
    wait = timedelta(seconds=int(value))
    return max(wait, timedelta(seconds=1)) if wait <= _LONGEST_WAIT else _DEFAULT_WAIT


_ADDRESS = re.compile(r"(?P<scheme>[a-z][a-z0-9-]*):(?P<rest>.*)", re.DOTALL)
_WHOLE = frozenset({"https", "http"})  # handed on with their scheme, of which they are a part
_BEYOND = re.compile(r"[/?#]")  # a host
_SET: Mapping[str, str] = {
    "slack": "COSTGUARD_SLACK_TOKEN",
    "mailto": "COSTGUARD_MAIL_FROM, and COSTGUARD_SMTP_URL or COSTGUARD_MAIL_VIA",
    "https": "COSTGUARD_WEBHOOK_SECRET",
    "http": "COSTGUARD_WEBHOOK_SECRET and COSTGUARD_WEBHOOK_PRIVATE",
    "feishu": "COSTGUARD_ROBOTS",
    "dingtalk": "COSTGUARD_ROBOTS",
    "wecom": "COSTGUARD_ROBOTS",
}
"""What sets up the channels that a Costguard may be without, by scheme."""


class NotifierRouter:
    """A `Notifier` over several, by the word before the colon of `message.channel`.

    An address without one (`#gpu-research`) goes to `default`, if that is given. Another channel is one
    entry more in `notifiers`. `foot` is a closing line of every message: which deployment it is from.
    """

    def __init__(self, notifiers: Mapping[str, Notifier], *, default: str = "", foot: str = "") -> None:
        self._notifiers = dict(notifiers)
        self._default = default
        self._foot = foot

    def send(self, message: Message) -> Delivery:
        """Hand `message` on under its address, web addresses whole and others without the scheme.

        What that notifier says is passed through.

        Raises:
            RejectedNoticeError: no notifier serves this address.
        """
        notifier, inner = self._served(message)
        return notifier.send(inner)

    def edit(self, receipt: str, message: Message) -> bool:
        """Hand the change on as `send` does.

        Raises:
            RejectedNoticeError: no notifier serves this address.
        """
        notifier, inner = self._served(message)
        return notifier.edit(receipt, inner)

    def capacity(self, message: Message) -> int:
        """What the notifier that serves this address says; all of it where none does, as `send` will tell."""
        try:
            notifier, inner = self._served(message)
        except RejectedNoticeError:
            return max(1, len(message.parts))
        return notifier.capacity(inner)

    def _served(self, message: Message) -> tuple[Notifier, Message]:
        parts = _ADDRESS.fullmatch(message.channel)
        scheme, rest = (parts["scheme"], parts["rest"]) if parts else (self._default, message.channel)
        notifier = self._notifiers.get(scheme) if message.channel else None
        if notifier is None:
            raise RejectedNoticeError(self._unserved(message.channel, scheme))
        signed = _signed(message, self._foot) if self._foot else message
        return notifier, signed if scheme in _WHOLE else replace(signed, channel=rest)

    def _unserved(self, channel: str, scheme: str) -> str:
        """Without the path of a web address: it may be a secret."""
        before, web, place = channel.partition("://")
        shown = f"{before}{web}{_BEYOND.split(place)[0].rpartition('@')[2]}"[:100] if web else channel[:100]
        known = ", ".join(f"{name}:" for name in sorted(self._notifiers)) or "none"
        fix = f"; set {_SET[scheme]}, see docs/settings.md" if channel and scheme in _SET else ""
        return f"no channel serves the address {shown!r}; known are: {known}{fix}"


def _signed(message: Message, foot: str) -> Message:
    """With this line last; one that has no layout stays plain lines."""
    laid_out = bool(message.fields or message.lines or message.parts)
    lines = (*message.lines, foot) if laid_out else ()
    return replace(message, text=f"{message.text}\n{foot}" if message.text else foot, lines=lines)
