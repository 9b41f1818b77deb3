"""Whose instance, key, or part of a network it is."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from enum import Enum
from fnmatch import fnmatchcase

from costguard.domain.keys import EncryptionKey
from costguard.domain.refs import ResourceRef
from costguard.domain.resources import Instance, Launch
from costguard.guards.network.rules import NetworkSelector
from costguard.guards.rules.common import Selector
from costguard.policy.model.policy import Owner, Policy

_OWNER_TAGS = ("owner", "team", "costcenter", "project")
"""Tags that usually name somebody, best first; compared without case, `-`, `_` and spaces."""

_MADE_UP = re.compile(
    r"i-[0-9a-f]{8,17}|[0-9]+|.*session.*|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII | re.IGNORECASE
)
"""What programs call the session of a role: the id of a machine, a number, `botocore-session-…`, a UUID."""

_NOBODY: frozenset[str] = frozenset()


class OwnerSource(str, Enum):
    """What named an owner."""

    OWNERS = "owners.yaml"
    TAG = "tag"
    LAUNCHED = "launched"
    ACCOUNT = "account"
    NONE = "none"


def owner_name(
    instance: Instance, policy: Policy, *, launch: Launch | None = None, disowned: Collection[str] = _NOBODY
) -> str:
    """As `owner_of`; empty where nobody is known: then the policy's default channel is told."""
    return owner_of(instance, policy, launch=launch, disowned=disowned)[0]


def owner_of(
    instance: Instance, policy: Policy, *, launch: Launch | None = None, disowned: Collection[str] = _NOBODY
) -> tuple[str, OwnerSource]:
    """The first in line who has not said that it is not theirs, and what named them.

    First `owners.yaml` in the order of its entries (by selector, or by who launched it), then a tag that usually names
    somebody, then who launched it, then the account's owner. `disowned` are names that are passed over.
    """
    line = _in_line(instance, policy, launch)
    return next(((name, by) for name, by in line if name and name not in disowned), ("", OwnerSource.NONE))


def launch_matters(instance: Instance, policy: Policy, disowned: Collection[str] = _NOBODY) -> bool:
    """Whether the owner may turn on who launched it: asking the audit trail is slow and rationed."""
    for owner in policy.owners:
        if owner.name not in disowned:
            if owner.owns.matches(instance):
                return False
            if owner.cloud_users:
                return True
    tagged = _by_tag(instance.tags)
    return not tagged or tagged in disowned


def launcher_name(launch: Launch) -> str:
    """What a person who launched something is called; empty where it was a service, or the account's root.

    A role's session is often called after the person; where a program named it, the role is all there is.
    """
    kind, _, rest = launch.by.partition("/")
    if kind in ("service", "root"):
        return ""
    name = rest.rpartition("/")[2]
    if kind == "role" and "/" in rest and _MADE_UP.fullmatch(name):
        return rest.partition("/")[0]
    return name


def key_owner(key: EncryptionKey, policy: Policy) -> str:
    """As `resource_owner`, of a key."""
    return resource_owner(key.ref, key.tags, policy)


def resource_owner(ref: ResourceRef, tags: Mapping[str, str], policy: Policy) -> str:
    """As `owner_name`, of what is no instance.

    An owner of certain instance types, ways of billing or resource groups owns no keys and networks by that.
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


def _in_line(instance: Instance, policy: Policy, launch: Launch | None) -> Iterator[tuple[str, OwnerSource]]:
    for owner in policy.owners:
        if owner.owns.matches(instance) or (launch is not None and _launched(owner, launch)):
            yield owner.name, OwnerSource.OWNERS
    yield _by_tag(instance.tags), OwnerSource.TAG
    if launch is not None:
        yield launcher_name(launch), OwnerSource.LAUNCHED
    yield _of_account(instance.ref, policy), OwnerSource.ACCOUNT


def _launched(owner: Owner, launch: Launch) -> bool:
    """Whether one of its globs matches the launcher, whole (`role/train/*`) or by the last part, in any case."""
    whole = launch.by.casefold()
    names = (whole, whole.rpartition("/")[2])
    return any(fnmatchcase(name, pattern.casefold()) for pattern in owner.cloud_users for name in names)


def _owns(owns: Selector, ref: ResourceRef, tags: Mapping[str, str]) -> bool:
    if owns.instance_types is not None or owns.billing is not None or owns.resource_groups is not None:
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
