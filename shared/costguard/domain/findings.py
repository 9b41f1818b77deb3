"""What one look established (facts), and a guard's verdict on one subject, with what it rests on."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum

from costguard.domain.money import HourlyRate
from costguard.domain.reasons import Reason
from costguard.domain.refs import Shard, Subject
from costguard.domain.resources import Gap, Instance
from costguard.domain.signals import SignalName, SignalSummary


class Verdict(str, Enum):
    """`UNMEASURED` never acts, not even under a negation; `EXEMPT` is shown and never touched."""

    VIOLATION = "violation"
    COMPLIANT = "compliant"
    UNMEASURED = "unmeasured"
    EXEMPT = "exempt"


class Standing(str, Enum):
    """What may be done about the cost of something that idles.

    `RECLAIMABLE`: its rule's steps end the bill, with nothing but their waits and caps before them. `WAITS`: somebody
    has to agree first. `UNTOUCHABLE`: it is protected, managed, prepaid, kept, or no step of its rule stops it.
    """

    RECLAIMABLE = "reclaimable"
    WAITS = "waits_for_approval"
    UNTOUCHABLE = "untouchable"


@dataclass(frozen=True, slots=True)
class Evidence:
    """What was measured: the window, the worst coverage, the oldest of the newest points, maxima per signal and device.

    `signals` are those that were judged, `shown` what was read beside them and decides nothing: neither its gaps nor
    its age count. `coverage` is a share, 0.0 to 1.0; None where nothing was expected.
    """

    since: datetime
    until: datetime
    signals: tuple[SignalSummary, ...] = ()
    shown: tuple[SignalSummary, ...] = ()

    @property
    def coverage(self) -> float | None:
        """The worst coverage among the signals that were judged."""
        return min((signal.coverage for signal in self.signals), default=None)

    @property
    def unseen(self) -> timedelta | None:
        """How long before a look a job may have begun that no sample of its card shows; None without a card."""
        return max((signal.unseen for signal in self.signals if signal.name is SignalName.GPU), default=None)

    @property
    def newest_at(self) -> datetime | None:
        """The oldest among the signals' newest samples; None if any has none."""
        newest = [signal.newest_at for signal in self.signals]
        moments = [moment for moment in newest if moment is not None]
        return min(moments) if moments and len(moments) == len(newest) else None


@dataclass(frozen=True, slots=True)
class Usage:
    """How an instance spent the hours looked back on: complete hours only, `idle` ⊆ `observed` ⊆ `running`.

    `partly_idle_card_hours` are hours of single idle cards beside a busy one.
    """

    running_hours: float
    observed_hours: int
    idle_hours: int
    partly_idle_card_hours: int = 0


@dataclass(frozen=True, slots=True)
class Finding:
    """One verdict of one rule. `rule` is empty for a scan without policy.

    `owner_source` is what named the owner (`owners.yaml`, `tag`, `launched`, `account`, `none`), empty where not told.
    `billed_hourly` is what the subject costs while it runs; None when unknown. `standing` None: it does not idle, or is
    no machine.
    """

    guard: str
    check: str
    rule: str
    rule_digest: str
    subject: Subject
    verdict: Verdict
    reason: Reason
    evidence: Evidence | None = None
    run_epoch: str = ""
    name: str = ""
    instance_type: str = ""
    owner: str = ""
    rate: HourlyRate | None = None
    usage: Usage | None = None
    owner_source: str = ""
    standing: Standing | None = None


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
