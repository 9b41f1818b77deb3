"""Secrets Manager, a part of Key Management Service: texts that a test put there, told as they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from costguard.sandbox.alibaba.errors import NOT_FOUND, ApiError
from costguard.sandbox.alibaba.site import ApiCall
from costguard.sandbox.alibaba.times import second
from costguard.sandbox.world.cloud import World
from costguard.sandbox.world.fleet import made_up_request_id


def get_secret_value(call: ApiCall, world: World) -> Mapping[str, Any]:
    """GetSecretValue, of the current version; what is binary comes in Base64.

    Raises:
        ApiError: there is no such secret in this region.
    """
    name = call.asked.text("SecretName")
    kept = call.site.kms.secrets.get((call.account, call.region, name))
    if kept is None:
        raise ApiError("Forbidden.ResourceNotFound", "The specified resource is not found.", NOT_FOUND)
    return {
        "SecretName": name,
        "SecretType": "Generic",
        "SecretData": kept if isinstance(kept, str) else kept.hex(),
        "SecretDataType": "text" if isinstance(kept, str) else "binary",
        "VersionId": made_up_request_id("alibaba", "secret", name),
        "VersionStages": {"VersionStage": ["ACSCurrent"]},
        "CreateTime": second(world.now),
    }
