"""Every single fault at every boundary of the reference scenarios, and every pair on stop → snapshot → terminate."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import combinations

from tests.simulation.campaign import Totals, quietly
from tests.simulation.faults import FAULTS, ExactFaults, Fault, NoFaults, Port
from tests.simulation.references import REFERENCES
from tests.simulation.simulation import Simulation, Verdict

PAIRED = "ladder-aws"
_CHUNK = 40  # tries a worker takes at once
_LEADS = 14  # boundaries from the claim to the call, the call not counted: claim, cap, last look, intent
_FOLLOWS = 4  # boundaries after the call: its outcome, and how the case stands
_CHANGING = frozenset({Port.STORE, Port.ACT, Port.SEND})


def tries(jobs: int) -> Iterator[tuple[str, Totals]]:
    """All of them in chunks, each with what it tried."""
    for what, names in (("single faults", list(singles())), ("pairs", list(pairs()))):
        chunks = [names[start : start + _CHUNK] for start in range(0, len(names), _CHUNK)]
        with multiprocessing.get_context("spawn").Pool(jobs) as pool:
            for totals in pool.imap_unordered(_play, chunks):
                yield what, totals


def singles() -> Iterator[str]:
    """The names of every single fault: `scenario:boundary=FAULT`."""
    for name in REFERENCES:
        for number, port in enumerate(_boundaries(name), start=1):
            for fault in FAULTS[port]:
                yield f"{name}:{number}={fault.name}"


def pairs() -> Iterator[str]:
    """The names of every pair of faults while the ladder's three calls are under way."""
    ports = _boundaries(PAIRED)
    calls = [number for number, port in enumerate(ports, start=1) if port is Port.ACT]
    near = sorted({n for call in calls for n in range(call - _LEADS, call + _FOLLOWS + 1) if 0 < n <= len(ports)})
    faults = [(number, fault) for number in near for fault in _telling(ports[number - 1])]
    for (first, one), (second, other) in combinations(faults, 2):
        if first != second:
            yield f"{PAIRED}:{first}={one.name},{second}={other.name}"


def try_named(name: str) -> Verdict:
    """One try, with its trace.

    Raises:
        ValueError: no such scenario or fault.
    """
    return _played(name, readable=True)


def _telling(port: Port) -> tuple[Fault, ...]:
    """The faults whose pairs can differ: a crash after a read is the crash before what follows it."""
    left_out = {Fault.CRASH_AFTER} if port not in _CHANGING else {Fault.CRASH_BEFORE}
    alike = {Fault.THROTTLED, Fault.DENIED, Fault.REPEATING_TOKEN, Fault.CLOCK_JUMP}  # as LOST, for whoever is told
    return tuple(fault for fault in FAULTS[port] if fault not in left_out | alike)


@cache
def _boundaries(name: str) -> Sequence[Port]:
    """Every boundary that a story passes, in order; it passes the same ones whenever it is played."""
    quiet = NoFaults()
    Simulation(REFERENCES[name], quiet).play()
    return tuple(quiet.met)


def _played(name: str, *, readable: bool = False) -> Verdict:
    scenario, _, said = name.partition(":")
    if scenario not in REFERENCES or not said:
        message = f"{name!r} is no try; expected a seed, or scenario:boundary=FAULT, as {PAIRED}:120=CRASH_AFTER"
        raise ValueError(message)
    return Simulation(REFERENCES[scenario], ExactFaults(_faults(said)), readable=readable).play()


def _faults(said: str) -> Mapping[int, Fault]:
    parts = (part.partition("=") for part in said.split(","))
    return {int(number): Fault[fault] for number, _, fault in parts}


def _play(names: Sequence[str]) -> Totals:
    totals = Totals()
    began = time.process_time()
    with quietly():
        for name in names:
            totals.take(name, _played(name))
    totals.cpu_seconds = time.process_time() - began
    return totals
