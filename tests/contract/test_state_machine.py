"""The shipped state machine, interpreted end to end: our handlers are its tasks, and the sandbox is its clouds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from tests.contract.state_machine_rig import (
    PHASES,
    REMOVED,
    Functions,
    Handler,
    definition,
    executed,
    interpreter,
    state_machine,
    tasks_by,
    without,
)

from cloudstand.clouds import STARTS_AT
from cloudstand.fleets import alibaba_machine, aws_machine, tencent_machine
from cloudstand.world import workload as does
from cloudstand.world.fleet import MachineSpec
from costguard.adapters.object_stores.folder import FolderStore
from costguard.bootstrap import open_memory, open_run_context
from costguard.cli.sandbox.running import EXTERNAL_ID, ROLE, Sandbox
from costguard.domain.refs import deployments_in
from costguard.domain.resources import GapKind
from costguard.engine.run.phases.blobs import PhaseBook, RunBlobs
from costguard.engine.run.phases.phases import PLAN, Decided, Left
from costguard.engine.run.run import run_guard
from costguard.faas.invocation import Host, parse_invocation
from costguard.faas.local import context_of
from costguard.faas.phases import RunPhase, build_phase
from costguard.planning import Plan
from costguard.settings import Secret, Settings

DAY, HOUR = timedelta(days=1), timedelta(hours=1)
AWS_PART = 1  # parts are by cloud: alibaba, aws, tencent
STOPPED_ELSEWHERE = {"alibaba-idle": "stopped", "tencent-idle": "stopped"}
REACHED = f"regions: all, organisation: true, role: {ROLE}, external_id: {EXTERNAL_ID}"
POLICY = f"""
version: 1
mode: enforce
accounts:
  - {{cloud: aws, id: "111122223333", {REACHED}}}
  - {{cloud: alibaba, id: "1234567890123456", {REACHED}}}
  - {{cloud: tencent, id: "100012345678", {REACHED}}}
notify: {{default: "slack:#gpu"}}
idle_gpu:
  - name: everything
    idle_when_all: {{lasting: 4h, every_gpu_max_below: 5%}}
    then: [warn, {{stop: {{wait: 20h}}}}]
    safety:
      actions_per_day: 50
      fleet_share_per_day: 100%
      hourly_cost_stopped_per_day: [1000 USD, 1000 CNY]
"""


def fleet() -> Iterator[MachineSpec]:
    launched = STARTS_AT - 10 * DAY
    yield aws_machine("aws-idle", "g5g.xlarge", does.idle(), launched)
    yield aws_machine("aws-west", "g5g.xlarge", does.idle(), launched, region="us-west-2")
    yield aws_machine("aws-busy", "g5g.xlarge", does.busy(), launched)
    yield aws_machine("aws-member", "g5g.xlarge", does.idle(), launched, account="444455556666")
    yield alibaba_machine("alibaba-idle", does.idle(), launched)
    yield tencent_machine("tencent-idle", does.idle(), launched)


@dataclass
class Set:
    """The sandbox, the functions over it, and an interpreter."""

    sandbox: Sandbox
    settings: Settings
    functions: Functions
    client: Any
    machine: str

    def execute(self, at: str = "") -> tuple[str, Any]:
        return executed(self.client, self.machine, {"time": at or self.time})

    @property
    def time(self) -> str:
        return self.sandbox.clock.now().isoformat()

    @property
    def run_id(self) -> str:
        event = {"time": self.time}
        return parse_invocation(event, None, function="idle_gpu", now=self.sandbox.clock.now(), host=Host.LOCAL).run_id

    def plan(self, settings: Settings | None = None) -> Plan:
        """What the run of this moment decided."""
        memory = open_memory(settings or self.settings)
        try:
            run = memory.runs.get(self.run_id)
            assert run is not None
            record = PhaseBook(memory.store, "idle_gpu", self.run_id, run.started_at).get(PLAN)
            assert record is not None
            blobs = RunBlobs(FolderStore(self.settings.reports), self.run_id)
            return blobs.get(Decided, blobs.get(Left, record.blob).plan).whole
        finally:
            memory.store.close()


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Set]:
    policy = tmp_path / "costguard.yaml"
    policy.write_text(POLICY, "utf-8")
    with interpreter() as client, Sandbox.start(tuple(fleet())) as sandbox:
        bare = Settings(policy=str(policy), reports=str(tmp_path / "objects"), log_level="ERROR")
        settings = sandbox.settings(bare)
        handlers: dict[str, Handler] = {
            name: build_phase(RunPhase(name), settings=lambda: settings, clock=sandbox.clock, stream=StringIO())
            for name in PHASES
        }
        functions = Functions(handlers, lambda: context_of(Host.LAMBDA, sandbox.clock))
        with tasks_by(functions):
            yield Set(sandbox, settings, functions, client, state_machine(client, without(definition())))


def test_organisation_in_phases_by_the_state_machine(stage: Set, tmp_path: Path) -> None:
    """First the plan of one process, then a day on which AWS cannot be read, then the first event once more."""
    sandbox, first = stage.sandbox, stage.time
    expected = planned_in_one_process(stage, tmp_path)
    status, output = stage.execute()
    assert status == "SUCCEEDED", output
    planned = stage.plan()
    assert {ref.account for ref in planned.unread_protections} == {"111122223333", "444455556666"}
    assert replace(planned, unread_protections=()) == expected, "one process has read them by its end, before it warns"
    assert {one.subject.account for one in expected.due} >= {"111122223333", "444455556666"}
    assert output["figures"]["done"] == 5
    assert marked(stage) == {"alibaba", "aws", "tencent"}

    sandbox.advance(DAY)
    stage.functions.failing = lambda phase, event: phase == "scan" and event["part"] == AWS_PART
    status, output = stage.execute()
    assert status == "SUCCEEDED", output
    unread = [gap for gap in stage.plan().gaps if gap.shard.cloud == "aws"]
    assert {gap.kind for gap in unread} == {GapKind.UNAVAILABLE}
    assert {gap.shard.account for gap in unread} == {"111122223333", "444455556666"}
    sandbox.advance(HOUR)
    assert states(stage) == {"aws-idle": "running", "aws-west": "running", "aws-member": "running"} | STOPPED_ELSEWHERE

    status, output = stage.execute(first)
    assert (status, output["run"]) == ("SUCCEEDED", {"parts": [], "duplicate": True})


def planned_in_one_process(stage: Set, tmp_path: Path) -> Plan:
    """By the same moment, over a ledger of its own; what may not act is no second deployment."""
    settings = replace(stage.settings, ledger=Secret(f"sqlite:///{tmp_path / 'whole.sqlite3'}"))
    with open_run_context(settings, "idle_gpu", clock=stage.sandbox.clock, may_act=False) as world:
        plan = run_guard(world, stage.run_id).report.plan
    assert plan is not None
    return plan


def marked(stage: Set) -> set[str]:
    """In which clouds' audit logs this deployment is found by others: only the phase that plans looks there."""
    looks = stage.sandbox.world.looks
    return {look.shard.cloud for look in looks if any(deployments_in(f"{look.session} {look.agent}"))}


def states(stage: Set) -> dict[str, str]:
    machines = stage.sandbox.world.machines
    return {spec.name: machines[spec.native_id].state.value for spec in fleet() if spec.name != "aws-busy"}


def test_only_what_is_listed_differs_from_the_shipped_definition() -> None:
    """What moto refuses stands in the shipped file, and nothing else was taken out."""
    shipped, tried = definition(), without(definition())
    assert shipped["States"]["Scan"]["ToleratedFailurePercentage"] == 100
    assert shipped["States"]["Act"]["ToleratedFailurePercentage"] == 100
    assert {path.rpartition(".")[2] for path in paths(shipped) - paths(tried)} == set(REMOVED)


def paths(value: Any, at: str = "") -> set[str]:
    if isinstance(value, dict):
        return {f"{at}.{name}" for name in value}.union(*(paths(each, f"{at}.{name}") for name, each in value.items()))
    if isinstance(value, list):
        return set().union(*(paths(each, f"{at}[]") for each in value))
    return set()


def test_acting_is_never_tried_again_by_the_machine() -> None:
    """An unknown outcome is resolved by looking, in the next run."""
    acting = definition()["States"]["Act"]["ItemProcessor"]["States"]["Act on a part"]
    assert "Retry" not in acting
    assert acting["Catch"][0]["ErrorEquals"] == ["States.ALL"]


def test_every_task_is_told_the_time_and_at_most_a_part() -> None:
    """Events carry no orders: no reference, account or action travels through the state machine."""
    for told in payloads(definition()):
        assert set(told) <= {"time.$", "part.$"}


def payloads(value: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, dict):
        if "Payload" in value:
            yield value["Payload"]
        for each in value.values():
            yield from payloads(each)
