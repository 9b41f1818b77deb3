"""Another deployment at work in the same account: asked of the audit trail, once a run and shard.

Asking is what makes a deployment seen: the trail records the question with the mark of whoever asked it. So each one
that may act asks, whether it leads or not, and only what may act has a mark.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial

from costguard.domain.errors import ProviderError
from costguard.domain.findings import Verdict
from costguard.domain.reasons import Reason
from costguard.domain.refs import Deployment, ResourceRef, Shard
from costguard.domain.resources import Gap
from costguard.engine.run.run_context import RunContext
from costguard.engine.run.scan import gap_of
from costguard.guards.rules.common import Mode
from costguard.planning import PlanInputs, judged
from costguard.planning.rails import SEEN_WITHIN, account_key, barred_by, others_of
from costguard.ports import CloudAuditLog

DEPLOYMENTS = "deployments"
"""What a gap is called where it could not be seen who else is at work."""


@dataclass(frozen=True, slots=True)
class BarredAccounts:
    """By account why nothing is done there, and where nobody could look."""

    accounts: Mapping[str, Reason] = field(default_factory=dict)
    gaps: tuple[Gap, ...] = ()


def barred_accounts(world: RunContext, inputs: PlanInputs) -> BarredAccounts:
    """The accounts in which another deployment works and this one does not lead.

    Looked at is where something is at stake: a machine that breaks a rule, or has a case.
    """
    own, policy = world.deployment, world.policy
    if own is None or not any(rule.mode is Mode.ENFORCE for rule in policy.idle_gpu):
        return BarredAccounts()
    shards = sorted({ref.shard for ref in _at_stake(inputs) if ref.cloud in world.trails})
    since = inputs.now - SEEN_WITHIN
    tasks = [partial(seen_in, world.trails[shard.cloud], shard, since) for shard in shards]
    seen: dict[str, dict[Deployment, datetime]] = {}
    gaps: list[Gap] = []
    for place, (found, gap) in world.workers.each(tasks):
        account = seen.setdefault(account_key(shards[place]), {})
        for each, at in others_of(own, found).items():
            account[each] = max(at, account.get(each, at))
        gaps += [gap] if gap is not None else []
    unread = {account_key(gap.shard) for gap in gaps}
    bars = {
        account: barred_by(own, others, policy.leading_deployment, unread=account in unread)
        for account, others in seen.items()
    }
    reasons = {account: reason for account, reason in bars.items() if reason is not None}
    return BarredAccounts(reasons, tuple(sorted(gaps, key=lambda gap: gap.shard)))


def seen_in(trail: CloudAuditLog, shard: Shard, since: datetime) -> tuple[Mapping[Deployment, datetime], Gap | None]:
    """Which deployments left a mark in one shard; a gap where nobody could look."""
    try:
        return trail.deployments(shard, since), None
    except ProviderError as err:
        return {}, gap_of(err, shard, DEPLOYMENTS)


def _at_stake(inputs: PlanInputs) -> set[ResourceRef]:
    found = {each.subject for each in judged(inputs) if each.verdict is Verdict.VIOLATION}
    return {ref for ref in (*found, *(case.subject for case in inputs.cases)) if isinstance(ref, ResourceRef)}
