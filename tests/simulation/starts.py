"""`python -m tests.simulation.starts`: machines started again by their owners' word, racing runs, hands and faults.

The real engine over a world, one machine a story, all from its seed. While runs come and go, people ask for a start,
start and stop the machine by hand, pause, freeze launches, take the key out of the policy; the cloud has no capacity,
loses answers, and processes die. An oracle that keeps the truth by itself judges every start that leaves.
"""

from __future__ import annotations

import argparse
import logging
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.simulation.planting import Bug, Edit, plant

if TYPE_CHECKING:
    from tests.scenario.stage import Stage

    from costguard.domain.actions import Action, Receipt

_STARTING = "costguard.engine.answers.starting"
BUGS: tuple[Bug, ...] = (
    Bug(
        "starts-what-others-stopped",
        (22,),
        (Edit(_STARTING, "        if not same_run(case, detail.instance):", "        if False:"),),
    ),
    Bug(
        "start-sent-again-after-an-unknown-outcome",
        (6,),
        (Edit(_STARTING, "        if intent.outcome in {None, Outcome.UNKNOWN}:", "        if False:"),),
    ),
    Bug(
        "start-while-paused",
        (20,),
        (
            Edit(
                _STARTING, "    if pause_reason(world.memory, host_paused=world.host_paused) is not None or", "    if"
            ),
            Edit(_STARTING, "        if switch.paused:", "        if False:"),
        ),
    ),
    Bug(
        "late-pause-of-a-start-ignored",
        (20,),
        (Edit(_STARTING, "        return unturned, unsaid", "        return (unsaid,)"),),
    ),
    Bug(
        "start-while-launches-are-frozen",
        (7,),
        (
            Edit(
                _STARTING,
                "            if of is None or state.phase in _LETS_LAUNCH or of.cloud != ref.cloud:",
                "            if True:",
            ),
        ),
    ),
    Bug("starts-have-no-cap", (7,), (Edit(_STARTING, "        if code is not None:", "        if False:"),)),
    Bug("start-without-its-key", (11,), (Edit(_STARTING, "        if not policy.start_again:", "        if False:"),)),
)
HOUR, VALID = timedelta(hours=1), timedelta(hours=48)
_HOURS = 24 * 4


class Died(BaseException):
    """A process ended where it stood."""


class Truth:
    """What happened, as nobody in the program is asked: who stopped it, who asked when, what was answered."""

    def __init__(self) -> None:
        self.stopped_by = ""
        self.asked: list[datetime] = []
        self.lost_at: datetime | None = None
        self.paused = self.frozen = False
        self.key = True
        self.started: list[datetime] = []
        self.most = 0
        self.violations: list[str] = []

    def judge(self, now: datetime) -> None:
        """Whether this start may leave."""
        last = max(self.asked, default=None)
        found = {
            "it was stopped by others": self.stopped_by != "costguard",
            "nobody asked within two days": last is None or now - last > VALID,
            "an answer was lost and nobody asked since": self.lost_at is not None
            and last is not None
            and last <= self.lost_at,
            "it is paused": self.paused,
            "launches are frozen": self.frozen,
            "the policy starts nothing": not self.key,
            "more than the cap": sum(now - at < timedelta(hours=24) for at in self.started) >= self.most,
        }
        self.violations += [f"{now:%d %H:%M}: started, and {what}" for what, is_so in found.items() if is_so]


class _Judged:
    """The executor: every start is judged before the world hears of it, and may be refused, lost or die."""

    def __init__(self, stage: Stage, truth: Truth, drawn: random.Random) -> None:
        self._inner, self._stage, self._truth, self._drawn = stage.executor, stage, truth, drawn
        self.capacity = True

    def execute(self, action: Action) -> Receipt:
        from costguard.domain.actions import Verb
        from costguard.domain.errors import NoCapacityError, OutcomeUnknownError

        now, drawn = self._stage.clock.now(), self._drawn.random()
        if action.verb is not Verb.START:
            receipt = self._inner.execute(action)
            self._truth.stopped_by = "costguard" if action.verb is Verb.STOP else self._truth.stopped_by
            return receipt
        self._truth.judge(now)
        if not self.capacity:
            raise NoCapacityError("sold out", operation="world:start", code="NoCapacity")
        self._truth.started.append(now)
        if drawn < 0.35:  # lost on its way, or on its way back, or nobody is there to hear it
            self._truth.lost_at = now
            if drawn < 0.1:
                self._inner.execute(action)
            if drawn > 0.3:
                raise Died
            raise OutcomeUnknownError("no answer", operation="world:start")
        return self._inner.execute(action)


class Story:
    """One machine over some days, by its seed."""

    def __init__(self, seed: int, folder: Path) -> None:
        from tests.builders import policy, rule
        from tests.scenario.stage import CLOUDS, Stage, idle_machine

        from costguard.domain.actions import Verb
        from costguard.guards.rules.common import Step
        from costguard.guards.rules.idle import IdleBounds

        self.drawn, self.truth = random.Random(f"starts {seed}"), Truth()  # noqa: S311 - a seed, not a secret
        self.truth.most = self.drawn.choice((1, 3))
        limits = replace(rule().limits, actions_per_day=self.truth.most)
        ladder = (Step(Verb.WARN, timedelta(0)), Step(Verb.STOP, HOUR), Step(Verb.TERMINATE, timedelta(days=7)))
        ends = ladder if self.drawn.random() < 0.5 else ladder[:2]
        on = policy(rule(limits=limits, ladder=ends, idle=IdleBounds(lasting=HOUR)), start_again=True)
        self.policies = (replace(on, start_again=False), on)
        self.stage = Stage(folder, idle_machine(cloud=self.drawn.choice(CLOUDS)), under=on)
        self.judged = _Judged(self.stage, self.truth, self.drawn)
        self.stage.executor = self.judged  # type: ignore[assignment]
        inner, story = self.stage.inventory, self

        class Watched:
            def __getattr__(self, name: str) -> Any:
                return getattr(inner, name)

            def details(self, refs: Any) -> Any:
                found = inner.details(refs)
                story.between()
                return found

        self.stage.reading = replace(self.stage.reading, inventory=Watched())
        self.depth = 0

    def play(self) -> Truth:
        """All of it; the truth with what was against a rule."""
        for day in range(3):
            self.run(lambda day=day: self.stage.day(day))  # type: ignore[misc]
        for _ in range(_HOURS):
            self.stage.clock.advance(HOUR)
            self.stage.cloud.tick(self.stage.clock.now())
            self.something()
            self.run(lambda: self.stage.run_with(self.stage.world()))
        self.stage.close()
        return self.truth

    def run(self, one: Callable[[], object]) -> None:
        """One run, which may die."""
        try:
            one()
        except Died:
            return

    def between(self) -> None:
        """What happens between a last look and the intent: somebody pauses, or another run comes by."""
        drawn = self.drawn.random()
        if drawn < 0.12:
            self.pause()
        elif drawn < 0.2 and not self.depth:
            self.depth += 1
            self.run(lambda: self.stage.run_with(replace(self.stage.world(), clock=self.stage.clock)))
            self.depth -= 1

    def something(self) -> None:
        """What people and the cloud do in this hour: what stands in the way seldom stands there for long."""
        lifts = (
            (self.truth.paused, self.resume),
            (self.truth.frozen, self.turn_freeze),
            (not self.truth.key, self.turn_key),
        )
        for stands, lift in lifts:
            if stands and self.drawn.random() < 0.4:
                lift()
        if self.drawn.random() < 0.15:
            self.judged.capacity = not self.judged.capacity
        if self.drawn.random() < 0.4:
            self.ask()
        acts = (self.let_go, self.by_hand, self.start_and_stop, self.pause, self.turn_freeze, self.turn_key)
        if self.drawn.random() < 0.35:
            self.drawn.choices(acts, (8, 1, 2, 1, 3, 1))[0]()

    def ask(self) -> None:
        from costguard.cases.answering import Accepted
        from costguard.domain.errors import InvalidInputError
        from costguard.engine.answers import answers

        now, stage = self.stage.clock.now(), self.stage
        try:
            said = answers.start(stage.memory, "idle_gpu", str(stage.ref()), "vision", now, stage.policy)
        except InvalidInputError:
            return
        if isinstance(said.weighed, Accepted):
            self.truth.asked.append(now)

    def let_go(self) -> None:
        """Whoever asked for a start also kept it; without that it is stopped again sooner."""
        self.stage.memory.snoozes.clear(str(self.stage.ref()), "vision", self.stage.clock.now())

    def by_hand(self) -> None:
        (machine,) = self.stage.cloud.machines.values()
        if machine.state.value == "stopped":
            self.stage.cloud.start(machine.native_id, "owner")
        elif machine.state.value == "running":
            self.stage.cloud.stop(machine.native_id, "owner")
            self.truth.stopped_by = "owner"

    def start_and_stop(self) -> None:
        """Between two runs: nothing but the run epoch tells of it."""
        (machine,) = self.stage.cloud.machines.values()
        if machine.state.value != "stopped":
            return
        for turn in (self.stage.cloud.start, self.stage.cloud.stop):
            turn(machine.native_id, "owner")
            self.stage.clock.advance(timedelta(minutes=20))
            self.stage.cloud.tick(self.stage.clock.now())
        self.truth.stopped_by = "owner"

    def pause(self) -> None:
        self.stage.memory.switch.pause("ops", "incident", self.stage.clock.now())
        self.truth.paused = True

    def resume(self) -> None:
        self.stage.memory.switch.resume("ops", "over", self.stage.clock.now())
        self.truth.paused = False

    def turn_freeze(self) -> None:
        from costguard.domain.actions import FreezeVia, LaunchFreeze
        from costguard.engine.ledger.audit.audit import AuditWhat
        from costguard.planning.freeze import FreezePhase

        before = self.stage.memory.freezes.get("gpus")
        of = LaunchFreeze("gpus", self.stage.clouds[0], FreezeVia.ORGANISATION, "p-1", "ou-1")
        self.truth.frozen = not self.truth.frozen
        after = replace(before, phase=FreezePhase.ON if self.truth.frozen else FreezePhase.OFF, of=of)
        self.stage.memory.freezes.move(before, after, AuditWhat.TRANSITION, {}, "story", self.stage.clock.now())

    def turn_key(self) -> None:
        self.truth.key = not self.truth.key
        self.stage.policy = self.policies[self.truth.key]


@contextmanager
def quiet() -> Iterator[None]:
    """Without the lines that runs log."""
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)


def play(seed: int) -> Truth:
    """One story."""
    with tempfile.TemporaryDirectory(prefix="costguard-starts-") as folder, quiet():
        return Story(seed, Path(folder)).play()


def first_seen(seeds: range) -> tuple[int, str]:
    """The first of these seeds that breaks a rule, and how; 0 where none does."""
    for seed in seeds:
        found = play(seed).violations
        if found:
            return seed, found[0]
    return 0, ""


def hunted(bug: Bug, seeds: range) -> str:
    """What a fresh process with this bug says of these seeds."""
    command = (sys.executable, "-m", "tests.simulation.starts", "--seeds", f"{seeds.start}-{seeds.stop - 1}")
    done = subprocess.run((*command, "--bug", bug.name), capture_output=True, text=True, check=False)  # noqa: S603
    return done.stdout.strip() or done.stderr[-2000:]


def main() -> int:
    """Play; 1 where a rule was broken. With `--bugs` 1 where a bug was not seen."""
    options = argparse.ArgumentParser(prog="python -m tests.simulation.starts", description=__doc__)
    options.add_argument("--seeds", default="1-40", metavar="FIRST-LAST")
    options.add_argument("--bug", default="", choices=("", *(bug.name for bug in BUGS)))
    options.add_argument("--bugs", action="store_true", help="plant every bug in a process of its own")
    said = options.parse_args()
    first, _, last = said.seeds.partition("-")
    seeds = range(int(first), int(last or first) + 1)
    if said.bugs:
        seen = {bug.name: hunted(bug, seeds) for bug in BUGS}
        sys.stdout.writelines(f"{name}: {what}\n" for name, what in seen.items())
        return 1 if any("seed" not in what for what in seen.values()) else 0
    for bug in BUGS:
        if bug.name == said.bug:
            plant(bug)
    seed, what = first_seen(seeds)
    sys.stdout.write(f"seed {seed}: {what}\n" if seed else f"{len(seeds)} stories, nothing against a rule\n")
    return 1 if seed else 0


if __name__ == "__main__":
    raise SystemExit(main())
