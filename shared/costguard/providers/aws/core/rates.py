"""What AWS throttles together, and how fast each may be asked: burst, and requests a second."""

from __future__ import annotations

from collections.abc import Mapping

RATES: Mapping[str, tuple[float, float]] = {
    # half of EC2's documented bucket and refill (100 and 20/s; 50 and 10/s for answers without pages;
    # 50 and 5/s for changes; as many again for changes of rules, which it calls resource-intensive; 5 and 2/s for
    # start and stop): other tools share the account's bucket
    "ec2:read": (50, 10),
    "ec2:unpaged": (25, 5),
    "ec2:change": (25, 2.5),
    "ec2:rules": (25, 2.5),
    "ec2:start-stop": (5, 1),
    "cloudwatch:GetMetricData": (25, 25),  # half of 50 a second
    "cloudwatch:ListMetrics": (12, 12),  # half of 25 a second
    "cloudtrail:LookupEvents": (1, 1),  # half of 2 a second in a region of an account
    "ce": (5, 2),  # no rate is documented, and every request is paid for
    "budgets": (5, 2),  # nor here
    # half of KMS's documented quotas a second (500, 500, 2,000, 1,000, 100, 2,000; 15 and 5 for changes)
    "kms:ListKeys": (250, 250),
    "kms:ListAliases": (250, 250),
    "kms:DescribeKey": (1000, 1000),
    "kms:GetKeyRotationStatus": (500, 500),
    "kms:ListKeyRotations": (50, 50),
    "kms:ListResourceTags": (1000, 1000),
    "kms:EnableKeyRotation": (7, 7),
    "kms:RotateKeyOnDemand": (2, 2),
    "kms:GetKeyPolicy": (500, 500),
    "kms:CreateKey": (2, 2),
    "kms:UpdateAlias": (2, 2),
    "sesv2:SendEmail": (1, 1),  # what a new account may send; others send more
}
_UNPAGED = frozenset({"ec2:DescribeAddresses", "ec2:DescribeRegions", "ec2:DescribeReservedInstances"})
_START_STOP = frozenset({"ec2:StartInstances", "ec2:StopInstances"})
_RULES = frozenset({"ec2:AuthorizeSecurityGroupIngress", "ec2:RevokeSecurityGroupIngress"})


def family_of(operation: str, *, changes: bool) -> str:
    """The calls that share a bucket with `operation`: what EC2 throttles together."""
    if operation in RATES:
        return operation
    service = operation.split(":", 1)[0]
    if service != "ec2":
        return service
    if operation in _START_STOP:
        return "ec2:start-stop"
    if operation in _RULES:
        return "ec2:rules"
    if changes:
        return "ec2:change"
    return "ec2:unpaged" if operation in _UNPAGED else "ec2:read"
