"""Notices as e-mail: from a neutral message to an RFC 5322 one; what carries it away is given.

Everything in a notice may come from outside. Its words are cleaned before they become a header, escaped before they
become HTML, and recipients are addresses of a plain form only: no list, no name, no `?cc=`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import datetime
from hashlib import sha256
from html import escape
from typing import TYPE_CHECKING, Protocol
from urllib.parse import unquote

from costguard.adapters.notifiers.plain import LINK_MAX, PlainNotice, must_hold, parts_that_fit, plain
from costguard.adapters.notifiers.router import is_chinese, remainder, visible
from costguard.domain.errors import InvalidInputError, RejectedNoticeError
from costguard.ports import Choice, Delivery, Message, MessagePart

if TYPE_CHECKING:
    from email.message import EmailMessage

_LOCAL = r"[A-Za-z0-9_+-]+(?:[.'][A-Za-z0-9_+-]+)*"
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_ADDRESS = re.compile(rf"(?=.{{3,254}}$)(?=[^@]{{1,64}}@){_LOCAL}@(?P<domain>{_LABEL}(?:\.{_LABEL})+)", re.ASCII)
_RECEIPT = re.compile(r"(?P<id><[A-Za-z0-9._=+-]{1,200}@[A-Za-z0-9.-]{1,200}>)(?: .*)?", re.ASCII | re.DOTALL)
_LONGEST_WORDS = 200
_WEB = re.compile(r"https?://[!-~]+", re.ASCII)

Link = Callable[[Choice, str], str]
"""The address where a person with this mail address can give an answer; empty where there is none."""


def _no_link(_choice: Choice, _recipient: str) -> str:
    return ""


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

    `sender` is the address mail comes from; `now` dates it. `link` makes the addresses under which a choice can be
    answered; without it, the choices are shown as words.

    Raises:
        InvalidInputError: `sender` is no address.
    """

    def __init__(
        self, carrier: MailCarrier, sender: str, *, now: Callable[[], datetime], link: Link | None = None
    ) -> None:
        if not is_mail_address(sender):
            raise InvalidInputError("mail needs a sender such as costguard@example.com: one address, without a name")
        self._carrier = carrier
        self._sender = sender
        self._now = now
        self._link = link or _no_link

    def send(self, message: Message) -> Delivery:
        """Send now, once. The receipt begins with the Message-ID, which a later message may name as its thread."""
        recipient = unquote(message.channel)
        if not is_mail_address(recipient):
            text = f"{message.channel[:100]!a} is no mail address; expected mailto:name@example.com, one address"
            raise RejectedNoticeError(text)
        must_hold(message, self.capacity(message))
        mail = compose(message, self._sender, recipient, self._now(), link=self._link)
        message_id, words = self._carrier.carry(mail)
        return Delivery(f"{message_id} {visible(words)[:_LONGEST_WORDS]}".strip())

    def edit(self, receipt: str, message: Message) -> bool:  # noqa: ARG002 - what was sent stays as it is
        """Nothing can be changed in a mailbox."""
        return False

    def capacity(self, message: Message) -> int:
        """As many as a mail of the size that every carrier takes."""
        return parts_that_fit(message)


def compose(message: Message, sender: str, recipient: str, at: datetime, *, link: Link = _no_link) -> EmailMessage:
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
    layout = _Layout(words, lambda choice: _usable(link(choice, recipient)))
    mail.set_content(layout.text())
    mail.add_alternative(layout.html(), subtype="html")
    mail.set_boundary(f"=_{digest}")  # by itself it would be another for each attempt
    return mail


def _usable(address: str) -> str:
    return address if _WEB.fullmatch(address) and len(escape(address)) <= LINK_MAX else ""


class _Layout:
    """The two forms of one notice. `link` is where a choice is answered, empty where it is words alone."""

    def __init__(self, words: PlainNotice, link: Callable[[Choice], str]) -> None:
        self._words = words
        self._link = link
        labels = (label for fields in (words.fields, *(part.fields for part in words.parts)) for label, _ in fields)
        self._chinese = any(map(is_chinese, labels))
        self._colon = "：" if self._chinese else ": "
        self._rest = remainder(words.left_out, chinese=self._chinese) if words.left_out else ""

    def text(self) -> str:
        """Plain words: with parts their own, so that each link stands with what it is about."""
        words = self._words
        if not words.parts:
            return "\n".join(filter(None, (words.text or words.title, self._rest)))
        parts = (("", *self._part_text(part)) for part in words.parts)
        after = ("", *words.lines) if words.lines else ()
        lines = [words.title, *self._fields_text(words.fields), *(line for part in parts for line in part), *after]
        return "\n".join((*lines, *([self._rest] if self._rest else [])))

    def _fields_text(self, fields: Sequence[tuple[str, str]]) -> list[str]:
        return [f"{name}{self._colon}{value}" for name, value in fields]

    def _part_text(self, part: MessagePart) -> list[str]:
        choices = [self._colon.join(filter(None, (choice.label, self._link(choice)))) for choice in part.choices]
        title = part.title if self._is_new(part.title) else ""
        said = (title, *self._fields_text(part.fields), part.picture, *part.lines, part.status, *choices)
        return [line for line in said if line]

    def html(self) -> str:
        """Every word of it escaped."""
        words = self._words
        table, lines = _table(words.fields), _paragraphs(words.lines)
        parts = "".join(map(self._part_html, words.parts))
        whole = f"<pre>{escape(words.text)}</pre>\n" if words.text and not (table or lines or parts) else ""
        rest = _paragraphs([self._rest] if self._rest else [])
        body = f"<h2>{escape(words.title)}</h2>\n{table}{parts}{lines}{whole}{rest}"
        head = '<head><meta charset="utf-8"></head>'
        return f"<!DOCTYPE html>\n<html>{head}<body>\n{body}</body></html>\n"

    def _part_html(self, part: MessagePart) -> str:
        picture = f"<p><code>{escape(part.picture)}</code></p>\n" if part.picture else ""
        status = f"<p><b>{escape(part.status)}</b></p>\n" if part.status else ""
        choices = " · ".join(map(self._choice_html, part.choices))
        answers = f"<p>{choices}</p>\n" if choices else ""
        title = f"<h3>{escape(part.title)}</h3>\n" if self._is_new(part.title) else ""
        return f"{title}{_table(part.fields)}{picture}{_paragraphs(part.lines)}{status}{answers}"

    def _is_new(self, title: str) -> bool:
        """The title of the only part may stand above it already."""
        return len(self._words.parts) > 1 or title != self._words.title

    def _choice_html(self, choice: Choice) -> str:
        address = self._link(choice)
        return f'<a href="{escape(address)}">{escape(choice.label)}</a>' if address else escape(choice.label)


def _table(fields: Sequence[tuple[str, str]]) -> str:
    rows = "".join(
        f'<tr><th align="left" valign="top">{escape(name)}</th><td>{escape(value)}</td></tr>\n'
        for name, value in fields
    )
    return f"<table cellpadding='4'>\n{rows}</table>\n" if rows else ""


def _paragraphs(lines: Sequence[str]) -> str:
    return "".join(f"<p>{escape(line)}</p>\n" for line in lines)
