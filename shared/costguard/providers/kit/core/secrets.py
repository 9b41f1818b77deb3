"""Secrets of the settings, from any cloud's secret store: a session that can do nothing else, and one question."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from costguard.domain.errors import AccessDeniedError, ProviderError, RefusedError
from costguard.providers.kit.core.fields import Fields, as_documented
from costguard.providers.kit.core.session import Session


class Secrets:
    """A `SecretStore` in the home region of a session for secrets, with the process's own credentials.

    Safe to repeat. `asked` are the parameters that ask for a name and version, `text_in` finds the text in the answer,
    empty where it holds none, and `fix_for` what a person can do about an error.
    """

    def __init__(
        self,
        session: Session[Any, Any],
        service: str,
        asked: Callable[[str, str], Mapping[str, str]],
        text_in: Callable[[Fields], str],
        fix_for: Callable[[ProviderError], str],
    ) -> None:
        self._session = session
        self._service = service
        self._asked = asked
        self._text_in = text_in
        self._fix_for = fix_for

    def read(self, name: str, version: str = "") -> str:
        """The text of the current version, or of the one named where the cloud asks for one. API: GetSecretValue."""
        api = f"{self._service}:GetSecretValue"
        try:
            answer = self._session.call_as_own(self._service, "GetSecretValue", **self._asked(name, version))
        finally:
            self._session.close()
        with as_documented(api):
            found = self._text_in(answer)
        if not found:
            message = f"{api}: it holds no text: binary secrets are not read"
            raise RefusedError(message, operation=api, code="NoText")
        return found

    def fix_for(self, error: ProviderError) -> str:
        """What a person can do about `error`; empty where that is not known."""
        return self._fix_for(error)


def with_decryption(fix: str, error: ProviderError) -> str:
    """A key of the customer's own takes a permission more than the secret that it encrypts."""
    if isinstance(error, AccessDeniedError) and fix.startswith("grant "):
        return f"{fix}, and kms:Decrypt where a key of your own encrypts it"
    return fix
