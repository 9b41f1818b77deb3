"""What bills say to the savings ledger: the charges of each machine that saves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from costguard.domain.money import ChargeCategory, PricingCategory, SpendLine, SpendReport, SpendScope
from costguard.domain.savings import MachineBill, MachineCharge, RecordedSaving
from costguard.engine.ledger.memory import Memory
from costguard.estimates.coverage import LOOKED_BACK
from costguard.planning.realised import HORIZON
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
