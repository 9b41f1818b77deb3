"""The emulator without the rest: a fleet with one of everything, on a clock that runs and can be moved ahead."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from cloudstand.alibaba.emulator import AlibabaEmulator
from cloudstand.clock import RunningClock
from cloudstand.fleets import alibaba_machine
from cloudstand.wire.control import Control
from cloudstand.wire.door import WorldDoor
from cloudstand.world import workload as does
from cloudstand.world.cloud import World
from cloudstand.world.fleet import Disk, MachineSpec
from cloudstand.world.kinds import Accelerator, AcceleratorKind, Billing

MEMBER = "1098765432109876"
"""A made-up account of the organisation besides the one that leads it."""
BEIJING = "cn-beijing"
_FPGA, _NOTHING = Accelerator(AcceleratorKind.FPGA, "VU9P", 1), Accelerator(AcceleratorKind.OTHER, "", 0)


def serve(
    port: int = 0, *, fleet: Iterable[MachineSpec] | None = None, external_id: str = "", latency_seconds: float = 0.0
) -> AlibabaEmulator:
    """An emulator of its own that serves `fleet` (the one below when None) until it is closed.

    Its control door is open: tests in other languages let time pass and things go wrong through it.
    """
    clock = RunningClock()
    now = clock.now()
    door = WorldDoor(World(default_fleet(now) if fleet is None else fleet, now), clock)
    emulator = AlibabaEmulator(door, external_id=external_id, port=port, latency_seconds=latency_seconds)
    emulator.server.control = Control(clock, emulator.faults, emulator.calls)
    return emulator


def default_fleet(at: datetime) -> tuple[MachineSpec, ...]:
    """Fifteen machines in two accounts and two regions: idle, busy, unseen, and every kind of hands off."""
    day = timedelta(days=1)
    bound = Disk(500, "/dev/xvdb", "cloud_essd", deleted_with_instance=False)
    root = Disk(100, "/dev/xvda", "cloud_essd")
    member = {"account": MEMBER, "region": BEIJING}
    return (
        alibaba_machine("idle-notebook", does.idle(), at - 41 * day, disks=(root, bound), kept_address=True),
        alibaba_machine("training-a", does.busy(), at - 9 * day, "ecs.gn7e-c16g1.4xlarge"),
        alibaba_machine("queue-worker", does.comes_back(at + day), at - 20 * day, "ecs.gn6i-c4g1.xlarge"),
        alibaba_machine("no-agent", does.no_data(), at - 12 * day),
        alibaba_machine("agent-died", does.agent_dies(at - timedelta(hours=5)), at - 12 * day),
        alibaba_machine("local-disks", does.idle(), at - 30 * day, "ecs.gn5-c4g1.xlarge"),
        alibaba_machine("prepaid", does.idle(), at - 90 * day, billing=Billing.PREPAID, prepaid_until=at + 200 * day),
        alibaba_machine("spot", does.idle(), at - 2 * day, billing=Billing.SPOT),
        alibaba_machine("protected", does.idle(), at - 80 * day, protections=("termination_protection",), **member),
        alibaba_machine("bills-on", does.idle(), at - 7 * day, stop_keeps_billing=True, **member),
        alibaba_machine("public", does.idle(), at - 7 * day, public_ip="203.0.113.7", **member),
        alibaba_machine(
            "copy-fails",
            does.idle(),
            at - 7 * day,
            disks=(Disk(40, "/dev/xvda", "cloud_essd", snapshots_fail=True),),
            **member,
        ),
        alibaba_machine("slice", does.idle(), at - 5 * day, "ecs.vgn6i-m4.xlarge"),
        alibaba_machine("fpga", does.busy(), at - 5 * day, "ecs.f3-c16f1.4xlarge", accelerator=_FPGA),
        alibaba_machine("web", does.busy(), at - 300 * day, "ecs.g7.xlarge", accelerator=_NOTHING),
    )
