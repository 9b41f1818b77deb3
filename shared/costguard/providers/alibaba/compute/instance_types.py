"""What an instance type carries, by DescribeInstanceTypes: accelerators, how many, and disks that a stop destroys.

`GPUAmount` counts FPGAs, NPUs and video cards too, and the names of newer cards are masked ("GPU H"), so the kind is
told from category, card and family together.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from costguard.domain.refs import Shard
from costguard.domain.resources import Accelerator, AcceleratorKind
from costguard.providers.kit.compute.source import TypeFacts, TypeFactsCache
from costguard.providers.kit.core.calls import Lists, listed
from costguard.providers.kit.core.fields import Fields, amount, as_documented, named, text

_API = "ecs:DescribeInstanceTypes"

# families named for their accelerator; a family that is not here counts by what the cloud says of it
_GPU = re.compile(r"ecs\.(?:ebm|scc|ebmsc)?(?:gn|vgn|sgn|cgn|hfgn)\d", re.ASCII)
_AMD = re.compile(r"ecs\.(?:ebm)?ga\d", re.ASCII)
_PPU = re.compile(r"ecs\.(?:ebm)?gp\d", re.ASCII)
_FPGA = re.compile(r"ecs\.(?:ebm)?f\d", re.ASCII)
_NPU = re.compile(r"ecs\.(?:ebm)?an\d", re.ASCII)
_MEDIA = re.compile(r"ecs\.(?:ebm)?video", re.ASCII)
_FAMILIES = (
    (_GPU, AcceleratorKind.NVIDIA_GPU),
    (_AMD, AcceleratorKind.AMD_GPU),
    (_PPU, AcceleratorKind.OTHER),
    (_FPGA, AcceleratorKind.FPGA),
    (_NPU, AcceleratorKind.OTHER),
    (_MEDIA, AcceleratorKind.MEDIA),
)
_CARDS = (
    (("NVIDIA",), AcceleratorKind.NVIDIA_GPU),
    (("AMD",), AcceleratorKind.AMD_GPU),
    (("FPGA", "ARRIA", "STRATIX", "AGF", "XILINX", "VU9P", "ALVEO"), AcceleratorKind.FPGA),
    (("NPU", "PPU"), AcceleratorKind.OTHER),
    (("NETINT", "T408", "T432"), AcceleratorKind.MEDIA),
)
_SLICED = re.compile(r"ecs\.(?:vgn|sgn)(\d{1,2})", re.ASCII)  # every card of these is cut by vGPU
_SLICE = re.compile(r"\*?\s*(\d{1,3})\s*/\s*(\d{1,3})\s*$", re.ASCII)  # NVIDIA T4*1/4
_WHOLE_CARD_GIB = {"T4": 16.0, "A10": 24.0, "P4": 8.0, "V100": 32.0, "L20": 48.0}
"""Memory of the cards that are sold in slices: a slice's share, where its name does not say it."""
_WHOLE_CARD_GIB_OF = {"5": 8.0, "6": 16.0, "7": 24.0, "8": 48.0}
"""The same where the card has no name we know: P4, T4, A10 and a Lovelace card by the family's generation (GPU
documents, "GPU-accelerated compute-optimized and vGPU-accelerated instance families": of `sgn8ia` only the memory is
told, 2 to 48 GB, "all GPUs in the table are vGPU slices")."""
_SLICE_GIB = re.compile(r"-m(\d{1,3})s?[.-]", re.ASCII)  # ecs.sgn8ia-m2.xlarge, ecs.vgn6i-m4-vws.xlarge


def may_carry_accelerator(described: Fields) -> bool:
    """Whether an instance says so itself, by its count, its card, or the name of its family."""
    return bool(amount(described, "GPUAmount")) or bool(text(described, "GPUSpec")) or _by_family(described) is not None


def named_for_accelerator(instance_type: str) -> bool:
    """Whether the family's name says that it carries one: all that a bill tells of a type."""
    return any(family.match(instance_type) for family, _ in _FAMILIES)


def unread_facts(instance_type: str) -> TypeFacts:
    """What to assume of a type that is not described."""
    return TypeFacts.unread(accelerated=named_for_accelerator(instance_type))


def facts_of(described: Fields) -> TypeFacts:
    """Read one element of DescribeInstanceTypes."""
    return TypeFacts(accelerator=_accelerator(described), local_disk_gib=_local_disk_gib(described))


def _local_disk_gib(described: Fields) -> float | None:
    disks = amount(described, "LocalStorageAmount")
    if disks is None:  # left out where there are none, as the category is
        return None if text(described, "LocalStorageCategory") else 0.0
    if disks == 0:
        return 0.0
    each = amount(described, "LocalStorageCapacity")
    return disks * each if each else None  # disks of no size are of unknown size


def _accelerator(described: Fields) -> Accelerator | None:
    devices, card = amount(described, "GPUAmount") or 0.0, text(described, "GPUSpec")
    if not devices and not card and not _SLICED.match(_type_name(described)):
        return None
    memory = amount(described, "GPUMemorySize") or None
    model = _SLICE.sub("", card).strip().removeprefix("NVIDIA ").removeprefix("AMD ")
    count = _share(described, card, model, memory) * (devices or 1.0)
    return Accelerator(kind=_kind(described, card), model=model, count=count, memory_gib=memory)


def _share(described: Fields, card: str, model: str, memory: float | None) -> float:
    """How much of a card one device is: 1.0, or the fraction that its name or its memory tells."""
    told = _SLICE.search(card)
    if told is not None and 0 < int(told[1]) <= int(told[2]):
        return int(told[1]) / int(told[2])
    name = _type_name(described)
    family, of_name = _SLICED.match(name), _SLICE_GIB.search(name)
    if family is None:
        return 1.0
    full = _WHOLE_CARD_GIB.get(model) or _WHOLE_CARD_GIB_OF.get(family[1])
    gib = memory or (float(of_name[1]) if of_name else None)
    return min(1.0, gib / full) if gib and full else 1.0


def _kind(described: Fields, card: str) -> AcceleratorKind:
    shown = card.upper()
    for words, kind in _CARDS:
        if any(word in shown for word in words):
            return kind
    by_family = _by_family(described)
    if by_family is not None:
        return by_family
    category = text(described, "InstanceCategory").upper()
    if "FPGA" in category:
        return AcceleratorKind.FPGA
    gpu = ("GPU" in category or "VISUAL" in category) and "NPU" not in category
    return AcceleratorKind.NVIDIA_GPU if gpu else AcceleratorKind.OTHER


def _by_family(described: Fields) -> AcceleratorKind | None:
    name = _type_name(described)
    return next((kind for family, kind in _FAMILIES if family.match(name)), None)


def _type_name(described: Fields) -> str:
    return text(described, "InstanceTypeId") or text(described, "InstanceType")


class AlibabaTypes(TypeFactsCache[TypeFacts]):
    """Asks for named types. API: ECS DescribeInstanceTypes, 10 a request."""

    most = 10

    def facts(self, instance_type: str) -> TypeFacts:
        """What is known or must be assumed."""
        return self.known(instance_type) or unread_facts(instance_type)

    def _read(self, session: Lists, shard: Shard, names: Sequence[str]) -> Iterator[tuple[str, TypeFacts]]:
        with as_documented(_API):
            for item in listed(session, shard, _API, "InstanceTypes.InstanceType", InstanceTypes=names):
                yield named(item, "InstanceTypeId"), facts_of(item)


CATALOGUE = AlibabaTypes()
"""The process's own."""
