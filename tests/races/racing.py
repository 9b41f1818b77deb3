"""Holding many races, checking each from the outside, and adding up."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter

from tests.races.contest import Answer, CarelessStore, Lot, Race
from tests.races.contests import CONTESTS
from tests.races.crew import Crew
from tests.races.places import Place, open_store

from costguard.engine.ledger.audit.verify import verify
from costguard.ports import RecordStore

LOT = 250
"""Races that share a ledger, so that reading the whole audit after them stays short."""

LEAST_CONTESTED = 0.5
"""The share of races in which writes must have met: fewer, and the processes merely queued."""


@dataclass
class Tally:
    """What was seen. A race is contested when the store refused a write because another process's came first."""

    races: int = 0
    seconds: float = 0.0
    attempts: int = 0
    lost: int = 0
    refused_writes: int = 0
    audit_entries: int = 0
    by_contest: Counter[str] = field(default_factory=Counter)
    contested: Counter[str] = field(default_factory=Counter)
    breached: Counter[str] = field(default_factory=Counter)
    breaches: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    first_breach: int | None = None

    @property
    def races_contested(self) -> int:
        return sum(self.contested.values())

    @property
    def uncontested_kinds(self) -> list[str]:
        """Kinds of race that prove little: too few of theirs were contested."""
        return [name for name, held in self.by_contest.items() if self.contested[name] < LEAST_CONTESTED * held]

    @property
    def proves(self) -> bool:
        """Whether everything held, and was put to the test."""
        return not (self.breaches or self.errors or self.uncontested_kinds)


def hold(place: Place, crew: Crew, races: int, *, seed: int = 0, kinds: Sequence[str] = tuple(CONTESTS)) -> Tally:
    """Hold so many races, the kinds by turns; every lot of them on a ledger of its own."""
    tally = Tally()
    began = perf_counter()
    with tempfile.TemporaryDirectory(prefix="costguard-races-") as folder:
        for first in range(0, races, LOT):
            lot = Lot(place.new_ledger(), Path(folder) / f"sent-{first}")
            opened = open_store(lot.address)
            store = CarelessStore(opened) if crew.careless else opened
            try:
                for number in range(first, min(first + LOT, races)):
                    race = Race(kinds[number % len(kinds)], number, seed, crew.size)
                    _hold_one(store, crew, lot, race, tally)
                _check_audit(store, first, tally)
            finally:
                opened.close()
    tally.seconds = perf_counter() - began
    return tally


def _hold_one(store: RecordStore, crew: Crew, lot: Lot, race: Race, tally: Tally) -> None:
    contest = CONTESTS[race.contest]
    contest.prepare(store, race)
    answers = crew.race(lot, race)
    tally.races += 1
    tally.by_contest[race.contest] += 1
    tally.attempts += len(answers)
    tally.lost += sum(not answer.won for answer in answers)
    refused = sum(answer.refused_writes for answer in answers)
    tally.refused_writes += refused
    tally.contested[race.contest] += refused > 0
    errors = [f"{race.name}: process {runner}: {answer.error}" for runner, answer in enumerate(answers) if answer.error]
    tally.errors.extend(errors)
    if not errors:
        _breached(tally, race, _breaches(store, lot, race, answers))


def _breaches(store: RecordStore, lot: Lot, race: Race, answers: list[Answer]) -> list[str]:
    return [f"{race.name}: {breach}" for breach in CONTESTS[race.contest].check(store, lot, race, answers)]


def _check_audit(store: RecordStore, first: int, tally: Tally) -> None:
    verdict = verify(store)
    tally.audit_entries += verdict.entries
    tally.breaches.extend(f"audit of races {first} and on: {problem}" for problem in verdict.problems)


def _breached(tally: Tally, race: Race, breaches: list[str]) -> None:
    if breaches and tally.first_breach is None:
        tally.first_breach = race.number + 1
    tally.breached[race.contest] += bool(breaches)
    tally.breaches.extend(breaches)
