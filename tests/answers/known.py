"""Where the emulators answer otherwise than is published, each for a reason with its source."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from tests.answers.shapes import Complaint

_RECORDED = "recorded on the real cloud, in the tests of Cloud Custodian"
_UNLISTED = "a value that is not listed"
_SPELLED = "so in answers that others show; the page begins it with a capital letter, and the program takes both"
_LAST_PAGE = "moto's own way to say that there is no further page"
_HOP = "DescribeRouteEntryList.RouteEntrys.RouteEntry.NextHops.NextHop"
_REASONS: Mapping[tuple[str, str, str], str] = MappingProxyType(
    {
        ("Tag.tagKey", "no such field", ""): _RECORDED,
        ("Tag.tagValue", "no such field", ""): _RECORDED,
        ("Placement.HostId", "null", ""): _RECORDED,
        ("Address.InstanceId", "null", ""): _RECORDED,
        ("Disk.DeadlineTime", "no datetime", "''"): _RECORDED,
        ("Disk.RenewFlag", _UNLISTED, "''"): _RECORDED,
        ("Snapshot.DeadlineTime", "no datetime", "''"): _RECORDED,
        ("Instance.InstanceChargeType", _UNLISTED, "'UNDERWRITE'"): "in CBS's list of the same, of machines",
        ("ListKeyDetailResponse.KeyMetadatas", "null", ""): "where a test asks for it: earlier schemas allowed it",
        **{
            ("DescribePrice.PriceInfo.Price.DetailInfos.DetailInfo.Resource", _UNLISTED, f"'{word}'"): _SPELLED
            for word in ("instanceType", "systemDisk", "dataDisk")
        },
        (f"{_HOP}.NextHopType", _UNLISTED, "'VpcPeer'"): "what CreateRouteEntry takes such a hop by",
        (f"{_HOP}.NextHopType", _UNLISTED, "'local'"): "in the page's example of a route within a VPC",
        ("ListAccountsResponse.NextToken", "null", ""): _LAST_PAGE,
        ("ListPoliciesForTargetResponse.NextToken", "null", ""): _LAST_PAGE,
        ("NetworkInterface.interfaceType", _UNLISTED, "nat_gateway"): "in the list of the filter interface-type",
        ("GetCostAndUsage.__type", "an error that is not listed", "InvalidSignatureException"): "of signing itself",
    }
)


def is_known(complaint: Complaint) -> bool:
    """Whether somebody looked into it."""
    return (complaint.field, complaint.why, complaint.value) in _REASONS
