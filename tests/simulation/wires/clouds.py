"""The clouds of a simulation as emulators on a line, and the ports of a process as its providers over that line.

What the oracle is told that a process saw is what the world showed at that moment, never what a provider made of it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from random import Random

from tests.simulation.chronicle import Attempt, Blind, Effect, Listing, Look, Measured
from tests.simulation.clouds import Clouds, FaultyExecutor, FaultyInventory, FaultySignals, failed_read
from tests.simulation.faults import Fault, Port
from tests.simulation.hub import Process, TrueClock
from tests.simulation.oracle.wires import missed, repeated
from tests.simulation.wires.line import CHANGES, Line, Trouble
from tests.simulation.wires.sockets import in_process
from tests.world_ports.translate import to_product
from typing_extensions import Self

from cloudstand.alibaba.emulator import AlibabaEmulator
from cloudstand.aws.emulator import EmbeddedAws
from cloudstand.tencent.emulator import TencentEmulator
from cloudstand.wire.door import WorldDoor
from cloudstand.world.records import Happening, Operation
from costguard.domain.actions import Action, Receipt, Verb
from costguard.domain.errors import AccessDeniedError, ThrottledError, TruncatedReadError, UnavailableError
from costguard.domain.refs import ResourceRef, Shard
from costguard.domain.resources import Instance, InstanceDetail, Inventory
from costguard.domain.signals import SignalName
from costguard.ports import ActionExecutor, Discovery, InventorySource, SignalReport, SignalSource, Target
from costguard.providers.alibaba.compute import instance_types as alibaba_types
from costguard.providers.alibaba.compute.executor import AlibabaExecutor
from costguard.providers.alibaba.compute.metrics import AlibabaSignals
from costguard.providers.alibaba.compute.source import AlibabaInventory
from costguard.providers.alibaba.core.session import RATES as ALIBABA_RATES
from costguard.providers.alibaba.core.session import AlibabaSession
from costguard.providers.aws.compute import instance_types as aws_types
from costguard.providers.aws.compute.executor import AwsExecutor
from costguard.providers.aws.compute.metrics import AwsSignals
from costguard.providers.aws.compute.source import AwsInventory
from costguard.providers.aws.core.session import RATES as AWS_RATES
from costguard.providers.aws.core.session import AwsSession
from costguard.providers.kit.core.credentials import Keys
from costguard.providers.kit.core.pacing import Pacer
from costguard.providers.tencent.compute import instance_types as tencent_types
from costguard.providers.tencent.compute.executor import TencentExecutor
from costguard.providers.tencent.compute.metrics import TencentSignals
from costguard.providers.tencent.compute.source import TencentInventory
from costguard.providers.tencent.core.products import PAGES
from costguard.providers.tencent.core.session import RATES as TENCENT_RATES
from costguard.providers.tencent.core.session import TencentSession

ADDRESSES = {"aws": "127.0.0.1:1", "alibaba": "127.0.0.1:2", "tencent": "127.0.0.1:3"}
"""Nothing listens there: what is sent to them is answered in this process."""

_SIGNALS = frozenset({SignalName.GPU})
_LISTS = frozenset({"DescribeInstances"})
_DONE: Mapping[str, Verb] = {"stop": Verb.STOP, "terminate": Verb.TERMINATE, "create_snapshot": Verb.SNAPSHOT}
_SHORT_PAGES = {name: replace(paging, most=1) if name.startswith("cbs:") else paging for name, paging in PAGES.items()}


class _CloudClock(TrueClock):
    """What the emulators go by."""

    def sleep(self, seconds: float) -> None:
        """No cloud waits.

        Raises:
            AssertionError: one did.
        """
        message = f"an emulator waited for {seconds} s"
        raise AssertionError(message)


def _pacer(rates: Mapping[str, tuple[float, float]]) -> Pacer:
    """Waits in no time: a port's call is one moment here."""
    return Pacer(rates, monotonic=lambda: 0.0, sleep=lambda _: None, chance=lambda: 1.0)


@dataclass(frozen=True, slots=True)
class Provider:
    """One process's ports of one cloud, made as `connections` makes them: a twin of the session acts."""

    inventory: InventorySource
    signals: SignalSource
    executor: ActionExecutor


Connect = Callable[[], Provider]
"""The ports of one process, over the sessions of the whole simulation: those remember nothing that counts."""


@dataclass(slots=True)
class Wires:
    """The emulators of one simulation, from entry to exit."""

    clouds: Clouds
    random: Random
    complain: Callable[[int, str, str], None]
    lines: dict[str, Line] = field(default_factory=dict)
    acting: tuple[Action, Process] | None = None
    ends_unanswered: bool = False
    sent: list[str] = field(default_factory=list)  # changes of the port's call under way
    _open: ExitStack = field(default_factory=ExitStack)
    _making: dict[str, Connect] = field(default_factory=dict)

    def __enter__(self) -> Self:
        """Open them."""
        world = self.clouds.world
        clock = _CloudClock(self.clouds.hub)
        door, now = WorldDoor(world, clock), clock.now
        there = {spec.cloud for spec in world.fleet}
        with ExitStack() as opening:
            if "aws" in there:
                aws = opening.enter_context(EmbeddedAws(world, door, "", "ap-east-1", port=None))
                self._line("aws", aws.server.answer)
                keys = (aws.credentials.access_key_id, aws.credentials.secret_access_key)
                self._making["aws"] = _aws(keys, opening.callback)
            if "alibaba" in there:
                alibaba = opening.enter_context(AlibabaEmulator(door, port=None))
                self._line("alibaba", alibaba.server.answer)
                self._making["alibaba"] = _alibaba(to_product(alibaba.keys), now, opening.callback)
            if "tencent" in there:
                tencent = opening.enter_context(TencentEmulator(door, port=None))
                self._line("tencent", tencent.server.answer)
                self._making["tencent"] = _tencent(to_product(tencent.keys), now, opening.callback)
            opening.enter_context(in_process({ADDRESSES[name]: line for name, line in self.lines.items()}))
            self._open = opening.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        """Close them."""
        self._open.close()

    def connect(self, cloud: str) -> Provider:
        """The provider of one process, with nothing remembered of any other."""
        return self._making[cloud]()

    def _line(self, provider: str, answer: Callable[..., object]) -> None:
        self.lines[provider] = Line(provider, answer, self._sent)  # type: ignore[arg-type]

    def _sent(self, operation: str, trouble: Trouble | None) -> None:
        """A change leaves: it is on its way, whatever comes of it."""
        if self.acting is None:
            self.complain(6, "-", f"{operation} was sent by something that only reads")
            return
        action, process = self.acting
        self.sent.append(operation)
        subject, unanswered = action.subject.native_id, trouble is not None and trouble.unanswered
        attempt = Attempt(self.clouds.hub.now, action.verb, subject, unanswered, process, process.guard)
        self.clouds.watch_attempt(attempt)
        self.clouds.chronicle.attempts.append(attempt)

    @contextmanager
    def troubled(self, cloud: str, trouble: Trouble | None) -> Iterator[None]:
        """This goes wrong on the way to that cloud until the block ends."""
        line = self.lines[cloud]
        line.trouble = trouble
        try:
            yield
        finally:
            line.trouble = None

    def trouble(self, fault: Fault | None, port: Port, cloud: str) -> Trouble | None:
        """What a fault is on the wire; None where it is none of the wire's."""
        if fault is None or fault not in TROUBLES[port]:
            return None
        if cloud == "aws" and port is Port.SIGNALS:
            fault = Fault.LOST  # CloudWatch's refusals are in a protocol of their own
        if port is Port.ACT:
            if fault is not Fault.REFUSED or self.random.random() < 0.5:
                return Trouble(fault, CHANGES)
            return Trouble(Fault.CONFLICT, CHANGES, done=self.random.random() < 0.5)
        lasts = self.random.random() < 0.7
        if port is Port.LISTING:
            return Trouble(fault, _LISTS, lasts=lasts)
        return Trouble(fault, skips=self.random.randrange(4) if port is Port.DETAILS else 0, lasts=lasts)


_TROUBLED_READS = frozenset({Fault.LOST, Fault.THROTTLED, Fault.DENIED, Fault.TRUNCATED})
TROUBLES: Mapping[Port, frozenset[Fault]] = {
    Port.LISTING: _TROUBLED_READS,
    Port.DETAILS: _TROUBLED_READS,
    Port.SIGNALS: _TROUBLED_READS,
    Port.ACT: frozenset({Fault.LOST, Fault.LOST_ANSWER, Fault.THROTTLED, Fault.DENIED, Fault.REFUSED}),
}
"""What can go wrong on the way at each boundary to a cloud."""


def _aws(keys: tuple[str, str], close_later: Callable[[Callable[[], None]], object]) -> Connect:
    session = AwsSession(endpoint_url=f"http://{ADDRESSES['aws']}", keys=keys, pacer=_pacer(AWS_RATES))
    acting, types = session.acting(), aws_types.AwsTypes()
    close_later(session.close)
    close_later(acting.close)

    def connect() -> Provider:
        inventory = AwsInventory(session, catalogue=types)
        return Provider(inventory, AwsSignals(session, _SIGNALS), AwsExecutor(acting))

    return connect


def _alibaba(keys: Keys, now: Callable[[], datetime], close_later: Callable[[Callable[[], None]], object]) -> Connect:
    where = f"http://{ADDRESSES['alibaba']}"
    session = AlibabaSession(keys=keys, endpoint=where, now=now, pacer=_pacer(ALIBABA_RATES))
    acting, types = session.acting(), alibaba_types.AlibabaTypes()
    close_later(session.close)
    close_later(acting.close)

    def connect() -> Provider:
        inventory = AlibabaInventory(session, catalogue=types)
        return Provider(inventory, AlibabaSignals(session, _SIGNALS), AlibabaExecutor(acting))

    return connect


def _tencent(keys: Keys, now: Callable[[], datetime], close_later: Callable[[Callable[[], None]], object]) -> Connect:
    where = f"http://{ADDRESSES['tencent']}"
    session = TencentSession(keys=keys, endpoint=where, now=now, pacer=_pacer(TENCENT_RATES), pages=_SHORT_PAGES)
    acting, types = session.acting(), tencent_types.TencentTypes()
    close_later(session.close)
    close_later(acting.close)

    def connect() -> Provider:
        inventory = TencentInventory(session, catalogue=types)
        return Provider(inventory, TencentSignals(session, _SIGNALS), TencentExecutor(acting))

    return connect


@dataclass(slots=True)
class WireInventory(FaultyInventory):
    """`InventorySource` over a provider."""

    wires: Wires
    provider: Provider
    cloud: str

    def discover(self, target: Target) -> Discovery:
        """The shards of a target."""

        def do(fault: Fault | None) -> Discovery:
            try:
                failed_read(fault, "discover")
                return self.provider.inventory.discover(target)
            except (AccessDeniedError, ThrottledError, TruncatedReadError, UnavailableError):
                blind = Blind(self.process, self.clouds.hub.calls, target.cloud)
                self.clouds.chronicle.blind.append(blind)
                raise

        return self.call(Port.LISTING, "discover", target.cloud, do)

    def _read(self, shard: Shard, fault: Fault | None) -> Inventory:
        clouds, hub = self.clouds, self.clouds.hub
        trouble = self.wires.trouble(fault, Port.LISTING, shard.cloud)
        if fault is Fault.DENIED and shard.provider == "alibaba":
            with _denied(self.clouds, shard):  # an empty list, and no error
                inventory = self.provider.inventory.read(shard)
            hidden = True
        else:
            with self.wires.troubled(shard.cloud, trouble):
                inventory = self.provider.inventory.read(shard)
            hidden = trouble is not None and trouble.hid_something
        there = () if hidden else clouds.inventory.read(shard).instances
        shown = {instance.ref.native_id: instance for instance in there}
        entry = Listing(self.process, hub.calls, hub.now, not hidden, shown)
        clouds.chronicle.listings.setdefault(shard, []).append(entry)
        return inventory

    def _details(self, refs: Sequence[ResourceRef], fault: Fault | None) -> Mapping[ResourceRef, InstanceDetail]:
        clouds, hub = self.clouds, self.clouds.hub
        with self.wires.troubled(self.cloud, self.wires.trouble(fault, Port.DETAILS, self.cloud)):
            found = self.provider.inventory.details(refs)
        machines = {ref.native_id: clouds.world.machines[ref.native_id].ref for ref in refs}
        truth = clouds.whole(to_product([*machines.values()]))
        for native_id, ref in machines.items():
            look = Look(self.process, hub.calls, hub.now, hub.now, self.process.of_task[0], truth.get(to_product(ref)))
            clouds.chronicle.looks.setdefault(native_id, []).append(look)
        return found

    def protections(self, ref: ResourceRef, wanted: Collection[str]) -> tuple[str, ...]:
        """The protections of one machine that the close look leaves out; what the world has is what was to be seen."""

        def do(fault: Fault | None) -> tuple[str, ...]:
            with self.wires.troubled(self.cloud, self.wires.trouble(fault, Port.DETAILS, self.cloud)):
                found = self.provider.inventory.protections(ref, wanted)
            self.note_protections(to_product(self.clouds.world.machines[ref.native_id].ref))
            return found

        return self.call(Port.DETAILS, "protections", ref.native_id, do)


@contextmanager
def _denied(clouds: Clouds, shard: Shard) -> Iterator[None]:
    clouds.world.deny(shard.cloud, shard.account, Operation.LIST)
    try:
        yield
    finally:
        clouds.world.allow(shard.cloud, shard.account, Operation.LIST)


@dataclass(slots=True)
class WireSignals(FaultySignals):
    """`SignalSource` over a provider."""

    wires: Wires
    provider: Provider
    cloud: str

    def read(self, instances: Sequence[Instance], since: datetime, until: datetime) -> SignalReport:
        """How busy these machines were."""
        subject = ",".join(instance.ref.native_id for instance in instances)

        def do(fault: Fault | None) -> SignalReport:
            trouble = self.wires.trouble(fault, Port.SIGNALS, self.cloud)
            with self.wires.troubled(self.cloud, trouble):
                report = self.provider.signals.read(instances, since, until)
            hub = self.clouds.hub
            whole = trouble is None or not trouble.hid_something
            for instance in instances:
                entry = Measured(self.process, hub.calls, hub.now, min(until, hub.now), whole)
                self.clouds.chronicle.measured.setdefault(instance.ref.native_id, []).append(entry)
            return report

        return self.call(Port.SIGNALS, "signals", subject, do)


@dataclass(slots=True)
class WireExecutor(FaultyExecutor):
    """`ActionExecutor` over a provider; an effect is what the world says that it did."""

    wires: Wires
    provider: Provider
    cloud: str

    def _execute(self, action: Action, fault: Fault | None) -> Receipt:
        world, wires = self.clouds.world, self.wires
        world.tick(self.clouds.hub.now)
        before = len(world.history)
        wires.acting, wires.sent = (action, self.process), []
        receipt: Receipt | None = None
        try:
            with wires.troubled(self.cloud, self._trouble(action, fault)):
                receipt = self.provider.executor.execute(action)
        finally:
            wires.acting = None
            for what in (repeated(wires.sent), missed(action, world.history[before:], world.snapshots)):
                if what:
                    wires.complain(6, action.subject.native_id, f"{action.verb.value}: {what}")
            self._note_effects(action, before, accepted=receipt is not None)
        return receipt

    def _trouble(self, action: Action, fault: Fault | None) -> Trouble | None:
        if action.verb is Verb.TERMINATE and self.wires.ends_unanswered:
            return Trouble(Fault.LOST_ANSWER, CHANGES)
        return self.wires.trouble(fault, Port.ACT, self.cloud)

    def _note_effects(self, action: Action, before: int, *, accepted: bool) -> None:
        """Everything that the world did meanwhile was asked for by this call, and is of our doing."""
        world, done = self.clouds.world, False
        for place in range(before, len(world.history)):
            if world.history[place].by == "api":
                world.history[place] = replace(world.history[place], by="costguard")
        for happening in world.history[before:]:
            if happening.by == "costguard" and happening.what in _DONE:
                if happening.what == "create_snapshot":
                    world.snapshots[happening.native_id].decision_id = action.decision_id
                if not (done and action.copies):  # a set is one effect
                    self._note_one(action, happening)
                done = True
        if accepted and not done:
            self._note(action, changed=False)

    def _note_one(self, action: Action, happening: Happening) -> None:
        hub, process, resource = self.clouds.hub, self.process, happening.native_id
        if happening.what == "create_snapshot":
            volume = self.clouds.world.snapshots[happening.native_id].volume
            resource = happening.machine if action.copies else volume
        effect = Effect(
            process,
            hub.calls,
            hub.now,
            _DONE[happening.what],
            happening.machine,
            resource,
            action.action_id,
            action.decision_id,
            *process.of_task,
            changed=True,
            intent_written=action.action_id in self.clouds.shelf.intents,
            task=process.task,
        )
        self.clouds.chronicle.effects.append(effect)
        self.clouds.watch(effect)
