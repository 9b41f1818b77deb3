"""The meter: what ran when, from one look to the next, and nothing invented between them."""

from __future__ import annotations

from contextlib import closing
from datetime import timedelta
from typing import Any

import pytest
from tests.builders import DAY, NOW, SHARD, fact, instance, shard_facts, usd

from costguard.adapters.ledgers.open import open_ledger
from costguard.domain.findings import InstanceFact
from costguard.domain.money import HourlyRate
from costguard.domain.refs import Shard
from costguard.domain.resources import Billing, Gap, GapKind, InstanceState
from costguard.engine.ledger.savings import MeterRepository
from costguard.estimates.burn import KEPT, Metered, MeterSheet, metered_on

HOUR = timedelta(hours=1)
LATER = NOW + HOUR


def machine(native_id: str = "i-1", rate: str | None = "2", **changes: Any) -> InstanceFact:
    price = None if rate is None else HourlyRate(usd(rate), "test", "2026-01-01")
    return fact(instance(native_id, **changes), rate=price)


def first(*facts: InstanceFact) -> MeterSheet:
    sheet = metered_on(None, shard_facts(*facts), NOW)
    assert sheet is not None
    return sheet


def then(sheet: MeterSheet, *facts: InstanceFact, gaps: tuple[Gap, ...] = ()) -> MeterSheet:
    after = metered_on(sheet, shard_facts(*facts, gaps=gaps), LATER)
    assert after is not None
    return after


def only(sheet: MeterSheet) -> Metered:
    (run,) = sheet.runs
    return run.metered


def test_a_machine_seen_for_the_first_time_ran_since_it_was_launched() -> None:
    seen = only(first(machine(launched_at=NOW - 3 * DAY)))
    assert (seen.since, seen.until, seen.hourly) == (NOW - 3 * DAY, None, usd("2"))


def test_nothing_is_metered_from_before_what_is_kept() -> None:
    assert only(first(machine(launched_at=NOW - 400 * DAY))).since == NOW - KEPT


def test_metering_is_whole_from_the_first_look_on() -> None:
    """What ran and ended before it is unknown."""
    assert first(machine()).since == NOW
    assert then(first(machine()), machine()).since == NOW


def test_a_machine_that_goes_on_is_one_stretch() -> None:
    assert only(then(first(machine()), machine())).until is None


def test_a_machine_no_longer_seen_ran_until_the_look_before() -> None:
    assert only(then(first(machine()))).until == NOW


def test_a_stop_whose_time_the_cloud_tells_ends_there() -> None:
    at = NOW + timedelta(minutes=20)
    assert only(then(first(machine()), machine(state=InstanceState.STOPPED, stopped_at=at))).until == at


@pytest.mark.parametrize("at", [NOW - DAY, LATER + DAY])
def test_a_stop_told_for_an_impossible_time_is_not_believed(at: Any) -> None:
    assert only(then(first(machine()), machine(state=InstanceState.STOPPED, stopped_at=at))).until == NOW


def test_what_is_billed_though_stopped_goes_on() -> None:
    stopped = machine(state=InstanceState.STOPPED, billed_while_stopped=True)
    assert only(then(first(machine()), stopped)).until is None


def test_a_restart_is_a_new_stretch_that_does_not_overlap() -> None:
    again = machine(run_epoch="epoch-2", launched_at=NOW + timedelta(minutes=10))
    old, new = (run.metered for run in then(first(machine()), again).runs)
    assert (old.until, new.since) == (NOW, NOW + timedelta(minutes=10))


def test_a_cloud_that_tells_no_start_of_a_run_makes_it_no_older_than_the_last_look() -> None:
    again = machine(run_epoch="epoch-2", launched_at=NOW - 9 * DAY)
    _, new = sorted((run.metered for run in then(first(machine()), again).runs), key=lambda one: one.since)
    assert new.since == NOW


def test_a_look_that_was_not_complete_changes_nothing() -> None:
    sheet = first(machine())
    blind = then(sheet, gaps=(Gap(SHARD, "inventory", GapKind.THROTTLED, ""),))
    assert blind == sheet
    assert metered_on(None, shard_facts(gaps=(Gap(SHARD, "inventory", GapKind.DENIED, ""),)), NOW) is None


@pytest.mark.parametrize("billing", [Billing.PREPAID, Billing.RESERVED, Billing.UNKNOWN])
def test_what_is_not_paid_by_the_hour_is_not_metered(billing: Billing) -> None:
    assert first(machine(billing=billing)).runs == ()


def test_an_unknown_price_is_no_zero_and_holds_backwards_once_known() -> None:
    unknown = first(machine(rate=None))
    assert only(unknown).hourly is None
    assert only(then(unknown, machine())).hourly == usd("2")


def test_a_price_lost_for_a_while_stays_as_it_was() -> None:
    assert only(then(first(machine()), machine(rate=None))).hourly == usd("2")


def test_a_changed_price_begins_a_new_stretch() -> None:
    old, new = (run.metered for run in then(first(machine()), machine(rate="3")).runs)
    assert (old.until, old.hourly, new.since, new.hourly) == (NOW, usd("2"), NOW, usd("3"))


def test_what_ended_long_ago_is_forgotten() -> None:
    ended = then(first(machine()))
    assert metered_on(ended, shard_facts(), NOW + KEPT + DAY) == MeterSheet(NOW + DAY, NOW + KEPT + DAY, ())


def test_a_sheet_of_many_machines_survives_the_ledger_in_pieces() -> None:
    sheet = first(*(machine(f"i-{number}") for number in range(450)))
    fewer = then(sheet, machine("i-1"))
    smaller = MeterSheet(fewer.since, fewer.looked_at, fewer.runs[:3])
    with closing(open_ledger("memory:")) as ledger:
        repository = MeterRepository(ledger)
        assert repository.put(SHARD, sheet)
        assert repository.get(SHARD) == sheet
        assert repository.put(SHARD, smaller)
        assert repository.get(SHARD) == smaller


def test_sheets_of_many_shards_are_kept_together_and_what_another_run_wrote_first_stays() -> None:
    shards = [Shard("aws", "111122223333", f"region-{number:02}") for number in range(60)]
    other = Shard("aws-cn", "111122223333", "cn-north-1")
    sheet, later = first(machine()), then(first(machine()))
    with closing(open_ledger("memory:")) as ledger:
        repository = MeterRepository(ledger)
        assert repository.put(other, sheet)
        assert repository.kept(["aws", "aws"]).put(dict.fromkeys(shards, sheet))
        kept = repository.kept(["aws"])
        assert [kept.sheet(shard) for shard in shards] == [sheet] * 60
        assert kept.sheet(other) is None

        elsewhere = MeterSheet(later.since, later.looked_at, ())
        assert repository.put(shards[0], elsewhere)
        assert not kept.put(dict.fromkeys(shards, later))
        assert [repository.get(shard) for shard in shards] == [elsewhere, *[later] * 59]
        assert list(repository.others("aws", {str(shard) for shard in shards[1:]})) == [elsewhere]
        assert repository.get(other) == sheet
