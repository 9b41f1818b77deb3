"""How fast each action may be asked, of one account in one region: burst, and requests a second.

ECS throttles by account, region and action, with limits that only Quota Center tells, and lets nothing through for
the rest of the minute once exceeded: these stay well below what the documents give as examples. CloudMonitor, STS and
bills are counted by account, whatever the region; CloudMonitor by the second. A twenty-fifth of its limit may be used
at once and 88 % of it a second after that: requests may bunch up on their way by nearly a tenth of a second before a
second, wherever it begins, holds more than the limit.
"""

from __future__ import annotations

from collections.abc import Mapping

from costguard.providers.alibaba.iam.permissions import KNOWN_OPERATIONS

_USUAL = {
    "ecs": (20.0, 10.0),
    "vpc": (20.0, 10.0),
    "vpcpeer": (5.0, 5.0),
    # of 50 reads a second in a region (20 in older documents), which whatever describes keys there shares
    "kms": (5.0, 15.0),
    "cms": (2.0, 44.0),  # of 50 a second, which the account's other users share
    "sts": (20.0, 20.0),  # of 100 a second
    "resourcedirectory": (5.0, 5.0),
    "ram": (5.0, 5.0),
    "bss": (2.0, 8.0),  # of 10 a second
    "actiontrail": (1.0, 1.0),  # of 2 a second
}
_CHANGES = (5.0, 1.0)
_OTHER = {
    "ecs:DescribePrice": (5.0, 2.0),  # throttled hard
    # limits of ECS hold by the minute, and pages come one after another: ten thousand instances are one burst
    "ecs:DescribeInstances": (100.0, 10.0),
    # no batch of either: a request a group, a request a route table
    "ecs:DescribeSecurityGroupAttribute": (100.0, 20.0),
    "vpc:DescribeRouteEntryList": (100.0, 10.0),
}
_WHOLE_ACCOUNT = frozenset({"cms", "sts", "resourcedirectory", "ram", "bss", "dm", "actiontrail"})


def _rate_of(operation: str) -> tuple[float, float]:
    if KNOWN_OPERATIONS[operation].changes_something:
        return _CHANGES
    return _OTHER.get(operation) or _USUAL[operation.partition(":")[0]]


RATES: Mapping[str, tuple[float, float]] = {operation: _rate_of(operation) for operation in KNOWN_OPERATIONS}
"""By operation: each is counted apart."""


def region_of(operation: str, region: str) -> str:
    """The region its limit is counted in; empty where all regions share one."""
    return "" if operation.partition(":")[0] in _WHOLE_ACCOUNT else region
