"""What is said of published policies: after publishing, of those that wait, and in their history."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Any

from typing_extensions import assert_never

from costguard.report.json_values import moment
from costguard.report.notices.machines import Notice
from costguard.report.plan.evidence import utc_words
from costguard.report.tables import Column, Table
from costguard.report.words.sentences import Language, clean, phrase

SHORT = 12  # letters of a hash that people are shown
_MOST_TOLD = 8


class PublicationStage(str, Enum):
    """Where a publication stands."""

    IN_FORCE = "in_force"
    NEXT_RUN = "next_run"
    WAITS = "waits"
    WAS_IN_FORCE = "was_in_force"
    NEVER = "never"


class WordCode(str, Enum):
    """What an approver's word came to; the values name the words for it."""

    COUNTS = "word_counts"
    ENOUGH = "word_enough"
    SAID_BEFORE = "word_said_before"
    NOT_NEEDED = "word_not_needed"
    SUPERSEDED = "word_superseded"
    EXPIRED = "word_expired"
    NO_MOMENT = "word_no_moment"
    BROKEN = "word_broken"
    NO_APPROVER = "answer_not_among_approvers"
    NOT_SET_UP = "answer_not_set_up"
    FOREIGN_TEAM = "answer_foreign_team"
    FOREIGN_CHANNEL = "answer_foreign_channel"
    UNKNOWN = "answer_unknown"


@dataclass(frozen=True, slots=True)
class Waiting:
    """What a publication waits for. `until` None: it loosens, and named no moment far enough ahead."""

    digest: str
    seq: int
    by: str
    note: str
    until: datetime | None
    missing: int
    loosened: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """One publication as its history shows it."""

    seq: int
    digest: str
    address: str
    by: str
    at: datetime
    note: str
    rollback: bool
    effective_at: datetime | None
    in_force_at: datetime | None
    loosened: tuple[str, ...]
    loosens: int
    tightens: int
    otherwise: int
    agreed: tuple[str, ...]
    stage: PublicationStage


def waiting_notice(waiting: Waiting, *, language: Language = Language.EN, clickable: bool = False) -> Notice:
    """What people are told once of a policy that was published and does not decide yet; `clickable`: with a button."""
    title = "published_waits" if waiting.loosened else "published_waits_later"
    fields = [("published_by", waiting.by), ("published_note", waiting.note)]
    if waiting.until is not None:
        fields.append(("published_effective", utc_words(waiting.until)))
    if waiting.missing:
        fields.append(("published_missing", str(waiting.missing)))
    fields += [("published_loosened", each) for each in waiting.loosened[:_MOST_TOLD]]
    more = len(waiting.loosened) - _MOST_TOLD
    lines = [phrase("published_more", language, count=more)] if more > 0 else []
    lines.append(phrase("published_meanwhile", language))
    digest = waiting.digest[:SHORT]
    if waiting.loosened and waiting.until is None:
        lines.append(phrase("published_again", language, count=len(waiting.loosened)))
    elif waiting.missing:
        lines.append(phrase("published_press" if clickable else "published_approve", language, digest=digest))
    return Notice(
        phrase(title, language, digest=digest),
        tuple((phrase(name, language), clean(value)) for name, value in fields if value),
        tuple(lines),
    )


def approve_asks(waiting: Waiting, language: Language) -> str:
    """The question before an approval by a button."""
    when = utc_words(waiting.until) if waiting.until is not None else ""
    digest, count = waiting.digest[:SHORT], len(waiting.loosened)
    return phrase("asks_policy", language, digest=digest, seq=waiting.seq, count=count, when=when)


def code_notice(digest: str, code: str, language: Language) -> Notice:
    """What brings an approver, and nobody else, the code that shows their word to be theirs."""
    title = phrase("code_title", language, digest=digest[:SHORT], code=code)
    return Notice(title, (), (phrase("code_line", language),))


def waiting_lines(waiting: Waiting | None, language: Language) -> tuple[str, ...]:
    """What a publication waits for, in sentences."""
    if waiting is None:
        return (phrase("published_now", language),)
    if waiting.until is None:
        return (phrase("published_again", language, count=len(waiting.loosened)),)
    when = utc_words(waiting.until)
    if not waiting.loosened:
        return (phrase("published_later", language, when=when),)
    said = phrase("published_loosens", language, count=len(waiting.loosened), when=when, missing=waiting.missing or "")
    if not waiting.missing:
        return (said,)
    return (said, phrase("published_approve", language, digest=waiting.digest[:SHORT]))


def history_table(entries: Sequence[Entry], language: Language) -> Table:
    """One row a publication, the last one first."""
    keys = ("seq", "at", "by", "hash", "meaning", "state", "note")
    columns = tuple(Column(key, phrase(f"published_{key}", language)) for key in keys)
    return Table(
        phrase("published_history", language), columns, tuple(_row(each, language) for each in reversed(entries))
    )


def history_json(entries: Iterable[Entry], waiting: Waiting | None) -> dict[str, Any]:
    """The document of `costguard policy history --json`."""
    return {
        "schema": 1,
        "publications": [entry_json(each) for each in entries],
        "waits": waiting_json(waiting),
    }


def entry_json(entry: Entry) -> dict[str, Any]:
    """One publication for machines."""
    return {
        "number": entry.seq,
        "hash": entry.digest,
        "address": entry.address,
        "by": entry.by,
        "at": moment(entry.at),
        "note": entry.note,
        "rollback": entry.rollback,
        "effective_at": moment(entry.effective_at),
        "in_force_at": moment(entry.in_force_at),
        "loosens": entry.loosens,
        "loosened": list(entry.loosened),
        "tightens": entry.tightens,
        "otherwise": entry.otherwise,
        "approved_by": list(entry.agreed),
        "state": entry.stage.value,
    }


def waiting_json(waiting: Waiting | None) -> dict[str, Any] | None:
    """What a publication waits for, for machines."""
    if waiting is None:
        return None
    return {
        "hash": waiting.digest,
        "not_before": moment(waiting.until),
        "approvals_missing": waiting.missing,
        "loosened": list(waiting.loosened),
    }


def _row(entry: Entry, language: Language) -> tuple[str, ...]:
    note = phrase("published_back_note", language, note=entry.note) if entry.rollback else clean(entry.note)
    return (
        str(entry.seq),
        utc_words(entry.at),
        clean(entry.by),
        entry.digest[:SHORT],
        f"{entry.loosens}, {entry.tightens}, {entry.otherwise}",
        _stage_words(entry, language),
        note,
    )


def _stage_words(entry: Entry, language: Language) -> str:
    stage = entry.stage
    if stage is PublicationStage.IN_FORCE:
        return phrase("published_in_force", language)
    if stage is PublicationStage.NEXT_RUN:
        return phrase("published_next_run", language)
    if stage is PublicationStage.WAITS:
        return phrase("published_waiting", language)
    if stage is PublicationStage.WAS_IN_FORCE:
        when = utc_words(entry.in_force_at) if entry.in_force_at is not None else ""
        return phrase("published_was_in_force", language, when=when)
    if stage is PublicationStage.NEVER:
        return phrase("published_never", language)
    assert_never(stage)
