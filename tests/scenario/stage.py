"""A stage for stories: a fleet, its owners, a clock that is moved, and the real engine between them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

from tests.builders import policy
from tests.world_ports.inventory import (
    WorldExecutor,
    WorldInventory,
    WorldKeepTagger,
    WorldPrices,
    WorldSignals,
)
from tests.world_ports.translate import to_product

from cloudstand.clock import MovedClock
from cloudstand.fleets import alibaba_machine, aws_machine, tencent_machine
from cloudstand.world import workload
from cloudstand.world.cloud import World as Cloud
from cloudstand.world.fleet import MachineSpec
from cloudstand.world.money import Money
from costguard.adapters.ledgers.open import open_ledger
from costguard.cases import Case
from costguard.domain.actions import Action, Receipt
from costguard.domain.errors import NoticeError
from costguard.domain.refs import ResourceRef
from costguard.engine.answers import answers
from costguard.engine.ledger.memory import Memory
from costguard.engine.run.run import RunReport, plan_guard, run_guard
from costguard.engine.run.run_context import RunContext
from costguard.engine.run.scan import CloudReaders
from costguard.planning import Plan
from costguard.policy.model.policy import Policy
from costguard.ports import ActionExecutor, Clock, Delivery, KeepTagger, Message, RecordStore, Target

START = datetime(2026, 3, 2, 9, 0, tzinfo=timezone.utc)
DAY = timedelta(days=1)


class Mailbox:
    """A notifier that keeps what it was given; `down` loses messages, `silent` never proves delivery.

    `edits` are the changes of what was sent, each with the receipt of the message it changes.
    """

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.edits: list[tuple[str, Message]] = []
        self.down = False
        self.silent = False

    def send(self, message: Message) -> Delivery:
        if self.down:
            raise NoticeError("the channel is down")
        self.messages.append(message)
        return Delivery(f"ts-{len(self.messages)}", proves_delivery=not self.silent)

    def edit(self, receipt: str, message: Message) -> bool:
        if self.down:
            raise NoticeError("the channel is down")
        self.edits.append((receipt, message))
        return True

    def capacity(self, message: Message) -> int:
        return max(1, len(message.parts))

    @property
    def titles(self) -> list[str]:
        return [message.title for message in self.messages]


class Recorder:
    """An executor that counts calls and may be told to fail before or after the effect."""

    def __init__(self, inner: ActionExecutor) -> None:
        self.inner = inner
        self.calls: list[Action] = []
        self.fails_before: Exception | None = None
        self.fails_after: Exception | None = None

    def execute(self, action: Action) -> Receipt:
        self.calls.append(action)
        if self.fails_before is not None:
            raise self.fails_before
        receipt = self.inner.execute(action)
        if self.fails_after is not None:
            raise self.fails_after
        return receipt


CLOUDS = ("aws", "alibaba", "tencent")


def idle_machine(name: str = "notebook", kind: str = "g5g.xlarge", *, cloud: str = "aws", **more: Any) -> MachineSpec:
    """Idle for ten days, no local disk, one volume, owned by the vision team. `kind` is for AWS."""
    does = more.pop("does", workload.idle())
    launched = more.pop("launched_at", START - 10 * DAY)
    tags = {"owner": "vision", **more.pop("tags", {})}
    if cloud == "aws":
        return aws_machine(name, kind, does, launched, tags=tags, **more)
    made = alibaba_machine if cloud == "alibaba" else tencent_machine
    return made(name, does, launched, tags=tags, hourly=Money(Decimal("0.42"), "USD"), **more)


class Stage:
    """Runs the engine day by day over a world."""

    def __init__(
        self,
        folder: Path,
        *fleet: MachineSpec,
        under: Policy | None = None,
        ledger: str = "",
        store: RecordStore | None = None,
        cloud: Cloud | None = None,
        clock: MovedClock | None = None,
    ) -> None:
        self.clock = clock or MovedClock(START)
        self.cloud = cloud or Cloud(fleet or (idle_machine(),), START)
        self.clouds = tuple(dict.fromkeys(spec.cloud for spec in self.cloud.fleet))
        self.policy = under or policy()
        self.memory = Memory.over(store or open_ledger(ledger or f"sqlite:///{folder / 'ledger.sqlite3'}"))
        self.mailbox = Mailbox()
        self.executor = Recorder(WorldExecutor(self.cloud, self.clock))
        self.inventory = WorldInventory(self.cloud, self.clock)
        self.reading = CloudReaders(self.inventory, WorldSignals(self.cloud, self.clock), WorldPrices(self.cloud))
        self.tagger: KeepTagger = WorldKeepTagger(self.cloud, self.clock)
        self.paused_host = False
        self.policy_now: Callable[[], Policy] = lambda: self.policy
        self.reports: list[RunReport] = []

    def close(self) -> None:
        self.memory.store.close()

    def world(self) -> RunContext:
        clock: Clock = self.clock
        return RunContext(
            guard="idle_gpu",
            policy=self.policy,
            targets=tuple(Target(cloud, organisation=True) for cloud in self.clouds),
            readings=dict.fromkeys(self.clouds, self.reading),
            executors=dict.fromkeys(self.clouds, self.executor),
            memory=self.memory,
            notifier=self.mailbox,
            clock=clock,
            policy_now=self.policy_now,
            host_paused=self.paused_host,
            keep_taggers={cloud: lambda: self.tagger for cloud in self.clouds} if self.policy.keep_as_tag else {},
        )

    def at(self, moment: timedelta) -> RunReport:
        """One run at this time after the start."""
        self.clock.advance(START + moment - self.clock.now())
        return self.run_with(self.world())

    def run_with(self, world: RunContext) -> RunReport:
        """One run now, with these surroundings."""
        report = run_guard(world, f"run-{self.clock.now().isoformat()}").report
        self.reports.append(report)
        return report

    def day(self, number: int) -> RunReport:
        """The run of this day's morning."""
        return self.at(number * DAY)

    def days(self, numbers: Sequence[int]) -> None:
        for number in numbers:
            self.day(number)

    def plan(self) -> Plan:
        return plan_guard(self.world(), "plan").plan

    def ref(self, name: str = "notebook") -> ResourceRef:
        return to_product(next(spec.ref for spec in self.cloud.fleet if spec.name == name))

    def state(self, name: str = "notebook") -> str:
        self.cloud.tick(self.clock.now())
        machine = self.cloud.machines[self.ref(name).native_id]
        return machine.state.value

    def case(self, name: str = "notebook") -> Case:
        return answers.find_case(self.memory, "idle_gpu", str(self.ref(name)))

    def verbs(self) -> list[str]:
        return [action.verb.value for action in self.executor.calls]
