"""Who may not be touched by the house's own rules: tags, exceptions, listed accounts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from costguard.domain.findings import Finding, Verdict
from costguard.domain.keys import EncryptionKey
from costguard.domain.reasons import Reason, ReasonCode
from costguard.domain.refs import ResourceRef
from costguard.domain.resources import Instance
from costguard.guards.idle.judge import kept_reason
from costguard.policy.model.policy import Exemption, Policy
from costguard.policy.model.protection import protected_by_tag


def exemption(instance: Instance, policy: Policy, now: datetime) -> Reason | None:
    """Why `instance` is shown and never touched, or None; a Keep by tag, which ends, only where nothing else does."""
    kept = kept_reason(instance, policy.protection.termination_protection_bars)
    if kept is not None:
        return kept
    tagged = protected_by_tag(instance.tags, policy.protection, now)
    if tagged is not None and tagged.code is not ReasonCode.KEPT_BY_TAG:
        return tagged
    listed = _protected_account(instance.ref, policy)
    if listed is not None:
        return listed
    for exempted in policy.exemptions:
        if exempted.expires_at > now and exempted.owns.spares(instance):
            return _agreed(exempted)
    return tagged


def setting_bar(ref: ResourceRef, tags: Mapping[str, str], policy: Policy, now: datetime) -> Reason | None:
    """Why a key or a part of a network is not changed, whatever was found of it, or None."""
    return protected_by_tag(tags, policy.protection, now) or _protected_account(ref, policy)


def _protected_account(ref: ResourceRef, policy: Policy) -> Reason | None:
    account = ref.account
    if account in policy.protection.accounts or any(a.protected for a in policy.accounts if a.id == account):
        return Reason(ReasonCode.PROTECTED_ACCOUNT, {"account": account})
    return None


def key_exception(key: EncryptionKey, policy: Policy, now: datetime) -> Reason | None:
    """The agreed exception that names this very key; one by account or tag is about machines and hides no key."""
    names = {key.ref.native_id, str(key.ref)}
    for exempted in policy.active_exemptions(now):
        if names.intersection(exempted.owns.resources or ()):
            return _agreed(exempted)
    return None


def _agreed(exempted: Exemption) -> Reason:
    return Reason(
        ReasonCode.EXCEPTION,
        {
            "reason": exempted.reason,
            "approver": exempted.approver,
            "until": exempted.expires_at.isoformat(timespec="minutes"),
        },
    )


def overlaid(finding: Finding, instance: Instance, policy: Policy, now: datetime) -> Finding:
    """The finding with the house's exemptions applied; what was measured stays visible in the reason."""
    if finding.verdict is Verdict.EXEMPT:
        return finding
    reason = exemption(instance, policy, now)
    if reason is None:
        return finding
    facts = {**reason.facts, "utilisation": finding.reason.code.value}
    return replace(finding, verdict=Verdict.EXEMPT, reason=Reason(reason.code, facts))
