"""Can the target of every launch freeze be looked at? Asked only where the policy has some; nothing is attached."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from costguard.domain.actions import LaunchFreeze
from costguard.domain.errors import AccessDeniedError, ProviderError
from costguard.domain.reasons import FactValue
from costguard.engine.ledger.memory import Memory
from costguard.planning.freeze import FreezePhase
from costguard.policy.model.policy import Policy
from costguard.ports import FreezeControl
from costguard.report.doctor.checks import Code, Detail, DoctorCheck

_OURS = frozenset({FreezePhase.ATTACHING, FreezePhase.ON, FreezePhase.DETACHING})


def examine_freezes(
    policy: Policy, control_of: Callable[[str], FreezeControl], memory: Memory | None
) -> Iterator[DoctorCheck]:
    """One question a freeze: what is attached to its target. It never bars the rest, for it stops no machine.

    That the policy exists only attaching it tells, for the role may do no more than list, attach and detach.
    """
    for freeze in policy.launch_freezes:
        try:
            attached = control_of(freeze.cloud).attached(freeze)
        except AccessDeniedError as err:
            fix = f"allow {err.operation}" if err.operation else ""
            yield DoctorCheck(
                Code.FREEZE_DENIED, freeze.name, {"detail": str(err)}, (Detail(freeze.target, str(err), fix),)
            )
        except ProviderError as err:
            yield DoctorCheck(Code.FREEZE_UNTOLD, freeze.name, {"detail": str(err)})
        else:
            yield _seen(freeze, attached, memory)


def _seen(freeze: LaunchFreeze, attached: tuple[str, ...], memory: Memory | None) -> DoctorCheck:
    facts: dict[str, FactValue] = {"target": freeze.target, "policy": freeze.policy, "attached": len(attached)}
    if freeze.policy not in attached:
        return DoctorCheck(Code.FREEZE_READY, freeze.name, facts)
    ours = memory is not None and memory.freezes.get(freeze.name).phase in _OURS
    return DoctorCheck(Code.FREEZE_IN_FORCE if ours else Code.FREEZE_FOREIGN, freeze.name, facts)
