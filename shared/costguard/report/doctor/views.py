"""The doctor's report for people and for machines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from costguard.domain.reasons import FactValue, Reason
from costguard.domain.resources import Gap
from costguard.report.doctor.checks import Detail, Diagnosis, DoctorCheck, Health, RunTold
from costguard.report.json_values import moment
from costguard.report.plan.evidence import utc_words
from costguard.report.policy.waits import wait_words
from costguard.report.words.catalogue import template
from costguard.report.words.sentences import Language, clean, fix, gap_kind, gap_subject, listed, phrase, sentence

if TYPE_CHECKING:
    from costguard.report.doctor import shapes

DOCTOR_SCHEMA: Final = 1
MOST_SHOWN = 10  # of one check; a fleet without an agent would fill pages
_LISTS = ("functions", "names")  # facts that are several, with a comma between


def verdict_words(found: Diagnosis, language: Language = Language.EN) -> str:
    """Whether it is safe to enforce, in one sentence."""
    counts = {health: sum(check.health is health for check in found.checks) for health in Health}
    return phrase(
        f"doctor_verdict_{found.verdict.value}",
        language,
        checks=len(found.checks),
        warnings=counts[Health.WARNING],
        untold=counts[Health.COULD_NOT_TELL] or "",
        barring=counts[Health.BARS],
    )


def health_words(health: Health, language: Language = Language.EN) -> str:
    """A verdict in a word or two."""
    return phrase(f"doctor_health_{health.value}", language)


def check_words(check: DoctorCheck, language: Language = Language.EN) -> str:
    """What is the case."""
    facts: dict[str, FactValue] = dict(check.facts)
    if "direction" in facts:
        facts["direction"] = phrase(f"doctor_{facts['direction']}", language)
    comma = phrase("doctor_comma", language)
    facts |= {name: str(facts[name]).replace(", ", comma) for name in _LISTS if name in facts}
    if facts.get("no_rule") == 0:
        del facts["no_rule"]
    return phrase(f"doctor_{check.code.value}", language, **facts)


def check_fix(check: DoctorCheck, language: Language = Language.EN) -> str:
    """What mends it; empty where there is nothing to mend."""
    key = f"doctor_fix_{check.code.value}"
    told = {"cloud": check.target.partition(":")[0], **check.facts}
    return phrase(key, language, **told) if template("phrases", key, language.value) else ""


def check_lines(check: DoctorCheck, language: Language = Language.EN) -> Iterator[str]:
    """The words, the fix, and what is behind them; the first few where there is much."""
    yield phrase("doctor_line", language, target=check.target, words=check_words(check, language))
    mend = check_fix(check, language)
    if mend:
        yield phrase("doctor_fix", language, fix=mend)
    for detail in check.details[:MOST_SHOWN]:
        said, how = detail_words(detail, language)
        yield phrase("doctor_detail", language, where=clean(detail.where), said=_bare(said), fix=_bare(how))
    if len(check.details) > MOST_SHOWN:
        yield phrase("doctor_more", language, count=len(check.details) - MOST_SHOWN)


def detail_words(detail: Detail, language: Language = Language.EN) -> tuple[str, str]:
    """What is the case and what mends it, cleaned."""
    said = detail.said
    if isinstance(said, Reason):
        return sentence(said, language), fix(said, language)
    if isinstance(said, Gap):
        where_and_why = (gap_subject(said.what, language), gap_kind(said, language), clean(said.detail))
        return listed(filter(None, where_and_why), language), clean(said.fix)
    if isinstance(said, RunTold):
        began = "" if said.began is None else utc_words(said.began)
        told = {"began": began, "policy": clean(said.policy), **(wait_words(said.wait, language) if said.wait else {})}
        return phrase(f"doctor_run_{said.fault.value}", language, **told), ""
    return clean(said), clean(detail.fix)


def calls_words(found: Diagnosis, language: Language = Language.EN) -> str:
    """How much was asked, and that nothing of it could change anything."""
    calls = sum(row.calls for row in found.calls)
    changing = [row for row in found.calls if row.changes_something and row.calls]
    if changing:
        operations = phrase("doctor_comma", language).join(sorted({row.operation for row in changing}))
        sent = sum(row.calls for row in changing)
        return phrase("doctor_calls_dirty", language, calls=calls, changing=sent, operations=operations)
    return phrase("doctor_calls", language, calls=calls, dry_runs=_dry_runs(found) or "")


def doctor_json(found: Diagnosis, language: Language = Language.EN) -> shapes.Doctor:
    """The report for machines; `doctor.schema.json` describes it."""
    return {
        "schema": DOCTOR_SCHEMA,
        "at": moment(found.at),
        "verdict": found.verdict.value,
        "safe_to_enforce": found.safe,
        "words": verdict_words(found, language),
        "checks": [_check_json(check, language) for check in found.checks],
        "proof": {
            "calls": sum(row.calls for row in found.calls),
            "dry_runs": _dry_runs(found),
            "changing_calls": sum(row.calls for row in found.calls if row.changes_something),
            "operations": [
                {
                    "operation": row.operation,
                    "permission": row.permission,
                    "calls": row.calls,
                    "changes_something": row.changes_something,
                }
                for row in found.calls
            ],
            "words": calls_words(found, language),
        },
    }


def _check_json(check: DoctorCheck, language: Language) -> shapes.DoctorCheck:
    return {
        "check": check.question.value,
        "code": check.code.value,
        "verdict": check.health.value,
        "target": check.target,
        "facts": {name: clean(value) if isinstance(value, str) else value for name, value in check.facts.items()},
        "words": check_words(check, language),
        "fix": check_fix(check, language),
        "details": [_detail_json(detail, language) for detail in check.details],
    }


def _detail_json(detail: Detail, language: Language) -> shapes.DoctorDetail:
    words, mend = detail_words(detail, language)
    return {"where": clean(detail.where), "code": _detail_code(detail), "words": words, "fix": mend}


def _detail_code(detail: Detail) -> str | None:
    if isinstance(detail.said, Reason):
        return detail.said.code.value
    if isinstance(detail.said, Gap):
        return detail.said.kind.value
    return detail.said.fault.value if isinstance(detail.said, RunTold) else None


def _dry_runs(found: Diagnosis) -> int:
    return sum(row.calls for row in found.calls if row.operation.endswith("(dry run)"))


def _bare(text: str) -> str:
    return text.rstrip(".。 ")
