"""What holds for the whole suite."""

from __future__ import annotations

import atexit
import gc
import logging
import os
import shutil
import tempfile
from collections.abc import Generator, Iterator
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from cloudstand.wire.messages import Answer, Request
from cloudstand.wire.watching import watching

_IN_MEMORY = Path("/dev/shm")  # noqa: S108 - a folder of our own is made in it
_ENOUGH_BYTES = 2 * 1024**3  # a run leaves some 200 MB; containers often have 64 MB here


class _Answers:
    """Holds every answer of the emulators against what the vendors publish; what does it is loaded with the first."""

    def __init__(self) -> None:
        self._watch: Any = None

    def __call__(self, cloud: str, request: Request, answer: Answer) -> None:
        if self._watch is None:
            self._watch = import_module("tests.answers.watch").Watch()
        self._watch(cloud, request, answer)

    def taken(self) -> list[str]:
        """What was wrong since this was asked last."""
        return [] if self._watch is None else [*self._watch.taken()]


_ANSWERS = _Answers()
_LOGGER = logging.getLogger("costguard")


def pytest_configure(config: pytest.Config) -> None:
    """Look for no garbage while modules are imported and tests collected: next to all of that stays to the end."""
    gc.disable()
    settings.register_profile("suite", deadline=None)  # a slow moment of a busy machine fails no test
    settings.load_profile("suite")
    if not (hasattr(config, "workerinput") or os.environ.get("TMPDIR")) and _is_fit(_IN_MEMORY):
        _work_in_memory()
    watched = ExitStack()
    watched.enter_context(watching(_ANSWERS))
    config.add_cleanup(watched.close)


def _work_in_memory() -> None:
    """Temporary files in memory, gone at the end (`TMPDIR=/tmp` keeps them): each commit waits 3 ms for a disk."""
    folder = tempfile.mkdtemp(prefix="cg-", dir=_IN_MEMORY)
    Path(folder).chmod(0o711)  # PostgreSQL serves as a user of its own from a folder below
    atexit.register(shutil.rmtree, folder, ignore_errors=True)  # after those who clean up in it when Python ends
    os.environ["TMPDIR"] = tempfile.tempdir = folder


def _is_fit(folder: Path) -> bool:
    if not (folder.is_dir() and os.access(folder, os.W_OK)):
        return False
    told = os.statvfs(folder)
    return told.f_bavail * told.f_frsize > _ENOUGH_BYTES and not told.f_flag & os.ST_NOEXEC  # programs are written too


def pytest_collection_finish() -> None:
    """Leave what was imported and collected out of every later garbage collection, of which there are fewer."""
    gc.freeze()  # with what little garbage there is: looking for it took each process half a second
    gc.enable()
    gc.set_threshold(20_000, 20, 50)  # looking for garbage every 700 objects took a tenth of the suite's time


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, object, object]:
    """A test fails whose emulators answered what no vendor publishes: `tests/answers`."""
    try:
        result = yield
    finally:
        strange = _ANSWERS.taken()
    if strange:
        pytest.fail("answers that are not as published:\n" + "\n".join(strange), pytrace=False)
    return result


@pytest.fixture(autouse=True)
def _logging_as_before() -> Iterator[None]:
    """A function that was called logs to the output of this test, which is closed in the next."""
    before = (_LOGGER.handlers[:], _LOGGER.propagate, _LOGGER.level)
    yield
    _LOGGER.handlers[:], _LOGGER.propagate, level = before
    _LOGGER.setLevel(level)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Who has nothing left to do takes from the other, unless somebody chose: else one was done a quarter sooner."""
    if config.getoption("dist") != "load":
        return None
    return import_module("xdist.scheduler").WorkStealingScheduling(config, log)
