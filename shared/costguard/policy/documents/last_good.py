"""How long the last good policy may stand in for one that cannot be read or is wrong. Pure."""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import Enum

KEPT_FOR = timedelta(days=7)  # NEVER rule 11
_CLOCK_SKEW = timedelta(minutes=5)


class Usable(str, Enum):
    """Whether a policy loaded some time ago may still decide."""

    OK = "ok"
    REFUSE = "refuse"


def usable(policy_loaded_at: datetime, now: datetime) -> Usable:
    """OK for at most seven days; a policy loaded in the future tells of a broken clock and is refused.

    Raises:
        ValueError: one of the times carries no offset.
    """
    if policy_loaded_at.utcoffset() is None or now.utcoffset() is None:
        raise ValueError("both times must carry an offset")
    age = now - policy_loaded_at
    return Usable.OK if -_CLOCK_SKEW <= age <= KEPT_FOR else Usable.REFUSE
