"""A job that begins just before the call: how late it may be and not be seen, on each cloud."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from tests.scenario.stage import CLOUDS, DAY, START, Stage, idle_machine

from cloudstand.world import workload

STOP_AT = START + DAY
MINUTE, SECOND = timedelta(minutes=1), timedelta(seconds=1)


def is_stopped(folder: Path, cloud: str, minutes: int, *, late: bool) -> bool:
    """Whether the machine is stopped although a job began so many minutes before, just after a sample was taken.

    With `late` nothing that was measured after that sample is published before the call.
    """
    sampled = STOP_AT - minutes * MINUTE
    does = workload.idle().then(sampled + SECOND, workload.GPU_ONLY)
    stage = Stage(folder, idle_machine(cloud=cloud, does=does), ledger=f"sqlite:///{folder}/{minutes}-{late}.sqlite3")
    try:
        if late and minutes > 1:
            stage.cloud.silence(stage.ref().native_id, sampled + MINUTE, STOP_AT + MINUTE)
        stage.days((0, 1))
        return stage.verbs() == ["stop"]
    finally:
        stage.close()


@pytest.mark.parametrize("cloud", CLOUDS)
def test_how_late_a_job_may_begin_and_not_be_seen(tmp_path: Path, cloud: str) -> None:
    """A minute where samples come at once, six where they come as late as is accepted: docs/safety.md says the same."""
    at_once = [minutes for minutes in range(1, 9) if is_stopped(tmp_path, cloud, minutes, late=False)]
    accepted = [minutes for minutes in range(1, 9) if is_stopped(tmp_path, cloud, minutes, late=True)]

    assert at_once == [1]
    assert accepted == [1, 2, 3, 4, 5, 6]
