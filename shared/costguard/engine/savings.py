"""The savings ledger: what a run's look changes in it, what bills say to it, and its report. Asks no cloud anything."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from costguard.cases import Case, CaseStatus
from costguard.domain.actions import Outcome, Saving, Verb
from costguard.domain.mends import MendKind
from costguard.domain.reasons import ReasonCode
from costguard.domain.refs import ResourceRef, Shard, Subject, provider_of
from costguard.domain.savings import Coverage, MachineBill, MachineCharge, RecordedSaving, SavingsReport, Sighting
from costguard.domain.spend import ChargeCategory, PricingCategory, SpendLine, SpendReport, SpendScope
from costguard.engine.memory import Memory
from costguard.engine.repositories.intents import Intent
from costguard.estimates.coverage import LOOKED_BACK, uncovered_in
from costguard.planning import Plan, Transition
from costguard.planning.observed import observed, replacement
from costguard.planning.realised import HORIZON, Realised, realise
from costguard.planning.savings import confirmed_saving
from costguard.ports import Target
from costguard.report.savings import report_of

_DONE = frozenset({Outcome.ACCEPTED, Outcome.TOOK_EFFECT, Outcome.UNKNOWN, None})
_FORGOTTEN = timedelta(days=5)  # more than any bill is late: the scope it was found in is read no more
_ITEMISED_ELSEWHERE = "aws"  # the bills of the others tell of each machine, and what covers it


def savings_report(
    memory: Memory,
    since: datetime,
    until: datetime,
    now: datetime,
    *,
    owner: str = "",
    guard: str = "",
) -> SavingsReport:
    """What was saved between two moments, as far as it is known; with `owner` or `guard` only theirs.

    Raises:
        LedgerError: memory failed.
    """
    return report_of(realised_now(memory, now, owner=owner, guard=guard), since, min(until, now), now)


def realised_now(memory: Memory, now: datetime, *, owner: str = "", guard: str = "") -> tuple[Realised, ...]:
    """Every saving as far as it is realised; with `owner` or `guard` only theirs."""
    everything = realise(memory.savings.all(), memory.savings.looks(), memory.savings.bills(), now)
    return tuple(
        one
        for one in everything
        if (not owner or one.saving.owner == owner) and (not guard or one.saving.guard == guard)
    )


def keep_ledger(memory: Memory, plan: Plan, billed_while_stopped: Collection[Subject] = ()) -> None:
    """Write what a run has seen: actions complete, and what became of those before. Safe to repeat.

    What changed is written before the look that saw it: a run that ends between the two is made up for by the next.
    """
    known = memory.savings.all() if plan.looked or any(map(_seen_complete, plan.transitions)) else ()
    seen = {sighting.ref: sighting for sighting in plan.sightings}
    recorded = {(saving.action.case_id, saving.action.verb) for saving in known}
    for step in plan.transitions:
        verb = _seen_complete(step)
        if verb is None or (step.after.case_id, verb) in recorded:
            continue
        saving = _confirmed(memory, plan, step.after, verb, seen, known, billed_while_stopped)
        if saving is not None and memory.savings.record(saving):
            known = (*known, saving)
    if plan.looked:
        _observe(memory, plan, known, seen)


def keep_bill(memory: Memory, target: Target, scope: SpendScope, report: SpendReport, since: datetime) -> None:
    """Keep what a bill, read anew from `since` on, has for each machine that saves.

    Bills that tell of no machine leave nothing. A machine belongs to the report of the scope that it was first found
    in: that another does not hold it is no proof that it cost nothing.
    """
    complete = report.complete_until
    if complete is None:
        return
    savings = {
        saving.action.subject.native_id: saving
        for saving in memory.savings.all()
        if saving.action.subject.cloud == target.cloud and since < saving.confirmed_at + HORIZON
    }
    charges = _charges(report.lines, savings)
    known = memory.savings.bills() if savings else {}
    for native_id, saving in savings.items():
        ref, anew = saving.action.subject, charges.get(native_id, ())
        before = known.get(ref)
        if before is None and not anew:
            continue
        if before is not None and before.scope != scope:
            if not anew or complete - before.complete_until < _FORGOTTEN:
                continue
            before = None
        kept = () if before is None else tuple(one for one in before.charges if one.end <= since)
        merged = (*kept, *(one for one in anew if one.end > since))
        in_order = tuple(sorted(merged, key=lambda one: (one.start, one.end)))
        memory.savings.put_bill(MachineBill(ref, scope, in_order, complete, report.source))


def _charges(
    lines: Iterable[SpendLine], savings: Mapping[str, RecordedSaving]
) -> Mapping[str, Sequence[MachineCharge]]:
    """The charges for these machines, from a week before they were stopped."""
    found: dict[str, list[MachineCharge]] = {}
    for line in lines:
        saving = savings.get(line.resource_id) if line.resource_id else None
        if saving is None or line.sub_account_id not in {"", saving.action.subject.account}:
            continue
        if line.charge_category is ChargeCategory.USAGE and line.charge_period_end > saving.confirmed_at - LOOKED_BACK:
            committed = line.pricing_category is PricingCategory.COMMITTED
            found.setdefault(line.resource_id, []).append(
                MachineCharge(
                    line.charge_period_start, line.charge_period_end, line.billed_cost, line.effective_cost, committed
                )
            )
    return found


def _seen_complete(step: Transition) -> Verb | None:
    """What was seen complete by this run, or by an earlier one that ended before it was written."""
    case = step.after
    if case.status is CaseStatus.CLOSED:
        return {ReasonCode.TERMINATED: Verb.TERMINATE, ReasonCode.MENDED: Verb.MEND}.get(case.reason.code)
    return Verb.STOP if case.climbed_at(Verb.STOP) is not None else None


def _confirmed(
    memory: Memory,
    plan: Plan,
    case: Case,
    verb: Verb,
    seen: Mapping[ResourceRef, Sighting],
    known: Sequence[RecordedSaving],
    billed_while_stopped: Collection[Subject],
) -> RecordedSaving | None:
    """The saving to begin; None where the action was another case's, which records it, or saves nothing."""
    intent = _last(memory, case, verb)
    if intent is None:
        return None
    if verb is Verb.STOP:
        return _stopped(memory, plan, case, intent, seen, billed_on=case.subject in billed_while_stopped)
    if verb is Verb.TERMINATE:
        return _terminated(case, intent, plan.planned_at, known)
    mend = intent.action.mend
    if mend is None or mend.kind is not MendKind.RELEASE_ADDRESS:
        return None  # no other mend ends a charge
    return RecordedSaving(intent.action, plan.planned_at, case.guard, None, case.name, case.owner)


def _stopped(
    memory: Memory, plan: Plan, case: Case, intent: Intent, seen: Mapping[ResourceRef, Sighting], *, billed_on: bool
) -> RecordedSaving:
    agreed, machine = intent.action.saving, seen.get(case.subject)
    at = case.climbed_at(Verb.STOP) or plan.planned_at
    finding = next((one for one in plan.findings if one.subject == case.subject), None)
    # a machine seen stopped is not read closely again: what stays billed was told when its stop was decided
    kept = plan.kept.get(case.subject, agreed.kept if agreed is not None else ())
    worth = confirmed_saving(finding, kept, billed_while_stopped=billed_on)
    if worth.price is None and agreed is not None:
        worth = replace(worth, price=agreed.price, stops_billing=None if billed_on else agreed.stops_billing)
    return RecordedSaving(
        action=replace(intent.action, saving=worth),
        confirmed_at=at,
        guard=case.guard,
        machine=machine,
        name=case.name,
        owner=case.owner,
        coverage=_coverage(memory, machine, at),
        billed_on=billed_on,
        stop_request=case.stop_request,
    )


def _terminated(case: Case, intent: Intent, at: datetime, known: Sequence[RecordedSaving]) -> RecordedSaving:
    """What the stop before it saved goes on. Disks count as kept: their snapshots stay, and some disks do."""
    agreed = intent.action.saving
    stops = [one for one in known if one.action.subject == case.subject and one.action.run_epoch == case.run_epoch]
    stop = max(stops, key=lambda one: one.confirmed_at, default=None)
    before = stop.action.saving if stop is not None else None
    price = next((one.price for one in (before, agreed) if one is not None and one.price is not None), None)
    rate = price.money if price is not None else before.stops_billing if before is not None else None
    kept = agreed.kept if agreed is not None and agreed.kept else before.kept if before is not None else ()
    return RecordedSaving(
        action=replace(intent.action, saving=Saving(rate, kept, price=price)),
        confirmed_at=at,
        guard=case.guard,
        machine=stop.machine if stop is not None else None,
        name=case.name,
        owner=case.owner,
        coverage=stop.coverage if stop is not None else None,
    )


def _observe(memory: Memory, plan: Plan, known: Sequence[RecordedSaving], seen: Mapping[ResourceRef, Sighting]) -> None:
    looked, before = frozenset(plan.looked), memory.savings.looks()
    ours = {saving.action.subject for saving in known}
    taken = ours | {change.other for saving in known for change in saving.changes if change.other is not None}
    shards: set[Shard] = set()
    for saving in known:
        shard = saving.action.subject.shard
        if not _still_counts(saving, plan.planned_at) or shard not in looked:
            continue
        if shard in before and plan.planned_at <= before[shard]:
            continue  # another run looked later, or just now
        shards.add(shard)
        if _finished_by_us(saving, known):
            continue
        sighting = seen.get(saving.action.subject)
        if saving.confirmed_at > plan.planned_at:
            continue  # a plan made before, applied late
        change = observed(saving, sighting, before.get(shard), plan.planned_at, _undone_at(memory, saving, sighting))
        if change is None:
            change = replacement(saving, plan.sightings, taken)
        if change is not None:
            memory.savings.change(saving, change)
            taken = taken | ({change.other} if change.other is not None else set())
    memory.savings.looked(shards, plan.planned_at)


def _still_counts(saving: RecordedSaving, now: datetime) -> bool:
    return saving.action.verb is not Verb.MEND and saving.ended_at is None and now < saving.confirmed_at + 2 * HORIZON


def _finished_by_us(saving: RecordedSaving, known: Sequence[RecordedSaving]) -> bool:
    """Whether a termination of the same run has taken over: that the machine is gone is then no news."""
    return saving.action.verb is Verb.STOP and any(
        other.action.verb is Verb.TERMINATE
        and (other.action.subject, other.action.run_epoch) == (saving.action.subject, saving.action.run_epoch)
        for other in known
    )


def _undone_at(memory: Memory, saving: RecordedSaving, sighting: Sighting | None) -> datetime | None:
    """When `costguard undo` asked for its start; looked up only for a machine that is not seen stopped."""
    if sighting is None or sighting.run_epoch == saving.action.run_epoch:
        return None
    return next(
        (
            intent.claimed_at
            for intent in memory.intents.for_case(saving.action.case_id)
            if intent.action.verb is Verb.START and intent.outcome in _DONE
        ),
        None,
    )


def _coverage(memory: Memory, machine: Sighting | None, at: datetime) -> Coverage | None:
    if machine is None or provider_of(machine.ref.cloud) != _ITEMISED_ELSEWHERE:
        return None
    return uncovered_in(memory.bills.of_cloud(machine.ref.cloud), machine.ref.account, machine.instance_type, at)


def _last(memory: Memory, case: Case, verb: Verb) -> Intent | None:
    sent = [
        intent
        for intent in memory.intents.for_case(case.case_id)
        if intent.action.verb is verb and intent.outcome in _DONE and "undoes" not in intent.action.parameters
    ]
    return max(sent, key=lambda intent: intent.claimed_at, default=None)
