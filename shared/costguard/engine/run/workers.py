"""Threads for reads that wait on networks: the `Workers` of every real host."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import TypeVar

from costguard.ports import Workers

_First = TypeVar("_First")
_Second = TypeVar("_Second")
_Result = TypeVar("_Result")


class ThreadWorkers:
    """At most `threads` tasks at once; each holds a few connections and at most one page of answers."""

    def __init__(self, threads: int = 8) -> None:
        self._threads = threads

    def each(self, tasks: Sequence[Callable[[], _Result]]) -> Iterator[tuple[int, _Result]]:
        """Begin every task; yield the place and the result of each as it ends."""
        if len(tasks) == 1:
            yield 0, tasks[0]()  # nothing to do beside it
        if len(tasks) <= 1:
            return
        with ThreadPoolExecutor(min(self._threads, len(tasks)), thread_name_prefix="read") as pool:
            places = {pool.submit(task): place for place, task in enumerate(tasks)}
            for future in as_completed(places):
                yield places[future], future.result()


def both(workers: Workers, first: Callable[[], _First], second: Callable[[], _Second]) -> tuple[_First, _Second]:
    """The results of two reads that need not wait for each other."""
    one: list[_First] = []
    other: list[_Second] = []
    for _ in workers.each((lambda: one.append(first()), lambda: other.append(second()))):
        pass
    return one[0], other[0]
