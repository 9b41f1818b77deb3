"""From an error of a metrics backend to the gap it leaves."""

from __future__ import annotations

from costguard.domain.errors import (
    AccessDeniedError,
    ProviderError,
    ThrottledError,
    TruncatedReadError,
    UnavailableError,
)
from costguard.domain.refs import Shard
from costguard.domain.resources import Gap, GapKind

_KINDS: tuple[tuple[type[ProviderError], GapKind], ...] = (
    (AccessDeniedError, GapKind.DENIED),
    (ThrottledError, GapKind.THROTTLED),
    (TruncatedReadError, GapKind.TRUNCATED),
    (UnavailableError, GapKind.UNAVAILABLE),
)


def signals_gap(shard: Shard, error: ProviderError, *, fix: str = "") -> Gap:
    """What `error` left unread; anything that is not a passing fault counts as unreadable."""
    kind = next((kind for expected, kind in _KINDS if isinstance(error, expected)), GapKind.UNREADABLE)
    return Gap(shard, "signals", kind, str(error), fix)
