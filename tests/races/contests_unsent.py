"""Racing to give back what was reserved for nothing: nobody who may call has lost its reservation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from decimal import Decimal

from tests.builders import case, ref
from tests.races.contest import NOW, Answer, Attempt, Lot, Race, body_of

from costguard.cases import Case
from costguard.domain.actions import Action, Verb
from costguard.domain.errors import VersionConflictError
from costguard.domain.money import Money
from costguard.engine.ledger.caps import Claim
from costguard.engine.ledger.memory import Memory
from costguard.engine.run.settlement import give_back_unsent
from costguard.ports import RecordStore

GUARD = "idle_gpu"
_PLENTY = Money(Decimal(10_000), "USD")
_PRICE = Money(Decimal(1), "USD")


class UnsentContest:
    """Most reserve for a case of their own and write its intent; one moves every second case, two give back."""

    name = "cap-unsent"

    def prepare(self, store: RecordStore, race: Race) -> None:
        memory = Memory.over(store)
        memory.runs.begin(race.name, GUARD, NOW)
        for runner in range(race.runners - 3):
            memory.cases.commit(None, _case(race, runner))

    def ready(self, store: RecordStore, lot: Lot, race: Race, runner: int) -> Attempt:  # noqa: ARG002 - sends nothing
        memory = Memory.over(store)
        claimants = race.runners - 3
        read = [memory.cases.get(_case(race, one).key) for one in range(claimants)]
        cases = [one for one in read if one is not None]

        def claim() -> Answer:
            mine = cases[runner]
            claimed = Claim(mine.case_id, mine.key, mine.version)
            limits = {"max_actions": 100, "max_hourly": (_PLENTY,)}
            memory.caps.reserve(GUARD, race.name, mine.decision_id, _PRICE, **limits, now=NOW, claim=claimed)  # type: ignore[arg-type]
            return Answer(memory.intents.claim(_action(mine), race.name, NOW, mine))

        def move() -> Answer:
            moved = 0
            for one in cases[::2]:
                try:
                    memory.cases.commit(one, replace(one, name="moved"))
                    moved += 1
                except VersionConflictError:
                    continue
            return Answer(moved == len(cases[::2]))

        def give_back() -> Answer:
            for _ in range(5):
                give_back_unsent(memory, GUARD, race.name, NOW)
            return Answer(won=True)

        return claim if runner < claimants else move if runner == claimants else give_back

    def check(self, store: RecordStore, lot: Lot, race: Race, answers: Sequence[Answer]) -> Iterator[str]:  # noqa: ARG002
        claimants = range(race.runners - 3)
        sent = {
            _case(race, one).decision_id
            for one in claimants
            if list(store.query("intent", f"{_case(race, one).case_id}/"))
        }
        told = {_case(race, one).decision_id for one in claimants if answers[one].won}
        if sent != told:
            yield f"{sorted(told)} were told to call, and {sorted(sent)} have an intent"
        before = _reserved(store, race)
        if not sent <= before:
            yield f"{sorted(sent - before)} may call, and have no reservation"
        give_back_unsent(Memory.over(store), GUARD, race.name, NOW)
        if _reserved(store, race) != sent:
            yield f"{sorted(_reserved(store, race) - sent)} can never be sent, and are reserved still"


def _reserved(store: RecordStore, race: Race) -> set[str]:
    return {one["decision_id"] for one in body_of(store, "cap", f"{GUARD}/{race.name}").get("reservations", [])}


def _case(race: Race, runner: int) -> Case:
    name = f"{race.name}-{runner}"
    return case(case_id=name, subject=ref(f"i-{name}"), decision_id=f"decision-{name}")


def _action(one: Case) -> Action:
    return Action(
        action_id=f"action-{one.case_id}",
        decision_id=one.decision_id,
        verb=Verb.STOP,
        subject=one.subject,
        resource=one.subject,
        run_epoch=one.run_epoch,
        case_id=one.case_id,
        rung=one.rung,
        rule=one.rule,
        rule_digest=one.rule_digest,
    )
