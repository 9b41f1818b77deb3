"""What valid rules for networks say that their writer may not have meant. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from costguard.domain.remediations import RemediationKind
from costguard.guards.network.rules import AuditRule
from costguard.guards.rules.common import Mode
from costguard.policy.model.policy import Policy


def network_remarks(policy: Policy) -> Iterator[tuple[str, str]]:
    """Every warning about rules for networks, with the name of the rule."""
    for rule in policy.network_audit:
        for message in _of(rule, policy.mode):
            yield f"rule for networks {rule.name}", message


def _of(rule: AuditRule, ceiling: Mode) -> Iterator[str]:
    if rule.mend and rule.mode is not Mode.ENFORCE:
        why = "" if ceiling is not Mode.ENFORCE else "; a rule for networks does not take the policy's mode"
        yield f"mend is only rehearsed, for the rule's own mode is {rule.mode.name.lower()}{why}"
    if rule.mode is Mode.ENFORCE and not rule.mend:
        yield "mode: enforce without mend changes nothing: owners are told, and no more"
    if rule.mend and rule.actions_per_day == 0:
        yield "a cap of 0 allows nothing: this rule never mends"
    if RemediationKind.RELEASE_ADDRESS in rule.mend and rule.mode is Mode.ENFORCE:
        yield "release_address gives addresses up for good; keep names those that must stay"
