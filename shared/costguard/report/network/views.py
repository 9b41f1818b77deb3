"""What was found of networks: the gravest first, each way in whole, what closes it, and what is paid for nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from costguard.domain.findings import Finding, Verdict
from costguard.domain.reasons import Reason
from costguard.domain.refs import ResourceRef
from costguard.domain.remediations import RemediationKind
from costguard.report.network.catalogue import Severity
from costguard.report.network.order import WORTH, NetworkLine, NetworkReport, check_id, named, shard_of
from costguard.report.network.waste import cost_words, waste_table
from costguard.report.notices.remediations import mend_words
from costguard.report.tables import Column, Table, Tone
from costguard.report.words.sentences import Language, clean, explain, gap, phrase, sentence, short

_COLUMNS = ("severity", "check", "name", "shard", "verdict", "why", "path", "closes", "mend", "cost", "owner", "rule")
_STEP = " > "  # between the steps of a path, as the guard writes it
_LEAST = frozenset({RemediationKind.REVOKE_RULE.value, RemediationKind.NARROW_RULE.value})


def network_summary_lines(report: NetworkReport, language: Language = Language.EN) -> Iterator[str]:
    """All of it in a few sentences."""
    seen = report.seen
    if not seen.networks and not report.lines:
        yield phrase("networks_nothing_read" if report.gaps else "networks_nothing", language)
        return
    verdicts = Counter(line.finding.verdict for line in report.lines)
    graves = Counter(line.severity for line in report.worth if line.finding.verdict is Verdict.VIOLATION)
    yield phrase(
        "networks_total",
        language,
        networks=seen.networks,
        instances=seen.instances,
        groups=seen.groups,
        rules=seen.rules,
        violations=verdicts[Verdict.VIOLATION],
        unmeasured=verdicts[Verdict.UNMEASURED],
        compliant=verdicts[Verdict.COMPLIANT],
        exempt=verdicts[Verdict.EXEMPT],
    )
    counted = [(severity, graves[severity]) for severity in Severity if graves[severity]]
    if counted:
        said = (phrase("networks_count_of", language, count=n, what=severity_words(s, language)) for s, n in counted)
        yield phrase("networks_by_severity", language, counted=phrase("networks_list", language).join(said))
    exempt = Counter(line.finding.reason.code for line in report.rest if line.finding.verdict is Verdict.EXEMPT)
    for code, count in sorted(exempt.items(), key=lambda pair: (-pair[1], pair[0].value)):
        yield phrase("networks_exempt", language, why=short(code, language), count=count)


def network_tables(
    report: NetworkReport, language: Language = Language.EN, *, whole: bool = False
) -> tuple[Table, ...]:
    """What is worth a look, what is paid for nothing, and with `whole` everything else; empty tables left out."""
    tables = [_table("networks_title", report.worth, language), waste_table(report, language)]
    if whole:
        tables.append(_table("networks_rest_title", report.rest, language))
    return tuple(table for table in tables if table.rows)


def network_closing(report: NetworkReport, language: Language = Language.EN, *, whole: bool = False) -> Iterator[str]:
    """What could not be read, and that nothing was done."""
    yield from (gap(each, language) for each in report.gaps)
    if report.lines:
        yield phrase("networks_only_shown", language)
    if report.rest and not whole:
        yield phrase("networks_all_hint", language)


def severity_words(severity: Severity | None, language: Language = Language.EN) -> str:
    """How grave it is, in one word; empty for a check that is in no catalogue."""
    return "" if severity is None else phrase(f"networks_severity_{severity.value}", language)


def path_words(finding: Finding, language: Language = Language.EN) -> str:
    """The whole way in, as one line; empty of findings that are about none."""
    told = str(finding.reason.facts.get("path", ""))
    return phrase("networks_path_line", language, path=told.replace(_STEP, " → ")) if told else ""


def closing_words(finding: Finding, language: Language = Language.EN) -> str:
    """What would close it with the least change, whether or not the policy allows that."""
    least, facts = finding.reason.facts.get("least", ""), finding.reason.facts
    return phrase(f"networks_least_{least}", language, **facts) if least in _LEAST else ""


def allowed_words(line: NetworkLine, language: Language = Language.EN) -> str:
    """What the policy allows about it, with what bars that; empty where it allows nothing."""
    if line.mend is None or line.bar is None:
        return mend_words(line.mend, language)
    return phrase("networks_barred", language, mend=mend_words(line.mend, language), why=short_of(line.bar, language))


def short_of(reason: Reason, language: Language) -> str:
    """A reason with its facts and without what to do about it."""
    return sentence(reason, language).rstrip(".。")


def _table(title: str, lines: Sequence[NetworkLine], language: Language) -> Table:
    folded = tuple(_folded(lines))
    return Table(
        phrase(title, language, count=len(lines)),
        tuple(Column(key, phrase(f"networks_{key}", language)) for key in _COLUMNS),
        tuple(_row(line, more, language) for line, more in folded),
        tones=tuple(_tone(line) for line, _ in folded),
        foldable=False,
    )


def _folded(lines: Sequence[NetworkLine]) -> Iterator[tuple[NetworkLine, int]]:
    """Each violation by itself; what could not be measured for the same reason once, with how many more there are."""
    alike = Counter(_unmeasured(line) for line in lines)
    told: set[object] = set()
    for line in lines:
        same = _unmeasured(line)
        if same is None:
            yield line, 0
        elif same not in told:
            told.add(same)
            yield line, alike[same] - 1


def _unmeasured(line: NetworkLine) -> object:
    """What makes two findings that are not measured say the same; None of any other."""
    finding = line.finding
    if finding.verdict is not Verdict.UNMEASURED or not isinstance(finding.subject, ResourceRef):
        return None
    facts = tuple(sorted((name, str(value)) for name, value in finding.reason.facts.items()))
    return (finding.subject.shard, finding.check, finding.rule, finding.reason.code, facts)


def _tone(line: NetworkLine) -> Tone:
    verdict = line.finding.verdict
    if verdict is Verdict.VIOLATION:
        return Tone.WARNING if line.severity is Severity.LOW else Tone.BAD
    return Tone.WARNING if verdict is Verdict.UNMEASURED else Tone.GOOD


def _row(line: NetworkLine, more: int, language: Language) -> tuple[str, ...]:
    finding = line.finding
    return (
        severity_words(line.severity, language) if finding.verdict in WORTH else "",
        check_id(finding),
        phrase("networks_named", language, name=named(finding), more=more or ""),
        shard_of(finding),
        phrase(f"networks_verdict_{finding.verdict.value}", language),
        _why(finding, language),
        path_words(finding, language),
        closing_words(finding, language),
        allowed_words(line, language),
        cost_words(finding, language),
        clean(finding.owner),
        clean(finding.rule),
    )


def _why(finding: Finding, language: Language) -> str:
    """What is the case, and of what somebody should look at what can be done; the check itself says the rest."""
    return explain(finding.reason, language) if finding.verdict in WORTH else sentence(finding.reason, language)
