"""What of a published policy loosens the one in force, and what that takes before it may decide. Pure."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from costguard.guards.rules.common import Mode
from costguard.policy.diff.differences import Difference, loosening
from costguard.policy.diff.policies import policy_differences
from costguard.policy.model.policy import Policy, with_policy_digest

LOOSENING_WAITS = timedelta(hours=24)  # from publication at least: people on every shift can see it and object
APPROVALS_NEEDED = 2


def changes(old: Policy, new: Policy, at: datetime) -> tuple[Difference, ...]:
    """What differs as of `at`: an exception that has run out by then protects nothing any more."""
    return policy_differences(_as_of(old, at), _as_of(new, at))


def loosenings(old: Policy, new: Policy, at: datetime) -> tuple[Difference, ...]:
    """What lets Costguard do more, sooner or harder, or listen to more people; see `changes`."""
    return loosening(changes(old, new, at))


def observes_only(policy: Policy) -> bool:
    """Whether nothing is ever done or announced under it."""
    modes = [policy.mode]
    for rules in (policy.idle_gpu, policy.budgets, policy.kms_rotation, policy.network_audit):
        modes += [rule.mode for rule in rules]
    return set(modes) == {Mode.OBSERVE}


def loosening_words(found: Difference) -> str:
    """One loosening in words of the policy: `idle_gpu research: then: warn, now warn → stop 24h`."""
    entry = " ".join(filter(None, (found.section, found.name)))
    what = f"{entry}: {found.key}" if found.key else entry
    return f"{what}: {found.before or '-'}, now {found.after or '-'}"


def _as_of(policy: Policy, at: datetime) -> Policy:
    return with_policy_digest(replace(policy, exemptions=policy.active_exemptions(at)))
