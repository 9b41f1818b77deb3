"""The processes that race: started once, lined up anew for every race."""

from __future__ import annotations

import multiprocessing
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Barrier
from typing import Any

from tests.races.contest import Answer, CarelessStore, CountingStore, Lot, Race
from tests.races.contests import CONTESTS
from tests.races.places import open_store
from typing_extensions import Self

from costguard.domain.errors import CostguardError
from costguard.ports import RecordStore

_LONGEST = 120.0  # seconds a race may take; SQLite gives a writer thirty
_IMPORTED_ONCE = (  # by the process that all others are forked from, which opens nothing: importing takes a second
    "tests.races.crew",
    "costguard.adapters.ledgers.sql",
    "costguard.providers.aws.core.store",
    "boto3",
    "psycopg",
    "pydantic",
    "sqlalchemy.dialects.sqlite",
)


class CrewError(Exception):
    """A process of the crew died or hangs: the races prove nothing."""


class Crew:
    """So many processes, forked from one that has only imported: none shares a connection, a lock or memory.

    `careless` gives them a store that ignores what version a write expects: with it, breaches must be found.
    """

    def __init__(self, size: int, *, careless: bool = False) -> None:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload([*_IMPORTED_ONCE])
        self._line = context.Barrier(size)  # kept: its semaphores go with it
        self.size = size
        self.careless = careless
        self._orders: list[Connection[Any, Any]] = []
        self._processes = []
        for runner in range(size):
            ours, theirs = context.Pipe()
            process = context.Process(target=run, args=(runner, self._line, theirs, careless), daemon=True)
            process.start()
            theirs.close()
            self._orders.append(ours)
            self._processes.append(process)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    def race(self, lot: Lot, race: Race) -> list[Answer]:
        """Have every process try at once; their answers in order.

        Raises:
            CrewError: a process died or does not answer.
        """
        for orders in self._orders:
            orders.send((lot, race))
        answers: list[Answer] = []
        for runner, orders in enumerate(self._orders):
            if not orders.poll(_LONGEST):
                message = f"process {runner} has not answered for {_LONGEST:.0f} s in {race}"
                raise CrewError(message)
            try:
                answers.append(orders.recv())
            except EOFError as err:
                message = f"process {runner} died in {race}"
                raise CrewError(message) from err
        return answers

    def close(self) -> None:
        """Let them go home; whoever does not is ended."""
        for orders, process in zip(self._orders, self._processes, strict=True):
            if process.is_alive():
                orders.send(None)
        for orders, process in zip(self._orders, self._processes, strict=True):
            process.join(10)
            process.kill()
            process.join()
            process.close()
            orders.close()


def run(runner: int, line: Barrier, orders: Connection[Any, Any], careless: bool) -> None:  # noqa: FBT001 - of another process
    """What a process of the crew does until it is sent home."""
    address, store = "", None
    while (order := orders.recv()) is not None:
        lot, race = order
        if lot.address != address or store is None:
            if store is not None:
                store.close()
            opened = open_store(lot.address)
            address, store = lot.address, CountingStore(CarelessStore(opened) if careless else opened)
        orders.send(_run(store, lot, race, runner, line))
    if store is not None:
        store.close()


def _run(store: CountingStore, lot: Lot, race: Race, runner: int, line: Barrier) -> Answer:
    watched: RecordStore = store
    attempt = CONTESTS[race.contest].ready(watched, lot, race, runner)
    store.refused_writes = 0
    line.wait(_LONGEST)
    try:
        answer = attempt()
    except CostguardError as err:
        return Answer(won=False, refused_writes=store.refused_writes, error=f"{type(err).__name__}: {err}")
    return Answer(answer.won, answer.facts, store.refused_writes)
