"""KMS of the Tencent Cloud emulator through the vendor's own SDK: lists, filters, refusals and the limit of a day."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from tencentcloud.common.common_client import CommonClient
from tencentcloud.common.credential import Credential
from tencentcloud.common.exception.tencent_cloud_sdk_exception import TencentCloudSDKException
from tencentcloud.common.profile.client_profile import ClientProfile
from tencentcloud.common.profile.http_profile import HttpProfile
from tests.world_ports.translate import to_world

from cloudstand.clock import MovedClock
from cloudstand.fleets import TENCENT_ACCOUNT, tencent_machine
from cloudstand.tencent.emulator import TencentEmulator
from cloudstand.wire.door import WorldDoor
from cloudstand.world import workload as does
from cloudstand.world.cloud import World
from cloudstand.world.fleet import made_up_request_id
from cloudstand.world.keys import KeyManager, KeyOrigin, Keys, KeyState, KeyUsage, MultiRegion, WorldKey
from cloudstand.world.records import Operation
from costguard.domain.refs import ResourceRef

AT = datetime(2026, 3, 2, 9, tzinfo=timezone.utc)
DAY = timedelta(days=1)
HERE, THERE = "ap-guangzhou", "ap-shanghai"
VERSIONS = {"kms": "2019-01-18", "tag": "2018-08-13"}


@dataclass
class Cloud:
    """One emulator with its world, and calls through the real SDK."""

    emulator: TencentEmulator
    world: World
    clock: MovedClock
    made: int = 0

    def key(self, region: str = HERE, **fields: Any) -> WorldKey:
        self.made += 1
        ref = ResourceRef("tencent", TENCENT_ACCOUNT, region, "key", made_up_request_id("key", str(self.made)))
        made = {"spec": "AES_256", "created_at": AT - 400 * DAY + timedelta(hours=self.made), **fields}
        return self.world.keys.add(WorldKey(to_world(ref), **made))

    def ask(self, action: str, *, service: str = "kms", region: str = HERE, **parameters: Any) -> dict[str, Any]:
        keys = self.emulator.keys
        http = HttpProfile(protocol="http", endpoint=self.emulator.url.removeprefix("http://"))
        credential = Credential(keys.key_id, keys.secret)
        client = CommonClient(service, VERSIONS[service], credential, region, ClientProfile(httpProfile=http))
        answer: dict[str, Any] = client.call_json(action, parameters)["Response"]
        return answer

    def refusal(self, action: str, **asked: Any) -> str:
        with pytest.raises(TencentCloudSDKException) as raised:
            self.ask(action, **asked)
        return str(raised.value.code)

    def listed(self, **asked: Any) -> list[str]:
        return [each["KeyId"] for each in self.ask("ListKeyDetail", **asked)["KeyMetadatas"]]


@pytest.fixture(scope="module")
def served() -> Iterator[Cloud]:
    clock = MovedClock(AT)
    world = World([tencent_machine("elsewhere", does.idle(), AT - 9 * DAY)], AT)
    with TencentEmulator(WorldDoor(world, clock)) as emulator:
        yield Cloud(emulator, world, clock)


@pytest.fixture
def cloud(served: Cloud) -> Cloud:
    """The one emulator, with no key and nothing set."""
    served.world.keys = Keys()
    served.emulator.allowed.clear()
    desk = served.emulator.key_desk
    desk.regions, desk.keeps_period, desk.null_lists = None, False, False
    desk.unopened.clear()
    desk.cut_off.clear()
    return served


def test_without_filters_there_are_users_symmetric_keys_ten_a_page_and_newest_first(cloud: Cloud) -> None:
    made = [cloud.key() for _ in range(11)]
    cloud.key(spec="SM2", usage=KeyUsage.SIGN)
    cloud.key(manager=KeyManager.CLOUD)
    cloud.key(THERE)
    answer = cloud.ask("ListKeyDetail")
    assert answer["TotalCount"] == 11
    assert [each["KeyId"] for each in answer["KeyMetadatas"]] == [key.ref.native_id for key in reversed(made[1:])]


def test_filters_let_through_what_they_name(cloud: Cloud) -> None:
    plain = cloud.key(aliases=["training"], tags={"team": "research"}).ref.native_id
    off = cloud.key(state=KeyState.DISABLED, origin=KeyOrigin.IMPORTED).ref.native_id
    pair = cloud.key(spec="RSA_2048").ref.native_id
    product = cloud.key(manager=KeyManager.CLOUD, service="cos").ref.native_id
    clustered = cloud.key(instance="cls-hsm-1", origin=KeyOrigin.CUSTOM_STORE).ref.native_id
    oldest_first = {"OrderType": 1}
    assert cloud.listed(KeyUsage="ALL", **oldest_first) == [plain, off, pair, clustered]
    assert cloud.listed(KeyUsage="ASYMMETRIC_DECRYPT_RSA_2048") == [pair]
    assert cloud.listed(Role=1) == [product]
    assert cloud.listed(KeyState=2) == [off]
    assert cloud.listed(Origin="EXTERNAL") == [off]
    assert cloud.listed(SearchKeyAlias="train") == [plain]
    assert cloud.listed(TagFilters=[{"TagKey": "team", "TagValue": ["research"]}]) == [plain]
    assert cloud.listed(HsmClusterId="default", **oldest_first) == [plain, off]
    assert cloud.listed(HsmClusterId="cls-hsm-1") == [clustered]


def test_a_key_is_told_as_the_vendor_tells_it(cloud: Cloud) -> None:
    """Times in whole seconds, 0 for none, and a next rotation for a key that never rotates by itself."""
    key = cloud.key(aliases=["training"], deletes_at=AT + 7 * DAY, state=KeyState.PENDING_DELETION)
    (told,) = cloud.ask("ListKeyDetail")["KeyMetadatas"]
    created = int(key.created_at.timestamp())
    assert (told["CreateTime"], told["DeletionDate"]) == (created, int((AT + 7 * DAY).timestamp()))
    assert (told["KeyRotationEnabled"], told["LastRotateTime"]) == (False, 0)
    assert told["NextRotateTime"] == created + 365 * 86_400
    assert told["ResourceId"] == f"creatorUin/{TENCENT_ACCOUNT}/{key.ref.native_id}"
    assert (told["Owner"], told["Type"], told["Alias"]) == ("user", 2, "training")


def test_a_replica_tells_where_it_comes_from(cloud: Cloud) -> None:
    source = cloud.key(THERE, multi_region=MultiRegion.PRIMARY)
    copy = WorldKey(
        to_world(ResourceRef("tencent", TENCENT_ACCOUNT, HERE, "key", source.ref.native_id)),
        "SM4",
        AT,
        multi_region=MultiRegion.REPLICA,
        primary=source.ref,
    )
    cloud.world.keys.add(copy)
    (told,) = cloud.ask("ListKeyDetail")["KeyMetadatas"]
    assert (told["IsSyncReplica"], told["SourceRegion"], told["SyncStatus"], told["Type"]) == (1, THERE, 1, 4)
    (first,) = cloud.ask("ListKeyDetail", region=THERE)["KeyMetadatas"]
    assert (first["IsSyncReplica"], first["SyncStatus"]) == (0, 1)


def test_rotation_is_turned_on_with_a_period_and_happens_by_itself(cloud: Cloud) -> None:
    key = cloud.key(created_at=AT - DAY)
    cloud.ask("EnableKeyRotation", KeyId=key.ref.native_id)
    assert key.period_days == 365
    cloud.ask("EnableKeyRotation", KeyId=key.ref.native_id, RotateDays=7)
    cloud.world.keys.tick(AT + 6 * DAY)
    (told,) = cloud.ask("ListKeyDetail")["KeyMetadatas"]
    assert (told["KeyRotationEnabled"], told["RotateDays"]) == (True, 7)
    assert told["LastRotateTime"] == int((AT + 6 * DAY).timestamp())
    assert told["NextRotateTime"] == int((AT + 13 * DAY).timestamp())


def test_once_in_24_hours_a_key_is_rotated_at_once(cloud: Cloud) -> None:
    key = cloud.key(period_days=365, created_at=AT - DAY)
    key.on_demand.append(cloud.world.now - DAY)
    assert cloud.ask("RotateKey", KeyId=key.ref.native_id)["TaskId"]
    assert key.rotations == [cloud.world.now]
    assert cloud.refusal("RotateKey", KeyId=key.ref.native_id) == "RequestLimitExceeded.RotateRateLimited"


@pytest.mark.parametrize(
    ("fields", "enabling", "rotating"),
    [
        ({}, "", "UnsupportedOperation.RotateNotSupported"),
        ({"origin": KeyOrigin.IMPORTED}, "UnsupportedOperation.ExternalCmkCanNotRotate", None),
        ({"multi_region": MultiRegion.REPLICA}, "UnsupportedOperation.RotateNotSupported", None),
        ({"spec": "SM2"}, "UnsupportedOperation.RotateNotSupported", None),
        ({"manager": KeyManager.CLOUD}, *["UnsupportedOperation.NotUserCreatedCmk"] * 2),
        ({"state": KeyState.DISABLED}, *["ResourceUnavailable.CmkDisabled"] * 2),
        ({"state": KeyState.PENDING_DELETION}, *["ResourceUnavailable.KeyPendingDelete"] * 2),
        ({"state": KeyState.PENDING_IMPORT}, *["ResourceUnavailable.CmkStateNotSupport"] * 2),
        ({"state": KeyState.UNAVAILABLE}, *["ResourceUnavailable.CmkArchived"] * 2),
    ],
)
def test_what_cannot_rotate_is_refused_in_the_vendors_words(
    cloud: Cloud, fields: dict[str, Any], enabling: str, rotating: str | None
) -> None:
    key = cloud.key(**fields)
    wanted = rotating or "UnsupportedOperation.RotateNotSupported"
    assert cloud.refusal("RotateKey", KeyId=key.ref.native_id) == wanted
    if enabling:
        assert cloud.refusal("EnableKeyRotation", KeyId=key.ref.native_id) == enabling
    assert (key.rotations, key.period_days) == ([], None)


@pytest.mark.parametrize(
    ("action", "asked", "code"),
    [
        ("ListKeyDetail", {"Limit": 201}, "InvalidParameter"),
        ("ListKeyDetail", {"KeyState": 6}, "InvalidParameter"),
        ("ListKeyDetail", {"Origin": "external"}, "InvalidParameter"),
        ("ListKeyDetail", {"KeyUsage": "SIGN"}, "InvalidParameterValue.InvalidKeyUsage"),
        ("ListKeyDetail", {"Offset": "0"}, "InvalidParameter"),
        ("ListKeyDetail", {"Filters": []}, "UnknownParameter"),
        ("ListKeyDetail", {"MemberAccounts": []}, "Emulator.NotModelled"),
        ("EnableKeyRotation", {}, "MissingParameter"),
        ("EnableKeyRotation", {"KeyId": "x", "RotateDays": 6}, "InvalidParameter"),
        ("EnableKeyRotation", {"KeyId": "x", "RotateDays": 366}, "InvalidParameter"),
        ("EnableKeyRotation", {"KeyId": "x"}, "InvalidParameterValue.InvalidKeyId"),
        ("RotateKey", {"KeyId": made_up_request_id("unheard of")}, "ResourceUnavailable.CmkNotFound"),
        ("ScheduleKeyDeletion", {"KeyId": "x"}, "InvalidAction"),
    ],
)
def test_requests_are_as_published_or_refused(cloud: Cloud, action: str, asked: dict[str, Any], code: str) -> None:
    assert cloud.refusal(action, **asked) == code


def test_a_key_of_another_region_is_not_here(cloud: Cloud) -> None:
    key = cloud.key(THERE)
    assert cloud.refusal("EnableKeyRotation", KeyId=key.ref.native_id) == "ResourceUnavailable.CmkNotFound"


def test_regions_without_the_service_are_not_named_and_refuse(cloud: Cloud) -> None:
    assert {HERE, THERE} <= set(cloud.ask("GetRegions", region="")["Regions"])
    cloud.emulator.key_desk.regions = frozenset({HERE})
    assert cloud.ask("GetRegions")["Regions"] == [HERE]
    assert cloud.refusal("ListKeyDetail", region=THERE) == "UnsupportedRegion"


def test_the_status_says_why_there_is_no_service(cloud: Cloud) -> None:
    assert cloud.ask("GetServiceStatus")["ServiceEnabled"] is True
    cloud.emulator.key_desk.cut_off.add(TENCENT_ACCOUNT)
    assert cloud.ask("GetServiceStatus")["InvalidType"] == 2
    cloud.emulator.key_desk.unopened.add(TENCENT_ACCOUNT)
    told = cloud.ask("GetServiceStatus")
    assert (told["ServiceEnabled"], told["InvalidType"]) == (False, 0)
    assert cloud.refusal("ListKeyDetail") == "UnauthorizedOperation"


def test_callers_may_do_what_they_are_allowed_and_no_more(cloud: Cloud) -> None:
    key = cloud.key()
    cloud.emulator.allowed[TENCENT_ACCOUNT] = {"kms:ListKeyDetail"}
    assert cloud.listed() == [key.ref.native_id]
    assert cloud.refusal("EnableKeyRotation", KeyId=key.ref.native_id) == "UnauthorizedOperation"
    cloud.emulator.allowed.clear()
    for operation in (Operation.KEYS, Operation.ROTATE):
        cloud.world.deny("tencent", TENCENT_ACCOUNT, operation)
    assert cloud.refusal("ListKeyDetail") == "UnauthorizedOperation"
    assert cloud.refusal("RotateKey", KeyId=key.ref.native_id) == "UnauthorizedOperation"
    for operation in (Operation.KEYS, Operation.ROTATE):
        cloud.world.allow("tencent", TENCENT_ACCOUNT, operation)


def test_tags_of_keys_come_by_pages(cloud: Cloud) -> None:
    first, second = cloud.key(tags={"a": "1", "b": "2"}), cloud.key(tags={"a": "3"})
    asked: dict[str, Any] = {
        "ServiceType": "kms",
        "ResourcePrefix": "key",
        "ResourceRegion": HERE,
        "ResourceIds": [second.ref.native_id, first.ref.native_id, "unheard-of"],
        "Limit": 2,
    }
    pages = [cloud.ask("DescribeResourceTagsByResourceIds", service="tag", Offset=at, **asked) for at in (0, 2)]
    assert [page["TotalCount"] for page in pages] == [3, 3]
    found = [(tag["ResourceId"], tag["TagKey"], tag["TagValue"]) for page in pages for tag in page["Tags"]]
    assert found == [(first.ref.native_id, "a", "1"), (first.ref.native_id, "b", "2"), (second.ref.native_id, "a", "3")]
    name = "DescribeResourceTagsByResourceIds"
    assert cloud.refusal(name, service="tag", **asked, Offset=1) == "InvalidParameterValue"
    too_many = {**asked, "ResourceIds": ["x"] * 51}
    assert cloud.refusal(name, service="tag", **too_many) == "LimitExceeded.ResourceNumPerRequest"
    machines = {**asked, "ServiceType": "cvm", "ResourcePrefix": "instance"}
    assert cloud.refusal(name, service="tag", **machines) == "Emulator.NotModelled"
