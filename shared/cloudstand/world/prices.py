"""What things cost in a world; machines quote their own hourly price."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

from cloudstand.world.places import provider_of

SPOT_SHARE = Decimal("0.4")  # what a spot hour costs of an on-demand hour here
PREPAID_SHARE = Decimal("0.6")  # what an hour of a prepaid term costs of an on-demand hour
PREPAID_TERM = timedelta(days=30)
DISK_GIB_MONTH = Decimal("0.08")
SNAPSHOT_GIB_MONTH = Decimal("0.05")
ADDRESS_HOUR = Decimal("0.005")


def currency_of(cloud: str) -> str:
    """What a cloud's bill is in: the yuan on Chinese sites and partitions, else the dollar."""
    if provider_of(cloud) == "aws":
        return "CNY" if cloud == "aws-cn" else "USD"
    return "USD" if cloud.endswith("-intl") else "CNY"
