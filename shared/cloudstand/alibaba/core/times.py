"""Times as each part of the cloud writes them."""

from __future__ import annotations

from datetime import datetime, timezone

NEVER = "2999-09-08T16:00Z"
"""The ExpiredTime of what is paid by use: midnight of a far day in China."""


def minute(moment: datetime) -> str:
    """As DescribeInstances and DescribeDisks tell times: UTC, to the minute."""
    return moment.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%MZ")


def second(moment: datetime) -> str:
    """As snapshots, disks and tokens tell times: UTC, to the second."""
    return moment.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
