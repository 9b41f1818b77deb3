"""Who spends a budget now, and what could be stopped with the least harm. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from costguard.domain.facts import ShardFacts
from costguard.domain.money import Money
from costguard.domain.refs import ResourceRef
from costguard.domain.resources import Instance, InstanceState
from costguard.domain.spend import SpendScope
from costguard.planning.exempt import exemption
from costguard.policy.model.ownership import owner_name
from costguard.policy.model.policy import Policy

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
