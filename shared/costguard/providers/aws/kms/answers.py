"""What AWS KMS and EC2 say of keys, in neutral words, and what is allowed for each kind of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal

from costguard.domain.keys import (
    UNKNOWN_COST,
    CostKind,
    EncryptionKey,
    KeyManager,
    KeyOrigin,
    KeyState,
    KeyUsage,
    MultiRegion,
    Rotatability,
    RotationCost,
    RotationMeans,
    RotationSetting,
)
from costguard.domain.money import Money
from costguard.domain.refs import ResourceRef, Shard
from costguard.providers.kit.core.fields import Fields, flag, moment, named, part, text, whole
from costguard.providers.kit.kms.answers import (
    IN_NO_ROW,
    KeyFacts,
    MatrixRow,
    by_successor,
    no_means,
    rotatability_of,
    unread_key,
)

SHORTEST_DAYS, LONGEST_DAYS = 90, 2560
"""API: KMS EnableKeyRotation, RotationPeriodInDays; 365 where it is not named, which costguard always does."""

MOST_ON_DEMAND = 25
"""Rotations on demand in the life of one key, in every partition; not adjustable. Older copies of the API reference
say 10: where a region still holds to that, it refuses with `LimitExceededException`, and nothing changes.

Source: KMS developer guide, "Resource quotas" and "Perform on-demand key rotation"; the China regions' guide as well.
"""

AWS_MANAGED_DAYS = 365
"""How often AWS rotates the keys it manages, by itself. API: KMS developer guide, "Rotate AWS KMS keys"."""

_A_KEY = Money(Decimal(1), "USD")
"""A month of a key, in regions of `aws`; `aws-cn` bills it in CNY."""
_PRICES = "https://aws.amazon.com/kms/pricing/"
_PRICES_AS_OF = "2024-04-12"
_FREE = RotationCost(CostKind.NOTHING, source=_PRICES, as_of=_PRICES_AS_OF)
_FIRST_TWO = RotationCost(CostKind.FIRST_TWO, _A_KEY, _PRICES, _PRICES_AS_OF)
_NEW_KEY = RotationCost(CostKind.NEW_KEY, _A_KEY, _PRICES, _PRICES_AS_OF)
_GUIDE = 'KMS developer guide, "Rotate AWS KMS keys"'
_CAPPED = f"{MOST_ON_DEMAND} rotations on demand in a key's life"


MATRIX: tuple[MatrixRow, ...] = (
    no_means(
        "managed by AWS (`aws/…`)",
        lambda key: key.manager is KeyManager.CLOUD,
        f"AWS rotates it every {AWS_MANAGED_DAYS} days by itself; nobody else can, nor change the period",
        _GUIDE,
        _FREE,
    ),
    no_means(
        "a replica of a multi-region key",
        lambda key: key.multi_region is MultiRegion.REPLICA,
        "follows its primary, whose rotation counts for every region",
        _GUIDE,
        UNKNOWN_COST,
    ),
    by_successor(
        "for MACs (`HMAC_…`)",
        lambda key: key.usage is KeyUsage.MAC,
        "never by itself or on demand; only the old key verifies old MACs, so moving its alias fails them",
        _GUIDE,
        _NEW_KEY,
    ),
    by_successor(
        "asymmetric, for signatures",
        lambda key: not key.symmetric and key.usage is KeyUsage.SIGN,
        "never by itself or on demand; users of the public key need the new one",
        f"{_GUIDE}; UpdateAlias",
        _NEW_KEY,
        succeeds=True,
    ),
    by_successor(
        "asymmetric (key agreement, RSA encryption)",
        lambda key: not key.symmetric,
        "never by itself or on demand; old data names no key, so moving the alias fails its decryption",
        _GUIDE,
        _NEW_KEY,
    ),
    by_successor(
        "in a custom key store (CloudHSM or external)",
        lambda key: key.origin is KeyOrigin.CUSTOM_STORE,
        "never by itself or on demand",
        _GUIDE,
        _NEW_KEY,
    ),
    MatrixRow(
        "symmetric, imported material",
        lambda key: key.origin is KeyOrigin.IMPORTED and key.usage is KeyUsage.ENCRYPT,
        Rotatability(
            frozenset({RotationMeans.ON_DEMAND, RotationMeans.SUCCESSOR}),
            note=f"only after its owner has imported new material, which costguard cannot; {_CAPPED}",
            source=f"{_GUIDE}; RotateKeyOnDemand",
            cost=_FIRST_TWO,
        ),
    ),
    MatrixRow(
        "symmetric, material made by KMS",
        lambda key: key.origin is KeyOrigin.CLOUD and key.usage is KeyUsage.ENCRYPT,
        Rotatability(
            frozenset(RotationMeans),
            shortest_days=SHORTEST_DAYS,
            longest_days=LONGEST_DAYS,
            note=f"first so many days after it is turned on; {_CAPPED}, which leave the schedule as it is",
            source="EnableKeyRotation; RotateKeyOnDemand; UpdateAlias",
            succeeds=True,
            cost=_FIRST_TWO,
        ),
    ),
)
"""First that holds, first served."""


def rotatability(facts: KeyFacts, *, on_demand_used: int | None = None) -> Rotatability:
    """What AWS allows for such a key; no rotation on demand once `on_demand_used` of the key have reached the cap."""
    found = rotatability_of(MATRIX, facts)
    if RotationMeans.ON_DEMAND not in found.means or on_demand_used is None or on_demand_used < MOST_ON_DEMAND:
        return found
    used_up = f"all {MOST_ON_DEMAND} rotations on demand of this key are used"
    return replace(found, means=found.means - {RotationMeans.ON_DEMAND}, note=used_up)


AWS_ALIAS = "aws/"
"""What the aliases of keys begin with that AWS made for a service."""

_STATES = {
    "Enabled": KeyState.ENABLED,
    "Disabled": KeyState.DISABLED,
    "PendingDeletion": KeyState.PENDING_DELETION,
    "PendingReplicaDeletion": KeyState.PENDING_DELETION,
    "PendingImport": KeyState.PENDING_IMPORT,
    "Unavailable": KeyState.UNAVAILABLE,
    "Creating": KeyState.UNAVAILABLE,
    "Updating": KeyState.UNAVAILABLE,
}
_ORIGINS = {
    "AWS_KMS": KeyOrigin.CLOUD,
    "EXTERNAL": KeyOrigin.IMPORTED,
    "AWS_CLOUDHSM": KeyOrigin.CUSTOM_STORE,
    "EXTERNAL_KEY_STORE": KeyOrigin.CUSTOM_STORE,
}
_USAGES = {
    "ENCRYPT_DECRYPT": KeyUsage.ENCRYPT,
    "SIGN_VERIFY": KeyUsage.SIGN,
    "GENERATE_VERIFY_MAC": KeyUsage.MAC,
    "KEY_AGREEMENT": KeyUsage.AGREE,
    "ENCAPSULATE_DECAPSULATE": KeyUsage.AGREE,
}
_MANAGERS = {"AWS": KeyManager.CLOUD, "CUSTOMER": KeyManager.CUSTOMER}
_SETTLED = frozenset({KeyState.ENABLED, KeyState.DISABLED, KeyState.PENDING_DELETION})
_NOT_READ = Rotatability(frozenset(), note="it could not be read in full: nothing is done to it")
_NO_MATERIAL = "its owner has to import new material first"
_ACCOUNT_IN_ARN, _REGION_IN_ARN, _FIELDS_OF_ARN = 4, 3, 6  # arn:aws:kms:us-east-1:111122223333:key/…


@dataclass(frozen=True, slots=True)
class Rotations:
    """What ListKeyRotations tells: every rotation so far, and whether imported material waits for one."""

    entries: Sequence[Fields] = ()
    material_waits: bool = False


@dataclass(frozen=True, slots=True)
class KeyAnswers:
    """What was asked about one key. None: not asked, refused or not read; `unread`: something could not be read."""

    metadata: Fields | None = None
    status: Fields | None = None
    rotations: Rotations | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    unread: bool = False


def facts_of(metadata: Fields) -> KeyFacts:
    """What decides how the key can be rotated.

    API: KMS DescribeKey, KeyMetadata: `KeySpec` is not required there, and `CustomerMasterKeySpec` is its older name.

    Raises:
        ValueError: neither is told: the kind of the key is not known, and so not "asymmetric, never rotates".
    """
    spec = text(metadata, "KeySpec") or text(metadata, "CustomerMasterKeySpec") or named(metadata, "KeySpec")
    return KeyFacts(
        spec=spec,
        symmetric=spec == "SYMMETRIC_DEFAULT" or spec.startswith("HMAC_"),
        usage=_USAGES.get(text(metadata, "KeyUsage"), KeyUsage.UNKNOWN),
        origin=_ORIGINS.get(text(metadata, "Origin"), KeyOrigin.UNKNOWN),
        manager=_MANAGERS[named(metadata, "KeyManager")],  # another one is none we know: not trusted
        multi_region=_region_role(metadata),
    )


def state_of(metadata: Fields) -> KeyState:
    """Where the key is in its life."""
    return _STATES.get(text(metadata, "KeyState"), KeyState.UNKNOWN)


def asks_for(metadata: Fields) -> tuple[bool, bool]:
    """Whether AWS has a rotation status, and a list of rotations, to tell of such a key.

    Of every other it is documented that it never rotates, or, where AWS manages it, that it does every year. A replica
    tells what its primary is set to.
    """
    if state_of(metadata) not in _SETTLED:
        return False, False
    means = _own(facts_of(metadata)).means
    return RotationMeans.AUTOMATIC in means, RotationMeans.ON_DEMAND in means


def _own(facts: KeyFacts) -> Rotatability:
    """What such a key allows, or of a replica its primary."""
    return rotatability_of(MATRIX, replace(facts, multi_region=MultiRegion.NONE))


def to_key(
    ref: ResourceRef, answers: KeyAnswers, aliases: Sequence[str], used_by: Iterable[ResourceRef]
) -> EncryptionKey:
    """One key as its answers tell it. What could not be read is unknown, and then nothing is allowed."""
    if answers.metadata is None:
        of_aws = any(alias.startswith(AWS_ALIAS) for alias in aliases)
        return unread_key(ref, aliases, used_by, of_cloud=of_aws, allows=_NOT_READ)
    metadata, facts = answers.metadata, facts_of(answers.metadata)
    setting, state = _setting(facts, answers), state_of(metadata)
    waits = answers.rotations is not None and answers.rotations.material_waits
    allows = rotatability(facts, on_demand_used=setting.on_demand_used)
    if facts.origin is KeyOrigin.IMPORTED and RotationMeans.ON_DEMAND in allows.means and not waits:
        allows = replace(allows, means=allows.means - {RotationMeans.ON_DEMAND}, note=_NO_MATERIAL)
    if answers.unread:  # a tag may protect it, and a rotation may have happened just now
        allows, state = _NOT_READ, KeyState.UNKNOWN if state is KeyState.ENABLED else state
    return EncryptionKey(
        ref=ref,
        spec=facts.spec,
        usage=facts.usage,
        origin=facts.origin,
        state=state,
        manager=facts.manager,
        rotation=setting,
        rotatability=allows,
        aliases=tuple(aliases),
        is_default=facts.manager is KeyManager.CLOUD,
        multi_region=facts.multi_region,
        primary=_primary(metadata) if facts.multi_region is MultiRegion.REPLICA else None,
        created_at=moment(metadata, "CreationDate"),
        deletes_at=moment(metadata, "DeletionDate"),
        tags=dict(answers.tags),
        used_by=tuple(used_by),
        version=text(metadata, "CurrentKeyMaterialId"),
    )


def _setting(facts: KeyFacts, answers: KeyAnswers) -> RotationSetting:
    if facts.manager is KeyManager.CLOUD:
        return RotationSetting(automatic=True, period_days=AWS_MANAGED_DAYS)
    automatic, period_days, next_at, under_way = _status(facts, answers)
    if answers.rotations is None:
        return RotationSetting(automatic, period_days, next_at=next_at)
    done = [(moment(entry, "RotationDate"), text(entry, "RotationType")) for entry in answers.rotations.entries]
    times = [at for at, _ in done if at is not None]
    return RotationSetting(
        automatic,
        period_days,
        last_at=max(times, default=None),
        next_at=next_at,
        on_demand_used=sum(kind == "ON_DEMAND" for at, kind in done if at is not None) + under_way,
    )


def _status(facts: KeyFacts, answers: KeyAnswers) -> tuple[bool | None, int | None, datetime | None, bool]:
    """Whether it rotates by itself, how often, when next, and whether a rotation on demand is under way."""
    status = answers.status
    if status is None:
        own = _own(facts)
        never = own is not IN_NO_ROW and RotationMeans.AUTOMATIC not in own.means
        return False if never else None, None, None, False
    enabled = flag(status, "KeyRotationEnabled")
    under_way = moment(status, "OnDemandRotationStartDate") is not None
    if not enabled:
        return False, None, None, under_way
    period = whole(status, "RotationPeriodInDays") if "RotationPeriodInDays" in status else None
    return True, period, moment(status, "NextRotationDate"), under_way


def _region_role(metadata: Fields) -> MultiRegion:
    if not flag(metadata, "MultiRegion"):
        return MultiRegion.NONE
    roles = {"PRIMARY": MultiRegion.PRIMARY, "REPLICA": MultiRegion.REPLICA}
    return roles[named(part(metadata, "MultiRegionConfiguration"), "MultiRegionKeyType")]


def _primary(metadata: Fields) -> ResourceRef:
    arn = named(part(part(metadata, "MultiRegionConfiguration"), "PrimaryKey"), "Arn")
    _, partition, _, region, account, resource = arn.split(":", _FIELDS_OF_ARN - 1)
    return ResourceRef(partition, account, region, "key", resource.removeprefix("key/"))


def key_named(said: str, shard: Shard, by_alias: Mapping[str, str]) -> str:
    """The id of the key that a disk names by id, ARN, alias or the ARN of an alias; empty for one of another shard."""
    fields = said.split(":", _FIELDS_OF_ARN - 1)
    if len(fields) == _FIELDS_OF_ARN:
        if (fields[_REGION_IN_ARN], fields[_ACCOUNT_IN_ARN]) != (shard.region, shard.account):
            return ""
        said = fields[-1]
    return by_alias.get(said, "") if said.startswith("alias/") else said.removeprefix("key/")
