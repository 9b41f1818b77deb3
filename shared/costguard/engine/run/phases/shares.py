"""A run's accounts in parts. Pure: who is read, through which of the policy's targets, and with whom together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from costguard.domain.refs import Shard
from costguard.ports import Discovery, Target


@dataclass(frozen=True, slots=True)
class Share:
    """One account, and `through`: the account of the policy's target that it was found through.

    No role, no secret and no region stands in it: those are the policy's, and are looked up where the share is read.
    """

    cloud: str
    account: str
    through: str


def shares_of(found: Mapping[Target, Discovery]) -> tuple[Share, ...]:
    """Every account once, through the first target that lists it."""
    shares: dict[tuple[str, str], Share] = {}
    for target, listed in found.items():
        for account in listed.accounts or sorted({shard.account for shard in listed.shards}):
            shares.setdefault((target.cloud, account), Share(target.cloud, account, target.account))
    return tuple(shares[own] for own in sorted(shares))


def parted(shares: Sequence[Share], most: int) -> tuple[tuple[Share, ...], ...]:
    """The shares in parts of one cloud and at most so many accounts each.

    An account is never split: the vendors' limits are by account, and each part keeps to them by itself.
    """
    parts: list[list[Share]] = []
    for share in shares:
        if not parts or parts[-1][0].cloud != share.cloud or len(parts[-1]) == most:
            parts.append([])
        parts[-1].append(share)
    return tuple(map(tuple, parts))


def target_for(share: Share, targets: Sequence[Target]) -> Target | None:
    """Its own target, with the role and regions that today's policy says; None where the policy has none any more."""
    for target in targets:
        leads_there = target.organisation or share.account == target.account or not target.account
        if (target.cloud, target.account) == (share.cloud, share.through) and leads_there:
            return replace(target, account=share.account, organisation=False)
    return None


def lists_members(target: Target, targets: Sequence[Target]) -> bool:
    """Whether this is the account that an organisation is listed as: it may be our own, which has no role to assume."""
    own = (target.cloud, target.account)
    return bool(target.role) and any((each.cloud, each.account) == own for each in targets if each.organisation)


def within(shards: Iterable[Shard], shares: Iterable[Share]) -> frozenset[Shard]:
    """Those of the shards that are of these accounts."""
    accounts = {(share.cloud, share.account) for share in shares}
    return frozenset(shard for shard in shards if (shard.cloud, shard.account) in accounts)
