"""Whether a list that came back empty is one: it may be the answer to somebody who may not ask."""

from __future__ import annotations

from typing import Any

from costguard.domain.errors import ProviderError, UnavailableError
from costguard.domain.refs import Shard
from costguard.providers.alibaba.core.errors import WOULD_BE_ALLOWED
from costguard.providers.alibaba.core.session import AlibabaSession


def prove_permitted(session: AlibabaSession, shard: Shard, service: str, operation: str, **parameters: Any) -> None:
    """Return where a dry run says that asking is permitted, and in no other case.

    Raises:
        AccessDeniedError: it is not permitted.
        ProviderError: it could not be found out.
    """
    api = f"{service}:{operation}"
    try:
        session.call(shard, service, operation, **parameters, DryRun=True)
    except ProviderError as err:
        if err.code in WOULD_BE_ALLOWED:
            return
        raise
    message = f"{api}: a dry run was answered like the call itself, so it proves nothing"
    raise UnavailableError(message, operation=api, code="DryRunIgnored")
