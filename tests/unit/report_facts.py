"""Facts of a report that a test is about; everything not named is ordinary."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

from tests.builders import ref

from costguard.domain.actions import Verb
from costguard.domain.findings import Verdict
from costguard.domain.money import Money
from costguard.domain.reasons import Reason, ReasonCode
from costguard.domain.refs import Shard
from costguard.domain.resources import Gap, GapKind
from costguard.domain.savings import DaySaved, SavingsReport, SavingsTotal
from costguard.report.facts import BudgetSnapshot, Refusal, ReportFacts, ResourceSnapshot, ScanSnapshot

NOW = datetime(2026, 3, 9, 16, 0, tzinfo=timezone.utc)
DAY = timedelta(days=1)
IDLE = Reason(ReasonCode.IDLE, {"lasting_hours": 24, "maximum_percent": 0.0})


def usd(amount: str) -> Money:
    return Money(Decimal(amount), "USD")


def sight(native_id: str = "i-1", **changes: Any) -> ResourceSnapshot:
    """A machine idle for a day, at a dollar an hour, of the vision team."""
    ordinary: dict[str, Any] = {
        "ref": ref(native_id),
        "check": "idle",
        "verdict": Verdict.VIOLATION,
        "reason": IDLE,
        "name": f"machine-{native_id}",
        "instance_type": "g5.xlarge",
        "owner": "vision",
        "rule": "research",
        "hourly": usd("1"),
        "busiest": 0.5,
        "coverage": 1.0,
        "since": NOW - DAY,
        "first_day": (NOW - 3 * DAY).date(),
        "busy": (90.0, 2.0, 0.0, 0.5),
    }
    return ResourceSnapshot(**{**ordinary, **changes})


def untouchable(native_id: str = "i-k8s", **changes: Any) -> ResourceSnapshot:
    """A node of Kubernetes that is idle."""
    reason = Reason(ReasonCode.KUBERNETES, {"utilisation": "idle", "name": "prod"})
    return sight(native_id, verdict=Verdict.EXEMPT, reason=reason, owner="platform", **changes)


def look(*sights: ResourceSnapshot, **changes: Any) -> ScanSnapshot:
    ordinary: dict[str, Any] = {"guard": "idle_gpu", "run_id": "r", "at": NOW, "seen": len(sights), "sights": sights}
    return ScanSnapshot(**{**ordinary, **changes})


def budget(name: str = "research", spent: str = "640", **changes: Any) -> BudgetSnapshot:
    """A thousand dollars for March."""
    ordinary: dict[str, Any] = {
        "name": name,
        "at": NOW,
        "period": "2026-03",
        "first": NOW.date().replace(day=1),
        "last": NOW.date().replace(day=31),
        "amount": usd("1000"),
        "spent": usd(spent),
        "days": ((NOW.date().replace(day=1), Decimal(80)), (NOW.date().replace(day=2), Decimal(70))),
        "best": usd("900"),
        "expected": usd("1200"),
        "worst": usd("2000"),
    }
    return BudgetSnapshot(**{**ordinary, **changes})


def saved(amount: str = "250") -> SavingsReport:
    total = SavingsTotal("", usd("300"), usd(amount), usd("5"), 2)
    days = tuple(DaySaved((NOW - DAY * back).date(), usd("10")) for back in (3, 2, 1))
    return SavingsReport(NOW - 7 * DAY, NOW, NOW, totals=(total,), daily=days)


def gap(what: str = "accounts", account: str = "444455556666") -> Gap:
    return Gap(Shard("aws", account), what, GapKind.DENIED, "sts:AssumeRole: AccessDenied", "allow sts:AssumeRole")


def refusal() -> Refusal:
    return Refusal(NOW - DAY, Verb.STOP, ref("i-1"), "vision", "UnsupportedOperation: it says no")


def facts(**changes: Any) -> ReportFacts:
    ordinary: dict[str, Any] = {
        "at": NOW,
        "since": NOW - 7 * DAY,
        "looks": (look(sight(), untouchable()),),
        "budgets": (budget(),),
        "saved": saved(),
    }
    return ReportFacts(**{**ordinary, **changes})
