"""A budget's forecast has what is known to fall due, on the budget's cost basis, and its story says how it is known."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date, datetime, timezone
from decimal import Decimal
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.builders import fact, instance, policy, ref, usd
from tests.scenario.stage import DAY, START, Stage, idle_machine
from tests.world_ports.spend import WorldSpend
from tests.world_ports.translate import to_world

from costguard.domain.money import Bill, ChargeCategory, ExchangeRate, Money, PricingCategory, SpendLine, SpendScope
from costguard.domain.resources import Billing
from costguard.engine.guards.budgets.look import look
from costguard.estimates.burn import known
from costguard.estimates.commitments import CommitmentEvidence, PrepaidTerm, terms_in
from costguard.estimates.forecast import RUN_RATE
from costguard.guards.budget.judge import BudgetStatus, ScopeFacts, assess
from costguard.guards.budget.rules import BudgetPeriod, BudgetRule, CostBasis, Counted
from costguard.guards.rules.common import Mode
from costguard.report.budget.due import SHOWN
from costguard.report.budget.notices import forecast_words
from costguard.report.budget.story import budget_story
from costguard.report.budget.to_json import budgets_json
from costguard.report.budget.views import BudgetReport
from costguard.report.words.sentences import Language

SCHEMA = json.loads(files("costguard.report").joinpath("schemas/budgets.schema.json").read_text(encoding="utf-8"))
NOW = datetime(2026, 11, 11, 12, tzinfo=timezone.utc)
MONTH = NOW.replace(day=1, hour=0)
COMPLETE = MONTH + 9 * DAY
ENDS = MONTH + 24 * DAY
BILLED, EFFECTIVE = Counted(CostBasis.BILLED), Counted()


def line(start: datetime, cost: str = "100", **changes: Any) -> SpendLine:
    amount = Money(Decimal(cost), changes.pop("currency", "USD"))
    account = "111122223333"
    ordinary = SpendLine("aws", account, account, "", "", ChargeCategory.USAGE, start, start + DAY, amount, amount)
    return replace(ordinary, **changes)


def fee(start: datetime, cost: str = "600", **changes: Any) -> SpendLine:
    currency = changes.get("currency", "USD")
    return line(
        start,
        cost,
        charge_category=ChargeCategory.PURCHASE,
        effective_cost=Money(Decimal(0), currency),
        pricing_category=PricingCategory.COMMITTED,
        **changes,
    )


def fees(day: int, cost: str = "600", **changes: Any) -> tuple[SpendLine, ...]:
    """Of September and October."""
    return tuple(fee(datetime(2026, month, day, tzinfo=timezone.utc), cost, **changes) for month in (9, 10))


def term(
    name: str = "i-1", *, renew: bool | None = True, hourly: str | None = "1", ends: datetime = ENDS
) -> PrepaidTerm:
    return PrepaidTerm(ref(name), "g5.xlarge", ends, renew, None if hourly is None else usd(hourly))


def status(
    *more: SpendLine,
    terms: tuple[PrepaidTerm, ...] = (),
    counted: Counted = BILLED,
    rates: tuple[ExchangeRate, ...] = (),
) -> BudgetStatus:
    """A hundred a day since September, complete to the 10th."""
    since = MONTH - 61 * DAY
    usage = tuple(line(since + n * DAY) for n in range((COMPLETE - since).days))
    bill = Bill("aws", (*usage, *more), since, COMPLETE, NOW, "test")
    rule = BudgetRule(
        "research", Mode.ENFORCE, SpendScope(), BudgetPeriod(), usd("5000"), counted=counted, digest="digest"
    )
    nothing = known(())
    return assess(rule, ScopeFacts((bill,), (), (), None, nothing, nothing, terms=terms), rates, NOW)


def ends_at(of: BudgetStatus) -> tuple[str, str, str]:
    assert of.forecast is not None
    ahead = of.forecast
    return str(ahead.low), str(ahead.expected), str(ahead.high)


def report(of: BudgetStatus) -> BudgetReport:
    return BudgetReport(of, NOW, names={ref("i-1"): "trainer"})


def story(of: BudgetStatus, language: Language = Language.EN) -> str:
    return "\n".join(said for section in budget_story(report(of), language) for said in section.lines)


def test_on_the_invoice_a_fee_and_a_renewal_are_in_the_forecast() -> None:
    """3,000 of use; 600 of a fee on the 20th, and 730 of a term that renews itself on the 25th."""
    assert ends_at(status()) == ("2,642.56 USD", "3,000.00 USD", "3,357.44 USD")
    assert ends_at(status(*fees(20), terms=(term(),)))[1] == "4,330.00 USD"


def test_a_confidence_is_only_named_where_it_was_measured_and_with_what_was_found() -> None:
    tried = status()
    assert tried.forecast is not None
    untried = replace(tried, forecast=replace(tried.forecast, method=RUN_RATE, backtest_error=None, tested=0, held=0))
    held = f"{tried.forecast.held} of {tried.forecast.tested}"

    said = forecast_words(tried, Language.EN)
    assert "at the end, with 80 % confidence between 2,642.56 USD and 3,357.44 USD; week shape × last 7 days" in said
    assert f"held {held} past tries" in said
    assert "80% 置信度下" in forecast_words(tried, Language.ZH)
    assert "confidence" not in forecast_words(untried, Language.EN)
    assert "at the end, between 2,642.56 USD and" in forecast_words(untried, Language.EN)
    assert "at no measured confidence" in story(untried)
    assert "置信度下" not in forecast_words(untried, Language.ZH)


def test_on_the_effective_cost_both_are_in_the_days_already() -> None:
    found = status(*fees(20), terms=(term(),), counted=EFFECTIVE)

    assert ends_at(found) == ends_at(status())
    assert found.forecast is not None
    assert [(one.ground, one.spread) for one in found.forecast.commitments] == [(CommitmentEvidence.TERM, True)]


def test_what_may_be_renewed_is_in_the_upper_bound_alone() -> None:
    bought = fee(ENDS - 31 * DAY, "700", instance_type="g5.xlarge")

    found = status(bought, terms=(term(renew=None),))

    assert ends_at(found) == ("2,642.56 USD", "3,000.00 USD", "4,057.44 USD")


def test_a_price_nobody_knows_is_a_doubt_of_the_forecast_and_of_nothing_else() -> None:
    """It keeps no step from beginning: what is spent is as sure as it was."""
    found = status(terms=(term(hourly=None), term("i-2", renew=None)))

    assert "without 2 that fall due at a price nobody knows" in forecast_words(found, Language.EN)
    assert "不含 2 项" in forecast_words(found, Language.ZH)
    assert found.doubts == status().doubts
    assert "without" not in forecast_words(status(terms=(term(),)), Language.EN)


def test_the_rate_of_a_fee_is_among_the_rates_used() -> None:
    rate = ExchangeRate("USD", "CNY", Decimal(7), date(2026, 11, 1))

    found = status(*fees(20, "700", currency="CNY"), rates=(rate,))

    assert ends_at(found)[1] == "3,100.00 USD"
    assert found.rates == (rate,)


EVERYTHING = status(
    *fees(20, service_name="AmazonSageMaker", accelerated=True),
    *fees(21, "700", currency="CNY"),
    *(fee(COMPLETE - n * DAY, "24", sub_account_id="444455556666") for n in range(1, 8)),
    fee(datetime(2025, 11, 28, tzinfo=timezone.utc), "9000", sub_account_id="777788889999"),
    fee(ENDS - 31 * DAY, "700", instance_type="g5.xlarge"),
    terms=(
        term(),
        replace(term("i-2"), instance_type="p5.48xlarge"),
        replace(term("i-3", renew=None, hourly=None), instance_type="p4d.24xlarge"),
    ),
)


def test_each_is_told_with_how_it_is_known() -> None:
    lines = story(EVERYTHING).splitlines()
    told = [each for each in lines if each.startswith(("Falls due", "May fall due"))]

    assert told == [
        (
            "Falls due each day from 2026-11-10 00:00 UTC on, 21 times: what was bought on aws in account 444455556666,"
            " 504.00 USD together; the bill of aws had it on each day of the week up to 2026-11-09."
        ),
        (
            "Falls due 2026-11-20 00:00 UTC: AmazonSageMaker in account 111122223333, 600.00 USD;"
            " the bill of aws had it on 2026-09-20, 2026-10-20."
        ),
        (
            "Falls due 2026-11-21 00:00 UTC: what was bought on aws in account 111122223333,"
            " 700.00 CNY, for which no rate was given, in no figure here;"
            " the bill of aws had it on 2026-09-21, 2026-10-21."
        ),
        (
            "Falls due 2026-11-25 00:00 UTC: trainer, 700.00 USD;"
            " its prepaid term ends then and renews itself, the price is what the bill had on 2026-10-25."
        ),
        (
            "Falls due 2026-11-25 00:00 UTC: i-2, 730.00 USD;"
            " its prepaid term ends then and renews itself, the price is the list price of a month."
        ),
        (
            "May fall due 2026-11-25 00:00 UTC: i-3, at a price nobody knows, in no figure here;"
            " its prepaid term ends then, and whether it renews itself is not told."
        ),
        (
            "May fall due 2026-11-28 00:00 UTC, counted in the upper bound alone: what was bought on aws in account"
            " 777788889999, 9,000.00 USD; the bill of aws had it on 2025-11-28."
        ),
    ]


def test_what_is_spread_is_told_as_spread() -> None:
    assert "trainer, spread over its term as it is now;" in story(status(terms=(term(),), counted=EFFECTIVE))


def test_of_many_the_rest_is_told_with_its_sum() -> None:
    found = status(terms=tuple(term(f"i-{number}") for number in range(SHOWN + 3)))

    assert "And 3 more that fall due: 2,190.00 USD." in story(found)
    assert "And 3 more that fall due." in story(
        status(terms=tuple(term(f"i-{number}", hourly=None) for number in range(SHOWN + 3)))
    )


def test_in_the_other_language_each_has_words_without_a_hole() -> None:
    assert not any(mark in story(EVERYTHING, Language.ZH) for mark in "[]{}?")
    assert "到期应付：trainer，700.00 USD" in story(EVERYTHING, Language.ZH)


def test_scripts_are_told_each_with_its_source() -> None:
    told = json.loads(json.dumps(budgets_json([report(EVERYTHING)], NOW)))

    jsonschema.validate(told, SCHEMA)
    found = told["budgets"][0]["forecast"]["commitments"]
    assert [(one["known_from"], one["cost"] and one["cost"]["amount"]) for one in found] == [
        ("charged_before", "504"),
        ("charged_before", "600"),
        ("charged_before", None),
        ("term", "700.0000"),
        ("term", "730"),
        ("term", None),
        ("charged_before", "9000"),
    ]
    assert found[3] == {
        "known_from": "term",
        "id": str(ref("i-1")),
        "name": "trainer",
        "cloud": "aws",
        "sub_account_id": "111122223333",
        "due": "2026-11-25T00:00:00Z",
        "times": 1,
        "cost": {"amount": "700.0000", "currency": "USD"},
        "billed_cost_before": {"amount": "700.0000", "currency": "USD"},
        "certain": True,
        "spread": False,
        "list_price": False,
        "charged_before": ["2026-10-25"],
    }


# from an inventory to a forecast

PREPAID = instance("i-1", billing=Billing.PREPAID, paid_until=ENDS, auto_renew=True, tags={"team": "research"})
RESEARCH = SpendScope(tags=(("team", "research"),))


@pytest.mark.parametrize(
    ("changes", "held"),
    [
        ({}, True),
        ({"billing": Billing.ON_DEMAND}, False),
        ({"paid_until": None}, False),
        ({"tags": {"team": "vision"}}, False),
    ],
)
def test_only_prepaid_machines_of_the_scope_have_terms(changes: dict[str, Any], held: bool) -> None:  # noqa: FBT001
    found = terms_in([fact(replace(PREPAID, **changes))], RESEARCH)

    assert len(found) == held
    assert all((one.ends, one.auto_renew, one.instance_type) == (ENDS, True, PREPAID.instance_type) for one in found)


@pytest.mark.parametrize(
    ("scope", "held"),
    [
        (SpendScope(clouds=("aws",), accounts=("111122223333",), regions=("us-east-1",)), True),
        (SpendScope(clouds=("tencent",)), False),
        (SpendScope(accounts=("9",)), False),
        (SpendScope(regions=("eu-west-1",)), False),
    ],
)
def test_a_term_is_in_the_scopes_that_its_machine_is_in(scope: SpendScope, held: bool) -> None:  # noqa: FBT001
    assert bool(terms_in([fact(PREPAID)], scope)) is held


def test_a_term_has_the_list_price_where_there_is_one() -> None:
    priced, unpriced = terms_in([fact(PREPAID), fact(PREPAID, rate=None)], RESEARCH)

    assert (priced.hourly, unpriced.hourly) == (usd("1.00"), None)


def test_a_prepaid_machines_renewal_is_seen_by_a_look(tmp_path: Path) -> None:
    """Terms of 30 days: the last one began on February 10 and ends on March 12. Whether it is renewed is not told."""
    spec = idle_machine("paid", cloud="tencent", billing=to_world(Billing.PREPAID), prepaid_until=START + 10 * DAY)
    spec = replace(spec, hourly=to_world(Money(Decimal(1), "CNY")), launched_at=START - 80 * DAY, disks=())
    rule = BudgetRule(
        "all",
        Mode.ENFORCE,
        SpendScope(),
        BudgetPeriod(),
        Money(Decimal(5000), "CNY"),
        counted=BILLED,
        digest="digest",
    )
    stage = Stage(tmp_path, spec, under=replace(policy(), idle_gpu=(), budgets=(rule,)))
    try:
        world = replace(
            stage.world(), guard="budget", spends=dict.fromkeys(stage.clouds, WorldSpend(stage.cloud, stage.clock))
        )
        (found,) = look(world, remember=False).statuses
    finally:
        stage.close()

    assert found.forecast is not None
    (one,) = found.forecast.commitments
    assert (one.ground, one.due.date(), one.sure) == (CommitmentEvidence.TERM, date(2026, 3, 12), False)
    assert one.money == Money(Decimal("432.0000"), "CNY")
    assert found.forecast.high.amount >= found.forecast.expected.amount + 432
