"""The doctor over a world without wires: what it asks, what it leaves alone, and what it makes of the answers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

import pytest
from tests.builders import DAY, NOW, case, policy, rule
from tests.world_ports.inventory import WorldInventory, WorldPrices, WorldSignals
from tests.world_ports.trail import WorldAuditLog
from tests.world_ports.translate import to_product

from cloudstand.clock import MovedClock
from cloudstand.fleets import EAST, PRODUCT, RESEARCH, WEST, alibaba_machine, aws_machine
from cloudstand.world import workload as does
from cloudstand.world.cloud import World
from cloudstand.world.fleet import MachineSpec
from cloudstand.world.records import Operation
from costguard.adapters.ledgers import open_ledger
from costguard.domain.actions import Action, Verb
from costguard.domain.errors import AccessDeniedError, LedgerError, OutcomeUnknownError, ProviderError, UnavailableError
from costguard.domain.refs import Deployment, ResourceRef, Shard
from costguard.domain.resources import Gap, Instance, InstanceDetail, Inventory
from costguard.engine.doctor.doctor import Practice, examine_ledger, examine_policy, examine_switch, examine_targets
from costguard.engine.ledger.memory import Memory
from costguard.engine.run.scan import CloudReaders
from costguard.guards.rules.idle import SHIPPED_BOUNDS
from costguard.ports import Caller, Discovery, Permit, Record, Result, Target
from costguard.report.doctor.checks import Code, DoctorCheck, DoctorQuestion

AWS, ALIBABA = Target("aws", RESEARCH), Target("alibaba", "1234567890123456")
LAUNCHED = NOW - 10 * DAY


@dataclass
class Desk:
    """A preflight that answers as it was told, and remembers what it was asked."""

    caller_is: Caller | ProviderError = field(default_factory=lambda: Caller("aws", RESEARCH, "ops"))
    skew: timedelta | ProviderError | None = timedelta(seconds=1)
    answers: Callable[[Shard], Sequence[Permit]] = lambda shard: [
        Permit(shard, "a:Look", allowed=True, feature="inventory")
    ]
    asked: list[tuple[Shard, tuple[str, ...], bool]] = field(default_factory=list)

    def caller(self) -> Caller:
        if isinstance(self.caller_is, ProviderError):
            raise self.caller_is
        return self.caller_is

    def permits(self, shard: Shard, instances: Sequence[Instance], *, acting: bool) -> Sequence[Permit]:
        self.asked.append((shard, tuple(instance.name for instance in instances), acting))
        return self.answers(shard)

    def clock_skew(self) -> timedelta | None:
        if isinstance(self.skew, ProviderError):
            raise self.skew
        return self.skew


@dataclass
class InTurn:
    """`Workers` that do one task after another: a world is made for one thread. `begun` counts tasks at a time."""

    begun: list[int] = field(default_factory=list)

    def each(self, tasks: Sequence[Callable[[], Result]]) -> Iterator[tuple[int, Result]]:
        self.begun.append(len(tasks))
        return ((place, task()) for place, task in enumerate(tasks))


@pytest.fixture
def memory() -> Iterator[Memory]:
    store = open_ledger("memory:")
    yield Memory.over(store)
    store.close()


def machine(name: str, **more: object) -> MachineSpec:
    return aws_machine(name, "g5g.xlarge", does.idle(), LAUNCHED, **more)  # type: ignore[arg-type]


FLEET = (
    machine("first"),
    machine("protected", protections=("termination_protection",), tags={"keep": "yes"}),
    machine("west", region=WEST),
    machine("product", account=PRODUCT),
)


def practice(fleet: Sequence[MachineSpec], desks: Mapping[str, Desk], **changes: object) -> tuple[Practice, World]:
    clock, world = MovedClock(NOW), World(fleet, NOW)
    reading = CloudReaders(WorldInventory(world, clock), WorldSignals(world, clock), WorldPrices(world))
    ordinary = Practice(
        policy=policy(),
        targets=(AWS,),
        readings=dict.fromkeys(desks, reading),
        preflights=desks,
        memory=None,
        clock=clock,
        workers=InTurn(),
    )
    return replace(ordinary, **changes), world  # type: ignore[arg-type]


def answers(checks: Sequence[DoctorCheck]) -> dict[tuple[str, DoctorQuestion], Code]:
    return {(check.target, check.question): check.code for check in checks}


def test_a_role_is_named_only_where_it_is_entered() -> None:
    """The role of all guarded accounts is none of the account that the credentials belong to."""
    desk = Desk()
    common = Target("aws", desk.caller().account, role="of-members", common_role=True)
    targets = (common, replace(common, common_role=False), replace(common, account="999988887777"))
    world, _ = practice(FLEET, {"aws": desk}, targets=targets)
    told = [check.facts["role"] for check in examine_targets(world) if check.question is DoctorQuestion.CALLER]
    assert told == ["", "of-members", "of-members"]


def only(checks: Sequence[DoctorCheck], question: DoctorQuestion) -> DoctorCheck:
    (found,) = (check for check in checks if check.question is question)
    return found


def test_every_target_is_asked_every_question_and_each_cloud_its_time_once() -> None:
    fleet = (*FLEET, alibaba_machine("hangzhou", does.idle(), LAUNCHED))
    desks = {"aws": Desk(), "alibaba": Desk(Caller("alibaba", "1234567890123456", "ops"))}
    targets = (AWS, Target("aws", PRODUCT), ALIBABA)

    found = answers(examine_targets(practice(fleet, desks, targets=targets)[0]))

    names = (f"aws:{RESEARCH}", f"aws:{PRODUCT}", "alibaba:1234567890123456")
    of_targets = (
        (DoctorQuestion.CALLER, Code.CALLER_KNOWN),
        (DoctorQuestion.REGIONS, Code.REGIONS_ANSWER),
        (DoctorQuestion.PERMISSIONS, Code.PERMISSIONS_GRANTED),
        (DoctorQuestion.MEASURED, Code.MEASURED_ALL),
        (DoctorQuestion.RECLAIM, Code.RECLAIM_KNOWN),
        (DoctorQuestion.OTHER_DEPLOYMENT, Code.OTHER_NOT_SEEN),
    )
    assert found == {
        **{(name, question): code for name in names for question, code in of_targets},
        ("aws", DoctorQuestion.CLOCK): Code.CLOCK_RIGHT,
        ("alibaba", DoctorQuestion.CLOCK): Code.CLOCK_RIGHT,
    }


def test_changes_are_asked_about_machines_that_a_rule_may_touch_and_no_others() -> None:
    desk = Desk()

    examine_targets(practice(FLEET, {"aws": desk})[0])

    assert sorted(desk.asked) == [
        (Shard("aws", RESEARCH, WEST), ("west",), True),
        (Shard("aws", RESEARCH, EAST), ("first",), True),
    ]


def test_the_shards_of_a_target_are_read_asked_and_looked_at_side_by_side() -> None:
    workers = InTurn()
    steps: list[tuple[int, int]] = []

    examine_targets(
        practice(FLEET, {"aws": Desk()}, workers=workers, progress=lambda done, every, _: steps.append((done, every)))[
            0
        ]
    )

    signals_and_prices = 2
    assert workers.begun == [2, signals_and_prices, signals_and_prices, 2, 2]
    assert steps == [(1, 2), (2, 2)] * 2


def test_of_an_account_without_machines_one_region_is_asked() -> None:
    desk = Desk()
    world = practice((machine("elsewhere", account=PRODUCT),), {"aws": desk})[0]
    empty = Empty([Shard("aws", RESEARCH, EAST), Shard("aws", RESEARCH, WEST)])

    reading = replace(world.readings["aws"], inventory=empty)
    found = examine_targets(replace(world, readings={"aws": reading}))

    assert [(shard.region, names) for shard, names, _ in desk.asked] == [(WEST, ())]  # the first by name
    assert only(found, DoctorQuestion.MEASURED).code is Code.MEASURED_NOTHING_RUNS


class Empty:
    """An inventory of regions in which nothing stands."""

    def __init__(self, shards: Sequence[Shard]) -> None:
        self._shards = tuple(shards)

    def discover(self, *_: object, **__: object) -> Discovery:
        return Discovery(self._shards)

    def read(self, shard: Shard) -> Inventory:
        return Inventory(shard, ())

    def details(self, refs: Sequence[ResourceRef]) -> Mapping[ResourceRef, InstanceDetail]:
        assert not refs
        return {}

    def protections(self, ref: ResourceRef, wanted: Collection[str]) -> tuple[str, ...]:
        raise NotImplementedError(ref, wanted)


def test_with_refused_credentials_nothing_more_is_asked_of_that_cloud_but_its_time() -> None:
    desk = Desk(AccessDeniedError("SignatureDoesNotMatch"), skew=timedelta(hours=1))

    found = examine_targets(practice(FLEET, {"aws": desk})[0])

    assert [check.code for check in found] == [Code.CALLER_REFUSED, Code.CLOCK_WRONG]
    assert desk.asked == []


def test_a_clock_that_cannot_be_asked_is_untold() -> None:
    found = examine_targets(practice(FLEET, {"aws": Desk(skew=UnavailableError("down"))})[0])

    assert only(found, DoctorQuestion.CLOCK).code is Code.CLOCK_UNTOLD


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (UnavailableError("down", operation="a:Look"), Code.PERMISSIONS_UNREAD),
        (OutcomeUnknownError("may have taken effect"), Code.PERMISSIONS_UNSAFE),
    ],
)
def test_a_shard_that_cannot_be_asked_does_not_hide_the_others(error: ProviderError, code: Code) -> None:
    def told(shard: Shard) -> Sequence[Permit]:
        if shard.region == WEST:
            raise error
        return [Permit(shard, "a:Look", allowed=True, feature="inventory")]

    check = only(examine_targets(practice(FLEET, {"aws": Desk(answers=told)})[0]), DoctorQuestion.PERMISSIONS)

    assert check.code is code
    assert check.facts["operations"] == 1


def copied_by(memory: Memory | None, world: World, decision: str) -> None:
    """A stopped machine whose disk a Costguard copied; with `memory`, the one that keeps this ledger."""
    subject = next(one for one in world.machines.values() if one.spec.name == "first").spec.ref
    world.stop(subject.native_id, "costguard")
    (volume,) = world.volumes_of(subject.native_id)
    world.create_snapshot(volume.native_id, "costguard", decision_id=decision)
    if memory is not None:
        opened = memory.cases.commit(None, case(subject=subject))
        copy = Action(
            "a", decision, Verb.SNAPSHOT, to_product(subject), to_product(subject), "e", opened.case_id, 1, "r", "d"
        )
        assert memory.intents.claim(copy, "run-1", NOW)


def test_snapshots_of_this_ledgers_decisions_are_no_stranger(memory: Memory) -> None:
    looked, world = practice(FLEET, {"aws": Desk()}, memory=memory)
    copied_by(memory, world, "decision-1")

    check = only(examine_targets(looked), DoctorQuestion.OTHER_DEPLOYMENT)

    assert check.code is Code.OTHER_NOT_SEEN
    assert check.facts == {"machines": 3, "machines_in_all": 3, "snapshots": 1, "marked": 1, "unknown": 0}


def test_a_snapshot_of_a_decision_this_ledger_never_made_is_another_deployments(memory: Memory) -> None:
    looked, world = practice(FLEET, {"aws": Desk()}, memory=memory)
    copied_by(memory, world, "decision-1")
    copied_by(None, world, "decision-of-others")

    check = only(examine_targets(looked), DoctorQuestion.OTHER_DEPLOYMENT)

    assert check.code is Code.OTHER_SEEN
    assert (check.facts["marked"], check.facts["unknown"]) == (2, 1)
    assert [detail.said for detail in check.details] == ["decision-of-others"]


def test_without_a_ledger_to_ask_marked_snapshots_are_untold() -> None:
    looked, world = practice(FLEET, {"aws": Desk()}, memory=None)
    copied_by(None, world, "decision-1")

    assert only(examine_targets(looked), DoctorQuestion.OTHER_DEPLOYMENT).code is Code.OTHER_UNREAD


def test_a_ledger_that_fails_leaves_untold_whose_snapshots_they_are() -> None:
    looked, world = practice(FLEET, {"aws": Desk()}, memory=Memory.over(Broken()))
    copied_by(None, world, "decision-1")

    assert only(examine_targets(looked), DoctorQuestion.OTHER_DEPLOYMENT).code is Code.OTHER_UNREAD


def test_machines_that_cannot_be_looked_at_closely_are_untold() -> None:
    looked, world = practice(FLEET, {"aws": Desk()})

    class FarSighted(WorldInventory):
        def details(self, *_: object, **__: object) -> Mapping[ResourceRef, InstanceDetail]:
            message = "denied"
            raise AccessDeniedError(message, operation="ec2:DescribeSnapshots")

    reading = replace(looked.readings["aws"], inventory=FarSighted(world, looked.clock))

    check = only(examine_targets(replace(looked, readings={"aws": reading})), DoctorQuestion.OTHER_DEPLOYMENT)

    assert check.code is Code.OTHER_UNREAD
    said = check.details[0].said
    assert isinstance(said, Gap)
    assert "ec2:DescribeSnapshots" in said.fix


class Broken:
    """A store whose server is gone."""

    durable = True

    def get(self, *_: object, **__: object) -> Record | None:
        raise LedgerError("the server is gone")

    def get_many(self, *_: object, **__: object) -> dict[str, Record]:
        raise LedgerError("the server is gone")

    def get_each(self, *_: object, **__: object) -> dict[tuple[str, str], Record]:
        raise LedgerError("the server is gone")

    def put(self, *_: object, **__: object) -> Record:
        raise AssertionError("the doctor writes nothing")

    def query(self, *_: object, **__: object) -> Iterator[Record]:
        raise LedgerError("the server is gone")

    def transact(self, *_: object, **__: object) -> None:
        raise AssertionError("the doctor writes nothing")

    def close(self) -> None:
        """Nothing to release."""


def test_the_ledger_is_read_as_a_run_would_read_it(memory: Memory) -> None:
    memory.runs.begin("run-1", "idle_gpu", NOW)
    memory.cases.commit(None, case())

    check = examine_ledger(memory, "memory")

    assert check.code is Code.LEDGER_FORGETFUL
    assert (check.facts["cases"], check.facts["latest_run"]) == (1, NOW.isoformat())
    assert examine_switch(memory, host_paused=False).code is Code.SWITCH_OPEN


def test_a_ledger_that_does_not_answer_takes_its_switch_with_it() -> None:
    gone, closed = Memory.over(Broken()), LedgerError("cannot be opened")

    assert examine_ledger(gone, "postgresql").code is Code.LEDGER_UNUSABLE
    assert examine_switch(gone, host_paused=False).code is Code.SWITCH_UNREADABLE
    assert examine_ledger(closed, "sqlite").code is Code.LEDGER_UNUSABLE
    assert examine_switch(closed, host_paused=True).code is Code.SWITCH_UNREADABLE


@pytest.mark.parametrize("kind", ["case", "run_latest", "switch"])
def test_a_record_of_a_newer_costguard_bars(memory: Memory, kind: str) -> None:
    keys = {"case": "idle_gpu/x", "run_latest": "idle_gpu", "switch": "all"}
    memory.store.put(Record(kind, keys[kind], {"paused": False}, schema=99), 0)

    assert examine_ledger(memory, "sqlite").code is Code.LEDGER_NEWER


def test_the_policys_own_remarks_are_told() -> None:
    looked, _ = practice(FLEET, {"aws": Desk()})
    assert examine_policy(looked).code is Code.POLICY_NO_CALENDAR
    looked = replace(looked, policy=policy(every_hour_counts=True))

    assert examine_policy(looked).code is Code.POLICY_REMARKED
    assert any("names neither CPU nor network" in str(detail.said) for detail in examine_policy(looked).details)

    whole = replace(looked, policy=policy(rule(idle=SHIPPED_BOUNDS), every_hour_counts=True))
    assert examine_policy(whole).code is Code.POLICY_ENFORCES


@pytest.mark.parametrize(
    ("leading", "code"),
    [
        ("", Code.OTHER_WORKS),
        ("platform-eu", Code.OTHER_WORKS),
        ("research", Code.OTHER_LED),
    ],
)
def test_another_deployment_bars_until_this_one_is_named_as_leading(leading: str, code: Code) -> None:
    """By the mark that it left in the audit log; what the doctor itself asks leaves none."""
    asked, world = practice(FLEET, {"aws": Desk()}, deployment=Deployment("research", "00000001"))
    doctor = WorldAuditLog(world, MovedClock(NOW))
    asked = replace(asked, trails={"aws": doctor}, policy=policy(leading_deployment=leading))
    shard = world.fleet[0].ref.shard

    def answer() -> DoctorCheck:
        return next(each for each in examine_targets(asked) if each.question is DoctorQuestion.OTHER_DEPLOYMENT)

    assert answer().code is answer().code is Code.OTHER_NOT_SEEN
    WorldAuditLog(world, MovedClock(NOW), "costguard-platform-eu-1a2b3c4d").deployments(to_product(shard), NOW - DAY)
    found = answer()
    assert (found.code, found.facts["others"]) == (code, "platform-eu (1a2b3c4d)")


def test_an_audit_log_that_cannot_be_read_is_a_warning() -> None:
    asked, world = practice(FLEET[:2], {"aws": Desk()}, deployment=Deployment("research", "00000001"))
    asked = replace(asked, trails={"aws": WorldAuditLog(world, MovedClock(NOW))})
    world.deny("aws", RESEARCH, Operation.TRAIL)

    found = next(each for each in examine_targets(asked) if each.question is DoctorQuestion.OTHER_DEPLOYMENT)

    assert (found.code, len(found.details)) == (Code.OTHER_LOG_UNREAD, 1)
