"""Prices as CVM and CBS quote them: steps by length of use, zeros that are no prices, one currency a site."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest

from costguard.domain.errors import AccessDeniedError, ProviderError
from costguard.domain.money import HOURS_PER_MONTH, Money
from costguard.domain.refs import ResourceRef, Shard
from costguard.domain.resources import (
    Accelerator,
    AcceleratorKind,
    Billing,
    Instance,
    InstanceDetail,
    InstanceState,
    Volume,
)
from costguard.policy.model.policy import PriceOverride
from costguard.providers.tencent.billing.prices import TencentPrices, hourly

NOW = datetime(2026, 3, 2, 9, 20, tzinfo=timezone.utc)
REF = ResourceRef("tencent", "100012345678", "ap-guangzhou", "instance", "ins-1")
MACHINE = Instance(
    ref=REF,
    instance_type="PNV4.7XLARGE116",
    accelerator=Accelerator(AcceleratorKind.NVIDIA_GPU, "A10", 1),
    state=InstanceState.RUNNING,
    billing=Billing.ON_DEMAND,
    run_epoch="request-1",
    launched_at=NOW - timedelta(days=1),
    created_at=NOW - timedelta(days=1),
    zone="ap-guangzhou-6",
)
STEPS: dict[str, Any] = {
    "UnitPrice": 15.4,
    "UnitPriceSecondStep": 13.1,
    "UnitPriceThirdStep": 11.6,
    "ChargeUnit": "HOUR",
}
FLAT: dict[str, Any] = {
    "UnitPrice": 8.7,
    "UnitPriceSecondStep": 0,
    "UnitPriceThirdStep": 0,
    "OriginalPrice": 0,
    "ChargeUnit": "HOUR",
}


def entry(charge: str = "POSTPAID_BY_HOUR", zone: str = "ap-guangzhou-6", **price: Any) -> dict[str, Any]:
    return {
        "Zone": zone,
        "InstanceType": MACHINE.instance_type,
        "InstanceChargeType": charge,
        "Price": price or FLAT,
    }


class Quotes:
    """Answers with these entries to every question for types, and with this price to every question for disks."""

    def __init__(self, *entries: dict[str, Any], disk: Any = None, error: ProviderError | None = None) -> None:
        self.asked: list[dict[str, Any]] = []
        self._entries = list(entries)
        self._disk = {"UnitPrice": 0.04, "UnitPriceHigh": "0.042"} if disk is None else disk
        self._error = error

    def call(self, shard: Shard, service: str, action: str, /, **parameters: Any) -> dict[str, Any]:
        assert (shard, f"{service}:{action}") == (REF.shard, "cbs:InquiryPriceCreateDisks")
        self.asked.append(parameters)
        if self._error is not None:
            raise self._error
        return {"DiskPrice": self._disk}

    def pages(
        self, shard: Shard, service: str, action: str, result_key: str, /, **parameters: Any
    ) -> Iterator[list[Any]]:
        assert result_key == "InstanceTypeQuotaSet"
        assert f"{service}:{action}" == "cvm:DescribeZoneInstanceConfigInfos"
        self.asked.append({"shard": shard, **parameters})
        if self._error is not None:
            raise self._error
        yield self._entries


def rate(quotes: Quotes, machine: Instance = MACHINE, *overrides: PriceOverride) -> tuple[Money, str] | None:
    found = TencentPrices(quotes, overrides, now=NOW).rates([machine]).get(machine.ref)
    return None if found is None else (found.money, found.source)


def cny(amount: str) -> Money:
    return Money(Decimal(amount), "CNY")


@pytest.mark.parametrize(
    ("used", "price"),
    [
        (timedelta(0), "15.4"),
        (timedelta(hours=95), "15.4"),
        (timedelta(hours=96), "13.1"),
        (timedelta(hours=359), "13.1"),
        (timedelta(hours=360), "11.6"),
        (timedelta(days=400), "11.6"),
    ],
)
def test_longer_use_costs_less_an_hour_where_there_are_steps(used: timedelta, price: str) -> None:
    assert hourly(STEPS, "POSTPAID_BY_HOUR", used) == Decimal(price)
    assert hourly(FLAT, "POSTPAID_BY_HOUR", used) == Decimal("8.7")


def test_the_step_is_told_by_the_age_of_the_machine() -> None:
    old = replace(MACHINE, created_at=NOW - timedelta(days=30))
    assert rate(Quotes(entry(**STEPS)), old) == (cny("11.6"), "tencent-cvm")
    assert rate(Quotes(entry(**STEPS)), replace(MACHINE, created_at=None)) == (cny("15.4"), "tencent-cvm")


@pytest.mark.parametrize(
    "price",
    [
        {"UnitPrice": 0, "OriginalPrice": 59},
        {"UnitPrice": None},
        {"UnitPrice": 8.7, "ChargeUnit": "GB"},
        {"OriginalPrice": 0},
        {"UnitPrice": "8.7"},
        {"UnitPrice": float("nan")},
        {"UnitPrice": 1e12},
    ],
    ids=["of a month", "null", "by volume", "zero", "text", "nan", "absurd"],
)
def test_a_price_that_is_none_is_unknown(price: dict[str, Any]) -> None:
    assert rate(Quotes(entry(**price))) is None


def test_a_prepaid_month_is_spread_over_its_hours() -> None:
    prepaid = replace(MACHINE, billing=Billing.PREPAID)
    quotes = Quotes(entry("PREPAID", OriginalPrice=7300, DiscountPrice=3000), entry(**STEPS))
    assert rate(quotes, prepaid) == (Money(Decimal(7300) / HOURS_PER_MONTH, "CNY"), "tencent-cvm")
    assert rate(Quotes(entry("PREPAID", OriginalPrice=0)), prepaid) is None


def test_spot_is_quoted_at_the_price_of_the_moment() -> None:
    spot = replace(MACHINE, billing=Billing.SPOT)
    assert rate(Quotes(entry("SPOTPAID", UnitPrice=8.7, UnitPriceDiscount=1.3)), spot) == (cny("1.3"), "tencent-cvm")


@pytest.mark.parametrize("billing", [Billing.RESERVED, Billing.UNKNOWN])
def test_what_is_paid_for_as_a_host_has_no_price_of_its_own(billing: Billing) -> None:
    quotes = Quotes(entry())
    assert rate(quotes, replace(MACHINE, billing=billing)) is None
    assert quotes.asked == []


def test_another_zone_is_another_price() -> None:
    assert rate(Quotes(entry(zone="ap-guangzhou-3"))) is None


def test_a_policy_prices_on_demand_and_never_spot() -> None:
    override = PriceOverride("tencent", ("PNV4.*",), cny("5"))
    assert rate(Quotes(entry()), MACHINE, override) == (cny("5"), "policy")
    spot = replace(MACHINE, billing=Billing.SPOT)
    assert rate(Quotes(entry("SPOTPAID", UnitPriceDiscount=1.3)), spot, override) == (cny("1.3"), "tencent-cvm")
    elsewhere = PriceOverride("tencent-intl", ("*",), cny("5"))
    assert rate(Quotes(entry()), MACHINE, elsewhere) == (cny("8.7"), "tencent-cvm")


def test_the_international_site_quotes_dollars() -> None:
    abroad = replace(MACHINE, ref=replace(REF, cloud="tencent-intl"))
    assert rate(Quotes(entry()), abroad) == (Money(Decimal("8.7"), "USD"), "tencent-cvm")


def test_a_price_that_cannot_be_read_is_unknown_and_asked_for_once() -> None:
    quotes = Quotes(error=AccessDeniedError("no", operation="cvm:DescribeZoneInstanceConfigInfos"))
    prices = TencentPrices(quotes, (), now=NOW)
    assert prices.rates([MACHINE]) == {}
    assert prices.rates([MACHINE]) == {}
    assert len(quotes.asked) == 1


def test_types_are_asked_for_together() -> None:
    quotes = Quotes(entry())
    machines = [
        replace(MACHINE, instance_type=f"GN{number}.X", ref=replace(REF, native_id=f"ins-{number}"))
        for number in range(120)
    ]
    TencentPrices(quotes, (), now=NOW).rates(machines)
    assert [len(asked["Filters"][0]["Values"]) for asked in quotes.asked] == [100, 20]


def volume(size: float = 100.0) -> Volume:
    return Volume(REF.sibling("volume", "disk-1"), size, "CLOUD_PREMIUM")


def detail(*volumes: Volume) -> InstanceDetail:
    return InstanceDetail(MACHINE, volumes, (), kept_addresses=(REF.sibling("public_address", "eip-1"),))


def test_disks_bill_on_at_their_quote_and_addresses_at_an_unknown_price() -> None:
    quotes = Quotes()
    prices = TencentPrices(quotes, (), now=NOW)
    kept = prices.kept_hourly(detail(volume(), volume(), volume(200.0)))
    assert kept == [*[("volume", cny("0.042"))] * 3, ("public_address", None)]
    assert [asked["DiskSize"] for asked in quotes.asked] == [100, 200]


@pytest.mark.parametrize(
    ("disk", "price"),
    [
        ({"UnitPrice": 0.04, "UnitPriceHigh": None}, "0.04"),
        ({"UnitPrice": None, "UnitPriceHigh": "0.042"}, "0.042"),
        ({"UnitPrice": None, "UnitPriceHigh": None}, None),
        ({"UnitPrice": 0, "UnitPriceHigh": None}, None),
        ({"UnitPrice": 0, "UnitPriceHigh": "0"}, None),
        ({"UnitPriceHigh": "dear"}, None),
        ({"UnitPriceHigh": "NaN"}, None),
        ({"UnitPriceHigh": "1E+999999"}, None),
        ("dear", None),
    ],
)
def test_the_exact_price_of_a_disk_or_none(disk: Any, price: str | None) -> None:
    (found, _) = TencentPrices(Quotes(disk=disk), (), now=NOW).kept_hourly(detail(volume()))
    assert found == ("volume", None if price is None else cny(price))


def test_nobody_quotes_snapshots() -> None:
    assert TencentPrices(Quotes(), (), now=NOW).snapshot_hourly(volume()) is None
