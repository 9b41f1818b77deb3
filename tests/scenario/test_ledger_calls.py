"""How often a stop, and confirming it, asks the ledger; and that asking less often still hears everybody."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest
from tests.builders import policy, rule
from tests.contract.ledger_fakes import CountingStore, fail
from tests.scenario.stage import DAY, Stage, idle_machine

from costguard.adapters.ledgers.open import open_ledger
from costguard.domain.actions import Action, Outcome, Receipt, Verb
from costguard.domain.errors import OutcomeUnknownError
from costguard.domain.money import Money
from costguard.domain.reasons import ReasonCode
from costguard.engine.ledger.audit.verify import verify
from costguard.engine.ledger.memory import Memory
from costguard.engine.run.run import RunReport
from costguard.ports import Put, Record, VersionCheck
from costguard.ports.records import Name

CALLS_A_STOP = 6  # five that each stop has, and its share of what is written together
CALLS_TO_CONFIRM = 1
FEW, MANY = 4, 24
MUCH = (Money(Decimal(1_000_000), "USD"),)


class Interrupted(CountingStore):
    """A ledger in a file; once, before the write that reserves, something else happens. It may be unreadable."""

    def __init__(self, folder: Path) -> None:
        super().__init__(open_ledger(f"sqlite:///{folder}/ledger.sqlite3"))
        self.before_a_claim: Callable[[], object] | None = None
        self.unreadable = False

    def get_each(self, names: Iterable[Name]) -> Mapping[Name, Record]:
        wanted = list(names)
        if self.unreadable and ("switch", "all") in wanted:
            fail()
        return super().get_each(wanted)

    def transact(self, operations: Sequence[Put | VersionCheck]) -> None:
        reserves = any(isinstance(each, Put) and each.record.kind == "cap" for each in operations)
        if reserves and self.before_a_claim is not None:
            happens, self.before_a_claim = self.before_a_claim, None
            happens()
        super().transact(operations)


def staged(store: Interrupted, folder: Path, machines: int, actions: int = 100) -> Stage:
    """So many idle machines under a cap of `actions` a day; their owners were all told on day 0."""
    plenty = replace(rule().limits, fleet_share_per_day=Decimal(1), hourly_cost_stopped_per_day=MUCH)
    under = policy(rule(limits=replace(plenty, actions_per_day=actions)), messages_per_day=1000)
    stage = Stage(folder, *(idle_machine(f"m-{number}") for number in range(machines)), under=under, store=store)
    stage.day(0)
    return stage


def asked_by(folder: Path, machines: int) -> tuple[Counter[str], Counter[str]]:
    """What the run asked that stops them, and the one that sees them stopped."""
    folder.mkdir()
    store = Interrupted(folder)
    stage = staged(store, folder, machines)
    counts: list[Counter[str]] = []
    for after in (DAY, DAY + DAY / 12):
        store.asked.clear()
        stage.at(after)
        counts.append(Counter(f"{what} {kinds}" for what, kinds in store.asked))
    assert stage.verbs() == ["stop"] * machines
    cases = stage.memory.cases.active("idle_gpu")
    assert [len(case.climbed) for case in cases] == [2] * machines, "every stop was seen"
    assert verify(store).problems == ()
    stage.close()
    return counts[0], counts[1]


def test_a_stop_asks_the_ledger_six_times_and_confirming_it_once_at_most(tmp_path: Path) -> None:
    """Of one machine more, whatever a run asks in any case."""
    few, many = asked_by(tmp_path / "few", FEW), asked_by(tmp_path / "many", MANY)
    for more, fewer, most in zip(many, few, (CALLS_A_STOP, CALLS_TO_CONFIRM), strict=True):
        added = more - fewer
        assert sum(added.values()) <= most * (MANY - FEW), added


def test_the_switch_and_a_snooze_are_read_for_each_call_and_held_until_its_intent(tmp_path: Path) -> None:
    store = Interrupted(tmp_path)
    stage = staged(store, tmp_path, FEW)
    store.asked.clear()
    stage.day(1)
    reads = [set(kinds.split("+")) for what, kinds in store.asked if what == "get_each"]
    intents = [set(kinds.split("+")) for what, kinds in store.asked if what == "transact" and "intent_case" in kinds]
    assert sum("switch" in kinds for kinds in reads) == 2 * FEW, "before the claim, and again before the call"
    assert sum({"switch", "snooze"} <= kinds for kinds in reads) == FEW
    assert len(intents) == FEW
    assert all({"switch", "snooze", "disowned", "case", "engaged", "audit"} <= kinds for kinds in intents)
    stage.close()


@pytest.fixture
def store(tmp_path: Path) -> Interrupted:
    return Interrupted(tmp_path)


@pytest.fixture
def stage(store: Interrupted, tmp_path: Path) -> Iterator[Stage]:
    """Two machines under a cap of one."""
    stage = staged(store, tmp_path, 2, actions=1)
    yield stage
    stage.close()


def reasons(report: RunReport) -> set[ReasonCode]:
    return {result.reason.code for result in report.results if result.reason}


def used(stage: Stage) -> int:
    return stage.memory.caps.usage("idle_gpu", "research", stage.clock.now()).actions


def reserve_another(stage: Stage) -> None:
    """Another process takes the one action of the day."""
    dollar, now = Money(Decimal(1), "USD"), stage.clock.now()
    caps = Memory.over(stage.memory.store).caps
    assert caps.reserve("idle_gpu", "research", "other", dollar, max_actions=1, max_hourly=MUCH, now=now) is None


def move_all(stage: Stage) -> None:
    """Another process writes every case."""
    for case in stage.memory.cases.active("idle_gpu"):
        Memory.over(stage.memory.store).cases.commit(case, replace(case, owner="somebody else"))


def test_a_cap_used_up_between_its_reading_and_the_claim_is_seen(stage: Stage, store: Interrupted) -> None:
    """The claim and its share of the cap are one write, which fails where anybody else reserved meanwhile."""
    store.before_a_claim = lambda: reserve_another(stage)
    assert reasons(stage.day(1)) == {ReasonCode.CAP_ACTIONS}
    assert (stage.verbs(), used(stage)) == ([], 1)


def test_a_cap_that_was_written_meanwhile_and_still_has_room_is_taken(stage: Stage, store: Interrupted) -> None:
    def reserve_and_give_back() -> None:
        reserve_another(stage)
        Memory.over(store).caps.release("idle_gpu", "research", "other")

    store.before_a_claim = reserve_and_give_back
    stage.day(1)
    assert (stage.verbs(), used(stage)) == (["stop"], 1)


def test_a_claim_that_fails_takes_nothing_of_the_cap(stage: Stage, store: Interrupted) -> None:
    store.before_a_claim = lambda: move_all(stage)
    assert reasons(stage.day(1)) == {ReasonCode.CHANGED_SINCE_PLAN}
    assert (stage.verbs(), used(stage)) == ([], 0)


def test_what_cannot_be_read_before_a_claim_is_a_switch_that_cannot_be_read(stage: Stage, store: Interrupted) -> None:
    """NEVER rule 20: nothing is claimed, reserved or called."""
    store.unreadable = True
    report = stage.day(1)
    assert reasons(report) == {ReasonCode.KILL_SWITCH}
    assert [dict(result.reason.facts) for result in report.results if result.reason] == [{"by": "unreadable"}]
    assert (stage.verbs(), used(stage)) == ([], 0)


def test_an_outcome_is_kept_where_its_case_was_moved_during_the_call(stage: Stage, store: Interrupted) -> None:
    """The outcome and the case are written together; where that fails, the outcome is written all the same."""
    execute = stage.executor.inner.execute

    def moved_meanwhile(action: Action) -> Receipt:
        receipt = execute(action)
        move_all(stage)
        return receipt

    stage.executor.inner.execute = moved_meanwhile  # type: ignore[method-assign]
    stage.day(1)
    cases = stage.memory.cases.active("idle_gpu")
    intents = [one for case in cases for one in stage.memory.intents.for_case(case.case_id)]
    assert [intent.outcome for intent in intents] == [Outcome.ACCEPTED]
    assert verify(store).problems == ()


def test_a_try_whose_outcome_nobody_knew_is_settled_with_the_one_that_was_seen(stage: Stage) -> None:
    """Only what was climbed at the first try is found by the name of its decision: here an earlier one is open."""
    stage.executor.fails_before = OutcomeUnknownError("lost", operation="StopInstances")
    stage.day(1)
    stage.executor.fails_before = None
    stage.days((2, 3, 4))
    cases = [case for case in stage.memory.cases.active("idle_gpu") if case.climbed_at(Verb.STOP) is not None]
    tries = [stage.memory.intents.for_case(case.case_id) for case in cases]
    assert max(map(len, tries)) == 2
    assert all(intent.settled for intents in tries for intent in intents)
