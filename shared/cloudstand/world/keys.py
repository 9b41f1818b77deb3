"""The keys of a world: as they are, and as automatic rotation moves them while time passes.

What each vendor allows lives in its wire; here everything is possible that is asked for.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum

from cloudstand.world.places import Place, Ref
from cloudstand.world.records import Refusal, WorldRefusalError

_DAY = timedelta(days=1)
_ALIAS, _SEAL = "alias/", b"|"


class KeyState(str, Enum):
    """Where a key is in its life."""

    ENABLED = "enabled"
    DISABLED = "disabled"
    PENDING_DELETION = "pending_deletion"
    PENDING_IMPORT = "pending_import"
    UNAVAILABLE = "unavailable"
    UNKNOWN = "unknown"


class KeyOrigin(str, Enum):
    """Where its material came from; `CUSTOM_STORE`: a key store or hardware module of the customer's own."""

    CLOUD = "cloud"
    IMPORTED = "imported"
    CUSTOM_STORE = "custom_store"
    UNKNOWN = "unknown"


class KeyUsage(str, Enum):
    """What a key is for."""

    ENCRYPT = "encrypt"
    SIGN = "sign"
    MAC = "mac"
    AGREE = "agree"
    UNKNOWN = "unknown"


class KeyManager(str, Enum):
    """Who decides over a key: its owner, or a service of the cloud that made it for itself."""

    CUSTOMER = "customer"
    CLOUD = "cloud"


class MultiRegion(str, Enum):
    """Replicas share their primary's id and material, and follow its rotation."""

    NONE = "none"
    PRIMARY = "primary"
    REPLICA = "replica"


@dataclass(slots=True)
class WorldKey:
    """One key.

    `rotations` are the times at which it got new material, oldest first; `on_demand` those of them asked for.
    `instance` is the vendor's key store or instance it belongs to, `hardware` whether its material lives in a module;
    `period_since`: when the period was set, before which no rotation falls due. `add_on`: the account has bought what
    automatic rotation of such keys takes. `policy` is the key's own, where it has one that is not the usual.
    """

    ref: Ref
    spec: str
    created_at: datetime
    usage: KeyUsage = KeyUsage.ENCRYPT
    origin: KeyOrigin = KeyOrigin.CLOUD
    state: KeyState = KeyState.ENABLED
    manager: KeyManager = KeyManager.CUSTOMER
    aliases: list[str] = field(default_factory=list)
    is_default: bool = False
    multi_region: MultiRegion = MultiRegion.NONE
    primary: Ref | None = None
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
    policy: str = ""

    @property
    def next_at(self) -> datetime | None:
        """When it rotates by itself; None where automatic rotation is off.

        AWS counts from the last rotation by itself, or from when it was turned on; others from the last of any kind.
        """
        if self.period_days is None:
            return None
        if self.ref.provider == "aws":
            by_itself = [at for at in self.rotations if at not in self.on_demand]
            begun = max(filter(None, (*by_itself[-1:], self.period_since)), default=self.created_at)
            return begun + self.period_days * _DAY
        last = self.rotations[-1] if self.rotations else self.created_at
        due = last + self.period_days * _DAY
        return due if self.period_since is None else max(due, self.period_since)


class Keys:
    """All keys of a world, and all that was done to them.

    `broken` keys encrypt and decrypt nothing; those in `break_when_moved` are from the next move of an alias on.
    `moves_fail_after` is how many more moves succeed, None without end.
    """

    def __init__(self, keys: Iterable[WorldKey] = ()) -> None:
        self._keys: dict[Ref, WorldKey] = {key.ref: key for key in keys}
        self.history: list[tuple[datetime, str, str, Ref]] = []
        self.broken: set[Ref] = set()
        self.break_when_moved: set[Ref] = set()
        self.moves_fail_after: int | None = None

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

    def of(self, shard: Place) -> list[WorldKey]:
        """The keys of a shard, oldest first."""
        found = [key for key in self._keys.values() if key.ref.shard == shard]
        return sorted(found, key=lambda key: (key.created_at, key.ref))

    def get(self, ref: Ref) -> WorldKey:
        """One key.

        Raises:
            WorldRefusalError: NOT_FOUND.
        """
        key = self._keys.get(ref)
        if key is None:
            raise WorldRefusalError(Refusal.NOT_FOUND, ref.native_id)
        return key

    def set_period(self, ref: Ref, days: int | None, now: datetime, by: str) -> None:
        """Automatic rotation from now on with this period; None turns it off.

        Raises:
            WorldRefusalError: NOT_FOUND.
        """
        key = self.get(ref)
        key.period_days, key.period_since = days, now
        self.history.append((now, by, f"period {days}", ref))

    def rotate(self, ref: Ref, now: datetime, by: str) -> None:
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

    def succeed(self, ref: Ref, made: WorldKey, by: str) -> WorldKey:
        """A key in another's place; the old one stays as it is.

        Raises:
            WorldRefusalError: NOT_FOUND, or WRONG_STATE where the old key is not enabled.
        """
        if self.get(ref).state is not KeyState.ENABLED:
            raise WorldRefusalError(Refusal.WRONG_STATE, ref.native_id)
        self.history.append((made.created_at, by, f"made for {ref.native_id}", made.ref))
        return self.add(made)

    def move_alias(self, alias: str, to: Ref, now: datetime, by: str) -> None:
        """Let an alias, without its prefix, name another key of the same shard.

        Raises:
            WorldRefusalError: NOT_FOUND, where there is no such key or alias; WRONG_STATE where it may not move.
        """
        taker, giver = self.get(to), self.named(to.shard, alias)
        usable = taker.state is KeyState.ENABLED and taker.manager is KeyManager.CUSTOMER
        if not usable or (taker.spec, taker.usage) != (giver.spec, giver.usage) or self.moves_fail_after == 0:
            raise WorldRefusalError(Refusal.WRONG_STATE, to.native_id)
        if self.moves_fail_after is not None:
            self.moves_fail_after -= 1
        kept = next(each for each in giver.aliases if each.removeprefix(_ALIAS) == alias)
        giver.aliases.remove(kept)
        taker.aliases.append(kept)
        self.broken |= self.break_when_moved
        self.history.append((now, by, f"alias {alias}", to))

    def named(self, shard: Place, alias: str) -> WorldKey:
        """The key that an alias, without its prefix, names.

        Raises:
            WorldRefusalError: NOT_FOUND.
        """
        for key in self.of(shard):
            if alias in {each.removeprefix(_ALIAS) for each in key.aliases}:
                return key
        raise WorldRefusalError(Refusal.NOT_FOUND, alias)

    def seal(self, ref: Ref, plain: bytes) -> bytes:
        """What this key makes of `plain` with its present material: a ciphertext, or a signature.

        Raises:
            WorldRefusalError: NOT_FOUND, or WRONG_STATE where the key cannot be used.
        """
        key = self._usable(ref)
        return _SEAL.join((str(ref).encode(), str(len(key.rotations)).encode(), plain))

    def open(self, shard: Place, sealed: bytes) -> tuple[WorldKey, bytes]:
        """What was sealed, and by which key; every material that a key ever had counts.

        Raises:
            WorldRefusalError: NOT_FOUND for what no key of the shard made, or WRONG_STATE where it cannot be used.
        """
        for key in self.of(shard):
            maker, _, rest = sealed.partition(_SEAL)
            if maker == str(key.ref).encode():
                self._usable(key.ref)
                return key, rest.partition(_SEAL)[2]
        raise WorldRefusalError(Refusal.NOT_FOUND, "ciphertext")

    def _usable(self, ref: Ref) -> WorldKey:
        key = self.get(ref)
        if key.state is not KeyState.ENABLED or ref in self.broken:
            raise WorldRefusalError(Refusal.WRONG_STATE, ref.native_id)
        return key


def successor_id(key: WorldKey, number: int) -> str:
    """An id for a key made in another's place, of the vendor's form."""
    digits = sum(f"{key.ref}/{number}".encode())
    return f"key-hzz{digits:018d}" if key.ref.provider == "alibaba" else f"5ecce550-0000-4000-8000-{digits:012d}"
