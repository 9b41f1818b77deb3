"""The caps of a rolling day, at their edges: count, share and money."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from tests.builders import rule, usd

from costguard.domain.actions import Verb
from costguard.domain.money import HourlyRate, Money
from costguard.domain.reasons import Reason, ReasonCode
from costguard.planning import CapUse, RuleLimit
from costguard.planning.rails import cap_rail, rule_limit, with_one_more

YUAN = Money(Decimal(70), "CNY")
DOLLAR = HourlyRate(usd("1.00"), "test", "2026-01-01")
TEN = RuleLimit("research", 10, (YUAN, usd("5.00")))


def limit(instances_seen: int, **limits: Any) -> RuleLimit:
    return rule_limit(rule(limits=replace(rule().limits, **limits)), instances_seen)


@pytest.mark.parametrize(
    ("share", "fleet", "allowed"),
    [
        ("0.10", 0, 0),
        ("0.10", 1, 1),
        ("0.10", 9, 1),
        ("0.10", 19, 1),
        ("0.10", 20, 2),
        ("0.10", 70, 7),
        ("0.10", 1000, 10),
        ("0", 1000, 0),
        ("1", 3, 3),
    ],
)
def test_a_share_is_rounded_down_to_at_least_one_and_never_over_the_count(share: str, fleet: int, allowed: int) -> None:
    assert limit(fleet, actions_per_day=10, fleet_share_per_day=Decimal(share)).max_actions == allowed


def test_a_limit_names_its_rule_and_its_money() -> None:
    assert limit(5, hourly_cost_stopped_per_day=(YUAN,)) == RuleLimit("research", 5, (YUAN,), seen=5)


@pytest.mark.parametrize("verb", [Verb.STOP, Verb.TERMINATE])
def test_the_last_allowed_action_passes_and_the_next_does_not(verb: Verb) -> None:
    assert cap_rail(verb, TEN, CapUse(9), DOLLAR) is None
    assert cap_rail(verb, TEN, CapUse(10), DOLLAR) == Reason(ReasonCode.CAP_ACTIONS, {"allowed": 10, "used": 10})


@pytest.mark.parametrize("verb", [Verb.WARN, Verb.SNAPSHOT])
def test_what_interrupts_nobody_needs_no_room_under_a_cap(verb: Verb) -> None:
    assert cap_rail(verb, RuleLimit("research", 0, ()), CapUse(99), None) is None


def test_money_is_asked_of_a_stop_alone() -> None:
    """What a terminate frees was counted when the machine stopped."""
    assert cap_rail(Verb.TERMINATE, RuleLimit("research", 10, ()), CapUse(), None) is None
    assert cap_rail(Verb.STOP, TEN, CapUse(), None) == Reason(ReasonCode.PRICE_UNKNOWN)


def test_a_currency_without_a_cap_is_held() -> None:
    euro = HourlyRate(Money(Decimal(1), "EUR"), "test", "2026-01-01")
    assert cap_rail(Verb.STOP, TEN, CapUse(), euro) == Reason(ReasonCode.CURRENCY_UNCAPPED, {"currency": "EUR"})


def test_the_last_dollar_passes_and_a_cent_more_does_not() -> None:
    used = CapUse(4, (Money(Decimal(70), "CNY"), usd("4.00")))
    assert cap_rail(Verb.STOP, TEN, used, DOLLAR) is None
    more = replace(DOLLAR, money=usd("1.01"))
    facts = {"allowed": "5.00", "used": "4.00", "wanted": "1.01", "currency": "USD"}
    assert cap_rail(Verb.STOP, TEN, used, more) == Reason(ReasonCode.CAP_MONEY, facts)


def test_nothing_used_leaves_the_whole_cap() -> None:
    assert cap_rail(Verb.STOP, TEN, CapUse(), replace(DOLLAR, money=usd("5.00"))) is None


def test_a_stop_uses_one_action_and_its_price() -> None:
    before = CapUse(1, (usd("2.00"), YUAN))
    assert with_one_more(before, Verb.STOP, DOLLAR) == CapUse(2, (usd("3.00"), YUAN))
    assert with_one_more(CapUse(), Verb.STOP, DOLLAR) == CapUse(1, (usd("1.00"),))


def test_a_terminate_uses_one_action_and_no_money() -> None:
    assert with_one_more(CapUse(1, (YUAN,)), Verb.TERMINATE, DOLLAR) == CapUse(2, (YUAN,))


def test_an_action_of_unknown_price_is_counted_too() -> None:
    assert with_one_more(CapUse(), Verb.STOP, None) == CapUse(1)


@pytest.mark.parametrize("verb", [Verb.WARN, Verb.SNAPSHOT])
def test_a_notice_or_a_snapshot_uses_nothing(verb: Verb) -> None:
    assert with_one_more(CapUse(3, (YUAN,)), verb, DOLLAR) == CapUse(3, (YUAN,))
