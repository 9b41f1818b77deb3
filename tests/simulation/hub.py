"""One thread, many processes: every boundary call passes here, where time goes on, others run and things go wrong."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from random import Random
from typing import Any, NoReturn, TypeVar

from greenlet import getcurrent, greenlet
from tests.simulation.faults import Fault, FaultPlan, Port
from tests.simulation.trace import Trace

_Result = TypeVar("_Result")
_LATENCY_SECONDS = {  # the longest a call takes; it takes from none to that
    Port.LISTING: 4.0,
    Port.DETAILS: 2.0,
    Port.SIGNALS: 4.0,
    Port.PRICES: 1.0,
    Port.BILLS: 5.0,
    Port.ACT: 2.0,
    Port.LOAD: 0.05,
    Port.STORE: 0.1,
    Port.SEND: 1.0,
    Port.POLICY: 0.5,
}
_CLOUDS = frozenset({Port.LISTING, Port.DETAILS, Port.SIGNALS, Port.PRICES, Port.BILLS, Port.ACT})


class CrashError(BaseException):
    """The process is gone: nothing may catch this, and nothing of it runs any further."""


@dataclass(slots=True)
class Process:
    """One run of a function, or one command of an operator, with a clock of its own."""

    name: str
    skew: timedelta = timedelta(0)
    dead: bool = False
    finished: bool = False
    alone: bool = True  # no other process lived while it did
    crashed_at: int | None = None
    guard: str = "idle_gpu"
    began: datetime | None = None
    struck: set[Port] = field(default_factory=set)  # where a fault met it
    tasks: list[greenlet] = field(default_factory=list)
    writes: int = 0  # writes to the ledger that the store took, whether or not the answer came back
    last_write: int = 0  # the boundary call that was the last of them
    _written: dict[int, tuple[int, int]] = field(default_factory=dict)

    @property
    def task(self) -> int:
        """Which of the tasks of this process runs now."""
        return id(getcurrent())

    @property
    def of_task(self) -> tuple[int, int]:
        """`writes` and `last_write` of this task alone: shards are acted in side by side."""
        return self._written.get(self.task, (0, 0))

    def wrote(self, call: int) -> None:
        """This task wrote, by this boundary call."""
        self.writes, self.last_write = self.writes + 1, call
        self._written[self.task] = (self.of_task[0] + 1, call)


@dataclass(slots=True)
class _Waiting:
    """A task that waits for others it began: place, result and error of each that has ended."""

    parent: greenlet
    parked: bool = False
    ended: list[tuple[int, Any, Exception | None]] = field(default_factory=list)


class Hub:
    """The scheduler. `now` is true time; processes see it through their skewed clocks."""

    def __init__(self, now: datetime, random: Random, trace: Trace) -> None:
        self.now = now
        self.random = random
        self.trace = trace
        self.plan: FaultPlan | None = None
        self.calls = 0
        self.cloud_calls = 0
        self.switch_rate = 0.0
        self.faults: dict[Fault, int] = {}
        self.interfere: Callable[[Fault, str], None] = _nobody
        self.crashed: Callable[[Process], None] = _no_matter
        self._ready: list[greenlet] = []
        self._due: list[tuple[datetime, int, Callable[[], None]]] = []
        self._sequence = 0
        self._main = getcurrent()
        self._processes: dict[greenlet, Process] = {}
        self._failure: BaseException | None = None

    # -- what happens when ------------------------------------------------------------------

    def later(self, moment: datetime, happening: Callable[[], None]) -> None:
        """Let something happen at a true time."""
        self._sequence += 1
        heapq.heappush(self._due, (moment, self._sequence, happening))

    def spawn(self, process: Process, body: Callable[[], object]) -> None:
        """Begin a process; it ends with its body or with a crash."""
        others = [one for one in self._processes.values() if not one.dead and one is not process]
        for other in others:
            other.alone = process.alone = False
        process.began = self.now

        def whole() -> None:
            body()
            process.finished = True

        self._ready.append(self._task(process, whole))

    def run(self, until: datetime | None = None) -> None:
        """Let everything happen until nothing is left, or nothing is left before `until`.

        Raises:
            Exception: whatever a process raised that was no crash.
        """
        while True:
            while self._due and (self._due[0][0] <= self.now or not self._ready):
                moment = self._due[0][0]
                if until is not None and moment > until and not self._ready:
                    self.now = max(self.now, until)
                    return
                _, _, happening = heapq.heappop(self._due)
                self.now = max(self.now, moment)
                happening()
            if not self._ready:
                if until is not None:
                    self.now = max(self.now, until)
                return
            index = int(self.random.random() * len(self._ready)) if len(self._ready) > 1 else 0
            task = self._ready.pop(index)
            process = self._processes.get(task)
            if process is None or process.dead:
                continue  # buried with its process
            task.switch()
            self._bury_if_dead(process)
            self._raise_failure()

    def _raise_failure(self) -> None:
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    # -- a boundary -----------------------------------------------------------------------------

    def call(
        self,
        process: Process,
        port: Port,
        what: str,
        subject: str,
        do: Callable[[Fault | None], _Result],
    ) -> _Result:
        """Pass one boundary: time passes, others may run, a fault may strike; then `do` with the fault left to it.

        Raises:
            CrashError: the process dies here.
        """
        if process.dead:
            raise CrashError
        self.calls += 1
        self.cloud_calls += port in _CLOUDS
        number = self.calls
        fault = self.plan.at(number, port) if self.plan is not None else None
        if fault is not None:
            self.faults[fault] = self.faults.get(fault, 0) + 1
            process.struck.add(port)
        self.now += timedelta(seconds=_LATENCY_SECONDS[port] * self.random.random())
        if fault is Fault.FREEZE:
            self._park(process, timedelta(hours=0.5 + 5 * self.random.random()))
        elif fault is Fault.CLOCK_JUMP:
            process.skew = timedelta(minutes=20 * self.random.random() - 10)
        elif fault is Fault.OWNER or fault is Fault.PEOPLE:
            self.interfere(fault, subject)
        elif fault is Fault.CRASH_BEFORE:
            self.trace.add(self.now, process.name, number, what, subject, fault)
            self._crash(process)
        self._let_others(process)
        self.trace.add(self.now, process.name, number, what, subject, fault)
        result = do(fault)
        if fault is Fault.CRASH_AFTER:
            self._crash(process)
        return result

    def sleep(self, process: Process, seconds: float) -> None:
        """The process waits."""
        self._park(process, timedelta(seconds=max(seconds, 0.0)))

    def each(self, process: Process, tasks: Sequence[Callable[[], _Result]]) -> Iterator[tuple[int, _Result]]:
        """Tasks of one process side by side; results as they end, errors raised here."""
        if len(tasks) == 1:
            yield 0, tasks[0]()
            return
        waiting = _Waiting(getcurrent())
        for place, task in enumerate(tasks):
            self._ready.append(self._task(process, self._child(waiting, place, task)))
        for _ in tasks:
            while not waiting.ended:
                waiting.parked = True
                self._main.switch()
                if process.dead:
                    raise CrashError
            place, result, error = waiting.ended.pop(0)
            if error is not None:
                raise error
            yield place, result

    def _child(self, waiting: _Waiting, place: int, task: Callable[[], object]) -> Callable[[], None]:
        def whole() -> None:
            try:
                waiting.ended.append((place, task(), None))
            except Exception as err:  # noqa: BLE001 - handed to whoever asked for the result
                waiting.ended.append((place, None, err))
            if waiting.parked:
                waiting.parked = False
                self._ready.append(waiting.parent)

        return whole

    # -- within -----------------------------------------------------------------------------------

    def _task(self, process: Process, body: Callable[[], None]) -> greenlet:
        def guarded() -> None:
            try:
                body()
            except CrashError:
                pass
            except Exception as err:  # noqa: BLE001 - a defect: raised in the hub, where the seed is known
                self._failure = err
            self._processes.pop(task, None)

        task = greenlet(guarded, parent=self._main)
        self._processes[task] = process
        process.tasks.append(task)
        return task

    def _bury_if_dead(self, process: Process) -> None:
        """Unwind what is left of a dead process; none of it reaches anything any more."""
        if not process.dead:
            return
        for task in process.tasks:
            if task and not task.dead:
                task.throw(CrashError)
            self._processes.pop(task, None)
        process.tasks.clear()

    def _crash(self, process: Process) -> NoReturn:
        process.dead = True
        self.crashed(process)
        process.crashed_at = self.calls
        raise CrashError

    def _park(self, process: Process, span: timedelta) -> None:
        here = getcurrent()
        self.later(self.now + span, lambda: self._ready.append(here))
        self._main.switch()
        if process.dead:
            raise CrashError

    def _let_others(self, process: Process) -> None:
        others = self._ready and self.random.random() < self.switch_rate
        if others or (self._due and self._due[0][0] <= self.now):
            self._ready.append(getcurrent())
            self._main.switch()
            if process.dead:
                raise CrashError


class ProcessClock:
    """A process's own idea of the time."""

    def __init__(self, hub: Hub, process: Process) -> None:
        self._hub = hub
        self._process = process

    def now(self) -> datetime:
        """True time plus this clock's error."""
        return self._hub.now + self._process.skew

    def sleep(self, seconds: float) -> None:
        """Wait in simulated time."""
        self._hub.sleep(self._process, seconds)


class TrueClock:
    """The time as it is: what the clouds go by."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub

    def now(self) -> datetime:
        """True time."""
        return self._hub.now


class ProcessWorkers:
    """`Workers` of one process: its tasks interleave like everything else."""

    def __init__(self, hub: Hub, process: Process) -> None:
        self._hub = hub
        self._process = process

    def each(self, tasks: Sequence[Callable[[], _Result]]) -> Iterator[tuple[int, _Result]]:
        """Begin every task; yield the place and the result of each as it ends."""
        return self._hub.each(self._process, tasks)


def _nobody(fault: Fault, subject: str) -> None:
    del fault, subject


def _no_matter(process: Process) -> None:
    del process
