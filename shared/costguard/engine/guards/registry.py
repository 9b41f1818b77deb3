"""Every guard, in one table. Whoever needs to know something of a guard asks its runner; nobody compares its name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from costguard.domain.errors import InvalidInputError
from costguard.guards import BUDGET, IDLE_GPU, KMS_ROTATION, NETWORK_AUDIT

if TYPE_CHECKING:
    from costguard.engine.guards.runner import GuardName, GuardRunner

_HERE = "costguard.engine.guards"
_MODULES: Mapping[GuardName, str] = MappingProxyType(
    {
        IDLE_GPU: f"{_HERE}.machines.run",
        BUDGET: f"{_HERE}.budgets.run",
        KMS_ROTATION: f"{_HERE}.keys.run",
        NETWORK_AUDIT: f"{_HERE}.networks.run",
    }
)
"""Where the `RUNNER` of each guard is, in the order in which guards are shown: loaded when it is asked for."""


class _Guards(Mapping[str, "GuardRunner[Any]"]):
    def __getitem__(self, name: GuardName) -> GuardRunner[Any]:
        runner: GuardRunner[Any] = import_module(_MODULES[name]).RUNNER
        return runner

    def __iter__(self) -> Iterator[GuardName]:
        return iter(_MODULES)

    def __len__(self) -> int:
        return len(_MODULES)


GUARDS: Mapping[GuardName, GuardRunner[Any]] = _Guards()
"""By name. Names alone load nothing."""


def runner_of(guard: str) -> GuardRunner[Any]:
    """The guard of that name.

    Raises:
        InvalidInputError: there is none.
    """
    if guard not in _MODULES:
        message = f"there is no guard {guard!r}; there is {', '.join(_MODULES)}"
        raise InvalidInputError(message)
    return GUARDS[guard]
