"""A short way to write fleets: made-up accounts, and machines of known types."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from fractions import Fraction
from typing import Any

from cloudstand.alibaba.compute import catalogue as alibaba
from cloudstand.aws.compute.catalogue import TYPES, hourly
from cloudstand.tencent.compute import catalogue as tencent
from cloudstand.world.fleet import Disk, MachineSpec, made_up_id
from cloudstand.world.kinds import Accelerator, AcceleratorKind
from cloudstand.world.money import Money
from cloudstand.world.prices import currency_of
from cloudstand.world.workload import Workload

RESEARCH, PRODUCT = "111122223333", "444455556666"
"""Two made-up accounts; the first leads the organisation."""
EAST, WEST = "us-east-1", "eu-west-1"
ALIBABA_ACCOUNT, TENCENT_ACCOUNT = "1234567890123456", "100012345678"
HANGZHOU, GUANGZHOU = "cn-hangzhou", "ap-guangzhou"
OLD_DISKS = "old-disks"
"""On every cloud the alias of the demo's key that will be deleted, and that a disk of a machine there still names."""


def aws_machine(
    name: str,
    instance_type: str,
    workload: Workload,
    launched_at: datetime,
    *,
    account: str = RESEARCH,
    region: str = EAST,
    tags: Mapping[str, str] | None = None,
    **more: Any,
) -> MachineSpec:
    """An EC2 instance of a known type; `more` are fields of `MachineSpec`."""
    facts = TYPES[instance_type]
    more = {"zone": f"{region}a", "local_disk_gib": facts.local_disk_gib, **more}
    return _machine(
        "aws",
        account,
        region,
        name,
        instance_type,
        workload,
        launched_at,
        accelerator=facts.accelerator,
        hourly=hourly(instance_type, region),
        tags={"Name": name, **(tags or {})},  # on AWS a name is a tag
        **more,
    )


def alibaba_machine(
    name: str,
    workload: Workload,
    launched_at: datetime,
    instance_type: str = "ecs.gn7i-c8g1.2xlarge",
    *,
    account: str = ALIBABA_ACCOUNT,
    region: str = HANGZHOU,
    cloud: str = "alibaba",
    **more: Any,
) -> MachineSpec:
    """An ECS instance of a known type; `more` are fields of `MachineSpec`."""
    facts = alibaba.TYPES[instance_type]
    model, _, part = facts.gpu_spec.removeprefix("NVIDIA ").partition("*")  # NVIDIA T4*1/4 is a slice of a card
    cards = facts.gpus * float(Fraction(part or 1))
    defaults = {
        "zone": f"{region}-i",
        "disks": (Disk(100, "/dev/xvda", "cloud_essd"),),
        "accelerator": Accelerator(AcceleratorKind.NVIDIA_GPU, model, cards, facts.gpu_gib),
        "local_disk_gib": float(facts.local_disks * facts.local_gib),
        "hourly": Money(facts.hourly_cny, "CNY"),
    }
    return _machine(cloud, account, region, name, instance_type, workload, launched_at, **{**defaults, **more})


def tencent_machine(
    name: str,
    workload: Workload,
    launched_at: datetime,
    instance_type: str = "GN7.2XLARGE32",
    *,
    account: str = TENCENT_ACCOUNT,
    region: str = GUANGZHOU,
    cloud: str = "tencent",
    **more: Any,
) -> MachineSpec:
    """A CVM instance of a known type, without a public address unless `more`, fields of `MachineSpec`, give one."""
    facts = tencent.TYPES[instance_type]
    defaults = {
        "zone": f"{region}-6",
        "disks": (Disk(100, "vda", "CLOUD_PREMIUM"),),
        "public_ip": None,
        "accelerator": Accelerator(
            AcceleratorKind.NVIDIA_GPU, facts.model.removeprefix("NVIDIA "), facts.gpus, facts.gpu_memory_gib
        ),
        "local_disk_gib": float(facts.local_disk_gib),
        "hourly": Money(facts.hourly, currency_of(cloud)),
    }
    return _machine(cloud, account, region, name, instance_type, workload, launched_at, **{**defaults, **more})


def _machine(
    cloud: str,
    account: str,
    region: str,
    name: str,
    instance_type: str,
    workload: Workload,
    launched_at: datetime,
    **more: Any,
) -> MachineSpec:
    return MachineSpec(
        cloud=cloud,
        account=account,
        region=region,
        native_id=made_up_id(cloud, "instance", account, region, name),
        instance_type=instance_type,
        launched_at=launched_at,
        workload=workload,
        name=name,
        **more,
    )
