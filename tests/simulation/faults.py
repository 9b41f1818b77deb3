"""What can go wrong at a boundary, and which plan says where it does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from random import Random
from typing import Protocol


class Port(str, Enum):
    """The kinds of boundary, by what can go wrong there."""

    LISTING = "listing"
    DETAILS = "details"
    SIGNALS = "signals"
    PRICES = "prices"
    BILLS = "bills"
    ACT = "act"
    LOAD = "load"  # the ledger read
    STORE = "store"  # the ledger written
    SEND = "send"
    POLICY = "policy"


class Fault(str, Enum):
    """One thing that goes wrong once."""

    CRASH_BEFORE = "crash before the call"
    CRASH_AFTER = "crash after the call"
    FREEZE = "process frozen for hours"
    CLOCK_JUMP = "clock jumps"
    LOST = "no answer, no effect"
    LOST_ANSWER = "no answer, yet it took effect"
    THROTTLED = "throttled"
    DENIED = "denied"
    REFUSED = "refused"
    STALE = "stale read"
    TRUNCATED = "truncated pages"
    REPEATING_TOKEN = "repeating page token"
    DUPLICATED = "duplicated page"
    MISSING = "missing from the answer"
    CONFLICT = "conflicting write"
    RATE_LIMITED = "rate limited"
    UNPROVEN = "delivered without proof"
    BROKEN = "broken document"
    OWNER = "owner acts just before"
    PEOPLE = "somebody speaks just before"
    FORGED = "forged plan applied"


DRAWN: tuple[Fault, ...] = tuple(fault for fault in Fault if fault is not Fault.FORGED)
"""Those that strike a call; a forged plan comes by a delivery of its own."""


_ANYWHERE = (Fault.CRASH_BEFORE, Fault.CRASH_AFTER)
_BETWEEN = (Fault.FREEZE, Fault.CLOCK_JUMP, Fault.OWNER, Fault.PEOPLE)
_READ = (Fault.LOST, Fault.THROTTLED, Fault.DENIED)
FAULTS: Mapping[Port, tuple[Fault, ...]] = {
    Port.LISTING: (
        *_ANYWHERE,
        *_BETWEEN,
        *_READ,
        Fault.TRUNCATED,
        Fault.REPEATING_TOKEN,
        Fault.DUPLICATED,
        Fault.MISSING,
        Fault.STALE,
    ),
    Port.DETAILS: (*_ANYWHERE, *_BETWEEN, *_READ, Fault.TRUNCATED, Fault.STALE, Fault.MISSING),
    Port.SIGNALS: (*_ANYWHERE, *_BETWEEN, *_READ, Fault.TRUNCATED, Fault.MISSING),
    Port.PRICES: (*_ANYWHERE, *_READ, Fault.MISSING),
    Port.BILLS: (*_ANYWHERE, *_BETWEEN, *_READ, Fault.TRUNCATED, Fault.REPEATING_TOKEN, Fault.STALE),
    Port.ACT: (*_ANYWHERE, Fault.OWNER, Fault.LOST, Fault.LOST_ANSWER, Fault.THROTTLED, Fault.DENIED, Fault.REFUSED),
    Port.LOAD: (*_ANYWHERE, *_BETWEEN, Fault.LOST),
    Port.STORE: (*_ANYWHERE, *_BETWEEN, Fault.LOST, Fault.LOST_ANSWER, Fault.CONFLICT),
    Port.SEND: (
        *_ANYWHERE,
        *_BETWEEN,
        Fault.LOST,
        Fault.LOST_ANSWER,
        Fault.RATE_LIMITED,
        Fault.REFUSED,
        Fault.UNPROVEN,
    ),
    Port.POLICY: (*_ANYWHERE, *_BETWEEN, Fault.LOST, Fault.DENIED, Fault.BROKEN),
}
"""What can go wrong at each kind of boundary."""


class FaultPlan(Protocol):
    """Says what goes wrong at the `call`-th boundary of a simulation, counted from 1."""

    def at(self, call: int, port: Port) -> Fault | None:
        """The fault of this boundary, or None."""


@dataclass(slots=True)
class NoFaults:
    """Everything works. Keeps the kinds of boundary met, for exhaustive runs."""

    met: list[Port] = field(default_factory=list)

    def at(self, call: int, port: Port) -> Fault | None:
        """None."""
        del call
        self.met.append(port)
        return None


@dataclass(frozen=True, slots=True)
class ExactFaults:
    """These faults at these boundaries, and no others."""

    faults: Mapping[int, Fault]

    def at(self, call: int, port: Port) -> Fault | None:
        """What was planned, where it can happen at all."""
        fault = self.faults.get(call)
        return fault if fault is not None and fault in FAULTS[port] else None


_WEIGHTS: Mapping[Port, float] = {  # a run has a hundred calls to its ledger and one that stops a machine
    Port.LISTING: 6.0,
    Port.DETAILS: 5.0,
    Port.SIGNALS: 5.0,
    Port.PRICES: 2.0,
    Port.BILLS: 6.0,
    Port.ACT: 8.0,
    Port.LOAD: 0.5,
    Port.STORE: 1.0,
    Port.SEND: 5.0,
    Port.POLICY: 3.0,
}


class RandomFaults:
    """Faults of some kinds at a rate, drawn from one seed; calls that matter more are struck more often.

    Each seed leaves kinds out (swarm testing): a simulation where everything crashes seldom gets far
    enough to be hurt by a stale read.
    """

    def __init__(self, random: Random, rate: float, kinds: frozenset[Fault], ports: frozenset[Port]) -> None:
        self._random = random
        self._kinds = {
            port: [fault for fault in possible if fault in kinds and port in ports] for port, possible in FAULTS.items()
        }
        self._rates = {port: rate * _WEIGHTS[port] if self._kinds[port] else 0.0 for port in FAULTS}

    def at(self, call: int, port: Port) -> Fault | None:
        """A fault of an enabled kind when its turn has come."""
        del call
        if self._random.random() >= self._rates[port]:
            return None
        possible = self._kinds[port]
        return possible[int(self._random.random() * len(possible))]
