"""Encryption keys in neutral words, and how each can be given new material."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum

from costguard.domain.money import Money
from costguard.domain.refs import ResourceRef, Shard
from costguard.domain.resources import Gap


class KeyState(str, Enum):
    """Where a key is in its life; `UNKNOWN` is never acted on."""

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


class RotationMeans(str, Enum):
    """How a key can be given new material. `SUCCESSOR`: a new key, to which the alias is moved."""

    AUTOMATIC = "automatic"
    ON_DEMAND = "on_demand"
    SUCCESSOR = "successor"


class CostKind(str, Enum):
    """What a rotation adds to the bill.

    `FIRST_TWO`: each of a key's first two rotations as much as a key costs a month, later ones nothing. `QUOTA`: one
    more of the keys that were bought. `ADD_ON`: nothing beside an add-on that has to be bought. `NEW_KEY`: a rotation
    is a further key, at its price. `NOTHING`: it is not billed. `UNKNOWN`: no document says.
    """

    FIRST_TWO = "first_two"
    QUOTA = "quota"
    ADD_ON = "add_on"
    NEW_KEY = "new_key"
    NOTHING = "nothing"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class RotationCost:
    """What a rotation costs; `monthly` is the list price of a key where the vendor has one, with source and date."""

    kind: CostKind
    monthly: Money | None = None
    source: str = ""
    as_of: str = ""


UNKNOWN_COST = RotationCost(CostKind.UNKNOWN)


@dataclass(frozen=True, slots=True)
class Rotatability:
    """What its vendor allows for a key of this kind: one row of the vendor's matrix.

    Days are whole; None where `AUTOMATIC` is not among `means`. `note` is a short reason or condition in English
    (`paid add-on`), `source` names the document, `cost` what a rotation adds to the bill. `succeeds`: Costguard itself
    can make a successor of such a key and move the alias, without anything that was done with the old key being lost;
    elsewhere its owner can.
    """

    means: frozenset[RotationMeans]
    shortest_days: int | None = None
    longest_days: int | None = None
    note: str = ""
    source: str = ""
    succeeds: bool = False
    cost: RotationCost = UNKNOWN_COST


@dataclass(frozen=True, slots=True)
class RotationSetting:
    """How a key is rotated now. `automatic` None: the cloud does not say, which is not off.

    `last_at` None: never, or not told; `on_demand_used`: how many of the rotations on demand it may have are used.
    """

    automatic: bool | None
    period_days: int | None = None
    last_at: datetime | None = None
    next_at: datetime | None = None
    on_demand_used: int | None = None


@dataclass(frozen=True, slots=True)
class EncryptionKey:
    """One key as an inventory read saw it.

    `ref.kind` is `key`, its native id the vendor's key id. `spec` is the vendor's word (`SYMMETRIC_DEFAULT`,
    `Aliyun_AES_256`, `AES_256`). `is_default`: the key a service takes where nobody names one. `primary` is the key
    that a replica follows. `used_by` are resources in the same inventory that name the key (disks), a lower bound: an
    empty one proves nothing. `version` changes with each rotation, as precisely as the cloud tells it.
    """

    ref: ResourceRef
    spec: str
    usage: KeyUsage
    origin: KeyOrigin
    state: KeyState
    manager: KeyManager
    rotation: RotationSetting
    rotatability: Rotatability
    aliases: tuple[str, ...] = ()
    is_default: bool = False
    multi_region: MultiRegion = MultiRegion.NONE
    primary: ResourceRef | None = None
    created_at: datetime | None = None
    deletes_at: datetime | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    used_by: tuple[ResourceRef, ...] = ()
    version: str = ""


@dataclass(frozen=True, slots=True)
class KeyInventory:
    """The keys of one shard as read; with an inventory gap it is incomplete: an absent key proves nothing."""

    shard: Shard
    keys: tuple[EncryptionKey, ...]
    gaps: tuple[Gap, ...] = ()
