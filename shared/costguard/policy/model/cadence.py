"""What waits become under the schedule of the runs: a step comes with the first run after its wait. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from costguard.guards.budget.rules import StepKind
from costguard.policy.model.policy import Policy
from costguard.policy.sections import SECTIONS

RUNS_EVERY: Mapping[str, timedelta] = {guard: section.runs_every for guard, section in SECTIONS.items()}
"""How often each guard's function runs unless a deployment says otherwise: as functions/*/function.yaml has it."""


@dataclass(frozen=True, slots=True)
class RunWait:
    """One wait of a rule, from the step before to `step`, and what it becomes where a run comes `every` so often.

    `becomes` is None where the policy has a calendar: when working hours are over depends on when they began.
    """

    guard: str
    rule: str
    step: str
    wait: timedelta
    every: timedelta
    becomes: timedelta | None

    @property
    def is_longer(self) -> bool:
        """Whether people wait longer than the policy says."""
        return self.becomes is not None and self.becomes > self.wait


def whole_runs(wait: timedelta, every: timedelta) -> timedelta:
    """The wait in whole runs: runs come `every` so often, and one that is minutes early waits for what is due."""
    return -(-wait // every) * every


def waits_of(policy: Policy, every: Mapping[str, timedelta]) -> tuple[RunWait, ...]:
    """Every wait of the guards in `every`, which says how often each of them runs."""
    return tuple(
        RunWait(guard, rule, step, wait, every[guard], None if policy.calendar else _becomes(step, wait, every[guard]))
        for guard, section in SECTIONS.items()
        if guard in every
        for rule, step, wait in section.waits(policy)
    )


def _becomes(step: str, wait: timedelta, every: timedelta) -> timedelta:
    """No run waits for a freeze: it comes with the first run that is surely later, its notice having taken seconds."""
    return wait // every * every + every if step == StepKind.FREEZE.value else whole_runs(wait, every)
