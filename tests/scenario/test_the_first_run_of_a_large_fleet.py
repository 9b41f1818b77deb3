"""900 idle machines of 12 owners on three clouds, seen for the first time: digests, and not 900 messages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from tests.builders import policy, rule
from tests.scenario.stage import CLOUDS, DAY, Mailbox, Stage, idle_machine
from tests.simulation.store import MemoryLedger, Shelf

from costguard.adapters.notifiers.slack.blocks import parts_that_fit
from costguard.domain.errors import RejectedNoticeError
from costguard.engine.ledger.memory import Memory
from costguard.engine.ledger.notices import NoticeState
from costguard.guards.rules.common import Limits, Selector
from costguard.policy.model.policy import AnswerTerms, Owner, Policy
from costguard.ports import Delivery, Message

TEAMS, FLEET = 12, 900
ANSWERS = AnswerTerms("T0123ABCD", ("U0123ABCD", "U0456EFGH"))
HOUR = timedelta(hours=1)


class LikeSlack(Mailbox):
    """Holds as many parts in a message as Slack does, and refuses one with more."""

    def __init__(self) -> None:
        super().__init__()
        self.refuses = ""

    def capacity(self, message: Message) -> int:
        return parts_that_fit(message)

    def send(self, message: Message) -> Delivery:
        if len(message.parts) > self.capacity(message) or (self.refuses and message.channel == self.refuses):
            raise RejectedNoticeError("it does not fit")
        return super().send(message)


def owners(channel: str = "slack:#{}") -> tuple[Owner, ...]:
    names = [f"team-{number:02}" for number in range(TEAMS)]
    return tuple(Owner(name, Selector(tags={"owner": name}), channel.format(name)) for name in names)


def under(channel: str = "slack:#{}", **changes: object) -> Policy:
    return policy(
        rule(limits=Limits(actions_per_day=10_000, fleet_share_per_day=Decimal(1))),
        owners=owners(channel),
        answers=ANSWERS,
        **changes,
    )


def staged(folder: Path, many: int, of: Policy) -> Stage:
    fleet = (
        idle_machine(f"m-{number:03}", cloud=CLOUDS[number % 3], tags={"owner": f"team-{number % TEAMS:02}"})
        for number in range(many)
    )
    stage = Stage(folder, *fleet, under=of, ledger="memory:")
    stage.memory = Memory.over(MemoryLedger(Shelf()))
    stage.mailbox = LikeSlack()
    return stage


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    stage = staged(tmp_path_factory.mktemp("fleet"), FLEET, under())
    stage.at(0 * HOUR)
    yield stage
    stage.close()


def told_in(message: Message) -> set[str]:
    return {part.decision_id for part in message.parts}


def test_each_owner_gets_a_few_digests(first: Stage) -> None:
    by_owner = Counter(message.channel for message in first.mailbox.messages)
    assert len(by_owner) == TEAMS
    assert max(by_owner.values()) == 5, "15 where each machine is shown whole"
    assert all("of team-" in message.title for message in first.mailbox.messages)


def test_no_machine_is_left_out_or_told_twice(first: Stage) -> None:
    told = Counter(decision for message in first.mailbox.messages for decision in told_in(message))
    assert (len(told), set(told.values())) == (FLEET, {1})
    lines = [line for message in first.mailbox.messages for part in message.parts for line in part.lines]
    assert [sum(f" · {cloud} " in line for line in lines) for cloud in CLOUDS] == [FLEET // 3] * 3


def test_each_machine_of_a_digest_says_what_it_is_and_what_comes_when(first: Stage) -> None:
    for message in first.mailbox.messages:
        for part in message.parts:
            (line,) = part.lines
            assert "not before 2026-03-03" in line
            assert [choice.kind.value for choice in part.choices] == ["keep"]


def test_the_grace_of_each_starts_with_its_proven_delivery(first: Stage) -> None:
    notices = [notice for notice in first.memory.outbox.beginning_with("") if notice.case_id]
    assert len(notices) == FLEET
    assert all(notice.proven and notice.in_digest for notice in notices)
    assert {case.rung for case in first.memory.cases.active("idle_gpu")} == {1}


def test_below_the_cap_everything_is_shown_whole(tmp_path: Path) -> None:
    stage = staged(tmp_path, 24, under())
    stage.at(0 * HOUR)
    assert not any(notice.in_digest for notice in stage.memory.outbox.beginning_with(""))
    assert all(part.fields for message in stage.mailbox.messages for part in message.parts)
    stage.close()


def test_owners_that_share_an_address_share_its_digests_and_what_does_not_fit_waits(tmp_path: Path) -> None:
    stage = staged(tmp_path, 60, under("slack:#gpu", messages_per_day=2))
    stage.at(0 * HOUR)
    told = {decision for message in stage.mailbox.messages for decision in told_in(message)}
    assert len(stage.mailbox.messages) == 2
    assert 0 < len(told) < 60
    waits = [case for case in stage.memory.cases.active("idle_gpu") if case.rung == 0]
    assert len(told) + len(waits) == 60
    for hours in range(5, 24, 6):
        stage.at(hours * HOUR)
    assert len(stage.mailbox.messages) == 2, "not one more in 24 hours"
    for day in range(1, 6):
        stage.at(day * DAY + HOUR)
    notices = [notice for notice in stage.memory.outbox.beginning_with("") if notice.proven]
    first_told = {notice.case_id: notice.delivered_at for notice in notices if notice.kind == "warned"}
    stops = [action for action in stage.executor.calls if action.verb.value == "stop"]
    assert len(stops) == 60, "nothing is lost"
    assert len(first_told) == 60
    stage.close()


def test_a_digest_that_is_refused_starts_no_grace(tmp_path: Path) -> None:
    stage = staged(tmp_path, 120, under(messages_per_day=2))
    mailbox = stage.mailbox
    assert isinstance(mailbox, LikeSlack)
    mailbox.refuses = "slack:#team-03"
    stage.at(0 * HOUR)
    stage.at(DAY + HOUR)
    refused = [notice for notice in stage.memory.outbox.beginning_with("") if notice.channel == mailbox.refuses]
    assert refused
    assert not any(notice.state is NoticeState.DELIVERED for notice in refused)
    assert {case.rung for case in stage.memory.cases.active("idle_gpu") if case.owner == "team-03"} == {0}
    stage.close()


def test_news_of_what_was_done_never_waits(tmp_path: Path) -> None:
    stage = staged(tmp_path, 36, under("slack:#gpu", messages_per_day=2))
    stage.at(0 * HOUR)
    stage.at(DAY - HOUR)
    stage.at(DAY + HOUR)
    assert stage.verbs().count("stop") > 0
    stage.at(DAY + 2 * HOUR)
    stage.at(DAY + 3 * HOUR)
    stopped = [notice for notice in stage.memory.outbox.beginning_with("") if notice.kind.startswith("stopped")]
    assert len(stopped) == stage.verbs().count("stop")
    assert all(notice.state is NoticeState.DELIVERED for notice in stopped)
    stage.close()
