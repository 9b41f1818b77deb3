"""Prices come from the policy or DescribePrice, in the site's own currency, and what is unknown is absent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from decimal import Decimal
from typing import Any

import pytest

from costguard.domain.errors import AccessDeniedError, ProviderError
from costguard.domain.money import HOURS_PER_MONTH, HourlyRate, Money
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
from costguard.providers.alibaba.billing.prices import AlibabaPrices

NOW = datetime(2026, 3, 2, 9, 30, tzinfo=timezone.utc)


def machine(native_id: str = "i-1", kind: str = "ecs.gn7i-c8g1.2xlarge", **changes: Any) -> Instance:
    fields = {
        "billing": Billing.ON_DEMAND,
        "zone": "cn-hangzhou-i",
        "cloud": "alibaba",
        "region": "cn-hangzhou",
        **changes,
    }
    cloud, region = fields.pop("cloud"), fields.pop("region")
    return Instance(
        ref=ResourceRef(cloud, "1234567890123456", region, "instance", native_id),
        instance_type=kind,
        accelerator=Accelerator(AcceleratorKind.NVIDIA_GPU, "A10", 1),
        state=InstanceState.RUNNING,
        run_epoch="1",
        launched_at=NOW,
        **fields,
    )


def volume(kind: str = "cloud_essd", size: float = 100.0) -> Volume:
    return Volume(ResourceRef("alibaba", "1234567890123456", "cn-hangzhou", "volume", "d-1"), size, kind)


def priced(*details: tuple[str, Any, Any], currency: Any = "CNY") -> dict[str, Any]:
    parts = [{"Resource": name, "OriginalPrice": full, "TradePrice": paid} for name, full, paid in details]
    return {"PriceInfo": {"Price": {"Currency": currency, "DetailInfos": {"DetailInfo": parts}}}}


ORDINARY = priced(("instanceType", 12.7, 3.81), ("systemDisk", 0.07, 0.07), ("bandwidth", 0, 0), ("image", 0.0, 0.0))


@dataclass
class PriceList:
    answer: Any = field(default_factory=lambda: ORDINARY)
    asked: list[dict[str, Any]] = field(default_factory=list)

    def call(self, shard: Shard, service: str, operation: str, /, **parameters: Any) -> Mapping[str, Any]:
        assert (service, operation) == ("ecs", "DescribePrice")
        self.asked.append({"region": shard.region, **parameters})
        if isinstance(self.answer, ProviderError):
            raise self.answer
        found: Mapping[str, Any] = self.answer
        return found

    def prices(self, *overrides: PriceOverride) -> AlibabaPrices:
        return AlibabaPrices(self, overrides, now=NOW)


def rate(answer: Any, **changes: Any) -> Money | None:
    asked = machine(**changes)
    found = PriceList(answer).prices().rates([asked]).get(asked.ref)
    return None if found is None else found.money


def test_the_machine_is_priced_without_its_disk_and_traffic_before_discounts() -> None:
    asked = machine()
    prices = PriceList()

    assert prices.prices().rates([asked]) == {
        asked.ref: HourlyRate(Money(Decimal("12.7"), "CNY"), "alibaba-price", "2026-03-02")
    }
    assert prices.asked[0]["SystemDisk"]
    assert prices.asked[0]["PriceUnit"] == "Hour"


def test_spot_has_the_price_in_force_in_its_zone() -> None:
    prices, asked = PriceList(), machine(billing=Billing.SPOT)

    assert prices.prices().rates([asked])[asked.ref].money == Money(Decimal("3.81"), "CNY")
    assert (prices.asked[0]["SpotStrategy"], prices.asked[0]["ZoneId"]) == ("SpotAsPriceGo", "cn-hangzhou-i")


def test_parts_of_a_price_are_known_however_they_are_spelled() -> None:
    """The page of DescribePrice lists `InstanceType`, `SystemDisk` and `DataDisk`; answers show small letters."""
    listed = priced(("InstanceType", 12.7, 3.81), ("SystemDisk", 0.07, 0.07), ("Image", 0.3, 0.3))
    assert rate(listed) == Money(Decimal("13.0"), "CNY")


def test_the_international_site_is_in_dollars() -> None:
    assert rate(priced(("instanceType", 1.5, 1.5), currency="USD"), cloud="alibaba-intl") == Money(
        Decimal("1.5"), "USD"
    )


def test_a_price_of_the_other_site_is_unknown_not_converted() -> None:
    assert rate(priced(("instanceType", 1.5, 1.5), currency="USD")) is None
    assert rate(ORDINARY, cloud="alibaba-intl") is None


def test_a_licence_counts_with_the_machine() -> None:
    prices = PriceList(priced(("instanceType", 10, 10), ("image", 2, 2)))
    asked = machine(operating_system="windows")

    assert prices.prices().rates([asked])[asked.ref].money == Money(Decimal(12), "CNY")
    assert prices.asked[0]["Platform"] == "Windows"


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"PriceInfo": {}},
        priced(),
        priced(("systemDisk", 1, 1)),
        priced(("instanceType", 0, 0)),
        priced(("instanceType", -1, -1)),
        priced(("instanceType", "12.7", "12.7")),
        priced(("instanceType", None, None)),
        priced(("instanceType", 1e9, 1e9)),
        priced(("instanceType", True, True)),
        priced(("instanceType", 1, 1), currency=""),
        priced(("instanceType", 1, 1), currency=None),
        {"PriceInfo": []},
        AccessDeniedError("no", operation="ecs:DescribePrice"),
    ],
)
def test_what_is_not_told_is_unknown_never_zero(answer: Any) -> None:
    assert rate(answer) is None


def test_each_type_of_a_region_is_asked_once() -> None:
    prices = PriceList()
    source = prices.prices()
    source.rates([machine(f"i-{number}") for number in range(100)])
    source.rates([machine("i-1"), machine("i-2", region="cn-beijing"), machine("i-3", "ecs.gn6i-c4g1.xlarge")])

    assert len(prices.asked) == 3


def test_a_price_that_is_unknown_is_not_asked_again() -> None:
    prices = PriceList(AccessDeniedError("no"))
    source = prices.prices()
    for _ in range(3):
        assert source.rates([machine()]) == {}

    assert len(prices.asked) == 1


def test_a_negotiated_price_goes_first_and_never_prices_spot() -> None:
    prices = PriceList()
    agreed = PriceOverride("alibaba", ("ecs.gn7i*",), Money(Decimal(9), "CNY"))
    fixed, spot = machine("i-1"), machine("i-2", billing=Billing.SPOT)

    found = prices.prices(agreed).rates([fixed, spot])

    assert found[fixed.ref] == HourlyRate(Money(Decimal(9), "CNY"), "policy", "2026-03-02")
    assert found[spot.ref].source == "alibaba-price"
    assert len(prices.asked) == 1


@pytest.mark.parametrize("spelled", ["dataDisk", "DataDisk"])
def test_disks_bill_on_and_what_an_address_costs_is_not_known(spelled: str) -> None:
    prices = PriceList(priced((spelled, 0.21, 0.21)))
    asked = machine()
    disks = (volume(), volume("cloud_essd:PL3", 99.5))
    detail = InstanceDetail(asked, disks, (), kept_addresses=(asked.ref.sibling("public_address", "eip-1"),))

    kept = prices.prices().kept_hourly(detail)

    assert kept == [
        ("volume", Money(Decimal("0.21"), "CNY")),
        ("volume", Money(Decimal("0.21"), "CNY")),
        ("public_address", None),
    ]
    assert {tuple(one["DataDisk"][0].items()) for one in prices.asked} == {
        (("Category", "cloud_essd"), ("Size", 100)),
        (("Category", "cloud_essd"), ("Size", 100), ("PerformanceLevel", "PL3")),
    }


def test_a_snapshot_is_priced_where_the_documents_tell_a_figure_and_nowhere_else() -> None:
    source = PriceList().prices()
    abroad = Volume(
        ResourceRef("alibaba-intl", "1234567890123456", "cn-hangzhou", "volume", "d-1"), 100.0, "cloud_essd"
    )

    assert source.snapshot_hourly(abroad) == Money(Decimal("1.73") / HOURS_PER_MONTH, "USD")
    assert source.snapshot_hourly(volume()) is None
