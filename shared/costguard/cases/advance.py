"""One step of a case: what it was, what was seen, what it is now and what it wants done."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Protocol

from costguard.cases.case import (
    Case,
    CaseStatus,
    CaseStep,
    Phase,
    SubjectSnapshot,
    climbed,
    closed,
    decision_id,
    held,
    kept_since_told,
    ladder,
    uncopied,
)
from costguard.cases.resolve import (
    MAX_FAILURES,
    is_fresh,
    resolved,
    started_again,
    stop_is_uncertain,
    stopped_by_us,
    under_way,
)
from costguard.domain.actions import Verb
from costguard.domain.findings import Verdict
from costguard.domain.reasons import Reason, ReasonCode
from costguard.domain.resources import Instance, InstanceState
from costguard.guards.rules.common import Bars, Mode, Rung, barring, leads_to, protections_of
from costguard.guards.rules.idle import SPENT
from costguard.policy.diff.idle import loosens
from costguard.policy.model.terms import rule_from_terms, terms


class GraceEnd(Protocol):
    """When a wait has passed: plain time, or working time of a calendar."""

    def __call__(self, start: datetime, duration: timedelta, /, *, first_stop: bool = False) -> datetime:
        """The end of `duration` from `start` on; with `first_stop` the first moment from then on that suits one."""


def plain_time(start: datetime, duration: timedelta, /, *, first_stop: bool = False) -> datetime:
    """A wait by the clock on the wall; every hour suits."""
    del first_stop
    return start + duration


def advance(case: Case | None, seen: SubjectSnapshot, grace_end: GraceEnd = plain_time) -> CaseStep:
    """Where a case stands after what was seen; at most one rung on."""
    if case is None or case.status is CaseStatus.CLOSED:
        return _opening(seen)
    ended = _ending(case, seen)
    if ended is not None:
        return CaseStep(closed(_with_request(case, ended, seen.instance), ended, seen.now))
    blind = _blind(case, seen)
    if blind is not None:
        return CaseStep(held(case, blind))
    if case.phase is not Phase.WAITING:
        return _heeding(resolved(case, seen), seen)
    case = _under_current_owner(_under_current_rule(case, seen), seen)
    if seen.snoozed_until is not None:
        return CaseStep(_snoozed(case, seen, seen.snoozed_until))
    if case.snoozed_until is not None or kept_since_told(case, seen.kept_at):
        case = _restarted_wait(case, seen)
    return _waiting(case, seen, grace_end)


def _heeding(step: CaseStep, seen: SubjectSnapshot) -> CaseStep:
    """What an action under way left unheeded until it was resolved: the owner's use and word."""
    case = step.case
    if case is None or seen.instance is None:
        return step
    if case.phase is not Phase.WAITING:
        # a snooze may end before the action does, and the wait begins anew all the same
        unheard = seen.snoozed_until is not None and not is_fresh(case, seen)
        return replace(step, case=replace(case, snoozed_until=seen.snoozed_until)) if unheard else step
    ended = _judged_over(case, seen, seen.instance)
    if ended is not None:
        return CaseStep(closed(case, ended, seen.now))
    barred = _barred_anew(case, seen)
    return (barred or step) if seen.snoozed_until is None else CaseStep(_snoozed(case, seen, seen.snoozed_until))


def _snoozed(case: Case, seen: SubjectSnapshot, until: datetime) -> Case:
    reason = Reason(ReasonCode.SNOOZED, {"until": until.isoformat(timespec="minutes")})
    if seen.finding is not None and seen.finding.reason.facts.get("until") == reason.facts["until"]:
        reason = seen.finding.reason  # a Keep by tag, which is no later than that of the ledger
    return replace(case, status=CaseStatus.SNOOZED, snoozed_until=until, reason=reason)


def due_at(case: Case, rung: Rung, grace_end: GraceEnd = plain_time, *, behind_stop: bool = False) -> datetime:
    """When the current rung's wait is over: never before the moment that the delivered notice named for it.

    A first stop comes at a time that suits one. `behind_stop`: a stop comes before this rung that is not climbed yet.
    """
    at = no_earlier_than_announced(case, rung.verb, grace_end(case.since, rung.after))
    return grace_end(at, _NO_WAIT, first_stop=True) if is_first_stop(case, rung.verb) and not behind_stop else at


_NO_WAIT = timedelta(0)


def is_first_stop(case: Case, verb: Verb) -> bool:
    """Whether this step is the first that takes the machine away from people."""
    return verb in {Verb.STOP, Verb.TERMINATE} and case.climbed_at(Verb.STOP) is None


def not_yet(case: Case, verb: Verb, over: datetime, now: datetime, grace_end: GraceEnd) -> Reason | None:
    """Why the step is not taken now whose wait ends at `over`: what was announced, or the hour of a first stop."""
    at, unsuited = max(no_earlier_than_announced(case, verb, over), now), False
    if is_first_stop(case, verb):
        unsuited = grace_end(now, _NO_WAIT, first_stop=True) > now
        at = grace_end(at, _NO_WAIT, first_stop=True)
    if at <= now:
        return None
    code = ReasonCode.FIRST_STOP_WAITS if unsuited and over <= now else ReasonCode.WAITING
    return Reason(code, {"verb": verb.value, "due": at.isoformat(timespec="minutes")})


def no_earlier_than_announced(case: Case, verb: Verb, at: datetime) -> datetime:
    """`at`, or what was announced where that is later: a calendar or a holiday that changed brings nothing forward."""
    named = case.announced_for(verb)
    return at if named is None else max(at, named)


def _opening(seen: SubjectSnapshot) -> CaseStep:
    finding, rule, instance = seen.finding, seen.rule, seen.instance
    if finding is None or rule is None or instance is None or not seen.shard_complete:
        return CaseStep(None)
    if finding.verdict is not Verdict.VIOLATION or seen.snoozed_until is not None:
        return CaseStep(None)
    name = f"{finding.guard}/{finding.check}/{instance.ref}/{instance.run_epoch}/{seen.now.isoformat()}"
    case = Case(
        case_id=hashlib.sha256(name.encode()).hexdigest()[:16],
        guard=finding.guard,
        check=finding.check,
        rule=rule.name,
        rule_digest=rule.digest,
        terms=terms(rule),
        mode=rule.mode,
        subject=instance.ref,
        run_epoch=instance.run_epoch,
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


def _ending(case: Case, seen: SubjectSnapshot) -> Reason | None:
    """Why the case is over, if it is. Nothing unseen ends a case but the organisation's own word."""
    if seen.account_closed:
        return Reason(ReasonCode.VANISHED, {"account": case.subject.account})
    instance = seen.instance
    if instance is None:
        if not (seen.shard_read and seen.shard_complete):
            return None
        return Reason(ReasonCode.TERMINATED if under_way(case, seen, Verb.TERMINATE) else ReasonCode.VANISHED)
    if instance.state is InstanceState.TERMINATED:
        return Reason(ReasonCode.TERMINATED if under_way(case, seen, Verb.TERMINATE) else ReasonCode.VANISHED)
    if instance.run_epoch not in {"", case.run_epoch} or started_again(case, instance):
        return Reason(ReasonCode.RESTARTED)
    if instance.state in {InstanceState.STOPPED, InstanceState.STOPPING} and not stopped_by_us(case, seen, instance):
        lost = stop_is_uncertain(case, seen, instance)
        return Reason(ReasonCode.STOP_UNCERTAIN if lost else ReasonCode.STOPPED_BY_OTHERS)
    # an action under way is resolved before anything is concluded from rules or use
    return _judged_over(case, seen, instance) if case.phase is Phase.WAITING else None


def _with_request(case: Case, ended: Reason, instance: Instance | None) -> Case:
    """With the request that shows where nobody can say whose it was: a later stop by others is told from it."""
    if ended.code is not ReasonCode.STOP_UNCERTAIN or instance is None:
        return case
    return replace(case, stop_request=instance.stopped_by)


def _judged_over(case: Case, seen: SubjectSnapshot, instance: Instance) -> Reason | None:
    if seen.rule is None:
        gone = ReasonCode.BUDGET_LIFTED if case.check == SPENT else ReasonCode.RULE_GONE
        return Reason(gone, {"rule": case.rule})
    if seen.rule.mode is not case.mode:
        return Reason(ReasonCode.MODE_CHANGED, {"mode": seen.rule.mode.name.lower()})
    finding = seen.finding
    if finding is None or not seen.shard_complete:
        return None
    if finding.verdict is Verdict.EXEMPT:  # a Keep by tag ends, and does what one in the ledger does
        return finding.reason if finding.reason.code is not ReasonCode.KEPT_BY_TAG else None
    if finding.verdict is Verdict.COMPLIANT and instance.state is InstanceState.RUNNING:
        return Reason(ReasonCode.RECOVERED, finding.reason.facts)
    return None


def _blind(case: Case, seen: SubjectSnapshot) -> Reason | None:
    """What keeps the case from being judged at all in this run."""
    if not seen.shard_read:
        return Reason(ReasonCode.ACCOUNT_UNREAD, {"shard": str(case.subject.shard)})
    if not seen.shard_complete or seen.instance is None:
        return Reason(ReasonCode.SHARD_INCOMPLETE, {"shard": str(case.subject.shard)})
    if seen.instance.state in {InstanceState.UNKNOWN, InstanceState.PENDING}:
        return Reason(ReasonCode.WAITING, {"state": seen.instance.state.value})
    return None


def _under_current_rule(case: Case, seen: SubjectSnapshot) -> Case:
    """A tightened rule applies at once; any other change restarts the current wait."""
    rule = seen.rule
    if rule is None or (rule.digest == case.rule_digest and rule.name == case.rule):
        return case
    looser = rule.name != case.rule or loosens(rule_from_terms(case.terms), rule)
    same = replace(case, rule=rule.name, rule_digest=rule.digest, terms=terms(rule), decision_id="")
    if not looser:
        return same
    return _restarted_wait(same, seen)


def _under_current_owner(case: Case, seen: SubjectSnapshot) -> Case:
    """Whoever owns it now was not told: as soon as anybody was, the wait begins again with a notice to them."""
    if seen.finding is None or seen.finding.owner == case.owner:
        return case
    theirs = replace(case, owner=seen.finding.owner)
    if not case.climbed:
        return theirs
    return _restarted_wait(theirs, seen)


def _restarted_wait(case: Case, seen: SubjectSnapshot) -> Case:
    return _wait_begun_anew(case, ladder(seen.rule, seen.instance) if seen.rule else (), seen.now)


def _wait_begun_anew(case: Case, rungs: Sequence[Rung], now: datetime) -> Case:
    """Back to the last notice, so that people get the full grace again; a stop that happened stays climbed."""
    stops = [index for index, rung in enumerate(rungs) if rung.verb is Verb.STOP]
    behind_stop = case.climbed_at(Verb.STOP) is not None and bool(stops)
    rung = stops[0] + 1 if behind_stop else 0
    climbed = tuple(step for step in case.climbed if step.verb is Verb.STOP) if behind_stop else ()
    return replace(
        case,
        rung=rung,
        climbed=climbed,
        since=now,
        attempt=case.attempt + 1,
        failures=0,
        snoozed_until=None,
        decision_id="",
    )


def _waiting(case: Case, seen: SubjectSnapshot, grace_end: GraceEnd) -> CaseStep:
    rule, instance = seen.rule, seen.instance
    if rule is None or instance is None:
        return CaseStep(case)
    rungs = ladder(rule, instance)
    if case.rung >= len(rungs):
        cannot = instance.cannot_stop and any(step.verb is not Verb.WARN for step in rule.ladder)
        if cannot:
            return CaseStep(held(case, Reason(ReasonCode.CANNOT_STOP, {"cause": instance.cannot_stop})))
        return CaseStep(replace(case, status=CaseStatus.OPEN, reason=Reason(ReasonCode.LADDER_DONE)))
    if instance.state is InstanceState.RUNNING and (
        seen.finding is None or seen.finding.verdict is not Verdict.VIOLATION
    ):
        facts = dict(seen.finding.reason.facts) if seen.finding else {}
        cause = seen.finding.reason.code.value if seen.finding else ""
        return CaseStep(held(case, Reason(ReasonCode.UNMEASURED, {**facts, "cause": cause})))
    barred = _barred_anew(case, seen)
    if barred is not None:
        return barred
    if case.failures >= MAX_FAILURES:
        return CaseStep(held(case, Reason(ReasonCode.NOT_TAKEN_EFFECT, {"failures": case.failures})))
    rung = rungs[case.rung]
    waits = not_yet(case, rung.verb, grace_end(case.since, rung.after), seen.now, grace_end)
    if waits is not None and not (seen.hastened and may_be_hastened(case, rung.verb)):
        return CaseStep(_put_off(case, waits))
    copied = _by_copies(case, rung, rungs, seen)
    if copied is not None:
        return copied
    ready = replace(case, status=CaseStatus.OPEN, reason=Reason(ReasonCode.WAITING, {"verb": rung.verb.value}))
    if case.mode is Mode.OBSERVE and rung.verb is Verb.WARN:
        # a rehearsed notice: nothing is sent, the rehearsal goes on so that people see what would follow
        return CaseStep(climbed(ready, Verb.WARN, seen.now), Verb.WARN)
    return CaseStep(replace(ready, decision_id=decision_id(ready)), rung.verb)


_HELD_AT_ANY_HOUR = frozenset(
    {ReasonCode.LOCAL_DISK, ReasonCode.APPROVAL_NEEDED, ReasonCode.SCARCE_TYPE, ReasonCode.PROTECTED_BY_CLOUD}
)
"""What holds a stop that is due tells more than that nobody is there: it stays the reason over days off."""


def _put_off(case: Case, waits: Reason) -> Case:
    if waits.code is ReasonCode.WAITING:
        return replace(case, status=CaseStatus.OPEN, reason=waits)
    longer = case.status is CaseStatus.HELD and case.reason.code in _HELD_AT_ANY_HOUR
    return case if longer else held(case, waits)


def may_be_hastened(case: Case, verb: Verb) -> bool:
    """Whether people may give up the rest of the wait: only for a stop, and only right behind a delivered notice."""
    told = bool(case.climbed) and case.climbed[-1].verb is Verb.WARN
    return told and verb is Verb.STOP and case.mode is Mode.ENFORCE


def _barred_anew(case: Case, seen: SubjectSnapshot) -> CaseStep | None:
    """Back to the notice where a protection set since then bars what it announced: once lifted, that is told anew.

    Where termination protection bars everything, what it bars waits where it is, as it always did.
    """
    rule = seen.rule
    ahead = [rung.verb for rung in ladder(rule, seen.instance)[case.rung :]] if rule is not None else []
    if rule is None or rule.termination_protection_bars is Bars.EVERYTHING or not ahead or ahead[0] is Verb.WARN:
        return None
    barred = barring(protections_of(seen.instance, seen.detail), leads_to(ahead), rule.termination_protection_bars)
    if not barred:
        return None
    reason = Reason(ReasonCode.PROTECTED_BY_CLOUD, {"protection": ", ".join(barred)})
    return CaseStep(sent_back(case, ladder(rule, seen.instance), reason, seen.now))


def sent_back(case: Case, rungs: Sequence[Rung], reason: Reason, now: datetime) -> Case:
    """Held for `reason` at its last notice: what that announced counts no more, and is announced anew."""
    return held(_wait_begun_anew(case, rungs, now), reason)


def _by_copies(case: Case, rung: Rung, rungs: Sequence[Rung], seen: SubjectSnapshot) -> CaseStep | None:
    """Back to the snapshots where a volume has none any more; past them where all were made before."""
    if seen.detail is None or not seen.detail.volumes:
        return None
    missing = uncopied(case, seen.detail)
    if rung.verb is Verb.TERMINATE and missing:
        again = max(index for index, other in enumerate(rungs) if other.verb is Verb.SNAPSHOT)
        back = replace(case, status=CaseStatus.OPEN, rung=again, attempt=case.attempt + 1, decision_id="")
        return CaseStep(replace(back, reason=Reason(ReasonCode.SNAPSHOT_MISSING)), Verb.SNAPSHOT)
    if rung.verb is Verb.SNAPSHOT and not missing:  # made before a snooze or a changed rule began the wait anew
        return CaseStep(climbed(case, Verb.SNAPSHOT, seen.now))
    return None
