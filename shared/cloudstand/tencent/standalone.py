"""The emulator without the rest: a fleet with one of everything, on a clock that runs and can be moved ahead."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from cloudstand.clock import RunningClock
from cloudstand.fleets import tencent_machine
from cloudstand.tencent.emulator import TencentEmulator
from cloudstand.wire.control import Control
from cloudstand.wire.door import WorldDoor
from cloudstand.world import workload as does
from cloudstand.world.cloud import World
from cloudstand.world.fleet import Disk, MachineSpec
from cloudstand.world.kinds import Billing, InstanceState, Keeper, ManagedBy
from cloudstand.world.workload import Workload

MEMBER = "100087654321"
"""A made-up account of the organisation besides the one that leads it."""
SHANGHAI = "ap-shanghai"


def serve(
    port: int = 0,
    *,
    fleet: Iterable[MachineSpec] | None = None,
    external_id: str = "",
    latency_seconds: float = 0.0,
    rates: Mapping[str, tuple[float, float]] | None = None,
) -> TencentEmulator:
    """An emulator of its own that serves `fleet` (the one below when None) until it is closed.

    Its control door is open: tests in other languages let time pass and things go wrong through it.
    """
    clock = RunningClock()
    now = clock.now()
    door = WorldDoor(World(default_fleet(now) if fleet is None else fleet, now), clock)
    emulator = TencentEmulator(door, external_id=external_id, port=port, latency_seconds=latency_seconds, rates=rates)
    emulator.server.control = Control(clock, emulator.faults, emulator.calls)
    return emulator


def default_fleet(at: datetime) -> tuple[MachineSpec, ...]:
    """Sixteen machines in two accounts and two regions: idle, busy, unseen, and every kind of hands off."""
    day = timedelta(days=1)
    system, kept = Disk(100, "vda", "CLOUD_PREMIUM"), Disk(500, "vdb", "CLOUD_SSD", deleted_with_instance=False)
    failing = Disk(50, "vda", "CLOUD_BSSD", snapshots_fail=True)

    def mine(name: str, workload: Workload, days: int, kind: str = "GN7.2XLARGE32", **more: Any) -> MachineSpec:
        return tencent_machine(name, workload, at - days * day, kind, **more)

    def theirs(name: str, days: int, **more: Any) -> MachineSpec:
        return mine(name, does.idle(), days, account=MEMBER, region=SHANGHAI, **more)

    return (
        mine("idle-notebook", does.idle(), 41, disks=(system, kept), kept_address=True, tags={"team": "nlp"}),
        mine("training-a", does.busy(), 9, "GT4.4XLARGE96"),
        mine("one-card-of-four", does.partly_idle(1, 2, 3), 12, "GN7.20XLARGE320"),
        mine("queue-worker", does.comes_back(at + day), 20, "PNV4.7XLARGE116"),
        mine("no-agent", does.no_data(), 12),
        mine("agent-died", does.agent_dies(at - timedelta(hours=5)), 12),
        mine("slice", does.idle(), 5, "GN7.LARGE20"),
        mine("local-disks", does.idle(), 30, "GI3X.8XLARGE64"),
        mine("prepaid", does.idle(), 90, billing=Billing.PREPAID, prepaid_until=at + 200 * day),
        mine("spot", does.idle(), 2, billing=Billing.SPOT),
        mine("web", does.idle(), 300, "S5.LARGE8"),
        mine("stopped", does.idle(), 60, state=InstanceState.STOPPED, stopped_since=at - 7 * day),
        theirs("protected", 80, protections=("termination_protection",)),
        theirs("bills-on", 7, stop_keeps_billing=True, public_ip="203.0.113.7"),
        theirs("in-a-group", 3, managed_by=ManagedBy(Keeper.AUTOSCALING, "asg-2umy5jbd")),
        theirs("node", 14, managed_by=ManagedBy(Keeper.KUBERNETES, "cls-7ph3twqe"), disks=(failing,)),
    )
