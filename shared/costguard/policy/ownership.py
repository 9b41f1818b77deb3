"""Whose instance it is."""

from __future__ import annotations

from costguard.domain.resources import Instance
from costguard.policy.model import Policy

_OWNER_TAGS = ("owner", "team", "costcenter", "project")
"""Tags that usually name somebody, best first; compared without case, `-`, `_` and spaces."""


def owner_name(instance: Instance, policy: Policy) -> str:
    """From `owners.yaml`, then a tag that usually names somebody, then the account's owner; else empty."""
    for owner in policy.owners:
        if owner.owns.matches(instance):
            return owner.name
    tags = {_plain(key): value for key, value in instance.tags.items() if value}
    by_tag = next((tags[name] for name in _OWNER_TAGS if name in tags), "")
    account = next((account.owner for account in policy.accounts if account.id == instance.ref.account), "")
    return by_tag or account


def channel_of(owner: str, policy: Policy) -> str:
    """Where `owner` is told; the default channel when the policy names none."""
    return next(
        (known.channel for known in policy.owners if known.name == owner and known.channel), policy.default_channel
    )


def _plain(key: str) -> str:
    return key.casefold().replace("-", "").replace("_", "").replace(" ", "")
