"""Where a promise about budgets is easily broken: an amount that changes, a month that is over, a day, a first day."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tests.builders import policy, usd
from tests.scenario.budget_stage import HALF, HOUR, MIDNIGHT, STOP_IDLE, BudgetStage, machine, research
from tests.scenario.stage import CLOUDS, DAY, START
from tests.world_ports.translate import to_world

from cloudstand.world import workload as does
from cloudstand.world.billing import day_offset
from cloudstand.world.money import ChargeCategory, Money
from cloudstand.world.records import OtherCharge
from costguard.domain.findings import Verdict
from costguard.domain.money import ExchangeRate, SpendScope
from costguard.domain.resources import InstanceState
from costguard.engine.guards.budgets.look import look
from costguard.engine.guards.budgets.notifying import budget_reports
from costguard.engine.ledger.notices import NoticeState, OutboxNotice
from costguard.guards.budget.rules import BudgetPeriod, BudgetRule, PeriodKind

on_every_cloud = pytest.mark.parametrize("cloud", CLOUDS)


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Any]:
    opened: list[BudgetStage] = []

    def build(*fleet: Any, budgets: tuple[BudgetRule, ...] = (), **more: Any) -> BudgetStage:
        under = replace(policy(), idle_gpu=(), budgets=budgets or (quiet(),), **more)
        opened.append(BudgetStage(tmp_path, *fleet, under=under))
        return opened[-1]

    yield build
    for each in opened:
        each.close()


def quiet(monthly: str = "1000", **changes: Any) -> BudgetRule:
    """The budget, without forecasts and surges."""
    return research(monthly, **{"forecast_alert_at": (), "surge_alert": False, **changes})


def now_under(month: BudgetStage, *budgets: BudgetRule) -> None:
    month.policy = replace(month.policy, budgets=budgets)


@on_every_cloud
def test_a_lowered_budget_tells_how_much_of_it_is_spent(stage: Any, cloud: str) -> None:
    """48 a day from March 1: 50 % of 1,000 is told on the 11th; then it is 500, and the same money is all of it."""
    month = stage(machine(cloud=cloud, does=does.busy()))
    month.until(11 * DAY)
    assert [title[17:21] for title in month.mailbox.titles] == ["50 %"]
    now_under(month, quiet("500"))
    month.until(12 * DAY)
    assert month.mailbox.titles[1:] == ["Budget research: 100 % of 500.00 USD is spent"]
    month.until(25 * DAY)
    assert len(month.mailbox.titles) == 2


@on_every_cloud
def test_a_raised_budget_tells_nothing_anew_of_the_same_money(stage: Any, cloud: str) -> None:
    month = stage(machine(cloud=cloud, does=does.busy()), budgets=(quiet("500"),))
    month.until(11 * DAY)
    last = "Budget research: 100 % of 500.00 USD is about to be spent"
    assert month.mailbox.titles[-1] == last
    told = len(month.mailbox.titles)
    now_under(month, quiet("1000"))
    month.until(14 * DAY)
    assert len(month.mailbox.titles) == told
    shown = budget_reports(month.surroundings(), month.runs[-1].look)[0].told
    assert [one.title for one in shown] == [last]
    month.until(18 * DAY)
    assert [title[:24] for title in month.mailbox.titles[told:]] == ["Budget research: 80 % of"]


def test_a_renamed_budget_tells_nothing_anew(stage: Any) -> None:
    month = stage(machine(does=does.busy()))
    month.until(12 * DAY)
    now_under(month, quiet(name="vision"))
    month.until(14 * DAY)
    assert [title[7:21] for title in month.mailbox.titles] == ["research: 50 %"]
    month.until(18 * DAY)
    assert [title[7:19] for title in month.mailbox.titles[1:]] == ["vision: 80 %"]


def test_two_budgets_of_one_scope_each_tell_their_own(stage: Any) -> None:
    """All of the smaller one is half of the greater one: what one has told is no news of the other."""
    month = stage(machine(does=does.busy()), budgets=(quiet("500", name="soft"), quiet("1000", name="hard")))
    month.until(12 * DAY)
    assert {title[7:19] for title in month.mailbox.titles} == {
        "soft: 50 % o",
        "soft: 80 % o",
        "soft: 100 % ",
        "hard: 50 % o",
    }


@pytest.mark.parametrize("zone", ["Asia/Shanghai", "UTC"])
@pytest.mark.parametrize("cloud", ["alibaba", "tencent"])
def test_a_rate_dated_the_first_holds_for_the_bills_first_day(stage: Any, cloud: str, zone: str) -> None:
    """48 dollars a day, billed as 336 yuan by the days of China: all of 400 dollars is spent on the 9th."""
    one = replace(machine(cloud=cloud), hourly=Money(Decimal(14), "CNY"))
    rate = ExchangeRate("USD", "CNY", Decimal(7), date(2026, 3, 1))
    spending = quiet("400", period=BudgetPeriod(zone=zone), steps=(STOP_IDLE,), alert_at=(Decimal(1),))
    month = stage(one, budgets=(spending,), exchange_rates=(rate,))
    done = month.until(9 * DAY)
    (status,) = done.look.statuses
    assert [doubt.code.value for doubt in status.doubts] == []
    assert [part.unconverted for part in status.parts] == [()]
    assert [title for title in month.mailbox.titles if "100 %" in title] != []
    month.until(9 * DAY + 6 * HOUR, every=HOUR)
    assert month.state_of("trainer") is InstanceState.STOPPED


def one_off(month: BudgetStage, amount: str, day: int, **more: Any) -> None:
    """Something of this team that is charged once, for this day of March by the bill's own calendar."""
    spec = month.cloud.fleet[0]
    start = MIDNIGHT.replace(day=1) + (day - 1) * DAY - day_offset(spec.cloud)
    ordinary = OtherCharge(
        spec.cloud,
        spec.account,
        spec.region,
        "storage",
        ChargeCategory.USAGE,
        start,
        start + DAY,
        to_world(usd(amount)),
        tags={"team": "research"},
    )
    month.cloud.charge(replace(ordinary, **more))


@on_every_cloud
def test_what_happens_once_in_a_new_scope_is_no_burn_and_what_is_really_spent_is_told(stage: Any, cloud: str) -> None:
    """600 of 1,000 on the 4th, 230 on the 16th, 200 on the 24th, and nothing else."""
    elsewhere = replace(machine(cloud=cloud), tags={"team": "product"})
    month = stage(elsewhere, budgets=(research(),))
    month.until(3 * DAY, every=HALF)
    one_off(month, "600", 4)
    ahead = []
    for _ in range(10):
        (status,) = month.until(month.clock.now() + HALF - START, every=HALF).look.statuses
        assert (status.spent.estimated.amount, status.burn_per_hour.amount) == (0, 0)
        ahead.append(status.forecast)
    assert None in ahead, "six days tell nothing of what will go on"
    assert [one for one in ahead if one is not None and one.expected.amount > 600] == []
    month.until(15 * DAY, every=HALF)
    one_off(month, "230", 16)
    month.until(23 * DAY, every=HALF)
    one_off(month, "200", 24)
    month.until(28 * DAY, every=HALF)
    ends = [title[17:] for title in month.mailbox.titles]
    assert ends == [f"{share} % of 1,000.00 USD is spent" for share in (50, 80, 100)]


@on_every_cloud
def test_what_only_an_estimate_crossed_is_told_again_once_it_is_so(stage: Any, cloud: str) -> None:
    """50 a day: 80 % of 1,200 is estimated on the 20th. Then 300 come back, and on the 27th it is really spent."""
    elsewhere = replace(machine(cloud=cloud), tags={"team": "product"})
    month = stage(elsewhere, budgets=(quiet("1200", alert_at=(Decimal("0.8"),)),))
    for day in range(-25, 32):
        one_off(month, "50", day)
    month.until(19 * DAY, every=HALF)
    assert month.mailbox.titles == ["Budget research: 80 % of 1,200.00 USD is about to be spent"]
    assert "should this estimate fall back" in month.mailbox.messages[0].text
    one_off(month, "-300", 10, service="refund", category=ChargeCategory.ADJUSTMENT)
    month.until(22 * DAY, every=HALF)
    assert len(month.mailbox.titles) == 1
    done = month.until(28 * DAY, every=HALF)
    assert month.mailbox.titles[1:] == ["Budget research: 80 % of 1,200.00 USD is spent"]
    told = budget_reports(month.surroundings(), done.look)[0].told
    assert [one.title for one in told] == month.mailbox.titles


@on_every_cloud
def test_what_only_an_estimate_crossed_and_then_is_so_is_told_once(stage: Any, cloud: str) -> None:
    elsewhere = replace(machine(cloud=cloud), tags={"team": "product"})
    month = stage(elsewhere, budgets=(quiet("1200", alert_at=(Decimal("0.8"),)),))
    for day in range(-25, 32):
        one_off(month, "50", day)
    month.until(25 * DAY, every=HALF)
    assert month.mailbox.titles == ["Budget research: 80 % of 1,200.00 USD is about to be spent"]


APRIL = timedelta(days=30)  # the first of it, after the start
LATE = "Budget research: 100 % of 1,000.00 USD was spent in 2026-03"


def charged_late(month: BudgetStage, cloud: str, amount: str = "400", ends: int = 1) -> None:
    """A charge of the 30th of March, or as many days before its end, that is put on the bill now."""
    end = MIDNIGHT.replace(day=31) + DAY - (ends - 1) * DAY - day_offset(cloud)
    account, region = month.cloud.fleet[0].account, month.cloud.fleet[0].region
    service, category = "storage", ChargeCategory.USAGE
    tags = {"team": "research"}
    month.cloud.charge(
        OtherCharge(cloud, account, region, service, category, end - DAY, end, to_world(usd(amount)), tags=tags)
    )


@on_every_cloud
def test_what_is_billed_late_still_tells_of_the_month_it_was_spent_in_and_stops_nothing(stage: Any, cloud: str) -> None:
    """744 in March, and 400 of the 30th that the bill shows on the third of April."""
    spending = quiet(steps=(STOP_IDLE,), alert_at=(Decimal("0.5"), Decimal("0.8"), Decimal(1)))
    month = stage(machine(hourly="1", cloud=cloud), budgets=(spending,))
    month.until(APRIL + 2 * DAY)
    assert [title[17:21] for title in month.mailbox.titles] == ["50 %"]
    charged_late(month, cloud, ends=2)
    done = month.until(APRIL + 4 * DAY)
    assert month.mailbox.titles[1:] == [LATE]
    said = month.mailbox.messages[-1].text
    assert "2026-03, over since 2026-04-01" in said
    assert "1,144.00 USD of 1,000.00 USD: 114.4 %" in said
    assert "What follows" not in said
    assert done.look.statuses[0].share < Decimal("0.2")
    month.until(APRIL + 10 * DAY)
    assert len(month.mailbox.titles) == 2
    assert month.state_of("trainer") is InstanceState.RUNNING


@on_every_cloud
def test_the_month_before_is_judged_once_more_after_it_is_final_and_then_left_alone(stage: Any, cloud: str) -> None:
    closes = {"aws": 8, "alibaba": 4, "tencent": 5}[
        cloud
    ]  # days that a month's charges come after its end, by the documents
    month = stage(machine(hourly="1", cloud=cloud, does=does.busy()))
    month.until(APRIL + (closes - 1) * DAY)
    charged_late(month, cloud)
    month.until(APRIL + (closes + 2) * DAY)
    assert month.mailbox.titles[1:] == [LATE]
    charged_late(month, cloud, "9000")
    month.policy = replace(month.policy, budgets=(quiet(alert_at=(Decimal(1), Decimal("1.2"))),))
    month.until(APRIL + 14 * DAY, every=HALF)
    assert [title for title in month.mailbox.titles if "2026-03" in title] == [LATE]
    assert month.runs[-1].look.before == ()


def test_an_estimate_that_fell_back_after_the_month_and_a_new_name_is_told_again_once_it_is_so(stage: Any) -> None:
    """1,550 in March: all of 1,480 is estimated on the 30th. Then the name changes, 300 come back, and come again."""
    month = stage(replace(machine(), tags={"team": "product"}), budgets=(quiet("1480", alert_at=(Decimal(1),)),))
    for day in range(-25, 32):
        one_off(month, "50", day)
    month.until(APRIL - HALF, every=HALF)
    assert month.mailbox.titles == ["Budget research: 100 % of 1,480.00 USD is about to be spent"]
    now_under(month, quiet("5000", name="vision", alert_at=(Decimal(1),)))
    one_off(month, "-300", 10, service="refund", category=ChargeCategory.ADJUSTMENT)
    month.until(APRIL + 3 * DAY, every=HALF)
    assert len(month.mailbox.titles) == 1
    one_off(month, "300", 20)
    month.until(APRIL + 5 * DAY, every=HALF)
    assert month.mailbox.titles[1:] == ["Budget vision: 100 % of 1,480.00 USD was spent in 2026-03"]


def test_the_month_before_has_the_amount_and_the_name_it_had(stage: Any) -> None:
    month = stage(machine(hourly="1", does=does.busy()))
    month.until(APRIL - DAY)
    now_under(month, quiet("5000", name="vision"), quiet("100", name="new", covers=SpendScope(clouds=("aws",))))
    month.until(APRIL + DAY)
    charged_late(month, "aws")
    month.until(APRIL + 3 * DAY)
    assert [title for title in month.mailbox.titles if "2026-03" in title] == [LATE.replace("research", "vision")]


def test_a_budget_with_dates_is_judged_after_its_last_day(stage: Any) -> None:
    dates = BudgetPeriod(PeriodKind.DATED, "UTC", date(2026, 3, 1), date(2026, 3, 31))
    month = stage(machine(hourly="1", does=does.busy()), budgets=(quiet(period=dates),))
    month.until(APRIL + 2 * DAY)
    charged_late(month, "aws")
    month.until(APRIL + 3 * DAY)
    assert month.mailbox.titles[1:] == [LATE.replace("2026-03", "2026-03-01..2026-03-31")]


def test_looking_without_remembering_writes_nothing_of_periods(stage: Any) -> None:
    month = stage(machine(does=does.busy()))
    look(month.surroundings(), remember=False)
    assert list(month.memory.store.query("budget_period")) == []


def test_a_freeze_is_not_begun_by_the_month_before(stage: Any) -> None:
    """Nor anything else that a budget does: only its alerts know of the period before."""
    month = stage(machine(hourly="1", does=does.busy()))
    month.until(APRIL + 2 * DAY)
    charged_late(month, "aws")
    done = month.until(APRIL + 3 * DAY)
    ((_, before),) = done.look.before
    assert before.share > 1
    assert before.standing is None
    assert (before.burn_per_hour, before.forecast, before.surge) == (None, None, None)
    assert [finding.verdict for finding in done.findings] == [Verdict.COMPLIANT]


def old_notice(share: str, amount: str, title: str, **changes: Any) -> OutboxNotice:
    """As ledgers had it: its id knew the budget's name and the money, but not the share."""
    money = format((Decimal(share) * Decimal(amount)).normalize(), "f")
    words = ("research", "2026-03", "actual", money, "USD")
    alert_id = "budget-" + hashlib.sha256("\n".join(words).encode()).hexdigest()[:24]
    moment = changes.pop("created_at")
    ordinary = OutboxNotice(
        f"{alert_id}/slack:#gpu", "", "budget/spent/scope:research", "slack:#gpu", title, title, moment
    )
    return replace(ordinary, **{"state": NoticeState.DELIVERED, "delivered_at": moment, **changes})


@pytest.mark.parametrize(
    "title",
    ["Budget research: 50 % of 1,000.00 USD is spent", "预算 research：已用到 1,000.00 USD 的 50%"],
)
def test_what_an_older_program_told_is_not_told_anew(stage: Any, title: str) -> None:
    month = stage(machine(does=does.busy()))
    month.memory.outbox.enqueue(old_notice("0.5", "1000", title, created_at=month.clock.now()))
    done = month.until(12 * DAY)
    assert month.mailbox.titles == []
    assert [one.title for one in budget_reports(month.surroundings(), done.look)[0].told] == [title]
    now_under(month, quiet("500"))
    month.until(13 * DAY)
    assert month.mailbox.titles == ["Budget research: 100 % of 500.00 USD is spent"]


def test_what_an_older_program_told_before_a_raise_is_not_told_anew(stage: Any) -> None:
    month = stage(machine(does=does.busy()))
    told = old_notice("1", "500", "Budget research: 100 % of 500.00 USD is spent", created_at=month.clock.now())
    month.memory.outbox.enqueue(told)
    month.until(12 * DAY)
    assert month.mailbox.titles == []
