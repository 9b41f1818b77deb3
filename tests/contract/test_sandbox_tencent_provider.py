"""The provider of Tencent Cloud on its emulator: what a stop ends, what a terminate destroys, what a mean hides."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from tests.builders import rule
from tests.contract.tencent_world import NOW, SHARD, TencentWorld, patient_pacer, tencent_world
from tests.world_ports.translate import to_product

from cloudstand.fleets import tencent_machine
from cloudstand.tencent.core.settings import CardSeries
from cloudstand.wire.faults import Fault, FaultKind
from cloudstand.world import workload as does
from cloudstand.world.kinds import Billing
from cloudstand.world.workload import Workload
from costguard.domain.actions import Action, Verb
from costguard.domain.errors import (
    AccessDeniedError,
    InvalidInputError,
    NotFoundError,
    OutcomeUnknownError,
    RefusedError,
)
from costguard.domain.findings import Verdict
from costguard.domain.refs import ResourceRef
from costguard.domain.resources import GapKind, Instance, InstanceState, Inventory, SnapshotState
from costguard.domain.signals import SignalHistory, SignalName, Statistic
from costguard.guards.idle.judge import examine, judge_instance
from costguard.guards.rules.idle import IdleBounds
from costguard.providers.kit.core.credentials import Keys
from costguard.providers.tencent.compute.executor import TencentExecutor
from costguard.providers.tencent.compute.metrics import TencentSignals
from costguard.providers.tencent.core.session import TencentSession
from costguard.providers.tencent.iam.preflight import TencentPreflight

HOUR = timedelta(hours=1)


@pytest.fixture
def world() -> Iterator[TencentWorld]:
    with tencent_world() as made:
        made.session.identity()
        yield made


def ref(native_id: str) -> ResourceRef:
    return ResourceRef(SHARD.cloud, SHARD.account, SHARD.region, "instance", native_id)


def action(verb: Verb, native_id: str, volume: str = "", decision: str = "decision-1") -> Action:
    subject = ref(native_id)
    return Action(
        action_id=f"{decision}-1",
        decision_id=decision,
        verb=verb,
        subject=subject,
        resource=subject.sibling("volume", volume) if volume else subject,
        run_epoch="request-1",
        case_id="case-1",
        rung=1,
        rule="research",
        rule_digest="digest-1",
    )


def seen(world: TencentWorld, native_id: str) -> Instance:
    (found,) = [one for one in world.inventory.read(SHARD).instances if one.ref.native_id == native_id]
    return found


def happened(world: TencentWorld, native_id: str) -> list[str]:
    return [event.what for event in world.world.history if event.machine == native_id]


def test_a_stop_ends_the_bill_and_is_known_as_ours(world: TencentWorld) -> None:
    native_id = world.launch(public_ip="203.0.113.7")
    receipt = world.executor.execute(action(Verb.STOP, native_id))
    while_stopping = seen(world, native_id)
    assert (while_stopping.state, while_stopping.stopped_by) == (InstanceState.STOPPING, receipt.request_id)
    world.pass_time()
    stopped = seen(world, native_id)
    assert stopped.state is InstanceState.STOPPED
    assert (stopped.run_epoch, stopped.stopped_by) == ("", receipt.request_id)
    assert not stopped.billed_while_stopped
    assert stopped.public_ip == "", "a plain public address goes with the machine's resources"


def test_somebody_elses_stop_has_another_name(world: TencentWorld) -> None:
    native_id = world.launch()
    receipt = world.executor.execute(action(Verb.STOP, native_id))
    world.pass_time()
    world.world.start(native_id, "owner")
    world.pass_time()
    world.stop(native_id)
    assert seen(world, native_id).stopped_by not in {"", receipt.request_id}


def test_a_start_changes_the_run_epoch(world: TencentWorld) -> None:
    native_id = world.launch()
    first = seen(world, native_id).run_epoch
    world.executor.execute(action(Verb.STOP, native_id))
    world.pass_time()
    receipt = world.executor.execute(action(Verb.START, native_id))
    world.pass_time()
    again = seen(world, native_id)
    assert again.run_epoch == receipt.request_id
    assert again.run_epoch not in {"", first}
    assert again.stopped_by == ""


def test_a_stop_that_ends_no_bill_is_told(world: TencentWorld) -> None:
    native_id = world.launch(stop_keeps_billing=True)
    world.executor.execute(action(Verb.STOP, native_id))
    world.pass_time()
    assert seen(world, native_id).billed_while_stopped


def test_a_type_that_must_be_charged_is_refused_and_goes_on(world: TencentWorld) -> None:
    """No second call stops it at full price: that would help nobody."""
    with tencent_world(refuses_stop_charging=frozenset({"GN7.2XLARGE32"})) as strict:
        native_id = strict.launch()
        with pytest.raises(RefusedError, match="StoppedModeStopCharging"):
            strict.executor.execute(action(Verb.STOP, native_id))
        assert strict.changes_sent() == ["stop"]
        assert strict.state(native_id) == "running"
    assert world.changes_sent() == []


def test_a_stop_uses_no_force(world: TencentWorld) -> None:
    sent: list[dict[str, Any]] = []

    class Recording(TencentSession):
        def call(self, shard: Any, service: str, action: str, /, **parameters: Any) -> dict[str, Any]:
            sent.append({"action": action, **parameters})
            return super().call(shard, service, action, **parameters)

    native_id = world.launch()
    session = Recording(
        keys=to_product(world.emulator.keys),
        endpoint=world.emulator.url,
        may_change=True,
        pacer=patient_pacer(),
        now=world.clock.now,
    )
    TencentExecutor(session).execute(action(Verb.STOP, native_id))
    session.close()
    assert sent == [
        {
            "action": "StopInstances",
            "InstanceIds": [native_id],
            "StopType": "SOFT",
            "StoppedMode": "STOP_CHARGING",
        }
    ]


def test_terminate_is_sent_once_even_after_a_lost_answer(world: TencentWorld) -> None:
    """The second call would destroy for good what the first put into the recycle bin."""
    native_id = world.launch(recycles=True)
    world.emulator.faults.add(Fault(FaultKind.LOST_ANSWER, "TerminateInstances"))
    with pytest.raises(OutcomeUnknownError):
        world.executor.execute(action(Verb.TERMINATE, native_id))
    for executor in (world.executor, TencentExecutor(world.acting)):
        with pytest.raises(RefusedError, match="not sent"):
            executor.execute(action(Verb.TERMINATE, native_id, decision="decision-2"))
    world.pass_time()
    with pytest.raises(RefusedError, match="not sent"):
        TencentExecutor(world.acting).execute(action(Verb.TERMINATE, native_id, decision="decision-3"))
    assert world.changes_sent() == ["terminate"]
    assert "destroyed" not in happened(world, native_id)


def test_terminate_is_sent_once_though_the_cloud_still_shows_the_machine_at_work(world: TencentWorld) -> None:
    """What the executor itself has sent it knows without a look: an answer may be older than the call."""
    native_id = world.launch(recycles=True)

    def as_before(fields: dict[str, Any]) -> None:
        for item in fields["InstanceSet"]:
            item.update(InstanceState="RUNNING", LatestOperation="RunInstances", LatestOperationState="SUCCESS")

    world.changing("DescribeInstances", as_before)
    world.emulator.faults.add(Fault(FaultKind.LOST_ANSWER, "TerminateInstances"))
    executor = world.executor
    with pytest.raises(OutcomeUnknownError):
        executor.execute(action(Verb.TERMINATE, native_id))
    with pytest.raises(RefusedError, match="sent before"):
        executor.execute(action(Verb.TERMINATE, native_id, decision="decision-2"))
    assert world.changes_sent() == ["terminate"]
    assert "destroyed" not in happened(world, native_id)


def test_a_terminate_that_never_arrived_may_be_sent_again_by_another_decision(world: TencentWorld) -> None:
    native_id = world.launch()
    world.emulator.faults.add(Fault(FaultKind.REFUSED, "TerminateInstances", code="RequestLimitExceeded"))
    with pytest.raises(Exception, match="RequestLimitExceeded"):
        world.executor.execute(action(Verb.TERMINATE, native_id))
    world.executor.execute(action(Verb.TERMINATE, native_id, decision="decision-2"))
    assert world.changes_sent() == ["terminate", "terminate"]
    assert world.state(native_id) == "terminated"


@pytest.mark.parametrize("billing", [Billing.PREPAID, Billing.RESERVED, Billing.UNKNOWN])
def test_what_is_paid_up_front_is_never_ended(world: TencentWorld, billing: Billing) -> None:
    native_id = world.launch(billing=billing)
    with pytest.raises(RefusedError, match="never ended"):
        world.executor.execute(action(Verb.TERMINATE, native_id))
    assert world.changes_sent() == []


def test_what_is_in_the_recycle_bin_is_never_destroyed(world: TencentWorld) -> None:
    native_id = world.launch(recycles=True)
    world.terminate(native_id)
    with pytest.raises(RefusedError, match="SHUTDOWN"):
        world.executor.execute(action(Verb.TERMINATE, native_id))
    assert world.changes_sent() == []


def test_what_is_gone_is_not_there(world: TencentWorld) -> None:
    with pytest.raises(NotFoundError):
        world.executor.execute(action(Verb.TERMINATE, world.missing))


def test_without_a_look_nothing_is_ended(world: TencentWorld) -> None:
    native_id = world.launch()
    world.go_wrong("list", "denied")
    with pytest.raises(AccessDeniedError):
        world.executor.execute(action(Verb.TERMINATE, native_id))
    assert world.changes_sent() == []


def test_a_snapshot_of_one_decision_is_made_once(world: TencentWorld) -> None:
    """The API knows no client token, so the decision stands in its name and its tags."""
    native_id = world.launch()
    (volume,) = world.volumes(native_id)
    world.emulator.faults.add(Fault(FaultKind.LOST_ANSWER, "CreateSnapshot"))
    with pytest.raises(OutcomeUnknownError):
        world.executor.execute(action(Verb.SNAPSHOT, native_id, volume))
    receipt = world.executor.execute(action(Verb.SNAPSHOT, native_id, volume))
    found = world.inventory.details([ref(native_id)])[ref(native_id)].snapshots
    assert [(one.ref.native_id, one.decision_id) for one in found] == [(receipt.native_id, "decision-1")]
    assert world.changes_sent() == ["snapshot"]
    assert found[0].state is SnapshotState.PENDING
    assert found[0].started_at == world.clock.now().replace(microsecond=0)
    world.pass_time(HOUR)
    (done,) = world.inventory.details([ref(native_id)])[ref(native_id)].snapshots
    assert done.state is SnapshotState.COMPLETED


def test_an_answer_without_a_snapshot_leaves_the_outcome_unknown(world: TencentWorld) -> None:
    native_id = world.launch()
    (volume,) = world.volumes(native_id)
    world.changing("CreateSnapshot", lambda fields: fields.update(SnapshotId=None))
    with pytest.raises(OutcomeUnknownError):
        world.executor.execute(action(Verb.SNAPSHOT, native_id, volume))


def test_an_answer_without_a_request_leaves_the_outcome_unknown(world: TencentWorld) -> None:
    native_id = world.launch()
    world.changing("StopInstances", lambda fields: fields.pop("RequestId"))
    with pytest.raises(OutcomeUnknownError):
        world.executor.execute(action(Verb.STOP, native_id))


def test_an_executor_needs_a_session_made_for_acting(world: TencentWorld) -> None:
    with pytest.raises(InvalidInputError, match="acting"):
        TencentExecutor(world.session)


ONE_BUSY = does.partly_idle(0, 1, 2)
"""Of four cards."""


def gpu_of(world: TencentWorld, workload: Workload) -> tuple[Instance, list[SignalHistory]]:
    """A machine with four cards that ran for three hours, and what was read of its GPU for the last two."""
    cards = replace(tencent_machine("x", does.idle(), NOW).accelerator, count=4)
    native_id = world.launch(workload=workload, instance_type="GN7.20XLARGE320", accelerator=cards, hourly=None)
    world.pass_time(3 * HOUR)
    machine = seen(world, native_id)
    assert machine.accelerator.count == 4
    world.emulator.calls.clear()
    report = world.signals.read([machine], world.clock.now() - 2 * HOUR, world.clock.now())
    assert report.gaps == ()
    return machine, [one for one in report.readings[machine.ref].histories if one.name is SignalName.GPU]


@pytest.mark.parametrize("told", [CardSeries.DECLARED, CardSeries.DOCUMENTED])
def test_one_busy_card_of_four_is_told_where_the_monitor_tells_cards(told: CardSeries) -> None:
    with tencent_world(monitor_cards=told) as world:
        _, histories = gpu_of(world, ONE_BUSY)
        assert [one.device for one in histories] == ["0", "1", "2", "3"]
        assert {one.statistic for one in histories} == {Statistic.DEVICE}
        assert [max(one.maxima) > 50 for one in histories] == [False, False, False, True]


@pytest.mark.parametrize(
    "told", [CardSeries.EMPTY, CardSeries.REFUSED, CardSeries.OVERLOOKED, CardSeries.UNDECLARED], ids=str
)
def test_one_busy_card_of_four_shows_as_a_quarter_where_it_does_not(told: CardSeries) -> None:
    """The mean over the cards says that it is one: the bound is divided by their number."""
    with tencent_world(monitor_cards=told) as world:
        _, (gpu,) = gpu_of(world, ONE_BUSY)
        assert (gpu.device, gpu.statistic) == ("", Statistic.MEAN_OF_CARDS)
        assert 5 < max(gpu.maxima) < 30
        calls = sum(call.action == "GetMonitorData" for call in world.emulator.calls)
        assert told is not CardSeries.UNDECLARED or calls == 5, "GPU, power, CPU, and the network's two ways"


@pytest.mark.parametrize("told", CardSeries, ids=str)
@pytest.mark.parametrize(("workload", "verdict"), [(does.idle(), Verdict.VIOLATION), (ONE_BUSY, Verdict.COMPLIANT)])
def test_the_verdict_is_the_same_however_cards_are_told(told: CardSeries, workload: Workload, verdict: Verdict) -> None:
    """The scan and the last look before a stop read alike, by the same source: one machine, the same bounds."""
    lasting = rule(idle=IdleBounds(lasting=2 * HOUR))
    with tencent_world(monitor_cards=told) as world:
        machine, _ = gpu_of(world, workload)
        now, seen_so_far = world.clock.now(), []
        for _ in range(2):
            report = world.signals.read([machine], now - lasting.idle.lasting, now)
            inventory = Inventory(machine.ref.shard, (machine,))
            facts = examine(inventory, report.readings, {}, report.gaps, {lasting.idle.lasting}, now)
            assert judge_instance(facts.instances[0], lasting, now).verdict is verdict
            seen_so_far.append(report)
        assert seen_so_far[0] == seen_so_far[1]


def test_a_dead_agent_leaves_gaps_and_no_silence_is_idle(world: TencentWorld) -> None:
    native_id = world.launch(workload=does.agent_dies(NOW + 2 * HOUR))
    world.pass_time(5 * HOUR)
    machine = seen(world, native_id)
    now = world.clock.now()
    report = world.signals.read([machine], now - 4 * HOUR, now)
    (gpu,) = [one for one in report.readings[machine.ref].histories if one.name is SignalName.GPU]
    assert gpu.over(now - 4 * HOUR, now).coverage < 0.5


def test_denied_metrics_are_a_gap(world: TencentWorld) -> None:
    native_id = world.launch()
    machine = seen(world, native_id)
    world.world.deny("tencent", SHARD.account, "GetMonitorData")
    report = world.signals.read([machine], world.clock.now() - HOUR, world.clock.now())
    assert (report.readings, [gap.kind for gap in report.gaps]) == ({}, [GapKind.DENIED])
    assert "monitor:GetMonitorData" in report.gaps[0].fix


def test_preflight_tells_who_we_are_and_what_is_missing(world: TencentWorld) -> None:
    native_id = world.launch()
    machine = seen(world, native_id)
    preflight = TencentPreflight(world.session, world.acting)
    assert preflight.caller().account == SHARD.account
    world.emulator.allowed[SHARD.account] = {"sts:GetCallerIdentity", "cvm:DescribeInstances", "monitor:GetMonitorData"}
    permits = {permit.operation: permit for permit in preflight.permits(SHARD, [machine], acting=True)}
    assert permits["cvm:DescribeInstances"].allowed
    assert permits["monitor:GetMonitorData"].allowed
    assert permits["cbs:DescribeDisks"].allowed is False
    assert permits["cbs:DescribeDisks"].fix == "grant cbs:DescribeDisks to these credentials"
    assert permits["cvm:TerminateInstances"].allowed is None
    assert "no dry run" in permits["cvm:TerminateInstances"].detail
    assert world.changes_sent() == []


def test_preflight_of_reading_says_nothing_of_acting_and_needs_an_instance_for_metrics(world: TencentWorld) -> None:
    permits = {permit.operation: permit for permit in TencentPreflight(world.session).permits(SHARD, (), acting=False)}
    assert permits["monitor:GetMonitorData"].allowed is None
    assert not any("Terminate" in operation or "CreateSnapshot" in operation for operation in permits)
    assert all(permit.allowed for name, permit in permits.items() if name.startswith(("cvm:", "cbs:", "vpc:", "as:")))


def test_preflight_compares_the_clocks_even_when_they_differ_too_much() -> None:
    with tencent_world() as world:
        skew = TencentPreflight(world.session).clock_skew()
    assert skew is not None
    assert abs(skew) < timedelta(seconds=1)
    with tencent_world(wall=lambda: NOW) as other:  # it refuses every signature for its time
        refused = TencentPreflight(other.session).clock_skew()
    assert refused is not None


def test_preflight_without_keys_is_no_access(world: TencentWorld) -> None:
    nobody = TencentSession(keys=Keys("", ""), endpoint=world.emulator.url, now=world.clock.now)
    with pytest.raises(AccessDeniedError):
        TencentPreflight(nobody).caller()
    assert TencentPreflight(nobody).clock_skew() is None
    nobody.close()


@pytest.mark.parametrize(("instances", "points", "lost"), [(10, 1_440, 1), (50, 7_200, 0)])
def test_all_points_are_read_whichever_page_the_monitor_takes(instances: int, points: int, lost: int) -> None:
    """Four days of a machine at a minute fit the larger page alone: that it is refused is seen once, and remembered."""
    with tencent_world(monitor_instances=instances, monitor_points=points) as world:
        native_id = world.launch()
        world.pass_time(timedelta(days=6))
        machine, now = seen(world, native_id), world.clock.now()
        source = TencentSignals(world.session, frozenset({SignalName.GPU}))
        for _ in range(2):
            world.emulator.calls.clear()
            report = source.read([machine], now - timedelta(days=4), now)
            (gpu,) = report.readings[machine.ref].histories
            assert gpu.over(now - timedelta(days=4), now).coverage > 0.99
            asked = [call for call in world.emulator.calls if call.action == "GetMonitorData"]
            assert len(asked) == (5 if instances == 10 else 1) + lost
            lost = 0
