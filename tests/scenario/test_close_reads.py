"""Protections that cost a request each are read once for a step that is really due, and for no other."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from tests.builders import policy, rule
from tests.scenario.stage import CLOUDS, DAY, START, Stage, idle_machine
from tests.world_ports.inventory import WorldInventory
from tests.world_ports.translate import to_product

from cloudstand.world.fleet import MachineSpec
from costguard.cases import CaseStatus
from costguard.domain.actions import Verb
from costguard.domain.errors import AccessDeniedError, UnavailableError
from costguard.domain.reasons import ReasonCode
from costguard.domain.refs import ResourceRef
from costguard.domain.resources import GapKind, InstanceDetail
from costguard.engine.run.run import RunReport, run_guard
from costguard.guards.rules.common import STOP, TERMINATION, Bars, Mode, Protection, Step
from costguard.guards.rules.idle import IdleRule
from costguard.planning.agreed import in_both
from costguard.policy.model.policy import Policy

TWO = (Step(Verb.WARN, timedelta(0)), Step(Verb.STOP, DAY))


def _nothing(_: ResourceRef) -> None:
    return


class Asking(WorldInventory):
    """Writes down every read of a protection; `before` happens first, and may fail."""

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage.cloud, stage.clock)
        self.asked: list[tuple[str, tuple[str, ...]]] = []
        self.before: Callable[[ResourceRef], None] = _nothing
        self.looked: list[int] = []
        stage.inventory = self
        stage.reading = replace(stage.reading, inventory=self)

    def details(self, refs: Sequence[ResourceRef]) -> Mapping[ResourceRef, InstanceDetail]:
        self.looked.append(len(refs))
        return super().details(refs)

    def protections(self, ref: ResourceRef, wanted: Collection[str]) -> tuple[str, ...]:
        self.asked.append((ref.native_id, tuple(sorted(wanted))))
        self.before(ref)
        return super().protections(ref, wanted)


def reading(bars: Bars, *rules: IdleRule) -> Policy:
    made = tuple(
        rule(each.name, ladder=each.ladder, limits=each.limits, termination_protection_bars=bars) for each in rules
    )
    return policy(*made, protection=Protection(termination_protection_bars=bars))


@pytest.fixture
def staged(tmp_path: Path) -> Iterator[Callable[..., tuple[Stage, Asking]]]:
    made: list[Stage] = []

    def make(
        *names: str, under: Policy | None = None, cloud: str = "aws", beside: Sequence[MachineSpec] = ()
    ) -> tuple[Stage, Asking]:
        fleet = [*(idle_machine(name, cloud=cloud) for name in names or ("notebook",)), *beside]
        made.append(Stage(tmp_path, *fleet, under=under))
        return made[-1], Asking(made[-1])

    yield make
    for stage in made:
        stage.close()


Staged = Callable[..., tuple[Stage, Asking]]


def test_a_plan_reads_no_protection_and_says_so(staged: Staged) -> None:
    stage, asking = staged("a", "b", "c")
    plan = stage.plan()
    assert [action.verb for action in plan.due] == [Verb.WARN] * 3
    assert set(plan.unread_protections) == {stage.ref(name) for name in "abc"}
    assert (asking.asked, asking.looked) == ([], [3])


@pytest.mark.parametrize(
    ("bars", "ladder", "wanted"),
    [
        (Bars.EVERYTHING, TWO, [(STOP, TERMINATION)]),
        (Bars.TERMINATE, TWO, [(STOP,)]),
        (Bars.TERMINATE, rule().ladder, [(STOP, TERMINATION)]),
        (Bars.TERMINATE, TWO[:1], []),
    ],
)
def test_before_a_warning_is_read_what_would_bar_what_it_announces(
    staged: Staged, bars: Bars, ladder: tuple[Step, ...], wanted: list[tuple[str, ...]]
) -> None:
    stage, asking = staged(under=reading(bars, rule(ladder=ladder)))
    stage.day(0)
    assert [each for _, each in asking.asked] == wanted
    assert len(stage.mailbox.messages) == 1


@pytest.mark.parametrize(("bars", "wanted"), [(Bars.EVERYTHING, (STOP, TERMINATION)), (Bars.TERMINATE, (STOP,))])
def test_the_last_look_before_a_stop_reads_what_bars_a_stop(
    staged: Staged, bars: Bars, wanted: tuple[str, ...]
) -> None:
    stage, asking = staged(under=reading(bars, rule()))
    stage.day(0)
    asking.asked.clear()
    stage.at(DAY / 2)
    assert asking.asked == [], "no step is due"
    stage.day(1)
    assert stage.verbs() == ["stop"]
    assert [each for _, each in asking.asked] == [wanted]


@pytest.mark.parametrize("protection", [STOP, TERMINATION])
def test_what_the_cloud_would_refuse_is_not_tried(staged: Staged, protection: str) -> None:
    """The refusal of a call never stands in for the read before it; termination protection refuses no stop at all."""
    stage, _ = staged()
    stage.day(0)
    stage.cloud.protect(stage.ref().native_id, protection, "owner", on=True)
    stage.day(1)
    assert stage.verbs() == []
    assert (stage.case().status, stage.case().reason.code) == (CaseStatus.HELD, ReasonCode.PROTECTED_BY_CLOUD)


@pytest.mark.parametrize("error", [AccessDeniedError("no"), UnavailableError("nobody there")])
def test_a_protection_that_cannot_be_read_holds_the_step(staged: Staged, error: Exception) -> None:
    stage, asking = staged()

    def fail(_: ResourceRef) -> None:
        raise error

    asking.before = fail
    told = stage.day(0)
    assert stage.mailbox.messages == []
    assert told.plan is not None
    assert [held.reason.code for held in told.plan.held] == [ReasonCode.DETAIL_UNREAD]
    assert [gap.what for gap in told.plan.gaps] == ["details"]
    asking.before = _nothing
    stage.day(1)
    asking.before = fail
    stage.day(2)
    assert (stage.verbs(), stage.case().reason.code) == ([], ReasonCode.DETAIL_UNREAD)


@pytest.mark.parametrize("cloud", CLOUDS)
def test_a_protected_machine_gives_its_room_in_the_cap_to_the_next(staged: Staged, cloud: str) -> None:
    limits = replace(rule().limits, actions_per_day=1)
    stage, asking = staged("a", "b", "c", under=policy(rule(ladder=TWO, limits=limits)), cloud=cloud)
    stage.day(0)
    first = protect_the_first_looked_at(stage, asking)
    stage.day(1)
    (stopped,) = stage.executor.calls
    assert stopped.subject.native_id not in first
    reasons = {name: stage.case(name).reason.code for name in "abc"}
    assert sorted(reason.value for reason in reasons.values()) == ["cap_actions", "confirming", "protected_by_cloud"]
    used = stage.memory.caps.reservations("idle_gpu", "research", stage.clock.now())
    assert [each.decision_id for each in used] == [stopped.decision_id]
    plan_of_the_run = stage.reports[-1].plan
    assert plan_of_the_run is not None
    assert stopped.action_id not in {held.action.action_id for held in plan_of_the_run.held}


def protect_the_first_looked_at(stage: Stage, asking: Asking) -> list[str]:
    """Between the plan and the first last look the owner of that machine protects it."""
    read = asking.details
    first: list[str] = []

    def details(refs: Sequence[ResourceRef]) -> Mapping[ResourceRef, InstanceDetail]:
        if len(refs) == 1 and not first:
            first.append(refs[0].native_id)
            stage.cloud.protect(refs[0].native_id, TERMINATION, "owner", on=True)
        return read(refs)

    asking.details = details  # type: ignore[method-assign]
    return first


def test_ten_protected_machines_do_not_starve_the_rest(staged: Staged) -> None:
    """Run after run they might be the first; what the cloud was seen to protect also comes last in the next plan."""
    names = [f"m{number:02}" for number in range(13)]
    limits = replace(rule().limits, actions_per_day=10)
    stage, _ = staged(*names, under=policy(rule(ladder=TWO, limits=limits)))
    stage.day(0)
    due = [action.subject.native_id for action in stage_at(stage, DAY).plan().due]
    assert len(due) == 10
    for native_id in due:
        stage.cloud.protect(native_id, STOP, "owner", on=True)
    stage.day(1)
    assert len(stage.executor.calls) == 3
    assert not {action.subject.native_id for action in stage.executor.calls} & set(due)


def test_what_was_seen_to_be_protected_comes_behind_the_others_in_the_next_plan(staged: Staged) -> None:
    limits = replace(rule().limits, actions_per_day=1)
    stage, _ = staged("a", "b", "c", under=policy(rule(ladder=TWO, limits=limits)))
    stage.day(0)
    (first,) = stage_at(stage, DAY).plan().due
    stage.cloud.protect(first.subject.native_id, STOP, "owner", on=True)
    stage.day(1)
    assert len(stage.executor.calls) == 1
    (due,) = stage_at(stage, 2 * DAY + timedelta(hours=1)).plan().due
    assert due.subject != first.subject


def stage_at(stage: Stage, moment: timedelta) -> Stage:
    stage.clock.advance(START + moment - stage.clock.now())
    return stage


def test_nothing_is_drawn_that_was_not_agreed_to(staged: Staged) -> None:
    limits = replace(rule().limits, actions_per_day=1)
    stage, _ = staged("a", "b", under=policy(rule(ladder=TWO, limits=limits)))
    stage.day(0)
    plan = stage_at(stage, DAY).plan()
    assert (len(plan.due), len(plan.next_in_line)) == (1, 1)
    assert in_both(plan, plan).plan.next_in_line == ()


def test_an_observing_rule_has_nobody_next_in_line(staged: Staged) -> None:
    limits = replace(rule().limits, actions_per_day=0)
    stage, _ = staged(under=policy(rule(mode=Mode.OBSERVE, ladder=TWO, limits=limits)))
    stage.days((0, 1, 2))
    assert stage.plan().next_in_line == ()


def test_what_no_time_was_left_for_is_a_gap_and_comes_first_in_the_next_run(staged: Staged) -> None:
    stage, asking = staged("a", "b", "c", "d")

    def slowly(_: ResourceRef) -> None:
        stage.clock.advance(timedelta(minutes=1))

    asking.before = slowly

    report = hurried(stage, timedelta(minutes=6))
    assert report.plan is not None
    late = [held.action.subject.native_id for held in report.plan.held]
    assert len(asking.asked) + len(late) == 4
    assert len(late) >= 1
    assert {held.reason.code for held in report.plan.held} == {ReasonCode.DETAIL_UNREAD}
    (gap,) = [gap for gap in report.plan.gaps if gap.what == "details"]
    assert (gap.kind, f"{len(late)} of 4 machines" in gap.detail) == (GapKind.DEADLINE, True)

    first = len(asking.asked)
    stage.cloud.protect(stage.ref("a").native_id, STOP, "owner", on=True)
    hurried(stage, timedelta(minutes=6))
    again = [native_id for native_id, _ in asking.asked[first:]]
    assert again
    assert again[: len(late)] == late[: len(again)]


def hurried(stage: Stage, within: timedelta) -> RunReport:
    now = stage.clock.now()
    return run_guard(stage.world(), f"run-{now.isoformat()}", deadline=now + within).report


def test_warnings_that_there_was_no_time_for_come_before_new_ones(staged: Staged) -> None:
    """Newcomers cost more, and would come first by their price."""
    tags = {"costguard-protect": "yes"}
    dear = [idle_machine(name, "p5.48xlarge", local_disk_gib=0, tags=tags) for name in ("y", "z")]
    stage, asking = staged("a", "b", "c", "d", beside=dear)

    def slowly(_: ResourceRef) -> None:
        stage.clock.advance(timedelta(minutes=1))

    asking.before = slowly

    report = hurried(stage, timedelta(minutes=6))
    assert report.plan is not None
    late = {held.action.subject.native_id for held in report.plan.held}
    assert late
    for spec in dear:
        stage.cloud.untag(spec.native_id, "costguard-protect", "owner")
    first = len(asking.asked)
    report = hurried(stage, timedelta(minutes=6))
    assert {native_id for native_id, _ in asking.asked[first:]} == late
    assert report.plan is not None
    assert {held.action.subject.native_id for held in report.plan.held} == {spec.native_id for spec in dear}


def test_what_no_time_was_left_to_look_at_closely_is_looked_at_first_in_the_next_run(staged: Staged) -> None:
    limits = replace(rule().limits, actions_per_day=1)
    stage, asking = staged(*(f"m{number:03}" for number in range(201)), under=policy(rule(ladder=TWO, limits=limits)))
    stage.day(0)
    read = asking.details
    looked: list[Sequence[ResourceRef]] = []

    def slowly(refs: Sequence[ResourceRef]) -> Mapping[ResourceRef, InstanceDetail]:
        if len(refs) > 1:
            looked.append(refs)
            stage.clock.advance(timedelta(minutes=4))
        return read(refs)

    asking.details = slowly  # type: ignore[method-assign]
    report = hurried(stage_at(stage, DAY), timedelta(minutes=6))
    assert report.plan is not None
    (gap,) = [gap for gap in report.plan.gaps if "1 of 201 machines" in gap.detail]
    assert gap.kind is GapKind.DEADLINE
    (left,) = {to_product(spec.ref) for spec in stage.cloud.fleet} - set(looked[0])
    looked.clear()
    hurried(stage_at(stage, DAY + timedelta(hours=1)), timedelta(minutes=6))
    assert looked[0][0] == left
