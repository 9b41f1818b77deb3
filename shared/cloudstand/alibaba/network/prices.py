"""What the billing product quotes for elastic addresses and NAT gateways: round figures of the size of list prices."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from cloudstand.alibaba.compute.catalogue import CNY_OF_A_DOLLAR
from cloudstand.alibaba.core.errors import RefusedInBody, not_modelled
from cloudstand.alibaba.core.site import ApiCall
from cloudstand.world.cloud import World

ADDRESS_HOUR = Decimal("0.02")
"""CNY for keeping an address; `DEARER` names where it is more."""
DEARER = {"cn-hongkong": Decimal("0.056"), "ap-southeast-1": Decimal("0.04")}
MBPS_DAY, MBPS_DAY_BEYOND = Decimal("0.96"), Decimal("3.36")
"""CNY a day for a Mbit/s, up to five and beyond."""
_FIRST = 5
GATEWAY_HOUR = Decimal("0.23")
_KBPS = 1024
_CENT = Decimal("0.000001")
_MODULES: Mapping[str, Mapping[str, str]] = {
    # by product: each module with the price type that documents name for it
    "eip": {
        "InstanceRent": "Hour",
        "InternetTrafficOut": "Usage",
        "Bandwidth": "Day",
        "InternetChargeType": "Usage",
        "ISP": "Hour",
    },
    "nat_gw": {"InstanceRent": "Hour", "CU": "Usage"},
}


def get_pay_as_you_go_price(call: ApiCall, _: World) -> Mapping[str, Any]:
    """GetPayAsYouGoPrice: each module with its list price; those that only choose a tariff cost nothing.

    Raises:
        RefusedInBody: a product or module that nobody sells.
    """
    asked = call.asked
    product = asked.text("ProductCode")
    details = [_detail(call, product, module) for module in asked.groups("ModuleList")]
    return _answer({"Currency": call.site.currency, "ModuleDetails": {"ModuleDetail": details}})


def _detail(call: ApiCall, product: str, module: Mapping[str, Any]) -> dict[str, Any]:
    code = str(module["ModuleCode"])
    name, _, value = str(module["Config"]).partition(":")
    if _known(product).get(code) != module["PriceType"] or name != code:
        raise RefusedInBody("InvalidParameter", f"The module {code} is not valid.")
    cost = _cost(product, code, value, call.asked.text("Region"))
    listed = float((cost / (CNY_OF_A_DOLLAR if call.site.currency == "USD" else 1)).quantize(_CENT))
    paid = {"OriginalCost": listed, "CostAfterDiscount": listed, "InvoiceDiscount": 0, "UnitPrice": 0}
    return {"ModuleCode": code, **paid}


def describe_pricing_module(call: ApiCall, _: World) -> Mapping[str, Any]:
    """DescribePricingModule: what a price is made of.

    Raises:
        RefusedInBody: a product that nobody sells.
    """
    asked = call.asked
    if asked.text("SubscriptionType") != "PayAsYouGo":
        raise not_modelled("prices of", asked.text("SubscriptionType"))
    told = [
        {
            "ModuleCode": code,
            "ModuleName": code,
            "PriceType": unit,
            "Currency": call.site.currency,
            "ConfigList": {"ConfigList": [code, "Region"]},
        }
        for code, unit in _known(asked.text("ProductCode")).items()
    ]
    return _answer({"ModuleList": {"Module": told}, "AttributeList": {"Attribute": []}})


def _known(product: str) -> Mapping[str, str]:
    if product not in _MODULES:
        raise RefusedInBody("InvalidParameter", "The ProductCode is not valid.")
    return _MODULES[product]


def _cost(product: str, code: str, value: str, region: str) -> Decimal:
    if code == "InstanceRent":
        return GATEWAY_HOUR if product == "nat_gw" else DEARER.get(region, ADDRESS_HOUR)
    if code != "Bandwidth":
        return Decimal(0)
    mbps, rest = divmod(int(value), _KBPS)
    if rest or not mbps:
        raise RefusedInBody("InvalidParameter", "The Bandwidth is not a multiple of 1024.")
    return min(mbps, _FIRST) * MBPS_DAY + max(0, mbps - _FIRST) * MBPS_DAY_BEYOND


def _answer(data: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"Code": "Success", "Message": "Successful!", "Success": True, "Data": data}
