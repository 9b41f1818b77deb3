"""Notices as e-mail: from a neutral message to an RFC 5322 one; what carries it away is given.

Everything in a notice may come from outside. Its words are cleaned before they become a header, escaped before they
become HTML, and recipients are addresses of a plain form only: no list, no name, no `?cc=`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from hashlib import sha256
from html import escape
from typing import TYPE_CHECKING, Protocol
from urllib.parse import unquote

from costguard.domain.errors import InvalidInputError, RejectedNoticeError
from costguard.notifiers.blocks import visible
from costguard.notifiers.plain import PlainNotice, plain
from costguard.ports import Delivery, Message

if TYPE_CHECKING:
    from email.message import EmailMessage

_LOCAL = r"[A-Za-z0-9_+-]+(?:[.'][A-Za-z0-9_+-]+)*"
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_ADDRESS = re.compile(rf"(?=.{{3,254}}$)(?=[^@]{{1,64}}@){_LOCAL}@(?P<domain>{_LABEL}(?:\.{_LABEL})+)", re.ASCII)
_RECEIPT = re.compile(r"(?P<id><[A-Za-z0-9._=+-]{1,200}@[A-Za-z0-9.-]{1,200}>)(?: .*)?", re.ASCII | re.DOTALL)
_LONGEST_WORDS = 200


class MailCarrier(Protocol):
    """Takes a finished mail to where mail is delivered from: an SMTP server, SES, DirectMail."""

    def carry(self, mail: EmailMessage) -> tuple[str, str]:
        """Hand `mail` over, once; the Message-ID that it travels under, and what the carrier said.

        Returns only once the carrier has taken charge of it.

        Raises:
            RateLimitedError: try again after its `retry_after`.
            RejectedNoticeError: never deliverable as it is.
            NoticeError: not taken for a passing reason, or nobody knows whether it was.
        """


def is_mail_address(text: str) -> bool:
    """Whether this is one address of the form that is sent to: ASCII, no quotes, a domain with a dot."""
    return _ADDRESS.fullmatch(text) is not None


class EmailNotifier:
    """A `Notifier` for addresses like `ops@example.com`, with or without `mailto:` encoding.

    `sender` is the address mail comes from; `now` dates it.

    Raises:
        InvalidInputError: `sender` is no address.
    """

    def __init__(self, carrier: MailCarrier, sender: str, *, now: Callable[[], datetime]) -> None:
        if not is_mail_address(sender):
            raise InvalidInputError("mail needs a sender such as costguard@example.com: one address, without a name")
        self._carrier = carrier
        self._sender = sender
        self._now = now

    def send(self, message: Message) -> Delivery:
        """Send now, once. The receipt begins with the Message-ID, which a later message may name as its thread."""
        recipient = unquote(message.channel)
        if not is_mail_address(recipient):
            text = f"{message.channel[:100]!a} is no mail address; expected mailto:name@example.com, one address"
            raise RejectedNoticeError(text)
        message_id, words = self._carrier.carry(compose(message, self._sender, recipient, self._now()))
        return Delivery(f"{message_id} {visible(words)[:_LONGEST_WORDS]}".strip())


def compose(message: Message, sender: str, recipient: str, at: datetime) -> EmailMessage:
    """The mail: plain words, and the same as simple HTML.

    The same notice to the same person has the same Message-ID, however often it is sent, so that mailboxes can tell.
    """
    from email.message import EmailMessage
    from email.policy import SMTP
    from email.utils import format_datetime

    words = plain(message)
    mail = EmailMessage(SMTP.clone(cte_type="7bit"))  # every server takes it
    mail["From"] = f"Costguard <{sender}>"
    mail["To"] = recipient
    mail["Subject"] = words.title
    mail["Date"] = format_datetime(at)
    mail["Auto-Submitted"] = "auto-generated"  # RFC 3834: no holiday notices come back
    digest = sha256(f"{message.notice_id}\n{recipient}".encode()).hexdigest()[:40]
    if message.notice_id:
        mail["Message-ID"] = f"<costguard.{digest}@{sender.rpartition('@')[2]}>"
    thread = _RECEIPT.fullmatch(message.thread)
    if thread is not None:
        mail["In-Reply-To"] = thread["id"]
        mail["References"] = thread["id"]
    mail.set_content(_text(words))
    mail.add_alternative(_html(words), subtype="html")
    mail.set_boundary(f"=_{digest}")  # by itself it would be another for each attempt
    return mail


def _text(words: PlainNotice) -> str:
    return (words.text or words.title) + _rest(words, "\n")


def _html(words: PlainNotice) -> str:
    rows = "".join(
        f'<tr><th align="left" valign="top">{escape(name)}</th><td>{escape(value)}</td></tr>\n'
        for name, value in words.fields
    )
    table = f"<table cellpadding='4'>\n{rows}</table>\n" if rows else ""
    lines = "".join(f"<p>{escape(line)}</p>\n" for line in words.lines)
    whole = f"<pre>{escape(words.text)}</pre>\n" if words.text and not (rows or lines) else ""
    rest = f"<p>{escape(_rest(words))}</p>\n" if words.left_out else ""
    body = f"<h2>{escape(words.title)}</h2>\n{table}{lines}{whole}{rest}"
    head = '<head><meta charset="utf-8"></head>'
    return f"<!DOCTYPE html>\n<html>{head}<body>\n{body}</body></html>\n"


def _rest(words: PlainNotice, before: str = "") -> str:
    return f"{before}… and {words.left_out} more, not shown here" if words.left_out else ""
