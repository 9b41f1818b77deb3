"""Why the sandbox answers KMS itself, and that it refuses as AWS documents; asked with the SDK alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws
from tests.contract.aws_keys import IMPORTED, PRIMARY, AwsKeyRig, aws_keys, key_id
from tests.contract.aws_stand_in import setup_client
from tests.contract.key_rigs import DISABLED, DOOMED, REPLICA, ROTATING, SERVICE, STILL

from cloudstand.aws.core.questions import RefusedQuestionError
from cloudstand.world.records import Operation


@pytest.fixture(scope="module")
def rig() -> Iterator[AwsKeyRig]:
    with aws_keys() as made:
        made.reset()
        yield made


@pytest.fixture(scope="module")
def kms(rig: AwsKeyRig) -> Iterator[Any]:
    keys = dict(zip(("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"), rig.own, strict=True))
    client = setup_client("kms", rig.url, rig.shard.region, keys)
    yield client
    client.close()


def refusal(ask: Any, **parameters: Any) -> str:
    with pytest.raises(ClientError) as caught:
        ask(**parameters)
    return str(caught.value.response["Error"]["Code"])


def test_moto_rotates_what_aws_refuses_and_counts_nothing() -> None:
    """Where this fails moto closed the gap: let it answer."""
    with mock_aws():
        kms = boto3.client("kms", region_name="us-east-1")
        pair = kms.create_key(KeySpec="RSA_2048", KeyUsage="SIGN_VERIFY")["KeyMetadata"]["KeyId"]
        for _ in range(12):
            kms.rotate_key_on_demand(KeyId=pair)
        kms.enable_key_rotation(KeyId=pair, RotationPeriodInDays=90)
        told = kms.get_key_rotation_status(KeyId=pair)
        assert told["KeyRotationEnabled"] is True
        assert "NextRotationDate" not in told


@pytest.mark.parametrize(
    ("name", "enable", "rotate"),
    [
        ("signing", "UnsupportedOperationException", "UnsupportedOperationException"),
        ("mac", "UnsupportedOperationException", "UnsupportedOperationException"),
        ("own-module", "UnsupportedOperationException", "UnsupportedOperationException"),
        (SERVICE, "UnsupportedOperationException", "UnsupportedOperationException"),
        (IMPORTED, "UnsupportedOperationException", "KMSInvalidStateException"),
        (DISABLED, "DisabledException", "DisabledException"),
        (DOOMED, "KMSInvalidStateException", "KMSInvalidStateException"),
        (REPLICA, "UnsupportedOperationException", "UnsupportedOperationException"),
    ],
)
def test_what_aws_refuses_is_refused(kms: Any, name: str, enable: str, rotate: str) -> None:
    asked = {"KeyId": key_id(name)}
    assert refusal(kms.enable_key_rotation, **asked, RotationPeriodInDays=90) == enable
    assert refusal(kms.rotate_key_on_demand, **asked) == rotate


@pytest.mark.parametrize("days", [89, 2561, True, "90"])
def test_a_period_outside_the_documented_range_is_refused(rig: AwsKeyRig, days: object) -> None:
    """Past the SDK, which knows the lower end itself."""
    asked = {"KeyId": key_id(STILL), "RotationPeriodInDays": days}
    with pytest.raises(RefusedQuestionError) as caught:
        rig.aws.gateway.keys.answer("EnableKeyRotation", rig.shard.account, rig.shard.region, asked)
    assert caught.value.code == "ValidationException"


def test_aws_takes_a_year_where_no_period_is_named(rig: AwsKeyRig, kms: Any) -> None:
    kms.enable_key_rotation(KeyId=key_id(STILL))
    assert rig.world.keys.get(rig.keys[STILL].ref).period_days == 365


def test_pages_are_as_large_as_asked_for_and_documented(kms: Any) -> None:
    first = kms.list_keys(Limit=3)
    second = kms.list_keys(Limit=3, Marker=first["NextMarker"])
    assert (len(first["Keys"]), first["Truncated"], len(second["Keys"])) == (3, True, 3)
    assert refusal(kms.list_aliases, Limit=101) == "ValidationException"
    assert refusal(kms.list_resource_tags, KeyId=key_id(STILL), Limit=51) == "ValidationException"
    assert refusal(kms.list_keys, Marker="elsewhere") == "InvalidMarkerException"


def test_a_key_is_described_by_its_alias_and_rotated_by_its_id_alone(kms: Any) -> None:
    assert kms.describe_key(KeyId="alias/training")["KeyMetadata"]["KeyId"] == key_id(ROTATING)
    assert refusal(kms.rotate_key_on_demand, KeyId="alias/training") == "NotFoundException"


def test_rotations_come_with_their_type_and_the_first_material_only_when_asked_for(kms: Any) -> None:
    told = kms.list_key_rotations(KeyId=key_id(ROTATING))["Rotations"]
    assert [one["RotationType"] for one in told] == ["ON_DEMAND", "AUTOMATIC"]
    whole = kms.list_key_rotations(KeyId=key_id(ROTATING), IncludeKeyMaterial="ALL_KEY_MATERIAL")["Rotations"]
    assert [one["KeyMaterialState"] for one in whole] == ["NON_CURRENT", "NON_CURRENT", "CURRENT"]
    assert "RotationDate" not in whole[0]


def test_a_replica_shows_what_its_primary_is_set_to(kms: Any) -> None:
    assert kms.get_key_rotation_status(KeyId=key_id(REPLICA))["RotationPeriodInDays"] == 120
    assert kms.get_key_rotation_status(KeyId=key_id(PRIMARY))["RotationPeriodInDays"] == 90


def test_what_the_sandbox_does_not_have_is_refused(rig: AwsKeyRig, kms: Any) -> None:
    before = list(rig.world.keys.history)
    assert refusal(kms.schedule_key_deletion, KeyId=key_id(STILL)) == "UnknownOperationException"
    assert refusal(kms.disable_key, KeyId=key_id(STILL)) == "UnknownOperationException"
    assert rig.world.keys.history == before


def test_a_denied_role_may_still_do_the_other_thing(rig: AwsKeyRig, kms: Any) -> None:
    rig.deny(Operation.ROTATE)
    try:
        assert refusal(kms.rotate_key_on_demand, KeyId=key_id(ROTATING)) == "AccessDeniedException"
        assert kms.list_keys()["Keys"]
    finally:
        rig.world.allow(rig.cloud, rig.shard.account, Operation.ROTATE)
