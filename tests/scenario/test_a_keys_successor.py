"""A key that only a successor renews: told, made once, told again, its alias moved, and moved back by people."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.builders import policy
from tests.scenario.stage import CLOUDS, DAY, START, Stage, idle_machine
from tests.world_ports.keys import WorldKeys, WorldSuccessor
from tests.world_ports.translate import to_product, to_world

from cloudstand.world.keys import KeyState, WorldKey
from costguard.adapters.ledgers.sql import SqlLedger, sqlite_engine
from costguard.domain.actions import Outcome, Receipt
from costguard.domain.errors import InvalidInputError, OutcomeUnknownError, StalePlanError
from costguard.domain.findings import Verdict
from costguard.domain.keys import EncryptionKey, RotationMeans
from costguard.domain.reasons import ReasonCode
from costguard.domain.refs import ResourceRef
from costguard.domain.remediations import RemediationKind
from costguard.engine.answers import answers
from costguard.engine.answers.undo import Undoers, Undone, undo, undoing_of
from costguard.engine.ledger.intents import Intent
from costguard.engine.ledger.memory import Memory
from costguard.engine.run.run import GuardRun, run_guard
from costguard.engine.run.run_context import RunContext
from costguard.guards.keys.judge import DECISION, SUCCESSOR_OF
from costguard.guards.keys.rules import KeyRule, KeySelector
from costguard.guards.rules.common import Mode
from costguard.policy.model.terms import with_digest

TWO = ("aws", "alibaba")
HOUR = timedelta(hours=1)
SPECS = {"aws": "SYMMETRIC_DEFAULT", "alibaba": "Aliyun_AES_256", "tencent": "AES_256"}
OLD_DATA = b"checkpoint 7"


class Successor:
    """What a world's successor was asked, and an answer that may get lost after its effect, or before it."""

    def __init__(self, inner: WorldSuccessor) -> None:
        self.inner = inner
        self.calls: list[str] = []
        self.fails_before: Exception | None = None
        self.fails_after: Exception | None = None

    def create(self, key: EncryptionKey, decision: str) -> Receipt:
        return self._asked("create", lambda: self.inner.create(key, decision))

    def move_alias(self, alias: str, holder: EncryptionKey, heir: EncryptionKey) -> Receipt:
        return self._asked(f"move {alias}", lambda: self.inner.move_alias(alias, holder, heir))

    def _asked(self, what: str, call: Any) -> Receipt:
        self.calls.append(what)
        if self.fails_before is not None:
            raise self.fails_before
        receipt: Receipt = call()
        if self.fails_after is not None:
            raise self.fails_after
        return receipt


def by_successor(**changes: Any) -> KeyRule:
    rule = KeyRule("by-hand", Mode.ENFORCE, KeySelector(), means=frozenset({RotationMeans.SUCCESSOR}))
    return with_digest(replace(rule, **changes))


class SuccessorStage(Stage):
    """The stage with one old key a story, and a successor that keeps what it was asked."""

    def __init__(self, folder: Path, cloud: str, rule: KeyRule, **more: Any) -> None:
        under = replace(policy(), idle_gpu=(), kms_rotation=(rule,))
        super().__init__(folder, idle_machine(f"box-{cloud}", cloud=cloud), under=under, ledger="memory:")
        self.memory.store.close()
        self.memory = Memory.over(SqlLedger(sqlite_engine(None), durable=True))  # as if it were: it outlives a story
        self.successor = Successor(WorldSuccessor(self.cloud, self.clock))
        self.source = WorldKeys(self.cloud, self.clock)
        place = next(spec.ref for spec in self.cloud.fleet if spec.cloud == cloud)
        ref = ResourceRef(cloud, place.account, place.region, "key", "old-key")
        said = {"aliases": ["checkpoints"], "instance": "kst-1" if cloud == "alibaba" else "", **more}
        tags = {"owner": "vision", **said.pop("tags", {})}
        self.old = self.cloud.keys.add(WorldKey(to_world(ref), SPECS[cloud], START - 200 * DAY, tags=tags, **said))
        self.stored = self.cloud.keys.seal(to_world(ref), OLD_DATA)

    @property
    def keys(self) -> list[WorldKey]:
        return self.cloud.keys.of(self.old.ref.shard)

    @property
    def new(self) -> WorldKey:
        (made,) = (key for key in self.keys if key.ref != self.old.ref)
        return made

    def surroundings(self) -> RunContext:
        return replace(
            self.world(),
            guard="kms_rotation",
            executors={},
            keys=dict.fromkeys(CLOUDS, self.source),
            successors=dict.fromkeys(TWO, lambda: self.successor),
        )

    def look(self, moment: timedelta) -> GuardRun:
        self.clock.advance(START + moment - self.clock.now())
        return run_guard(self.surroundings(), f"keys-{self.clock.now().isoformat()}")

    def every_day(self, first: int, last: int) -> None:
        for number in range(first, last + 1):
            self.look(number * DAY)

    def sent(self, kind: RemediationKind) -> list[Intent]:
        cases = {case.case_id for case in self.memory.cases.all("kms_rotation")}
        cases |= {case.case_id for case in self.memory.cases.closed("kms_rotation/")}
        found = [intent for case in cases for intent in self.memory.intents.for_case(case)]
        mended = [each for each in found if each.action.mend is not None and each.action.mend.kind is kind]
        return sorted(mended, key=lambda each: each.claimed_at)

    def now_said(self) -> tuple[str, ReasonCode]:
        cases = [case for case in self.memory.cases.all("kms_rotation") if case.subject == to_product(self.old.ref)]
        return (cases[-1].status.value, cases[-1].reason.code)

    def take_back(self, intent: Intent) -> Undone:
        by = Undoers({}, {}, {}, dict.fromkeys(TWO, self.source), dict.fromkeys(TWO, lambda: self.successor))
        back = undoing_of(self.memory, intent.action.action_id)
        return undo(self.memory, back, by, "vision", "a job decrypts by alias", self.clock.now(), paused=False)

    def still_decrypts(self) -> bool:
        key, plain = self.cloud.keys.open(self.old.ref.shard, self.stored)
        return (key.ref, plain) == (self.old.ref, OLD_DATA)


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Any]:
    opened: list[SuccessorStage] = []

    def build(cloud: str = "aws", rule: KeyRule | None = None, **more: Any) -> SuccessorStage:
        opened.append(SuccessorStage(tmp_path, cloud, rule or by_successor(), **more))
        return opened[-1]

    yield build
    for each in opened:
        each.close()


@pytest.mark.parametrize("cloud", TWO)
def test_told_made_told_moved_and_taken_back(stage: Any, cloud: str) -> None:
    story: SuccessorStage = stage(cloud, tags={"team": "research"})
    story.look(timedelta(0))
    assert story.mailbox.titles == [
        "Key checkpoints: Costguard will make a key to take its place; nothing uses it yet",
    ]
    story.look(23 * HOUR)
    assert story.successor.calls == []

    story.look(25 * HOUR)
    made = story.new
    assert (made.spec, made.usage, made.instance) == (story.old.spec, story.old.usage, story.old.instance)
    (order,) = story.sent(RemediationKind.CREATE_SUCCESSOR)
    ours = {SUCCESSOR_OF: "old-key", DECISION: order.action.action_id}
    assert made.tags == {**story.old.tags, **ours}
    assert story.old.aliases == ["checkpoints"], "nothing else changed"

    story.look(26 * HOUR)
    story.look(27 * HOUR)
    said = f"move alias checkpoints to its successor {made.ref.native_id}"
    assert story.mailbox.titles[1:] == [
        "Key checkpoints: done: make a key to take its place; nothing uses it yet",
        f"Key checkpoints: Costguard will {said}",
    ]
    story.look(50 * HOUR)
    assert story.successor.calls == ["create"], "the move has a wait of its own"
    story.look(52 * HOUR)
    assert story.successor.calls == ["create", "move checkpoints"]
    assert (story.old.aliases, made.aliases) == ([], ["checkpoints"])
    assert story.old.state is KeyState.ENABLED
    assert story.still_decrypts()

    look = story.look(53 * HOUR).look
    assert look is not None
    verdicts = {line.key.ref: (line.finding.verdict, line.finding.reason.code) for line in look.report.lines}
    assert verdicts[to_product(story.old.ref)] == (Verdict.EXEMPT, ReasonCode.KEY_SUPERSEDED)
    assert story.now_said() == ("closed", ReasonCode.MENDED)
    assert story.mailbox.titles[3:] == [f"Key checkpoints: done: {said}"]
    (moved,) = story.sent(RemediationKind.MOVE_ALIAS)
    assert f"To take it back: costguard undo {moved.action.action_id}" in story.mailbox.messages[3].lines
    story.every_day(3, 5)
    assert len(story.mailbox.titles) == 4

    back = story.take_back(moved)
    assert (back.outcome, story.old.aliases, made.aliases) == (Outcome.ACCEPTED, ["checkpoints"], [])
    for day in (6, 7, 20, 34):
        story.look(day * DAY)
    assert story.successor.calls == ["create", "move checkpoints", "move checkpoints"], "left alone for 30 days"
    with pytest.raises(InvalidInputError, match="no way back from create_successor"):
        story.take_back(order)
    assert story.still_decrypts()


def test_a_lost_answer_never_makes_a_second_key(stage: Any) -> None:
    story: SuccessorStage = stage()
    story.successor.fails_after = OutcomeUnknownError("the answer got lost", operation="kms:CreateKey")
    story.every_day(0, 2)
    assert story.successor.calls == ["create"]
    story.successor.fails_after = None
    story.every_day(3, 6)
    assert story.successor.calls == ["create", "move checkpoints"]
    assert story.new.aliases == ["checkpoints"]


def test_a_successor_that_nobody_sees_is_not_made_again_whatever_changes(stage: Any) -> None:
    story: SuccessorStage = stage()
    story.successor.fails_before = OutcomeUnknownError("no answer", operation="kms:CreateKey")
    story.every_day(0, 5)
    assert story.now_said() == ("held", ReasonCode.OUTCOME_UNKNOWN)
    # the rule is left and comes back: another case, and still the same order for a key
    story.policy = replace(story.policy, kms_rotation=(by_successor(rotate_every=1000 * DAY),))
    story.every_day(6, 8)
    story.policy = replace(story.policy, kms_rotation=(by_successor(actions_per_day=5),))
    story.successor.fails_before = None
    story.every_day(9, 12)
    assert story.successor.calls == ["create"]
    assert story.keys == [story.old]


def test_a_canary_that_fails_moves_the_alias_back_once_and_for_good(stage: Any) -> None:
    story: SuccessorStage = stage()
    story.every_day(0, 3)
    story.cloud.keys.break_when_moved = {story.new.ref}
    story.every_day(4, 7)
    assert story.successor.calls == ["create", "move checkpoints"], "what uses the alias would feel each try"
    (moved,) = story.sent(RemediationKind.MOVE_ALIAS)
    assert moved.outcome is Outcome.REFUSED
    assert "moved back to old-key" in moved.detail
    assert (story.old.aliases, story.new.aliases) == (["checkpoints"], [])
    assert story.now_said() == ("held", ReasonCode.KEY_ALIAS_BACK)
    (told,) = (title for title in story.mailbox.titles if "not done" in title)
    assert "it is not tried again without a new notice" in told
    # its owner mends the new key, and says so with a snooze: then it begins anew
    story.cloud.keys.broken.clear()
    story.cloud.keys.break_when_moved.clear()
    answers.snooze(
        story.memory, to_product(story.old.ref), 2 * DAY, "vision", "its policy is mended", story.clock.now()
    )
    story.every_day(8, 13)
    assert story.new.aliases == ["checkpoints"]


def test_where_moving_back_fails_nobody_knows_and_people_decide(stage: Any) -> None:
    story: SuccessorStage = stage()
    story.every_day(0, 2)
    story.cloud.keys.break_when_moved = {story.old.ref}
    story.cloud.keys.moves_fail_after = 1
    story.every_day(3, 4)
    (moved,) = story.sent(RemediationKind.MOVE_ALIAS)
    assert "moving it back" in moved.detail
    assert moved.outcome in {Outcome.UNKNOWN, Outcome.TOOK_EFFECT}
    assert story.successor.calls == ["create", "move checkpoints"]


def test_a_key_that_only_says_it_is_the_successor_gets_no_alias(stage: Any) -> None:
    story: SuccessorStage = stage()
    ref = story.old.ref.sibling("key", "impostor")
    tags = {SUCCESSOR_OF: "old-key", DECISION: "0" * 24}
    story.cloud.keys.add(WorldKey(ref, story.old.spec, START, tags=tags))
    story.every_day(0, 6)
    assert story.successor.calls == []
    assert story.now_said() == ("held", ReasonCode.KEY_SUCCESSOR_FOREIGN)
    assert sum("was not made by Costguard" in title for title in story.mailbox.titles) == 1


def test_a_rule_by_alias_still_speaks_of_the_key_whose_alias_moved(stage: Any) -> None:
    story: SuccessorStage = stage("aws", by_successor(applies_to=KeySelector(aliases=("check*",))))
    story.every_day(0, 6)
    assert story.new.aliases == ["checkpoints"]
    assert story.now_said() == ("closed", ReasonCode.MENDED)


def test_aliases_move_one_by_one_each_with_its_own_notice(stage: Any) -> None:
    story: SuccessorStage = stage(aliases=["checkpoints", "archive"])
    story.every_day(0, 8)
    assert story.successor.calls == ["create", "move archive", "move checkpoints"]
    assert sum("Costguard will move" in title for title in story.mailbox.titles) == 2
    assert sorted(story.new.aliases) == ["archive", "checkpoints"]


def test_a_successor_grows_old_itself_and_the_first_key_stays_superseded(stage: Any) -> None:
    story: SuccessorStage = stage()
    story.every_day(0, 5)
    first = story.new
    story.every_day(97, 104)
    (second,) = (key for key in story.keys if key.tags.get(SUCCESSOR_OF) == first.ref.native_id)
    assert (second.aliases, first.aliases, story.old.aliases) == (["checkpoints"], [], [])
    look = story.look(105 * DAY).look
    assert look is not None
    superseded = {line.key.ref for line in look.report.lines if line.finding.reason.code is ReasonCode.KEY_SUPERSEDED}
    assert superseded == to_product({story.old.ref, first.ref})
    assert len(story.keys) == 3


def test_an_undo_of_a_move_that_somebody_changed_since_is_refused(stage: Any) -> None:
    story: SuccessorStage = stage()
    story.every_day(0, 5)
    (moved,) = story.sent(RemediationKind.MOVE_ALIAS)
    story.new.state = KeyState.DISABLED
    with pytest.raises(StalePlanError, match="disabled"):
        story.take_back(moved)
    story.new.state = KeyState.ENABLED
    story.cloud.keys.move_alias("checkpoints", story.old.ref, story.clock.now(), "owner")
    with pytest.raises(StalePlanError, match="nothing to move back"):
        story.take_back(moved)


def test_on_tencent_cloud_no_alias_can_be_moved_and_none_is_offered(stage: Any) -> None:
    story: SuccessorStage = stage("tencent")
    story.every_day(0, 6)
    assert (story.successor.calls, story.keys) == ([], [story.old])
    (title,) = story.mailbox.titles
    assert "is not as the policy asks" in title
