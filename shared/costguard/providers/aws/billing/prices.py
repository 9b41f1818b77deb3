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
from datetime import datetime, timezone
from decimal import Decimal
from typing import Any

from costguard.domain.errors import ProviderError
from costguard.domain.money import HOURS_PER_MONTH, HourlyRate, Money
from costguard.domain.refs import ResourceRef, Shard
from costguard.domain.resources import Billing, Instance, InstanceDetail, Volume
from costguard.policy.model.policy import PriceOverride
from costguard.providers.aws.billing import price_table
from costguard.providers.kit.billing.prices import negotiated
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


@dataclass(frozen=True, slots=True)
class Product:
    """What has one price: an instance type in a region under an operating system and tenancy, in API words."""

    cloud: str
    region: str
    instance_type: str
    system: str
    tenancy: str


class AwsPrices:
    """`PriceSource` for AWS. What was asked once is kept; threads may share it (two may ask the same at once)."""

    def __init__(self, session: Lists, overrides: Sequence[PriceOverride], *, now: datetime) -> None:
        self._session = session
        self._overrides = tuple(overrides)
        self._now = now.astimezone(timezone.utc)
        self._today = self._now.date().isoformat()
        self._on_demand: dict[Product, Money | None] = {}
        self._spot: dict[tuple[str, Product, str], Money] = {}  # zone names mean another place in each account
        self._spot_asked: set[tuple[str, Product]] = set()
        self._silent: set[str] = set()
        self._no_any_of: set[str] = set()  # clouds whose price list takes one instance type a request

    def rates(self, instances: Sequence[Instance]) -> Mapping[ResourceRef, HourlyRate]:
        """Hourly price by instance: policy, then spot history or the price list, then the table.

        A policy's price is what was negotiated for on-demand use, so Spot is never priced by it.
        """
        for shard, asked in _by_shard(i for i in instances if i.billing is Billing.SPOT).items():
            self._read_spot(shard, asked)
        self._read_price_list(instances)
        found = {instance.ref: self._rate(instance) for instance in instances}
        return {ref: rate for ref, rate in found.items() if rate is not None}

    def kept_hourly(self, detail: InstanceDetail) -> Sequence[tuple[str, Money | None]]:
        """Volumes and kept public addresses, which bill on after a stop.

        Bought IOPS and throughput (gp3, io1, io2) bill on top and are not known here: a lower bound.
        """
        volumes = [
            ("volume", _gib_hourly(volume, price_table.VOLUME_GIB_MONTH_USD.get(_place(volume))))
            for volume in detail.volumes
        ]
        addresses = [
            ("public_address", Money(price_table.PUBLIC_ADDRESS_HOURLY_USD, "USD") if ref.cloud == "aws" else None)
            for ref in detail.kept_addresses
        ]
        return [*volumes, *addresses]

    def snapshot_hourly(self, volume: Volume) -> Money | None:
        """The whole volume at the standard tier: snapshots hold changed blocks only, so never more."""
        return _gib_hourly(volume, price_table.SNAPSHOT_GIB_MONTH_USD.get(volume.ref.region))

    def _rate(self, instance: Instance) -> HourlyRate | None:
        product = _product(instance)
        if instance.billing is Billing.SPOT:
            spot = self._spot.get((instance.ref.account, product, instance.zone)) if product else None
            return HourlyRate(spot, "aws-spot", self._today) if spot else None
        agreed = negotiated(instance, self._overrides)
        if agreed is not None:
            return HourlyRate(agreed, "policy", self._today)
        if product is None:
            return None
        live = self._on_demand.get(product)
        return HourlyRate(live, "aws-pricing", self._today) if live else table_rate(product)

    def _read_price_list(self, instances: Sequence[Instance]) -> None:
        asked = {
            product: instance.ref.account
            for instance in instances
            if instance.billing is not Billing.SPOT and negotiated(instance, self._overrides) is None
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
    """Every hourly price above zero of an entry of a price list. Raises as `documented.py`."""
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
    price = price_table.INSTANCE_HOURLY_USD.get((product.region, product.instance_type))
    if price is None or (product.system, product.tenancy) != ("Linux", "Shared"):
        return None
    return HourlyRate(Money(price, "USD"), "table", price_table.INSTANCES_AS_OF)


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


def _place(volume: Volume) -> tuple[str, str]:
    return (volume.ref.region, volume.volume_type)


def _gib_hourly(volume: Volume, gib_month: Decimal | None) -> Money | None:
    if gib_month is None:
        return None
    return Money(gib_month * Decimal(str(volume.size_gib)) / HOURS_PER_MONTH, "USD")


def _by_shard(instances: Iterable[Instance]) -> Mapping[Shard, list[Instance]]:
    grouped: dict[Shard, list[Instance]] = {}
    for instance in instances:
        grouped.setdefault(instance.ref.shard, []).append(instance)
    return grouped
