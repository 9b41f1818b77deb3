"""What DescribeKey says, read for what decides a key's fate; and what may be asked and granted for keys."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pytest

from costguard.domain.keys import EncryptionKey, KeyManager, KeyOrigin, KeyState, KeyUsage, RotationMeans
from costguard.domain.refs import ResourceRef, Shard
from costguard.providers.alibaba.iam.permissions import OPERATIONS, REACH
from costguard.providers.alibaba.iam.policy_documents import policy_document
from costguard.providers.alibaba.kms.answers import RunContext, to_key
from costguard.providers.kit.iam.permissions import Feature, Purpose

SHARD = Shard("alibaba", "1234567890123456", "cn-hangzhou")
ID = "key-hzz630494463ejqjx0000"
NOTHING = RunContext()


def described(**more: Any) -> EncryptionKey:
    metadata = {
        "KeyId": ID,
        "KeyState": "Enabled",
        "KeySpec": "Aliyun_AES_256",
        "KeyUsage": "ENCRYPT/DECRYPT",
        "Origin": "Aliyun_KMS",
        "ProtectionLevel": "SOFTWARE",
        "Creator": SHARD.account,
        "CreationDate": "2025-01-01T00:00:00Z",
        "LastRotationDate": "2025-01-01T00:00:00Z",
        "PrimaryKeyVersion": "version-1",
        **more,
    }
    return to_key(SHARD, {name: value for name, value in metadata.items() if value is not None}, NOTHING)


@pytest.mark.parametrize(
    ("told", "setting"), [("Enabled", "on"), ("Suspended", "on"), ("Disabled", "off"), (None, ""), ("Soon", "")]
)
def test_rotation_is_off_only_where_the_cloud_says_so(told: str | None, setting: str) -> None:
    found = described(AutomaticRotation=told).rotation.automatic

    assert {True: "on", False: "off", None: ""}[found] == setting


@pytest.mark.parametrize(
    ("interval", "days"),
    [("31536000s", 365), ("604800s", 7), ("365d", 365), ("648000s", 8), ("168h", 7), ("14400m", 10), (None, None)],
)
def test_a_period_is_told_in_any_unit_and_part_of_a_day_counts_as_one(interval: str | None, days: int | None) -> None:
    assert described(AutomaticRotation="Enabled", RotationInterval=interval).rotation.period_days == days


@pytest.mark.parametrize("interval", ["1y", "365", "0s", "-7d", "7 d", 31536000])
def test_a_period_of_another_form_is_no_answer(interval: object) -> None:
    with pytest.raises((TypeError, ValueError)):
        described(AutomaticRotation="Enabled", RotationInterval=interval)


def test_the_day_of_the_first_version_is_no_rotation() -> None:
    later = "2025-06-01T00:00:00Z"

    assert described().rotation.last_at is None
    assert described(LastRotationDate=later).rotation.last_at == datetime(2025, 6, 1, tzinfo=timezone.utc)


def test_a_period_and_a_next_date_of_a_rotation_that_is_off_do_not_count() -> None:
    off = described(AutomaticRotation="Disabled", RotationInterval="604800s", NextRotationDate="2026-01-01T00:00:00Z")

    assert (off.rotation.period_days, off.rotation.next_at) == (None, None)


@pytest.mark.parametrize(
    ("word", "state"),
    [
        ("Enabled", KeyState.ENABLED),
        ("Disabled", KeyState.DISABLED),
        ("PendingDeletion", KeyState.PENDING_DELETION),
        ("PendingImport", KeyState.PENDING_IMPORT),
        ("Melting", KeyState.UNKNOWN),
    ],
)
def test_states_are_known_by_their_words(word: str, state: KeyState) -> None:
    key = described(KeyState=word, DeleteDate="2026-01-08T00:00:00Z")

    assert key.state is state
    assert (key.deletes_at is not None) == (state is KeyState.PENDING_DELETION)


def test_what_the_cloud_has_no_word_for_here_is_unknown_and_nothing_is_done_to_it() -> None:
    for key in (described(Origin="Elsewhere"), described(KeyUsage="GENERATE/VERIFY")):
        assert key.rotatability.means == frozenset()
    assert described(Origin="Elsewhere").origin is KeyOrigin.UNKNOWN
    assert described(KeyUsage="GENERATE/VERIFY").usage is KeyUsage.UNKNOWN


def test_a_spec_that_is_not_known_is_never_taken_for_one_that_rotates() -> None:
    assert described(KeySpec="Aliyun_AES_512").rotatability.means == {RotationMeans.SUCCESSOR}


def test_an_instance_decides_and_outside_of_one_the_protection_level_does_not() -> None:
    default = described(ProtectionLevel="HSM").rotatability
    software = described(DKMSInstanceId="kst-1").rotatability
    hardware = described(DKMSInstanceId="kst-1", ProtectionLevel="HSM").rotatability

    assert (default.shortest_days, default.longest_days) == (365, 365)
    assert RotationMeans.ON_DEMAND not in default.means
    assert (software.shortest_days, software.longest_days) == (7, 365)
    assert software.means == frozenset(RotationMeans)
    assert hardware.means == {RotationMeans.SUCCESSOR}
    assert hardware.shortest_days is None


def test_a_key_in_an_instance_whose_protection_is_not_told_is_no_answer() -> None:
    with pytest.raises(ValueError, match="ProtectionLevel"):
        described(DKMSInstanceId="kst-1", ProtectionLevel=None)


@pytest.mark.parametrize(
    ("creator", "alias"), [(SHARD.account, "alias/acs/ecs"), ("Ecs", "alias/mine"), (None, "alias/acs/oss")]
)
def test_a_key_of_a_service_is_known_by_its_alias_or_by_who_made_it(creator: str | None, alias: str) -> None:
    metadata = {
        "KeyId": ID,
        "KeyState": "Enabled",
        "KeySpec": "Aliyun_AES_256",
        "KeyUsage": "ENCRYPT/DECRYPT",
        "Origin": "Aliyun_KMS",
        "CreationDate": "2025-01-01T00:00:00Z",
        **({"Creator": creator} if creator else {}),
    }
    key = to_key(SHARD, metadata, RunContext(aliases={ID: [alias]}))

    assert (key.manager, key.is_default, key.rotatability.means) == (KeyManager.CLOUD, True, frozenset())


def test_an_alias_that_only_looks_like_a_services_is_a_customers() -> None:
    around = RunContext(
        aliases={ID: ["alias/acsmine", "alias/acs"]},
        used_by={ID: [ResourceRef("alibaba", SHARD.account, SHARD.region, "volume", "d-1")]},
    )
    key = to_key(
        SHARD,
        {
            "KeyId": ID,
            "KeyState": "Enabled",
            "KeySpec": "RSA_2048",
            "KeyUsage": "SIGN/VERIFY",
            "Origin": "Aliyun_KMS",
            "Creator": SHARD.account,
            "CreationDate": "2025-01-01T00:00:00Z",
            "LastRotationDate": "2025-03-01T00:00:00Z",
        },
        around,
    )

    assert (key.manager, key.is_default) == (KeyManager.CUSTOMER, False)
    assert key.version == "2025-03-01T00:00:00Z"  # a pair has no primary version
    assert [ref.native_id for ref in key.used_by] == ["d-1"]


def test_a_session_that_rotates_keys_can_do_two_things_and_no_other_can() -> None:
    changing = {name for name, one in REACH[Purpose.ROTATE].items() if one.changes_something}

    assert changing == {"kms:UpdateRotationPolicy", "kms:CreateKeyVersion"}
    assert not changing & OPERATIONS.keys()
    assert {name.partition(":")[0] for name in REACH[Purpose.ROTATE]} == {"kms", "sts", "ecs"}
    forbidden = ("Disable", "Delete", "Schedule", "Import", "Decrypt", "Encrypt", "Generate")
    assert not [name for name in REACH[Purpose.ROTATE] if name.partition(":")[2].startswith(forbidden)]


def test_rotating_is_granted_on_keys_and_reading_them_apart() -> None:
    reading, rotating = policy_document({Feature.KEYS, Feature.ROTATE})["Statement"]

    assert reading["Action"] == [
        "ecs:DescribeDisks",
        "kms:DescribeAccountKmsStatus",
        "kms:DescribeKey",
        "kms:ListAliases",
        "kms:ListKeys",
        "kms:ListTagResources",
    ]
    assert rotating == {
        "Effect": "Allow",
        "Action": ["kms:CreateKeyVersion", "kms:UpdateRotationPolicy"],
        "Resource": ["acs:kms:*:*:key/*"],
    }
