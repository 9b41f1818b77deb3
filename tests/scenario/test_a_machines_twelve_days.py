"""What an owner sees and what the cloud holds, day by day."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tests.builders import policy, rule, usd
from tests.scenario.stage import CLOUDS, DAY, START, Stage, idle_machine

from cloudstand.world.kinds import Billing
from cloudstand.world.workload import BUSY, IDLE, busy, idle
from costguard.cases import CaseStatus, Phase
from costguard.domain.actions import Action, Receipt
from costguard.domain.errors import AccessDeniedError, LedgerError, OutcomeUnknownError, RefusedError, ThrottledError
from costguard.domain.reasons import ReasonCode
from costguard.domain.refs import ResourceRef, Shard
from costguard.domain.resources import Gap, GapKind, InstanceDetail, Inventory
from costguard.domain.savings import SavingStanding
from costguard.engine.answers import answers
from costguard.engine.ledger.audit.verify import verify
from costguard.engine.run.run import carry_out, plan_guard, run_guard, summary
from costguard.engine.savings import savings_report
from costguard.guards.rules.common import Consent, Mode
from costguard.ports import Discovery, Target


@pytest.fixture(params=CLOUDS)
def stage(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Stage]:
    made = Stage(tmp_path, idle_machine(cloud=request.param))
    yield made
    made.close()


def staged(folder: Path, *fleet: object, **options: object) -> Stage:
    return Stage(folder, *fleet, **options)  # type: ignore[arg-type]


def test_an_idle_machine_walks_the_whole_ladder(stage: Stage) -> None:
    stage.day(0)
    assert stage.case().rung == 1, "warned and told on day 0"
    assert "notebook" in stage.mailbox.titles[0]
    assert stage.state() == "running"
    stage.day(1)
    assert stage.verbs() == ["stop"]
    stage.day(2)
    assert stage.state() == "stopped"
    assert stage.case().rung == 2, "seen stopped, on day 2; the second notice waits for its own run"
    stage.day(3)
    assert stage.case().rung == 3, "told again, the quarantine runs from here"
    stage.days(range(4, 10))
    assert stage.verbs() == ["stop"], "nothing happens in quarantine"
    stage.day(10)
    assert stage.verbs() == ["stop", "snapshot"]
    stage.day(11)
    assert stage.case().rung == 4, "the snapshot was seen complete"
    stage.day(12)
    assert stage.verbs() == ["stop", "snapshot", "terminate"]
    stage.day(13)
    case = stage.case()
    assert (case.status, case.reason.code) == (CaseStatus.CLOSED, ReasonCode.TERMINATED)
    assert verify(stage.memory.store).problems == ()
    now = stage.clock.now()
    stop, terminated = sorted(savings_report(stage.memory, START, now, now).entries, key=lambda one: one.since)
    assert (stop.standing, terminated.standing) == (SavingStanding.HANDED_OVER, SavingStanding.TERMINATED)
    assert (stop.counted_until, terminated.counted_until) == (terminated.since, now), "one saving in two parts"
    assert terminated.price == stop.price
    assert {stop.action_id, terminated.action_id} <= {action.action_id for action in stage.executor.calls}


def test_observe_changes_nothing_and_tells_nobody(tmp_path: Path) -> None:
    stage = staged(tmp_path, under=policy(rule(mode=Mode.OBSERVE)))
    stage.days(range(14))
    assert stage.verbs() == []
    assert stage.mailbox.messages == []
    assert stage.reports[-1].plan is not None
    assert [item.action.verb.value for item in stage.reports[-1].plan.rehearsed] == ["stop"]
    stage.close()


def test_switching_to_enforce_starts_with_a_notice_and_the_full_grace(tmp_path: Path) -> None:
    stage = staged(tmp_path, under=policy(rule(mode=Mode.OBSERVE)))
    stage.days(range(5))
    stage.policy = policy()
    stage.days((5, 6))
    assert stage.verbs() == []
    assert len(stage.mailbox.messages) == 1
    stage.day(7)
    assert stage.verbs() == ["stop"]
    stage.close()


def test_an_owner_who_works_again_keeps_the_machine(stage: Stage) -> None:
    stage.day(0)
    stage.cloud.work(stage.ref().native_id, BUSY)
    stage.day(1)
    assert stage.verbs() == []
    assert stage.case().reason.code is ReasonCode.RECOVERED


def test_an_owner_who_snoozes_keeps_the_machine_and_is_asked_again_later(stage: Stage) -> None:
    stage.day(0)
    answers.snooze(stage.memory, stage.ref(), timedelta(days=3), "vision", "deadline", stage.clock.now())
    stage.days((1, 2))
    assert stage.verbs() == []
    assert stage.case().status is CaseStatus.SNOOZED
    stage.day(3)
    assert stage.verbs() == []
    assert len(stage.mailbox.messages) == 2, "a new notice, and the full grace again"
    stage.day(4)
    assert stage.verbs() == ["stop"]


def test_an_owner_who_starts_the_stopped_machine_ends_the_case(stage: Stage) -> None:
    stage.days((0, 1, 2))
    stage.cloud.start(stage.ref().native_id, "owner")
    stage.day(3)
    assert stage.case().reason.code is ReasonCode.RESTARTED
    assert [saving.ended_at is not None for saving in stage.memory.savings.all()] == [True]


def test_a_protecting_tag_set_during_the_quarantine_ends_the_case(stage: Stage) -> None:
    stage.days((0, 1, 2))
    stage.cloud.tag(stage.ref().native_id, "do-not-delete", "yes", "owner")
    stage.days(range(3, 15))
    assert stage.verbs() == ["stop"]
    assert stage.case().reason.code is ReasonCode.PROTECTED_TAG


def test_somebody_elses_stop_opens_no_case_and_ends_one(stage: Stage) -> None:
    stage.day(0)
    stage.cloud.stop(stage.ref().native_id, "owner")
    stage.days(range(1, 15))
    assert stage.verbs() == []
    assert stage.case().reason.code is ReasonCode.STOPPED_BY_OTHERS


@pytest.mark.parametrize("fault", ["down", "silent"])
def test_an_undelivered_notice_postpones_harm(stage: Stage, fault: str) -> None:
    """A message that did not arrive, or that nothing proves, starts no grace."""
    setattr(stage.mailbox, fault, True)
    stage.days(range(6))
    assert stage.verbs() == []
    assert stage.case().reason.code is ReasonCode.NOTICE_UNDELIVERED


def test_the_grace_counts_from_delivery(stage: Stage) -> None:
    stage.mailbox.down = True
    stage.days((0, 1))
    stage.mailbox.down = False
    stage.day(2)
    stage.at(2 * DAY + timedelta(hours=23))
    assert stage.verbs() == []
    stage.at(3 * DAY + timedelta(hours=2))
    assert stage.verbs() == ["stop"]


def test_a_run_delivered_twice_is_one_run(stage: Stage) -> None:
    stage.day(0)
    again = stage.at(timedelta(0))
    assert again.duplicate
    assert len(stage.mailbox.messages) == 1


def test_a_stop_with_a_lost_answer_is_not_repeated(stage: Stage) -> None:
    stage.day(0)
    stage.executor.fails_after = OutcomeUnknownError("the answer was lost", operation="ec2:StopInstances")
    stage.day(1)
    stage.executor.fails_after = None
    stage.days((2, 3))
    assert stage.verbs() == ["stop"]
    assert stage.case().climbed[-1].verb.value == "warn"


def test_a_terminate_with_a_lost_answer_waits_for_a_person(stage: Stage) -> None:
    stage.days(range(12))
    stage.executor.fails_before = OutcomeUnknownError("the answer was lost", operation="ec2:TerminateInstances")
    stage.day(12)
    stage.executor.fails_before = None
    stage.days(range(13, 30))
    assert stage.verbs().count("terminate") == 1
    assert stage.case().reason.code is ReasonCode.OUTCOME_UNKNOWN


def test_an_unknown_outcome_keeps_its_share_of_the_cap(stage: Stage) -> None:
    """The stop may have taken effect: what it took from the cap of the day is used up."""
    stage.day(0)
    stage.executor.fails_before = OutcomeUnknownError("the answer was lost", operation="ec2:StopInstances")
    stage.day(1)
    assert stage.verbs() == ["stop"]
    assert stage.memory.caps.usage("idle_gpu", "research", stage.clock.now()).actions == 1


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (AccessDeniedError("no ec2:StopInstances"), ReasonCode.PERMISSION_MISSING),
        (RefusedError("IncorrectInstanceState"), ReasonCode.REFUSED_BY_CLOUD),
        (ThrottledError("RequestLimitExceeded"), ReasonCode.REFUSED_BY_CLOUD),
    ],
)
def test_a_refusal_holds_and_gives_the_cap_back(stage: Stage, error: Exception, code: ReasonCode) -> None:
    stage.day(0)
    stage.executor.fails_before = error
    stage.day(1)
    assert stage.case().reason.code is code
    assert stage.memory.caps.usage("idle_gpu", "research", stage.clock.now()).actions == 0
    stage.executor.fails_before = None
    stage.day(2)
    assert stage.verbs() == ["stop", "stop"]
    assert stage.executor.calls[0].action_id != stage.executor.calls[1].action_id


def test_a_snapshot_that_is_throttled_never_leads_to_terminate(stage: Stage) -> None:
    """A famous tool went from a throttled snapshot over a warning to terminate all."""
    stage.days(range(10))
    stage.executor.fails_before = ThrottledError("SnapshotCreationPerVolumeRateExceeded")
    stage.days(range(10, 20))
    assert set(stage.verbs()) == {"stop", "snapshot"}
    assert stage.state() == "stopped"


def test_failed_snapshots_never_lead_to_terminate(tmp_path: Path) -> None:
    broken = idle_machine()
    disks = tuple(replace(disk, snapshots_fail=True) for disk in broken.disks)
    stage = staged(tmp_path, replace(broken, disks=disks))
    stage.days(range(30))
    assert "terminate" not in stage.verbs()
    assert stage.case().status is CaseStatus.HELD
    stage.close()


def test_the_kill_switch_stops_everything(stage: Stage) -> None:
    stage.day(0)
    stage.memory.switch.pause("finops", "audit week", stage.clock.now())
    stage.day(1)
    assert stage.verbs() == []
    stage.memory.switch.resume("finops", "done", stage.clock.now())
    stage.paused_host = True
    stage.day(2)
    assert stage.verbs() == []
    stage.paused_host = False
    stage.day(3)
    assert stage.verbs() == ["stop"]


def test_a_kill_switch_that_cannot_be_read_is_set(stage: Stage) -> None:
    class Broken:
        def state(self) -> object:
            raise LedgerError("cannot be read")

    stage.day(0)
    stage.memory = replace(stage.memory, switch=Broken())  # type: ignore[arg-type]
    stage.day(1)
    assert stage.verbs() == []


def test_enforcing_refuses_a_ledger_that_forgets(tmp_path: Path) -> None:
    stage = staged(tmp_path, ledger="memory:")
    stage.days((0, 1, 2))
    assert stage.verbs() == []
    assert stage.mailbox.messages == []
    stage.close()


def test_a_local_disk_is_lost_only_with_its_owners_approval(tmp_path: Path) -> None:
    stage = staged(tmp_path, idle_machine(kind="g5.xlarge"))
    stage.days((0, 1))
    assert stage.case().reason.code is ReasonCode.APPROVAL_NEEDED
    stage.days((2,))
    assert stage.verbs() == []
    answers.approve(stage.memory, "idle_gpu", str(stage.ref()), "vision", stage.clock.now())
    stage.at(2 * DAY + timedelta(hours=1))
    assert stage.verbs() == ["stop"]
    assert not stage.memory.approvals.use(stage.executor.calls[0].decision_id, stage.clock.now()), "single use"
    stage.close()


def test_its_owner_reads_before_and_when_asked_what_will_be_empty(tmp_path: Path) -> None:
    """A g5.xlarge has 250 GB: the warning promises no date, and the question names the loss."""
    stage = staged(tmp_path, idle_machine(kind="g5.xlarge"))
    stage.days((0, 1))
    warned, asked = (message.text for message in stage.mailbox.messages)
    for text in (warned, asked):
        assert "its 250 GB local disk will be empty" in text
    assert "costguard approve" in asked
    stage.close()


def test_an_approval_is_void_once_its_rule_has_changed(tmp_path: Path) -> None:
    """It is bound to the decision, and so to the digest of the rule."""
    stage = staged(tmp_path, idle_machine(kind="g5.xlarge"))
    stage.days((0, 1))
    answers.approve(stage.memory, "idle_gpu", str(stage.ref()), "vision", stage.clock.now())
    careful = rule(limits=replace(rule().limits, local_disk_approver_above=(usd("0"),)))
    stage.policy_now = lambda: policy(careful)
    stage.at(DAY + timedelta(hours=1))
    assert stage.verbs() == []
    stage.close()


def test_an_approval_expires(tmp_path: Path) -> None:
    stage = staged(tmp_path, idle_machine(kind="g5.xlarge"))
    stage.days((0, 1))
    answers.approve(stage.memory, "idle_gpu", str(stage.ref()), "vision", stage.clock.now())
    stage.at(2 * DAY + timedelta(minutes=1))
    assert stage.verbs() == []
    stage.close()


def test_one_time_spot_is_told_and_never_touched(tmp_path: Path) -> None:
    stage = staged(tmp_path, idle_machine(billing=Billing.SPOT, one_time_spot=True))
    stage.days(range(14))
    assert stage.verbs() == []
    assert stage.case().reason.code is ReasonCode.CANNOT_STOP
    assert len(stage.mailbox.messages) == 1
    stage.close()


def test_one_time_spot_is_terminated_only_where_the_rule_says_so(tmp_path: Path) -> None:
    allowed = rule(limits=replace(rule().limits, unstoppable_may_terminate=True))
    stage = staged(tmp_path, idle_machine(billing=Billing.SPOT, one_time_spot=True), under=policy(allowed))
    stage.days(range(8))
    assert stage.verbs() == []
    stage.days(range(8, 12))
    assert stage.verbs() == ["snapshot", "terminate"]
    stage.close()


def test_caps_hold_over_days_and_runs(tmp_path: Path) -> None:
    fleet = [idle_machine(f"notebook-{n}") for n in range(6)]
    two_a_day = rule(limits=replace(rule().limits, actions_per_day=2))
    stage = staged(tmp_path, *fleet, under=policy(two_a_day))
    stage.day(0)
    stage.day(1)
    stage.at(DAY + timedelta(hours=6))
    assert len(stage.executor.calls) == 2
    stage.at(2 * DAY + timedelta(hours=1))
    assert len(stage.executor.calls) == 4
    stage.close()


def test_work_that_resumes_between_plan_and_call_is_noticed(stage: Stage) -> None:
    """The plan is seconds old; the owner was faster."""
    stage.day(0)
    read = stage.inventory.details

    def details(refs: object) -> object:
        stage.cloud.work(stage.ref().native_id, BUSY)
        stage.clock.advance(timedelta(minutes=2))
        return read(refs)  # type: ignore[arg-type]

    stage.inventory.details = details  # type: ignore[method-assign, assignment]
    stage.day(1)
    assert stage.verbs() == []
    assert stage.case().reason.code is ReasonCode.BUSY


def test_a_rule_that_changes_between_plan_and_call_is_noticed(stage: Stage) -> None:
    stage.day(0)
    stage.policy_now = lambda: policy(rule(limits=replace(rule().limits, local_disk=Consent.KEEP)))
    stage.day(1)
    assert stage.verbs() == []
    assert stage.case().reason.code is ReasonCode.RULE_CHANGED


def test_an_unreadable_region_is_a_gap_and_nothing_is_done_there(stage: Stage) -> None:
    """A famous tool logged it and reported "nothing found"."""
    stage.day(0)

    class Denied:
        def discover(self, target: Target) -> Discovery:
            del target
            return Discovery((stage.ref().shard,))

        def read(self, shard: Shard) -> Inventory:
            return Inventory(shard, (), (Gap(shard, "inventory", GapKind.DENIED, "ec2:DescribeInstances"),))

    stage.reading = replace(stage.reading, inventory=Denied())  # type: ignore[arg-type]
    report = stage.day(1)
    assert report.plan is not None
    assert [gap.kind for gap in report.plan.gaps] == [GapKind.DENIED]
    assert stage.verbs() == []
    assert stage.case().reason.code is ReasonCode.SHARD_INCOMPLETE


def test_a_run_cut_by_its_deadline_acts_on_nothing_it_did_not_read(stage: Stage) -> None:
    stage.day(0)
    stage.clock.advance(DAY)
    report = run_guard(stage.world(), "cut", deadline=START + DAY).report
    assert report.plan is not None
    assert report.plan.gaps[0].kind is GapKind.DEADLINE
    assert stage.verbs() == []


def test_two_machines_do_not_wait_for_each_other(tmp_path: Path) -> None:
    stage = staged(tmp_path, idle_machine("quiet"), idle_machine("loud", does=busy()))
    stage.days((0, 1))
    assert [action.subject for action in stage.executor.calls] == [stage.ref("quiet")]
    stage.close()


def test_a_machine_that_goes_idle_again_gets_a_new_case_and_a_new_notice(tmp_path: Path) -> None:
    on_and_off = idle().then(START + timedelta(hours=12), BUSY).then(START + timedelta(hours=30), IDLE)
    stage = staged(tmp_path, idle_machine(does=on_and_off))
    stage.days((0, 1, 2, 3))
    assert stage.verbs() == []
    assert len(stage.mailbox.messages) == 3, "warned, told that it was let go, warned again"
    stage.day(4)
    assert stage.verbs() == ["stop"]
    stage.close()


def test_money_caps_and_share_are_taken_together(tmp_path: Path) -> None:
    tenth = rule(limits=replace(rule().limits, fleet_share_per_day=Decimal("0.1")))
    stage = staged(tmp_path, *(idle_machine(f"n-{n}") for n in range(5)), under=policy(tenth))
    stage.days((0, 1))
    assert len(stage.executor.calls) == 1
    stage.close()


def test_a_switch_set_in_the_middle_of_a_run_stops_the_rest_of_it(tmp_path: Path) -> None:
    stage = staged(tmp_path, idle_machine("first"), idle_machine("second"))
    stage.day(0)
    execute = stage.executor.inner.execute

    def then_pause(action: Action) -> Receipt:
        stage.memory.switch.pause("finops", "stop now", stage.clock.now())
        return execute(action)

    stage.executor.inner.execute = then_pause  # type: ignore[method-assign]
    stage.day(1)
    assert len(stage.executor.calls) == 1
    stage.close()


def test_two_runs_with_the_same_plan_call_once(stage: Stage) -> None:
    stage.day(0)
    stage.clock.advance(DAY)
    world = stage.world()
    first, second = plan_guard(world, "run-a").plan, plan_guard(world, "run-b").plan
    assert first.due
    assert second.due
    carry_out(world, first)
    carry_out(world, second)
    assert stage.verbs() == ["stop"]


@pytest.mark.parametrize("moment", ["fails_before", "fails_after"])
def test_a_crash_around_the_call_is_resolved_by_looking(stage: Stage, moment: str) -> None:
    """Nothing says whether the call went out: the next runs look, and never have two effects in doubt."""
    stage.day(0)
    setattr(stage.executor, moment, RuntimeError("the process died"))
    with pytest.raises(RuntimeError):
        stage.day(1)
    setattr(stage.executor, moment, None)
    stage.at(DAY + timedelta(minutes=5))
    assert stage.verbs() == ["stop"], "too early to know"
    stage.days((2, 3))
    stopped_once = ["stop"] if moment == "fails_after" else ["stop", "stop"]
    assert stage.verbs() == stopped_once
    stage.day(4)
    assert stage.state() == "stopped"
    assert stage.verbs() == stopped_once


def test_a_crash_between_claim_and_intent_loses_nothing(stage: Stage) -> None:
    stage.day(0)
    claim = stage.memory.intents.claim

    def dies(*_: object) -> bool:
        raise RuntimeError("the process died")

    stage.memory.intents.claim = dies  # type: ignore[method-assign, assignment]
    with pytest.raises(RuntimeError):
        stage.day(1)
    stage.memory.intents.claim = claim  # type: ignore[method-assign]
    stage.days((2, 3))
    assert stage.verbs() == ["stop"]


def test_a_cap_used_up_by_another_run_is_seen_when_reserving(stage: Stage) -> None:
    """The plan saw room; another run took it first."""
    stage.day(0)
    stage.clock.advance(DAY)
    plan = plan_guard(stage.world(), "run-a").plan
    for n in range(10):
        stage.memory.caps.reserve(
            "idle_gpu",
            "research",
            f"other-{n}",
            usd("1"),
            max_actions=10,
            max_hourly=(usd("1000"),),
            now=stage.clock.now(),
        )
    limits = tuple(replace(limit, max_actions=10) for limit in plan.limits)
    carry_out(stage.world(), replace(plan, limits=limits))
    assert stage.verbs() == []
    assert stage.case().reason.code is ReasonCode.CAP_ACTIONS


def test_a_snapshot_deleted_between_plan_and_call_is_noticed(stage: Stage) -> None:
    stage.days(range(12))
    read, reads = stage.inventory.details, []

    def details(refs: Sequence[ResourceRef]) -> Mapping[ResourceRef, InstanceDetail]:
        reads.append(refs)
        found = read(refs)
        gone = len(reads) > 1  # the plan still saw them
        return {ref: replace(one, snapshots=()) if gone else one for ref, one in found.items()}

    stage.inventory.details = details  # type: ignore[method-assign]
    stage.day(12)
    assert "terminate" not in stage.verbs()
    assert stage.case().reason.code is ReasonCode.SNAPSHOT_MISSING


def test_an_action_whose_intent_exists_is_never_called(stage: Stage) -> None:
    """Whoever wrote the intent may have called: only looking tells."""
    stage.day(0)
    stage.clock.advance(DAY)
    plan = plan_guard(stage.world(), "run-a").plan
    assert stage.memory.intents.claim(plan.due[0], "another run", stage.clock.now())
    carry_out(stage.world(), plan)
    assert stage.verbs() == []


def _snoozes(stage: Stage) -> None:
    answers.snooze(stage.memory, stage.ref(), DAY, "vision", "still needed", stage.clock.now())


def _tags(stage: Stage) -> None:
    stage.cloud.tag(stage.ref().native_id, "do-not-stop", "yes", "owner")


def _restarts(stage: Stage) -> None:
    machine = stage.cloud.machines[stage.ref().native_id]
    machine.launched_at = stage.clock.now()
    machine.operations += 1  # what the clouds that tell no time of a start show instead


@pytest.mark.parametrize(
    ("owner", "code"),
    [(_snoozes, ReasonCode.SNOOZED), (_tags, ReasonCode.PROTECTED_TAG), (_restarts, ReasonCode.RESTARTED)],
)
def test_an_owner_who_answers_between_plan_and_call_is_heard(
    stage: Stage, owner: Callable[[Stage], None], code: ReasonCode
) -> None:
    stage.day(0)
    stage.clock.advance(DAY)
    plan = plan_guard(stage.world(), "run-a").plan
    assert plan.due
    owner(stage)
    carry_out(stage.world(), plan)
    assert stage.verbs() == []
    assert stage.case().reason.code is code


def test_nobody_is_promised_a_stop_that_a_local_disk_forbids(tmp_path: Path) -> None:
    """A date in a notice is a promise; without leave to lose the disk nothing will follow it."""
    stage = staged(tmp_path, idle_machine(kind="g5.xlarge"))
    stage.day(0)
    assert [title for title in stage.mailbox.titles if "will be stopped" in title] == []
    assert "notebook is idle" in stage.mailbox.titles[0]
    stage.close()


def test_the_last_notice_still_knows_the_machines_name(stage: Stage) -> None:
    stage.days(range(14))
    assert stage.mailbox.titles[-1].startswith("notebook was terminated")


def test_the_figures_of_a_run_count_notices_as_done_only_when_they_arrived(stage: Stage) -> None:
    stage.mailbox.down = True
    lost = summary(stage.day(0))
    assert (lost["due"], lost["done"], lost["not_done"]) == (1, 0, 1)
    stage.mailbox.down = False
    stage.days((1, 2))
    stopped = summary(stage.day(3))
    assert (stopped["due"], stopped["done"], stopped["not_done"]) == (1, 1, 0)


@pytest.mark.parametrize("consent", [Consent.KEEP, Consent.ASK])
def test_an_owner_is_told_once_what_bars_the_stop(tmp_path: Path, consent: Consent) -> None:
    careful = rule(limits=replace(rule().limits, local_disk=consent))
    stage = staged(tmp_path, idle_machine(kind="g5.xlarge"), under=policy(careful))
    stage.days(range(6))
    assert len(stage.mailbox.messages) == 2, "that it is idle, and what bars its stop"
    assert ("costguard approve" in stage.mailbox.messages[1].text) is (consent is Consent.ASK)
    stage.close()


@pytest.mark.parametrize(("days", "verb"), [(1, "stop"), (12, "terminate")])
def test_a_run_that_overlaps_a_claim_leaves_it_alone(stage: Stage, days: int, verb: str) -> None:
    """Between claim and intent nothing is written yet; that another run sees no intent does not mean none will come."""
    stage.days(range(days))
    claim = stage.memory.intents.claim

    def meanwhile(*given: Any) -> bool:
        stage.memory.intents.claim = claim  # type: ignore[method-assign]
        run_guard(stage.world(), "the other run")
        return claim(*given)

    stage.memory.intents.claim = meanwhile  # type: ignore[method-assign, assignment]
    stage.day(days)
    assert stage.case().decision_id == stage.executor.calls[-1].decision_id
    stage.days((days + 1, days + 2))
    assert stage.verbs().count(verb) == 1
    assert stage.case().reason.code not in {ReasonCode.STOPPED_BY_OTHERS, ReasonCode.VANISHED}


def test_a_switch_set_while_acting_also_stops_the_notices(tmp_path: Path) -> None:
    stage = staged(tmp_path, idle_machine("first"), idle_machine("second", launched_at=START - timedelta(hours=10)))
    stage.day(0)
    told = len(stage.mailbox.messages)
    execute = stage.executor.inner.execute

    def then_pause(action: Action) -> Receipt:
        stage.memory.switch.pause("finops", "stop now", stage.clock.now())
        return execute(action)

    stage.executor.inner.execute = then_pause  # type: ignore[method-assign]
    stage.day(1)
    assert stage.verbs() == ["stop"]
    assert len(stage.mailbox.messages) == told
    stage.close()


def test_a_case_that_moved_after_its_claim_is_not_called(stage: Stage) -> None:
    """The intent is written only while the case is still at the version it was claimed at."""
    stage.day(0)
    claim = stage.memory.intents.claim

    def moved(*given: Any) -> bool:
        current = stage.case()
        stage.memory.cases.commit(current, replace(current, owner="somebody else"))
        return claim(*given)

    stage.memory.intents.claim = moved  # type: ignore[method-assign, assignment]
    stage.day(1)
    assert stage.verbs() == []


@pytest.mark.parametrize("word", ["snooze", "pause"])
def test_a_word_spoken_after_the_last_look_is_in_time_until_the_intent_stands(stage: Stage, word: str) -> None:
    stage.day(0)
    claim = stage.memory.intents.claim

    def meanwhile(*given: Any) -> bool:
        stage.memory.intents.claim = claim  # type: ignore[method-assign]
        now = stage.clock.now()
        if word == "snooze":
            answers.snooze(stage.memory, stage.ref(), DAY, "vision", "still needed", now)
        else:
            stage.memory.switch.pause("operator", "look first", now)
        return claim(*given)

    stage.memory.intents.claim = meanwhile  # type: ignore[method-assign, assignment]
    report = stage.day(1)
    assert stage.verbs() == []
    assert [result.reason.code for result in report.results if result.reason] == [ReasonCode.CHANGED_SINCE_PLAN]
    assert stage.memory.caps.usage("idle_gpu", "research", stage.clock.now()).actions == 0
    assert stage.case().phase is Phase.WAITING
