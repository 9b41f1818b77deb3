"""Day one: what idle accelerators cost, whose they are, what could not be measured, and that nothing was changed.

Nothing here decides; instances that may never be touched count like any other, because their idle hours
are money too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Protocol

from costguard.domain.findings import Finding, InstanceFact, ShardFacts, Verdict
from costguard.domain.money import Money, totals
from costguard.domain.reasons import Reason, ReasonCode
from costguard.domain.refs import ResourceRef
from costguard.domain.resources import Gap, InstanceState
from costguard.report.waste.reclaim import Reclaim, reclaim_of

TOP = 10  # instances named one by one; the rest is in the CSV


class CallRow(Protocol):
    """One vendor operation and how often it was called; `ports.CallCount` is one."""

    @property
    def operation(self) -> str:
        """`ec2:DescribeInstances`."""

    @property
    def permission(self) -> str:
        """What it needs."""

    @property
    def calls(self) -> int:
        """How often it was sent."""

    @property
    def changes_something(self) -> bool:
        """Whether it can change anything."""


@dataclass(frozen=True, slots=True)
class InstanceWaste:
    """One instance over the look-back. Costs are None where its price is unknown: unknown is not zero.

    `untouchable` says why it is shown and never touched. `idle_cost_net` is after discounts, None where unknown.
    """

    fact: InstanceFact
    finding: Finding | None
    owner: str
    untouchable: Reason | None
    running_hours: Decimal
    idle_hours: int
    idle_cost: Money | None
    partly_idle_cost: Money | None
    idle_cost_net: Money | None = None

    @property
    def ref(self) -> ResourceRef:
        """What it is."""
        return self.fact.instance.ref


@dataclass(frozen=True, slots=True)
class OwnerWaste:
    """All instances of one owner. `unpriced` counts idle ones whose cost is in no total.

    `idle_cost_net` is after discounts, of those idle ones whose discount is known: of `without_net` it is not.
    """

    owner: str
    instances: int
    running_hours: Decimal
    idle_hours: int
    idle_cost: tuple[Money, ...]
    unpriced: int
    partly_idle_cost: tuple[Money, ...]
    untouchable: int
    idle_cost_net: tuple[Money, ...] = ()
    without_net: int = 0


@dataclass(frozen=True, slots=True)
class Unmeasured:
    """Instances that could not be judged for one reason. `share` is of all running hours, 0 to 1."""

    reason: Reason
    instances: tuple[InstanceWaste, ...]
    running_hours: Decimal
    share: Decimal


@dataclass(frozen=True, slots=True)
class WasteReport:
    """The whole report; `instances` most expensive idleness first."""

    since: datetime
    until: datetime
    instances_seen: int
    instances: tuple[InstanceWaste, ...]
    owners: tuple[OwnerWaste, ...]
    unmeasured: tuple[Unmeasured, ...]
    gaps: tuple[Gap, ...]
    calls: tuple[CallRow, ...]
    policy_digest: str = ""

    @property
    def top(self) -> tuple[InstanceWaste, ...]:
        """The idle instances worth naming, dearest first; those without a price after them."""
        return tuple(waste for waste in self.instances if waste.idle_hours > 0)[:TOP]

    @property
    def total(self) -> OwnerWaste:
        """All owners together; its owner is empty."""
        return _sum("", self.instances)

    @property
    def reclaim(self) -> Reclaim:
        """Of what idles now: how much of it can be reclaimed, waits for a yes, or may not be touched."""
        found = ((waste.finding, waste.fact.rate) for waste in self.instances)
        return reclaim_of(
            (one.standing, rate.money if rate is not None else None) for one, rate in found if one is not None
        )

    @property
    def unmeasured_share(self) -> Decimal:
        """Share of all running hours whose use is unknown."""
        return sum((group.share for group in self.unmeasured), Decimal(0))

    @property
    def changing_calls(self) -> int:
        """Calls sent that can change something; 0 on a scan."""
        return sum(row.calls for row in self.calls if row.changes_something)


def waste_report(
    shards: Iterable[ShardFacts],
    findings: Iterable[Finding],
    *,
    since: datetime,
    until: datetime,
    gaps: Iterable[Gap] = (),
    calls: Iterable[CallRow] = (),
    policy_digest: str = "",
) -> WasteReport:
    """Add up what was examined. `gaps` are those outside shards, such as accounts that could not be listed."""
    examined = tuple(shards)
    by_subject: dict[ResourceRef, list[Finding]] = {}
    for finding in findings:
        if isinstance(finding.subject, ResourceRef):
            by_subject.setdefault(finding.subject, []).append(finding)
    instances = [_waste(fact, by_subject.get(fact.instance.ref, ())) for shard in examined for fact in shard.instances]
    instances.sort(key=_dearest_first)
    all_gaps = (*gaps, *(gap for shard in examined for gap in shard.gaps))
    return WasteReport(
        since=since,
        until=until,
        instances_seen=sum(shard.instances_seen for shard in examined),
        instances=tuple(instances),
        owners=_by_owner(instances),
        unmeasured=_unmeasured(instances),
        gaps=tuple(dict.fromkeys(all_gaps)),
        calls=tuple(sorted(calls, key=lambda row: row.operation)),
        policy_digest=policy_digest,
    )


def _waste(fact: InstanceFact, findings: Sequence[Finding]) -> InstanceWaste:
    finding = min(findings, key=_most_telling, default=None)
    usage = fact.usage or (finding.usage if finding else None)
    rate = fact.rate or (finding.rate if finding else None)
    idle_hours = usage.idle_hours if usage else 0
    cards = Decimal(str(fact.instance.accelerator.count))
    partly_hours = Decimal(usage.partly_idle_card_hours) / cards if usage and cards > 0 else Decimal(0)
    return InstanceWaste(
        fact=fact,
        finding=finding,
        owner=finding.owner if finding else "",
        untouchable=finding.reason if finding and finding.verdict is Verdict.EXEMPT else None,
        running_hours=Decimal(str(usage.running_hours)) if usage else Decimal(0),
        idle_hours=idle_hours,
        idle_cost=rate.money.times(idle_hours) if rate else None,
        partly_idle_cost=rate.money.times(partly_hours) if rate else None,
        idle_cost_net=rate.after_discounts(rate.money.times(idle_hours)) if rate else None,
    )


_TELLING = (Verdict.EXEMPT, Verdict.UNMEASURED, Verdict.COMPLIANT, Verdict.VIOLATION)  # gentlest first


def _most_telling(finding: Finding) -> int:
    return _TELLING.index(finding.verdict)


def _dearest_first(waste: InstanceWaste) -> tuple[bool, str, Decimal, int, str]:
    cost = waste.idle_cost
    if cost is None:
        return (True, "", Decimal(0), -waste.idle_hours, str(waste.ref))
    return (False, "" if cost.currency == "USD" else cost.currency, -cost.amount, -waste.idle_hours, str(waste.ref))


def _by_owner(instances: Iterable[InstanceWaste]) -> tuple[OwnerWaste, ...]:
    groups: dict[str, list[InstanceWaste]] = {}
    for waste in instances:
        groups.setdefault(waste.owner, []).append(waste)
    return tuple(_sum(owner, group) for owner, group in groups.items())  # of instances dearest first


def _sum(owner: str, group: Sequence[InstanceWaste]) -> OwnerWaste:
    return OwnerWaste(
        owner=owner,
        instances=len(group),
        running_hours=sum((waste.running_hours for waste in group), Decimal(0)),
        idle_hours=sum(waste.idle_hours for waste in group),
        idle_cost=totals(waste.idle_cost for waste in group if waste.idle_cost and waste.idle_cost.amount),
        unpriced=sum(waste.idle_cost is None and waste.idle_hours > 0 for waste in group),
        partly_idle_cost=totals(
            waste.partly_idle_cost for waste in group if waste.partly_idle_cost and waste.partly_idle_cost.amount
        ),
        untouchable=sum(waste.untouchable is not None for waste in group),
        idle_cost_net=totals(waste.idle_cost_net for waste in group if waste.idle_cost_net and waste.idle_hours),
        without_net=sum(waste.idle_cost_net is None and bool(waste.idle_hours) for waste in group),
    )


def by_owner_and_cloud(report: WasteReport) -> tuple[tuple[str, OwnerWaste], ...]:
    """The same by owner and cloud: each cloud with what one owner has there, dearest first."""
    groups: dict[tuple[str, str], list[InstanceWaste]] = {}
    for waste in report.instances:  # dearest first
        groups.setdefault((waste.ref.cloud, waste.owner), []).append(waste)
    return tuple((cloud, _sum(owner, group)) for (cloud, owner), group in groups.items())


def never_touched(report: WasteReport) -> tuple[tuple[ReasonCode, OwnerWaste], ...]:
    """What is shown and never touched, by why, most machines first."""
    groups: dict[ReasonCode, list[InstanceWaste]] = {}
    for waste in report.instances:
        if waste.untouchable is not None:
            groups.setdefault(waste.untouchable.code, []).append(waste)
    summed = ((code, _sum("", group)) for code, group in groups.items())
    return tuple(sorted(summed, key=lambda pair: (-pair[1].instances, pair[0].value)))


def _unmeasured(instances: Sequence[InstanceWaste]) -> tuple[Unmeasured, ...]:
    running = sum((waste.running_hours for waste in instances), Decimal(0))
    groups: dict[tuple[ReasonCode, str], list[InstanceWaste]] = {}
    for waste in instances:
        why = _why_unmeasured(waste)
        if why is not None:
            groups.setdefault(why, []).append(waste)
    return tuple(
        Unmeasured(
            reason=Reason(code, {"kind": kind} if kind else {}),
            instances=tuple(group),
            running_hours=(hours := sum((waste.running_hours for waste in group), Decimal(0))),
            share=hours / running if running else Decimal(0),
        )
        for (code, kind), group in sorted(groups.items(), key=lambda item: (-len(item[1]), item[0][0].value))
    )


UNMEASURED = frozenset(
    {
        ReasonCode.TOO_YOUNG,
        ReasonCode.NO_DEVICE_METRIC,
        ReasonCode.NO_DATA,
        ReasonCode.DEVICE_MISSING,
        ReasonCode.SIGNAL_MISSING,
        ReasonCode.LOW_COVERAGE,
        ReasonCode.STALE,
        ReasonCode.IMPLAUSIBLE,
        ReasonCode.CONTRADICTED,
        ReasonCode.SIGNALS_UNREAD,
    }
)


def _why_unmeasured(waste: InstanceWaste) -> tuple[ReasonCode, str] | None:
    """The reason, and the family of devices where that decides how to mend it; also of what is never touched."""
    finding, instance = waste.finding, waste.fact.instance
    if finding is None or instance.state is not InstanceState.RUNNING:
        return None
    said = finding.reason.facts.get("utilisation", finding.reason.code.value)
    code = next((known for known in UNMEASURED if known.value == said), None)
    if code is None:
        return None
    return (code, instance.accelerator.kind.value if code is ReasonCode.NO_DEVICE_METRIC else "")
