"""One run of any guard: look → plan → act → report. The only place where the phases meet.

A wait counts from the delivered notice, seconds to minutes after the run began. With a wait as long as the time between
two runs, the next run would always be that much too early, and the step come one run later. So with caps: what the run
before did counts for 24 hours, seconds to minutes longer than a daily run takes to come.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from costguard.cases import Case, CaseStatus, Phase
from costguard.domain.actions import ActionResult, Verb
from costguard.domain.findings import ShardFacts
from costguard.domain.reasons import Reason, ReasonCode
from costguard.domain.refs import ResourceRef, Shard
from costguard.engine.guards.registry import GUARDS, runner_of
from costguard.engine.ledger.learned import AccountRepository
from costguard.engine.ledger.memory import cap_views, claim_views, notice_views
from costguard.engine.ledger.notices import OutboxNotice
from costguard.engine.notify.delivery import tell
from costguard.engine.run.act import act, pause_reason
from costguard.engine.run.close_reads import barred_accounts, examined_closely, launched
from costguard.engine.run.run_context import RunContext, rollout_now
from costguard.engine.run.scan import (
    Progress,
    Scan,
    no_progress,
)
from costguard.engine.run.settlement import moved, release_unsent, settle_observed
from costguard.engine.run.snapshots import keep_look, keep_shadows, shadow_figures, with_shadows
from costguard.estimates.net_rates import with_net_rates
from costguard.guards.rules.common import Mode
from costguard.planning import Plan, PlanInputs, Transition, build_plan, caps_of, verdicts_on
from costguard.planning.rails import account_key, observing
from costguard.ports import Clock

if TYPE_CHECKING:
    from costguard.engine.guards.budgets.look import BudgetLook
    from costguard.engine.ledger.snoozes import Snooze
    from costguard.policy.model.policy import Policy

_LOG = logging.getLogger(__name__)
WAITS_UP_TO = timedelta(minutes=5)
"""What telling people takes, and the jitter of timers; a third of the 15 minutes that function hosts grant."""
_CAPPED = frozenset({ReasonCode.CAP_ACTIONS, ReasonCode.CAP_SHARE, ReasonCode.CAP_MONEY})
_TOLD_TO = timedelta(minutes=1)  # a reason names its moment by the minute, rounded down


def planned_when_due(
    clock: Clock,
    plan: Callable[[], Plan],
    room_again: Callable[[datetime], Iterable[datetime]],
    deadline: datetime | None,
) -> Plan:
    """What `plan` makes; where a step is due within minutes, or a cap has room by then, what it makes after that.

    Nothing is done before its time: the second plan is made like any other, from memory and the clock as they are then.
    At most half of what is left until the deadline is spent on it. `plan` is called once or twice; `room_again`, asked
    only where a cap holds something, says when what counts now counts no more.
    """
    made, now = plan(), clock.now()
    longest = WAITS_UP_TO if deadline is None else min(WAITS_UP_TO, (deadline - now) / 2)
    enforced = [step.after for step in made.transitions if step.after.mode is Mode.ENFORCE]
    awaited = [due for case in enforced if (due := _due(case)) is not None]
    if any(case.reason.code in _CAPPED for case in enforced):
        awaited += room_again(now)
    near = [at for at in awaited if now < at <= now + longest]
    if not near:
        return made
    until = max(near)
    _LOG.info("waiting for what is due within minutes", extra={"count": len(near), "until": until.isoformat()})
    clock.sleep((until - now).total_seconds())
    return plan()


def _due(case: Case) -> datetime | None:
    """When the step that a case waits for is surely due."""
    due = case.reason.facts.get("due")
    if case.status is not CaseStatus.OPEN or case.phase is not Phase.WAITING:
        return None
    if case.reason.code is not ReasonCode.WAITING or not isinstance(due, str):
        return None
    return datetime.fromisoformat(due) + _TOLD_TO


_MOST_GAPS_LOGGED = 20  # the report has them all
NOTICE_WAIT = timedelta(seconds=30)  # longest total wait for Slack's Retry-After where no deadline is known
LONGEST_WAIT = timedelta(minutes=5)  # the same of a function: 3,000 machines told of, at ten a message and second
LEAST_TELLING = timedelta(seconds=10)  # of the 20 seconds and more that a host has left at the deadline


@dataclass(frozen=True, slots=True)
class RunReport:
    """What a run found, did, held and told. `duplicate` means this run had already been completed.

    `waiting` counts the notices that are in the outbox still, for whatever reason; `untagged` the keeps that could not
    be written on their machines.
    """

    run_id: str
    plan: Plan | None
    results: tuple[ActionResult, ...] = ()
    notices: tuple[OutboxNotice, ...] = ()
    duplicate: bool = False
    waiting: int = 0
    untagged: int = 0


@dataclass(frozen=True, slots=True)
class GuardRun:
    """One run: what it saw, what was done ahead of the plan, and the rest. `look` None: it was completed before."""

    report: RunReport
    look: Any = None
    ahead: Any = None


@dataclass(frozen=True, slots=True)
class Planned:
    """What is due now, and the look that it follows from; `budgets`: the same, where that says how budgets stand."""

    plan: Plan
    look: Any
    budgets: BudgetLook | None = None


def run_guard(
    world: RunContext,
    run_id: str,
    *,
    deadline: datetime | None = None,
    progress: Progress = no_progress,
    seen: Any = None,
) -> GuardRun:
    """One whole run of the guard that the world is for: look → plan → act → report.

    A run id that was completed before does nothing: events are delivered more than once. `seen` is what somebody looked
    at just now, with what this guard asks for, so that it need not be read twice.

    Raises:
        InvalidInputError: there is no such guard.
    """
    runner = runner_of(world.guard)
    if not world.memory.runs.begin(run_id, world.guard, world.clock.now()):
        return GuardRun(RunReport(run_id, None, duplicate=True))
    looked = runner.see(world, deadline=deadline, progress=progress, remember=True, seen=seen)
    ahead = None if runner.ahead is None else runner.ahead(world, run_id, looked)
    under = world if runner.under is None else runner.under(world, looked)
    plan = runner.plan_of(under, run_id, looked, deadline=deadline, remember=True)
    log_gaps(plan)
    if runner.planned is not None:
        runner.planned(world, looked)
    return GuardRun(carry_out(under, plan, deadline=deadline), looked, ahead)


def plan_guard(world: RunContext, run_id: str, *, progress: Progress = no_progress) -> Planned:
    """What that guard would plan now; nothing is written anywhere."""
    runner = runner_of(world.guard)
    looked = runner.see(world, deadline=None, progress=progress, remember=False)
    under = world if runner.under is None else runner.under(world, looked)
    plan = runner.plan_of(under, run_id, looked, deadline=None, remember=False)
    return Planned(plan, looked, looked if runner.of_budgets else None)


def plan_from(
    world: RunContext, run_id: str, seen: Scan, *, deadline: datetime | None = None, remember: bool = False
) -> Plan:
    """The plan for what was scanned, with memory and the closer reads it needs.

    A run, which has to `remember` accounts and what audit trails said, waits for what is due within minutes
    (`planned_when_due`); whoever only looks does not.
    """
    priced = replace(seen, facts=_priced(world, seen.facts))
    plan = partial(_plan_now, world, run_id, priced, deadline=deadline, remember=remember)
    room = partial(world.memory.caps.room_again, world.guard)
    return planned_when_due(world.clock, plan, room, deadline) if remember else plan()


def _priced(world: RunContext, facts: tuple[ShardFacts, ...]) -> tuple[ShardFacts, ...]:
    """What machines cost after discounts, for people to read: limits count list prices."""
    clouds = {shard.shard.cloud for shard in facts if any(fact.rate is not None for fact in shard.instances)}
    bills = {cloud: world.memory.bills.of_cloud(cloud) for cloud in clouds}
    return with_net_rates(facts, world.policy.discounts, bills, world.clock.now())


def _plan_now(world: RunContext, run_id: str, seen: Scan, *, deadline: datetime | None, remember: bool) -> Plan:
    memory, now = world.memory, world.clock.now()
    cases = memory.cases.active(world.guard)
    notices = notice_views(memory, cases, now)
    snoozes = memory.snoozes.all()
    inputs = PlanInputs(
        guard=world.guard,
        run_id=run_id,
        now=now,
        policy=_with_agreed(world.policy, snoozes.values(), now),
        facts=seen.facts,
        verdicts=verdicts_on(world.policy, seen.facts, now),  # once a plan: after a wait what was measured is older
        cases=cases,
        snoozes={ref: snooze.until for ref, snooze in snoozes.items()},
        kept_at={ref: snooze.at for ref, snooze in snoozes.items()},
        notices=notices,
        claims=claim_views(memory, cases, notices),
        caps=cap_views(memory, world.guard, caps_of(world.policy.idle_gpu), now),
        closed_accounts=seen.closed_accounts,
        gaps=seen.gaps,
        stop_all=stop_all(world, enforcing=any(rule.mode is Mode.ENFORCE for rule in world.policy.idle_gpu)),
        doubts=world.doubts,
        others=_others(world),
        hastened=memory.haste.granted(now),
        disowned=memory.disowned.all(),
        observing=known_accounts(world, {shard.shard: shard.complete for shard in seen.facts}, remember=remember),
        rollout=rollout_now(memory, world.policy, now),
    )
    trails = launched(world, inputs, deadline=deadline, remember=remember)
    bars = barred_accounts(world, inputs)
    gaps = (*inputs.gaps, *trails.gaps, *bars.gaps)
    inputs = replace(inputs, launches=trails.launches, barred=bars.accounts, gaps=gaps)
    whole = examined_closely(world, inputs, deadline)
    return with_shadows(world, whole, build_plan(whole))


def _with_agreed(policy: Policy, keeps: Iterable[Snooze], now: datetime) -> Policy:
    """The policy with the exceptions of the ledger beside its own, where there are any."""
    agreed = [keep for keep in keeps if keep.approver and keep.until > now]
    if not agreed:
        return policy
    from costguard.engine.ledger.exceptions import exemption_of

    found = map(exemption_of, sorted(agreed, key=lambda keep: keep.ref_text))
    return replace(policy, exemptions=(*policy.exemptions, *found))


def known_accounts(world: RunContext, whole: Mapping[Shard, bool], *, remember: bool) -> dict[str, datetime]:
    """In which of these accounts every rule only observes, each until when.

    `whole` are the shards that answered, by whether all of them was read; `remember` notes accounts never read before.
    """
    repository, now = AccountRepository(world.memory.store), world.clock.now()
    first_seen = repository.first_seen()
    if remember:
        repository.note((account_key(shard) for shard, all_read in whole.items() if all_read), first_seen, now)
    accounts = {account_key(shard) for shard in whole}
    return observing(accounts, first_seen, world.policy.observe_new_accounts_for, now)


def log_gaps(plan: Plan) -> None:
    """A line for each thing that could not be read."""
    for gap in plan.gaps[:_MOST_GAPS_LOGGED]:
        facts = {
            "shard": str(gap.shard),
            "what": gap.what,
            "kind": gap.kind.value,
            "detail": gap.detail,
            "fix": gap.fix,
        }
        _LOG.warning("could not be read", extra=facts)


def carry_out(world: RunContext, plan: Plan, *, deadline: datetime | None = None) -> RunReport:
    """Commit a plan's transitions, act on what is due, tell people, and close the run's record, as its guard does.

    A plan whose run was completed before does nothing.

    Raises:
        InvalidInputError: it is a plan of no guard that there is.
    """
    runner = runner_of(plan.guard)
    if not world.memory.runs.begin(plan.run_id, plan.guard, world.clock.now()):
        return RunReport(plan.run_id, None, duplicate=True)
    plan = committed(world, plan)
    results = () if _paused(world) or not plan.due else act(plan, world, runner.handler(world), deadline)
    if deadline is not None:  # else a run that is late every time would never tell anybody
        deadline = max(deadline, world.clock.now() + LEAST_TELLING)
    return concluded(world, plan, results, deadline)


def longest_wait(now: datetime, deadline: datetime | None) -> timedelta:
    """How long one run waits in all for channels that ask for it: those that do not ask have the other half."""
    return NOTICE_WAIT if deadline is None else max(NOTICE_WAIT, min(LONGEST_WAIT, (deadline - now) / 2))


def concluded(
    world: RunContext,
    plan: Plan,
    results: tuple[ActionResult, ...],
    deadline: datetime | None = None,
) -> RunReport:
    """Tell people of a plan that was carried out, keep what it saw, and close the run's record.

    What could not be told by the deadline is told by later runs.
    """
    runner, paused = runner_of(plan.guard), _paused(world)
    wait = longest_wait(world.clock.now(), deadline)
    done = {result.action.action_id for result in results if result.outcome is not None}
    plan = replace(plan, held=tuple(held for held in plan.held if held.action.action_id not in done))
    plan = plan if paused else runner.fit_to_tell(world, plan, deadline)
    notices = () if paused else tell(world, plan, runner.messages(world), wait, deadline)
    settle_observed(world.memory, plan, plan.billed_while_stopped)
    untagged = 0 if runner.mark is None else runner.mark(world, plan, deadline)
    report = RunReport(plan.run_id, plan, results, notices, waiting=world.memory.outbox.waiting(), untagged=untagged)
    keep_look(world.memory, plan)
    keep_shadows(world, plan)
    world.memory.runs.finish(plan.run_id, runner.figures(report), world.clock.now())
    return report


def summary(report: RunReport) -> dict[str, Any]:
    """The figures of a run for logs, metrics and the caller of a function."""
    plan = report.plan
    if plan is None:
        return {"run_id": report.run_id, "duplicate": True}
    verdicts: dict[str, int] = {}
    for finding in plan.findings:
        verdicts[finding.verdict.value] = verdicts.get(finding.verdict.value, 0) + 1
    told = {sent.decision_id for sent in report.notices if sent.proven}
    warned = [action.decision_id in told for action in plan.due if action.verb is Verb.WARN]
    unread = sum((each.action.verb, each.reason.code) == (Verb.WARN, ReasonCode.DETAIL_UNREAD) for each in plan.held)
    return {
        "run_id": report.run_id,
        "guard": plan.guard,
        "duplicate": False,
        "instances_seen": plan.instances_seen,
        "findings": verdicts,
        "due": len(plan.due) + unread,  # a warning that there was no time for, or that could not be looked at
        "done": sum(warned) + sum(result.outcome is not None and result.reason is None for result in report.results),
        "not_done": warned.count(False) + unread + sum(result.reason is not None for result in report.results),
        "held": len(plan.held) - unread,
        "rehearsed": len(plan.rehearsed),
        "gaps": len(plan.gaps),
        "notices": len(report.notices),
        **({"notices_waiting": report.waiting} if report.waiting else {}),
        **({"keeps_untagged": report.untagged} if report.untagged else {}),
        **({"shadows": shadow_figures(plan.shadows)} if plan.shadows else {}),
    }


def _others(world: RunContext) -> Mapping[ResourceRef, tuple[Case, ...]]:
    """The active cases of every other guard, by subject."""
    found: dict[ResourceRef, tuple[Case, ...]] = {}
    for case in world.memory.cases.active(*(guard for guard in GUARDS if guard != world.guard)):
        found[case.subject] = (*found.get(case.subject, ()), case)
    return found


def _paused(world: RunContext) -> bool:
    return pause_reason(world.memory, host_paused=world.host_paused) is not None


def stop_all(world: RunContext, *, enforcing: bool) -> Reason | None:
    """Why nothing may be done in this run at all; `enforcing`: whether any of the guard's rules does."""
    paused = pause_reason(world.memory, host_paused=world.host_paused)
    if paused is not None:
        return paused
    if world.policy_problem is not None:
        return world.policy_problem
    if enforcing and not world.memory.store.durable:
        return Reason(ReasonCode.LEDGER_NOT_DURABLE)
    return None


def committed(world: RunContext, plan: Plan) -> Plan:
    """The plan with its transitions written; what another run moved first is dropped from it.

    Where a cap holds something, what was reserved and can never be sent any more is given back, for the next run.
    """
    meant = [step for step in plan.transitions if step.before != step.after]
    written = moved(world.memory, world.workers, meant, plan.run_id, plan.planned_at)
    lost = {step.after.case_id for step in meant} - written.keys()
    release_unsent(world.memory, plan)
    return replace(
        plan,
        transitions=tuple(
            Transition(step.before, written.get(step.after.case_id, step.after))
            for step in plan.transitions
            if step.after.case_id not in lost
        ),
        due=tuple(action for action in plan.due if action.case_id not in lost),
        next_in_line=tuple(action for action in plan.next_in_line if action.case_id not in lost),
    )
