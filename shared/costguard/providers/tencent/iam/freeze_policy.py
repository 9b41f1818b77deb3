"""The policies that a launch freeze on Tencent Cloud rests on, for people to review and write: none is written here."""

from __future__ import annotations

from typing import Any

from typing_extensions import assert_never

from costguard.domain.actions import FreezeVia, LaunchFreeze
from costguard.policy.budget.freeze_ids import APPROVED, APPROVED_TAG

ACCELERATED = ("GN*", "GT*", "GI*", "PNV*", "HCCPNV*", "HCCG*", "BMG*")
"""Globs of instance types: `GN10Xp.2XLARGE40`."""

LIMITS: tuple[str, ...] = ("tag", "tencent_keys", "tencent_managed", "existing", "platforms")
"""What the denial leaves open, as phrases of the report (`freeze_limit_…`)."""


def denying_policy(_: str) -> dict[str, Any]:
    """Denies launching machines with GPUs unless the request tags them as approved.

    The same document serves as service control policy and as CAM policy. A tag is one value, `key&value`, of all those
    of the request: denied is what has it nowhere among them.
    """
    return {
        "version": "2.0",
        "statement": [
            {
                "effect": "deny",
                "action": ["cvm:RunInstances"],
                "resource": ["*"],
                "condition": {
                    "string_like": {"cvm:instance_type": list(ACCELERATED)},
                    "for_all_value:string_not_equal": {"qcs:request_tag": [f"{APPROVED_TAG}&{APPROVED}"]},
                },
            }
        ],
    }


def role_policy(freeze: LaunchFreeze) -> dict[str, Any]:
    """What the role needs that freezes. The pages of these operations name no resource to narrow them to."""
    if freeze.via is FreezeVia.ORGANISATION:
        actions = [f"organization:{name}" for name in ("ListPoliciesForTarget", "AttachPolicy", "DetachPolicy")]
    elif freeze.via is FreezeVia.GROUP:
        actions = [f"cam:{name}" for name in ("ListAttachedGroupPolicies", "AttachGroupPolicy", "DetachGroupPolicy")]
    else:
        assert_never(freeze.via)
    return {"version": "2.0", "statement": [{"effect": "allow", "action": actions, "resource": ["*"]}]}


def role_limits(_: LaunchFreeze) -> tuple[str, ...]:
    """What the role's policy cannot keep it from, as phrases of the report."""
    return ("tencent_role",)
