"""How fast to ask and how long to go on: token buckets per account, region and family of calls, tries, and clocks.

A read is asked again while that helps and time lasts, a change once. How far a cloud's clock is from ours is told by
the `Date` header of its answers.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from email.utils import parsedate_to_datetime
from typing import TypeVar
from urllib.parse import urlsplit

from costguard.domain.errors import ProviderError, ThrottledError, UnavailableError
from costguard.providers.kit.core.calls import DEADLINE

_OTHER_RATE = (10.0, 10.0)
_UNHURRIED = (1e6, 1e6)
_FIRST_WAIT_SECONDS = 0.25
_LONGEST_WAIT_SECONDS = 8.0


THIS_MACHINE = frozenset({"127.0.0.1", "::1", "localhost"})
"""Host names of this machine, where only a stand-in answers."""


def on_this_machine(url: str | None) -> bool:
    """Whether requests to this address stay on this machine."""
    return urlsplit(url or "").hostname in THIS_MACHINE


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
    if on_this_machine(endpoint):
        return Pacer(dict.fromkeys(rates, _UNHURRIED), other=_UNHURRIED)
    return Pacer(rates)


log = logging.getLogger(__name__)

_MOST_TRIES: dict[type[ProviderError], int] = {ThrottledError: 8, UnavailableError: 4}

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Sends requests at the pace of `pacer`; `deadline` returns the seconds left, and no wait goes past it.

    Errors whose code is among `final` are not worth a second try.
    """

    pacer: Pacer
    deadline: Callable[[], float] | None = None
    final: Collection[str] = ()

    def ask(self, operation: str, reserve: Callable[[], float], send: Callable[[], T], *, changes: bool) -> T:
        """What `send` returns, tried again on throttling and passing faults; with `changes`, sent once.

        `reserve` says before every try how long to wait for the turn of this request.

        Raises:
            UnavailableError: not asked, as the time allowed is used up.
            ProviderError: what the last try ended in.
        """
        attempt = 0
        while True:
            self._wait(reserve(), operation)
            try:
                return send()
            except (ThrottledError, UnavailableError) as err:
                attempt += 1
                if changes or attempt >= _MOST_TRIES.get(type(err), 1) or err.code in self.final:
                    raise
                log.debug("asking again", extra={"operation": operation, "attempt": attempt, "code": err.code})
                self._wait(self.pacer.back_off(attempt - 1), operation, err)

    def _wait(self, seconds: float, operation: str, cause: ProviderError | None = None) -> None:
        left = None if self.deadline is None else self.deadline()
        if left is not None and left <= seconds:
            if cause is not None:
                raise cause
            message = f"{operation}: not asked: the time allowed is used up"
            raise UnavailableError(message, operation=operation, code=DEADLINE)
        if seconds > 0:
            self.pacer.sleep(seconds)


_HALF_A_SECOND = timedelta(seconds=0.5)  # the header has whole seconds: on average it lies that much behind


def date_told(header: object) -> datetime | None:
    """The moment a `Date` header tells, in UTC; None where it tells none."""
    if not isinstance(header, str):
        return None
    try:
        told = parsedate_to_datetime(header)
        return None if told.tzinfo is None else told.astimezone(timezone.utc)
    except (ValueError, TypeError, OverflowError):
        return None


def clock_skew(now: Callable[[], datetime], ask_time: Callable[[], datetime | None]) -> timedelta | None:
    """The cloud's clock, which `ask_time` asks for, less ours; None where it was not told.

    The answer was on its way: right to half the round trip.
    """
    before = now()
    told = ask_time()
    return None if told is None else told + _HALF_A_SECOND - (before + (now() - before) / 2)
