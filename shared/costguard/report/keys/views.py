"""What was found of keys: those worth a look, what vendors cannot do, and how many are as they should be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from costguard.domain.findings import Finding, Verdict
from costguard.domain.keys import EncryptionKey
from costguard.domain.reasons import Reason, ReasonCode
from costguard.domain.remediations import Remediation
from costguard.domain.resources import Gap
from costguard.guards.keys.judge import ROTATION, VENDOR_LIMIT
from costguard.report.notices.remediations import mend_words, told_cost_words
from costguard.report.tables import Column, Table, Tone
from costguard.report.words.sentences import Language, clean, explain, gap, phrase, short

_COLUMNS = ("name", "shard", "spec", "verdict", "why", "mend", "owner", "rule")
_LIMIT_COLUMNS = ("cloud", "spec", "count", "why", "rule")
_ORDER = {Verdict.VIOLATION: 0, Verdict.UNMEASURED: 1, Verdict.COMPLIANT: 2, Verdict.EXEMPT: 3}
_GRAVEST_FIRST = (
    ReasonCode.KEY_DELETED_IN_USE,
    ReasonCode.KEY_DISABLED_IN_USE,
    ReasonCode.KEY_ROTATION_OFF,
    ReasonCode.KEY_OVERDUE,
    ReasonCode.KEY_PERIOD_LONG,
    ReasonCode.KEY_CANNOT_ROTATE,
)
"""The first of these loses data, the next only new material; whatever else there is comes after them."""

_WORTH = frozenset({Verdict.VIOLATION, Verdict.UNMEASURED})
_TONES = {
    Verdict.VIOLATION: Tone.BAD,
    Verdict.UNMEASURED: Tone.WARNING,
    Verdict.COMPLIANT: Tone.GOOD,
    Verdict.EXEMPT: Tone.GOOD,
}


@dataclass(frozen=True, slots=True)
class KeyLine:
    """One finding about one key, with its owner, and what would mend it."""

    finding: Finding
    key: EncryptionKey
    mend: Remediation | None = None


@dataclass(frozen=True, slots=True)
class KeyReport:
    """Everything that was found of keys."""

    lines: tuple[KeyLine, ...]
    keys_seen: int
    gaps: tuple[Gap, ...] = ()

    @property
    def worth(self) -> Sequence[KeyLine]:
        """What somebody should look at: violations first, then what is not measured."""
        return _sorted(line for line in self.lines if line.finding.verdict in _WORTH)

    @property
    def limits(self) -> Sequence[KeyLine]:
        """What a vendor cannot do."""
        return _sorted(line for line in self.lines if line.finding.check == VENDOR_LIMIT)

    @property
    def rest(self) -> Sequence[KeyLine]:
        """What is as it should be, and what is not judged."""
        return _sorted(
            line for line in self.lines if line.finding.check != VENDOR_LIMIT and line.finding.verdict not in _WORTH
        )


def key_summary_lines(report: KeyReport, language: Language = Language.EN) -> Iterator[str]:
    """All of it in a few sentences."""
    if not report.keys_seen:
        yield phrase("keys_nothing_read" if report.gaps else "keys_nothing", language)
        return
    counted = Counter(line.finding.verdict for line in report.lines if line.finding.check == ROTATION)
    yield phrase(
        "keys_total",
        language,
        keys=report.keys_seen,
        violations=sum(line.finding.verdict is Verdict.VIOLATION for line in report.lines),
        unmeasured=counted[Verdict.UNMEASURED],
        compliant=counted[Verdict.COMPLIANT],
        exempt=counted[Verdict.EXEMPT],
    )
    exempt = Counter(line.finding.reason.code for line in report.rest if line.finding.verdict is Verdict.EXEMPT)
    for code, count in sorted(exempt.items(), key=lambda pair: (-pair[1], pair[0].value)):
        yield phrase("keys_exempt", language, why=short(code, language), count=count)


def key_tables(report: KeyReport, language: Language = Language.EN, *, whole: bool = False) -> tuple[Table, ...]:
    """Keys worth a look, the vendors' limits, and with `whole` every other key; empty tables left out."""
    tables = [_table("keys_title", report.worth, language), _limits(report.limits, language)]
    if whole:
        tables.append(_table("keys_rest_title", report.rest, language))
    return tuple(table for table in tables if table.rows)


def key_closing(report: KeyReport, language: Language = Language.EN, *, whole: bool = False) -> Iterator[str]:
    """What could not be read, and where it is said what would be done."""
    yield from (gap(each, language) for each in report.gaps)
    if report.keys_seen:
        yield phrase("keys_shown_only", language)
    if report.rest and not whole:
        yield phrase("keys_all_hint", language)


def _sorted(lines: Iterable[KeyLine]) -> Sequence[KeyLine]:
    return sorted(
        lines, key=lambda line: (_ORDER[line.finding.verdict], _gravity(line), line.key.ref, line.finding.check)
    )


def _gravity(line: KeyLine) -> int:
    code = line.finding.reason.code
    return _GRAVEST_FIRST.index(code) if code in _GRAVEST_FIRST else len(_GRAVEST_FIRST)


def _table(title: str, lines: Sequence[KeyLine], language: Language) -> Table:
    return Table(
        phrase(title, language, count=len(lines)),
        tuple(Column(key, phrase(f"keys_{key}", language)) for key in _COLUMNS),
        tuple(_row(line, language) for line in lines),
        tones=tuple(_TONES[line.finding.verdict] for line in lines),
    )


def _row(line: KeyLine, language: Language) -> tuple[str, ...]:
    finding, key = line.finding, line.key
    return (
        clean(finding.name) or clean(key.ref.native_id),
        str(key.ref.shard),
        clean(key.spec),
        phrase(f"keys_verdict_{finding.verdict.value}", language),
        _why(finding.reason, language),
        mend_words(line.mend, language),
        clean(finding.owner),
        clean(finding.rule),
    )


def _why(reason: Reason, language: Language) -> str:
    """What is the case, what can be done, and what a rotation costs where that is about one."""
    cost = told_cost_words(reason.facts, language)
    said = explain(reason, language)
    between = "" if language is Language.ZH else " "
    return f"{said}{between}{phrase('mend_cost', language, cost=cost)}" if cost else said


def _limits(lines: Sequence[KeyLine], language: Language) -> Table:
    """Each kind of key once, however many there are of it."""
    kinds = Counter(
        (line.key.ref.cloud, clean(line.key.spec), _why(line.finding.reason, language), clean(line.finding.rule))
        for line in lines
    )
    return Table(
        phrase("keys_limits_title", language, count=len(kinds)),
        tuple(Column(key, phrase(f"keys_{key}", language), numeric=key == "count") for key in _LIMIT_COLUMNS),
        tuple((cloud, spec, str(count), why, rule) for (cloud, spec, why, rule), count in sorted(kinds.items())),
    )
