"""List prices of addresses and NAT gateways that no operation quotes, each with its source and date; else unknown.

Of the international site, in USD an hour, as its documents write them; no page at hand has a table of the China site.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

ADDRESSES_AS_OF = "2022-10-31"
GATEWAYS_AS_OF = "2022-05-20"
STANDARD_GATEWAYS_AS_OF = "2024-11-12"

SITE = "tencent-intl"
"""Whose prices these are."""

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
