"""Telling people of thresholds: each once to each address, through the outbox."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from costguard.cases.resolve import TELL_AGAIN
from costguard.engine.budget_look import BudgetLook
from costguard.engine.repositories.outbox import OutboxRepository
from costguard.engine.repositories.outbox_notice import Notice, NoticeState
from costguard.engine.surroundings import Surroundings
from costguard.guards.budget import BudgetStatus
from costguard.guards.budget_alerts import Crossing, crossings, stands_for, untold
from costguard.report.budget_notices import AlertFacts, alert_notice
from costguard.report.words import Language

_LOG = logging.getLogger(__name__)
_PERCENT = re.compile(r"([\d.]+) ?%")


def tell(world: Surroundings, looked: BudgetLook) -> Iterator[Crossing]:
    """Put what is still to be told into the outbox, once per threshold and address."""
    for status in (*looked.statuses, *(before for _, before in looked.before)):
        if status.period is None or status.spent is None:
            continue
        crossed = crossings(
            status.rule,
            status.period.key,
            status.spent.total,
            status.forecast.expected if status.forecast is not None else None,
            looked.now if status.surge is not None else None,
            None if status.burn_per_hour is None else status.spent.soon(status.burn_per_hour),
        )
        addresses = addresses_of(world, status)
        if not addresses:
            _LOG.warning("a budget has nobody to tell", extra={"budget": status.rule.name})
            continue
        told = AlertBook(world.memory.outbox, status.rule.name, addresses, world.clock.now())
        for crossing in untold(status.rule, status.period.key, crossed, told.everywhere):
            _enqueue(world, looked, status, crossing, told)
            yield crossing


def addresses_of(world: Surroundings, status: BudgetStatus) -> tuple[str, ...]:
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

    def everywhere(self, crossing: Crossing) -> bool:
        """Whether every address has it: a run that ended between two of them, or a new address, is made up for."""
        return all(self.to_tell(crossing, address) is None for address in self.addresses)

    def to_tell(self, crossing: Crossing, address: str) -> str | None:
        """The id of the notice that this address is still to get, None where it has it or will."""
        left = self._left(crossing.alert_id, address)
        return None if left is None or self.told_before(crossing, address) is not None else left

    def told_before(self, crossing: Crossing, address: str) -> Notice | None:
        """The notice that told of the same money in other words: before the budget was raised, or by an older program.

        What an older one wrote names the share in its title alone. Where that is less than this one, the budget was
        lowered since, and this threshold is news.
        """
        old = self.outbox.get(f"{crossing.old_id}/{address}")
        if old is not None and self._left(crossing.old_id, address) is None and _share_in(old.title) >= crossing.at:
            return old
        for one in self.outbox.beginning_with(f"{crossing.money_id}-"):
            alert_id = one.notice_id.partition("/")[0]
            mine = (one.case_key, one.channel) == (case_key_of(self.budget), address)
            if mine and stands_for(alert_id, crossing) and self._left(alert_id, address) is None:
                return one
        return None

    def _left(self, alert_id: str, address: str) -> str | None:
        """What a channel refused for good is told anew a day later, as warnings are: people repair tokens."""
        number, notice_id = 1, f"{alert_id}/{address}"
        known = self.outbox.get(notice_id)
        while known is not None and known.state is NoticeState.DEAD and self.now - known.created_at >= TELL_AGAIN:
            number += 1
            notice_id = f"{alert_id}/{address}/{number}"
            known = self.outbox.get(notice_id)
        return notice_id if known is None else None


def _enqueue(
    world: Surroundings, looked: BudgetLook, status: BudgetStatus, crossing: Crossing, told: AlertBook
) -> None:
    now = world.clock.now()
    spenders = looked.spenders[status.rule.name]
    facts = AlertFacts(status, crossing, spenders, looked.now, idle_is_known=looked.idle_is_known)
    worded = alert_notice(facts, Language(world.language))
    for address in told.addresses:
        notice_id = told.to_tell(crossing, address)
        if notice_id is None:
            continue
        world.memory.outbox.enqueue(
            Notice(
                notice_id=notice_id,
                decision_id="",
                case_key=case_key_of(status.rule.name),
                channel=address,
                title=worded.title,
                text=worded.text,
                fields=worded.fields,
                lines=worded.lines,
                created_at=now,
                next_attempt_at=now,
            )
        )


def _share_in(title: str) -> Decimal:
    """The last percentage of a title: the first may be part of a budget's name."""
    found = _PERCENT.findall(title)
    return Decimal(found[-1]) / 100 if found else Decimal("Infinity")
