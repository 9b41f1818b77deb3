"""Racing for a case and for an intent: one moves it, one claims it, and nobody claims what has been moved."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tests.builders import case, ref
from tests.races.contest import NOW, Answer, Attempt, Lot, Race, audited, body_of

from costguard.cases import Case, CaseStatus, Phase
from costguard.domain.actions import Action, Verb
from costguard.domain.errors import VersionConflictError
from costguard.engine.ledger.cases import CaseRepository
from costguard.engine.ledger.intents import IntentRepository
from costguard.engine.ledger.runs import RunRepository
from costguard.ports import RecordStore

GUARD = "idle_gpu"


class CaseContest:
    """Moving one case from one version (or opening it, where there is none), each process to a place of its own."""

    def __init__(self, name: str, *, opening: bool) -> None:
        self.name = name
        self._opening = opening

    def prepare(self, store: RecordStore, race: Race) -> None:
        for run in set(_runs(race)):
            RunRepository(store).begin(run, GUARD, NOW)
        if not self._opening:
            CaseRepository(store).commit(None, _case(race))

    def ready(self, store: RecordStore, lot: Lot, race: Race, runner: int) -> Attempt:  # noqa: ARG002 - sends nothing
        cases = CaseRepository(store)
        before = cases.get(_case(race).key)
        after = replace(before or _case(race), name=f"runner {runner}", phase=Phase.CLAIMED)
        if _closes(race):
            after = replace(after, status=CaseStatus.CLOSED, closed_at=NOW)

        def attempt() -> Answer:
            try:
                moved = cases.commit(before, after, run_id=_runs(race)[runner % 2], now=NOW)
            except VersionConflictError:
                return Answer(won=False)
            return Answer(won=True, facts={"version": moved.version})

        return attempt

    def check(self, store: RecordStore, lot: Lot, race: Race, answers: Sequence[Answer]) -> Iterator[str]:  # noqa: ARG002
        # a case opened and closed at once may be opened again by the next: each is one more version
        repeats = self._opening and _closes(race)
        winners = [runner for runner, answer in enumerate(answers) if answer.won]
        if len(winners) != 1 and not (repeats and winners):
            yield f"{len(winners)} processes moved the case"
            return
        key = _case(race).key
        record = store.get("case", key)
        first = 1 if self._opening else 2
        versions = list(range(first, first + len(winners)))
        if record is None or record.version != versions[-1]:
            yield f"the case is at version {record.version if record else 0}, not {versions[-1]}"
        if sorted(answers[runner].facts["version"] for runner in winners) != versions:
            yield "two moves of the case were told the same version"
        names = {f"runner {runner}" for runner in winners}
        if record is not None and record.body["name"] not in names:
            yield f"the case is as {record.body['name']} wrote it, who was told that it lost"
        moves = [entry for run in set(_runs(race)) for entry in audited(store, _chain(race, run))]
        if sorted(entry["facts"]["version"] for entry in moves) != versions:
            yield f"{len(moves)} moves are audited"
        kept = [record.body["name"] for record in store.query("case_closed", f"{key}/")]
        if len(kept) != _closes(race) or not names.issuperset(kept):
            yield f"{len(kept)} closed cases are kept"


class ClaimContest:
    """Claiming one action, at times in the names of two cases; `moving` lets two processes move the case meanwhile."""

    def __init__(self, name: str, *, moving: bool) -> None:
        self.name = name
        self._moving = moving

    def movers(self, race: Race) -> tuple[int, ...]:
        return tuple(race.dice().sample(range(race.runners), 2)) if self._moving else ()

    def prepare(self, store: RecordStore, race: Race) -> None:
        for run in set(_runs(race)):
            RunRepository(store).begin(run, GUARD, NOW)
        CaseRepository(store).commit(None, _case(race))

    def ready(self, store: RecordStore, lot: Lot, race: Race, runner: int) -> Attempt:  # noqa: ARG002 - sends nothing
        cases, intents = CaseRepository(store), IntentRepository(store)
        claims_in, moves_in = _runs(race)
        read = cases.get(_case(race).key)
        assert read is not None
        bound_to = read if self._moving else None

        def claim() -> Answer:
            return Answer(intents.claim(_action(race, runner), claims_in, NOW, bound_to))

        def move() -> Answer:
            try:
                cases.commit(read, replace(read, name=f"runner {runner}"), run_id=moves_in, now=NOW)
            except VersionConflictError:
                return Answer(won=False)
            return Answer(won=True, facts={"claimed_before": intents.get(_action(race, runner).action_id) is not None})

        return move if runner in self.movers(race) else claim

    def check(self, store: RecordStore, lot: Lot, race: Race, answers: Sequence[Answer]) -> Iterator[str]:  # noqa: ARG002
        movers = self.movers(race)
        claims = [answer for runner, answer in enumerate(answers) if answer.won and runner not in movers]
        moves = [answers[runner] for runner in movers if answers[runner].won]
        intents = [record for one in _case_ids(race) for record in store.query("intent", f"{one}/")]
        if len(claims) != len(intents) or len(intents) > 1:
            yield f"{len(claims)} processes were told to go on, and {len(intents)} intents are written"
        if not movers and not intents:
            yield "nobody got the claim"
        if movers and len(moves) != 1:
            yield f"{len(moves)} processes moved the case"
        named = body_of(store, "intent_case", _action(race, 0).action_id).get("case_id")
        if intents and intents[0].key.partition("/")[0] != named:
            yield "the intent is not where its action says"
        if intents and any(not move.facts["claimed_before"] for move in moves):
            yield "the case was claimed at a version after which it had been moved"
        yield from self._misaudited(store, race, len(intents), len(moves))

    def _misaudited(self, store: RecordStore, race: Race, intents: int, moves: int) -> Iterator[str]:
        """Where both stand in one chain, it says as well which came first: no claim may follow a move."""
        told = [entry["what"] for run in dict.fromkeys(_runs(race)) for entry in audited(store, _chain(race, run))]
        expected = ["intent"] * intents + ["transition"] * moves
        if told != expected:
            yield f"the audit tells of {told}, in this order, where {expected} is what may happen"


def _case(race: Race) -> Case:
    return case(case_id=race.name, subject=ref(f"i-{race.name}"), decision_id=f"decision-{race.name}")


def _closes(race: Race) -> bool:
    return race.dice().random() < 0.25


def _runs(race: Race) -> tuple[str, str]:
    """One audit chain for all, or two."""
    return (f"{race.name}-a", f"{race.name}-b" if race.dice().random() < 0.5 else f"{race.name}-a")


def _chain(race: Race, run: str) -> str:
    return f"{run}/{_case(race).subject.shard}"


def _case_ids(race: Race) -> tuple[str, ...]:
    return (race.name, f"{race.name}-other")


def _action(race: Race, runner: int) -> Action:
    """One action for all; in every second race, half the processes know it by another case."""
    one = _case(race)
    case_id = _case_ids(race)[runner % 2 if race.dice().random() < 0.5 else 0]
    subject = one.subject
    return Action(
        action_id=f"action-{race.name}",
        decision_id=one.decision_id,
        verb=Verb.STOP,
        subject=subject,
        resource=subject,
        run_epoch=one.run_epoch,
        case_id=case_id,
        rung=one.rung,
        rule=one.rule,
        rule_digest=one.rule_digest,
    )
