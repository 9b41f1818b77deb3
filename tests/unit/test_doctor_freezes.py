"""The doctor looks at the target of every launch freeze, and attaches nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timezone

import pytest
from tests.builders import policy

from costguard.adapters.ledgers.open import open_ledger
from costguard.domain.actions import FreezeVia, LaunchFreeze, Receipt
from costguard.domain.errors import AccessDeniedError, RefusedError, UnavailableError
from costguard.engine.doctor.checks import examine_freezes
from costguard.engine.ledger.audit.audit import AuditWhat
from costguard.engine.ledger.memory import Memory
from costguard.planning.freeze import FreezePhase, FreezeState
from costguard.report.doctor.checks import Code, DoctorCheck, Health

NOW = datetime(2026, 11, 21, 12, tzinfo=timezone.utc)
FREEZE = LaunchFreeze("no-new-gpus", "aws", FreezeVia.ORGANISATION, "p-a1b2c3d4", "111122223333")


class Looked:
    """A control that answers this, or fails with that, and may do nothing else."""

    def __init__(self, answer: tuple[str, ...] | Exception) -> None:
        self.answer = answer

    def attached(self, freeze: LaunchFreeze) -> tuple[str, ...]:
        assert freeze == FREEZE
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def attach(self, freeze: LaunchFreeze) -> Receipt:
        raise AssertionError(freeze)

    def detach(self, freeze: LaunchFreeze) -> Receipt:
        raise AssertionError(freeze)


@pytest.fixture
def memory() -> Iterator[Memory]:
    found = Memory.over(open_ledger("memory:"))
    yield found
    found.store.close()


def examined(answer: tuple[str, ...] | Exception, memory: Memory | None = None) -> DoctorCheck:
    said = replace(policy(), launch_freezes=(FREEZE,))
    (check,) = examine_freezes(said, lambda _: Looked(answer), memory)
    return check


def test_without_freezes_nobody_is_asked() -> None:
    def nobody(cloud: str) -> Looked:
        raise AssertionError(cloud)

    assert list(examine_freezes(policy(), nobody, None)) == []


def test_a_target_that_can_be_read_is_ready() -> None:
    check = examined(("p-FullAWSAccess",))
    assert (check.code, check.health, check.facts["attached"]) == (Code.FREEZE_READY, Health.OK, 1)


def test_what_costguard_attached_is_told_from_what_somebody_else_did(memory: Memory) -> None:
    assert examined((FREEZE.policy,)).code is Code.FREEZE_FOREIGN
    assert examined((FREEZE.policy,), memory).health is Health.WARNING
    state = FreezeState(FREEZE.name, FreezePhase.ON, of=FREEZE)
    memory.freezes.move(FreezeState(FREEZE.name), state, AuditWhat.TRANSITION, {}, "run", NOW)
    assert examined((FREEZE.policy,), memory).code is Code.FREEZE_IN_FORCE


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (AccessDeniedError("no", operation="organizations:ListPoliciesForTarget"), Code.FREEZE_DENIED),
        (RefusedError("not enabled in this organisation"), Code.FREEZE_UNTOLD),
        (UnavailableError("timed out"), Code.FREEZE_UNTOLD),
    ],
)
def test_what_cannot_be_read_is_a_warning_and_bars_nothing(error: Exception, code: Code) -> None:
    check = examined(error)
    assert (check.code, check.health) == (code, Health.WARNING)
    if code is Code.FREEZE_DENIED:
        assert check.details[0].fix == "allow organizations:ListPoliciesForTarget"
