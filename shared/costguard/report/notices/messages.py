"""Several notices as one message: its heading, what they cost together, and once what is the same in all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from typing_extensions import assert_never

from costguard.domain.answers import AnswerKind
from costguard.domain.money import Money, totals
from costguard.report.notices.machines import NoticeKind, local_time
from costguard.report.words.sentences import Language, clean, label, phrase

_HOURS_A_DAY = 24
_DAY = timedelta(days=1)
_ONLY = "_only"  # what the kind of a notice ends in behind which nothing comes by itself
_HEADINGS = {
    frozenset({NoticeKind.WARNED.value}): "letter_warned",
    frozenset({NoticeKind.WARNED.value, NoticeKind.WARNED.value + _ONLY}): "letter_idle",
    frozenset({NoticeKind.WARNED.value + _ONLY}): "letter_idle",
    frozenset({NoticeKind.STOPPED.value}): "letter_stopped",
    frozenset({"mend_comes"}): "letter_mends",
    frozenset({"mend_done"}): "letter_mended",
}

Field = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Heading:
    """The top of a message about several things."""

    title: str
    fields: tuple[Field, ...]


def heading(
    kinds: Sequence[str], owner: str, hourly: Sequence[Money | None], same: Sequence[Field], language: Language
) -> Heading:
    """What is above the parts: how many of which kind, whose, what they cost together, and `same`, true of each."""
    word = _HEADINGS.get(frozenset(kinds), "letter_mixed")
    title = phrase(word, language, count=len(kinds), owner=clean(owner))
    known = [money.times(_HOURS_A_DAY) for money in hourly if money is not None]
    if not known:
        return Heading(title, tuple(same))
    daily = " + ".join(str(money) for money in totals(known))
    unpriced = len(hourly) - len(known)
    said = phrase("letter_cost_partly" if unpriced else "letter_cost", language, cost=daily, unpriced=unpriced)
    return Heading(title, ((label("cost", language), said), *same))


def said_by_all(fields: Sequence[Sequence[Field]]) -> tuple[Field, ...]:
    """The fields that every notice has, in the order of the first."""
    others = [frozenset(each) for each in fields[1:]]
    return tuple(field for field in (fields[0] if fields else ()) if all(field in each for each in others))


def answer_label(kind: AnswerKind, length: timedelta | None, language: Language) -> str:
    """What stands on a button: a few words."""
    match kind:
        case AnswerKind.KEEP:
            if length is None:
                return phrase("answer_keep_until", language)
            if length % _DAY or length <= _DAY:
                return phrase("answer_keep_hours", language, hours=int(length / timedelta(hours=1)))
            return phrase("answer_keep_days", language, days=length.days)
        case AnswerKind.STOP_NOW:
            return phrase("answer_stop_now", language)
        case AnswerKind.APPROVE:
            return phrase("answer_approve", language)
        case AnswerKind.NOT_MINE:
            return phrase("answer_not_mine", language)
        case AnswerKind.START:
            return phrase("answer_start", language)
        case AnswerKind.EXCEPT:
            return phrase("answer_except", language)
        case _:
            assert_never(kind)


def answer_asks(kind: AnswerKind, what: str, language: Language, disk: str = "", scarce: str = "") -> str:
    """The question before an answer that cannot be taken back; empty for one that can.

    `disk` is what is lost by it, `scarce` the type that may not start again.
    """
    if kind in {AnswerKind.KEEP, AnswerKind.EXCEPT}:
        return ""
    return phrase(f"asks_{kind.value}", language, what=clean(what), disk=disk, scarce=clean(scarce))


def kept_status(until: datetime, by: str, zone: str, language: Language) -> str:
    """That somebody keeps it, and until when."""
    return phrase("status_kept", language, until=local_time(until, zone, language), by=clean(by))


def stopped_status(at: datetime, zone: str, language: Language) -> str:
    """That it was stopped, and when that was seen."""
    return phrase("status_stopped", language, at=local_time(at, zone, language))


def handed_on_status(owner: str, language: Language) -> str:
    """That it is somebody else's now."""
    return phrase("status_handed_on", language, owner=clean(owner))
