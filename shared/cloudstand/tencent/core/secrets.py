"""SSM: secrets that a test put there, by name and version."""

from __future__ import annotations

import base64

from cloudstand.tencent.core.asking import Answer, Asked
from cloudstand.tencent.core.errors import ApiError


def get_secret_value(asked: Asked) -> Answer:
    """GetSecretValue: a text, or what is binary in Base64; of the two the other is empty."""
    name, version = asked.parameters["SecretName"], asked.parameters["VersionId"]
    kept = asked.memory.keys.secrets.get((asked.account, asked.region, name, version))
    if kept is None:
        raise ApiError("ResourceNotFound.SecretNotExist", f"there is no secret {name}.", "凭据不存在。")
    return {
        "SecretName": name,
        "VersionId": version,
        "SecretString": kept if isinstance(kept, str) else "",
        "SecretBinary": base64.b64encode(kept).decode() if isinstance(kept, bytes) else "",
    }
