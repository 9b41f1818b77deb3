"""The demo's keys and networks: what a day's runs of their two guards came to, as facts, as lines and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from costguard.cases import CaseStatus
from costguard.domain.actions import ActionResult, Verb
from costguard.domain.findings import Finding, Verdict
from costguard.domain.reasons import ReasonCode
from costguard.domain.refs import ResourceRef
from costguard.engine.run.run import RunReport
from costguard.planning import Held, Plan
from costguard.report.guard_views import view_of
from costguard.report.json_values import reason_json
from costguard.report.notices.remediations import mend_words
from costguard.report.words.sentences import Language, choice, clean, explain, phrase

SHOWN = 4
"""The gravest findings that the ending names; the rest is counted."""


@dataclass(frozen=True, slots=True)
class SettingsDay:
    """What the runs about keys and networks came to; `held_anew` are those not held the day before."""

    plans: tuple[Plan, ...] = ()
    results: tuple[ActionResult, ...] = ()
    held_anew: tuple[Held, ...] = ()

    @property
    def mended(self) -> tuple[ResourceRef, ...]:
        """What this day's look proved mended."""
        steps = (step.after for plan in self.plans for step in plan.transitions)
        ended = (case for case in steps if case.status is CaseStatus.CLOSED)
        return tuple(case.subject for case in ended if case.reason.code is ReasonCode.MENDED)

    @property
    def eventful(self) -> bool:
        """Whether there is more to say than the day before."""
        return bool(self.mended or self.results or self.held_anew or any(plan.due for plan in self.plans))


_SEVERITIES = ("critical", "high", "medium", "low")
_LOSES_DATA = frozenset({ReasonCode.KEY_DELETED_IN_USE, ReasonCode.KEY_DISABLED_IN_USE})

NO_SETTINGS = SettingsDay()
"""A day on which neither was looked at."""


def settings_day(reports: Iterable[RunReport | None], before: SettingsDay | None) -> SettingsDay:
    """The facts of one day's runs."""
    done = [report for report in reports if report is not None and report.plan is not None]
    plans = tuple(report.plan for report in done if report.plan is not None)
    known = {_identity(held) for plan in (before.plans if before else ()) for held in plan.held}
    return SettingsDay(
        plans=plans,
        results=tuple(result for report in done for result in report.results),
        held_anew=tuple(held for plan in plans for held in plan.held if _identity(held) not in known),
    )


def seen_lines(day: SettingsDay, language: Language) -> Iterator[str]:
    """What is as the policy asks by now."""
    names = dict.fromkeys(_name(ref, day) for ref in day.mended)
    if names:
        yield phrase("demo_seen_mend", language, names=phrase("demo_comma", language).join(names))


def plan_lines(day: SettingsDay, language: Language) -> Iterator[str]:
    """What people are told of first, and what is changed."""
    due = [action for plan in day.plans for action in plan.due]
    told = dict.fromkeys(_name(action.subject, day) for action in due if action.verb is Verb.WARN)
    if told:
        yield phrase("demo_plan_tell", language, names=phrase("demo_comma", language).join(told))
    for action in due:
        if action.verb is Verb.MEND:
            said = mend_words(action.mend, language)
            yield phrase("demo_named", language, name=_name(action.subject, day), why=said)


def done_lines(day: SettingsDay, language: Language) -> Iterator[str]:
    """What came of each change."""
    for result in day.results:
        name, said = _name(result.action.subject, day), mend_words(result.action.mend, language)
        if result.reason is not None:
            why = explain(result.reason, language)
            yield phrase("demo_not_mended", language, name=name, mend=said, why=why)
            continue
        outcome = choice(result.outcome.value, language) if result.outcome is not None else ""
        yield phrase("demo_did_mend", language, name=name, mend=said, outcome=outcome)


def held_lines(day: SettingsDay, language: Language) -> Iterator[str]:
    """What a rail keeps from being changed."""
    for held in day.held_anew:
        name, why = _name(held.action.subject, day), explain(held.reason, language)
        yield phrase("demo_named", language, name=name, why=why)


def ending_of(day: SettingsDay, language: Language) -> Iterator[tuple[str, Sequence[str]]]:
    """For each guard how many are not as asked, and the gravest of them."""
    for plan in day.plans:
        faults = [finding for finding in plan.findings if finding.verdict is Verdict.VIOLATION]
        title = phrase(f"demo_{plan.guard}", language, seen=plan.instances_seen, faults=len(faults))
        gravest = sorted(faults, key=_gravest_first)[:SHOWN]
        lines = [
            phrase("demo_named", language, name=_in_its_cloud(one.subject, day), why=explain(one.reason, language))
            for one in gravest
            if isinstance(one.subject, ResourceRef)
        ]
        if len(faults) > len(gravest):
            command, left = view_of(plan.guard).command, len(faults) - len(gravest)
            lines.append(phrase("demo_more", language, count=left, command=command))
        yield title, lines


def settings_json(day: SettingsDay, language: Language) -> Mapping[str, Any]:
    """The same facts for machines, by guard."""
    return {plan.guard: _plan_json(plan, day, language) for plan in day.plans}


def _plan_json(plan: Plan, day: SettingsDay, language: Language) -> dict[str, Any]:
    done = [result for result in day.results if any(r.subject == result.action.subject for r in plan.due)]
    return {
        "seen": plan.instances_seen,
        "found": dict(sorted(Counter(finding.verdict.value for finding in plan.findings).items())),
        "due": [
            {
                "verb": action.verb.value,
                "name": _name(action.subject, day),
                "id": str(action.subject),
                "mend": action.mend.kind.value if action.mend is not None else None,
            }
            for action in plan.due
        ],
        "held": [{"name": _name(held.action.subject, day), **reason_json(held.reason, language)} for held in plan.held],
        "done": [
            {
                "name": _name(result.action.subject, day),
                "mend": result.action.mend.kind.value if result.action.mend is not None else None,
                "outcome": result.outcome.value if result.outcome is not None else None,
            }
            for result in done
        ],
        "mended": [str(ref) for ref in day.mended if any(step.after.subject == ref for step in plan.transitions)],
    }


def _identity(held: Held) -> tuple[str, str]:
    return (held.action.case_id, held.reason.code.value)


def _gravest_first(finding: Finding) -> tuple[int, int, str]:
    facts, code = finding.reason.facts, finding.reason.code
    rank = _SEVERITIES.index(facts["severity"]) if facts.get("severity") in _SEVERITIES else len(_SEVERITIES)
    return (0 if code in _LOSES_DATA else rank, -int(facts.get("reaches", 0)), str(finding.subject))


def _in_its_cloud(ref: ResourceRef, day: SettingsDay) -> str:
    """The clouds of one house call many things alike."""
    return f"{_name(ref, day)} ({ref.cloud})"


def _name(ref: object, day: SettingsDay) -> str:
    if not isinstance(ref, ResourceRef):
        return str(ref)
    named = (finding.name for plan in day.plans for finding in plan.findings if finding.subject == ref and finding.name)
    return clean(next(named, "")) or clean(ref.native_id)
