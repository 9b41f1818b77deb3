"""How fast to ask: token buckets per account, region and family of calls, and the wait between tries."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

_OTHER_RATE = (10.0, 10.0)
_UNHURRIED = (1e6, 1e6)
_FIRST_WAIT_SECONDS = 0.25
_LONGEST_WAIT_SECONDS = 8.0


THIS_MACHINE = frozenset({"127.0.0.1", "::1", "localhost"})
"""Host names of this machine, where only a stand-in answers."""


@dataclass(slots=True)
class _Bucket:
    tokens: float
    filled_at: float


@dataclass(slots=True)
class Pacer:
    """Says how long to wait; one for all threads. Time and chance come from outside in tests.

    `rates` has the burst and the requests a second of each family of calls that share a limit, `other` of the rest.
    """

    rates: Mapping[str, tuple[float, float]]
    monotonic: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    chance: Callable[[], float] = random.random
    other: tuple[float, float] = _OTHER_RATE
    _buckets: dict[tuple[str, str, str], _Bucket] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def reserve(self, account: str, region: str, family: str) -> float:
        """Take one token and return the seconds to wait before using it; later callers queue behind."""
        capacity, rate = self.rates.get(family, self.other)
        with self._lock:
            now = self.monotonic()
            bucket = self._buckets.setdefault((account, region, family), _Bucket(capacity, now))
            bucket.tokens = min(capacity, bucket.tokens + (now - bucket.filled_at) * rate) - 1
            bucket.filled_at = now
            return max(0.0, -bucket.tokens / rate)

    def back_off(self, attempt: int) -> float:
        """Seconds to wait after try number `attempt` (from 0) failed: doubling, with full jitter."""
        return self.chance() * min(_LONGEST_WAIT_SECONDS, _FIRST_WAIT_SECONDS * 2.0**attempt)


def pacer_for(rates: Mapping[str, tuple[float, float]], endpoint: str | None) -> Pacer:
    """How fast to ask what answers at `endpoint` (empty: the cloud itself); on this machine answers only a stand-in.

    A stand-in has limits where somebody sets them, and then says so: it is asked as fast as it answers.
    """
    if endpoint and urlsplit(endpoint).hostname in THIS_MACHINE:
        return Pacer(dict.fromkeys(rates, _UNHURRIED), other=_UNHURRIED)
    return Pacer(rates)
