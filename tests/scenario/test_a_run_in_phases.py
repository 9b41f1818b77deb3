"""A run in phases decides and does what a run in one process does, and stays away from what a part did not read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from tests.scenario.stage import CLOUDS, DAY, START, Stage, idle_machine

from cloudstand.world import workload
from costguard.adapters.object_stores.folder import FolderStore
from costguard.cases import CaseStatus
from costguard.domain.errors import StalePlanError
from costguard.domain.reasons import Reason, ReasonCode
from costguard.domain.resources import GapKind
from costguard.engine.answers import answers
from costguard.engine.run.phases.blobs import BlobRef, PhaseBook, packed
from costguard.engine.run.phases.phases import ACT, SCAN, PartSeen, Phases
from costguard.engine.run.run import RunReport, run_guard

HOUR = timedelta(hours=1)
ACCOUNTS = {
    "aws": ("111122223333", "444455556666"),
    "alibaba": ("1234567890123456", "2234567890123456"),
    "tencent": ("100012345678", "100012345679"),
}


def fleet() -> Iterator[object]:
    for cloud in CLOUDS:
        for number, account in enumerate(ACCOUNTS[cloud]):
            yield idle_machine(f"{cloud}-idle-{number}", cloud=cloud, account=account)
            yield idle_machine(f"{cloud}-busy-{number}", cloud=cloud, account=account, does=workload.busy())


@pytest.fixture
def stages(tmp_path: Path) -> Iterator[tuple[Stage, Stage]]:
    """Two that are the same in everything: one for whole runs, one for phases."""
    made = []
    for name in ("whole", "phased"):
        (tmp_path / name).mkdir()
        made.append(Stage(tmp_path / name, *fleet()))  # type: ignore[arg-type]
    yield made[0], made[1]
    for stage in made:
        stage.close()


def run_id(stage: Stage) -> str:
    return f"{stage.clock.now():run-%m%d%H%M}"


def in_one(stage: Stage, at: timedelta) -> RunReport:
    """One run of one process."""
    stage.clock.advance(START + at - stage.clock.now())
    return run_guard(stage.world(), run_id(stage)).report


def in_phases(
    stage: Stage, objects: FolderStore, at: timedelta, *, lost: Callable[[str, int], bool] | None = None
) -> RunReport:
    """One run, each phase with surroundings of its own; `lost` says which parts never run."""
    stage.clock.advance(START + at - stage.clock.now())

    def phases(*, acting: bool = False) -> Phases:
        world = stage.world()
        world = world if acting else replace(world, executors={})  # as `faas.phases` connects them
        return Phases(world, run_id(stage), objects, accounts_a_part=1, cases_a_part=1)

    parts = phases().targets()
    for part in range(parts or 0):
        if lost is None or not lost(SCAN, part):
            phases().scan(part)
    for part in range(phases().plan()):
        if lost is None or not lost(ACT, part):
            phases(acting=True).act(part)
    return phases().report()


def test_days_in_phases_are_the_same_days(stages: tuple[Stage, Stage], tmp_path: Path) -> None:
    whole, phased = stages
    objects = FolderStore(tmp_path / "objects")
    for day in (0, 1, 2):
        expected, found = in_one(whole, day * DAY), in_phases(phased, objects, day * DAY)
        assert expected.plan is not None
        assert found.plan == expected.plan
        assert len(found.plan.findings) == 12
        assert [result.outcome for result in found.results] == [result.outcome for result in expected.results]
    assert phased.mailbox.messages == whole.mailbox.messages
    assert phased.verbs() == whole.verbs()
    assert phased.verbs().count("stop") == 6


def only_aws(tmp_path: Path) -> Stage:
    """Two accounts of one cloud, an idle machine in each; warned of on day 0, stopped on day 1."""
    accounts = ACCOUNTS["aws"]
    return Stage(
        tmp_path, *(idle_machine(f"idle-{number}", account=account) for number, account in enumerate(accounts))
    )


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    made = only_aws(tmp_path)
    yield made
    made.close()


def test_nothing_is_done_where_a_part_of_the_scan_never_ended(stage: Stage, tmp_path: Path) -> None:
    objects = FolderStore(tmp_path / "objects")
    in_phases(stage, objects, 0 * DAY)
    report = in_phases(stage, objects, 1 * DAY, lost=lambda phase, part: (phase, part) == (SCAN, 0))
    assert report.plan is not None
    assert [(gap.shard.account, gap.what, gap.kind) for gap in report.plan.gaps] == [
        (ACCOUNTS["aws"][0], "accounts", GapKind.UNAVAILABLE)
    ]
    assert [result.action.subject.account for result in report.results] == [ACCOUNTS["aws"][1]]
    stage.clock.advance(HOUR)
    assert (stage.state("idle-0"), stage.state("idle-1")) == ("running", "stopped")
    assert stage.case("idle-0").status is not CaseStatus.CLOSED  # not seen is not gone


def test_forged_facts_are_a_gap_and_stop_nothing(stage: Stage, tmp_path: Path) -> None:
    """Who can write the objects can make a part unreadable, and no more: here a busy machine is made to look idle."""
    objects = FolderStore(tmp_path / "objects")
    in_phases(stage, objects, 0 * DAY)
    stage.clock.advance(DAY)
    phases = Phases(stage.world(), run_id(stage), objects, accounts_a_part=1)
    for part in range(phases.targets() or 0):
        phases.scan(part)
    for path in (tmp_path / "objects").rglob(f"*{run_id(stage)}/scan/00000-*"):
        path.write_bytes(packed(PartSeen((), ())))
    assert phases.plan() == 1
    phases.act(0)
    report = phases.report()
    assert report.plan is not None
    assert "altered" in report.plan.gaps[0].detail
    assert [result.action.subject.account for result in report.results] == [ACCOUNTS["aws"][1]]


def planned(stage: Stage, objects: FolderStore) -> Phases:
    """A run of day 1 up to its plan, which has two stops in two parts."""
    in_phases(stage, objects, 0 * DAY)
    stage.clock.advance(DAY)
    phases = Phases(stage.world(), run_id(stage), objects, accounts_a_part=1, cases_a_part=1)
    for part in range(phases.targets() or 0):
        phases.scan(part)
    assert phases.plan() == 2
    return phases


def test_a_forged_plan_is_not_acted_on(stage: Stage, tmp_path: Path) -> None:
    phases = planned(stage, FolderStore(tmp_path / "objects"))
    first, second = sorted((tmp_path / "objects").rglob("*/due/*"))
    second.write_bytes(first.read_bytes())
    with pytest.raises(StalePlanError, match="altered"):
        phases.act(1)
    assert "stop" not in stage.verbs()


def test_an_old_plan_is_not_acted_on(stage: Stage, tmp_path: Path) -> None:
    phases = planned(stage, FolderStore(tmp_path / "objects"))
    stage.clock.advance(HOUR + timedelta(seconds=1))
    with pytest.raises(StalePlanError, match="60 minutes ago"):
        phases.act(0)
    assert "stop" not in stage.verbs()


def test_a_machine_that_works_again_since_the_plan_is_left_alone(tmp_path: Path) -> None:
    """Act reads again: what the plan says of a machine is never enough."""
    back = START + DAY + timedelta(minutes=10)
    stage = Stage(
        tmp_path,
        *(
            idle_machine(f"idle-{n}", account=account, does=workload.comes_back(back))
            for n, account in enumerate(ACCOUNTS["aws"])
        ),
    )
    phases = planned(stage, FolderStore(tmp_path / "objects"))
    stage.clock.advance(timedelta(minutes=30))
    phases.act(0)
    assert "stop" not in stage.verbs()
    stage.close()


def test_nothing_is_sent_twice_however_often_a_part_is_called(stage: Stage, tmp_path: Path) -> None:
    phases = planned(stage, FolderStore(tmp_path / "objects"))
    for _ in range(2):
        assert [phases.act(part) for part in (0, 1)] == [1, 1]
        assert phases.plan() == 2
        assert phases.targets() == 2
    assert not phases.report().duplicate
    assert phases.report().duplicate
    assert phases.targets() is None
    assert stage.verbs().count("stop") == 2


def test_the_kill_switch_holds_what_was_planned(stage: Stage, tmp_path: Path) -> None:
    phases = planned(stage, FolderStore(tmp_path / "objects"))
    stage.paused_host = True
    held = replace(phases, world=stage.world())
    assert held.act(0) == 0
    assert "stop" not in stage.verbs()


def test_a_policy_too_old_by_now_holds_what_was_planned(stage: Stage, tmp_path: Path) -> None:
    phases = planned(stage, FolderStore(tmp_path / "objects"))
    stale = replace(stage.world(), policy_problem=Reason(ReasonCode.POLICY_STALE))
    assert replace(phases, world=stale).act(0) == 0
    assert "stop" not in stage.verbs()


def test_a_phase_that_may_not_act_does_not(stage: Stage, tmp_path: Path) -> None:
    """The mode may have become gentler since the plan: then there is nothing to act with."""
    phases = planned(stage, FolderStore(tmp_path / "objects"))
    assert replace(phases, world=replace(stage.world(), executors={})).act(0) == 0


def test_only_parts_of_a_run_under_way_are_worked(stage: Stage, tmp_path: Path) -> None:
    phases = Phases(stage.world(), "run-1", FolderStore(tmp_path / "objects"))
    asks: tuple[Callable[[], object], ...] = (lambda: phases.scan(0), phases.plan, lambda: phases.act(0))
    for ask in asks:
        with pytest.raises(StalePlanError, match="never began"):
            ask()
    phases.targets()
    with pytest.raises(StalePlanError, match="no part 7"):
        phases.scan(7)
    with pytest.raises(StalePlanError, match="no part 0"):
        phases.act(0)
    with pytest.raises(StalePlanError, match="never planned"):
        phases.report()


def test_a_later_run_takes_the_place_of_one_that_never_ended(stage: Stage, tmp_path: Path) -> None:
    """Records are written in each other's place; what is late finds that out and does nothing."""
    objects = FolderStore(tmp_path / "objects")
    late = planned(stage, objects)
    in_phases(stage, objects, DAY + HOUR)
    with pytest.raises(StalePlanError):
        late.act(0)
    with pytest.raises(StalePlanError, match="overtaken"):
        PhaseBook(stage.memory.store, "idle_gpu", late.run_id, START).done(SCAN, 0, BlobRef("x", "y", 1), START)


def test_a_machine_is_started_again_by_the_phase_that_may_act(stages: tuple[Stage, Stage], tmp_path: Path) -> None:
    _, stage = stages
    objects = FolderStore(tmp_path / "objects")
    stage.policy = replace(stage.policy, start_again=True)
    for day in range(3):
        in_phases(stage, objects, day * DAY)
    asked = [f"{cloud}-idle-0" for cloud in CLOUDS]
    for name in asked:
        answers.start(stage.memory, "idle_gpu", str(stage.ref(name)), "vision", stage.clock.now(), stage.policy)

    in_phases(stage, objects, 3 * DAY)
    in_phases(stage, objects, 3 * DAY + HOUR)

    assert stage.verbs().count("start") == len(asked)
    assert [stage.state(name) for name in asked] == ["running"] * len(asked)
    assert stage.state("aws-idle-1") == "stopped"


def test_starts_are_not_tried_by_a_run_of_long_ago(stages: tuple[Stage, Stage], tmp_path: Path) -> None:
    _, stage = stages
    objects = FolderStore(tmp_path / "objects")
    stage.policy = replace(stage.policy, start_again=True)
    for day in range(3):
        in_phases(stage, objects, day * DAY)
    now = stage.clock.now()
    answers.start(stage.memory, "idle_gpu", str(stage.ref("aws-idle-0")), "vision", now, stage.policy)
    stage.clock.advance(HOUR)
    run = run_id(stage)
    for part in range(Phases(stage.world(), run, objects).targets() or 0):
        Phases(stage.world(), run, objects).scan(part)
    parts = Phases(stage.world(), run, objects).plan()
    stage.clock.advance(2 * HOUR)
    with pytest.raises(StalePlanError, match="is not acted on"):
        Phases(stage.world(), run, objects).act(parts - 1)
    assert "start" not in stage.verbs()
