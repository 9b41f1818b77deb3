"""Statements of IAM for what few policies ask for: successors of keys, and Keeps written on machines."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from costguard.guards.keys.succession import SUCCESSOR_OF
from costguard.guards.rules.common import KEEP_TAG
from costguard.providers.kit.kms.successor import CONTEXT


def allow_succession(partition: str) -> Iterable[dict[str, Any]]:
    """To decrypt canaries and nothing else; made and tagged is only what says whose successor it is."""
    keys, aliases = (f"arn:{partition}:kms:*:*:{kind}/*" for kind in ("key", "alias"))
    told = {"Null": {f"aws:RequestTag/{SUCCESSOR_OF}": "false"}}
    canaries = {f"kms:EncryptionContext:{name}": value for name, value in CONTEXT.items()}
    yield {"Sid": "ReadKeyPolicies", "Effect": "Allow", "Action": "kms:GetKeyPolicy", "Resource": [keys]}
    yield {
        "Sid": "MakeSuccessors",
        "Effect": "Allow",
        "Action": "kms:CreateKey",
        "Resource": "*",  # there is no key yet
        "Condition": {
            **told,
            "StringEquals": {"kms:KeyOrigin": "AWS_KMS"},
            "BoolIfExists": {"kms:MultiRegion": "false", "kms:BypassPolicyLockoutSafetyCheck": "false"},
        },
    }
    tagging = {"Sid": "TagSuccessors", "Effect": "Allow", "Action": "kms:TagResource"}
    yield {**tagging, "Resource": [keys], "Condition": told}
    yield {"Sid": "MoveAliases", "Effect": "Allow", "Action": "kms:UpdateAlias", "Resource": [aliases, keys]}
    yield {
        "Sid": "EncryptCanaries",
        "Effect": "Allow",
        "Action": ["kms:Decrypt", "kms:Encrypt"],
        "Resource": [keys],
        "Condition": {"StringEquals": canaries},
    }
    # a signature has no context: give this only for keys that the rule names
    yield {"Sid": "SignCanaries", "Effect": "Allow", "Action": ["kms:Sign", "kms:Verify"], "Resource": [keys]}


def allow_keeps(partition: str) -> dict[str, Any]:
    """Tags of machines, and of those the Keep alone.

    "For all values" also holds where no tag is named (IAM guide, "Set operators"): so one has to be.
    """
    return {
        "Sid": "WriteKeeps",
        "Effect": "Allow",
        "Action": "ec2:CreateTags",
        "Resource": [f"arn:{partition}:ec2:*:*:instance/*"],
        "Condition": {"Null": {"aws:TagKeys": "false"}, "ForAllValues:StringEquals": {"aws:TagKeys": [KEEP_TAG]}},
    }
