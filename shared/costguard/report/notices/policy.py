"""What people are told of the policy itself: that it cannot be used, or that something in it ends."""

from __future__ import annotations

from costguard.policy.model.policy import Exemption
from costguard.report.notices.machines import Notice, local_time
from costguard.report.words.sentences import Language, clean, label, phrase


def undated_notice(year: int, *, language: Language = Language.EN) -> Notice:
    """What is said once a year while the policy in force has no holidays of it."""
    lines = (phrase("holidays_unknown_means", language), phrase("holidays_unknown_fix", language))
    return Notice(phrase("holidays_unknown", language, year=str(year)), (), lines)


def policy_notice(error: str, *, refused: bool, language: Language = Language.EN) -> Notice:
    """The alert for a broken policy; `refused` says that there is no recent good one either."""
    title = phrase("policy_refused" if refused else "policy_broken", language)
    return Notice(title, ((label("why", language), clean(error)),), (phrase("policy_fix", language),))


def exception_ends(exemption: Exemption, zone: str, language: Language = Language.EN) -> Notice:
    """What is left alone until when, and what happens then."""
    resources = exemption.owns.resources
    what = clean(resources[0]) if resources else phrase("exception_of_several", language)
    until = local_time(exemption.expires_at, zone, language)
    fields = (
        (label("owner", language), clean(exemption.owner)),
        (label("why", language), clean(exemption.reason)),
        (label("exception_approver", language), clean(exemption.approver)),
    )
    lines = (phrase("exception_ending_means", language), phrase("exception_ending_fix", language))
    return Notice(phrase("exception_ending", language, resource=what, until=until), fields, lines)
