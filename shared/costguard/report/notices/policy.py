"""What people are told while the policy cannot be used."""

from __future__ import annotations

from costguard.report.notices.machines import Notice
from costguard.report.words.sentences import Language, clean, label, phrase


def policy_notice(error: str, *, refused: bool, language: Language = Language.EN) -> Notice:
    """The alert for a broken policy; `refused` says that there is no recent good one either."""
    title = phrase("policy_refused" if refused else "policy_broken", language)
    return Notice(title, ((label("why", language), clean(error)),), (phrase("policy_fix", language),))
