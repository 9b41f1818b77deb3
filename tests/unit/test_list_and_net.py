"""List price and price after discounts, side by side, each said to be what it is: plans, notices and the scan."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from tests.builders import NOW, finding, instance, ref, shard_facts, usd

from costguard.domain.actions import Action, Saving, Verb
from costguard.domain.findings import InstanceFact, Usage, Verdict
from costguard.domain.money import HourlyRate, NetRate, NetSource
from costguard.planning import Plan
from costguard.report.notices.machines import NoticeFacts, NoticeKind, notice
from costguard.report.plan.to_json import plan_json
from costguard.report.plan.views import plan_tables
from costguard.report.waste.day_one import WasteReport, waste_report
from costguard.report.waste.to_json import waste_json
from costguard.report.waste.views import waste_summary, waste_tables
from costguard.report.words.sentences import Language, net_source, phrase, price, saving_lines

LIST = HourlyRate(usd("10"), "aws-pricing", "2026-11-23")
MEASURED = replace(LIST, net=NetRate(usd("7.5"), NetSource.BILL, "2026-11-22", Decimal("0.25"), Decimal("0.3")))
DECLARED = replace(LIST, net=NetRate(usd("7"), NetSource.DISCOUNT, "2026-01-01", Decimal("0.3")))
OWN = HourlyRate(usd("6"), "policy", "2026-11-23", NetRate(usd("6"), NetSource.PRICE, "2026-11-23"))


@pytest.mark.parametrize(
    ("rate", "english", "chinese"),
    [
        (LIST, "10.00 USD list", "目录价 10.00 USD"),
        (MEASURED, "10.00 USD list, 7.50 USD net", "目录价 10.00 USD，折后价 7.50 USD"),
        (DECLARED, "10.00 USD list, 7.00 USD net", "目录价 10.00 USD，折后价 7.00 USD"),
        (OWN, "6.00 USD net", "折后价 6.00 USD"),
        (None, "price unknown", "价格未知"),
    ],
)
def test_a_price_says_which_it_is(rate: HourlyRate | None, english: str, chinese: str) -> None:
    assert price(rate) == english
    assert price(rate, Language.ZH) == chinese


def test_a_net_price_says_how_it_is_known() -> None:
    assert MEASURED.net is not None
    assert DECLARED.net is not None
    assert net_source(MEASURED.net) == "25 % off, by the bill up to 2026-11-22; the policy declares 30 %"
    assert net_source(DECLARED.net) == "30 % off, declared by the policy since 2026-01-01"


def told(rate: HourlyRate, language: Language = Language.EN) -> str:
    facts = NoticeFacts(NoticeKind.WARNED, ref("i-1"), None, rate=rate, saving=Saving(rate.money, price=rate))
    return notice(facts, language).text


def test_a_notice_names_list_and_net() -> None:
    assert (
        "10.00 USD an hour, 240.00 USD a day at list price (aws-pricing, 2026-11-23); net of discounts "
        "7.50 USD an hour, 180.00 USD a day (25 % off, by the bill up to 2026-11-22; the policy declares 30 %)"
    ) in told(MEASURED)
    assert "目录价每小时 10.00 USD" in told(MEASURED, Language.ZH)
    assert "折后每小时 7.50 USD" in told(MEASURED, Language.ZH)


def test_a_notice_without_a_known_discount_names_the_list_price_alone() -> None:
    assert "240.00 USD a day at list price (aws-pricing, 2026-11-23)" in told(LIST)
    assert "net of discounts" not in told(LIST)


def test_a_price_of_the_policy_is_not_called_a_list_price() -> None:
    assert "at list price" not in told(OWN)
    assert "6.00 USD an hour, 144.00 USD a day, by the price of the policy" in told(OWN)


def test_a_saving_names_list_and_net() -> None:
    assert saving_lines(Saving(usd("10"), price=MEASURED), Verb.STOP) == (
        phrase("saves_list", amount="10.00 USD", net="7.50 USD"),
    )
    assert saving_lines(Saving(usd("10"), price=LIST), Verb.STOP) == ("saves 10.00 USD an hour at list price",)


def plan(rate: HourlyRate) -> Plan:
    step = Action(
        action_id="a",
        decision_id="d",
        verb=Verb.STOP,
        subject=ref(),
        resource=ref(),
        run_epoch="epoch-1",
        case_id="case-1",
        rung=1,
        rule="research",
        rule_digest="digest",
        saving=Saving(rate.money, price=rate),
    )
    found = replace(finding(), rate=rate)
    return Plan(
        "idle_gpu", "run", NOW, "", findings=(found,), transitions=(), due=(step,), held=(), rehearsed=(), gaps=()
    )


def test_a_plan_shows_list_and_net_in_table_and_json() -> None:
    (findings, due, *_) = plan_tables(plan(MEASURED))
    assert "10.00 USD list, 7.50 USD net" in findings.rows[0]
    assert any("7.50 USD net of discounts" in cell for cell in due.rows[0])

    told: Any = plan_json(plan(MEASURED), plan_hash="")
    (found,), (step,) = told["findings"], told["due"]
    assert found["hourly_cost"] == found["hourly_list_cost"] == {"amount": "10", "currency": "USD"}
    assert found["effective_price"] == {
        "hourly_effective_cost": {"amount": "7.5", "currency": "USD"},
        "source": "bill",
        "as_of": "2026-11-22",
        "discount": "0.25",
        "declared_discount": "0.3",
    }
    assert step["saving"]["stops_billing_effective"] == {"amount": "7.50", "currency": "USD"}


def test_json_of_an_unknown_discount_is_null_and_of_an_own_price_has_no_list_price() -> None:
    (at_list,) = plan_json(plan(LIST), plan_hash="")["findings"]
    (own,) = plan_json(plan(OWN), plan_hash="")["findings"]

    assert at_list["effective_price"] is None
    assert own["hourly_list_cost"] is None
    assert own["effective_price"] is not None


def waste(*rates: HourlyRate | None) -> WasteReport:
    usage = Usage(168.0, 168, 100, 0)
    facts = [
        InstanceFact(instance(f"i-{n}"), rate, (), timedelta(0), signals_read=True, usage=usage)
        for n, rate in enumerate(rates)
    ]
    found = [replace(finding(each.instance, Verdict.VIOLATION), rate=each.rate, owner="nlp") for each in facts]
    return waste_report([shard_facts(*facts)], found, since=NOW - timedelta(days=7), until=NOW)


def test_waste_is_shown_at_list_price_and_net_and_what_has_no_net_is_counted() -> None:
    report = waste(MEASURED, LIST)

    assert report.total.idle_cost == (usd("2000"),)
    assert report.total.idle_cost_net == (usd("750.00"),)
    assert report.total.without_net == 1
    assert any("net of discounts it is 750.00 USD, without 1 idle machine" in line for line in waste_summary(report))
    owners = waste_tables(report)[0]
    column = [each.key for each in owners.columns].index("idle_cost_net")
    assert owners.rows[0][column] == "750.00 USD"
    told = waste_json(report)
    assert told["total"]["idle_cost_effective"] == [{"amount": "750.00", "currency": "USD"}]
    assert told["total"]["without_effective"] == 1


def test_waste_without_any_known_discount_is_said_to_be_at_list_price() -> None:
    report = waste(LIST, None)

    assert phrase("waste_list_price") in waste_summary(report)
    assert report.total.idle_cost_net == ()
