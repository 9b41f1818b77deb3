"""What rules that mend write alike, whatever they mend."""

from __future__ import annotations

from datetime import timedelta

from costguard.policy.model.ladder import read_wait

_SHORTEST_WAIT = timedelta(hours=1)  # less is no notice: people are in meetings


def wait(raw: object) -> timedelta:
    """How long after its notice something is mended."""
    return read_wait(raw, "a mend", _SHORTEST_WAIT, ())
