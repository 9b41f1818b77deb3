"""`KeySource` over a world, without any wire: what scenario tests and simulations read keys through."""

from __future__ import annotations

from costguard.domain.errors import AccessDeniedError
from costguard.domain.keys import (
    EncryptionKey,
    KeyInventory,
    KeyOrigin,
    KeyState,
    Rotatability,
    RotationSetting,
)
from costguard.domain.refs import ResourceRef, Shard
from costguard.providers.alibaba import key_matrix as alibaba
from costguard.providers.aws import key_matrix as aws
from costguard.providers.key_matrix import KeyFacts
from costguard.providers.tencent import key_matrix as tencent
from costguard.sandbox.world.cloud import World
from costguard.sandbox.world.keys import WorldKey
from costguard.sandbox.world.ports import MovingTime
from costguard.sandbox.world.records import Operation, WorldRefusalError

_PAIRS = ("RSA", "EC_", "ECC_", "SM2", "ML_", "ASYMMETRIC")
"""How the vendors' words for pairs of keys begin."""


class WorldKeys:
    """The keys of a world, each with what its own vendor's matrix allows."""

    def __init__(self, world: World, clock: MovingTime) -> None:
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
        keys = self._world.keys.of(shard)
        return KeyInventory(shard, tuple(_seen(key, use.get(key.ref.native_id, ())) for key in keys))

    def _use(self, shard: Shard) -> dict[str, tuple[ResourceRef, ...]]:
        found: dict[str, tuple[ResourceRef, ...]] = {}
        for machine in self._world.machines_in(shard):
            for volume in self._world.volumes_of(machine.native_id):
                if volume.disk.key_id:
                    named = machine.ref.sibling("volume", volume.native_id)
                    found[volume.disk.key_id] = (*found.get(volume.disk.key_id, ()), named)
        return found


def _seen(key: WorldKey, used_by: tuple[ResourceRef, ...]) -> EncryptionKey:
    return EncryptionKey(
        ref=key.ref,
        spec=key.spec,
        usage=key.usage,
        origin=key.origin,
        state=key.state,
        manager=key.manager,
        rotation=RotationSetting(
            automatic=key.period_days is not None,
            period_days=key.period_days,
            last_at=key.rotations[-1] if key.rotations else None,
            next_at=key.next_at,
            on_demand_used=len(key.on_demand) if key.ref.provider == "aws" else None,
        ),
        rotatability=_allows(key),
        aliases=tuple(key.aliases),
        is_default=key.is_default,
        multi_region=key.multi_region,
        primary=key.primary,
        created_at=key.created_at,
        deletes_at=key.deletes_at if key.state is KeyState.PENDING_DELETION else None,
        tags=dict(key.tags),
        used_by=used_by,
        version=str(len(key.rotations)),
    )


def _allows(key: WorldKey) -> Rotatability:
    """What the vendor allows for a key of this kind, by the matrix that its own adapter goes by."""
    provider, in_cluster = key.ref.provider, bool(key.instance)
    of_its_own = provider == "tencent" and in_cluster and key.origin is KeyOrigin.CLOUD
    facts = KeyFacts(
        spec=key.spec,
        symmetric=not key.spec.startswith(_PAIRS),
        usage=key.usage,
        origin=KeyOrigin.CUSTOM_STORE if of_its_own else key.origin,
        manager=key.manager,
        multi_region=key.multi_region,
        is_default=key.is_default,
        in_instance=in_cluster,
        in_hardware=key.hardware,
    )
    if provider == "aws":
        return aws.rotatability(facts, on_demand_used=len(key.on_demand))
    if provider == "alibaba":
        return alibaba.rotatability(facts)
    return tencent.rotatability(facts, automatic=key.period_days is not None)
