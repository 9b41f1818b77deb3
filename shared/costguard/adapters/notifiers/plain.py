"""A notice cut to a size that every mailbox and receiver takes, with links to keep a machine; on the terminal as well.

Following one changes nothing: previews and virus scanners follow links too. The page behind it asks to confirm.

Words from outside have no bound: a tag may be long, a plan may have thousands of machines. What does not fit is
counted, never dropped in silence.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from html import escape

from costguard.adapters.notifiers.router import visible
from costguard.domain.answers import SHORTEST_SECRET, AnswerKind, KeepToken, keep_token
from costguard.domain.errors import InvalidInputError, RejectedNoticeError
from costguard.ports import Choice, Delivery, Message, MessagePart

VALID_FOR = timedelta(days=7)  # the longest usual wait; a later answer is asked for by a later notice
PATH = "/keep"
_ANSWERS_AT = re.compile(r"https://|http://(?:127\.0\.0\.1|localhost)(?=[:/]|$)")
Link = Callable[[Choice, str], str]
"""The address behind a choice, for whom it is sent to; empty where a choice has none."""


class KeepLinks:
    """Makes the links of one deployment. `answer_url` is where the function `slack_actions` answers.

    Raises:
        InvalidInputError: no address, or a secret of fewer than 32 letters.
    """

    def __init__(self, answer_url: str, secret: str) -> None:
        if not _ANSWERS_AT.match(answer_url):
            raise InvalidInputError("Keep links need COSTGUARD_ANSWER_URL, an https address")
        if len(secret) < SHORTEST_SECRET:
            message = f"COSTGUARD_LINK_SECRET is shorter than {SHORTEST_SECRET} letters; make one at random"
            raise InvalidInputError(message)
        base = answer_url.partition("?")[0].rstrip("/")
        self._base = base.replace("(", "%28").replace(")", "%29") + PATH  # in markdown they would end the link
        self._secret = secret

    def keep_url(self, choice: Choice, address: str, now: datetime) -> str:
        """The link for a `KEEP` or `START` sent to `address` (`feishu:research`); empty for what no link can say."""
        length = timedelta(0) if choice.kind is AnswerKind.START else choice.length
        if choice.kind not in {AnswerKind.KEEP, AnswerKind.START} or length is None:
            return ""
        if choice.kind is AnswerKind.KEEP and not length:
            return ""
        expires = (now + VALID_FOR).replace(microsecond=0)
        try:
            token = keep_token(KeepToken(choice.of, length, address, expires), self._secret)
        except InvalidInputError:  # an address beyond ASCII, half an hour: the command is named instead
            return ""
        return f"{self._base}?t={token}"

    def at(self, now: Callable[[], datetime]) -> Link:
        """The same, dated by a clock."""
        return lambda choice, address: self.keep_url(choice, address, now())


TITLE_MAX = 100  # what DirectMail once allowed as a subject; longer ones are cut by mail programs anyway
LINK_MAX = 600  # bytes of HTML that an address to click on may have
_LABEL_MAX = 200
_FIELD_MAX = 2000
_LINE_MAX = 1000
_STATUS_MAX = 400
_BUTTON_MAX, _ASKS_MAX = 75, 300  # as Slack's
_ROOM = 60_000  # bytes of HTML: of fields, lines and parts, and of the text; DirectMail takes 80 KB of each
_MARKUP = 100  # bytes around a row of a table
_MOST = _ROOM // _MARKUP  # fields or lines that could fit, were they empty
_LOOKED_AT = 4  # times what is kept: cleaning takes time, and a million letters may be a tag
_ELLIPSIS = "…"
_PART_ROOM = 30_000  # the largest part has its place beside the largest rest
_PART_MARKUP = 500
_CHOICES_MOST = 6


@dataclass(frozen=True, slots=True)
class PlainNotice:
    """A notice without characters that hide, reorder or command, and of bounded length.

    `left_out` counts the fields, lines, parts and choices that did not fit.
    """

    title: str
    text: str
    fields: tuple[tuple[str, str], ...]
    lines: tuple[str, ...]
    left_out: int = 0
    parts: tuple[MessagePart, ...] = ()


def plain(message: Message) -> PlainNotice:
    """The words of `message`, fit to be shown anywhere as they are."""
    fields, lines, left_out = _cut_words(message.fields, message.lines, _room_beside_parts(message))
    parts = _fitting_parts(message, fields, lines)
    return PlainNotice(
        title=_cut(message.title, TITLE_MAX) or "Costguard",
        text=_cut_to_room(message.text),
        fields=fields,
        lines=lines,
        left_out=left_out + sum(out for _, out in parts) + len(message.parts) - len(parts),
        parts=tuple(part for part, _ in parts),
    )


def parts_that_fit(message: Message) -> int:
    """How many of the first parts there is room for beside the rest of the message; at least 1."""
    fields, lines, _ = _cut_words(message.fields, message.lines, _room_beside_parts(message))
    return max(1, len(_fitting_parts(message, fields, lines)))


def _fitting_parts(
    message: Message, fields: Sequence[tuple[str, str]], lines: Sequence[str]
) -> list[tuple[MessagePart, int]]:
    """The first parts, as many as there is room for, each with how much of it is left out; one always is."""
    room = _ROOM - sum(map(_field_size, fields)) - sum(map(_line_size, lines))
    shown: list[tuple[MessagePart, int]] = []
    for part in message.parts:
        cut = _cut_part(part)
        room -= _part_size(cut[0])
        if shown and room < 0:
            break
        shown.append(cut)
    return shown


def must_hold(message: Message, capacity: int) -> None:
    """Make sure that a message that will count as delivered shows every decision it is sent for (NEVER rule 15).

    Raises:
        RejectedNoticeError: it has more parts than the channel can show in one message.
    """
    if len(message.parts) > capacity:
        text = f"a message of {len(message.parts)} parts is to be sent as several: its channel shows {capacity} in one"
        raise RejectedNoticeError(text)


def _room_beside_parts(message: Message) -> int:
    return _ROOM - _PART_ROOM if message.parts else _ROOM


def _cut_part(part: MessagePart) -> tuple[MessagePart, int]:
    """The part, cleaned, and how much of it is left out; what has a status offers nothing any more."""
    offered = () if part.status else part.choices
    cut = MessagePart(
        decision_id=_cut(part.decision_id, _LABEL_MAX),
        title=_cut(part.title, _LABEL_MAX) or _ELLIPSIS,
        picture=_cut(part.picture, _LABEL_MAX),
        choices=tuple(map(_cut_choice, offered[:_CHOICES_MOST])),
        status=_cut(part.status, _STATUS_MAX),
    )
    fields, lines, left_out = _cut_words(part.fields, part.lines, _PART_ROOM - _part_size(cut))
    return replace(cut, fields=fields, lines=lines), left_out + len(offered) - len(cut.choices)


def _cut_choice(choice: Choice) -> Choice:
    return replace(choice, label=_cut(choice.label, _BUTTON_MAX) or _ELLIPSIS, asks=_cut(choice.asks, _ASKS_MAX))


def _cut_words(
    given_fields: Sequence[tuple[str, str]], given_lines: Sequence[str], room: int
) -> tuple[tuple[tuple[str, str], ...], tuple[str, ...], int]:
    """The fields and lines that fit into `room`, and how many do not."""
    fields = [(_cut(name, _LABEL_MAX), _cut(value, _FIELD_MAX)) for name, value in given_fields[:_MOST]]
    lines = [line for line in (_cut(line, _LINE_MAX) for line in given_lines[:_MOST]) if line]
    unread = max(0, len(given_fields) - _MOST) + max(0, len(given_lines) - _MOST)
    shown = _fitting(map(_field_size, fields), room)
    told = _fitting(map(_line_size, lines), room - sum(map(_field_size, fields)))
    left_out = unread + len(fields) - shown + len(lines) - told
    return tuple(fields[:shown]), tuple(lines[:told]), left_out


def _fitting(sizes: Iterable[int], room: int) -> int:
    """How many of the first fit into `room` bytes."""
    count = 0
    for count, size in enumerate(sizes, 1):
        room -= size
        if room < 0:
            return count - 1
    return count


def _part_size(part: MessagePart) -> int:
    words = _size(part.title + part.picture + part.status) + _PART_MARKUP
    rest = sum(map(_field_size, part.fields)) + sum(map(_line_size, part.lines))
    return words + rest + sum(map(_choice_size, part.choices))


def _choice_size(choice: Choice) -> int:
    link = LINK_MAX if choice.length is not None else 0
    return _MARKUP + link + _size(choice.label + choice.asks)


def _field_size(field: tuple[str, str]) -> int:
    return _MARKUP + _size("".join(field))


def _line_size(line: str) -> int:
    return _MARKUP + _size(line)


def _size(text: str) -> int:
    """Its bytes as HTML."""
    return len(escape(text).encode())


def _cut(words: str, limit: int) -> str:
    text = visible(words[: _LOOKED_AT * limit])
    return text if len(text) <= limit else text[: limit - len(_ELLIPSIS)] + _ELLIPSIS


def _cut_to_room(words: str) -> str:
    text = visible(words[: _LOOKED_AT * _ROOM], lines=True)
    kept = _fitting([_size(char) for char in text[:_ROOM]], _ROOM)
    whole = kept == len(text) and len(words) <= _LOOKED_AT * _ROOM
    return text if whole else f"{text[:kept]}\n{_ELLIPSIS} cut here"


class ConsoleNotifier:
    """A `Notifier` that hands each notice as one text to `write` (`sys.stdout.write`).

    NEVER rule 15: a terminal may have nobody before it, so its receipts do not prove delivery.
    """

    def __init__(self, write: Callable[[str], object]) -> None:
        self._write = write

    def send(self, message: Message) -> Delivery:
        """Write the plain words, without characters that command a terminal."""
        self._write(visible(message.text, lines=True) + "\n")
        return Delivery("console", proves_delivery=False)

    def edit(self, receipt: str, message: Message) -> bool:  # noqa: ARG002 - what was sent stays as it is
        """Nothing can be changed there."""
        return False

    def capacity(self, message: Message) -> int:
        """A terminal holds everything."""
        return max(1, len(message.parts))
