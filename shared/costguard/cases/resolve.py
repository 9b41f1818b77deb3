"""What came of a claim made in an earlier run: found out by looking, never by calling again."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Protocol

from typing_extensions import assert_never

from costguard.cases.case import (
    Announced,
    Case,
    CaseStatus,
    CaseStep,
    Phase,
    SubjectSnapshot,
    climbed,
    has_snapshot,
    held,
    ladder,
    noticed,
    tried_again,
    uncopied,
)
from costguard.domain.actions import Outcome, Verb
from costguard.domain.reasons import Reason, ReasonCode
from costguard.domain.resources import Instance, InstanceState, SnapshotState
from costguard.policy.model.terms import rule_from_terms

SETTLE = timedelta(hours=1)  # an accepted stop that shows no effect for this long had none
STOP_SHOWS_WITHIN = timedelta(minutes=20)  # the call goes out within 5 minutes of its claim, by a clock 10 off at most
TELL_AGAIN = timedelta(days=1)  # a rejected notice is tried anew once a day: people repair tokens and channels
MAX_FAILURES = 5  # known failures in a row before a rung waits for a person


def resolved(case: Case, seen: SubjectSnapshot) -> CaseStep:
    """Settle a rung that was claimed in an earlier run, from what can be seen now.

    A claim younger than `SETTLE` that shows nothing yet may be another run's, still at work: it is
    returned as it is, so that nothing is written under that run's hands.
    """
    rule, instance = seen.rule, seen.instance
    verb = _claimed_verb(case, seen)
    if rule is None or instance is None or verb is None:
        return CaseStep(held(case, Reason(ReasonCode.OUTCOME_UNKNOWN)))
    match verb:
        case Verb.WARN:
            return CaseStep(notice_resolved(case, seen))
        case Verb.STOP:
            return CaseStep(_stop_resolved(case, seen, instance))
        case Verb.SNAPSHOT:
            return _snapshots_resolved(case, seen)
        case Verb.TERMINATE:
            return CaseStep(_terminate_resolved(case, seen, instance))
        case Verb.START | Verb.MEND:
            return CaseStep(held(case, Reason(ReasonCode.OUTCOME_UNKNOWN)))
        case _:
            assert_never(verb)


class NoticeSeen(Protocol):
    """What a run sees of a rung that was claimed before, whatever the case is about."""

    @property
    def now(self) -> datetime:
        """The moment of the look."""

    @property
    def notice_delivered_at(self) -> datetime | None:
        """The proven delivery of the rung's notice."""

    @property
    def announced(self) -> tuple[Announced, ...]:
        """What the notice named to come."""

    @property
    def notice_dead(self) -> bool:
        """Its channel refused it for good."""

    @property
    def notice_late(self) -> bool:
        """It is too late to send it with the dates it names."""

    @property
    def intent_written(self) -> bool:
        """A call, or a notice, may have gone out."""


def notice_resolved(case: Case, seen: NoticeSeen) -> Case:
    """A warning that was claimed: climbed once its delivery is proven."""
    if seen.notice_delivered_at is not None:
        return noticed(case, seen.notice_delivered_at, seen.announced)
    if not seen.intent_written:
        return case if is_fresh(case, seen) else tried_again(case, ReasonCode.NOTICE_UNDELIVERED)
    if seen.notice_late:
        return replace(tried_again(case, ReasonCode.NOTICE_UNDELIVERED), failures=0)
    if seen.notice_dead and case.claimed_at is not None and seen.now - case.claimed_at >= TELL_AGAIN:
        return replace(tried_again(case, ReasonCode.NOTICE_UNDELIVERED), failures=0)
    if is_fresh(case, seen) and not seen.notice_dead:
        return case
    return held(case, Reason(ReasonCode.NOTICE_UNDELIVERED, {"dead": int(seen.notice_dead)}))


def _stop_resolved(case: Case, seen: SubjectSnapshot, instance: Instance) -> Case:
    if instance.state is InstanceState.STOPPED:
        if not _stop_is_ours(case, seen, instance):
            return case
        return replace(climbed(case, Verb.STOP, seen.now), stop_request=instance.stopped_by)
    if instance.state is InstanceState.STOPPING:
        return replace(case, status=CaseStatus.OPEN, phase=Phase.CONFIRMING, reason=Reason(ReasonCode.CONFIRMING))
    return _not_taken_effect(case, seen)


def _terminate_resolved(case: Case, seen: SubjectSnapshot, instance: Instance) -> Case:
    if instance.state is InstanceState.TERMINATING:
        return replace(case, status=CaseStatus.OPEN, phase=Phase.CONFIRMING, reason=Reason(ReasonCode.CONFIRMING))
    if not seen.intent_written or seen.last_outcome is Outcome.REFUSED:
        return case if is_fresh(case, seen) else tried_again(case, ReasonCode.NOT_TAKEN_EFFECT)
    if is_fresh(case, seen):
        return case
    # a second TerminateInstances may destroy what the first recycled: from here a person decides
    return held(case, Reason(ReasonCode.OUTCOME_UNKNOWN, {"verb": Verb.TERMINATE.value}))


def _snapshots_resolved(case: Case, seen: SubjectSnapshot) -> CaseStep:
    detail = seen.detail
    if detail is None:
        return CaseStep(held(case, Reason(ReasonCode.DETAIL_UNREAD)))
    if not detail.volumes:
        return CaseStep(held(case, Reason(ReasonCode.NO_VOLUMES)))
    missing = uncopied(case, detail)
    if not missing:
        return CaseStep(climbed(case, Verb.SNAPSHOT, seen.now))
    failed = [volume for volume in missing if has_snapshot(case, detail, volume, SnapshotState.FAILED)]
    pending = [volume for volume in missing if has_snapshot(case, detail, volume, SnapshotState.PENDING)]
    if pending:
        facts = {"volumes": len(missing)}
        return CaseStep(
            replace(case, status=CaseStatus.OPEN, phase=Phase.CONFIRMING, reason=Reason(ReasonCode.CONFIRMING, facts))
        )
    if failed:
        if case.failures + 1 >= MAX_FAILURES:
            return CaseStep(held(case, Reason(ReasonCode.SNAPSHOT_FAILED, {"volumes": len(failed)})))
        return CaseStep(tried_again(case, ReasonCode.SNAPSHOT_FAILED))
    return CaseStep(_not_taken_effect(case, seen))


def _not_taken_effect(case: Case, seen: SubjectSnapshot) -> Case:
    """The claim shows no effect: wait until it can no longer come, then allow a new decision."""
    return case if is_fresh(case, seen) else tried_again(case, ReasonCode.NOT_TAKEN_EFFECT)


def is_fresh(case: Case, seen: NoticeSeen) -> bool:
    """Whether the claim is so young that its effect may still come, or another run be at work on it."""
    return case.claimed_at is not None and seen.now - case.claimed_at < SETTLE


def is_old(case: Case, now: datetime) -> bool:
    """Whether the claim was made so long ago that an effect would show."""
    return case.claimed_at is not None and now - case.claimed_at >= SETTLE


def begun_anew(case: Case, now: datetime) -> Case:
    """A person had it looked at, and the claimed call had no effect: the wait runs again, from its notice.

    A stop that happened stays climbed; every copy, notice and wait behind it is made anew, under new decisions.
    """
    behind = case.climbed_at(Verb.STOP) is not None
    rungs = ladder(rule_from_terms(case.terms), None) if behind else ()
    stop = next((place for place, rung in enumerate(rungs) if rung.verb is Verb.STOP), None)
    again = replace(tried_again(case, ReasonCode.NOT_TAKEN_EFFECT), failures=0, since=now)
    if stop is None:
        return replace(again, rung=0, climbed=())
    return replace(again, rung=stop + 1, climbed=tuple(step for step in case.climbed if step.verb is Verb.STOP))


def _claimed_verb(case: Case, seen: SubjectSnapshot) -> Verb | None:
    """The verb of the rung under way, from the rule as it was when claimed."""
    rungs = ladder(rule_from_terms(case.terms), seen.instance)
    return rungs[case.rung].verb if case.rung < len(rungs) else None


def under_way(case: Case, seen: SubjectSnapshot, verb: Verb) -> bool:
    """Whether an action of this kind has been claimed and not yet resolved."""
    return case.phase is not Phase.WAITING and _claimed_verb(case, seen) is verb


def stopped_by_us(case: Case, seen: SubjectSnapshot, instance: Instance) -> bool:
    """Whether Costguard stopped the machine, as far as can be told: somebody else's stop ends the case."""
    if case.climbed_at(Verb.STOP) is not None:
        return same_run(case, instance)
    if under_way(case, seen, Verb.TERMINATE):
        return True
    return under_way(case, seen, Verb.STOP) and (is_fresh(case, seen) or _stop_is_ours(case, seen, instance))


def _stop_is_ours(case: Case, seen: SubjectSnapshot, instance: Instance) -> bool:
    """Whether the stop that shows is the one that was claimed.

    An accepted call is, unless the cloud names another request. After an unknown outcome only the time that the
    cloud tells speaks for it; where none is told, somebody else's stop cannot be excluded, and what they stopped is
    not to be terminated.
    """
    if not seen.intent_written or case.claimed_at is None:
        return False
    if instance.stopped_by:
        return instance.stopped_by == seen.last_request
    if seen.last_outcome in {Outcome.ACCEPTED, Outcome.TOOK_EFFECT} or instance.state is InstanceState.STOPPING:
        return True
    if seen.last_outcome in {Outcome.REFUSED, Outcome.HAD_NO_EFFECT} or instance.stopped_at is None:
        return False
    return abs(instance.stopped_at - case.claimed_at) <= STOP_SHOWS_WITHIN


def stop_is_uncertain(case: Case, seen: SubjectSnapshot, instance: Instance) -> bool:
    """Whether a claimed stop that is not proven ours cannot be proven somebody else's either: its answer was lost.

    Where the cloud tells when it stopped, that time has spoken. A refusal, or a call that was never made, says no.
    """
    if not under_way(case, seen, Verb.STOP) or not seen.intent_written or case.claimed_at is None:
        return False
    return seen.last_outcome in {None, Outcome.UNKNOWN} and instance.stopped_at is None


def same_run(case: Case, instance: Instance) -> bool:
    """Whether it is still the run that the case is about, or has not run since Costguard stopped it."""
    if instance.run_epoch or not instance.stopped_by:
        return instance.run_epoch == case.run_epoch
    return instance.stopped_by == case.stop_request


def started_again(case: Case, instance: Instance) -> bool:
    """Whether somebody has started what was stopped."""
    return case.climbed_at(Verb.STOP) is not None and instance.state in {InstanceState.RUNNING, InstanceState.PENDING}
