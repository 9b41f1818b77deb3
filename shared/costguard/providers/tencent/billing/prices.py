"""What things cost on Tencent Cloud: policy first, then what CVM and CBS quote for this account. Unknown is absent.

Permissions: `cvm:DescribeZoneInstanceConfigInfos`, `cbs:InquiryPriceCreateDisks`. List prices before discounts, CNY
on the China site and USD on the international one, never converted. Nothing is taken from a table: without an
answer the price is unknown.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from costguard.domain.errors import ProviderError
from costguard.domain.money import HOURS_PER_MONTH, HourlyRate, Money
from costguard.domain.refs import Shard
from costguard.domain.resources import Billing, Instance, Volume
from costguard.policy.model.policy import PriceOverride
from costguard.providers.kit.billing.prices import CloudPrices
from costguard.providers.kit.core.calls import Reads
from costguard.providers.kit.core.fields import Fields, amount, as_documented, named, part, text
from costguard.providers.tencent.compute.instance_types import ZONES
from costguard.providers.tencent.compute.instances import POSTPAID, PREPAID, SPOT
from costguard.providers.tencent.core.products import CURRENCIES, told

log = logging.getLogger(__name__)

_DISKS = "cbs:InquiryPriceCreateDisks"
_BATCH = 100  # values of one filter
_CHARGES = {Billing.ON_DEMAND: POSTPAID, Billing.SPOT: SPOT, Billing.PREPAID: PREPAID}
_TIERS = (
    (timedelta(hours=96), "UnitPrice"),
    (timedelta(hours=360), "UnitPriceSecondStep"),
    (None, "UnitPriceThirdStep"),
)
"""Until when each price of a pay-as-you-go hour holds: longer use costs less, where the later ones are there at all."""


@dataclass(frozen=True, slots=True)
class Product:
    """What has one price: an instance type in a zone under a charge type."""

    shard: Shard
    zone: str
    instance_type: str
    charge: str


class TencentPrices(CloudPrices[Reads]):
    """For both sites: policy, then the quote for its zone and charge type.

    Pay-as-you-go is quoted in three steps by length of use, and the use is counted from the machine's creation, the
    only beginning that the cloud tells. Spot is quoted at the moment's price. A prepaid month is spread over its hours.
    A dedicated host is paid for as a host, so its machines have no price. The fee of an address depends on the kind of
    account and on its bandwidth: unknown.
    """

    def __init__(self, session: Reads, overrides: Sequence[PriceOverride], *, now: datetime) -> None:
        super().__init__(session, overrides, now=now)
        self._quoted: dict[Product, Fields] = {}
        self._asked: set[tuple[Shard, str, str]] = set()
        self._disks: dict[tuple[Shard, str, float], Money | None] = {}

    def snapshot_hourly(self, volume: Volume) -> Money | None:
        """Unknown: no operation quotes it, and a part of each region's snapshots is free."""
        del volume
        return None

    def _told(self, instance: Instance) -> HourlyRate | None:
        product = _product(instance)
        quoted = None if product is None else self._quoted.get(product)
        if quoted is None:
            return None
        used = timedelta(0) if instance.created_at is None else self._now - instance.created_at
        try:
            with as_documented(ZONES):
                found = hourly(quoted, _CHARGES[instance.billing], used)
        except ProviderError as err:
            log.warning("a price not read", extra={"instance": str(instance.ref), "cause": str(err)})
            return None
        currency = CURRENCIES[instance.ref.cloud]
        return None if found is None else HourlyRate(Money(found, currency), "tencent-cvm", self._today)

    def _read(self, instances: Sequence[Instance]) -> None:
        wanted: dict[tuple[Shard, str], set[str]] = {}
        for product in map(_product, instances):
            if product is not None and (product.shard, product.charge, product.instance_type) not in self._asked:
                wanted.setdefault((product.shard, product.charge), set()).add(product.instance_type)
        for (shard, charge), types in wanted.items():
            names = sorted(types)
            for first in range(0, len(names), _BATCH):
                self._read_types(shard, charge, names[first : first + _BATCH])

    def _read_types(self, shard: Shard, charge: str, names: Sequence[str]) -> None:
        self._asked |= {(shard, charge, name) for name in names}
        filters = [
            {"Name": "instance-type", "Values": list(names)},
            {"Name": "instance-charge-type", "Values": [charge]},
        ]
        service, action = ZONES.split(":")
        try:
            for page in self._session.pages(shard, service, action, "InstanceTypeQuotaSet", Filters=filters):
                with as_documented(ZONES):
                    for entry in page:
                        product = Product(
                            shard, named(entry, "Zone"), named(entry, "InstanceType"), text(entry, "InstanceChargeType")
                        )
                        self._quoted[product] = part(told(entry, "Price"), "Price")
        except ProviderError as err:
            log.warning("prices not read", extra={"shard": str(shard), "cause": str(err)})

    def _volume_hourly(self, volume: Volume) -> Money | None:
        key = (volume.ref.shard, volume.volume_type, volume.size_gib)
        if key not in self._disks:
            self._disks[key] = self._quote_disk(volume)
        return self._disks[key]

    def _quote_disk(self, volume: Volume) -> Money | None:
        """API: CBS InquiryPriceCreateDisks, for a disk of this kind and size, paid by the hour."""
        shard, (service, action) = volume.ref.shard, _DISKS.split(":")
        try:
            answer = self._session.call(
                shard,
                service,
                action,
                DiskType=volume.volume_type,
                DiskSize=int(volume.size_gib),
                DiskCount=1,
                DiskChargeType=POSTPAID,
            )
            with as_documented(_DISKS):
                quoted = told(part(answer, "DiskPrice"), "UnitPrice", "UnitPriceHigh")
                exact = text(quoted, "UnitPriceHigh")
                found = _positive(Decimal(exact)) if exact else _price(quoted, "UnitPrice")
        except ProviderError as err:
            log.warning("the price of a disk not read", extra={"shard": str(shard), "cause": str(err)})
            return None
        return None if found is None else Money(found, CURRENCIES[volume.ref.cloud])


def hourly(quoted: Fields, charge: str, used: timedelta) -> Decimal | None:
    """What one hour costs of a machine that has been used so long; None where nothing is quoted.

    A field that does not apply is 0, which never is a price.
    """
    if charge == PREPAID:
        monthly = _price(quoted, "OriginalPrice")
        return None if monthly is None else monthly / HOURS_PER_MONTH
    if text(told(quoted, "ChargeUnit"), "ChargeUnit") not in {"", "HOUR"}:
        return None
    if charge == SPOT:
        return _price(quoted, "UnitPriceDiscount") or _price(quoted, "UnitPrice")
    found = None
    for until, name in _TIERS:
        found = _price(quoted, name) or found
        if until is None or used < until:
            return found
    return found


def _price(quoted: Fields, key: str) -> Decimal | None:
    """A price as it stood in the answer: the shortest decimal of its float is what was written."""
    found = amount(told(quoted, key), key)
    return None if found is None else _positive(Decimal(str(found)))


def _positive(found: Decimal) -> Decimal | None:
    return found if found.is_finite() and 0 < found < Decimal("1e9") else None


def _product(instance: Instance) -> Product | None:
    charge = _CHARGES.get(instance.billing)
    return None if charge is None else Product(instance.ref.shard, instance.zone, instance.instance_type, charge)
