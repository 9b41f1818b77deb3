"""What an action is worth and what it risks, told before it is done, and whose machines cost most."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from costguard.domain.actions import Saving, Verb
from costguard.domain.findings import Finding, InstanceFact, ShardFacts
from costguard.domain.money import Money, SpendScope
from costguard.domain.refs import ResourceRef, Subject
from costguard.domain.resources import Instance, InstanceDetail, InstanceState, Launch
from costguard.domain.savings import Sighting
from costguard.guards.rules.common import Limits
from costguard.planning.plan import KeptLines
from costguard.planning.rails import exemption
from costguard.policy.model.ownership import owner_name
from costguard.policy.model.policy import Policy

_NAME_TAGS = frozenset({"name", "hostname", "description"})  # what differs between machines that are otherwise alike


SHIPPED_LIMITS = Limits()


def saving_of(
    verb: Verb, fact: InstanceFact | None, kept: KeptLines | None, limits: Limits = SHIPPED_LIMITS
) -> Saving | None:
    """The hourly effect of `verb` on one instance; None where it saves nothing by itself.

    A stop saves the instance's hourly rate, and a notice says what the stop it announces would save;
    what stays billed is listed beside it, never subtracted in silence. Terminating a stopped instance
    saves the disks, whose price is in `kept`.
    """
    if fact is None or verb in {Verb.SNAPSHOT, Verb.START}:
        return None
    running = fact.instance.state is InstanceState.RUNNING
    stops = fact.rate.money if fact.rate is not None and running else None
    return Saving(
        stops_billing=stops,
        kept=tuple(kept or ()),
        risks=risks_of(fact.instance, limits),
        price=fact.rate,
        local_disk_gib=fact.instance.local_disk_gib,
    )


def confirmed_saving(finding: Finding | None, kept: KeptLines, *, billed_while_stopped: bool = False) -> Saving:
    """What a stop seen complete saves from now on, at the rate last known; nothing where the cloud bills on."""
    rate = finding.rate if finding is not None else None
    stops = rate.money if rate is not None and not billed_while_stopped else None
    return Saving(stops_billing=stops, kept=tuple(kept), price=rate)


def risks_of(instance: Instance, limits: Limits = SHIPPED_LIMITS) -> tuple[str, ...]:
    """What may be lost by stopping `instance`; which types are scarce the rule's limits say."""
    risks = []
    if instance.local_disk_gib is None or instance.local_disk_gib > 0:
        risks.append("local_disk_lost")
    if instance.public_ip and not instance.public_ip_is_kept:
        risks.append("public_ip_lost")
    if limits.is_scarce(instance):
        risks.append("scarce_type")
    return tuple(risks)


def copying_risk(ahead: Sequence[Verb], instance: Instance, detail: InstanceDetail | None) -> tuple[str, ...]:
    """How far copies can be relied on that are made while the machine runs; none where no such copy is ahead.

    What spans several disks is consistent only where they are copied as a set; of disks that nobody looked at nothing
    is said but that each copy is as after a power cut.
    """
    before_stop = ahead[: ahead.index(Verb.STOP)] if Verb.STOP in ahead else ahead
    if instance.state is not InstanceState.RUNNING or Verb.SNAPSHOT not in before_stop:
        return ()
    if detail is None or len(detail.volumes) <= 1:
        return ("crash_consistent",)
    return ("crash_consistent_together" if detail.copied_together else "crash_consistent_each",)


def sightings_in(
    facts: Iterable[ShardFacts], findings: Iterable[Finding], launches: Mapping[ResourceRef, Launch]
) -> tuple[Sighting, ...]:
    """What savings ask of the machines that were just seen; their owners are those the findings name."""
    owners: Mapping[Subject, str] = {finding.subject: finding.owner for finding in findings}
    return tuple(
        _sighting(fact.instance, owners.get(fact.instance.ref, ""), launches.get(fact.instance.ref))
        for shard in facts
        for fact in shard.instances
    )


def _sighting(instance: Instance, owner: str, launch: Launch | None) -> Sighting:
    keeper = instance.managed_by
    return Sighting(
        ref=instance.ref,
        state=instance.state,
        run_epoch=instance.run_epoch,
        launched_at=instance.launched_at,
        billing=instance.billing,
        instance_type=instance.instance_type,
        name=instance.name,
        owner=owner,
        group=f"{keeper.keeper.value}:{keeper.name}" if keeper is not None and keeper.name else "",
        alike=_alike(instance.tags),
        launched_by=launch.by if launch is not None else "",
        stopped_by=instance.stopped_by,
        billed_while_stopped=instance.billed_while_stopped,
    )


def _alike(tags: Mapping[str, str]) -> str:
    """A short word for all tags but names; machines of one template have the same."""
    kept = sorted((key, value) for key, value in tags.items() if key.lower() not in _NAME_TAGS)
    return hashlib.sha256(repr(kept).encode()).hexdigest()[:16] if kept else ""


_MOST = 5  # what a reader takes in


@dataclass(frozen=True, slots=True)
class Spender:
    """One running machine and what it costs an hour. `idle`: seen idle, and no rule of the house protects it."""

    ref: ResourceRef
    name: str
    owner: str
    instance_type: str
    hourly: Money
    idle: bool


def spenders(
    facts: Sequence[ShardFacts], scope: SpendScope, policy: Policy, idle: Collection[ResourceRef], now: datetime
) -> tuple[Spender, ...]:
    """Every running machine of the scope with a known price, dearest first in each currency.

    `idle` are those seen idle; what is protected does not count among them.
    """
    found = [
        Spender(
            ref=fact.instance.ref,
            name=fact.instance.name,
            owner=owner_name(fact.instance, policy),
            instance_type=fact.instance.instance_type,
            hourly=fact.rate.money,
            idle=fact.instance.ref in idle and exemption(fact.instance, policy, now) is None,
        )
        for shard in facts
        for fact in shard.instances
        if fact.instance.state is InstanceState.RUNNING and fact.rate is not None and _inside(fact.instance, scope)
    ]
    return tuple(sorted(found, key=lambda one: (one.hourly.currency, -one.hourly.amount, one.ref)))


def dearest(of: Sequence[Spender]) -> tuple[Spender, ...]:
    """Those worth naming."""
    return tuple(of)[:_MOST]


def least_harm(of: Sequence[Spender]) -> tuple[Spender, ...]:
    """The idle ones worth naming: stopping them interrupts nobody."""
    return tuple(one for one in of if one.idle)[:_MOST]


def _inside(instance: Instance, scope: SpendScope) -> bool:
    ref = instance.ref
    return scope.holds(ref.cloud, ref.account, ref.region, instance.tags)
