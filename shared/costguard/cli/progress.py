"""Progress on a terminal; nothing where nobody watches."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from costguard.report.words.sentences import clean

Step = Callable[[int, int, str], None]
"""Called with shards done, shards in all, and the shard just read."""


def _nobody_watches(done: int, total: int, shard: str) -> None:
    del done, total, shard


@contextmanager
def shard_progress(title: str) -> Iterator[Step]:
    """A bar on standard error while shards are read, if that is a terminal."""
    if not sys.stderr.isatty():
        yield _nobody_watches
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (TextColumn(title), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[shard]}", markup=False))
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None, shard="")

        def step(done: int, total: int, shard: str) -> None:
            bar.update(task, completed=done, total=total, shard=clean(shard))

        yield step


@contextmanager
def waiting(title: str) -> Iterator[None]:
    """A sign of life on standard error for the length of the block, if that is a terminal."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.text import Text

    with Console(stderr=True).status(Text(title)):
        yield
