"""What people are told while the policy cannot be used."""

from __future__ import annotations

from costguard.report.notices.machines import Notice
from costguard.report.words.sentences import Language, clean, label, phrase


def undated_notice(year: int, *, language: Language = Language.EN) -> Notice:
    """What is said once a year while the policy in force has no holidays of it."""
    lines = (phrase("holidays_unknown_means", language), phrase("holidays_unknown_fix", language))
    return Notice(phrase("holidays_unknown", language, year=str(year)), (), lines)


def policy_notice(error: str, *, refused: bool, language: Language = Language.EN) -> Notice:
    """The alert for a broken policy; `refused` says that there is no recent good one either."""
    title = phrase("policy_refused" if refused else "policy_broken", language)
    return Notice(title, ((label("why", language), clean(error)),), (phrase("policy_fix", language),))
