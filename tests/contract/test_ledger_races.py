"""A share of `tests/races`: eight processes at once on each real store, and the proof that breaches show."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import sqlalchemy as sa
from tests.races.contests import CONTESTS
from tests.races.crew import Crew
from tests.races.places import NoPlaceError, open_store, place_for
from tests.races.racing import LEAST_CONTESTED, Tally, hold

from costguard.adapters.ledgers.sql import SqlLedger, postgresql_engine, sqlite_engine
from costguard.domain.errors import VersionConflictError
from costguard.ports import Put, Record, VersionCheck

PROCESSES = 8


@pytest.fixture
def disk() -> Iterator[Path]:
    """A folder that is not in memory, where a commit may be over before another has begun."""
    with TemporaryDirectory(prefix="costguard-races-", dir="/var/tmp") as folder:
        yield Path(folder)


@pytest.fixture(scope="module")
def crew() -> Iterator[Crew]:
    """Started once: eight interpreters take as long as a hundred races."""
    with Crew(PROCESSES) as crew:
        yield crew


@pytest.mark.parametrize(("store", "races"), [("sqlite", 50), ("postgresql", 50), ("dynamodb", 24)])
def test_eight_processes_at_once_breach_nothing(crew: Crew, disk: Path, store: str, races: int) -> None:
    try:
        with place_for(store, disk) as place:
            tally = hold(place, crew, races)
    except NoPlaceError as err:
        pytest.skip(str(err))

    assert tally.breaches == []
    assert tally.errors == []
    assert tally.races == races
    assert tally.races_contested >= LEAST_CONTESTED * races  # otherwise they merely queued, and nothing was shown
    assert set(+tally.contested) == set(CONTESTS)  # by kind a share of so few races is chance


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize("store", ["sqlite", "postgresql"])
def test_no_change_is_answered_between_a_check_and_its_commit(disk: Path, store: str, version: int) -> None:
    """Who paused or snoozed, and was told so, is not overtaken by a claim that had looked before."""
    try:
        with place_for(store, disk) as place:
            _change_while_checked(place.new_ledger(), version)
    except NoPlaceError as err:
        pytest.skip(str(err))


def _change_while_checked(address: str, version: int) -> None:
    url = sa.make_url(address)
    if url.drivername == "sqlite":
        engine = sqlite_engine(Path(str(url.database)))
    else:
        engine = postgresql_engine(url.set(drivername="postgresql+psycopg"))
    with closing(SqlLedger(engine, durable=True)) as claiming, closing(open_store(address)) as pausing:
        for number in range(version):
            claiming.put(Record("switch", "all", {"paused": False}), number)
        assert pausing.get("case", "absent") is None  # connected, so that nothing but the record is waited for
        told = threading.Event()
        before_commit: list[bool] = []

        def pause() -> None:
            pausing.put(Record("switch", "all", {"paused": True}), version)
            told.set()

        with ThreadPoolExecutor(1) as pool:

            def about_to_commit(_: sa.Connection) -> None:
                if not before_commit:
                    pool.submit(pause)
                    before_commit.append(told.wait(0.3))

            sa.event.listen(engine, "commit", about_to_commit)
            with suppress(VersionConflictError):  # asked again after a serialization failure, it sees the change
                claiming.transact([Put(Record("intent", "a", {}), 0), VersionCheck("switch", "all", version)])

        claimed = claiming.get("intent", "a") is not None
        assert told.is_set()
        assert not (claimed and before_commit == [True])


def test_a_store_that_ignores_expected_versions_is_caught_in_every_kind_of_race(disk: Path) -> None:
    with Crew(PROCESSES, careless=True) as crew, place_for("sqlite", disk) as place:
        tally = hold(place, crew, 4 * len(CONTESTS))

    assert set(CONTESTS) - set(+tally.breached) == set()
    assert not tally.proves


def test_races_in_which_no_writes_met_prove_nothing() -> None:
    held = Counter({"claim": 10, "outbox": 10})

    assert not Tally(by_contest=held, contested=Counter({"claim": 10, "outbox": 4})).proves
    assert Tally(by_contest=held, contested=Counter({"claim": 10, "outbox": 5})).proves
