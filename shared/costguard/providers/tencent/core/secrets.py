"""Secrets of the settings in Tencent Cloud's Secrets Manager (SSM), through a gate that lets nothing else out."""

from __future__ import annotations

from collections.abc import Callable

from costguard.domain.errors import NotFoundError, ProviderError
from costguard.providers.kit.core.credentials import Keys
from costguard.providers.kit.core.fields import text
from costguard.providers.kit.core.secrets import Secrets
from costguard.providers.kit.core.signing import no_clock
from costguard.providers.kit.iam.purposes import Purpose
from costguard.providers.tencent.core import errors
from costguard.providers.tencent.core.session import TencentSession

CURRENT = "SSM_Current"
"""What SSM calls the present version of a secret that it rotates itself; of others users name the versions."""


class TencentSecrets(Secrets):
    """As `Secrets`: a version must be named. API: SSM GetSecretValue (2019-09-23), whose VersionId is required."""

    def __init__(
        self,
        cloud: str,
        region: str,
        keys: Keys | None,
        *,
        endpoint: str = "",
        seconds_left: Callable[[], float] | None = None,
    ) -> None:
        session = TencentSession(
            keys=keys,
            now=no_clock,
            cloud=cloud,
            home_region=region,
            endpoint=endpoint,
            deadline=seconds_left,
            purpose=Purpose.SECRET,
        )
        super().__init__(
            session,
            "ssm",
            lambda name, version: {"SecretName": name, "VersionId": version or CURRENT},
            lambda answer: text(answer, "SecretString"),
            _fix_for,
        )


def _fix_for(error: ProviderError) -> str:
    """As of every operation; a version must be named of what users keep themselves."""
    if isinstance(error, NotFoundError):
        return f"name the version, as in secret:NAME?version=v1: without, {CURRENT} is asked for"
    return errors.fix_for(error)
