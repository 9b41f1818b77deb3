"""Regions, and the types that can be had in them with their prices: round figures of the size of list prices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from types import MappingProxyType
from typing import Any


@dataclass(frozen=True, slots=True)
class InstanceType:
    """One type. `hourly` in yuan for the first 96 hours; `later` for hours 96 to 360 and from there on, where tiered.

    `gpus` below 1 is a slice of a card. `local_disk_gib` are disks that a stop without charges empties.
    """

    name: str
    cpus: int
    memory_gib: int
    hourly: Decimal
    gpus: float = 0
    model: str = ""
    gpu_memory_gib: float = 0
    local_disk_gib: int = 0
    later: tuple[Decimal, Decimal] | None = None
    sold_out: bool = False

    @property
    def family(self) -> str:
        """What stands before the dot."""
        return self.name.split(".", 1)[0]


def _types() -> Mapping[str, InstanceType]:
    def of(name: str, cpus: int, memory: int, hourly: str, *gpu: Any, **more: Any) -> InstanceType:
        return InstanceType(name, cpus, memory, Decimal(hourly), *gpu, **more)

    found = (
        of("GN7.2XLARGE32", 8, 32, "8.70", 1, "NVIDIA T4", 16),
        of("GN7.5XLARGE80", 20, 80, "11.50", 1, "NVIDIA T4", 16),
        of("GN7.10XLARGE160", 40, 160, "23.00", 2, "NVIDIA T4", 16),
        of("GN7.20XLARGE320", 80, 320, "46.00", 4, "NVIDIA T4", 16),
        of("GN7.LARGE20", 4, 20, "2.30", 0.25, "NVIDIA T4", 4),
        of("GN7.2XLARGE40", 10, 40, "4.60", 0.5, "NVIDIA T4", 8),
        of("GN10Xp.2XLARGE40", 10, 40, "22.60", 1, "NVIDIA V100", 32),
        of("GN10Xp.5XLARGE80", 20, 80, "45.20", 2, "NVIDIA V100", 32),
        of("GN10Xp.20XLARGE320", 80, 320, "180.80", 8, "NVIDIA V100", 32),
        of("GT4.4XLARGE96", 16, 96, "26.20", 1, "NVIDIA A100", 40),
        of("GT4.41XLARGE948", 164, 948, "209.60", 8, "NVIDIA A100", 40),
        of("PNV4.7XLARGE116", 28, 116, "15.40", 1, "NVIDIA A10", 24, later=(Decimal("13.10"), Decimal("11.60"))),
        of("PNV4.28XLARGE466", 112, 466, "61.60", 4, "NVIDIA A10", 24, later=(Decimal("52.40"), Decimal("46.40"))),
        of("PNV5b.8XLARGE96", 32, 96, "14.80", 1, "PNV5b", 48),  # the card is masked
        of("GN8.LARGE56", 6, 56, "10.20", 1, "NVIDIA P40", 24, sold_out=True),
        of("GI3X.8XLARGE64", 32, 64, "9.60", 1, "NVIDIA T4", 16, local_disk_gib=3_570),
        of("S5.MEDIUM4", 2, 4, "0.34", later=(Decimal("0.27"), Decimal("0.17"))),
        of("S5.LARGE8", 4, 8, "0.68", later=(Decimal("0.55"), Decimal("0.34"))),
        of("SA5.2XLARGE16", 8, 16, "1.12"),
        of("IT5.8XLARGE128", 32, 128, "9.10", local_disk_gib=7_140),
    )
    return MappingProxyType({each.name: each for each in found})


TYPES = _types()

REGIONS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "ap-guangzhou": ("华南地区(广州)", "South China (Guangzhou)"),
        "ap-shanghai": ("华东地区(上海)", "East China (Shanghai)"),
        "ap-nanjing": ("华东地区(南京)", "East China (Nanjing)"),
        "ap-beijing": ("华北地区(北京)", "North China (Beijing)"),
        "ap-chengdu": ("西南地区(成都)", "Southwest China (Chengdu)"),
        "ap-chongqing": ("西南地区(重庆)", "Southwest China (Chongqing)"),
        "ap-hongkong": ("港澳台地区(中国香港)", "Hong Kong (China)"),
        "ap-singapore": ("亚太东南(新加坡)", "Southeast Asia (Singapore)"),
        "ap-jakarta": ("亚太东南(雅加达)", "Southeast Asia (Jakarta)"),
        "ap-bangkok": ("亚太东南(曼谷)", "Southeast Asia (Bangkok)"),
        "ap-seoul": ("亚太东北(首尔)", "Northeast Asia (Seoul)"),
        "ap-tokyo": ("亚太东北(东京)", "Northeast Asia (Tokyo)"),
        "na-siliconvalley": ("美国西部(硅谷)", "Western US (Silicon Valley)"),
        "na-ashburn": ("美国东部(弗吉尼亚)", "Eastern US (Virginia)"),
        "eu-frankfurt": ("欧洲地区(法兰克福)", "Europe (Frankfurt)"),
        "sa-saopaulo": ("南美地区(圣保罗)", "South America (São Paulo)"),
    }
)
"""The public regions with their Chinese and English names."""

CLOSED_REGIONS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {"ap-mumbai": ("亚太南部(孟买)", "South Asia (Mumbai)")}
)
"""Listed, and not to be had."""

ZONES = (3, 6, 7)
"""The numbers of the zones of every region."""
