"""What an instance type carries: accelerators, how many, and disks that a stop without charges destroys.

Asked of DescribeZoneInstanceConfigInfos by up to 100 types, and of DescribeInstanceTypeConfigs where that leaves
out a type because it is no longer sold.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from costguard.domain.refs import Shard
from costguard.domain.resources import Accelerator, AcceleratorKind
from costguard.providers.kit.compute.source import TypeFactsCache
from costguard.providers.kit.core.calls import Lists, listed
from costguard.providers.kit.core.fields import Fields, amount, as_documented, named, part, parts, text, whole
from costguard.providers.tencent.core.products import told

ZONES = "cvm:DescribeZoneInstanceConfigInfos"
TYPES = "cvm:DescribeInstanceTypeConfigs"

# Families that carry no accelerator (CVM guide, "Instance Types", as of 2026-11), by their letters: standard, memory,
# compute, high I/O, big data. A family not listed is asked about: a new one costs a request, never an oversight.
_PLAIN = re.compile(r"(?:S|SA|SN|SR|SH|SK|M|MA|C|CN|I|IT|D|TS|TM|BS|BC)\d", re.ASCII)
_NVIDIA = re.compile(r"(?:GN|GNV|GT|PNV|HCCPNV|HCCG|BMG)", re.ASCII)
"""Families that are named for NVIDIA's cards; BMG and HCC are bare metal."""
_ACCELERATED = re.compile(rf"{_NVIDIA.pattern}|(?:G[A-Z]*|BMF|FX)\d", re.ASCII)
_NVIDIA_CARDS = re.compile(r"NVIDIA|TESLA|GEFORCE|QUADRO|RTX|\b[ABHLPTV]\d{1,3}\b", re.ASCII)
_OTHER_MAKERS = re.compile(
    "INTEL|ASCEND|昇腾|HYGON|海光|DCU|METAX|沐曦|KUNLUN|昆仑|ZIXIAO|紫霄|ENFLAME|燧原|ILUVATAR|天数|CAMBRICON|寒武纪|MLU|NPU"
)
"""Makers whose cards Tencent's systems run (OpenCloudOS 9 release notes, "AI software stack"). Their models look like
NVIDIA's: `P800`, `V1`. Of NVIDIA's the same table names some by their family alone: PNV6, HCCPNV6, PNV5b."""


@dataclass(frozen=True, slots=True)
class CardFacts:
    """`cards` 0: none. `has_local_disks` None: unknown. `fpgas` counts FPGA boards."""

    cards: float
    model: str
    card_memory_gib: float | None
    fpgas: float
    has_local_disks: bool | None


def family_of(instance_type: str) -> str:
    """What stands before the point: `GN10Xp.2XLARGE40` is of the family GN10Xp."""
    return instance_type.split(".", 1)[0]


def may_carry_accelerator(instance_type: str) -> bool:
    """False only for families known to have none."""
    return not _PLAIN.match(family_of(instance_type))


def is_named_for_accelerator(instance_type: str) -> bool:
    """Whether a type's family is named for its cards: all that a bill tells of a machine."""
    return bool(_ACCELERATED.match(family_of(instance_type).upper()))


def accelerator_of(described: Fields, facts: CardFacts | None) -> Accelerator | None:
    """What an element of DescribeInstances carries: by its own word, then its type's, then its family's name.

    `GPUInfo` is there on machines with cards only, and was not on real ones before 2025. A type that nobody
    describes but whose family is named for its cards has an accelerator of unknown count.
    """
    instance_type = text(described, "InstanceType")
    own = part(told(described, "GPUInfo"), "GPUInfo")
    cards = amount(told(own, "GPUCount"), "GPUCount") or 0.0
    model = text(told(own, "GPUType"), "GPUType")
    memory = None if facts is None else facts.card_memory_gib
    if facts is not None:
        cards = cards if cards > 0 else facts.cards
        model = model if _maker(model) or not facts.model else facts.model
    if cards > 0:
        return Accelerator(_kind(instance_type, model), _model(model), cards, memory)
    if facts is not None:
        return Accelerator(AcceleratorKind.FPGA, "", facts.fpgas) if facts.fpgas > 0 else None
    if own or is_named_for_accelerator(instance_type):
        return Accelerator(AcceleratorKind.OTHER, _model(model), 0)
    return None


def _kind(instance_type: str, model: str) -> AcceleratorKind:
    """What the card's name says; where that is masked or missing, what the family is named for."""
    family = AcceleratorKind.NVIDIA_GPU if _NVIDIA.match(family_of(instance_type).upper()) else AcceleratorKind.OTHER
    return _maker(model) or family


def _maker(model: str) -> AcceleratorKind | None:
    """Whose card it is by its name; None where that does not say, as `G48` and `PNV6` do not."""
    shown = model.upper()
    if "AMD" in shown:
        return AcceleratorKind.AMD_GPU
    if _OTHER_MAKERS.search(shown):
        return AcceleratorKind.OTHER
    return AcceleratorKind.NVIDIA_GPU if _NVIDIA_CARDS.search(shown) else None


def _model(written: str) -> str:
    """`NVIDIA T4` and `Tesla T4` as `T4`, which is what other clouds say."""
    return re.sub(r"^(?:NVIDIA|AMD|Tesla|TESLA)\s+", "", re.sub(r"^(?:NVIDIA|AMD)\s+", "", written))


def local_disk_gib(described: Fields, facts: CardFacts | None) -> float | None:
    """Storage that is gone after a stop without charges: the disks of kind LOCAL_* that the instance lists.

    None where it lists none and its type has some, or nobody describes the type: treated as present.
    """
    local = [disk for disk in disks_of(described) if is_local(disk)]
    if local:
        size = sum(whole(disk, "DiskSize") for disk in local)
        return float(size) or None
    return 0.0 if facts is not None and facts.has_local_disks is False else None


def disks_of(described: Fields) -> list[Fields]:
    """The system disk and the data disks that DescribeInstances lists."""
    present = told(described, "SystemDisk", "DataDisks")
    system = part(present, "SystemDisk")
    return [*([system] if system else []), *parts(present, "DataDisks")]


def is_local(disk: Fields) -> bool:
    """Whether a disk is the host's own: not in the CBS, and not to be copied."""
    return text(disk, "DiskType").startswith("LOCAL_")


def zone_facts(entries: Sequence[Fields]) -> CardFacts:
    """What DescribeZoneInstanceConfigInfos says of one type, by zone and charge type: the most of all."""
    known = [told(entry, "GpuCount", "Gpu", "Fpga", "StorageBlockAmount", "LocalDiskTypeList") for entry in entries]
    return CardFacts(
        cards=max(_most(entry, "GpuCount", "Gpu") for entry in known),
        model="",
        card_memory_gib=None,
        fpgas=max(_most(entry, "Fpga") for entry in known),
        has_local_disks=any(_has_local_disks(entry) for entry in known),
    )


def type_facts(entries: Sequence[Fields]) -> CardFacts:
    """What DescribeInstanceTypeConfigs says of one type; it knows no disks. Raises as `zone_facts`."""
    known = [told(entry, "GpuCount", "GPU", "FPGA", "GpuType", "GpuMemory") for entry in entries]
    return CardFacts(
        cards=max(_most(entry, "GpuCount", "GPU") for entry in known),
        model=max(text(entry, "GpuType") for entry in known),
        card_memory_gib=max((amount(entry, "GpuMemory") or 0.0 for entry in known), default=0.0) or None,
        fpgas=max(_most(entry, "FPGA") for entry in known),
        has_local_disks=None,
    )


def _most(entry: Fields, *keys: str) -> float:
    """The first count that is there: `GpuCount` may be a part of a card where `Gpu` says 1, or 0."""
    found = [amount(entry, key) for key in keys]
    return next((count for count in found if count), 0.0)


def _has_local_disks(entry: Fields) -> bool:
    optional = all(text(disk, "Required") == "OPTIONAL" for disk in parts(entry, "LocalDiskTypeList"))
    return not optional or bool(amount(entry, "StorageBlockAmount"))


class TencentTypes(TypeFactsCache[CardFacts]):
    """Asks by filter, and once more for each type that is no longer sold."""

    most = 100  # values of one filter

    def learn(self, session: Lists, shard: Shard, instance_types: Iterable[str]) -> frozenset[str]:
        """As of every cloud; a machine without a type says itself what it carries."""
        return super().learn(session, shard, set(instance_types) - {""})

    def _read(self, session: Lists, shard: Shard, names: Sequence[str]) -> Iterator[tuple[str, CardFacts]]:
        sold = _facts(session, shard, ZONES, "InstanceTypeQuotaSet", names, zone_facts)
        yield from sold.items()
        for name in names:
            if name not in sold:
                yield from _facts(session, shard, TYPES, "InstanceTypeConfigSet", [name], type_facts).items()


def _facts(
    session: Lists,
    shard: Shard,
    operation: str,
    key: str,
    names: Sequence[str],
    read: Callable[[Sequence[Fields]], CardFacts],
) -> dict[str, CardFacts]:
    by_type = [{"Name": "instance-type", "Values": list(names)}]
    entries: dict[str, list[Fields]] = {}
    with as_documented(operation):
        for entry in listed(session, shard, operation, key, Filters=by_type):
            entries.setdefault(named(entry, "InstanceType"), []).append(entry)
        return {name: read(found) for name, found in entries.items() if name in names}


CATALOGUE = TencentTypes()
"""The process's own."""
