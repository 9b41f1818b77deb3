"""Fleets to begin with: the demo's, and a short way to write others."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from fractions import Fraction
from typing import Any

from cloudstand.alibaba import catalogue as alibaba
from cloudstand.aws.catalogue import TYPES, hourly
from cloudstand.tencent import catalogue as tencent
from cloudstand.world import workload as does
from cloudstand.world.fleet import Disk, MachineSpec, made_up_id, made_up_key_id
from cloudstand.world.kinds import Accelerator, AcceleratorKind, Billing, Keeper, ManagedBy
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
_DAY, _HOUR = timedelta(days=1), timedelta(hours=1)
_STORY_DAYS = 14


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


def aws_fleet(at: datetime) -> tuple[MachineSpec, ...]:
    """The AWS machines at `at`, the start of day 0: every kind of idle, of busy, and of hands off."""
    return (*_research(at), *_product(at), *_platform(at))


def _research(at: datetime) -> tuple[MachineSpec, ...]:
    def mine(name: str, kind: str, workload: Workload, days: float, owner: str, **more: Any) -> MachineSpec:
        tags = {"team": "research", "owner": owner, **more.pop("tags", {})}
        return aws_machine(name, kind, workload, at - days * _DAY, tags=tags, **more)

    data_disk = Disk(500, device="/dev/sdf", deleted_with_instance=False)
    return (
        mine(
            "thesis-notebook",
            "g5g.16xlarge",
            does.idle(),
            41,
            "vision",
            disks=(Disk(200), data_disk),
            kept_address=True,
        ),
        # its last training ended an hour before day 0: noticed on day 1, to be stopped on day 2
        mine("ablation-runs", "g5.12xlarge", does.busy_until(at - _HOUR), 12, "speech"),
        # its queue runs dry an hour into day 0, is noticed on day 2 and fills again before day 3
        mine("nightly-eval", "g6.xlarge", _pauses(at + _HOUR, at + 3 * _DAY - 2 * _HOUR), 20, "speech"),
        mine("pretraining-a", "p4d.24xlarge", does.busy(), 9, "vision"),
        mine("simulation-gpu-bound", "g5.2xlarge", does.cpu_idle_gpu_busy(), 16, "robotics", region=WEST),
        mine(
            "paper-demo",
            "g6.12xlarge",
            does.idle(),
            33,
            "vision",
            region=WEST,
            tags={"costguard-protect": "until the camera-ready deadline"},
        ),
        mine(
            "shared-login-node",
            "g5.xlarge",
            does.idle(),
            80,
            "robotics",
            region=WEST,
            disks=(Disk(100, key_id=made_up_key_id("aws", RESEARCH, WEST, OLD_DISKS)),),
            protections=("termination_protection",),
        ),
        mine("cluster-trial", "g4dn.12xlarge", does.partly_idle(2, 3), 6, "robotics"),
    )


def _pauses(idle_from: datetime, busy_again: datetime) -> Workload:
    return does.busy().then(idle_from, does.IDLE).then(busy_again, does.BUSY)


def _product(at: datetime) -> tuple[MachineSpec, ...]:
    def mine(name: str, kind: str, workload: Workload, days: float, owner: str, **more: Any) -> MachineSpec:
        tags = {"team": "product", **({"owner": owner} if owner else {})}
        return aws_machine(name, kind, workload, at - days * _DAY, account=PRODUCT, tags=tags, **more)

    nightly = tuple(at + day * _DAY - 7 * _HOUR for day in range(_STORY_DAYS))
    return (
        # no tag names its owner: the audit trail does
        mine("staging-inference", "g5g.xlarge", does.idle(), 25, "", launched_by="role/ml-platform/search-oncall"),
        mine("batch-transcoder", "p4d.24xlarge", does.idle(), 5, "media", region=WEST),
        mine("recommendations", "g5.48xlarge", does.busy(), 60, "search"),
        mine("nightly-report", "g5.xlarge", Workload(does.IDLE, spikes=nightly), 30, "media"),
        mine("legacy-ocr", "g4dn.xlarge", does.no_data(), 200, "media", region=WEST),
        mine("translation-canary", "g5.xlarge", does.agent_dies(at - 5 * _HOUR), 18, "search"),
        mine("fresh-experiment", "g6.xlarge", does.comes_back(at + 20 * _HOUR), 0.125, "search"),
        mine("embedding-service", "inf2.xlarge", does.idle(), 50, "search", region=WEST),
    )


def _platform(at: datetime) -> tuple[MachineSpec, ...]:
    def mine(name: str, kind: str, days: float, **more: Any) -> MachineSpec:
        tags = {"team": "platform", "owner": "infrastructure", **more.pop("tags", {})}
        return aws_machine(name, kind, does.idle(), at - days * _DAY, account=PRODUCT, tags=tags, **more)

    return (
        mine(
            "asg-inference-7",
            "g4dn.xlarge",
            3,
            tags={"aws:autoscaling:groupName": "inference-asg"},
            managed_by=ManagedBy(Keeper.AUTOSCALING, "inference-asg"),
        ),
        mine(
            "eks-gpu-node-2",
            "g5.2xlarge",
            14,
            tags={"kubernetes.io/cluster/ml-prod": "owned", "eks:nodegroup-name": "gpu"},
            managed_by=ManagedBy(Keeper.KUBERNETES, "ml-prod"),
        ),
        mine("spot-worker", "g4dn.12xlarge", 2, billing=Billing.SPOT, one_time_spot=True),
        mine("reserved-capacity", "p4d.24xlarge", 90, region=WEST, billing=Billing.RESERVED),
        mine("trainium-pilot", "trn1.2xlarge", 11),
    )
