"""Budgets, exchange rates and priority classes as users write them. Needs pydantic."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from pydantic import Field, ValidationInfo, field_validator, model_validator
from typing_extensions import Self

from costguard.domain.actions import LaunchFreeze
from costguard.guards.budget.rules import DEFAULT_ALERT_SHARES, DEFAULT_FORECAST_SHARES, Counted, Trust
from costguard.policy.budget import fields as b
from costguard.policy.budget.freeze_ids import misfit
from costguard.policy.budget.scope import check_reachable
from costguard.policy.documents import fields as f
from costguard.policy.documents.base import Document, LimitsDocument, SelectorDocument
from costguard.policy.syntax.cloud_values import check_account_id, check_role
from costguard.policy.syntax.problems import BadValueError

_COUNTED = Counted()
_TRUST = Trust()
AMOUNTS = ("monthly", "quarterly", "yearly", "total")
_LONGEST = timedelta(days=3653)  # ten years, three leap days in them at most
_EXAMPLE = "monthly: 5000 USD"


class CoversDocument(Document):
    """`covers`: which spend; every key given must hold."""

    clouds: b.ExactClouds | None = None
    accounts: b.ExactAccounts | None = None
    regions: b.ExactRegions | None = None
    tags: b.ExactTags | None = None

    @field_validator("*", mode="before")
    @classmethod
    def _a_list(cls, raw: Any, info: ValidationInfo) -> Any:
        if info.field_name != "tags" and isinstance(raw, str):
            raise BadValueError("expected a list", f'write ["{raw}"]')
        return raw

    @model_validator(mode="after")
    def _something_there_is(self) -> Self:
        if not self.model_fields_set:
            raise BadValueError("an empty mapping covers nothing", "leave the key out to cover everything")
        check_reachable(self.clouds, self.accounts or (), self.regions or (), self.tags or {})
        return self


class CountsDocument(Document):
    """`counts`: what of a bill counts."""

    cost: b.Basis = _COUNTED.basis
    credits: bool = _COUNTED.credits
    tax: bool = _COUNTED.tax


class TrustDocument(Document):
    """`trust`: how good the figures must be before more than an alert follows from them."""

    bill_not_older_than: b.BillAge = _TRUST.bill_not_older_than
    estimated_at_most: b.Estimated = _TRUST.estimated_share


class BudgetDocument(Document):
    """One entry of `budgets`."""

    name: f.Name
    mode: f.ModeWord | None = None
    covers: CoversDocument | None = None
    monthly: b.Amount | None = None
    quarterly: b.Amount | None = None
    yearly: b.Amount | None = None
    total: b.Amount | None = None
    first: b.BillDay | None = Field(default=None, alias="from")
    last: b.BillDay | None = Field(default=None, alias="to")
    zone: f.Zone | None = None
    alert_at: b.Alerts = DEFAULT_ALERT_SHARES
    forecast_alert_at: b.ForecastAlerts = DEFAULT_FORECAST_SHARES
    surge_alert: bool = True
    counts: CountsDocument = CountsDocument()
    trust: TrustDocument = TrustDocument()
    at: b.At = Field(default_factory=dict)
    tell: b.Addresses = ()
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


class ExchangeRateDocument(Document):
    """One entry of `exchange_rates`: what one unit of `from` is worth in `to` since a day."""

    base: b.Currency = Field(alias="from")
    quote: b.Currency = Field(alias="to")
    rate: b.Rate
    since: b.BillDay

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
    via: b.Via
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
        return role if cloud is None or role is None else check_role(cloud, role)

    @field_validator("account")
    @classmethod
    def _account(cls, text: str | None, info: ValidationInfo) -> str | None:
        cloud = info.data.get("cloud")
        return text if cloud is None or text is None else check_account_id(cloud, text)

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
