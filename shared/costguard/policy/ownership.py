"""Whose instance, key, or part of a network it is."""

from __future__ import annotations

from collections.abc import Mapping

from costguard.domain.keys import EncryptionKey
from costguard.domain.refs import ResourceRef
from costguard.domain.resources import Instance
from costguard.guards.network_audit_rules import NetworkSelector
from costguard.guards.rules import Selector
from costguard.policy.model import Policy

_OWNER_TAGS = ("owner", "team", "costcenter", "project")
"""Tags that usually name somebody, best first; compared without case, `-`, `_` and spaces."""


def owner_name(instance: Instance, policy: Policy) -> str:
    """From `owners.yaml`, then a tag that usually names somebody, then the account's owner; else empty."""
    for owner in policy.owners:
        if owner.owns.matches(instance):
            return owner.name
    return _by_tag(instance.tags) or _of_account(instance.ref, policy)


def key_owner(key: EncryptionKey, policy: Policy) -> str:
    """As `resource_owner`, of a key."""
    return resource_owner(key.ref, key.tags, policy)


def resource_owner(ref: ResourceRef, tags: Mapping[str, str], policy: Policy) -> str:
    """As `owner_name`, of what is no instance.

    An owner of certain instance types or ways of billing owns no keys and networks by that.
    """
    for owner in policy.owners:
        if _owns(owner.owns, ref, tags):
            return owner.name
    return _by_tag(tags) or _of_account(ref, policy)


def channel_of(owner: str, policy: Policy) -> str:
    """Where `owner` is told; the default channel when the policy names none."""
    return next(
        (known.channel for known in policy.owners if known.name == owner and known.channel), policy.default_channel
    )


def _owns(owns: Selector, ref: ResourceRef, tags: Mapping[str, str]) -> bool:
    if owns.instance_types is not None or owns.billing is not None:
        return False
    where = NetworkSelector(owns.clouds, owns.accounts, owns.regions, owns.tags, owns.resources)
    return where.matches(ref, tags)


def _by_tag(tags: Mapping[str, str]) -> str:
    known = {_plain(key): value for key, value in tags.items() if value}
    return next((known[name] for name in _OWNER_TAGS if name in known), "")


def _of_account(ref: ResourceRef, policy: Policy) -> str:
    return next((account.owner for account in policy.accounts if account.id == ref.account), "")


def _plain(key: str) -> str:
    return key.casefold().replace("-", "").replace("_", "").replace(" ", "")
