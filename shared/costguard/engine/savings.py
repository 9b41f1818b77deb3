"""The savings ledger: what a run's look and a bill change in it, and its report. Asks no cloud anything."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cache
from types import MappingProxyType

from costguard.cases import Case, CaseStatus
from costguard.domain.actions import Action, Outcome, Saving, Verb
from costguard.domain.money import Bill, ChargeCategory, PricingCategory, SpendLine, SpendReport, SpendScope
from costguard.domain.reasons import ReasonCode
from costguard.domain.refs import ResourceRef, Shard, Subject, provider_of
from costguard.domain.remediations import RemediationKind
from costguard.domain.resources import Billing
from costguard.domain.savings import (
    Coverage,
    MachineBill,
    MachineCharge,
    RecordedSaving,
    SavingCause,
    SavingChange,
    SavingsReport,
    Sighting,
)
from costguard.engine.ledger.intents import Intent
from costguard.engine.ledger.memory import Memory
from costguard.estimates.coverage import LOOKED_BACK, uncovered_in
from costguard.planning import Plan, PlanIndex, Transition
from costguard.planning.observed import Newcomers, observed, replacement
from costguard.planning.realised import HORIZON, Realised, realise
from costguard.planning.savings import confirmed_saving
from costguard.ports import Target

_FORGOTTEN = timedelta(days=5)  # more than any bill is late: the scope it was found in is read no more


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


_STOPPED_ELSEWHERE = dict.fromkeys((ReasonCode.STOPPED_BY_OTHERS, ReasonCode.STOP_UNCERTAIN), Verb.STOP)
_DONE = frozenset({Outcome.ACCEPTED, Outcome.TOOK_EFFECT, Outcome.UNKNOWN, None})
_SURE = frozenset({Outcome.ACCEPTED, Outcome.TOOK_EFFECT})
_HEEDED_WITHIN = timedelta(days=7)  # a machine stopped longer after its notice was stopped for a reason of its own
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
    from costguard.report.savings.sums import report_of

    return report_of(realised_now(memory, now, owner=owner, guard=guard), since, min(until, now), now)


def realised_now(memory: Memory, now: datetime, *, owner: str = "", guard: str = "") -> tuple[Realised, ...]:
    """Every saving as far as it is realised; with `owner` or `guard` only theirs."""
    known = (_attributed(memory, saving) for saving in memory.savings.all())
    everything = realise(known, memory.savings.looks(), memory.savings.bills(), now)
    return tuple(
        one
        for one in everything
        if (not owner or one.saving.owner == owner) and (not guard or one.saving.guard == guard)
    )


def _attributed(memory: Memory, saving: RecordedSaving) -> RecordedSaving:
    """With its cause: where none was sure when it was written, what came of its own call proves it, or nothing does."""
    if saving.cause is not None:
        return saving
    own = (each for each in memory.intents.for_case(saving.action.case_id) if each.action.verb is saving.action.verb)
    sure = any(each.outcome in _SURE and each.action.action_id == saving.action.action_id for each in own)
    return replace(saving, cause=SavingCause.COSTGUARD if sure else SavingCause.UNATTRIBUTED)


def keep_ledger(
    memory: Memory,
    plan: Plan,
    billed_while_stopped: Collection[Subject] = (),
    sent: Mapping[str, Sequence[Intent]] = MappingProxyType({}),
) -> None:
    """Write what a run has seen: actions complete, and what became of those before. Safe to repeat.

    `sent` are intents that were read already, by the id of their case; others are looked up.

    What changed is written before the look that saw it: a run that ends between the two is made up for by the next.
    """
    complete = [step for step in plan.transitions if _seen_complete(step) is not None]
    looks = bool(plan.looked or complete)
    known = list(memory.savings.current(step.after.subject for step in complete)) if looks else []
    seen = {sighting.ref: sighting for sighting in plan.sightings}
    recorded = {(saving.action.case_id, saving.action.verb) for saving in known}
    billed_on = frozenset(billed_while_stopped)
    look = _Look(memory, PlanIndex.of(plan), seen, billed_on, cache(memory.bills.of_cloud), sent)
    latest: dict[tuple[Subject, str], RecordedSaving] = {}
    for saving in known:
        _keep_latest(latest, saving)
    begun: list[RecordedSaving] = []
    for step in complete:
        verb = _seen_complete(step)
        if verb is None or (step.after.case_id, verb) in recorded:
            continue
        saving_begun = _confirmed(look, step.after, verb, latest)
        if saving_begun is not None:
            begun.append(saving_begun)
            _keep_latest(latest, saving_begun)
    known += memory.savings.record(*begun)
    if plan.looked:
        _observe(memory, plan, known, seen)


def _seen_complete(step: Transition) -> Verb | None:
    """What was seen complete by this run, or by an earlier one that ended before it was written."""
    case = step.after
    if case.status is CaseStatus.CLOSED:
        return {ReasonCode.TERMINATED: Verb.TERMINATE, ReasonCode.MENDED: Verb.MEND, **_STOPPED_ELSEWHERE}.get(
            case.reason.code
        )
    return Verb.STOP if case.climbed_at(Verb.STOP) is not None else None


@dataclass(frozen=True, slots=True)
class _Look:
    """What a run saw, as far as savings begin with it. `bills` are those of a cloud, each read once."""

    memory: Memory
    index: PlanIndex
    seen: Mapping[ResourceRef, Sighting]
    billed_on: Collection[Subject]
    bills: Callable[[str], tuple[Bill, ...]]
    sent: Mapping[str, Sequence[Intent]]


def _run_of(saving: RecordedSaving) -> tuple[ResourceRef, str]:
    """The machine, and which of its runs was ended."""
    return saving.action.subject, saving.action.run_epoch


def _keep_latest(latest: dict[tuple[Subject, str], RecordedSaving], saving: RecordedSaving) -> None:
    """By machine and run what was confirmed last, and of several at one moment the first."""
    before = latest.get(_run_of(saving))
    if before is None or saving.confirmed_at > before.confirmed_at:
        latest[_run_of(saving)] = saving


def _confirmed(
    look: _Look, case: Case, verb: Verb, latest: Mapping[tuple[Subject, str], RecordedSaving]
) -> RecordedSaving | None:
    """The saving to begin; None where the action was another case's, which records it, or saves nothing.

    `latest` has by machine and run the saving that was confirmed last.
    """
    if case.status is CaseStatus.CLOSED and case.reason.code in _STOPPED_ELSEWHERE:
        return _stopped_elsewhere(look, case)
    intent = _last(look, case, verb)
    if intent is None:
        return None
    at = look.index.plan.planned_at
    if verb is Verb.STOP:
        return _stopped(look, case, intent)
    if verb is Verb.TERMINATE:
        return _terminated(case, intent, at, latest.get((case.subject, case.run_epoch)))
    mend = intent.action.mend
    if mend is None or mend.kind is not RemediationKind.RELEASE_ADDRESS:
        return None  # no other mend ends a charge
    return RecordedSaving(intent.action, at, case.guard, None, case.name, case.owner, cause=_cause(intent))


def _cause(intent: Intent) -> SavingCause | None:
    return SavingCause.COSTGUARD if intent.outcome in _SURE else None


def _stopped_elsewhere(look: _Look, case: Case) -> RecordedSaving | None:
    """A stop that is not Costguard's, or not provably: of somebody who was told of the machine just before, if so.

    None where nobody was told of it: then it has nothing to do with Costguard. A spot machine may have been taken back.
    """
    told, at, machine = case.climbed_at(Verb.WARN), look.index.plan.planned_at, look.seen.get(case.subject)
    uncertain = case.reason.code is ReasonCode.STOP_UNCERTAIN
    if machine is None or case.climbed_at(Verb.STOP) is not None or (told is None and not uncertain):
        return None
    heeded = not uncertain and told is not None and at - told <= _HEEDED_WITHIN and machine.billing is Billing.ON_DEMAND
    billed_on = case.subject in look.billed_on
    kept = look.index.plan.kept.get(case.subject, (("volume", None),))  # disks of a price that nobody looked up
    worth = confirmed_saving(look.index.findings.get(case.subject), kept, billed_while_stopped=billed_on)
    action = Action(
        action_id=f"{case.case_id}-stopped-elsewhere",
        decision_id="",
        verb=Verb.STOP,
        subject=case.subject,
        resource=case.subject,
        run_epoch=case.run_epoch,
        case_id=case.case_id,
        rung=case.rung,
        rule=case.rule,
        rule_digest=case.rule_digest,
        saving=worth,
    )
    return RecordedSaving(
        action=action,
        confirmed_at=at,
        guard=case.guard,
        machine=machine,
        name=case.name,
        owner=case.owner,
        coverage=_coverage(look, machine, at),
        billed_on=billed_on,
        stop_request=machine.stopped_by,
        cause=SavingCause.PERSON if heeded else SavingCause.UNATTRIBUTED,
    )


def _stopped(look: _Look, case: Case, intent: Intent) -> RecordedSaving:
    agreed, machine, plan = intent.action.saving, look.seen.get(case.subject), look.index.plan
    at, billed_on = case.climbed_at(Verb.STOP) or plan.planned_at, case.subject in look.billed_on
    # a machine seen stopped is not read closely again: what stays billed was told when its stop was decided
    kept = plan.kept.get(case.subject, agreed.kept if agreed is not None else ())
    worth = confirmed_saving(look.index.findings.get(case.subject), kept, billed_while_stopped=billed_on)
    if worth.price is None and agreed is not None:
        worth = replace(worth, price=agreed.price, stops_billing=None if billed_on else agreed.stops_billing)
    return RecordedSaving(
        action=replace(intent.action, saving=worth),
        confirmed_at=at,
        guard=case.guard,
        machine=machine,
        name=case.name,
        owner=case.owner,
        coverage=_coverage(look, machine, at),
        billed_on=billed_on,
        stop_request=case.stop_request,
        cause=_cause(intent),
    )


def _terminated(case: Case, intent: Intent, at: datetime, stop: RecordedSaving | None) -> RecordedSaving:
    """What the stop before it saved goes on. Disks count as kept: their snapshots stay, and some disks do."""
    agreed = intent.action.saving
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
        cause=_cause(intent),
    )


def _observe(memory: Memory, plan: Plan, known: Sequence[RecordedSaving], seen: Mapping[ResourceRef, Sighting]) -> None:
    looked, before = frozenset(plan.looked), memory.savings.looks()
    ours = {saving.action.subject for saving in known}
    taken = ours | {change.other for saving in known for change in saving.changes if change.other is not None}
    terminated = {_run_of(saving) for saving in known if saving.action.verb is Verb.TERMINATE}
    newcomers = Newcomers(plan.sightings)
    shards: set[Shard] = set()
    for saving in known:
        shard = saving.action.subject.shard
        if not _still_counts(saving, plan.planned_at) or shard not in looked:
            continue
        if shard in before and plan.planned_at <= before[shard]:
            continue  # another run looked later, or just now
        shards.add(shard)
        if saving.action.verb is Verb.STOP and _run_of(saving) in terminated:
            continue  # the termination of the same run has taken over: that the machine is gone is no news
        sighting = seen.get(saving.action.subject)
        if saving.confirmed_at > plan.planned_at:
            continue  # a plan made before, applied late
        change = observed(saving, sighting, before.get(shard), plan.planned_at, _undone_at(memory, saving, sighting))
        if change is None:
            change = _replaced(memory, saving, newcomers, taken)
        if change is not None:
            memory.savings.change(saving, change)
            if change.other is not None:
                taken.add(change.other)
    memory.savings.looked(shards, plan.planned_at)
    memory.savings.unlist([saving for saving in known if _is_over(saving, plan.planned_at)])


def _replaced(
    memory: Memory, saving: RecordedSaving, newcomers: Newcomers, taken: set[ResourceRef]
) -> SavingChange | None:
    """What took its place, unless that has a part in a saving that ended, which is not among those read."""
    while True:
        change = replacement(saving, newcomers.around(saving), taken)
        if change is None or change.other is None or not memory.savings.took_part(change.other):
            return change
        taken.add(change.other)


def _is_over(saving: RecordedSaving, now: datetime) -> bool:
    """Whether it is listed, and nothing that is seen from now on changes it."""
    return saving.action.verb is not Verb.MEND and now >= saving.confirmed_at + 2 * HORIZON


def _still_counts(saving: RecordedSaving, now: datetime) -> bool:
    return saving.action.verb is not Verb.MEND and saving.ended_at is None and now < saving.confirmed_at + 2 * HORIZON


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


def _coverage(look: _Look, machine: Sighting | None, at: datetime) -> Coverage | None:
    if machine is None or provider_of(machine.ref.cloud) != _ITEMISED_ELSEWHERE:
        return None
    return uncovered_in(look.bills(machine.ref.cloud), machine.ref.account, machine.instance_type, at)


def _last(look: _Look, case: Case, verb: Verb) -> Intent | None:
    known = [intent for intent in look.sent.get(case.case_id, ()) if intent.action.verb is verb]
    sent = [
        intent
        for intent in known or look.memory.intents.for_case(case.case_id)
        if intent.action.verb is verb and intent.outcome in _DONE and "undoes" not in intent.action.parameters
    ]
    return max(sent, key=lambda intent: intent.claimed_at, default=None)
