"""A machine that Costguard stopped is started again, because its owner asked: at most one request for each try.

The word stands in the ledger; each run looks once, and tries once at most. Nothing waits for room here: a cloud without
any is asked by the next run, for as long as the word counts. A vendor starts a stopped machine in the zone of its disks
and nowhere else (docs/parity.md), so no other zone is tried.
"""

from __future__ import annotations

import hashlib
import logging
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal

from costguard.cases import Case, CaseStatus, Phase, same_run
from costguard.cases.resolve import SETTLE
from costguard.domain.actions import Action, FreezeVia, Outcome, Receipt, Verb
from costguard.domain.errors import (
    AccessDeniedError,
    CostguardError,
    NoCapacityError,
    OutcomeUnknownError,
    ProviderError,
    ThrottledError,
    UnavailableError,
    VersionConflictError,
)
from costguard.domain.money import Money
from costguard.domain.reasons import FactValue, Reason, ReasonCode
from costguard.domain.resources import InstanceDetail, InstanceState
from costguard.engine.ledger.intents import Intent
from costguard.engine.ledger.notices import OutboxNotice
from costguard.engine.ledger.starts import VOLUMES, StartPhase, StartRequest
from costguard.engine.notify.notices import zone_of
from costguard.engine.run.act import ACT_WITHIN, pause_reason
from costguard.engine.run.close_reads import seen_in
from costguard.engine.run.run_context import RunContext
from costguard.engine.run.scan import Scan
from costguard.guards.rules.common import Mode
from costguard.planning import cap_of
from costguard.planning.freeze import FreezePhase
from costguard.planning.rails import SEEN_WITHIN, barred_by, others_of
from costguard.policy.model.ownership import channel_of
from costguard.ports import VersionCheck
from costguard.report.notices.machines import NoticeFacts, NoticeKind, notice
from costguard.report.words.sentences import Language

_LOG = logging.getLogger(__name__)
MOST_TRIES = 48
"""Requests for one word: as many as the hours that it counts for, and idle_gpu runs every hour."""

_MOST = 20  # of one run; later runs try the others
_RUNS = frozenset({InstanceState.RUNNING, InstanceState.PENDING})
_LETS_LAUNCH = frozenset({FreezePhase.OFF, FreezePhase.RELEASED, FreezePhase.ANNOUNCED})
_PASSING = (NoCapacityError, ThrottledError, UnavailableError)


@dataclass(frozen=True, slots=True)
class Start:
    """One word, and what this run made of it. `sent`: a request has left."""

    request: StartRequest
    sent: bool = False


def start_asked(world: RunContext, run_id: str, seen: Scan) -> tuple[Start, ...]:
    """Look at every machine that somebody asked to have started, and start what still is as Costguard stopped it.

    In shards that this run has read whole, and never while it is paused.

    Raises:
        LedgerError: memory failed: nothing further is attempted.
    """
    if pause_reason(world.memory, host_paused=world.host_paused) is not None or world.policy_problem is not None:
        return ()
    whole = {shard.shard for shard in seen.facts if shard.complete}
    mine = (each for each in world.memory.starts.open() if each.case_key.startswith(f"{world.guard}/"))
    asked = sorted((each for each in mine if each.subject.shard in whole), key=lambda each: _turn(each, run_id))
    return tuple(_Try(world, run_id, request).done() for request in asked[:_MOST])


def _turn(request: StartRequest, run_id: str) -> tuple[int, str]:
    """What was tried least comes first, of those another one in each run: no word starves behind those that wait."""
    return request.tries, hashlib.sha256(f"{run_id}/{request.ref_text}".encode()).hexdigest()


class _NotNowError(Exception):
    """Nothing is done now; the word stands, and the next run looks again."""

    def __init__(self, code: ReasonCode, **facts: FactValue) -> None:
        super().__init__(code.value)
        self.reason = Reason(code, facts)


class _NeverError(Exception):
    """It is not started, whatever comes; its owner is told why."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason.code.value)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class _Cap:
    """What starts under one rule count against in any 24 hours."""

    name: str
    most: int
    hourly: tuple[Money, ...]


@dataclass(frozen=True, slots=True)
class _Try:
    world: RunContext
    run_id: str
    request: StartRequest

    def done(self) -> Start:
        """What became of it in this run."""
        request = self.request
        if request.phase is StartPhase.WAITING and self._sent(request.tries + 1) is not None:
            # a process died before it wrote that down: from here on only looking tells
            request = replace(request, phase=StartPhase.SENT, tries=request.tries + 1)
        try:
            after = self._resolved(request) if request.phase is StartPhase.SENT else self._tried(request)
        except _NotNowError as err:
            after = replace(request, reason=err.reason)
        except _NeverError as err:
            after = replace(request, phase=StartPhase.GIVEN_UP, reason=err.reason)
        if after == self.request:
            return Start(after)
        if after.phase is StartPhase.GIVEN_UP:  # before it is written: a process that dies between is made up for
            memory = self.world.memory
            memory.outbox.enqueue(_not_started(self.world, self.run_id, after, memory.cases.get(after.case_key)))
        self.world.memory.starts.move(self.request, after, self.run_id, self._now)
        _LOG.info("start again", extra={"resource": after.ref_text, "phase": after.phase.value, "tries": after.tries})
        return Start(after, sent=after.tries > request.tries)

    @property
    def _now(self) -> datetime:
        return self.world.clock.now()

    def _sent(self, number: int) -> Intent | None:
        return self.world.memory.intents.get(self.request.action_id(number))

    def _looked(self) -> InstanceDetail | None:
        ref = self.request.subject
        try:
            return self.world.readings[ref.cloud].inventory.details([ref]).get(ref)
        except ProviderError as err:
            raise _NotNowError(ReasonCode.DETAIL_UNREAD, cause=str(err)) from err

    def _resolved(self, request: StartRequest) -> StartRequest:
        """By looking alone: it runs, it does not yet, or after an hour it will not."""
        intent, detail = self._sent(request.tries), self._looked()
        if intent is None or detail is None:
            raise _NeverError(Reason(ReasonCode.VANISHED))
        if detail.instance.state in _RUNS:
            self._settle(intent, Outcome.TOOK_EFFECT, "seen running")
            return replace(request, phase=StartPhase.STARTED, reason=None)
        if self._now - intent.claimed_at < SETTLE:
            raise _NotNowError(ReasonCode.CONFIRMING)
        if intent.outcome in {None, Outcome.UNKNOWN}:  # it may still come: from here a person decides
            raise _NeverError(Reason(ReasonCode.OUTCOME_UNKNOWN))
        self._settle(intent, Outcome.HAD_NO_EFFECT, "seen without effect")
        return replace(request, phase=StartPhase.WAITING, reason=Reason(ReasonCode.NOT_TAKEN_EFFECT))

    def _settle(self, intent: Intent, outcome: Outcome, detail: str) -> None:
        if not intent.settled:
            self.world.memory.intents.settle(intent.action, outcome, self._now, None, detail, self.run_id)

    def _tried(self, request: StartRequest) -> StartRequest:
        """One request at most, behind everything that may speak against it."""
        memory = self.world.memory
        if self._now >= request.until or request.tries >= MOST_TRIES:
            raise _NeverError(request.reason or Reason(ReasonCode.DEADLINE))
        case, unchanged = self._case(request), self._heard(request)
        cap = self._allowed(case)
        action = self._action(case, request)
        looked_at = self._now
        self._still_as_stopped(case)
        self._reserve(cap, action)  # what fails from here on may be another run's, which reserved for the same try
        self._claimed(case, action, unchanged)
        sent = replace(request, phase=StartPhase.SENT, tries=request.tries + 1, reason=None)
        if not looked_at <= self._now <= looked_at + ACT_WITHIN:  # frozen since it looked, or a clock that was set
            late = "not sent: too long since the last look"
            memory.intents.settle(action, Outcome.REFUSED, self._now, None, late, self.run_id)
            self._release(cap, action)
            reason = Reason(ReasonCode.CHANGED_SINCE_PLAN, {"what": "time"})
            return replace(sent, phase=StartPhase.WAITING, reason=reason)
        return self._called(action, cap, sent)

    def _claimed(self, case: Case, action: Action, unchanged: tuple[VersionCheck, ...]) -> None:
        """Take the case, which no older plan moves then, and write the intent."""
        memory = self.world.memory
        asked = replace(case, reason=Reason(ReasonCode.START_ASKED))
        try:
            claimed = memory.cases.commit(case, asked, run_id=self.run_id, now=self._now)
        except VersionConflictError as err:
            raise _NotNowError(ReasonCode.CHANGED_SINCE_PLAN, what="case") from err
        if not memory.intents.claim(action, self.run_id, self._now, claimed, unchanged):
            raise _NotNowError(ReasonCode.CHANGED_SINCE_PLAN, what="word")

    def _called(self, action: Action, cap: _Cap, sent: StartRequest) -> StartRequest:
        receipt: Receipt | None = None
        outcome, detail, after = Outcome.ACCEPTED, "", sent
        try:
            receipt = self.world.executors[action.subject.cloud].execute(action)
        except OutcomeUnknownError as err:
            outcome, detail = Outcome.UNKNOWN, str(err)
        except ProviderError as err:
            outcome, detail = Outcome.REFUSED, str(err)
            again = isinstance(err, _PASSING) and sent.tries < MOST_TRIES
            after = replace(sent, phase=StartPhase.WAITING if again else StartPhase.GIVEN_UP, reason=_refused_for(err))
        self.world.memory.intents.settle(action, outcome, self._now, receipt, detail, self.run_id)
        if outcome is Outcome.REFUSED:
            self._release(cap, action)
        return after

    def _release(self, cap: _Cap, action: Action) -> None:
        self.world.memory.caps.release(self.world.guard, cap.name, action.decision_id)

    def _heard(self, request: StartRequest) -> tuple[VersionCheck, ...]:
        """The records of people's word, read before everything else: what they say from then on fails the intent."""
        switch, unturned = self.world.memory.switch.seen()
        if switch.paused:
            raise _NotNowError(ReasonCode.KILL_SWITCH, by=switch.by, cause=switch.reason)
        known, unsaid = self.world.memory.starts.of(request.ref_text)
        if known != self.request:
            raise _NotNowError(ReasonCode.CHANGED_SINCE_PLAN, what="word")
        return unturned, unsaid

    def _case(self, request: StartRequest) -> Case:
        """The case that stopped it, which nothing else is doing anything for."""
        case = self.world.memory.cases.get(request.case_key)
        if case is None or case.case_id != request.case_id:
            raise _NeverError(Reason(ReasonCode.VANISHED))
        if case.status is CaseStatus.CLOSED:
            raise _NeverError(case.reason)
        if case.climbed_at(Verb.STOP) is None or case.run_epoch != request.run_epoch:
            raise _NeverError(Reason(ReasonCode.RESTARTED))
        if case.phase is not Phase.WAITING:
            raise _NotNowError(ReasonCode.CONFIRMING)
        return case

    def _allowed(self, case: Case) -> _Cap:
        """By the policy as it is now; starts have a cap of their own, as large as that of stops."""
        ref = case.subject
        try:
            policy = self.world.policy_now()
        except CostguardError as err:
            raise _NotNowError(ReasonCode.POLICY_STALE, cause=str(err)) from err
        rule = policy.rule(case.rule)
        if not policy.start_again:
            raise _NeverError(Reason(ReasonCode.START_OFF))
        if rule is None or rule.mode is not Mode.ENFORCE:
            raise _NeverError(Reason(ReasonCode.RULE_CHANGED, {"rule": case.rule}))
        if not self.world.memory.store.durable:
            raise _NotNowError(ReasonCode.LEDGER_NOT_DURABLE)
        if ref.cloud not in self.world.executors:  # what this process may do was settled by another policy
            raise _NotNowError(ReasonCode.RULE_CHANGED, rule="mode")
        for state in self.world.memory.freezes.all():
            of = state.of
            if of is None or state.phase in _LETS_LAUNCH or of.cloud != ref.cloud:
                continue
            if of.via is FreezeVia.ORGANISATION or of.account in {"", ref.account}:  # in doubt it reaches this account
                raise _NeverError(Reason(ReasonCode.LAUNCHES_FROZEN, {"freeze": state.name}))
        self._alone(policy.leading_deployment)
        limits = rule.limits
        return _Cap(cap_of(rule.name, Verb.START), limits.actions_per_day, limits.hourly_cost_stopped_per_day)

    def _alone(self, leading: str) -> None:
        """Nothing where another deployment works and this one does not lead."""
        own, ref = self.world.deployment, self.request.subject
        if own is None or ref.cloud not in self.world.trails:
            return
        found, gap = seen_in(self.world.trails[ref.cloud], ref.shard, self._now - SEEN_WITHIN)
        bar = barred_by(own, others_of(own, found), leading, unread=gap is not None)
        if bar is not None:
            raise _NotNowError(bar.code, **bar.facts)

    def _reserve(self, cap: _Cap, action: Action) -> None:
        """Its hourly cost is none of the cap's: what it costs an hour, it cost before the stop."""
        nothing = Money(Decimal(0), cap.hourly[0].currency) if cap.hourly else None
        code = self.world.memory.caps.reserve(
            self.world.guard,
            cap.name,
            action.decision_id,
            nothing,
            max_actions=cap.most,
            max_hourly=cap.hourly,
            now=self._now,
        )
        if code is not None:
            raise _NotNowError(code)

    def _still_as_stopped(self, case: Case) -> None:
        """The last look: stopped, by the very stop of the case, with every disk that it had then."""
        detail = self._looked()
        if detail is None:
            raise _NeverError(Reason(ReasonCode.VANISHED))
        state = detail.instance.state
        if state in _RUNS:
            raise _NeverError(Reason(ReasonCode.RESTARTED))
        if state is not InstanceState.STOPPED:
            raise _NotNowError(ReasonCode.NOT_STOPPED, state=state.value)
        if not same_run(case, detail.instance):
            raise _NeverError(Reason(ReasonCode.STOPPED_BY_OTHERS))
        lost = self._disks_of_stop(case) - {volume.ref.native_id for volume in detail.volumes}
        if lost or not detail.volumes:
            raise _NeverError(Reason(ReasonCode.DISKS_CHANGED, {"disks": ", ".join(sorted(lost))}))

    def _disks_of_stop(self, case: Case) -> set[str]:
        """As the last look before the stop found them; nothing where a version before wrote the intent."""
        stops = [one for one in self.world.memory.intents.for_case(case.case_id) if one.action.verb is Verb.STOP]
        last = max(stops, key=lambda one: one.claimed_at, default=None)
        kept = last.action.before.get(VOLUMES, "") if last is not None else ""
        return {native_id for native_id in kept.split(",") if native_id}

    def _action(self, case: Case, request: StartRequest) -> Action:
        name = request.action_id(request.tries + 1)
        return Action(
            action_id=name,
            decision_id=name,
            verb=Verb.START,
            subject=request.subject,
            resource=request.subject,
            run_epoch=case.run_epoch,
            case_id=case.case_id,
            rung=case.rung,
            rule=case.rule,
            rule_digest=case.rule_digest,
        )


def _refused_for(err: ProviderError) -> Reason:
    facts: dict[str, FactValue] = {"detail": str(err), "call": err.operation, "error": err.code}
    if isinstance(err, NoCapacityError):
        return Reason(ReasonCode.NO_CAPACITY, facts)
    denied = isinstance(err, AccessDeniedError)
    return Reason(ReasonCode.PERMISSION_MISSING if denied else ReasonCode.REFUSED_BY_CLOUD, facts)


def _not_started(world: RunContext, run_id: str, request: StartRequest, case: Case | None) -> OutboxNotice:
    """The news that what somebody asked for will not come, and why: below the message that told of the machine."""
    known = case if case is not None and case.case_id == request.case_id else None
    owner, now = known.owner if known is not None else "", world.clock.now()
    channel = channel_of(owner, world.policy)
    facts = NoticeFacts(
        kind=NoticeKind.NOT_STARTED,
        resource=request.subject,
        reason=request.reason,
        name=known.name if known is not None else "",
        owner=owner,
        rule=known.rule if known is not None else "",
        zone=zone_of(world),
        by=request.by,
        tries=request.tries,
    )
    worded = notice(facts, Language(world.language))
    earlier = world.memory.outbox.said_of(request.case_id)
    return OutboxNotice(
        notice_id=f"{request.action_id(0)}-given-up",
        decision_id="",
        case_key=request.case_key,
        channel=channel,
        title=worded.title,
        text=worded.text,
        fields=worded.fields,
        lines=worded.lines,
        created_at=now,
        next_attempt_at=now,
        thread=earlier.receipt if earlier is not None and earlier.channel == channel else "",
        run_id=run_id,
        owner=owner,
        case_id=request.case_id,
        kind=f"{NoticeKind.NOT_STARTED.value}_only",
    )
