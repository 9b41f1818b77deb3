"""A case as a value, what one run sees about its subject, and each move from one value to the next."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum

from costguard.domain.actions import Outcome, Verb
from costguard.domain.findings import Finding
from costguard.domain.reasons import Reason, ReasonCode
from costguard.domain.refs import ResourceRef
from costguard.domain.resources import Instance, InstanceDetail, Snapshot, SnapshotState, Volume
from costguard.guards.rules.common import Mode, Rung
from costguard.guards.rules.idle import IdleRule

TWO_CLOCKS = timedelta(minutes=20)
"""How far the clocks of two processes may be apart: ten minutes off each."""


class CaseStatus(str, Enum):
    """`HELD` waits for something or somebody named in the reason; `CLOSED` is final."""

    OPEN = "open"
    HELD = "held"
    SNOOZED = "snoozed"
    CLOSED = "closed"


class Phase(str, Enum):
    """Where the current rung is: its wait runs, its action is claimed, or its effect is awaited."""

    WAITING = "waiting"
    CLAIMED = "claimed"
    CONFIRMING = "confirming"


@dataclass(frozen=True, slots=True)
class Announced:
    """A step that a delivered notice named, and the earliest moment it named for it."""

    verb: Verb
    at: datetime


@dataclass(frozen=True, slots=True)
class ClimbedRung:
    """A rung seen complete: a notice delivered, an instance seen stopped, every snapshot seen complete.

    `notice` is the id of the notice that was delivered, `announced` what it said is to come; both empty where an
    earlier Costguard wrote the case.
    """

    verb: Verb
    at: datetime
    notice: str = ""
    announced: tuple[Announced, ...] = ()


@dataclass(frozen=True, slots=True)
class Case:
    """One violation of one check on one subject, from the run that opened it to its end.

    `rung` indexes the rule's ladder; `since` is when the rung before was confirmed (the current wait
    runs from there); `climbed` are the rungs seen complete. `terms` is the rule as it was last applied,
    so that a changed rule can be told stricter or looser. `attempt` only ever grows: it makes each new
    decision's id new. `failures` counts claims of the current rung known to have changed nothing.
    `stop_request` is the id of the request that stopped the machine, where its cloud names it. `refusal` is why a cloud
    last refused the current rung's call, and `refused_at` when. `version` is the ledger record's.
    """

    case_id: str
    guard: str
    check: str
    rule: str
    rule_digest: str
    terms: str
    mode: Mode
    subject: ResourceRef
    run_epoch: str
    owner: str
    name: str
    status: CaseStatus
    phase: Phase
    rung: int
    opened_at: datetime
    since: datetime
    reason: Reason
    climbed: tuple[ClimbedRung, ...] = ()
    attempt: int = 1
    failures: int = 0
    decision_id: str = ""
    claimed_at: datetime | None = None
    snoozed_until: datetime | None = None
    closed_at: datetime | None = None
    stop_request: str = ""
    refusal: Reason | None = None
    refused_at: datetime | None = None
    version: int = 0

    @property
    def key(self) -> str:
        """One open case per guard, check and subject."""
        return f"{self.guard}/{self.check}/{self.subject}"

    def announced_for(self, verb: Verb) -> datetime | None:
        """Before when this step is not taken, by the last delivered notice; None where it named no moment."""
        told = next((rung.announced for rung in reversed(self.climbed) if rung.verb is Verb.WARN), ())
        return next((step.at for step in told if step.verb is verb), None)

    def climbed_at(self, verb: Verb) -> datetime | None:
        """When a rung of this kind was last confirmed."""
        return next((rung.at for rung in reversed(self.climbed) if rung.verb is verb), None)


def kept_since_told(case: Case, kept_at: datetime | None) -> bool:
    """Whether people asked to leave it alone after the last notice: that counts no more, even if no run saw it hold."""
    told = case.climbed_at(Verb.WARN)
    return kept_at is not None and told is not None and kept_at > told - TWO_CLOCKS


def subject_in(key: str) -> str:
    """The subject of the case that has this key."""
    return key.split("/", 2)[2]


@dataclass(frozen=True, slots=True)
class SubjectSnapshot:
    """All that one run saw about the subject of a case.

    `finding` and `instance` are None when the subject was not in the inventory. `shard_read` says the
    shard was scanned at all, `shard_complete` that absence proves absence. `notice_delivered_at` is the
    proven delivery of the current rung's notice, `announced` what it named, `notice_dead` that its channel refused it
    for good, `notice_late` that it is too late to send it with the dates it names. `kept_at` is when people last asked
    to leave it alone, whether that still holds or not. `intent_written` says whether a
    call may have gone out for the current claim; `last_outcome` is what came of it, None where nobody could say,
    and `last_request` the cloud's own id of that call. `hastened`: whoever may say so asked, after the delivered
    notice of the rung before, not to wait for the stop any longer.
    """

    now: datetime
    rule: IdleRule | None
    finding: Finding | None
    instance: Instance | None
    shard_read: bool
    shard_complete: bool
    account_closed: bool = False
    detail: InstanceDetail | None = None
    snoozed_until: datetime | None = None
    kept_at: datetime | None = None
    notice_delivered_at: datetime | None = None
    announced: tuple[Announced, ...] = ()
    notice_dead: bool = False
    notice_late: bool = False
    intent_written: bool = False
    last_outcome: Outcome | None = None
    last_request: str = ""
    hastened: bool = False


def decision_id(case: Case) -> str:
    """What approvals, intents and notices of the current rung are bound to."""
    parts = (case.case_id, str(case.rung), str(case.subject), case.run_epoch, case.rule_digest, str(case.attempt))
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:24]


def speaks_for(decision: str, case: Case) -> bool:
    """Whether a notice of this decision still says how the case stands: it is the current rung's, or of the one before.

    A changed rule, a new run of the machine, a try that failed or a wait begun anew make it speak of the past.
    """
    current = {decision_id(case), case.decision_id} if case.decision_id else {decision_id(case)}
    before = replace(case, rung=case.rung - 1, attempt=case.attempt - 1)
    return decision in current or decision == decision_id(before)


def ladder(rule: IdleRule, instance: Instance | None) -> tuple[Rung, ...]:
    """The rungs of `rule` for this instance; what cannot stop has its own ladder."""
    return rule.rungs(stoppable=instance is None or not instance.cannot_stop)


@dataclass(frozen=True, slots=True)
class CaseStep:
    """The next case, and the verb it now wants done, if any. `case` None means there is nothing to remember."""

    case: Case | None
    wants: Verb | None = None


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
