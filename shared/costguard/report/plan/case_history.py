"""One machine's case as a story: what was seen, told, called and seen done, in the order of time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import TYPE_CHECKING

from costguard.cases import Case, CaseStatus
from costguard.domain.actions import Verb
from costguard.domain.findings import Finding
from costguard.domain.refs import ResourceRef
from costguard.domain.resources import Gap
from costguard.report.json_values import gap_json, moment, reason_json, subject_json
from costguard.report.notices.machines import Upcoming
from costguard.report.plan.evidence import evidence_json, evidence_words, utc_words
from costguard.report.words.sentences import (
    Language,
    choice,
    clean,
    explain,
    gap,
    label,
    phrase,
    price,
    sentence,
    verb,
    verdict,
)

if TYPE_CHECKING:
    from costguard.report.plan import shapes

_LONGEST_DETAIL = 300


class What(str, Enum):
    """Kinds of things that happen to a case."""

    OPENED = "opened"
    TOLD = "told"
    NOT_TOLD = "not_told"
    CALLED = "called"
    SEEN = "seen"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class Happened:
    """One thing that happened; `where` is a channel, or what a call changed, `outcome` what came of it.

    `action_id` is what `costguard undo` takes.
    """

    at: datetime
    what: What
    verb: Verb | None = None
    detail: str = ""
    where: str = ""
    outcome: str = ""
    action_id: str = ""


@dataclass(frozen=True, slots=True)
class Snoozed:
    """Left alone until then, by whom and why."""

    until: datetime
    by: str
    reason: str


@dataclass(frozen=True, slots=True)
class History:
    """What is known of one machine. `finding` is what a look just now found, None where nobody looked."""

    subject: ResourceRef
    case: Case | None
    finding: Finding | None = None
    happened: tuple[Happened, ...] = ()
    upcoming: tuple[Upcoming, ...] = ()
    snoozed: Snoozed | None = None
    earlier: tuple[Case, ...] = ()
    gaps: tuple[Gap, ...] = ()


def history_lines(history: History, language: Language = Language.EN) -> tuple[str, ...]:
    """The whole story, one line a fact."""
    return (
        *_identity(history, language),
        *_now(history, language),
        *_standing(history, language),
        *(_line(event, history, language) for event in history.happened),
        *_next(history, language),
        *_before(history, language),
        *(gap(one, language) for one in history.gaps),
    )


def history_json(history: History, language: Language = Language.EN) -> shapes.Why:
    """The same for machines."""
    finding, snoozed = history.finding, history.snoozed
    return {
        "schema": 1,
        **subject_json(history.subject),
        "case": None if history.case is None else case_json(history.case, language),
        "finding": None
        if finding is None
        else {
            "verdict": finding.verdict.value,
            **reason_json(finding.reason, language),
            "name": clean(finding.name),
            "owner": clean(finding.owner),
            "owner_source": finding.owner_source,
            "evidence": evidence_json(finding.evidence),
        },
        "happened": [
            {
                "at": moment(event.at),
                "what": event.what.value,
                "verb": event.verb.value if event.verb is not None else None,
                "where": clean(event.where),
                "outcome": event.outcome or None,
                "action_id": event.action_id or None,
                "detail": clean(event.detail),
            }
            for event in history.happened
        ],
        "upcoming": [{"verb": step.verb.value, "not_before": moment(step.not_before)} for step in history.upcoming],
        "snoozed": None
        if snoozed is None
        else {"until": moment(snoozed.until), "by": clean(snoozed.by), "reason": clean(snoozed.reason)},
        "earlier": [case_json(case, language) for case in history.earlier],
        "gaps": [gap_json(one, language) for one in history.gaps],
    }


def case_json(case: Case, language: Language = Language.EN) -> shapes.Case:
    """Where one case stands."""
    return {
        "case_id": case.case_id,
        **subject_json(case.subject),
        "guard": case.guard,
        "check": case.check,
        "rule": case.rule,
        "mode": case.mode.name.lower(),
        "owner": clean(case.owner),
        "run_epoch": case.run_epoch,
        "status": case.status.value,
        "phase": case.phase.value,
        "rung": case.rung,
        "climbed": [{"verb": rung.verb.value, "at": moment(rung.at)} for rung in case.climbed],
        "opened_at": moment(case.opened_at),
        "since": moment(case.since),
        "snoozed_until": moment(case.snoozed_until),
        "closed_at": moment(case.closed_at),
        "decision_id": case.decision_id or None,
        **reason_json(case.reason, language),
    }


def _identity(history: History, language: Language) -> list[str]:
    ref, finding, case = history.subject, history.finding, history.case
    name = clean(finding.name) if finding is not None else ""
    kind = clean(finding.instance_type) if finding is not None else ""
    owner = case.owner if case is not None else finding.owner if finding is not None else ""
    rule = case.rule if case is not None else finding.rule if finding is not None else ""
    lines = [" ".join(part for part in (name, ref.native_id, kind) if part)]
    where = f"{ref.cloud} {ref.account} {ref.region}"
    lines.append(_fact("where", where, language))
    lines.append(_fact("owner", clean(owner) or phrase("no_owner", language), language))
    return [*lines, _fact("rule", clean(rule), language)]


def _now(history: History, language: Language) -> list[str]:
    finding = history.finding
    if finding is None:
        return []
    cost = price(finding.rate, language)
    said = phrase(
        "state_and_why", language, state=verdict(finding.verdict, language), why=explain(finding.reason, language)
    )
    lines = [_fact("verdict", said, language), _fact("cost_hour", cost, language)]
    evidence = evidence_words(finding.evidence, language)
    return [*lines, _fact("evidence", evidence, language)] if evidence else lines


def _standing(history: History, language: Language) -> list[str]:
    case, lines = history.case, []
    if case is not None:
        said = phrase(
            "state_and_why", language, state=choice(case.status.value, language), why=explain(case.reason, language)
        )
        lines.append(_fact("case", said, language))
    if history.snoozed is not None:
        until, by, reason = utc_words(history.snoozed.until), history.snoozed.by, history.snoozed.reason
        lines.append("  " + phrase("is_snoozed", language, until=until, by=by, reason=reason))
    return lines


def _line(event: Happened, history: History, language: Language) -> str:
    case = history.case
    said = phrase(
        f"happened_{event.what.value}",
        language,
        rule=case.rule if case is not None else "",
        verb=verb(event.verb, language) if event.verb is not None else "",
        where=clean(event.where),
        outcome=choice(event.outcome, language) if event.outcome else "",
        detail=clean(event.detail, _LONGEST_DETAIL),
        action=event.action_id,
        why=sentence(case.reason, language) if case is not None and event.what is What.CLOSED else "",
    )
    return f"{utc_words(event.at)}  {said}"


def _next(history: History, language: Language) -> list[str]:
    case = history.case
    if case is None or case.status is CaseStatus.CLOSED:
        return []
    steps = [
        phrase(
            "not_before",
            language,
            verb=verb(step.verb, language),
            when=utc_words(step.not_before) if step.not_before is not None else "",
        )
        for step in history.upcoming
    ]
    return [_fact("next", step, language) for step in steps or [phrase("nothing_automatic", language)]]


def _fact(key: str, value: str, language: Language) -> str:
    return "  " + phrase("fact", language, label=label(key, language), value=value)


def _before(history: History, language: Language) -> list[str]:
    return [
        phrase(
            "earlier_case",
            language,
            opened=utc_words(case.opened_at),
            closed=utc_words(case.closed_at) if case.closed_at is not None else "",
            why=sentence(case.reason, language),
        )
        for case in history.earlier
    ]
