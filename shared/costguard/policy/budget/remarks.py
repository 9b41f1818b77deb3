"""What the budgets of a valid policy say that their writer may not have meant. Nothing here stops a run. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from types import MappingProxyType

from costguard.domain.money import Money, SpendScope, converted
from costguard.domain.refs import provider_of
from costguard.guards.budget.rules import BudgetRule, PeriodKind, period_at
from costguard.policy.budget.scope import unusable
from costguard.policy.model.policy import Policy

Told = tuple[str, str]
"""Where, and what."""

BILLED_IN: Mapping[str, str] = MappingProxyType(
    {
        "aws": "USD",
        "aws-cn": "CNY",
        "aws-us-gov": "USD",
        "alibaba": "CNY",
        "alibaba-intl": "USD",
        "tencent": "CNY",
        "tencent-intl": "USD",
    }
)
"""What each cloud's bills are usually in: for hints only, the bill itself says its currency."""
_LATEST_BILL = timedelta(hours=48)  # a day of delay, then cut to a whole day of the vendor's
_OLD_RATE = timedelta(days=366)


def budget_remarks(policy: Policy, now: datetime) -> Iterator[Told]:
    """Every warning about budgets, classes and rates, as a place and a sentence."""
    for budget in policy.budgets:
        where = f"budget {budget.name}"
        found = (
            *_over(budget, now),
            *_currencies(budget, policy, now),
            *_unguarded(budget, policy),
            *_tags(budget, policy),
            *_around(budget, policy),
            *_idle_steps(budget),
            *_untold(budget, policy),
        )
        yield from ((where, message) for message in found)
    yield from _classes(policy)
    yield from _rates(policy, now)
    yield from _freezes(policy)
    if policy.budgets and not policy.idle_gpu:
        yield "idle_gpu", "no rule: idle machines are looked at only where a budget asks for them"


def lies_within(inner: SpendScope, outer: SpendScope) -> bool:
    """Whether all spend that `inner` holds is in `outer` too."""
    return (
        _part(inner.clouds, outer.clouds)
        and _part(inner.accounts, outer.accounts)
        and _part(inner.regions, outer.regions)
        and set(outer.tags) <= set(inner.tags)
    )


def _part(inner: tuple[str, ...] | None, outer: tuple[str, ...] | None) -> bool:
    return outer is None or (inner is not None and set(inner) <= set(outer))


def _over(budget: BudgetRule, now: datetime) -> Iterator[str]:
    if budget.period.kind is PeriodKind.DATED and period_at(budget.period, now) is None and budget.period.last:
        over = budget.period.last < now.date()
        yield f"it ended on {budget.period.last}; remove it" if over else f"it begins on {budget.period.first}"


def _currencies(budget: BudgetRule, policy: Policy, now: datetime) -> Iterator[str]:
    period = period_at(budget.period, now)
    for cloud in _clouds(budget, policy):
        one = Money(Decimal(1), BILLED_IN[cloud])
        wanted = budget.amount.currency
        if converted(one, wanted, now.date(), policy.exchange_rates) is None:
            yield (
                f"{cloud} bills in {one.currency} and exchange_rates has no rate to {wanted} today: "
                "it alerts with what it can add up, and never stops anything"
            )
        elif period and converted(one, wanted, period.start.date(), policy.exchange_rates) is None:
            yield (
                f"no rate between {one.currency} and {wanted} holds on {period.start.date()} (UTC), when the period "
                f"began: until the next one it stops nothing, for spend on {cloud} cannot all be added up"
            )


def _clouds(budget: BudgetRule, policy: Policy) -> tuple[str, ...]:
    """The clouds a budget is known to reach; none where the policy names no account."""
    guarded = sorted({account.cloud for account in policy.accounts})
    if budget.covers.clouds is not None:
        return tuple(budget.covers.clouds)
    return tuple(guarded)


def _unguarded(budget: BudgetRule, policy: Policy) -> Iterator[str]:
    if not policy.accounts:
        return
    clouds = {account.cloud for account in policy.accounts}
    for cloud in budget.covers.clouds or ():
        if cloud not in clouds:
            yield f"it covers {cloud}, where no account is guarded: that spend is never seen"
    if any(account.organisation for account in policy.accounts):
        return  # its members are known only when it is asked
    guarded = {account.id for account in policy.accounts}
    for account in budget.covers.accounts or ():
        if account not in guarded:
            yield f"it covers account {account}, which is not among the accounts guarded; is it mistyped?"


def _tags(budget: BudgetRule, policy: Policy) -> Iterator[str]:
    for key, value in budget.covers.tags:
        for provider in sorted({provider_of(cloud) for cloud in _clouds(budget, policy)}):
            why = unusable(provider, key, value)
            if why:
                yield f"no spend on {provider} is ever in it: {why}"


def _around(budget: BudgetRule, policy: Policy) -> Iterator[str]:
    around = [
        other for other in policy.budgets if other.name != budget.name and lies_within(budget.covers, other.covers)
    ]
    outer = [other for other in around if other.covers != budget.covers]
    if outer:
        names = ", ".join(other.name for other in outer)
        yield f"it lies within {names}: its spend counts there too, and a machine is still stopped only once"
    for other in around:
        alike = (other.period, other.amount.currency) == (budget.period, budget.amount.currency)
        if alike and other.amount.amount < budget.amount.amount:
            yield f"it allows {budget.amount}, more than {other.name} around it, which allows {other.amount}"


def _idle_steps(budget: BudgetRule) -> Iterator[str]:
    if not budget.steps:
        return
    if budget.limits.actions_per_day == 0 or budget.limits.fleet_share_per_day == 0:
        yield "a cap of 0 allows nothing: it never stops anything"
    if budget.trust.bill_not_older_than < _LATEST_BILL:
        yield "bills are up to 48 h late, so with this bill_not_older_than it stops something on few days only"
    if budget.trust.estimated_share == 0:
        yield "what runs is estimated until the bill has it, so with estimated_at_most 0% it seldom stops anything"


def _untold(budget: BudgetRule, policy: Policy) -> Iterator[str]:
    """In every mode: alerts are all that a budget which observes is for."""
    if not budget.tell and not policy.default_channel:
        yield "its alerts reach nobody: add tell, or notify.default"


def _classes(policy: Policy) -> Iterator[Told]:
    used = {name for budget in policy.budgets for step in budget.steps for name in step.classes}
    for each in policy.priority_classes:
        if each.name not in used:
            yield f"priority class {each.name}", "no budget stops it"


def _freezes(policy: Policy) -> Iterator[Told]:
    used = {name for budget in policy.budgets for step in budget.steps for name in step.freezes}
    for each in policy.launch_freezes:
        if each.name not in used:
            yield f"launch freeze {each.name}", "no budget asks for it"


def _rates(policy: Policy, now: datetime) -> Iterator[Told]:
    latest = {frozenset({rate.base, rate.quote}): rate for rate in sorted(policy.exchange_rates, key=lambda r: r.since)}
    for rate in latest.values():
        if now.date() - rate.since > _OLD_RATE:
            where = f"exchange rate {rate.base} {rate.quote}"
            yield where, f"it is of {rate.since}, over a year old; add what holds now"
