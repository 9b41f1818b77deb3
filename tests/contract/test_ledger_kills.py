"""A share of the drills in `tests/races/kills.py`: runs that die, on real stores, and the proof that breaches show."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from tests.races.dying import Call, Life, keep, kept_of, run_once
from tests.races.kills import Toll, breaches_of, live
from tests.races.places import NoPlaceError, SqlitePlace, place_for
from tests.scenario.stage import DAY, START


@pytest.mark.slow  # a process for each request at which a run may die; `python -m tests.races` has more of them
@pytest.mark.parametrize("store", ["postgresql", "dynamodb"])
def test_runs_that_die_at_any_request_double_lose_and_overstep_nothing(tmp_path: Path, store: str) -> None:
    try:
        with place_for(store, tmp_path) as place:
            toll = live(place, tmp_path, range(2))  # in some lives no run gets as far as a termination
    except NoPlaceError as err:
        pytest.skip(str(err))

    assert toll.breaches == []
    assert toll.kills.total() >= 3  # otherwise nothing was tried
    assert toll.heard["stop"] == 6
    assert toll.heard["terminate"] >= 1


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Life:
    """Days on which no run died."""
    folder = tmp_path_factory.mktemp("life")
    life = Life(0, 0, SqlitePlace(folder).new_ledger(), folder)
    for day in range(8):
        run_once(life, START + day * DAY, None)
    return life


def _twice(heard: list[Call]) -> list[Call]:
    return [*heard, *(call for call in heard if call.verb == "stop")]


def _at_once(heard: list[Call]) -> list[Call]:
    return [replace(call, at=heard[0].at) for call in heard]


def _too_early(heard: list[Call]) -> list[Call]:
    return [replace(call, at=call.at - timedelta(minutes=1)) for call in heard]


def _of_nobody(heard: list[Call]) -> list[Call]:
    return [replace(call, action_id="unknown") for call in heard]


@pytest.mark.parametrize(
    ("forge", "told"),
    [
        (_twice, "heard stop"),
        (_at_once, "times stop in the day before"),
        (_too_early, "nobody had been told a day before"),
        (_of_nobody, "has no intent"),
    ],
)
def test_a_breach_is_seen(ended: Life, forge: Callable[[list[Call]], list[Call]], told: str) -> None:
    kept = kept_of(ended)
    assert kept is not None
    assert list(breaches_of(ended, Toll())) == []
    forged = replace(ended, folder=ended.folder)
    true = kept.heard
    kept.heard = forge(true)
    keep(forged, kept)
    try:
        assert any(told in breach for breach in breaches_of(forged, Toll()))
    finally:
        kept.heard = true
        keep(forged, kept)
