"""`KeySource`, `KeyRotator` and `KeySuccessor` over a world, without any wire: what scenarios and simulations use."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from tests.world_ports.translate import to_product, to_world

from cloudstand.clock import Clock
from cloudstand.world.cloud import World
from cloudstand.world.keys import KeyState, WorldKey, successor_id
from cloudstand.world.records import Operation, Refusal, WorldRefusalError
from cloudstand.world.rotation import rotation_of
from costguard.domain.actions import Receipt
from costguard.domain.errors import AccessDeniedError, RefusedError
from costguard.domain.keys import EncryptionKey, KeyInventory, KeyOrigin, Rotatability, RotationSetting
from costguard.domain.refs import ResourceRef, Shard
from costguard.providers.alibaba.kms import answers as alibaba
from costguard.providers.aws.kms import answers as aws
from costguard.providers.kit.kms.answers import KeyFacts
from costguard.providers.kit.kms.rotation import CANARY, Sealed, moved, require_creatable, successor_tags
from costguard.providers.tencent.kms import answers as tencent

_PAIRS = ("RSA", "EC_", "ECC_", "SM2", "ML_", "ASYMMETRIC")
"""How the vendors' words for pairs of keys begin."""

BY = "costguard"


class WorldKeys:
    """The keys of a world, told as a vendor's adapter tells them, with what the program's matrix says of each."""

    def __init__(self, world: World, clock: Clock) -> None:
        self._world = world
        self._clock = clock

    def read(self, shard: Shard) -> KeyInventory:
        """Every key of the shard as it is now, with the disks of its machines that name it.

        Raises:
            AccessDeniedError: the role may not read keys.
        """
        self._world.tick(self._clock.now())
        try:
            self._world.require(shard.cloud, shard.account, Operation.KEYS)
        except WorldRefusalError as err:
            raise AccessDeniedError(str(err), operation="world:keys", code=err.refusal.value) from err
        use = self._use(shard)
        keys = self._world.keys.of(to_world(shard))
        return KeyInventory(shard, tuple(_seen(key, use.get(key.ref.native_id, ())) for key in keys))

    def look(self, ref: ResourceRef) -> EncryptionKey | None:
        """One key as it is now; None when there is none.

        Raises:
            AccessDeniedError: the role may not read keys.
        """
        return next((key for key in self.read(ref.shard).keys if key.ref == ref), None)

    def _use(self, shard: Shard) -> dict[str, tuple[ResourceRef, ...]]:
        found: dict[str, tuple[ResourceRef, ...]] = {}
        for machine in self._world.machines_in(to_world(shard)):
            for volume in self._world.volumes_of(machine.native_id):
                if volume.disk.key_id:
                    named = machine.ref.sibling("volume", volume.native_id)
                    found[volume.disk.key_id] = (*found.get(volume.disk.key_id, ()), to_product(named))
        return found


def _seen(key: WorldKey, used_by: tuple[ResourceRef, ...]) -> EncryptionKey:
    return EncryptionKey(
        ref=to_product(key.ref),
        spec=key.spec,
        usage=to_product(key.usage),
        origin=to_product(key.origin),
        state=to_product(key.state),
        manager=to_product(key.manager),
        rotation=RotationSetting(
            automatic=key.period_days is not None,
            period_days=key.period_days,
            last_at=key.rotations[-1] if key.rotations else None,
            next_at=key.next_at,
            on_demand_used=len(key.on_demand) if key.ref.provider == "aws" else None,
        ),
        rotatability=allowed_by_matrix(key),
        aliases=tuple(key.aliases),
        is_default=key.is_default,
        multi_region=to_product(key.multi_region),
        primary=to_product(key.primary),
        created_at=key.created_at,
        deletes_at=key.deletes_at if key.state is KeyState.PENDING_DELETION else None,
        tags=dict(key.tags),
        used_by=used_by,
        version=str(len(key.rotations)),
    )


def allowed_by_matrix(key: WorldKey) -> Rotatability:
    """What the vendor allows for a key of this kind, by the matrix that its adapter goes by."""
    provider, in_cluster = key.ref.provider, bool(key.instance)
    of_its_own = provider == "tencent" and in_cluster and to_product(key.origin) is KeyOrigin.CLOUD
    facts = KeyFacts(
        spec=key.spec,
        symmetric=not key.spec.startswith(_PAIRS),
        usage=to_product(key.usage),
        origin=to_product(KeyOrigin.CUSTOM_STORE if of_its_own else key.origin),
        manager=to_product(key.manager),
        multi_region=to_product(key.multi_region),
        is_default=key.is_default,
        in_instance=in_cluster,
        in_hardware=key.hardware,
    )
    if provider == "aws":
        return aws.rotatability(facts, on_demand_used=len(key.on_demand))
    if provider == "alibaba":
        return alibaba.rotatability(facts)
    return tencent.rotatability(facts, automatic=key.period_days is not None)


class WorldRotator:
    """`KeyRotator` over a world, without any wire."""

    def __init__(self, world: World, clock: Clock) -> None:
        self._world = world
        self._clock = clock

    def set_period(self, key: EncryptionKey, days: int) -> Receipt:
        """Automatic rotation with this period, from now on.

        Raises:
            AccessDeniedError: the role may not rotate keys.
            RefusedError: the key is not there or not enabled, or its vendor does not rotate it so; nothing changed.
        """
        with _asked(self._world, self._clock, key, "set_period"):
            there = self._world.keys.get(to_world(key.ref))
            if there.state is not KeyState.ENABLED or days not in rotation_of(there).periods:
                raise WorldRefusalError(Refusal.WRONG_STATE, key.ref.native_id)
            self._world.keys.set_period(to_world(key.ref), days, self._world.now, BY)
        return Receipt(f"period-{key.ref.native_id}")

    def rotate(self, key: EncryptionKey) -> Receipt:
        """New material now. Errors as `set_period`."""
        with _asked(self._world, self._clock, key, "rotate"):
            if not rotation_of(self._world.keys.get(to_world(key.ref))).on_demand:
                raise WorldRefusalError(Refusal.WRONG_STATE, key.ref.native_id)
            self._world.keys.rotate(to_world(key.ref), self._world.now, BY)
        return Receipt(f"rotation-{key.ref.native_id}")


class WorldSuccessor:
    """`KeySuccessor` over a world, without any wire, through the same steps as a vendor's."""

    def __init__(self, world: World, clock: Clock) -> None:
        self._world = world
        self._clock = clock

    def create(self, key: EncryptionKey, decision: str) -> Receipt:
        """A key like this one. Errors as `WorldRotator.set_period`."""
        require_creatable(key, decision, {key.ref.cloud})
        with self._asked(key, "create"):
            keys = self._world.keys
            old = keys.get(to_world(key.ref))
            made = WorldKey(
                ref=old.ref.sibling("key", successor_id(old, len(keys.of(to_world(key.ref.shard))))),
                spec=old.spec,
                created_at=self._world.now,
                usage=old.usage,
                tags=dict(successor_tags(key, decision, ())),
                instance=old.instance,
                policy=old.policy,
            )
            keys.succeed(to_world(key.ref), made, BY)
        return Receipt(f"successor-{key.ref.native_id}", made.ref.native_id)

    def move_alias(self, alias: str, holder: EncryptionKey, heir: EncryptionKey) -> Receipt:
        """Move an alias, with canaries before and after. Errors as `providers.succeeding.moved`."""
        return moved(self, alias, holder, heir, {holder.ref.cloud})

    def seal(self, named: str, key: EncryptionKey) -> Sealed:
        """A canary by an id or alias."""
        with self._asked(key, "seal"):
            keys, shard = self._world.keys, key.ref.shard
            by_alias = named.startswith("alias/")
            maker = (
                keys.named(to_world(shard), named.removeprefix("alias/")) if by_alias else keys.get(to_world(key.ref))
            )
            return Sealed(maker.ref.native_id, keys.seal(maker.ref, CANARY.encode()).decode())

    def holds(self, key: EncryptionKey, sealed: Sealed) -> bool:
        """Whether this key takes it back."""
        with self._asked(key, "open"):
            opener, plain = self._world.keys.open(to_world(key.ref.shard), sealed.proof.encode())
            return to_product(opener.ref) == key.ref and plain == CANARY.encode()

    def point(self, alias: str, key: EncryptionKey) -> Receipt:
        """Let the alias name this key."""
        with self._asked(key, "move"):
            self._world.keys.move_alias(alias.removeprefix("alias/"), to_world(key.ref), self._world.now, BY)
        return Receipt(f"alias-{key.ref.native_id}")

    def _asked(self, key: EncryptionKey, what: str) -> AbstractContextManager[None]:
        return _asked(self._world, self._clock, key, what, Operation.SUCCEED)


@contextmanager
def _asked(
    world: World, clock: Clock, key: EncryptionKey, what: str, operation: Operation = Operation.ROTATE
) -> Iterator[None]:
    world.tick(clock.now())
    try:
        world.require(key.ref.cloud, key.ref.account, operation)
        yield
    except WorldRefusalError as err:
        kind = AccessDeniedError if err.refusal is Refusal.DENIED else RefusedError
        raise kind(str(err), operation=f"world:{what}", code=err.refusal.value) from err
