"""The read and act ports of the clouds over one world, with everything that can go wrong between it and a process."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TypeVar

from tests.simulation.chronicle import Attempt, BillRead, Blind, Chronicle, Effect, Listing, Look, Measured
from tests.simulation.faults import Fault, Port
from tests.simulation.hub import Hub, Process, TrueClock
from tests.simulation.store import Shelf
from tests.world_ports.inventory import WorldExecutor, WorldInventory, WorldPrices, WorldSignals
from tests.world_ports.spend import WorldSpend

from cloudstand.world.billing import billed_until
from cloudstand.world.cloud import World
from cloudstand.world.vendors import vendor_of
from costguard.domain.actions import Action, Receipt
from costguard.domain.errors import (
    AccessDeniedError,
    OutcomeUnknownError,
    RefusedError,
    ThrottledError,
    TruncatedReadError,
    UnavailableError,
)
from costguard.domain.money import HourlyRate, Money, SpendReport, SpendScope, VendorBudget
from costguard.domain.refs import ResourceRef, Shard
from costguard.domain.resources import Gap, GapKind, Instance, InstanceDetail, InstanceState, Inventory, Volume
from costguard.guards.rules.common import STOP, TERMINATION
from costguard.ports import Discovery, SignalReport, Target

_Result = TypeVar("_Result")
_JUST_BEFORE = timedelta(microseconds=1)  # what is remembered was true before the owner's act of that moment
BILL_STALE_FOR = timedelta(hours=20)  # an older edition of a bill, from a server that has not heard of the new one
STALE_FOR = timedelta(minutes=2)  # how far behind a read may be; far less than the hour a claim has to show its effect


class Clouds:
    """The clouds as every process shares them; `watch` is told of every effect."""

    def __init__(
        self, hub: Hub, world: World, chronicle: Chronicle, shelf: Shelf, watch: Callable[[Effect], None]
    ) -> None:
        clock = TrueClock(hub)
        self.hub = hub
        self.world = world
        self.chronicle = chronicle
        self.shelf = shelf
        self.watch = watch
        self.shown: dict[ResourceRef, tuple[datetime, InstanceDetail]] = {}
        self.listed: dict[Shard, tuple[datetime, Inventory]] = {}
        self.inventory = WorldInventory(world, clock)
        self.signals = WorldSignals(world, clock)
        self.prices = WorldPrices(world)
        self.executor = WorldExecutor(world, clock)
        self.spend = WorldSpend(world, clock)
        self.bill_stands: dict[str, datetime] = {}  # by cloud: up to when its bill is shown, though time goes on
        self.watch_attempt: Callable[[Attempt], None] = _unwatched

    def whole(self, refs: Sequence[ResourceRef]) -> dict[ResourceRef, InstanceDetail]:
        """All that there is to be seen of these machines: what the close look leaves out as well, asked for or not."""
        found = self.inventory.details(refs)
        machines = self.world.machines
        return {
            ref: replace(one, protected_by=tuple(sorted(machines[ref.native_id].protections)), unread_protections=())
            for ref, one in found.items()
        }

    def remember(self, ref: ResourceRef) -> None:
        """Keep how a machine looks now, for stale reads after it changes."""
        detail = self.whole([ref]).get(ref)
        if detail is not None:
            self.shown[ref] = (self.hub.now, detail)
            listing = self.inventory.read(ref.shard)
            self.listed[ref.shard] = (self.hub.now, listing)


def failed_read(fault: Fault | None, operation: str) -> None:
    """Raise what a read raises that a fault struck.

    Raises:
        UnavailableError: no answer.
        ThrottledError: too many calls.
        AccessDeniedError: not allowed.
        TruncatedReadError: a page token came twice.
    """
    if fault is Fault.LOST:
        raise UnavailableError("no answer", operation=operation)
    if fault is Fault.THROTTLED:
        raise ThrottledError("slow down", operation=operation)
    if fault is Fault.DENIED:
        raise AccessDeniedError("not allowed", operation=operation)
    if fault is Fault.REPEATING_TOKEN:
        raise TruncatedReadError("the page token came twice", operation=operation)


@dataclass(slots=True)
class Reader:
    """One process's view: `InventorySource`, `SignalSource` and `PriceSource` at once are three small adapters."""

    clouds: Clouds
    process: Process

    def call(self, port: Port, what: str, subject: str, do: Callable[[Fault | None], _Result]) -> _Result:
        """Pass the boundary to a cloud."""
        return self.clouds.hub.call(self.process, port, what, subject, do)


class FaultyInventory(Reader):
    """`InventorySource`."""

    def discover(self, target: Target) -> Discovery:
        """The shards of a target."""

        def do(fault: Fault | None) -> Discovery:
            try:
                failed_read(fault, "discover")
            except (AccessDeniedError, ThrottledError, TruncatedReadError, UnavailableError):
                blind = Blind(self.process, self.clouds.hub.calls, target.cloud)
                self.clouds.chronicle.blind.append(blind)
                raise
            return self.clouds.inventory.discover(target)

        return self.call(Port.LISTING, "discover", target.cloud, do)

    def read(self, shard: Shard) -> Inventory:
        """The machines of a shard, in a few pages."""
        return self.call(Port.LISTING, "list", str(shard), lambda fault: self._read(shard, fault))

    def _read(self, shard: Shard, fault: Fault | None) -> Inventory:
        clouds, now = self.clouds, self.clouds.hub.now
        if fault is Fault.DENIED and shard.provider == "alibaba":
            return self._noted(shard, self._denied_empty(shard))
        try:
            failed_read(fault, "list")
        except (AccessDeniedError, ThrottledError, TruncatedReadError, UnavailableError):
            self._noted(shard, Inventory(shard, (), (_gap(shard),)))
            raise
        inventory = clouds.inventory.read(shard)
        faithful = fault not in {Fault.STALE, Fault.MISSING}
        if fault is Fault.STALE and shard in clouds.listed and now - clouds.listed[shard][0] <= STALE_FOR:
            inventory = clouds.listed[shard][1]
        elif fault is Fault.TRUNCATED:
            kept = inventory.instances[: max(1, len(inventory.instances) // 2)]
            inventory = replace(inventory, instances=kept, gaps=(*inventory.gaps, _gap(shard)))
        elif fault is Fault.DUPLICATED:
            inventory = replace(inventory, instances=(*inventory.instances, *inventory.instances))
        elif fault is Fault.MISSING:
            inventory = replace(inventory, instances=inventory.instances[1:])
        return self._noted(shard, inventory, faithful=faithful)

    def _denied_empty(self, shard: Shard) -> Inventory:
        self.clouds.world.deny(shard.cloud, shard.account, "DescribeInstances")
        try:
            return self.clouds.inventory.read(shard)
        finally:
            self.clouds.world.allow(shard.cloud, shard.account, "DescribeInstances")

    def _noted(self, shard: Shard, inventory: Inventory, *, faithful: bool = True) -> Inventory:
        shown = {instance.ref.native_id: instance for instance in inventory.instances}
        hub = self.clouds.hub
        entry = Listing(self.process, hub.calls, hub.now, inventory.complete, shown, faithful)
        self.clouds.chronicle.listings.setdefault(shard, []).append(entry)
        return inventory

    def details(self, refs: Sequence[ResourceRef]) -> Mapping[ResourceRef, InstanceDetail]:
        """A close look at these machines."""
        subject = ",".join(ref.native_id for ref in refs)
        return self.call(Port.DETAILS, "details", subject, lambda fault: self._details(refs, fault))

    def _details(self, refs: Sequence[ResourceRef], fault: Fault | None) -> Mapping[ResourceRef, InstanceDetail]:
        clouds, hub = self.clouds, self.clouds.hub
        failed_read(fault, "details")
        if fault is Fault.TRUNCATED:
            raise TruncatedReadError("the pages ended early", operation="details")
        found = clouds.whole(refs)
        if fault is Fault.MISSING and found:
            del found[max(found)]
        as_of = dict.fromkeys(refs, hub.now)
        if fault is Fault.STALE:
            for ref in refs:
                if ref in clouds.shown and hub.now - clouds.shown[ref][0] <= STALE_FOR:
                    remembered, found[ref] = clouds.shown[ref]
                    as_of[ref] = remembered - _JUST_BEFORE
        for ref in refs:
            look = Look(self.process, hub.calls, hub.now, as_of[ref], self.process.of_task[0], found.get(ref))
            clouds.chronicle.looks.setdefault(ref.native_id, []).append(look)
        return {ref: _as_listed(one) for ref, one in found.items()}

    def protections(self, ref: ResourceRef, wanted: Collection[str]) -> tuple[str, ...]:
        """The protections of one machine that the close look leaves out."""

        def do(fault: Fault | None) -> tuple[str, ...]:
            failed_read(fault, "protections")
            if fault is Fault.TRUNCATED:
                raise TruncatedReadError("the answer ended early", operation="protections")
            found = self.clouds.inventory.protections(ref, wanted)
            self.note_protections(ref)
            return found

        return self.call(Port.DETAILS, "protections", ref.native_id, do)

    def note_protections(self, ref: ResourceRef) -> None:
        """From now on the close look of this process is one with what protects the machine now, asked for or not."""
        looks = self.clouds.chronicle.looks.get(ref.native_id, [])
        mine = next((look for look in reversed(looks) if look.process is self.process), None)
        now = self.clouds.whole([ref]).get(ref)
        if mine is not None and mine.shown is not None and now is not None:
            shown = replace(mine.shown, protected_by=now.protected_by)
            looks.append(replace(mine, shown=shown))


def _as_listed(detail: InstanceDetail) -> InstanceDetail:
    if vendor_of(detail.instance.ref.cloud).lists_protection:
        return detail
    gone = detail.instance.state is InstanceState.TERMINATED
    return replace(detail, protected_by=(), unread_protections=() if gone else (TERMINATION, STOP))


class FaultySignals(Reader):
    """`SignalSource`."""

    def read(self, instances: Sequence[Instance], since: datetime, until: datetime) -> SignalReport:
        """How busy these machines were."""
        subject = ",".join(instance.ref.native_id for instance in instances)

        def do(fault: Fault | None) -> SignalReport:
            failed_read(fault, "signals")
            whole = self.clouds.signals.read(instances, since, until)
            lost: frozenset[ResourceRef] = frozenset()
            if fault in {Fault.MISSING, Fault.TRUNCATED}:
                lost = frozenset(instance.ref for instance in instances[:1])
                gaps = () if fault is Fault.MISSING else (_gap(instances[0].ref.shard, "signals"),)
                whole = SignalReport({ref: r for ref, r in whole.readings.items() if ref not in lost}, gaps)
            hub = self.clouds.hub
            shown_to = min(until, hub.now)
            for instance in instances:
                entry = Measured(self.process, hub.calls, hub.now, shown_to, instance.ref not in lost)
                self.clouds.chronicle.measured.setdefault(instance.ref.native_id, []).append(entry)
            return whole

        return self.call(Port.SIGNALS, "signals", subject, do)


class FaultyPrices(Reader):
    """`PriceSource`; only the list prices are asked from a cloud, the rest is a table."""

    def rates(self, instances: Sequence[Instance]) -> Mapping[ResourceRef, HourlyRate]:
        """Hourly prices."""

        def do(fault: Fault | None) -> Mapping[ResourceRef, HourlyRate]:
            failed_read(fault, "prices")
            found = self.clouds.prices.rates(instances)
            return {} if fault is Fault.MISSING else found

        return self.call(Port.PRICES, "prices", str(len(instances)), do)

    def kept_hourly(self, detail: InstanceDetail) -> Sequence[tuple[str, Money | None]]:
        """What goes on billing."""
        return self.clouds.prices.kept_hourly(detail)

    def snapshot_hourly(self, volume: Volume) -> Money | None:
        """What a copy costs."""
        return self.clouds.prices.snapshot_hourly(volume)


class FaultySpend(Reader):
    """`SpendSource`."""

    def read(
        self, target: Target, scopes: Sequence[SpendScope], since: datetime, until: datetime
    ) -> Mapping[SpendScope, SpendReport]:
        """The bill of one cloud, as late as it is."""

        def do(fault: Fault | None) -> Mapping[SpendScope, SpendReport]:
            try:
                failed_read(fault, "bill")
                reports = self._shown(target, scopes, since, until, fault)
            except (AccessDeniedError, ThrottledError, TruncatedReadError, UnavailableError):
                self._note_bill(target, scopes, None)
                raise
            if fault is Fault.TRUNCATED:
                self._note_bill(target, scopes, None)
                gap = _gap(Shard(target.cloud, target.account), "bill")
                return {scope: replace(one, lines=one.lines[::2], gaps=(gap,)) for scope, one in reports.items()}
            shown = next(iter(reports.values())).complete_until
            self._note_bill(target, scopes, shown)
            return reports

        return self.call(Port.BILLS, "bill", target.cloud, do)

    def budgets(self, target: Target) -> Sequence[VendorBudget]:
        """None: nobody set one up in a console."""
        del target
        return ()

    def _shown(
        self, target: Target, scopes: Sequence[SpendScope], since: datetime, until: datetime, fault: Fault | None
    ) -> Mapping[SpendScope, SpendReport]:
        clouds, now = self.clouds, self.clouds.hub.now
        up_to = min(billed_until(target.cloud, now), clouds.bill_stands.get(target.cloud, now))
        if fault is Fault.STALE:
            up_to = min(up_to, billed_until(target.cloud, now - BILL_STALE_FOR))
        began = (machine.runs[0][0] for machine in clouds.world.machines.values())
        midnight = min(began, default=now).replace(hour=0, minute=0, second=0, microsecond=0)
        reports = clouds.spend.read(target, scopes, max(since, midnight), min(until, up_to))
        return {scope: replace(one, complete_until=up_to) for scope, one in reports.items()}

    def _note_bill(self, target: Target, scopes: Sequence[SpendScope], until: datetime | None) -> None:
        hub = self.clouds.hub
        entry = BillRead(self.process, hub.calls, hub.now, target.cloud, tuple(scopes), until)
        self.clouds.chronicle.bills.append(entry)


class FaultyExecutor(Reader):
    """`ActionExecutor`."""

    def execute(self, action: Action) -> Receipt:
        """Send one change to a cloud."""
        subject = f"{action.verb.value} {action.resource.native_id}"
        return self.call(Port.ACT, "execute", subject, lambda fault: self._execute(action, fault))

    def _execute(self, action: Action, fault: Fault | None) -> Receipt:
        operation = f"{action.subject.cloud}:{action.verb.value}"
        unanswered = fault in {Fault.LOST, Fault.LOST_ANSWER}
        now, machine = self.clouds.hub.now, action.subject.native_id
        attempt = Attempt(now, action.verb, machine, unanswered, self.process, self.process.guard)
        self.clouds.watch_attempt(attempt)
        self.clouds.chronicle.attempts.append(attempt)
        if fault is Fault.LOST:
            raise OutcomeUnknownError("no answer", operation=operation)
        if fault is Fault.THROTTLED:
            raise ThrottledError("slow down", operation=operation)
        if fault is Fault.DENIED:
            raise AccessDeniedError("not allowed", operation=operation)
        if fault is Fault.REFUSED:
            raise RefusedError("not now", operation=operation)
        self.clouds.remember(action.subject)
        before = self.clouds.world.revision
        receipt = self.clouds.executor.execute(action)
        self._note(action, changed=self.clouds.world.revision != before)
        if fault is Fault.LOST_ANSWER:
            raise OutcomeUnknownError("the answer was lost", operation=operation)
        return receipt

    def _note(self, action: Action, *, changed: bool) -> None:
        hub, chronicle, process = self.clouds.hub, self.clouds.chronicle, self.process
        effect = Effect(
            process,
            hub.calls,
            hub.now,
            action.verb,
            action.subject.native_id,
            action.resource.native_id,
            action.action_id,
            action.decision_id,
            *process.of_task,
            changed,
            action.action_id in self.clouds.shelf.intents,
            process.task,
        )
        chronicle.effects.append(effect)
        self.clouds.watch(effect)


def _gap(shard: Shard, what: str = "inventory") -> Gap:
    return Gap(shard, what, GapKind.TRUNCATED, "the pages ended early")


def _unwatched(attempt: Attempt) -> None:
    del attempt
