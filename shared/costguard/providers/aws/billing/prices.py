"""What things cost on AWS: policy first, then the live price list, then a dated table. Unknown is absent.

Permissions: `pricing:GetProducts`, `ec2:DescribeSpotPriceHistory`; without them the table answers, and
each rate says where it is from. List prices: no commitment, discount or tax is in them.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from typing import Any

from costguard.domain.errors import ProviderError
from costguard.domain.money import HourlyRate, Money
from costguard.domain.refs import ResourceRef, Shard
from costguard.domain.resources import Billing, Instance, Volume
from costguard.policy.model.policy import PriceOverride
from costguard.providers.kit.billing.prices import CloudPrices, gib_hourly
from costguard.providers.kit.core.calls import Lists
from costguard.providers.kit.core.fields import as_documented, moment, part, text

log = logging.getLogger(__name__)

PRICE_LIST_REGIONS = {"aws": "us-east-1", "aws-cn": "cn-northwest-1"}
"""Where the Price List Query API answers, by cloud; aws-us-gov has no endpoint of its own."""

CURRENCIES = {"aws": "USD", "aws-cn": "CNY", "aws-us-gov": "USD"}
_PRICE = re.compile(r"\d{1,9}(?:\.\d{1,20})?", re.ASCII)  # an hour; the dearest today is under 1,000
_LOOKUPS_IN_FLIGHT = 4
MOST_TYPES = 40
"""Instance types a request: ANY_OF takes them joined by commas in a value of at most 1,024 characters
(Price List Query API reference, "Filter"), so names of 24 characters fit, and the longest today has 20."""

_FILTER_REFUSED = frozenset({"ValidationException", "InvalidParameterException"})
_TENANCIES = {"default": "Shared", "dedicated": "Dedicated"}  # on a dedicated host the host bills, not the instance
_SYSTEMS = {"linux": "Linux", "windows": "Windows", "rhel": "RHEL", "red hat": "RHEL", "suse": "SUSE"}
_SPOT_PRODUCTS = {"Linux": "Linux/UNIX", "Windows": "Windows", "RHEL": "Red Hat Enterprise Linux", "SUSE": "SUSE Linux"}


# List prices to fall back on, each with its date; what is not here is unknown. Linux, shared tenancy, us-east-1, USD an
# hour without tax. Source: the EC2 on-demand price list (https://aws.amazon.com/ec2/pricing/on-demand/) as its Price
# List API gave it on the date below. Other regions differ and are unknown here: grant `pricing:GetProducts`, or put
# prices into the policy.

INSTANCES_AS_OF = "2026-02-09"
STORAGE_AS_OF = "2026-02-09"

_US_EAST_1 = """
    p3.2xlarge 3.06  p3.8xlarge 12.24  p3.16xlarge 24.48
    p3dn.24xlarge 31.212
    p4d.24xlarge 21.957642
    p4de.24xlarge 27.44705
    p5.4xlarge 6.88  p5.48xlarge 55.04
    p5en.48xlarge 63.296
    g4dn.xlarge 0.526  g4dn.2xlarge 0.752  g4dn.4xlarge 1.204  g4dn.8xlarge 2.176  g4dn.12xlarge 3.912
    g4dn.16xlarge 4.352  g4dn.metal 7.824
    g5.xlarge 1.006  g5.2xlarge 1.212  g5.4xlarge 1.624  g5.8xlarge 2.448  g5.12xlarge 5.672  g5.16xlarge 4.096
    g5.24xlarge 8.144  g5.48xlarge 16.288
    g6.xlarge 0.8048  g6.2xlarge 0.9776  g6.4xlarge 1.3232  g6.8xlarge 2.0144  g6.12xlarge 4.6016
    g6.16xlarge 3.3968  g6.24xlarge 6.6752  g6.48xlarge 13.3504
    g6e.xlarge 1.861  g6e.2xlarge 2.24208  g6e.4xlarge 3.00424  g6e.8xlarge 4.52856  g6e.12xlarge 10.49264
    g6e.16xlarge 7.57719  g6e.24xlarge 15.06559  g6e.48xlarge 30.13118
    inf2.xlarge 0.7582  inf2.8xlarge 1.96786  inf2.24xlarge 6.49063  inf2.48xlarge 12.98127
    trn1.2xlarge 1.34375  trn1.32xlarge 21.5
    trn1n.32xlarge 24.78
"""

_WORDS = _US_EAST_1.split()
INSTANCE_HOURLY_USD = {
    ("us-east-1", name): Decimal(price) for name, price in zip(_WORDS[::2], _WORDS[1::2], strict=True)
}
"""(region, instance type) → USD an hour."""

_VOLUMES = {
    "gp3": "0.08",
    "gp2": "0.10",
    "io2": "0.125",
    "io1": "0.125",
    "st1": "0.045",
    "sc1": "0.015",
    "standard": "0.05",
}
VOLUME_GIB_MONTH_USD = {("us-east-1", name): Decimal(price) for name, price in _VOLUMES.items()}
"""(region, volume type) → USD a GiB-month (https://aws.amazon.com/ebs/pricing/); IOPS and throughput bought extra."""

SNAPSHOT_GIB_MONTH_USD = {"us-east-1": Decimal("0.05")}
"""Region → USD a GiB-month of changed blocks, standard tier; the volume's size is the most there can be."""

PUBLIC_ADDRESS_HOURLY_USD = Decimal("0.005")
"""A public IPv4 address an hour in every commercial region, in use or not (https://aws.amazon.com/vpc/pricing/)."""

NAT_GATEWAY_HOURLY_USD = {"us-east-1": Decimal("0.045")}
"""Region → USD an hour for a NAT gateway there is (https://aws.amazon.com/vpc/pricing/); the gigabytes through it and
its addresses are extra."""

NETWORK_AS_OF = "2026-02-09"


@dataclass(frozen=True, slots=True)
class Product:
    """What has one price: an instance type in a region under an operating system and tenancy, in API words."""

    cloud: str
    region: str
    instance_type: str
    system: str
    tenancy: str


class AwsPrices(CloudPrices[Lists]):
    """For every partition of AWS: policy, then spot history or the price list, then the table.

    Snapshots are priced at the standard tier. IOPS and throughput that were bought (gp3, io1, io2) bill on top.
    """

    def __init__(self, session: Lists, overrides: Sequence[PriceOverride], *, now: datetime) -> None:
        super().__init__(session, overrides, now=now)
        self._on_demand: dict[Product, Money | None] = {}
        self._spot: dict[tuple[str, Product, str], Money] = {}  # zone names mean another place in each account
        self._spot_asked: set[tuple[str, Product]] = set()
        self._silent: set[str] = set()
        self._no_any_of: set[str] = set()  # clouds whose price list takes one instance type a request

    def snapshot_hourly(self, volume: Volume) -> Money | None:
        """As on every cloud, by the table."""
        return gib_hourly(volume, SNAPSHOT_GIB_MONTH_USD.get(volume.ref.region), "USD")

    def _volume_hourly(self, volume: Volume) -> Money | None:
        return gib_hourly(volume, VOLUME_GIB_MONTH_USD.get((volume.ref.region, volume.volume_type)), "USD")

    def _address_hourly(self, ref: ResourceRef) -> Money | None:
        return Money(PUBLIC_ADDRESS_HOURLY_USD, "USD") if ref.cloud == "aws" else None

    def _told(self, instance: Instance) -> HourlyRate | None:
        product = _product(instance)
        if product is None:
            return None
        if instance.billing is Billing.SPOT:
            spot = self._spot.get((instance.ref.account, product, instance.zone))
            return HourlyRate(spot, "aws-spot", self._today) if spot else None
        live = self._on_demand.get(product)
        return HourlyRate(live, "aws-pricing", self._today) if live else table_rate(product)

    def _read(self, instances: Sequence[Instance]) -> None:
        for shard, asked in _by_shard(i for i in instances if i.billing is Billing.SPOT).items():
            self._read_spot(shard, asked)
        self._read_price_list([i for i in instances if i.billing is not Billing.SPOT])

    def _read_price_list(self, instances: Sequence[Instance]) -> None:
        asked = {
            product: instance.ref.account
            for instance in instances
            for product in [_product(instance)]
            if product is not None and product.cloud in PRICE_LIST_REGIONS and product not in self._on_demand
        }
        batches = product_batches(asked)
        alone = [self._read_products(batch, asked) for batch in batches[:1]]  # finds out whether the list answers
        refused = [*alone, *self._read_each(batches[1:], asked)]
        self._read_each([(product,) for products in refused for product in products], asked)

    def _read_each(
        self, batches: Sequence[Sequence[Product]], accounts: Mapping[Product, str]
    ) -> Sequence[Sequence[Product]]:
        if not batches:
            return ()
        with ThreadPoolExecutor(min(_LOOKUPS_IN_FLIGHT, len(batches))) as pool:
            return list(pool.map(lambda batch: self._read_products(batch, accounts), batches))

    def _read_products(self, batch: Sequence[Product], accounts: Mapping[Product, str]) -> Sequence[Product]:
        """One request; what is to be asked for one by one, because ANY_OF is refused."""
        cloud, several = batch[0].cloud, len(batch) > 1
        if cloud in self._silent:
            return ()
        if several and cloud in self._no_any_of:
            return batch
        try:
            pages = self._session.pages(
                Shard(cloud, accounts[batch[0]], PRICE_LIST_REGIONS[cloud]),
                "pricing",
                "GetProducts",
                "PriceList",
                ServiceCode="AmazonEC2",
                FormatVersion="aws_v1",
                Filters=product_filters(batch),
            )
            with as_documented("pricing:GetProducts"):
                self._on_demand.update(on_demand_prices((text for page in pages for text in page), batch))
        except ProviderError as err:
            facts = {"cloud": cloud, "cause": str(err)}
            if several and err.code in _FILTER_REFUSED:
                self._no_any_of.add(cloud)
                log.info("price list takes one instance type a request", extra=facts)
                return batch
            self._silent.add(cloud)  # the table answers for the rest of the run: do not ask a hundred times
            log.warning("price list not read, using the dated table", extra=facts)
        return ()

    def _read_spot(self, shard: Shard, instances: Sequence[Instance]) -> None:
        account = shard.account
        products = {product for product in map(_product, instances) if product}
        products = {product for product in products if (account, product) not in self._spot_asked}
        if not products:
            return
        self._spot_asked |= {(account, product) for product in products}
        try:
            for page in self._session.pages(
                shard,
                "ec2",
                "DescribeSpotPriceHistory",
                "SpotPriceHistory",
                InstanceTypes=sorted({product.instance_type for product in products}),
                ProductDescriptions=sorted({_SPOT_PRODUCTS[product.system] for product in products}),
                StartTime=self._now,  # from now to now: the price in force, one a zone
                EndTime=self._now,
                MaxResults=1000,
            ):
                with as_documented("ec2:DescribeSpotPriceHistory"):
                    prices = spot_prices(page, CURRENCIES[shard.cloud])
                for (system, name, zone), price in prices.items():
                    product = Product(shard.cloud, shard.region, name, system, _TENANCIES["default"])
                    self._spot.setdefault((account, product, zone), price)
        except ProviderError as err:
            log.warning("spot prices not read", extra={"shard": str(shard), "cause": str(err)})


def product_batches(products: Iterable[Product]) -> Sequence[Sequence[Product]]:
    """The products that differ in their instance type alone, as many together as one request holds."""
    alike: dict[Product, list[Product]] = {}
    for product in products:
        alike.setdefault(replace(product, instance_type=""), []).append(product)
    return [group[first : first + MOST_TYPES] for group in alike.values() for first in range(0, len(group), MOST_TYPES)]


def product_filters(batch: Sequence[Product]) -> list[dict[str, str]]:
    """GetProducts filters that leave this batch: used capacity, no bundled software, licence included."""
    wanted = {
        "regionCode": batch[0].region,
        "operatingSystem": batch[0].system,
        "tenancy": batch[0].tenancy,
        "preInstalledSw": "NA",
        "capacitystatus": "Used",
        "licenseModel": "No License required",
    }
    types = {
        "Type": "ANY_OF" if len(batch) > 1 else "TERM_MATCH",
        "Field": "instanceType",
        "Value": ",".join(sorted(product.instance_type for product in batch)),
    }
    return [types, *({"Type": "TERM_MATCH", "Field": field, "Value": value} for field, value in wanted.items())]


def on_demand_prices(price_list: Iterable[str], batch: Sequence[Product]) -> Mapping[Product, Money | None]:
    """The one hourly on-demand price of each product; None where the list has none, or more than one.

    Zero is no price: it marks capacity that is billed elsewhere (dedicated hosts, capacity blocks).
    """
    found: dict[Product, set[Decimal]] = {product: set() for product in batch}
    by_type = {product.instance_type: product for product in batch}
    for entry in map(parsed, price_list):
        product = by_type.get(text(_attributes(entry), "instanceType"))
        if product is not None:
            found[product].update(_hourly_prices(entry, product))
    return {
        product: Money(prices.pop(), CURRENCIES[product.cloud]) if len(prices) == 1 else None
        for product, prices in found.items()
    }


def _attributes(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    return part(part(entry, "product"), "attributes")


def parsed(entry: Any) -> Mapping[str, Any]:
    """An entry of a price list; empty where it is none."""
    try:
        document = json.loads(entry)
    except (TypeError, ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


def _hourly_prices(entry: Mapping[str, Any], product: Product) -> Iterator[Decimal]:
    attributes, currency = _attributes(entry), CURRENCIES[product.cloud]
    same = (
        attributes.get("instanceType") == product.instance_type
        and attributes.get("regionCode", product.region) == product.region
        and attributes.get("operatingSystem") == product.system
        and attributes.get("tenancy") == product.tenancy
        and attributes.get("capacitystatus", "Used") == "Used"
        and attributes.get("marketoption", "OnDemand") == "OnDemand"
    )
    if same:
        yield from hourly_on_demand(entry, currency)


def hourly_on_demand(entry: Mapping[str, Any], currency: str) -> Iterator[Decimal]:
    """Every hourly price above zero of an entry of a price list. Raises as `kit/core/fields.py`."""
    offers = part(part(entry, "terms"), "OnDemand")
    for term in offers:
        dimensions = part(part(offers, term), "priceDimensions")
        for each in dimensions:
            dimension = part(dimensions, each)
            price = _decimal(text(part(dimension, "pricePerUnit"), currency))
            if dimension.get("unit") == "Hrs" and price is not None:
                yield price


def spot_prices(history: Iterable[Mapping[str, Any]], currency: str) -> Mapping[tuple[str, str, str], Money]:
    """The latest price by (system, instance type, zone)."""
    systems = {description: system for system, description in _SPOT_PRODUCTS.items()}
    newest: dict[tuple[str, str, str], tuple[datetime, Decimal]] = {}
    for entry in history:
        description = text(entry, "ProductDescription").removesuffix(" (Amazon VPC)")
        price, at = _decimal(text(entry, "SpotPrice")), moment(entry, "Timestamp")
        if description not in systems or price is None or at is None:
            continue
        key = (systems[description], text(entry, "InstanceType"), text(entry, "AvailabilityZone"))
        if key not in newest or at > newest[key][0]:
            newest[key] = (at, price)
    return {key: Money(price, currency) for key, (_, price) in newest.items()}


def table_rate(product: Product) -> HourlyRate | None:
    """The dated list price; the table holds Linux on shared hardware only."""
    price = INSTANCE_HOURLY_USD.get((product.region, product.instance_type))
    if price is None or (product.system, product.tenancy) != ("Linux", "Shared"):
        return None
    return HourlyRate(Money(price, "USD"), "table", INSTANCES_AS_OF)


def _product(instance: Instance) -> Product | None:
    tenancy = _TENANCIES.get(instance.tenancy)
    name = instance.operating_system.lower()
    system = next((system for start, system in _SYSTEMS.items() if name.startswith(start)), None)
    if tenancy is None or system is None:
        return None
    return Product(instance.ref.cloud, instance.ref.region, instance.instance_type, system, tenancy)


def _decimal(value: str) -> Decimal | None:
    """A positive exact number of sensible length, or None: 1E+999999999 is one too, and a gigabyte once printed."""
    number = Decimal(value) if _PRICE.fullmatch(value) else Decimal(0)
    return number if number > 0 else None


def _by_shard(instances: Iterable[Instance]) -> Mapping[Shard, list[Instance]]:
    grouped: dict[Shard, list[Instance]] = {}
    for instance in instances:
        grouped.setdefault(instance.ref.shard, []).append(instance)
    return grouped
