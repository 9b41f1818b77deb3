"""How times, money, subjects, reasons and gaps look in every JSON answer."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING, overload

from costguard.domain.money import HourlyRate, Money
from costguard.domain.reasons import Reason
from costguard.domain.refs import ResourceRef, Subject
from costguard.domain.resources import Gap
from costguard.report.words.sentences import Language, clean, explain, gap

if TYPE_CHECKING:
    from costguard.report.schemas import values


@overload
def moment(value: datetime) -> str: ...
@overload
def moment(value: datetime | None) -> str | None: ...
def moment(value: datetime | None) -> str | None:
    """A time as JSON carries it: ISO 8601, UTC, whole seconds, ending in Z."""
    if value is None:
        return None
    return value.astimezone(timezone.utc).replace(microsecond=0, tzinfo=None).isoformat() + "Z"


def gap_json(value: Gap, language: Language = Language.EN) -> values.Gap:
    """One gap; `detail` and `fix` are cleaned."""
    return {
        "cloud": value.shard.cloud,
        "sub_account_id": value.shard.account,
        "region_id": value.shard.region,
        "what": value.what,
        "kind": value.kind.value,
        "detail": clean(value.detail),
        "fix": clean(value.fix),
        "words": gap(value, language),
    }


@overload
def money_json(money: Money) -> values.Money: ...
@overload
def money_json(money: Money | None) -> values.Money | None: ...
def money_json(money: Money | None) -> values.Money | None:
    """An exact amount with its currency; None where unknown."""
    return None if money is None else {"amount": f"{money.amount:f}", "currency": money.currency}


def effective_price_json(rate: HourlyRate | None) -> values.EffectivePrice | None:
    """The price after discounts, and how it is known."""
    net = None if rate is None else rate.net
    if net is None:
        return None
    return {
        "hourly_effective_cost": money_json(net.money),
        "source": net.source.value,
        "as_of": net.as_of,
        "discount": None if net.discount is None else f"{net.discount:f}",
        "declared_discount": None if net.declared is None else f"{net.declared:f}",
    }


def list_price_json(rate: HourlyRate | None) -> values.Money | None:
    """The cloud's own price; None where it is unknown, or the policy gives a price in its place."""
    return money_json(rate.money) if rate is not None and rate.is_list else None


def resource_json(ref: ResourceRef) -> values.Resource:
    """Whom it is about: FOCUS names, the vendor's own id, and our full id."""
    return {
        "id": str(ref),
        "provider": ref.provider,
        "cloud": ref.cloud,
        "sub_account_id": ref.account,
        "region_id": ref.region,
        "resource_id": ref.native_id,
        "resource_kind": ref.kind,
    }


def subject_json(subject: Subject) -> values.Subject:
    """The same of a scope as well, which has an id alone."""
    if isinstance(subject, ResourceRef):
        return {**resource_json(subject)}
    return {
        "id": str(subject),
        "provider": None,
        "cloud": None,
        "sub_account_id": None,
        "region_id": None,
        "resource_id": None,
        "resource_kind": "scope",
    }


def reason_json(reason: Reason, language: Language) -> values.Reason:
    """Code, facts and words of a reason; text among the facts is cleaned."""
    return {
        "reason": reason.code.value,
        "facts": {key: clean(value) if isinstance(value, str) else value for key, value in reason.facts.items()},
        "words": explain(reason, language),
    }
