"""The types of the fields of budgets, exchange rates and priority classes. Needs pydantic."""

from __future__ import annotations

import re
from datetime import date, timedelta
from decimal import Decimal
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator

from costguard.domain.actions import FreezeVia
from costguard.domain.money import Money
from costguard.guards.budget.rules import CostBasis
from costguard.guards.rules.idle import percent_words
from costguard.policy.budget import scope
from costguard.policy.budget.steps import (
    MOST_SHARES,
    WrittenStep,
    check_at,
    check_steps,
    parse_budget_step,
    share_of_budget,
)
from costguard.policy.documents import fields as f
from costguard.policy.syntax import cloud_values as clouds
from costguard.policy.syntax import time_values as times
from costguard.policy.syntax import units
from costguard.policy.syntax import values as v
from costguard.policy.syntax.problems import BadValueError

OLDEST_BILL = timedelta(days=7)
MOST_ESTIMATED = Decimal("0.9")
_EVERYTHING = "leave the key out to cover everything"
_REGION = re.compile(r"[a-z]{2,}(?:-[a-z0-9]+)+")


def _amount(raw: object) -> Money:
    money = units.parse_money(raw)
    if money.amount == 0:
        message = "a budget of 0 is spent before anything runs, so it tells nothing"
        raise BadValueError(message, f"delete it to have none, or write 0.01 {money.currency}")
    return money


def _bill_age(raw: object) -> timedelta:
    age = units.parse_duration(raw)
    if not age:
        raise BadValueError("no bill is ever that fresh, so nothing would be enforced", "write 96h, or leave it out")
    if age > OLDEST_BILL:
        message = f"a bill {raw} old says little of today; at most {OLDEST_BILL.days}d"
        raise BadValueError(message, f"write {OLDEST_BILL.days}d or less")
    return age


def _estimated(raw: object) -> Decimal:
    share = units.parse_share(raw)
    if share > MOST_ESTIMATED:
        message = f"{raw} would let a budget act on estimates alone; at most {percent_words(MOST_ESTIMATED)}%"
        raise BadValueError(message, f"write {percent_words(MOST_ESTIMATED)}% or less")
    return share


def _shares(shares: tuple[Decimal, ...]) -> tuple[Decimal, ...]:
    if len(shares) > MOST_SHARES:
        message = f"{len(shares)} alerts are more than anybody reads; at most {MOST_SHARES}"
        raise BadValueError(message, "keep those on which somebody acts")
    for index, share in enumerate(shares):
        if share in shares[:index]:
            message = f"{percent_words(share)}% is there twice"
            raise BadValueError(message, "keep one of them", at=(index,))
    return shares


def _alerts(shares: tuple[Decimal, ...]) -> tuple[Decimal, ...]:
    if not shares:
        raise BadValueError(
            "a budget that alerts at nothing is watched by nobody", "leave the key out for 50, 80 and 100%"
        )
    return _shares(shares)


Amount = Annotated[Money, BeforeValidator(_amount)]
Currency = Annotated[str, BeforeValidator(units.parse_currency)]
Rate = Annotated[Decimal, BeforeValidator(units.parse_exchange_rate)]
BillDay = Annotated[date, BeforeValidator(times.bill_day)]
BillAge = Annotated[timedelta, BeforeValidator(_bill_age)]
Estimated = Annotated[Decimal, BeforeValidator(_estimated)]
Via = Annotated[FreezeVia, BeforeValidator(v.choice_of(FreezeVia, "a way of attaching"))]
Basis = Annotated[CostBasis, BeforeValidator(v.choice_of(CostBasis, "a cost"))]

Share = Annotated[Decimal, BeforeValidator(share_of_budget)]
Alerts = Annotated[tuple[Share, ...], AfterValidator(_alerts)]
ForecastAlerts = Annotated[tuple[Share, ...], AfterValidator(_shares)]
Step = Annotated[WrittenStep, BeforeValidator(parse_budget_step)]
Steps = Annotated[tuple[Step, ...], AfterValidator(check_steps)]
At = Annotated[dict[str, Steps], AfterValidator(check_at)]

ExactCloud = Annotated[str, BeforeValidator(v.choice(f.CLOUD_WORDS, "a cloud")), BeforeValidator(scope.exact)]
ExactAccount = Annotated[str, AfterValidator(clouds.account_pattern), BeforeValidator(scope.exact)]
ExactRegion = Annotated[str, AfterValidator(v.matching(_REGION, "a region")), BeforeValidator(scope.exact)]
ExactClouds = Annotated[tuple[ExactCloud, ...], AfterValidator(v.some(_EVERYTHING))]
ExactAccounts = Annotated[tuple[ExactAccount, ...], AfterValidator(v.some(_EVERYTHING))]
ExactRegions = Annotated[tuple[ExactRegion, ...], AfterValidator(v.some(_EVERYTHING))]
ExactTags = Annotated[dict[str, str], AfterValidator(scope.exact_tags)]
Addresses = Annotated[tuple[f.Channel, ...], AfterValidator(v.some("leave the key out to tell the default channel"))]
