"""What the engine needs from the process it runs in: time, and work side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Protocol, TypeVar

Result = TypeVar("Result")


class Clock(Protocol):
    """Time, given from outside."""

    def now(self) -> datetime:
        """The present moment, aware, UTC."""

    def sleep(self, seconds: float) -> None:
        """Wait: the outbox for its channel's Retry-After, a run for a step that is due within minutes; nothing else."""


class Workers(Protocol):
    """Independent reads side by side; what ends first is given first."""

    def each(self, tasks: Sequence[Callable[[], Result]]) -> Iterator[tuple[int, Result]]:
        """Begin every task; yield the place and the result of each as it ends. What a task raises is raised here."""
