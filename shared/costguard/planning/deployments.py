"""Several deployments in one account: which one acts there. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta

from costguard.domain.deployments import Deployment
from costguard.domain.reasons import FactValue, Reason, ReasonCode

SEEN_WITHIN = timedelta(days=7)
"""Whoever acts looks in each run, and leaves a mark by it: without one for so long a deployment is taken to be gone."""


def others_of(own: Deployment, seen: Mapping[Deployment, datetime]) -> Mapping[Deployment, datetime]:
    """Every deployment but this one."""
    return {each: at for each, at in seen.items() if each != own}


def leads(own: Deployment, others: Collection[Deployment], leading: str) -> bool:
    """Whether the policy names this one, and nobody else goes by that name."""
    return leading == own.name and all(each.name != own.name for each in others)


def barred_by(
    own: Deployment, others: Mapping[Deployment, datetime], leading: str, *, unread: bool = False
) -> Reason | None:
    """Why nothing is done in an account where these others were seen; None where this one acts.

    `unread`: not everything could be looked at. That bars only where the policy says that another one leads: a policy
    that names nobody knows of nobody.
    """
    another_leads = leading not in {"", own.name}
    if not others and not (unread and another_leads):
        return None
    if leads(own, others, leading):
        return None
    facts: dict[str, FactValue] = {"own": own.name, "leading": leading}
    if others:
        facts["others"] = names_of(others)
        facts["seen"] = max(others.values()).isoformat(timespec="minutes")
    if any(each.name == own.name for each in others):
        facts["same_name"] = own.name
    return Reason(ReasonCode.OTHER_DEPLOYMENT, facts)


def names_of(deployments: Collection[Deployment]) -> str:
    """Each by its name, and what tells two of one name apart."""
    return ", ".join(f"{each.name} ({each.ledger})" for each in sorted(deployments))
