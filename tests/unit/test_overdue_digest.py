"""A digest that stopped coming is told by the functions that run more often, in a line that alarms look for."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from tests.builders import NOW

from cloudstand.clock import MovedClock
from costguard.bootstrap import open_memory, open_phase, run_function
from costguard.domain.errors import UnavailableError
from costguard.engine.notify.delivery import DIGEST, LONGEST_BETWEEN
from costguard.settings import Settings, load_settings

MINUTE = timedelta(minutes=1)
POLICY = """
version: 1
accounts: [{cloud: aws, id: '111122223333', regions: [us-east-1]}]
idle_gpu: [{name: a}]
"""


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    (tmp_path / "costguard.yaml").write_text(POLICY, encoding="utf-8")
    ledger = f"sqlite:///{tmp_path / 'ledger.sqlite3'}"
    return load_settings({"COSTGUARD_POLICY": str(tmp_path / "costguard.yaml"), "COSTGUARD_LEDGER": ledger})


def told_digest(settings: Settings, at: datetime) -> None:
    memory = open_memory(settings)
    with closing(memory.store):
        assert memory.runs.begin(f"digest {at}", DIGEST, at)


@contextmanager
def lines() -> Iterator[list[logging.LogRecord]]:
    """What the module writes, whoever has set up logging before."""
    written: list[logging.LogRecord] = []

    class Kept(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            written.append(record)

    log, handler = logging.getLogger("costguard.engine.notify.delivery"), Kept()
    log.addHandler(handler)
    try:
        yield written
    finally:
        log.removeHandler(handler)


def lines_of_a_phase(settings: Settings, *, first: bool = True) -> list[logging.LogRecord]:
    with lines() as written, open_phase(settings, "idle_gpu", None, MovedClock(NOW), first=first, may_act=False):
        return written


def lines_of_a_run(settings: Settings) -> list[logging.LogRecord]:
    """Nobody answers here, which is the run's own trouble."""
    with lines() as written, suppress(UnavailableError):
        run_function("kms_rotation", "run", None, settings, MovedClock(NOW))
    return written


def test_a_run_tells_once_the_digest_is_a_day_late(settings: Settings) -> None:
    told_digest(settings, NOW - timedelta(days=20))
    told_digest(settings, NOW - LONGEST_BETWEEN - MINUTE)

    [line] = lines_of_a_run(settings)

    assert (line.levelname, line.getMessage()) == ("WARNING", "the weekly digest is overdue")
    assert vars(line)["began_last"] == (NOW - LONGEST_BETWEEN - MINUTE).isoformat()


def test_of_a_run_in_phases_the_first_tells(settings: Settings) -> None:
    told_digest(settings, NOW - LONGEST_BETWEEN - MINUTE)

    assert len(lines_of_a_phase(settings)) == 1
    assert lines_of_a_phase(settings, first=False) == []


def test_a_digest_of_this_week_is_not_overdue(settings: Settings) -> None:
    told_digest(settings, NOW - LONGEST_BETWEEN)

    assert lines_of_a_phase(settings) == []


def test_a_ledger_without_any_digest_misses_none(settings: Settings) -> None:
    """Not everybody has that function; and a new deployment has not reached its first Monday."""
    assert lines_of_a_phase(settings) == []
