"""A plan file is a proposal: whatever it says, `apply` does only what follows from ledger, policy and a fresh look."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.contract.cli_sandbox import Answered, Cli

from cloudstand.world.kinds import InstanceState
from costguard.cases import Case, CaseStatus, ClimbedRung, decision_id
from costguard.cli.decide.plan_file import read_plan, write_plan
from costguard.cli.exits import Exit
from costguard.cli.sandbox.running import Sandbox
from costguard.domain.actions import Action, Verb
from costguard.domain.findings import Finding
from costguard.domain.reasons import Reason, ReasonCode
from costguard.domain.refs import ResourceRef
from costguard.guards.rules.common import Mode
from costguard.planning import Held, Plan, Rehearsed, Transition
from costguard.report.words.sentences import Language

HOUR = timedelta(hours=1)
INSIDE = "regions: all, organisation: true, role: costguard, external_id: costguard-sandbox"
ACCOUNTS = f"""accounts:
  - {{cloud: aws, id: "111122223333", {INSIDE}}}
  - {{cloud: alibaba, id: "1234567890123456", {INSIDE}}}
  - {{cloud: tencent, id: "100012345678", {INSIDE}}}"""
POLICY = """
version: 1
mode: enforce
ACCOUNTS
notify: {default: "slack:#gpu-costs"}
idle_gpu:
  - name: research
    applies_when_all: {clouds: [aws], tags: {team: research}}
    idle_when_all: {lasting: 24h, every_gpu_max_below: 5%}
    then: [warn, {stop: {wait: 24h}}, {terminate: {wait: 7d}}]
    safety: {actions_per_day: 10, fleet_share_per_day: 100%, hourly_cost_stopped_per_day: [1000 USD], local_disk: lose}
  - name: asking
    applies_when_all: {clouds: [aws], tags: {team: product}}
    idle_when_all: {lasting: 24h, every_gpu_max_below: 5%}
    then: [warn, {stop: {wait: 24h}}]
    safety: {actions_per_day: 10, fleet_share_per_day: 100%, hourly_cost_stopped_per_day: [1000 USD], local_disk: ask}
  - name: capped
    applies_when_all: {clouds: [alibaba]}
    idle_when_all: {lasting: 24h, every_gpu_max_below: 5%}
    then: [warn, {stop: {wait: 24h}}]
    safety: {actions_per_day: 0, fleet_share_per_day: 100%, hourly_cost_stopped_per_day: [1000 CNY], local_disk: lose}
  - name: watching
    mode: observe
    applies_when_all: {clouds: [tencent]}
    idle_when_all: {lasting: 24h, every_gpu_max_below: 5%}
    then: [warn, {stop: {wait: 24h}}]
    safety: {actions_per_day: 10, fleet_share_per_day: 100%, hourly_cost_stopped_per_day: [1000 CNY], local_disk: lose}
""".replace("ACCOUNTS", ACCOUNTS)


@dataclass
class Story:
    """One sandbox whose clock only goes forward: hour 0 nobody is told yet, from hour 0 on (`told`) everybody is."""

    sandbox: Sandbox
    folder: Path
    hours: float = 0
    told: bool = False
    plans: dict[tuple[float, bool], Plan] = field(default_factory=dict)

    @property
    def policy(self) -> Path:
        return self.folder / "costguard.yaml"

    @property
    def ledger(self) -> Path:
        return self.folder / "ledger.db"


@dataclass
class Desk:
    """The story at one hour, with a copy of its ledger, and a plan made there."""

    cli: Cli
    story: Story
    plan: Plan

    def apply(self, forged: Plan) -> Answered:
        path = self.cli.folder / "plan.json"
        write_plan(path, forged, Language.EN)
        return self.cli("apply", "--plan", str(path), "--policy", str(self.story.policy), "--json")

    def remembered(self) -> list[Any]:
        path = self.cli.folder / "ledger.db"
        if not path.exists():
            return []
        with closing(sqlite3.connect(path)) as ledger:
            tables = [name for (name,) in ledger.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            return [(name, sorted(map(repr, ledger.execute(f"SELECT * FROM {name}")))) for name in tables]  # noqa: S608

    def finding(self, name: str) -> Finding:
        native_id = self.cli.id_of(name)
        return next(
            each
            for each in self.plan.findings
            if isinstance(each.subject, ResourceRef) and each.subject.native_id == native_id
        )

    def step(self, name: str) -> Transition:
        subject = self.finding(name).subject
        return next(each for each in self.plan.transitions if each.after.subject == subject)

    def action(self, name: str) -> Action:
        subject = self.finding(name).subject
        kept: Iterable[Held | Rehearsed] = (*self.plan.held, *self.plan.rehearsed)
        wanted = (*self.plan.due, *(item.action for item in kept))
        return next(each for each in wanted if each.subject == subject)


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    folder = tmp_path_factory.mktemp("story")
    (folder / "costguard.yaml").write_text(POLICY, encoding="utf-8")
    with Sandbox.start() as running:
        yield Story(running, folder)


@pytest.fixture
def desk_at(story: Story, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Callable[[float], Desk]:
    def at(hours: float, *, told: bool = True) -> Desk:
        cli, path = Cli(story.sandbox, tmp_path, capfd), tmp_path / "plan.json"
        planning = ("plan", "--policy", str(story.policy), "--out", str(path))
        if told and not story.told:
            assert cli(*planning).status == Exit.DUE
            answered = cli("apply", "--plan", str(path), "--policy", str(story.policy))
            assert answered.status == Exit.HELD, "its cloud protects the login node"
            shutil.copy(tmp_path / "ledger.db", story.ledger)
            story.told = True
        if hours > story.hours:
            story.sandbox.advance((hours - story.hours) * HOUR)
            story.hours = hours
        assert story.hours == hours, "the clock only goes forward: order the tests by their hours"
        (tmp_path / "ledger.db").unlink(missing_ok=True)
        if told:
            shutil.copy(story.ledger, tmp_path / "ledger.db")
        if (hours, told) not in story.plans:
            cli(*planning)
            story.plans[hours, told] = read_plan(path)
        return Desk(cli, story, story.plans[hours, told])

    return at


def with_stop(plan: Plan, case: Case, before: Case | None) -> Plan:
    """The plan with a stop of this case alone, as if it had been told of long ago and its rule enforced."""
    climbed = (ClimbedRung(Verb.WARN, plan.planned_at - 30 * HOUR),)
    due = replace(
        case,
        mode=Mode.ENFORCE,
        status=CaseStatus.OPEN,
        rung=1,
        climbed=climbed,
        since=climbed[0].at,
        reason=Reason(ReasonCode.WAITING, {"verb": "stop"}),
    )
    due = replace(due, decision_id=decision_id(due))
    named = (due.decision_id, due.decision_id, Verb.STOP, due.subject, due.subject, due.run_epoch)
    stop = Action(*named, due.case_id, 1, due.rule, due.rule_digest)
    limits = tuple(replace(each, max_actions=100, seen=100) for each in plan.limits)
    return replace(plan, due=(stop,), held=(), rehearsed=(), limits=limits, transitions=(Transition(before, due),))


def stop_of(name: str) -> Callable[[Desk], Plan]:
    """A stop of this machine, told of long ago, whatever the ledger says."""

    def forge(desk: Desk) -> Plan:
        step = desk.step(name)
        return with_stop(desk.plan, step.after, step.before)

    return forge


def stop_of_busy(desk: Desk) -> Plan:
    """A stop of a machine in use, by a case that nobody ever opened."""
    step, busy = desk.step("thesis-notebook"), desk.finding("recommendations")
    assert isinstance(busy.subject, ResourceRef)
    case = replace(step.after, case_id="f" * 16, subject=busy.subject, run_epoch=busy.run_epoch)
    return with_stop(desk.plan, replace(case, rule=busy.rule, rule_digest=busy.rule_digest), None)


def told_to_others(desk: Desk) -> Plan:
    """The warning goes to whoever wrote the file, and its owner never hears of it."""
    step = desk.step("thesis-notebook")
    astray = Transition(step.before, replace(step.after, owner="mallory"))
    due = tuple(each for each in desk.plan.due if each.case_id == step.after.case_id)
    return replace(desk.plan, due=due, transitions=(astray,))


def terminated_at_once(desk: Desk) -> Plan:
    """Due to be stopped, and terminated instead: no quarantine, no copies."""
    step, like = desk.step("thesis-notebook"), desk.action("thesis-notebook")
    climbed = (
        *step.after.climbed,
        ClimbedRung(Verb.STOP, step.after.since),
        ClimbedRung(Verb.SNAPSHOT, step.after.since),
    )
    last = replace(step.after, rung=4, climbed=climbed, decision_id="")
    last = replace(last, decision_id=decision_id(last))
    end = replace(like, verb=Verb.TERMINATE, rung=4, decision_id=last.decision_id, action_id=last.decision_id)
    return replace(desk.plan, due=(end,), transitions=(Transition(step.before, last),))


def rung_skipped(desk: Desk) -> Plan:
    """The stop that is due, as another step of the ladder than it is."""
    step, like = desk.step("thesis-notebook"), desk.action("thesis-notebook")
    return replace(desk.plan, due=(replace(like, rung=3),), transitions=(step,))


def aimed_elsewhere(desk: Desk) -> Plan:
    """The stop that is due, at a machine in use."""
    step, busy = desk.step("thesis-notebook"), desk.finding("recommendations").subject
    assert isinstance(busy, ResourceRef)
    return replace(
        desk.plan, due=(replace(desk.action("thesis-notebook"), subject=busy, resource=busy),), transitions=(step,)
    )


def case_of_nothing(desk: Desk) -> Plan:
    """An action whose case stands nowhere in the file."""
    return replace(desk.plan, due=(replace(desk.action("thesis-notebook"), case_id="0" * 16),), transitions=())


def other_epoch(desk: Desk) -> Plan:
    """The stop of another run of the machine."""
    step = desk.step("thesis-notebook")
    return replace(
        desk.plan, due=(replace(desk.action("thesis-notebook"), run_epoch="2020-01-01T00:00:00Z"),), transitions=(step,)
    )


def approved(desk: Desk) -> Plan:
    """What waits for leave to lose a local disk, as if somebody had given it."""
    step, like = desk.step("batch-transcoder"), desk.action("batch-transcoder")
    return replace(
        desk.plan,
        due=(like,),
        held=(),
        transitions=(Transition(step.before, replace(step.after, status=CaseStatus.OPEN)),),
    )


def closed_by_the_file(desk: Desk) -> Plan:
    """A case that the file closes: the machine would be told of anew, and wait anew."""
    step = desk.step("thesis-notebook")
    over = replace(
        step.after, status=CaseStatus.CLOSED, reason=Reason(ReasonCode.RECOVERED), closed_at=desk.plan.planned_at
    )
    return replace(desk.plan, due=(), held=(), transitions=(Transition(step.before, over),))


FORGED: tuple[tuple[float, bool, Callable[[Desk], Plan], str, str], ...] = (
    (0, False, stop_of("npc-notebook"), "mode_observe", ""),
    (0, False, stop_of("thesis-notebook"), "plan_differs", "verb"),
    (0, False, stop_of("ad-ranking-dev"), "plan_differs", "verb"),
    (0, False, stop_of_busy, "busy", ""),
    (0, False, told_to_others, "plan_differs", "owner"),
    (1, True, stop_of("thesis-notebook"), "waiting", ""),
    (1, True, stop_of("ad-ranking-dev"), "waiting", ""),
    (25, True, stop_of("ad-ranking-dev"), "cap_actions", ""),
    (25, True, stop_of("npc-notebook"), "mode_observe", ""),
    (25, True, terminated_at_once, "plan_differs", "verb"),
    (25, True, rung_skipped, "plan_differs", "rung"),
    (25, True, aimed_elsewhere, "plan_differs", "resource"),
    (25, True, case_of_nothing, "plan_differs", "case"),
    (25, True, other_epoch, "plan_differs", "run_epoch"),
    (25, True, approved, "approval_needed", ""),
    (25, True, closed_by_the_file, "plan_differs", "status"),
)


@pytest.mark.parametrize(
    ("hours", "told", "forge", "code", "what"),
    FORGED,
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_forged_plan_changes_nothing_and_is_told_what_differs(
    desk_at: Callable[..., Desk],
    hours: float,
    *,
    told: bool,
    forge: Callable[[Desk], Plan],
    code: str,
    what: str,
) -> None:
    """Each is written by the program's own `write_plan`, with a hash that fits and words that fit."""
    desk = desk_at(hours, told=told)
    sandbox, before = desk.story.sandbox, desk.remembered()
    happened, posted = len(sandbox.world.history), len(sandbox.slack.posted)

    answered = desk.apply(forge(desk))

    assert answered.status == Exit.REFUSED, answered.err
    told_of = answered.json["results"] + answered.json["left"]
    assert [(why["reason"], why["facts"].get("what", "")) for why in told_of] == [(code, what)]
    assert desk.remembered() == before
    assert (len(sandbox.world.history), len(sandbox.slack.posted)) == (happened, posted)


def test_the_id_of_a_scheduled_run_is_refused(desk_at: Callable[..., Desk]) -> None:
    """Else the run of that name would count as completed, and never happen."""
    desk = desk_at(25)
    answered = desk.apply(replace(desk.plan, run_id="5d41402abc4b2a76"))
    assert answered.status == Exit.REFUSED
    assert "its run id is not one that `costguard plan` gives" in answered.err


def test_what_is_in_both_is_done_and_the_rest_refused_with_what_differs(desk_at: Callable[..., Desk]) -> None:
    """Two stops are due; the file has one of them, and one that nobody was told of."""
    desk = desk_at(25)
    thesis, staging = desk.action("thesis-notebook"), desk.action("staging-inference")
    assert {thesis.verb, staging.verb} == {Verb.STOP}
    busy = stop_of_busy(desk)
    cases = {thesis.case_id, busy.due[0].case_id}
    forged = replace(
        desk.plan,
        due=(thesis, *busy.due),
        transitions=tuple(
            each for each in (*desk.plan.transitions, busy.transitions[-1]) if each.after.case_id in cases
        ),
    )

    answered = desk.apply(forged)

    assert answered.status == Exit.HELD
    done, refused = answered.json["results"]
    assert (done["subject"], done["outcome"]) == (str(thesis.subject), "accepted")
    assert (refused["outcome"], refused["reason"]) == (None, "busy")
    machines = desk.story.sandbox.world.machines
    assert machines[thesis.subject.native_id].state is InstanceState.STOPPING
    assert machines[staging.subject.native_id].state is InstanceState.RUNNING, "not in the file"
