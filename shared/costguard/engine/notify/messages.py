"""Notices as the message they travel in, with the answers each of them offers."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from costguard.cases import Case, CaseStatus
from costguard.domain.actions import Verb
from costguard.domain.answers import AnswerKind, AnswerRef
from costguard.domain.refs import ResourceRef
from costguard.engine.ledger.outbox.notice import OutboxNotice
from costguard.guards.rules.common import Mode, Rung
from costguard.planning import Plan, Transition
from costguard.policy.model.policy import Policy
from costguard.ports import Choice, Message, MessagePart
from costguard.report.notices.messages import (
    answer_asks,
    answer_label,
    handed_on_status,
    heading,
    kept_status,
    said_by_all,
    stopped_status,
)
from costguard.report.words.sentences import Language, sentence

KEPT_FOR = (timedelta(hours=24), timedelta(days=7))
"""How long a click or a link keeps; for any other time there is a window to fill in, and `costguard snooze`."""


def letter(notices: Sequence[OutboxNotice], language: Language = Language.EN) -> Message:
    """One message that says all of these, which have one channel and thread; what all of them say is said once."""
    first = notices[0]
    if len(notices) == 1:
        alone = MessagePart(first.decision_id, "", picture=first.picture, choices=first.choices, status=first.status)
        parts = (alone,) if first.picture or first.choices or first.status else ()
        return Message(
            channel=first.channel,
            title=first.title,
            text=first.text,
            fields=first.fields,
            lines=first.lines,
            thread=first.thread,
            notice_id=first.notice_id,
            parts=parts,
        )
    same, same_lines = said_by_all([each.fields for each in notices]), _lines_of_all(notices)
    kinds, hourly = [each.kind for each in notices], [each.hourly for each in notices]
    top = heading(kinds, first.owner, hourly, same, language)
    return Message(
        channel=first.channel,
        title=top.title,
        text="\n\n".join((top.title, *(each.text for each in notices))),
        fields=top.fields,
        lines=same_lines,
        thread=first.thread,
        notice_id=_id_of(notices),
        parts=tuple(
            MessagePart(
                decision_id=each.decision_id,
                title=each.title,
                fields=tuple(field for field in each.fields if field not in same),
                lines=tuple(line for line in each.lines if line not in same_lines),
                picture=each.picture,
                choices=each.choices,
                status=each.status,
            )
            for each in notices
        ),
    )


def _lines_of_all(notices: Sequence[OutboxNotice]) -> tuple[str, ...]:
    return tuple(line for line in notices[0].lines if all(line in each.lines for each in notices))


def _id_of(notices: Sequence[OutboxNotice]) -> str:
    """The same for every attempt to deliver just these."""
    return hashlib.sha256("\n".join(each.notice_id for each in notices).encode()).hexdigest()[:24]


def choices_for(
    case: Case, policy: Policy, channel: str, language: Language, *, step: Verb | None = None, held: bool = False
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
    kinds: list[tuple[AnswerKind, timedelta | None]] = [(AnswerKind.KEEP, length) for length in KEPT_FOR]
    if clickable:
        kinds.append((AnswerKind.KEEP, None))
    if clickable and held and policy.answers.approvers:
        kinds.append((AnswerKind.APPROVE, None))
    may_hasten = any(owner.people for owner in policy.owners if owner.name == case.owner) or policy.answers.approvers
    if clickable and not held and step is Verb.STOP and may_hasten:
        kinds.append((AnswerKind.STOP_NOW, None))
    if clickable and case.owner and step is not None:
        kinds.append((AnswerKind.NOT_MINE, None))
    for kind, length in kinds:
        yield Choice(kind, answer_label(kind, length, language), of, length, answer_asks(kind, what, language))


def is_clickable(policy: Policy, channel: str) -> bool:
    """Whether a notice there has buttons: in Slack, where the policy says whose clicks count."""
    return bool(policy.answers.slack_team) and not _is_elsewhere(channel)


def _is_elsewhere(channel: str) -> bool:
    scheme, colon, _ = channel.partition(":")
    return bool(colon) and scheme != "slack"


def next_step(case: Case, rungs: Sequence[Rung]) -> Verb | None:
    """The verb of the first rung still to come that is no notice. `rungs` is the machine's own ladder."""
    return next((rung.verb for rung in rungs[case.rung :] if rung.verb is not Verb.WARN), None)


def statuses(
    plan: Plan, kept: dict[str, tuple[datetime, str]], zone: str, language: Language
) -> Iterator[tuple[Case, str]]:
    """What the messages about each case that moved in this run should show now.

    `kept` is by resource id until when somebody keeps it, and who.
    """
    for step in plan.transitions:
        case = step.after
        if step.before is None or case.mode is Mode.OBSERVE or not step.before.climbed:
            continue  # nobody was told of it yet
        said = _status(step, kept.get(str(case.subject)), zone, language)
        if said:
            yield case, said


def _status(step: Transition, kept: tuple[datetime, str] | None, zone: str, language: Language) -> str:
    before, case = step.before, step.after
    if before is None or not isinstance(case.subject, ResourceRef):
        return ""
    if case.status is CaseStatus.CLOSED:
        return sentence(case.reason, language)
    if case.status is CaseStatus.SNOOZED and case.snoozed_until is not None:
        until, by = kept or (case.snoozed_until, "")
        return kept_status(until, by, zone, language)
    if case.owner != before.owner:
        return handed_on_status(case.owner, language)
    stopped = case.climbed_at(Verb.STOP)
    if stopped is not None and before.climbed_at(Verb.STOP) is None:
        return stopped_status(stopped, zone, language)
    return ""
