"""Where a rollout stands: a table for people, JSON for machines."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from costguard.guards.rules.common import Mode
from costguard.planning.rollout import RolloutStanding
from costguard.policy.model.policy import RolloutStep
from costguard.report.json_values import moment, reason_json
from costguard.report.notices.machines import local_time
from costguard.report.notices.rollout import scope_words
from costguard.report.tables import Column, Table
from costguard.report.words.sentences import Language, clean, fix, number, phrase, sentence

if TYPE_CHECKING:
    from costguard.report.plan import shapes

_COLUMNS = ("scope", "now", "next", "day", "condition", "held")


def rollout_table(
    standings: Sequence[RolloutStanding], policy_mode: Mode, zone: str, language: Language = Language.EN
) -> Table:
    """One row an entry."""
    columns = tuple(Column(key, phrase(f"rollout_{key}", language)) for key in _COLUMNS)
    rows = tuple(_row(one, policy_mode, zone, language) for one in standings)
    return Table(phrase("rollout_title", language), columns, rows)


def rollout_lines(standings: Sequence[RolloutStanding], language: Language = Language.EN) -> tuple[str, ...]:
    """What somebody can do about each step that is held back; one line where the policy rolls nothing out."""
    if not standings:
        return (phrase("rollout_none", language),)
    words = ((one, "" if one.held is None else fix(one.held, language)) for one in standings)
    return tuple(f"{scope_words(one, language)}: {said}" for one, said in words if said)


def _row(one: RolloutStanding, policy_mode: Mode, zone: str, language: Language) -> tuple[str, ...]:
    return (
        scope_words(one, language),
        _mode(min(one.allowed, policy_mode)),
        "" if one.step is None else _mode(one.step.mode),
        "" if one.at is None else local_time(one.at, zone, language),
        condition_words(one, language),
        _held(one, zone, language),
    )


def condition_words(one: RolloutStanding, language: Language = Language.EN) -> str:
    """What the next step asks for, with what was measured."""
    step = one.step
    if step is None or step.regret_below is None:
        return ""
    bound = number(float(step.regret_below * 100))
    if one.regret is None or not one.regret.stops:
        return phrase("rollout_unmeasured", language, bound=bound, rule=clean(step.in_shadow))
    percent, stops = number(float(one.regret.share * 100)), one.regret.stops
    return phrase("rollout_measured", language, bound=bound, rule=clean(step.in_shadow), percent=percent, stops=stops)


def _held(one: RolloutStanding, zone: str, language: Language) -> str:
    if one.held is not None:
        return sentence(one.held, language)
    if one.step is None:
        return phrase("rollout_done", language)
    if one.told_at is not None:
        return phrase("rollout_was_told", language, at=local_time(one.told_at, zone, language))
    return phrase("rollout_to_tell" if one.announce else "rollout_waits", language)


def _mode(mode: Mode) -> str:
    return mode.name.lower()


def rollout_json(
    standings: Sequence[RolloutStanding], policy_mode: Mode, language: Language = Language.EN
) -> shapes.Rollout:
    """Every entry, as `costguard rollout --json` documents it."""
    return {
        "schema": 1,
        "policy_mode": policy_mode.name.lower(),
        "entries": [_entry_json(one, policy_mode, language) for one in standings],
    }


def _entry_json(one: RolloutStanding, policy_mode: Mode, language: Language) -> shapes.RolloutEntry:
    return {
        "team": clean(one.entry.team),
        "account": clean(one.entry.account),
        "mode": min(one.allowed, policy_mode).name.lower(),
        "next": None if one.step is None or one.at is None else _next_json(one, one.step, one.at, language),
    }


def _next_json(one: RolloutStanding, step: RolloutStep, at: datetime, language: Language) -> shapes.RolloutNext:
    condition: shapes.RolloutCondition | None = None
    if step.regret_below is not None:
        condition = {
            "regret_below": float(step.regret_below),
            "in_shadow": step.in_shadow,
            "of_at_least": step.of_at_least,
        }
    regret = one.regret
    return {
        "mode": _mode(step.mode),
        "since": step.since.isoformat(),
        "at": moment(at),
        "condition": condition,
        "measured": None
        if regret is None
        else {"stops": regret.stops, "regretted": regret.regretted, "share": float(regret.share)},
        "told_at": moment(one.told_at),
        "held": None if one.held is None else reason_json(one.held, language),
    }
