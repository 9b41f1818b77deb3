"""The regions of the cloud."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cloudstand.alibaba.core.shapes import wrapped
from cloudstand.alibaba.core.site import ApiCall
from cloudstand.world.cloud import World


def describe_regions(call: ApiCall, _: World) -> Mapping[str, Any]:
    """Every region with its endpoint; not in pages. Local names are English only."""
    regions = [
        {
            "RegionId": region,
            "LocalName": name,
            "RegionEndpoint": f"ecs.{region}.aliyuncs.com",
            "Status": "available",
        }
        for region, name in sorted(call.site.regions.items())
    ]
    return {"Regions": wrapped("Region", regions)}
