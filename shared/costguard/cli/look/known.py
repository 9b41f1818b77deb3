"""Everything that is known of one machine, gathered from the ledger and, if wanted, from a fresh look."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime

from costguard.bootstrap import open_run_context, read_policy
from costguard.cases import Case, CaseStatus, due_at, ladder
from costguard.cases.advance import GraceEnd, plain_time
from costguard.cases.remediation import rungs_told
from costguard.cli.program import CliContext
from costguard.cli.progress import shard_progress
from costguard.domain.actions import Verb
from costguard.domain.errors import InvalidInputError
from costguard.domain.findings import Finding
from costguard.domain.refs import ResourceRef
from costguard.domain.resources import Gap
from costguard.engine.answers.answers import find_case, subject_of
from costguard.engine.guards.registry import runner_of
from costguard.engine.ledger.memory import Memory
from costguard.engine.run.close_reads import known_launches
from costguard.engine.run.scan import Scan
from costguard.guards import OF_MACHINES
from costguard.guards.rules.common import RemediationRule, Rung
from costguard.planning import judge_all
from costguard.policy.model.policy import Policy
from costguard.policy.model.terms import rule_from_terms
from costguard.ports import Target
from costguard.report.notices.machines import Upcoming
from costguard.report.plan.case_history import Happened, History, Snoozed, What
from costguard.report.words.sentences import clean


@dataclass(frozen=True, slots=True)
class SeenNow:
    """What a look at the cloud found of one machine; `finding` None where it was not there."""

    finding: Finding | None
    gaps: tuple[Gap, ...]


def seen_now(here: CliContext, memory: Memory, guard: str, resource: str) -> SeenNow:
    """Look for a resource by its ids or its name; where its region is known only that one is read."""
    policy = read_policy(here.settings)
    subject = _subject_if_known(memory, guard, resource)
    policy, seen = _machines(here, memory, guard, policy, subject)
    gaps = (*seen.gaps, *(gap for shard in seen.facts for gap in shard.gaps))
    now = here.clock.now()
    machines = (fact.instance for shard in seen.facts for fact in shard.instances)
    launches, disowned = known_launches(memory, machines, now), memory.disowned.all()
    found = [
        finding
        for finding in judge_all(policy, seen.facts, now, launches=launches, disowned=disowned)
        if isinstance(finding.subject, ResourceRef)
        and (
            finding.subject == subject if subject is not None else resource in {finding.subject.native_id, finding.name}
        )
    ]
    if len(found) > 1:
        message = f"{resource!r} is ambiguous: {', '.join(sorted(str(one.subject) for one in found))}; give the full id"
        raise InvalidInputError(message)
    return SeenNow(found[0] if found else None, gaps)


def _machines(
    here: CliContext, memory: Memory, guard: str, policy: Policy, subject: ResourceRef | None
) -> tuple[Policy, Scan]:
    """Those that the guard would judge, and by what; only the subject's region unless all of them count."""
    runner = runner_of(guard)
    with (
        open_run_context(here.settings, guard, policy=policy, memory=memory, clock=here.clock, may_act=False) as world,
        shard_progress("Reading") as step,
    ):
        if subject is not None and not runner.whole:
            near = tuple(_narrowed(target, subject) for target in world.targets if target.cloud == subject.cloud)
            world = replace(world, targets=near)  # noqa: PLW2901 - the same place
        return runner.machines(world, step)


def known_of(here: CliContext, memory: Memory, guard: str, resource: str, seen: SeenNow | None) -> History:
    """What the ledger knows of a machine, with what was seen of it now.

    Raises:
        InvalidInputError: nothing is known of it at all.
    """
    finding = seen.finding if seen is not None else None
    subject = finding.subject if finding is not None and isinstance(finding.subject, ResourceRef) else None
    subject = subject or _subject_if_known(memory, guard, resource)
    case = None if subject is None else next(iter(memory.cases.named(str(subject), guard)), None)
    if subject is None or (case is None and finding is None):
        looked = "" if seen is None else ", and it was not seen now"
        advice = "" if seen is not None else "; `--scan` looks at the cloud as well"
        message = f"nothing is known of {clean(resource)!r}: the ledger has no case of it{looked}{advice}"
        raise InvalidInputError(message)
    now = here.clock.now()
    snooze, _ = memory.snoozes.of(str(subject), now)
    earlier = (
        () if case is None else tuple(one for one in memory.cases.closed(f"{case.key}/") if one.case_id != case.case_id)
    )
    return History(
        subject=subject,
        case=case,
        finding=finding,
        happened=tuple(sorted(_happened(case, memory), key=lambda event: event.at)) if case is not None else (),
        upcoming=tuple(_upcoming(case, here)) if case is not None and case.status is not CaseStatus.CLOSED else (),
        snoozed=Snoozed(snooze.until, snooze.by, snooze.reason) if snooze is not None else None,
        earlier=tuple(sorted(earlier, key=lambda one: one.opened_at)),
        gaps=seen.gaps if seen is not None else (),
    )


def _subject_if_known(memory: Memory, guard: str, resource: str) -> ResourceRef | None:
    """By full id, native id or case id.

    Raises:
        InvalidInputError: a native id that several cases have, or an id that is none.
    """
    known = memory.cases.named(resource, guard)
    if ":" not in resource and not known:
        return None
    return find_case(memory, guard, resource).subject if known else subject_of(memory, guard, resource)


def _narrowed(target: Target, subject: ResourceRef) -> Target:
    return replace(target, regions=(subject.region,))


def _happened(case: Case, memory: Memory) -> Iterator[Happened]:
    yield Happened(case.opened_at, What.OPENED)
    for notice in memory.outbox.of_case(case.key, case.opened_at):
        if notice.delivered_at is not None:
            yield Happened(notice.delivered_at, What.TOLD, detail=notice.title, where=notice.channel)
        else:
            why = notice.last_error or notice.state.value
            yield Happened(notice.created_at, What.NOT_TOLD, detail=f"{notice.title} ({why})", where=notice.channel)
    for intent in memory.intents.for_case(case.case_id):
        outcome = intent.outcome.value if intent.outcome is not None else "unknown"
        where = intent.action.resource.native_id
        action = intent.action
        yield Happened(intent.claimed_at, What.CALLED, action.verb, intent.detail, where, outcome, action.action_id)
    for rung in case.climbed:
        if rung.verb is not Verb.WARN:
            yield Happened(rung.at, What.SEEN, rung.verb)
    if case.closed_at is not None:
        yield Happened(case.closed_at, What.CLOSED)


def _upcoming(case: Case, here: CliContext) -> Iterator[Upcoming]:
    """The rungs still to come, each with its earliest moment if nothing speaks against it."""
    policy = read_policy(here.settings)
    grace_end: GraceEnd = policy.calendar.after if policy.calendar is not None else plain_time
    at: datetime = case.since
    rungs = _rungs(case, policy)[case.rung :]
    for place, rung in enumerate(rungs):
        behind = any(each.verb is Verb.STOP for each in rungs[:place])
        at = max(due_at(replace(case, since=at), rung, grace_end, behind_stop=behind), case.since)
        yield Upcoming(rung.verb, at)


def _rungs(case: Case, policy: Policy) -> tuple[Rung, ...]:
    """Its ladder: of a setting as people were told of it, and none where its rule is gone; of a machine its rule's."""
    if case.guard in OF_MACHINES:
        return ladder(policy.rule(case.rule) or rule_from_terms(case.terms), None)
    rules: tuple[RemediationRule, ...] = (*policy.kms_rotation, *policy.network_audit)
    rule = next((rule for rule in rules if rule.name == case.rule), None)
    return () if rule is None else rungs_told(rule, case.terms)
