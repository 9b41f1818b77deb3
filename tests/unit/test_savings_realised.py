"""How far a saving counts and why: seen, net, each hour once, and held against the bill."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from decimal import Decimal

import pytest
from tests.builders import ref, usd
from tests.savings_builders import (
    DAY,
    HOUR,
    MIDNIGHT,
    RATE,
    bill,
    charge,
    ended,
    looked,
    saving,
    sighting,
)

from costguard.domain.actions import Saving, Verb
from costguard.domain.money import Money
from costguard.domain.resources import Billing
from costguard.domain.savings import Coverage, RecordedSaving, SavingsReport, SavingStanding, Worth
from costguard.planning.realised import HORIZON, Realised, realise
from costguard.report.savings.sums import entry_of, report_of

NOON = MIDNIGHT + 12 * HOUR


def one(what: RecordedSaving, look: datetime | None = None, now: datetime | None = None) -> Realised:
    look = look if look is not None else NOON
    (found,) = realise([what], looked(look), {}, now or look)
    return found


def money(found: Realised) -> tuple[Money, ...]:
    return entry_of(found, found.saving.confirmed_at, found.until).realised


def report(*savings: RecordedSaving, look: datetime) -> SavingsReport:
    return report_of(realise(savings, looked(look), {}, look), MIDNIGHT, look, look)


def test_what_was_seen_counts_less_what_stays_billed() -> None:
    found = one(saving())
    assert (found.standing, found.until) == (SavingStanding.STOPPED, NOON)
    assert money(found) == (usd("30"),), "12 h of 3.00 less 0.50"
    assert entry_of(found, MIDNIGHT, NOON).still_billed == (usd("6"),)


def test_it_counts_only_up_to_the_last_look() -> None:
    found = one(saving(), look=NOON, now=NOON + 3 * DAY)
    assert (found.standing, found.until, found.standing_since) == (SavingStanding.UNSEEN, NOON, NOON)
    assert money(found) == (usd("30"),)
    assert entry_of(found, MIDNIGHT, NOON + 3 * DAY).predicted == (usd("210"),), "84 h, had nothing happened"


def test_without_any_look_since_it_is_nothing() -> None:
    (found,) = realise([saving()], {}, {}, NOON)
    assert money(found) == (usd("0"),)


def test_a_daily_run_is_often_enough() -> None:
    assert one(saving(), look=NOON, now=NOON + 2 * DAY).standing is SavingStanding.STOPPED


@pytest.mark.parametrize(
    "standing",
    [
        SavingStanding.RESTARTED,
        SavingStanding.UNDONE,
        SavingStanding.REPLACED,
        SavingStanding.GONE,
        SavingStanding.BILLED_ON,
    ],
)
def test_what_ended_counts_to_its_end_for_ever(standing: SavingStanding) -> None:
    found = one(ended(saving(), standing, MIDNIGHT + 5 * HOUR), look=MIDNIGHT + 40 * DAY)
    assert (found.standing, found.standing_since) == (standing, MIDNIGHT + 5 * HOUR)
    assert money(found) == (usd("12.5"),)


def test_what_was_unclear_for_a_while_counts_again_once_it_is_seen_stopped() -> None:
    unclear = ended(saving(), SavingStanding.UNSEEN, MIDNIGHT + 2 * HOUR)
    assert (one(unclear).standing, one(unclear).until) == (SavingStanding.UNSEEN, MIDNIGHT + 2 * HOUR)
    again = ended(unclear, SavingStanding.STOPPED, MIDNIGHT + 6 * HOUR)
    assert (one(again).standing, one(again).until) == (SavingStanding.STOPPED, NOON)


def test_it_is_counted_for_ninety_days_at_most() -> None:
    found = one(saving(), look=MIDNIGHT + 200 * DAY)
    assert (found.standing, found.until) == (SavingStanding.OVER, MIDNIGHT + HORIZON)


def test_a_termination_goes_on_where_its_stop_ends() -> None:
    stop, end = saving(), saving(verb=Verb.TERMINATE, at=MIDNIGHT + 8 * HOUR)
    first, second = realise([end, stop], looked(NOON), {}, NOON)
    assert (first.standing, first.until) == (SavingStanding.HANDED_OVER, MIDNIGHT + 8 * HOUR)
    assert (second.standing, second.saving.confirmed_at, second.until) == (
        SavingStanding.TERMINATED,
        MIDNIGHT + 8 * HOUR,
        NOON,
    )
    assert report(stop, end, look=NOON).totals[0].realised == usd("30")


def test_a_termination_has_no_ninety_days_of_its_own() -> None:
    stop, end = saving(), saving(verb=Verb.TERMINATE, at=MIDNIGHT + 50 * DAY)
    found = realise([stop, end], looked(MIDNIGHT + 300 * DAY), {}, MIDNIGHT + 300 * DAY)
    assert found[1].until == MIDNIGHT + HORIZON


def test_a_termination_of_what_was_replaced_saves_nothing() -> None:
    stop = ended(saving(), SavingStanding.REPLACED, MIDNIGHT + HOUR)
    end = saving(verb=Verb.TERMINATE, at=MIDNIGHT + 8 * HOUR)
    first, second = realise([stop, end], looked(NOON), {}, NOON)
    assert money(first) == (usd("2.5"),)
    assert (second.standing, second.predicted[0].part(MIDNIGHT, NOON), money(second)) == (
        SavingStanding.REPLACED,
        Decimal(0),
        (usd("0"),),
    )


def test_two_cases_of_one_stop_share_its_hours() -> None:
    """A spent budget and the idle guard may both have a case of one machine."""
    idle, budget = saving(), saving(case_id="budget", at=MIDNIGHT + HOUR, guard="budget")
    first, second = realise([budget, idle], looked(NOON), {}, NOON)
    assert (first.standing, second.standing, second.shared_with) == (
        SavingStanding.STOPPED,
        SavingStanding.SHARED,
        "case-i-1-stop",
    )
    assert report(idle, budget, look=NOON).totals[0].realised == usd("30")


def test_a_stop_of_a_later_run_ends_what_was_before_it() -> None:
    first = saving()
    second = saving(case_id="again", at=MIDNIGHT + 8 * HOUR, run_epoch="epoch-2")
    before, after = realise([first, second], looked(NOON), {}, NOON)
    assert before.until <= after.saving.confirmed_at
    assert report(first, second, look=NOON).totals[0].predicted == usd("30")


def test_an_address_that_was_released_needs_no_further_look() -> None:
    address = ref("eipalloc-1", "public_address")
    released = saving(subject=address, verb=Verb.MEND, worth=Saving(usd("0.005"), price=RATE), machine=None)
    (found,) = realise([released], {}, {}, MIDNIGHT + 10 * DAY)
    assert (found.standing, money(found)) == (SavingStanding.RELEASED, (usd("1.2"),))


@pytest.mark.parametrize(
    ("what", "worth"),
    [
        (saving(worth=Saving(None, price=None)), Worth.UNPRICED),
        (saving(worth=None), Worth.UNPRICED),
        (saving(worth=Saving(None, price=RATE), billed_on=True), Worth.BILLED_ON),
        (saving(machine=sighting(billing=Billing.PREPAID)), Worth.COVERED),
        (saving(machine=sighting(billing=Billing.RESERVED)), Worth.COVERED),
        (saving(machine=sighting(billing=Billing.UNKNOWN)), Worth.COVERED),
        (saving(coverage=Coverage(Decimal(0), "aws-cost-explorer", MIDNIGHT)), Worth.COVERED),
    ],
)
def test_what_ends_no_billing_saves_nothing(what: RecordedSaving, worth: Worth) -> None:
    found = one(what)
    assert found.worth is worth
    assert sum((each.amount for each in money(found)), Decimal(0)) == 0
    assert sum((each.amount for each in entry_of(found, MIDNIGHT, NOON).predicted), Decimal(0)) == 0


def test_of_a_machine_that_a_commitment_covers_in_part_only_the_rest_is_saved() -> None:
    found = one(saving(coverage=Coverage(Decimal("0.5"), "aws-cost-explorer", MIDNIGHT)))
    assert (found.worth, found.hourly, money(found)) == (Worth.PARTLY_COVERED, usd("1.5"), (usd("12"),))


def test_what_stays_billed_never_makes_a_saving_a_loss() -> None:
    dear = saving(worth=Saving(usd("1"), (("volume", usd("4")),), price=RATE))
    assert money(one(dear)) == (usd("0"),)


def test_currencies_are_never_taken_off_each_other() -> None:
    yuan = Money(Decimal("0.5"), "CNY")
    found = one(saving(worth=Saving(usd("3"), (("volume", yuan),), price=RATE)))
    assert money(found) == (usd("36"),)
    assert entry_of(found, MIDNIGHT, NOON).still_billed == (Money(Decimal(6), "CNY"),)


def test_a_price_that_nobody_knows_is_named_and_not_guessed() -> None:
    entry = entry_of(one(saving(worth=Saving(usd("3"), (("snapshot", None),), price=RATE))), MIDNIGHT, NOON)
    assert (entry.realised, entry.unpriced) == ((usd("36"),), ("snapshot",))


END = MIDNIGHT + 4 * DAY


def test_a_bill_without_charges_confirms_what_was_saved() -> None:
    (found,) = realise([saving()], looked(END), bill(charge(MIDNIGHT - DAY, "72"), until=MIDNIGHT + 2 * DAY), END)
    assert (found.billed_anyway, found.billed_until) == (None, MIDNIGHT + 2 * DAY)
    assert money(found) == (usd("240"),)


def test_what_the_bill_shows_all_the_same_is_told_and_taken_off() -> None:
    """On the second day the whole machine was billed: nothing of that day was saved."""
    charges = (charge(MIDNIGHT - DAY, "72"), charge(MIDNIGHT + DAY, "72"))
    (found,) = realise([saving()], looked(END), bill(*charges, until=MIDNIGHT + 3 * DAY), END)
    assert found.billed_anyway == usd("60"), "72 less the 12 that stay billed"
    assert money(found) == (usd("180"),)
    entry = entry_of(found, MIDNIGHT + DAY, MIDNIGHT + 2 * DAY)
    assert entry.realised == (usd("0"),)


@pytest.mark.parametrize("cost", ["12", "12.5", "13.4"])
def test_disks_under_the_machines_own_id_and_cents_are_no_surprise(cost: str) -> None:
    charges = charge(MIDNIGHT + DAY, cost)
    (found,) = realise([saving()], looked(END), bill(charges, until=MIDNIGHT + 3 * DAY), END)
    assert found.billed_anyway is None


def test_a_bill_that_is_not_complete_yet_contradicts_nothing() -> None:
    charges = charge(MIDNIGHT + 2 * DAY, "72")
    (found,) = realise([saving()], looked(END), bill(charges, until=MIDNIGHT + 2 * DAY), END)
    assert found.billed_anyway is None


def test_the_day_of_the_stop_itself_is_not_compared() -> None:
    stopped_at_noon = saving(at=NOON)
    (found,) = realise([stopped_at_noon], looked(END), bill(charge(MIDNIGHT, "36"), until=END), END)
    assert found.billed_anyway is None


def test_a_bill_in_another_currency_than_the_price_is_not_compared() -> None:
    charges = charge(MIDNIGHT + DAY, "500", currency="CNY")
    (found,) = realise([saving()], looked(END), bill(charges, until=END), END)
    assert (found.billed_anyway, found.billed_until) == (None, None)


def test_a_bill_by_the_days_of_china_is_compared_by_its_own_periods() -> None:
    begin = MIDNIGHT + 16 * HOUR
    charges = (charge(begin, "24", HOUR * 24),)
    (found,) = realise([saving()], looked(END), bill(*charges, until=END), END)
    assert found.billed_anyway == usd("12")
    assert money(found) == (usd("228"),)


def test_a_commitment_in_the_machines_own_bill_leaves_the_rest() -> None:
    """28 under a commitment is 100 at list price by the deepest discount; 100 beside it were free of any."""
    before = (charge(MIDNIGHT - 2 * DAY, "28", committed=True), charge(MIDNIGHT - 2 * DAY, "100"))
    (found,) = realise([saving()], looked(NOON), bill(*before, until=MIDNIGHT), NOON)
    assert (found.worth, found.hourly) == (Worth.PARTLY_COVERED, usd("1.5000"))


def test_the_report_is_what_its_parts_add_up_to() -> None:
    march = saving("i-1", MIDNIGHT + 20 * DAY + 7 * HOUR)
    other = replace(saving("i-2", MIDNIGHT + 3 * DAY), owner="nlp", guard="budget")
    look = MIDNIGHT + 40 * DAY + 13 * HOUR
    whole = report(march, other, look=look)
    (total,) = whole.totals
    assert total.realised == sum((line.realised for line in whole.by_month[1:]), whole.by_month[0].realised)
    assert total.realised == sum((line.realised for line in whole.by_owner[1:]), whole.by_owner[0].realised)
    assert [line.name for line in whole.by_month] == ["2026-03", "2026-04"]
    assert [(line.name, line.actions) for line in whole.by_owner] == [("nlp", 1), ("vision", 1)]
    assert [line.name for line in whole.by_guard] == ["budget", "idle_gpu"]
    assert len(whole.daily) == 41
    assert sum((each.realised.amount for each in whole.daily), Decimal(0)) == total.realised.amount


def test_amounts_have_an_end_so_that_their_sums_are_exact() -> None:
    """A third of an hour at 1 USD is no finite decimal; a part may be less than the truth, never more."""
    third = saving(worth=Saving(usd("1"), price=RATE))
    (found,) = realise([third], looked(MIDNIGHT + HOUR / 3), {}, MIDNIGHT + HOUR / 3)
    assert money(found) == (usd("0.3333333333"),)


def test_what_lies_outside_the_time_asked_for_is_in_no_figure() -> None:
    found = realise([saving()], looked(END), {}, END)
    whole = report_of(found, MIDNIGHT + DAY, MIDNIGHT + 2 * DAY, END)
    assert whole.totals[0].realised == usd("60")
    assert whole.entries[0].realised == (usd("60"),)
    assert report_of(found, MIDNIGHT - 2 * DAY, MIDNIGHT - DAY, END).entries == ()
