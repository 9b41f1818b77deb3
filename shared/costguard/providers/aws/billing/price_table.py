"""List prices to fall back on, each with its date; what is not here is unknown.

Linux, shared tenancy, us-east-1, USD an hour without tax. Source: the EC2 on-demand price list
(https://aws.amazon.com/ec2/pricing/on-demand/) as its Price List API gave it on the date below. Other
regions differ and are unknown here: grant `pricing:GetProducts`, or put prices into the policy.
"""

from __future__ import annotations

from decimal import Decimal

INSTANCES_AS_OF = "2026-02-09"
STORAGE_AS_OF = "2026-02-09"

_US_EAST_1 = {
    "p3.2xlarge": "3.06",
    "p3.8xlarge": "12.24",
    "p3.16xlarge": "24.48",
    "p3dn.24xlarge": "31.212",
    "p4d.24xlarge": "21.957642",
    "p4de.24xlarge": "27.44705",
    "p5.4xlarge": "6.88",
    "p5.48xlarge": "55.04",
    "p5en.48xlarge": "63.296",
    "g4dn.xlarge": "0.526",
    "g4dn.2xlarge": "0.752",
    "g4dn.4xlarge": "1.204",
    "g4dn.8xlarge": "2.176",
    "g4dn.12xlarge": "3.912",
    "g4dn.16xlarge": "4.352",
    "g4dn.metal": "7.824",
    "g5.xlarge": "1.006",
    "g5.2xlarge": "1.212",
    "g5.4xlarge": "1.624",
    "g5.8xlarge": "2.448",
    "g5.12xlarge": "5.672",
    "g5.16xlarge": "4.096",
    "g5.24xlarge": "8.144",
    "g5.48xlarge": "16.288",
    "g6.xlarge": "0.8048",
    "g6.2xlarge": "0.9776",
    "g6.4xlarge": "1.3232",
    "g6.8xlarge": "2.0144",
    "g6.12xlarge": "4.6016",
    "g6.16xlarge": "3.3968",
    "g6.24xlarge": "6.6752",
    "g6.48xlarge": "13.3504",
    "g6e.xlarge": "1.861",
    "g6e.2xlarge": "2.24208",
    "g6e.4xlarge": "3.00424",
    "g6e.8xlarge": "4.52856",
    "g6e.12xlarge": "10.49264",
    "g6e.16xlarge": "7.57719",
    "g6e.24xlarge": "15.06559",
    "g6e.48xlarge": "30.13118",
    "inf2.xlarge": "0.7582",
    "inf2.8xlarge": "1.96786",
    "inf2.24xlarge": "6.49063",
    "inf2.48xlarge": "12.98127",
    "trn1.2xlarge": "1.34375",
    "trn1.32xlarge": "21.5",
    "trn1n.32xlarge": "24.78",
}

INSTANCE_HOURLY_USD = {("us-east-1", name): Decimal(price) for name, price in _US_EAST_1.items()}
"""(region, instance type) → USD an hour."""

VOLUME_GIB_MONTH_USD = {
    ("us-east-1", name): Decimal(price)
    for name, price in {
        "gp3": "0.08",
        "gp2": "0.10",
        "io2": "0.125",
        "io1": "0.125",
        "st1": "0.045",
        "sc1": "0.015",
        "standard": "0.05",
    }.items()
}
"""(region, volume type) → USD a GiB-month (https://aws.amazon.com/ebs/pricing/); IOPS and throughput bought extra."""

SNAPSHOT_GIB_MONTH_USD = {"us-east-1": Decimal("0.05")}
"""Region → USD a GiB-month of changed blocks, standard tier; the volume's size is the most there can be."""

PUBLIC_ADDRESS_HOURLY_USD = Decimal("0.005")
"""A public IPv4 address an hour in every commercial region, in use or not (https://aws.amazon.com/vpc/pricing/)."""

NAT_GATEWAY_HOURLY_USD = {"us-east-1": Decimal("0.045")}
"""Region → USD an hour for a NAT gateway there is (https://aws.amazon.com/vpc/pricing/); the gigabytes through it and
its addresses are extra."""

NETWORK_AS_OF = "2026-02-09"
