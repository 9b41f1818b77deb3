"""What a run tells people, as messages with their answers: warnings that start a grace, and news that start none."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from costguard.cases import Announced, Case, CaseStatus, due_at, ladder
from costguard.cases.advance import GraceEnd, plain_time
from costguard.cases.answering import is_above
from costguard.domain.actions import DESTRUCTIVE, Action, Verb
from costguard.domain.findings import Finding
from costguard.domain.reasons import Reason, ReasonCode
from costguard.domain.refs import ResourceRef
from costguard.engine.ledger.notices import OutboxNotice
from costguard.engine.ledger.starts import STOPPED
from costguard.engine.notify.choices import choices_for, is_clickable
from costguard.engine.notify.exceptions import ending_exceptions
from costguard.engine.notify.rollout import announcements
from costguard.engine.run.run_context import RunContext
from costguard.guards.rules.common import Consent, Mode, Rung, Scarce, barring, leads_to
from costguard.guards.rules.idle import IdleRule
from costguard.planning import Plan, PlanIndex, Transition
from costguard.policy.model.ownership import channel_of
from costguard.policy.model.terms import rule_from_terms
from costguard.report.notices.machines import BarredStep, NoticeFacts, NoticeKind, Upcoming, notice
from costguard.report.notices.messages import (
    handed_on_status,
    kept_status,
    stopped_status,
)
from costguard.report.plan.evidence import picture
from costguard.report.words.sentences import Language, sentence


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


_LOG = logging.getLogger(__name__)
_CLOSINGS_TOLD = frozenset(
    {
        ReasonCode.RECOVERED,
        ReasonCode.RESTARTED,
        ReasonCode.STOP_UNCERTAIN,
        ReasonCode.PROTECTED_TAG,
        ReasonCode.KEPT_BY_TAG,
        ReasonCode.PROTECTED_BY_CLOUD,
        ReasonCode.EXCEPTION,
        ReasonCode.TERMINATED,
    }
)

WARNING_HOLDS = timedelta(hours=1)  # the shortest grace: what it announces still lies ahead when it arrives

_BARS_TOLD = frozenset({ReasonCode.APPROVAL_NEEDED, ReasonCode.LOCAL_DISK, ReasonCode.SCARCE_TYPE})
"""Rails that wait for people: told once, because only they can lift them."""


@dataclass(frozen=True, slots=True)
class Words:
    """What is told of the cases of one kind of subject: the warning of a rung, and the news that no rung depends on.

    News of a case is a reply to what it was told with: `tell` sees to that.
    """

    warning: Callable[[RunContext, PlanIndex, Action, Case], OutboxNotice]
    news: Callable[[RunContext, PlanIndex], Iterator[OutboxNotice]]


def zone_of(world: RunContext) -> str:
    """Where those who read notices live."""
    return world.policy.calendar.zone if world.policy.calendar else "UTC"


def _news(world: RunContext, index: PlanIndex) -> Iterator[OutboxNotice]:
    """What people should know and no rung depends on: stopped, ended, or waiting for their word."""
    yield from announcements(world)
    plan = index.plan
    yield from ending_exceptions(world, plan.findings)
    barred = {item.action.case_id: item for item in plan.held if item.reason.code in _BARS_TOLD}
    unannounced = {
        item.action.case_id
        for item in plan.held
        if item.action.verb is Verb.WARN and item.reason.code is ReasonCode.PROTECTED_BY_CLOUD
    }
    for step in plan.transitions:
        case = step.after
        if case.mode is Mode.OBSERVE or not case.climbed:
            continue  # nobody was told of it yet, so there is nothing to follow up
        if case.status is CaseStatus.CLOSED and case.reason.code in _CLOSINGS_TOLD:
            ended = case.reason.code is ReasonCode.TERMINATED
            asked = world.memory.starts.sent_for(case) if case.reason.code is ReasonCode.RESTARTED else None
            kind = NoticeKind.TERMINATED if ended else NoticeKind.STARTED if asked else NoticeKind.CLOSED
            yield _notice(world, index, case, kind, f"{case.case_id}-closed", by=asked.by if asked else "")
        elif _only_stopped(step, announces_more=case.case_id not in unannounced):
            number = len(case.climbed)
            told = _notice(world, index, case, NoticeKind.STOPPED, f"{case.case_id}-stopped-{number}")
            named = replace(case, decision_id=f"{STOPPED}{number}")  # no decision waits behind it
            offered = choices_for(named, world.policy, told.channel, Language(world.language), only_start=True)
            yield replace(told, choices=tuple(offered))
        elif case.case_id in barred:
            held_ = barred[case.case_id]
            approvable = held_.reason.code is ReasonCode.APPROVAL_NEEDED
            told = _notice(
                world,
                index,
                case,
                NoticeKind.HELD,
                f"{held_.action.decision_id}-held",
                approve=str(case.subject) if approvable else "",
            )
            choices = choices_for(
                case, world.policy, told.channel, Language(world.language), step=Verb.WARN, held=approvable
            )
            yield replace(told, choices=tuple(choices))


def _warning(world: RunContext, index: PlanIndex, action: Action, case: Case) -> OutboxNotice:
    stopped = case.climbed_at(Verb.STOP) is not None
    kind = NoticeKind.STOPPED if stopped else NoticeKind.WARNED
    told = _notice(world, index, case, kind, action.decision_id)
    rungs = _rungs(index, case, rule_from_terms(case.terms))
    comes = next_step(case, rungs) if told.kind == kind.value else None
    choices = choices_for(case, world.policy, told.channel, Language(world.language), step=comes or Verb.WARN)
    return replace(told, holds_until=told.created_at + WARNING_HOLDS, choices=tuple(choices))


def _notice(
    world: RunContext, index: PlanIndex, case: Case, kind: NoticeKind, notice_id: str, approve: str = "", by: str = ""
) -> OutboxNotice:
    finding = index.findings.get(case.subject)
    now, channel = world.clock.now(), channel_of(case.owner, world.policy)
    rule = _rule_of(world, case)
    rate = finding.rate if finding else None
    by_approver = is_above(rate.money if rate else None, rule.limits.local_disk_approver_above)
    promises = case.status is not CaseStatus.CLOSED and kind is not NoticeKind.HELD  # what waits for leave has no date
    facts = NoticeFacts(
        kind=kind,
        resource=case.subject,
        reason=case.reason if kind in _OF_THE_CASE else _why(finding, case),
        instance_type=finding.instance_type if finding else "",
        name=case.name,
        owner=case.owner,
        rule=case.rule,
        evidence=finding.evidence if finding and kind is NoticeKind.WARNED else None,
        rate=rate,
        saving=index.savings.get(case.case_id),
        upcoming=tuple(_upcoming(world, index, case, now)) if promises else (),
        barred=_barred(world, index, case) if promises else None,
        snapshots=_snapshots(world, case),
        approve=approve,
        by_approver=by_approver,
        asks=_asks(rule, case, index),
        scarce=_asked_of_type(rule, case, index),
        zone=zone_of(world),
        clickable=is_clickable(world.policy, channel),
        by=by,
    )
    worded = notice(facts, Language(world.language))
    return OutboxNotice(
        notice_id=notice_id,
        decision_id=case.decision_id,
        case_key=case.key,
        channel=channel,
        title=worded.title,
        text=worded.text,
        fields=worded.fields,
        lines=worded.lines,
        created_at=now,
        next_attempt_at=now,
        run_id=index.plan.run_id,
        owner=case.owner,
        case_id=case.case_id,
        kind=kind.value if facts.upcoming else f"{kind.value}_only",
        picture=picture(facts.evidence),
        hourly=facts.rate.money if facts.rate else None,
        announced=tuple(Announced(step.verb, step.not_before) for step in facts.upcoming if step.not_before),
    )


_OF_THE_CASE = frozenset({NoticeKind.CLOSED, NoticeKind.HELD, NoticeKind.STARTED})


def _snapshots(world: RunContext, case: Case) -> tuple[str, ...]:
    """Ids of the copies made for this case: what a machine can be brought back from."""
    intents = world.memory.intents.for_case(case.case_id) if case.climbed_at(Verb.SNAPSHOT) else ()
    made = (i.receipt.native_id for i in intents if i.action.verb is Verb.SNAPSHOT and i.receipt is not None)
    return tuple(native_id for ids in made for native_id in ids.split(",") if native_id)


def _why(finding: Finding | None, case: Case) -> Reason:
    return finding.reason if finding is not None and case.climbed_at(Verb.STOP) is None else case.reason


def _upcoming(world: RunContext, index: PlanIndex, case: Case, now: datetime) -> Iterator[Upcoming]:
    """The rungs still to come, each with its earliest moment if nothing speaks against it.

    None where a local disk, or a scarce type, stands in the way: a date is a promise, and without leave nothing will
    follow. Nor does anything that a protection at the cloud bars, and what would only lead there.
    """
    rule = _rule_of(world, case)
    if _loses_disk(case, index) and rule.limits.local_disk is not Consent.LOSE:
        return
    if _risks(case, index, "scarce_type") and rule.limits.scarce is not Scarce.STOP:
        return
    grace_end: GraceEnd = world.policy.calendar.after if world.policy.calendar else plain_time
    at = now if case.decision_id else case.since
    barred = _barred(world, index, case)
    rungs = _rungs(index, case, rule)[case.rung :]
    for place, rung in enumerate(rungs):
        if rung.verb is Verb.WARN:
            continue
        if barred is not None and leads_to([each.verb for each in rungs[place:]]) is barred.verb:
            return
        behind = case.climbed_at(Verb.STOP) is not None or any(each.verb is Verb.STOP for each in rungs[:place])
        told = replace(case, since=at, climbed=())  # this notice names its own moments
        over, at = grace_end(at, rung.after), due_at(told, rung, grace_end, behind_stop=behind)
        yield Upcoming(rung.verb, at, moved=at > over)


def _loses_disk(case: Case, index: PlanIndex) -> bool:
    return _risks(case, index, "local_disk_lost")


def _risks(case: Case, index: PlanIndex, what: str) -> bool:
    saving = index.savings.get(case.case_id)
    return saving is not None and what in saving.risks and case.climbed_at(Verb.STOP) is None


def _asks(rule: IdleRule, case: Case, index: PlanIndex) -> bool:
    """Whether a step that the rule has is done only with leave to lose the local disk."""
    harms = any(step.verb in DESTRUCTIVE for step in rule.ladder)
    return harms and _loses_disk(case, index) and rule.limits.local_disk is Consent.ASK


def _asked_of_type(rule: IdleRule, case: Case, index: PlanIndex) -> str:
    """The type that a stop waits for leave to give up; empty where it asks for none."""
    finding, harms = index.findings.get(case.subject), any(step.verb in DESTRUCTIVE for step in rule.ladder)
    asked = harms and rule.limits.scarce is Scarce.ASK and _risks(case, index, "scarce_type")
    return finding.instance_type if asked and finding is not None else ""


def _barred(world: RunContext, index: PlanIndex, case: Case) -> BarredStep | None:
    """The first step still to come that a protection at the cloud keeps from being done, and which."""
    protections = index.protections.get(case.subject, ())
    rule = _rule_of(world, case)
    for rung in _rungs(index, case, rule)[case.rung :] if protections else ():
        by = barring(protections, rung.verb, rule.termination_protection_bars)
        if rung.verb in DESTRUCTIVE and by:
            return BarredStep(rung.verb, by)
    return None


def _rungs(index: PlanIndex, case: Case, rule: IdleRule) -> tuple[Rung, ...]:
    """The machine's own ladder: what cannot stop is told of no stop."""
    return rule.rungs(stoppable=case.subject not in index.unstoppable)


def _rule_of(world: RunContext, case: Case) -> IdleRule:
    return world.policy.rule(case.rule) or rule_from_terms(case.terms)


def _only_stopped(step: Transition, *, announces_more: bool) -> bool:
    """Whether a stop is news by itself: no notice follows it, or what that would announce is barred at the cloud."""
    if not announces_more:
        return step.after.climbed[-1].verb is Verb.STOP
    return just_climbed(step, Verb.STOP) and not _warns_next(step.after)


def just_climbed(step: Transition, verb: Verb) -> bool:
    """Whether a rung of this kind was confirmed in this very run."""
    before = len(step.before.climbed) if step.before is not None else 0
    return any(rung.verb is verb for rung in step.after.climbed[before:])


def _warns_next(case: Case) -> bool:
    rungs = ladder(rule_from_terms(case.terms), None)
    return case.rung < len(rungs) and rungs[case.rung].verb is Verb.WARN


INSTANCE_WORDS = Words(_warning, _news)
