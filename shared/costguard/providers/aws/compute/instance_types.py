"""What an instance type carries, by DescribeInstanceTypes: accelerators, how many, and disks that a stop destroys."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from costguard.domain.refs import Shard
from costguard.domain.resources import Accelerator, AcceleratorKind
from costguard.providers.kit.compute.source import TypeFacts, TypeFactsCache
from costguard.providers.kit.core.calls import Lists, listed
from costguard.providers.kit.core.fields import Fields, amount, as_documented, flag, named, part, parts, text, whole

_API = "ec2:DescribeInstanceTypes"
_BYTES_PER_GB = 1e9
_BYTES_PER_GIB = 2.0**30
_MIB_PER_GIB = 1024

# Families without any accelerator, DescribeInstanceTypes as of 2026-11. A family not listed is asked
# about, so a new one costs a request, never an oversight.
_PLAIN = """
    a1 c1 c3 c4 c5 c5a c5ad c5d c5n c6a c6g c6gd c6gn c6i c6id c6in c7a c7g c7gd c7gn c7i c7i-flex c8a c8g c8gb
    c8gd c8gn c8i c8i-flex c8ib c8id c8in c8ine c9g c9gd d2 d3 d3en h1 hpc6a hpc6id hpc7a hpc7g hpc8a i2 i3 i3en
    i4g i4i i7i i7ie i8g i8ge im4gn is4gen m1 m2 m3 m4 m5 m5a m5ad m5d m5dn m5n m5zn m6a m6g m6gd m6i m6id m6idn
    m6in m7a m7g m7gd m7i m7i-flex m8a m8azn m8g m8gb m8gd m8gn m8i m8i-flex m8ib m8id m8idb m8idn m8in m8ine m9g
    m9gd mac-m3ultra mac-m4 mac-m4max mac-m4pro mac1 mac2 mac2-m1ultra mac2-m2 mac2-m2pro r3 r4 r5 r5a r5ad r5b
    r5d r5dn r5n r6a r6g r6gd r6i r6id r6idn r6in r7a r7g r7gd r7i r7iz r8a r8g r8gb r8gd r8gn r8i r8i-flex r8ib
    r8id r8idb r8idn r8in r9g r9gd t1 t2 t3 t3a t4g t8i u-3tb1 u-6tb1 u7i-12tb u7i-6tb u7i-8tb u7in-16tb u7in-24tb
    u7in-32tb x1 x1e x2gd x2idn x2iedn x2iezn x8aedz x8g x8i z1d
    """
_PLAIN_FAMILIES = frozenset(_PLAIN.split())
_ACCELERATED = re.compile(r"(?:g|gr|p|inf|trn|dl|vt|f|cg)\d")
"""Families that AWS names for their accelerator: shown even when their facts cannot be read."""

_GPU_MAKERS = {
    "NVIDIA": AcceleratorKind.NVIDIA_GPU,
    "AMD": AcceleratorKind.AMD_GPU,
    "HABANA": AcceleratorKind.GAUDI,
    "INTEL": AcceleratorKind.GAUDI,
    "QUALCOMM": AcceleratorKind.QUALCOMM,
}
_INFERENCE_MAKERS = {"AWS": AcceleratorKind.NEURON, "QUALCOMM": AcceleratorKind.QUALCOMM}


def may_carry_accelerator(instance_type: str) -> bool:
    """False only for families known to have none."""
    return instance_type.split(".", 1)[0] not in _PLAIN_FAMILIES


def names_accelerator(instance_type: str) -> bool:
    """Whether the name alone says so; a type of SageMaker (`ml.g5.xlarge`) goes by the EC2 type in it."""
    return _ACCELERATED.match(instance_type.removeprefix("ml.")) is not None


def unread_facts(instance_type: str) -> TypeFacts:
    """What to assume of a type AWS does not describe."""
    return TypeFacts.unread(accelerated=names_accelerator(instance_type))


def facts_of(described: Mapping[str, Any]) -> TypeFacts:
    """Read one element of DescribeInstanceTypes."""
    return TypeFacts(accelerator=_accelerator(described), local_disk_gib=_local_disk_gib(described))


def _local_disk_gib(described: Mapping[str, Any]) -> float | None:
    if "InstanceStorageInfo" not in described:
        none = "InstanceStorageSupported" in described and not flag(described, "InstanceStorageSupported")
        return 0.0 if none else None
    storage = part(described, "InstanceStorageInfo")
    total = whole(storage, "TotalSizeInGB") if "TotalSizeInGB" in storage else 0
    return round(total * _BYTES_PER_GB / _BYTES_PER_GIB, 1) if total else None  # disks of no size are of unknown size


def _accelerator(described: Mapping[str, Any]) -> Accelerator | None:
    for kind, devices in _device_lists(described):
        count = sum(_cards(device) for device in devices)
        first = devices[0]
        size = amount(part(first, "MemoryInfo"), "SizeInMiB")
        memory = None if size is None else size / _MIB_PER_GIB
        return Accelerator(kind=kind, model=text(first, "Name"), count=count, memory_gib=memory)
    return None


def _device_lists(described: Mapping[str, Any]) -> Iterator[tuple[AcceleratorKind, list[Fields]]]:
    # Inferentia stands under both inference and Neuron, the second with its core count: Neuron goes first
    other = AcceleratorKind.OTHER
    gpus = parts(part(described, "GpuInfo"), "Gpus")
    if gpus:
        yield _GPU_MAKERS.get(_maker(gpus), other), gpus
    neuron = parts(part(described, "NeuronInfo"), "NeuronDevices")
    if neuron:
        yield AcceleratorKind.NEURON, neuron
    inference = parts(part(described, "InferenceAcceleratorInfo"), "Accelerators")
    if inference:
        yield _INFERENCE_MAKERS.get(_maker(inference), other), inference
    fpgas = parts(part(described, "FpgaInfo"), "Fpgas")
    if fpgas:
        yield AcceleratorKind.FPGA, fpgas
    media = parts(part(described, "MediaAcceleratorInfo"), "Accelerators")
    if media:
        yield AcceleratorKind.MEDIA, media


def _maker(devices: list[Fields]) -> str:
    return text(devices[0], "Manufacturer").upper()


def _cards(device: Mapping[str, Any]) -> float:
    """Whole cards, or for slices (g6f: `Count` 0, one logical GPU of an eighth) the fraction of a card."""
    return amount(device, "Count") or (amount(device, "LogicalGpuCount") or 0.0) * (
        amount(device, "GpuPartitionSize") or 1.0
    )


class AwsTypes(TypeFactsCache[TypeFacts]):
    """Asks by filter: naming a type that the region does not sell fails the whole call."""

    most = 100  # DescribeInstanceTypes takes at most 100 types, or 200 values of a filter

    def facts(self, instance_type: str) -> TypeFacts:
        """What is known or must be assumed."""
        return self.known(instance_type) or unread_facts(instance_type)

    def _read(self, session: Lists, shard: Shard, names: Sequence[str]) -> Iterator[tuple[str, TypeFacts]]:
        by_name = [{"Name": "instance-type", "Values": names}]
        with as_documented(_API):
            for item in listed(session, shard, _API, "InstanceTypes", Filters=by_name):
                yield named(item, "InstanceType"), facts_of(item)


CATALOGUE = AwsTypes()
"""The process's own."""
