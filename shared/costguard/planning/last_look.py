"""What the last look before a call asks of the case, the rule and the notice, whoever wants the call. Pure.

A plan is not asked: it may be old, or have been written by anybody. The rule, its ladder, the notice and the time are
those of the moment, and the case is as the ledger has it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from costguard.cases import Case, CaseStatus, Phase, decision_id, speaks_for
from costguard.cases.advance import GraceEnd, may_be_hastened, no_earlier_than_announced, not_yet, plain_time
from costguard.cases.case import TWO_CLOCKS
from costguard.domain.actions import Action, Verb
from costguard.domain.answers import AnswerRef
from costguard.domain.reasons import Reason, ReasonCode
from costguard.guards.rules.common import Mode, Rung
from costguard.planning.rails import HELD_BY_A_CAP, account_key, mode_rail, observed, rolled_out
from costguard.planning.rollout import NO_ROLLOUT, Rollout


@dataclass(frozen=True, slots=True)
class CaseStanding:
    """What holds for a case at the moment of the call.

    `mode` and `rungs` are those of the rule in force for its subject. `told_at` is the proven delivery of the notice
    that the case rests on, None where there is none. `observing` and `rollout` as in `PlanInputs`. `hastened`: whoever
    may say so asked for the stop now.
    """

    now: datetime
    mode: Mode
    rungs: tuple[Rung, ...]
    told_at: datetime | None
    grace_end: GraceEnd = plain_time
    observing: Mapping[str, datetime] = field(default_factory=dict)
    hastened: bool = False
    rollout: Rollout = NO_ROLLOUT


def not_its_step(case: Case, actions: Sequence[Action], *, drawn: bool = False) -> Reason | None:
    """Why these actions are not the step that the case waits for. `case` is as the ledger has it.

    `drawn`: it was next in line, so it may be held as well, by a cap and nothing else.
    """
    by_a_cap = drawn and case.status is CaseStatus.HELD and case.reason.code in HELD_BY_A_CAP
    if not (case.status is CaseStatus.OPEN or by_a_cap) or case.phase is not Phase.WAITING:
        return Reason(ReasonCode.CHANGED_SINCE_PLAN, {"what": "case"})
    decision = decision_id(case)
    mine = (case.case_id, case.subject, case.run_epoch, case.rule, case.rule_digest, case.rung, decision)
    for action in actions:
        theirs = (
            action.case_id,
            action.subject,
            action.run_epoch,
            action.rule,
            action.rule_digest,
            action.rung,
            action.decision_id,
        )
        named = action.action_id in {decision, f"{decision}-{action.resource.native_id}"}
        if theirs != mine or not named or action.verb is not actions[0].verb:
            return Reason(ReasonCode.CHANGED_SINCE_PLAN, {"what": "step"})
    return None


def not_its_turn(case: Case, verb: Verb, standing: CaseStanding) -> Reason | None:
    """Why the step may not be taken now: its mode, its rung, its notice or its grace."""
    gentle = mode_rail(verb, min(case.mode, standing.mode))
    if gentle is None and account_key(case.subject) in standing.observing:
        gentle = mode_rail(verb, Mode.OBSERVE)
    gentle = rolled_out(standing.rollout, case, verb, gentle)
    if gentle is not None:
        return observed(standing.observing, case, gentle)
    rungs = standing.rungs
    if case.rung >= len(rungs) or rungs[case.rung].verb is not verb or _skips_a_rung(case, rungs):
        return Reason(ReasonCode.CHANGED_SINCE_PLAN, {"what": "step"})
    if standing.told_at is None or _told_before_the_stop(case, rungs, standing.told_at):
        return Reason(ReasonCode.NOTICE_UNDELIVERED)
    over = grace_ends(case, rungs, standing.told_at, standing.grace_end)
    waits = not_yet(case, verb, over, standing.now, standing.grace_end)
    return None if standing.hastened and may_be_hastened(case, verb) else waits


def grace_ends(case: Case, rungs: Sequence[Rung], told_at: datetime, grace_end: GraceEnd = plain_time) -> datetime:
    """When every wait between the notice and the case's rung is over, at the earliest, and what it named has come.

    What was confirmed before the notice was delivered is not waited for again: copies are made anew behind it.
    """
    notice = max((place for place in range(case.rung) if rungs[place].verb is Verb.WARN), default=-1)
    at = told_at
    for place in range(notice + 1, case.rung + 1):
        climbed = case.climbed_at(rungs[place].verb)
        if place == case.rung or climbed is None or climbed > told_at:
            at = grace_end(at, rungs[place].after)
    return no_earlier_than_announced(case, rungs[case.rung].verb, at)


def asked_for(case: Case, asked: Collection[AnswerRef]) -> bool:
    """Whether one of these answers, by enough people, is to a notice that still says how the case stands."""
    return any(ref.case_id == case.case_id and speaks_for(ref.decision_id, case) for ref in asked)


def _skips_a_rung(case: Case, rungs: Sequence[Rung]) -> bool:
    """Whether the stop was never climbed that the ladder has before the case's rung, or the notice behind it."""
    if Verb.STOP not in {rung.verb for rung in rungs[: case.rung]}:
        return False
    climbed = [rung.verb for rung in case.climbed]
    if Verb.STOP not in climbed:
        return True
    behind = climbed[len(climbed) - climbed[::-1].index(Verb.STOP) :]
    return _tells_behind_the_stop(case, rungs) and Verb.WARN not in behind


def _told_before_the_stop(case: Case, rungs: Sequence[Rung], told_at: datetime) -> bool:
    stopped_at = case.climbed_at(Verb.STOP)
    return stopped_at is not None and _tells_behind_the_stop(case, rungs) and told_at < stopped_at - TWO_CLOCKS


def _tells_behind_the_stop(case: Case, rungs: Sequence[Rung]) -> bool:
    before = [rung.verb for rung in rungs[: case.rung]]
    return Verb.STOP in before and Verb.WARN in before[before.index(Verb.STOP) :]
