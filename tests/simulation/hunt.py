"""Plant each bug in a fresh process and play seeds until the oracle sees it."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass


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
    """Plant one bug here and play seeds from 1 until a violation; call it in a process that imported no costguard."""
    from tests.simulation.bugs import bug_named
    from tests.simulation.planting import plant

    name, limit = task
    bug = bug_named(name)
    plant(bug)
    from tests.simulation.campaign import quietly
    from tests.simulation.replaying import played

    family = bug.family
    began = time.monotonic()
    for seed in range(1, limit + 1):
        with quietly():
            found = played(f"{family}{seed}").violations
        if found:
            spent = time.monotonic() - began
            return Caught(name, bug.rules, seed, str(found[0]), found[0].rule, spent, f"{family}{seed}")
    return Caught(name, bug.rules, None, "", None, time.monotonic() - began, limit=limit)


def hunt_all(names: Sequence[str], limit: int, jobs: int, *, wires: int) -> Iterator[Caught]:
    """Every bug, each in its own process, for `limit` seeds; over the wires for that many."""
    from tests.simulation.bugs import bug_named

    tasks = [(name, wires if bug_named(name).wires else limit) for name in names]
    with multiprocessing.get_context("spawn").Pool(jobs, maxtasksperchild=1) as pool:
        yield from pool.imap_unordered(hunt, tasks, chunksize=1)
