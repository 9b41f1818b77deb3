"""One seed, from the first event to the verdict: the real engine, cases, planning and repositories over the world."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta
from random import Random

from tests.simulation import owners
from tests.simulation.chronicle import Chronicle, PolicyRead, Told
from tests.simulation.clouds import Clouds, FaultyExecutor, FaultyInventory, FaultyPrices, FaultySignals, FaultySpend
from tests.simulation.faults import Fault, FaultPlan, Port, RandomFaults
from tests.simulation.forging import forged
from tests.simulation.hub import Hub, Process, ProcessClock, ProcessWorkers
from tests.simulation.oracle import alerts, figures
from tests.simulation.oracle.checks import CHECKS
from tests.simulation.oracle.demanded import BUDGET_CHECKS
from tests.simulation.oracle.judge import Judge, Violation
from tests.simulation.oracle.liveness import forgotten, silent_gaps, unresolved
from tests.simulation.oracle.spent_budgets import unheeded
from tests.simulation.people import Channel, FaultyNotifier
from tests.simulation.rules import load
from tests.simulation.scenario import BillSpell, Deed, Delivery, Scenario, Spell
from tests.simulation.store import FaultyLedger, MemoryLedger, Shelf
from tests.simulation.trace import Trace

from cloudstand.world.billing import billed_until
from cloudstand.world.cloud import World
from cloudstand.world.records import Operation, OtherCharge
from costguard.domain.errors import CostguardError, UnavailableError
from costguard.engine.guards.budgets.run import BudgetRun, run_budgets
from costguard.engine.ledger.memory import Memory
from costguard.engine.policy.in_force import policy_in_force, tell_of_broken_policy
from costguard.engine.run.run import RunReport, carry_out, plan_guard, run_guard
from costguard.engine.run.run_context import RunContext
from costguard.engine.run.scan import CloudReaders
from costguard.faas.invocation import parse_invocation
from costguard.planning.agreed import in_both
from costguard.policy.model.policy import Policy
from costguard.ports import ActionExecutor, PolicyText, Target

BUDGET = "budget"
_WHOLE_LADDER = 8  # quiet runs from which on nothing idle may be left over


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one simulation came to."""

    seed: int
    violations: tuple[Violation, ...]
    digest: str
    calls: int
    cloud_calls: int
    runs: int
    faults: dict[Fault, int]
    actions: dict[str, int]
    trace: str = ""


class Simulation:
    """One scenario being played; with `plan` exactly its faults, else those the seed draws."""

    def __init__(self, scenario: Scenario, plan: FaultPlan | None = None, *, readable: bool = False) -> None:
        seed = scenario.seed
        self.scenario = scenario
        self.plan = plan
        self.reports: dict[str, list[RunReport]] = {guard: [] for guard in scenario.guards}
        self.trace = Trace(readable=readable)
        self.hub = Hub(scenario.start, Random(seed * 3 + 1), self.trace)  # noqa: S311 - reproducible on purpose
        self.acts = Random(seed * 3 + 2)  # noqa: S311
        self.world = World(self.scenario.machines, scenario.start)
        self.chronicle = Chronicle()
        self.versions = [self.scenario.policy, *(change.version for change in self.scenario.changes)]
        self.version = 0
        self.shelf = Shelf()
        self.operator = Memory.over(MemoryLedger(self.shelf))
        self.judge = Judge(
            self.world, self.chronicle, self.versions, CHECKS, BUDGET_CHECKS, self.trace, durable=scenario.durable
        )
        self.clouds = Clouds(self.hub, self.world, self.chronicle, self.shelf, self.judge.watch)
        machines = {spec.native_id: None for spec in self.scenario.machines}
        self.clouds.watch_attempt = self.judge.watch_attempt
        self.channel = Channel(self.hub, self.chronicle, machines, self._heard, proves=scenario.channel_proves)
        self.runs = 0
        self.processes: list[Process] = []
        self.changed_at = scenario.start  # when the policy last said something else
        self.reckonings: list[alerts.Reckoning] = []
        self.cloud_names = tuple(sorted({spec.cloud for spec in scenario.machines}))

    def last_process(self, guard: str) -> Process | None:
        """The one of this guard that ended last and saw its run through."""
        return next((one for one in reversed(self.processes) if one.guard == guard and one.finished), None)

    def play(self) -> Verdict:
        """All of it."""
        self._schedule()
        self.hub.run()
        self._quieten()
        self._add(alerts.told_again(self))
        return self._verdict()

    def begin(self, delivery: Delivery) -> None:
        """One process starts on one event."""
        self.runs += 1
        process = Process(f"run{self.runs}", delivery.skew, guard=delivery.guard)
        self.processes.append(process)
        self.hub.spawn(process, lambda: self._function(process, delivery))

    # -- the timetable --------------------------------------------------------------------------

    def _schedule(self) -> None:
        hub, scenario = self.hub, self.scenario
        random = Random(scenario.seed * 3)  # noqa: S311 - reproducible on purpose
        hub.plan = self.plan or RandomFaults(random, scenario.fault_rate, scenario.kinds, scenario.ports)
        hub.switch_rate = scenario.switch_rate
        hub.interfere = self._interfere
        hub.crashed = lambda _: setattr(self.channel, "troubled_at", hub.now)
        for delivery in scenario.deliveries:
            hub.later(delivery.arrives, _begin(self, delivery))
        for number, change in enumerate(scenario.changes, start=1):
            hub.later(change.at, _publish(self, number))
        if scenario.channel_down is not None:
            down, up = scenario.channel_down
            hub.later(down, lambda: setattr(self.channel, "down", True))
            hub.later(up, lambda: setattr(self.channel, "down", False))
        for native_id, since, until in scenario.silences:
            self.world.silence(native_id, since, until)
        for spell in scenario.spells:
            hub.later(spell.begins, _spell(self, spell, on=True))
            hub.later(spell.ends, _spell(self, spell, on=False))
        self._schedule_bills()
        for moment, native_id, deed in scenario.deeds:
            hub.later(moment, _deed(self, native_id, deed))
        for moment, native_id in scenario.approvals:
            hub.later(moment, _approval(self, native_id))
        for moment in scenario.clicks:
            hub.later(moment, _click(self))
        for moment, native_id in scenario.owner_times:
            hub.later(moment, _owner(self, native_id))

    def _schedule_bills(self) -> None:
        for standing in self.scenario.bill_spells:
            self.hub.later(standing.begins, _bill_spell(self, standing, on=True))
            self.hub.later(standing.ends, _bill_spell(self, standing, on=False))
        for moment, charge in self.scenario.charges:
            self.hub.later(moment, _charge(self, charge))

    def _interfere(self, fault: Fault, subject: str) -> None:
        known = [native_id for native_id in self.channel.machines if native_id in subject]
        machine = self.acts.choice(known or list(self.channel.machines))
        if fault is Fault.OWNER:
            owners.owner_acts(self, machine)
        else:
            owners.somebody_speaks(self, machine)

    # -- one process ----------------------------------------------------------------------------

    def _function(self, process: Process, delivery: Delivery) -> None:
        try:
            self._run(process, delivery)
        except CostguardError as err:
            self.trace.note(self.hub.now, f"{process.name} ends: {type(err).__name__}: {err}")
            process.alone = False  # it did not see its run through
            self.channel.troubled_at = self.hub.now  # what it had taken on to send waits for its claim to end

    def _run(self, process: Process, delivery: Delivery) -> None:
        clock = ProcessClock(self.hub, process)
        memory = Memory.over(FaultyLedger(self.hub, process, self._ledger()))
        source = _PolicySource(self, process)
        event = {"time": delivery.scheduled.strftime("%Y-%m-%dT%H:%M:%SZ")}
        run_id = parse_invocation(event, None, function=process.guard, now=clock.now()).run_id
        deadline = clock.now() + delivery.deadline if delivery.deadline is not None else None

        def policy_now() -> Policy:
            return policy_in_force(source, memory, clock.now(), load).policy

        found = policy_in_force(source, memory, clock.now(), load)
        world = RunContext(
            guard=process.guard,
            policy=found.policy,
            targets=tuple(self._target(cloud) for cloud in self.cloud_names),
            readings={cloud: self._reading(process, cloud) for cloud in self.cloud_names},
            executors={cloud: self._executor(process, cloud) for cloud in self.cloud_names},
            memory=memory,
            notifier=FaultyNotifier(self.hub, process, self.channel),
            clock=clock,
            policy_now=policy_now,
            host_paused=delivery.host_paused,
            policy_problem=found.problem,
            workers=ProcessWorkers(self.hub, process),
            actors=ProcessWorkers(self.hub, process),
            spends={cloud: FaultySpend(self.clouds, process) for cloud in self.cloud_names},
        )
        tell_of_broken_policy(memory, found, "en", clock.now())
        budgets: BudgetRun | None = None
        looked_from = 0
        if process.guard == BUDGET:
            budgets = run_budgets(world, run_id, deadline=deadline)
            report = budgets.run
        elif delivery.saved_plan is None:
            report = run_guard(world, run_id, deadline=deadline).report
        else:
            plan = plan_guard(world, run_id).plan
            if delivery.forged:
                plan = forged(plan, Random(self.scenario.seed * 13 + self.runs))  # noqa: S311 - reproducible on purpose
                self.hub.faults[Fault.FORGED] = self.hub.faults.get(Fault.FORGED, 0) + 1
            clock.sleep(delivery.saved_plan.total_seconds())
            looked_from = self.hub.calls
            both = in_both(plan, plan_guard(world, run_id).plan)
            if both.refuses_all:
                process.alone = False
                return
            report = carry_out(world, both.plan)
            if report.duplicate:
                process.alone = False  # what it planned was never carried out, and nothing of it remembered
        self.reports[process.guard].append(report)
        self._add(silent_gaps(self, report, process, looked_from))
        whole = delivery.deadline is None and not delivery.host_paused
        if budgets is not None and budgets.look is not None and whole:
            self._add(figures.wrong(self, process, budgets.look))
            self._add(alerts.lost(self, process))

    def _ledger(self) -> MemoryLedger:
        return MemoryLedger(self.shelf, durable=self.scenario.durable)

    def _target(self, cloud: str) -> Target:
        return Target(cloud, organisation=True)

    def _executor(self, process: Process, cloud: str) -> ActionExecutor:
        del cloud
        return FaultyExecutor(self.clouds, process)

    def _reading(self, process: Process, cloud: str) -> CloudReaders:
        del cloud
        inventory = FaultyInventory(self.clouds, process)
        return CloudReaders(inventory, FaultySignals(self.clouds, process), FaultyPrices(self.clouds, process))

    def _heard(self, told: Told) -> None:
        self.judge.honest_dates(told)
        self._add(alerts.never_crossed(self, told))

    # -- the end ----------------------------------------------------------------------------------

    def _quieten(self) -> None:
        """Faults stop, owners rest, people repair what is theirs to repair; then daily runs."""
        hub = self.hub
        hub.plan, hub.switch_rate = None, 0.0
        self.channel.down, self.channel.proves = False, True
        owners.resume(self)
        for standing in self.scenario.bill_spells:
            _bill_spell(self, standing, on=False)()
        if self.versions[self.version].broken:
            self.versions.append(self.scenario.policy)
            self.version = len(self.versions) - 1
            self.changed_at = self.hub.now
        for number in range(self.scenario.quiet_runs):
            self._quiet_run(number)
            if number == 2:
                self._add(unresolved(self))
        if self.scenario.quiet_runs > 3:
            self._add(unheeded(self))
        if self.scenario.quiet_runs > _WHOLE_LADDER and "idle_gpu" in self.reports:
            self._add(forgotten(self))

    def _add(self, violations: Iterable[Violation]) -> None:
        for violation in violations:
            self.judge.add(violation)

    def _quiet_run(self, number: int) -> None:
        at = self.hub.now + timedelta(hours=25)
        self.trace.note(self.hub.now, f"quiet run {number + 1}")
        for later, guard in enumerate(self.scenario.guards):
            begins = at + later * timedelta(minutes=30)
            self.hub.later(begins, _begin(self, Delivery(begins, begins, guard=guard)))
        self.hub.run()

    def _verdict(self) -> Verdict:
        actions: dict[str, int] = {}
        for effect in self.chronicle.effects:
            actions[effect.verb.value] = actions.get(effect.verb.value, 0) + 1
        actions["warn"] = len(self.chronicle.told)
        self.trace.note(self.hub.now, f"{len(self.shelf.records)} records are remembered, hash {self.shelf.digest}")
        return Verdict(
            seed=self.scenario.seed,
            violations=tuple(self.judge.violations),
            digest=self.trace.digest,
            calls=self.hub.calls,
            cloud_calls=self.hub.cloud_calls,
            runs=self.runs,
            faults=self.hub.faults,
            actions=actions,
            trace=self.trace.text,
        )


class _PolicySource:
    """The config repo as one process reads it."""

    def __init__(self, simulation: Simulation, process: Process) -> None:
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
        failed = fault in {Fault.LOST, Fault.DENIED} or fault is Fault.BROKEN or version.broken
        entry = PolicyRead(
            process,
            simulation.hub.calls,
            simulation.hub.now,
            process.of_task[0],
            None if failed else number,
            process.task,
        )
        simulation.chronicle.policies.append(entry)
        if fault in {Fault.LOST, Fault.DENIED}:
            raise UnavailableError("the config repo does not answer", operation="policy")
        if fault is Fault.BROKEN:
            return PolicyText({"costguard.yaml": "version: 1\nidle_gpu: {{"}, "broken")
        return version.text()


def _begin(simulation: Simulation, delivery: Delivery) -> Callable[[], None]:
    return lambda: simulation.begin(delivery)


def _publish(simulation: Simulation, number: int) -> Callable[[], None]:
    def publish() -> None:
        simulation.version = number
        simulation.changed_at = simulation.hub.now
        simulation.trace.note(simulation.hub.now, f"policy version {number}")

    return publish


def _spell(simulation: Simulation, spell: Spell, *, on: bool) -> Callable[[], None]:
    return lambda: owners.spell(simulation, spell, on=on)


def _bill_spell(simulation: Simulation, standing: BillSpell, *, on: bool) -> Callable[[], None]:
    def happens() -> None:
        clouds, cloud = simulation.clouds, standing.cloud
        for account in sorted({spec.account for spec in simulation.scenario.machines if spec.cloud == cloud}):
            if standing.denied and on:
                simulation.world.deny(cloud, account, Operation.BILL)
            elif standing.denied:
                simulation.world.allow(cloud, account, Operation.BILL)
        if not standing.denied and on:
            clouds.bill_stands[cloud] = billed_until(cloud, simulation.hub.now)
        elif not standing.denied:
            clouds.bill_stands.pop(cloud, None)
        what = "may not be read" if standing.denied else "stands still"
        simulation.trace.note(simulation.hub.now, f"the bill of {cloud} {what}: {on}")

    return happens


def _charge(simulation: Simulation, charge: OtherCharge) -> Callable[[], None]:
    def happens() -> None:
        simulation.world.charge(charge)
        simulation.trace.note(simulation.hub.now, f"charged: {charge.service} {charge.money}")

    return happens


def _deed(simulation: Simulation, native_id: str, deed: Deed) -> Callable[[], None]:
    return lambda: owners.does(simulation, native_id, deed)


def _approval(simulation: Simulation, native_id: str) -> Callable[[], None]:
    def approve() -> None:
        said = owners.approve(simulation, native_id)
        simulation.trace.note(simulation.hub.now, f"operator: {said}")

    return approve


def _click(simulation: Simulation) -> Callable[[], None]:
    def press() -> None:
        if simulation.chronicle.offered:
            machine = simulation.acts.choice(list(simulation.channel.machines))
            said = owners.click(simulation, machine)
            simulation.trace.note(simulation.hub.now, f"chat: {said}")

    return press


def _owner(simulation: Simulation, native_id: str) -> Callable[[], None]:
    return lambda: owners.owner_acts(simulation, native_id)
