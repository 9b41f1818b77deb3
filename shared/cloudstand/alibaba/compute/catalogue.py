"""Instance types as DescribeInstanceTypes tells them, with list prices in CNY an hour.

Names, cores, memory and devices are the vendor's; prices are round figures of the size of list prices, the same as
those of `cloudstand/fleets.py`. A GPUAmount above zero does not mean GPUs: FPGAs, NPUs and video cards have one too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from math import ceil

from cloudstand.world.fleet import MachineSpec
from cloudstand.world.kinds import AcceleratorKind

GPU, VISUAL = "Compute-optimized with GPU", "Visual Compute-optimized"
FPGA, NPU = "Compute-optimized with FPGA", "Compute-optimized with NPU"
BARE_METAL, CLUSTER = "ECS Bare Metal", "Super Computing Cluster"
GENERAL, COMPUTE, BIG_DATA, LOCAL_SSD = "General-purpose", "Compute-optimized", "Big data", "Local SSDs"
CNY_OF_A_DOLLAR = Decimal("7.2")  # round: the international site's list prices are near this
SPOT_SHARE = Decimal("0.4")  # of the list price; the real one moves by the hour
DISK_GIB_HOUR = {
    "cloud_efficiency": Decimal("0.0005"),
    "cloud_ssd": Decimal("0.0014"),
    "cloud_essd": Decimal("0.0021"),  # PL1: 1.5 CNY a GiB and month
    "cloud_essd_entry": Decimal("0.0008"),
    "cloud_auto": Decimal("0.0014"),
    "cloud": Decimal("0.0004"),
}
"""CNY an hour for a GiB of each kind of disk."""

_FAMILY = re.compile(r"(ecs\.[a-z0-9]+(?:-vws)?)")


@dataclass(frozen=True, slots=True)
class TypeFacts:
    """One instance type. `gpu_gib` is the memory of one device, `local_gib` the size of one local disk."""

    name: str
    cores: int
    memory_gib: float
    category: str
    hourly_cny: Decimal
    gpus: int = 0
    gpu_spec: str = ""
    gpu_gib: float = 0.0
    local_disks: int = 0
    local_gib: int = 0
    local_kind: str = ""

    @property
    def family(self) -> str:
        """`ecs.gn7i-c8g1.2xlarge` belongs to `ecs.gn7i`."""
        return family_of(self.name)


def family_of(instance_type: str) -> str:
    """The family in the vendor's words."""
    match = _FAMILY.match(instance_type)
    return match[1] if match else instance_type.rpartition(".")[0]


def _type(name: str, cores: int, memory: float, category: str, price: str, *gpu: object, **more: object) -> TypeFacts:
    gpus, spec, gib = gpu or (0, "", 0)
    return TypeFacts(name, cores, memory, category, Decimal(price), gpus, spec, gib, **more)  # type: ignore[arg-type]


_SSD = {"local_kind": "local_ssd_pro"}
_ALL = (
    _type("ecs.gn6i-c4g1.xlarge", 4, 15, GPU, "9.70", 1, "NVIDIA T4", 16),
    _type("ecs.gn6i-c24g1.24xlarge", 96, 372, GPU, "58.20", 4, "NVIDIA T4", 16),
    _type("ecs.gn7i-c8g1.2xlarge", 8, 30, GPU, "12.70", 1, "NVIDIA A10", 24),
    _type("ecs.gn7i-c32g1.32xlarge", 128, 752, GPU, "76.20", 4, "NVIDIA A10", 24),
    _type("ecs.gn7e-c16g1.4xlarge", 16, 125, GPU, "34.70", 1, "GPU H", 80),  # the name of the card is masked
    _type("ecs.gn7e-c16g1.32xlarge", 128, 1000, GPU, "277.60", 8, "GPU H", 80),
    _type("ecs.gn6v-c8g1.2xlarge", 8, 32, GPU, "26.50", 1, "NVIDIA V100", 16),
    _type("ecs.gn6e-c12g1.24xlarge", 96, 736, GPU, "168.00", 8, "NVIDIA V100", 32),
    _type("ecs.gn5-c4g1.xlarge", 4, 30, GPU, "12.30", 1, "NVIDIA P100", 16, local_disks=1, local_gib=440, **_SSD),
    _type("ecs.ebmgn7e.32xlarge", 128, 1024, BARE_METAL, "288.00", 8, "GPU H", 80),
    _type("ecs.sccgn7ex.32xlarge", 128, 1024, CLUSTER, "310.00", 8, "GPU H", 80),
    _type("ecs.vgn6i-m4.xlarge", 4, 23, VISUAL, "3.20", 1, "NVIDIA T4*1/4", 4),
    _type("ecs.sgn7i-vws-m2.xlarge", 4, 15.5, VISUAL, "2.40", 1, "NVIDIA A10*1/12", 2),
    _type("ecs.sgn8ia-m2.xlarge", 4, 16, VISUAL, "2.60", 1, "GPU L", 2),  # masked, and without its share of a card
    _type("ecs.ga1.xlarge", 4, 10, VISUAL, "5.00", 1, "AMD S7150*1/4", 2, local_disks=1, local_gib=87, **_SSD),
    _type("ecs.f3-c16f1.4xlarge", 16, 64, FPGA, "24.00", 1, "Xilinx VU9p", 0),
    _type("ecs.f1-c8f1.2xlarge", 8, 60, FPGA, "13.00", 1, "INTEL ARRIA 10", 0),
    _type("ecs.video-trans.26xlarge", 104, 192, COMPUTE, "40.00", 1, "NETINT T408", 0),
    _type("ecs.ebman1.26xlarge", 104, 384, NPU, "66.00", 4, "AliNPU", 0),
    _type("ecs.gp7.16xlarge", 64, 500, GPU, "90.00", 4, "PPU 810", 96),
    _type("ecs.g7.xlarge", 4, 16, GENERAL, "1.00"),
    _type("ecs.c7.large", 2, 4, COMPUTE, "0.39"),
    _type("ecs.g6.2xlarge", 8, 32, GENERAL, "2.00"),
    _type("ecs.i3.xlarge", 4, 32, LOCAL_SSD, "2.30", local_disks=1, local_gib=894, **_SSD),
    _type("ecs.d2s.5xlarge", 20, 88, BIG_DATA, "9.10", local_disks=8, local_gib=7300, local_kind="local_hdd_pro"),
)
TYPES = {facts.name: facts for facts in _ALL}
"""Every type that DescribeInstanceTypes tells of besides those of the fleet."""

_KIND_WORDS = {
    AcceleratorKind.NVIDIA_GPU: "NVIDIA ",
    AcceleratorKind.AMD_GPU: "AMD ",
}
_CATEGORIES = {
    AcceleratorKind.NVIDIA_GPU: GPU,
    AcceleratorKind.AMD_GPU: GPU,
    AcceleratorKind.FPGA: FPGA,
    AcceleratorKind.NEURON: NPU,
    AcceleratorKind.GAUDI: NPU,
    AcceleratorKind.QUALCOMM: NPU,
}


def facts_of(spec: MachineSpec) -> TypeFacts:
    """The type of a machine: the catalogue's, or what follows from the machine itself."""
    known = TYPES.get(spec.instance_type)
    if known is not None:
        return known
    card = spec.accelerator
    part = "" if card.count >= 1 or not card.count else f"*1/{round(1 / card.count)}"
    local = spec.local_disk_gib or 0.0
    return TypeFacts(
        name=spec.instance_type,
        cores=8,
        memory_gib=32,
        category=VISUAL if part else _CATEGORIES.get(card.kind, GENERAL),
        hourly_cny=spec.hourly.amount if spec.hourly and spec.hourly.currency == "CNY" else Decimal(0),
        gpus=ceil(card.count),
        gpu_spec=f"{_KIND_WORDS.get(card.kind, '')}{card.model}{part}",
        gpu_gib=card.memory_gib or 0.0,
        local_disks=1 if local > 0 else 0,
        local_gib=int(local),
        local_kind="local_ssd_pro" if local > 0 else "",
    )
