"""An owner has a machine started again that Costguard stopped: once, as it was left, against nobody's word."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from tests.builders import policy, rule
from tests.scenario.stage import CLOUDS, DAY, Mailbox, Stage, idle_machine
from tests.world_ports.inventory import WorldInventory

from costguard.adapters.ledgers.open import open_ledger
from costguard.adapters.notifiers.plain import KeepLinks
from costguard.cases import CaseStatus
from costguard.domain.actions import FreezeVia, LaunchFreeze, Outcome, Verb
from costguard.domain.answers import Answer, AnswerCode, AnswerKind, Person
from costguard.domain.errors import (
    AccessDeniedError,
    InvalidInputError,
    NoCapacityError,
    OutcomeUnknownError,
    UnavailableError,
)
from costguard.domain.reasons import ReasonCode
from costguard.domain.refs import ResourceRef
from costguard.domain.resources import InstanceDetail
from costguard.engine.answers import answers
from costguard.engine.answers.keep_pages import answer_keep
from costguard.engine.answers.replies import reply
from costguard.engine.ledger.audit.audit import AuditWhat
from costguard.engine.ledger.memory import Memory
from costguard.engine.ledger.starts import StartPhase, StartRepository, StartRequest
from costguard.engine.run.run import run_guard
from costguard.guards.rules.common import Selector
from costguard.planning.freeze import FreezePhase, FreezeState
from costguard.policy.model.policy import AnswerTerms, Owner
from costguard.ports import Choice, Delivery, Message
from costguard.report.words.sentences import Language

HOUR = timedelta(hours=1)
TOLD = DAY * 3


@pytest.fixture(params=CLOUDS)
def stopped(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stage]:
    """A notebook that was told of on day 0, stopped on day 1 and seen stopped on day 2."""
    stage = Stage(tmp_path, idle_machine(cloud=request.param), under=policy(start_again=True))
    stage.days(range(3))
    assert stage.state() == "stopped"
    yield stage
    stage.close()


@pytest.fixture
def notebook(tmp_path: Path) -> Iterator[Stage]:
    """The same on one cloud, where clouds do not differ."""
    stage = Stage(tmp_path, idle_machine(), under=policy(start_again=True))
    stage.days(range(3))
    yield stage
    stage.close()


def asked(stage: Stage, by: str = "vision") -> AnswerCode:
    return answers.start(stage.memory, "idle_gpu", str(stage.ref()), by, stage.clock.now(), stage.policy).weighed.code


def word(stage: Stage) -> StartRequest:
    request, _ = stage.memory.starts.of(str(stage.ref()))
    assert request is not None
    return request


def why(stage: Stage) -> ReasonCode:
    reason = word(stage).reason
    assert reason is not None
    return reason.code


def starts(stage: Stage) -> int:
    return stage.verbs().count("start")


def test_the_next_run_starts_it_and_says_so(stopped: Stage) -> None:
    stage = stopped
    assert asked(stage) is AnswerCode.START_ASKED
    stage.at(TOLD)
    assert (starts(stage), word(stage).phase) == (1, StartPhase.SENT), word(stage)
    stage.at(TOLD + HOUR)
    assert (stage.state(), word(stage).phase) == ("running", StartPhase.STARTED)
    stage.at(TOLD + 2 * HOUR)
    assert stage.case().status is CaseStatus.CLOSED
    assert stage.mailbox.titles[-1] == "notebook runs again, as vision asked"
    (intent,) = [one for one in stage.memory.intents.for_case(stage.case().case_id) if one.action.verb is Verb.START]
    assert intent.outcome is Outcome.TOOK_EFFECT
    (saving,) = stage.memory.savings.all()
    assert saving.ended_at is not None


def test_it_gets_its_grace_anew(stopped: Stage) -> None:
    """Measured over a whole window from its start, told, and given the whole wait: no stop comes before."""
    asked(stopped)
    for hours in range(24 * 2):
        stopped.at(TOLD + hours * HOUR)
        assert stopped.verbs().count("stop") == 1
    stopped.days(range(6, 12))
    told = [title for title in stopped.mailbox.titles if "will be stopped" in title]
    assert (len(told), stopped.verbs().count("stop")) == (2, 2)


def test_pressing_twice_is_one_start(stopped: Stage) -> None:
    assert asked(stopped) is AnswerCode.START_ASKED
    assert asked(stopped, "somebody else") is AnswerCode.START_STANDS
    for hours in range(4):
        stopped.at(TOLD + hours * HOUR)
    assert starts(stopped) == 1


def test_no_capacity_is_tried_again_by_the_next_runs_and_told_once_it_runs(notebook: Stage) -> None:
    asked(notebook)
    notebook.executor.fails_before = NoCapacityError("sold out", operation="ec2:StartInstances", code="Insufficient")
    messages = len(notebook.mailbox.messages)
    for hours in range(3):
        notebook.at(TOLD + hours * HOUR)
    assert (starts(notebook), word(notebook).tries, word(notebook).phase) == (3, 3, StartPhase.WAITING)
    assert why(notebook) is ReasonCode.NO_CAPACITY
    assert len(notebook.mailbox.messages) == messages
    notebook.executor.fails_before = None
    for hours in range(3, 6):
        notebook.at(TOLD + hours * HOUR)
    assert (starts(notebook), notebook.state()) == (4, "running")
    assert "runs again" in notebook.mailbox.titles[-1]


@pytest.mark.parametrize("waits_for", ["capacity", "a closer look"])
def test_no_word_starves_behind_those_that_wait(tmp_path: Path, waits_for: str) -> None:
    """A run tries twenty at most; those that it did not come to are tried by the next."""
    plenty = replace(rule().limits, actions_per_day=100, fleet_share_per_day=Decimal(1))
    fleet = [idle_machine(f"box-{number:02}") for number in range(25)]
    stage = Stage(tmp_path, *fleet, under=policy(rule(limits=plenty), start_again=True))
    stage.days(range(3))
    for spec in fleet:
        answers.start(stage.memory, "idle_gpu", str(stage.ref(spec.name)), "vision", stage.clock.now(), stage.policy)
    tried: set[str] = set()
    if waits_for == "capacity":
        stage.executor.fails_before = NoCapacityError("sold out", operation="ec2:StartInstances", code="Insufficient")
        for hours in range(2):
            stage.at(TOLD + hours * HOUR)
        tried = {call.subject.native_id for call in stage.executor.calls if call.verb is Verb.START}
    else:
        unread = Unread(stage)
        for hours in range(20):
            stage.at(TOLD + hours * HOUR)
        tried = unread.asked
    stage.close()
    assert len(tried) == 25


class Unread(WorldInventory):
    """Fails to look at one machine, and notes which it was; whole shards it reads."""

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage.cloud, stage.clock)
        self.asked: set[str] = set()
        stage.reading = replace(stage.reading, inventory=self)

    def details(self, refs: Sequence[ResourceRef]) -> Mapping[ResourceRef, InstanceDetail]:
        if len(refs) > 1:
            return super().details(refs)
        self.asked.add(refs[0].native_id)
        raise UnavailableError("not now", operation="ec2:DescribeInstances")


def test_trying_ends_after_two_days_and_its_owner_is_told(notebook: Stage) -> None:
    asked(notebook)
    notebook.executor.fails_before = NoCapacityError("sold out", operation="ec2:StartInstances", code="Insufficient")
    for hours in range(60):
        notebook.at(TOLD + hours * HOUR)
    assert starts(notebook) <= 24
    assert word(notebook).phase is StartPhase.GIVEN_UP
    said = [message for message in notebook.mailbox.messages if "was not started again" in message.title]
    assert len(said) == 1
    assert "capacity" in said[0].text
    assert notebook.state() == "stopped"


def test_an_unknown_outcome_is_looked_at_and_never_sent_again(notebook: Stage) -> None:
    asked(notebook)
    notebook.executor.fails_before = OutcomeUnknownError("no answer", operation="ec2:StartInstances")
    for hours in range(60):
        notebook.at(TOLD + hours * HOUR)
    assert (starts(notebook), word(notebook).phase) == (1, StartPhase.GIVEN_UP)
    assert sum("was not started again" in title for title in notebook.mailbox.titles) == 1


def test_an_unknown_outcome_that_took_effect_is_seen(notebook: Stage) -> None:
    asked(notebook)
    notebook.executor.fails_after = OutcomeUnknownError("no answer", operation="ec2:StartInstances")
    for hours in range(4):
        notebook.at(TOLD + hours * HOUR)
    assert (starts(notebook), word(notebook).phase, notebook.state()) == (1, StartPhase.STARTED, "running")


def test_a_refusal_ends_it_with_what_is_missing(notebook: Stage) -> None:
    asked(notebook)
    notebook.executor.fails_before = AccessDeniedError("no grant", operation="ec2:StartInstances", code="Unauthorized")
    for hours in range(3):
        notebook.at(TOLD + hours * HOUR)
    assert (starts(notebook), word(notebook).phase) == (1, StartPhase.GIVEN_UP)
    assert why(notebook) is ReasonCode.PERMISSION_MISSING


def test_what_somebody_else_stopped_is_not_started(stopped: Stage) -> None:
    """It was started and stopped again by its owner: the stop that shows is not ours."""
    (machine,) = stopped.cloud.machines
    asked(stopped)
    stopped.cloud.start(machine, "owner")
    stopped.clock.advance(timedelta(minutes=20))
    stopped.cloud.tick(stopped.clock.now())
    stopped.cloud.stop(machine, "owner")
    stopped.clock.advance(timedelta(minutes=20))
    for hours in range(3):
        stopped.at(TOLD + hours * HOUR)
    assert (starts(stopped), word(stopped).phase) == (0, StartPhase.GIVEN_UP)


def test_a_machine_that_somebody_started_is_left_alone(stopped: Stage) -> None:
    (machine,) = stopped.cloud.machines
    asked(stopped)
    stopped.cloud.start(machine, "owner")
    stopped.clock.advance(HOUR)
    stopped.at(TOLD)
    assert (starts(stopped), word(stopped).phase) == (0, StartPhase.GIVEN_UP)


def test_a_machine_that_is_gone_or_was_replaced_is_told(stopped: Stage) -> None:
    (machine,) = stopped.cloud.machines
    asked(stopped)
    stopped.cloud.terminate(machine, "owner")
    stopped.clock.advance(HOUR)
    for hours in range(3):
        stopped.at(TOLD + hours * HOUR)
    assert (starts(stopped), word(stopped).phase) == (0, StartPhase.GIVEN_UP)
    assert any("was not started again" in title for title in stopped.mailbox.titles)


def test_a_machine_whose_disk_was_taken_away_is_not_started(notebook: Stage) -> None:
    asked(notebook)
    inner = notebook.inventory

    class WithoutDisks:
        def __getattr__(self, name: str) -> object:
            return getattr(inner, name)

        def details(self, refs: object) -> object:
            return {ref: replace(detail, volumes=()) for ref, detail in inner.details(refs).items()}  # type: ignore[arg-type]

    notebook.reading = replace(notebook.reading, inventory=WithoutDisks())  # type: ignore[arg-type]
    notebook.at(TOLD)
    assert starts(notebook) == 0
    assert why(notebook) is ReasonCode.DISKS_CHANGED


def test_nothing_is_started_while_paused(stopped: Stage) -> None:
    asked(stopped)
    stopped.memory.switch.pause("ops", "incident", stopped.clock.now())
    stopped.at(TOLD)
    stopped.memory.switch.resume("ops", "over", stopped.clock.now())
    stopped.paused_host = True
    stopped.at(TOLD + HOUR)
    assert (starts(stopped), word(stopped).phase) == (0, StartPhase.WAITING)
    stopped.paused_host = False
    stopped.at(TOLD + 2 * HOUR)
    assert starts(stopped) == 1


def test_a_switch_set_after_the_last_look_is_in_time(notebook: Stage) -> None:
    asked(notebook)
    details = notebook.inventory.details

    def paused_meanwhile(refs: object) -> object:
        found = details(refs)  # type: ignore[arg-type]
        notebook.memory.switch.pause("ops", "incident", notebook.clock.now())
        return found

    class Slow:
        def __getattr__(self, name: str) -> object:
            return paused_meanwhile if name == "details" else getattr(notebook.inventory, name)

    notebook.reading = replace(notebook.reading, inventory=Slow())  # type: ignore[arg-type]
    notebook.at(TOLD)
    assert starts(notebook) == 0


@pytest.mark.parametrize(
    ("via", "account"), [(FreezeVia.ORGANISATION, ""), (FreezeVia.GROUP, ""), (FreezeVia.GROUP, "its")]
)
def test_a_launch_freeze_bars_a_start(stopped: Stage, via: FreezeVia, account: str) -> None:
    """One through a group is of an account; where none is known it may be this one."""
    asked(stopped)
    (cloud,) = stopped.clouds
    of = LaunchFreeze("gpu-freeze", cloud, via, "p-1", "ou-1", account and stopped.ref().account)
    before = FreezeState("gpu-freeze")
    frozen = replace(before, phase=FreezePhase.ON, of=of)
    stopped.memory.freezes.move(before, frozen, AuditWhat.TRANSITION, {}, "test", stopped.clock.now())
    stopped.at(TOLD)
    assert starts(stopped) == 0
    assert why(stopped) is ReasonCode.LAUNCHES_FROZEN
    assert any("launch freeze" in message.text for message in stopped.mailbox.messages)


def test_a_launch_freeze_of_another_account_bars_nothing(stopped: Stage) -> None:
    asked(stopped)
    (cloud,) = stopped.clouds
    of = LaunchFreeze("gpu-freeze", cloud, FreezeVia.GROUP, "p-1", "ou-1", "999900001111")
    before = FreezeState("gpu-freeze")
    frozen = replace(before, phase=FreezePhase.ON, of=of)
    stopped.memory.freezes.move(before, frozen, AuditWhat.TRANSITION, {}, "test", stopped.clock.now())
    stopped.at(TOLD)
    assert starts(stopped) == 1


def test_a_word_that_was_given_up_meanwhile_starts_nothing(notebook: Stage) -> None:
    """Between the list of words and the look at this one another run ended it."""
    asked(notebook)
    now = notebook.clock.now()
    stood = word(notebook)

    class ListedBefore(StartRepository):
        def open(self) -> Iterator[StartRequest]:
            yield stood

    ended = replace(stood, phase=StartPhase.GIVEN_UP)
    assert notebook.memory.starts.move(stood, ended, "another", now)
    notebook.memory = replace(notebook.memory, starts=ListedBefore(notebook.memory.store))
    notebook.at(TOLD)
    assert starts(notebook) == 0


def test_starts_have_a_cap_of_their_own(tmp_path: Path) -> None:
    fleet = [idle_machine(name) for name in ("one", "two", "three")]
    limited = rule(limits=replace(rule().limits, actions_per_day=2))
    stage = Stage(tmp_path, *fleet, under=policy(limited, start_again=True))
    stage.days(range(4))
    assert [stage.state(name) for name in ("one", "two", "three")].count("stopped") == 3
    for name in ("one", "two", "three"):
        answers.start(stage.memory, "idle_gpu", str(stage.ref(name)), "vision", stage.clock.now(), stage.policy)
    for hours in range(3):
        stage.at(4 * DAY + hours * HOUR)
    assert starts(stage) == 2
    stage.close()


def test_a_cap_of_nothing_starts_nothing(notebook: Stage) -> None:
    asked(notebook)
    notebook.policy_now = lambda: policy(rule(limits=replace(rule().limits, actions_per_day=0)), start_again=True)
    notebook.at(TOLD)
    assert (starts(notebook), word(notebook).phase) == (0, StartPhase.WAITING)


def test_without_the_key_nothing_is_offered_taken_or_started(tmp_path: Path) -> None:
    stage = Stage(tmp_path, idle_machine(), under=policy())
    stage.days(range(3))
    with pytest.raises(InvalidInputError, match="start_again"):
        asked(stage)
    stage.policy = policy(start_again=True)
    asked(stage)
    stage.policy = policy()
    stage.at(TOLD)
    assert starts(stage) == 0
    stage.close()


def test_what_runs_or_is_over_is_refused(tmp_path: Path) -> None:
    stage = Stage(tmp_path, idle_machine(), under=policy(start_again=True))
    stage.day(0)
    with pytest.raises(InvalidInputError, match="not stopped"):
        asked(stage)
    stage.days(range(1, 3))
    (machine,) = stage.cloud.machines
    stage.cloud.start(machine, "owner")
    stage.clock.advance(HOUR)
    stage.day(3)
    with pytest.raises(InvalidInputError):
        asked(stage)
    stage.close()


def test_two_runs_at_once_start_it_once(notebook: Stage) -> None:
    """The second run begins where the first has looked and not yet called."""
    asked(notebook)
    inner, ran = notebook.inventory, list[str]()

    class Overlapping:
        def __getattr__(self, name: str) -> object:
            return getattr(inner, name)

        def details(self, refs: object) -> object:
            found = inner.details(refs)  # type: ignore[arg-type]
            if not ran:
                ran.append("second")
                notebook.run_with(replace(notebook.world(), clock=notebook.clock))
            return found

    notebook.clock.advance(DAY)
    notebook.reading = replace(notebook.reading, inventory=Overlapping())  # type: ignore[arg-type]
    run_guard(notebook.world(), "the first run")
    assert starts(notebook) == 1


def test_a_process_that_died_after_its_intent_is_not_made_up_for_by_another_request(notebook: Stage) -> None:
    asked(notebook)

    class Died(BaseException):
        pass

    notebook.executor.fails_before = Died()  # type: ignore[assignment]
    with pytest.raises(Died):
        notebook.at(TOLD)
    notebook.executor.fails_before = None
    for hours in range(1, 60):
        notebook.at(TOLD + hours * HOUR)
    assert (starts(notebook), word(notebook).phase) == (1, StartPhase.GIVEN_UP)


def test_a_word_of_the_ledger_opens_again(tmp_path: Path) -> None:
    stage = Stage(tmp_path, idle_machine(), under=policy(start_again=True))
    stage.days(range(3))
    asked(stage)
    stage.close()
    memory = Memory.over(open_ledger(f"sqlite:///{tmp_path / 'ledger.sqlite3'}"))
    assert [request.by for request in memory.starts.open()] == ["vision"]
    memory.store.close()


OWNED = {
    "owners": (Owner("vision", Selector(tags={"owner": "vision"}), "slack:#vision", people=("U01OWNER",)),),
    "answers": AnswerTerms(slack_team="T1", approvers=("U02BOSS",)),
}


def next_run(stage: Stage) -> None:
    stage.clock.advance(HOUR)
    stage.run_with(stage.world())


def by_button(stage: Stage, who: str, team: str = "T1", channel: str = "C1") -> AnswerCode:
    """Somebody presses what stands below the last news of a stop."""
    (choice,) = offered(stage)
    answer = Answer(AnswerKind.START, choice.of, Person("slack", who, team), stage.clock.now())
    return reply(stage.memory, stage.policy, answer, stage.clock.now(), came_through=channel).code


def offered(stage: Stage) -> list[Choice]:
    choices = [choice for message in stage.mailbox.messages for part in message.parts for choice in part.choices]
    return [choice for choice in choices if choice.kind is AnswerKind.START]


@pytest.fixture(params=["stop", "terminate"])
def told(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stage]:
    """Stopped, with its owner's people listed: by a rule that ends there, and by one that goes on to terminate."""
    ladder = rule().ladder if request.param == "terminate" else rule().ladder[:2]
    stage = Stage(tmp_path, idle_machine(), under=policy(rule(ladder=ladder), start_again=True, **OWNED))
    stage.mailbox = OfChannel()
    stage.days(range(3 if request.param == "stop" else 4))  # the news comes with the notice of what follows
    yield stage
    stage.close()


class OfChannel(Mailbox):
    """Receipts as Slack's: the channel that it went to, and the message."""

    def send(self, message: Message) -> Delivery:
        return replace(super().send(message), receipt=f"C1:{len(self.messages)}")


def test_the_news_of_a_stop_offers_it_and_the_owner_may_press(told: Stage) -> None:
    assert by_button(told, "U01OWNER") is AnswerCode.START_ASKED
    assert by_button(told, "U01OWNER") is AnswerCode.START_STANDS
    next_run(told)
    assert starts(told) == 1


def test_a_stranger_changes_nothing(told: Stage) -> None:
    assert by_button(told, "U99STRANGER") is AnswerCode.NOT_AMONG_OWNERS
    assert by_button(told, "U01OWNER", team="T9") is AnswerCode.FOREIGN_TEAM
    assert by_button(told, "U01OWNER", channel="C9") is AnswerCode.FOREIGN_CHANNEL
    next_run(told)
    assert starts(told) == 0


def test_a_late_press_changes_nothing(told: Stage) -> None:
    (machine,) = told.cloud.machines
    told.cloud.start(machine, "owner")
    told.clock.advance(HOUR)
    next_run(told)
    assert by_button(told, "U01OWNER") is AnswerCode.OVER
    next_run(told)
    assert starts(told) == 0


def test_a_robot_gets_a_link_that_asks_before_it_starts(tmp_path: Path) -> None:
    stage = Stage(tmp_path, idle_machine(), under=policy(start_again=True, default_channel="feishu:ops"))
    stage.days(range(4))
    (choice,) = offered(stage)
    links = KeepLinks("https://answers.example.com", "s" * 40)
    token = links.keep_url(choice, "feishu:ops", stage.clock.now()).partition("?t=")[2]

    def visit(method: str) -> tuple[int, str]:
        return answer_keep(
            method,
            f"t={token}",
            f"t={token}".encode(),
            memory=stage.memory,
            policy=stage.policy,
            secret="s" * 40,
            now=stage.clock.now(),
            language=Language.EN,
        )

    status, page = visit("GET")
    assert (status, "Start notebook again?" in page, list(stage.memory.starts.open())) == (200, True, [])
    status, page = visit("POST")
    assert (status, "is to be started again" in page, word(stage).by) == (200, True, "link:feishu:ops")
    assert visit("POST")[0] == 409
    next_run(stage)
    assert starts(stage) == 1
    stage.close()


def test_a_run_that_came_second_gives_back_nothing_of_the_firsts_cap(notebook: Stage) -> None:
    """Both reserve for the same try, and only one of them has sent it."""
    asked(notebook)
    inner, ran = notebook.inventory, list[str]()

    class Overlapping:
        def __getattr__(self, name: str) -> object:
            return getattr(inner, name)

        def details(self, refs: object) -> object:
            found = inner.details(refs)  # type: ignore[arg-type]
            if not ran:
                ran.append("second")
                notebook.run_with(notebook.world())
            return found

    notebook.clock.advance(DAY)
    notebook.reading = replace(notebook.reading, inventory=Overlapping())  # type: ignore[arg-type]
    run_guard(notebook.world(), "the first run")
    assert starts(notebook) == 1
    assert notebook.memory.caps.usage("idle_gpu", "research/start", notebook.clock.now()).actions == 1
