"""What was found of networks, in the order in which people should look at it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from costguard.domain.findings import Finding, Verdict
from costguard.domain.network import Unpriced
from costguard.domain.reasons import Reason, ReasonCode
from costguard.domain.refs import ResourceRef
from costguard.domain.remediations import Remediation
from costguard.domain.resources import Gap
from costguard.report.network.catalogue import Severity, known_entry
from costguard.report.words.sentences import clean

WORTH = frozenset({Verdict.VIOLATION, Verdict.UNMEASURED})
"""What somebody should look at."""
PAID_FOR_NOTHING = frozenset(
    {
        ReasonCode.NET_UNATTACHED,
        ReasonCode.NET_UNATTACHED_YET,
        ReasonCode.NET_IDLE_NAT,
        ReasonCode.NET_IDLE_ADDRESS,
        ReasonCode.NET_IDLE_CARD,
    }
)
"""Violations that cost money and do nothing."""

_ORDER = {Verdict.VIOLATION: 0, Verdict.UNMEASURED: 1, Verdict.COMPLIANT: 2, Verdict.EXEMPT: 3}
_UNRANKED = len(Severity)


@dataclass(frozen=True, slots=True)
class LookedAt:
    """How much was looked at."""

    networks: int = 0
    groups: int = 0
    rules: int = 0
    addresses: int = 0
    gateways: int = 0
    instances: int = 0


@dataclass(frozen=True, slots=True)
class NetworkLine:
    """One finding, what the policy allows to be done about it, and what bars that."""

    finding: Finding
    mend: Remediation | None = None
    bar: Reason | None = None

    @property
    def severity(self) -> Severity | None:
        """How grave it is: as the guard says of this one, else of its check; None of what is in no catalogue."""
        said, entry = self.finding.reason.facts.get("severity"), known_entry(self.finding.check)
        if said in {each.value for each in Severity}:
            return Severity(said)
        return None if entry is None else entry.severity


@dataclass(frozen=True, slots=True)
class NetworkReport:
    """Everything that was found of networks."""

    lines: tuple[NetworkLine, ...]
    seen: LookedAt = LookedAt()
    gaps: tuple[Gap, ...] = ()

    @property
    def worth(self) -> Sequence[NetworkLine]:
        """What somebody should look at: violations by severity, then what is not measured."""
        return in_order(line for line in self.lines if line.finding.verdict in WORTH)

    @property
    def rest(self) -> Sequence[NetworkLine]:
        """What is as it should be, and what is not judged."""
        return in_order(line for line in self.lines if line.finding.verdict not in WORTH)

    @property
    def waste(self) -> Sequence[NetworkLine]:
        """Addresses and gateways that are paid for and do nothing; the dearest first, then those of unknown price."""
        found = [
            line
            for line in self.lines
            if line.finding.verdict is Verdict.VIOLATION
            and line.finding.reason.code in PAID_FOR_NOTHING
            and line.finding.reason.facts.get("unpriced") != Unpriced.FREE_WHILE_BOUND.value
        ]
        return sorted(found, key=lambda line: (_dearest(line.finding), _place(line.finding)))


def in_order(lines: Iterable[NetworkLine]) -> Sequence[NetworkLine]:
    """By verdict, severity, number of the check and subject."""
    return sorted(lines, key=_rank)


def _rank(line: NetworkLine) -> tuple[int, int, str, str]:
    severity = _UNRANKED if line.severity is None else line.severity.rank
    return (_ORDER[line.finding.verdict], severity, check_id(line.finding), _place(line.finding))


def _place(finding: Finding) -> str:
    return str(finding.subject)


def _dearest(finding: Finding) -> tuple[int, str, Decimal]:
    if finding.rate is None:
        return (1, "", Decimal(0))
    return (0, finding.rate.money.currency, -finding.rate.money.amount)


def check_id(finding: Finding) -> str:
    """The lasting number of its check."""
    entry = known_entry(finding.check)
    return clean(finding.check) if entry is None else entry.check_id


def named(finding: Finding) -> str:
    """Its name, and always the id that the cloud's console finds it by."""
    subject = finding.subject
    native = clean(subject.native_id) if isinstance(subject, ResourceRef) else clean(subject)
    name = clean(finding.name)
    return f"{name} ({native})" if name and name != native else native


def shard_of(finding: Finding) -> str:
    """Where it is."""
    return str(finding.subject.shard) if isinstance(finding.subject, ResourceRef) else ""
