"""One seed of settings, from the first event to the verdict: keys and networks under the real engine, in one world."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from random import Random

from tests.simulation import settings_people as people
from tests.simulation.chronicle import Chronicle, PolicyRead, Word
from tests.simulation.clouds import Clouds, FaultyExecutor, FaultyInventory, FaultyPrices, FaultySignals
from tests.simulation.faults import Fault, FaultPlan, Port, RandomFaults
from tests.simulation.hub import Hub, Process, ProcessClock, ProcessWorkers
from tests.simulation.oracle.settings_checks import SETTING_CHECKS, UNDO_CHECKS
from tests.simulation.oracle.settings_judge import SettingsJudge
from tests.simulation.oracle.settings_liveness import only_rotated, unmended, unsettled
from tests.simulation.people import FaultyNotifier
from tests.simulation.scenario import Delivery
from tests.simulation.settings import KEYS, load
from tests.simulation.settings_chronicle import Book, WatchedLedger
from tests.simulation.settings_clouds import FaultyKeys, FaultyNetworks, FaultyRemediator, FaultyRotator, Settings
from tests.simulation.settings_people import SettingsChannel
from tests.simulation.settings_story import SettingDeed, SettingsStory, laid_out
from tests.simulation.simulation import Verdict
from tests.simulation.store import FaultyLedger, Shelf
from tests.simulation.trace import Trace
from tests.world_ports.translate import to_product, to_world

from cloudstand.world.cloud import World
from cloudstand.world.network.networks import Networks
from costguard.domain.actions import Outcome
from costguard.domain.errors import CostguardError, UnavailableError
from costguard.domain.refs import ResourceRef
from costguard.engine.answers.undo import Undoers, undo, undoing_of
from costguard.engine.ledger.memory import Memory
from costguard.engine.policy.in_force import policy_in_force, tell_of_broken_policy
from costguard.engine.run.run import RunReport, run_guard
from costguard.engine.run.run_context import RunContext
from costguard.engine.run.scan import CloudReaders
from costguard.faas.invocation import parse_invocation
from costguard.policy.model.policy import Policy
from costguard.ports import PolicyText, Target

_SETTLED_BY = 3  # quiet runs after which no claim is open


class SettingsSimulation:
    """One story being played; with `plan` exactly its faults, else those the seed draws."""

    def __init__(self, story: SettingsStory, plan: FaultPlan | None = None, *, readable: bool = False) -> None:
        seed = story.seed
        self.story = story
        self.plan = plan
        self.reports: dict[str, list[RunReport]] = {guard: [] for guard in story.guards}
        self.trace = Trace(readable=readable)
        self.hub = Hub(story.start, Random(seed * 5 + 1), self.trace)  # noqa: S311 - reproducible on purpose
        self.acts = Random(seed * 5 + 2)  # noqa: S311
        self.world = World(story.machines, story.start)
        self._lay_out()
        self.chronicle, self.book = Chronicle(), Book()
        self.versions = [story.policy, *(version for _, version in story.changes)]
        self.version = 0
        self.shelf = Shelf()
        self.operator = Memory.over(WatchedLedger(self.shelf, self.book))
        self.judge = SettingsJudge(
            self.world, self.book, self.versions, SETTING_CHECKS, UNDO_CHECKS, self.trace, durable=story.durable
        )
        self.clouds = Clouds(self.hub, self.world, self.chronicle, self.shelf, _no_machine_is_touched)
        self.settings = Settings(self.clouds, self.book, self.judge)
        self.channel = SettingsChannel(self.hub, self.chronicle, {}, lambda _: None, proves=story.channel_proves)
        self.channel.simulation = self
        self.runs = 0
        self.undone = 0

    def subjects(self) -> list[ResourceRef]:
        """What somebody may speak about."""
        network = self.world.networks.of(to_world(self.story.shard))
        parts = [*(each.ref for each in network.groups), *(each.ref for each in network.addresses)]
        machines = [spec.ref for spec in self.story.machines[:1]] if self.story.network is not None else []
        keys = [key.ref for key in self.world.keys.of(to_world(self.story.shard))]
        return [to_product(each) for each in (*keys, *parts, *machines)]

    def play(self) -> Verdict:
        """All of it."""
        self._schedule()
        self.hub.run()
        self._quieten()
        for violation in only_rotated(self):
            self.judge.add(violation)
        return self._verdict()

    def begin(self, delivery: Delivery) -> None:
        """One process starts on one event."""
        self.runs += 1
        process = Process(f"run{self.runs}", delivery.skew, guard=delivery.guard)
        self.hub.spawn(process, lambda: self._ended(process, lambda: self._run(process, delivery)))

    def begin_undo(self, action_id: str) -> None:
        """Somebody takes an action back."""
        self.undone += 1
        process = Process(f"undo{self.undone}", guard="undo")
        self.hub.spawn(process, lambda: self._ended(process, lambda: self._undo(process, action_id)))

    # -- the timetable --------------------------------------------------------------------------

    def _lay_out(self) -> None:
        for spec in self.story.keys:
            self.world.keys.add(spec.made(self.story.shard, self.story.start))
        network = laid_out(self.story)
        if network is not None:
            self.world.networks = Networks([network[0]])
            self.world.networks.imds_v1.update(to_world(network[1]))

    def _schedule(self) -> None:
        hub, story = self.hub, self.story
        random = Random(story.seed * 5)  # noqa: S311 - reproducible on purpose
        hub.plan = self.plan or RandomFaults(random, story.fault_rate, story.kinds, story.ports)
        hub.switch_rate = story.switch_rate
        hub.interfere = self._interfere
        hub.crashed = lambda _: setattr(self.channel, "troubled_at", hub.now)
        for delivery in story.deliveries:
            hub.later(delivery.arrives, _later(self.begin, delivery))
        for number, (at, _) in enumerate(story.changes, start=1):
            hub.later(at, _later(self._publish, number))
        if story.channel_down is not None:
            down, up = story.channel_down
            hub.later(down, lambda: setattr(self.channel, "down", True))
            hub.later(up, lambda: setattr(self.channel, "down", False))
        for moment, deed in story.deeds:
            hub.later(moment, _later(self._does, deed))

    def _publish(self, number: int) -> None:
        self.version = number
        self.trace.note(self.hub.now, f"policy version {number}")

    def _does(self, deed: SettingDeed) -> None:
        people.does(self, deed)

    def _interfere(self, fault: Fault, subject: str) -> None:
        if fault is Fault.OWNER:
            people.owner_acts(self, subject)
        else:
            people.somebody_speaks(self, subject)

    # -- one process ----------------------------------------------------------------------------

    def _ended(self, process: Process, body: Callable[[], None]) -> None:
        try:
            body()
        except CostguardError as err:
            self.trace.note(self.hub.now, f"{process.name} ends: {type(err).__name__}: {err}")
            process.alone = False  # it did not see its run through
            self.channel.troubled_at = self.hub.now

    def _memory(self, process: Process) -> Memory:
        ledger = WatchedLedger(self.shelf, self.book, durable=self.story.durable)
        return Memory.over(FaultyLedger(self.hub, process, ledger))

    def _run(self, process: Process, delivery: Delivery) -> None:
        clock, cloud = ProcessClock(self.hub, process), self.story.cloud
        memory = self._memory(process)
        source = _PolicySource(self, process)
        event = {"time": delivery.scheduled.strftime("%Y-%m-%dT%H:%M:%SZ")}
        run_id = parse_invocation(event, None, function=process.guard, now=clock.now()).run_id
        deadline = clock.now() + delivery.deadline if delivery.deadline is not None else None

        def policy_now() -> Policy:
            return policy_in_force(source, memory, clock.now(), load).policy

        found = policy_in_force(source, memory, clock.now(), load)
        inventory = FaultyInventory(self.clouds, process)
        reading = CloudReaders(inventory, FaultySignals(self.clouds, process), FaultyPrices(self.clouds, process))
        world = RunContext(
            guard=process.guard,
            policy=found.policy,
            targets=(Target(cloud, organisation=True),),
            readings={cloud: reading},
            executors={},
            memory=memory,
            notifier=FaultyNotifier(self.hub, process, self.channel),
            clock=clock,
            policy_now=policy_now,
            host_paused=delivery.host_paused,
            policy_problem=found.problem,
            workers=ProcessWorkers(self.hub, process),
            actors=ProcessWorkers(self.hub, process),
            keys={cloud: FaultyKeys(self.settings, process)},
            rotators={cloud: lambda: FaultyRotator(self.settings, process)},
            networks={cloud: FaultyNetworks(self.settings, process)},
            network_remediators={cloud: lambda: FaultyRemediator(self.settings, process)},
        )
        tell_of_broken_policy(memory, found, "en", clock.now())
        if process.guard == KEYS:
            report = run_guard(world, run_id, deadline=deadline).report
        else:
            report = run_guard(world, run_id, deadline=deadline).report
        if report.duplicate:
            process.alone = False  # nothing of what it saw is remembered
        else:
            self.reports[process.guard].append(report)

    def _undo(self, process: Process, action_id: str) -> None:
        clock, cloud = ProcessClock(self.hub, process), self.story.cloud
        memory = self._memory(process)
        back = undoing_of(memory, action_id)
        by = Undoers(
            {cloud: FaultyInventory(self.clouds, process)},
            {cloud: lambda: FaultyExecutor(self.clouds, process)},
            {cloud: lambda: FaultyRemediator(self.settings, process)},
        )
        done = undo(memory, back, by, "netops", "needed", clock.now(), paused=False)
        self.trace.note(self.hub.now, f"{process.name}: {done.outcome.value}")
        if done.outcome is not Outcome.REFUSED and done.left_alone_until is not None:
            subject = str(done.action.subject)
            self.book.words.append(Word(self.hub.calls, self.hub.now, "snooze", subject, done.left_alone_until))

    # -- the end ----------------------------------------------------------------------------------

    def _quieten(self) -> None:
        """Faults stop, owners rest, people repair what is theirs to repair; then daily runs."""
        self.hub.plan, self.hub.switch_rate = None, 0.0
        self.channel.down, self.channel.proves = False, True
        people.resume(self)
        if self.versions[self.version].broken:
            self.versions.append(self.story.policy)
            self.version = len(self.versions) - 1
        for number in range(self.story.quiet_runs):
            self._quiet_run(number)
            if number + 1 == _SETTLED_BY:
                for violation in unsettled(self):
                    self.judge.add(violation)
        if self.story.quiet_runs > _SETTLED_BY:
            for violation in unmended(self):
                self.judge.add(violation)

    def _quiet_run(self, number: int) -> None:
        at = self.hub.now + timedelta(hours=25)
        self.trace.note(self.hub.now, f"quiet run {number + 1}")
        for later, guard in enumerate(self.story.guards):
            begins = at + later * timedelta(minutes=30)
            self.hub.later(begins, _later(self.begin, Delivery(begins, begins, guard=guard)))
        self.hub.run()

    def _verdict(self) -> Verdict:
        actions: dict[str, int] = {}
        for call in self.book.calls:
            if call.changed:
                actions[call.kind] = actions.get(call.kind, 0) + 1
        actions["warn"] = len(self.chronicle.told)
        self.trace.note(self.hub.now, f"{len(self.shelf.records)} records are remembered, hash {self.shelf.digest}")
        return Verdict(
            seed=self.story.seed,
            violations=tuple(self.judge.violations),
            digest=self.trace.digest,
            calls=self.hub.calls,
            cloud_calls=self.hub.cloud_calls,
            runs=self.runs + self.undone,
            faults=self.hub.faults,
            actions=actions,
            trace=self.trace.text,
        )


class _PolicySource:
    """The config repo as one process reads it."""

    def __init__(self, simulation: SettingsSimulation, process: Process) -> None:
        self._simulation = simulation
        self._process = process

    def read(self) -> PolicyText:
        """The current files.

        Raises:
            UnavailableError: the repo did not answer.
        """
        return self._simulation.hub.call(self._process, Port.POLICY, "policy", "", self._read)

    def _read(self, fault: Fault | None) -> PolicyText:
        simulation, process = self._simulation, self._process
        number = simulation.version
        version = simulation.versions[number]
        failed = fault in {Fault.LOST, Fault.DENIED, Fault.BROKEN} or version.broken
        simulation.book.policies.append(
            PolicyRead(process, simulation.hub.calls, simulation.hub.now, process.writes, None if failed else number)
        )
        if fault in {Fault.LOST, Fault.DENIED}:
            raise UnavailableError("the config repo does not answer", operation="policy")
        if fault is Fault.BROKEN:
            return PolicyText({"costguard.yaml": "version: 1\nidle_gpu: {{"}, "broken")
        return version.text()


def _later(do: Callable[..., None], what: object) -> Callable[[], None]:
    return lambda: do(what)


def _no_machine_is_touched(effect: object) -> None:
    message = f"a guard of settings touched a machine: {effect}"
    raise AssertionError(message)
