"""What only AWS does to who reads and rotates its keys: what a key costs to read, its refusals, and its oddities."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from tests.contract.aws_keys import DAY, IMPORTED, PRIMARY, AwsKeyRig, aws_keys, key_id
from tests.contract.key_rigs import DISABLED, REPLICA, ROTATING, SERVICE, STILL
from tests.world_ports.translate import to_product, to_world

from costguard.domain.errors import NotFoundError, OutcomeUnknownError, ProviderError, RefusedError
from costguard.domain.keys import EncryptionKey, KeyState, RotationMeans
from costguard.domain.resources import GapKind
from costguard.providers.aws.core.session import AwsSession
from costguard.providers.aws.kms.source import CALLS_A_KEY, AwsKeys

TWO = (ROTATING, STILL)
REGION = ["kms:ListKeys", "kms:ListAliases", "ec2:DescribeVolumes"]
WHOLE = ["kms:DescribeKey", "kms:GetKeyRotationStatus", "kms:ListKeyRotations", "kms:ListResourceTags"]


@pytest.fixture(scope="module")
def aws() -> Iterator[AwsKeyRig]:
    with aws_keys() as made:
        yield made


@pytest.fixture
def rig(aws: AwsKeyRig) -> AwsKeyRig:
    aws.reset(TWO)
    return aws


def only(rig: AwsKeyRig, *names: str) -> AwsKeyRig:
    rig.reset(names)
    return rig


def refused(ask: Callable[[], object], code: str) -> RefusedError:
    with pytest.raises(RefusedError) as caught:
        ask()
    assert caught.value.code == code
    return caught.value


@pytest.mark.parametrize(
    ("name", "calls"),
    [
        (STILL, WHOLE),
        (DISABLED, WHOLE),
        (PRIMARY, WHOLE),
        (IMPORTED, ["kms:DescribeKey", "kms:ListKeyRotations", "kms:ListResourceTags"]),
        ("signing", ["kms:DescribeKey", "kms:ListResourceTags"]),
        ("mac", ["kms:DescribeKey", "kms:ListResourceTags"]),
        ("own-module", ["kms:DescribeKey", "kms:ListResourceTags"]),
        (SERVICE, ["kms:DescribeKey"]),
    ],
)
def test_a_key_is_asked_about_what_its_kind_has_to_tell(aws: AwsKeyRig, name: str, calls: list[str]) -> None:
    rig = only(aws, name)
    assert rig.read().gaps == ()
    assert Counter(rig.requests()) == Counter([*REGION, *calls])
    assert len(calls) <= CALLS_A_KEY == len(WHOLE)


def test_a_region_without_keys_takes_one_request(rig: AwsKeyRig) -> None:
    rig.source().read(rig.empty)
    assert rig.requests() == ["kms:ListKeys"]


def test_aliases_are_listed_once_for_the_region_and_not_for_every_key(rig: AwsKeyRig) -> None:
    for number in range(8):
        rig.world.keys.add(replace(rig.keys[STILL], ref=to_world(rig.ref(f"k-{number}")), aliases=[f"alias-{number}"]))
    found = rig.read()
    assert len(found.keys) == 8 + len(TWO)
    asked = Counter(rig.requests())
    assert asked["kms:ListAliases"] == 1
    assert asked.total() == len(REGION) + CALLS_A_KEY * len(found.keys)


@pytest.mark.parametrize("operation", ["GetKeyRotationStatus", "ListKeyRotations", "ListResourceTags"])
def test_a_key_of_which_one_answer_is_denied_is_named_and_left_alone(rig: AwsKeyRig, operation: str) -> None:
    rig.stand_in.fail(operation, 400, "AccessDeniedException", holding=key_id(ROTATING))
    inventory = rig.read()
    (gap,) = inventory.gaps
    assert (gap.what, gap.kind) == ("details", GapKind.DENIED)
    assert key_id(ROTATING) in gap.detail
    assert f"kms:{operation}" in gap.fix
    assert "policy of the key" in gap.fix
    (key,) = (key for key in inventory.keys if key.ref == to_product(rig.keys[ROTATING].ref))
    assert (key.state, key.rotatability.means) == (KeyState.UNKNOWN, frozenset())
    assert len(inventory.keys) == len(TWO)


def test_many_keys_that_fail_in_one_way_are_one_gap(rig: AwsKeyRig) -> None:
    for number in range(6):
        rig.world.keys.add(replace(rig.keys[STILL], ref=to_world(rig.ref(f"k-{number}")), aliases=[]))
    rig.stand_in.fail("DescribeKey", 400, "AccessDeniedException")
    inventory = rig.read()
    (gap,) = inventory.gaps
    assert "8 of 8 keys" in gap.detail
    assert len(inventory.keys) == 8


@pytest.mark.parametrize(("action", "what"), [("ListAliases", "inventory"), ("DescribeVolumes", "details")])
def test_without_aliases_the_region_is_incomplete_and_without_disks_it_is_not(
    rig: AwsKeyRig, action: str, what: str
) -> None:
    rig.stand_in.fail(action, 400, "AccessDeniedException")
    inventory = rig.read()
    assert [gap.what for gap in inventory.gaps] == [what]
    assert len(inventory.keys) == len(TWO)


def test_a_list_that_breaks_off_is_incomplete_and_shows_what_it_has(rig: AwsKeyRig) -> None:
    rig.small_pages()
    rig.world.keys.add(replace(rig.keys[STILL], ref=to_world(rig.ref("k-3")), aliases=[]))
    rig.stand_in.fail("ListKeys", 400, "AccessDeniedException", holding="Marker")
    inventory = rig.read()
    assert [(gap.what, gap.kind) for gap in inventory.gaps] == [("inventory", GapKind.DENIED)]
    assert len(inventory.keys) == 2


def test_a_marker_that_comes_twice_is_no_short_list(rig: AwsKeyRig) -> None:
    rig.stand_in.change_answers("ListKeys", altered(NextMarker="2", Truncated=True))
    assert [(gap.what, gap.kind) for gap in rig.read().gaps] == [("inventory", GapKind.TRUNCATED)]


def altered(**changes: Any) -> Callable[[bytes], bytes]:
    return lambda body: json.dumps({**json.loads(body), **changes}).encode()


def test_a_key_of_which_aws_names_no_spec_is_unknown_and_not_one_that_cannot_rotate(rig: AwsKeyRig) -> None:
    def without_spec(body: bytes) -> bytes:
        told = json.loads(body)["KeyMetadata"]
        return json.dumps({"KeyMetadata": {name: told[name] for name in told if not name.endswith("KeySpec")}}).encode()

    rig.stand_in.change_answers("DescribeKey", without_spec)
    inventory = rig.read()
    assert {key.state for key in inventory.keys} == {KeyState.UNKNOWN}
    assert all("KeySpec is missing" in gap.detail for gap in inventory.gaps)
    assert {key.rotation.automatic for key in inventory.keys} == {None}


@pytest.mark.parametrize(
    ("action", "changes"),
    [
        ("DescribeKey", {"KeyMetadata": {}}),
        ("DescribeKey", {"KeyMetadata": {"KeyId": "another", "KeyManager": "CUSTOMER"}}),
        ("GetKeyRotationStatus", {"KeyRotationEnabled": None}),
        ("ListResourceTags", {"Tags": None}),
        ("ListResourceTags", {"Truncated": True}),
        ("ListKeyRotations", {"Rotations": None}),
    ],
)
def test_an_answer_about_a_key_that_is_not_as_documented_is_a_gap(
    rig: AwsKeyRig, action: str, changes: dict[str, Any]
) -> None:
    rig.stand_in.change_answers(action, altered(**changes))
    inventory = rig.read()
    assert {gap.what for gap in inventory.gaps} == {"details"}
    assert len(inventory.keys) == len(TWO)
    assert all(key.rotatability.means == frozenset() for key in inventory.keys)


def test_a_list_of_keys_without_keys_is_no_empty_region(rig: AwsKeyRig) -> None:
    rig.stand_in.answer("ListKeys", '{"Truncated": false}')
    with pytest.raises(ProviderError, match="not as documented"):
        rig.read()


def test_a_key_that_is_gone_by_now_is_gone(rig: AwsKeyRig) -> None:
    rig.stand_in.fail("DescribeKey", 400, "NotFoundException", holding=key_id(STILL))
    inventory = rig.read()
    assert inventory.gaps == ()
    assert to_product(rig.keys[STILL].ref) not in {key.ref for key in inventory.keys}


def test_a_run_out_of_time_keeps_every_key_and_says_so(rig: AwsKeyRig) -> None:
    times = iter([60.0] * 6)
    session = AwsSession(endpoint_url=rig.url, keys=rig.own, deadline=lambda: next(times, 0.0))
    inventory = AwsKeys(session).read(rig.shard)
    session.close()
    assert {gap.kind for gap in inventory.gaps} == {GapKind.DEADLINE}
    assert len(inventory.keys) == len(TWO)


def test_a_disk_may_name_the_alias_of_its_key(rig: AwsKeyRig) -> None:
    def by_alias(body: bytes) -> bytes:
        arn = f"arn:aws:kms:us-east-1:{rig.shard.account}"
        return body.replace(f"{arn}:key/{key_id(ROTATING)}".encode(), f"{arn}:alias/archive".encode())

    rig.stand_in.change_answers("DescribeVolumes", by_alias)
    assert {key.ref.native_id for key in rig.read().keys if key.used_by} == {key_id(STILL)}


def imported(rig: AwsKeyRig) -> EncryptionKey:
    only(rig, IMPORTED)
    rig.aws.gateway.keys.material_waits.add(key_id(IMPORTED))
    return rig.found(IMPORTED)


def test_imported_material_rotates_once_its_owner_imported_more_and_then_no_more(aws: AwsKeyRig) -> None:
    key = imported(aws)
    assert RotationMeans.ON_DEMAND in key.rotatability.means
    aws.rotator().rotate(key)
    assert aws.found(IMPORTED).rotatability.means == {RotationMeans.SUCCESSOR}
    refused(lambda: aws.rotator().rotate(key), "KMSInvalidStateException")


def test_past_the_quota_a_rotation_on_demand_is_offered_no_more_and_refused_by_the_stand_in(rig: AwsKeyRig) -> None:
    key = rig.found(STILL)
    for _ in range(25):
        rig.rotator().rotate(key)
        rig.advance(DAY)
    found = rig.found(STILL)
    assert found.rotation.on_demand_used == 25
    assert found.rotatability.means == {RotationMeans.AUTOMATIC, RotationMeans.SUCCESSOR}
    err = refused(lambda: rig.rotator().rotate(key), "LimitExceededException")
    assert "used up" in str(err)


def test_a_rotation_under_way_is_refused_by_that_name_and_counted_as_used(rig: AwsKeyRig) -> None:
    rig.aws.gateway.keys.under_way.add(key_id(STILL))
    key = rig.found(STILL)
    assert (key.rotation.on_demand_used, key.rotation.last_at) == (1, None)
    err = refused(lambda: rig.rotator().rotate(key), "ConflictException")
    assert "under way" in str(err)
    assert rig.changes() == ["kms:RotateKeyOnDemand"]


@pytest.mark.parametrize(
    ("name", "code"),
    [
        (DISABLED, "DisabledException"),
        ("doomed", "KMSInvalidStateException"),
        ("signing", "UnsupportedOperationException"),
        (REPLICA, "UnsupportedOperationException"),
    ],
)
def test_refusals_keep_awss_code_and_say_what_they_mean(aws: AwsKeyRig, name: str, code: str) -> None:
    rig = only(aws, name, "far", STILL)
    able = rig.found(STILL)
    forged = replace(able, ref=to_product(rig.keys[name].ref))
    for ask in (lambda: rig.rotator().rotate(forged), lambda: rig.rotator().set_period(forged, 90)):
        assert "; " in str(refused(ask, code))


def test_a_fault_of_kms_after_sending_leaves_the_outcome_unknown(rig: AwsKeyRig) -> None:
    rig.stand_in.fail("RotateKeyOnDemand", 500, "KMSInternalException")
    with pytest.raises(OutcomeUnknownError, match="KMSInternalException"):
        rig.rotator().rotate(rig.found(STILL))
    assert len(rig.changes()) == 1


def test_a_key_that_is_gone_is_not_found(rig: AwsKeyRig) -> None:
    gone = replace(rig.found(STILL), ref=rig.ref("0a1b2c3d-0000-4000-8000-999999999999"))
    with pytest.raises(NotFoundError):
        rig.rotator().rotate(gone)


def test_the_period_is_always_named(rig: AwsKeyRig) -> None:
    """Without one AWS takes 365 days."""
    rig.rotator().set_period(rig.found(STILL), 200)
    assert rig.world.keys.get(rig.keys[STILL].ref).period_days == 200
