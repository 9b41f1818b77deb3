"""Secrets of the settings in Tencent Cloud's Secrets Manager (SSM), through a gate that lets nothing else out."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import Any

from costguard.domain.errors import AccessDeniedError, NotFoundError, ProviderError, RefusedError
from costguard.providers.kit.core.credentials import Keys
from costguard.providers.kit.core.fields import as_documented, text
from costguard.providers.kit.core.gate import Gate
from costguard.providers.kit.core.pacing import pacer_for
from costguard.providers.kit.core.retry import RetryPolicy
from costguard.providers.tencent.core import errors
from costguard.providers.tencent.core.products import known_cloud
from costguard.providers.tencent.core.rates import RATES
from costguard.providers.tencent.core.transport import SendingError, Transport
from costguard.providers.tencent.iam.permissions import SECRET_OPERATIONS

_GET = "ssm:GetSecretValue"
CURRENT = "SSM_Current"
"""What SSM calls the present version of a secret that it rotates itself; of others users name the versions."""


class TencentSecrets:
    """A `SecretStore` in one region, with the process's own keys. Safe to repeat."""

    def __init__(
        self,
        cloud: str,
        region: str,
        keys: Keys | None,
        *,
        endpoint: str = "",
        seconds_left: Callable[[], float] | None = None,
    ) -> None:
        self._region = region
        self._keys = keys
        self._pacer = pacer_for(RATES, endpoint)
        self._patience = RetryPolicy(self._pacer, seconds_left)
        self._seconds_left = seconds_left
        self._gate = Gate(SECRET_OPERATIONS, may_change=False)
        self._cloud = known_cloud(cloud)
        self._endpoint = endpoint

    def read(self, name: str, version: str = "") -> str:
        """The text of this version. API: SSM GetSecretValue (2019-09-23), whose VersionId is required."""
        self._gate.check(_GET)
        keys = self._keys
        if keys is None:
            message = f"{_GET}: there are no credentials for Tencent Cloud"
            raise AccessDeniedError(message, operation=_GET, code=errors.NO_CREDENTIALS)
        asked = {"SecretName": name, "VersionId": version or CURRENT}
        with closing(Transport(self._cloud, self._endpoint)) as transport:
            answer = self._patience.ask(_GET, self._reserve, lambda: self._once(transport, keys, asked), changes=False)
        with as_documented(_GET):
            found = text(answer, "SecretString")
        if not found:
            message = f"{_GET}: it holds no text: binary secrets are not read"
            raise RefusedError(message, operation=_GET, code="NoText")
        return found

    def fix_for(self, error: ProviderError) -> str:
        """As of every operation; a version must be named of what users keep themselves."""
        if isinstance(error, NotFoundError):
            return f"name the version, as in secret:NAME?version=v1: without, {CURRENT} is asked for"
        return errors.fix_for(error)

    def _reserve(self) -> float:
        return self._pacer.reserve("", self._region, _GET)

    def _once(self, transport: Transport, keys: Keys, asked: dict[str, str]) -> dict[str, Any]:
        left = None if self._seconds_left is None else self._seconds_left()
        try:
            reply = transport.send(
                keys,
                self._region,
                "ssm",
                "GetSecretValue",
                asked,
                sending=lambda: self._gate.sending(_GET),
                seconds=left,
            )
        except SendingError as err:
            raise errors.from_sending(err, _GET, changes=False) from err
        if reply.error is not None:
            code, message = reply.error
            raise errors.from_answer(code, message, _GET, changes=False, stand_in=transport.is_stand_in)
        return dict(reply.fields)
