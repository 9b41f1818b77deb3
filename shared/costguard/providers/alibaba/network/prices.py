"""What elastic addresses and NAT gateways cost by the hour on Alibaba Cloud, as its billing product quotes it.

Permissions: `bssapi:GetPayAsYouGoPrice`, `bssapi:DescribePricingModule`, or the console's names for both, which
permissions.py has. List prices (`OriginalCost`), without discount or tax. Of an address its fee for being kept, which
is waived while it is bound to an instance, and its bandwidth where that is paid for; never traffic. Of a gateway the
fee for having it; never capacity units. A price that cannot be read is none, with the reason, and never zero.

One question a region for addresses, one more for each bandwidth, one for gateways; the price list's modules of gateways
are asked for once. EIP documents: "Pay-as-you-go"; BSS documents: "EIP PayAsYouGo", "GetPayAsYouGoPrice".
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timezone
from decimal import Decimal
from typing import Any

from costguard.domain.errors import ProviderError
from costguard.domain.money import HourlyRate, Money
from costguard.domain.network import Unpriced
from costguard.domain.refs import Shard
from costguard.providers.alibaba.billing.answers import amount_in
from costguard.providers.alibaba.billing.prices import CURRENCIES
from costguard.providers.alibaba.core.products import items_in, structures_in
from costguard.providers.kit.core.calls import Calls
from costguard.providers.kit.core.fields import Fields, as_documented, part, text

log = logging.getLogger(__name__)

_PRICE, _MODULES = "bss:GetPayAsYouGoPrice", "bss:DescribePricingModule"
_SOURCE = "alibaba-bss"
_RENT, _BANDWIDTH = "InstanceRent", "Bandwidth"
_KBPS = 1024  # a Mbit/s in the price list's own unit
_HOURS_A_DAY = 24  # bandwidth is quoted by the day
_DEAREST = Decimal(100_000)  # an hour of anything
_USUAL_LINES = frozenset({"", "BGP"})  # the documents name no price module for others
_METERED = "PayByLcu"


@dataclass(frozen=True, slots=True)
class Fee:
    """What has one price: the rent of an address, its bandwidth in Mbit/s, or the rent of a gateway."""

    region: str
    product: str
    mbps: int = 0


def fees_of_address(shard: Shard, told: Fields) -> tuple[Fee, ...] | Unpriced:
    """What is billed of an elastic address as DescribeEipAddresses tells it.

    Raises:
        TypeError, ValueError: not as documented.
    """
    if text(told, "ChargeType") == "PrePaid":
        return Unpriced.TERM
    if text(told, "BandwidthPackageId"):
        return Unpriced.SHARED
    if text(told, "ISP") not in _USUAL_LINES:
        return Unpriced.UNLISTED
    rent = () if text(told, "InstanceType") == "EcsInstance" else (Fee(shard.region, "eip"),)
    if text(told, "InternetChargeType") != "PayByBandwidth":
        return rent or Unpriced.FREE_WHILE_BOUND
    mbps = text(told, "Bandwidth")
    if not (mbps.isascii() and mbps.isdecimal() and int(mbps)):
        raise ValueError("Bandwidth is no whole number")
    return (*rent, Fee(shard.region, "eip", int(mbps)))


def fees_of_gateway(shard: Shard, told: Fields) -> tuple[Fee, ...] | Unpriced:
    """What is billed of a NAT gateway for being there.

    Raises:
        TypeError, ValueError: not as documented.
    """
    if text(told, "InstanceChargeType") == "PrePaid":
        return Unpriced.TERM
    if text(told, "InternetChargeType") != _METERED:  # by its size, which is sold no more
        return Unpriced.UNLISTED
    return (Fee(shard.region, "nat_gw"),)


class NetworkPrices:
    """What was asked once is kept, also that there was no answer; threads may share it."""

    def __init__(self, session: Calls, *, now: Callable[[], datetime]) -> None:
        self._session = session
        self._now = now
        self._known: dict[Fee, Money | None] = {}
        self._rents: bool | None = None
        self._lock = threading.Lock()

    def of(self, shard: Shard, fees: tuple[Fee, ...] | Unpriced) -> tuple[HourlyRate | None, Unpriced | None]:
        """The sum of these an hour, or why there is none."""
        if isinstance(fees, Unpriced):
            return None, fees
        found = [self._hourly(shard, fee) for fee in fees]
        read = [each for each in found if each is not None]
        if len(read) < len(found):
            unlisted = self._rents is False and any(fee.product == "nat_gw" for fee in fees)
            return None, Unpriced.UNLISTED if unlisted else Unpriced.NOT_READ
        total = Money(sum((each.amount for each in read), Decimal(0)), CURRENCIES[shard.cloud])
        return HourlyRate(total, _SOURCE, self._now().astimezone(timezone.utc).date().isoformat()), None

    def _hourly(self, shard: Shard, fee: Fee) -> Money | None:
        """API: BSS GetPayAsYouGoPrice, once for each fee: who asks for the same meanwhile waits for that answer."""
        with self._lock:
            if fee not in self._known:
                self._known[fee] = self._read(shard, fee)
            return self._known[fee]

    def _read(self, shard: Shard, fee: Fee) -> Money | None:
        home = Shard(shard.cloud, shard.account, "")  # prices of all regions are asked in one place
        try:
            if fee.product == "nat_gw" and not self._is_rented(home):
                return None
            answer = self._session.call(home, "bss", "GetPayAsYouGoPrice", **question(fee))
            with as_documented(_PRICE):
                found = price_in(answer, fee)
        except ProviderError as err:
            log.warning("price of a network part not read", extra={"shard": str(shard), "cause": str(err)})
            return None
        if found is not None and found.currency != CURRENCIES[shard.cloud]:
            log.warning("price in the other site's currency", extra={"shard": str(shard), "currency": found.currency})
            return None
        return found

    def _is_rented(self, home: Shard) -> bool:
        """Whether the price list has a rent by the hour for NAT gateways: no document names its modules."""
        if self._rents is None:
            answer = self._session.call(
                home, "bss", "DescribePricingModule", ProductCode="nat_gw", SubscriptionType="PayAsYouGo"
            )
            with as_documented(_MODULES):
                self._rents = any(map(_is_hourly_rent, _modules(answer)))
        return self._rents


def question(fee: Fee) -> dict[str, Any]:
    """The parameters of GetPayAsYouGoPrice."""
    modules: tuple[tuple[str, str, str], ...]
    if fee.mbps:
        modules = (
            (_BANDWIDTH, str(fee.mbps * _KBPS), "Day"),
            ("InternetChargeType", "0", "Usage"),
            ("ISP", "BGP", "Hour"),
        )
    elif fee.product == "eip":
        modules = (("InternetTrafficOut", "1", "Usage"), (_RENT, "1", "Hour"))
    else:
        modules = ((_RENT, "1", "Hour"),)
    listed = [{"ModuleCode": code, "Config": f"{code}:{value}", "PriceType": unit} for code, value, unit in modules]
    return {"ProductCode": fee.product, "SubscriptionType": "PayAsYouGo", "Region": fee.region, "ModuleList": listed}


def price_in(answer: Fields, fee: Fee) -> Money | None:
    """The price of an hour of what was asked about; None where none, or none above zero, is told.

    Raises:
        TypeError, ValueError, ProviderError: not as documented.
    """
    wanted = _BANDWIDTH if fee.mbps else _RENT
    data = part(answer, "Data")
    details = structures_in(data, "ModuleDetails.ModuleDetail", _PRICE)
    costs = [amount_in(each, "OriginalCost") for each in details if text(each, "ModuleCode") == wanted]
    if len(costs) != 1 or not 0 < costs[0] < _DEAREST:
        return None
    return Money(costs[0] / _HOURS_A_DAY if fee.mbps else costs[0], text(data, "Currency"))


def _modules(answer: Fields) -> Iterable[Fields]:
    return structures_in(part(answer, "Data"), "ModuleList.Module", _MODULES)


def _is_hourly_rent(module: Fields) -> bool:
    asked = items_in(module, "ConfigList.ConfigList", _MODULES)
    return (
        text(module, "ModuleCode") == _RENT and text(module, "PriceType") == "Hour" and set(asked) <= {_RENT, "Region"}
    )
