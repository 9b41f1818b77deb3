"""The instance types of the sandbox's fleets: their devices, local disks and list prices.

Prices are what the stand-in for the price list quotes: near AWS's Linux list prices in us-east-1, in USD an hour.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from cloudstand.world.kinds import Accelerator, AcceleratorKind
from cloudstand.world.money import Money

_REGION_FACTORS = {"us-east-1": Decimal(1), "us-west-2": Decimal(1), "eu-west-1": Decimal("1.11")}
SPOT_SHARE = Decimal("0.4")  # of the on-demand price; the real one moves by the hour
DISK_GIB_MONTH = {"gp3": Decimal("0.08"), "gp2": Decimal("0.10"), "io2": Decimal("0.125"), "st1": Decimal("0.045")}
SNAPSHOT_GIB_MONTH = Decimal("0.05")
PUBLIC_IPV4_HOUR = Decimal("0.005")
NAT_GATEWAY_HOUR = Decimal("0.045")


@dataclass(frozen=True, slots=True)
class TypeFacts:
    """One instance type: what the price page and DescribeInstanceTypes say of it."""

    hourly_usd: Decimal
    kind: AcceleratorKind
    model: str
    count: int
    memory_mib: int
    local_disk_gb: int
    arch: str = "x86_64"
    family: str = ""

    @property
    def accelerator(self) -> Accelerator:
        """Its devices in neutral words."""
        return Accelerator(self.kind, self.model, self.count, self.memory_mib / 1024)

    @property
    def local_disk_gib(self) -> float:
        """What a stop destroys; the vendor counts in units of 10**9."""
        return round(self.local_disk_gb * 10**9 / 2**30, 1)


def _nvidia(price: str, model: str, count: int, memory: int, disk: int, family: str) -> TypeFacts:
    return TypeFacts(Decimal(price), AcceleratorKind.NVIDIA_GPU, model, count, memory, disk, family=family)


def _neuron(price: str, model: str, count: int, memory: int, disk: int) -> TypeFacts:
    return TypeFacts(Decimal(price), AcceleratorKind.NEURON, model, count, memory, disk)


TYPES = {
    "g4dn.xlarge": _nvidia("0.526", "T4", 1, 16384, 125, "Turing"),
    "g4dn.12xlarge": _nvidia("3.912", "T4", 4, 16384, 900, "Turing"),
    "g5.xlarge": _nvidia("1.006", "A10G", 1, 22888, 250, "Ampere"),
    "g5.2xlarge": _nvidia("1.212", "A10G", 1, 22888, 450, "Ampere"),
    "g5.12xlarge": _nvidia("5.672", "A10G", 4, 22888, 3800, "Ampere"),
    "g5.48xlarge": _nvidia("16.288", "A10G", 8, 22888, 7600, "Ampere"),
    "g6.xlarge": _nvidia("0.8048", "L4", 1, 22888, 250, "Ada"),
    "g6.12xlarge": _nvidia("4.6016", "L4", 4, 22888, 3760, "Ada"),
    "p4d.24xlarge": _nvidia("21.957642", "A100", 8, 40960, 8000, "Ampere"),
    "p5.48xlarge": _nvidia("55.04", "H100", 8, 81920, 30400, "Hopper"),
    "g5g.xlarge": TypeFacts(Decimal("0.42"), AcceleratorKind.NVIDIA_GPU, "T4g", 1, 16384, 0, "arm64", "Turing"),
    "g5g.16xlarge": TypeFacts(Decimal("2.744"), AcceleratorKind.NVIDIA_GPU, "T4g", 2, 16384, 0, "arm64", "Turing"),
    "trn1.2xlarge": _neuron("1.34375", "Trainium", 1, 32768, 474),
    "inf2.xlarge": _neuron("0.7582", "Inferentia2", 1, 32768, 0),
}


def hourly(instance_type: str, region: str) -> Money:
    """The on-demand list price of a type in a region."""
    factor = _REGION_FACTORS.get(region, Decimal(1))
    return Money((TYPES[instance_type].hourly_usd * factor).quantize(Decimal("0.000001")), "USD")


def regional(price: Decimal, region: str) -> Decimal:
    """Any other price, in a region."""
    return (price * _REGION_FACTORS.get(region, Decimal(1))).quantize(Decimal("0.000001"))
