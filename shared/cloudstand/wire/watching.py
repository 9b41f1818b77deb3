"""Who wants to see every answer of the emulators in this process: tests that hold them against published schemas."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from cloudstand.wire.messages import Answer, Request

Watcher = Callable[[str, Request, Answer], None]
"""Takes the cloud, what was asked and what was answered; from many threads."""

_watchers: list[Watcher] = []


@contextmanager
def watching(watcher: Watcher) -> Iterator[None]:
    """Show `watcher` each answer of every emulator until the block ends, however it was asked."""
    _watchers.append(watcher)
    try:
        yield
    finally:
        _watchers.remove(watcher)


def show(cloud: str, request: Request, answer: Answer) -> None:
    """Tell whoever watches."""
    for watcher in tuple(_watchers):
        watcher(cloud, request, answer)
