"""A Keep that stands on the machine itself: whoever wrote it there, every deployment leaves the machine alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from tests.builders import policy, rule
from tests.scenario.stage import CLOUDS, DAY, START, Stage, idle_machine
from tests.world_ports.inventory import WorldInventory

from costguard.cases import CaseStatus
from costguard.domain.actions import Receipt
from costguard.domain.errors import AccessDeniedError, OutcomeUnknownError, ProviderError, ThrottledError
from costguard.domain.reasons import ReasonCode
from costguard.domain.refs import ResourceRef
from costguard.domain.resources import InstanceDetail
from costguard.engine.answers import answers
from costguard.engine.run.run import carry_out, plan_guard, summary
from costguard.guards.rules.common import KEEP_TAG, Mode
from costguard.ports import KeepTagger

HOUR = timedelta(hours=1)


@pytest.fixture(params=CLOUDS)
def stage(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Stage]:
    made = Stage(tmp_path, idle_machine(cloud=request.param))
    yield made
    made.close()


def keep(stage: Stage, days: int, key: str = KEEP_TAG) -> None:
    """By hand, or by the script of a colleague."""
    stage.cloud.tag(stage.ref().native_id, key, f"{START + days * DAY:%Y-%m-%dT%H:%M:%SZ}", "colleague")


@pytest.mark.parametrize("key", [KEEP_TAG, "Costguard-Keep-Until", "COSTGUARD_KEEP_UNTIL"])
def test_a_machine_tagged_before_any_notice_is_left_alone(stage: Stage, key: str) -> None:
    keep(stage, 5, key)
    stage.days(range(5))
    assert (stage.verbs(), stage.mailbox.messages) == ([], [])
    plan = stage.reports[-1].plan
    assert plan is not None
    assert [finding.reason.code for finding in plan.findings] == [ReasonCode.KEPT_BY_TAG]


def test_a_tag_set_after_the_notice_waits_as_a_keep_does_and_then_tells_anew(stage: Stage) -> None:
    stage.day(0)
    keep(stage, 3)
    stage.days((1, 2))
    assert (stage.verbs(), stage.case().status) == ([], CaseStatus.SNOOZED)
    assert stage.case().reason.code is ReasonCode.KEPT_BY_TAG
    stage.days((3, 4))
    assert (stage.verbs(), len(stage.mailbox.messages)) == ([], 2), "a new notice, and the full grace again"
    stage.day(5)
    assert stage.verbs() == ["stop"]


def test_a_tag_set_behind_the_stop_delays_the_end_and_forgets_nothing(stage: Stage) -> None:
    stage.days((0, 1, 2))
    keep(stage, 20)
    stage.days(range(3, 20))
    assert (stage.verbs(), stage.case().status) == (["stop"], CaseStatus.SNOOZED)
    stage.days(range(21, 36))
    assert stage.verbs()[-1] == "terminate", "the case went on where it was, behind a notice of its own"


def test_a_tag_taken_away_ends_the_keep_with_a_notice(stage: Stage) -> None:
    stage.day(0)
    keep(stage, 30)
    stage.days((1, 2))
    stage.cloud.untag(stage.ref().native_id, KEEP_TAG, "colleague")
    stage.day(3)
    assert (stage.verbs(), len(stage.mailbox.messages)) == ([], 2)


def test_a_tag_set_between_plan_and_call_is_heeded(stage: Stage) -> None:
    stage.day(0)
    stage.clock.advance(DAY)
    plan = plan_guard(stage.world(), "run-a").plan
    assert plan.due
    keep(stage, 5)
    carry_out(stage.world(), plan)
    assert (stage.verbs(), stage.case().reason.code) == ([], ReasonCode.KEPT_BY_TAG)


def test_a_tag_that_nobody_can_read_keeps(stage: Stage) -> None:
    stage.day(0)
    stage.cloud.tag(stage.ref().native_id, KEEP_TAG, "when the paper is out", "colleague")
    stage.days(range(1, 15))
    assert (stage.verbs(), stage.case().reason.code) == ([], ReasonCode.PROTECTED_TAG)
    assert stage.case().reason.facts["unread"] == KEEP_TAG


class Tagger:
    """Counts what it writes, and may be told to refuse."""

    def __init__(self, inner: KeepTagger) -> None:
        self.inner = inner
        self.written: list[str] = []
        self.fails: ProviderError | None = None

    def write(self, machine: ResourceRef, value: str) -> Receipt:
        if self.fails is not None:
            raise self.fails
        self.written.append(value)
        return self.inner.write(machine, value)


@pytest.fixture
def two(tmp_path: Path, stage: Stage) -> Iterator[tuple[Stage, Stage, Tagger]]:
    """Two deployments on one fleet, each with a ledger of its own; the first writes its Keeps."""
    stage.policy = policy(keep_as_tag=True)
    stage.tagger = tagger = Tagger(stage.tagger)
    ledger = f"sqlite:///{tmp_path / 'other.sqlite3'}"
    other = Stage(tmp_path, ledger=ledger, cloud=stage.cloud, clock=stage.clock)
    yield stage, other, tagger
    other.close()


def until(days: int) -> str:
    return f"{START + days * DAY:%Y-%m-%dT%H:%M:%SZ}"


def pressed(stage: Stage, days: int) -> None:
    answers.snooze(stage.memory, stage.ref(), days * DAY, "vision", "deadline", stage.clock.now())


def tag_of(stage: Stage) -> str | None:
    return stage.cloud.machines[stage.ref().native_id].tags.get(KEEP_TAG)


def test_a_keep_in_one_ledger_is_heeded_by_the_deployment_with_another(two: tuple[Stage, Stage, Tagger]) -> None:
    ours, theirs, tagger = two
    ours.day(0)
    theirs.day(0)
    pressed(ours, 14)
    ours.at(HOUR)
    for day in range(1, 14):
        theirs.day(day)
        ours.at(day * DAY + HOUR)
    assert (ours.verbs(), theirs.verbs()) == ([], [])
    assert theirs.case().reason.code is ReasonCode.KEPT_BY_TAG
    assert tagger.written == [until(14)], "once, whatever the number of runs"


def test_a_tag_that_somebody_took_off_is_not_written_again(two: tuple[Stage, Stage, Tagger]) -> None:
    ours, _, tagger = two
    ours.day(0)
    pressed(ours, 14)
    ours.at(HOUR)
    ours.cloud.untag(ours.ref().native_id, KEEP_TAG, "colleague")
    ours.days((1, 2))
    assert (tagger.written, tag_of(ours)) == ([until(14)], None)
    assert ours.verbs() == [], "the ledger's Keep holds all the same"


class Overheard(WorldInventory):
    """Its owner ends the Keep while the machine is read for the last time before its tag is written."""

    stage: Stage

    def details(self, refs: Sequence[ResourceRef]) -> Mapping[ResourceRef, InstanceDetail]:
        self.stage.memory.snoozes.clear(str(refs[0]), "vision", self.stage.clock.now())
        return super().details(refs)


def test_a_keep_that_is_ended_at_the_last_moment_is_not_written(two: tuple[Stage, Stage, Tagger]) -> None:
    ours, _, tagger = two
    ours.day(0)
    pressed(ours, 14)
    heard = Overheard(ours.cloud, ours.clock)
    heard.stage = ours
    ours.reading = replace(ours.reading, inventory=heard)
    ours.at(HOUR)
    assert (tagger.written, tag_of(ours)) == ([], None)
    assert ours.memory.keep_tags.all() == {}


def test_a_keep_that_is_not_to_be_written_stays_in_its_ledger(two: tuple[Stage, Stage, Tagger]) -> None:
    ours, _, tagger = two
    ours.policy = policy()
    ours.day(0)
    pressed(ours, 14)
    ours.day(1)
    assert (tagger.written, tag_of(ours)) == ([], None)


def test_another_keep_replaces_the_tag_and_ending_it_lets_it_end(two: tuple[Stage, Stage, Tagger]) -> None:
    ours, _, tagger = two
    ours.day(0)
    pressed(ours, 14)
    ours.at(HOUR)
    answers.snooze(ours.memory, ours.ref(), 2 * DAY, "vision", "sooner", START)
    ours.at(2 * HOUR)
    assert tagger.written == [until(14), until(2)]
    ours.memory.snoozes.clear(str(ours.ref()), "vision", ours.clock.now())
    ours.at(3 * HOUR)
    ours.at(4 * HOUR)
    assert len(tagger.written) == 3
    assert len(ours.mailbox.messages) == 2, "the wait begins anew, with a notice"


def test_what_somebody_else_wrote_is_left_as_it_is_while_it_holds(two: tuple[Stage, Stage, Tagger]) -> None:
    ours, _, tagger = two
    ours.day(0)
    keep(ours, 2)
    pressed(ours, 5)
    ours.day(1)
    assert (tagger.written, tag_of(ours)) == ([], until(2))
    ours.at(2 * DAY + HOUR)
    assert (tagger.written, tag_of(ours)) == ([until(5)], until(5))
    ours.cloud.tag(ours.ref().native_id, KEEP_TAG, "for ever", "colleague")
    ours.memory.snoozes.clear(str(ours.ref()), "vision", ours.clock.now())
    ours.at(3 * DAY)
    assert tag_of(ours) == "for ever"


@pytest.mark.parametrize("error", [AccessDeniedError("no"), OutcomeUnknownError("lost"), ThrottledError("later")])
def test_a_tag_that_is_refused_loses_nothing_and_is_tried_again_a_day_later(
    two: tuple[Stage, Stage, Tagger], error: ProviderError
) -> None:
    ours, _, tagger = two
    ours.day(0)
    pressed(ours, 14)
    tagger.fails = error
    ours.at(HOUR)
    assert summary(ours.reports[-1])["keeps_untagged"] == 1
    tagger.fails = None
    ours.at(2 * HOUR)
    assert (tagger.written, ours.case().status) == ([], CaseStatus.SNOOZED)
    (noted,) = ours.memory.keep_tags.all().values()
    assert noted.problem == str(error)
    ours.at(DAY + 2 * HOUR)
    assert (tagger.written, ours.verbs()) == ([until(14)], [])
    assert "keeps_untagged" not in summary(ours.reports[-1])


@pytest.mark.parametrize("tag", [{"do-not-stop": "yes"}, {KEEP_TAG: "when it is done"}])
def test_a_machine_that_is_spared_otherwise_is_not_tagged(
    two: tuple[Stage, Stage, Tagger], tag: dict[str, str]
) -> None:
    ours, _, tagger = two
    for key, value in tag.items():
        ours.cloud.tag(ours.ref().native_id, key, value, "colleague")
    pressed(ours, 14)
    ours.day(0)
    assert tagger.written == []


@pytest.mark.parametrize("mode", [Mode.OBSERVE, Mode.WARN])
def test_a_rule_that_changes_nothing_writes_no_tag(two: tuple[Stage, Stage, Tagger], mode: Mode) -> None:
    ours, _, tagger = two
    ours.policy = policy(rule(mode=mode), keep_as_tag=True)
    pressed(ours, 14)
    ours.day(0)
    assert tagger.written == []


def test_a_pause_writes_no_tag(two: tuple[Stage, Stage, Tagger]) -> None:
    ours, _, tagger = two
    pressed(ours, 14)
    ours.memory.switch.pause("platform", "maintenance", ours.clock.now())
    ours.day(0)
    assert tagger.written == []
