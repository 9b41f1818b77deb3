"""Which accounts and regions a target means."""

from __future__ import annotations

from collections.abc import Mapping

from costguard.domain.refs import Shard
from costguard.domain.resources import Gap, GapKind
from costguard.ports import Discovery, Target
from costguard.providers.kit.core.accounts import Discoverer, Members, Regions
from costguard.providers.kit.core.fields import as_documented, named, text, whole
from costguard.providers.kit.core.redaction import without_secrets
from costguard.providers.tencent.core import errors
from costguard.providers.tencent.core.products import REGIONS
from costguard.providers.tencent.core.session import TencentSession

_LISTING = "organization:DescribeOrganizationMembers"
_AVAILABLE = "AVAILABLE"


def discover(session: TencentSession, target: Target) -> Discovery:
    """The shards of `target`, with credentials for each of its accounts at hand in `session`.

    A member that cannot be entered is a gap; the others go on. The organisation lists no closed accounts, so
    none is ever reported as closed: one that is gone from the list is simply not read.

    Raises:
        AccessDeniedError: there are no credentials at all.
    """
    regions = Regions(
        listed=lambda whole: _regions(session, whole),
        usable=lambda _, state: state == _AVAILABLE,
        likely=REGIONS.__contains__,
        unusable=_unusable,
        always=REGIONS,
    )
    return Discoverer(session, lambda first: _members(session, target, first), regions, errors.gap).discover(target)


def _members(session: TencentSession, target: Target, lister: str) -> Members:
    """The members of the organisation as its management account lists them, which need not list itself.

    API: Organization DescribeOrganizationMembers, 50 members a page.
    """
    members: list[str] = []
    whole_account = Shard(target.cloud, lister)
    for page in session.pages(whole_account, "organization", "DescribeOrganizationMembers", "Items"):
        with as_documented(_LISTING):
            members += [str(whole(item, "MemberUin")) for item in page]
    return Members(sorted({lister, *members}))


def _regions(session: TencentSession, whole_account: Shard) -> dict[str, str]:
    """Regions where CVM is sold, and their states. API: Region DescribeRegions, one answer without pages."""
    listed: dict[str, str] = {}
    for page in session.pages(whole_account, "region", "DescribeRegions", "RegionSet", Product="cvm"):
        with as_documented("region:DescribeRegions"):
            listed.update({named(item, "Region"): text(item, "RegionState") for item in page})
    return listed


def _unusable(shard: Shard, listed: Mapping[str, str]) -> Gap:
    region = shard.region
    if region in listed:
        detail = f"region {region} is {without_secrets(listed[region]) or 'in no state'} for account {shard.account}"
        fix = "take the region out of the policy's regions"
    else:
        detail = f"{shard.cloud} has no region {without_secrets(region)!r}"
        fix = "correct the policy's regions"
    return Gap(shard, "regions", GapKind.UNREADABLE, detail, fix)
