"""Reading a kind page by page in SQLite: what a page costs does not grow with what lies before or behind it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from costguard.adapters.ledgers.sql import SqlLedger, sqlite_engine
from costguard.ports import Put, Record

MANY, PAGE = 3_000, 20


@pytest.fixture(scope="module")
def steps() -> Iterator[Callable[[str, str], int]]:
    """How many instructions SQLite takes for the first page of a query."""
    engine = sqlite_engine(None)
    with closing(SqlLedger(engine, durable=False, page_size=PAGE)) as store:
        for start in range(0, MANY, 100):
            store.transact([Put(Record("case", f"case-{n:05}/x", {"n": n}), 0) for n in range(start, start + 100)])
        connection = engine.raw_connection()
        driver = connection.driver_connection
        connection.close()
        assert driver is not None

        def counted(prefix: str, after: str) -> int:
            count = 0

            def step() -> int:
                nonlocal count
                count += 1
                return 0

            driver.set_progress_handler(step, 1)
            next(iter(store.query("case", prefix, after)), None)
            driver.set_progress_handler(None, 0)
            return count

        yield counted


def test_the_last_page_costs_as_much_as_the_first(steps: Callable[[str, str], int]) -> None:
    assert steps("", f"case-{MANY - PAGE - 5:05}/x") < 1.1 * steps("", "")


def test_reading_what_has_a_prefix_reads_nothing_behind_it(steps: Callable[[str, str], int]) -> None:
    assert steps("case-00700/", "") < steps("", "") / 4


SOME = "ab\ud7ff\ue000\U0010fffe\U0010ffff/"


@given(st.text(st.sampled_from(SOME), min_size=1, max_size=3), st.lists(st.text(st.sampled_from(SOME), max_size=4)))
def test_exactly_the_keys_with_a_prefix_are_found(prefix: str, keys: list[str]) -> None:
    there = sorted({key for key in (*keys, f"{prefix}{chr(sys.maxunicode)}", f"{prefix}a") if key})
    with closing(SqlLedger(sqlite_engine(None), durable=False, page_size=2)) as store:
        store.transact([Put(Record("case", key, {}), 0) for key in there])
        for after in ("", *there):
            found = [record.key for record in store.query("case", prefix, after)]
            assert found == [key for key in there if key.startswith(prefix) and key > after]
