"""A run in a process that ends itself by SIGKILL at one of its requests, beside a cloud and a channel that live on.

The fleet and what the clouds heard are one file, replaced as one after each call; messages are lines of another.
"""

from __future__ import annotations

import json
import os
import pickle
import random
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import TypeVar

from tests.builders import policy, rule
from tests.races.places import open_store
from tests.scenario.stage import CLOUDS, DAY, Stage, idle_machine

from cloudstand.world.cloud import World
from cloudstand.world.fleet import Disk, MachineSpec
from costguard.domain.actions import Action, Receipt, Verb
from costguard.domain.money import Money
from costguard.guards.rules.common import Step
from costguard.policy.model.policy import Policy
from costguard.ports import ActionExecutor, Delivery, Message, Put, Record, RecordStore, VersionCheck
from costguard.ports.records import Name

T = TypeVar("T")
PER_DAY = 2
"""Stops a day, and terminations a day: fewer than there are machines."""

SENT = "sent"
_FLEET = "fleet"


@dataclass(frozen=True, slots=True)
class Death:
    """When a process ends itself: at its `touch`-th request, and `during` it this many seconds after it began."""

    touch: int
    when: str  # "before", "during", "after"
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Life:
    """A fleet, its ledger and its folder."""

    number: int
    seed: int
    address: str
    folder: Path

    def dice(self) -> random.Random:
        return random.Random(f"{self.seed} {self.number}")  # noqa: S311 - variety that can be repeated, no secret


def run_once(life: Life, moment: datetime, death: Death | None) -> None:
    """One run of the guard in this process, which may not live to its end."""
    dying = Dying(death)
    store = DyingStore(open_store(life.address), dying)
    kept = kept_of(life)
    stage = Stage(life.folder, *_fleet(), under=_policy(), store=store, cloud=kept.cloud if kept else None)
    stage.clock.advance(moment - stage.clock.now())
    kept = kept or Kept(stage.cloud)
    world = stage.world()
    hands = {cloud: Hearing(life, kept, hand, dying, moment) for cloud, hand in world.executors.items()}
    stage.run_with(replace(world, executors=hands, notifier=Posting(life, dying, moment)))
    stage.close()


@dataclass(frozen=True, slots=True)
class Call:
    """What a cloud heard."""

    at: datetime
    verb: str
    machine: str
    native_id: str
    action_id: str


@dataclass(slots=True)
class Kept:
    """What outlives every process: the fleet, and each call that its clouds heard."""

    cloud: World
    heard: list[Call] = field(default_factory=list)


def kept_of(life: Life) -> Kept | None:
    file = life.folder / _FLEET
    return pickle.loads(file.read_bytes()) if file.exists() else None  # noqa: S301 - written by these processes


def keep(life: Life, kept: Kept) -> None:
    """Replace what was kept, as one."""
    written = life.folder / f"{_FLEET}-next"
    written.write_bytes(pickle.dumps(kept))
    written.replace(life.folder / _FLEET)


def _fleet() -> list[MachineSpec]:
    """A machine with two disks on each cloud."""
    disks = (Disk(100), Disk(200, device="/dev/sdf"))
    return [idle_machine(f"box-{cloud}", cloud=cloud, disks=disks) for cloud in CLOUDS]


def _policy() -> Policy:
    plenty = (Money(Decimal(10_000), "USD"), Money(Decimal(10_000), "CNY"))
    limits = replace(
        rule().limits,
        actions_per_day=PER_DAY,
        terminations_per_day=PER_DAY,
        fleet_share_per_day=Decimal(1),
        hourly_cost_stopped_per_day=plenty,
    )
    ladder = (Step(Verb.WARN, 0 * DAY), Step(Verb.STOP, DAY), Step(Verb.TERMINATE, DAY))
    return policy(rule(limits=limits, ladder=ladder))


class Dying:
    """Counts the requests of a process, and ends it at one of them."""

    def __init__(self, death: Death | None) -> None:
        self._death = death
        self._count = 0
        self._lock = threading.Lock()

    def touch(self, request: Callable[[], T]) -> T:
        """Make the request; perhaps nobody lives to see what it answers."""
        with self._lock:
            mine, self._count = self._count, self._count + 1
        death = self._death
        if death is None or mine != death.touch:
            return request()
        if death.when == "before":
            _die()
        if death.when == "during":
            threading.Thread(target=_die, args=(death.seconds,), daemon=True).start()
        answer = request()
        if death.when == "after":
            _die()
        return answer


def _die(after: float = 0.0) -> None:
    time.sleep(after)
    os.kill(os.getpid(), signal.SIGKILL)


class DyingStore:
    """A ledger whose every request may be the last of its process."""

    def __init__(self, store: RecordStore, dying: Dying) -> None:
        self._store = store
        self._dying = dying

    @property
    def durable(self) -> bool:
        return self._store.durable

    def get(self, kind: str, key: str) -> Record | None:
        return self._dying.touch(lambda: self._store.get(kind, key))

    def get_many(self, kind: str, keys: Iterable[str]) -> Mapping[str, Record]:
        wanted = list(keys)
        return self._dying.touch(lambda: self._store.get_many(kind, wanted))

    def get_each(self, names: Iterable[Name]) -> Mapping[Name, Record]:
        together = list(names)
        return self._dying.touch(lambda: self._store.get_each(together))

    def put(self, record: Record, expect_version: int) -> Record:
        return self._dying.touch(lambda: self._store.put(record, expect_version))

    def query(self, kind: str, prefix: str = "", after: str = "") -> Iterator[Record]:
        return iter(self._dying.touch(lambda: list(self._store.query(kind, prefix, after))))

    def transact(self, operations: Sequence[Put | VersionCheck]) -> None:
        self._dying.touch(lambda: self._store.transact(operations))

    def close(self) -> None:
        self._store.close()


_ONE_AT_A_TIME = threading.Lock()


class Hearing:
    """A cloud that outlives whoever calls it: fleet and calls are one file, replaced as one."""

    def __init__(self, life: Life, kept: Kept, inner: ActionExecutor, dying: Dying, moment: datetime) -> None:
        self._life, self._kept, self._inner, self._dying, self._moment = life, kept, inner, dying, moment

    def execute(self, action: Action) -> Receipt:
        def heard() -> Receipt:
            receipt = self._inner.execute(action)
            of = action.resource
            call = Call(self._moment, action.verb.value, str(of), of.native_id, action.action_id)
            self._kept.heard.append(call)
            keep(self._life, self._kept)
            return receipt

        with _ONE_AT_A_TIME:  # shards are acted in side by side, and the file is one
            return self._dying.touch(heard)


class Posting:
    """A channel whose messages are lines of a file."""

    def __init__(self, life: Life, dying: Dying, moment: datetime) -> None:
        self._life, self._dying, self._moment = life, dying, moment

    def send(self, message: Message) -> Delivery:
        def sent() -> Delivery:
            _append(self._life.folder / SENT, {"text": repr(message), "at": self._moment.isoformat()})
            return Delivery(f"ts-{time.monotonic_ns()}", proves_delivery=True)

        return self._dying.touch(sent)

    def edit(self, receipt: str, message: Message) -> bool:
        del receipt, message
        return self._dying.touch(lambda: True)

    def capacity(self, message: Message) -> int:
        return max(1, len(message.parts))


def _append(file: Path, line: Mapping[str, str]) -> None:
    with file.open("ab", buffering=0) as written:
        written.write(json.dumps(line).encode() + b"\n")
