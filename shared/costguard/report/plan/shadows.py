"""Rules in the shadow, beside what is in force: tables for people, JSON for machines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from costguard.planning.plan import Judgement, Shadow, ShadowDifference
from costguard.planning.shadows import ShadowStanding
from costguard.report.json_values import moment, money_json, reason_json, subject_json
from costguard.report.plan.evidence import utc_words
from costguard.report.tables import Column, Table
from costguard.report.words.sentences import Language, clean, label, number, phrase, verdict

if TYPE_CHECKING:
    from costguard.report.plan import shapes


def shadow_lines(standings: Iterable[ShadowStanding], language: Language = Language.EN) -> tuple[str, ...]:
    """What became of each rule in the shadow, a few sentences each."""
    lines: list[str] = []
    for one in standings:
        lines += _counted(one.rule, one.guard, one.compared, len(one.differences) + one.left_out, one, language)
        tally = one.tally
        if tally.stops:
            said = phrase(
                "shadow_tally",
                language,
                since=utc_words(one.since),
                stops=tally.stops,
                busy=tally.busy_within_a_day,
                later=tally.busy_later,
                stopped=tally.stopped,
                otherwise=tally.otherwise,
                hours=number(tally.idle_hours),
            )
            lines.append(said)
    return tuple(lines)


def planned_lines(shadows: Iterable[Shadow], guard: str, language: Language = Language.EN) -> tuple[str, ...]:
    """The same of a plan, which knows no past."""
    lines: list[str] = []
    for one in shadows:
        lines += _counted(one.rule, guard, one.compared, len(one.differences), one, language)
    return tuple(lines)


def _counted(
    rule: str, guard: str, compared: int, differs: int, of: Shadow | ShadowStanding, language: Language
) -> list[str]:
    if not compared:
        return [phrase("shadow_unseen", language, rule=rule, guard=guard)]
    if not differs:
        return [phrase("shadow_agrees", language, rule=rule, guard=guard, compared=compared)]
    counts = phrase("shadow_counts", language, differs=differs, compared=compared, would_stop=of.would_stop)
    return [f"{rule} ({guard}): {counts}"]


def shadow_tables(
    shadows: Iterable[Shadow | ShadowStanding], guard: str = "", language: Language = Language.EN, most: int = 50
) -> tuple[Table, ...]:
    """Where each rule in the shadow differs; none for those that agree."""
    return tuple(_table(one, guard, language, most) for one in shadows if one.differences)


def _table(one: Shadow | ShadowStanding, guard: str, language: Language, most: int) -> Table:
    columns = (
        Column("name", label("name", language)),
        Column("resource", label("resource", language)),
        Column("owner", label("owner", language)),
        Column("differs", phrase("shadow_differs", language)),
        Column("in_force", phrase("shadow_in_force", language)),
        Column("shadow", phrase("shadow_says", language)),
        Column("hourly_cost", label("cost_hour", language), numeric=True),
    )
    of_guard = one.guard if isinstance(one, ShadowStanding) else guard
    title = phrase("shadow_title", language, rule=one.rule, guard=of_guard)
    return Table(title, columns, tuple(_row(each, language) for each in one.differences[:most]))


def _row(each: ShadowDifference, language: Language) -> tuple[str, ...]:
    return (
        clean(each.name),
        str(each.subject),
        clean(each.owner),
        phrase(each.differs.value, language),
        _said(each.in_force, language),
        _said(each.shadow, language),
        "" if each.hourly is None else str(each.hourly),
    )


def _said(judgement: Judgement, language: Language) -> str:
    word = verdict(judgement.verdict, language)
    if judgement.stops_at is None:
        return word
    return phrase("shadow_stops_at", language, verdict=word, when=utc_words(judgement.stops_at))


def shadows_json(standings: Sequence[ShadowStanding], language: Language = Language.EN) -> shapes.Shadows:
    """Every rule in the shadow with its differences, as `costguard shadows --json` documents them."""
    return {"schema": 1, "shadows": [_standing_json(one, language) for one in standings]}


def _standing_json(one: ShadowStanding, language: Language) -> shapes.ShadowStanding:
    tally = one.tally
    return {
        **shadow_json(one, one.guard, language),
        "since": moment(one.since),
        "at": moment(one.at),
        "left_out": one.left_out,
        "ended": {
            "stops": tally.stops,
            "busy_within_24_hours": tally.busy_within_a_day,
            "busy_later": tally.busy_later,
            "stopped_all_the_same": tally.stopped,
            "otherwise": tally.otherwise,
            "idle_hours": tally.idle_hours,
        },
    }


def shadow_json(one: Shadow | ShadowStanding, guard: str, language: Language = Language.EN) -> shapes.Shadow:
    """One rule in the shadow beside what is in force."""
    return {
        "guard": guard,
        "rule": one.rule,
        "rule_digest": one.rule_digest,
        "compared": one.compared,
        "would_stop": one.would_stop,
        "differences": [_difference_json(each, language) for each in one.differences],
    }


def _difference_json(each: ShadowDifference, language: Language) -> shapes.ShadowDifference:
    return {
        "subject": subject_json(each.subject),
        "check": each.check,
        "name": clean(each.name),
        "owner": clean(each.owner),
        "differs": each.differs.value,
        "in_force": _judgement_json(each.in_force, language),
        "shadow": _judgement_json(each.shadow, language),
        "hourly_cost": None if each.hourly is None else money_json(each.hourly),
    }


def _judgement_json(judgement: Judgement, language: Language) -> shapes.Judgement:
    return {
        "rule": judgement.rule,
        "verdict": judgement.verdict.value,
        **reason_json(judgement.reason, language),
        "stops_at": None if judgement.stops_at is None else moment(judgement.stops_at),
    }
