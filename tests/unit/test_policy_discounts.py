"""Discounts in `prices`: what they say, where they are wrong, and that they decide nothing."""

from __future__ import annotations

from datetime import date, datetime, timezone
from decimal import Decimal

import pytest

from costguard.domain.money import Discount
from costguard.policy.diff.differences import Direction
from costguard.policy.diff.policies import policy_differences
from costguard.policy.documents.loader import check_policy, load_policy
from costguard.policy.model.policy import Policy
from costguard.policy.remarks import remarks
from costguard.ports import PolicyText

HEAD = "version: 1\nidle_gpu: [{name: research}]\n"
TODAY = datetime(2026, 11, 23, 12, tzinfo=timezone.utc)


def problems(entries: str) -> list[str]:
    text = f"{HEAD}prices:\n{entries}"
    return [str(one) for one in check_policy(PolicyText({"costguard.yaml": text}, ""))[1]]


def policy(entries: str = "") -> Policy:
    prices = f"prices:\n{entries}" if entries else ""
    return load_policy(PolicyText({"costguard.yaml": HEAD + prices}, ""))


def test_a_discount_says_where_it_holds_and_since_when() -> None:
    read = policy(
        '  - {cloud: aws, account: "111122223333", instance_types: ["p4d.*"], discount: 30%, since: 2026-01-01}\n'
        "  - {cloud: alibaba, discount: 12.5%}\n"
    )

    assert read.discounts == (
        Discount("aws", Decimal("0.3"), "111122223333", ("p4d.*",), date(2026, 1, 1)),
        Discount("alibaba", Decimal("0.125")),
    )
    assert read.prices == ()


def test_a_policy_without_discounts_keeps_its_digest() -> None:
    """What was agreed before there were discounts is not agreed anew."""
    priced = '  - {cloud: aws, instance_types: ["p5.48xlarge"], hourly: 38.50 USD}\n'

    assert policy(priced).digest == "1ea2f3529699974b212b736f2cfe39f58accfcf0bd7235bb98c2e69dc31f89ca"
    assert policy().digest != policy("  - {cloud: aws, discount: 30%}\n").digest


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ("{cloud: aws, discount: 130%}", "prices[0].discount: 130% is more than all of it"),
        ("{cloud: aws, discount: -5%}", "prices[0].discount: '-5%' is less than nothing"),
        ("{cloud: aws, discount: 0%}", "prices[0].discount: 0% takes nothing off"),
        ("{cloud: aws, discount: 0.3}", "prices[0].discount: '0.3' is not a percentage"),
        ("{cloud: aws, discount: 30 USD}", "prices[0].discount: '30 USD' is not a percentage"),
        ("{cloud: azure, discount: 30%}", "prices[0].cloud: "),
        ("{cloud: aws, account: acme, discount: 30%}", "prices[0].account: "),
        ("{cloud: aws, types: [p4d.*], discount: 30%}", "prices[0].types: unknown key 'types'"),
        ("{cloud: aws, discount: 30%, since: 2026-02-30}", "prices[0].since: "),
        ("{cloud: aws, discount: 30%, since: 1926-01-01}", "prices[0].since: no bill is of the year 1926"),
        ("{cloud: aws}", "prices[0]: neither hourly nor discount"),
        ("{cloud: aws, instance_types: [p4d.*], hourly: 3 USD, discount: 3%}", "prices[0].discount: both hourly and "),
        ("{cloud: aws, hourly: 3 USD}", "prices[0]: a price an hour is of a type"),
        ("{cloud: aws, instance_types: [p4d.*], hourly: 3 USD, since: 2026-01-01}", "prices[0].since: goes with a "),
        ('{cloud: aws, instance_types: [p4d.*], hourly: 3 USD, account: "111122223333"}', "prices[0].account: goes "),
    ],
)
def test_a_wrong_entry_is_told_with_file_line_and_field(entry: str, says: str) -> None:
    (problem,) = problems(f"  - {entry}\n")

    assert problem.startswith("costguard.yaml:4:")
    assert says in problem


def test_two_discounts_of_one_scope_and_day_contradict_each_other() -> None:
    (problem,) = problems(
        '  - {cloud: aws, instance_types: ["p4d.*", "p5.*"], discount: 30%, since: 2026-01-01}\n'
        '  - {cloud: aws, instance_types: ["p5.*", "p4d.*"], discount: 40%, since: 2026-01-01}\n'
    )

    assert problem.startswith("costguard.yaml:5:")
    assert "prices[1]: a second discount for the same machines since 2026-01-01; the first is on line 4" in problem


def test_a_later_date_renews_a_discount() -> None:
    assert not problems(
        "  - {cloud: aws, discount: 30%, since: 2026-01-01}\n  - {cloud: aws, discount: 40%, since: 2026-07-01}\n"
    )


def test_a_discount_that_has_not_begun_is_a_remark() -> None:
    said = remarks(policy("  - {cloud: aws, discount: 30%, since: 2026-12-01}\n"), TODAY)

    assert any("begins on 2026-12-01: until then list prices are shown" in one.message for one in said)


def test_a_discount_of_years_ago_is_a_remark() -> None:
    said = remarks(policy("  - {cloud: aws, discount: 30%, since: 2021-12-01}\n"), TODAY)

    assert any("is of 2021-12-01, over three years old" in one.message for one in said)


def test_a_discount_loosens_nothing_because_caps_count_list_prices() -> None:
    (told,) = policy_differences(policy(), policy("  - {cloud: aws, discount: 30%}\n"))

    assert (told.key, told.direction) == ("prices.discount", Direction.OTHER)
    assert told.after == "aws 30%"


def test_a_price_in_another_currency_than_the_bill_is_a_remark() -> None:
    said = remarks(policy("  - {cloud: aws, instance_types: [p4d.*], hourly: 90 CNY}\n"), TODAY)

    assert any("aws bills in USD, and this price is in CNY" in one.message for one in said)
