"""From accepted documents to the frozen rules for networks. Imported only while a policy is loaded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any

from costguard.guards.network.rules import AuditRule, NetworkSelector
from costguard.policy.documents.crosschecks import FileKind, PolicyFile
from costguard.policy.network.documents import AuditRuleDocument
from costguard.policy.network.terms import with_audit_digest


def audit_rules_of(accepted: Sequence[tuple[PolicyFile, Any]], *, shadow: bool = False) -> tuple[AuditRule, ...]:
    """Every rule for networks that decides, or every one in the shadow, by name."""
    written = (rule for _, _, rule in _rules(accepted) if rule.shadow is shadow)
    return tuple(sorted(map(_rule, written), key=lambda rule: rule.name))


def audit_waits(
    accepted: Sequence[tuple[PolicyFile, Any]],
) -> Iterator[tuple[PolicyFile, tuple[str | int, ...], timedelta]]:
    """Every wait before a mend, with its place."""
    for file, index, rule in _rules(accepted):
        yield (
            file,
            ("network_audit", index, "wait")
            if "wait" in rule.model_fields_set
            else (
                "network_audit",
                index,
            ),
            rule.wait,
        )


def _rules(accepted: Sequence[tuple[PolicyFile, Any]]) -> Iterator[tuple[PolicyFile, int, AuditRuleDocument]]:
    for file, model in accepted:
        if file.kind in {FileKind.MAIN, FileKind.RULES}:
            for index, rule in enumerate(model.network_audit):
                yield file, index, rule


def _rule(rule: AuditRuleDocument) -> AuditRule:
    return with_audit_digest(
        AuditRule(
            name=rule.name,
            mode=rule.mode,
            forbid=frozenset(rule.forbid),
            applies_to=NetworkSelector() if rule.applies_when_all is None else rule.applies_when_all.selector(),
            except_for=tuple(each.selector() for each in rule.except_when_any),
            ports=rule.ports,
            allowed_ports=rule.allowed_ports,
            trusted=rule.trusted,
            widest_v4=rule.widest_v4,
            widest_v6=rule.widest_v6,
            allowed_regions=rule.allowed_regions,
            private_subnets=rule.private_subnets,
            peering_cidrs=rule.peering_cidrs,
            keep=rule.keep,
            unattached_for=rule.unattached_for,
            mend=frozenset(rule.mend),
            narrow_to=rule.narrow_to,
            flow_log_destination=rule.flow_log_destination,
            flow_log_role=rule.flow_log_role,
            wait=rule.wait,
            actions_per_day=rule.actions_per_day,
        )
    )
