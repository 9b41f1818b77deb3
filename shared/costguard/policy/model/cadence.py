"""What waits become under the schedule of the runs: a step comes with the first run after its wait. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta

from costguard.domain.actions import Verb
from costguard.guards.budget import judge as budget
from costguard.guards.budget.rules import StepKind
from costguard.guards.idle import judge as idle_gpu
from costguard.guards.keys import judge as kms_rotation
from costguard.guards.network import judge as network_audit
from costguard.policy.model.policy import Policy

RUNS_EVERY: Mapping[str, timedelta] = {
    idle_gpu.NAME: timedelta(hours=1),
    budget.NAME: timedelta(hours=1),
    network_audit.NAME: timedelta(hours=1),
    kms_rotation.NAME: timedelta(hours=24),
}
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
        for guard, rule, step, wait in _waits(policy)
        if guard in every
    )


def _becomes(step: str, wait: timedelta, every: timedelta) -> timedelta:
    """No run waits for a freeze: it comes with the first run that is surely later, its notice having taken seconds."""
    return wait // every * every + every if step == StepKind.FREEZE.value else whole_runs(wait, every)


def _waits(policy: Policy) -> Iterator[tuple[str, str, str, timedelta]]:
    """Guard, rule, step and wait, in the order of the policy."""
    for rule in policy.idle_gpu:
        for step in rule.ladder:
            if step.wait:
                yield idle_gpu.NAME, rule.name, step.verb.value, step.wait
    for spend in policy.budgets:
        for each in spend.steps:
            yield budget.NAME, spend.name, each.kind.value, each.wait
    for keys in policy.kms_rotation:
        yield kms_rotation.NAME, keys.name, Verb.MEND.value, keys.wait
    for networks in policy.network_audit:
        if networks.mend:
            yield network_audit.NAME, networks.name, Verb.MEND.value, networks.wait
