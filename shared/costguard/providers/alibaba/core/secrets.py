"""Secrets of the settings in Alibaba Cloud's KMS Secrets Manager, through a gate that lets nothing else out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from costguard.domain.errors import AccessDeniedError, ProviderError, RefusedError
from costguard.providers.alibaba.core import errors
from costguard.providers.alibaba.core.products import PRODUCTS, host_of
from costguard.providers.alibaba.core.rates import RATES
from costguard.providers.alibaba.core.transport import Question, Transport, WireError, check_endpoint
from costguard.providers.alibaba.iam.permissions import SECRET_OPERATIONS
from costguard.providers.kit.core.credentials import Keys
from costguard.providers.kit.core.fields import as_documented, named, text
from costguard.providers.kit.core.gate import Gate
from costguard.providers.kit.core.pacing import pacer_for
from costguard.providers.kit.core.retry import RetryPolicy

_GET = "kms:GetSecretValue"
_TEXT = "text"
_SECONDS = 30.0  # one request in all


class AlibabaSecrets:
    """A `SecretStore` in one region, with the process's own keys. Safe to repeat.

    Raises:
        ValueError: no name of a region.
    """

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
        self._domain = check_endpoint(endpoint) if endpoint else f"https://{host_of(cloud, 'kms', region)}"
        self._pacer = pacer_for(RATES, endpoint)
        self._patience = RetryPolicy(self._pacer, seconds_left)
        self._seconds_left = seconds_left
        self._transport = Transport(Gate(SECRET_OPERATIONS, may_change=False))

    def read(self, name: str, version: str = "") -> str:
        """The text of the version that is staged ACSCurrent. API: KMS GetSecretValue (2016-01-20)."""
        del version  # the current one is what KMS gives
        keys = self._keys
        if keys is None:
            message = f"{_GET}: there are no credentials for Alibaba Cloud"
            raise AccessDeniedError(message, operation=_GET, code=errors.NO_KEYS)
        asked = {"RegionId": self._region, "SecretName": name}
        question = Question(_GET, PRODUCTS["kms"].version, self._domain, asked)
        try:
            answer = self._patience.ask(_GET, self._reserve, lambda: self._once(keys, question), changes=False)
        finally:
            self._transport.close()
        with as_documented(_GET):
            kind, found = named(answer, "SecretDataType"), text(answer, "SecretData")
        if kind != _TEXT or not found:
            message = f"{_GET}: it holds no text: binary secrets are not read"
            raise RefusedError(message, operation=_GET, code="NoText")
        return found

    def fix_for(self, error: ProviderError) -> str:
        """As of every operation; a key of the customer's own takes a permission more."""
        fix = errors.fix_for(error)
        if isinstance(error, AccessDeniedError) and fix.startswith("grant "):
            return f"{fix}, and kms:Decrypt where a key of your own encrypts it"
        return fix

    def _reserve(self) -> float:
        return self._pacer.reserve("", self._region, _GET)

    def _once(self, keys: Keys, question: Question) -> dict[str, Any]:
        left = _SECONDS if self._seconds_left is None else max(1.0, self._seconds_left())
        try:
            answer = self._transport.send(keys, question, seconds=min(_SECONDS, left))
        except WireError as err:
            raise errors.translate(err, _GET, changes=False) from err
        return errors.fields_of(answer, _GET, changes=False)
