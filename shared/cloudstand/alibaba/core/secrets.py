"""Secrets Manager, a part of Key Management Service: texts that a test put there, told as they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cloudstand.alibaba.core.errors import NOT_FOUND, ApiError
from cloudstand.alibaba.core.site import ApiCall
from cloudstand.alibaba.core.times import second
from cloudstand.world.cloud import World
from cloudstand.world.fleet import made_up_request_id


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
