"""What waits in the outbox and what died there, as tables and JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from costguard.report.json_values import moment
from costguard.report.plan.evidence import utc_words
from costguard.report.tables import Column, Table
from costguard.report.words.sentences import Language, clean, label, phrase


@dataclass(frozen=True, slots=True)
class NoticeLine:
    """One notice that did not arrive; `error` is what its channel said last, `dead`: it is not tried again."""

    notice_id: str
    channel: str
    title: str
    created_at: datetime
    attempts: int
    next_attempt_at: datetime | None
    error: str
    dead: bool


def outbox_json(lines: Sequence[NoticeLine]) -> dict[str, Any]:
    """Every notice that did not arrive, the oldest first."""
    return {
        "schema": 1,
        "pending": [_json(line) for line in lines if not line.dead],
        "dead": [_json(line) for line in lines if line.dead],
    }


def _json(line: NoticeLine) -> dict[str, Any]:
    return {
        "notice_id": line.notice_id,
        "channel": line.channel,
        "title": line.title,
        "created_at": moment(line.created_at),
        "attempts": line.attempts,
        "next_attempt_at": moment(line.next_attempt_at) if line.next_attempt_at is not None else None,
        "error": line.error,
    }


def outbox_tables(lines: Sequence[NoticeLine], language: Language = Language.EN) -> tuple[Table, ...]:
    """The dead first: only people can help them."""
    dead, pending = [line for line in lines if line.dead], [line for line in lines if not line.dead]
    named = (("outbox_dead", dead), ("outbox_pending", pending))
    return tuple(_table(title, some, language) for title, some in named if some)


def _table(title: str, lines: Sequence[NoticeLine], language: Language) -> Table:
    columns = (
        Column("title", label("notice", language)),
        Column("channel", label("channel", language)),
        Column("created_at", label("since", language)),
        Column("attempts", label("attempts", language)),
        Column("error", label("why", language)),
        Column("notice_id", label("id", language)),
    )
    rows = tuple(
        (
            clean(line.title),
            clean(line.channel),
            utc_words(line.created_at),
            str(line.attempts),
            clean(line.error),
            line.notice_id,
        )
        for line in lines
    )
    return Table(phrase(title, language, count=len(rows)), columns, rows)
