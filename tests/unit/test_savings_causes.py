"""Whose doing a saving is: labelled, never summed over labels, and what each came to after discounts."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

from tests.savings_builders import DAY, DISKS, HOUR, MIDNIGHT, RATE, bill, charge, looked, saving

from costguard.domain.actions import Saving
from costguard.domain.money import Money, NetRate, NetSource
from costguard.domain.savings import RecordedSaving, SavingCause, SavingsReport
from costguard.planning.realised import realise
from costguard.report.savings.sums import report_of
from costguard.report.savings.to_json import savings_json, savings_rows
from costguard.report.savings.views import explained, savings_lines, savings_tables
from costguard.report.words.sentences import Language, phrase

NOON = MIDNIGHT + 12 * HOUR
NET = replace(RATE, net=NetRate(Money(Decimal("2.4"), "USD"), NetSource.BILL, "2026-03-08", Decimal("0.2")))


def usd(amount: str) -> Money:
    return Money(Decimal(amount), "USD")


def report(*savings: RecordedSaving) -> SavingsReport:
    return report_of(realise(savings, looked(NOON), {}, NOON), MIDNIGHT - DAY, NOON, NOON)


def of_three() -> SavingsReport:
    return report(
        saving("i-1"),
        replace(saving("i-2"), cause=SavingCause.PERSON),
        replace(saving("i-3"), cause=SavingCause.UNATTRIBUTED),
    )


def test_savings_of_several_causes_are_in_no_common_sum() -> None:
    whole = of_three()

    assert [(one.realised, one.actions) for one in whole.totals] == [(usd("30.0"), 1)]
    assert [(one.cause, one.realised, one.actions) for one in whole.others] == [
        (SavingCause.PERSON, usd("30.0"), 1),
        (SavingCause.UNATTRIBUTED, usd("30.0"), 1),
    ]
    for lines in (whole.by_month, whole.by_owner, whole.by_guard, whole.by_cloud):
        assert sum(line.realised.amount for line in lines) == 30
    assert sum(day.realised.amount for day in whole.daily) == 30
    assert {entry.subject.native_id: entry.cause for entry in whole.entries} == {
        "i-1": SavingCause.COSTGUARD,
        "i-2": SavingCause.PERSON,
        "i-3": SavingCause.UNATTRIBUTED,
    }


def test_people_read_each_cause_by_itself_in_both_languages() -> None:
    whole = of_three()
    said = list(savings_lines(whole))

    assert phrase("savings_other_person_after_notice", realised="30.00 USD", actions=1) in said
    assert phrase("savings_other_unattributed", realised="30.00 USD", actions=1) in said
    assert phrase("savings_not_added") in said
    assert "通知后由人员停机：已实现 30.00 USD（1 次）。" in list(savings_lines(whole, Language.ZH))
    actions = savings_tables(whole)[-1]
    column = [each.key for each in actions.columns].index("cause")
    assert {row[column] for row in actions.rows} == {
        "caused by Costguard",
        "by a person after its notice",
        "unattributed",
    }


def test_programs_read_the_cause_of_each_action_and_sum() -> None:
    told = savings_json(of_three())

    assert [each["cause"] for each in told["totals"]] == ["costguard"]
    assert [each["cause"] for each in told["others"]] == ["person_after_notice", "unattributed"]
    assert {each["cause"] for each in told["actions"]} == {"costguard", "person_after_notice", "unattributed"}
    table = savings_rows(of_three())
    column = [each.key for each in table.columns].index("cause")
    assert {row[column] for row in table.rows} == {"costguard", "person_after_notice", "unattributed"}


def test_what_nobody_wrote_a_cause_for_is_unattributed() -> None:
    whole = report(replace(saving(), cause=None))

    assert whole.totals == ()
    assert [one.cause for one in whole.others] == [SavingCause.UNATTRIBUTED]


def test_a_saving_is_shown_by_list_price_and_after_discounts() -> None:
    """3 USD by list less 0.50 for disks; 2.40 as paid less the same."""
    whole = report(saving(worth=Saving(RATE.money, DISKS, price=NET)), saving("i-2"))
    (total,) = whole.totals

    assert total.realised == usd("60.0")
    assert (total.realised_net, total.net_actions, total.actions) == (usd("22.8"), 1, 2)
    assert phrase("savings_net", net="22.80 USD", without=1) in list(savings_lines(whole))
    first = next(entry for entry in whole.entries if entry.subject.native_id == "i-1")
    assert first.realised_net == (usd("22.8"),)
    lines = list(explained(first))
    assert phrase("savings_explain_cause", cause="caused by Costguard") in lines
    assert any(
        "net of discounts it is 2.40 USD an hour: 20 % off, by the bill up to 2026-03-08" in one for one in lines
    )
    assert phrase("savings_explain_discounted", amount="22.80 USD") in lines
    told = savings_json(whole)
    assert told["totals"][0]["realised_effective"] == {"amount": "22.8000000000", "currency": "USD"}
    assert told["totals"][0]["effective_actions"] == 1


def test_without_a_known_discount_the_list_price_is_said_to_be_alone() -> None:
    whole = report(saving())

    assert whole.totals[0].realised_net is None
    assert phrase("savings_net_unknown", currency="USD") in list(savings_lines(whole))


def test_what_the_bill_shows_all_the_same_is_off_both_figures() -> None:
    until = MIDNIGHT + 2 * DAY
    kept = saving(worth=Saving(RATE.money, DISKS, price=NET))
    (one,) = realise([kept], looked(until), bill(charge(MIDNIGHT, "22"), until=until), until)
    whole = report_of([one], MIDNIGHT, until, until)

    assert one.billed_anyway == usd("10.0"), "22 less the disks"
    assert whole.totals[0].realised == usd("110.0000000000")
    assert whole.totals[0].realised_net is not None
    assert whole.totals[0].realised_net.amount.quantize(Decimal("0.01")) == Decimal("81.20")
