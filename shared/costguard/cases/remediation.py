"""The life of a violation that a changed setting mends: a key's rotation, a rule of a group, an address. Pure.

    opened → noticed (delivered) → mended

One rung a run. A mend is called once: what came of it is found by looking, and where that does not tell, a person
decides. Whatever changes about the violation, the rule or the mend itself begins the wait anew, with a new notice.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from costguard.cases.advance import GraceEnd, due_at, plain_time
from costguard.cases.case import (
    Announced,
    Case,
    CaseStatus,
    CaseStep,
    Phase,
    climbed,
    closed,
    decision_id,
    held,
    kept_since_told,
    tried_again,
)
from costguard.cases.resolve import MAX_FAILURES, is_fresh, notice_resolved
from costguard.domain.actions import Outcome, Verb
from costguard.domain.findings import Finding, Verdict
from costguard.domain.reasons import Reason, ReasonCode
from costguard.domain.refs import ResourceRef
from costguard.domain.remediations import Remediation
from costguard.guards.rules.common import Mode, RemediationRule, Rung

TRY_AGAIN = timedelta(days=1)  # what a cloud refuses five times in a row is then tried this often

_MOVING = frozenset({"version", "note"})
"""Parameters that change whenever anything around the mend does: no new decision follows from them."""


@dataclass(frozen=True, slots=True)
class RemediationSeen:
    """All that one run saw about the subject of a case.

    `finding` is None when no verdict was reached on the subject. `mend` is what the rule allows about it, None where it
    allows nothing; `barred`: something stands in its way now. `shard_complete` says that absence proves absence. The
    rest is as in `Seen`.
    """

    now: datetime
    rule: RemediationRule | None
    finding: Finding | None
    mend: Remediation | None
    shard_read: bool
    shard_complete: bool
    account_closed: bool = False
    snoozed_until: datetime | None = None
    kept_at: datetime | None = None
    notice_delivered_at: datetime | None = None
    announced: tuple[Announced, ...] = ()
    notice_dead: bool = False
    notice_late: bool = False
    intent_written: bool = False
    last_outcome: Outcome | None = None
    barred: bool = False


def remediation_terms(rule: RemediationRule, mend: Remediation | None) -> str:
    """What people were told would be done, and by which rule; anything else needs a notice of its own."""
    said = None
    if mend is not None:
        kept = {name: value for name, value in mend.parameters.items() if name not in _MOVING}
        said = {"kind": mend.kind.value, "subject": str(mend.subject), "parameters": kept}
    return json.dumps({"rule": rule.digest, "mend": said}, sort_keys=True, separators=(",", ":"))


def remediation_rungs(rule: RemediationRule, mend: object | None) -> tuple[Rung, ...]:
    """The ladder: people are told, and where the policy allows something about it, that follows after the wait."""
    told = Rung(Verb.WARN, timedelta(0))
    return (told,) if mend is None else (told, Rung(Verb.MEND, rule.wait))


def rungs_told(rule: RemediationRule, terms: str) -> tuple[Rung, ...]:
    """The ladder of a case by what people were told (`remediation_terms`)."""
    return remediation_rungs(rule, json.loads(terms)["mend"])


def advance_remediation(case: Case | None, seen: RemediationSeen, grace_end: GraceEnd = plain_time) -> CaseStep:
    """Where a case stands after what was seen; at most one rung on."""
    if case is None or case.status is CaseStatus.CLOSED:
        return _opening(seen)
    ended = _ending(case, seen)
    if ended is not None:
        done = climbed(case, Verb.MEND, seen.now) if ended.code is ReasonCode.MENDED else case
        return CaseStep(closed(done, ended, seen.now))
    blind = _blind(case, seen)
    if blind is not None:
        return CaseStep(held(case, blind))
    if case.phase is not Phase.WAITING:
        return _resolved(case, seen)
    case = _on_present_terms(case, seen)
    if seen.snoozed_until is not None:
        return CaseStep(_snoozed(case, seen.snoozed_until))
    if case.snoozed_until is not None or kept_since_told(case, seen.kept_at):
        case = _begun_anew(case, seen.now)
    return _waiting(case, seen, grace_end)


def _opening(seen: RemediationSeen) -> CaseStep:
    finding, rule = seen.finding, seen.rule
    if finding is None or rule is None or not seen.shard_complete or seen.snoozed_until is not None:
        return CaseStep(None)
    if finding.verdict is not Verdict.VIOLATION or not isinstance(finding.subject, ResourceRef):
        return CaseStep(None)
    if rule.mode is Mode.OBSERVE and seen.mend is None:
        return CaseStep(None)  # nobody is told and nothing would be done: the finding itself says it all
    name = f"{finding.guard}/{finding.check}/{finding.subject}/{finding.run_epoch}/{seen.now.isoformat()}"
    case = Case(
        case_id=hashlib.sha256(name.encode()).hexdigest()[:16],
        guard=finding.guard,
        check=finding.check,
        rule=rule.name,
        rule_digest=rule.digest,
        terms=remediation_terms(rule, _promised(seen)),
        mode=rule.mode,
        subject=finding.subject,
        run_epoch=finding.run_epoch,
        owner=finding.owner,
        name=finding.name,
        status=CaseStatus.OPEN,
        phase=Phase.WAITING,
        rung=0,
        opened_at=seen.now,
        since=seen.now,
        reason=Reason(ReasonCode.OPENED),
    )
    return _waiting(case, seen, plain_time)


def _ending(case: Case, seen: RemediationSeen) -> Reason | None:
    """Why the case is over, if it is. Nothing unseen ends a case but the organisation's own word."""
    if seen.account_closed:
        return Reason(ReasonCode.VANISHED, {"account": case.subject.account})
    if not seen.shard_complete:
        return None
    if _sent(case, seen) and _took_effect(case, seen):
        return Reason(ReasonCode.MENDED)
    if case.phase is not Phase.WAITING:
        return None  # an action under way is resolved before anything is concluded from rules or findings
    if seen.finding is None:
        return Reason(ReasonCode.VANISHED)
    if seen.rule is None:
        return Reason(ReasonCode.RULE_GONE, {"rule": case.rule})
    if seen.rule.mode is not case.mode:
        return Reason(ReasonCode.MODE_CHANGED, {"mode": seen.rule.mode.name.lower()})
    if seen.finding.verdict is Verdict.EXEMPT or seen.finding.reason.code is ReasonCode.NET_UNATTACHED_YET:
        return seen.finding.reason  # of an address whose count began anew, which is used again: it is told of anew
    if seen.finding.verdict is Verdict.COMPLIANT:
        return Reason(ReasonCode.AS_ASKED)
    return None


def _sent(case: Case, seen: RemediationSeen) -> bool:
    """Whether a mend was claimed in an earlier run and may have reached the cloud."""
    return _verb(case) is Verb.MEND and seen.intent_written and seen.last_outcome is not Outcome.REFUSED


def _took_effect(case: Case, seen: RemediationSeen) -> bool:
    """The subject is gone, or what the mend was to change is no longer found so. The unmeasured proves nothing."""
    if seen.finding is None or seen.rule is None:
        return seen.finding is None
    if seen.finding.verdict is Verdict.VIOLATION:
        return seen.rule.digest == case.rule_digest and remediation_terms(seen.rule, seen.mend) != case.terms
    return seen.finding.verdict in {Verdict.COMPLIANT, Verdict.EXEMPT}


def _verb(case: Case) -> Verb | None:
    """What is under way, if anything is: the first rung tells people, the second mends."""
    if case.phase is Phase.WAITING:
        return None
    return Verb.WARN if case.rung == 0 else Verb.MEND


def _blind(case: Case, seen: RemediationSeen) -> Reason | None:
    if not seen.shard_read:
        return Reason(ReasonCode.ACCOUNT_UNREAD, {"shard": str(case.subject.shard)})
    if not seen.shard_complete:
        return Reason(ReasonCode.SHARD_INCOMPLETE, {"shard": str(case.subject.shard)})
    return None


def _resolved(case: Case, seen: RemediationSeen) -> CaseStep:
    """Settle what was claimed in an earlier run, from what can be seen now; nothing is ever sent twice."""
    if _verb(case) is Verb.WARN:
        after = notice_resolved(case, seen)
    elif not seen.intent_written:
        after = case if is_fresh(case, seen) else tried_again(case, ReasonCode.NOT_TAKEN_EFFECT)
    elif is_fresh(case, seen):
        after = case
    else:
        after = held(case, Reason(ReasonCode.OUTCOME_UNKNOWN, {"verb": Verb.MEND.value}))
    if after.phase is Phase.WAITING and seen.snoozed_until is not None:
        after = _snoozed(after, seen.snoozed_until)
    return CaseStep(after)


def _on_present_terms(case: Case, seen: RemediationSeen) -> Case:
    """The case under the rule, the mend and the version as they are now; where one changed, from its first rung.

    What people were told while something stood in the way of it is no notice of what could be done once that is gone.
    What they were told before something came in its way stays told.
    """
    rule, finding = seen.rule, seen.finding
    if rule is None or finding is None or finding.verdict is not Verdict.VIOLATION:
        return case  # what is not measured says nothing of what should be done
    terms, is_same = remediation_terms(rule, _promised(seen)), finding.run_epoch == case.run_epoch
    if is_same and terms == case.terms:
        return case
    if is_same and case.rung > 0 and seen.barred and remediation_terms(rule, seen.mend) == case.terms:
        return case
    moved = replace(case, rule=rule.name, rule_digest=rule.digest, terms=terms, run_epoch=finding.run_epoch)
    return _begun_anew(moved, seen.now)


def _promised(seen: RemediationSeen) -> Remediation | None:
    """What a notice of now would say is going to be done."""
    return None if seen.barred else seen.mend


def _begun_anew(case: Case, now: datetime) -> Case:
    return replace(
        case,
        rung=0,
        climbed=(),
        since=now,
        attempt=case.attempt + 1,
        failures=0,
        refusal=None,
        refused_at=None,
        snoozed_until=None,
        decision_id="",
    )


def _snoozed(case: Case, until: datetime) -> Case:
    reason = Reason(ReasonCode.SNOOZED, {"until": until.isoformat(timespec="minutes")})
    return replace(case, status=CaseStatus.SNOOZED, snoozed_until=until, reason=reason)


def _waiting(case: Case, seen: RemediationSeen, grace_end: GraceEnd) -> CaseStep:
    rule, finding = seen.rule, seen.finding
    if rule is None or finding is None:
        return CaseStep(case)
    if finding.verdict is not Verdict.VIOLATION:
        facts = {**finding.reason.facts, "cause": finding.reason.code.value}
        return CaseStep(held(case, Reason(ReasonCode.UNMEASURED, facts)))
    rungs = remediation_rungs(rule, seen.mend)
    if case.rung >= len(rungs):
        return CaseStep(replace(case, status=CaseStatus.OPEN, reason=Reason(ReasonCode.LADDER_DONE)))
    if case.failures >= MAX_FAILURES and not _may_be_granted_by_now(case, seen.now):
        return CaseStep(held(case, _failed(case)))
    rung = rungs[case.rung]
    due = due_at(case, rung, grace_end)
    said: dict[str, str | int | float] = {"verb": rung.verb.value}
    if seen.now < due:
        waits = Reason(ReasonCode.WAITING, {**said, "due": due.isoformat(timespec="minutes")})
        return CaseStep(replace(case, status=CaseStatus.OPEN, reason=waits))
    ready = replace(case, status=CaseStatus.OPEN, reason=Reason(ReasonCode.WAITING, said))
    if case.mode is Mode.OBSERVE and rung.verb is Verb.WARN:
        # a rehearsed notice: nothing is sent, the rehearsal goes on so that people see what would follow
        return CaseStep(climbed(ready, Verb.WARN, seen.now), Verb.WARN)
    return CaseStep(replace(ready, decision_id=decision_id(ready)), rung.verb)


def _may_be_granted_by_now(case: Case, now: datetime) -> bool:
    """Whether a call that its cloud refused is tried again: once a day, for people grant what is missing."""
    return case.refused_at is not None and now - case.refused_at >= TRY_AGAIN


def _failed(case: Case) -> Reason:
    """Why it is not tried for now: what the cloud refused it for, as far as it did."""
    if case.refusal is None:
        return Reason(ReasonCode.NOT_TAKEN_EFFECT, {"failures": case.failures})
    return replace(case.refusal, facts={**case.refusal.facts, "failures": case.failures})
