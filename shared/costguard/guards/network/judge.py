"""Can the world reach GPU instances, who gets in where nobody should, and what does the network cost for nothing?

Every check by itself, and at most one finding of each about a subject: of a group its gravest rule, with `rules` for
how many there are. What was not read in whole is unmeasured with the part that is missing, never compliant.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from costguard.domain.findings import Finding, Verdict
from costguard.domain.network import NetworkInventory
from costguard.domain.refs import ResourceRef
from costguard.domain.resources import Instance
from costguard.guards.network.audit_context import GUARD, AuditContext, finding, gentlest, severity, untold
from costguard.guards.network.checks.addresses import judge_addresses
from costguard.guards.network.checks.groups import judge_groups
from costguard.guards.network.checks.instances import judge_instances
from costguard.guards.network.checks.vpcs import judge_peerings, judge_vpcs
from costguard.guards.network.last_admin_path import last_admin_path
from costguard.guards.network.remediation import before_of, inverse, least_change, not_returnable, remediation_of
from costguard.guards.network.rules import AuditRule, NetworkCheck

__all__ = [
    "NAME",
    "before_of",
    "gentlest",
    "inverse",
    "judge",
    "last_admin_path",
    "least_change",
    "not_returnable",
    "remediation_of",
    "severity",
]

NAME = GUARD
_LISTED_BY = {
    NetworkCheck.PUBLIC_IP: "inventory",
    NetworkCheck.IMDS_V1: "inventory",
    NetworkCheck.REGION: "inventory",
    NetworkCheck.OPEN_ADMIN_PORT: "groups",
    NetworkCheck.WIDE_RULE: "groups",
    NetworkCheck.UNUSED_GROUP: "groups",
    NetworkCheck.UNATTACHED_ADDRESS: "addresses",
    NetworkCheck.IDLE_NAT_GATEWAY: "nat_gateways",
    NetworkCheck.DEFAULT_VPC: "vpcs",
    NetworkCheck.FLOW_LOGS_OFF: "vpcs",
    NetworkCheck.PRIVATE_SUBNET_EXPOSED: "subnets",
    NetworkCheck.WIDE_PEERING: "peerings",
    NetworkCheck.IDLE_ADDRESS: "addresses",
}
"""The part without which a check does not even know what to judge."""


def judge(
    inventories: Sequence[NetworkInventory],
    instances: Sequence[Instance],
    rules: Sequence[AuditRule],
    now: datetime,
    first_seen: Mapping[ResourceRef, datetime],
) -> tuple[Finding, ...]:
    """Every finding of every check, each by the gentlest rule that forbids it there.

    `inventories` are those of all shards together, as paths may cross them. `first_seen`: since when Costguard has seen
    each address without use, on every cloud, as none tells when one was taken off; an address that is not in it was
    seen now for the first time, and is never released.
    """
    ground = AuditContext(inventories, instances, rules, now, first_seen)
    return tuple(_findings(ground))


def _findings(ground: AuditContext) -> Iterator[Finding]:
    yield from judge_instances(ground)
    for inventory in ground.inventories:
        yield from _unlisted(ground, inventory)
        yield from judge_groups(ground, inventory)
        yield from judge_addresses(ground, inventory)
        yield from judge_vpcs(ground, inventory)
    yield from judge_peerings(ground)
    yield from _led_astray(ground)


def _unlisted(ground: AuditContext, inventory: NetworkInventory) -> Iterator[Finding]:
    """One finding about the region for every check whose resources were not all listed."""
    shard = inventory.shard
    region = ResourceRef(shard.cloud, shard.account, shard.region, "region", shard.region)
    for check, part in _LISTED_BY.items():
        gap = ground.lacks(shard, part) if ground.asks(check) else None
        rule = ground.rule_anywhere(region, check) if gap is not None else None
        if gap is not None and rule is not None:
            yield finding(rule, check, region, Verdict.UNMEASURED, untold(gap))


def _led_astray(ground: AuditContext) -> Iterator[Finding]:
    """Gateways whose forwards lead to what was not read: whom they reach cannot be told."""
    for inventory in ground.inventories:
        for gateway in inventory.nat_gateways:
            doubts = ground.doubts.get(gateway.ref, [])
            rule = ground.rule_for(gateway.ref, gateway.tags, NetworkCheck.OPEN_ADMIN_PORT) if doubts else None
            if rule is not None:
                reason = untold(doubts[0])
                yield finding(
                    rule, NetworkCheck.OPEN_ADMIN_PORT, gateway.ref, Verdict.UNMEASURED, reason, name=gateway.name
                )
