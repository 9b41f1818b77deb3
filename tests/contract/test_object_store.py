"""What every object store promises, on each adapter: whole and private, or an error that says why."""

from __future__ import annotations

import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto import mock_aws
from tests.world_ports.translate import to_world

from cloudstand.alibaba.core.objects import oss_stand_in
from cloudstand.tencent.core.objects import cos_stand_in
from cloudstand.wire.faults import Fault, FaultKind
from cloudstand.wire.objects import ObjectStandIn
from costguard.adapters.object_stores.folder import FolderStore
from costguard.connections.secrets import SecretKeeper
from costguard.domain.errors import (
    AccessDeniedError,
    InvalidInputError,
    NotFoundError,
    ProviderError,
    RefusedError,
    ThrottledError,
    TruncatedReadError,
)
from costguard.ports import ObjectStore
from costguard.ports.records import MOST_BYTES, BucketAddress, bucket_address
from costguard.providers.alibaba.core import services as oss
from costguard.providers.aws.core import services as s3
from costguard.providers.kit.core.credentials import Keys
from costguard.providers.tencent.core import services as cos
from costguard.settings import load_settings

NOW = datetime(2026, 1, 19, 6, 7, 8, tzinfo=timezone.utc)
KEYS = Keys("key-id", "a secret", "a token")
PAGE = "<!doctype html><p>周报".encode()
HTML = "text/html; charset=utf-8"
NAME = "digests/2026-W03.html"


def _now() -> datetime:
    return NOW


@dataclass(frozen=True)
class Place:
    """An adapter, what else it would be with other keys or another bucket, and what it kept."""

    store: ObjectStore
    kept: Callable[[str], bytes]
    stranger: Callable[[], ObjectStore] | None = None
    elsewhere: Callable[[], ObjectStore] | None = None
    stand_in: ObjectStandIn | None = None
    put_raw: Callable[[str, bytes], object] = field(default=lambda _name, _body: None)


def folder(tmp_path: Path) -> Iterator[Place]:
    root = tmp_path / "reports"

    def put_raw(name: str, body: bytes) -> None:
        (root / name).write_bytes(body)

    yield Place(FolderStore(root), lambda name: (root / name).read_bytes(), put_raw=put_raw)


def s3_place(tmp_path: Path) -> Iterator[Place]:
    del tmp_path
    with mock_aws():
        client: Any = boto3.client("s3", "us-east-1", aws_access_key_id="key-id", aws_secret_access_key="a secret")
        client.create_bucket(Bucket="acme-reports")

        def opened(bucket: str = "acme-reports") -> s3.S3Store:
            return s3.open_s3(f"s3://{bucket}/costguard?region=us-east-1", keys=("key-id", "a secret"))

        def kept(name: str) -> bytes:
            body: bytes = client.get_object(Bucket="acme-reports", Key=f"costguard/{name}")["Body"].read()
            return body

        yield Place(opened(), kept, elsewhere=lambda: opened("no-such-bucket"))
        client.close()


def oss_place(tmp_path: Path) -> Iterator[Place]:
    del tmp_path
    with oss_stand_in("acme-reports", "cn-hangzhou", to_world(KEYS), _now) as bucket:

        def opened(keys: Keys = KEYS, name: str = "acme-reports") -> ObjectStore:
            return oss.open_oss(f"oss://{name}/costguard?region=cn-hangzhou", keys, now=_now, endpoint=bucket.url)

        yield _of_stand_in(bucket, opened)


def cos_place(tmp_path: Path) -> Iterator[Place]:
    del tmp_path
    with cos_stand_in("acme-1250000000", to_world(KEYS), _now) as bucket:

        def opened(keys: Keys = KEYS, name: str = "acme-1250000000") -> ObjectStore:
            return cos.open_cos(f"cos://{name}/costguard?region=ap-guangzhou", keys, now=_now, endpoint=bucket.url)

        yield _of_stand_in(bucket, opened)


def _of_stand_in(bucket: ObjectStandIn, opened: Callable[..., ObjectStore]) -> Place:
    return Place(
        opened(),
        lambda name: bucket.objects[f"costguard/{name}"].body,
        stranger=lambda: opened(Keys("key-id", "another secret", "a token")),
        elsewhere=lambda: opened(name="no-such-1250000000"),
        stand_in=bucket,
    )


PLACES: dict[str, Callable[[Path], Iterator[Place]]] = {
    "folder": folder,
    "s3": s3_place,
    "oss": oss_place,
    "cos": cos_place,
}


@pytest.fixture(params=PLACES, scope="module")
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    yield from PLACES[request.param](tmp_path_factory.mktemp("objects"))


@pytest.fixture(params=["oss", "cos"])
def signed_place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    yield from PLACES[request.param](tmp_path)


def test_what_was_put_is_there_whole_and_the_newest_stands(place: Place) -> None:
    where = place.store.put(NAME, b"old", HTML)
    place.store.put(NAME, PAGE, HTML)

    assert place.store.get(NAME) == place.kept(NAME) == PAGE
    assert where.endswith(NAME)
    assert "secret" not in where


def test_nothing_there_is_said_as_that(place: Place) -> None:
    with pytest.raises(NotFoundError):
        place.store.get("digests/never.html")


def test_a_name_leads_nowhere_else(place: Place) -> None:
    for name in ("../x", "/etc/passwd", "a//b", "a/../b", "", ".hidden", "a b", "a?acl", "a\n", "ü", "a" * 513):
        with pytest.raises(InvalidInputError, match="no name of an object"):
            place.store.put(name, b"x", HTML)
        with pytest.raises(InvalidInputError, match="no name of an object"):
            place.store.get(name)


def test_a_bucket_that_is_not_there_is_never_an_empty_one(place: Place) -> None:
    if place.elsewhere is None:  # a folder is made
        assert place.store.put(NAME, PAGE, HTML)
        return
    with pytest.raises(RefusedError) as raised:
        place.elsewhere().get(NAME)
    assert raised.value.code == "NoSuchBucket"
    with pytest.raises(RefusedError) as raised:
        place.elsewhere().put(NAME, PAGE, HTML)
    assert raised.value.code == "NoSuchBucket"


def test_a_wrong_secret_is_believed_nowhere(signed_place: Place) -> None:
    assert signed_place.stranger is not None
    with pytest.raises(AccessDeniedError) as raised:
        signed_place.stranger().put(NAME, PAGE, HTML)
    assert raised.value.code == "SignatureDoesNotMatch"
    assert signed_place.stand_in is not None
    assert signed_place.stand_in.objects == {}


def test_what_may_not_be_read_is_no_missing_object(signed_place: Place) -> None:
    assert signed_place.stand_in is not None
    signed_place.store.put(NAME, PAGE, HTML)
    signed_place.stand_in.denied = True

    with pytest.raises(AccessDeniedError):
        signed_place.store.get(NAME)


def test_objects_ask_to_be_encrypted_and_never_to_be_public(signed_place: Place) -> None:
    assert signed_place.stand_in is not None
    signed_place.store.put(NAME, PAGE, HTML)

    (kept,) = signed_place.stand_in.objects.values()
    sent = {name.replace("x-oss-", "x-").replace("x-cos-", "x-"): value for name, value in kept.headers.items()}
    assert sent["x-server-side-encryption"] == "AES256"
    assert sent["content-type"] == HTML
    assert sent.get("x-object-acl", "private") == "private"
    assert not [name for name in sent if "acl" in name or "grant" in name if sent[name] != "private"]


@pytest.mark.parametrize("kind", [FaultKind.RESET, FaultKind.LOST_ANSWER])
def test_an_answer_lost_once_is_asked_for_again(signed_place: Place, kind: FaultKind) -> None:
    assert signed_place.stand_in is not None
    signed_place.stand_in.faults.add(Fault(kind, "PUT"))
    signed_place.store.put(NAME, PAGE, HTML)

    signed_place.stand_in.faults.add(Fault(FaultKind.TRUNCATED, "GET"))
    assert signed_place.store.get(NAME) == PAGE


@pytest.mark.parametrize(
    ("code", "status", "kind"),
    [
        ("SlowDown", 503, ThrottledError),
        ("InternalError", 500, ProviderError),
        ("InvalidRequest", 400, RefusedError),
        ("PreconditionFailed", 307, RefusedError),
    ],
)
def test_each_refusal_is_told_by_its_kind(
    signed_place: Place, code: str, status: int, kind: type[ProviderError]
) -> None:
    assert signed_place.stand_in is not None
    signed_place.stand_in.faults.add(Fault(FaultKind.REFUSED, "PUT", times=2, code=code, status=status))

    with pytest.raises(kind) as raised:
        signed_place.store.put(NAME, PAGE, HTML)

    assert raised.value.code == code
    assert code in str(raised.value)


def test_without_credentials_nothing_is_sent() -> None:
    nowhere = "http://127.0.0.1:9"
    stores: tuple[ObjectStore, ...] = (
        oss.open_oss("oss://acme-reports?region=cn-hangzhou", None, now=_now, endpoint=nowhere),
        cos.open_cos("cos://acme-1250000000?region=ap-guangzhou", None, now=_now, endpoint=nowhere),
    )
    for store in stores:
        with pytest.raises(AccessDeniedError, match="no credentials"):
            store.put(NAME, PAGE, HTML)


def test_signatures_are_those_of_the_vendors_own_libraries() -> None:
    """Made with alibabacloud-oss-v2 1.4.1 and cos-python-sdk-v5 1.9.44 from the same headers at the same moment."""
    keys = Keys("ak", "sk", "token")
    common = {"content-type": HTML, "content-md5": "XrY7u+Ae7tCTyyK7j1rNww=="}
    of_oss = oss.signed(
        keys,
        BucketAddress("oss", "acme-reports", "cn-hangzhou", "costguard/"),
        "PUT",
        f"costguard/{NAME}",
        {**common, "x-oss-object-acl": "private", "x-oss-server-side-encryption": "AES256"},
        NOW,
    )
    of_cos = cos.signed(
        keys,
        "PUT",
        f"/costguard/{NAME}",
        {
            **common,
            "x-cos-server-side-encryption": "AES256",
            "host": "acme-1250000000.cos.ap-guangzhou.myqcloud.com",
        },
        NOW,
    )

    assert of_oss["authorization"] == (
        "OSS4-HMAC-SHA256 Credential=ak/20260119/cn-hangzhou/oss/aliyun_v4_request,"
        "Signature=ea9c35ea64d81b5a1eba1871ec5a2cf511385755d4ce3466e84dbdf5355f0557"
    )
    assert of_cos["authorization"] == (
        "q-sign-algorithm=sha1&q-ak=ak&q-sign-time=1768802768;1768803428&q-key-time=1768802768;1768803428"
        "&q-header-list=content-md5;content-type;host;x-cos-security-token;x-cos-server-side-encryption"
        "&q-url-param-list=&q-signature=4ab70371d623d99fcd5f866d562b28393b48dd53"
    )


def test_a_folders_files_are_their_owners_alone_and_never_half_written(tmp_path: Path) -> None:
    where = Path(FolderStore(tmp_path / "reports").put(NAME, PAGE, HTML))

    assert stat.S_IMODE(where.stat().st_mode) == 0o600
    assert stat.S_IMODE(where.parent.stat().st_mode) == 0o700
    assert [path.name for path in where.parent.iterdir()] == [where.name]


def test_a_link_out_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "reports").mkdir()
    (tmp_path / "secret").write_bytes(b"x")
    (tmp_path / "reports" / "page.html").symlink_to(tmp_path / "secret")

    with pytest.raises(RefusedError, match="leads out"):
        FolderStore(tmp_path / "reports").get("page.html")


def test_more_than_anybody_kept_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "long.html").touch()
    with (tmp_path / "long.html").open("r+b") as file:
        file.truncate(MOST_BYTES + 1)  # a hole: no disk is filled

    with pytest.raises(TruncatedReadError, match="longer than 64 MiB"):
        FolderStore(tmp_path).get("long.html")


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("s3://Acme/x?region=us-east-1", "a bucket's name"),
        ("s3://acme/x", "expected ?region="),
        ("s3://acme/x?region=us-east-1&acl=public-read", "and nothing else"),
        ("s3://acme/../x?region=us-east-1", "its prefix"),
        ("s3://acme/x?region=evil.example", "no name of a region"),
        ("gs://acme/x?region=us-east-1", "expected s3://"),
        ("s3://key:secret@acme/x?region=us-east-1", "a bucket's name"),
    ],
)
def test_an_address_that_is_none_is_explained(url: str, says: str) -> None:
    with pytest.raises(InvalidInputError) as raised:
        bucket_address(url, ("s3",))
    assert says in str(raised.value)
    assert "secret" not in str(raised.value)


def test_policies_reach_the_prefix_alone() -> None:
    address = BucketAddress("s3", "acme-1250000000", "ap-guangzhou", "costguard/")
    for document in (s3.objects_policy(address), oss.objects_policy(address), cos.objects_policy(address)):
        (statement,) = document.get("Statement") or document["statement"]
        actions = statement.get("Action") or statement["action"]
        resources = statement.get("Resource") or statement["resource"]
        assert len(actions) == 2
        assert not [action for action in actions if "Delete" in action or "Acl" in action or "List" in action]
        assert all(resource.endswith("acme-1250000000/costguard/*") for resource in resources)


@pytest.mark.parametrize(
    ("body", "said"),
    [(b"postgresql://there\n", "postgresql://there"), (b"", "is empty"), (b"\n", "is empty"), (b"\xff", "binary")],
)
def test_a_secret_may_be_an_object_of_oss(body: bytes, said: str) -> None:
    """`secret:oss://BUCKET/NAME`, for those who want no instance of KMS; what is no text is never taken for one."""
    with oss_stand_in("acme-reports", "cn-hangzhou", to_world(KEYS), _now) as bucket:
        store = oss.open_oss(
            "oss://acme-reports/secrets/costguard?region=cn-hangzhou", KEYS, now=_now, endpoint=bucket.url
        )
        store.put("ledger", body, "text/plain")
        secrets = oss.OssSecrets("cn-hangzhou", KEYS, now=_now, endpoint=bucket.url)
        name = "oss://acme-reports/secrets/costguard/ledger"
        if said.startswith("postgresql"):
            assert secrets.read(name) == said
        else:
            with pytest.raises(RefusedError, match=said):
                secrets.read(name)
        with pytest.raises(NotFoundError):
            secrets.read(f"{name}-other")
        stranger = oss.OssSecrets("cn-hangzhou", Keys("another", "key"), now=_now, endpoint=bucket.url)
        with pytest.raises(AccessDeniedError) as refused:
            stranger.read(name)
        assert secrets.fix_for(refused.value)


def test_a_setting_is_read_from_an_object_of_oss() -> None:
    with oss_stand_in("acme-reports", "cn-hangzhou", to_world(KEYS), _now) as bucket:
        store = oss.open_oss("oss://acme-reports/secrets?region=cn-hangzhou", KEYS, now=_now, endpoint=bucket.url)
        store.put("slack", b'{"token": "xoxb-1"}', "text/plain")
        environment = {
            "COSTGUARD_SLACK_TOKEN": "secret:oss://acme-reports/secrets/slack?region=cn-hangzhou#token",
            "ALIBABA_CLOUD_ACCESS_KEY_ID": KEYS.key_id,
            "ALIBABA_CLOUD_ACCESS_KEY_SECRET": KEYS.secret,
            "ALIBABA_CLOUD_SECURITY_TOKEN": KEYS.token,
            "COSTGUARD_ALIBABA_ENDPOINT": bucket.url,
        }
        settled = SecretKeeper().settled(load_settings(environment), NOW)
        assert settled.slack_token.reveal() == "xoxb-1"
