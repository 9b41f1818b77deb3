"""A small Alibaba Cloud to test adapters on: a world of the sandbox, its emulator, and a relay that may lie."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from http.client import HTTPConnection, HTTPException
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.contract.cloud_worlds import DENIED, LEFT_OUT, LOST, REPEATED, SOLD_OUT, THROTTLED, World
from tests.contract.preflight_worlds import Asked, guarding
from tests.world_ports.translate import to_product, to_world

from cloudstand.alibaba.emulator import AlibabaEmulator
from cloudstand.clock import MovedClock
from cloudstand.fleets import HANGZHOU, alibaba_machine
from cloudstand.wire.door import WorldDoor
from cloudstand.wire.faults import Fault, FaultKind
from cloudstand.wire.messages import Answer, Ending, Request
from cloudstand.wire.server import WireServer
from cloudstand.world import workload as does
from cloudstand.world.cloud import World as Clouds
from cloudstand.world.fleet import Disk, MachineSpec, made_up_id
from costguard.domain.errors import AccessDeniedError
from costguard.domain.refs import ResourceRef, Shard
from costguard.domain.resources import Accelerator, AcceleratorKind, Billing, Instance, InstanceState
from costguard.domain.signals import SignalName
from costguard.ports import Target
from costguard.providers.alibaba.compute.executor import AlibabaExecutor
from costguard.providers.alibaba.compute.instance_types import AlibabaTypes
from costguard.providers.alibaba.compute.metrics import AlibabaSignals
from costguard.providers.alibaba.compute.source import AlibabaInventory
from costguard.providers.alibaba.core.session import RATES, AlibabaSession
from costguard.providers.alibaba.iam.permissions import OPERATIONS
from costguard.providers.alibaba.iam.preflight import AlibabaPreflight
from costguard.providers.kit.core.pacing import Pacer

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=timezone.utc)
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
_OFTEN = 1_000
_MOST_WORLDS = 120  # in one module
Change = Callable[[dict[str, Any]], dict[str, Any]]


def patient_pacer() -> Pacer:
    """Never waits: its clock moves by what it is told to sleep."""
    moved = [0.0]

    def sleep(seconds: float) -> None:
        moved[0] += seconds

    return Pacer(RATES, monotonic=lambda: moved[0], sleep=sleep, chance=lambda: 1.0)


class Relay:
    """Stands before the emulator and may falsify what it answers; counts what arrives."""

    def __init__(self, url: str) -> None:
        self._place = urlsplit(url).netloc
        self.changes: dict[str, Change] = {}
        self.asked: list[dict[str, str]] = []
        self.ignored: set[str] = set()
        self._first: dict[str, Answer] = {}
        self._server = WireServer(self._answer, stall_seconds=2.0)
        self.url = self._server.url

    def close(self) -> None:
        self._server.close()

    def reset(self) -> None:
        self.changes.clear()
        self.ignored.clear()
        self.asked.clear()
        self._first.clear()

    @property
    def requests(self) -> int:
        return self._server.requests

    def _answer(self, request: Request) -> Answer:
        asked = {name: values[0] for name, values in parse_qs(request.query, keep_blank_values=True).items()}
        self.asked.append(asked)
        action = asked.get("Action", "")
        if asked.get("NextToken") == "again":
            return self._first[action]
        if action in self.ignored and asked.get("DryRun") == "true":
            return Answer(200, b'{"RequestId": "R"}')
        change = self.changes.get(action)
        answer = self._forwarded(request)
        if change is None or answer.ending is not Ending.WHOLE or answer.status >= 300:
            return answer
        body = json.dumps(change(json.loads(answer.body))).encode()
        self._first[action] = falsified = replace(answer, body=body)
        return falsified

    def _forwarded(self, request: Request) -> Answer:
        connection = HTTPConnection(self._place, timeout=30)
        try:
            connection.request(request.method, f"{request.path}?{request.query}", request.body, dict(request.headers))
            got = connection.getresponse()
            return Answer(got.status, got.read(), got.headers["Content-Type"])
        except (OSError, HTTPException):
            return Answer(200, b"", ending=Ending.RESET)
        finally:
            connection.close()


class AlibabaStandIn:
    """The emulator for a module's tests, with an account for each of them."""

    def __init__(self) -> None:
        self.clock = MovedClock(NOW)
        self._accounts = iter([f"{10**15 + number}" for number in range(_MOST_WORLDS)])
        far = [
            alibaba_machine("far", does.busy(), NOW, account=f"{10**15 + number}", region="eu-central-1")
            for number in range(_MOST_WORLDS)
        ]
        self.world = Clouds(far, NOW)
        self.emulator = AlibabaEmulator(WorldDoor(self.world, self.clock))
        self.relay = Relay(self.emulator.url)
        self.catalogue = AlibabaTypes()

    def reset(self) -> str:
        """Nothing goes wrong, nothing was asked; an account that nobody used."""
        self.emulator.faults.clear()
        self.emulator.calls.clear()
        self.relay.reset()
        return next(self._accounts)

    def close(self) -> None:
        self.relay.close()
        self.emulator.close()


class AlibabaWorld:
    """ECS of the emulator. Machines appear once something is asked: before, they are only written down."""

    _CALLS = {  # noqa: RUF012 - never written
        "list": "DescribeInstances",
        "volumes": "DescribeDisks",
        "stop": "StopInstances",
        "start": "StartInstances",
        "terminate": "DeleteInstances",
        "snapshot": "CreateSnapshot",
    }

    missing = "i-0123456789abcdef0"

    def __init__(self, stand_in: AlibabaStandIn) -> None:
        self.stand_in = stand_in
        self.emulator, self.relay, self.clock = stand_in.emulator, stand_in.relay, stand_in.clock
        self.shard = Shard("alibaba", stand_in.reset(), HANGZHOU)
        self._written: dict[str, MachineSpec] = {}
        self._count = 0
        self.session = AlibabaSession(
            keys=to_product(self.emulator.keys_of(self.shard.account)),
            endpoint=self.relay.url,
            pacer=patient_pacer(),
            now=self.clock.now,
        )
        self.acting = self.session.acting()

    def close(self) -> None:
        self.session.close()
        self.acting.close()

    @property
    def inventory(self) -> AlibabaInventory:
        self._appear()
        return AlibabaInventory(self.session, catalogue=self.stand_in.catalogue)

    @property
    def executor(self) -> AlibabaExecutor:
        self._appear()
        return AlibabaExecutor(self.acting)

    @property
    def world(self) -> Clouds:
        self._appear()
        return self.stand_in.world

    def target(self, *regions: str, every: bool = False) -> Target:
        return Target("alibaba", regions=None if every else regions)

    def launch(self, *, gpu: bool = True, tags: dict[str, str] | None = None, **more: Any) -> str:
        """Start one instance; `more` are fields of `MachineSpec`."""
        self._count += 1
        name = (tags or {}).get("Name", f"machine-{self._count}")
        more = {"account": self.shard.account, "tags": tags or {}, **more}
        spec = alibaba_machine(name, does.idle(), NOW - HOUR, **to_world(more))
        if not gpu:
            plain = Accelerator(AcceleratorKind.OTHER, "", 0)
            spec = replace(spec, instance_type="ecs.g7.xlarge", accelerator=to_world(plain))
        self._written[spec.native_id] = spec
        return spec.native_id

    def rewrite(self, instance: str, **more: Any) -> None:
        """Change what was written down of a machine that has not appeared yet."""
        self._written[instance] = replace(self._written[instance], **to_world(more))

    def _appear(self) -> None:
        written, self._written = self._written, {}
        for spec in written.values():
            self.stand_in.world.launch(spec, "owner")
        if written:
            self.pass_(MINUTE)

    def stop(self, instance: str) -> None:
        self.world.stop(instance, "owner")
        self.pass_(2 * MINUTE)
        self.emulator.calls.clear()

    def terminate(self, instance: str) -> None:
        self.world.terminate(instance, "owner")
        self.pass_(2 * MINUTE)
        self.emulator.calls.clear()

    def state(self, instance: str) -> str:
        self.heal()
        self.pass_(5 * MINUTE)
        return self.world.machines[instance].state.value

    def add_volume(self, instance: str) -> str:
        return self.world.attach(instance, Disk(20, "/dev/xvdb", "cloud_essd"), "owner")

    def volumes(self, instance: str) -> set[str]:
        return {volume.native_id for volume in self.world.volumes_of(instance)}

    def keep_address(self, instance: str) -> str:
        """Before anything is asked of it: a world has no way to bind an address to what runs."""
        self.rewrite(instance, kept_address=True)
        return made_up_id("alibaba", "address", instance)

    def protect(self, instance: str) -> None:
        self.world.protect(instance, "termination_protection", "owner")

    def go_wrong(self, what: str, how: str) -> None:
        action = self._CALLS[what]
        if how == DENIED:
            self.world.deny(self.shard.cloud, self.shard.account, action)
        elif how == THROTTLED:
            self.fault(FaultKind.REFUSED, action, code="Throttling.User", status=400)
        elif how == SOLD_OUT:
            self.fault(FaultKind.REFUSED, action, code="OperationDenied.NoStock", status=403)
        elif how == LOST:
            self.fault(FaultKind.LOST_ANSWER, action)
        elif how == REPEATED:
            self.relay.changes[action] = twice if what == "volumes" else with_token
        elif how == LEFT_OUT:
            self.relay.changes[action] = without_last_item

    def fault(self, kind: FaultKind, action: str, *, times: int = _OFTEN, code: str = "", status: int = 0) -> None:
        self._appear()
        self.emulator.faults.add(Fault(kind, action, times, code=code, status=status))

    def heal(self) -> None:
        """Nothing goes wrong any more."""
        self.emulator.faults.clear()
        self.relay.changes.clear()
        for action in self._CALLS.values():
            self.world.allow(self.shard.cloud, self.shard.account, action)

    def changes_sent(self) -> list[str]:
        verbs = {action: verb for verb, action in self._CALLS.items() if not action.startswith("Describe")}
        return [verbs[call.action] for call in self.emulator.calls if call.action in verbs]

    def requests(self) -> int:
        return self.relay.requests

    def pass_(self, step: timedelta) -> None:
        """Let time pass."""
        self.stand_in.world.tick(self.clock.advance(step))


def with_token(answer: dict[str, Any]) -> dict[str, Any]:
    """The same page token on every page."""
    return {**answer, "NextToken": "again"}


def twice(answer: dict[str, Any]) -> dict[str, Any]:
    """The same disks again, as a page that shifts while it is read."""
    disks = answer["Disks"]["Disk"]
    return {**answer, "Disks": {"Disk": [*disks, *disks]}}


def without_last_item(answer: dict[str, Any]) -> dict[str, Any]:
    """The answer less its last disk, still well formed."""
    return {**answer, "Disks": {"Disk": answer["Disks"]["Disk"][:-1]}}


@contextmanager
def alibaba_stand_in() -> Iterator[AlibabaStandIn]:
    made = AlibabaStandIn()
    try:
        yield made
    finally:
        made.close()


@contextmanager
def alibaba_world(stand_in: AlibabaStandIn) -> Iterator[AlibabaWorld]:
    world = AlibabaWorld(stand_in)
    try:
        yield world
    finally:
        world.close()


@contextmanager
def alibaba() -> Iterator[Callable[[], AbstractContextManager[World]]]:
    """For `WORLDS`."""
    with alibaba_stand_in() as stand_in:
        yield lambda: alibaba_world(stand_in)


class AlibabaAsked:
    """ECS of the emulator, asked before anything is done."""

    has_dry_runs = True
    untellable = frozenset({"ecs:CreateSnapshot"})
    unasked = {  # noqa: RUF012 - never written
        "sts:AssumeRole": "discovery has used it to come here",
        "resourcedirectory:ListAccounts": "discovery has used it where an organisation is named",
    }
    a_read, a_change = "ecs:DescribeDisks", "ecs:StopInstances"

    def __init__(self, world: AlibabaWorld) -> None:
        self._world = world
        self.now = datetime.now(timezone.utc)
        self.session = world.session.dry_running()
        self.preflight = AlibabaPreflight(self.session, now=lambda: self.now)
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
        self._world.world.deny(self.shard.cloud, self.shard.account, operation.partition(":")[2])

    def break_down(self, operation: str) -> None:
        self._world.fault(FaultKind.REFUSED, operation.partition(":")[2], code="InternalError", status=500)

    def refuse_everybody(self) -> None:
        self._world.fault(FaultKind.REFUSED, "GetCallerIdentity", code="InvalidTimeStamp.Expired", status=400)

    def ignore_dry_runs(self, operation: str) -> None:
        self._world.relay.ignored.add(operation.partition(":")[2])


@contextmanager
def alibaba_asked(stand_in: AlibabaStandIn) -> Iterator[AlibabaAsked]:
    with alibaba_world(stand_in) as world:
        asked = AlibabaAsked(world)
        try:
            yield asked
        finally:
            asked.session.close()


@contextmanager
def alibaba_preflight() -> Iterator[Callable[[], AbstractContextManager[Asked]]]:
    """For `PREFLIGHTS`."""
    with alibaba_stand_in() as stand_in:
        yield lambda: alibaba_asked(stand_in)


Hours = Mapping[int, tuple[float, int]]
"""Hour → (largest sample, number of samples)."""


class AlibabaRig:
    """CloudMonitor with points of one's own choosing: what `tests/contract/test_signal_source.py` needs."""

    _METRICS: Mapping[SignalName, tuple[tuple[str, float], ...]] = {
        SignalName.GPU: (("gpu_gpu_usedutilization", 1.0),),
        SignalName.POWER: (("gpu_power_readings_power_draw", 1.0),),
        SignalName.CPU: (("CPUUtilization", 1.0),),
        SignalName.NETWORK: (("IntranetInRate", 6.0), ("IntranetOutRate", 2.0)),  # bits of both ways
    }

    def __init__(self, start: datetime) -> None:
        self._start = start
        self._points: dict[tuple[str, str], list[dict[str, Any]]] = {}
        self._refused = False
        self._made = 0

    def instance(self) -> Instance:
        self._made += 1
        return Instance(
            ref=ResourceRef("alibaba", "1234567890123456", HANGZHOU, "instance", f"i-{self._made}"),
            instance_type="ecs.gn6i-c24g1.24xlarge",
            accelerator=Accelerator(AcceleratorKind.NVIDIA_GPU, "T4", 2),
            state=InstanceState.RUNNING,
            billing=Billing.ON_DEMAND,
            run_epoch="1",
            launched_at=self._start,
        )

    def measured(self, instance: Instance, signal: SignalName, device: str, hours: Hours) -> None:
        for metric, factor in self._METRICS[signal]:
            points = self._points.setdefault((instance.ref.native_id, metric), [])
            for hour, (value, count) in hours.items():
                points += [
                    {
                        "timestamp": int((self._start + hour * HOUR + minute * MINUTE).timestamp() * 1000),
                        "instanceId": instance.ref.native_id,
                        **({"gpuId": device} if device else {}),
                        "Maximum": (value if minute == 0 else min(value, 0.0)) * factor,
                    }
                    for minute in range(count)
                ]

    def source(self, *signals: SignalName) -> AlibabaSignals:
        return AlibabaSignals(self, frozenset(signals))

    def refuse(self) -> None:
        self._refused = True

    def call(self, shard: Shard, service: str, operation: str, /, **parameters: Any) -> Mapping[str, Any]:
        """What `AlibabaSession.call` is to the source."""
        api = f"{service}:{operation}"
        if self._refused:
            message = f"{shard}: {api}: AccessForbidden: no"
            raise AccessDeniedError(message, operation=api, code="AccessForbidden")
        since, until = int(parameters["StartTime"]), int(parameters["EndTime"])
        points = [
            point
            for asked in json.loads(parameters["Dimensions"])
            for point in self._points.get((asked["instanceId"], parameters["MetricName"]), ())
            if since < point["timestamp"] <= until
        ]
        return {"RequestId": "R", "Code": "200", "Datapoints": json.dumps(points)}
