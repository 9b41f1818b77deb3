"""What Alibaba does otherwise: empty answers for a denial, economical stops ignored, times told to the minute."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from tests.world_ports.inventory import WorldExecutor, WorldInventory, WorldSignals
from tests.world_ports.translate import to_product

from cloudstand.clock import MovedClock
from cloudstand.fleets import EAST, alibaba_machine, aws_machine, tencent_machine
from cloudstand.world import workload as does
from cloudstand.world.cloud import World
from cloudstand.world.fleet import Disk, MachineSpec
from cloudstand.world.kinds import Billing, InstanceState
from cloudstand.world.records import Machine, Operation, WorldRefusalError
from costguard.domain.actions import Action, Verb
from costguard.domain.errors import AccessDeniedError, RefusedError
from costguard.domain.resources import GapKind

NOW = datetime(2026, 3, 2, 9, 0, 20, tzinfo=timezone.utc)
SECOND, MINUTE, HOUR, DAY = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
BOX = alibaba_machine("box", does.idle(), NOW - 9 * DAY)
ELSEWHERE = {
    "aws": aws_machine("box", "g5g.xlarge", does.idle(), NOW - 9 * DAY, region=EAST),
    "tencent": tencent_machine("box", does.idle(), NOW - 9 * DAY),
}
EVERYWHERE = {"alibaba": BOX, **ELSEWHERE}


class Stage:
    def __init__(self, spec: MachineSpec) -> None:
        self.spec, self.world, self.clock = spec, World([spec], NOW), MovedClock(NOW)
        self.machine: Machine = self.world.machines[spec.native_id]
        self.inventory = WorldInventory(self.world, self.clock)
        self.signals = WorldSignals(self.world, self.clock)
        self.executor = WorldExecutor(self.world, self.clock)

    def deny(self, operation: Operation | str) -> None:
        self.world.deny(self.spec.cloud, self.spec.account, operation)

    def allow(self, operation: Operation | str) -> None:
        self.world.allow(self.spec.cloud, self.spec.account, operation)

    def pass_(self, step: timedelta) -> None:
        self.world.tick(self.clock.advance(step))

    def action(self, verb: Verb) -> Action:
        ref = self.spec.ref
        (volume,) = self.world.volumes_of(ref.native_id)
        resource = ref.sibling("volume", volume.native_id) if verb is Verb.SNAPSHOT else ref
        return Action("a", "d", verb, to_product(ref), to_product(resource), "", "c", 0, "rule", "digest")


def stage(**more: Any) -> Stage:
    return Stage(alibaba_machine("box", does.idle(), NOW - 9 * DAY, **more))


def test_a_denied_list_is_empty_without_an_error() -> None:
    box = stage()
    box.deny("DescribeInstances")
    assert list(box.world.listing(BOX.shard)) == []


def test_an_empty_list_is_preflighted_and_becomes_a_gap() -> None:
    box = stage()
    box.deny("DescribeInstances")
    seen = box.inventory.read(to_product(BOX.shard))
    assert seen.instances == ()
    assert not seen.complete
    assert [(gap.what, gap.kind, gap.fix) for gap in seen.gaps] == [
        ("inventory", GapKind.DENIED, "allow ecs:DescribeInstances")
    ]


def test_an_empty_list_that_was_permitted_is_complete() -> None:
    box = stage()
    box.world.terminate(BOX.native_id, "owner")
    box.pass_(HOUR)
    seen = box.inventory.read(to_product(BOX.shard))
    assert (seen.instances, seen.complete) == ((), True)


def test_a_denial_that_is_lifted_leaves_no_trace_in_the_list() -> None:
    box = stage()
    box.deny(Operation.LIST)
    box.allow(Operation.LIST)
    assert box.inventory.read(to_product(BOX.shard)).complete
    assert [event.what for event in box.world.history] == ["deny list", "allow list"]


def test_a_denial_is_one_account_s_own() -> None:
    box = stage()
    box.world.deny("alibaba", "9999999999999999", Operation.LIST)
    box.world.deny("aws", BOX.account, Operation.LIST)
    assert len(box.inventory.read(to_product(BOX.shard)).instances) == 1


@pytest.mark.parametrize("cloud", ELSEWHERE)
def test_elsewhere_a_denied_list_is_an_error(cloud: str) -> None:
    box = Stage(ELSEWHERE[cloud])
    box.deny("DescribeInstances")
    with pytest.raises(AccessDeniedError):
        box.inventory.read(to_product(box.spec.shard))


@pytest.mark.parametrize("operation", [Operation.LIST, Operation.DISKS])
@pytest.mark.parametrize("cloud", EVERYWHERE)
def test_the_closer_look_never_takes_a_denial_for_absence(cloud: str, operation: Operation) -> None:
    box = Stage(EVERYWHERE[cloud])
    box.deny(operation)
    with pytest.raises(AccessDeniedError):
        box.inventory.details([to_product(box.spec.ref)])


@pytest.mark.parametrize("cloud", EVERYWHERE)
def test_denied_metrics_are_an_error(cloud: str) -> None:
    box = Stage(EVERYWHERE[cloud])
    instances = box.inventory.read(to_product(box.spec.shard)).instances
    box.deny(Operation.SIGNALS)
    with pytest.raises(AccessDeniedError):
        box.signals.read(instances, NOW - DAY, NOW)


@pytest.mark.parametrize("verb", [Verb.STOP, Verb.START, Verb.TERMINATE, Verb.SNAPSHOT])
@pytest.mark.parametrize("cloud", EVERYWHERE)
def test_a_denied_change_is_an_error_and_changes_nothing(cloud: str, verb: Verb) -> None:
    box = Stage(EVERYWHERE[cloud])
    box.deny(verb.value)
    seen = list(box.world.history)
    with pytest.raises(AccessDeniedError) as denied:
        box.executor.execute(box.action(verb))
    assert denied.value.code == "denied"
    assert box.world.history == seen


@pytest.mark.parametrize(
    ("name", "operation"),
    [
        ("StopInstances", Operation.STOP),
        ("DeleteInstances", Operation.TERMINATE),
        ("TerminateInstances", Operation.TERMINATE),
        ("CreateSnapshot", Operation.SNAPSHOT),
        ("DescribeDisks", Operation.DISKS),
    ],
)
def test_vendors_names_of_operations_are_understood(name: str, operation: Operation) -> None:
    assert Operation(name) is operation


def test_an_unknown_operation_is_not_denied_in_silence() -> None:
    with pytest.raises(ValueError, match="DescribeNothing"):
        stage().deny("DescribeNothing")


def test_a_denial_binds_the_program_not_the_owner() -> None:
    box = stage()
    box.deny(Operation.STOP)
    box.world.stop(BOX.native_id, "owner")
    assert box.machine.state is InstanceState.STOPPING


@pytest.mark.parametrize(
    "more",
    [
        {"stop_keeps_billing": True},
        {"instance_type": "ecs.gn5-c4g1.xlarge"},
        {"billing": Billing.PREPAID},
    ],
    ids=["flag", "local disk", "prepaid"],
)
def test_an_economical_stop_that_is_ignored_succeeds_and_billing_goes_on(more: dict[str, Any]) -> None:
    box = stage(**more, public_ip="203.0.113.7")
    assert not box.inventory.read(to_product(BOX.shard)).instances[0].billed_while_stopped
    box.executor.execute(box.action(Verb.STOP))
    assert not box.inventory.read(to_product(BOX.shard)).instances[0].billed_while_stopped
    box.pass_(2 * MINUTE)
    (seen,) = box.inventory.read(to_product(BOX.shard)).instances
    assert (seen.state, seen.billed_while_stopped) == to_product((InstanceState.STOPPED, True))
    assert seen.public_ip == "203.0.113.7", "what goes on billing keeps its address"
    assert box.world.history[-1].what == "billed_while_stopped"


def test_an_economical_stop_that_works_ends_the_bill_and_takes_the_address() -> None:
    box = stage(public_ip="203.0.113.7")
    box.world.stop(BOX.native_id, "owner")
    assert box.machine.public_ip == "203.0.113.7"
    box.pass_(2 * MINUTE)
    (seen,) = box.inventory.read(to_product(BOX.shard)).instances
    assert (seen.public_ip, seen.billed_while_stopped) == ("", False)
    box.world.start(BOX.native_id, "owner")
    assert box.machine.public_ip not in ("", None, "203.0.113.7"), "another one, once it runs again"


def test_deletion_protection_refuses_and_is_told_by_the_list() -> None:
    box = stage(protections=("termination_protection",))
    assert box.inventory.read(to_product(BOX.shard)).instances[0].protected_by == ("termination_protection",)
    with pytest.raises(RefusedError) as refused:
        box.executor.execute(box.action(Verb.TERMINATE))
    assert refused.value.code == "termination_protected"
    box.world.protect(BOX.native_id, "termination_protection", "owner", on=False)
    box.executor.execute(box.action(Verb.TERMINATE))


def test_an_unexpired_prepaid_machine_cannot_be_deleted() -> None:
    for until in (None, NOW + DAY):
        box = stage(billing=Billing.PREPAID, prepaid_until=until)
        with pytest.raises(RefusedError) as refused:
            box.executor.execute(box.action(Verb.TERMINATE))
        assert refused.value.code == "prepaid"
        assert box.world.history == []


def test_an_expired_prepaid_machine_can_be_deleted() -> None:
    box = stage(billing=Billing.PREPAID, prepaid_until=NOW)
    box.executor.execute(box.action(Verb.TERMINATE))
    assert box.machine.state is InstanceState.TERMINATING


def test_a_deleted_machine_is_no_longer_listed() -> None:
    box = stage()
    box.world.terminate(BOX.native_id, "owner")
    box.pass_(MINUTE)
    assert box.inventory.details([to_product(BOX.ref)]) == {}


def test_times_are_told_to_the_minute_and_a_stop_s_not_at_all() -> None:
    box = stage()
    (seen,) = box.inventory.read(to_product(BOX.shard)).instances
    assert seen.run_epoch == "2026-02-21T09:00Z"
    assert seen.launched_at == box.machine.launched_at - 20 * SECOND
    box.world.stop(BOX.native_id, "owner")
    box.pass_(2 * MINUTE)
    assert box.inventory.read(to_product(BOX.shard)).instances[0].stopped_at is None


def test_two_starts_within_one_minute_have_the_same_epoch() -> None:
    """Nothing can tell them apart; of starts in different minutes the epoch tells."""
    box = stage(stop_takes=2 * SECOND)
    before = box.machine.run_epoch
    epochs = []
    box.world.stop(BOX.native_id, "owner")
    box.pass_(42 * SECOND)
    box.world.start(BOX.native_id, "owner")
    epochs.append(box.machine.run_epoch)
    box.pass_(31 * SECOND)
    box.world.stop(BOX.native_id, "owner")
    box.pass_(3 * SECOND)
    box.world.start(BOX.native_id, "owner")
    epochs.append(box.machine.run_epoch)
    assert before not in epochs
    assert len(set(epochs)) == 1
    assert len(box.machine.runs) == 3


def test_a_start_of_what_runs_and_a_stop_of_what_is_stopped_are_errors() -> None:
    box = stage()
    with pytest.raises(WorldRefusalError, match="wrong_state"):
        box.world.start(BOX.native_id, "owner")
    box.world.stop(BOX.native_id, "owner")
    box.pass_(2 * MINUTE)
    with pytest.raises(WorldRefusalError, match="wrong_state"):
        box.world.stop(BOX.native_id, "owner")


def test_a_disk_that_is_being_copied_cannot_be_copied_again() -> None:
    box = stage(disks=(Disk(100, snapshot_takes=DAY),))
    box.executor.execute(box.action(Verb.SNAPSHOT))
    box.pass_(23 * HOUR)
    with pytest.raises(RefusedError) as refused:
        box.executor.execute(box.action(Verb.SNAPSHOT))
    assert refused.value.code == "copy_under_way"


def test_a_batch_is_all_or_nothing() -> None:
    fleet = [
        alibaba_machine("a", does.idle(), NOW - DAY),
        alibaba_machine("b", does.idle(), NOW - DAY, zone="cn-hangzhou-h", protections=("termination_protection",)),
    ]
    world = World(fleet, NOW)
    with pytest.raises(WorldRefusalError, match="termination_protected"):
        world.terminate_many([spec.native_id for spec in fleet], "owner")
    assert world.history == []
