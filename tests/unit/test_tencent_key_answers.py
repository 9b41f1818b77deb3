"""Keys as ListKeyDetail tells them, and what Tencent Cloud allows for each."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pytest

from costguard.domain.keys import (
    EncryptionKey,
    KeyManager,
    KeyOrigin,
    KeyState,
    KeyUsage,
    MultiRegion,
    RotationMeans,
)
from costguard.domain.refs import ResourceRef, Shard
from costguard.providers.tencent.kms.answers import to_key

SHARD = Shard("tencent", "100012345678", "ap-guangzhou")
KEY_ID = "23e80852-1e38-11e9-b129-5cb9019b4b01"
CREATED = 1_725_354_067
EVERY = frozenset(RotationMeans)
SUCCESSOR = frozenset({RotationMeans.SUCCESSOR})


def key(**fields: Any) -> EncryptionKey:
    """A user's symmetric key whose rotation is on, as the vendor's own example tells keys, but for `fields`."""
    usual = {
        "KeyId": KEY_ID,
        "Alias": "training",
        "CreateTime": CREATED,
        "DeletionDate": 0,
        "KeyRotationEnabled": True,
        "KeyState": "Enabled",
        "KeyUsage": "ENCRYPT_DECRYPT",
        "NextRotateTime": CREATED + 90 * 86_400,
        "Origin": "TENCENT_KMS",
        "Owner": "user",
        "RotateDays": 90,
        "Type": 2,
    }
    return to_key(SHARD, {name: value for name, value in {**usual, **fields}.items() if value != "absent"})


def test_a_key_is_told_as_it_stands() -> None:
    found = key(LastRotateTime=CREATED + 86_400)
    assert found.ref == ResourceRef("tencent", "100012345678", "ap-guangzhou", "key", KEY_ID)
    assert (found.spec, found.usage, found.origin) == ("AES_256", KeyUsage.ENCRYPT, KeyOrigin.CLOUD)
    assert (found.state, found.manager, found.aliases) == (KeyState.ENABLED, KeyManager.CUSTOMER, ("training",))
    assert found.created_at == datetime(2024, 9, 3, 9, 1, 7, tzinfo=timezone.utc)
    assert (found.rotation.automatic, found.rotation.period_days) == (True, 90)
    assert found.rotation.last_at == datetime(2024, 9, 4, 9, 1, 7, tzinfo=timezone.utc)
    assert found.rotation.next_at == datetime(2024, 12, 2, 9, 1, 7, tzinfo=timezone.utc)
    assert (found.deletes_at, found.multi_region, found.is_default) == (None, MultiRegion.NONE, False)
    assert found.version == str(CREATED + 86_400)


def test_a_next_rotation_is_none_where_rotation_is_off() -> None:
    """The vendor fills NextRotateTime, and a period, for such a key as well."""
    rotation = key(KeyRotationEnabled=False).rotation
    assert (rotation.automatic, rotation.period_days, rotation.next_at) == (False, None, None)


def test_what_is_not_told_is_not_off() -> None:
    assert key(KeyRotationEnabled="absent").rotation.automatic is None


@pytest.mark.parametrize("missing", [None, 0, "absent"])
def test_older_keys_tell_no_period_and_no_last_rotation(missing: object) -> None:
    found = key(RotateDays=missing, LastRotateTime=missing)
    assert (found.rotation.automatic, found.rotation.period_days, found.rotation.last_at) == (True, None, None)
    assert found.version == ""


@pytest.mark.parametrize(
    ("told", "state"),
    [
        ("Disabled", KeyState.DISABLED),
        ("PendingDelete", KeyState.PENDING_DELETION),
        ("PendingImport", KeyState.PENDING_IMPORT),
        ("Archived", KeyState.UNAVAILABLE),
        ("Melting", KeyState.UNKNOWN),
    ],
)
def test_every_state_has_a_word_and_a_new_one_is_unknown(told: str, state: KeyState) -> None:
    assert key(KeyState=told).state is state


def test_a_deletion_counts_only_while_it_is_pending() -> None:
    assert key(DeletionDate=CREATED).deletes_at is None
    assert key(DeletionDate=CREATED, KeyState="PendingDelete").deletes_at is not None


@pytest.mark.parametrize(
    ("fields", "spec", "usage"),
    [
        ({"Type": 4}, "SM4", KeyUsage.ENCRYPT),
        ({"Type": 9}, "ENCRYPT_DECRYPT", KeyUsage.ENCRYPT),
        ({"KeyUsage": "ASYMMETRIC_DECRYPT_RSA_2048"}, "RSA_2048", KeyUsage.ENCRYPT),
        ({"KeyUsage": "ASYMMETRIC_SIGN_VERIFY_SM2", "Type": 4}, "SM2", KeyUsage.SIGN),
        ({"KeyUsage": "POST_QUANTUM"}, "POST_QUANTUM", KeyUsage.UNKNOWN),
    ],
)
def test_the_algorithm_is_in_the_usage_of_a_pair_and_in_the_type_of_other_keys(
    fields: dict[str, Any], spec: str, usage: KeyUsage
) -> None:
    found = key(**fields)
    assert (found.spec, found.usage) == (spec, usage)


@pytest.mark.parametrize(
    ("fields", "means"),
    [
        ({}, EVERY),
        ({"KeyRotationEnabled": False}, EVERY - {RotationMeans.ON_DEMAND}),
        ({"KeyRotationEnabled": "absent"}, EVERY - {RotationMeans.ON_DEMAND}),
        ({"Owner": "cbs"}, frozenset()),
        ({"IsSyncReplica": 1, "SourceRegion": "ap-shanghai"}, frozenset()),
        ({"Origin": "EXTERNAL"}, SUCCESSOR),
        ({"Origin": "BORROWED"}, frozenset()),
        ({"KeyUsage": "ASYMMETRIC_SIGN_VERIFY_ECC"}, SUCCESSOR),
        ({"KeyUsage": "ASYMMETRIC_DECRYPT_SM2"}, SUCCESSOR),
        ({"KeyUsage": "POST_QUANTUM"}, frozenset()),
        ({"HsmClusterId": "cls-hsm-3dflmo9g"}, SUCCESSOR),
    ],
)
def test_each_kind_has_its_means(fields: dict[str, Any], means: frozenset[RotationMeans]) -> None:
    found = key(**fields).rotatability
    assert found.means == means
    days = (7, 365) if RotationMeans.AUTOMATIC in means else (None, None)
    assert (found.shortest_days, found.longest_days) == days


def test_a_product_decides_over_its_own_key() -> None:
    found = key(Owner="cbs")
    assert (found.manager, found.is_default) == (KeyManager.CLOUD, True)


def test_a_replica_names_the_key_that_it_follows() -> None:
    found = key(IsSyncReplica=1, SourceRegion="ap-shanghai", SyncStatus=1)
    assert found.multi_region is MultiRegion.REPLICA
    assert found.primary == ResourceRef("tencent", "100012345678", "ap-shanghai", "key", KEY_ID)


@pytest.mark.parametrize(
    ("status", "found"), [(None, MultiRegion.NONE), (0, MultiRegion.NONE), (1, MultiRegion.PRIMARY)]
)
def test_a_key_is_a_primary_only_where_it_was_synchronised(status: int | None, found: MultiRegion) -> None:
    assert key(IsSyncReplica=0, SyncStatus=status).multi_region is found


@pytest.mark.parametrize(
    "fields",
    [
        {"KeyId": ""},
        {"Owner": "absent"},
        {"Origin": None},
        {"KeyState": 1},
        {"KeyRotationEnabled": "true"},
        {"KeyRotationEnabled": None},
        {"CreateTime": 1_725_354_067_000_000},
        {"RotateDays": "90"},
        {"NextRotateTime": -1},
        {"LastRotateTime": 1.5},
    ],
)
def test_a_field_of_another_type_makes_the_answer_untrusted(fields: dict[str, Any]) -> None:
    with pytest.raises((ValueError, TypeError)):
        key(**fields)
