"""Which accounts and regions a target means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from costguard.domain.errors import ClosedRegionError, DeniedByOrganisationError, ProviderError, TruncatedReadError
from costguard.domain.refs import Shard
from costguard.domain.resources import Gap, GapKind
from costguard.ports import Discovery, Target
from costguard.providers.aws.core import errors
from costguard.providers.aws.core.session import AwsSession
from costguard.providers.kit.core.accounts import Discoverer, Members, Regions
from costguard.providers.kit.core.fields import account_id, as_documented, named, text
from costguard.providers.kit.core.redaction import without_secrets

# Regions that a policy of the organisation closes, as Control Tower's region deny does: everything there is denied.
# Such a region is like one that is not opted in: nobody in the account can use it, and no grant changes that. Machines
# that were launched before it was closed run on unseen, so that nothing is concluded from it: no case there ends.

_FEW = 5  # the smallest page EC2 gives
_Read = tuple[str, str, dict[str, Any]]

VOLUMES: _Read = ("DescribeVolumes", "Volumes", {"MaxResults": _FEW})
ADDRESSES: _Read = ("DescribeAddresses", "Addresses", {})


def require_open(
    session: AwsSession, shard: Shard, error: ProviderError, further: Sequence[_Read] = (VOLUMES, ADDRESSES)
) -> None:
    """Ask whether the region is closed in which `error` ended a listing; `further` are reads that the role is granted.

    One action that the organisation denies is no closed region. Control Tower User Guide, "Configure the Region deny
    control": all of EC2 is denied there but DescribeRegions, DescribeTransitGateways and DescribeVpnGateways.

    Raises:
        ClosedRegionError: the organisation denies the further reads too.
    """
    if not isinstance(error, DeniedByOrganisationError):
        return
    for operation, key, asked in further:
        try:
            next(iter(session.pages(shard, "ec2", operation, key, **asked)), None)
        except DeniedByOrganisationError:
            continue
        except ProviderError:
            return
        return
    raise closed(shard, error) from error


def closed(shard: Shard, error: ProviderError) -> ClosedRegionError:
    """The error of a region in which everything was denied like `error`."""
    message = f"a policy of the organisation closes region {shard.region} to account {shard.account}: {error}"
    return ClosedRegionError(message, operation=error.operation, code=error.code)


_LISTING = "organizations:ListAccounts"
_ACTIVE = "ACTIVE"
_CLOSED = frozenset({"SUSPENDED", "PENDING_CLOSURE", "CLOSED"})
_REGION_PREFIXES = {"aws-cn": "cn-", "aws-us-gov": "us-gov-"}
_NOT_OPTED_IN = "not-opted-in"
ALWAYS_ON = {
    "aws": frozenset(
        {
            "ap-northeast-1",
            "ap-northeast-2",
            "ap-northeast-3",
            "ap-south-1",
            "ap-southeast-1",
            "ap-southeast-2",
            "ca-central-1",
            "eu-central-1",
            "eu-north-1",
            "eu-west-1",
            "eu-west-2",
            "eu-west-3",
            "sa-east-1",
            "us-east-1",
            "us-east-2",
            "us-west-1",
            "us-west-2",
        }
    ),
    "aws-cn": frozenset({"cn-north-1", "cn-northwest-1"}),
    "aws-us-gov": frozenset({"us-gov-east-1", "us-gov-west-1"}),
}
"""Regions older than 20 March 2019, which every account has and none can disable (AWS account management
reference guide, "Enable or disable AWS Regions in your account"): whether they are usable need not be asked."""


def discover(session: AwsSession, target: Target) -> Discovery:
    """The shards of `target`, with credentials for each of its accounts at hand in `session`.

    A member that cannot be entered is a gap; the others go on.

    Raises:
        InvalidInputError: the credentials belong to another partition.
        AccessDeniedError: there are no credentials at all.
    """
    regions = Regions(
        listed=lambda whole: _regions(session, whole, every=target.regions is not None),
        usable=lambda _, status: status != _NOT_OPTED_IN,
        likely=lambda name: _in_partition(target.cloud, name),
        unusable=_unusable,
        always=ALWAYS_ON.get(target.cloud, frozenset()),
    )
    return Discoverer(session, lambda first: _members(session, target, first), regions, errors.gap).discover(target)


def _members(session: AwsSession, target: Target, lister: str) -> Members:
    """Active and closed accounts of the organisation, as its management or a delegated account lists them.

    API: Organizations ListAccounts, 20 accounts a page.
    """
    active: list[str] = []
    closed: list[str] = []
    gaps: list[Gap] = []
    for page in session.pages(Shard(target.cloud, lister), "organizations", "ListAccounts", "Accounts"):
        with as_documented(_LISTING):
            found = [(account_id(item, "Id"), text(item, "State") or text(item, "Status")) for item in page]
        for account, status in found:
            if status == _ACTIVE:
                active.append(account)
            elif status in _CLOSED:
                closed.append(account)
            else:
                detail = f"the organisation lists this account as {without_secrets(status) or 'nothing'}"
                gaps.append(Gap(Shard(target.cloud, account), "accounts", GapKind.UNREADABLE, detail))
    both = set(closed) & {*active, *(gap.shard.account for gap in gaps)}
    if both:
        message = f"{_LISTING}: {', '.join(sorted(both))} is listed as closed and as something else"
        raise TruncatedReadError(message, operation=_LISTING, code="Contradiction")
    return Members(sorted(set(active)), sorted(set(closed)), gaps)


def _regions(session: AwsSession, whole: Shard, *, every: bool) -> dict[str, str]:
    """Regions and their opt-in status. API: EC2 DescribeRegions, one answer without pages."""
    listed: dict[str, str] = {}
    for page in session.pages(whole, "ec2", "DescribeRegions", "Regions", AllRegions=every):
        with as_documented("ec2:DescribeRegions"):
            listed.update({named(item, "RegionName"): text(item, "OptInStatus") for item in page})
    return {name: status for name, status in listed.items() if _in_partition(whole.cloud, name)}


def _in_partition(cloud: str, region: str) -> bool:
    expected = _REGION_PREFIXES.get(cloud)
    if expected is None:
        return not region.startswith(tuple(_REGION_PREFIXES.values()))
    return region.startswith(expected)


def _unusable(shard: Shard, listed: Mapping[str, str]) -> Gap:
    region = shard.region
    if region in listed:
        detail = f"account {shard.account} has not opted in to region {region}"
        fix = "opt in to the region, or take it out of the policy's regions"
    else:
        detail = f"{shard.cloud} has no region {without_secrets(region)!r}"
        fix = "correct the policy's regions"
    return Gap(shard, "regions", GapKind.UNREADABLE, detail, fix)
