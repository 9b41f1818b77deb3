"""What the layer of policies knows of each guard, in one table: the engine's registry has the same names. Pure.

And what waits become under the schedule of the runs: a step comes with the first run after its wait.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from types import MappingProxyType

from costguard.domain.actions import Verb
from costguard.guards import BUDGET, IDLE_GPU, KMS_ROTATION, NETWORK_AUDIT
from costguard.guards.budget.rules import StepKind
from costguard.policy.model.policy import Policy

_HOURLY, _DAILY = timedelta(hours=1), timedelta(hours=24)
Wait = tuple[str, str, timedelta]
"""Rule, step, and how long is waited before it."""


def _of_machines(policy: Policy) -> Iterator[Wait]:
    for rule in policy.idle_gpu:
        for step in rule.ladder:
            if step.wait:
                yield rule.name, step.verb.value, step.wait


def _of_budgets(policy: Policy) -> Iterator[Wait]:
    for rule in policy.budgets:
        for step in rule.steps:
            yield rule.name, step.kind.value, step.wait


def _of_keys(policy: Policy) -> Iterator[Wait]:
    for rule in policy.kms_rotation:
        yield rule.name, Verb.MEND.value, rule.wait


def _of_networks(policy: Policy) -> Iterator[Wait]:
    for rule in policy.network_audit:
        if rule.mend:
            yield rule.name, Verb.MEND.value, rule.wait


@dataclass(frozen=True, slots=True)
class Section:
    """The part of a policy that one guard reads.

    `key` is what people write it under, `one` what an entry is called. `rules` are those in force, `waits` what they
    wait for. `runs_every`: unless a deployment says otherwise, as functions/*/function.yaml has it.
    """

    key: str
    one: str
    rules: Callable[[Policy], Sequence[object]]
    waits: Callable[[Policy], Iterator[Wait]]
    runs_every: timedelta = _HOURLY
    has_shadows: bool = True

    @property
    def late_after(self) -> timedelta:
        """How long after a run began the next one is missed: two runs of an hour, or three hours of a day."""
        return self.runs_every + max(2 * _HOURLY, self.runs_every / 8)


SECTIONS: Mapping[str, Section] = MappingProxyType(
    {
        IDLE_GPU: Section("idle_gpu", "rule", lambda policy: policy.idle_gpu, _of_machines),
        BUDGET: Section("budgets", "budget", lambda policy: policy.budgets, _of_budgets, has_shadows=False),
        KMS_ROTATION: Section(
            "kms_rotation", "rule for keys", lambda policy: policy.kms_rotation, _of_keys, runs_every=_DAILY
        ),
        NETWORK_AUDIT: Section("network_audit", "rule for networks", lambda policy: policy.network_audit, _of_networks),
    }
)
"""By guard, in the order in which they are shown."""


def guards_in(policy: Policy) -> tuple[str, ...]:
    """The guards that this policy has rules for."""
    return tuple(guard for guard, section in SECTIONS.items() if section.rules(policy))


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
