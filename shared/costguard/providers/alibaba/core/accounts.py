"""Which accounts and regions a target means."""

from __future__ import annotations

from collections.abc import Mapping

from costguard.domain.refs import Shard
from costguard.domain.resources import Gap, GapKind
from costguard.ports import Discovery, Target
from costguard.providers.alibaba.core import errors
from costguard.providers.alibaba.core.fields import structures_in
from costguard.providers.alibaba.core.products import is_region
from costguard.providers.alibaba.core.session import AlibabaSession
from costguard.providers.kit.core.accounts import Discoverer, Members, Regions
from costguard.providers.kit.core.fields import account_id, as_documented, named, text
from costguard.providers.kit.core.redaction import without_secrets

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
    regions = Regions(
        listed=lambda whole: _regions(session, whole),
        usable=lambda name, _: name not in CLOSED_REGIONS,
        likely=lambda name: is_region(name) and name not in CLOSED_REGIONS,
        unusable=_unusable,
    )
    return Discoverer(session, lambda first: _members(session, target, first), regions, errors.gap).discover(target)


def _members(session: AlibabaSession, target: Target, lister: str) -> Members:
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
    return Members(sorted({lister, *active}), gaps=gaps)


def _regions(session: AlibabaSession, whole: Shard) -> dict[str, str]:
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
    return dict.fromkeys(listed, "")


def _unusable(shard: Shard, _: Mapping[str, str]) -> Gap:
    region = shard.region
    if region in CLOSED_REGIONS:
        detail = f"region {region} was shut down by Alibaba Cloud in 2024"
        fix = "take it out of the policy's regions"
    else:
        detail = f"account {shard.account} has no region {without_secrets(region)!r}"
        fix = "correct the policy's regions"
    return Gap(shard, "regions", GapKind.UNREADABLE, detail, fix)
