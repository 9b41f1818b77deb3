"""The budget guard: how far spent, how sure, and never more sure than its data (NEVER rule 13)."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from tests.builders import ref, usd

from costguard.domain.findings import Verdict
from costguard.domain.money import Bill, ChargeCategory, ExchangeRate, Money, PricingCategory, SpendLine, SpendScope
from costguard.domain.reasons import ReasonCode
from costguard.domain.refs import ScopeRef, Shard
from costguard.domain.resources import Gap, GapKind
from costguard.estimates.burn import Metered, MeteredFleet, known
from costguard.guards.budget.judge import BudgetStatus, ScopeFacts, age_of_bill, assess, judge
from costguard.guards.budget.rules import BudgetPeriod, BudgetRule, CostBasis, Counted, PeriodKind, Trust
from costguard.guards.rules.common import Mode

NOW = datetime(2026, 11, 21, 12, tzinfo=timezone.utc)
MONTH = NOW.replace(day=1, hour=0)
DAY, HOUR = timedelta(days=1), timedelta(hours=1)
BILLED = NOW.replace(hour=0) - DAY  # complete up to the 20th: 19 days of November


def line(start: datetime, cost: str = "100", **changes: Any) -> SpendLine:
    currency = changes.pop("currency", "USD")
    amount = Money(Decimal(cost), currency)
    ordinary = SpendLine(
        "aws", "111122223333", "111122223333", "", "", ChargeCategory.USAGE, start, start + DAY, amount, amount
    )
    return replace(ordinary, **changes)


def bill(cost: str = "100", **changes: Any) -> Bill:
    """A hundred a day since September, complete to the 20th."""
    start = MONTH - timedelta(days=61)
    days = (BILLED - start).days
    ordinary = Bill("aws", tuple(line(start + n * DAY, cost) for n in range(days)), start, BILLED, NOW, "test")
    return replace(ordinary, **changes)


def machine(hourly: str | None = "2", since: datetime = MONTH - 30 * DAY, **changes: Any) -> Metered:
    price = None if hourly is None else usd(hourly)
    return replace(Metered(ref("i-1"), since, None, price, "g5.xlarge"), **changes)


def facts(*bills: Bill, metered: tuple[Metered, ...] = (), **changes: Any) -> ScopeFacts:
    of_metered = known(metered)
    ordinary = ScopeFacts(bills or (bill(),), (), metered, MONTH - 30 * DAY, of_metered, of_metered)
    return replace(ordinary, **changes)


def rule(monthly: str = "5000", **changes: Any) -> BudgetRule:
    return replace(
        BudgetRule("all", Mode.ENFORCE, SpendScope(), BudgetPeriod(), usd(monthly), digest="digest"), **changes
    )


def status(given: ScopeFacts | None = None, of: BudgetRule | None = None, *rates: ExchangeRate) -> BudgetStatus:
    return assess(of or rule(), given or facts(), rates, NOW)


def doubts(found: BudgetStatus) -> list[ReasonCode]:
    return [doubt.code for doubt in found.doubts]


def test_spent_is_billed_accrued_and_estimated_each_shown() -> None:
    """19 days at 100, then 36 hours of a machine at 2 and of everything else at 100 a day."""
    found = status(facts(metered=(machine(),)))
    assert found.spent is not None
    assert found.spent.billed == usd("1900")
    assert found.spent.accrued == usd("72")
    assert found.spent.estimated == usd("150")
    assert found.spent.total == usd("2122")
    assert doubts(found) == []


def test_exactly_all_of_it_is_spent() -> None:
    found = status(of=rule("2050"))
    assert found.share == 1
    assert judge(found).verdict is Verdict.VIOLATION
    assert judge(status(of=rule("2050.01"))).verdict is Verdict.COMPLIANT


def test_the_finding_is_about_the_scope() -> None:
    found = judge(status())
    assert (found.guard, found.check, found.subject) == ("budget", "spent", ScopeRef("all"))


def test_how_long_until_all_of_it_is_spent() -> None:
    found = status(facts(metered=(machine("10"),)), rule("5000"))
    assert found.spent is not None
    assert found.burn_per_hour is not None
    left = (5000 - found.spent.total.amount) / found.burn_per_hour.amount
    assert found.full_in is not None
    assert abs(found.full_in / HOUR - float(left)) < 0.01


def test_a_bill_never_read_is_no_zero() -> None:
    blind = facts(metered=(machine(),), bills=(), unread=("aws",))
    found = status(replace(blind, bills=()))
    assert found.spent is not None
    assert found.spent.accrued == usd(str(2 * 24 * 20 + 2 * 12))
    assert doubts(found)[0] is ReasonCode.BILL_UNREAD
    assert judge(found).verdict is Verdict.UNMEASURED
    assert found.standing is not None
    assert found.standing.share is None


def test_a_bill_that_says_nothing_yet_is_no_zero_either() -> None:
    found = status(facts(bill(lines=(), complete_until=None)))
    assert doubts(found)[0] is ReasonCode.BILL_UNREAD
    assert age_of_bill(found, NOW) is None


def test_an_old_bill_is_doubted_from_the_allowed_age_on() -> None:
    trust = Trust(bill_not_older_than=36 * HOUR, estimated_share=Decimal(1))
    assert doubts(status(of=rule(trust=trust))) == []
    strict = replace(trust, bill_not_older_than=36 * HOUR - timedelta(seconds=1))
    assert doubts(status(of=rule(trust=strict))) == [ReasonCode.BILL_STALE]


def test_of_two_clouds_the_older_bill_counts() -> None:
    old = replace(bill("10"), cloud="tencent", complete_until=NOW - 5 * DAY)
    found = status(facts(bill(), old))
    assert doubts(found)[0] is ReasonCode.BILL_STALE
    assert age_of_bill(found, NOW) == 120


def test_too_much_of_it_estimated_is_doubted() -> None:
    lean = Trust(estimated_share=Decimal("0.05"))
    assert doubts(status(of=rule(trust=lean))) == [ReasonCode.BILL_ESTIMATED]


def test_a_machine_without_a_price_is_doubted_and_not_free() -> None:
    found = status(facts(metered=(machine(None),)))
    assert doubts(found) == [ReasonCode.BURN_UNPRICED]
    assert found.doubts[0].facts["machines"] == 1


@pytest.mark.parametrize("what", ["inventory", "accounts", "regions"])
def test_what_could_not_be_seen_running_is_doubted(what: str) -> None:
    gap = Gap(Shard("aws", "111122223333", "us-east-1"), what, GapKind.DENIED, "denied")
    assert doubts(status(facts(gaps=(gap,)))) == [ReasonCode.BURN_INCOMPLETE]


def test_a_bill_that_could_not_be_read_now_is_doubted_though_an_older_one_serves() -> None:
    gap = Gap(Shard("aws", "111122223333"), "bill", GapKind.THROTTLED, "slow down")
    found = status(facts(gaps=(gap,)))
    assert doubts(found) == [ReasonCode.BILL_UNREAD]
    assert found.spent is not None
    assert found.spent.billed == usd("1900")


YUAN = tuple(line(MONTH + n * DAY, "70", cloud="alibaba", currency="CNY") for n in range(19))
CHINA = Bill("alibaba", YUAN, MONTH, BILLED, NOW, "test")


def test_a_currency_without_a_rate_is_left_out_named_and_doubted() -> None:
    found = status(facts(bill(), CHINA))
    assert ReasonCode.CURRENCY_WITHOUT_RATE in doubts(found)
    assert found.parts[0].unconverted == (Money(Decimal(1330), "CNY"),)
    assert found.spent is not None
    assert found.spent.billed == usd("1900")


def test_with_a_dated_rate_currencies_add_up() -> None:
    rate = ExchangeRate("USD", "CNY", Decimal(7), date(2026, 1, 1))
    found = status(facts(bill(), CHINA), None, rate)
    assert found.spent is not None
    assert found.spent.billed == usd("2090")
    assert ReasonCode.CURRENCY_WITHOUT_RATE not in doubts(found)


def test_a_rate_that_begins_later_converts_nothing_before() -> None:
    rate = ExchangeRate("USD", "CNY", Decimal(7), date(2026, 11, 10))
    found = status(facts(bill(), CHINA), None, rate)
    assert ReasonCode.CURRENCY_WITHOUT_RATE in doubts(found)


FIRST = ExchangeRate("USD", "CNY", Decimal(7), date(2026, 11, 1))  # dated the first of the month
IN_CHINA = BudgetPeriod(zone="Asia/Shanghai")
CHINAS_DAYS = replace(
    CHINA,
    lines=tuple(line(MONTH - 8 * HOUR + n * DAY, "70", cloud="alibaba", currency="CNY") for n in range(19)),
    complete_until=BILLED - 8 * HOUR,
)


@pytest.mark.parametrize(
    ("zone", "period"), [("Asia/Shanghai", IN_CHINA), ("Asia/Shanghai", BudgetPeriod()), ("", IN_CHINA)]
)
def test_a_rate_dated_the_first_holds_for_the_bills_first_day(zone: str, period: BudgetPeriod) -> None:
    """It begins at 16:00 of the day before in UTC. A bill of an older ledger names no zone: the budget's counts."""
    found = status(facts(replace(CHINAS_DAYS, zone=zone)), rule(period=period), FIRST)
    assert ReasonCode.CURRENCY_WITHOUT_RATE not in doubts(found)
    assert found.parts[0].unconverted == ()
    assert found.rates == (FIRST,)


def test_a_rate_dated_the_first_holds_for_the_hours_of_another_days_bill_that_are_in_the_month() -> None:
    """China's month begins within the last of October of a bill that counts in UTC."""
    found = status(facts(bill(zone="UTC")), rule(amount=Money(Decimal(35000), "CNY"), period=IN_CHINA), FIRST)
    assert ReasonCode.CURRENCY_WITHOUT_RATE not in doubts(found)
    assert found.spent is not None
    assert (
        found.spent.billed.rounded() == Money(Decimal(7 * 1900 + 7 * 100) - 7 * 100 * Decimal(2) / 3, "CNY").rounded()
    )


def test_a_rate_dated_the_first_holds_for_what_runs_in_the_first_hours_of_the_bills_month() -> None:
    """At two in the morning of the first in China it is still the month before in UTC."""
    now = MONTH - 6 * HOUR
    yuan = replace(machine(), ref=replace(ref(), cloud="alibaba"), hourly=Money(Decimal(7), "CNY"))
    given = facts(
        replace(CHINAS_DAYS, lines=(), complete_until=MONTH - 32 * HOUR, zone="Asia/Shanghai"), metered=(yuan,)
    )
    found = assess(rule(period=IN_CHINA), given, (FIRST,), now)
    assert ReasonCode.CURRENCY_WITHOUT_RATE not in doubts(found)
    assert found.spent is not None
    assert found.spent.accrued == usd("2")


def since(days: int, cost: str = "100") -> Bill:
    """A bill that nothing is on but the last days; the first of them is a part of one."""
    return bill(lines=tuple(line(BILLED - n * DAY, cost) for n in range(1, days + 2)))


@pytest.mark.parametrize(("days", "told"), [(1, False), (2, False), (6, False), (7, True), (20, True)])
def test_a_forecast_from_too_few_days_is_none(days: int, told: bool) -> None:  # noqa: FBT001 - a table's column
    found = status(facts(since(days)))
    assert (found.forecast is not None) is told
    assert found.parts[0].rest is not None
    assert found.parts[0].rest.is_young is (days < 3)


def test_machines_alone_are_forecast_from_their_first_hour() -> None:
    """They are metered: what they burn is known from no bill."""
    found = status(facts(bill(lines=()), metered=(machine("2", since=NOW - HOUR),)))
    assert found.forecast is not None
    assert found.forecast.expected.rounded() == usd(str(2 + 2 * 228)).rounded()


def test_steps_wait_while_what_is_new_has_no_rate() -> None:
    assert ReasonCode.BILL_ESTIMATED in doubts(status(facts(since(2))))
    assert ReasonCode.BILL_ESTIMATED not in doubts(status(facts(since(7))))


def test_credits_and_tax_count_only_where_asked_refunds_always() -> None:
    extra = (
        line(MONTH, "-500", charge_category=ChargeCategory.CREDIT),
        line(MONTH, "300", charge_category=ChargeCategory.TAX),
        line(MONTH, "-100", charge_category=ChargeCategory.ADJUSTMENT),
    )
    given = facts(bill(lines=(*bill().lines, *extra)))

    def billed(**counts: Any) -> Money:
        spent = status(given, rule(counted=Counted(**counts))).spent
        assert spent is not None
        return spent.billed

    assert billed() == usd("1800")
    assert billed(credits=True) == usd("1300")
    assert billed(tax=True) == usd("2100")


def test_a_purchase_is_spread_unless_the_invoice_is_asked_for() -> None:
    bought = line(MONTH, "1200", charge_category=ChargeCategory.PURCHASE, effective_cost=usd("0"))
    used = line(MONTH, "0", effective_cost=usd("40"), pricing_category=PricingCategory.COMMITTED)
    given = facts(bill(lines=(*bill().lines, bought, used)))
    effective, invoice = status(given).spent, status(given, rule(counted=Counted(CostBasis.BILLED))).spent
    assert effective is not None
    assert invoice is not None
    assert (effective.billed, invoice.billed) == (usd("1940"), usd("3100"))


def test_a_negative_month_is_no_share_below_zero_that_breaks_anything() -> None:
    refund = line(MONTH, "-9000", charge_category=ChargeCategory.ADJUSTMENT)
    found = status(facts(bill(lines=(*bill().lines, refund))))
    assert found.share < 0
    assert judge(found).verdict is Verdict.COMPLIANT


def test_spend_no_inventoried_machine_explains_is_named_with_its_amount() -> None:
    notebook = line(MONTH, "250", service_name="AmazonSageMaker", accelerated=True, instance_type="ml.g5.xlarge")
    found = status(facts(bill(lines=(*bill().lines, notebook)), metered=(machine(),)))
    (missing,) = found.parts[0].unexplained
    assert (missing.service_name, missing.money) == ("AmazonSageMaker", usd("250"))


def test_what_was_metered_is_held_against_the_bill_and_corrects_the_next_reckoning() -> None:
    """By list the machine costs 48 a day, the bill says 36: a quarter less."""
    of_machine = tuple(line(MONTH + n * DAY, "36", accelerated=True, instance_type="g5.xlarge") for n in range(19))
    found = status(facts(bill(lines=of_machine), metered=(machine(),)))
    learnt = found.parts[0].reconciled
    assert learnt is not None
    assert (learnt.factor, learnt.error) == (Decimal("0.7500"), Decimal("0.3333"))
    assert found.spent is not None
    assert found.spent.accrued == usd("54.0000")


def test_a_dated_budget_outside_its_dates_says_nothing() -> None:
    past = BudgetPeriod(PeriodKind.DATED, first=date(2026, 1, 1), last=date(2026, 1, 31))
    found = status(of=rule(period=past))
    assert found.period is None
    assert found.standing is None
    assert judge(found).verdict is Verdict.EXEMPT


def test_a_period_in_another_zone_takes_its_part_of_the_first_day() -> None:
    """November begins in Shanghai when 8 of 24 hours of October 31 (UTC) are left."""
    spent = status(of=rule(period=BudgetPeriod(zone="Asia/Shanghai"))).spent
    assert spent is not None
    assert spent.billed.amount == pytest.approx(Decimal(1900) + Decimal(100) / 3)


def test_a_month_without_any_charge_is_zero_when_the_bill_says_so() -> None:
    found = status(facts(bill(lines=())))
    assert found.share == 0
    assert found.spent is not None
    assert found.spent.total == usd("0")
    assert judge(found).verdict is Verdict.COMPLIANT


def test_nothing_is_listed_for_a_scope_of_nothing() -> None:
    empty = ScopeFacts((), (), (), None, MeteredFleet((), ()), MeteredFleet((), ()))
    found = status(empty)
    assert found.share == 0
