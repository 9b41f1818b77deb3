"""How often each operation may be asked in one region by one account, for the pacing before requests are sent.

Tencent limits every operation of its own, so many calls in any one second. A twenty-fifth of the limit may be
used at once and 88 % of it a second after that: requests may bunch up on their way by nearly a tenth of a second
before a second, wherever it begins, holds more than the limit.
"""

from __future__ import annotations

from collections.abc import Mapping

from costguard.providers.tencent.iam.permissions import KNOWN_OPERATIONS

_A_SECOND = {
    # from the operations' own API pages; 20 a second where a page names none
    "cvm:DescribeInstances": 40,
    "cvm:DescribeZoneInstanceConfigInfos": 40,
    "cvm:DescribeInstanceTypeConfigs": 40,
    "cvm:StopInstances": 10,
    "cvm:StartInstances": 10,
    "cvm:TerminateInstances": 10,
    "cbs:DescribeDisks": 100,
    # its page (248/33881, 2023-03) names both 20 calls and 50 requests a second, the newer API description neither
    "monitor:GetMonitorData": 20,
    "kms:GetRegions": 100,
    "kms:GetServiceStatus": 100,
    "kms:ListKeyDetail": 100,
    "kms:EnableKeyRotation": 100,
    "kms:RotateKey": 20,
    "tag:DescribeResourceTagsByResourceIds": 100,
    "vpc:DescribeVpcs": 100,
    "vpc:DescribeSubnets": 100,
    "vpc:DescribeRouteTables": 100,
    "vpc:DescribeSecurityGroups": 100,
    "vpc:DescribeSecurityGroupPolicies": 100,
    "vpc:DescribeNatGateways": 100,
    "vpc:CreateSecurityGroupPolicies": 100,
    "vpc:ReplaceSecurityGroupPolicy": 100,
    "vpc:DeleteSecurityGroupPolicies": 100,
    "vpc:InquiryPriceAllocateAddresses": 2,
    "vpc:ReleaseAddresses": 10,
    "vpc:AssociateAddress": 10,
    "vpc:DisassociateAddress": 10,
    "billing:DescribeBillDetail": 5,
    "billing:DescribeBillDetailForOrganization": 5,
}
_USUAL = 20

RATES: Mapping[str, tuple[float, float]] = {
    name: (max(1.0, limit * 0.04), limit * 0.88)
    for name, limit in ((name, _A_SECOND.get(name, _USUAL)) for name in KNOWN_OPERATIONS)
}
"""Burst and calls a second, by operation."""
