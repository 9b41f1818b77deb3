"""What Alibaba Cloud bills of an address or a gateway, and what is made of its answers to price questions."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone
from decimal import Decimal
from typing import Any

import pytest

from costguard.domain.errors import AccessDeniedError, ProviderError
from costguard.domain.network import Unpriced
from costguard.domain.refs import Shard
from costguard.providers.alibaba.network.prices import (
    Fee,
    NetworkPrices,
    fees_of_address,
    fees_of_gateway,
    price_in,
    question,
)

SHARD = Shard("alibaba", "1234567890123456", "cn-hangzhou")
NOW = datetime(2026, 3, 2, 9, tzinfo=timezone.utc)
RENT, GATEWAY = Fee("cn-hangzhou", "eip"), Fee("cn-hangzhou", "nat_gw")
TEN = Fee("cn-hangzhou", "eip", 10)


def quoted(cost: Any = Decimal("0.02"), module: str = "InstanceRent", currency: str = "CNY") -> dict[str, Any]:
    details = {"ModuleDetail": [{"ModuleCode": module, "OriginalCost": cost}]}
    return {"Data": {"Currency": currency, "ModuleDetails": details}}


def modules(code: str = "InstanceRent", unit: str = "Hour", *more: str) -> dict[str, Any]:
    one = {"ModuleCode": code, "PriceType": unit, "ConfigList": {"ConfigList": ["InstanceRent", *more]}}
    return {"Data": {"ModuleList": {"Module": [one]}}}


def twice(answer: dict[str, Any]) -> dict[str, Any]:
    """With two prices for one thing."""
    data = answer["Data"]
    return {"Data": {**data, "ModuleDetails": {"ModuleDetail": data["ModuleDetails"]["ModuleDetail"] * 2}}}


class Quoting:
    """Answers price questions, and remembers them."""

    def __init__(self, answer: Any, made_of: Any = None) -> None:
        self._answers = {"GetPayAsYouGoPrice": answer, "DescribePricingModule": made_of or modules()}
        self.asked: list[tuple[str, str, Mapping[str, Any]]] = []

    def call(self, shard: Shard, service: str, operation: str, /, **parameters: Any) -> Mapping[str, Any]:
        assert (service, shard.region, shard.account) == ("bss", "", SHARD.account)
        self.asked.append((shard.cloud, operation, parameters))
        answer = self._answers[operation]
        if isinstance(answer, ProviderError):
            raise answer
        found: Mapping[str, Any] = answer
        return found


def prices(session: Quoting) -> NetworkPrices:
    return NetworkPrices(session, now=lambda: NOW)


@pytest.mark.parametrize(
    ("told", "fees"),
    [
        ({"InternetChargeType": "PayByTraffic"}, (RENT,)),
        ({"InternetChargeType": "PayByTraffic", "InstanceType": "Nat"}, (RENT,)),
        ({"InternetChargeType": "PayByTraffic", "InstanceType": "NetworkInterface"}, (RENT,)),
        ({"InternetChargeType": "PayByTraffic", "InstanceType": "EcsInstance"}, Unpriced.FREE_WHILE_BOUND),
        ({"InternetChargeType": "PayByBandwidth", "Bandwidth": "10"}, (RENT, TEN)),
        ({"InternetChargeType": "PayByBandwidth", "Bandwidth": "10", "InstanceType": "EcsInstance"}, (TEN,)),
        ({"ChargeType": "PrePaid", "InternetChargeType": "PayByBandwidth", "Bandwidth": "10"}, Unpriced.TERM),
        ({"BandwidthPackageId": "cbwp-1"}, Unpriced.SHARED),
        ({"ISP": "BGP_PRO"}, Unpriced.UNLISTED),
    ],
)
def test_what_is_billed_of_an_address(told: Any, fees: Any) -> None:
    assert fees_of_address(SHARD, told) == fees


@pytest.mark.parametrize("bandwidth", ["", "0", "ten", "5.5"])
def test_a_bandwidth_that_is_no_number_is_not_as_documented(bandwidth: str) -> None:
    with pytest.raises(ValueError, match="Bandwidth"):
        fees_of_address(SHARD, {"InternetChargeType": "PayByBandwidth", "Bandwidth": bandwidth})


def test_what_is_billed_of_a_gateway() -> None:
    assert fees_of_gateway(SHARD, {"InternetChargeType": "PayByLcu"}) == (GATEWAY,)
    assert fees_of_gateway(SHARD, {"InternetChargeType": "PayBySpec"}) is Unpriced.UNLISTED
    assert fees_of_gateway(SHARD, {"InstanceChargeType": "PrePaid"}) is Unpriced.TERM


def test_questions_are_as_the_documents_write_them() -> None:
    assert question(RENT) == {
        "ProductCode": "eip",
        "SubscriptionType": "PayAsYouGo",
        "Region": "cn-hangzhou",
        "ModuleList": [
            {"ModuleCode": "InternetTrafficOut", "Config": "InternetTrafficOut:1", "PriceType": "Usage"},
            {"ModuleCode": "InstanceRent", "Config": "InstanceRent:1", "PriceType": "Hour"},
        ],
    }
    assert question(TEN)["ModuleList"] == [
        {"ModuleCode": "Bandwidth", "Config": "Bandwidth:10240", "PriceType": "Day"},
        {"ModuleCode": "InternetChargeType", "Config": "InternetChargeType:0", "PriceType": "Usage"},
        {"ModuleCode": "ISP", "Config": "ISP:BGP", "PriceType": "Hour"},
    ]


def test_the_parts_of_a_price_are_summed_and_dated() -> None:
    rate, why = prices(Quoting(quoted())).of(SHARD, (RENT,))
    assert rate is not None
    assert (rate.money.amount, rate.money.currency, rate.source, rate.as_of, why) == (
        Decimal("0.02"),
        "CNY",
        "alibaba-bss",
        "2026-03-02",
        None,
    )
    assert prices(Quoting(quoted())).of(SHARD, Unpriced.SHARED) == (None, Unpriced.SHARED)
    found = price_in(quoted(Decimal("21.6"), "Bandwidth"), TEN)
    assert found is not None
    assert found.amount == Decimal("0.9")


@pytest.mark.parametrize(
    "answer",
    [
        AccessDeniedError("no", operation="bss:GetPayAsYouGoPrice", code="NotAuthorized"),
        quoted(Decimal(0)),
        quoted(-1),
        quoted(Decimal("1e9")),
        quoted("much"),
        quoted(None),
        quoted(module="Other"),
        quoted(currency="USD"),
        quoted(currency=""),
        {"Data": {}},
        {"Data": None},
        {
            "Data": {
                "Currency": "CNY",
                "ModuleDetails": {"ModuleDetail": quoted()["Data"]["ModuleDetails"]["ModuleDetail"] * 2},
            }
        },
    ],
)
def test_a_price_that_cannot_be_read_is_none_and_never_zero_and_is_asked_for_once(answer: Any) -> None:
    session = Quoting(answer)
    source = prices(session)
    for _ in range(3):
        assert source.of(SHARD, (RENT,)) == (None, Unpriced.NOT_READ)
    assert len(session.asked) == 1


@pytest.mark.parametrize(
    "made_of", [modules("CU"), modules(unit="Usage"), modules("InstanceRent", "Hour", "Spec"), {"Data": {}}]
)
def test_a_gateway_is_unlisted_where_the_price_list_has_no_rent_by_the_hour(made_of: Any) -> None:
    session = Quoting(quoted(), made_of)
    source = prices(session)
    assert [source.of(SHARD, (GATEWAY,)) for _ in range(2)] == [(None, Unpriced.UNLISTED)] * 2
    assert [name for _, name, _ in session.asked] == ["DescribePricingModule"]


def test_a_gateway_whose_price_list_was_not_read_is_not_unlisted() -> None:
    denied = AccessDeniedError("no", operation="bss:DescribePricingModule", code="NotAuthorized")
    assert prices(Quoting(quoted(), denied)).of(SHARD, (GATEWAY,)) == (None, Unpriced.NOT_READ)


def test_a_sum_of_which_a_part_is_not_told_is_no_price() -> None:
    rent_alone = Quoting(quoted())  # asked about bandwidth it tells no price of that
    assert prices(rent_alone).of(SHARD, (RENT, TEN)) == (None, Unpriced.NOT_READ)
    assert len(rent_alone.asked) == 2
    both = [
        *quoted()["Data"]["ModuleDetails"]["ModuleDetail"],
        {"ModuleCode": "Bandwidth", "OriginalCost": Decimal("21.6")},
    ]
    whole, why = prices(Quoting({"Data": {"Currency": "CNY", "ModuleDetails": {"ModuleDetail": both}}})).of(
        SHARD, (RENT, TEN)
    )
    assert whole is not None
    assert (whole.money.amount, why) == (Decimal("0.92"), None)


def test_the_price_of_a_gateway_is_read_where_there_is_one() -> None:
    rate, _ = prices(Quoting(quoted(Decimal("0.23")))).of(SHARD, (GATEWAY,))
    assert rate is not None
    assert rate.money.amount == Decimal("0.23")
