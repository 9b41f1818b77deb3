"""Short ways to say what was stopped when, and what was seen of it."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

from tests.builders import ref, usd

from costguard.domain.actions import Action, Saving, Verb
from costguard.domain.money import HourlyRate, Money, SpendScope
from costguard.domain.refs import ResourceRef, Shard
from costguard.domain.resources import Billing, InstanceState
from costguard.domain.savings import (
    MachineBill,
    MachineCharge,
    RecordedSaving,
    SavingCause,
    SavingChange,
    SavingStanding,
    Sighting,
)

MIDNIGHT = datetime(2026, 3, 10, tzinfo=timezone.utc)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
RATE = HourlyRate(usd("3"), "aws-pricing", "2026-03-09")
DISKS: tuple[tuple[str, Money | None], ...] = (("volume", usd("0.5")),)


def sighting(native_id: str = "i-1", **changes: Any) -> Sighting:
    """A machine of the vision team, seen stopped."""
    ordinary = Sighting(
        ref=ref(native_id),
        state=InstanceState.STOPPED,
        run_epoch="epoch-1",
        launched_at=MIDNIGHT - 10 * DAY,
        billing=Billing.ON_DEMAND,
        instance_type="g5g.xlarge",
        name="notebook-1",
        owner="vision",
        alike="tags-1",
    )
    return replace(ordinary, **changes)


def saving(native_id: str = "i-1", at: datetime = MIDNIGHT, **changes: Any) -> RecordedSaving:
    """A stop that ends 3 USD an hour, while disks for half a dollar stay billed."""
    verb = changes.pop("verb", Verb.STOP)
    worth = changes.pop("worth", Saving(RATE.money, DISKS, price=RATE))
    case_id = changes.pop("case_id", f"case-{native_id}")
    subject: ResourceRef = changes.pop("subject", ref(native_id))
    action = Action(
        action_id=changes.pop("action_id", f"{case_id}-{verb.value}"),
        decision_id="d",
        verb=verb,
        subject=subject,
        resource=subject,
        run_epoch=changes.pop("run_epoch", "epoch-1"),
        case_id=case_id,
        rung=1,
        rule="research",
        rule_digest="digest",
        saving=worth,
    )
    ordinary = RecordedSaving(
        action, at, "idle_gpu", sighting(native_id), "notebook-1", "vision", cause=SavingCause.COSTGUARD
    )
    return replace(ordinary, **changes)


def ended(what: RecordedSaving, standing: SavingStanding, at: datetime) -> RecordedSaving:
    return replace(what, changes=(*what.changes, SavingChange(standing, at)))


def looked(at: datetime) -> dict[Shard, datetime]:
    return {ref().shard: at}


def charge(
    start: datetime, cost: str, length: timedelta = DAY, *, committed: bool = False, currency: str = "USD"
) -> MachineCharge:
    money = Money(Decimal(cost), currency)
    return MachineCharge(start, start + length, money, money, committed)


def bill(*charges: MachineCharge, until: datetime) -> dict[ResourceRef, MachineBill]:
    return {ref(): MachineBill(ref(), SpendScope(), charges, until, "alibaba-bss")}
