"""Plans and runs of the guards that mend settings, with the same memory, rails and outbox as any other."""

from __future__ import annotations

import hashlib
import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any, Protocol

from costguard.cases import Announced, Case, CaseStatus, due_at
from costguard.cases.advance import plain_time
from costguard.cases.remediation import remediation_rungs
from costguard.cases.resolve import MAX_FAILURES
from costguard.domain.actions import Action, Verb
from costguard.domain.findings import Finding, Verdict
from costguard.domain.reasons import ReasonCode
from costguard.domain.refs import Shard
from costguard.domain.remediations import Remediation
from costguard.domain.resources import Gap
from costguard.engine.ledger.memory import cap_views, claim_views, notice_views
from costguard.engine.ledger.notices import OutboxNotice
from costguard.engine.notify.choices import choices_for
from costguard.engine.notify.notices import WARNING_HOLDS, Words, just_climbed, zone_of
from costguard.engine.run.run import RunReport, known_accounts, planned_when_due, stop_all, summary
from costguard.engine.run.run_context import RunContext
from costguard.engine.run.scan import cut_at
from costguard.guards.rules.common import Mode, RemediationRule
from costguard.planning import Held, Plan, PlanIndex, RuleLimit
from costguard.planning.remediation import Judged, RemediationInputs, build_remediation_plan, remediation_limit
from costguard.policy.model.ownership import channel_of
from costguard.report.notices.remediations import RemediationFacts, RemediationWord, remediation_notice
from costguard.report.words.sentences import Language

_LOG = logging.getLogger(__name__)
_MOST_VIOLATIONS_LOGGED = 50  # `costguard keys` and `costguard networks` have them all
_NOT_AS_ASKED = {"key": "a key is not as the policy asks", "resource": "a network is not as the policy asks"}
_WAITS_FOR_PEOPLE = frozenset({ReasonCode.OUTCOME_UNKNOWN, ReasonCode.LAST_ADMIN_PATH, ReasonCode.ADMIN_PATH_UNPROVEN})
"""What holds a mend that people were told of, and that only they can lift."""

_SEEN_LATE = frozenset({ReasonCode.KEY_SUCCESSOR_MADE, ReasonCode.KEY_SUCCESSOR_FOREIGN, ReasonCode.KEY_ALIAS_BACK})
"""The same, found by the last look before the call: told once, in the run after that."""

_OVER_TOLD = frozenset(
    {
        ReasonCode.AS_ASKED,
        ReasonCode.PROTECTED_TAG,
        ReasonCode.KEPT_BY_TAG,
        ReasonCode.EXCEPTION,
        ReasonCode.VANISHED,
    }
)


class RemediationLook(Protocol):
    """One look at everything a guard judges: what is to be said of each subject, and which shards answered."""

    @property
    def judged(self) -> Sequence[Judged]:
        """Every finding, with what the policy allows about it."""

    @property
    def shards(self) -> Mapping[Shard, bool]:
        """The shards that answered, by whether absence proves absence there."""

    @property
    def gaps(self) -> Sequence[Gap]:
        """What could not be read."""

    @property
    def closed_accounts(self) -> frozenset[str]:
        """Accounts that the organisation says are closed."""

    @property
    def seen(self) -> int:
        """How many subjects were looked at."""


def plan_remediations(
    world: RunContext,
    run_id: str,
    looked: RemediationLook,
    rules: Sequence[RemediationRule],
    *,
    deadline: datetime | None = None,
    remember: bool = False,
) -> Plan:
    """The plan for what was seen, with memory; nothing is written but, to `remember`, which accounts there are.

    A run, which remembers, waits for what is due within minutes (`nearly_due`); whoever only looks does not.
    """
    plan = partial(_plan_now, world, run_id, looked, rules, remember=remember)
    room = partial(world.memory.caps.room_again, world.guard)
    return planned_when_due(world.clock, plan, room, deadline) if remember else plan()


def _plan_now(
    world: RunContext, run_id: str, looked: RemediationLook, rules: Sequence[RemediationRule], *, remember: bool
) -> Plan:
    memory, now = world.memory, world.clock.now()
    cases = memory.cases.active(world.guard)
    notices = notice_views(memory, cases, now)
    snoozes = memory.snoozes.all()
    return build_remediation_plan(
        RemediationInputs(
            guard=world.guard,
            run_id=run_id,
            now=now,
            policy_digest=world.policy.digest,
            judged=tuple(looked.judged),
            shards=looked.shards,
            rules=tuple(rules),
            cases=cases,
            snoozes={ref: snooze.until for ref, snooze in snoozes.items()},
            kept_at={ref: snooze.at for ref, snooze in snoozes.items()},
            notices=notices,
            claims=claim_views(memory, cases, notices),
            caps=cap_views(memory, world.guard, (rule.name for rule in rules), now),
            closed_accounts=looked.closed_accounts,
            gaps=tuple(looked.gaps),
            stop_all=stop_all(world, enforcing=any(rule.mode is Mode.ENFORCE for rule in rules)),
            grace_end=world.policy.calendar.after if world.policy.calendar is not None else plain_time,
            seen=looked.seen,
            observing=known_accounts(world, looked.shards, remember=remember),
        )
    )


def limit_of(rules: Sequence[RemediationRule], action: Action, seen: int) -> RuleLimit | None:
    """The caps of the action's rule among these; None where none of them says what it was decided by."""
    rule = next((rule for rule in rules if (rule.name, rule.digest) == (action.rule, action.rule_digest)), None)
    return None if rule is None else replace(remediation_limit(rule), seen=seen)


def cut_of(looked: RemediationLook, begin_at: str) -> str:
    """The shard that the next look begins with."""
    return cut_at(looked.gaps, begin_at)


def log_violations(what: str, findings: Iterable[Finding]) -> None:
    """A line for each violation, so that an alarm on the logs can name the key or resource."""
    violations = [finding for finding in findings if finding.verdict is Verdict.VIOLATION]
    for each in violations[:_MOST_VIOLATIONS_LOGGED]:
        facts = {what: str(each.subject), "check": each.check, "reason": each.reason.code.value}
        _LOG.warning(_NOT_AS_ASKED[what], extra={**facts, "rule": each.rule, "owner": each.owner})


def remediation_messages(rules: Sequence[RemediationRule]) -> Words:
    """What people are told of settings, under these rules."""
    return Words(partial(_warning, {rule.name: rule for rule in rules}), _news)


def remediation_figures(report: RunReport, *, seen: str) -> dict[str, Any]:
    """The figures of a run with the verdicts of every check; `seen` is what the number of subjects is called."""
    figures, plan = summary(report), report.plan
    if plan is None:
        return figures
    checks: dict[str, Counter[str]] = {}
    for finding in plan.findings:
        checks.setdefault(finding.check, Counter())[finding.verdict.value] += 1
    figures[seen] = figures.pop("instances_seen")
    return {**figures, "checks": {check: dict(sorted(counted.items())) for check, counted in sorted(checks.items())}}


def _warning(
    rules: Mapping[str, RemediationRule], world: RunContext, index: PlanIndex, action: Action, case: Case
) -> OutboxNotice:
    rule, now = rules.get(case.rule), world.clock.now()
    if rule is None or rule.mode is not Mode.ENFORCE or action.mend is None:
        return _notice(world, index, case, RemediationWord.TOLD, None, action.decision_id)
    grace_end = world.policy.calendar.after if world.policy.calendar is not None else plain_time
    due = due_at(replace(case, since=now, climbed=()), remediation_rungs(rule, action.mend)[-1], grace_end)
    comes = _notice(world, index, case, RemediationWord.COMES, action.mend, action.decision_id, due=due)
    return replace(comes, holds_until=now + WARNING_HOLDS, announced=(Announced(Verb.MEND, due),))


def _news(world: RunContext, index: PlanIndex) -> Iterator[OutboxNotice]:
    """What people should know and no rung depends on: mended, over, or waiting for their word."""
    yield from _refusals(world, index)
    plan = index.plan
    waiting = {held.action.case_id: held for held in plan.held if held.reason.code in _WAITS_FOR_PEOPLE}
    for step in plan.transitions:
        case = step.after
        if case.mode is Mode.OBSERVE or not case.climbed:
            continue  # nobody was told of it yet, so there is nothing to follow up
        if case.status is CaseStatus.CLOSED and just_climbed(step, Verb.MEND):
            mend, action_id = _done(world, case)
            yield _notice(world, index, case, RemediationWord.DONE, mend, f"{case.case_id}-mended", action_id=action_id)
        elif case.status is CaseStatus.CLOSED and case.reason.code in _OVER_TOLD:
            yield _notice(world, index, case, RemediationWord.OVER, None, f"{case.case_id}-closed")
        elif case.case_id in waiting:
            held: Held = waiting[case.case_id]
            notice_id = f"{held.action.decision_id}-held"
            yield _notice(world, index, case, RemediationWord.HELD, held.action.mend, notice_id)
        elif step.before is not None and step.before.reason.code in _SEEN_LATE:
            why = step.before.reason
            notice_id = f"{case.case_id}-{step.before.attempt}-{why.code.value}"
            # about no decision: the next one is still to be made, and a notice of it would count as its intent
            yield _notice(
                world, index, replace(case, reason=why, decision_id=""), RemediationWord.HELD, None, notice_id
            )


def _refusals(world: RunContext, index: PlanIndex) -> Iterator[OutboxNotice]:
    """What clouds refused, in this run or in one that told nobody: once for what was announced, and for the error."""
    called = {action.case_id for action in index.plan.due if action.verb is Verb.MEND}
    for step in index.plan.transitions:
        case = step.after
        if case.case_id in called:
            case = world.memory.cases.get(case.key) or case
        refusal = case.refusal
        if refusal is None or case.status is CaseStatus.CLOSED or not case.climbed:
            continue
        if "passes" in refusal.facts and case.failures < MAX_FAILURES:
            continue
        error = "/".join((refusal.code.value, *(str(refusal.facts.get(word, "")) for word in ("call", "error"))))
        digest = hashlib.sha256(error.encode()).hexdigest()[:12]
        notice_id = f"{case.case_id}-{case.climbed[-1].notice}-refused-{digest}"
        # about no decision: the next one is still to be made, and a notice of it would count as its intent
        told = replace(case, reason=refusal, decision_id="")
        yield _notice(world, index, told, RemediationWord.REFUSED, _done(world, case)[0], notice_id)


def _done(world: RunContext, case: Case) -> tuple[Remediation | None, str]:
    """What was sent for the case last, and the id that an undo names."""
    sent = [intent for intent in world.memory.intents.for_case(case.case_id) if intent.action.mend is not None]
    last = max(sent, key=lambda intent: intent.claimed_at, default=None)
    return (None, "") if last is None else (last.action.mend, last.action.action_id)


def _notice(
    world: RunContext,
    index: PlanIndex,
    case: Case,
    word: RemediationWord,
    mend: Remediation | None,
    notice_id: str,
    *,
    due: datetime | None = None,
    action_id: str = "",
) -> OutboxNotice:
    finding = index.of_checks.get((case.check, case.subject))
    found = finding.reason if finding is not None else None
    now = world.clock.now()
    facts = RemediationFacts(
        word=word,
        subject=case.subject,
        name=case.name,
        owner=case.owner,
        rule=case.rule,
        reason=found if word in {RemediationWord.TOLD, RemediationWord.COMES} else case.reason,
        mend=mend,
        due_at=due,
        action_id=action_id,
        zone=zone_of(world),
    )
    channel = channel_of(case.owner, world.policy)
    comes = word in {RemediationWord.TOLD, RemediationWord.COMES}
    choices = choices_for(case, world.policy, channel, Language(world.language)) if comes else ()
    worded = remediation_notice(facts, Language(world.language))
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
        kind=f"mend_{word.value}",
        choices=tuple(choices),
    )
