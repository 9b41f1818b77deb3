"""Telling people of thresholds, each once to each address; and what the ledger then knows of each budget."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from functools import partial

from costguard.cases.resolve import TELL_AGAIN
from costguard.domain.money import Money
from costguard.domain.refs import ResourceRef
from costguard.engine.guards.budgets.look import BudgetLook
from costguard.engine.ledger.budgets import BudgetPeriodRepository
from costguard.engine.ledger.memory import Memory
from costguard.engine.ledger.notices import NoticeState, OutboxNotice
from costguard.engine.ledger.outbox import OutboxRepository
from costguard.engine.ledger.runs import LookRepository
from costguard.engine.run.run_context import RunContext
from costguard.guards.budget.alerts import (
    Crossing,
    crossings,
    fallen_back,
    once_more,
    scope_id,
    stands_for,
    thresholds,
    untold,
)
from costguard.guards.budget.judge import NAME, BudgetStatus
from costguard.report.budget.notices import AlertFacts, alert_notice
from costguard.report.budget.views import AlertTold, BudgetReport
from costguard.report.facts import BudgetSnapshot
from costguard.report.words.sentences import Language

_LOG = logging.getLogger(__name__)
_EARLY = "early"  # what a notice tells that is not certain
_PERCENT = re.compile(r"([\d.]+) ?%")


def tell(world: RunContext, looked: BudgetLook) -> Iterator[Crossing]:
    """Put what is still to be told into the outbox, once per threshold and address."""
    for status in (*looked.statuses, *(before for _, before in looked.before)):
        if status.period is None or status.spent is None:
            continue
        addresses = addresses_of(world, status)
        if not addresses:
            _LOG.warning("a budget has nobody to tell", extra={"budget": status.rule.name})
            continue
        rule, period = status.rule, status.period.key
        told = AlertBook(world.memory.outbox, rule.name, addresses, world.clock.now())
        told = replace(told, again=_armed_again(world, looked, status, told))
        soon = _soon(status)
        crossed = crossings(
            rule,
            period,
            status.spent.certain,
            status.forecast.expected if status.forecast is not None else None,
            looked.now if status.surge is not None else None,
            None if status.over else soon,
        )
        for crossing in untold(rule, period, crossed, told.everywhere, told.again):
            _enqueue(world, looked, status, crossing, told)
            yield crossing


def _soon(status: BudgetStatus) -> Money | None:
    """What may be spent before the next look; of a period that is over, what was by all that is known."""
    if status.spent is None or status.burn_per_hour is None:
        return None if status.spent is None else status.spent.total
    return status.spent.soon(status.burn_per_hour)


def _armed_again(world: RunContext, looked: BudgetLook, status: BudgetStatus, told: AlertBook) -> frozenset[str]:
    """The early alerts of this period that did not come true; those of which this look says so are remembered.

    A look that could not read everything says of nothing that it did not come true.
    """
    rule, soon = status.rule, _soon(status)
    if status.period is None or soon is None:
        return frozenset()
    periods, scope, period = BudgetPeriodRepository(world.memory.store), scope_id(rule), status.period.key
    known = frozenset(one for each in periods.of(scope, period).values() for one in each.again)
    if status.unread or status.gaps:
        return known
    fell = fallen_back(rule, period, soon, partial(told.early, looked.now)) - known
    if fell:
        periods.arm(scope, period, fell)
    return known | fell


def addresses_of(world: RunContext, status: BudgetStatus) -> tuple[str, ...]:
    """Who is told of this budget."""
    return status.rule.tell or tuple(filter(None, (world.policy.default_channel,)))


def case_key_of(budget: str) -> str:
    """What the notices of a budget's thresholds are about."""
    return f"budget/spent/scope:{budget}"


@dataclass(frozen=True, slots=True)
class AlertBook:
    """Which addresses of one budget know of which thresholds."""

    outbox: OutboxRepository
    budget: str
    addresses: tuple[str, ...]
    now: datetime
    again: frozenset[str] = frozenset()

    def early(self, looked: datetime, crossing: Crossing) -> Iterator[str]:
        """The alerts of this money that were told before it was certain, and before this look, by id."""
        for one in self.outbox.beginning_with(f"{crossing.money_id}-"):
            alert_id = one.notice_id.partition("/")[0]
            meant = alert_id == crossing.alert_id or (self._is_mine(one) and stands_for(alert_id, crossing))
            if meant and one.kind == _EARLY and one.created_at <= looked:
                yield alert_id

    def everywhere(self, crossing: Crossing) -> bool:
        """Whether every address has it: a run that ended between two of them, or a new address, is made up for."""
        return all(self.to_tell(crossing, address) is None for address in self.addresses)

    def to_tell(self, crossing: Crossing, address: str) -> str | None:
        """The id of the notice that this address is still to get, None where it has it or will."""
        left = self._left(crossing.alert_id, address)
        return None if left is None or self.told_before(crossing, address) is not None else left

    def told_before(self, crossing: Crossing, address: str) -> OutboxNotice | None:
        """The notice that told of the same money in other words: before the budget was raised, or by an older program.

        What an older one wrote names the share in its title alone. Where that is less than this one, the budget was
        lowered since, and this threshold is news.
        """
        old = self.outbox.get(f"{crossing.old_id}/{address}")
        if old is not None and self._left(crossing.old_id, address) is None and _share_in(old.title) >= crossing.at:
            return old
        for one in self.outbox.beginning_with(f"{crossing.money_id}-"):
            alert_id = one.notice_id.partition("/")[0]
            mine = self._is_mine(one) and one.channel == address and alert_id not in self.again
            if mine and stands_for(alert_id, crossing) and self._left(alert_id, address) is None:
                return one
        return None

    def _is_mine(self, notice: OutboxNotice) -> bool:
        return notice.case_key == case_key_of(self.budget)

    def _left(self, alert_id: str, address: str) -> str | None:
        """What a channel refused for good is told anew a day later, as warnings are: people repair tokens."""
        number, notice_id = 1, f"{alert_id}/{address}"
        known = self.outbox.get(notice_id)
        while known is not None and known.state is NoticeState.DEAD and self.now - known.created_at >= TELL_AGAIN:
            number += 1
            notice_id = f"{alert_id}/{address}/{number}"
            known = self.outbox.get(notice_id)
        return notice_id if known is None else None


def _enqueue(world: RunContext, looked: BudgetLook, status: BudgetStatus, crossing: Crossing, told: AlertBook) -> None:
    now = world.clock.now()
    spenders = looked.spenders[status.rule.name]
    facts = AlertFacts(status, crossing, spenders, looked.now, idle_is_known=looked.idle_is_known)
    worded = alert_notice(facts, Language(world.language))
    for address in told.addresses:
        notice_id = told.to_tell(crossing, address)
        if notice_id is None:
            continue
        world.memory.outbox.enqueue(
            OutboxNotice(
                notice_id=notice_id,
                decision_id="",
                case_key=case_key_of(status.rule.name),
                channel=address,
                title=worded.title,
                text=worded.text,
                fields=worded.fields,
                lines=worded.lines,
                kind=_EARLY if crossing.early else "",
                created_at=now,
                next_attempt_at=now,
            )
        )


def _share_in(title: str) -> Decimal:
    """The last percentage of a title: the first may be part of a budget's name."""
    found = _PERCENT.findall(title)
    return Decimal(found[-1]) / 100 if found else Decimal("Infinity")


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


def keep_budgets(memory: Memory, looked: BudgetLook) -> None:
    """Remember where every budget stands.

    Raises:
        LedgerError: memory failed.
    """
    LookRepository(memory.store).keep_budgets(budget_sights(looked))


def budget_sights(looked: BudgetLook) -> Iterator[BudgetSnapshot]:
    """Where each budget stands that has a period now."""
    for status in looked.statuses:
        if status.period is None or status.spent is None:
            continue
        days = status.period.days
        ahead = status.forecast
        yield BudgetSnapshot(
            name=status.rule.name,
            at=looked.now,
            period=status.period.key,
            first=days[0].day,
            last=days[-1].day,
            amount=status.rule.amount,
            spent=status.spent.total,
            days=tuple(_days(status)),
            billed=status.spent.billed,
            burn_per_hour=status.burn_per_hour,
            best=None if ahead is None else ahead.low,
            expected=None if ahead is None else ahead.expected,
            worst=None if ahead is None else ahead.high,
            unread=status.unread,
            doubts=status.doubts,
        )


def _days(status: BudgetStatus) -> Iterator[tuple[date, Decimal]]:
    first = status.period.days[0].day if status.period is not None else date.max
    yield from ((one.day, one.spent.amount) for one in status.history if one.day >= first)
