"""Plans, results and cases as tables for people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from costguard.cases import Case
from costguard.domain.actions import Action, ActionResult, Verb
from costguard.domain.findings import Finding, Verdict
from costguard.domain.reasons import Reason
from costguard.domain.refs import ResourceRef, Subject
from costguard.planning import Held, Plan, Rehearsed
from costguard.report.guard_views import view_of
from costguard.report.notices.remediations import mend_words
from costguard.report.plan.evidence import evidence_words, utc_words
from costguard.report.tables import Column, Table
from costguard.report.waste.reclaim import reclaim_in, reclaim_lines
from costguard.report.waste.views import gaps_table
from costguard.report.words.sentences import (
    Language,
    choice,
    clean,
    explain,
    label,
    listed,
    phrase,
    price,
    saving_lines,
    sentence,
    verb,
    verdict,
)

Names = Mapping[Subject, str]
"""What people call the machines; names never identify, so ids stand beside them."""

_NO_NAMES: Names = MappingProxyType({})
_ORDER = (Verdict.VIOLATION, Verdict.UNMEASURED, Verdict.EXEMPT, Verdict.COMPLIANT)  # what matters first


def plan_summary(plan: Plan, language: Language = Language.EN) -> str:
    """A plan in one sentence."""
    return phrase(
        "plan_total",
        language,
        findings=len(plan.findings),
        due=len(plan.due),
        held=len(plan.held),
        rehearsed=len(plan.rehearsed),
        gaps=len(plan.gaps),
    )


def money_lines(plan: Plan, language: Language = Language.EN) -> tuple[str, ...]:
    """How much of what idles can be reclaimed, waits for a yes, or may not be touched; nothing where nothing idles."""
    return reclaim_lines(reclaim_in(plan.findings), language)


def unread_line(plan: Plan, language: Language = Language.EN) -> tuple[str, ...]:
    """That some machines may yet turn out to be protected at their cloud; nothing where all is known."""
    count = len(plan.unread_protections)
    return (phrase("unread_protections", language, count=count),) if count else ()


def plan_tables(plan: Plan, language: Language = Language.EN) -> tuple[Table, ...]:
    """Findings, due, held, rehearsed and gaps; empty ones left out."""
    names = {finding.subject: finding.name for finding in plan.findings}
    tables = (
        findings_table(plan.findings, language, of_settings=view_of(plan.guard).of_settings),
        due_table(plan.due, language, names),
        _kept_table("held_title", plan.held, language, names),
        _kept_table("rehearsed_title", plan.rehearsed, language, names),
        gaps_table(plan.gaps, language),
    )
    return tuple(table for table in tables if table.rows)


def findings_table(
    findings: Iterable[Finding], language: Language = Language.EN, *, of_settings: bool = False
) -> Table:
    """One row a finding, violations first; `of_settings`: they are about keys or networks, not machines."""
    columns = (
        Column("name", label("name", language)),
        Column("resource", label("resource", language)),
        Column("verdict", label("verdict", language)),
        Column("owner", label("owner", language)),
        Column("rule", label("rule", language)),
        Column("hourly_cost", label("cost_hour", language), numeric=True),
        Column("words", label("why", language)),
        Column("evidence", label("evidence", language)),
    )
    rows = tuple(
        (
            clean(finding.name),
            place(finding.subject),
            phrase(f"keys_verdict_{finding.verdict.value}", language)
            if of_settings
            else verdict(finding.verdict, language),
            clean(finding.owner) or phrase("no_owner", language),
            clean(finding.rule),
            "" if of_settings and finding.rate is None else price(finding.rate, language),
            explain(finding.reason, language) if of_settings else sentence(finding.reason, language),
            evidence_words(finding.evidence, language),
        )
        for finding in sorted(findings, key=lambda one: (_ORDER.index(one.verdict), str(one.subject)))
    )
    return Table(phrase("findings_title", language, count=len(rows)), columns, rows)


def _verdict_words(value: Verdict, language: Language, *, of_settings: bool) -> str:
    return phrase(f"keys_verdict_{value.value}", language) if of_settings else verdict(value, language)


def due_table(actions: Iterable[Action], language: Language = Language.EN, names: Names = _NO_NAMES) -> Table:
    """What will be done, and what it is worth."""
    columns = (
        Column("verb", label("step", language)),
        Column("name", label("name", language)),
        Column("resource", label("resource", language)),
        Column("rule", label("rule", language)),
        Column("saving", label("saving", language)),
        Column("decision_id", label("id", language)),
    )
    rows = tuple(
        (
            step_words(action, language),
            clean(names.get(action.subject, "")),
            place(action.resource),
            clean(action.rule),
            saving_words(action, language),
            action.decision_id,
        )
        for action in actions
    )
    return Table(phrase("due_title", language, count=len(rows)), columns, rows)


def _kept_table(title: str, kept: Iterable[Held | Rehearsed], language: Language, names: Names) -> Table:
    columns = (
        Column("verb", label("step", language)),
        Column("name", label("name", language)),
        Column("resource", label("resource", language)),
        Column("rule", label("rule", language)),
        Column("words", label("why", language)),
        Column("saving", label("saving", language)),
    )
    rows = tuple(
        (
            step_words(one.action, language),
            clean(names.get(one.action.subject, "")),
            place(one.action.resource),
            clean(one.action.rule),
            explain(one.reason, language),
            saving_words(one.action, language),
        )
        for one in kept
    )
    return Table(phrase(title, language, count=len(rows)), columns, rows)


def results_table(results: Iterable[ActionResult], language: Language = Language.EN, names: Names = _NO_NAMES) -> Table:
    """What act did about each due action."""
    columns = (
        Column("verb", label("step", language)),
        Column("name", label("name", language)),
        Column("resource", label("resource", language)),
        Column("outcome", label("outcome", language)),
        Column("why", label("why", language)),
        Column("detail", label("detail", language)),
    )
    rows = tuple(
        (
            step_words(result.action, language),
            clean(names.get(result.action.subject, "")),
            place(result.action.resource),
            choice(result.outcome.value if result.outcome else "held", language),
            sentence(result.reason, language) if result.reason else "",
            clean(result.detail),
        )
        for result in results
    )
    return Table(phrase("results_title", language, count=len(rows)), columns, rows)


def left_line(case: Case, reason: Reason, language: Language = Language.EN) -> str:
    """That a case of an agreed plan stays as it is, and what differs."""
    return phrase("applied_left", language, subject=place(case.subject), why=sentence(reason, language))


def cases_table(cases: Iterable[Case], language: Language = Language.EN) -> Table:
    """One row a case, where it stands and why."""
    columns = (
        Column("resource", label("resource", language)),
        Column("status", label("status", language)),
        Column("owner", label("owner", language)),
        Column("rule", label("rule", language)),
        Column("climbed", label("step", language)),
        Column("since", label("since", language)),
        Column("words", label("why", language)),
        Column("case_id", label("case", language)),
    )
    rows = tuple(
        (
            place(case.subject),
            choice(case.status.value, language),
            clean(case.owner) or phrase("no_owner", language),
            clean(case.rule),
            ", ".join(verb(rung.verb, language) for rung in case.climbed),
            utc_words(case.closed_at or case.since),
            sentence(case.reason, language),
            case.case_id,
        )
        for case in cases
    )
    return Table(phrase("cases_title", language, count=len(rows)), columns, rows)


def step_words(action: Action, language: Language = Language.EN) -> str:
    """What an action does: its verb, how many disks it copies as a set, or the very change where it mends something."""
    if action.verb is Verb.MEND and action.mend is not None:
        return mend_words(action.mend, language)
    if action.copies:
        return phrase("copied_together", language, verb=verb(action.verb, language), count=len(action.copies))
    return verb(action.verb, language)


def saving_words(action: Action, language: Language = Language.EN) -> str:
    """What an action saves and risks, in one cell."""
    if action.saving is None:
        return ""
    return listed(saving_lines(action.saving, action.verb, language), language)


def place(subject: Subject) -> str:
    """A resource short enough for a table: account, region and the vendor's id."""
    if isinstance(subject, ResourceRef):
        return clean(f"{subject.account}:{subject.region}:{subject.native_id}")
    return clean(subject)
