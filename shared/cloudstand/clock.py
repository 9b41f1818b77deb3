"""Clocks that can be moved: one stands still otherwise, one runs on."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Protocol


class Clock(Protocol):
    """What every stand-in is given to tell the time by."""

    def now(self) -> datetime:
        """The present moment, aware, UTC."""


class MovedClock:
    """`Clock` for stories and tests: days pass when told to, waiting costs nothing."""

    def __init__(self, at: datetime) -> None:
        if at.tzinfo is None:
            raise ValueError("a moved clock needs an aware time")
        self._now = at

    def now(self) -> datetime:
        """The moment it was moved to."""
        return self._now

    def sleep(self, seconds: float) -> None:
        """Move on by so much instead of waiting."""
        self.advance(timedelta(seconds=seconds))

    def advance(self, step: timedelta) -> datetime:
        """Move forward and return the new moment.

        Raises:
            ValueError: the step goes back.
        """
        if step < timedelta(0):
            message = f"time goes forward only, not by {step}"
            raise ValueError(message)
        self._now += step
        return self.now()

    def move_to(self, moment: datetime) -> datetime:
        """Move forward to `moment` and return it.

        Raises:
            ValueError: it lies in the past.
        """
        return self.advance(moment - self.now())


def _wall() -> datetime:
    return datetime.now(timezone.utc)


class RunningClock(MovedClock):
    """`Clock` for a sandbox that others use: it runs on as real time does, from `at` or from now, and can be moved."""

    def __init__(self, wall: Callable[[], datetime] = _wall, at: datetime | None = None) -> None:
        self._wall, self._began = wall, wall()
        super().__init__(self._began if at is None else at)

    def now(self) -> datetime:
        """Where it began, the time that passed since, and what was added."""
        return self._now + (self._wall() - self._began)

    def sleep(self, seconds: float) -> None:
        """Wait for real."""
        time.sleep(seconds)
