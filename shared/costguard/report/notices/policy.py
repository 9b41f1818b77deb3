"""What people are told of the policy itself: that it cannot be used, or that something in it ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from costguard.policy.model.policy import Exemption
from costguard.report.notices.machines import Notice, local_time
from costguard.report.words.sentences import Language, clean, label, phrase

if TYPE_CHECKING:
    from costguard.cases.excepting import ExceptionAsk


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


def exception_asked(
    asked: ExceptionAsk, zone: str, language: Language = Language.EN, *, clickable: bool = False
) -> Notice:
    """Who asks that what is left alone until when, for those who may agree; `clickable`: with a button."""
    until = local_time(asked.until, zone, language)
    fields = (
        (label("owner", language), clean(asked.owner)),
        (label("why", language), clean(asked.reason)),
        (label("rule", language), clean(asked.rule)),
    )
    lines = [phrase("exception_asking_means", language, by=clean(asked.by), count=asked.needed)]
    name = "exception_asking_press" if clickable else "exception_asking_agree"
    lines.append(phrase(name, language, resource=asked.ref_text, until=local_time(asked.ends_at, zone, language)))
    title = phrase("exception_asking", language, by=clean(asked.by), resource=asked.ref_text, until=until)
    return Notice(title, tuple(field for field in fields if field[1]), tuple(lines))


def exception_asks(asked: ExceptionAsk, zone: str, language: Language = Language.EN) -> str:
    """The question before an approver agrees by a button."""
    until = local_time(asked.until, zone, language)
    return phrase("asks_exception", language, resource=asked.ref_text, until=until)


def exception_opened(asked: ExceptionAsk, request: str, zone: str, language: Language = Language.EN) -> Notice:
    """Where the change of the policy is that would except it."""
    until = local_time(asked.until, zone, language)
    fields = ((label("why", language), clean(asked.reason)), (label("exception_request", language), clean(request)))
    title = phrase("exception_opened", language, by=clean(asked.by), resource=asked.ref_text, until=until)
    return Notice(title, fields, (phrase("exception_opened_means", language),))
