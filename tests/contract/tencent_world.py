"""CVM and what belongs to it on the emulator of Tencent Cloud: a world for the contract suites of the ports."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Any
from urllib.parse import urlsplit

from tests.contract.preflight_worlds import guarding
from tests.world_ports.translate import to_product, to_world

from cloudstand.clock import MovedClock
from cloudstand.fleets import TENCENT_ACCOUNT, tencent_machine
from cloudstand.tencent.emulator import TencentEmulator
from cloudstand.wire.door import WorldDoor
from cloudstand.wire.faults import Fault, FaultKind
from cloudstand.wire.messages import Answer, Request
from cloudstand.wire.server import WireServer
from cloudstand.world import workload as does
from cloudstand.world.cloud import World as CloudWorld
from cloudstand.world.fleet import Disk, MachineSpec, made_up_id
from cloudstand.world.kinds import Accelerator, AcceleratorKind
from cloudstand.world.money import Money
from cloudstand.world.records import WorldAddress
from costguard.domain.refs import Shard
from costguard.domain.resources import Instance
from costguard.domain.signals import SignalName
from costguard.ports import Target
from costguard.providers.kit.core.credentials import Keys
from costguard.providers.kit.core.pacing import Pacer
from costguard.providers.tencent.compute.executor import TencentExecutor
from costguard.providers.tencent.compute.instance_types import TencentTypes
from costguard.providers.tencent.compute.metrics import TencentSignals
from costguard.providers.tencent.compute.source import TencentInventory
from costguard.providers.tencent.core.session import RATES, TencentSession
from costguard.providers.tencent.iam.permissions import OPERATIONS
from costguard.providers.tencent.iam.preflight import TencentPreflight

NOW = datetime(2026, 3, 2, 9, 0, 20, tzinfo=timezone.utc)
SHARD = Shard("tencent", TENCENT_ACCOUNT, "ap-guangzhou")
_ELSEWHERE = "ap-shanghai"  # where a machine stands so that the account exists; the shard in use begins empty
_ALWAYS = 1_000_000
_SOON = timedelta(minutes=5)  # until whatever was begun is done

_ACTIONS = {
    "list": "DescribeInstances",
    "volumes": "DescribeDisks",
    "stop": "StopInstances",
    "start": "StartInstances",
    "terminate": "TerminateInstances",
    "snapshot": "CreateSnapshot",
}
_CHANGES = {action: verb for verb, action in _ACTIONS.items() if not action.startswith("Describe")}


class Between:
    """Forwards every request to an emulator as it came, and changes the answers of some actions on the way back."""

    def __init__(self, url: str) -> None:
        self._host = urlsplit(url).netloc
        self._edits: dict[str, Callable[[dict[str, Any]], None]] = {}
        self._server = WireServer(self._forward)

    @property
    def url(self) -> str:
        return self._server.url

    def change(self, action: str, edit: Callable[[dict[str, Any]], None]) -> None:
        """From now on let `edit` have the fields of every answer to `action`."""
        self._edits[action] = edit

    def leave_alone(self) -> None:
        self._edits.clear()

    def close(self) -> None:
        self._server.close()

    def _forward(self, request: Request) -> Answer:
        connection = http.client.HTTPConnection(self._host, timeout=10)
        try:
            connection.putrequest(request.method, request.path or "/", skip_host=True, skip_accept_encoding=True)
            for name, value in request.headers.items():
                connection.putheader(name, value)
            connection.endheaders(request.body)
            answer = connection.getresponse()
            body = answer.read()
        finally:
            connection.close()
        edit = self._edits.get(request.headers.get("x-tc-action", ""))
        if edit is not None:
            document = json.loads(body)
            edit(document["Response"])
            body = json.dumps(document).encode()
        return Answer(answer.status, body, answer.headers.get("Content-Type", ""))


def more_to_come(fields: dict[str, Any]) -> None:
    """The same page, and a count that says that there is more."""
    fields["TotalCount"] += 100


def without_last_item(fields: dict[str, Any]) -> None:
    """The answer less its last item, and a count that fits."""
    items = next(value for value in fields.values() if isinstance(value, list))
    if items:
        items.pop()
        fields["TotalCount"] -= 1


def patient_pacer() -> Pacer:
    """Never waits: its clock moves by what it is told to sleep."""
    moved = [0.0]

    def sleep(seconds: float) -> None:
        moved[0] += seconds

    return Pacer(RATES, monotonic=lambda: moved[0], sleep=sleep, chance=lambda: 1.0)


class TencentWorld:
    """One account of the emulator with one region in use. What owners do to it goes past the wire."""

    shard = SHARD
    missing = "ins-0123abcd"

    def __init__(self, **emulated: Any) -> None:
        self.clock = MovedClock(NOW)
        elsewhere = tencent_machine("elsewhere", does.idle(), NOW - timedelta(days=9), region=_ELSEWHERE)
        self.world = CloudWorld([elsewhere], NOW)
        self.emulator = TencentEmulator(WorldDoor(self.world, self.clock), **emulated)
        self._between: Between | None = None
        self._launched = 0
        self._sessions: list[TencentSession] = []
        self._begin(self.emulator.url)

    def _begin(self, url: str) -> None:
        keys: Keys = to_product(self.emulator.keys)
        self.session = TencentSession(keys=keys, endpoint=url, pacer=patient_pacer(), now=self.clock.now)
        self.acting = self.session.acting()
        self._sessions += [self.session, self.acting]
        self.inventory = TencentInventory(self.session, catalogue=TencentTypes())
        self.executor = TencentExecutor(self.acting)
        self.signals = TencentSignals(self.session, frozenset(SignalName))

    def close(self) -> None:
        for session in self._sessions:
            session.close()
        if self._between is not None:
            self._between.close()
        self.emulator.close()

    def pass_time(self, span: timedelta = _SOON) -> None:
        self.clock.advance(span)
        self.world.tick(self.clock.now())

    def target(self, *regions: str, every: bool = False) -> Target:
        return Target("tencent", regions=None if every else regions)

    def launch(self, *, gpu: bool = True, tags: dict[str, str] | None = None, **more: Any) -> str:
        """Start one machine and wait until it runs; `more` are fields of `MachineSpec`."""
        self._launched += 1
        name = (tags or {}).get("Name", f"machine-{self._launched}")
        spec = tencent_machine(
            f"{name}-{self._launched}",
            more.pop("workload", does.idle()),
            self.clock.now(),
            tags=tags or {},
            **to_world(more),
        )
        if not gpu:
            spec = without_gpu(spec)
        self.world.launch(renamed(spec, name), "owner")
        self.pass_time()
        return spec.native_id

    def stop(self, instance: str) -> None:
        self.world.stop(instance, "owner")
        self.pass_time()

    def terminate(self, instance: str) -> None:
        self.world.terminate(instance, "owner")
        self.pass_time()

    def state(self, instance: str) -> str:
        self.emulator.faults.clear()
        if self._between is not None:
            self._between.leave_alone()
        self.pass_time()
        return self.world.machines[instance].state.value

    def add_volume(self, instance: str) -> str:
        return self.world.attach(instance, Disk(20, "vdb", "CLOUD_PREMIUM"), "owner")

    def volumes(self, instance: str) -> set[str]:
        return {volume.native_id for volume in self.world.volumes_of(instance)}

    def keep_address(self, instance: str) -> str:
        native_id = made_up_id("tencent", "address", instance)
        self.world.addresses[native_id] = WorldAddress(native_id, instance)
        return native_id

    def protect(self, instance: str) -> None:
        self.world.protect(instance, "termination_protection", "owner")

    def go_wrong(self, what: str, how: str) -> None:
        action = _ACTIONS[what]
        faults = {
            "denied": Fault(FaultKind.REFUSED, action, _ALWAYS, code="UnauthorizedOperation"),
            "throttled": Fault(FaultKind.REFUSED, action, _ALWAYS, code="RequestLimitExceeded"),
            "sold out": Fault(FaultKind.REFUSED, action, _ALWAYS, code="ResourcesSoldOut.SpecifiedInstanceType"),
            "lost": Fault(FaultKind.LOST_ANSWER, action, _ALWAYS),
        }
        if how in faults:
            self.emulator.faults.add(faults[how])
        else:
            self.changing(action, more_to_come if how == "repeated page" else without_last_item)

    def changing(self, action: str, edit: Callable[[dict[str, Any]], None]) -> None:
        """From now on answers to `action` are changed on their way back."""
        if self._between is None:
            self._between = Between(self.emulator.url)
            self._begin(self._between.url)
            self.session.identity()
        self._between.change(action, edit)

    def changes_sent(self) -> list[str]:
        return [_CHANGES[call.action] for call in self.emulator.calls if call.action in _CHANGES]

    def requests(self) -> int:
        return self.emulator.requests


def renamed(spec: MachineSpec, name: str) -> MachineSpec:
    return replace(spec, name=name)


def without_gpu(spec: MachineSpec) -> MachineSpec:
    none = Accelerator(AcceleratorKind.OTHER, "", 0)
    return replace(spec, instance_type="S5.LARGE8", accelerator=none, hourly=Money(Decimal("0.68"), "CNY"))


@contextmanager
def tencent_world(**emulated: Any) -> Iterator[TencentWorld]:
    """A world of its own, closed again; `emulated` goes to the emulator."""
    world = TencentWorld(**emulated)
    try:
        yield world
    finally:
        world.close()


@contextmanager
def tencent() -> Iterator[Callable[[], AbstractContextManager[TencentWorld]]]:
    """What `WORLDS` of `cloud_worlds.py` wants: each test gets a world, and an emulator, of its own."""
    yield tencent_world


class TencentAsked:
    """CVM of the emulator, asked before anything is done: Tencent Cloud has no dry run of anything."""

    has_dry_runs = False
    untellable = frozenset(
        {
            "cvm:StopInstances",
            "cvm:StartInstances",
            "cvm:TerminateInstances",
            "cbs:CreateSnapshot",
            "tke:DescribeClusterInstances",  # asked where there is a cluster
        }
    )
    unasked = {  # noqa: RUF012 - never written
        "sts:AssumeRole": "discovery has used it to come here",
        "organization:DescribeOrganizationMembers": "discovery has used it where an organisation is named",
    }
    a_read, a_change = "cbs:DescribeDisks", "cvm:StopInstances"

    def __init__(self, world: TencentWorld) -> None:
        self._world = world
        self.now = world.clock.now()
        self.session = TencentSession(
            keys=to_product(world.emulator.keys),
            endpoint=world.emulator.url,
            pacer=patient_pacer(),
            now=lambda: self.now,
        )
        self.preflight = TencentPreflight(self.session)
        self.calls = self.session
        self.shard = world.shard
        self.operations = guarding(OPERATIONS)
        world.inventory.discover(world.target(world.shard.region))

    def machine(self) -> Instance:
        native_id = self._world.launch()
        found = {one.ref.native_id: one for one in self._world.inventory.read(self.shard).instances}
        return found[native_id]

    def truth(self) -> tuple[object, ...]:
        world = self._world.world
        states = [(native_id, machine.state) for native_id, machine in world.machines.items()]
        return (*states, *world.snapshots, *(event.what for event in world.history))

    def deny(self, operation: str) -> None:
        self._refuse(operation, "UnauthorizedOperation")

    def break_down(self, operation: str) -> None:
        self._refuse(operation, "InternalError")

    def refuse_everybody(self) -> None:
        self._refuse("sts:GetCallerIdentity", "AuthFailure.SignatureExpire")

    def ignore_dry_runs(self, operation: str) -> None:
        """There are none to ignore."""

    def _refuse(self, operation: str, code: str) -> None:
        action = operation.partition(":")[2]
        self._world.emulator.faults.add(Fault(FaultKind.REFUSED, action, _ALWAYS, code=code))


@contextmanager
def tencent_asked() -> Iterator[TencentAsked]:
    with tencent_world() as world:
        asked = TencentAsked(world)
        try:
            yield asked
        finally:
            asked.session.close()


@contextmanager
def tencent_preflight() -> Iterator[Callable[[], AbstractContextManager[TencentAsked]]]:
    """For `PREFLIGHTS`."""
    yield tencent_asked
