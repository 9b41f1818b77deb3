"""Which accounts and regions a target means."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from costguard.domain.errors import AccessDeniedError, ProviderError
from costguard.domain.refs import Shard
from costguard.domain.resources import Gap, GapKind
from costguard.ports import Discovery, Target
from costguard.providers.alibaba import errors
from costguard.providers.alibaba.forms import structures_in
from costguard.providers.alibaba.products import is_region
from costguard.providers.alibaba.session import AlibabaSession
from costguard.providers.documented import account_id, as_documented, named, text
from costguard.providers.redaction import without_secrets

_WORKERS = 8
_LISTING = "resourcedirectory:ListAccounts"
_REGIONS = "ecs:DescribeRegions"
_PAGE = 100
_ACTIVE = frozenset({"CreateSuccess", "PromoteSuccess", "InviteSuccess"})
CLOSED_REGIONS = frozenset({"ap-south-1", "ap-southeast-2"})
"""Mumbai and Sydney were shut down in 2024 and may still be listed; nothing can run there, and nothing answers."""


def discover(session: AlibabaSession, target: Target) -> Discovery:
    """The shards of `target`, with credentials for each of its accounts at hand in `session`.

    A member that cannot be entered is a gap; the others go on. The listing of an organisation leaves out the account
    that leads it, and accounts that were deleted: no account is ever told to be closed.

    Raises:
        AccessDeniedError: there are no credentials at all.
    """
    identity = session.identity()
    first = target.account or identity.account
    accounts = [first]
    gaps: list[Gap] = []
    if target.organisation:
        try:
            session.for_account(target, first)
            members, gaps = _members(session, target, first)
            accounts = sorted({first, *members})
        except ProviderError as err:
            gaps.append(errors.gap(Shard(target.cloud, first), "accounts", err))
    with ThreadPoolExecutor(max_workers=_WORKERS) as pool:
        found = list(pool.map(lambda account: _shards(session, target, account), accounts))
    return Discovery(
        shards=tuple(shard for shards, _ in found for shard in shards),
        gaps=(*gaps, *(gap for _, own in found for gap in own)),
    )


def _members(session: AlibabaSession, target: Target, lister: str) -> tuple[list[str], list[Gap]]:
    """Usable members of the organisation, as its management or a delegated account lists them.

    API: ResourceDirectoryMaster ListAccounts, 100 accounts a page.
    """
    active: list[str] = []
    gaps: list[Gap] = []
    pages = session.pages(
        Shard(target.cloud, lister), "resourcedirectory", "ListAccounts", "Accounts.Account", MaxResults=_PAGE
    )
    for page in pages:
        with as_documented(_LISTING):
            found = [(account_id(item, "AccountId"), text(item, "Status")) for item in page]
        for account, status in found:
            if status in _ACTIVE:
                active.append(account)
            else:
                detail = f"the organisation lists this account as {without_secrets(status) or 'nothing'}"
                gaps.append(Gap(Shard(target.cloud, account), "accounts", GapKind.UNREADABLE, detail))
    return active, gaps


def _shards(session: AlibabaSession, target: Target, account: str) -> tuple[Sequence[Shard], Sequence[Gap]]:
    whole = Shard(target.cloud, account)
    try:
        session.for_account(target, account)
    except ProviderError as err:
        return (), (errors.gap(whole, "accounts", err),)
    if target.regions is not None and not target.regions:
        return (), ()
    named_ones = None if target.regions is None else tuple(dict.fromkeys(target.regions))
    try:
        listed = _regions(session, whole)
    except AccessDeniedError as err:
        if named_ones is None:
            return (), (errors.gap(whole, "regions", err),)
        listed = frozenset(name for name in named_ones if is_region(name))
    except ProviderError as err:
        return (), (errors.gap(whole, "regions", err),)
    open_ones = listed - CLOSED_REGIONS
    if named_ones is None:
        return [Shard(target.cloud, account, name) for name in sorted(open_ones)], ()
    return (
        [Shard(target.cloud, account, name) for name in named_ones if name in open_ones],
        [_unusable(target.cloud, account, name) for name in named_ones if name not in open_ones],
    )


def _regions(session: AlibabaSession, whole: Shard) -> frozenset[str]:
    """The regions that this account may use; one that is sold out may still hold machines.

    API: ECS DescribeRegions, one answer without pages.
    """
    answer = session.call(whole, "ecs", "DescribeRegions")
    with as_documented(_REGIONS):
        listed = [named(item, "RegionId") for item in structures_in(answer, "Regions.Region", _REGIONS)]
        strange = [name for name in listed if not is_region(name)]
        if strange or not listed:
            message = f"{len(strange)} of {len(listed)} regions have no name of one"
            raise ValueError(message)
    return frozenset(listed)


def _unusable(cloud: str, account: str, region: str) -> Gap:
    if region in CLOSED_REGIONS:
        detail = f"region {region} was shut down by Alibaba Cloud in 2024"
        fix = "take it out of the policy's regions"
    else:
        detail = f"account {account} has no region {without_secrets(region)!r}"
        fix = "correct the policy's regions"
    return Gap(Shard(cloud, account, region), "regions", GapKind.UNREADABLE, detail, fix)
