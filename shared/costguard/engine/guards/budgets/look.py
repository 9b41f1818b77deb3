"""Where every budget stands: what runs, what it has cost since the bill, and the bill. Stops nothing, tells nobody."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

from costguard.domain.findings import Verdict
from costguard.domain.money import SpendScope
from costguard.domain.refs import ResourceRef, Shard
from costguard.domain.resources import Gap, Instance
from costguard.engine.guards.budgets.bills import Bills, OpenPeriod, open_before, payers, read_bills
from costguard.engine.run.run_context import RunContext, scan_in_turn
from costguard.engine.run.scan import Progress, Scan, no_progress
from costguard.engine.savings import keep_bill
from costguard.estimates.burn import Metered, MeteredFleet, MeterSheet, by_the_hour, in_scope, known, metered_on
from costguard.estimates.commitments import terms_in
from costguard.guards import IDLE_GPU
from costguard.guards.budget.judge import BudgetStatus, ScopeFacts, assess
from costguard.guards.budget.rules import period_at
from costguard.guards.budget.steps import BudgetStanding, machine_rules
from costguard.guards.idle.judge import judge
from costguard.guards.rules.idle import IdleRule
from costguard.planning import Spender, spenders
from costguard.policy.model.policy import Policy
from costguard.policy.model.terms import with_digest

_LISTED = frozenset({"accounts", "regions"})
_SHOWN = frozenset({"inventory", *_LISTED})


@dataclass(frozen=True, slots=True)
class BudgetLook:
    """One look at all budgets. `spenders` are by a budget's name; `idle_is_known`: somebody measured idleness.

    `before` is where budgets ended the period before, as far as its bills are not final: of that people are told, and
    nothing else is done.
    """

    now: datetime
    statuses: tuple[BudgetStatus, ...]
    spenders: Mapping[str, tuple[Spender, ...]]
    seen: Scan
    idle_is_known: bool
    before: tuple[tuple[OpenPeriod, BudgetStatus], ...] = ()


def rules_watched(policy: Policy) -> tuple[IdleRule, ...]:
    """The rules that all steps of all budgets would make, whether they are reached or not."""
    standings = [BudgetStanding(rule, None) for rule in policy.budgets]
    every_step = machine_rules(standings, policy.priority_classes, policy.protection.termination_protection_bars)
    return tuple(map(with_digest, every_step.rules))


def look(
    world: RunContext,
    *,
    deadline: datetime | None = None,
    progress: Progress = no_progress,
    remember: bool = True,
    seen: Scan | None = None,
) -> BudgetLook:
    """Read bills and inventory, keep the meter, and judge every budget.

    `remember` False writes nothing: the meter then ends at the last run's look. `seen` is what somebody scanned just
    now, with `rules_watched` among the rules, so that it need not be read twice.

    Raises:
        LedgerError: memory failed.
    """
    policy = world.policy
    rules = rules_watched(policy)
    seen = seen or scan_in_turn(world, rules, deadline, progress, remember=remember)
    now = world.clock.now()
    sheets = tuple(_sheets(world, seen, now, remember=remember))
    open_periods = tuple(open_before(world.memory.store, policy.budgets, now))
    bills = _bills(world, seen, open_periods, now, remember=remember)
    everything = tuple(run.metered for sheet in sheets for run in sheet.runs)
    facts = {rule.covers: _facts(rule.covers, bills, seen, sheets, everything) for rule in policy.budgets}
    rates = policy.exchange_rates
    statuses = tuple(assess(rule, facts[rule.covers], rates, now) for rule in policy.budgets)
    before = tuple((one, assess(one.rule, facts[one.rule.covers], rates, now, one.period)) for one in open_periods)
    idle = frozenset(_idle(world, seen, rules, now))
    return BudgetLook(
        now=now,
        statuses=statuses,
        spenders={rule.name: spenders(seen.facts, rule.covers, policy, idle, now) for rule in policy.budgets},
        seen=seen,
        idle_is_known=bool(rules) or world.memory.runs.latest(IDLE_GPU) is not None,
        before=before,
    )


def _sheets(world: RunContext, seen: Scan, now: datetime, *, remember: bool) -> Iterator[MeterSheet]:
    kept = world.memory.meter.kept(facts.shard.cloud for facts in seen.facts)
    changed: dict[Shard, MeterSheet] = {}
    for facts in seen.facts:
        before = kept.sheet(facts.shard)
        sheet = metered_on(before, facts, now)
        if sheet is None:
            continue
        if sheet != before:
            changed[facts.shard] = sheet
        yield sheet
    if remember:
        kept.put(changed)
    # where accounts or regions could not be listed, what ran there is known as it was last seen
    read = frozenset(str(facts.shard) for facts in seen.facts)
    for cloud in sorted({gap.shard.cloud for gap in seen.gaps if gap.what in _LISTED}):
        yield from world.memory.meter.others(cloud, read)


def _bills(
    world: RunContext, seen: Scan, open_periods: Sequence[OpenPeriod], now: datetime, *, remember: bool
) -> Bills:
    present = ((rule.covers, period_at(rule.period, now)) for rule in world.policy.budgets)
    scopes: dict[SpendScope, datetime] = {}
    for covers, period in (*present, *((one.rule.covers, one.period) for one in open_periods)):
        if period is not None:
            scopes[covers] = min(period.start, scopes.get(covers, period.start))
    paying = payers(world.targets, seen.members)
    return read_bills(
        world.spends,
        paying,
        scopes,
        world.memory.bills,
        world.workers,
        now,
        remember=remember,
        heard=partial(keep_bill, world.memory),
    )


def _facts(
    scope: SpendScope, bills: Bills, seen: Scan, sheets: Sequence[MeterSheet], everything: Sequence[Metered]
) -> ScopeFacts:
    facts = [fact for shard in seen.facts for fact in shard.instances]
    listed = [fact.instance for fact in facts]
    of_metered = known(everything)
    # what was stopped before anybody looked was never metered, and yet its past cost does not go on
    metered_if_it_ran = [one for one in listed if by_the_hour(one)]
    return ScopeFacts(
        bills=bills.of.get(scope, ()),
        unread=bills.unread.get(scope, ()),
        metered=in_scope(everything, scope),
        metered_since=max((sheet.since for sheet in sheets), default=None),
        known=_with(of_metered, metered_if_it_ran),
        listed=_with(of_metered, listed),
        gaps=(*bills.gaps.get(scope, ()), *_blind_in(scope, seen)),
        terms=terms_in(facts, scope),
    )


def _with(metered: MeteredFleet, listed: Sequence[Instance]) -> MeteredFleet:
    return MeteredFleet(
        frozenset((*metered.ids, *(one.ref.native_id for one in listed))),
        frozenset((*metered.types, *((one.ref.cloud, one.ref.account, one.instance_type) for one in listed))),
    )


def _blind_in(scope: SpendScope, seen: Scan) -> Iterator[Gap]:
    """What could not be seen of what runs in the scope."""
    for gap in (*seen.gaps, *(gap for shard in seen.facts for gap in shard.gaps)):
        where = gap.shard
        touched = (
            scope.touches(where.cloud)
            and (scope.accounts is None or not where.account or where.account in scope.accounts)
            and (scope.regions is None or not where.region or where.region in scope.regions)
        )
        if gap.what in _SHOWN and touched:
            yield gap


def _idle(world: RunContext, seen: Scan, rules: Sequence[IdleRule], now: datetime) -> Iterator[ResourceRef]:
    """What was seen idle just now by a budget's own measure, or by the idle guard's cases."""
    of_idleness = [rule for rule in rules if rule.cause is not None and not rule.cause.priority_class]
    for shard in seen.facts:
        for finding in judge(shard.instances, [replace(rule, except_for=()) for rule in of_idleness], now):
            if finding.verdict is Verdict.VIOLATION and isinstance(finding.subject, ResourceRef):
                yield finding.subject
    for case in world.memory.cases.active(IDLE_GPU):
        yield case.subject
