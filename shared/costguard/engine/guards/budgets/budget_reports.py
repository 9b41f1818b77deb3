"""What the ledger knows of a budget: which thresholds people were told of, and which machines are asked for."""

from __future__ import annotations

from collections.abc import Iterator

from costguard.domain.refs import ResourceRef
from costguard.engine.guards.budgets.look import BudgetLook
from costguard.engine.guards.budgets.notifying import AlertBook, addresses_of
from costguard.engine.run.run_context import RunContext
from costguard.guards.budget.alerts import crossings, once_more, thresholds
from costguard.guards.budget.judge import NAME, BudgetStatus
from costguard.report.budget.views import AlertTold, BudgetReport


def budget_reports(world: RunContext, looked: BudgetLook, only: str = "") -> tuple[BudgetReport, ...]:
    """Every budget as people are shown it, or the one named; reads the ledger and writes nothing."""
    names = {fact.instance.ref: fact.instance.name for shard in looked.seen.facts for fact in shard.instances}
    cases = world.memory.cases.active(NAME)
    return tuple(
        BudgetReport(
            status,
            looked.now,
            told=tuple(_told(world, status, looked)),
            under_way=tuple(
                case.subject
                for case in cases
                if case.rule.partition("@")[0] == status.rule.name and isinstance(case.subject, ResourceRef)
            ),
            names=names,
        )
        for status in looked.statuses
        if not only or status.rule.name == only
    )


def _told(world: RunContext, status: BudgetStatus, looked: BudgetLook) -> Iterator[AlertTold]:
    """Thresholds of this period in order, and a surge of today; each address by itself."""
    if status.period is None or status.spent is None:
        return
    rule, key = status.rule, status.period.key
    today = crossings(rule, key, status.rule.amount.times(0), None, looked.now)
    addresses = addresses_of(world, status)
    told = AlertBook(world.memory.outbox, rule.name, addresses, looked.now)
    for crossing in (*thresholds(rule, key), *today):
        for address in addresses:
            again = world.memory.outbox.get(f"{once_more(crossing).alert_id}/{address}")
            first = world.memory.outbox.get(f"{crossing.alert_id}/{address}") or told.told_before(crossing, address)
            for notice in (one for one in (first, again) if one is not None):
                yield AlertTold(crossing.kind, crossing.at, notice.title, address, notice.delivered_at)
