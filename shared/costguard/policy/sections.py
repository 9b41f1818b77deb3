"""What the layer of policies knows of each guard, in one table: the engine's registry has the same names. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from types import MappingProxyType

from costguard.domain.actions import Verb
from costguard.guards import BUDGET, IDLE_GPU, KMS_ROTATION, NETWORK_AUDIT
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
