"""Every guard, in one table. Whoever needs to know something of a guard asks its runner; nobody compares its name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from costguard.domain.errors import InvalidInputError
from costguard.engine.guards import budget, idle_gpu, kms_rotation, network_audit
from costguard.engine.guards.runner import GuardName, GuardRunner

GUARDS: Mapping[GuardName, GuardRunner] = MappingProxyType(
    {runner.name: runner for runner in (idle_gpu.RUNNER, budget.RUNNER, kms_rotation.RUNNER, network_audit.RUNNER)}
)
"""By name, in the order in which they are shown."""


def runner_of(guard: str) -> GuardRunner:
    """The guard of that name.

    Raises:
        InvalidInputError: there is none.
    """
    found = GUARDS.get(guard)
    if found is None:
        message = f"there is no guard {guard!r}; there is {', '.join(GUARDS)}"
        raise InvalidInputError(message)
    return found
