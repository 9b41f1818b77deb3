"""Does the weekly digest still come? Told by functions that run more often: no alarm of a host looks back so far."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta

from costguard.engine.ledger.memory import Memory

_LOG = logging.getLogger(__name__)
DIGEST = "digest"
LONGEST_BETWEEN = timedelta(days=8)  # a week, as functions/digest/function.yaml has it, and a day to notice


def tell_of_overdue_digest(memory: Memory, now: datetime) -> None:
    """Write the line that alarms look for (infra/*/alarms.tf), in each run until there is a digest again.

    Of one that never ran nothing is known: many ledgers have none. Whether it is deployed the alarm knows.

    Raises:
        LedgerError: memory failed.
    """
    began = memory.runs.began_last(DIGEST)
    if began is not None and now - began > LONGEST_BETWEEN:
        _LOG.warning("the weekly digest is overdue", extra={"began_last": began.isoformat(timespec="seconds")})
