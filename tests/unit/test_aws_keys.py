"""What AWS tells of a key, turned into neutral words; and what is not told, not trusted, or not allowed."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from costguard.domain.keys import (
    KeyManager,
    KeyOrigin,
    KeyState,
    KeyUsage,
    MultiRegion,
    Rotatability,
    RotationMeans,
    RotationSetting,
)
from costguard.domain.refs import ResourceRef, Shard
from costguard.providers.aws.kms.answers import (
    MATRIX,
    MOST_ON_DEMAND,
    KeyAnswers,
    Rotations,
    asks_for,
    facts_of,
    key_named,
    rotatability,
    state_of,
    to_key,
)
from costguard.providers.kit.kms.answers import IN_NO_ROW, MatrixRow, rotatability_of

NOW = datetime(2026, 3, 2, 9, tzinfo=timezone.utc)
DAY = timedelta(days=1)
SHARD = Shard("aws-cn", "111122223333", "cn-north-1")
REF = ResourceRef(SHARD.cloud, SHARD.account, SHARD.region, "key", "k-1")
EVERY = frozenset(RotationMeans)
OFF = {"KeyRotationEnabled": False}


def metadata(**more: Any) -> dict[str, Any]:
    return {
        "KeyId": "k-1",
        "KeyManager": "CUSTOMER",
        "KeySpec": "SYMMETRIC_DEFAULT",
        "KeyUsage": "ENCRYPT_DECRYPT",
        "KeyState": "Enabled",
        "Origin": "AWS_KMS",
        "MultiRegion": False,
        **more,
    }


def rotated(days_ago: int, kind: str = "ON_DEMAND") -> dict[str, Any]:
    return {"RotationDate": NOW - days_ago * DAY, "RotationType": kind, "KeyMaterialState": "NON_CURRENT"}


def setting(status: dict[str, Any], *entries: dict[str, Any], **more: Any) -> RotationSetting:
    return to_key(REF, KeyAnswers(metadata(**more), status, Rotations(entries)), (), ()).rotation


def means(*entries: dict[str, Any], waits: bool = False, **more: Any) -> frozenset[RotationMeans]:
    answers = KeyAnswers(metadata(**more), OFF, Rotations(entries, material_waits=waits))
    return to_key(REF, answers, (), ()).rotatability.means


def test_last_rotation_is_the_latest_of_either_kind_and_only_those_on_demand_are_counted() -> None:
    found = setting(OFF, rotated(300, "AUTOMATIC"), rotated(9), rotated(40), {"KeyMaterialState": "CURRENT"})
    assert found == RotationSetting(automatic=False, last_at=NOW - 9 * DAY, on_demand_used=2)


def test_a_rotation_on_demand_that_is_under_way_is_used_and_has_not_happened() -> None:
    found = setting({**OFF, "OnDemandRotationStartDate": NOW}, rotated(40))
    assert (found.last_at, found.on_demand_used) == (NOW - 40 * DAY, 2)


def test_period_and_next_date_count_only_while_rotation_is_on() -> None:
    dates = {"RotationPeriodInDays": 90, "NextRotationDate": NOW}
    assert setting({"KeyRotationEnabled": True, **dates}).period_days == 90
    assert setting({"KeyRotationEnabled": True, **dates}).next_at == NOW
    assert setting({**OFF, **dates}) == RotationSetting(automatic=False, on_demand_used=0)


def test_at_the_documented_cap_no_rotation_on_demand_is_left() -> None:
    used = [rotated(days) for days in range(1, MOST_ON_DEMAND + 1)]
    assert MOST_ON_DEMAND == 25
    assert means(*used[1:]) == EVERY
    assert means(*used) == EVERY - {RotationMeans.ON_DEMAND}


def test_imported_material_rotates_only_once_new_material_waits() -> None:
    assert means(Origin="EXTERNAL") == {RotationMeans.SUCCESSOR}
    assert means(waits=True, Origin="EXTERNAL") == {RotationMeans.ON_DEMAND, RotationMeans.SUCCESSOR}


@pytest.mark.parametrize(
    ("more", "asked"),
    [
        ({}, (True, True)),
        ({"KeyState": "Disabled"}, (True, True)),
        ({"KeyState": "Updating"}, (False, False)),
        ({"KeyState": "PendingDeletion"}, (True, True)),
        ({"Origin": "EXTERNAL"}, (False, True)),
        ({"Origin": "EXTERNAL", "KeyState": "PendingImport"}, (False, False)),
        ({"Origin": "AWS_CLOUDHSM"}, (False, False)),
        ({"Origin": "EXTERNAL_KEY_STORE"}, (False, False)),
        ({"KeySpec": "RSA_4096"}, (False, False)),
        ({"KeySpec": "SM2", "KeyUsage": "SIGN_VERIFY"}, (False, False)),
        ({"KeySpec": "HMAC_256", "KeyUsage": "GENERATE_VERIFY_MAC"}, (False, False)),
        ({"KeySpec": "ML_KEM_768", "KeyUsage": "ENCAPSULATE_DECAPSULATE"}, (False, False)),
        ({"KeyManager": "AWS"}, (False, False)),
        ({"MultiRegion": True, "MultiRegionConfiguration": {"MultiRegionKeyType": "REPLICA"}}, (True, True)),
    ],
    ids=lambda value: " ".join(f"{one}" for one in value.values()) if isinstance(value, dict) else "",
)
def test_only_what_can_rotate_is_asked_how_it_does(more: dict[str, Any], asked: tuple[bool, bool]) -> None:
    assert asks_for(metadata(**more)) == asked


@pytest.mark.parametrize(
    ("told", "state"),
    [
        ("Enabled", KeyState.ENABLED),
        ("PendingReplicaDeletion", KeyState.PENDING_DELETION),
        ("Updating", KeyState.UNAVAILABLE),
        ("Creating", KeyState.UNAVAILABLE),
        ("Resting", KeyState.UNKNOWN),
        ("", KeyState.UNKNOWN),
    ],
)
def test_a_state_that_is_not_known_is_unknown(told: str, state: KeyState) -> None:
    assert state_of({"KeyState": told}) is state


def test_what_is_not_asked_of_a_key_that_could_rotate_is_untold_and_not_off() -> None:
    for more, automatic in (({"KeyState": "Updating"}, None), ({"Origin": "AWS_CLOUDHSM"}, False)):
        assert to_key(REF, KeyAnswers(metadata(**more)), (), ()).rotation.automatic is automatic


@pytest.mark.parametrize("more", [{"KeyUsage": "DREAM"}, {"Origin": "SPACE"}, {"KeyUsage": "", "Origin": ""}])
def test_of_a_kind_that_is_not_known_nothing_is_allowed_and_its_rotation_is_untold(more: dict[str, str]) -> None:
    found = to_key(REF, KeyAnswers(metadata(**more)), (), ())
    assert (found.rotatability, found.rotation.automatic) == (IN_NO_ROW, None)
    assert {found.usage, found.origin} & {KeyUsage.UNKNOWN, KeyOrigin.UNKNOWN}


@pytest.mark.parametrize(
    "more",
    [
        {"KeyManager": "SOMEBODY"},
        {"KeyManager": ""},
        {"KeyState": None},
        {"KeySpec": ""},
        {"KeySpec": None},
        {"MultiRegion": "yes"},
        {"MultiRegion": True},
        {"MultiRegion": True, "MultiRegionConfiguration": {"MultiRegionKeyType": "COUSIN"}},
        {"CreationDate": "yesterday"},
    ],
    ids=str,
)
def test_an_answer_that_is_not_as_documented_is_not_trusted(more: dict[str, Any]) -> None:
    with pytest.raises((ValueError, TypeError, LookupError)):
        to_key(REF, KeyAnswers(metadata(**more)), (), ())


def test_a_key_spec_may_stand_under_its_older_name() -> None:
    told = metadata(CustomerMasterKeySpec="SYMMETRIC_DEFAULT")
    del told["KeySpec"]
    assert facts_of(told).symmetric


def test_a_replica_names_its_primary_in_its_own_partition() -> None:
    arn = "arn:aws-cn:kms:cn-northwest-1:111122223333:key/mrk-1"
    configuration = {"MultiRegionKeyType": "REPLICA", "PrimaryKey": {"Arn": arn, "Region": "cn-northwest-1"}}
    found = to_key(REF, KeyAnswers(metadata(MultiRegion=True, MultiRegionConfiguration=configuration)), (), ())
    assert found.multi_region is MultiRegion.REPLICA
    assert found.primary == ResourceRef("aws-cn", "111122223333", "cn-northwest-1", "key", "mrk-1")
    assert found.rotatability.means == frozenset()


def test_a_key_that_was_not_read_in_full_is_never_acted_on_and_keeps_what_bars_it_anyway() -> None:
    for told, state in (("Enabled", KeyState.UNKNOWN), ("PendingDeletion", KeyState.PENDING_DELETION)):
        found = to_key(REF, KeyAnswers(metadata(KeyState=told), OFF, unread=True), (), ())
        assert (found.state, found.rotatability.means) == (state, frozenset())


def test_a_key_that_is_only_listed_is_known_as_of_aws_by_its_alias() -> None:
    for alias, manager in (("aws/ebs", KeyManager.CLOUD), ("awsome", KeyManager.CUSTOMER)):
        found = to_key(REF, KeyAnswers(), (alias,), ())
        assert (found.manager, found.state, found.rotation.automatic) == (manager, KeyState.UNKNOWN, None)


@pytest.mark.parametrize(
    ("said", "key"),
    [
        ("k-1", "k-1"),
        ("arn:aws-cn:kms:cn-north-1:111122223333:key/k-1", "k-1"),
        ("alias/disks", "k-2"),
        ("arn:aws-cn:kms:cn-north-1:111122223333:alias/disks", "k-2"),
        ("alias/unknown", ""),
        ("arn:aws-cn:kms:cn-north-1:999999999999:key/k-1", ""),
        ("arn:aws-cn:kms:cn-northwest-1:111122223333:key/k-1", ""),
        ("", ""),
    ],
)
def test_a_disk_may_name_its_key_in_four_ways(said: str, key: str) -> None:
    assert key_named(said, SHARD, {"alias/disks": "k-2"}) == key


def test_the_first_row_that_holds_counts() -> None:
    first, second = Rotatability(frozenset(), note="first"), Rotatability(EVERY, note="second")
    facts = facts_of(metadata())
    rows = [MatrixRow("never", lambda _: False, second), MatrixRow("one", lambda _: True, first)]
    assert rotatability_of([*rows, MatrixRow("two", lambda _: True, second)], facts) is first
    assert rotatability_of(rows[:1], facts) is IN_NO_ROW


def test_a_replica_of_imported_material_follows_its_primary_as_well() -> None:
    role = {"MultiRegion": True, "MultiRegionConfiguration": {"MultiRegionKeyType": "REPLICA"}}
    assert rotatability(facts_of(metadata(Origin="EXTERNAL", **role))).means == frozenset()
    assert len(MATRIX) == 8
