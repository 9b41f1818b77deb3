"""Plant each bug in a fresh process and play seeds until the oracle sees it."""

from __future__ import annotations

import multiprocessing
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_TABLES = Path(__file__).with_name("README.md")
_ROW = re.compile(r"^\| `([\w-]+)` \| [bsw]?(\d+) \|", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Caught:
    """What became of one planted bug. `seed` None: it was never seen; `replay` names the story to see it in."""

    bug: str
    rules: tuple[int, ...]
    seed: int | None
    violation: str
    rule: int | None
    seconds: float
    replay: str = ""
    limit: int = 0


def hunt(task: tuple[str, int]) -> Caught:
    """Plant one bug here and play seeds until a violation; call it in a process that imported no costguard.

    The seed at which it was seen last comes first, wherever that is, then all from 1 on.
    """
    from tests.simulation.bugs import bug_named
    from tests.simulation.planting import plant

    name, limit = task
    bug = bug_named(name)
    plant(bug)
    from tests.simulation.campaign import quietly
    from tests.simulation.replaying import played

    family = bug.family
    began = time.monotonic()
    for seed in seeds_for(name, limit, last_seen(_TABLES.read_text("utf-8"))):
        with quietly():
            found = played(f"{family}{seed}").violations
        if found:
            spent = time.monotonic() - began
            return Caught(name, bug.rules, seed, str(found[0]), found[0].rule, spent, f"{family}{seed}")
    return Caught(name, bug.rules, None, "", None, time.monotonic() - began, limit=limit)


def last_seen(tables: str) -> Mapping[str, int]:
    """At which seed each bug was seen, as the tables have it."""
    return {name: int(seed) for name, seed in _ROW.findall(tables)}


def seeds_for(name: str, limit: int, seen: Mapping[str, int]) -> Iterator[int]:
    """The order in which seeds are played for a bug: each from 1 to `limit`, that first where it was seen."""
    first = seen.get(name, 0)
    if first >= 1:
        yield first
    yield from (seed for seed in range(1, limit + 1) if seed != first)


def hunt_all(names: Sequence[str], limit: int, jobs: int, *, wires: int) -> Iterator[Caught]:
    """Every bug, each in its own process, for `limit` seeds; over the wires for that many."""
    from tests.simulation.bugs import bug_named

    tasks = [(name, wires if bug_named(name).wires else limit) for name in names]
    with multiprocessing.get_context("spawn").Pool(jobs, maxtasksperchild=1) as pool:
        yield from pool.imap_unordered(hunt, tasks, chunksize=1)
