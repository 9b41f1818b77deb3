"""What people are told of a launch freeze: that it comes, that it holds, that it is over."""

from __future__ import annotations

from datetime import timedelta
from enum import Enum

from costguard.domain.actions import LaunchFreeze
from costguard.guards.budget.judge import BudgetStatus
from costguard.guards.rules.idle import percent_words
from costguard.planning.freeze import FreezeState
from costguard.report.budget.notices import spent_words
from costguard.report.notices.machines import Notice
from costguard.report.words.sentences import Language, clean, label, phrase


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
    status: BudgetStatus | None,
    wait: timedelta,
    language: Language = Language.EN,
    detail: str = "",
) -> Notice:
    """The notice of one move of a freeze; `detail` is the cloud's own word where it failed.

    `status` is where the budget that asks for it stands now, None where none does.
    """
    name, target = clean(freeze.name), clean(freeze.target)
    hours = str(round(wait / timedelta(hours=1)))
    title = phrase(f"freeze_{word.value}", language, name=name, target=target, hours=hours, detail=detail)
    before = (label("freeze_before", language), ", ".join(map(clean, state.before)))
    begins = word in {FreezeWord.ANNOUNCED, FreezeWord.FROZEN}
    lines = (phrase("freeze_keep", language, name=name),) if begins else ()
    key = "why" if begins else "freeze_was"
    why = (label(key, language), phrase(f"freeze_{key.removeprefix('freeze_')}", language, **_begun_at(state)))
    now = (label("budget_spent", language), _spent(status, language))
    fields = (why, now, before) if begins else (why, now)
    return Notice(title, tuple(pair for pair in fields if pair[1]), lines, ": " if language is Language.EN else "：")


def _begun_at(state: FreezeState) -> dict[str, str]:
    facts = {"budget": clean(state.budget)}
    if state.at is not None and state.amount is not None:
        facts |= {"at": percent_words(state.at), "amount": str(state.amount)}
    return facts


def _spent(status: BudgetStatus | None, language: Language) -> str:
    """What is spent now, of which budget and in which period; empty where nobody knows."""
    if status is None or status.period is None or status.spent is None:
        return ""
    words = spent_words(status, status.spent, language)
    return phrase("freeze_spent", language, budget=clean(status.rule.name), period=status.period.key, words=words)
