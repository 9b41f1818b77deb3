"""The keys of a world: as they are, and as automatic rotation moves them while time passes.

What each vendor allows lives in its wire; here everything is possible that is asked for.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from costguard.domain.keys import KeyManager, KeyOrigin, KeyState, KeyUsage, MultiRegion
from costguard.domain.refs import ResourceRef, Shard
from costguard.sandbox.world.records import Refusal, WorldRefusalError

_DAY = timedelta(days=1)


@dataclass(slots=True)
class WorldKey:
    """One key.

    `rotations` are the times at which it got new material, oldest first; `on_demand` those of them asked for.
    `instance` is the vendor's key store or instance it belongs to, `hardware` whether its material lives in a module;
    `period_since`: when the period was set, before which no rotation falls due. `add_on`: the account has bought what
    automatic rotation of such keys takes.
    """

    ref: ResourceRef
    spec: str
    created_at: datetime
    usage: KeyUsage = KeyUsage.ENCRYPT
    origin: KeyOrigin = KeyOrigin.CLOUD
    state: KeyState = KeyState.ENABLED
    manager: KeyManager = KeyManager.CUSTOMER
    aliases: list[str] = field(default_factory=list)
    is_default: bool = False
    multi_region: MultiRegion = MultiRegion.NONE
    primary: ResourceRef | None = None
    period_days: int | None = None
    period_since: datetime | None = None
    rotations: list[datetime] = field(default_factory=list)
    on_demand: list[datetime] = field(default_factory=list)
    deletes_at: datetime | None = None
    tags: dict[str, str] = field(default_factory=dict)
    instance: str = ""
    hardware: bool = False
    add_on: bool = False
    service: str = ""

    @property
    def next_at(self) -> datetime | None:
        """When it rotates by itself; None where automatic rotation is off."""
        if self.period_days is None:
            return None
        last = self.rotations[-1] if self.rotations else self.created_at
        due = last + self.period_days * _DAY
        return due if self.period_since is None else max(due, self.period_since)


class Keys:
    """All keys of a world, and all that was done to them."""

    def __init__(self, keys: Iterable[WorldKey] = ()) -> None:
        self._keys: dict[ResourceRef, WorldKey] = {key.ref: key for key in keys}
        self.history: list[tuple[datetime, str, str, ResourceRef]] = []

    def add(self, key: WorldKey) -> WorldKey:
        """One more key."""
        self._keys[key.ref] = key
        return key

    def tick(self, now: datetime) -> None:
        """Let automatic rotation happen up to `now`; disabled keys wait."""
        for key in self._keys.values():
            due = key.next_at
            while due is not None and due <= now and key.state is KeyState.ENABLED:
                key.rotations.append(due)
                self.history.append((due, "cloud", "rotated", key.ref))
                due = key.next_at

    def of(self, shard: Shard) -> list[WorldKey]:
        """The keys of a shard, oldest first."""
        found = [key for key in self._keys.values() if key.ref.shard == shard]
        return sorted(found, key=lambda key: (key.created_at, key.ref))

    def get(self, ref: ResourceRef) -> WorldKey:
        """One key.

        Raises:
            WorldRefusalError: NOT_FOUND.
        """
        key = self._keys.get(ref)
        if key is None:
            raise WorldRefusalError(Refusal.NOT_FOUND, ref.native_id)
        return key

    def set_period(self, ref: ResourceRef, days: int | None, now: datetime, by: str) -> None:
        """Automatic rotation from now on with this period; None turns it off.

        Raises:
            WorldRefusalError: NOT_FOUND.
        """
        key = self.get(ref)
        key.period_days, key.period_since = days, now
        self.history.append((now, by, f"period {days}", ref))

    def rotate(self, ref: ResourceRef, now: datetime, by: str) -> None:
        """New material now.

        Raises:
            WorldRefusalError: NOT_FOUND, or WRONG_STATE where the key is not enabled.
        """
        key = self.get(ref)
        if key.state is not KeyState.ENABLED:
            raise WorldRefusalError(Refusal.WRONG_STATE, ref.native_id)
        key.rotations.append(now)
        key.on_demand.append(now)
        self.history.append((now, by, "rotated on demand", ref))
