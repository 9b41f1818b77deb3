"""Budgets, exchange rates and priority classes as users write them, and what they compile to. Needs pydantic."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date, timedelta
from decimal import Decimal
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, field_validator, model_validator
from typing_extensions import Self

from costguard.domain.actions import FreezeVia, LaunchFreeze
from costguard.domain.money import Money, SpendScope
from costguard.guards.budget.rules import (
    DEFAULT_ALERT_SHARES,
    DEFAULT_FORECAST_SHARES,
    BudgetPeriod,
    BudgetRule,
    CostBasis,
    Counted,
    PeriodKind,
    StepKind,
    Trust,
)
from costguard.guards.rules.common import Limits
from costguard.guards.rules.idle import percent_words
from costguard.policy.budget import scope
from costguard.policy.budget.freeze_ids import misfit
from costguard.policy.budget.steps import (
    MOST_SHARES,
    WrittenStep,
    budget_steps,
    check_at,
    check_steps,
    parse_budget_step,
    share_of_budget,
    shares_at,
)
from costguard.policy.documents import fields as f
from costguard.policy.documents.fields import (
    Document,
    Entry,
    LimitsDocument,
    ListsDocument,
    Place,
    SelectorDocument,
    Whole,
    made,
)
from costguard.policy.syntax import time_values as times
from costguard.policy.syntax import units
from costguard.policy.syntax import values as v
from costguard.policy.syntax.problems import BadValueError
from costguard.policy.syntax.yaml_nodes import YamlDocument as File

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
ExactAccount = Annotated[str, AfterValidator(v.account_pattern), BeforeValidator(scope.exact)]
ExactRegion = Annotated[str, AfterValidator(v.matching(_REGION, "a region")), BeforeValidator(scope.exact)]
ExactClouds = Annotated[tuple[ExactCloud, ...], AfterValidator(v.some(_EVERYTHING))]
ExactAccounts = Annotated[tuple[ExactAccount, ...], AfterValidator(v.some(_EVERYTHING))]
ExactRegions = Annotated[tuple[ExactRegion, ...], AfterValidator(v.some(_EVERYTHING))]
ExactTags = Annotated[dict[str, str], AfterValidator(scope.exact_tags)]
Addresses = Annotated[tuple[f.Channel, ...], AfterValidator(v.some("leave the key out to tell the default channel"))]

_COUNTED = Counted()
_TRUST = Trust()
AMOUNTS = {
    "monthly": PeriodKind.MONTHLY,
    "quarterly": PeriodKind.QUARTERLY,
    "yearly": PeriodKind.YEARLY,
    "total": PeriodKind.DATED,
}
_LONGEST = timedelta(days=3653)  # ten years, three leap days in them at most
_EXAMPLE = "monthly: 5000 USD"


class CoversDocument(ListsDocument):
    """`covers`: which spend; every key given must hold."""

    clouds: ExactClouds | None = None
    accounts: ExactAccounts | None = None
    regions: ExactRegions | None = None
    tags: ExactTags | None = None

    @model_validator(mode="after")
    def _something_there_is(self) -> Self:
        if not self.model_fields_set:
            raise BadValueError("an empty mapping covers nothing", "leave the key out to cover everything")
        scope.check_reachable(self.clouds, self.accounts or (), self.regions or (), self.tags or {})
        return self


class CountsDocument(Document):
    """`counts`: what of a bill counts."""

    cost: Basis = _COUNTED.basis
    credits: bool = _COUNTED.credits
    tax: bool = _COUNTED.tax


class TrustDocument(Document):
    """`trust`: how good the figures must be before more than an alert follows from them."""

    bill_not_older_than: BillAge = _TRUST.bill_not_older_than
    estimated_at_most: Estimated = _TRUST.estimated_share


class BudgetDocument(Entry):
    """One entry of `budgets`."""

    mode: f.ModeWord | None = None
    covers: CoversDocument | None = None
    monthly: Amount | None = None
    quarterly: Amount | None = None
    yearly: Amount | None = None
    total: Amount | None = None
    first: BillDay | None = Field(default=None, alias="from")
    last: BillDay | None = Field(default=None, alias="to")
    zone: f.Zone | None = None
    alert_at: Alerts = DEFAULT_ALERT_SHARES
    forecast_alert_at: ForecastAlerts = DEFAULT_FORECAST_SHARES
    surge_alert: bool = True
    counts: CountsDocument = CountsDocument()
    trust: TrustDocument = TrustDocument()
    at: At = Field(default_factory=dict)
    tell: Addresses = ()
    safety: LimitsDocument = LimitsDocument()

    @model_validator(mode="after")
    def _one_amount(self) -> Self:
        given = [key for key in AMOUNTS if getattr(self, key) is not None]
        if not given:
            raise BadValueError("a budget says no amount", f"add {_EXAMPLE}, or total: with from: and to:")
        if len(given) > 1:
            message = f"{given[0]} and {given[1]}: a budget has one amount"
            raise BadValueError(message, "make it two budgets", at=(given[1],), key=True)
        days = {"from": self.first, "to": self.last}
        for key, day in days.items():
            if self.total is None and day is not None:
                message = f"{key} goes with total; a {given[0]} budget has no end"
                raise BadValueError(message, f"remove {key}, or write total for {given[0]}", at=(key,), key=True)
            if self.total is not None and day is None:
                message = f"total needs the first and the last day; {key} is missing"
                raise BadValueError(message, f"add {key}: 2026-11-01, or write monthly", at=("total",), key=True)
        return self

    @model_validator(mode="after")
    def _days_in_order(self) -> Self:
        if self.first is None or self.last is None:
            return self
        if self.last < self.first:
            message = f"the budget would end on {self.last}, before it begins on {self.first}"
            raise BadValueError(message, "write the first day under from", at=("to",))
        if self.last - self.first >= _LONGEST:
            raise BadValueError("a budget of more than ten years", "write a yearly budget", at=("to",))
        return self

    def rule(self, whole: Whole) -> BudgetRule:
        """What it compiles to, without its digest; periods are those of the calendar's zone where it names none."""
        covers, key = self.covers, next(key for key in AMOUNTS if getattr(self, key) is not None)
        return BudgetRule(
            name=self.name,
            mode=whole.mode if self.mode is None else self.mode,
            covers=SpendScope()
            if covers is None
            else SpendScope(covers.clouds, covers.accounts, covers.regions, tuple((covers.tags or {}).items())),
            period=BudgetPeriod(AMOUNTS[key], self.zone or whole.zone or "UTC", self.first, self.last),
            amount=getattr(self, key),
            alert_at=(*self.alert_at, *shares_at(self.at)),
            forecast_alert_at=self.forecast_alert_at,
            steps=budget_steps(self.at),
            tell=self.tell,
            counted=Counted(self.counts.cost, self.counts.credits, self.counts.tax),
            trust=Trust(self.trust.bill_not_older_than, self.trust.estimated_at_most),
            limits=made(Limits, self.safety),
            surge_alert=self.surge_alert,
        )

    def waits(self, written: File, place: Place) -> Iterator[tuple[Place, timedelta]]:
        """Of every step that stops; a freeze waits by the clock."""
        del written
        for text, steps in self.at.items():
            for index, step in enumerate(steps):
                if step.kind is not StepKind.FREEZE:
                    yield (*place, "at", text, index), step.wait


class ExchangeRateDocument(Document):
    """One entry of `exchange_rates`: what one unit of `from` is worth in `to` since a day."""

    base: Currency = Field(alias="from")
    quote: Currency = Field(alias="to")
    rate: Rate
    since: BillDay

    @field_validator("quote")
    @classmethod
    def _another(cls, quote: str, info: ValidationInfo) -> str:
        if quote == info.data.get("base"):
            message = f"{quote} is always worth one {quote}"
            raise BadValueError(message, "name two currencies, or remove the entry")
        return quote


class PriorityClassDocument(Document):
    """One entry of `priority_classes`, the least important first."""

    name: f.Name
    applies_when_all: SelectorDocument


class LaunchFreezeDocument(Document):
    """One entry of `launch_freezes`: a policy that people wrote, and where it may be attached."""

    name: f.Name
    cloud: f.CloudWord
    via: Via
    policy: f.Text
    target: f.Text
    account: str | None = None
    role: f.Role | None = None

    @field_validator("role")
    @classmethod
    def _role(cls, role: str | None, info: ValidationInfo) -> str | None:
        cloud = info.data.get("cloud")
        if role is not None and info.data.get("account") is None:
            raise BadValueError("a role goes with the account it is in", "add account: and its id")
        return role if cloud is None or role is None else v.check_role(cloud, role)

    @field_validator("account")
    @classmethod
    def _account(cls, text: str | None, info: ValidationInfo) -> str | None:
        cloud = info.data.get("cloud")
        return text if cloud is None or text is None else v.check_account_id(cloud, text)

    @model_validator(mode="after")
    def _fits(self) -> Self:
        found = misfit(self.freeze())
        if found is not None:
            raise BadValueError(found.message, found.fix, at=(found.field,))
        return self

    def freeze(self) -> LaunchFreeze:
        """What it says."""
        return LaunchFreeze(
            self.name, self.cloud, self.via, self.policy, self.target, self.account or "", self.role or ""
        )
