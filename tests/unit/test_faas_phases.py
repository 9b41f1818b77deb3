"""What the phases' handlers take: the time that names a run and the number of a part, and never an order."""

from __future__ import annotations

from datetime import datetime, timezone
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from cloudstand.clock import MovedClock
from costguard.cli.operate.bundling.build import reached
from costguard.domain.errors import InvalidInputError
from costguard.engine.run.phases.phases import Phases
from costguard.faas import phases
from costguard.faas.invocation import Host
from costguard.faas.local import context_of
from costguard.faas.phases import IN_PARTS, RunPhase, build_phase
from costguard.settings import Secret, Settings

NOW = datetime(2026, 3, 2, 9, 17, tzinfo=timezone.utc)
TIME = "2026-03-02T09:17:00Z"


def called(phase: RunPhase, event: Any, settings: Settings | None = None) -> Any:
    clock = MovedClock(NOW)
    stream = StringIO()
    handler = build_phase(phase, settings=lambda: settings or Settings(), clock=clock, stream=stream)
    return handler(event, context_of(Host.LAMBDA, clock))


@pytest.mark.parametrize("phase", sorted(IN_PARTS))
@pytest.mark.parametrize("part", [None, -1, 1.0, True, "0", 100_000, [0], {"name": "runs/x"}])
def test_a_part_is_a_number(phase: RunPhase, part: object) -> None:
    with pytest.raises(InvalidInputError, match="number of a part"):
        called(phase, {"time": TIME, "part": part})


@pytest.mark.parametrize("phase", sorted(set(RunPhase) - IN_PARTS))
def test_phases_without_parts_are_told_none(phase: RunPhase) -> None:
    with pytest.raises(InvalidInputError, match="has no parts"):
        called(phase, {"time": TIME, "part": 0})


@pytest.mark.parametrize("phase", list(RunPhase))
@pytest.mark.parametrize(
    "more",
    [
        {"phase": "act"},
        {"blob": {"name": "runs/other/scan", "sha256": "0" * 64}},
        {"account": "111122223333"},
        {"dry_run": True},
        {"detail-type": "Scheduled Event", "detail": {"phase": "act"}},
    ],
)
def test_events_carry_no_orders(phase: RunPhase, more: dict[str, object]) -> None:
    own = {"part": 0} if phase in IN_PARTS else {}
    with pytest.raises(InvalidInputError, match="function event"):
        called(phase, {"time": TIME, **own, **more})


@pytest.mark.parametrize("phase", list(RunPhase))
@pytest.mark.parametrize("event", [{}, {"part": 0}, b"{}", None])
def test_without_a_time_there_is_no_run_to_go_on(phase: RunPhase, event: object) -> None:
    with pytest.raises(InvalidInputError):
        called(phase, event)


def test_it_says_where_values_are_to_be_kept() -> None:
    with pytest.raises(InvalidInputError, match="COSTGUARD_REPORTS"):
        called(RunPhase.TARGETS, {"time": TIME})


def test_a_ledger_that_no_other_phase_sees_is_refused(tmp_path: Path) -> None:
    alone = Settings(host="lambda", ledger=Secret("memory:"), reports=str(tmp_path))
    with pytest.raises(InvalidInputError, match="COSTGUARD_LEDGER"):
        called(RunPhase.TARGETS, {"time": TIME}, alone)


def test_the_bundle_of_idle_gpu_holds_its_phases_and_no_other_does() -> None:
    package = Path(phases.__file__).parents[1]
    for function in sorted((package.parents[1] / "functions").glob("*/handler.py")):
        shipped = reached(package, function.read_text("utf-8"))
        assert ("costguard/faas/phases.py" in shipped) == (function.parent.name == "idle_gpu")
        assert ("costguard/engine/run/phases/phases.py" in shipped) == (function.parent.name == "idle_gpu")


def test_what_lambda_calls_is_there_by_name() -> None:
    """Terraform names `costguard.faas.phases.PHASE`."""
    for phase in RunPhase:
        assert callable(getattr(phases, phase.value))
        assert callable(getattr(Phases, phase.value))
