"""What `explain` prints adds up to the cent: total, clouds, kinds of charges and machines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import date, datetime, timedelta, timezone
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from math import prod
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.builders import usd

from costguard.domain.money import Bill, ChargeCategory, ExchangeRate, Money, SpendLine, SpendScope
from costguard.domain.refs import ResourceRef
from costguard.estimates.burn import Metered, known
from costguard.guards.budget.judge import BudgetStatus, ScopeFacts, assess
from costguard.guards.budget.rules import BudgetPeriod, BudgetRule
from costguard.guards.rules.common import Mode
from costguard.report.budget.story import StorySection, budget_story
from costguard.report.budget.sums import divided, factors_that_matter
from costguard.report.budget.to_json import budgets_json
from costguard.report.budget.views import BudgetReport
from costguard.report.words.sentences import Language

NOW = datetime(2026, 11, 21, 12, 34, 56, tzinfo=timezone.utc)
MONTH = datetime(2026, 11, 1, tzinfo=timezone.utc)
SUNDAY = 6
DAY, HOUR = timedelta(days=1), timedelta(hours=1)
CENT = Decimal("0.01")
RATES = (ExchangeRate("USD", "CNY", Decimal("7.1234"), date(2026, 1, 1)),)
MONEY = re.compile(r"(-?[\d,]+\.\d+) (USD|CNY)")
CLOUDS = {"aws": "USD", "alibaba": "CNY", "tencent": "CNY"}


def machine(cloud: str, name: str, hourly: Decimal, ran: timedelta) -> Metered:
    where = {"aws": "us-east-1", "alibaba": "cn-hangzhou", "tencent": "ap-guangzhou"}[cloud]
    one = ResourceRef(cloud, "111122223333", where, "instance", name)
    return Metered(one, NOW - ran, None, Money(hourly, CLOUDS[cloud]), "gpu")


def charge(
    cloud: str, day: int, amount: Decimal, category: ChargeCategory = ChargeCategory.USAGE, **changes: Any
) -> SpendLine:
    start, money = MONTH + day * DAY, Money(amount, CLOUDS[cloud])
    ordinary = SpendLine(cloud, "111122223333", "111122223333", "", "", category, start, start + DAY, money, money)
    return replace(ordinary, **changes)


def weeks(a_day: Decimal) -> list[SpendLine]:
    """What goes on with less on Sundays, and machines that are billed at another price than by list."""
    found = []
    for day in range(-28, 19):
        sunday = (MONTH + day * DAY).weekday() == SUNDAY
        found.append(charge("aws", day, a_day / 3 if sunday else a_day))
        found.append(charge("alibaba", day, a_day * 7, accelerated=True, instance_type="gpu"))
    return found


def found(
    lines: list[SpendLine], machines: list[Metered], silent: frozenset[str], currency: str = "USD"
) -> BudgetStatus:
    bills = tuple(
        Bill(
            cloud, tuple(one for one in lines if one.cloud == cloud), MONTH - 60 * DAY, MONTH + 19 * DAY, NOW, "a bill"
        )
        for cloud in CLOUDS
        if cloud not in silent
    )
    rule = BudgetRule("research", Mode.ENFORCE, SpendScope(), BudgetPeriod(), Money(Decimal(5000), currency))
    seen = known(machines)
    facts = ScopeFacts(bills, tuple(sorted(silent)), tuple(machines), MONTH - 30 * DAY, seen, seen)
    return assess(rule, facts, RATES, NOW)


def told(status: BudgetStatus, language: Language = Language.EN) -> tuple[StorySection, ...]:
    return budget_story(BudgetReport(status, NOW), language)


def amounts(line: str) -> list[Decimal]:
    return [Decimal(number.replace(",", "")) for number, _ in MONEY.findall(line)]


def under(sections: tuple[StorySection, ...], title: str) -> tuple[str, ...]:
    return next((one.lines for one in sections if one.title == title), ())


def the(lines: tuple[str, ...], mark: str) -> Decimal:
    """The amount that the line with this mark begins with, zero where there is none."""
    return next((amounts(line)[0] for line in lines if re.search(mark, line)), Decimal(0))


def adds_up(status: BudgetStatus) -> Iterator[tuple[str, Decimal, Decimal]]:
    """Every sum that is printed with what its parts come to."""
    sections = told(status)
    total, *parts = amounts(under(sections, "Spent so far")[0])
    yield "total", total, sum(parts, Decimal(0))
    billed, accrued, estimated, *ahead = parts
    clouds = {one.title: one.lines for one in sections if one.title.startswith("On ")}
    for name, whole, mark in (
        ("billed", billed, "billed up to"),
        ("accrued", accrued, "accrued for"),
        ("estimated", estimated, "estimated for"),
        ("ahead", sum(ahead, Decimal(0)), "ahead: "),
    ):
        yield name, whole, sum((the(lines, mark) for lines in clouds.values()), Decimal(0))
    for name, lines in clouds.items():
        kinds = [line for line in lines if line.startswith("counted: ")]
        if kinds:
            each = [amounts(kind)[-1] for kind in kinds[0].split(", ") if "." in kind]
            yield name, the(lines, "billed up to"), sum(each, Decimal(0))
    machines = under(sections, "Accrued, machine by machine")
    yield "machines", accrued, sum((amounts(line)[-1] for line in machines), Decimal(0))


def products(status: BudgetStatus) -> Iterator[tuple[str, Decimal, Decimal]]:
    """What hours, prices and factors multiply to, and what is printed as their product."""
    sections = told(status)
    for line in under(sections, "Accrued, machine by machine"):
        if not line.startswith("and "):
            left = line.rpartition(": ")[2].partition(" = ")[0]
            time, rest = left.split(" h at ")
            price, *factors = rest.split(" × ")
            yield (
                line,
                prod((Decimal(time), amounts(price)[0], *map(Decimal, factors)), start=Decimal(1)),
                amounts(line)[-1],
            )
    for one in sections:
        for line in (each for each in one.lines if " estimated for everything else" in each):
            money, rate = amounts(line)
            factors = re.findall(r"(?:for|×) ([\d.]+)", line)
            yield line, prod(map(Decimal, factors), start=rate), money


small = st.decimals(Decimal("0.0001"), Decimal(900), places=4)
categories = st.sampled_from((ChargeCategory.USAGE, ChargeCategory.USAGE, ChargeCategory.PURCHASE))
charges = st.builds(charge, st.sampled_from(tuple(CLOUDS)), st.integers(-25, 20), small, categories)
refunds = st.builds(
    charge,
    st.sampled_from(tuple(CLOUDS)),
    st.integers(0, 18),
    small.map(Decimal.__neg__),
    st.just(ChargeCategory.ADJUSTMENT),
)
machines = st.lists(
    st.tuples(
        st.sampled_from(tuple(CLOUDS)),
        st.decimals(Decimal("0.001"), Decimal(60), places=4),
        st.timedeltas(timedelta(minutes=1), 40 * DAY),
    ),
    max_size=14,
).map(lambda given: [machine(cloud, f"i-{n}", price, ran) for n, (cloud, price, ran) in enumerate(given)])


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.one_of(charges, refunds), max_size=40),
    machines,
    st.frozensets(st.sampled_from(tuple(CLOUDS)), max_size=2),
    st.sampled_from(("USD", "CNY")),
    st.none() | small,
)
def test_what_is_printed_adds_up_to_the_cent(
    lines: list[SpendLine], metered: list[Metered], silent: frozenset[str], currency: str, steady: Decimal | None
) -> None:
    status = found([*lines, *(weeks(steady) if steady is not None else ())], metered, silent, currency)

    assert [one for one in adds_up(status) if one[1] != one[2]] == []
    assert [one for one in products(status) if abs(round(one[1], 2) - one[2]) > CENT] == []
    assert status.spent is not None
    assert amounts(under(told(status), "Spent so far")[0])[0] == status.spent.total.rounded().amount


@given(st.lists(st.decimals(-1000, 1000, places=6), min_size=1, max_size=30), st.booleans())
def test_a_sum_is_divided_into_parts_rounded_up_or_down(exact: list[Decimal], up: bool) -> None:  # noqa: FBT001
    total = sum(exact, Decimal(0)).quantize(CENT, rounding=ROUND_CEILING if up else ROUND_FLOOR)

    parts = [money.amount for money in divided(Money(total, "USD"), [Money(each, "USD") for each in exact])]

    assert sum(parts) == total
    for each, part in zip(exact, parts, strict=True):
        assert part in {each.quantize(CENT, rounding=ROUND_FLOOR), each.quantize(CENT, rounding=ROUND_CEILING)}


def test_nothing_is_divided_into_nothing() -> None:
    assert divided(usd("0"), []) == ()


@pytest.mark.parametrize(
    ("time", "price", "factors", "shown"),
    [
        ("33", "0.805", (), ("33", "0.805")),  # 26.56 is not 33 × 0.80
        ("33", "0.80", (), ("33", "0.8")),
        ("0.5", "0.0107", ("0.9583",), ("0.5", "0.0107", "0.9583")),
        ("33.3333333", "12.24", (), ("33.333", "12.24")),
    ],
)
def test_as_many_digits_are_shown_as_matter(
    time: str, price: str, factors: tuple[str, ...], shown: tuple[str, ...]
) -> None:
    found = factors_that_matter(Decimal(time), Decimal(price), *map(Decimal, factors))
    assert tuple(f"{one.normalize():f}" for one in found) == shown


def test_an_exchanged_price_is_shown_as_it_is_listed_with_its_rate() -> None:
    status = found([], [machine("alibaba", "i-1", Decimal("5.705"), 33 * HOUR)], frozenset())
    (line,) = under(told(status), "Accrued, machine by machine")
    assert line == "i-1, gpu: 33 h at 5.705 CNY × 0.1404 = 26.43 USD"
    (chinese,) = under(told(status, Language.ZH), "应计明细（按机器）")
    assert chinese == "i-1，gpu：33 小时，每小时 5.705 CNY × 0.1404，共 26.43 USD"


def test_a_kind_of_another_currency_is_shown_with_what_it_counts_as() -> None:
    lines = [charge("alibaba", 3, Decimal("71.23"), ChargeCategory.PURCHASE)]
    said = under(told(found(lines, [], frozenset())), "On alibaba")
    assert "counted: purchases 71.23 CNY (counted as 10.00 USD)" in said


def test_the_json_stays_exact() -> None:
    metered = [machine("aws", f"i-{n}", Decimal("0.3333"), 10 * HOUR) for n in range(3)]
    status = found([], metered, frozenset())
    answer: Any = budgets_json([BudgetReport(status, NOW)], NOW)
    (one,) = answer["budgets"]
    assert [Decimal(each["cost"]["amount"]) for each in one["machines"]] == [Decimal("3.333")] * 3
    assert Decimal(one["spent"]["accrued"]["amount"]) == Decimal("9.999")
