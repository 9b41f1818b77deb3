"""Regions that a policy of the organisation closes, as Control Tower's region deny does: everything there is denied.

Such a region is like one that is not opted in: nobody in the account can use it, and no grant changes that. Machines
that were launched before it was closed run on unseen, so that nothing is concluded from it: no case there ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from costguard.domain.errors import ClosedRegionError, DeniedByOrganisationError, ProviderError
from costguard.domain.refs import Shard
from costguard.providers.aws.core.session import AwsSession

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
