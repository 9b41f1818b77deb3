"""Budgets as people write them: what they mean, and every mistake with its place and what to write instead."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest

from costguard.domain.money import ExchangeRate, Money, SpendScope
from costguard.domain.refs import CLOUDS
from costguard.guards.budget.rules import (
    BudgetPeriod,
    BudgetRule,
    BudgetStep,
    CostBasis,
    Counted,
    PeriodKind,
    StepKind,
    Trust,
)
from costguard.guards.rules.common import Consent, Limits, Mode, Selector
from costguard.guards.rules.idle import SHIPPED_BOUNDS
from costguard.policy.budget.remarks import BILLED_IN, lies_within
from costguard.policy.documents.loader import check_policy, load_policy
from costguard.policy.model.policy import Policy
from costguard.policy.model.terms import settings_terms, with_digest
from costguard.policy.remarks import remarks
from costguard.policy.syntax.yaml12 import read_yaml
from costguard.policy.syntax.yaml_nodes import plain
from costguard.ports import PolicyText
from costguard.report.budget.rules import budget_rule_json, budget_rules_table
from costguard.report.words.sentences import Language

NOW = datetime(2026, 11, 20, 9, tzinfo=timezone.utc)
RULE = "idle_gpu: [{name: m}]\n"
TOLD = 'notify: {default: "slack:#a"}\n'
FULL = """
version: 1
mode: enforce
calendar: {zone: Asia/Shanghai, hours: "10:00-18:00"}
accounts: [{cloud: aws, id: "111122223333", regions: all}]
notify: {default: "mailto:gpu-costs@example.com"}
exchange_rates:
  - {from: USD, to: CNY, rate: 7.1, since: 2026-11-01}
  - {from: USD, to: CNY, rate: "7.05", since: 2026-10-01}
priority_classes:
  - {name: dev, applies_when_all: {tags: {env: dev}}}
  - {name: batch, applies_when_all: {tags: {workload: "batch*"}}}
launch_freezes:
  - {name: no-new-gpus, cloud: aws, via: organisation, policy: p-a1b2c3d4, target: "111122223333"}
idle_gpu: [{name: m}]
budgets:
  - name: research
    mode: observe
    covers: {clouds: [aws-cn, aws], accounts: ["111122223333"], regions: [us-east-1, cn-north-1], tags: {team: research, a: b}}
    monthly: 5000 USD
    zone: Europe/Berlin
    alert_at: [80%, 50%]
    forecast_alert_at: [110%, 100%]
    surge_alert: false
    counts: {cost: billed, credits: true, tax: true}
    trust: {bill_not_older_than: 72h, estimated_at_most: 10%}
    at:
      110%: [{stop: {classes: [dev, batch], wait: 8h}}]
      100%: [warn, {stop_idle: {idle_for: 2h, wait: 1h}}]
      120%: [{freeze: {of: [no-new-gpus]}}]
    tell: ["slack:#research", "mailto:finops@example.com", "https://hooks.example.com/costguard"]
    safety: {actions_per_day: 3, fleet_share_per_day: 50%, hourly_cost_stopped_per_day: [80 USD], local_disk: keep}
"""  # noqa: E501 - one line as people write it


def policy(text: str, **others: str) -> Policy:
    files = {f"{name.replace('__', '/')}.yaml": other for name, other in others.items()}
    return load_policy(PolicyText({"costguard.yaml": text, **files}, "r1"))


def only(text: str, head: str = "version: 1\nmode: enforce\n") -> BudgetRule:
    (budget,) = policy(f"{head}{RULE}budgets:\n  - {{{text}}}\n").budgets
    return budget


def test_every_key_of_a_budget_is_read() -> None:
    (budget,) = policy(FULL).budgets

    assert budget == BudgetRule(
        name="research",
        mode=Mode.OBSERVE,
        covers=SpendScope(
            clouds=("aws", "aws-cn"),
            accounts=("111122223333",),
            regions=("cn-north-1", "us-east-1"),
            tags=(("a", "b"), ("team", "research")),
        ),
        period=BudgetPeriod(PeriodKind.MONTHLY, "Europe/Berlin"),
        amount=Money(Decimal(5000), "USD"),
        alert_at=tuple(Decimal(share) for share in ("0.5", "0.8", "1", "1.1", "1.2")),
        forecast_alert_at=(Decimal(1), Decimal("1.1")),
        steps=(
            BudgetStep(
                Decimal(1),
                StepKind.STOP_IDLE,
                timedelta(hours=1),
                idle=replace(SHIPPED_BOUNDS, lasting=timedelta(hours=2)),
            ),
            BudgetStep(Decimal("1.1"), StepKind.STOP_CLASSES, timedelta(hours=8), classes=("batch", "dev")),
            BudgetStep(Decimal("1.2"), StepKind.FREEZE, timedelta(hours=4), freezes=("no-new-gpus",)),
        ),
        tell=("https://hooks.example.com/costguard", "mailto:finops@example.com", "slack:#research"),
        counted=Counted(CostBasis.BILLED, credits=True, tax=True),
        trust=Trust(timedelta(hours=72), Decimal("0.1")),
        limits=Limits(3, Decimal("0.5"), (Money(Decimal(80), "USD"),), Consent.KEEP),
        surge_alert=False,
        digest=budget.digest,
    )


def test_rates_and_classes_are_read_the_classes_in_their_order() -> None:
    read = policy(FULL)

    assert read.exchange_rates == (
        ExchangeRate("USD", "CNY", Decimal("7.05"), date(2026, 10, 1)),
        ExchangeRate("USD", "CNY", Decimal("7.1"), date(2026, 11, 1)),
    )
    assert [each.name for each in read.priority_classes] == ["dev", "batch"]
    assert read.priority_classes[1].selects == Selector(tags={"workload": "batch*"})


def test_what_is_left_out_is_what_is_documented() -> None:
    budget = only("name: all, monthly: 7000 CNY")

    written = BudgetRule("all", Mode.ENFORCE, SpendScope(), BudgetPeriod(), Money(Decimal(7000), "CNY"))
    assert budget == with_digest(written)


def test_a_step_left_short_waits_four_hours_for_what_was_idle_an_hour() -> None:
    budget = only("name: a, monthly: 1 USD, at: {100%: [stop_idle]}")

    assert budget.steps == (BudgetStep(Decimal(1), StepKind.STOP_IDLE, timedelta(hours=4)),)
    assert budget.steps[0].idle.lasting == timedelta(hours=1)


def test_every_share_with_a_step_alerts_too() -> None:
    budget = only("name: a, monthly: 1 USD, alert_at: [80%], at: {87.5%: [warn], 112.5%: [stop_idle]}")

    assert budget.alert_at == (Decimal("0.8"), Decimal("0.875"), Decimal("1.125"))
    assert [step.at for step in budget.steps] == [Decimal("1.125")]


@pytest.mark.parametrize(
    ("amount", "kind"),
    [("monthly", PeriodKind.MONTHLY), ("quarterly", PeriodKind.QUARTERLY), ("yearly", PeriodKind.YEARLY)],
)
def test_each_period_has_its_key(amount: str, kind: PeriodKind) -> None:
    assert only(f"name: a, {amount}: 1 USD").period == BudgetPeriod(kind)


def test_a_dated_budget_holds_both_its_days_also_a_leap_day() -> None:
    budget = only("name: a, total: 1 USD, from: 2028-02-29, to: 2028-02-29")

    assert budget.period == BudgetPeriod(PeriodKind.DATED, "UTC", date(2028, 2, 29), date(2028, 2, 29))


def test_ten_years_from_the_first_day_are_the_longest() -> None:
    assert only("name: a, total: 1 USD, from: 2027-01-01, to: 2036-12-31").period.last == date(2036, 12, 31)


def test_the_zone_is_the_calendars_unless_the_budget_says_another() -> None:
    calendar = 'version: 1\ncalendar: {zone: Asia/Shanghai, hours: "10:00-18:00"}\n'

    assert only("name: a, monthly: 1 USD", calendar).period.zone == "Asia/Shanghai"
    assert only("name: a, monthly: 1 USD, zone: UTC", calendar).period.zone == "UTC"


def test_no_forecast_alerts_are_a_choice() -> None:
    assert only("name: a, monthly: 1 USD, forecast_alert_at: []").forecast_alert_at == ()


def test_exactly_one_cent_is_a_budget() -> None:
    assert only("name: a, monthly: 0.01 USD").amount == Money(Decimal("0.01"), "USD")


def test_the_sketch_of_the_short_form_loads() -> None:
    budget = only(
        "name: research, covers: {tags: {team: research}}, monthly: 5000 USD, alert_at: [50%, 80%, 100%], "
        "forecast_alert_at: [100%], at: {100%: [warn, stop_idle]}"
    )

    assert [step.kind for step in budget.steps] == [StepKind.STOP_IDLE]


def test_budgets_of_all_files_come_together_and_a_file_may_hold_them_alone() -> None:
    read = policy(
        "version: 1\nbudgets: [{name: m, monthly: 1 USD}]\n",
        policies__a="budgets: [{name: z, monthly: 1 USD}]\n",
        policies__b="budgets: [{name: a, yearly: 1 USD}]\nidle_gpu: []\n",
    )

    assert [budget.name for budget in read.budgets] == ["a", "m", "z"]
    assert read.budget("z") is not None
    assert read.budget("none") is None
    assert "no rule: idle machines are looked at only where a budget asks" in told(read)


def test_the_order_of_words_and_zeros_behind_a_point_change_no_digest() -> None:
    one = only(
        'name: a, monthly: 10 USD, covers: {regions: [us-east-1, eu-west-1], tags: {a: b, c: d}}, tell: ["slack:#a", '
        '"slack:#b"], alert_at: [50%, 80%], at: {100%: [{stop: {classes: [d, e]}}]}',
        CLASSES,
    )
    other = only(
        'at: {100.0%: [warn, {stop: {wait: 4h, classes: [e, d]}}]}, alert_at: [80%, 50.0%, 100%], tell: ["slack:#b", '
        '"slack:#a"], covers: {tags: {c: d, a: b}, regions: [eu-west-1, us-east-1]}, monthly: 10.00 USD, name: a',
        CLASSES,
    )

    assert settings_terms(one) == settings_terms(other)
    assert one.digest == other.digest


CLASSES = (
    "version: 1\nmode: enforce\npriority_classes: [{name: d, applies_when_all: {tags: {e: d}}}, "
    "{name: e, applies_when_all: {tags: {e: e}}}]\n"
)
BASE = "name: a, monthly: 10 USD, at: {100%: [{stop_idle: {idle_for: 2h, wait: 2h}}]}"
CHANGED = [
    BASE.replace("name: a", "name: b"),
    BASE.replace("monthly", "yearly"),
    BASE.replace("10 USD", "11 USD"),
    BASE.replace("10 USD", "10 CNY"),
    BASE.replace("100%", "101%"),
    BASE.replace("idle_for: 2h", "idle_for: 3h"),
    BASE.replace("wait: 2h", "wait: 3h"),
    BASE.replace("{stop_idle: {idle_for: 2h, wait: 2h}}", "warn"),
    *(
        f"{BASE}, {more}"
        for more in (
            "mode: warn",
            "zone: Asia/Shanghai",
            "covers: {clouds: [aws]}",
            "covers: {tags: {a: b}}",
            "alert_at: [90%]",
            "forecast_alert_at: []",
            "surge_alert: false",
            "counts: {tax: true}",
            "counts: {credits: true}",
            "counts: {cost: billed}",
            "trust: {bill_not_older_than: 97h}",
            "trust: {estimated_at_most: 31%}",
            'tell: ["slack:#a"]',
            "safety: {actions_per_day: 9}",
            "safety: {local_disk: keep}",
        )
    ),
]


def test_every_changed_word_changes_the_digest() -> None:
    assert len({only(text).digest for text in (BASE, *CHANGED)}) == len(CHANGED) + 1


def test_the_digest_of_the_policy_covers_budgets_rates_and_the_order_of_classes() -> None:
    changed = [
        FULL.replace("5000 USD", "5001 USD"),
        FULL.replace("rate: 7.1", "rate: 7.2"),
        FULL.replace("since: 2026-11-01", "since: 2026-11-02"),
        FULL.replace("env: dev", "env: development"),
        CLASSES.replace("{name: d, applies_when_all: {tags: {e: d}}}, ", "") + RULE,
        CLASSES + RULE,
        CLASSES.replace("name: d,", "name: x,").replace("name: e,", "name: d,").replace("name: x,", "name: e,") + RULE,
    ]

    assert len({policy(text).digest for text in (FULL, *changed)}) == len(changed) + 1


@dataclass(frozen=True)
class Bad:
    """`text` holds » right before the place that must be named."""

    text: str
    says: str
    fix: str


def main(text: str, says: str, fix: str) -> Bad:
    return Bad(f"version: 1\nmode: enforce\n{RULE}{text}\n", says, fix)


def budget(text: str, says: str, fix: str) -> Bad:
    return main(f"budgets:\n  - {{name: research, monthly: 5000 USD, {text}}}", says, fix)


def amount(text: str, says: str, fix: str) -> Bad:
    return main(f"budgets:\n  - {{name: research, {text}}}", says, fix)


def covers(text: str, says: str, fix: str) -> Bad:
    return budget(f"covers: {{{text}}}", says, fix)


def at(text: str, says: str, fix: str) -> Bad:
    classes = "priority_classes:\n" + "".join(
        f"  - {{name: {name}, applies_when_all: {{tags: {{class: {name}}}}}}}\n" for name in ("dev", "batch", "train")
    )
    return main(
        f"{classes}budgets:\n  - name: research\n    monthly: 5000 USD\n    at:\n      {text}",
        says,
        fix,
    )


def rate(text: str, says: str, fix: str) -> Bad:
    return main(f"exchange_rates:\n  - {{{text}}}", says, fix)


def tell(address: str, says: str, fix: str) -> Bad:
    return budget(f'tell: [»"{address}"]', says, fix)


AMOUNTS = {
    "none": main("budgets: [»{name: a}]", "a budget says no amount", "add monthly: 5000 USD"),
    "two": amount("monthly: 1 USD, »yearly: 12 USD", "monthly and yearly: a budget has one amount", "two budgets"),
    "zero": amount("monthly: »0 USD", "spent before anything runs", "delete it to have none, or write 0.01 USD"),
    "zero of cents": amount("monthly: »0.00 CNY", "spent before anything runs", "or write 0.01 CNY"),
    "negative": amount("monthly: »-5000 USD", "is negative", "without the minus"),
    "no currency": amount("monthly: »5000", "not an amount of money", "USD"),
    "dollar sign": amount('monthly: »"$5000"', "not an amount of money", "write 5000 USD"),
    "renminbi by name": amount("monthly: »5000 RMB", "RMB is a name, not the ISO 4217 code", "write 5000 CNY"),
    "two currencies": amount("monthly: »[5000 USD, 7000 CNY]", "found a list", ""),
    "thousands": amount('monthly: »"5,000 USD"', "not an amount of money", "write 5000 USD"),
    "another period": amount("»weekly: 100 USD", "unknown key 'weekly'", "known here: alert_at, at"),
    "total without days": amount("»total: 1 USD", "total needs the first and the last day; from", "add from:"),
    "total without end": amount("»total: 1 USD, from: 2026-01-01", "to is missing", "or write monthly"),
    "days without total": amount("monthly: 1 USD, »from: 2026-01-01", "from goes with total", "remove from"),
    "end without total": amount("yearly: 1 USD, »to: 2026-01-01", "a yearly budget has no end", "write total"),
    "end before start": amount(
        "total: 1 USD, from: 2026-03-01, to: »2026-02-28", "before it begins on 2026-03-01", "under from"
    ),
    "eleven years": amount(
        "total: 1 USD, from: 2026-01-01, to: »2036-12-31", "more than ten years", "write a yearly budget"
    ),
    "no leap day": amount(
        "total: 1 USD, from: »2027-02-29, to: 2027-03-31", "is not a date", "that month ends on 2027-02-28"
    ),
    "31 November": amount("total: 1 USD, from: 2026-11-01, to: »2026-11-31", "is not a date", "ends on 2026-11-30"),
    "a moment for a day": amount('total: 1 USD, from: »"2026-01-01T00:00Z", to: 2026-02-01', "is not a date", ""),
    "year one": amount("total: 1 USD, from: »0001-01-01, to: 2007-01-01", "of the year 1", "from 2006 to 2199"),
    "last year there is": amount("total: 1 USD, from: 2199-01-01, to: »9999-12-31", "no bill is of the year", "2199"),
    "zone": budget("zone: »Asia/Shanghia", "is not a time zone", "did you mean Asia/Shanghai?"),
}  # fmt: skip
ENTRIES = {
    "no name": main("budgets: [»{monthly: 1 USD}]", "name: this key is missing", "add name"),
    "bad name": main('budgets: [{name: »"a@100%", monthly: 1 USD}]', "is not a name", ""),
    "same name": main(
        "budgets: [{name: a, monthly: 1 USD}, {name: »A, yearly: 1 USD}]", "a second budget A", "a name of its own"
    ),
    "not a list": main("budgets: »{name: a, monthly: 1 USD}", "expected a list", "dash"),
    "text": main("budgets: [»research]", "expected keys and values", "key: value"),
    "harsher mode": Bad(
        f"version: 1\nmode: warn\n{RULE}budgets: [{{name: a, monthly: 1 USD, mode: »enforce}}]\n",
        "enforce is harsher than the policy's warn",
        "write warn",
    ),
    "harsher than unwritten": Bad(
        f"version: 1\n{RULE}budgets: [{{name: a, monthly: 1 USD, mode: »warn}}]\n", "policy's observe", "write observe"
    ),
    "unknown key": budget("»alert: [80%]", "unknown key 'alert'", "did you mean"),
    "from in Python's words": budget("»first: 2026-01-01", "unknown key 'first'", ""),
    "surge in words": budget("surge_alert: »yes", "expected true or false", "write true"),
    "counts what": budget("counts: {cost: »amortized}", "is not a cost; expected effective, billed", ""),
    "refunds do not count": budget("counts: {»refunds: false}", "unknown key 'refunds'", "cost, credits, tax"),
    "safety of idle rules alone": budget("safety: {»unstoppable: hold}", "unknown key 'unstoppable'", "local_disk"),
    "no bill is fresh": budget("trust: {bill_not_older_than: »0h}", "ever that fresh", "96h"),
    "an old bill": budget("trust: {bill_not_older_than: »8d}", "says little of today; at most 7d", "write 7d"),
    "bill age without unit": budget("trust: {bill_not_older_than: »60}", "no unit", "write 60h"),
    "estimates alone": budget("trust: {estimated_at_most: »100%}", "on estimates alone; at most 90%", "90% or less"),
    "more than all": budget("trust: {estimated_at_most: »130%}", "more than all of it", "at most 100%"),
}
COVERS = {
    "nothing": budget("covers: »{}", "an empty mapping covers nothing", "leave the key out to cover everything"),
    "no clouds": covers("clouds: »[]", "an empty list matches nothing", "cover everything"),
    "no accounts": covers("accounts: »[]", "an empty list matches nothing", "cover everything"),
    "no regions": covers("regions: »[]", "an empty list matches nothing", "cover everything"),
    "no tags": covers("tags: »{}", "an empty mapping covers nothing", "cover everything"),
    "one cloud": covers("clouds: »aws", "expected a list", 'write ["aws"]'),
    "cloud": covers("clouds: [»amazon]", "is not a cloud", "aws"),
    "clouds by pattern": covers('clouds: [»"aws*"]', "is a pattern; a budget covers exact words", "list every word"),
    "accounts by pattern": covers('accounts: [»"1111*"]', "is a pattern", "list every word"),
    "regions by pattern": covers('regions: [»"us-east-?"]', "is a pattern", "leave the key out"),
    "tags by pattern": covers('tags: {team: »"res*"}', "'res*' is a pattern", "a budget for each"),
    "tags by class": covers('tags: {team: »"r[ab]"}', "'r[ab]' is a pattern", "write the value itself"),
    "key by pattern": covers('tags: {»"team*": a}', "'team*' is a pattern", ""),
    "account unquoted": covers("accounts: [»111122223333]", "expected text", '"111122223333"'),
    "account too short": covers('accounts: [»"1111"]', "matches no account id", "12 on aws"),
    "account of another cloud": covers(
        'clouds: [aws], accounts: [»"1234567890123456"]', "an account id on aws has 12 digits", "leading zeros"
    ),
    "region of another partition": covers(
        "clouds: [aws], regions: [us-east-1, »cn-north-1]", "not a region of aws", "it belongs to aws-cn"
    ),
    "region by name": covers("regions: [»Virginia]", "is not a region", ""),
    "cloud twice": covers("clouds: [aws, »aws]", "aws is there twice", "keep one"),
    "a list of values": covers("tags: {team: »[a, b]}", "expected text, found a list", ""),
    "a number for a value": covers("tags: {cost: »17}", "expected text", '"17"'),
    "tag without value": covers('tags: {team: »""}', "how it looks where the tag is missing", "give the tag a value"),
    "tag without name": covers('tags: {»"": a}', "a tag without a name", "write the name"),
    "key with a space before": covers('tags: {»" team": a}', "begins or ends with a space", "write team"),
    "value with a space behind": covers('tags: {team: »"a "}', "begins or ends with a space", "write a"),
    "key too long": covers("tags: {»" + "k" * 129 + ": a}", "no cloud covered here can have the tag", "console"),
    "value too long": covers("tags: {»k: " + "v" * 257 + "}", "no cloud covered here can have the tag", "console"),
    "project on tencent": covers(
        "clouds: [tencent], tags: {»project: a}", "tencent keeps the key project for itself", "console"
    ),
    "128 characters on tencent": covers(
        "clouds: [tencent, tencent-intl], tags: {»" + "k" * 128 + ": a}", "tencent allows 127 characters", "console"
    ),
    "acs on alibaba": covers('clouds: [alibaba], tags: {»"acs:rm": a}', "alibaba keeps keys that begin with", ""),
    "address on alibaba": covers('clouds: [alibaba], tags: {»wiki: "https://a"}', "allows no http:// or https://", ""),
    "unknown key": covers("»team: research", "unknown key 'team'", "known here: accounts, clouds, regions, tags"),
}
SHARES = {
    "none": budget("alert_at: »[]", "is watched by nobody", "leave the key out"),
    "zero": budget("alert_at: [»0%]", "reached before anything is spent", "50%"),
    "over 1000 %": budget("alert_at: [80%, »1001%]", "more than anybody plans for", "at most 1000%"),
    "negative": budget("alert_at: [»-80%]", "is negative", "minus"),
    "without sign": budget("alert_at: [»80]", "not a percentage", "write 80%"),
    "as fraction": budget("alert_at: [»0.8]", "not a percentage", "%"),
    "twice": budget("alert_at: [80%, »80.0%]", "80% is there twice", "keep one"),
    "alone": budget("alert_at: »80%", "expected a list", "write [80%]"),
    "forecast twice": budget("forecast_alert_at: [100%, »100%]", "100% is there twice", "keep one"),
    "forecast of nothing": budget("forecast_alert_at: [»0%]", "reached before anything is spent", "50%"),
    "too many": budget(
        f"alert_at: »[{', '.join(f'{share}%' for share in range(1, 22))}]", "21 alerts are more than anybody", "keep"
    ),
}
STEPS = {
    "nothing": budget("at: »{}", "an empty mapping does nothing", "leave the key out to alert only"),
    "a list": budget("at: »[100%]", "expected keys and values, found a list", ""),
    "no steps": at("100%: »[]", "an empty list does nothing", "write [warn]"),
    "steps as text": at("100%: »warn", "expected a list", "write [warn]"),
    "share without sign": at('»"100": [warn]', "not a percentage", "write 100%"),
    "share of zero": at("»0%: [warn]", "reached before anything is spent", "50%"),
    "share over 1000 %": at("»1001%: [warn]", "more than anybody plans for", "at most 1000%"),
    "same share": at("100%: [warn]\n      »100.0%: [stop_idle]", "the same share as 100%", "the steps of both"),
    "word": at("100%: [»stop_idel]", "is not a step of a budget", "did you mean stop_idle?"),
    "terminate": at("100%: [»terminate]", "is not a step of a budget; expected warn, stop_idle, stop, freeze", ""),
    "word with options": at("100%: [{»snapshot: {}}]", "is not a step of a budget", ""),
    "two words": at("100%: [»{warn: {}, stop_idle: {}}]", "one word", "its own item"),
    "warn takes nothing": at("100%: [{warn: »{wait: 1h}}]", "warn takes no options", "write warn alone"),
    "short form": at("100%: [{stop_idle: »1h}]", "is not what stop_idle takes", "write stop_idle alone"),
    "option": at("100%: [{stop_idle: {»idle: 1h}}]", "unknown key 'idle'", "stop_idle takes idle_for and wait"),
    "classes of the idle": at("100%: [{stop_idle: {»classes: [dev]}}]", "unknown key 'classes'", "idle_for and wait"),
    "short wait": at("100%: [{stop_idle: {wait: »59m}}]", "too short a wait before stop_idle; at least 1h", "1h"),
    "no wait": at("100%: [{stop: {classes: [dev], wait: »0s}}]", "too short a wait before stop", "write 1h or more"),
    "long wait": at("100%: [{stop_idle: {wait: »91d}}]", "too long a wait; at most 90d", "90d or less"),
    "wait without unit": at("100%: [{stop_idle: {wait: »4}}]", "no unit", "write 4h"),
    "idle for a moment": at("100%: [{stop_idle: {idle_for: »5m}}]", "too short to call anything idle", "24h"),
    "stop alone": at("100%: [»stop]", "stop says no classes, and never means everything", "{stop: {classes: [dev]}}"),
    "stop without classes": at("100%: [{stop: »{wait: 4h}}]", "stop says no classes", "listed in priority_classes"),
    "stop nothing": at("100%: [{stop: {classes: »[]}}]", "an empty list stops nothing", "classes: [dev]"),
    "class as text": at("100%: [{stop: {classes: »dev}}]", "expected a list of priority classes", "write [dev]"),
    "class as number": at("100%: [{stop: {classes: [»7]}}]", "the name of a priority class, found 7", "listed"),
    "class in a class": at("100%: [{stop: {classes: [»{dev: 1}]}}]", "the name of a priority class", "listed"),
    "too many classes": at(
        "100%: [{stop: {classes: »[" + ", ".join(f"c{number}" for number in range(51)) + "]}}]",
        "51 classes are more than anybody ranks",
        "stop fewer",
    ),
    "class twice": at("100%: [{stop: {classes: [dev, »dev]}}]", "'dev' is there twice", "keep one"),
    "no such class": at("100%: [{stop: {classes: [»bach]}}]", "no priority class 'bach'", "did you mean batch?"),
    "no class at all": budget(
        "at: {100%: [{stop: {classes: [»dev]}}]}", "no priority class 'dev'", "list it under priority_classes"
    ),
    "class stopped already": at(
        "100%: [{stop: {classes: [dev]}}]\n      110%: [{stop: {classes: [batch, »dev]}}]",
        "dev is stopped from 100% on already",
        "only what is stopped in addition",
    ),
    "more important first": at(
        "100%: [{stop: {classes: [»batch]}}]\n      110%: [{stop: {classes: [dev]}}]",
        "batch is more important than dev, which is stopped only at 110%",
        "stop dev at 100% too, or change the order",
    ),
    "harsher earlier": at(
        "90%: [freeze]\n      100%: [»stop_idle]", "stop_idle at 100% comes after freeze at 90%", "at 90% or below"
    ),
    "harsher earlier, written later": at(
        "110%: [warn, »stop_idle]\n      100%: [{stop: {classes: [dev]}}]",
        "comes after stop at 100%, which is harsher",
        "put stop_idle at 100% or below",
    ),
    "gentler later in a list": at("100%: [freeze, »stop_idle]", "stop_idle is gentler than freeze", "first"),
    "warn last": at("100%: [stop_idle, »warn]", "warn is gentler than stop_idle before it", "put warn first"),
    "step twice": at("100%: [stop_idle, »stop_idle]", "stop_idle is there twice", "keep one"),
    "step in force": at("90%: [stop_idle]\n      100%: [»stop_idle]", "in force from 90% on already", "keep one"),
    "too many shares": budget(
        "at: »{" + ", ".join(f"{share}%: [warn]" for share in range(1, 22)) + "}", "21 shares are more", "keep those"
    ),
    "unliveable wait": Bad(
        'version: 1\ncalendar: {zone: UTC, days: mon, hours: "10:00-11:00"}\n' + RULE
        + "budgets: [{name: a, monthly: 1 USD, at: {100%: [»{stop_idle: {wait: 30d}}]}}]\n",
        "takes over two years",
        "widen calendar.hours",
    ),
}  # fmt: skip
TELL = {
    "nobody": budget("tell: »[]", "an empty list matches nothing", "tell the default channel"),
    "one": budget('tell: »"slack:#a"', "expected a list", "write [slack:#a]"),
    "twice": budget('tell: ["slack:#a", »"slack:#a"]', "is there twice", "keep one"),
    "channel alone": tell("#research", "is not a channel", '"slack:#gpu-costs" in quotes'),
    "mail without scheme": tell("finops@example.com", "is not a channel", 'write "mailto:finops@example.com"'),
    "two mailboxes": tell("mailto:a@example.com,b@example.com", "not the address of a mailbox", "each address"),
    "mail with headers": tell("mailto:a@example.com?bcc=b@example.com", "not the address of a mailbox", ""),
    "mail without domain": tell("mailto:finops", "not the address of a mailbox", "mailto:finops@example.com"),
    "mail to one word": tell("mailto:root@localhost", "not the address of a mailbox", "finops@example.com"),
    "mail with a name": tell("mailto:Ops <a@example.com>", "not the address of a mailbox", "each address"),
    "mail too long": tell(f"mailto:{'a' * 65}@example.com", "not the address of a mailbox", ""),
    "unencrypted": tell("http://hooks.example.com/x", "would send the notice unencrypted", "write https://hooks."),
    "password": tell("https://me:s3cret@hooks.example.com/x", "puts a secret into the policy", "without it"),
    "token": tell("https://hooks.example.com/x?access_token=s3cret", "puts a secret into the policy", "without it"),
    "no host": tell("https:///x", "is not the address of a webhook", "https://hooks.example.com/costguard"),
    "loopback elsewhere": tell("http://127.0.0.1.example.com/x", "unencrypted", "write https://"),
    "metadata service": tell("http://169.254.169.254/latest", "link-local or metadata", "https://"),
    "console": tell("console:", "is not a channel", "slack:"),
    "default channel": main('notify: {default: »"ftp://x"}', "is not a channel", "mailto:finops@example.com"),
    "owner": main('owners: [{name: a, owns: {tags: {t: a}}, channel: »"mailto:a"}]', "address of a mailbox", "mailto:"),
}
RATES = {
    "no rate": main("exchange_rates: [»{from: USD, to: CNY, since: 2026-11-01}]", "rate: this key", "add rate: 7.1"),
    "no from": main("exchange_rates: [»{to: CNY, rate: 7, since: 2026-11-01}]", "from: this key", "add from: USD"),
    "undated": main("exchange_rates: [»{from: USD, to: CNY, rate: 7.1}]", "since: this key", "add since: 2026-11-01"),
    "same currency": rate("from: USD, to: »USD, rate: 1, since: 2026-11-01", "always worth one USD", "remove"),
    "small letters": rate("from: »usd, to: CNY, rate: 7, since: 2026-11-01", "not the code of a currency", "write USD"),
    "name": rate("from: USD, to: »RMB, rate: 7, since: 2026-11-01", "not the code of a currency", "write CNY"),
    "number for a currency": rate("from: USD, to: »7, rate: 7, since: 2026-11-01", "not the code", "three letters"),
    "zero": rate("from: USD, to: CNY, rate: »0, since: 2026-11-01", "makes money worth nothing", "7.1"),
    "negative": rate("from: USD, to: CNY, rate: »-7.1, since: 2026-11-01", "is negative", "minus"),
    "true": rate("from: USD, to: CNY, rate: »true, since: 2026-11-01", "found true", ""),
    "with currency": rate("from: USD, to: CNY, rate: »7.1 CNY, since: 2026-11-01", "is not a rate", "write 7.1"),
    "comma": rate('from: USD, to: CNY, rate: »"7,1", since: 2026-11-01', "is not a rate of exchange", ""),
    "exponent": rate("from: USD, to: CNY, rate: »1e-9, since: 2026-11-01", "is not a rate of exchange", ""),
    "ten decimals": rate("from: USD, to: CNY, rate: »7.1234567891, since: 2026-11-01", "is not a rate", ""),
    "more digits than a float keeps": rate(
        "from: USD, to: CNY, rate: »1234567.123456789, since: 2026-11-01", "more digits than a rate", "round it"
    ),
    "day that is not": rate("from: USD, to: CNY, rate: 7, since: »2026-02-29", "is not a date", "ends on 2026-02-28"),
    "list": rate("from: USD, to: »[CNY, EUR], rate: 7, since: 2026-11-01", "found a list", ""),
    "same day": main(
        "exchange_rates:\n  - {from: USD, to: CNY, rate: 7.1, since: 2026-11-01}\n"
        "  - »{from: CNY, to: USD, rate: 0.14, since: 2026-11-01}",
        "a second rate between CNY and USD since 2026-11-01; the first is on line 5",
        "keep one of them",
    ),
    "nothing": rate(
        "»a: b, from: USD, to: CNY, rate: 7, since: 2026-11-01", "unknown key 'a'", "from, rate, since, to"
    ),
}
CLASS_ENTRIES = {
    "no name": main("priority_classes: [»{applies_when_all: {tags: {a: b}}}]", "name: this key is missing", "add name"),
    "of everything": main("priority_classes: [»{name: dev}]", "applies_when_all: this key is missing", "env: dev"),
    "of nothing": main("priority_classes: [{name: dev, applies_when_all: »{}}]", "matches nothing", "leave the key"),
    "same name": main(
        "priority_classes: [{name: dev, applies_when_all: {tags: {a: b}}}, "
        "{name: »dev, applies_when_all: {tags: {a: c}}}]",
        "a second priority class dev",
        "a name of its own",
    ),
}
TABLES = {
    "amount": AMOUNTS,
    "entry": ENTRIES,
    "covers": COVERS,
    "share": SHARES,
    "step": STEPS,
    "tell": TELL,
    "rate": RATES,
    "class": CLASS_ENTRIES,
}


@pytest.mark.parametrize(
    "bad", [pytest.param(bad, id=f"{table}: {name}") for table, cases in TABLES.items() for name, bad in cases.items()]
)
def test_a_mistake_is_told_with_its_place_and_the_fix(bad: Bad) -> None:
    before, _, after = bad.text.partition("»")
    place = (before.count("\n") + 1, len(before) - before.rfind("\n"))

    _, problems = check_policy(PolicyText({"costguard.yaml": before + after}, "r1"))

    assert [(each.path, each.mark.line, each.mark.column) for each in problems] == [("costguard.yaml", *place)]
    assert bad.says in str(problems[0])
    assert bad.fix in problems[0].fix
    assert "s3cret" not in str(problems[0])


def test_mistakes_of_several_budgets_and_files_are_told_at_once() -> None:
    files = {
        "costguard.yaml": (
            f"version: 1\n{RULE}budgets:\n  - {{name: a, monthly: 1 USD, at: {{100%: [freez], 0: [warn]}}}}\n"
        ),
        "policies/a.yaml": "budgets:\n  - {name: a, yearly: 0 USD}\n  - {name: b, yearly: 1 USD, alert_at: [0%]}\n",
    }

    _, problems = check_policy(PolicyText(files, "r1"))

    assert [f"{each.path}:{each.mark.line} {each.field}" for each in problems] == [
        "costguard.yaml:4 budgets[0].at.100%[0]",
        "costguard.yaml:4 budgets[0].at",
        "policies/a.yaml:2 budgets[0].name",
        "policies/a.yaml:2 budgets[0].yearly",
        "policies/a.yaml:3 budgets[1].alert_at[0]",
    ]


def test_a_class_that_another_file_asks_for_must_be_listed_too() -> None:
    files = {
        "costguard.yaml": f"version: 1\n{RULE}",
        "policies/a.yaml": "budgets: [{name: a, monthly: 1 USD, at: {100%: [{stop: {classes: [dev]}}]}}]\n",
    }

    _, problems = check_policy(PolicyText(files, "r1"))

    assert [each.path for each in problems] == ["policies/a.yaml"]
    assert "no priority class 'dev'" in problems[0].message


@pytest.mark.parametrize("key", ["exchange_rates", "priority_classes"])
def test_rates_and_classes_stand_in_the_main_file_alone(key: str) -> None:
    files = {"costguard.yaml": f"version: 1\n{RULE}", "policies/a.yaml": f"idle_gpu: []\n{key}: []\n"}

    _, problems = check_policy(PolicyText(files, "r1"))

    assert [(each.message, each.fix) for each in problems] == [
        ("this key belongs in costguard.yaml", "move it there"),
    ]


@pytest.mark.parametrize(
    "address",
    [
        "slack:#gpu-costs",
        "slack:C0123456789",
        "mailto:gpu.costs+alerts@ops.example.com",
        "https://hooks.example.com",
        "https://hooks.example.com:8443/services/T0/B0/x_y-z",
        "http://127.0.0.1:8080/hook",
        "http://localhost/hook",
        "http://[::1]:8080/hook",
    ],
)
def test_every_channel_of_the_policy_takes_every_kind_of_address(address: str) -> None:
    read = policy(
        f'version: 1\n{RULE}notify: {{default: "{address}"}}\n'
        f'owners: [{{name: a, owns: {{tags: {{t: a}}}}, channel: "{address}"}}]\n'
        f'budgets: [{{name: a, monthly: 1 USD, tell: ["{address}"]}}]\n'
    )

    assert read.default_channel == read.owners[0].channel == address
    assert read.budgets[0].tell == (address,)


def paths_of(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a document, the root left out."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, tuple) else ()
    for key, each in items:
        yield (*path, key)
        yield from paths_of(each, (*path, key))


def replaced(value: Any, path: tuple[Any, ...], odd: Any) -> Any:
    if not path:
        return odd
    if isinstance(value, dict):
        return {key: replaced(each, path[1:], odd) if key == path[0] else each for key, each in value.items()}
    return [replaced(each, path[1:], odd) if index == path[0] else each for index, each in enumerate(value)]


@pytest.mark.parametrize("odd", [[], {"a": "b"}, -7, True, "x" * 300], ids=str)
def test_a_value_of_any_kind_anywhere_is_told_never_a_crash(odd: Any) -> None:
    root = read_yaml("costguard.yaml", FULL).root
    assert root is not None
    whole = {key: value for key, value in plain(root).items() if key not in {"calendar", "accounts", "idle_gpu"}}
    whole["idle_gpu"] = ({"name": "m"},)

    for path in paths_of(whole):
        text = json.dumps(replaced(whole, path, odd))  # JSON is YAML too
        read, problems = check_policy(PolicyText({"costguard.yaml": text}, "r1"))

        assert (read is None) is bool(problems)
        assert all(each.mark.line == 1 and each.message for each in problems)


def told(read: Policy, now: datetime = NOW) -> str:
    return "\n".join(str(each) for each in remarks(read, now))


def guarded(budgets: str, more: str = "") -> Policy:
    accounts = (
        'accounts: [{cloud: aws, id: "111122223333", regions: all}, {cloud: tencent, id: "100000001", regions: all}]'
    )
    return policy(
        f'version: 1\nmode: enforce\ncalendar: none\nnotify: {{default: "slack:#a"}}\n{accounts}\n'
        f"{RULE}{more}budgets:\n{budgets}\n"
    )


def test_a_currency_without_a_rate_is_remarked_for_the_clouds_that_bill_in_it() -> None:
    read = guarded(
        "  - {name: a, monthly: 1 USD, covers: {clouds: [tencent]}}\n"
        "  - {name: b, monthly: 1 CNY, covers: {clouds: [tencent]}}"
    )
    wanted = "budget a: tencent bills in CNY and exchange_rates has no rate to USD today: "

    assert told(read) == wanted + "it alerts with what it can add up, and never stops anything"


@pytest.mark.parametrize(
    ("since", "says"),
    [
        ("2026-11-01", ""),
        ("2026-11-02", "no rate between CNY and USD holds on 2026-11-01 (UTC), when the period began"),
        ("2026-11-21", "no rate to USD today"),
    ],
)
def test_a_rate_must_hold_from_the_periods_first_day_on(since: str, says: str) -> None:
    rates = f"exchange_rates: [{{from: USD, to: CNY, rate: 7.1, since: {since}}}]\n"

    found = told(guarded("  - {name: a, monthly: 1 USD}", rates))

    assert says in found
    assert bool(says) is bool(found)


def test_every_cloud_has_a_currency_to_hint_at() -> None:
    assert set(BILLED_IN) == set(CLOUDS)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("covers: {clouds: [alibaba]}", "it covers alibaba, where no account is guarded: that spend is never seen"),
        ('covers: {accounts: ["444455556666"]}', "444455556666, which is not among the accounts guarded"),
        ("covers: {tags: {project: a}}", "no spend on tencent is ever in it: tencent keeps the key project for itself"),
        ("at: {100%: [stop_idle]}, safety: {actions_per_day: 0}", "a cap of 0 allows nothing: it never stops anything"),
        ("at: {100%: [stop_idle]}, trust: {bill_not_older_than: 24h}", "bills are up to 48 h late"),
        ("at: {100%: [stop_idle]}, trust: {estimated_at_most: 0%}", "it seldom stops anything"),
    ],
)
def test_what_a_writer_may_not_have_meant_is_remarked(text: str, says: str) -> None:
    rates = "exchange_rates: [{from: USD, to: CNY, rate: 7.1, since: 2026-01-01}]\n"

    assert says in told(guarded(f"  - {{name: a, monthly: 1 USD, {text}}}", rates))


def test_an_account_of_an_organisation_is_not_called_unguarded() -> None:
    read = policy(
        f'version: 1\n{RULE}accounts: [{{cloud: aws, id: "111122223333", regions: all, organisation: true}}]\n{TOLD}'
        'budgets: [{name: a, monthly: 1 USD, covers: {accounts: ["444455556666"]}}]\n'
    )

    assert told(read) == ""


def test_a_budget_within_another_is_remarked_and_so_is_one_that_allows_more() -> None:
    read = policy(
        f"version: 1\n{RULE}{TOLD}budgets:\n  - {{name: company, monthly: 1000 USD}}\n"
        "  - {name: nlp, covers: {tags: {team: nlp}}, monthly: 400 USD}\n"
        "  - {name: chat, covers: {tags: {team: nlp, project: chat}}, monthly: 500 USD}\n"
        "  - {name: cv, covers: {tags: {team: cv}}, yearly: 4000 USD}\n"
    )

    once = ": its spend counts there too, and a machine is still stopped only once"
    assert [str(each) for each in remarks(read, NOW)] == [
        "budget chat: it allows 500.00 USD, more than nlp around it, which allows 400.00 USD",
        f"budget chat: it lies within company, nlp{once}",
        f"budget cv: it lies within company{once}",
        f"budget nlp: it lies within company{once}",
    ]


@pytest.mark.parametrize(
    ("inner", "outer", "within"),
    [
        (SpendScope(), SpendScope(), True),
        (SpendScope(clouds=("aws",)), SpendScope(), True),
        (SpendScope(), SpendScope(clouds=("aws",)), False),
        (SpendScope(regions=("a",)), SpendScope(regions=("a", "b")), True),
        (SpendScope(regions=("a", "c")), SpendScope(regions=("a", "b")), False),
        (SpendScope(accounts=("1",), tags=(("a", "b"),)), SpendScope(accounts=("1",)), True),
        (SpendScope(tags=(("a", "b"),)), SpendScope(tags=(("a", "c"),)), False),
    ],
)
def test_a_scope_lies_within_one_that_holds_all_its_spend(inner: SpendScope, outer: SpendScope, within: bool) -> None:  # noqa: FBT001
    assert lies_within(inner, outer) is within


def test_budgets_that_are_over_or_ahead_stale_rates_and_unused_classes_are_remarked() -> None:
    found = told(
        policy(
            f"{CLASSES}{RULE}exchange_rates: [{{from: USD, to: CNY, rate: 7, since: 2025-11-01}}]\n"
            "budgets:\n  - {name: a, total: 1 USD, from: 2026-01-01, to: 2026-01-31}\n"
            "  - {name: b, total: 1 USD, from: 2027-01-01, to: 2027-01-31}\n"
        )
    )

    assert "budget a: it ended on 2026-01-31; remove it" in found
    assert "budget b: it begins on 2027-01-01" in found
    assert "budget b: its alerts reach nobody: add tell, or notify.default" in found
    assert "exchange rate USD CNY: it is of 2025-11-01, over a year old" in found
    assert "priority class d: no budget stops it" in found


def test_a_whole_budget_needs_no_remark() -> None:
    text = FULL.replace("clouds: [aws-cn, aws]", "clouds: [aws]").replace("regions: [us-east-1, cn-north-1], ", "")

    assert told(policy(text)) == ""


def test_a_budget_is_told_in_words_in_both_languages() -> None:
    (research,) = policy(FULL).budgets
    everything = only("name: all, total: 7000.50 CNY, from: 2026-11-01, to: 2026-11-30, forecast_alert_at: []")

    english = budget_rules_table((research, everything))
    chinese = budget_rules_table((replace(research, mode=Mode.ENFORCE), everything), Language.ZH)

    english_steps = (
        "100%: stop what is idle for 2h (+1h) → 110%: stop batch, dev, idle or not (+8h) → "
        "120%: deny launches of GPU instances by no-new-gpus (+4h)"
    )
    assert english.rows[0] == (
        "research",
        "observe",
        "aws or aws-cn, 111122223333, cn-north-1 or us-east-1, a=b, team=research",
        "5,000 USD a month (Europe/Berlin)",
        "50%, 80%, 100%, 110%, 120%; forecast 100%, 110%",
        english_steps,
    )
    assert english.rows[1][2:] == (
        "everything",
        "7,000.50 CNY from 2026-11-01 to 2026-11-30 (UTC)",
        "50%, 80%, 100%; surge",
        "alert only",
    )
    chinese_stop = "110%：停止 batch、dev 类实例，无论是否空闲（+8h）"
    assert chinese.rows[0][3:] == (
        "每月 5,000 USD（Europe/Berlin）",
        "50%、80%、100%、110%、120%；预测 100%、110%",
        f"100%：停止已空闲 2h 的实例（+1h） → {chinese_stop} → 120%：由 no-new-gpus 禁止新开 GPU 实例（+4h）",
    )
    assert chinese.rows[1][2] == "全部费用"


def test_a_budget_as_json_is_exact() -> None:
    said = budget_rule_json(policy(FULL).budgets[0])

    assert said["amount"] == {"amount": "5000", "currency": "USD"}
    assert said["period"] == {"kind": "monthly", "zone": "Europe/Berlin", "first": None, "last": None}
    assert said["alert_percent"] == ["50", "80", "100", "110", "120"]
    assert said["steps"] == [
        {"at_percent": "100", "step": "stop_idle", "after_seconds": 3600, "idle_for_seconds": 7200},
        {"at_percent": "110", "step": "stop_classes", "after_seconds": 28800, "classes": ("batch", "dev")},
        {"at_percent": "120", "step": "freeze", "after_seconds": 14400, "freezes": ("no-new-gpus",)},
    ]
