"""What people and scripts are shown of budgets: every figure with its source, in both languages."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from importlib.resources import files
from typing import Any

import jsonschema
import pytest
from rich.console import Console
from tests.builders import SHARD, ref, usd

from costguard.cli.output import print_table
from costguard.domain.money import Bill, ChargeCategory, ExchangeRate, Money, SpendLine, SpendScope
from costguard.domain.resources import Gap, GapKind
from costguard.estimates.burn import Metered, known
from costguard.estimates.traces import by_machine
from costguard.guards.budget.alerts import AlertKind
from costguard.guards.budget.judge import BudgetStatus, ScopeFacts, assess
from costguard.guards.budget.rules import BudgetPeriod, BudgetRule, BudgetStep, Counted, PeriodKind, StepKind
from costguard.guards.rules.common import Mode
from costguard.report.budget.story import budget_story
from costguard.report.budget.to_json import budgets_json
from costguard.report.budget.views import (
    BLOCKS,
    PLAIN_BLOCKS,
    AlertTold,
    BudgetReport,
    bar,
    budgets_closing,
    budgets_table,
    sparkline,
)
from costguard.report.tables import Tone
from costguard.report.words.sentences import Language

SCHEMA = json.loads(files("costguard.report").joinpath("schemas/budgets.schema.json").read_text(encoding="utf-8"))
LANGUAGES = pytest.mark.parametrize("language", list(Language))
NOW = datetime(2026, 11, 21, 12, tzinfo=timezone.utc)
MONTH = NOW.replace(day=1, hour=0)
DAY = timedelta(days=1)
BILLED = NOW.replace(hour=0) - DAY
MACHINE = Metered(ref("i-1"), MONTH - 30 * DAY, None, usd("2"), "g5.xlarge")
STEP = BudgetStep(Decimal("0.4"), StepKind.STOP_IDLE)


def line(day: int, cost: str = "100", category: ChargeCategory = ChargeCategory.USAGE, **changes: Any) -> SpendLine:
    """One charge, `day` days after the month's first."""
    start, amount = MONTH + day * DAY, Money(Decimal(cost), changes.pop("currency", "USD"))
    ordinary = SpendLine("aws", "111122223333", "111122223333", "", "", category, start, start + DAY, amount, amount)
    return replace(ordinary, **changes)


def bill(*more: SpendLine, **changes: Any) -> Bill:
    """A hundred a day since September, twice as much on Sundays, complete to the 20th."""
    days = range(-60, (BILLED - MONTH).days)
    usage = (line(day, "200" if (MONTH + day * DAY).weekday() == 6 else "100") for day in days)
    return replace(Bill("aws", (*usage, *more), MONTH - 60 * DAY, BILLED, NOW, "aws-cost-explorer"), **changes)


def status(*bills: Bill, of: BudgetRule | None = None, rates: Any = (), **changes: Any) -> BudgetStatus:
    metered = changes.pop("metered", (MACHINE,))
    facts = ScopeFacts(bills or (bill(),), (), metered, MONTH - 30 * DAY, known(metered), known(metered))
    return assess(of or rule(), replace(facts, **changes), rates, NOW)


def rule(monthly: str = "5000", **changes: Any) -> BudgetRule:
    ordinary = BudgetRule(
        "research", Mode.ENFORCE, SpendScope(), BudgetPeriod(), usd(monthly), steps=(STEP,), digest="digest"
    )
    return replace(ordinary, **changes)


def report(of: BudgetStatus | None = None, **changes: Any) -> BudgetReport:
    told = AlertTold(AlertKind.ACTUAL, Decimal("0.5"), "Budget research: 50 % …", "slack:#gpu", NOW - DAY)
    ordinary = BudgetReport(of or status(), NOW, (told, replace(told, at=None)), (ref("i-1"),), {ref("i-1"): "trainer"})
    return replace(ordinary, **changes)


def story(one: BudgetReport, language: Language = Language.EN) -> str:
    return "\n".join(text for section in budget_story(one, language) for text in (section.title, *section.lines))


DATED = BudgetPeriod(PeriodKind.DATED, first=date(2027, 1, 1), last=date(2027, 1, 31))
SURGING = (MACHINE, Metered(ref("i-2"), NOW - timedelta(hours=1), None, usd("500"), "p5.48xlarge"))
GAP = Gap(SHARD, "bill", GapKind.DENIED, "AccessDenied", "grant ce:GetCostAndUsage")
STATES = {
    "ordinary": status(),
    "outside its dates": status(of=rule(period=DATED)),
    "nothing read": status(bills=(), unread=("aws",), gaps=(GAP,)),
    "a silent bill": status(bill(lines=(), complete_until=None)),
    "another currency": status(bill(line(1, "70", currency="CNY"))),
    "a rate": status(
        bill(line(1, "70", currency="CNY")), rates=(ExchangeRate("USD", "CNY", Decimal("7.1"), date(2026, 1, 1)),)
    ),
    "a surge": status(metered=SURGING),
    "spent": status(of=rule("2000")),
}
WITH_STATES = pytest.mark.parametrize("of", STATES.values(), ids=list(STATES))


@LANGUAGES
@WITH_STATES
def test_every_state_has_words_and_a_row_and_no_hole_in_them(of: BudgetStatus, language: Language) -> None:
    one = report(of)
    table = budgets_table([one], language)
    said = "\n".join((*table.rows[0], *budgets_closing([one], language), story(one, language)))

    assert not any(mark in said for mark in "[]{}?")
    assert "research" in said


@LANGUAGES
@WITH_STATES
def test_every_state_is_as_the_schema_says(of: BudgetStatus, language: Language) -> None:
    told = json.loads(json.dumps(budgets_json([report(of)], NOW, language)))

    jsonschema.validate(told, SCHEMA)


def test_every_figure_of_the_json_is_text_and_exact() -> None:
    def numbers(value: Any) -> list[Any]:
        inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        return [value] if isinstance(value, float) else [each for one in inner for each in numbers(one)]

    told: Any = budgets_json([report()], NOW)

    assert numbers(told) == []
    (one,) = told["budgets"]
    assert (
        one["spent"]["total"] == {"amount": "2422.0", "currency": "USD"} or one["spent"]["total"]["currency"] == "USD"
    )
    assert one["clouds"][0]["source"] == "aws-cost-explorer"
    assert (one["clouds"][0]["complete_until"], one["clouds"][0]["bill_age_hours"]) == ("2026-11-20T00:00:00Z", "36")
    assert one["steps_in_force"] == [{"at_percent": "40", "step": "stop_idle"}]


def test_the_parts_that_are_told_add_up_to_the_total() -> None:
    one = status()
    assert one.spent is not None
    assert sum((each.money.amount for each in one.machines), Decimal(0)) == one.spent.accrued.amount
    usage = [each.money for each in one.parts[0].categories if each.counts]
    assert usage == [one.spent.billed]


def test_what_counts_and_what_is_left_out_is_told_with_its_sum() -> None:
    credit, tax = line(2, "-30", ChargeCategory.CREDIT), line(2, "19", ChargeCategory.TAX)
    refund = line(3, "-50", ChargeCategory.ADJUSTMENT)

    said = story(report(status(bill(credit, tax, refund))))
    counting = story(report(status(bill(credit, tax, refund), of=rule(counted=Counted(credits=True, tax=True)))))

    assert "counted: usage 2,200.00 USD, refunds and corrections -50.00 USD" in said
    assert "left out, as the policy says: tax 19.00 USD, credits -30.00 USD" in said
    assert "left out" not in counting


def test_a_story_names_machines_rates_calibration_and_what_was_told() -> None:
    rate = ExchangeRate("USD", "CNY", Decimal("7.1"), date(2026, 1, 1))
    billed = [line(day, "46", resource_id="i-1", accelerated=True) for day in range(10, 19)]
    said = story(report(status(bill(*billed, line(1, "71", currency="CNY")), rates=(rate,))))

    assert "trainer, g5.xlarge: 36 h at 2.00 USD × 0.9583 = 69.00 USD" in said
    assert "1 USD = 7.1 CNY, since 2026-01-01" in said
    assert "multiplied by 0.9583" in said
    assert "Budget research: 50 % …: slack:#gpu, 2026-11-20 12:00 UTC" in said
    assert "Budget research: 50 % …: slack:#gpu, not delivered yet" in said
    assert "(in force)" in said
    assert "Under way: trainer." in said


def test_each_doubt_is_told_with_what_mends_it() -> None:
    said = story(report(STATES["another currency"]))
    assert "exchange_rates" in said
    assert "Not added up, for no rate was given: 70.00 CNY." in said


def test_a_rate_that_is_younger_than_the_history_is_enough_for_the_period() -> None:
    """The bill is read for weeks before the period, to forecast: those days are not the period's."""
    old = bill(*(line(day, "71", currency="CNY") for day in range(-40, 19)))
    young = ExchangeRate("USD", "CNY", Decimal("7.1"), MONTH.date())

    found = status(old, rates=(young,))

    assert found.doubts == ()
    assert found.parts[0].unconverted == ()
    assert [found.history[0].day, found.history[0].spent] == [MONTH.date(), usd("210")]


def test_machines_are_added_up_as_the_accrued_part_is() -> None:
    """Overlapping stretches count once, a rate each; what has no price is not in it."""
    first = replace(MACHINE, since=NOW - 3 * DAY, until=NOW - DAY)
    again = replace(MACHINE, since=NOW - 2 * DAY, hourly=usd("3"))
    unpriced = Metered(ref("i-9"), NOW - DAY, None, None)

    found = by_machine((first, again, unpriced), NOW - 3 * DAY, NOW)

    assert [(str(each.hours), str(each.hourly), str(each.money)) for each in found] == [
        ("48", "2.00 USD", "96.00 USD"),
        ("24", "3.00 USD", "72.00 USD"),
    ]


def test_a_sparkline_has_one_character_a_day_and_the_most_is_the_highest() -> None:
    week = [usd(amount) for amount in ("0", "1", "2", "3", "4", "5", "5")]
    assert sparkline(week) == "▁▂▃▅▇▇▇"
    assert sparkline(week, plain=True).isascii()
    assert sparkline([usd("0")] * 3) == BLOCKS[0] * 3
    assert sparkline([usd("-5"), usd("1")], plain=True) == PLAIN_BLOCKS[0] + PLAIN_BLOCKS[-1]
    assert sparkline([]) == ""
    assert len(sparkline([usd("1")] * 60)) == 14


def test_a_bar_is_full_only_when_all_of_it_is_spent() -> None:
    assert bar(Decimal("0.9999")) == "█████████░"
    assert bar(Decimal(1)) == bar(Decimal(3)) == "██████████"
    assert bar(Decimal("-0.2"), plain=True) == ".........."


@pytest.mark.parametrize(("monthly", "tone"), [("5000", Tone.GOOD), ("2600", Tone.WARNING), ("2000", Tone.BAD)])
def test_a_terminal_shows_how_grave_a_share_is(monthly: str, tone: Tone, capfd: pytest.CaptureFixture[str]) -> None:
    table = budgets_table([report(status(of=rule(monthly)))])
    assert table.tones == (tone,)

    print_table(Console(width=200, force_terminal=True, color_system="standard", no_color=False), table)

    assert "\x1b[" in capfd.readouterr().out


def test_a_narrow_page_tells_budgets_one_by_one(capfd: pytest.CaptureFixture[str]) -> None:
    print_table(Console(width=70), budgets_table([report()]))

    out = capfd.readouterr().out
    assert " research\n" in out
    assert "     ████░░░░░░ 48.4 % · By day ▃▃▇▃▃▃▃▃▃▇▃▃▃▃ ·" in out
    assert all(len(text) <= 70 for text in out.splitlines())
