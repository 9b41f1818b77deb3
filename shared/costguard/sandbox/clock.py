"""A clock that stands still until it is moved."""

from __future__ import annotations

from datetime import datetime, timedelta


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
        return self._now

    def move_to(self, moment: datetime) -> datetime:
        """Move forward to `moment` and return it.

        Raises:
            ValueError: it lies in the past.
        """
        return self.advance(moment - self._now)
