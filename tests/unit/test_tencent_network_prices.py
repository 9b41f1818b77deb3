"""What Tencent Cloud bills of an address or a gateway: by its price question, by a dated table, or not known."""

from __future__ import annotations

from datetime import datetime, timezone
from decimal import Decimal
from typing import Any

import pytest

from costguard.domain.errors import AccessDeniedError, ProviderError
from costguard.domain.money import HourlyRate, Money
from costguard.domain.network import Unpriced
from costguard.domain.refs import Shard
from costguard.providers.tencent.network.prices import (
    Bandwidth,
    NetworkPrices,
    cost_of_address,
    cost_of_gateway,
    hourly,
)

CHINA = Shard("tencent", "100012345678", "ap-guangzhou")
ABROAD = Shard("tencent-intl", "200012345678", "ap-singapore")
NOW = datetime(2026, 3, 2, 9, tzinfo=timezone.utc)
TRAFFIC, HOURLY, PACKAGE = "TRAFFIC_POSTPAID_BY_HOUR", "BANDWIDTH_POSTPAID_BY_HOUR", "BANDWIDTH_PACKAGE"


def listed(amount: str, as_of: str = "2022-10-31") -> HourlyRate:
    return HourlyRate(Money(Decimal(amount), "USD"), "table", as_of)


@pytest.mark.parametrize(
    ("told", "abroad", "china"),
    [
        ({"AddressStatus": "UNBIND", "InternetChargeType": TRAFFIC}, listed("0.04"), Unpriced.UNLISTED),
        ({"AddressStatus": "BIND_ENI", "InternetChargeType": TRAFFIC}, listed("0.04"), Unpriced.UNLISTED),
        ({"AddressStatus": "UNBIND", "InternetChargeType": None}, listed("0.04"), Unpriced.UNLISTED),
        ({"AddressStatus": "UNBIND", "InternetChargeType": PACKAGE}, listed("0.04"), Unpriced.UNLISTED),
        (
            {"AddressStatus": "BIND", "InternetChargeType": TRAFFIC},
            Unpriced.FREE_WHILE_BOUND,
            Unpriced.FREE_WHILE_BOUND,
        ),
        ({"AddressStatus": "BIND", "InternetChargeType": PACKAGE}, Unpriced.SHARED, Unpriced.SHARED),
        ({"InternetChargeType": "BANDWIDTH_PREPAID_BY_MONTH"}, Unpriced.TERM, Unpriced.TERM),
        ({"AddressType": "AnycastEIP", "InternetChargeType": TRAFFIC}, Unpriced.UNLISTED, Unpriced.UNLISTED),
        ({"AntiDDoSPackageId": "bgp-1", "InternetChargeType": TRAFFIC}, Unpriced.SHARED, Unpriced.SHARED),
        ({"AddressStatus": "UNBIND", "InternetChargeType": "NEW_WORD"}, Unpriced.UNLISTED, Unpriced.UNLISTED),
    ],
)
def test_what_is_billed_of_an_address(told: Any, abroad: Any, china: Any) -> None:
    assert cost_of_address(ABROAD, told) == abroad
    assert cost_of_address(CHINA, told) == china


def test_bandwidth_by_the_hour_is_asked_for_in_any_state() -> None:
    for status in ("BIND", "UNBIND"):
        told = {"AddressStatus": status, "InternetChargeType": HOURLY, "Bandwidth": 5}
        assert cost_of_address(CHINA, told) == Bandwidth(CHINA, 5)
    with pytest.raises(ValueError, match="Bandwidth"):
        cost_of_address(CHINA, {"InternetChargeType": HOURLY, "Bandwidth": None})


@pytest.mark.parametrize(
    ("told", "abroad"),
    [
        ({"MaxConcurrentConnection": 1_000_000, "NatProductVersion": 1}, listed("0.13", "2022-05-20")),
        ({"MaxConcurrentConnection": 10_000_000}, listed("1.3", "2022-05-20")),
        ({"MaxConcurrentConnection": 2_000_000}, Unpriced.UNLISTED),
        ({"MaxConcurrentConnection": 2_000_000, "NatProductVersion": 2}, listed("0.043", "2024-11-12")),
        ({"MaxConcurrentConnection": 1_000_000, "IsExclusive": True}, Unpriced.UNLISTED),
        ({}, Unpriced.UNLISTED),
    ],
)
def test_what_is_billed_of_a_gateway(told: Any, abroad: Any) -> None:
    assert cost_of_gateway(ABROAD, told) == abroad
    assert cost_of_gateway(CHINA, told) is Unpriced.UNLISTED


def quoted(price: Any = 0.063, unit: Any = "HOUR") -> dict[str, Any]:
    return {"Price": {"AddressPrice": {"UnitPrice": price, "DiscountPrice": price, "ChargeUnit": unit}}}


class Quoting:
    """Answers price questions, and remembers them."""

    def __init__(self, answer: Any) -> None:
        self._answer = answer
        self.asked: list[tuple[Shard, str, dict[str, Any]]] = []

    def call(self, shard: Shard, service: str, action: str, /, **parameters: Any) -> dict[str, Any]:
        self.asked.append((shard, f"{service}:{action}", parameters))
        if isinstance(self._answer, ProviderError):
            raise self._answer
        found: dict[str, Any] = self._answer
        return found

    def pages(self, *_: Any, **__: Any) -> Any:
        raise AssertionError


def test_a_bandwidth_is_asked_for_once() -> None:
    session = Quoting(quoted())
    source = NetworkPrices(session, now=lambda: NOW)
    rates = [source.of(Bandwidth(CHINA, 5)) for _ in range(3)]
    assert rates == [(HourlyRate(Money(Decimal("0.063"), "CNY"), "tencent-vpc", "2026-03-02"), None)] * 3
    asked = {"InternetChargeType": HOURLY, "InternetMaxBandwidthOut": 5, "AddressType": "EIP"}
    assert session.asked == [(CHINA, "vpc:InquiryPriceAllocateAddresses", asked)]
    assert source.of(Unpriced.SHARED) == (None, Unpriced.SHARED)
    assert source.of(listed("0.04")) == (listed("0.04"), None)


@pytest.mark.parametrize(
    "answer",
    [
        AccessDeniedError("no", operation="vpc:InquiryPriceAllocateAddresses", code="UnauthorizedOperation"),
        quoted(0),
        quoted(None),
        quoted(-1),
        quoted("0.063"),
        quoted(1e9),
        quoted(unit="MONTH"),
        quoted(unit=None),
        {"Price": {}},
        {"Price": None},
        {},
    ],
)
def test_a_price_that_cannot_be_read_is_none_and_never_zero_and_is_asked_for_once(answer: Any) -> None:
    session = Quoting(answer)
    source = NetworkPrices(session, now=lambda: NOW)
    assert [source.of(Bandwidth(CHINA, 5)) for _ in range(3)] == [(None, Unpriced.NOT_READ)] * 3
    assert len(session.asked) == 1


def test_a_price_is_as_it_was_written() -> None:
    assert hourly(quoted(0.1)) == Decimal("0.1")
