"""What another policy would do to the fleet, as tables, JSON and Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from costguard.domain.resources import Gap
from costguard.planning import Plan
from costguard.report.json_values import gap_json, moment, money_json, reason_json, subject_json
from costguard.report.plan.views import place
from costguard.report.policy.diff import markdown_table
from costguard.report.policy.plan import PlanChange, SubjectStanding, Turn, hourly_of
from costguard.report.tables import Column, Table, Tone
from costguard.report.words.sentences import Language, clean, explain, hourly, label, phrase, sentence, verb, verdict

if TYPE_CHECKING:
    from costguard.report.policy import shapes

_TONES = {Turn.ACTS: Tone.BAD, Turn.OPENS: Tone.BAD, Turn.RESTARTS: Tone.WARNING, Turn.STAYS_OPEN: Tone.WARNING}


def changes_table(changes: Sequence[PlanChange], language: Language = Language.EN) -> Table:
    """One row a subject that is treated otherwise, the gravest first."""
    columns = (
        Column("turn", phrase("policy_plan_turn", language)),
        Column("name", label("name", language)),
        Column("resource", label("resource", language)),
        Column("owner", label("owner", language)),
        Column("hourly_cost", label("cost_hour", language), numeric=True),
        Column("before", phrase("policy_plan_before", language)),
        Column("after", phrase("policy_plan_after", language)),
    )
    rows = tuple(
        (
            phrase(f"policy_plan_{each.turn.value}", language),
            clean(each.name),
            place(each.subject),
            clean(each.owner) or phrase("no_owner", language),
            hourly(each.hourly) if each.hourly is not None else phrase("price_unknown", language),
            standing_words(each.old, language),
            standing_words(each.new, language),
        )
        for each in changes
    )
    tones = tuple(_TONES.get(each.turn, Tone.GOOD) for each in changes)
    return Table(phrase("policy_plan", language, count=len(rows)), columns, rows, tones=tones)


def sums_table(changes: Sequence[PlanChange], language: Language = Language.EN) -> Table:
    """How many of each kind, and what they cost an hour."""
    columns = (
        Column("turn", phrase("policy_plan_turn", language)),
        Column("count", phrase("policy_plan_count", language), numeric=True),
        Column("hourly_cost", label("cost_hour", language), numeric=True),
    )
    rows = tuple(
        (
            phrase(f"policy_plan_{turn.value}", language),
            str(count),
            " + ".join((*map(hourly, sums), *([phrase("policy_plan_unpriced", language, count=bare)] if bare else []))),
        )
        for turn, count, sums, bare in hourly_of(changes)
    )
    return Table(phrase("policy_plan_sums", language), columns, rows)


def standing_words(at: SubjectStanding, language: Language = Language.EN) -> str:
    """Where a subject stands: its rule, what is done about it, and why."""
    words = []
    if at.verb is not None and at.doing:
        words.append(phrase(f"policy_plan_{at.doing}", language, verb=verb(at.verb, language)))
    elif not at.open:
        words.append(phrase("policy_plan_no_case", language))
    if at.case is not None and (at.before is not None or at.open) and at.doing not in {"due", "rehearsed"}:
        words.append(explain(at.case.reason, language))
    elif at.finding is not None and not at.open:
        words.append(f"{verdict(at.finding.verdict, language)}: {sentence(at.finding.reason, language)}")
    said = " ".join(words)
    return phrase("policy_plan_under", language, rule=at.rule, words=said) if at.rule else said


def plan_summary_words(changes: Sequence[PlanChange], language: Language = Language.EN) -> str:
    """All of it in one sentence."""
    if not changes:
        return phrase("policy_plan_same", language)
    return phrase("policy_plan_total", language, count=len(changes))


def changes_json(old: Plan, new: Plan, changes: Sequence[PlanChange], language: Language) -> shapes.PolicyPlan:
    """The document of `costguard policy plan --json`."""
    return {
        "schema": 1,
        "guard": new.guard,
        "at": moment(new.planned_at),
        "old_digest": old.policy_digest,
        "new_digest": new.policy_digest,
        "instances_seen": new.instances_seen,
        "sums": [
            {"turn": turn.value, "count": count, "hourly_cost": [money_json(each) for each in sums], "unpriced": bare}
            for turn, count, sums, bare in hourly_of(changes)
        ],
        "changes": [
            {
                "subject": subject_json(each.subject),
                "name": clean(each.name),
                "owner": clean(each.owner),
                "turn": each.turn.value,
                "hourly_cost": money_json(each.hourly) if each.hourly is not None else None,
                "before": _standing_json(each.old, language),
                "after": _standing_json(each.new, language),
            }
            for each in changes
        ],
        "gaps": [gap_json(gap, language) for gap in all_gaps(old, new)],
    }


def all_gaps(old: Plan, new: Plan) -> tuple[Gap, ...]:
    """What could not be read under either policy, each once."""
    return tuple(dict.fromkeys((*new.gaps, *old.gaps)))


def _standing_json(at: SubjectStanding, language: Language) -> shapes.PlanStanding:
    reason = at.case.reason if at.case is not None else at.finding.reason if at.finding is not None else None
    why = None if reason is None else reason_json(reason, language)
    return {
        "rule": at.rule,
        "verdict": at.finding.verdict.value if at.finding is not None else None,
        "case": at.case.status.value if at.case is not None else None,
        "doing": at.doing or None,
        "verb": at.verb.value if at.verb is not None and at.doing else None,
        "reason": None if why is None else why["reason"],
        "facts": {} if why is None else why["facts"],
        "words": "" if why is None else why["words"],
    }


def changes_markdown(old: Plan, new: Plan, changes: Sequence[PlanChange], language: Language = Language.EN) -> str:
    """A comment for the pull request."""
    return "\n".join(_markdown(old, new, changes, language)) + "\n"


def _markdown(old: Plan, new: Plan, changes: Sequence[PlanChange], language: Language) -> Iterator[str]:
    yield f"### {phrase('policy_plan_heading', language, guard=new.guard)}"
    yield ""
    yield plan_summary_words(changes, language)
    if changes:
        yield ""
        yield from markdown_table(sums_table(changes, language))
        yield ""
        yield from markdown_table(changes_table(changes, language))
    gaps = all_gaps(old, new)
    if gaps:
        yield ""
        yield f"> {phrase('policy_plan_gaps', language, count=len(gaps))}"
