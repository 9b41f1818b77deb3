"""What a report is made of: from the ledger alone, or with a look taken now. Changes nothing in any cloud."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from costguard.cases import Case, CaseStatus
from costguard.domain.actions import Outcome
from costguard.domain.savings import SavingsReport
from costguard.engine.guards.budgets.run import plan_budgets
from costguard.engine.guards.budgets.snapshots import budget_sights
from costguard.engine.guards.registry import GUARDS, runner_of
from costguard.engine.ledger.looks import LookRepository
from costguard.engine.ledger.memory import Memory
from costguard.engine.ledger.shadows import ShadowRepository
from costguard.engine.policy.provenance import decided_by
from costguard.engine.run.run import plan_from
from costguard.engine.run.run_context import RunContext
from costguard.engine.run.scan import Progress, no_progress, scan
from costguard.engine.run.snapshots import LOOKED_AT, Looked, look_of
from costguard.engine.savings.savings import savings_report
from costguard.guards.rules.common import Limits, Mode, Selector
from costguard.guards.rules.idle import IdleBounds, IdleRule
from costguard.planning.shadows import ShadowStanding
from costguard.report.facts import Refusal, ReportFacts, ResourceSnapshot, ScanSnapshot

LOOKED_BACK = timedelta(days=14)
_MOST_REFUSALS = 200


def report_facts(memory: Memory, since: datetime, now: datetime, *, taken: Sequence[Looked] = ()) -> ReportFacts:
    """What the ledger holds of every guard's last run; looks `taken` now are in the place of those.

    Raises:
        LedgerError: memory failed.
    """
    looks = LookRepository(memory.store)
    anew = {one.look.guard: one for one in taken}
    kept = (anew[guard].look if guard in anew else looks.get(guard) for guard in GUARDS)
    budgets = next((one.budgets for one in taken if one.budgets is not None), None)
    cases = tuple(case for guard in GUARDS for case in memory.cases.active(guard))
    return ReportFacts(
        at=now,
        since=since,
        looks=tuple(look for look in kept if look is not None),
        budgets=looks.budgets() if budgets is None else budgets,
        cases=tuple(sorted(cases, key=lambda case: (case.opened_at, case.case_id))),
        refusals=tuple(_refusals(memory, cases, since)),
        saved=savings_report(memory, since, now, now),
        live=bool(taken),
        shadows=tuple(_followed(memory, looks)),
        policies=decided_by(memory, {guard: one.policy for guard, one in anew.items()}),
    )


def of_owner(facts: ReportFacts, owner: str) -> ReportFacts:
    """The part of it that is one owner's. Budgets and gaps are everybody's."""

    def own(look: ScanSnapshot) -> ScanSnapshot:
        return replace(look, sights=tuple(one for one in look.sights if one.owner == owner), held={})

    return replace(
        facts,
        owner=owner,
        looks=tuple(map(own, facts.looks)),
        cases=tuple(case for case in facts.cases if case.owner == owner),
        refusals=tuple(one for one in facts.refusals if one.owner == owner),
        saved=None if facts.saved is None else _saved_of(facts.saved, owner),
        before=None,
        shadows=tuple(_shadow_of(one, owner) for one in facts.shadows),
    )


def _followed(memory: Memory, looks: LookRepository) -> Iterator[ShadowStanding]:
    """Those that the last run of their guard still followed."""
    for one in ShadowRepository(memory.store).all():
        look = looks.get(one.guard)
        if look is not None and one.at >= look.at:
            yield one


def _shadow_of(standing: ShadowStanding, owner: str) -> ShadowStanding:
    return replace(standing, differences=tuple(each for each in standing.differences if each.owner == owner))


def look_now(world: RunContext, *, progress: Progress = no_progress) -> Looked:
    """One look of this guard, with the code its runs look with; nothing is written anywhere."""
    return replace(runner_of(world.guard).look_now(world, progress), policy=world.policy.digest)


def look_at_budgets(world: RunContext, progress: Progress) -> Looked:
    """Where budgets stand, and the machines as their steps judge them."""
    looked, plan = plan_budgets(world, LOOKED_AT, progress=progress)
    return Looked(look_of(plan, before=_known(world)), tuple(budget_sights(looked)))


def look_at_machines(world: RunContext, progress: Progress) -> Looked:
    """The machines, with the days that a report shows."""
    seen = scan(
        world.readings,
        world.targets,
        (*world.policy.idle_gpu, _WATCHER),
        world.clock,
        progress=progress,
        workers=world.workers,
    )
    return Looked(look_of(plan_from(world, LOOKED_AT, seen), before=_known(world), facts=seen.facts))


_WATCHER = IdleRule(
    name="",
    mode=Mode.OBSERVE,
    applies_to=Selector(resources=()),
    idle=IdleBounds(lasting=LOOKED_BACK),
    ladder=(),
    limits=Limits(),
    digest="",
)
"""A rule for no machine: it has signals read as far back as a report shows days."""


def _known(world: RunContext) -> tuple[ResourceSnapshot, ...]:
    look = LookRepository(world.memory.store).get(world.guard)
    return () if look is None else look.sights


def _refusals(memory: Memory, cases: Iterable[Case], since: datetime) -> Iterator[Refusal]:
    lately = (case for guard in GUARDS for case in memory.cases.closed(f"{guard}/") if _ended_since(case, since))
    found = []
    for case in (*cases, *lately):
        for intent in memory.intents.for_case(case.case_id):
            at = intent.settled_at or intent.claimed_at
            if intent.outcome is Outcome.REFUSED and at >= since:
                found.append(Refusal(at, intent.action.verb, intent.action.subject, case.owner, intent.detail[:300]))
    yield from sorted(found, key=lambda one: (one.at, str(one.subject)), reverse=True)[:_MOST_REFUSALS]


def _ended_since(case: Case, since: datetime) -> bool:
    return case.status is CaseStatus.CLOSED and case.closed_at is not None and case.closed_at >= since


def _saved_of(report: SavingsReport, owner: str) -> SavingsReport:
    entries = tuple(entry for entry in report.entries if entry.owner == owner)
    totals = tuple(replace(total, name="") for total in report.by_owner if total.name == owner)
    return SavingsReport(report.since, report.until, report.at, totals=totals, entries=entries)
