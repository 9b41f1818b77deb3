"""Prices come from the policy, the live list or a dated table, and what is unknown is absent."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest

from cloudstand.aws.billing.prices import get_products
from cloudstand.aws.compute.catalogue import TYPES
from costguard.domain.errors import AccessDeniedError, RefusedError, UnavailableError
from costguard.domain.money import Money
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
from costguard.providers.aws.billing import prices as price_table
from costguard.providers.aws.billing.prices import (
    MOST_TYPES,
    AwsPrices,
    Product,
    on_demand_prices,
    product_filters,
    spot_prices,
)

NOW = datetime(2026, 3, 2, 9, 30, tzinfo=timezone.utc)
P4D = Product("aws", "us-east-1", "p4d.24xlarge", "Linux", "Shared")


def an_instance(
    native_id: str = "i-1",
    instance_type: str = "p4d.24xlarge",
    *,
    region: str = "us-east-1",
    cloud: str = "aws",
    account: str = "111122223333",
    billing: Billing = Billing.ON_DEMAND,
    zone: str = "us-east-1a",
    system: str = "linux",
    tenancy: str = "default",
) -> Instance:
    return Instance(
        ref=ResourceRef(cloud, account, region, "instance", native_id),
        instance_type=instance_type,
        accelerator=Accelerator(AcceleratorKind.NVIDIA_GPU, "A100", 8),
        state=InstanceState.RUNNING,
        billing=billing,
        run_epoch="1",
        launched_at=NOW,
        zone=zone,
        operating_system=system,
        tenancy=tenancy,
    )


def listed(
    price: str = "19.22",
    *,
    currency: str = "USD",
    unit: str = "Hrs",
    terms: str = "OnDemand",
    region: str = "us-east-1",
    **attributes: str,
) -> str:
    """An entry of PriceList as the Query API sends it: a JSON text."""
    about = {
        "instanceType": "p4d.24xlarge",
        "regionCode": region,
        "operatingSystem": "Linux",
        "tenancy": "Shared",
        "preInstalledSw": "NA",
        "capacitystatus": "Used",
        "marketoption": "OnDemand",
        **attributes,
    }
    rate = {"unit": unit, "pricePerUnit": {currency: price}}
    term = {"SKU.T": {"priceDimensions": {"SKU.T.R": rate}, "termAttributes": {}}}
    return json.dumps({"product": {"productFamily": "Compute Instance", "attributes": about}, "terms": {terms: term}})


@dataclass
class FakePricing:
    """GetProducts and DescribeSpotPriceHistory with made-up answers."""

    price_list: Sequence[str] = ()
    spot: Sequence[Mapping[str, Any]] = ()
    fails: Exception | None = None
    asked: list[tuple[Shard, str, dict[str, Any]]] = field(default_factory=list)

    def pages(
        self, shard: Shard, service: str, operation: str, result_key: str, /, **params: Any
    ) -> Iterator[Sequence[Any]]:
        self.asked.append((shard, f"{service}:{operation}", params))
        if self.fails is not None:
            raise self.fails
        yield {"PriceList": self.price_list, "SpotPriceHistory": self.spot}[result_key]


@dataclass
class OneTypeAtATime(FakePricing):
    """A price list that knows TERM_MATCH alone."""

    code: str = "InvalidParameterException"

    def pages(
        self, shard: Shard, service: str, operation: str, result_key: str, /, **params: Any
    ) -> Iterator[Sequence[Any]]:
        yield from super().pages(shard, service, operation, result_key, **params)
        if any(one["Type"] == "ANY_OF" for one in params["Filters"]):
            raise RefusedError("pricing:GetProducts: refused", operation="pricing:GetProducts", code=self.code)


@dataclass
class SandboxPricing(FakePricing):
    """The sandbox's price list, a few entries a page."""

    def pages(
        self, shard: Shard, service: str, operation: str, result_key: str, /, **params: Any
    ) -> Iterator[Sequence[Any]]:
        self.asked.append((shard, f"{service}:{operation}", params))
        while True:
            answer = get_products({**params, "MaxResults": 5}, ("us-east-1", "eu-west-1"))
            yield answer[result_key]
            if "NextToken" not in answer:
                return
            params["NextToken"] = answer["NextToken"]


def types_asked(cloud: FakePricing) -> list[tuple[str, str]]:
    """Type and value of each request's filter on the instance type."""
    return [
        (one["Type"], one["Value"])
        for _, _, params in cloud.asked
        for one in params["Filters"]
        if one["Field"] == "instanceType"
    ]


def price_of(price_list: Iterable[str]) -> Money | None:
    return on_demand_prices(price_list, [P4D])[P4D]


def prices(cloud: FakePricing, *overrides: PriceOverride) -> AwsPrices:
    return AwsPrices(cloud, overrides, now=NOW)


def test_a_negotiated_price_goes_before_the_list_and_is_not_looked_up() -> None:
    cloud = FakePricing([listed()])
    ours = PriceOverride("aws", ("p5*", "p4d.*"), Money(Decimal("9.5"), "USD"))
    (rate,) = prices(cloud, ours).rates([an_instance()]).values()
    assert (rate.money, rate.source, rate.as_of) == (Money(Decimal("9.5"), "USD"), "policy", "2026-03-02")
    assert not cloud.asked


def test_a_negotiated_price_of_another_cloud_does_not_apply() -> None:
    ours = PriceOverride("aws-cn", ("p4d.*",), Money(Decimal(60), "CNY"))
    (rate,) = prices(FakePricing([listed()]), ours).rates([an_instance()]).values()
    assert rate.source == "aws-pricing"


def test_the_live_list_price_is_dated_now_and_asked_for_once_a_product() -> None:
    cloud = FakePricing([listed("19.22")])
    source = prices(cloud)
    source.rates([an_instance("i-1"), an_instance("i-2")])
    rates = source.rates([an_instance("i-3", account="444455556666")])
    assert [(rate.money.amount, rate.source, rate.as_of) for rate in rates.values()] == [
        (Decimal("19.22"), "aws-pricing", "2026-03-02")
    ]
    (shard, operation, params) = cloud.asked[0]
    assert len(cloud.asked) == 1
    assert (shard, operation) == (Shard("aws", "111122223333", "us-east-1"), "pricing:GetProducts")
    assert {(one["Field"], one["Value"]) for one in params["Filters"]} >= {
        ("instanceType", "p4d.24xlarge"),
        ("regionCode", "us-east-1"),
        ("tenancy", "Shared"),
        ("operatingSystem", "Linux"),
        ("preInstalledSw", "NA"),
        ("capacitystatus", "Used"),
    }


def test_china_is_asked_in_china_and_priced_in_its_currency() -> None:
    cloud = FakePricing([listed("151.1", currency="CNY", region="cn-north-1")])
    (rate,) = prices(cloud).rates([an_instance(cloud="aws-cn", region="cn-north-1")]).values()
    assert rate.money == Money(Decimal("151.1"), "CNY")
    assert cloud.asked[0][0] == Shard("aws-cn", "111122223333", "cn-northwest-1")


def test_a_price_in_the_wrong_currency_is_no_price() -> None:
    assert price_of([listed("151.1", currency="CNY")]) is None


@pytest.mark.parametrize(
    "entry",
    [
        listed("0.0000000000"),
        listed("-1"),
        listed("NaN"),
        listed("free"),
        listed("1E+999999999"),
        listed("9" * 5000),
        listed("１"),  # noqa: RUF001
        "[" * 100_000,
        listed(unit="Quantity"),
        listed(terms="Reserved"),
        listed(marketoption="CapacityBlock"),
        listed(capacitystatus="UnusedCapacityReservation"),
        listed(tenancy="Host"),
        listed(operatingSystem="Windows"),
        listed(instanceType="p4de.24xlarge"),
        listed(region="us-east-2"),
        "{not json",
        "[]",
        "{}",
    ],
)
def test_an_entry_that_is_not_this_products_hourly_price_is_passed_over(entry: str) -> None:
    assert price_of([entry]) is None
    assert price_of([entry, listed("19.22")]) == Money(Decimal("19.22"), "USD")


def test_two_different_prices_for_one_product_are_no_answer() -> None:
    assert price_of([listed("19.22"), listed("20.00")]) is None
    assert price_of([listed("19.22"), listed("19.22")]) is not None


@pytest.mark.parametrize(
    "error",
    [AccessDeniedError("pricing:GetProducts: AccessDenied"), UnavailableError("pricing:GetProducts: no endpoint")],
)
def test_without_the_price_list_the_dated_table_answers_and_says_so(error: Exception) -> None:
    cloud = FakePricing(fails=error)
    source = prices(cloud)
    (rate,) = source.rates([an_instance()]).values()
    assert (rate.money, rate.source) == (Money(Decimal("21.957642"), "USD"), "table")
    assert rate.as_of == price_table.INSTANCES_AS_OF
    source.rates([an_instance(instance_type="g5.xlarge")])
    assert len(cloud.asked) == 1, "a price list that refused is not asked a hundred times"


def test_a_price_list_that_does_not_answer_is_found_out_by_one_request() -> None:
    cloud = FakePricing(fails=UnavailableError("pricing:GetProducts: down"))
    fleet = [an_instance(f"i-{name}", name) for name in ("g5.xlarge", "g6.xlarge", "p5.48xlarge")]
    assert len(prices(cloud).rates(fleet)) == 3
    assert len(cloud.asked) == 1


def test_types_of_one_place_are_asked_for_together_and_each_has_its_own_price() -> None:
    quoted = {"g5.xlarge": "1.006", "g6.xlarge": "0.8048", "p5.48xlarge": "55.04"}
    cloud = FakePricing([listed(price, instanceType=name) for name, price in quoted.items()])
    fleet = [an_instance(f"i-{name}", name) for name in quoted]
    source = prices(cloud)
    rates = source.rates([*fleet, an_instance("i-again", "g5.xlarge")])
    assert {ref.native_id: (str(rate.money.amount), rate.source) for ref, rate in rates.items()} == {
        **{f"i-{name}": (price, "aws-pricing") for name, price in quoted.items()},
        "i-again": ("1.006", "aws-pricing"),
    }
    assert types_asked(cloud) == [("ANY_OF", "g5.xlarge,g6.xlarge,p5.48xlarge")]
    others = {(one["Type"], one["Field"]) for one in cloud.asked[0][2]["Filters"]} - {("ANY_OF", "instanceType")}
    assert {kind for kind, _ in others} == {"TERM_MATCH"}
    source.rates(fleet)
    assert len(cloud.asked) == 1


def test_one_type_is_asked_for_by_its_name() -> None:
    cloud = FakePricing([listed()])
    prices(cloud).rates([an_instance()])
    assert types_asked(cloud) == [("TERM_MATCH", "p4d.24xlarge")]


def test_place_system_and_tenancy_are_asked_apart() -> None:
    cloud = FakePricing()
    prices(cloud).rates(
        [
            an_instance("i-1", "g5.xlarge"),
            an_instance("i-2", "g6.xlarge"),
            an_instance("i-3", "g5.xlarge", region="eu-west-1"),
            an_instance("i-4", "g5.xlarge", system="windows"),
            an_instance("i-5", "g5.xlarge", tenancy="dedicated"),
        ]
    )
    asked = [{one["Field"]: one["Value"] for one in params["Filters"]} for _, _, params in cloud.asked]
    assert sorted((a["instanceType"], a["regionCode"], a["operatingSystem"], a["tenancy"]) for a in asked) == [
        ("g5.xlarge", "eu-west-1", "Linux", "Shared"),
        ("g5.xlarge", "us-east-1", "Linux", "Dedicated"),
        ("g5.xlarge", "us-east-1", "Windows", "Shared"),
        ("g5.xlarge,g6.xlarge", "us-east-1", "Linux", "Shared"),
    ]


def test_what_one_type_is_quoted_never_prices_another() -> None:
    """Absent and ambiguous types fall back on the table; their neighbours in the answer do not."""
    cloud = FakePricing(
        [
            listed("1.5", instanceType="g5.xlarge"),
            listed("7", instanceType="g6.xlarge"),
            listed("8", instanceType="g6.xlarge"),
            listed("9", instanceType="p99.metal"),
        ]
    )
    rates = prices(cloud).rates([an_instance(name, name) for name in ("g5.xlarge", "g6.xlarge", "p5.48xlarge")])
    assert {ref.native_id: (str(rate.money.amount), rate.source) for ref, rate in rates.items()} == {
        "g5.xlarge": ("1.5", "aws-pricing"),
        "g6.xlarge": ("0.8048", "table"),
        "p5.48xlarge": ("55.04", "table"),
    }
    assert len(cloud.asked) == 1, "an answer without a type is an answer"


def test_a_request_holds_as_many_types_as_its_filter_has_room_for() -> None:
    names = [f"u7inh-{number:03}tb.480xlarge" for number in range(MOST_TYPES * 2 + 1)]
    cloud = FakePricing([listed("2.5", instanceType=name) for name in names])
    assert len(prices(cloud).rates([an_instance(name, name) for name in names])) == len(names)
    values = [value for _, value in types_asked(cloud)]
    assert sorted(name for value in values for name in value.split(",")) == names
    assert [len(value.split(",")) for value in values] == [MOST_TYPES, MOST_TYPES, 1]
    longest = product_filters([replace(P4D, instance_type=f"{number:024}") for number in range(MOST_TYPES)])
    assert all(len(one["Value"]) <= 1_024 for one in longest), "the documented most of a filter's value"


@pytest.mark.parametrize("code", ["InvalidParameterException", "ValidationException"])
def test_a_price_list_that_refuses_several_types_is_asked_one_by_one_and_remembered(code: str) -> None:
    names = ["g5.xlarge", "g6.xlarge", "p5.48xlarge"]
    cloud = OneTypeAtATime([listed("2.5", instanceType=name) for name in [*names, "g4dn.xlarge", "p3.2xlarge"]])
    cloud.code = code
    source = prices(cloud)
    rates = source.rates([an_instance(name, name) for name in names])
    assert [rate.source for rate in rates.values()] == ["aws-pricing"] * 3
    more = source.rates([an_instance(name, name) for name in ("g4dn.xlarge", "p3.2xlarge")])
    assert [rate.source for rate in more.values()] == ["aws-pricing"] * 2
    kinds = [kind for kind, _ in types_asked(cloud)]
    assert (kinds[0], kinds.count("ANY_OF"), kinds.count("TERM_MATCH")) == ("ANY_OF", 1, 5)


def test_another_refusal_is_not_taken_for_the_filters_fault() -> None:
    cloud = OneTypeAtATime()
    cloud.code = "NotFoundException"
    rates = prices(cloud).rates([an_instance(name, name) for name in ("g5.xlarge", "g6.xlarge")])
    assert [rate.source for rate in rates.values()] == ["table"] * 2
    assert len(cloud.asked) == 1


def test_the_sandbox_quotes_many_types_in_one_answer() -> None:
    cloud = SandboxPricing()
    rates = prices(cloud).rates([an_instance(name, name, region="eu-west-1") for name in TYPES])
    assert {ref.native_id: rate.source for ref, rate in rates.items()} == dict.fromkeys(TYPES, "aws-pricing")
    assert {rates[ref].money.amount for ref in rates if ref.native_id == "g5.xlarge"} == {Decimal("1.11666")}
    assert len(cloud.asked) == 1


@pytest.mark.parametrize(
    "instance",
    [
        an_instance(region="eu-north-1"),
        an_instance(instance_type="p99.metal"),
        an_instance(system="windows"),
        an_instance(tenancy="dedicated"),
        an_instance(tenancy="host"),
        an_instance(system="plan9"),
        an_instance(cloud="aws-us-gov", region="us-gov-west-1"),
        an_instance(billing=Billing.SPOT),
    ],
)
def test_an_unknown_price_is_absent_and_never_zero(instance: Instance) -> None:
    assert prices(FakePricing(fails=UnavailableError("down"))).rates([instance]) == {}


def test_the_us_government_cloud_is_not_asked_through_another_partition() -> None:
    cloud = FakePricing([listed()])
    prices(cloud).rates([an_instance(cloud="aws-us-gov", region="us-gov-west-1")])
    assert not cloud.asked


def test_spot_is_priced_by_its_own_zone_and_never_by_list_or_policy() -> None:
    def seen(zone: str, price: str, hours_ago: int) -> dict[str, Any]:
        return {
            "InstanceType": "p4d.24xlarge",
            "AvailabilityZone": zone,
            "SpotPrice": price,
            "ProductDescription": "Linux/UNIX",
            "Timestamp": NOW - timedelta(hours=hours_ago),
        }

    cloud = FakePricing(
        [listed()], spot=[seen("us-east-1a", "8.1", 9), seen("us-east-1a", "7.9", 2), seen("us-east-1b", "6.0", 1)]
    )
    ours = PriceOverride("aws", ("*",), Money(Decimal(1), "USD"))
    spot = [
        an_instance("i-1", billing=Billing.SPOT),
        an_instance("i-2", billing=Billing.SPOT, zone="us-east-1b"),
        an_instance("i-3", billing=Billing.SPOT, zone="us-east-1c"),
    ]
    source = prices(cloud, ours)
    rates = source.rates(spot)
    assert {ref.native_id: (rate.money.amount, rate.source) for ref, rate in rates.items()} == {
        "i-1": (Decimal("7.9"), "aws-spot"),
        "i-2": (Decimal("6.0"), "aws-spot"),
    }
    source.rates(spot)
    assert [operation for _, operation, _ in cloud.asked] == ["ec2:DescribeSpotPriceHistory"]


def test_zones_of_two_accounts_are_different_places() -> None:
    entry = {
        "InstanceType": "p4d.24xlarge",
        "AvailabilityZone": "us-east-1a",
        "SpotPrice": "7.9",
        "ProductDescription": "Linux/UNIX (Amazon VPC)",
        "Timestamp": NOW,
    }
    cloud = FakePricing(spot=[entry])
    source = prices(cloud)
    for account in ("111122223333", "444455556666"):
        assert source.rates([an_instance(account=account, billing=Billing.SPOT)])
    assert len(cloud.asked) == 2


def test_spot_entries_without_a_usable_price_are_passed_over() -> None:
    zero = {"InstanceType": "g5.xlarge", "AvailabilityZone": "a", "SpotPrice": "0.0", "Timestamp": NOW}
    assert (
        spot_prices([{**zero, "ProductDescription": "Linux/UNIX"}, {**zero, "ProductDescription": "BeOS"}], "USD") == {}
    )


def a_volume(size_gib: float = 730, volume_type: str = "gp3", region: str = "us-east-1", cloud: str = "aws") -> Volume:
    return Volume(ResourceRef(cloud, "111122223333", region, "volume", "vol-1"), size_gib, volume_type)


def test_volumes_and_kept_addresses_go_on_billing_by_the_hour() -> None:
    instance = an_instance()
    detail = InstanceDetail(
        instance,
        volumes=(a_volume(730), a_volume(730, "gp9")),
        snapshots=(),
        kept_addresses=(instance.ref.sibling("public_address", "eipalloc-1"),),
    )
    assert prices(FakePricing()).kept_hourly(detail) == [
        ("volume", Money(Decimal("0.08"), "USD")),
        ("volume", None),
        ("public_address", Money(Decimal("0.005"), "USD")),
    ]


def test_a_snapshot_costs_at_most_the_whole_volume() -> None:
    source = prices(FakePricing())
    assert source.snapshot_hourly(a_volume(1460)) == Money(Decimal("0.1"), "USD")
    assert source.snapshot_hourly(a_volume(region="eu-north-1")) is None


def test_what_is_kept_in_china_has_no_price_in_dollars() -> None:
    instance = an_instance(cloud="aws-cn", region="cn-north-1")
    detail = InstanceDetail(
        instance,
        volumes=(a_volume(cloud="aws-cn", region="cn-north-1"),),
        snapshots=(),
        kept_addresses=(instance.ref.sibling("public_address", "eipalloc-1"),),
    )
    assert prices(FakePricing()).kept_hourly(detail) == [("volume", None), ("public_address", None)]


def test_the_table_is_exact_dated_and_positive() -> None:
    every = [
        *price_table.INSTANCE_HOURLY_USD.values(),
        *price_table.VOLUME_GIB_MONTH_USD.values(),
        *price_table.SNAPSHOT_GIB_MONTH_USD.values(),
        price_table.PUBLIC_ADDRESS_HOURLY_USD,
    ]
    assert all(price > 0 for price in every)
    for date in (price_table.INSTANCES_AS_OF, price_table.STORAGE_AS_OF):
        datetime.strptime(date, "%Y-%m-%d").replace(tzinfo=timezone.utc)
    families = {name.split(".", 1)[0] for _, name in price_table.INSTANCE_HOURLY_USD}
    assert families >= {"p3", "p4d", "p4de", "p5", "p5en", "g4dn", "g5", "g6", "g6e", "inf2", "trn1"}


@pytest.mark.parametrize(
    "entry",
    ['{"product": []}', '{"product": {"attributes": "x"}}', '{"product": {"attributes": {"instanceType": []}}}'],
)
def test_a_list_of_another_form_is_no_list_and_the_table_answers(entry: str) -> None:
    cloud = FakePricing(price_list=[entry])
    assert [rate.source for rate in prices(cloud).rates([an_instance()]).values()] == ["table"]
