"""Keys on Tencent Cloud through the emulator: what is listed, what is missed by nobody, and what rotation may do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from tests.contract.tencent_world import NOW, SHARD, TencentWorld, tencent_world
from tests.world_ports.translate import to_product, to_world

from cloudstand.wire.faults import Fault, FaultKind
from cloudstand.world.fleet import Disk, made_up_request_id
from cloudstand.world.keys import KeyOrigin, KeyUsage, WorldKey
from cloudstand.world.records import Operation
from costguard.domain.errors import (
    AccessDeniedError,
    InvalidInputError,
    NotFoundError,
    OutcomeUnknownError,
    ProviderError,
    RefusedError,
    ThrottledError,
)
from costguard.domain.keys import EncryptionKey, KeyManager, KeyState, RotationMeans
from costguard.domain.refs import ResourceRef
from costguard.domain.resources import GapKind
from costguard.providers.kit.iam.permissions import Feature, Purpose
from costguard.providers.tencent.core.errors import from_answer
from costguard.providers.tencent.core.session import TencentSession
from costguard.providers.tencent.iam.permissions import OPERATIONS, REACH
from costguard.providers.tencent.iam.policy_documents import policy_document
from costguard.providers.tencent.kms.rotation import TencentKeyRotator
from costguard.providers.tencent.kms.source import TencentKeys

ALWAYS = 1_000
YEAR = timedelta(days=365)


class Kms:
    """A world with keys in one region."""

    def __init__(self, world: TencentWorld) -> None:
        self.world = world
        self.desk = world.emulator.key_desk
        self._made = 0
        self._sessions: list[TencentSession] = []

    def key(self, **fields: Any) -> WorldKey:
        """One more key, each made a minute after the one before."""
        self._made += 1
        ref = ResourceRef(SHARD.cloud, SHARD.account, SHARD.region, "key", made_up_request_id("key", str(self._made)))
        made = {"spec": "AES_256", "created_at": NOW - YEAR + timedelta(minutes=self._made), **fields}
        return self.world.world.keys.add(WorldKey(to_world(ref), **to_world(made)))

    @property
    def source(self) -> TencentKeys:
        return TencentKeys(self.world.session)

    def read(self) -> dict[ResourceRef, EncryptionKey]:
        found = self.source.read(SHARD)
        assert found.gaps == ()
        return {key.ref: key for key in found.keys}

    def rotator(self) -> TencentKeyRotator:
        return TencentKeyRotator(self.rotating())

    def rotating(self) -> TencentSession:
        self._sessions.append(self.world.session.only_for(Purpose.ROTATE))
        return self._sessions[-1]

    def close(self) -> None:
        for session in self._sessions:
            session.close()

    def refuse(self, action: str, code: str) -> None:
        self.world.emulator.faults.add(Fault(FaultKind.REFUSED, action, ALWAYS, code=code))

    def actions(self) -> list[str]:
        return [call.action for call in self.world.emulator.calls if call.service != "sts"]


@pytest.fixture
def kms() -> Iterator[Kms]:
    with tencent_world() as world:
        found = Kms(world)
        yield found
        found.close()


def test_keys_of_every_kind_are_listed(kms: Kms) -> None:
    """Left to its defaults the list has neither pairs nor what products made."""
    made = [
        kms.key(),
        kms.key(spec="SM4", state=KeyState.DISABLED),
        kms.key(spec="RSA_2048", usage=KeyUsage.SIGN),
        kms.key(spec="SM2"),
        kms.key(origin=KeyOrigin.IMPORTED, state=KeyState.PENDING_IMPORT),
        kms.key(state=KeyState.PENDING_DELETION, deletes_at=NOW + timedelta(days=7)),
        kms.key(state=KeyState.UNAVAILABLE),
        kms.key(manager=KeyManager.CLOUD, service="cbs"),
    ]
    found = kms.read()
    assert set(found) == to_product({key.ref for key in made})
    assert [found[to_product(key.ref)].state for key in made] == to_product([key.state for key in made])
    assert [found[to_product(key.ref)].spec for key in made] == [key.spec for key in made]
    assert [found[to_product(key.ref)].manager for key in made] == to_product([key.manager for key in made])
    assert found[to_product(made[5].ref)].deletes_at == made[5].deletes_at


def test_two_hundred_keys_are_a_page_and_fifty_a_request_for_tags(kms: Kms) -> None:
    made = [kms.key(tags={"number": str(number)}) for number in range(201)]
    found = kms.read()
    assert [found[to_product(key.ref)].tags for key in made] == [key.tags for key in made]
    assert kms.actions() == [
        *("GetRegions", "ListKeyDetail", "ListKeyDetail", "ListKeyDetail"),
        *["DescribeResourceTagsByResourceIds"] * 5,
        "DescribeDisks",
    ]


def test_tags_of_one_request_can_have_pages(kms: Kms) -> None:
    made = [kms.key(tags={f"tag-{place}": "x" for place in range(7)}) for _ in range(30)]
    found = kms.read()
    assert [found[to_product(key.ref)].tags for key in made] == [key.tags for key in made]


def test_regions_are_asked_once_and_one_without_the_service_has_no_keys(kms: Kms) -> None:
    kms.desk.regions = frozenset({"ap-guangzhou"})
    source = kms.source
    for _ in range(2):
        found = source.read(replace(SHARD, region="ap-chongqing"))
        assert (found.keys, found.gaps) == ((), ())
    assert kms.actions() == ["GetRegions"]


def test_an_empty_list_of_regions_is_not_believed(kms: Kms) -> None:
    kms.desk.regions = frozenset()
    with pytest.raises(ProviderError, match="not as documented"):
        kms.source.read(SHARD)


@pytest.mark.parametrize("null", [False, True])
def test_no_keys_are_no_keys_and_nothing_more_is_asked(kms: Kms, null: bool) -> None:  # noqa: FBT001 - a case
    kms.desk.null_lists = null
    assert kms.read() == {}
    assert kms.actions() == ["GetRegions", "ListKeyDetail", "ListKeyDetail"]


def test_null_where_there_are_keys_is_a_gap(kms: Kms) -> None:
    kms.key()

    def without_list(fields: dict[str, Any]) -> None:
        fields["KeyMetadatas"] = None

    kms.world.changing("ListKeyDetail", without_list)
    found = kms.source.read(SHARD)
    assert [(gap.what, gap.kind) for gap in found.gaps] == [("inventory", GapKind.TRUNCATED)]


def test_an_account_that_never_opened_the_service_has_no_keys(kms: Kms) -> None:
    kms.desk.unopened.add(SHARD.account)
    assert kms.read() == {}


def test_an_account_cut_off_for_its_debts_is_an_error(kms: Kms) -> None:
    kms.key()
    kms.desk.cut_off.add(SHARD.account)
    with pytest.raises(AccessDeniedError):
        kms.source.read(SHARD)


def test_denied_is_an_error_and_names_the_permission(kms: Kms) -> None:
    kms.key()
    kms.world.world.deny(SHARD.cloud, SHARD.account, Operation.KEYS)
    with pytest.raises(AccessDeniedError) as raised:
        kms.source.read(SHARD)
    assert raised.value.operation == "kms:ListKeyDetail"


def test_tags_that_cannot_be_read_leave_the_shard_incomplete(kms: Kms) -> None:
    """A tag that nobody could read may be the one that leaves a key alone."""
    made = kms.key(tags={"team": "research"})
    kms.refuse("DescribeResourceTagsByResourceIds", "AuthFailure.UnauthorizedOperation")
    found = kms.source.read(SHARD)
    assert [key.ref for key in found.keys] == to_product([made.ref])
    (gap,) = found.gaps
    assert (gap.what, gap.kind) == ("inventory", GapKind.DENIED)
    assert gap.fix == "grant tag:DescribeResourceTagsByResourceIds to these credentials"


def test_a_tag_of_something_else_is_not_believed(kms: Kms) -> None:
    kms.key(tags={"team": "research"})

    def of_another(fields: dict[str, Any]) -> None:
        fields["Tags"][0]["ResourceId"] = "another"

    kms.world.changing("DescribeResourceTagsByResourceIds", of_another)
    assert [gap.what for gap in kms.source.read(SHARD).gaps] == ["inventory"]


def test_disks_name_the_key_they_are_encrypted_with(kms: Kms) -> None:
    made, other = kms.key(), kms.key(manager=KeyManager.CLOUD)
    disks = [Disk(50, "vdb", "CLOUD_PREMIUM", key_id=each) for each in (made.ref.native_id, "", "unheard-of")]
    machine = kms.world.launch()
    volumes = [kms.world.world.attach(machine, disk, "owner") for disk in disks]
    found = kms.read()
    assert [ref.native_id for ref in found[to_product(made.ref)].used_by] == [volumes[0]]
    assert found[to_product(other.ref)].used_by == ()


def test_disks_that_cannot_be_read_leave_the_keys_readable(kms: Kms) -> None:
    kms.key()
    kms.refuse("DescribeDisks", "UnauthorizedOperation")
    found = kms.source.read(SHARD)
    assert [gap.what for gap in found.gaps] == ["details"]
    assert len(found.keys) == 1


def test_a_key_listed_twice_is_a_gap(kms: Kms) -> None:
    """The list moved while it was read, and what it moved past may be missing."""
    kms.key()
    kms.key()

    def first_twice(fields: dict[str, Any]) -> None:
        fields["KeyMetadatas"][1:] = fields["KeyMetadatas"][:1]

    kms.world.changing("ListKeyDetail", first_twice)
    found = kms.source.read(SHARD)
    assert [(gap.what, gap.kind) for gap in found.gaps] == [("inventory", GapKind.TRUNCATED)]


def test_the_list_of_products_keys_alone_is_a_part(kms: Kms) -> None:
    """The other half is then a gap: no shard is taken for complete by half of it."""
    kms.key(manager=KeyManager.CLOUD)
    kms.world.emulator.faults.add(Fault(FaultKind.REFUSED, "ListKeyDetail", 1, code="InvalidParameter"))
    found = kms.source.read(SHARD)
    assert (len(found.keys), [gap.what for gap in found.gaps]) == (1, ["inventory"])


def test_a_period_is_set_and_read_back(kms: Kms) -> None:
    made = kms.key()
    before = kms.read()[to_product(made.ref)]
    assert (before.rotation.automatic, before.rotation.next_at) == (False, None)
    receipt = kms.rotator().set_period(before, 30)
    after = kms.read()[to_product(made.ref)]
    assert receipt.request_id
    assert (after.rotation.automatic, after.rotation.period_days) == (True, 30)
    assert after.rotatability.means >= {RotationMeans.ON_DEMAND}


def test_a_period_that_was_kept_shows_when_it_is_read_back(kms: Kms) -> None:
    """No page says that a second call changes the period: a receipt is no proof of it."""
    kms.desk.keeps_period = True
    made = kms.key(period_days=365)
    kms.rotator().set_period(kms.read()[to_product(made.ref)], 90)
    assert kms.read()[to_product(made.ref)].rotation.period_days == 365


def test_a_rotation_on_demand_shows_in_version_and_time(kms: Kms) -> None:
    made = kms.key(period_days=365)
    before = kms.read()[to_product(made.ref)]
    receipt = kms.rotator().rotate(before)
    after = kms.read()[to_product(made.ref)]
    assert receipt.native_id
    assert after.rotation.last_at == made.rotations[-1].replace(microsecond=0)
    assert after.version != before.version


def test_a_second_rotation_within_a_day_is_refused_and_not_tried_again(kms: Kms) -> None:
    """It begins as the codes of too many calls do; waiting a second would only be refused again, for a day."""
    made = kms.key(period_days=365)
    key = kms.read()[to_product(made.ref)]
    rotator = kms.rotator()
    rotator.rotate(key)
    with pytest.raises(RefusedError) as raised:
        rotator.rotate(key)
    assert raised.value.code == "RequestLimitExceeded.RotateRateLimited"
    assert kms.actions().count("RotateKey") == 2
    kms.world.pass_time(timedelta(days=1))
    rotator.rotate(key)
    assert len(made.on_demand) == 2


def test_a_key_whose_automatic_rotation_is_off_is_not_rotated_on_demand(kms: Kms) -> None:
    """RotateNotSupported names it first among its reasons; turning it on comes before."""
    made = kms.key()
    with pytest.raises(RefusedError, match="once automatic rotation is on"):
        kms.rotator().rotate(kms.read()[to_product(made.ref)])
    assert "RotateKey" not in kms.actions()


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"manager": KeyManager.CLOUD}, "UnsupportedOperation.NotUserCreatedCmk"),
        ({"origin": KeyOrigin.IMPORTED}, "UnsupportedOperation.ExternalCmkCanNotRotate"),
        ({"spec": "RSA_2048", "usage": KeyUsage.SIGN}, "UnsupportedOperation.RotateNotSupported"),
        ({"state": KeyState.DISABLED}, "ResourceUnavailable.CmkDisabled"),
        ({"state": KeyState.PENDING_DELETION}, "ResourceUnavailable.KeyPendingDelete"),
    ],
)
def test_what_does_not_rotate_is_not_sent_and_the_cloud_would_refuse_it(
    kms: Kms, fields: dict[str, Any], code: str
) -> None:
    made = kms.key(**fields)
    fit = kms.key()
    rotator, found = kms.rotator(), kms.read()
    with pytest.raises(RefusedError) as held:
        rotator.set_period(found[to_product(made.ref)], 90)
    assert held.value.code == "Unfit"
    with pytest.raises(RefusedError) as refused:
        rotator.set_period(replace(found[to_product(fit.ref)], ref=to_product(made.ref)), 90)
    assert refused.value.code == code
    assert made.period_days is None


@pytest.mark.parametrize("days", [0, 6, 366])
def test_a_period_that_tencent_does_not_have_is_not_sent(kms: Kms, days: int) -> None:
    made = kms.key()
    with pytest.raises(RefusedError, match="from 7 to 365"):
        kms.rotator().set_period(kms.read()[to_product(made.ref)], days)
    assert "EnableKeyRotation" not in kms.actions()


def test_a_lost_answer_leaves_the_outcome_unknown_and_is_sent_once(kms: Kms) -> None:
    made = kms.key(period_days=365)
    key = kms.read()[to_product(made.ref)]
    kms.world.emulator.faults.add(Fault(FaultKind.LOST_ANSWER, "RotateKey", ALWAYS))
    with pytest.raises(OutcomeUnknownError):
        kms.rotator().rotate(key)
    assert (kms.actions().count("RotateKey"), len(made.on_demand)) == (1, 1)


def test_a_denied_change_changes_nothing(kms: Kms) -> None:
    made = kms.key()
    key = kms.read()[to_product(made.ref)]
    kms.world.world.deny(SHARD.cloud, SHARD.account, Operation.ROTATE)
    with pytest.raises(AccessDeniedError):
        kms.rotator().set_period(key, 90)
    assert made.period_days is None


def test_a_key_that_is_gone_is_not_found(kms: Kms) -> None:
    made = kms.key()
    key = kms.read()[to_product(made.ref)]
    gone = replace(key.ref, native_id=made_up_request_id("gone"))
    with pytest.raises(NotFoundError):
        kms.rotator().set_period(replace(key, ref=gone), 90)


def test_only_a_session_made_for_it_rotates(kms: Kms) -> None:
    for session in (kms.world.session, kms.world.acting):
        with pytest.raises(InvalidInputError, match="rotating keys needs a session that can do nothing else"):
            TencentKeyRotator(session)


def test_a_rotating_session_knows_no_way_to_disable_delete_or_import(kms: Kms) -> None:
    session = kms.rotating()
    for action in ("DisableKey", "ScheduleKeyDeletion", "ImportKeyMaterial", "ArchiveKey", "DisableKeyRotation"):
        with pytest.raises(AccessDeniedError, match="not among the operations"):
            session.call(SHARD, "kms", action, KeyId="x")
    with pytest.raises(AccessDeniedError, match="not among the operations"):
        session.only_for(Purpose.FREEZE).call(SHARD, "cam", "AttachGroupPolicy")
    assert session.acting().purpose is Purpose.ROTATE
    changing = {name for name, operation in REACH[Purpose.ROTATE].items() if operation.changes_something}
    assert changing == {"kms:EnableKeyRotation", "kms:RotateKey"}
    assert not changing & set(OPERATIONS)


def test_the_role_for_rotation_may_do_two_things_to_keys_of_its_account() -> None:
    (statement,) = policy_document({Feature.ROTATE}, account="100012345678")["statement"]
    assert statement["action"] == ["kms:EnableKeyRotation", "kms:RotateKey"]
    assert statement["resource"] == ["qcs::kms::uin/100012345678:key/*"]
    (reading,) = policy_document({Feature.KEYS})["statement"]
    assert set(reading["action"]) == {
        *("kms:GetRegions", "kms:GetServiceStatus", "kms:ListKeyDetail"),
        *("tag:DescribeResourceTagsByResourceIds", "cbs:DescribeDisks"),
    }


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("RequestLimitExceeded", ThrottledError),
        ("RequestLimitExceeded.RotateRateLimited", RefusedError),
        ("FailedOperation.RotateTaskRunning", RefusedError),
        ("ResourceUnavailable.CmkNotFound", NotFoundError),
        ("UnsupportedOperation.ServiceTemporaryUnavailable", OutcomeUnknownError),
    ],
)
def test_codes_of_kms_say_what_their_caller_does(code: str, kind: type[ProviderError]) -> None:
    assert type(from_answer(code, "", "kms:RotateKey", changes=True)) is kind


def test_a_list_that_ends_early_is_a_gap(kms: Kms) -> None:
    kms.key()

    def more(fields: dict[str, Any]) -> None:
        fields["TotalCount"] += 1

    kms.world.changing("ListKeyDetail", more)
    found = kms.source.read(SHARD)
    assert len(found.keys) == 1
    assert {(gap.what, gap.kind) for gap in found.gaps} == {("inventory", GapKind.TRUNCATED)}
