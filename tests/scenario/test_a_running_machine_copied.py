"""Disks of a machine that runs are copied as a set where its cloud can, and never one by one there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.builders import policy, rule
from tests.scenario.stage import CLOUDS, DAY, Stage, idle_machine

from cloudstand.world.fleet import Disk
from cloudstand.world.kinds import Billing, SnapshotState
from costguard.cases import CaseStatus
from costguard.domain.actions import Outcome, Verb
from costguard.domain.errors import AccessDeniedError, OutcomeUnknownError
from costguard.domain.reasons import Reason, ReasonCode
from costguard.domain.refs import ResourceRef
from costguard.domain.resources import InstanceDetail
from costguard.engine.guards.machines.run import InstanceHandler
from costguard.engine.run.act import act
from costguard.engine.run.run import committed
from costguard.guards.rules.common import Step
from costguard.guards.rules.idle import IdleRule
from costguard.planning import Plan
from costguard.policy.model.terms import with_digest

HOUR = timedelta(hours=1)
DISKS = (Disk(100), Disk(200, device="/dev/sdf"), Disk(300, device="/dev/sdg"))
ENDS: IdleRule = rule(limits=replace(rule().limits, unstoppable_may_terminate=True))
COPIES_FIRST: IdleRule = with_digest(
    replace(
        rule(),
        ladder=(
            Step(Verb.WARN, timedelta(0)),
            Step(Verb.SNAPSHOT, 24 * HOUR),
            Step(Verb.STOP, 24 * HOUR),
        ),
    )
)
DUE = 8  # days until the copies of what cannot stop are due: both waits, from the notice on


def spot(folder: Path, *, cloud: str = "aws", disks: Sequence[Disk] = DISKS, under: IdleRule = ENDS) -> Stage:
    """A one-time Spot machine with three disks, and a policy that ends it."""
    one_time: dict[str, Any] = {"billing": Billing.SPOT, "one_time_spot": True} if cloud == "aws" else {}
    return Stage(folder, idle_machine(cloud=cloud, disks=tuple(disks), **one_time), under=policy(under))


def volumes(stage: Stage) -> list[str]:
    return sorted(volume.native_id for volume in stage.cloud.volumes_of(stage.ref().native_id))


def sets(stage: Stage) -> list[set[str]]:
    """The volumes that each set of copies is of, in the order in which they were made; "" is of no set."""
    made: dict[str, set[str]] = {}
    for copy in stage.cloud.snapshots.values():
        made.setdefault(copy.set_id, set()).add(copy.volume)
    return list(made.values())


def test_a_machine_that_cannot_stop_is_copied_by_one_call_and_then_ended(tmp_path: Path) -> None:
    stage = spot(tmp_path)
    stage.days(range(DUE + 3))
    copying, ending = stage.executor.calls
    assert (copying.verb, copying.resource, copying.action_id) == (Verb.SNAPSHOT, stage.ref(), copying.decision_id)
    assert [volume.native_id for volume in copying.copies] == volumes_ever(stage)
    assert ending.verb is Verb.TERMINATE
    assert sets(stage) == [set(volumes_ever(stage))]
    stage.close()


def volumes_ever(stage: Stage) -> list[str]:
    return sorted(volume.native_id for volume in stage.cloud.volumes_ever_of(stage.ref().native_id))


def test_a_snapshot_step_of_a_running_machine_makes_one_set_and_the_copies_behind_a_stop_none(tmp_path: Path) -> None:
    ends = replace(COPIES_FIRST, ladder=(*COPIES_FIRST.ladder, Step(Verb.TERMINATE, 7 * DAY)))
    stage = Stage(tmp_path, idle_machine(disks=DISKS), under=policy(with_digest(ends)))
    stage.days(range(16))
    first, stop, *behind = stage.executor.calls
    assert (first.verb, len(first.copies), stop.verb) == (Verb.SNAPSHOT, 3, Verb.STOP)
    assert [(one.verb, one.copies) for one in behind] == [*([(Verb.SNAPSHOT, ())] * 3), (Verb.TERMINATE, ())]
    stage.close()


@pytest.mark.parametrize("cloud", CLOUDS[1:])
def test_where_no_such_call_is_used_every_disk_is_copied_by_itself(tmp_path: Path, cloud: str) -> None:
    stage = spot(tmp_path, cloud=cloud, under=COPIES_FIRST)
    stage.days(range(2))
    assert [(call.verb, call.resource.kind, call.copies) for call in stage.executor.calls] == [
        (Verb.SNAPSHOT, "volume", ())
    ] * 3
    stage.close()


def test_more_disks_than_one_call_takes_are_copied_one_by_one_and_the_notice_says_so(tmp_path: Path) -> None:
    many = (Disk(100), *(Disk(10, device=f"/dev/xvd{number}") for number in range(128)))
    stage = spot(tmp_path, disks=many)
    stage.days(range(DUE + 1))
    assert {(call.resource.kind, call.copies) for call in stage.executor.calls} == {("volume", ())}
    assert len(stage.executor.calls) == 129
    assert "one disk after the other" in stage.mailbox.messages[0].text
    stage.close()


def due(stage: Stage) -> Plan:
    """The plan of the day on which the set is due, committed."""
    stage.days(range(DUE))
    stage.clock.advance(DAY)
    plan = committed(stage.world(), stage.plan())
    assert [len(action.copies) for action in plan.due] == [3]
    return plan


def acted(stage: Stage, plan: Plan) -> list[Reason | None]:
    world = stage.world()
    results = act(plan, world, InstanceHandler(world.readings, world.executors))
    return [result.reason for result in results]


def attach(stage: Stage) -> None:
    stage.cloud.attach(stage.ref().native_id, Disk(50, device="/dev/sdh"), "owner")


def detach(stage: Stage) -> None:
    stage.cloud.detach(volumes(stage)[-1], "owner")


@pytest.mark.parametrize("change", [attach, detach])
def test_a_set_of_other_volumes_than_were_planned_is_not_made(tmp_path: Path, change: Callable[[Stage], None]) -> None:
    """Somebody attached or detached one between plan and call: the next run plans anew."""
    stage = spot(tmp_path, disks=tuple(replace(disk, deleted_with_instance=True) for disk in DISKS))
    plan = due(stage)
    change(stage)
    assert acted(stage, plan) == [Reason(ReasonCode.CHANGED_SINCE_PLAN, {"what": "step"})]
    assert stage.executor.calls == []
    stage.at((DUE + 1) * DAY)
    assert [volume.native_id for volume in stage.executor.calls[0].copies] == volumes(stage)
    stage.close()


def test_a_forged_set_and_a_forged_single_copy_are_refused_in_each_others_place(tmp_path: Path) -> None:
    stage = spot(tmp_path)
    plan = due(stage)
    (action,) = plan.due
    first = action.copies[0]
    half = replace(action, copies=action.copies[:2])
    single = replace(action, copies=(), resource=first, action_id=f"{action.decision_id}-{first.native_id}")
    whole = replace(action, copies=())
    for forged in (half, single, whole):
        assert acted(stage, replace(plan, due=(forged,))) == [Reason(ReasonCode.CHANGED_SINCE_PLAN, {"what": "step"})]
        stage.clock.advance(HOUR)
        plan = committed(stage.world(), stage.plan())
    assert stage.executor.calls == []
    stage.close()


def test_a_set_whose_answer_was_lost_is_found_by_its_tag_and_made_once(tmp_path: Path) -> None:
    stage = spot(tmp_path)
    stage.executor.fails_after = OutcomeUnknownError("no answer", operation="ec2:CreateSnapshots")
    stage.days(range(DUE + 1))
    stage.executor.fails_after = None
    stage.days((DUE + 1, DUE + 2))
    assert stage.verbs() == ["snapshot", "terminate"]
    assert sets(stage) == [set(volumes_ever(stage))]
    (intent, _) = stage.memory.intents.for_case(stage.executor.calls[0].case_id)
    assert (intent.outcome, intent.action.copies) == (Outcome.TOOK_EFFECT, stage.executor.calls[0].copies)
    stage.close()


def test_a_lost_answer_without_an_effect_is_made_under_a_new_decision_only_when_none_can_come(tmp_path: Path) -> None:
    stage = spot(tmp_path)
    stage.days(range(DUE))
    stage.executor.fails_before = OutcomeUnknownError("no answer", operation="ec2:CreateSnapshots")
    stage.at(DUE * DAY)
    stage.executor.fails_before = None
    stage.at(DUE * DAY + HOUR / 2)
    assert (len(stage.executor.calls), sets(stage)) == (1, [])
    stage.at(DUE * DAY + 2 * HOUR)
    stage.at(DUE * DAY + 3 * HOUR)
    first, second = stage.executor.calls
    assert first.decision_id != second.decision_id
    assert sets(stage) == [set(volumes(stage))]
    stage.close()


def test_a_set_that_failed_ends_nothing_and_is_made_anew_as_a_whole(tmp_path: Path) -> None:
    stage = spot(tmp_path, disks=(*DISKS[:2], replace(DISKS[2], snapshots_fail=True)))
    stage.days(range(DUE + 1))
    stage.at((DUE + 1) * DAY)
    assert {copy.state for copy in stage.cloud.snapshots.values()} == {SnapshotState.FAILED}
    stage.at((DUE + 2) * DAY)
    first, second = stage.executor.calls
    assert (first.decision_id != second.decision_id, len(second.copies)) == (True, 3)
    assert stage.state() == "running"
    stage.close()


def test_one_deleted_copy_of_a_set_ends_nothing(tmp_path: Path) -> None:
    """What is left of it is no set any more: all volumes are copied again, and only then is the machine ended."""
    stage = spot(tmp_path)
    stage.days(range(DUE + 1))
    stage.at(DUE * DAY + 12 * HOUR)
    assert stage.case().climbed_at(Verb.SNAPSHOT) is not None
    stage.cloud.delete_snapshot(next(iter(stage.cloud.snapshots)), "owner")
    stage.at((DUE + 1) * DAY)
    assert stage.verbs() == ["snapshot", "snapshot"]
    assert [len(call.copies) for call in stage.executor.calls] == [3, 3]
    stage.close()


def test_a_role_without_the_new_permission_holds_the_case_and_copies_nothing_one_by_one(tmp_path: Path) -> None:
    stage = spot(tmp_path)
    stage.days(range(DUE))
    stage.executor.fails_before = AccessDeniedError("not allowed", operation="ec2:CreateSnapshots")
    stage.at(DUE * DAY)
    assert (stage.case().status, stage.case().reason.code) == (CaseStatus.HELD, ReasonCode.PERMISSION_MISSING)
    assert (len(stage.executor.calls), stage.cloud.snapshots) == (1, {})
    stage.close()


def test_copies_made_one_by_one_before_this_was_known_count_if_one_decision_made_them(tmp_path: Path) -> None:
    """A case that an earlier version left between its copies and its end goes on."""
    stage = spot(tmp_path)
    read = stage.inventory.details

    def earlier(refs: Sequence[ResourceRef]) -> Mapping[ResourceRef, InstanceDetail]:
        return {ref: replace(found, copied_together=False) for ref, found in read(refs).items()}

    stage.inventory.details = earlier  # type: ignore[method-assign]
    stage.days(range(DUE + 1))
    stage.inventory.details = read  # type: ignore[method-assign]
    stage.days((DUE + 1, DUE + 2))
    assert stage.verbs() == ["snapshot", "snapshot", "snapshot", "terminate"]
    stage.close()


@pytest.mark.parametrize(
    ("disks", "english", "chinese"),
    [
        (1, "only crash-consistent", "只具有崩溃一致性"),
        (3, "all disks as of one moment", "全部磁盘取自同一时刻"),
        (129, "one disk after the other", "逐盘创建"),
    ],
)
def test_the_notice_says_how_far_copies_of_a_running_machine_can_be_relied_on(
    tmp_path: Path, disks: int, english: str, chinese: str
) -> None:
    for language, said in (("en", english), ("zh", chinese)):
        several = tuple(Disk(10, device=f"/dev/xvd{number}") for number in range(disks))
        (tmp_path / language).mkdir()
        stage = spot(tmp_path / language, disks=several)
        stage.run_with(replace(stage.world(), language=language))
        assert said in stage.mailbox.messages[0].text
        stage.close()


def test_copies_made_behind_a_stop_are_not_said_to_be_crash_consistent(tmp_path: Path) -> None:
    stage = Stage(tmp_path, idle_machine(disks=DISKS))
    stage.days(range(4))
    assert len(stage.mailbox.messages) == 2
    assert not any("crash" in message.text for message in stage.mailbox.messages)
    stage.close()


def test_what_cannot_stop_is_told_of_its_end_and_of_no_stop(tmp_path: Path) -> None:
    stage = spot(tmp_path)
    stage.day(0)
    (told,) = stage.mailbox.messages
    assert told.title == "notebook will be terminated on 2026-03-10 09:00 UTC unless you keep it"
    assert "Next: snapshot: not before 2026-03-10 09:00 UTC; terminate: not before 2026-03-10 09:00 UTC" in told.text
    assert "stop:" not in told.text
    stage.close()


def test_what_cannot_stop_and_is_kept_by_its_rule_is_told_of_no_step(tmp_path: Path) -> None:
    stage = spot(tmp_path, under=rule())
    stage.day(0)
    (told,) = stage.mailbox.messages
    assert told.title == "notebook is idle and costs 0.17 USD list an hour"
    assert "not before" not in told.text
    stage.close()
