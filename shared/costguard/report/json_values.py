"""How times, money and gaps look in every JSON answer."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

from costguard.domain.money import Money
from costguard.domain.resources import Gap
from costguard.report.words import Language, clean, gap


def moment(value: datetime | None) -> str | None:
    """A time as JSON carries it: ISO 8601, UTC, whole seconds, ending in Z."""
    if value is None:
        return None
    return value.astimezone(timezone.utc).replace(microsecond=0, tzinfo=None).isoformat() + "Z"


def gap_json(value: Gap, language: Language = Language.EN) -> dict[str, Any]:
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


def money_json(money: Money | None) -> dict[str, str] | None:
    """An exact amount with its currency; None where unknown."""
    return None if money is None else {"amount": f"{money.amount:f}", "currency": money.currency}
