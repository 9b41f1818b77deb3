"""Whatever was stopped, seen and billed: no hour twice, never less than nothing, never more than the clock says."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.builders import ref
from tests.savings_builders import DAY, HOUR, MIDNIGHT, charge, saving

from costguard.domain.actions import Saving, Verb
from costguard.domain.money import HourlyRate, Money, SpendScope, hours
from costguard.domain.refs import ResourceRef
from costguard.domain.savings import MachineBill, RecordedSaving, SavingChange, SavingStanding
from costguard.planning.realised import Realised, realise
from costguard.report.savings.sums import days_of, report_of

NOW = MIDNIGHT + 120 * DAY
moments = st.integers(0, 120 * 24 * 60).map(lambda minutes: MIDNIGHT + minutes * HOUR / 60)
amounts = st.decimals("0", "40", places=4, allow_nan=False)
currencies = st.sampled_from(["USD", "CNY"])
ENDS = (
    SavingStanding.RESTARTED,
    SavingStanding.REPLACED,
    SavingStanding.GONE,
    SavingStanding.UNSEEN,
    SavingStanding.STOPPED,
    SavingStanding.BILLED_ON,
)


@st.composite
def recorded(draw: st.DrawFn) -> RecordedSaving:
    at, currency = draw(moments), draw(currencies)
    rate = Money(draw(amounts), currency)
    kept = tuple(("volume", Money(amount, draw(currencies))) for amount in draw(st.lists(amounts, max_size=2)))
    changes, since = [], at
    for standing in draw(st.lists(st.sampled_from(ENDS), max_size=2)):
        since += draw(st.integers(0, 20 * 24)) * HOUR
        changes.append(SavingChange(standing, since))
    machine = draw(st.sampled_from(["i-1", "i-2"]))
    made = saving(
        machine,
        at,
        verb=draw(st.sampled_from([Verb.STOP, Verb.STOP, Verb.TERMINATE])),
        run_epoch=draw(st.sampled_from(["epoch-1", "epoch-2"])),
        case_id=f"case-{draw(st.integers(0, 3))}",
        action_id=f"action-{draw(st.integers(0, 10**6))}",
        worth=Saving(rate, kept, price=HourlyRate(rate, "test", "2026-01-01")),
        changes=tuple(changes),
    )
    return replace(made, owner=draw(st.sampled_from(["vision", "nlp"])))


savings = st.lists(recorded(), min_size=1, max_size=6)
bills = st.lists(st.tuples(st.integers(0, 60), amounts, currencies), max_size=5)


def realised(
    what: Sequence[RecordedSaving], charged: Sequence[tuple[int, Decimal, str]], now: datetime
) -> Sequence[Realised]:
    charges = tuple(
        charge(MIDNIGHT + day * DAY, str(cost), currency=currency) for day, cost, currency in sorted(charged, key=str)
    )
    bill: dict[ResourceRef, MachineBill] = {
        ref("i-1"): MachineBill(ref("i-1"), SpendScope(), charges, MIDNIGHT + 50 * DAY, "test")
    }
    return realise(what, {ref().shard: now}, bill, now)


_ROUNDING = Decimal("1e-12")  # a third of an hour has no last digit


@settings(max_examples=30, deadline=None)
@given(savings, bills)
def test_no_hour_of_a_machine_is_in_two_savings(
    what: list[RecordedSaving], charged: list[tuple[int, Decimal, str]]
) -> None:
    by_machine = defaultdict(list)
    for one in realised(what, charged, NOW):
        for pieces in (one.realised, one.predicted):
            covered = [(piece.since, piece.until) for piece in pieces if piece.since < piece.until]
            by_machine[one.saving.action.subject, pieces is one.realised].extend(covered)
    for stretches in by_machine.values():
        assert all(before[1] <= after[0] for before, after in pairwise(sorted(stretches)))


@settings(max_examples=30, deadline=None)
@given(savings, bills)
def test_a_saving_is_between_nothing_and_what_was_predicted_and_the_clock_allows(
    what: list[RecordedSaving], charged: list[tuple[int, Decimal, str]]
) -> None:
    for one in realised(what, charged, NOW):
        worth = one.saving.action.saving
        assert worth is not None
        assert worth.stops_billing is not None
        gained = sum((piece.part(MIDNIGHT, NOW) for piece in one.realised), Decimal(0))
        foreseen = sum((piece.part(MIDNIGHT, NOW) for piece in one.predicted), Decimal(0))
        length = hours(NOW - one.saving.confirmed_at)
        assert Decimal(0) <= gained <= foreseen <= worth.stops_billing.amount * length + _ROUNDING
        assert one.saving.confirmed_at <= one.until <= NOW
        assert {piece.hourly.currency for piece in (*one.realised, *one.predicted)} <= {worth.stops_billing.currency}


@settings(max_examples=20, deadline=None)
@given(savings, bills, st.lists(moments, min_size=2, max_size=4))
def test_it_only_ever_grows_with_time(
    what: list[RecordedSaving], charged: list[tuple[int, Decimal, str]], times: list[datetime]
) -> None:
    found = realised(what, charged, NOW)
    sums = [
        {line.currency: line.realised.amount for line in report_of(found, MIDNIGHT, until, NOW).totals}
        for until in sorted(times)
    ]
    for before, after in pairwise(sums):
        assert all(amount <= after[currency] for currency, amount in before.items())


@settings(max_examples=20, deadline=None)
@given(savings, bills, moments, moments)
def test_every_breakdown_adds_up_to_the_totals_exactly(
    what: list[RecordedSaving], charged: list[tuple[int, Decimal, str]], one: datetime, other: datetime
) -> None:
    since, until = min(one, other), max(one, other)
    report = report_of(realised(what, charged, NOW), since, until, NOW)
    for total in report.totals:
        mine = total.currency
        for lines in (report.by_month, report.by_owner, report.by_guard, report.by_cloud):
            of_mine = [line for line in lines if line.currency == mine]
            for figure in ("predicted", "realised", "still_billed"):
                parts = (getattr(line, figure).amount for line in of_mine)
                assert sum(parts, Decimal(0)) == getattr(total, figure).amount
        entries = (money.amount for entry in report.entries for money in entry.realised if money.currency == mine)
        assert sum(entries, Decimal(0)) == total.realised.amount
        days = (each.realised.amount for each in report.daily if each.realised.currency == mine)
        assert sum(days, Decimal(0)) == total.realised.amount


@settings(max_examples=20, deadline=None)
@given(savings, bills, moments, moments)
def test_months_and_days_are_what_single_days_add_up_to(
    what: list[RecordedSaving], charged: list[tuple[int, Decimal, str]], one: datetime, other: datetime
) -> None:
    since, until = min(one, other), max(one, other)
    found = realised(what, charged, NOW)
    by_day: dict[tuple[str, str], Decimal] = defaultdict(Decimal)
    by_month: dict[tuple[str, str], Decimal] = defaultdict(Decimal)
    for machine in found:
        for day in days_of(machine, since, until):
            for money in day.realised:
                by_day[str(day.day), money.currency] += money.amount
                by_month[f"{day.day:%Y-%m}", money.currency] += money.amount
    report = report_of(found, since, until, NOW)

    told = {(str(each.day), each.realised.currency): each.realised.amount for each in report.daily}
    assert {key: amount for key, amount in told.items() if amount} == {key: one for key, one in by_day.items() if one}
    months = {(line.name, line.currency): line.realised.amount for line in report.by_month}
    assert {key: one for key, one in months.items() if one} == {key: one for key, one in by_month.items() if one}


_FLEET = 20


def _calls(days: int) -> int:
    """How often one function called another while a fleet that was stopped so long ago was reported."""
    fleet = [saving(f"i-{number}", NOW - days * DAY) for number in range(_FLEET)]
    found, count = realise(fleet, {ref().shard: NOW}, {}, NOW), 0

    def counted(_frame: object, event: str, _of: object) -> None:
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    sys.setprofile(counted)
    try:
        report_of(found, MIDNIGHT, NOW, NOW)
    finally:
        sys.setprofile(before)
    return count


def test_a_longer_time_costs_next_to_nothing() -> None:
    """A year of a fleet has millions of days of machines, each with four amounts in five breakdowns."""
    _calls(1)  # what is kept from the first time on is not counted
    assert _calls(85) - _calls(10) < 75 * _FLEET * 4
