"""The demo's twelve days, lived by the real engine over the world's own ports: what it promises is what happens."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from tests.world_ports.inventory import WorldExecutor, WorldInventory, WorldPrices, WorldSignals
from tests.world_ports.setting import BareWorld

from cloudstand.demo.fleet import demo_fleet
from costguard.adapters.ledgers.open import open_ledger
from costguard.cli.demo.story import EVENTS, Buttons, demo_policy, live
from costguard.domain.answers import AnswerCode
from costguard.domain.findings import Verdict
from costguard.domain.reasons import ReasonCode
from costguard.domain.refs import ResourceRef
from costguard.engine.answers import answers
from costguard.engine.ledger.memory import Memory
from costguard.engine.run.run import RunReport, run_guard
from costguard.engine.run.run_context import RunContext
from costguard.engine.run.scan import CloudReaders
from costguard.policy.documents.loader import load_policy
from costguard.ports import Delivery, Message, Target

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=timezone.utc)


class Delivered:
    """A notifier that always delivers."""

    def send(self, message: Message) -> Delivery:
        return Delivery(f"ts-{message.channel}-{hash(message.text)}")

    def edit(self, receipt: str, message: Message) -> bool:  # noqa: ARG002 - nothing can be changed here
        return False

    def capacity(self, message: Message) -> int:
        return max(1, len(message.parts))


class Demo(BareWorld):
    """The demo's fleet and policy, without wires."""

    def __init__(self, folder: Path) -> None:
        super().__init__(demo_fleet(NOW), NOW)
        self.memory = Memory.over(open_ledger(f"sqlite:///{folder / 'ledger.db'}"))
        self.policy = load_policy(demo_policy())
        self.names = {spec.native_id: spec.name for spec in self.world.fleet}
        self.days: list[RunReport] = []

    def run_day(self, now: datetime) -> RunReport:
        inventory = WorldInventory(self.world, self.clock)
        reading = CloudReaders(inventory, WorldSignals(self.world, self.clock), WorldPrices(self.world))
        surroundings = RunContext(
            guard="idle_gpu",
            policy=self.policy,
            targets=(Target("aws", organisation=True),),
            readings={"aws": reading},
            executors={"aws": WorldExecutor(self.world, self.clock)},
            memory=self.memory,
            notifier=Delivered(),
            clock=self.clock,
            policy_now=lambda: self.policy,
        )
        return run_guard(surroundings, f"day-{now.isoformat()}").report

    def snooze(self, subject: ResourceRef, length: timedelta) -> None:
        answers.snooze(self.memory, subject, length, "speech", "the ablation table is not done", self.clock.now())

    def start(self, subject: ResourceRef) -> None:
        told = answers.start(self.memory, "idle_gpu", str(subject), "search", self.clock.now(), self.policy)
        assert told.weighed.code is AnswerCode.START_ASKED

    def done_to(self, name: str) -> list[tuple[int, str]]:
        """The days on which costguard acted on a machine, and how."""
        return [
            ((event.at - NOW).days, event.what)
            for event in self.world.history
            if event.by == "costguard" and self.names.get(event.machine) == name
        ]

    def verdicts(self, day: int) -> dict[str, tuple[Verdict, ReasonCode]]:
        plan = self.days[day].plan
        assert plan is not None
        return {
            self.names[finding.subject.native_id]: (finding.verdict, finding.reason.code)
            for finding in plan.findings
            if isinstance(finding.subject, ResourceRef)
        }

    def held(self, day: int) -> dict[str, ReasonCode]:
        plan = self.days[day].plan
        assert plan is not None
        return {self.names[held.action.subject.native_id]: held.reason.code for held in plan.held}


HERE = tuple(event for event in EVENTS if "presses Approve" not in event.text)
"""All but the approvals: they need a run that asks for them first, and here nobody is asked."""


def _nobody(machine: ResourceRef) -> None:
    raise AssertionError(machine)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    story = Demo(tmp_path_factory.mktemp("demo"))
    buttons = Buttons(story.snooze, _nobody, story.start)
    story.days = [day.result for day in live(story, story.run_day, buttons, events=HERE)]
    yield story
    story.memory.store.close()


def test_one_machine_walks_the_whole_ladder(demo: Demo) -> None:
    days = demo.done_to("thesis-notebook")
    assert [what for _, what in days] == ["stop", "create_snapshot", "create_snapshot", "terminate"]
    assert days[0][0] == 1
    assert days[-1][0] - days[0][0] >= 7
    assert days[-1][0] <= 12


def test_what_is_terminated_was_copied_whole_and_after_its_stop(demo: Demo) -> None:
    ended = {event.machine for event in demo.world.history if event.what == "terminate"}
    for native_id in ended:
        events = [event for event in demo.world.history if event.machine == native_id]
        kinds = [event.what for event in events]
        copied = {copy.volume for copy in demo.world.snapshots.values() if copy.machine == native_id}
        assert len(copied) == len(demo.world.machines[native_id].spec.disks)
        assert kinds.index("stopped") < kinds.index("create_snapshot")
        assert kinds.count("snapshot_completed") == len(copied)
        assert kinds.index("terminate") > max(index for index, what in enumerate(kinds) if what == "snapshot_completed")


def test_an_owner_saves_a_machine_just_in_time(demo: Demo) -> None:
    assert demo.verdicts(1)["ablation-runs"] == (Verdict.VIOLATION, ReasonCode.IDLE)
    assert demo.done_to("ablation-runs") == []


def test_a_machine_that_comes_back_to_life_is_left_alone(demo: Demo) -> None:
    assert demo.verdicts(2)["nightly-eval"] == (Verdict.VIOLATION, ReasonCode.IDLE)
    assert demo.verdicts(3)["nightly-eval"] == (Verdict.COMPLIANT, ReasonCode.BUSY)
    assert demo.done_to("nightly-eval") == []


def test_a_stopped_machine_may_be_started_again(demo: Demo) -> None:
    assert [what for _, what in demo.done_to("staging-inference")] == ["stop", "start"]
    assert demo.verdicts(12)["staging-inference"] == (Verdict.COMPLIANT, ReasonCode.BUSY)


def test_day_one_says_of_each_machine_what_it_is(demo: Demo) -> None:
    assert demo.verdicts(0) == {
        "thesis-notebook": (Verdict.VIOLATION, ReasonCode.IDLE),
        "ablation-runs": (Verdict.COMPLIANT, ReasonCode.BUSY),
        "nightly-eval": (Verdict.COMPLIANT, ReasonCode.BUSY),
        "pretraining-a": (Verdict.COMPLIANT, ReasonCode.BUSY),
        "simulation-gpu-bound": (Verdict.COMPLIANT, ReasonCode.BUSY),
        "paper-demo": (Verdict.EXEMPT, ReasonCode.PROTECTED_TAG),
        "shared-login-node": (Verdict.VIOLATION, ReasonCode.IDLE),
        "cluster-trial": (Verdict.COMPLIANT, ReasonCode.PARTLY_IDLE),
        "staging-inference": (Verdict.VIOLATION, ReasonCode.IDLE),
        "batch-transcoder": (Verdict.VIOLATION, ReasonCode.IDLE),
        "recommendations": (Verdict.COMPLIANT, ReasonCode.BUSY),
        "nightly-report": (Verdict.COMPLIANT, ReasonCode.BUSY),
        "legacy-ocr": (Verdict.UNMEASURED, ReasonCode.NO_DEVICE_METRIC),
        "translation-canary": (Verdict.UNMEASURED, ReasonCode.LOW_COVERAGE),
        "fresh-experiment": (Verdict.UNMEASURED, ReasonCode.TOO_YOUNG),
        "embedding-service": (Verdict.UNMEASURED, ReasonCode.NO_DEVICE_METRIC),
        "asg-inference-7": (Verdict.EXEMPT, ReasonCode.AUTOSCALED),
        "eks-gpu-node-2": (Verdict.EXEMPT, ReasonCode.KUBERNETES),
        "spot-worker": (Verdict.VIOLATION, ReasonCode.IDLE),
        "reserved-capacity": (Verdict.EXEMPT, ReasonCode.RESERVED),
        "trainium-pilot": (Verdict.UNMEASURED, ReasonCode.NO_DEVICE_METRIC),
    }


def test_hands_are_kept_off_and_the_reason_is_told(demo: Demo) -> None:
    assert demo.held(5) == {
        "batch-transcoder": ReasonCode.APPROVAL_NEEDED,
        "shared-login-node": ReasonCode.PROTECTED_BY_CLOUD,
    }
    touched = {demo.names[event.machine] for event in demo.world.history if event.by == "costguard"}
    assert touched == {"thesis-notebook", "staging-inference"}
