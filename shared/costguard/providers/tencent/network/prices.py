"""What elastic addresses and NAT gateways cost by the hour on Tencent Cloud.

Permission: `vpc:InquiryPriceAllocateAddresses`, which quotes the bandwidth of an address that is paid for by the hour
whatever it is bound to: one question for each bandwidth in a region. No operation quotes the fee of an address that is
bound to nothing, or a NAT gateway (the API of 2017-03-12 prices VPN gateways only): those are in a dated table. Traffic
and capacity units are in none of these. A price that cannot be read is none, with the reason, and never zero.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from decimal import Decimal

from costguard.domain.errors import ProviderError
from costguard.domain.money import HourlyRate, Money
from costguard.domain.network import Unpriced
from costguard.domain.refs import Shard
from costguard.providers.kit.core.calls import Reads
from costguard.providers.kit.core.fields import Fields, amount, as_documented, flag, part, text, whole
from costguard.providers.tencent.core.products import CURRENCIES, told
from costguard.providers.tencent.network.answers import PREPAID, known_address

ADDRESSES_AS_OF = "2022-10-31"
GATEWAYS_AS_OF = "2022-05-20"
STANDARD_GATEWAYS_AS_OF = "2024-11-12"

SITE = "tencent-intl"
"""Whose list prices these are, in USD an hour, as its documents write them; no page has a table of the China site."""

_MAINLAND = ("ap-beijing", "ap-chengdu", "ap-chongqing", "ap-guangzhou", "ap-nanjing", "ap-shanghai")
_ELSEWHERE = (
    *("ap-bangkok", "ap-hongkong", "ap-mumbai", "ap-seoul", "ap-singapore", "ap-tokyo", "eu-frankfurt", "na-ashburn"),
    *("na-siliconvalley", "na-toronto"),
)

IDLE_ADDRESS_HOUR: Mapping[str, Decimal] = {
    **dict.fromkeys(_MAINLAND, Decimal("0.031")),
    **dict.fromkeys(_ELSEWHERE, Decimal("0.04")),
}
"""Region → the IP resource fee, which is billed only while an address is bound to no machine, gateway or balancer.

https://www.tencentcloud.com/document/product/213/17156, "IP Resource Fee".
"""

_ABROAD = (
    *("ap-hongkong", "ap-jakarta", "ap-seoul", "ap-singapore", "ap-tokyo", "eu-frankfurt", "na-ashburn"),
    *("na-siliconvalley", "sa-saopaulo"),
)
_SIZES = (1_000_000, 3_000_000, 10_000_000)  # connections: small, medium, large


def _classic(regions: tuple[str, ...], *prices: str) -> dict[tuple[str, int], Decimal]:
    return {(region, size): Decimal(price) for region in regions for size, price in zip(_SIZES, prices, strict=True)}


CLASSIC_GATEWAY_HOUR: Mapping[tuple[str, int], Decimal] = {
    **_classic(_MAINLAND, "0.089", "0.28", "0.89"),
    **_classic(_ABROAD, "0.13", "0.39", "1.3"),
    **_classic(("ap-mumbai",), "0.18", "0.54", "1.8"),
    **_classic(("ap-bangkok", "na-toronto"), "0.14", "0.42", "1.4"),
}
"""(region, most connections) → the gateway fee.

https://intl.cloud.tencent.com/document/product/1015/30248, "Gateway Fee".
"""

STANDARD_GATEWAY_HOUR: Mapping[str, Decimal] = {
    **dict.fromkeys(
        ("ap-beijing", "ap-chengdu", "ap-chongqing", "ap-guangzhou", "ap-hongkong", "ap-shanghai"), Decimal("0.034")
    ),
    **dict.fromkeys(("ap-bangkok", "ap-singapore"), Decimal("0.043")),
}
"""Region → the instance fee, without capacity units. https://tencentcloud.com/document/product/1015/30248."""


log = logging.getLogger(__name__)

_API = "vpc:InquiryPriceAllocateAddresses"
_SOURCE = "tencent-vpc"
_BY_BANDWIDTH, _PACKAGE = "BANDWIDTH_POSTPAID_BY_HOUR", "BANDWIDTH_PACKAGE"
_BY_TRAFFIC = frozenset({"TRAFFIC_POSTPAID_BY_HOUR", ""})  # empty of accounts whose machines pay for the traffic
_USUAL = frozenset({"", "EIP"})
_BOUND = "BIND"
_STANDARD = 2
_DEAREST = Decimal(100_000)


@dataclass(frozen=True, slots=True)
class Bandwidth:
    """So many Mbit/s by the hour in a region."""

    shard: Shard
    mbps: int


Cost = HourlyRate | Bandwidth | Unpriced


def cost_of_address(shard: Shard, item: Fields) -> Cost:
    """What is billed of an element of AddressSet: a price, what to ask for, or why there is none."""
    known = told(known_address(item), "Bandwidth", "BandwidthPackageId", "AddressType")
    charge = text(known, "InternetChargeType")
    if charge == PREPAID:
        return Unpriced.TERM
    if text(known, "AntiDDoSPackageId"):
        return Unpriced.SHARED
    if text(known, "AddressType") not in _USUAL:
        return Unpriced.UNLISTED
    if charge == _BY_BANDWIDTH:
        return Bandwidth(shard, whole(known, "Bandwidth"))
    bound = text(known, "AddressStatus") == _BOUND
    if bound and charge == _PACKAGE:
        return Unpriced.SHARED
    if charge not in {*_BY_TRAFFIC, _PACKAGE}:
        return Unpriced.UNLISTED
    return Unpriced.FREE_WHILE_BOUND if bound else _listed(shard, IDLE_ADDRESS_HOUR.get(shard.region))


def cost_of_gateway(shard: Shard, item: Fields) -> HourlyRate | Unpriced:
    """What is billed of an element of NatGatewaySet for being there, or why it is not known."""
    if flag(item, "IsExclusive"):
        return Unpriced.UNLISTED
    if "NatProductVersion" in item and whole(item, "NatProductVersion") == _STANDARD:
        return _listed(shard, STANDARD_GATEWAY_HOUR.get(shard.region), STANDARD_GATEWAYS_AS_OF)
    size = whole(item, "MaxConcurrentConnection") if "MaxConcurrentConnection" in item else 0
    return _listed(shard, CLASSIC_GATEWAY_HOUR.get((shard.region, size)), GATEWAYS_AS_OF)


def _listed(shard: Shard, price: Decimal | None, as_of: str = ADDRESSES_AS_OF) -> HourlyRate | Unpriced:
    if price is None or shard.cloud != SITE:
        return Unpriced.UNLISTED
    return HourlyRate(Money(price, CURRENCIES[shard.cloud]), "table", as_of)


class NetworkPrices:
    """What was asked once is kept, also that there was no answer; threads may share it."""

    def __init__(self, session: Reads, *, now: Callable[[], datetime]) -> None:
        self._session = session
        self._now = now
        self._known: dict[Bandwidth, Money | None] = {}
        self._lock = threading.Lock()

    def of(self, cost: Cost) -> tuple[HourlyRate | None, Unpriced | None]:
        """The price an hour, or why there is none."""
        if isinstance(cost, Unpriced):
            return None, cost
        if isinstance(cost, HourlyRate):
            return cost, None
        with self._lock:
            if cost not in self._known:
                self._known[cost] = self._read(cost)
            found = self._known[cost]
        if found is None:
            return None, Unpriced.NOT_READ
        return HourlyRate(found, _SOURCE, self._now().astimezone(timezone.utc).date().isoformat()), None

    def _read(self, asked: Bandwidth) -> Money | None:
        """API: VPC InquiryPriceAllocateAddresses."""
        service, action = _API.split(":")
        try:
            answer = self._session.call(
                asked.shard,
                service,
                action,
                InternetChargeType=_BY_BANDWIDTH,
                InternetMaxBandwidthOut=asked.mbps,
                AddressType="EIP",
            )
            with as_documented(_API):
                found = hourly(answer)
        except ProviderError as err:
            log.warning("the price of an address not read", extra={"shard": str(asked.shard), "cause": str(err)})
            return None
        return None if found is None else Money(found, CURRENCIES[asked.shard.cloud])


def hourly(answer: Fields) -> Decimal | None:
    """The list price of an hour in an answer; None where none above zero is told, or of another unit."""
    quoted = told(part(part(answer, "Price"), "AddressPrice"), "UnitPrice", "ChargeUnit")
    found = amount(quoted, "UnitPrice")
    if found is None or text(quoted, "ChargeUnit") != "HOUR":
        return None
    exact = Decimal(str(quoted["UnitPrice"]))  # the shortest decimal of its float is what was written
    return exact if 0 < exact < _DEAREST else None
