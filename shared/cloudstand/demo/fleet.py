"""The demo's fleet: one policy over three clouds, with what only one of them knows."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from cloudstand.fleets import (
    ALIBABA_ACCOUNT,
    GUANGZHOU,
    HANGZHOU,
    OLD_DISKS,
    PRODUCT,
    RESEARCH,
    TENCENT_ACCOUNT,
    WEST,
    alibaba_machine,
    aws_machine,
    tencent_machine,
)
from cloudstand.world import workload as does
from cloudstand.world.fleet import Disk, MachineSpec, made_up_key_id
from cloudstand.world.kinds import Billing, Keeper, ManagedBy
from cloudstand.world.workload import Workload

_DAY, _HOUR = timedelta(days=1), timedelta(hours=1)
_STORY_DAYS = 14


def demo_fleet(at: datetime) -> tuple[MachineSpec, ...]:
    """Every machine at `at`, the start of day 0."""
    return (*aws_fleet(at), *_on_alibaba(at), *_on_tencent(at))


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
        # its queue runs dry an hour into day 0, is noticed on day 2 and fills again before day 3; and over a weekend
        mine("nightly-eval", "g6.xlarge", _dry_twice(at), 20, "speech"),
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


def _dry_twice(at: datetime) -> Workload:
    once = _pauses(at + _HOUR, at + 3 * _DAY - 2 * _HOUR)
    return once.then(at + 3 * _DAY - _HOUR / 2, does.IDLE).then(at + 7 * _DAY - 2 * _HOUR, does.BUSY)


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


def _on_alibaba(at: datetime) -> tuple[MachineSpec, ...]:
    mine = _belonging(alibaba_machine, at)
    old_key = made_up_key_id("alibaba", ALIBABA_ACCOUNT, HANGZHOU, OLD_DISKS)
    disks = (Disk(100, "/dev/xvda", "cloud_essd", key_id=old_key),)
    prepaid = {"billing": Billing.PREPAID, "prepaid_until": at + 40 * _DAY, "disks": disks}
    return (
        mine("ad-ranking-dev", "ecs.gn7i-c8g1.2xlarge", does.idle(), 28, "product", "recsys"),
        mine("ocr-training", "ecs.gn7e-c16g1.4xlarge", does.busy(), 12, "research", "recsys"),
        mine("click-model-p100", "ecs.gn5-c4g1.xlarge", does.idle(), 75, "product", "recsys"),
        mine("annotation-yearly", "ecs.gn6i-c4g1.xlarge", does.idle(), 300, "product", "recsys", **prepaid),
    )


def _on_tencent(at: datetime) -> tuple[MachineSpec, ...]:
    mine = _belonging(tencent_machine, at)
    old_key = made_up_key_id("tencent", TENCENT_ACCOUNT, GUANGZHOU, OLD_DISKS)
    node = {
        "managed_by": ManagedBy(Keeper.KUBERNETES, "cls-games"),
        "tags": {"tencentcloud:tke-clusterid": "cls-games"},
        "disks": (Disk(100, "vda", "CLOUD_PREMIUM", key_id=old_key),),
    }
    two_disks = (Disk(100, "vda", "CLOUD_PREMIUM"), Disk(300, "vdb", "CLOUD_SSD", deleted_with_instance=False))
    return (
        mine("npc-notebook", "GN7.2XLARGE32", does.idle(), 33, "research", "games", disks=two_disks),
        mine("world-model-8", "GN10Xp.20XLARGE320", does.partly_idle(*range(1, 8)), 8, "research", "games"),
        mine("cloud-desktop", "GN7.LARGE20", does.idle(), 19, "product", "games"),
        mine("tke-gpu-node-1", "GN7.5XLARGE80", does.idle(), 50, "platform", "infrastructure", **node),
    )


def _belonging(machine: Callable[..., MachineSpec], at: datetime) -> Callable[..., MachineSpec]:
    def mine(name: str, kind: str, workload: Workload, days: int, team: str, owner: str, **more: Any) -> MachineSpec:
        tags = {"team": team, "owner": owner, **more.pop("tags", {})}
        return machine(name, workload, at - days * _DAY, kind, tags=tags, **more)

    return mine
