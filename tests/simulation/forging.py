"""Plans that somebody else wrote: one machine stopped by the file's word alone, whatever ledger and policy say."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from random import Random
from typing import TYPE_CHECKING

from tests.simulation.scenario import Delivery, Scenario

from costguard.cases import Case, CaseStatus, ClimbedRung, Phase, decision_id
from costguard.domain.actions import Action, Saving, Verb
from costguard.domain.money import Money
from costguard.domain.reasons import Reason, ReasonCode
from costguard.guards.rules.common import Mode
from costguard.planning import Plan, RuleLimit, Transition

if TYPE_CHECKING:
    from costguard.domain.findings import Finding

_LONG_AGO = timedelta(days=30)
_PLENTY = tuple(Money(Decimal(10**6), currency) for currency in ("USD", "CNY", "EUR"))


def with_forgeries(made: Scenario) -> Scenario:
    """The same, and now and then somebody applies a file that they wrote themselves."""
    random = Random(made.seed * 11 + 3)  # noqa: S311 - reproducible on purpose
    deliveries = []
    for _ in range(random.choice((2, 4, 8))):
        at = (made.start + (made.end - made.start) * random.random()).replace(microsecond=0)
        waits = random.choice((5, 60, 900)) * timedelta(seconds=1)
        deliveries.append(Delivery(at, at, saved_plan=waits, forged=True))
    return replace(made, deliveries=(*made.deliveries, *deliveries))


def forged(plan: Plan, random: Random) -> Plan:
    """The plan with every limit raised, and as the one thing due a stop, or the end, of a machine that is idle."""
    found = {finding.subject: finding for finding in plan.findings}
    steps = [step for step in plan.transitions if step.after.phase is Phase.WAITING]
    if not steps:
        return plan
    step = random.choice(steps)
    case = _as_if_due(plan, step.after, random)
    named = (case.decision_id, case.decision_id, _VERBS[case.rung], case.subject, case.subject, case.run_epoch)
    due = Action(*named, case.case_id, case.rung, case.rule, case.rule_digest, _saving(found.get(case.subject)))
    limits = tuple(RuleLimit(each.rule, 1000, _PLENTY, 1000) for each in plan.limits)
    return replace(plan, due=(due,), held=(), rehearsed=(), limits=limits, transitions=(Transition(step.before, case),))


_VERBS = {1: Verb.STOP, 3: Verb.SNAPSHOT, 4: Verb.TERMINATE}


def _as_if_due(plan: Plan, known: Case, random: Random) -> Case:
    """The case as if its rule enforced, everybody had been told long ago, and every wait were over."""
    told = tuple(rung for rung in known.climbed if rung.verb is Verb.WARN) or (ClimbedRung(Verb.WARN, _then(plan)),)
    stopped = tuple(rung for rung in known.climbed if rung.verb is Verb.STOP)
    rung = random.choice((3, 4)) if stopped else 1
    due = replace(
        known,
        mode=Mode.ENFORCE,
        status=CaseStatus.OPEN,
        rung=rung,
        climbed=(*told[:1], *stopped, *(told[:1] if stopped else ())),
        since=_then(plan),
        reason=Reason(ReasonCode.WAITING, {"verb": _VERBS[rung].value}),
    )
    return replace(due, decision_id=decision_id(due))


def _then(plan: Plan) -> datetime:
    return plan.planned_at - _LONG_AGO


def _saving(finding: Finding | None) -> Saving | None:
    return None if finding is None or finding.rate is None else Saving(finding.rate.money, price=finding.rate)
