"""A cloud's own budgets as a policy: whatever they hold, what is printed loads, and nothing is bent to fit."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.builders import usd

from costguard.cli.policy.adopting import Adopted, adopted, policy_lines
from costguard.domain.money import Money, SpendScope, VendorBudget
from costguard.guards.budget.rules import CostBasis, Counted
from costguard.policy.documents.loader import load_policy
from costguard.policy.model.policy import Policy
from costguard.ports import PolicyText
from costguard.report.words.sentences import Language

MAIN = "version: 1\nmode: enforce\nidle_gpu: [{name: all}]\n"


def budget(name: str = "research", **changes: Any) -> VendorBudget:
    ordinary = VendorBudget(
        "aws", "111122223333", name, usd("5000"), "monthly", SpendScope(clouds=("aws",)), ("80",), ("100",)
    )
    return replace(ordinary, **changes)


def one(given_: VendorBudget) -> Adopted:
    (found,) = adopted([given_], (), Language.EN)
    return found


def loaded(*found: Adopted) -> Policy:
    text = "\n".join(policy_lines(found, ("a note",), Language.EN)) + "\n"
    return load_policy(PolicyText({"costguard.yaml": MAIN, "policies/adopted.yaml": text}, "r"))


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"period": "daily"}, "daily"),
        ({"period": "dated"}, "dates"),
        ({"amount": usd("0")}, "a budget of 0 is spent before anything runs"),
        ({"amount": usd("-5")}, "is negative"),
        ({"scope": SpendScope(clouds=("aws",), tags=(("team", "res*"),))}, "is a pattern"),
        ({"scope": SpendScope(clouds=("aws",), tags=(("team", ""),))}, "without a value"),
        ({"scope": SpendScope(clouds=("aws",), regions=("global",))}, "region"),
        ({"scope": SpendScope(clouds=("aws",), accounts=())}, "an empty list matches nothing"),
    ],
)
def test_what_no_policy_can_say_is_refused_with_the_reason(changes: dict[str, Any], why: str) -> None:
    found = one(budget(**changes))

    assert found.lines == ()
    assert why in found.refused
    assert all(text.startswith(("#", "  #")) for text in policy_lines([found], (), Language.EN))


def test_thresholds_are_taken_over_each_once_and_in_order() -> None:
    told = budget(actual_thresholds=("100", "33.3", "80.0", "80", "0", "-1", "2000", "x"), forecast_thresholds=())
    read = loaded(one(told)).budget("research")

    assert read is not None
    assert read.alert_at == (Decimal("0.333"), Decimal("0.8"), Decimal(1))
    assert read.forecast_alert_at == ()


def test_what_the_console_counts_is_counted_here() -> None:
    read = loaded(one(budget(amortised=False, counts_credits=True, counts_tax=False))).budgets[0]
    assert read.counted == Counted(CostBasis.BILLED, credits=True, tax=False)
    assert loaded(one(budget())).budgets[0].counted == Counted()


def test_a_console_that_tells_no_threshold_leaves_the_usual_ones() -> None:
    read = loaded(one(budget(actual_thresholds=(), forecast_thresholds=(), unsupported="when it alerts"))).budgets[0]
    assert (read.alert_at, read.forecast_alert_at) == ((Decimal("0.5"), Decimal("0.8"), Decimal(1)), (Decimal(1),))


def test_names_are_made_fit_and_differ() -> None:
    found = adopted([budget("Größe/A"), budget("Größe A"), budget("预算")], ("adopted",), Language.EN)
    assert [each.name for each in found] == ["Gr-e-A", "Gr-e-A-2", "adopted-2"]
    assert len(loaded(*found).budgets) == 3


@given(
    st.lists(
        st.builds(
            budget,
            st.text(max_size=80),
            account=st.text(max_size=20),
            amount=st.decimals(0, 10**9, places=2).map(lambda amount: Money(amount, "CNY")),
            period=st.sampled_from(["monthly", "quarterly", "yearly", "daily"]),
            scope=st.builds(
                SpendScope,
                clouds=st.sampled_from([None, ("aws",)]),
                tags=st.dictionaries(st.text(max_size=8), st.text(max_size=8), max_size=2).map(
                    lambda tags: tuple(sorted(tags.items()))
                ),
            ),
            unsupported=st.text(max_size=40),
        ),
        max_size=3,
    )
)
@settings(max_examples=40, deadline=None)
def test_whatever_a_console_holds_what_is_printed_loads(budgets: list[VendorBudget]) -> None:
    found = adopted(budgets, (), Language.EN)

    if any(each.lines for each in found):
        assert len(loaded(*found).budgets) == sum(bool(each.lines) for each in found)
