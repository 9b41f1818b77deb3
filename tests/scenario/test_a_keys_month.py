"""A key that is not rotated: its owner is told, a day later its rotation is on, and nothing else is done to it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.builders import policy
from tests.scenario.stage import CLOUDS, DAY, START, Stage, idle_machine
from tests.world_ports.keys import WorldKeys, WorldRotator
from tests.world_ports.translate import to_product, to_world

from cloudstand.world.keys import KeyOrigin, KeyState, KeyUsage, WorldKey
from costguard.cli.main import run
from costguard.domain.actions import Outcome, Receipt
from costguard.domain.errors import AccessDeniedError, OutcomeUnknownError
from costguard.domain.keys import EncryptionKey, RotationMeans
from costguard.domain.reasons import ReasonCode
from costguard.domain.refs import ResourceRef
from costguard.engine.answers import answers
from costguard.engine.run.run import GuardRun, run_guard
from costguard.engine.run.run_context import RunContext
from costguard.guards.keys.rules import KeyRule, KeySelector
from costguard.guards.rules.common import Mode
from costguard.policy.model.terms import with_digest

HOUR = timedelta(hours=1)
BOTH = frozenset({RotationMeans.AUTOMATIC, RotationMeans.ON_DEMAND})
SPECS = {"aws": "SYMMETRIC_DEFAULT", "alibaba": "Aliyun_AES_256", "tencent": "AES_256"}


class Rotator:
    """What a world's rotator was asked, and an answer that may get lost before or after its effect."""

    def __init__(self, inner: WorldRotator) -> None:
        self.inner = inner
        self.calls: list[tuple[str, str]] = []
        self.fails_before: Exception | None = None
        self.fails_after: Exception | None = None

    def set_period(self, key: EncryptionKey, days: int) -> Receipt:
        return self._asked(f"every {days}", key, lambda: self.inner.set_period(key, days))

    def rotate(self, key: EncryptionKey) -> Receipt:
        return self._asked("now", key, lambda: self.inner.rotate(key))

    def _asked(self, what: str, key: EncryptionKey, call: Any) -> Receipt:
        self.calls.append((key.ref.native_id, what))
        if self.fails_before is not None:
            raise self.fails_before
        receipt: Receipt = call()
        if self.fails_after is not None:
            raise self.fails_after
        return receipt


def enforcing(**changes: Any) -> KeyRule:
    rule = KeyRule("ninety-days", Mode.ENFORCE, KeySelector())
    return with_digest(replace(rule, **changes))


class KeyStage(Stage):
    """The stage with encryption keys in place of busy machines."""

    def __init__(self, folder: Path, *rules: KeyRule) -> None:
        under = replace(policy(), idle_gpu=(), kms_rotation=rules or (enforcing(),))
        super().__init__(folder, *(idle_machine(f"box-{cloud}", cloud=cloud) for cloud in CLOUDS), under=under)
        self.rotator = Rotator(WorldRotator(self.cloud, self.clock))
        self.source = WorldKeys(self.cloud, self.clock)

    def key(self, name: str = "checkpoints", *, cloud: str = "aws", age: int = 30, **more: Any) -> WorldKey:
        """A customer's key that is not rotated."""
        place = next(spec.ref for spec in self.cloud.fleet if spec.cloud == cloud)
        ref = ResourceRef(cloud, place.account, place.region, "key", name)
        tags = {"owner": "vision", **more.pop("tags", {})}
        instance = "kst-1" if cloud == "alibaba" else ""
        made = WorldKey(
            to_world(ref), SPECS[cloud], START - age * DAY, aliases=[name], tags=tags, instance=instance, **more
        )
        return self.cloud.keys.add(made)

    def surroundings(self) -> RunContext:
        return replace(
            self.world(),
            guard="kms_rotation",
            executors={},
            keys=dict.fromkeys(CLOUDS, self.source),
            rotators=dict.fromkeys(CLOUDS, lambda: self.rotator),
        )

    def look(self, moment: timedelta) -> GuardRun:
        self.clock.advance(START + moment - self.clock.now())
        return run_guard(self.surroundings(), f"keys-{self.clock.now().isoformat()}")

    def every_day(self, first: int, last: int) -> None:
        for number in range(first, last + 1):
            self.look(number * DAY)

    def case_of(self, key: WorldKey) -> tuple[str, ReasonCode]:
        cases = [case for case in self.memory.cases.all("kms_rotation") if case.subject == to_product(key.ref)]
        return (cases[-1].status.value, cases[-1].reason.code)


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Any]:
    opened: list[KeyStage] = []

    def build(*rules: KeyRule) -> KeyStage:
        opened.append(KeyStage(tmp_path, *rules))
        return opened[-1]

    yield build
    for each in opened:
        each.close()


@pytest.mark.parametrize("cloud", CLOUDS)
def test_its_owner_is_told_and_a_day_later_its_rotation_is_on(stage: Any, cloud: str) -> None:
    month = stage()
    key = month.key(cloud=cloud)
    month.look(timedelta(0))
    assert month.mailbox.titles == ["Key checkpoints: Costguard will rotate it by itself every 90 days"]
    month.look(23 * HOUR)
    assert month.rotator.calls == []
    month.look(25 * HOUR)
    assert month.rotator.calls == [("checkpoints", "every 90")]
    assert key.period_days == 90
    month.look(26 * HOUR)
    assert month.case_of(key) == ("closed", ReasonCode.MENDED)
    assert month.mailbox.titles[-1] == "Key checkpoints: done: rotate it by itself every 90 days"
    month.every_day(2, 30)
    assert len(month.mailbox.titles) == 2
    assert month.rotator.calls == [("checkpoints", "every 90")]


NEVER_ROTATED: dict[str, dict[str, Any]] = {
    "aws": {"usage": KeyUsage.MAC},
    "alibaba": {"origin": KeyOrigin.IMPORTED},
    "tencent": {"origin": KeyOrigin.IMPORTED},
}


@pytest.mark.parametrize("cloud", CLOUDS)
def test_of_a_key_that_nothing_can_rotate_nobody_hears_before_it_is_too_old_and_then_once(
    stage: Any, cloud: str
) -> None:
    month = stage()
    key = month.key(cloud=cloud, age=1, **NEVER_ROTATED[cloud])
    month.every_day(0, 92)
    assert month.mailbox.titles == []
    month.every_day(93, 110)
    (title,) = month.mailbox.titles
    assert title.startswith("Key checkpoints is not as the policy asks: Its material is too old: 94 days, 90 are")
    assert title.endswith("keep this one enabled for all that it was used for.")
    assert month.rotator.calls == []
    assert month.case_of(key) == ("open", ReasonCode.LADDER_DONE)


@pytest.mark.parametrize("cloud", CLOUDS)
def test_an_owner_who_replaces_such_a_key_every_eighty_days_keeps_to_ninety(stage: Any, cloud: str) -> None:
    month = stage()
    keys = [month.key(cloud=cloud, age=1, **NEVER_ROTATED[cloud])]
    for day in range(330):
        if day and day % 80 == 0:
            keys[-1].state = KeyState.DISABLED
            keys.append(month.key(f"checkpoints-{day}", cloud=cloud, age=-day, **NEVER_ROTATED[cloud]))
        month.look(day * DAY)
    assert month.mailbox.titles == []


def test_an_overdue_key_is_rotated_once_whatever_becomes_of_the_answer(stage: Any) -> None:
    month = stage(enforcing(means=BOTH))
    key = month.key(age=200, period_days=90, rotations=[START - 150 * DAY], period_since=START + 300 * DAY)
    month.rotator.fails_after = OutcomeUnknownError("the answer got lost", operation="kms:RotateKeyOnDemand")
    month.every_day(0, 30)
    assert month.rotator.calls == [("checkpoints", "now")]
    assert len(key.on_demand) == 1
    assert month.case_of(key) == ("closed", ReasonCode.MENDED)


def test_a_rotation_that_nobody_can_see_waits_for_people_and_is_not_sent_again(stage: Any) -> None:
    month = stage(enforcing(means=BOTH))
    key = month.key(age=200, period_days=90, rotations=[START - 150 * DAY], period_since=START + 300 * DAY)
    month.rotator.fails_before = OutcomeUnknownError("no answer", operation="kms:RotateKeyOnDemand")
    month.every_day(0, 30)
    assert month.rotator.calls == [("checkpoints", "now")]
    assert month.case_of(key) == ("held", ReasonCode.OUTCOME_UNKNOWN)
    assert sum("not done" in title for title in month.mailbox.titles) == 1


@pytest.mark.parametrize("cloud", CLOUDS)
def test_a_missing_permission_is_told_once_with_who_can_grant_it_and_tried_again(stage: Any, cloud: str) -> None:
    month = stage()
    key = month.key(cloud=cloud)
    month.rotator.fails_before = AccessDeniedError("not authorised", operation="kms:EnableKeyRotation", code="Denied")
    month.every_day(0, 8)
    assert month.case_of(key) == ("held", ReasonCode.PERMISSION_MISSING)
    (told,) = (message for message in month.mailbox.messages if "could not" in message.title)
    assert told.title == "Key checkpoints: Costguard could not rotate it by itself every 90 days"
    why = dict(told.fields)["Why"]
    assert "not authorised" in why
    assert f"`costguard permissions {cloud} --role rotate`" in why
    intents = month.memory.intents.for_case(month.memory.cases.active("kms_rotation")[0].case_id)
    assert {intent.outcome for intent in intents} == {Outcome.REFUSED}
    month.rotator.fails_before = None
    month.every_day(9, 10)
    assert key.period_days == 90
    assert month.mailbox.titles[-1] == "Key checkpoints: done: rotate it by itself every 90 days"


def test_a_key_rotated_meanwhile_is_left_alone(stage: Any) -> None:
    month = stage(enforcing(means=BOTH))
    key = month.key(age=200, period_days=90, rotations=[START - 150 * DAY], period_since=START + 300 * DAY)
    month.look(timedelta(0))
    month.cloud.keys.rotate(key.ref, month.clock.now(), "owner")
    month.every_day(1, 5)
    assert month.rotator.calls == []
    assert month.case_of(key) == ("closed", ReasonCode.AS_ASKED)


def test_what_is_protected_or_snoozed_is_never_changed(stage: Any) -> None:
    month = stage()
    month.key("kept", tags={"do-not-delete": "yes"})
    snoozed = month.key("snoozed")
    month.look(timedelta(0))
    answers.snooze(month.memory, to_product(snoozed.ref), 60 * DAY, "vision", "a migration", month.clock.now())
    month.every_day(1, 10)
    assert month.rotator.calls == []


def test_observing_changes_nothing_and_tells_nobody(stage: Any) -> None:
    watching = stage(enforcing(mode=Mode.OBSERVE))
    watching.key()
    watching.every_day(0, 10)
    assert (watching.rotator.calls, watching.mailbox.titles) == ([], [])


@pytest.mark.parametrize("state", [KeyState.DISABLED, KeyState.PENDING_DELETION, KeyState.UNAVAILABLE])
def test_a_key_that_is_not_enabled_is_not_touched(stage: Any, state: KeyState) -> None:
    month = stage()
    key = month.key()
    month.look(timedelta(0))
    key.state = state
    month.every_day(1, 5)
    assert month.rotator.calls == []


def test_the_cap_of_a_day_holds_over_runs(stage: Any) -> None:
    month = stage(enforcing(actions_per_day=2))
    for number in range(5):
        month.key(f"key-{number}")
    month.look(timedelta(0))
    month.look(25 * HOUR)
    month.look(26 * HOUR)
    assert len(month.rotator.calls) == 2
    month.look(50 * HOUR)
    assert len(month.rotator.calls) == 4


def test_a_notice_that_does_not_arrive_postpones_it(stage: Any) -> None:
    month = stage()
    month.key()
    month.mailbox.down = True
    month.every_day(0, 5)
    assert month.rotator.calls == []
    month.mailbox.down = False
    month.every_day(6, 9)
    assert month.rotator.calls == [("checkpoints", "every 90")]


def test_a_pause_at_the_last_moment_stops_the_call(stage: Any) -> None:
    month = stage()
    month.key()
    month.look(timedelta(0))
    month.paused_host = True
    month.look(25 * HOUR)
    assert month.rotator.calls == []


def test_why_tells_of_a_key_what_comes_next(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    stage = KeyStage(tmp_path)
    key = stage.key()
    stage.look(timedelta(0))
    stage.close()
    (tmp_path / "costguard.yaml").write_text(
        "version: 1\nmode: enforce\nkms_rotation: [{name: ninety-days, mode: enforce}]\n", encoding="utf-8"
    )
    where = ["--ledger", f"sqlite:///{tmp_path / 'ledger.sqlite3'}", "--policy", str(tmp_path / "costguard.yaml")]

    assert run(["why", key.ref.native_id, "--guard", "kms_rotation", "--json", *where]) == 0

    assert [step["verb"] for step in json.loads(capfd.readouterr().out)["upcoming"]] == ["mend"]
