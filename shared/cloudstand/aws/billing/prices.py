"""The price list service, which moto does not have: GetProducts for what the fleets use."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from hashlib import blake2b
from typing import Any

from cloudstand.aws.compute.catalogue import (
    DISK_GIB_MONTH,
    NAT_GATEWAY_HOUR,
    PUBLIC_IPV4_HOUR,
    SNAPSHOT_GIB_MONTH,
    TYPES,
    hourly,
    regional,
)

_OFFER = "JRTCKXETXF"  # AWS's own code for on-demand terms
_RATE = "6YS6EN2CT7"  # and for their hourly or monthly dimension
_PAGE = 100
_PUBLISHED = "2026-02-27T00:00:00Z"
_USAGE_PREFIX = {"us-east-1": "", "us-west-2": "USW2-", "eu-west-1": "EU-"}


class UnknownTokenError(ValueError):
    """A page token that was never given out."""


def get_products(request: Mapping[str, Any], regions: Sequence[str]) -> dict[str, Any]:
    """Answer one GetProducts request: every product whose attributes match all filters, in pages.

    Raises:
        UnknownTokenError: the token is not one of ours.
    """
    wanted = [
        product
        for product in _products(regions)
        if product["serviceCode"] == request.get("ServiceCode", "AmazonEC2")
        and all(_matches(product, entry) for entry in request.get("Filters") or ())
    ]
    token = request.get("NextToken") or "0"
    if not token.isdigit():
        message = f"no such page: {token!r}"
        raise UnknownTokenError(message)
    first, size = int(token), int(request.get("MaxResults") or _PAGE)
    answer: dict[str, Any] = {
        "FormatVersion": "aws_v1",
        "PriceList": [json.dumps(product) for product in wanted[first : first + size]],
    }
    if first + size < len(wanted):
        answer["NextToken"] = str(first + size)
    return answer


def _matches(product: Mapping[str, Any], entry: Mapping[str, str]) -> bool:
    value, wanted = _attribute(product, entry["Field"]), entry["Value"]
    if entry["Type"] == "ANY_OF":
        return value in [one.strip() for one in wanted.split(",")]
    return bool(value == wanted)


def _attribute(product: Mapping[str, Any], field: str) -> Any:
    if field in ("productFamily", "sku"):
        return product["product"].get(field)
    if field == "serviceCode":
        return product["serviceCode"]
    return product["product"]["attributes"].get(field)


def _products(regions: Sequence[str]) -> Iterator[dict[str, Any]]:
    for region in regions:
        prefix = _USAGE_PREFIX.get(region, f"{region}-")
        for instance_type in TYPES:
            attributes = {
                "instanceType": instance_type,
                "operatingSystem": "Linux",
                "tenancy": "Shared",
                "capacitystatus": "Used",
                "preInstalledSw": "NA",
                "licenseModel": "No License required",
                "operation": "RunInstances",
                "marketoption": "OnDemand",
                "usagetype": f"{prefix}BoxUsage:{instance_type}",
            }
            price = hourly(instance_type, region).amount
            yield _product("AmazonEC2", "Compute Instance", region, attributes, "Hrs", price)
        for volume_type, price in DISK_GIB_MONTH.items():
            attributes = {"volumeApiName": volume_type, "usagetype": f"{prefix}EBS:VolumeUsage.{volume_type}"}
            yield _product("AmazonEC2", "Storage", region, attributes, "GB-Mo", regional(price, region))
        snapshots = {"usagetype": f"{prefix}EBS:SnapshotUsage", "storageMedia": "Amazon S3"}
        price = regional(SNAPSHOT_GIB_MONTH, region)
        yield _product("AmazonEC2", "Storage Snapshot", region, snapshots, "GB-Mo", price)
        for use in ("PublicIPv4:InUseAddress", "PublicIPv4:IdleAddress"):
            addresses = {"usagetype": f"{prefix}{use}", "group": "VPCPublicIPv4Address"}
            yield _product("AmazonVPC", "VpcPublicIPv4", region, addresses, "Hrs", PUBLIC_IPV4_HOUR)

        gateway = {"usagetype": f"{prefix}NatGateway-Hours", "group": "NGW:NatGateway", "operation": "NatGateway"}
        yield _product("AmazonEC2", "NAT Gateway", region, gateway, "Hrs", regional(NAT_GATEWAY_HOUR, region))


def _product(
    service: str, family: str, region: str, attributes: Mapping[str, str], unit: str, price: Decimal
) -> dict[str, Any]:
    sku = blake2b(f"{region}/{attributes['usagetype']}".encode(), digest_size=8).hexdigest().upper()
    rate = {
        "rateCode": f"{sku}.{_OFFER}.{_RATE}",
        "unit": unit,
        "beginRange": "0",
        "endRange": "Inf",
        "description": f"${price} per {unit} of {attributes['usagetype']}",
        "appliesTo": [],
        "pricePerUnit": {"USD": f"{price:.10f}"},
    }
    term = {
        "sku": sku,
        "offerTermCode": _OFFER,
        "effectiveDate": _PUBLISHED,
        "termAttributes": {},
        "priceDimensions": {rate["rateCode"]: rate},
    }
    return {
        "serviceCode": service,
        "product": {
            "sku": sku,
            "productFamily": family,
            "attributes": {**attributes, "servicecode": service, "regionCode": region, "locationType": "AWS Region"},
        },
        "terms": {"OnDemand": {f"{sku}.{_OFFER}": term}},
        "version": _PUBLISHED.replace("-", "").replace(":", ""),
        "publicationDate": _PUBLISHED,
    }
