"""What things cost on Alibaba Cloud: policy first, then DescribePrice. Unknown is absent.

Permissions: `ecs:DescribePrice`. List prices, without commitment, discount or tax: `OriginalPrice`, and for spot the
price in force. The China site answers in CNY, the international one in USD; an answer in another currency means that
the account is of the other site, and counts as unknown.
"""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from costguard.domain.errors import ProviderError
from costguard.domain.money import HourlyRate, Money
from costguard.domain.refs import Shard
from costguard.domain.resources import Billing, Instance, Volume
from costguard.policy.model.policy import PriceOverride
from costguard.providers.alibaba.core.products import structures_in
from costguard.providers.kit.billing.prices import CloudPrices, gib_hourly
from costguard.providers.kit.core.calls import Calls
from costguard.providers.kit.core.fields import Fields, amount, as_documented, part, text

AS_OF = "2025-10-20"  # of prices that no API tells; what is not here is unknown

SNAPSHOT_GIB_MONTH = {("alibaba-intl", "cn-hangzhou"): Decimal("0.0173")}
"""(cloud, region) → a GiB-month of changed blocks, in the site's currency; the disk's size is the most there can be.

Standard snapshots are priced by region on the product's page, which no API gives. Only what the documents state as a
figure is here, for China (Hangzhou) on the international site: the billing page's own example, "for reference only".
https://www.alibabacloud.com/help/en/ecs/snapshots-1, "Billing examples".
"""


log = logging.getLogger(__name__)

CURRENCIES = {"alibaba": "CNY", "alibaba-intl": "USD"}
_API = "ecs:DescribePrice"
_SOURCE = "alibaba-price"
_LOOKUPS_IN_FLIGHT = 4
_SYSTEM_DISK = {"Category": "cloud_essd", "Size": 40}  # some disk must be asked for; its price is told apart
_DEAREST = 100_000.0  # an hour of anything; today's dearest machine is under 2,000 CNY


@dataclass(frozen=True, slots=True)
class Product:
    """What has one price: a type in a region under an operating system; of spot also in a zone, else empty."""

    cloud: str
    region: str
    instance_type: str
    system: str
    spot_zone: str = ""
    spot: bool = False


@dataclass(frozen=True, slots=True)
class Disk:
    """What has one price: so many GiB of a kind of disk in a region."""

    cloud: str
    region: str
    volume_type: str
    size_gib: int


class AlibabaPrices(CloudPrices[Calls]):
    """For one site: policy, then the price list; of spot the price in force in its zone.

    What a prepaid machine costs was settled when it was bought: its list price by the hour is shown all the same. What
    an address costs is not told by any API here. Snapshots are priced as standard ones.

    API: ECS DescribePrice, once for each type in a region that the process meets.
    """

    def __init__(self, session: Calls, overrides: Sequence[PriceOverride], *, now: datetime) -> None:
        super().__init__(session, overrides, now=now)
        self._hourly: dict[Product | Disk, Money | None] = {}
        self._lock = threading.Lock()

    def snapshot_hourly(self, volume: Volume) -> Money | None:
        """As on every cloud, by the table."""
        gib_month = SNAPSHOT_GIB_MONTH.get((volume.ref.cloud, volume.ref.region))
        return gib_hourly(volume, gib_month, CURRENCIES[volume.ref.cloud])

    def _read(self, instances: Sequence[Instance]) -> None:
        self._read_all({product_of(instance): instance.ref.account for instance in instances})

    def _told(self, instance: Instance) -> HourlyRate | None:
        found = self._hourly.get(product_of(instance))
        return None if found is None else HourlyRate(found, _SOURCE, self._today)

    def _read_volumes(self, volumes: Sequence[Volume]) -> None:
        self._read_all({_disk_of(volume): volume.ref.account for volume in volumes})

    def _volume_hourly(self, volume: Volume) -> Money | None:
        return self._hourly.get(_disk_of(volume))

    def _read_all(self, asked: Mapping[Product, str] | Mapping[Disk, str]) -> None:
        """`asked` has the account in whose name to ask; what is known already is not asked."""
        with self._lock:
            missing = [(thing, account) for thing, account in asked.items() if thing not in self._hourly]
        if not missing:
            return
        with ThreadPoolExecutor(min(_LOOKUPS_IN_FLIGHT, len(missing))) as pool:
            read = list(pool.map(lambda each: (each[0], self._ask(*each)), missing))
        with self._lock:
            self._hourly.update(read)

    def _ask(self, thing: Product | Disk, account: str) -> Money | None:
        shard = Shard(thing.cloud, account, thing.region)
        spot = isinstance(thing, Product) and thing.spot
        request = question_about(thing)
        facts = {"shard": str(shard), "what": thing.instance_type if isinstance(thing, Product) else thing.volume_type}
        try:
            answer = self._session.call(shard, "ecs", "DescribePrice", **request)
            with as_documented(_API):
                found = price_in(answer, spot=spot)
        except ProviderError as err:
            log.warning("price not read", extra={**facts, "cause": str(err)})
            return None
        if found is not None and found.currency != CURRENCIES[thing.cloud]:
            log.warning("price in the other site's currency", extra={**facts, "currency": found.currency})
            return None
        return found


def product_of(instance: Instance) -> Product:
    """What `instance` is sold as."""
    ref, spot = instance.ref, instance.billing is Billing.SPOT
    zone = instance.zone if spot else ""
    return Product(ref.cloud, ref.region, instance.instance_type, instance.operating_system, zone, spot)


def question_about(thing: Product | Disk) -> dict[str, Any]:
    """The parameters of DescribePrice for an hour of it."""
    if isinstance(thing, Disk):
        category, _, level = thing.volume_type.partition(":")
        disk = {"Category": category, "Size": thing.size_gib, **({"PerformanceLevel": level} if level else {})}
        return {"ResourceType": "disk", "PriceUnit": "Hour", "DataDisk": [disk]}
    request: dict[str, Any] = {
        "ResourceType": "instance",
        "InstanceType": thing.instance_type,
        "InstanceNetworkType": "vpc",
        "PriceUnit": "Hour",
        "Platform": "Windows" if thing.system == "windows" else "Linux",
        "SystemDisk": _SYSTEM_DISK,
    }
    if thing.spot:
        request["SpotStrategy"] = "SpotAsPriceGo"
        if thing.spot_zone:
            request["ZoneId"] = thing.spot_zone
    return request


def price_in(answer: Fields, *, spot: bool) -> Money | None:
    """The price of the machine without its disk and traffic, with its image's, or of the disk; None where none is told.

    The page of DescribePrice lists the parts as `InstanceType`, `SystemDisk`, `DataDisk`, and answers that others show
    have small letters: they are the same here.
    """
    price = part(part(answer, "PriceInfo"), "Price")
    details = structures_in(price, "DetailInfos.DetailInfo", _API)
    named = {text(each, "Resource").casefold(): each for each in details}
    counted = ("instancetype", "image") if "instancetype" in named else ("datadisk", "disk")
    field = "TradePrice" if spot else "OriginalPrice"
    amounts = [_money(named[name], field) for name in counted if name in named]
    currency = text(price, "Currency")
    if not amounts or not currency or amounts[0] is None:
        return None
    total = sum((each for each in amounts if each is not None), Decimal(0))
    return Money(total, currency) if total > 0 else None


def _money(fields: Fields, key: str) -> Decimal | None:
    found = amount(fields, key)
    if found is None or found > _DEAREST:
        return None
    return Decimal(repr(fields[key]))  # the shortest decimal that is this number: what was written


def _disk_of(volume: Volume) -> Disk:
    return Disk(volume.ref.cloud, volume.ref.region, volume.volume_type, math.ceil(volume.size_gib))
