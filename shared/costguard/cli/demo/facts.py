"""What one day of the demo came to, and what all of them did: plain facts, told by `demo_text` or as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from typing import Any

from costguard.cases import CaseStatus
from costguard.cli.demo.settings import NO_SETTINGS, SettingsDay, settings_day, settings_json
from costguard.domain.actions import ActionResult, Verb
from costguard.domain.findings import Finding, Verdict
from costguard.domain.money import Money, hours, totals
from costguard.domain.reasons import Reason, ReasonCode
from costguard.domain.refs import ResourceRef, Subject
from costguard.domain.savings import GOING_ON, SavingStanding
from costguard.engine.answers.starting import Start
from costguard.engine.guards.budgets.run import BudgetRun
from costguard.engine.ledger.audit.verify import AuditVerdict
from costguard.engine.ledger.starts import StartPhase
from costguard.engine.run.run import RunReport
from costguard.guards.rules.common import Mode
from costguard.planning import Held, Plan
from costguard.planning.realised import Realised
from costguard.report.budget.notices import share_words
from costguard.report.budget.views import BudgetReport
from costguard.report.json_values import moment, money_json, reason_json
from costguard.report.words.sentences import Language

Names = Mapping[Subject, str]


@dataclass(frozen=True, slots=True)
class Told:
    """One message in Slack."""

    channel: str
    title: str


@dataclass(frozen=True, slots=True)
class Runs:
    """What the runs of a day came to; `budgets` as people are shown them, `settings` those about keys and networks.

    `starts`: what was tried of the starts that owners asked for.
    """

    idle: RunReport
    starts: tuple[Start, ...]
    spent: BudgetRun
    budgets: tuple[BudgetReport, ...]
    settings: tuple[RunReport | None, ...] = ()

    @property
    def plan(self) -> Plan:
        """Both plans as one; of a machine that both speak of the idle guard's case counts.

        Raises:
            ValueError: a run was done before.
        """
        idle, spent = self.idle.plan, self.spent.run.plan
        if idle is None or spent is None:
            raise ValueError("a day of the demo is run once")
        return replace(
            idle,
            due=(*idle.due, *spent.due),
            held=(*idle.held, *spent.held),
            transitions=(*spent.transitions, *idle.transitions),
        )


@dataclass(frozen=True, slots=True)
class DemoDay:
    """One day: what happened, what was planned, told and done. `held_anew` are those not held the day before.

    `started`: what an owner asked to have started, and was now. `alerted`: a budget crossed a threshold.
    """

    number: int
    at: datetime
    later: bool
    news: tuple[str, ...]
    plan: Plan
    results: tuple[ActionResult, ...]
    told: tuple[Told, ...]
    held_anew: tuple[Held, ...]
    budgets: tuple[BudgetReport, ...] = ()
    alerted: bool = False
    started: tuple[ResourceRef, ...] = ()
    settings: SettingsDay = NO_SETTINGS

    @property
    def seen(self) -> tuple[tuple[Verb, ResourceRef], ...]:
        """Steps that this day's look proved done."""
        return tuple(pair for step in self.plan.transitions for pair in _newly_climbed(step.before, step.after))

    @property
    def counts(self) -> Mapping[Verdict, int]:
        """Machines by verdict, in the order of concern."""
        order = (Verdict.VIOLATION, Verdict.COMPLIANT, Verdict.UNMEASURED, Verdict.EXEMPT)
        return {one: sum(finding.verdict is one for finding in self.plan.findings) for one in order}


@dataclass(frozen=True, slots=True)
class Saved:
    """What one stop is worth: `hourly` for `hours`, of which `kept` an hour stays billed, and `unpriced` unknown."""

    name: str
    subject: ResourceRef
    since: datetime
    until: datetime | None
    hours: Decimal
    hourly: Money
    kept: Money
    unpriced: tuple[str, ...]

    @property
    def net(self) -> Money:
        """What was saved, less what stayed billed."""
        return (self.hourly + self.kept.times(-1)).times(self.hours)


@dataclass(frozen=True, slots=True)
class LeftAlone:
    """A machine that was shown and not touched, and why."""

    name: str
    finding: Finding
    reason: Reason


@dataclass(frozen=True, slots=True)
class Copies:
    """The snapshots made: of which machines, and the most they can cost an hour; `unpriced` of them have no price."""

    machines: tuple[str, ...]
    hourly: tuple[Money, ...]
    unpriced: int


@dataclass(frozen=True, slots=True)
class Ending:
    """What the days came to; `copies` None where none was made."""

    at: datetime
    saved: tuple[Saved, ...]
    copies: Copies | None
    budgets: tuple[BudgetReport, ...]
    left: tuple[LeftAlone, ...]
    unmeasured: tuple[LeftAlone, ...]
    audit: AuditVerdict
    settings: SettingsDay = NO_SETTINGS

    @property
    def total(self) -> tuple[Money, ...]:
        """All that was saved, by currency."""
        return totals(one.net for one in self.saved)

    @property
    def hourly(self) -> tuple[Money, ...]:
        """What goes on being saved every hour."""
        return totals(one.hourly + one.kept.times(-1) for one in self.saved if one.until is None)


def names_of(plan: Plan) -> Names:
    """What people call the machines."""
    return {finding.subject: finding.name or str(finding.subject) for finding in plan.findings}


def demo_day(
    number: int,
    runs: Runs,
    *,
    news: Iterable[str],
    told: Iterable[Told],
    before: DemoDay | None,
    later: bool = False,
) -> DemoDay:
    """The facts of one day's runs."""
    plan = runs.plan
    known = {_identity(held) for held in before.plan.held} if before is not None else set()
    anew = tuple(held for held in plan.held if _identity(held) not in known)
    return DemoDay(
        number=number,
        at=plan.planned_at,
        later=later,
        news=tuple(news),
        plan=plan,
        results=(*runs.idle.results, *runs.spent.run.results),
        told=tuple(told),
        held_anew=anew,
        budgets=runs.budgets,
        alerted=bool(runs.spent.alerts),
        started=tuple(one.request.subject for one in runs.starts if one.request.phase is StartPhase.SENT and one.sent),
        settings=settings_day(runs.settings, before.settings if before is not None else None),
    )


def saved_by(savings: Iterable[Realised], names: Names) -> tuple[Saved, ...]:
    """What each machine's stop saves, dearest first, a termination going on with it; without a price it is nothing."""
    found: dict[tuple[ResourceRef, str], Saved] = {}
    for one in sorted(savings, key=lambda each: each.saving.confirmed_at):
        action = one.saving.action
        if one.hourly is None or action.saving is None or one.standing is SavingStanding.SHARED:
            continue
        currency, lines = one.hourly.currency, action.saving.kept
        priced = [cost for _, cost in lines if cost is not None and cost.currency == currency]
        key = action.subject, action.run_epoch
        before = found.get(key)
        found[key] = Saved(
            name=names.get(action.subject, action.subject.native_id),
            subject=action.subject,
            since=before.since if before is not None else one.saving.confirmed_at,
            until=None if one.standing in GOING_ON else one.until,
            hours=hours(one.until - one.saving.confirmed_at) + (before.hours if before is not None else 0),
            hourly=one.hourly,
            kept=Money(sum((cost.amount for cost in priced), Decimal(0)), currency),
            unpriced=tuple(dict.fromkeys(what for what, cost in lines if cost is None)),
        )
    return tuple(sorted(found.values(), key=lambda one: -one.net.amount))


def left_alone(plan: Plan) -> tuple[LeftAlone, ...]:
    """Everything idle or out of bounds that this plan does not touch, dearest first."""
    held = {item.action.subject: item.reason for item in plan.held}
    cases = {step.after.subject: step.after for step in plan.transitions}
    found = []
    for finding in plan.findings:
        case = cases.get(finding.subject) if isinstance(finding.subject, ResourceRef) else None
        reason: Reason | None = None
        if finding.verdict is Verdict.EXEMPT or finding.reason.code is ReasonCode.PARTLY_IDLE:
            reason = finding.reason
        elif case is not None and case.status is CaseStatus.SNOOZED:
            reason = case.reason
        elif finding.subject in held:
            reason = held[finding.subject]
        elif finding.verdict is Verdict.VIOLATION and case is not None and case.mode is Mode.WARN:
            reason = Reason(ReasonCode.MODE_WARN)
        if reason is not None:
            found.append(LeftAlone(finding.name, finding, reason))
    return tuple(sorted(found, key=_dearest_first))


def unmeasured(plan: Plan) -> tuple[LeftAlone, ...]:
    """Everything that cannot be judged, dearest first."""
    found = (one for one in plan.findings if one.verdict is Verdict.UNMEASURED)
    return tuple(sorted((LeftAlone(one.name, one, one.reason) for one in found), key=_dearest_first))


def demo_json(days: Sequence[DemoDay], ending: Ending, language: Language) -> dict[str, Any]:
    """The same facts for machines."""
    names = {ref: name for day in days for ref, name in names_of(day.plan).items()}
    return {
        "schema": 1,
        "days": [_day_json(day, names, language) for day in days],
        "saved": {
            "total": [money_json(money) for money in ending.total],
            "hourly": [money_json(money) for money in ending.hourly],
            "machines": [
                {
                    "name": one.name,
                    "id": str(one.subject),
                    "since": moment(one.since),
                    "until": moment(one.until),
                    "hours": str(one.hours),
                    "hourly_cost": money_json(one.hourly),
                    "stays_billed_hourly": money_json(one.kept),
                    "stays_billed_unpriced": list(one.unpriced),
                }
                for one in ending.saved
            ],
            "copies_hourly_at_most": [money_json(money) for money in ending.copies.hourly] if ending.copies else [],
        },
        "budgets": [_budget_json(one) for one in ending.budgets],
        "left_alone": [_left_json(one, language) for one in ending.left],
        "unmeasured": [_left_json(one, language) for one in ending.unmeasured],
        "settings": settings_json(ending.settings, language),
        "audit": {
            "whole": not ending.audit.problems,
            "entries": ending.audit.entries,
            "chains": ending.audit.chains,
            "problems": list(ending.audit.problems),
        },
    }


def _day_json(day: DemoDay, names: Names, language: Language) -> dict[str, Any]:
    return {
        "day": day.number,
        "at": moment(day.at),
        "news": list(day.news),
        "seen": [{"verb": verb.value, "name": names.get(ref, ref.native_id), "id": str(ref)} for verb, ref in day.seen],
        "found": {verdict.value: count for verdict, count in day.counts.items()},
        "due": [
            {"verb": action.verb.value, "name": names.get(action.subject, ""), "id": str(action.resource)}
            for action in day.plan.due
        ],
        "held": [
            {
                "verb": held.action.verb.value,
                "name": names.get(held.action.subject, ""),
                "id": str(held.action.resource),
                **reason_json(held.reason, language),
            }
            for held in day.plan.held
        ],
        "settings": settings_json(day.settings, language),
        "started": [{"name": names.get(ref, ref.native_id), "id": str(ref)} for ref in day.started],
        "told": [{"channel": told.channel, "title": told.title} for told in day.told],
        "budgets": [_budget_json(one) for one in day.budgets],
        "done": [
            {
                "verb": result.action.verb.value,
                "name": names.get(result.action.subject, ""),
                "id": str(result.action.resource),
                "outcome": result.outcome.value if result.outcome is not None else None,
                "reason": result.reason.code.value if result.reason is not None else None,
            }
            for result in day.results
        ],
    }


def _budget_json(one: BudgetReport) -> dict[str, Any]:
    status = one.status
    return {
        "name": status.rule.name,
        "spent": money_json(status.spent.total if status.spent is not None else None),
        "amount": money_json(status.rule.amount),
        "share_percent": share_words(status),
        "forecast": money_json(status.forecast.expected if status.forecast is not None else None),
        "sure": not status.doubts,
    }


def _left_json(one: LeftAlone, language: Language) -> dict[str, Any]:
    rate = one.finding.rate
    return {
        "name": one.name,
        "id": str(one.finding.subject),
        "hourly_cost": money_json(rate.money if rate is not None else None),
        **reason_json(one.reason, language),
    }


def _newly_climbed(before: Any, after: Any) -> Iterable[tuple[Verb, ResourceRef]]:
    known = len(before.climbed) if before is not None and before.case_id == after.case_id else 0
    for rung in after.climbed[known:]:
        if rung.verb is not Verb.WARN:
            yield rung.verb, after.subject
    closed = after.status is CaseStatus.CLOSED and after.reason.code is ReasonCode.TERMINATED
    if closed and (before is None or before.status is not CaseStatus.CLOSED):
        yield Verb.TERMINATE, after.subject


def _identity(held: Held) -> tuple[str, Verb, ReasonCode]:
    return (str(held.action.resource), held.action.verb, held.reason.code)


def _dearest_first(one: LeftAlone) -> tuple[Decimal, str]:
    rate = one.finding.rate
    return (-rate.money.amount if rate is not None else Decimal(0), one.name)
