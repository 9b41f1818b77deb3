"""`python -m tests.simulation.asks`: exceptions of the ledger, asked for and agreed to while runs come and go.

The real engine over a world, two machines a story, all from its seed. People ask, agree, take back and end, also
between a last look and its call. An oracle that keeps the truth by itself judges every stop that leaves, every word
that was taken, and what runs show as excepted.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.simulation.planting import Bug, Edit, plant
from tests.simulation.starts import quiet

if TYPE_CHECKING:
    from tests.scenario.stage import Stage

    from costguard.domain.actions import Action, Receipt

_PURE, _LEDGER = "costguard.cases.excepting", "costguard.engine.ledger.exceptions"
BUGS: tuple[Bug, ...] = (
    Bug(
        "exception-without-its-approvers",
        (9,),
        (Edit(_LEDGER, "            if after.phase is AskPhase.AGREED:", "            if True:"),),
    ),
    Bug(
        "requester-agrees-to-their-own-exception",
        (9,),
        (
            Edit(
                _PURE,
                "    if person_id(str(by)) == person_id(ask.by):\n        return Refused",
                "    if False:\n        return Refused",
            ),
            Edit(_PURE, "        if person_id(vote.by) == person_id(self.by):", "        if False:"),
        ),
    ),
    Bug(
        "anybody-agrees-to-an-exception",
        (9,),
        (
            Edit(
                _PURE,
                "    return None if by.id in ground.terms.approvers else AnswerCode.NOT_AMONG_APPROVERS",
                "    return None",
            ),
        ),
    ),
    Bug(
        "exception-of-another-resource",
        (9,),
        (Edit(_LEDGER, "    whose = Selector(resources=(keep.ref_text,))", "    whose = Selector()"),),
    ),
    Bug(
        "withdrawn-exception-agreed-to",
        (9,),
        (Edit(_PURE, "        return self.phase is AskPhase.WAITING and now <", "        return now <"),),
    ),
    Bug("late-agreement-to-an-exception", (9,), (Edit(_PURE, " and now < self.ends_at and not", " and not"),)),
    Bug(
        "agreed-exception-not-heeded",
        (9,),
        (Edit(_LEDGER, "            if after.phase is AskPhase.AGREED:", "            if False:"),),
    ),
)
HOUR, DAY, VALID = timedelta(hours=1), timedelta(days=1), timedelta(days=7)
APPROVERS, STRANGER = ("U0KIM", "U0LEE"), "U0PAT"
_NAMES = ("notebook", "other")
_RUNS = 48


@dataclass
class Question:
    """What somebody asked for, as it happened."""

    by: str
    at: datetime
    until: datetime
    agreed: tuple[str, ...] = ()
    over: bool = False


class Truth:
    """What happened, as nobody in the program is asked: who asked, who agreed, and what is to be left alone."""

    def __init__(self) -> None:
        self.asked: dict[str, Question] = {}
        self.held: dict[str, datetime] = {}
        self.agreements = self.stops = 0
        self.violations: list[str] = []

    def wrong(self, now: datetime, what: str) -> None:
        self.violations.append(f"{now:%d %H:%M}: {what}")

    def stopped(self, name: str, now: datetime) -> None:
        """Whether this stop may leave."""
        self.stops += 1
        if self.held.get(name, now) > now:
            self.wrong(now, f"{name} was stopped, and is excepted")

    def agrees(self, name: str, by: str, now: datetime, *, holds: bool) -> None:
        """Whether this word may have been taken, and be the last that was needed."""
        question = self.asked.get(name)
        if question is None or question.over or now >= min(question.until, question.at + VALID):
            self.wrong(now, f"{by} agreed to what nobody asks for any more")
            return
        if by not in APPROVERS or by == question.by:
            self.wrong(now, f"{by} agreed, who may not")
        question.agreed += (by,)
        if not holds:
            return
        if len({*question.agreed}) < (2 if question.by == "link" else 1):
            self.wrong(now, f"{name} is excepted by too few")
        question.over, self.held[name] = True, question.until
        self.agreements += 1

    def shown(self, names: set[str], now: datetime) -> None:
        """Whether these may be shown as excepted."""
        for name in sorted(names):
            if self.held.get(name, now) <= now:
                self.wrong(now, f"{name} is shown as excepted, and nobody agreed")


class _Judged:
    """The executor: every stop is judged before the world hears of it."""

    def __init__(self, stage: Stage, truth: Truth) -> None:
        self._inner, self._stage, self._truth = stage.executor, stage, truth
        self._names = {stage.ref(name): name for name in _NAMES}

    def execute(self, action: Action) -> Receipt:
        if action.verb.value == "stop":
            self._truth.stopped(self._names[action.subject], self._stage.clock.now())
        return self._inner.execute(action)


class Story:
    """Two machines over some days, by their seed."""

    def __init__(self, seed: int, folder: Path) -> None:
        from tests.builders import policy, rule
        from tests.scenario.stage import CLOUDS, Stage, idle_machine

        from costguard.domain.actions import Verb
        from costguard.guards.rules.common import Step
        from costguard.guards.rules.idle import IdleBounds
        from costguard.policy.model.policy import AnswerTerms

        self.drawn, self.truth = random.Random(f"asks {seed}"), Truth()  # noqa: S311 - a seed, not a secret
        limits = replace(rule().limits, actions_per_day=9)
        ladder = (Step(Verb.WARN, timedelta(0)), Step(Verb.STOP, DAY))
        on = rule(limits=limits, ladder=ladder, idle=IdleBounds(lasting=HOUR))
        cloud = self.drawn.choice(CLOUDS)
        machines = [idle_machine(name, cloud=cloud) for name in _NAMES]
        self.stage = Stage(folder, *machines, under=policy(on, answers=AnswerTerms("T01", APPROVERS)))
        self.stage.executor = _Judged(self.stage, self.truth)  # type: ignore[assignment]
        inner, story = self.stage.inventory, self

        class Watched:
            def __getattr__(self, name: str) -> Any:
                return getattr(inner, name)

            def details(self, refs: Any) -> Any:
                found = inner.details(refs)
                if story.drawn.random() < 0.5:
                    story.something()
                return found

        self.stage.reading = replace(self.stage.reading, inventory=Watched())

    def play(self) -> Truth:
        """All of it; the truth with what was against a rule."""
        self.stage.day(0)
        for _ in range(_RUNS):
            self.stage.clock.advance(self.drawn.choice((HOUR, 6 * HOUR, 6 * HOUR, DAY)))
            self.stage.cloud.tick(self.stage.clock.now())
            for _ in range(self.drawn.randint(0, 3)):
                self.something()
            self.run()
        self.stage.close()
        return self.truth

    def run(self) -> None:
        from costguard.domain.reasons import ReasonCode

        held = dict(self.truth.held)  # what is agreed to or ended during a run may be shown either way
        report = self.stage.run_with(self.stage.world())
        names = {str(self.stage.ref(name)): name for name in _NAMES}
        found = report.plan.findings if report.plan is not None else ()
        excepted = {names[str(one.subject)] for one in found if one.reason.code is ReasonCode.EXCEPTION}
        now = self.stage.clock.now()
        both = {name for name in excepted if held.get(name, now) <= now and self.truth.held.get(name, now) <= now}
        self.truth.shown(both, now)

    def something(self) -> None:
        """What people do."""
        acts: tuple[Callable[[str], None], ...] = (self.ask, self.agree, self.end, self.by_hand)
        self.drawn.choices(acts, (4, 6, 1, 2))[0](self.drawn.choice(_NAMES))

    def ask(self, name: str) -> None:
        from costguard.cases.answering import CLI, Accepted
        from costguard.domain.answers import Answer, AnswerKind, AnswerRef, Person
        from costguard.domain.errors import InvalidInputError
        from costguard.engine.answers import answers, excepting

        stage, now = self.stage, self.stage.clock.now()
        try:
            case = stage.case(name)
        except InvalidInputError:
            return
        by, until = self.drawn.choice((*APPROVERS, STRANGER, "link")), now + self.drawn.choice((DAY, 5 * DAY, 20 * DAY))
        of = AnswerRef(case.case_id, answers.notice_decision(case))
        if by == "link":
            self._by_link(name, until)
            return
        said = Answer(AnswerKind.EXCEPT, of, Person(CLI, by), now, until - now, "release")
        if isinstance(excepting.ask(stage.memory, stage.policy, said, now, case=case), Accepted):
            self.truth.asked[name] = Question(by, now, until)

    def _by_link(self, name: str, until: datetime) -> None:
        from costguard.cases import CaseStatus
        from costguard.cases.excepting import ExceptionAsk

        case, now = self.stage.case(name), self.stage.clock.now()
        ref = str(self.stage.ref(name))
        asked = ExceptionAsk(ref, case.key, case.case_id, case.rule, case.owner, "link:feishu:gpu", "demo", until, now)
        if case.status is not CaseStatus.CLOSED and self.stage.memory.exceptions.ask(asked) is None:
            self.truth.asked[name] = Question("link", now, until)

    def agree(self, name: str) -> None:
        from costguard.cases.answering import CLI, Accepted
        from costguard.domain.answers import AnswerCode, Person
        from costguard.engine.answers import excepting

        memory, ref, now = self.stage.memory, str(self.stage.ref(name)), self.stage.clock.now()
        asked = [one for one in memory.exceptions.all() if one.ref_text == ref]
        if not asked:
            return
        by = self.drawn.choice((*APPROVERS, *APPROVERS, STRANGER))
        of = max(asked, key=lambda one: one.asked_at).of
        said = excepting.agree(memory, self.stage.policy, of, Person(CLI, by), now)
        if isinstance(said, Accepted):
            self.truth.agrees(name, by, now, holds=said.code is AnswerCode.EXCEPTION_AGREED)

    def end(self, name: str) -> None:
        from costguard.domain.errors import InvalidInputError
        from costguard.engine.answers import excepting
        from costguard.report.words.sentences import Language

        memory, ref, now = self.stage.memory, str(self.stage.ref(name)), self.stage.clock.now()
        if name in self.truth.asked:
            self.truth.asked[name].over = True
        self.truth.held.pop(name, None)
        try:
            excepting.end(memory, self.stage.policy, ref, "ops", now, Language.EN)
        except InvalidInputError:
            return

    def by_hand(self, name: str) -> None:
        """A machine that Costguard stopped is started by its owner: another case, with questions of its own."""
        machine = self.stage.cloud.machines[self.stage.ref(name).native_id]
        if machine.state.value == "stopped":
            self.stage.cloud.start(machine.native_id, "owner")


def play(seed: int) -> Truth:
    """One story."""
    with tempfile.TemporaryDirectory(prefix="costguard-asks-") as folder, quiet():
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
    command = (sys.executable, "-m", "tests.simulation.asks", "--seeds", f"{seeds.start}-{seeds.stop - 1}")
    done = subprocess.run((*command, "--bug", bug.name), capture_output=True, text=True, check=False)  # noqa: S603
    return done.stdout.strip() or done.stderr[-2000:]


def main() -> int:
    """Play; 1 where a rule was broken. With `--bugs` 1 where a bug was not seen."""
    options = argparse.ArgumentParser(prog="python -m tests.simulation.asks", description=__doc__)
    options.add_argument("--seeds", default="1-30", metavar="FIRST-LAST")
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
