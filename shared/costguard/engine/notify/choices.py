"""Which answers stand below a notice: only what would count if somebody gave it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from costguard.cases import Case, CaseStatus
from costguard.domain.actions import Verb
from costguard.domain.answers import AnswerKind, AnswerRef
from costguard.domain.reasons import Reason
from costguard.guards import OF_MACHINES
from costguard.guards.rules.common import Mode
from costguard.guards.rules.idle import SPENT
from costguard.policy.model.policy import Policy
from costguard.ports import Choice
from costguard.report.notices.messages import answer_asks, answer_label
from costguard.report.words.sentences import Language, local_disk

KEPT_FOR = (timedelta(hours=24), timedelta(days=7))
"""How long a click or a link keeps; for any other time there is a window to fill in, and `costguard snooze`."""


def choices_for(
    case: Case,
    policy: Policy,
    channel: str,
    language: Language,
    *,
    step: Verb | None = None,
    held: bool = False,
    only_start: bool = False,
) -> Iterator[Choice]:
    """The answers a notice offers in its channel: only what would count if somebody gave it.

    In Slack all of them, where the policy names the workspace whose clicks count; elsewhere what keeps, which takes no
    more than a link. `step` is what the case waits for, where it is about a machine; `held`: it waits for leave.
    """
    of = AnswerRef(case.case_id, case.decision_id)
    clickable = is_clickable(policy, channel)
    if not clickable and not _is_elsewhere(channel):
        return
    what = case.name or case.subject.native_id
    people = any(owner.people for owner in policy.owners if owner.name == case.owner)
    answered = people or bool(policy.answers.approvers)
    disk = disk_of(case.reason, language) if held else ""
    scarce = str(case.reason.facts.get("scarce", "")) if held else ""
    kinds: list[tuple[AnswerKind, timedelta | None]] = []
    if may_be_started(case, policy) and (answered or not clickable):
        kinds.append((AnswerKind.START, None))
    if not only_start:
        kinds += [(AnswerKind.KEEP, length) for length in KEPT_FOR]
    if clickable and not only_start:
        kinds.append((AnswerKind.KEEP, None))
        if policy.answers.approvers and case.guard in OF_MACHINES:
            kinds.append((AnswerKind.EXCEPT, None))
    if held and (answered or not clickable):
        kinds.append((AnswerKind.APPROVE, None))
    if clickable and not held and step is Verb.STOP and answered:
        kinds.append((AnswerKind.STOP_NOW, None))
    if clickable and case.owner and step is not None and not only_start:
        kinds.append((AnswerKind.NOT_MINE, None))
    for kind, length in kinds:
        asks = answer_asks(kind, what, language, disk, scarce)
        yield Choice(kind, answer_label(kind, length, language), of, length, asks)


def disk_of(reason: Reason, language: Language) -> str:
    """The local disk that a case waits for leave to lose, by its size; empty where it waits for none."""
    size = reason.facts.get("local_disk_gib")
    return local_disk(float(size), language) if isinstance(size, int | float) else ""


def may_be_started(case: Case, policy: Policy) -> bool:
    """Whether its owner may have it started again: stopped by the guard of idle machines, where the policy says so."""
    stopped = case.climbed_at(Verb.STOP) is not None and case.status is not CaseStatus.CLOSED
    return policy.start_again and stopped and case.check != SPENT and case.mode is Mode.ENFORCE


def is_clickable(policy: Policy, channel: str) -> bool:
    """Whether a notice there has buttons: in Slack, where the policy says whose clicks count."""
    return bool(policy.answers.slack_team) and not _is_elsewhere(channel)


def _is_elsewhere(channel: str) -> bool:
    scheme, colon, _ = channel.partition(":")
    return bool(colon) and scheme != "slack"
