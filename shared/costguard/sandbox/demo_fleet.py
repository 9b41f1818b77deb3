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
    TENCENT_ACCOUNT,
    alibaba_machine,
    aws_fleet,
    tencent_machine,
)
from cloudstand.world import workload as does
from cloudstand.world.fleet import Disk, MachineSpec, made_up_key_id
from cloudstand.world.kinds import Billing, Keeper, ManagedBy
from cloudstand.world.workload import Workload

_DAY = timedelta(days=1)


def demo_fleet(at: datetime) -> tuple[MachineSpec, ...]:
    """Every machine at `at`, the start of day 0."""
    return (*aws_fleet(at), *_on_alibaba(at), *_on_tencent(at))


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
