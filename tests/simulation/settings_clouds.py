"""Keys and networks of the clouds over one world, with everything that can go wrong between it and a process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Protocol

from tests.simulation.clouds import STALE_FOR, Clouds, failed_read
from tests.simulation.faults import Fault, Port
from tests.simulation.hub import Process, TrueClock
from tests.simulation.settings_chronicle import Book, Call, Done, Intended, KeysShown, NetworkShown
from tests.world_ports.keys import WorldKeys, WorldRotator
from tests.world_ports.networks import WorldNetworkRemediator, WorldNetworks
from tests.world_ports.translate import to_product, to_world

from costguard.domain.actions import Receipt
from costguard.domain.errors import (
    AccessDeniedError,
    OutcomeUnknownError,
    ProviderError,
    RefusedError,
    ThrottledError,
    TruncatedReadError,
)
from costguard.domain.keys import EncryptionKey, KeyInventory
from costguard.domain.network import NetworkInventory
from costguard.domain.refs import ResourceRef, Shard
from costguard.domain.remediations import Remediation
from costguard.domain.resources import Gap, GapKind

_JUST_BEFORE = timedelta(microseconds=1)
_LOSABLE = ("groups", "interfaces", "addresses", "routes")
_FIELDS = {"groups": "groups", "interfaces": "interfaces", "addresses": "addresses", "routes": "route_tables"}


class Watch(Protocol):
    """Who judges calls."""

    def attempted(self, call: Call) -> None:
        """It is on its way, whatever becomes of it."""

    def changed(self, call: Call) -> None:
        """It took effect."""


class Settings:
    """Keys and networks as every process shares them."""

    def __init__(self, clouds: Clouds, book: Book, watch: Watch) -> None:
        clock = TrueClock(clouds.hub)
        self.clouds = clouds
        self.book = book
        self.watch = watch
        self.keys = WorldKeys(clouds.world, clock)
        self.rotator = WorldRotator(clouds.world, clock)
        self.networks = WorldNetworks(clouds.world, clock)
        self.remediator = WorldNetworkRemediator(clouds.world, clock)
        self.old_keys: dict[Shard, tuple[datetime, KeyInventory]] = {}
        self.old_networks: dict[Shard, tuple[datetime, NetworkInventory]] = {}

    def remember(self, shard: Shard, by: str) -> None:
        """Keep how a shard looks now, for stale reads after it changes, and that somebody changes it."""
        hub = self.clouds.hub
        self.old_keys[shard] = (hub.now, self.keys.read(shard))
        self.old_networks[shard] = (hub.now, self.networks.read(shard))
        self.book.done.append(Done(hub.calls, hub.now, by, shard))


class _Seat:
    """One process before the clouds."""

    def __init__(self, settings: Settings, process: Process) -> None:
        self.settings = settings
        self.process = process
        self.hub = settings.clouds.hub
        self.book = settings.book


class FaultyKeys(_Seat):
    """`KeySource`."""

    def read(self, shard: Shard) -> KeyInventory:
        """Every key of the shard, in a few pages."""
        return self.hub.call(self.process, Port.LISTING, "keys", str(shard), lambda fault: self._read(shard, fault))

    def look(self, ref: ResourceRef) -> EncryptionKey | None:
        """One key as it is now."""

        def do(fault: Fault | None) -> EncryptionKey | None:
            failed_read(fault, "key")
            if fault is Fault.TRUNCATED:
                raise TruncatedReadError("the pages ended early", operation="key")
            shown, as_of = self._now(ref.shard, fault)
            keys = {key.ref: key for key in shown.keys if key.ref == ref and fault is not Fault.MISSING}
            self._note(ref.shard, keys, as_of, complete=True, closely=True)
            return keys.get(ref)

        return self.hub.call(self.process, Port.DETAILS, "key", ref.native_id, do)

    def _read(self, shard: Shard, fault: Fault | None) -> KeyInventory:
        try:
            failed_read(fault, "keys")
        except ProviderError:
            self._note(shard, {}, self.hub.now, complete=False)
            raise
        shown, as_of = self._now(shard, fault)
        if fault is Fault.TRUNCATED:
            kept = shown.keys[: len(shown.keys) // 2]
            shown = replace(shown, keys=kept, gaps=(Gap(shard, "inventory", GapKind.TRUNCATED, "the pages ended"),))
        elif fault is Fault.MISSING:
            shown = replace(shown, keys=shown.keys[1:])
        whole, faithful = not shown.gaps, fault not in {Fault.MISSING, Fault.STALE}
        self._note(shard, {key.ref: key for key in shown.keys}, as_of, complete=whole, faithful=faithful)
        return shown

    def _now(self, shard: Shard, fault: Fault | None) -> tuple[KeyInventory, datetime]:
        known = self.settings.old_keys.get(shard)
        if fault is Fault.STALE and known is not None and self.hub.now - known[0] <= STALE_FOR:
            return known[1], known[0] - _JUST_BEFORE
        return self.settings.keys.read(shard), self.hub.now

    def _note(
        self,
        shard: Shard,
        keys: Mapping[ResourceRef, EncryptionKey],
        as_of: datetime,
        *,
        complete: bool,
        closely: bool = False,
        faithful: bool = True,
    ) -> None:
        hub, process = self.hub, self.process
        self.book.keys.append(
            KeysShown(process, hub.calls, hub.now, as_of, process.writes, shard, complete, keys, closely, faithful)
        )


class FaultyNetworks(_Seat):
    """`NetworkSource`."""

    def read(self, shard: Shard) -> NetworkInventory:
        """Everything of the shard."""
        return self.hub.call(self.process, Port.LISTING, "network", str(shard), lambda fault: self._read(shard, fault))

    def _read(self, shard: Shard, fault: Fault | None) -> NetworkInventory:
        try:
            failed_read(fault, "network")
        except ProviderError:
            self._note(shard, None, self.hub.now, complete=False, faithful=False)
            raise
        shown, as_of = self.settings.networks.read(shard), self.hub.now
        known = self.settings.old_networks.get(shard)
        if fault is Fault.STALE and known is not None and self.hub.now - known[0] <= STALE_FOR:
            shown, as_of = known[1], known[0] - _JUST_BEFORE
        elif fault is Fault.TRUNCATED:
            part = _LOSABLE[self.hub.calls % len(_LOSABLE)]
            field = _FIELDS[part]
            kept = getattr(shown, field)[::2]
            gap = Gap(shard, part, GapKind.TRUNCATED, "the pages ended early")
            shown = replace(shown, gaps=(*shown.gaps, gap), **{field: kept})
        elif fault is Fault.MISSING:
            shown = replace(shown, addresses=shown.addresses[1:])
        faithful = fault not in {Fault.MISSING, Fault.STALE}
        self._note(shard, shown, as_of, complete=not shown.gaps, faithful=faithful)
        return shown

    def _note(
        self, shard: Shard, network: NetworkInventory | None, as_of: datetime, *, complete: bool, faithful: bool
    ) -> None:
        hub, process = self.hub, self.process
        self.book.networks.append(
            NetworkShown(process, hub.calls, hub.now, as_of, process.writes, shard, complete, network, faithful)
        )


class FaultyRotator(_Seat):
    """`KeyRotator`: it has no other method, and neither has the world's."""

    def set_period(self, key: EncryptionKey, days: int) -> Receipt:
        """Automatic rotation with this period."""
        inner = self.settings.rotator
        return _called(self, "set_rotation", key.ref, {"days": str(days)}, lambda: inner.set_period(key, days))

    def rotate(self, key: EncryptionKey) -> Receipt:
        """New material now."""
        return _called(self, "rotate_key", key.ref, {}, lambda: self.settings.rotator.rotate(key))


class FaultyRemediator(_Seat):
    """`NetworkRemediator`."""

    def change(self, mend: Remediation, before: Mapping[str, str]) -> Receipt:
        """One change."""
        inner = self.settings.remediator
        return _called(self, mend.kind.value, mend.subject, mend.parameters, lambda: inner.change(mend, before))


def _called(
    seat: _Seat, kind: str, subject: ResourceRef, said: Mapping[str, str], send: Callable[[], Receipt]
) -> Receipt:
    return seat.hub.call(
        seat.process,
        Port.ACT,
        kind,
        subject.native_id,
        lambda fault: _sent(seat, fault, kind, subject, said, send),
    )


def _sent(
    seat: _Seat,
    fault: Fault | None,
    kind: str,
    subject: ResourceRef,
    said: Mapping[str, str],
    send: Callable[[], Receipt],
) -> Receipt:
    settings, hub, process = seat.settings, seat.hub, seat.process
    world, operation = settings.clouds.world, f"{subject.cloud}:{kind}"
    world.tick(hub.now)
    intent = _intent(seat.book, process, kind, subject)
    call = Call(process, hub.calls, hub.now, kind, subject, said, process.writes, process.last_write, intent)
    call.unanswered = fault in {Fault.LOST, Fault.LOST_ANSWER}
    settings.watch.attempted(call)
    seat.book.calls.append(call)
    if fault is Fault.LOST:
        raise OutcomeUnknownError("no answer", operation=operation)
    if fault in {Fault.THROTTLED, Fault.DENIED, Fault.REFUSED}:
        call.refused = True
        errors = {Fault.THROTTLED: ThrottledError, Fault.DENIED: AccessDeniedError, Fault.REFUSED: RefusedError}
        raise errors[fault]("not now", operation=operation)
    settings.remember(subject.shard, "costguard")
    before, v1 = to_product(world.networks.of(to_world(subject.shard))), world.networks.imds_v1.get(to_world(subject))
    try:
        receipt = send()
    except ProviderError:
        call.refused = True
        raise
    call.network = (before, to_product(world.networks.of(to_world(subject.shard))))
    call.imds_v1 = (v1, world.networks.imds_v1.get(to_world(subject)))
    call.changed = True
    settings.watch.changed(call)
    if fault is Fault.LOST_ANSWER:
        raise OutcomeUnknownError("the answer was lost", operation=operation)
    return receipt


def _intent(book: Book, process: Process, kind: str, subject: ResourceRef) -> Intended | None:
    """What the process wrote last, if that is the intent for this very call."""
    found = next((one for one in reversed(book.intents) if one.process is process), None)
    if found is None or found.number != process.last_write:
        return None
    mend = found.action.mend
    return found if mend is not None and (mend.kind.value, mend.subject) == (kind, subject) else None
