"""A metrics backend that is configured and may not be asked: what it would have said is a gap, never nothing."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from costguard.domain.resources import Gap, GapKind, Instance
from costguard.ports import SignalReport


class RefusedSignals:
    """A `SignalSource` that reads nothing and reports why, so that every instance stays unread."""

    def __init__(self, url: str, reason: str, fix: str) -> None:
        self._detail = f"Prometheus {url}: {reason}"
        self._fix = fix

    def read(self, instances: Sequence[Instance], since: datetime, until: datetime) -> SignalReport:  # noqa: ARG002 - a port
        """No readings, and a gap for each shard."""
        shards = dict.fromkeys(instance.ref.shard for instance in instances)
        gaps = (Gap(shard, "signals", GapKind.DENIED, self._detail, self._fix) for shard in shards)
        return SignalReport({}, tuple(gaps))
