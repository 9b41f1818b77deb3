"""What a failed read leaves open."""

from __future__ import annotations

from costguard.domain.errors import (
    AccessDeniedError,
    ProviderError,
    ThrottledError,
    TruncatedReadError,
    UnavailableError,
)
from costguard.domain.resources import GapKind

DEADLINE = "DeadlineExceeded"
"""A code of our own: not asked, because the time allowed is used up."""


def gap_kind(error: ProviderError) -> GapKind:
    """Why something could not be read, from the error that reading it ended in."""
    if error.code == DEADLINE:
        return GapKind.DEADLINE
    if isinstance(error, AccessDeniedError):
        return GapKind.DENIED
    if isinstance(error, ThrottledError):
        return GapKind.THROTTLED
    if isinstance(error, TruncatedReadError):
        return GapKind.TRUNCATED
    if isinstance(error, UnavailableError):
        return GapKind.UNAVAILABLE
    return GapKind.UNREADABLE
