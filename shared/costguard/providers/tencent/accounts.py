"""Which accounts and regions a target means."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from costguard.domain.errors import AccessDeniedError, ProviderError
from costguard.domain.refs import Shard
from costguard.domain.resources import Gap, GapKind
from costguard.ports import Discovery, Target
from costguard.providers.documented import as_documented, named, text, whole
from costguard.providers.redaction import without_secrets
from costguard.providers.tencent import errors
from costguard.providers.tencent.products import REGIONS
from costguard.providers.tencent.session import TencentSession

_WORKERS = 8
_LISTING = "organization:DescribeOrganizationMembers"
_AVAILABLE = "AVAILABLE"


def discover(session: TencentSession, target: Target) -> Discovery:
    """The shards of `target`, with credentials for each of its accounts at hand in `session`.

    A member that cannot be entered is a gap; the others go on. The organisation lists no closed accounts, so
    none is ever reported as closed: one that is gone from the list is simply not read.

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
            accounts = sorted({first, *_members(session, target, first)})
        except ProviderError as err:
            gaps.append(errors.gap(Shard(target.cloud, first), "accounts", err))
    with ThreadPoolExecutor(max_workers=_WORKERS) as pool:
        found = list(pool.map(lambda account: _shards(session, target, account), accounts))
    return Discovery(
        shards=tuple(shard for shards, _ in found for shard in shards),
        gaps=(*gaps, *(gap for _, own in found for gap in own)),
    )


def _members(session: TencentSession, target: Target, lister: str) -> list[str]:
    """The members of the organisation as its management account lists them, which need not list itself.

    API: Organization DescribeOrganizationMembers, 50 members a page.
    """
    members: list[str] = []
    whole_account = Shard(target.cloud, lister)
    for page in session.pages(whole_account, "organization", "DescribeOrganizationMembers", "Items"):
        with as_documented(_LISTING):
            members += [str(whole(item, "MemberUin")) for item in page]
    return members


def _shards(session: TencentSession, target: Target, account: str) -> tuple[Sequence[Shard], Sequence[Gap]]:
    whole_account = Shard(target.cloud, account)
    try:
        session.for_account(target, account)
    except ProviderError as err:
        return (), (errors.gap(whole_account, "accounts", err),)
    if target.regions is not None and not target.regions:
        return (), ()
    names = None if target.regions is None else tuple(dict.fromkeys(target.regions))
    if names is not None and REGIONS.issuperset(names):
        return [Shard(target.cloud, account, name) for name in names], ()
    try:
        listed = _regions(session, whole_account)
    except AccessDeniedError as err:
        if names is None:
            return (), (errors.gap(whole_account, "regions", err),)
        listed = dict.fromkeys((name for name in names if name in REGIONS), _AVAILABLE)
    except ProviderError as err:
        return (), (errors.gap(whole_account, "regions", err),)
    usable = [name for name, state in listed.items() if state == _AVAILABLE]
    if names is None:
        return [Shard(target.cloud, account, name) for name in sorted(usable)], ()
    return (
        [Shard(target.cloud, account, name) for name in names if name in usable],
        [_unusable(target.cloud, account, name, listed) for name in names if name not in usable],
    )


def _regions(session: TencentSession, whole_account: Shard) -> dict[str, str]:
    """Regions where CVM is sold, and their states. API: Region DescribeRegions, one answer without pages."""
    listed: dict[str, str] = {}
    for page in session.pages(whole_account, "region", "DescribeRegions", "RegionSet", Product="cvm"):
        with as_documented("region:DescribeRegions"):
            listed.update({named(item, "Region"): text(item, "RegionState") for item in page})
    return listed


def _unusable(cloud: str, account: str, region: str, listed: dict[str, str]) -> Gap:
    if region in listed:
        detail = f"region {region} is {without_secrets(listed[region]) or 'in no state'} for account {account}"
        fix = "take the region out of the policy's regions"
    else:
        detail = f"{cloud} has no region {without_secrets(region)!r}"
        fix = "correct the policy's regions"
    return Gap(Shard(cloud, account, region), "regions", GapKind.UNREADABLE, detail, fix)
