"""The single steps a case can take, each a new value."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from costguard.cases.case import Announced, Case, CaseStatus, ClimbedRung, Phase, decision_id
from costguard.domain.actions import Verb
from costguard.domain.reasons import Reason, ReasonCode
from costguard.domain.refs import ResourceRef
from costguard.domain.resources import InstanceDetail, Snapshot, SnapshotState, Volume

REFUSALS = frozenset(
    {ReasonCode.PERMISSION_MISSING, ReasonCode.DENIED_BY_ORGANISATION, ReasonCode.REFUSED_BY_CLOUD},
)
"""What a cloud said no for; anything else was not sent."""


def uncopied(case: Case, detail: InstanceDetail) -> tuple[Volume, ...]:
    """Attached volumes without a completed snapshot that is later than what it must follow.

    Only Costguard's own snapshots count: behind a stop those begun after it was confirmed, of a machine that runs
    those begun after the notice was delivered. Where they are made as a set, it is all volumes or none: copies of
    two decisions were made at two moments.
    """
    if copied_at_once(case, detail):
        return () if _is_one_set(case, detail) else detail.volumes
    return tuple(volume for volume in detail.volumes if not has_snapshot(case, detail, volume, SnapshotState.COMPLETED))


def copied_at_once(case: Case, detail: InstanceDetail) -> tuple[ResourceRef, ...]:
    """The volumes that one call copies as a set: all of a machine that runs, where its cloud can; in a fixed order.

    Empty where each is copied by a call of its own: a single one, or behind Costguard's stop, when nothing is written.
    """
    if not detail.copied_together or len(detail.volumes) <= 1 or case.climbed_at(Verb.STOP) is not None:
        return ()
    return tuple(sorted(volume.ref for volume in detail.volumes))


def has_snapshot(case: Case, detail: InstanceDetail, volume: Volume, state: SnapshotState) -> bool:
    """Whether Costguard made a snapshot of `volume` late enough for this case, now in `state`."""
    return bool(_copies(case, detail, volume, state))


def _is_one_set(case: Case, detail: InstanceDetail) -> bool:
    """Whether one decision copied every volume."""
    made = (_copies(case, detail, volume, SnapshotState.COMPLETED) for volume in detail.volumes)
    return bool(frozenset.intersection(*(frozenset(copy.decision_id for copy in copies) for copies in made)))


def _copies(case: Case, detail: InstanceDetail, volume: Volume, state: SnapshotState) -> list[Snapshot]:
    floor = case.climbed_at(Verb.STOP) or case.climbed_at(Verb.WARN) or case.opened_at
    return [
        snapshot
        for snapshot in detail.snapshots
        if snapshot.volume == volume.ref
        and snapshot.state is state
        and snapshot.decision_id  # made by us after the floor was seen: no other clock can make it look later
        and snapshot.started_at >= floor
        and (state is SnapshotState.COMPLETED or snapshot.decision_id == case.decision_id)
    ]


def climbed(case: Case, verb: Verb, at: datetime, announced: tuple[Announced, ...] = ()) -> Case:
    """The rung was seen complete at `at`; the next wait runs from there. The id of a notice is its decision's."""
    notice = case.decision_id if verb is Verb.WARN else ""
    return replace(
        case,
        status=CaseStatus.OPEN,
        phase=Phase.WAITING,
        rung=case.rung + 1,
        climbed=(*case.climbed, ClimbedRung(verb, at, notice, announced)),
        since=at,
        attempt=case.attempt + 1,
        failures=0,
        decision_id="",
        claimed_at=None,
        refusal=None,
        refused_at=None,
        reason=Reason(ReasonCode.CONFIRMED, {"verb": verb.value}),
    )


def claimed(case: Case, now: datetime) -> Case:
    """The case with its current decision claimed; committing it by version is what keeps other runs out."""
    return replace(case, status=CaseStatus.OPEN, phase=Phase.CLAIMED, claimed_at=now, decision_id=decision_id(case))


def unclaimed(case: Case, reason: Reason) -> Case:
    """Back to waiting: no intent was written, so nothing was sent and the decision keeps its id."""
    return replace(case, status=CaseStatus.HELD, phase=Phase.WAITING, claimed_at=None, reason=reason)


def refused(case: Case, reason: Reason, now: datetime) -> Case:
    """The cloud said no and nothing changed: hold with its reason; the next try is a new decision."""
    after = replace(tried_again(case, reason.code), reason=reason)
    return replace(after, refusal=reason, refused_at=now) if reason.code in REFUSALS else after


def confirming(case: Case) -> Case:
    """The call was accepted, or its outcome is unknown: from here on only looking tells."""
    return replace(case, phase=Phase.CONFIRMING, reason=Reason(ReasonCode.CONFIRMING))


def noticed(case: Case, delivered_at: datetime, announced: tuple[Announced, ...] = ()) -> Case:
    """The current rung's notice reached its channel: the grace runs from here, and what it named comes no earlier."""
    return climbed(case, Verb.WARN, delivered_at, announced)


def held(case: Case, reason: Reason) -> Case:
    """The case waits for what `reason` names; nothing else about it changes."""
    return replace(case, status=CaseStatus.HELD, reason=reason)


def closed(case: Case, reason: Reason, now: datetime) -> Case:
    """The case is over for good."""
    return replace(case, status=CaseStatus.CLOSED, phase=Phase.WAITING, reason=reason, closed_at=now)


def tried_again(case: Case, code: ReasonCode) -> Case:
    """The claim is known to have changed nothing: wait for a new decision, under a new id."""
    return replace(
        case,
        status=CaseStatus.HELD,
        phase=Phase.WAITING,
        attempt=case.attempt + 1,
        failures=case.failures + 1,
        decision_id="",
        claimed_at=None,
        reason=Reason(code, {"failures": case.failures + 1}),
    )
