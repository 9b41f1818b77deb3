"""NEVER rule 7: no sequence, thread or interleaving gets past a cap."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.contract.ledger_fakes import InterferingStore, fail

from costguard.adapters.ledgers import open_ledger
from costguard.domain.errors import LedgerError
from costguard.domain.money import Money
from costguard.domain.reasons import ReasonCode
from costguard.engine.ledger.caps import CapRepository, CapUsage
from costguard.ports import RecordStore

NOW = datetime(2026, 3, 1, 12, tzinfo=timezone.utc)
HOUR = timedelta(hours=1)


def usd(amount: str | int) -> Money:
    return Money(Decimal(amount), "USD")


def cny(amount: str | int) -> Money:
    return Money(Decimal(amount), "CNY")


@pytest.fixture
def store() -> Iterator[RecordStore]:
    ledger = open_ledger("memory:")
    yield ledger
    ledger.close()


@pytest.fixture
def caps(store: RecordStore) -> CapRepository:
    return CapRepository(store)


def reserve(caps: CapRepository, decision_id: str, cost: Money | None = None, **changes: Any) -> ReasonCode | None:
    limits: dict[str, Any] = {"max_actions": 10, "max_hourly": (usd(100), cny(700)), "now": NOW, **changes}
    return caps.reserve("idle_gpu", "research", decision_id, usd(1) if cost is None else cost, **limits)


def used(caps: CapRepository, now: datetime = NOW) -> CapUsage:
    return caps.usage("idle_gpu", "research", now)


def test_nothing_is_used_at_first(caps: CapRepository) -> None:
    assert used(caps) == CapUsage(0, ())


def test_what_is_reserved_is_used(caps: CapRepository) -> None:
    assert reserve(caps, "a", usd("32.77")) is None
    assert reserve(caps, "b", usd("0.23")) is None
    assert reserve(caps, "c", cny(7)) is None

    assert used(caps) == CapUsage(3, (usd("33.00"), cny(7)))


def test_a_cap_of_zero_allows_nothing(caps: CapRepository) -> None:
    assert reserve(caps, "a", max_actions=0) is ReasonCode.CAP_ACTIONS
    assert used(caps).actions == 0


def test_a_money_cap_of_zero_allows_nothing_that_costs(caps: CapRepository) -> None:
    assert reserve(caps, "a", usd("0.01"), max_hourly=(usd(0),)) is ReasonCode.CAP_MONEY
    assert reserve(caps, "b", usd(0), max_hourly=(usd(0),)) is None


def test_no_money_caps_at_all_allow_nothing(caps: CapRepository) -> None:
    assert reserve(caps, "a", max_hourly=()) is ReasonCode.CURRENCY_UNCAPPED


def test_the_last_action_of_a_cap_is_allowed_and_the_next_is_not(caps: CapRepository) -> None:
    assert [reserve(caps, name, max_actions=2) for name in "abc"] == [None, None, ReasonCode.CAP_ACTIONS]


def test_a_money_cap_may_be_reached_and_not_passed(caps: CapRepository) -> None:
    assert reserve(caps, "a", usd("99.99")) is None
    assert reserve(caps, "b", usd("0.02")) is ReasonCode.CAP_MONEY
    assert reserve(caps, "c", usd("0.01")) is None
    assert reserve(caps, "d", usd(0)) is None


def test_each_currency_has_its_own_cap(caps: CapRepository) -> None:
    assert reserve(caps, "a", usd(100)) is None
    assert reserve(caps, "b", cny(700)) is None
    assert reserve(caps, "c", Money(Decimal(1), "EUR")) is ReasonCode.CURRENCY_UNCAPPED


@pytest.mark.parametrize("amount", ["-1", "NaN", "Infinity"])
def test_what_is_no_price_is_an_unknown_price(caps: CapRepository, amount: str) -> None:
    assert reserve(caps, "a", usd(amount)) is ReasonCode.PRICE_UNKNOWN


def test_an_unknown_price_is_never_zero(caps: CapRepository) -> None:
    refused = caps.reserve("idle_gpu", "research", "a", None, max_actions=9, max_hourly=(usd(9),), now=NOW)

    assert refused is ReasonCode.PRICE_UNKNOWN
    assert used(caps).actions == 0


@pytest.mark.parametrize("amount", ["NaN", "Infinity"])
def test_an_endless_cap_is_no_cap(caps: CapRepository, amount: str) -> None:
    assert reserve(caps, "a", max_hourly=(usd(amount),)) is ReasonCode.CURRENCY_UNCAPPED


def test_of_two_caps_for_one_currency_the_smaller_holds(caps: CapRepository) -> None:
    assert reserve(caps, "a", usd(2), max_hourly=(usd(100), usd(1))) is ReasonCode.CAP_MONEY


def test_a_decision_is_counted_once(caps: CapRepository) -> None:
    assert [reserve(caps, "a", max_actions=1) for _ in range(3)] == [None, None, None]
    assert used(caps) == CapUsage(1, (usd(1),))


def test_a_decision_already_reserved_is_refused_by_a_cap_made_tighter(caps: CapRepository) -> None:
    assert reserve(caps, "a") is None
    assert reserve(caps, "a", max_actions=0) is ReasonCode.CAP_ACTIONS


def test_a_decision_reserved_again_later_counts_from_then(caps: CapRepository) -> None:
    reserve(caps, "a", max_actions=1)
    reserve(caps, "a", max_actions=1, now=NOW + 20 * HOUR)

    assert used(caps, NOW + 43 * HOUR).actions == 1
    assert reserve(caps, "b", max_actions=1, now=NOW + 43 * HOUR) is ReasonCode.CAP_ACTIONS
    assert reserve(caps, "b", max_actions=1, now=NOW + 44 * HOUR) is None


def test_the_window_rolls_over_24_hours(caps: CapRepository) -> None:
    reserve(caps, "a", max_actions=1)

    just_before = NOW + 24 * HOUR - timedelta(microseconds=1)
    assert reserve(caps, "b", max_actions=1, now=just_before) is ReasonCode.CAP_ACTIONS
    assert reserve(caps, "b", max_actions=1, now=NOW + 24 * HOUR) is None


def test_what_a_clock_ahead_reserved_counts(caps: CapRepository) -> None:
    reserve(caps, "a", max_actions=1, now=NOW + HOUR)

    assert reserve(caps, "b", max_actions=1) is ReasonCode.CAP_ACTIONS


def test_what_no_longer_counts_is_forgotten_in_time(caps: CapRepository, store: RecordStore) -> None:
    for day in range(20):
        reserve(caps, f"{day}", now=NOW + 24 * HOUR * day)

    record = store.get("cap", "idle_gpu/research")
    assert record is not None
    assert len(record.body["reservations"]) == 2


def test_rules_and_guards_do_not_share_caps(caps: CapRepository) -> None:
    reserve(caps, "a", max_actions=1)
    other = caps.reserve("idle_gpu", "training", "b", usd(1), max_actions=1, max_hourly=(usd(9),), now=NOW)

    assert other is None


def test_released_is_free_again_and_releasing_may_be_repeated(caps: CapRepository) -> None:
    reserve(caps, "a", max_actions=1)
    for decision in ("a", "a", "never reserved"):
        caps.release("idle_gpu", "research", decision)

    assert used(caps) == CapUsage(0, ())
    assert reserve(caps, "b", max_actions=1) is None


def test_a_reservation_made_between_reading_and_writing_is_counted(store: RecordStore) -> None:
    interfering = InterferingStore(store)
    interfering.before_writes.append(lambda: reserve(CapRepository(store), "first", max_actions=1))

    assert reserve(CapRepository(interfering), "second", max_actions=1) is ReasonCode.CAP_ACTIONS
    assert used(CapRepository(store)).actions == 1


def test_a_cap_too_contended_is_an_error_and_not_a_permission(store: RecordStore) -> None:
    interfering = InterferingStore(store)
    interfering.before_writes.extend(
        partial(reserve, CapRepository(store), f"other {n}", max_actions=10_000, max_hourly=(usd(10_000),))
        for n in range(200)
    )

    with pytest.raises(LedgerError, match="in a row"):
        reserve(CapRepository(interfering), "mine", max_actions=10_000, max_hourly=(usd(10_000),))
    assert interfering.writes == 100


def test_a_ledger_out_of_reach_is_an_error_and_not_a_permission(store: RecordStore) -> None:
    interfering = InterferingStore(store)
    interfering.before_writes.append(fail)

    with pytest.raises(LedgerError):
        reserve(CapRepository(interfering), "a")
    assert used(CapRepository(store)).actions == 0


@pytest.mark.parametrize("url", ["memory:", "sqlite:///{folder}/ledger.db"])
def test_threads_together_never_exceed_a_cap(url: str, tmp_path: Any) -> None:
    ledger = open_ledger(url.format(folder=tmp_path))
    line = threading.Barrier(8)

    def race(number: int) -> ReasonCode | None:
        line.wait()
        return reserve(CapRepository(ledger), f"{number}", usd(3), max_actions=6, max_hourly=(usd(13),))

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(race, range(8)))

    assert results.count(None) == 4
    assert used(CapRepository(ledger)) == CapUsage(4, (usd(12),))
    ledger.close()


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["reserve", "reserve", "reserve", "release", "wait"]),
        st.integers(0, 5),  # which decision
        st.integers(0, 60),  # its price
        st.integers(0, 14),  # hours to wait
        st.integers(0, 3),  # decisions reserved by another process in between
    ),
    max_size=25,
)


@given(steps=STEPS, max_actions=st.integers(0, 4), max_usd=st.integers(0, 100))
def test_no_sequence_of_reservations_exceeds_a_cap_in_any_24_hours(
    steps: list[tuple[str, int, int, int, int]], max_actions: int, max_usd: int
) -> None:
    """A model counts every grant not given back from its latest reservation; no window may hold more than the cap."""
    store = open_ledger("memory:")
    interfering = InterferingStore(store)
    mine, theirs = CapRepository(interfering), CapRepository(store)
    granted: list[tuple[str, datetime, int]] = []
    now = NOW

    def take(caps: CapRepository, decision: str, price: int) -> None:
        if reserve(caps, decision, usd(price), max_actions=max_actions, max_hourly=(usd(max_usd),), now=now) is None:
            granted[:] = [grant for grant in granted if grant[0] != decision or grant[1] + 24 * HOUR <= now]
            granted.append((decision, now, price))

    for do, decision, price, wait, others in steps:
        if do == "wait":
            now += wait * HOUR
        elif do == "release":
            mine.release("idle_gpu", "research", f"mine {decision}")
            granted[:] = [grant for grant in granted if grant[0] != f"mine {decision}"]
        else:
            interfering.before_writes[:] = [partial(take, theirs, f"theirs {other}", price) for other in range(others)]
            take(mine, f"mine {decision}", price)
            interfering.before_writes.clear()
        window = [grant for grant in granted if now - grant[1] < 24 * HOUR]
        assert len(window) <= max_actions
        assert sum(grant[2] for grant in window) <= max_usd
        assert used(theirs, now).actions == len(window)
    store.close()


def test_room_comes_again_as_each_reservation_of_the_guard_is_a_day_old(caps: CapRepository) -> None:
    for guard, cap, decision in (
        ("idle_gpu", "research", "a"),
        ("idle_gpu", "other", "b"),
        ("budget", "research", "c"),
    ):
        caps.reserve(guard, cap, decision, usd("1"), max_actions=9, max_hourly=(usd("9"),), now=NOW)
    later = NOW + timedelta(hours=5)
    caps.reserve("idle_gpu", "research", "d", usd("1"), max_actions=9, max_hourly=(usd("9"),), now=later)
    day = timedelta(hours=24)
    assert sorted(caps.room_again("idle_gpu", later)) == [NOW + day, NOW + day, later + day]
    assert list(caps.room_again("idle_gpu", NOW + day)) == [later + day]
