"""Secrets of the settings in AWS Secrets Manager, through a gate that lets nothing else out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from costguard.domain.errors import AccessDeniedError, ProviderError, RefusedError
from costguard.providers.aws.core import errors
from costguard.providers.aws.core.rates import RATES, family_of
from costguard.providers.aws.core.transport import Clients, WatchedGate, is_aws, new_session
from costguard.providers.aws.iam.permissions import OPERATIONS, SECRET_OPERATIONS
from costguard.providers.kit.core.fields import as_documented, text
from costguard.providers.kit.core.pacing import pacer_for
from costguard.providers.kit.core.retry import RetryPolicy
from costguard.providers.kit.iam.operations import Feature

_GET = "secretsmanager:GetSecretValue"
_OWN = ""
_OF_THE_SDK = frozenset({Feature.IDENTITY, Feature.MEMBERS})  # what its credential providers send
_REACH = {**SECRET_OPERATIONS, **{name: one for name, one in OPERATIONS.items() if one.feature in _OF_THE_SDK}}


class AwsSecrets:
    """A `SecretStore` in one region, with the process's own credentials. Safe to repeat."""

    def __init__(
        self,
        region: str,
        *,
        endpoint_url: str = "",
        profile: str = "",
        keys: tuple[str, str] | None = None,
        seconds_left: Callable[[], float] | None = None,
    ) -> None:
        self._region = region
        self._profile = profile
        self._keys = keys
        self._gate = WatchedGate(_REACH, may_change=False)
        self._clients = Clients(endpoint_url=endpoint_url)
        self._pacer = pacer_for(RATES, endpoint_url)
        self._patience = RetryPolicy(self._pacer, seconds_left)

    def read(self, name: str, version: str = "") -> str:
        """The text of the version that is staged AWSCURRENT. API: Secrets Manager GetSecretValue."""
        del version  # the current one is what AWS gives
        try:
            answer = self._patience.ask(_GET, self._reserve, lambda: self._once(name), changes=False)
        finally:
            self._clients.close()
        with as_documented(_GET):
            found = text(answer, "SecretString")
        if not found:
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
        return self._pacer.reserve(_OWN, self._region, family_of(_GET, changes=False))

    def _once(self, name: str) -> dict[str, Any]:
        stand_in = False
        self._gate.expect(_GET)
        try:
            client = self._client()
            stand_in = not is_aws(client.meta.endpoint_url)
            answer: dict[str, Any] = client.get_secret_value(SecretId=name)
        except ProviderError:
            raise  # from the gate
        except errors.vendor_faults() as err:
            sent = self._gate.was_sent(_GET)
            raise errors.translate(err, _GET, changes=False, sent=sent, stand_in=stand_in) from err
        return answer

    def _client(self) -> Any:
        if not self._clients.has_session(_OWN):
            from botocore.credentials import Credentials

            own = None if self._keys is None else Credentials(*self._keys)
            self._clients.add_session(_OWN, new_session(self._gate, profile=self._profile, credentials=own))
        return self._clients.get(_OWN, self._region, "secretsmanager")
