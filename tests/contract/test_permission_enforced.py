"""The generated documents, enforced: a small share of `python -m tests.permissions`, which drives all of them.

AWS by moto's own enforcement, which knows actions alone; Alibaba Cloud and Tencent Cloud by their emulators, which know
resources and tags as well.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from tests.contract.alibaba_world import patient_pacer as alibaba_pacer
from tests.contract.aws_stand_in import aws_stand_in
from tests.contract.cloud_worlds import AwsWorld, aws_world
from tests.contract.tencent_world import patient_pacer as tencent_pacer
from tests.contract.test_executor_aws_permissions import action, allowing, session_with
from tests.world_ports.translate import to_product

from cloudstand.alibaba.emulator import AlibabaEmulator
from cloudstand.clock import MovedClock
from cloudstand.fleets import alibaba_machine, tencent_machine
from cloudstand.tencent.emulator import TencentEmulator
from cloudstand.wire.authority import Authority
from cloudstand.wire.door import WorldDoor
from cloudstand.world import workload
from cloudstand.world.cloud import World
from costguard.domain.actions import Action, Verb
from costguard.domain.errors import AccessDeniedError
from costguard.domain.refs import ResourceRef, Shard
from costguard.domain.resources import GapKind
from costguard.ports import ActionExecutor, InventorySource, Target
from costguard.providers.alibaba.compute.executor import AlibabaExecutor
from costguard.providers.alibaba.compute.source import AlibabaInventory
from costguard.providers.alibaba.core.session import AlibabaSession
from costguard.providers.aws.compute.executor import AwsExecutor
from costguard.providers.aws.compute.instance_types import AwsTypes
from costguard.providers.aws.compute.source import AwsInventory
from costguard.providers.tencent.compute.executor import TencentExecutor
from costguard.providers.tencent.compute.source import TencentInventory
from costguard.providers.tencent.core.session import TencentSession

INFRA = Path(__file__).parents[2] / "infra"
NOW = datetime(2026, 3, 2, 9, tzinfo=timezone.utc)


def document(cloud: str, purpose: str) -> dict[str, Any]:
    """As its file has it."""
    found: dict[str, Any] = json.loads((INFRA / cloud / "policies" / f"{purpose}.json").read_text("utf-8"))
    return found


def together(*documents: Mapping[str, Any]) -> dict[str, Any]:
    return {"Version": "2012-10-17", "Statement": [one for each in documents for one in each["Statement"]]}


# AWS


@pytest.fixture(scope="module")
def aws() -> Iterator[AwsWorld]:
    with aws_stand_in() as stand_in, aws_world(stand_in) as made:
        yield made


def test_on_aws_the_files_are_enough_to_scan_and_to_act(aws: AwsWorld) -> None:
    native_id = aws.launch()
    (volume,) = aws.volumes(native_id)
    # what is denied by condition moto would deny always
    files = allowing(together(*(document("aws", name) for name in ("scan-idle_gpu", "act-idle_gpu"))))

    with session_with(aws, files, may_change=True) as session:
        inventory = AwsInventory(session, catalogue=AwsTypes())
        found = inventory.discover(Target("aws"))
        read = inventory.read(aws.shard)
        details = inventory.details([one.ref for one in read.instances])
        executor = AwsExecutor(session)
        for step in (Verb.STOP, Verb.SNAPSHOT, Verb.TERMINATE):
            executor.execute(action(aws, step, native_id, volume if step is Verb.SNAPSHOT else ""))

    assert (found.gaps, read.gaps, len(details)) == ((), (), 1)


# Alibaba Cloud and Tencent Cloud


class Stage:
    """One cloud with a machine of nobody's and one that is to be kept, and adapters over its emulator."""

    def __init__(self, cloud: str, opened: ExitStack) -> None:
        self.cloud = cloud
        since, kept = NOW - timedelta(days=10), {"Do-Not-Stop": "true"}
        make: Callable[..., Any] = alibaba_machine if cloud == "alibaba" else tencent_machine
        specs = [make("idle", workload.idle(), since), make("kept", workload.idle(), since, tags=kept)]
        self.world, clock = World(specs, NOW), MovedClock(NOW)
        self.idle, self.kept = (to_product(spec.ref) for spec in specs)
        door = WorldDoor(self.world, clock)
        self.inventory: InventorySource
        self.executor: ActionExecutor
        if cloud == "alibaba":
            alibaba = opened.enter_context(AlibabaEmulator(door))
            own = AlibabaSession(
                keys=to_product(alibaba.keys), endpoint=alibaba.url, pacer=alibaba_pacer(), now=clock.now
            )
            self.authorities, acting = alibaba.authorities, own.acting()
            opened.callback(own.close)
            opened.callback(acting.close)
            self.inventory, self.executor = AlibabaInventory(own), AlibabaExecutor(acting)
            return
        tencent = opened.enter_context(TencentEmulator(door))
        mine = TencentSession(keys=to_product(tencent.keys), endpoint=tencent.url, pacer=tencent_pacer(), now=clock.now)
        self.authorities, doing = tencent.authorities, mine.acting()
        opened.callback(mine.close)
        opened.callback(doing.close)
        self.inventory, self.executor = TencentInventory(mine), TencentExecutor(doing)

    def enforce(self, *purposes: str) -> Authority:
        """From now on that is all that the account's user may do."""
        authority = Authority([document(self.cloud, purpose) for purpose in purposes])
        self.authorities[self.idle.account, ""] = authority
        return authority

    def stop(self, ref: ResourceRef) -> None:
        self.executor.execute(Action("a", "d", Verb.STOP, ref, ref, "", "c", 1, "r", "g"))

    @property
    def shard(self) -> Shard:
        shard: Shard = self.idle.shard
        return shard


@pytest.fixture(params=["alibaba", "tencent"])
def stage(request: pytest.FixtureRequest) -> Iterator[Stage]:
    with ExitStack() as opened:
        yield Stage(request.param, opened)


def test_the_files_are_enough_to_scan(stage: Stage) -> None:
    authority = stage.enforce("scan-idle_gpu", "deny")

    found = stage.inventory.discover(Target(stage.cloud, regions=(stage.shard.region,)))
    read = stage.inventory.read(stage.shard)
    details = stage.inventory.details([one.ref for one in read.instances])

    assert (found.gaps, read.gaps, len(details)) == ((), (), 2)
    assert authority.refused == []


def test_without_the_files_of_a_purpose_it_is_denied(stage: Stage) -> None:
    stage.enforce("secrets", "deny")
    stage.inventory.discover(Target(stage.cloud, regions=(stage.shard.region,)))
    assert {gap.kind for gap in stage.inventory.read(stage.shard).gaps} == {GapKind.DENIED}

    stage.enforce("scan-idle_gpu", "deny")
    with pytest.raises(AccessDeniedError):
        stage.stop(stage.idle)


def test_the_cloud_itself_keeps_a_machine_with_a_protecting_tag(stage: Stage) -> None:
    stage.enforce("scan-idle_gpu", "act-idle_gpu", "deny")
    stage.stop(stage.idle)
    with pytest.raises(AccessDeniedError):
        stage.stop(stage.kept)

    stage.enforce("scan-idle_gpu", "act-idle_gpu")  # shows whose doing that is
    stage.stop(stage.kept)
