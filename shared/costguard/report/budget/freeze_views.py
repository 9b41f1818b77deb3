"""Where the launch freezes of a policy stand, as a table and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from costguard.domain.actions import LaunchFreeze
from costguard.planning.freeze import FreezePhase, FreezeState
from costguard.report.json_values import moment
from costguard.report.plan.evidence import utc_words
from costguard.report.tables import Column, Table, Tone
from costguard.report.words.sentences import Language, clean, phrase

_COLUMNS = ("name", "state", "since", "budget", "target", "policy")
_TONES = {FreezePhase.OFF: Tone.GOOD, FreezePhase.RELEASED: Tone.GOOD, FreezePhase.ON: Tone.BAD}


@dataclass(frozen=True, slots=True)
class FreezeLine:
    """One freeze with what the ledger remembers of it. It is described where it was begun, else in the policy."""

    freeze: LaunchFreeze
    state: FreezeState


def freeze_lines(freezes: Iterable[LaunchFreeze], states: Iterable[FreezeState]) -> tuple[FreezeLine, ...]:
    """Every freeze of the policy, and those the ledger remembers that have not ended."""
    remembered = {state.name: state for state in states}
    lines = {each.name: FreezeLine(each, remembered.get(each.name, FreezeState(each.name))) for each in freezes}
    for state in remembered.values():
        under_way = state.phase not in {FreezePhase.OFF, FreezePhase.RELEASED}
        if state.of is not None and under_way:
            lines[state.name] = FreezeLine(state.of, state)
    return tuple(lines[name] for name in sorted(lines))


def freezes_table(lines: Sequence[FreezeLine], language: Language = Language.EN) -> Table:
    """One row a freeze."""
    columns = tuple(Column(key, phrase(f"freeze_{key}", language)) for key in _COLUMNS)
    rows = tuple(_row(line, language) for line in lines)
    tones = tuple(_TONES.get(line.state.phase, Tone.WARNING) for line in lines)
    return Table(phrase("freezes", language), columns, rows, tones=tones)


def freezes_json(lines: Sequence[FreezeLine]) -> list[dict[str, Any]]:
    """The same as objects; `since` is null for one that never began."""
    return [
        {
            "name": line.freeze.name,
            "cloud": line.freeze.cloud,
            "via": line.freeze.via.value,
            "policy": line.freeze.policy,
            "target": line.freeze.target,
            "account": line.freeze.account,
            "phase": line.state.phase.value,
            "since": None if line.state.since is None else moment(line.state.since),
            "budget": line.state.budget,
            "period": line.state.period,
            "before": list(line.state.before),
        }
        for line in lines
    ]


def phase_words(state: FreezeState, language: Language = Language.EN) -> str:
    """`in force`; `released by people for 2026-03`."""
    return phrase(f"freeze_is_{state.phase.value}", language, period=clean(state.period))


def thaw_words(state: FreezeState, period: str, by: str, reason: str, language: Language = Language.EN) -> str:
    """What follows from people's word, by where the freeze stood when they said it."""
    suffix = {FreezePhase.OFF: "_off", FreezePhase.RELEASED: "_off", FreezePhase.FOREIGN: "_foreign"}
    key = f"freeze_thaw{suffix.get(state.phase, '')}"
    return phrase(key, language, name=clean(state.name), period=clean(period), by=clean(by), reason=clean(reason))


def _row(line: FreezeLine, language: Language) -> tuple[str, ...]:
    freeze, state = line.freeze, line.state
    return (
        clean(freeze.name),
        phase_words(state, language),
        "" if state.since is None else utc_words(state.since),
        clean(state.budget),
        clean(f"{freeze.cloud} {freeze.target}"),
        clean(freeze.policy),
    )
