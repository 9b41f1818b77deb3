"""What the contract suites of `KeySource` and `KeyRotator` need of a provider: keys of every kind, and a stand-in.

A further provider writes a `KeyRig` in a module of its own and adds it to `KEYS` in `key_worlds.py`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from typing import Any

from tests.world_ports.translate import to_product

from cloudstand.clock import MovedClock
from cloudstand.wire.door import WorldDoor
from cloudstand.world.cloud import World
from cloudstand.world.fleet import MachineSpec
from cloudstand.world.keys import Keys, WorldKey
from cloudstand.world.records import Operation
from costguard.domain.keys import EncryptionKey, KeyInventory, RotationMeans, RotationSetting
from costguard.domain.refs import ResourceRef, Shard
from costguard.ports import KeyRotator, KeySource

START = datetime(2026, 3, 2, 9, tzinfo=timezone.utc)
AUTOMATIC, ON_DEMAND, SUCCESSOR = RotationMeans.AUTOMATIC, RotationMeans.ON_DEMAND, RotationMeans.SUCCESSOR
ROTATING, STILL, DISABLED, DOOMED, SERVICE, REPLICA = (
    "rotating",
    "still",
    "disabled",
    "doomed",
    "service",
    "replica",
)
"""Names of keys that every provider has: of the best kind with automatic rotation (not at the longest period), the same
without it (made less than the shortest period ago), the same disabled and pending deletion, and one that the cloud made
for a service. `REPLICA` where the vendor has any."""
FEW = (ROTATING, STILL, DISABLED, DOOMED)


class KeyRig(ABC):
    """One provider with one key of every kind in `shard`, the one called `ROTATING` behind the disk of a machine.

    `means`: what the vendor's documents allow for a key, by its name; `periods`: the days between which an automatic
    rotation may be set. `between`: how far apart two rotations on demand must be. `changing`: the operations that may
    change a key, as `requests` has them; `most_requests` is what one whole read may cost. `untold`: keys of whose
    setting the cloud says nothing. `keys_have_policies`: a single key can keep a role out.
    """

    cloud: str
    shard: Shard
    empty: Shard
    means: Mapping[str, frozenset[RotationMeans]]
    periods: tuple[int, int]
    changing: frozenset[str]
    most_requests: int
    between = timedelta(minutes=30)
    untold: frozenset[str] = frozenset()
    keys_have_policies = False

    def __init__(self, fleet: Sequence[MachineSpec]) -> None:
        self.clock = MovedClock(START)
        self._world = World(fleet, START)
        self.door = WorldDoor(self._world, self.clock)
        self.keys: Mapping[str, WorldKey] = {}

    @property
    def world(self) -> World:
        """The truth, up to the present moment."""
        with self.door.opened() as world:
            return world

    def now(self) -> datetime:
        return self.clock.now()

    def advance(self, step: timedelta) -> None:
        self.clock.advance(step)

    def reset(self, names: Collection[str] = ()) -> None:
        """New keys, all or those of these names; nothing denied, nothing goes wrong, nothing was asked."""
        world = self.world
        self.keys = {name: key for name, key in self.kinds(self.now()).items() if not names or name in names}
        world.keys = Keys(self.keys.values())
        for operation in (Operation.KEYS, Operation.ROTATE, Operation.SUCCEED):
            world.allow(self.cloud, self.shard.account, operation)
        self.as_new()

    def ref(self, native_id: str, *, region: str = "") -> ResourceRef:
        """A key of the account."""
        return ResourceRef(self.cloud, self.shard.account, region or self.shard.region, "key", native_id)

    def read(self) -> KeyInventory:
        return self.source().read(self.shard)

    def found(self, name: str) -> EncryptionKey:
        """This key as it is read now."""
        (key,) = (key for key in self.read().keys if key.ref == to_product(self.keys[name].ref))
        return key

    def deny(self, operation: Operation) -> None:
        """From now on the program's own role may not do this."""
        self.world.deny(self.cloud, self.shard.account, operation)

    def told(self, key: WorldKey) -> dict[str, Any]:
        """What the cloud tells of a key, by the names of `EncryptionKey`; a vendor that tells less leaves it out."""
        told: dict[str, Any] = {
            "spec": key.spec,
            "usage": key.usage,
            "origin": key.origin,
            "state": key.state,
            "manager": key.manager,
            "aliases": tuple(sorted(key.aliases)),
            "is_default": key.is_default,
            "multi_region": key.multi_region,
            "primary": key.primary,
            "created_at": key.created_at,
            "deletes_at": key.deletes_at,
            "tags": key.tags,
        }
        return {word: to_product(value) for word, value in told.items()}

    def setting(self, key: WorldKey) -> RotationSetting:
        """How the cloud says that a key is rotated."""
        return RotationSetting(
            automatic=key.period_days is not None,
            period_days=key.period_days,
            last_at=key.rotations[-1] if key.rotations else None,
            next_at=key.next_at,
            on_demand_used=len(key.on_demand),
        )

    def source(self) -> KeySource:
        """The adapter, over a reading session."""
        return self.source_over(self.session("reading"))

    def rotator(self) -> KeyRotator:
        """The adapter, over a session that can do nothing else."""
        return self.rotator_over(self.session("rotating"))

    @abstractmethod
    def kinds(self, now: datetime) -> Mapping[str, WorldKey]:
        """The keys of a world that begins now, by name."""

    @abstractmethod
    def session(self, kind: str) -> Any:
        """A session for `reading`, `acting` or `rotating`, made once and closed with the rig."""

    @abstractmethod
    def source_over(self, session: Any) -> KeySource: ...

    @abstractmethod
    def rotator_over(self, session: Any) -> KeyRotator:
        """The adapter over any session, if it takes it."""

    @abstractmethod
    def deny_key(self, name: str) -> None:
        """The policy of this key keeps the program's role out, where keys have policies."""

    @abstractmethod
    def throttle(self, times: int) -> None:
        """The next `times` lists of keys, and as many changes of each kind, are throttled in the vendor's way."""

    @abstractmethod
    def lose_answers(self) -> None:
        """From now on changing requests take effect, and their answers are lost."""

    @abstractmethod
    def small_pages(self) -> None:
        """From now on every list comes in more than one page."""

    @abstractmethod
    def as_new(self) -> None:
        """Nothing goes wrong and nothing was asked."""

    @abstractmethod
    def requests(self) -> Sequence[str]:
        """The operations that arrived so far, in order, without those that only ask who we are."""

    @abstractmethod
    def reach(self) -> Sequence[str]:
        """Every operation in the table of a session for rotating."""

    @abstractmethod
    def close(self) -> None: ...

    def changes(self) -> Sequence[str]:
        """The requests that could have changed a key, and whatever else does not read."""
        reads = ("Describe", "Get", "List")
        return [each for each in self.requests() if not each.rpartition(":")[2].startswith(reads)]
