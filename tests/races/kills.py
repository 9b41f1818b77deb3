"""Lives of a small fleet in which runs are killed, and what must hold whatever the moment was."""

from __future__ import annotations

import json
import multiprocessing
import random
import signal
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from tests.races.dying import PER_DAY, SENT, Death, Kept, Life, kept_of, run_once
from tests.races.places import Place, open_store
from tests.scenario.stage import DAY, START
from tests.world_ports.translate import to_product

from cloudstand.world.cloud import World
from costguard.domain.refs import ResourceRef
from costguard.engine.answers import answers
from costguard.engine.ledger.audit.verify import verify
from costguard.engine.ledger.codec import value_of
from costguard.engine.ledger.intents import Intent
from costguard.engine.ledger.memory import Memory
from costguard.ports import RecordStore

DAYS = 8
_TOUCHES = 80  # a run of this fleet makes 20 to 150 requests
_DEATHS_IN_TEN = 6
_LONGEST_DURING = 0.004  # seconds: a request to PostgreSQL takes about one millisecond
_AGAIN = timedelta(minutes=15)
_LONGEST = 120.0  # seconds a run may take
_IMPORTED_ONCE = (
    "tests.races.dying",
    "costguard.adapters.ledgers.sql",
    "costguard.providers.aws.core.store",
    "boto3",
    "psycopg",
)


@dataclass
class Toll:
    """What was seen over all lives. `ends` counts how the machines' lives ended."""

    lives: int = 0
    runs: int = 0
    kills: Counter[str] = field(default_factory=Counter)
    ends: Counter[str] = field(default_factory=Counter)
    heard: Counter[str] = field(default_factory=Counter)
    breaches: list[str] = field(default_factory=list)


def live(place: Place, folder: Path, lives: Iterable[int], *, seed: int = 0) -> Toll:
    """Live these lives one after the other, each on a ledger of its own; what was killed and what was breached."""
    toll = Toll()
    for number in lives:
        life = Life(number, seed, place.new_ledger(), folder / f"life-{number}")
        life.folder.mkdir()
        _live(life, toll)
        toll.breaches += [f"life {number}: {breach}" for breach in breaches_of(life, toll)]
        toll.lives += 1
    return toll


def _live(life: Life, toll: Toll) -> None:
    """A run a day; one that died is followed by another a quarter of an hour later, which may die as well."""
    dice, context = life.dice(), multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([*_IMPORTED_ONCE])
    for day in range(DAYS):
        moment = START + day * DAY
        while True:
            death = _death(dice) if dice.randrange(10) < _DEATHS_IN_TEN else None
            process = context.Process(target=run_once, args=(life, moment, death), daemon=True)
            process.start()
            process.join(_LONGEST)
            code = process.exitcode
            process.kill()
            process.join()
            process.close()
            toll.runs += 1
            if code == 0:
                break
            if code != -signal.SIGKILL or death is None:
                toll.breaches.append(f"life {life.number}: the run of {moment:%d %H:%M} ended with {code} ({death})")
                return
            toll.kills[death.when] += 1
            moment += _AGAIN


def _death(dice: random.Random) -> Death:
    when = dice.choice(("before", "during", "after"))
    return Death(dice.randrange(_TOUCHES), when, dice.uniform(0, _LONGEST_DURING))


def breaches_of(life: Life, toll: Toll) -> Iterator[str]:
    """What must not be, read from ledger, fleet and channel after the last run; how it ended is added to `toll`."""
    kept = kept_of(life)
    if kept is None:
        yield "the cloud heard nothing in all these days"
        return
    toll.heard.update(call.verb for call in kept.heard)
    store = open_store(life.address)
    try:
        toll.ends.update(_end(kept.cloud, Memory.over(store), to_product(spec.ref)) for spec in kept.cloud.fleet)
        yield from verify(store).problems
        yield from _unclaimed(store, kept)
    finally:
        store.close()
    yield from _doubled(kept)
    yield from _above_the_cap(kept)
    yield from _untold(kept, life)


def _unclaimed(store: RecordStore, kept: Kept) -> Iterator[str]:
    claimed = {value_of(Intent, record).action.action_id for record in store.query("intent")}
    for call in kept.heard:
        if call.action_id not in claimed:
            yield f"{call.verb} of {call.machine} has no intent"


def _doubled(kept: Kept) -> Iterator[str]:
    ends = Counter((call.verb, call.machine) for call in kept.heard if call.verb != "snapshot")
    for (verb, machine), times in ends.items():
        if times > 1:
            yield f"the cloud heard {verb} of {machine} {times} times"
    for volume, copies in Counter(copy.volume for copy in kept.cloud.snapshots.values()).items():
        if copies > 1:
            yield f"{volume} was copied {copies} times"


def _above_the_cap(kept: Kept) -> Iterator[str]:
    for last in kept.heard:
        same = [call for call in kept.heard if call.verb == last.verb and last.at - DAY < call.at <= last.at]
        if last.verb != "snapshot" and len(same) > PER_DAY:
            yield f"{len(same)} times {last.verb} in the day before {last.at:%d %H:%M}"


def _untold(kept: Kept, life: Life) -> Iterator[str]:
    file = life.folder / SENT
    sent = [json.loads(line) for line in file.read_text("utf-8").splitlines()] if file.exists() else []
    for stop in (call for call in kept.heard if call.verb == "stop"):
        named = [datetime.fromisoformat(line["at"]) for line in sent if stop.native_id in line["text"]]
        if not any(told <= stop.at - DAY for told in named):
            yield f"{stop.machine} was stopped, and nobody had been told a day before"


def _end(cloud: World, memory: Memory, ref: ResourceRef) -> str:
    cloud.tick(START + DAYS * DAY)
    state = cloud.machines[ref.native_id].state.value
    if state == "terminated":
        return state
    case = answers.find_case(memory, "idle_gpu", str(ref))
    return f"{state}, case {case.status.value}: {case.reason.code.value}"
