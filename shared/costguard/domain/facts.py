"""What `examine` concludes from one shard: the only thing that travels from scan to plan."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from costguard.domain.findings import Usage
from costguard.domain.money import HourlyRate
from costguard.domain.refs import Shard
from costguard.domain.resources import Gap, Instance
from costguard.domain.signals import SignalSummary


@dataclass(frozen=True, slots=True)
class WindowReading:
    """All signals of one instance summarised over one window that a rule asked for."""

    lasting: timedelta
    since: datetime
    until: datetime
    signals: tuple[SignalSummary, ...]


@dataclass(frozen=True, slots=True)
class InstanceFact:
    """One instance, what it costs, and its signals over each window the rules use.

    `documented_delay` is how late the signal source may publish; `signals_read` is False when the
    read failed (then the absence of signals says nothing).
    """

    instance: Instance
    rate: HourlyRate | None
    readings: tuple[WindowReading, ...]
    documented_delay: timedelta
    signals_read: bool
    usage: Usage | None = None

    def over(self, lasting: timedelta) -> WindowReading | None:
        """The reading for a window of this length, if one was taken."""
        return next((reading for reading in self.readings if reading.lasting == lasting), None)


@dataclass(frozen=True, slots=True)
class ShardFacts:
    """One shard examined: its instances, and the gaps that limit what may be concluded or done."""

    shard: Shard
    instances: tuple[InstanceFact, ...]
    gaps: tuple[Gap, ...] = ()
    instances_seen: int = 0

    @property
    def complete(self) -> bool:
        """Whether absence of an instance means that it does not exist."""
        return not any(gap.what == "inventory" for gap in self.gaps)
