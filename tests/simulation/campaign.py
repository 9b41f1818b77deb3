"""Many seeds on all cores, and what they came to together."""

from __future__ import annotations

import logging
import multiprocessing
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.simulation.scenario import Scenario
    from tests.simulation.simulation import Verdict

CHUNK = 25  # seeds a worker takes at once


@dataclass(slots=True)
class Totals:
    """Figures of a campaign; they only ever grow."""

    seeds: int = 0
    runs: int = 0
    calls: int = 0
    cloud_calls: int = 0
    cpu_seconds: float = 0.0
    faults: dict[str, int] = field(default_factory=dict)
    actions: dict[str, int] = field(default_factory=dict)
    violations: list[tuple[str, str]] = field(default_factory=list)  # what to replay, what was violated
    fingerprints: dict[str, str] = field(default_factory=dict)  # by what to replay: the hash of all that happened

    def take(self, name: str, verdict: Verdict) -> None:
        """Count one simulation in."""
        self.seeds += 1
        self.runs += verdict.runs
        self.calls += verdict.calls
        self.cloud_calls += verdict.cloud_calls
        for fault, count in verdict.faults.items():
            self.faults[fault.value] = self.faults.get(fault.value, 0) + count
        for verb, count in verdict.actions.items():
            self.actions[verb] = self.actions.get(verb, 0) + count
        self.violations.extend((name, str(violation)) for violation in verdict.violations)
        self.fingerprints[name] = verdict.digest

    def add(self, other: Totals) -> None:
        """Count these in."""
        self.seeds += other.seeds
        self.runs += other.runs
        self.calls += other.calls
        self.cloud_calls += other.cloud_calls
        self.cpu_seconds += other.cpu_seconds
        for mine, theirs in ((self.faults, other.faults), (self.actions, other.actions)):
            for name, count in theirs.items():
                mine[name] = mine.get(name, 0) + count
        self.violations.extend(other.violations)
        self.fingerprints |= other.fingerprints


def play(seeds: range) -> Totals:
    """These seeds, one after another, in this process."""
    from tests.simulation.scenario import scenario

    return _played(seeds, "", scenario)


def play_months(seeds: range) -> Totals:
    """These seeds of budgets."""
    from tests.simulation.months import month

    return _played(seeds, "b", month)


def play_settings(seeds: range) -> Totals:
    """These seeds of keys and networks."""
    from tests.simulation.settings_play import SettingsSimulation
    from tests.simulation.settings_stories import settings_story

    return _all_of(seeds, "s", lambda seed: SettingsSimulation(settings_story(seed)).play())


def play_wires(seeds: range) -> Totals:
    """These seeds over the wires."""
    from tests.simulation.replaying import played

    return _all_of(seeds, "w", lambda seed: played(f"w{seed}"))


def _played(seeds: range, prefix: str, story: Callable[[int], Scenario]) -> Totals:
    from tests.simulation.simulation import Simulation

    return _all_of(seeds, prefix, lambda seed: Simulation(story(seed)).play())


def _all_of(seeds: range, prefix: str, verdict_of: Callable[[int], Verdict]) -> Totals:
    totals = Totals()
    began = time.process_time()
    with quietly():
        for seed in seeds:
            totals.take(f"{prefix}{seed}", verdict_of(seed))
    totals.cpu_seconds = time.process_time() - began
    return totals


@contextmanager
def quietly() -> Iterator[None]:
    """The program's own log lines are not written meanwhile; the trace says what happened."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)


def cores() -> int:
    """How many processes this machine can run at once."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


_NONE = range(0)


def in_parallel(
    seeds: range, jobs: int, months: range = _NONE, settings: range = _NONE, wires: range = _NONE
) -> Iterator[Totals]:
    """The seeds of every family in chunks as they end; whoever plays one, it comes to the same."""
    kinds = ((play, seeds), (play_months, months), (play_settings, settings), (play_wires, wires))
    tasks = [(how, chunk) for how, wanted in kinds for chunk in _chunks(wanted)]
    if jobs == 1:
        yield from map(_call, tasks)
        return
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        yield from pool.imap_unordered(_call, tasks)


def _chunks(seeds: range) -> list[range]:
    return [seeds[start : start + CHUNK] for start in range(0, len(seeds), CHUNK)]


def _call(task: tuple[Callable[[range], Totals], range]) -> Totals:
    how, seeds = task
    return how(seeds)
