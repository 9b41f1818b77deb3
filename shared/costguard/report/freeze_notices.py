"""What people are told of a launch freeze: that it comes, that it holds, that it is over."""

from __future__ import annotations

from datetime import timedelta
from enum import Enum

from costguard.domain.freeze import LaunchFreeze
from costguard.planning.freeze import FreezeState
from costguard.report.notices import Notice
from costguard.report.words import Language, clean, label, phrase


class FreezeWord(str, Enum):
    """What is said."""

    ANNOUNCED = "announced"
    FROZEN = "frozen"
    THAWED = "thawed"
    CALLED_OFF = "called_off"
    FAILED = "failed"


def freeze_notice(
    word: FreezeWord,
    freeze: LaunchFreeze,
    state: FreezeState,
    wait: timedelta,
    language: Language = Language.EN,
    detail: str = "",
) -> Notice:
    """The notice of one move of a freeze; `detail` is the cloud's own word where it failed."""
    name, target = clean(freeze.name), clean(freeze.target)
    hours = str(round(wait / timedelta(hours=1)))
    title = phrase(f"freeze_{word.value}", language, name=name, target=target, hours=hours, detail=detail)
    why = (label("why", language), phrase("freeze_why", language, budget=clean(state.budget)))
    before = (label("freeze_before", language), ", ".join(map(clean, state.before)))
    begins = word in {FreezeWord.ANNOUNCED, FreezeWord.FROZEN}
    lines = (phrase("freeze_keep", language, name=name),) if begins else ()
    fields = (why, before) if begins else ()
    return Notice(title, tuple(pair for pair in fields if pair[1]), lines, ": " if language is Language.EN else "：")
