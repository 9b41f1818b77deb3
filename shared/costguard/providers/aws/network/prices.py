"""What public addresses and NAT gateways cost by the hour in a region: the live price list, then the dated table.

Permission: `pricing:GetProducts`. The list has a NAT gateway in `AmazonEC2`, group `NGW:NatGateway`, usage
`…NatGateway-Hours` (not that of regional ones, nor bytes), and addresses in `AmazonVPC`, group `VPCPublicIPv4Address`,
usage `…PublicIPv4:InUseAddress` or `…:IdleAddress` (not blocks). It covers every region of its partition: one of `aws`
asks us-east-1, one of `aws-cn` cn-northwest-1 (in CNY); of `aws-us-gov` its own credentials can ask none. Each is asked
for once a region; a list that does not answer is not asked again in this run.
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from costguard.domain.errors import ProviderError
from costguard.domain.money import HourlyRate, Money
from costguard.domain.network import Unpriced
from costguard.domain.refs import Shard
from costguard.providers.aws.billing.prices import (
    CURRENCIES,
    NAT_GATEWAY_HOURLY_USD,
    NETWORK_AS_OF,
    PRICE_LIST_REGIONS,
    PUBLIC_ADDRESS_HOURLY_USD,
    hourly_on_demand,
    parsed,
)
from costguard.providers.kit.core.calls import Lists
from costguard.providers.kit.core.fields import as_documented, part, text

log = logging.getLogger(__name__)

Rate = HourlyRate | Unpriced
_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)


@dataclass(frozen=True, slots=True)
class NetworkRates:
    """An hour of an address of Amazon's, of an idle one, and of a NAT gateway; or why it is not known."""

    in_use: Rate
    idle: Rate
    gateway: Rate


@dataclass(frozen=True, slots=True)
class _Usage:
    """One line of the price list: where it is, and how its usage type ends, which begins with a code of the region."""

    service: str
    group: str
    usage: str


_IN_USE = _Usage("AmazonVPC", "VPCPublicIPv4Address", "PublicIPv4:InUseAddress")
_IDLE = _Usage("AmazonVPC", "VPCPublicIPv4Address", "PublicIPv4:IdleAddress")
_GATEWAY = _Usage("AmazonEC2", "NGW:NatGateway", "NatGateway-Hours")


def table_rates(shard: Shard, *, read: bool = True) -> NetworkRates:
    """Those of the dated table. What it lacks is in no list, or, where that was not `read`, perhaps in one."""
    why = Unpriced.UNLISTED if read else Unpriced.NOT_READ
    address = PUBLIC_ADDRESS_HOURLY_USD if shard.cloud == "aws" else None
    gateway = NAT_GATEWAY_HOURLY_USD.get(shard.region)
    rates = [
        why if price is None else HourlyRate(Money(price, "USD"), "table", NETWORK_AS_OF)
        for price in (address, address, gateway)
    ]
    return NetworkRates(*rates)


class AwsNetworkPrices:
    """Asks the price list for what a region has; threads may share it."""

    def __init__(self, session: Lists) -> None:
        self._session = session
        self._known: dict[tuple[str, str, str], Mapping[_Usage, HourlyRate] | None] = {}
        self._silent: set[str] = set()
        self._lock = threading.Lock()

    def rates(self, shard: Shard, *, addresses: bool, gateways: bool) -> NetworkRates:
        """The rates of a region that has addresses of Amazon's, NAT gateways, both or neither."""
        if shard.cloud not in PRICE_LIST_REGIONS:
            return table_rates(shard)
        of_addresses = self._listed(shard, (_IN_USE, _IDLE)) if addresses else {}
        of_gateways = self._listed(shard, (_GATEWAY,)) if gateways else {}
        by_address = table_rates(shard, read=of_addresses is not None)
        by_gateway = table_rates(shard, read=of_gateways is not None)
        return NetworkRates(
            (of_addresses or {}).get(_IN_USE, by_address.in_use),
            (of_addresses or {}).get(_IDLE, by_address.idle),
            (of_gateways or {}).get(_GATEWAY, by_gateway.gateway),
        )

    def _listed(self, shard: Shard, wanted: tuple[_Usage, ...]) -> Mapping[_Usage, HourlyRate] | None:
        """What the list has of these; None where it could not be read."""
        key = (shard.cloud, shard.region, wanted[0].group)
        with self._lock:
            if key not in self._known:
                self._known[key] = None if shard.cloud in self._silent else self._asked(shard, wanted)
            return self._known[key]

    def _asked(self, shard: Shard, wanted: tuple[_Usage, ...]) -> Mapping[_Usage, HourlyRate] | None:
        filters = {"group": wanted[0].group, "regionCode": shard.region}
        try:
            pages = self._session.pages(
                Shard(shard.cloud, shard.account, PRICE_LIST_REGIONS[shard.cloud]),
                "pricing",
                "GetProducts",
                "PriceList",
                ServiceCode=wanted[0].service,
                FormatVersion="aws_v1",
                Filters=[{"Type": "TERM_MATCH", "Field": field, "Value": value} for field, value in filters.items()],
            )
            with as_documented("pricing:GetProducts"):
                return dict(_rates((entry for page in pages for entry in page), wanted, shard))
        except ProviderError as err:
            self._silent.add(shard.cloud)
            log.warning("price list not read, using the dated table", extra={"cloud": shard.cloud, "cause": str(err)})
            return None


def _rates(entries: Iterable[Any], wanted: Sequence[_Usage], shard: Shard) -> Iterator[tuple[_Usage, HourlyRate]]:
    """The one hourly price of each usage; none where the list has several, or only zero."""
    currency = CURRENCIES[shard.cloud]
    found: dict[_Usage, set[tuple[Decimal, str]]] = {usage: set() for usage in wanted}
    for entry in map(parsed, entries):
        attributes = part(part(entry, "product"), "attributes")
        told = text(attributes, "usagetype")
        for usage in wanted:
            here = text(attributes, "regionCode") == shard.region and text(attributes, "group") == usage.group
            if here and (told == usage.usage or told.endswith(f"-{usage.usage}")):
                found[usage].update((price, _published(entry)) for price in hourly_on_demand(entry, currency))
    for usage, prices in found.items():
        if len({price for price, _ in prices}) == 1:
            price, day = max(prices)
            yield usage, HourlyRate(Money(price, currency), "aws-pricing", day)


def _published(entry: Mapping[str, Any]) -> str:
    day = _DAY.match(text(entry, "publicationDate"))
    return day[0] if day else ""
