"""What waits become under the schedule of the runs, in words and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from costguard.policy.sections import RunWait
from costguard.report.tables import Column, Table
from costguard.report.words.sentences import Language, clean, phrase, span

_COLUMNS = ("rule", "step", "wait", "every", "becomes")


def waits_table(waits: Sequence[RunWait], language: Language = Language.EN) -> Table:
    """One row a wait: what the policy says, how often runs come, and what it becomes."""
    columns = tuple(Column(key, phrase(f"policy_wait_{key}", language)) for key in _COLUMNS)
    rows = tuple(tuple(wait_words(each, language)[key] for key in _COLUMNS) for each in waits)
    return Table(phrase("policy_waits", language), columns, rows)


def wait_json(wait: RunWait) -> dict[str, Any]:
    """The wait as one JSON object; durations are seconds, `becomes_seconds` is null in working hours."""
    return {
        "guard": wait.guard,
        "rule": wait.rule,
        "step": wait.step,
        "wait_seconds": int(wait.wait.total_seconds()),
        "runs_every_seconds": int(wait.every.total_seconds()),
        "becomes_seconds": None if wait.becomes is None else int(wait.becomes.total_seconds()),
    }


def wait_words(wait: RunWait, language: Language = Language.EN) -> dict[str, str]:
    """The wait in words, by column."""
    return {
        "rule": clean(wait.rule),
        "step": phrase(f"policy_wait_{wait.step}", language),
        "wait": span(wait.wait),
        "every": span(wait.every),
        "becomes": phrase("policy_wait_working", language) if wait.becomes is None else span(wait.becomes),
    }
