"""Notices as one message: each shown whole, or all in short where these would be too many messages for a day."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from costguard.domain.answers import AnswerKind
from costguard.engine.ledger.notices import OutboxNotice
from costguard.engine.notify.choices import KEPT_FOR
from costguard.ports import Message, MessagePart
from costguard.report.notices.machines import NoticeKind
from costguard.report.notices.messages import heading, said_by_all
from costguard.report.words.sentences import Language, label, phrase

_IN_SHORT = frozenset({AnswerKind.APPROVE, AnswerKind.START})


def letter(notices: Sequence[OutboxNotice], language: Language = Language.EN, *, in_digest: bool = False) -> Message:
    """One message that says all of these, which have one channel and thread; what all of them say is said once.

    A digest says of each in a line or two what it is, whose and what comes, with one button.
    """
    first = notices[0]
    if in_digest:
        return _digest(notices, language)
    if len(notices) == 1:
        alone = MessagePart(first.decision_id, "", picture=first.picture, choices=first.choices, status=first.status)
        parts = (alone,) if first.picture or first.choices or first.status else ()
        return Message(
            channel=first.channel,
            title=first.title,
            text=first.text,
            fields=first.fields,
            lines=first.lines,
            thread=first.thread,
            notice_id=first.notice_id,
            parts=parts,
        )
    same, same_lines = said_by_all([each.fields for each in notices]), _lines_of_all(notices)
    kinds, hourly = [each.kind for each in notices], [each.hourly for each in notices]
    top = heading(kinds, first.owner, hourly, same, language)
    return Message(
        channel=first.channel,
        title=top.title,
        text="\n\n".join((top.title, *(each.text for each in notices))),
        fields=top.fields,
        lines=same_lines,
        thread=first.thread,
        notice_id=_id_of(notices),
        parts=tuple(
            MessagePart(
                decision_id=each.decision_id,
                title=each.title,
                fields=tuple(field for field in each.fields if field not in same),
                lines=tuple(line for line in each.lines if line not in same_lines),
                picture=each.picture,
                choices=each.choices,
                status=each.status,
            )
            for each in notices
        ),
    )


def _digest(notices: Sequence[OutboxNotice], language: Language) -> Message:
    first, owners = notices[0], {each.owner for each in notices}
    owner = first.owner if len(owners) == 1 else ""
    top = heading([each.kind for each in notices], owner, [each.hourly for each in notices], (), language)
    return Message(
        channel=first.channel,
        title=top.title,
        text="\n\n".join((top.title, *(each.text for each in notices))),
        fields=top.fields,
        lines=(*_lines_of_all(notices), phrase("letter_digest", language)),
        thread=first.thread,
        notice_id=_id_of(notices),
        parts=tuple(_brief(each, language) for each in notices),
    )


def _brief(one: OutboxNotice, language: Language) -> MessagePart:
    told = dict(one.fields)
    why = () if one.kind.startswith(NoticeKind.WARNED.value) else ("why",)
    names = [label(word, language) for word in ("what", "where", "owner", *why, "next", "risks")]
    words = [told[name] for name in (*names, phrase("approve_why", language)) if name in told]
    offered = [each for each in one.choices if each.kind in _IN_SHORT or each.length == KEPT_FOR[-1]]
    lines = (" · ".join(words) or one.text,)
    return MessagePart(one.decision_id, one.title, lines=lines, choices=tuple(offered), status=one.status)


def _lines_of_all(notices: Sequence[OutboxNotice]) -> tuple[str, ...]:
    return tuple(line for line in notices[0].lines if all(line in each.lines for each in notices))


def _id_of(notices: Sequence[OutboxNotice]) -> str:
    """The same for every attempt to deliver just these."""
    return hashlib.sha256("\n".join(each.notice_id for each in notices).encode()).hexdigest()[:24]
