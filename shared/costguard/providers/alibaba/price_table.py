"""Prices that no API tells, each with its source and date; what is not here is unknown.

Standard snapshots are priced by region on the product's page, which no API gives. Only what the documents state as a
figure is here, for China (Hangzhou) on the international site: the billing page's own example, "for reference only".
"""

from __future__ import annotations

from decimal import Decimal

AS_OF = "2025-10-20"

SNAPSHOT_GIB_MONTH = {("alibaba-intl", "cn-hangzhou"): Decimal("0.0173")}
"""(cloud, region) → a GiB-month of changed blocks, in the site's currency; the disk's size is the most there can be.

https://www.alibabacloud.com/help/en/ecs/snapshots-1, "Billing examples".
"""
