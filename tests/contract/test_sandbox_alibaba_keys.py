"""Keys of the emulated Alibaba Cloud: its pages, its matrix and its refusals; our reading of them, and our rotating."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from tests.contract.alibaba_asking import AT, DAY, HANGZHOU, Cloud, cloud_of
from tests.contract.alibaba_world import patient_pacer
from tests.world_ports.translate import to_product, to_world

from cloudstand.fleets import ALIBABA_ACCOUNT, alibaba_machine
from cloudstand.wire.faults import Fault, FaultKind
from cloudstand.world import workload as does
from cloudstand.world.fleet import Disk
from cloudstand.world.keys import WorldKey
from cloudstand.world.records import Operation
from costguard.domain.errors import (
    AccessDeniedError,
    InvalidInputError,
    OutcomeUnknownError,
    RefusedError,
    ThrottledError,
    UnavailableError,
)
from costguard.domain.keys import EncryptionKey, KeyManager, KeyOrigin, KeyState, KeyUsage, RotationMeans
from costguard.domain.refs import ResourceRef, Shard
from costguard.domain.resources import GapKind
from costguard.providers.alibaba.core.errors import fix_for
from costguard.providers.alibaba.core.session import AlibabaSession
from costguard.providers.alibaba.kms.rotation import AlibabaKeyRotator
from costguard.providers.alibaba.kms.source import AlibabaKeys
from costguard.providers.kit.iam.permissions import Purpose

SHARD = Shard("alibaba", ALIBABA_ACCOUNT, HANGZHOU)
CHANGES = {"UpdateRotationPolicy", "CreateKeyVersion"}
ON = {"EnableAutomaticRotation": "true"}


class Kms:
    """A cloud with keys, a source and a rotator over sessions of their own."""

    def __init__(self, cloud: Cloud) -> None:
        self.cloud, self.world, self.emulator = cloud, cloud.world, cloud.emulator
        self.session = AlibabaSession(
            keys=to_product(cloud.emulator.keys),
            endpoint=cloud.emulator.url,
            pacer=patient_pacer(),
            now=cloud.clock.now,
        )
        self.rotating = self.session.only_for(Purpose.ROTATE)
        self.source, self.rotator = AlibabaKeys(self.session), AlibabaKeyRotator(self.rotating)

    def add(self, name: str, *, age: int = 400, region: str = HANGZHOU, **more: Any) -> WorldKey:
        ref = ResourceRef("alibaba", ALIBABA_ACCOUNT, region, "key", f"key-{name}")
        return self.world.keys.add(
            WorldKey(to_world(ref), more.pop("spec", "Aliyun_AES_256"), AT - age * DAY, **to_world(more))
        )

    def read(self, name: str) -> EncryptionKey:
        inventory = self.source.read(SHARD)
        assert inventory.gaps == ()
        return next(key for key in inventory.keys if key.ref.native_id == f"key-{name}")

    def asked(self) -> Counter[str]:
        return Counter(call.action for call in self.emulator.calls if call.action != "GetCallerIdentity")

    def close(self) -> None:
        self.session.close()
        self.rotating.close()


class Moving(AlibabaSession):
    """Answers as the cloud does, but for the second page of keys."""

    def __init__(self, kms: Kms, second_page: list[str]) -> None:
        super().__init__(
            keys=to_product(kms.emulator.keys),
            endpoint=kms.emulator.url,
            pacer=patient_pacer(),
            now=kms.cloud.clock.now,
        )
        self._second_page = second_page

    def call(self, shard: Shard, service: str, operation: str, /, **parameters: Any) -> dict[str, Any]:
        answer = super().call(shard, service, operation, **parameters)
        if operation == "ListKeys" and parameters["PageNumber"] > 1:
            answer["Keys"] = {"Key": [{"KeyId": native_id} for native_id in self._second_page]}
        return answer


@pytest.fixture
def kms() -> Iterator[Kms]:
    disks = (Disk(100, "/dev/xvda", "cloud_essd", key_id="key-used"), Disk(200, "/dev/xvdb", "cloud_essd"))
    with cloud_of(alibaba_machine("gpu", does.idle(), AT - 9 * DAY, disks=disks)) as cloud:
        found = Kms(cloud)
        try:
            yield found
        finally:
            found.close()


def instance_key(kms: Kms, **more: Any) -> WorldKey:
    return kms.add("instance", instance="kst-1", **more)


# --- what is read


def test_every_key_comes_by_the_fewest_requests(kms: Kms) -> None:
    for number in range(101):
        kms.add(f"{number:03}", aliases=[f"alias/{number}"], tags={"team": f"t{number}"})

    inventory = kms.source.read(SHARD)

    assert [key.ref.native_id for key in inventory.keys] == [f"key-{number:03}" for number in range(101)]
    assert [key.tags["team"] for key in inventory.keys] == [f"t{number}" for number in range(101)]
    assert inventory.gaps == ()
    assert kms.asked() == {
        "ListKeys": 2,
        "ListAliases": 2,
        "DescribeKey": 101,
        "ListTagResources": 3,
        "DescribeDisks": 1,
    }


def test_tags_of_many_rows_come_in_pages(kms: Kms) -> None:
    tags = {f"tag-{number}": "x" for number in range(20)}
    for number in range(11):
        kms.add(str(number), tags=tags)

    assert all(key.tags == tags for key in kms.source.read(SHARD).keys)
    assert kms.asked()["ListTagResources"] == 2


def test_a_key_is_read_with_all_that_decides_its_fate(kms: Kms) -> None:
    kms.add("used", add_on=True, period_days=365, rotations=[AT - 35 * DAY], tags={"team": "nlp"}, aliases=["b", "a"])
    found = kms.read("used")

    assert found.aliases == ("a", "b")
    assert (found.rotation.automatic, found.rotation.period_days) == (True, 365)
    assert (found.rotation.last_at, found.rotation.next_at) == (AT - 35 * DAY, AT + 330 * DAY)
    assert (found.created_at, found.state, found.manager) == (AT - 400 * DAY, KeyState.ENABLED, KeyManager.CUSTOMER)
    assert [ref.kind for ref in found.used_by] == ["volume"]
    assert {ref.native_id for ref in found.used_by} == {
        volume.native_id for volume in kms.world.volumes.values() if volume.disk.key_id
    }


def test_kinds_of_keys_are_told_apart_by_the_matrix(kms: Kms) -> None:
    kms.add("service", manager=KeyManager.CLOUD, service="ecs")
    kms.add("default")
    instance_key(kms)
    kms.add("hardware", instance="kst-2", hardware=True)
    kms.add("pair", spec="RSA_2048", usage=KeyUsage.SIGN)
    kms.add("imported", origin=KeyOrigin.IMPORTED)
    by_name = {key.ref.native_id.partition("-")[2]: key for key in kms.source.read(SHARD).keys}
    successor = {RotationMeans.SUCCESSOR}

    assert {name: key.rotatability.means for name, key in by_name.items()} == {
        "service": frozenset(),
        "default": {RotationMeans.AUTOMATIC, *successor},
        "instance": frozenset(RotationMeans),
        "hardware": successor,
        "pair": successor,
        "imported": successor,
    }
    assert {name for name, key in by_name.items() if key.rotation.automatic is None} == {
        "service",
        "hardware",
        "pair",
        "imported",
    }
    assert (by_name["service"].is_default, by_name["service"].aliases) == (True, ("acs/ecs",))


def test_rotation_of_a_key_that_is_off_is_suspended_not_gone(kms: Kms) -> None:
    instance_key(kms, state=KeyState.DISABLED, period_days=30, age=10)
    found = kms.read("instance")

    assert (found.state, found.rotation.automatic, found.rotation.period_days) == (KeyState.DISABLED, True, 30)
    assert kms.cloud.ask("DescribeKey", KeyId="key-instance")["KeyMetadata"]["AutomaticRotation"] == "Suspended"


def test_a_key_on_its_way_out_tells_when(kms: Kms) -> None:
    kms.add("going", state=KeyState.PENDING_DELETION, deletes_at=AT + 7 * DAY)
    found = kms.read("going")

    assert (found.state, found.deletes_at) == (KeyState.PENDING_DELETION, AT + 7 * DAY)


def test_an_empty_region_has_no_keys_and_costs_one_request(kms: Kms) -> None:
    assert kms.source.read(SHARD).keys == ()
    assert kms.asked() == {"ListKeys": 1}


# --- what could not be read


def test_a_list_that_is_denied_is_an_error_and_never_no_keys(kms: Kms) -> None:
    kms.add("mine")
    kms.world.deny("alibaba", ALIBABA_ACCOUNT, Operation.KEYS)

    with pytest.raises(AccessDeniedError) as caught:
        kms.source.read(SHARD)

    assert caught.value.code == "Forbidden.NoPermission"
    assert fix_for(caught.value) == "grant kms:ListKeys to these credentials"


def test_one_key_that_is_denied_is_a_gap_that_names_it(kms: Kms) -> None:
    kms.add("open", age=401)
    kms.add("hidden", tags={"team": "nlp"})
    kms.emulator.kms.hidden.add("key-hidden")
    inventory = kms.source.read(SHARD)
    (gap,) = inventory.gaps

    hidden = inventory.keys[1]

    assert [key.ref.native_id for key in inventory.keys] == ["key-open", "key-hidden"]
    assert (hidden.state, hidden.rotation.automatic, hidden.tags) == (KeyState.UNKNOWN, None, {"team": "nlp"})
    assert hidden.rotatability.means == frozenset()
    assert (gap.what, gap.kind) == ("details", GapKind.DENIED)
    assert gap.detail.endswith("(1 of 2 keys: key-hidden)")
    assert gap.fix == "grant kms:DescribeKey to these credentials"


def test_a_role_that_may_describe_none_is_one_gap(kms: Kms) -> None:
    for number in range(7):
        kms.add(str(number))
    lists = {"kms:ListKeys", "kms:ListAliases", "kms:ListTagResources", "ecs:DescribeDisks"}
    kms.emulator.allowed[ALIBABA_ACCOUNT] = lists
    (gap,) = kms.source.read(SHARD).gaps

    assert gap.detail.endswith("(7 of 7 keys: key-0, key-1, key-2, key-3, key-4, …)")


@pytest.mark.parametrize(("action", "kept"), [("ListAliases", 0), ("ListTagResources", 1)])
def test_without_aliases_or_tags_the_region_is_incomplete(kms: Kms, action: str, kept: int) -> None:
    """Without aliases a service's key would pass for a customer's; without tags a protected one for any other."""
    kms.add("mine")
    kms.emulator.faults.add(Fault(FaultKind.REFUSED, action, code="Forbidden.NoPermission", status=403, times=9))
    inventory = kms.source.read(SHARD)

    assert len(inventory.keys) == kept
    assert [(gap.what, gap.kind) for gap in inventory.gaps] == [("inventory", GapKind.DENIED)]


def test_disks_that_may_not_be_listed_are_a_gap_though_they_come_as_an_empty_list(kms: Kms) -> None:
    kms.add("used")
    kms.world.deny("alibaba", ALIBABA_ACCOUNT, Operation.DISKS)
    inventory = kms.source.read(SHARD)

    assert [key.used_by for key in inventory.keys] == [()]
    assert [(gap.what, gap.kind) for gap in inventory.gaps] == [("details", GapKind.DENIED)]


def test_a_region_without_encrypted_disks_is_one_where_asking_is_permitted(kms: Kms) -> None:
    shanghai = Shard("alibaba", ALIBABA_ACCOUNT, "cn-shanghai")
    kms.add("there", region="cn-shanghai")

    assert kms.source.read(shanghai).gaps == ()
    assert kms.asked()["DescribeDisks"] == 2


def test_an_account_that_never_opened_kms_has_no_keys(kms: Kms) -> None:
    kms.emulator.kms.unopened.add(ALIBABA_ACCOUNT)

    inventory = kms.source.read(SHARD)

    assert (inventory.keys, inventory.gaps) == ((), ())
    assert kms.asked() == {"ListKeys": 1, "DescribeAccountKmsStatus": 1}


def test_a_region_that_has_no_kms_has_no_keys_once_the_cloud_says_so(kms: Kms) -> None:
    kms.emulator.faults.add(Fault(FaultKind.RESET, "ListKeys", times=99))
    with pytest.raises(UnavailableError):
        kms.source.read(SHARD)

    kms.emulator.kms.not_offered.add(HANGZHOU)
    assert kms.source.read(SHARD).keys == ()


def test_a_refusal_of_kms_that_is_open_is_an_error(kms: Kms) -> None:
    kms.emulator.faults.add(Fault(FaultKind.REFUSED, "ListKeys", code="Forbidden.ServiceNotOpen", status=403, times=9))

    with pytest.raises(RefusedError):
        kms.source.read(SHARD)


@pytest.mark.parametrize("second_page", [[], ["key-0"], ["key-0", "key-2", "key-3"]])
def test_a_list_that_moves_while_it_is_read_is_incomplete(kms: Kms, second_page: list[str]) -> None:
    """Fewer come than there are, one comes again, or more come than there were."""
    for number in range(3):
        kms.add(str(number))
    kms.emulator.kms.page = 2
    inventory = AlibabaKeys(Moving(kms, second_page)).read(SHARD)

    assert ("inventory", GapKind.TRUNCATED) in [(gap.what, gap.kind) for gap in inventory.gaps]
    assert len(inventory.keys) == len({key.ref for key in inventory.keys})


def test_a_key_gone_from_the_first_of_two_pages_hides_another(kms: Kms) -> None:
    for number in range(3):
        kms.add(str(number))
    kms.emulator.kms.page = 2
    kms.emulator.faults.add(Fault(FaultKind.REFUSED, "DescribeKey", code="Forbidden.KeyNotFound", status=404))
    inventory = kms.source.read(SHARD)

    assert [key.ref.native_id for key in inventory.keys] == ["key-1", "key-2"]
    assert [(gap.what, gap.kind) for gap in inventory.gaps] == [("inventory", GapKind.TRUNCATED)]


def test_a_key_gone_from_a_single_page_is_gone(kms: Kms) -> None:
    kms.add("one")
    kms.add("two")
    kms.emulator.faults.add(Fault(FaultKind.REFUSED, "DescribeKey", code="Forbidden.KeyNotFound", status=404))
    inventory = kms.source.read(SHARD)

    assert ([key.ref.native_id for key in inventory.keys], inventory.gaps) == (["key-two"], ())


# --- what is changed


def test_a_period_is_set_and_read_back(kms: Kms) -> None:
    instance_key(kms, age=10)

    receipt = kms.rotator.set_period(kms.read("instance"), 90)
    after = kms.read("instance").rotation

    assert receipt.request_id
    assert (after.automatic, after.period_days, after.next_at) == (True, 90, AT + 80 * DAY)
    assert kms.world.keys.get(to_world(kms.read("instance").ref)).rotations == []


def test_a_period_that_is_over_already_rotates_the_key_at_once_and_once(kms: Kms) -> None:
    key = instance_key(kms, age=400)
    before = kms.read("instance")

    kms.rotator.set_period(before, 90)
    kms.cloud.clock.advance(DAY)
    after = kms.read("instance")

    assert key.rotations == [AT]
    assert (after.rotation.last_at, after.rotation.next_at) == (AT, AT + 90 * DAY)
    assert after.version != before.version


def test_a_default_key_takes_exactly_a_year_and_only_with_the_add_on(kms: Kms) -> None:
    kms.add("default", age=10)
    paid = kms.add("paid", age=10, add_on=True)

    with pytest.raises(RefusedError) as caught:
        kms.rotator.set_period(kms.read("default"), 365)
    kms.rotator.set_period(kms.read("paid"), 365)

    assert caught.value.code == "Rejected.UnsupportedOperation"
    assert fix_for(caught.value).startswith("buy the rotation add-on")
    assert paid.period_days == 365
    assert kms.asked()["UpdateRotationPolicy"] == 2  # not retried


def test_a_key_is_rotated_on_demand_until_its_instance_is_full(kms: Kms) -> None:
    key = instance_key(kms)
    kms.add("neighbour", instance="kst-1")
    kms.emulator.kms.quotas["kst-1"] = 3
    before = kms.read("instance")

    receipt = kms.rotator.rotate(before)
    after = kms.read("instance")
    with pytest.raises(RefusedError) as caught:
        kms.rotator.rotate(after)

    assert key.on_demand == [AT]
    assert receipt.native_id == after.version != before.version
    assert caught.value.code == "Rejected.LimitExceeded"
    assert "quota" in fix_for(caught.value)
    assert kms.asked()["CreateKeyVersion"] == 2


def test_nothing_is_sent_that_the_matrix_does_not_allow(kms: Kms) -> None:
    kms.add("default", add_on=True)
    kms.add("hardware", instance="kst-2", hardware=True)
    instance_key(kms)
    for name, days in (("default", 90), ("hardware", 90), ("instance", 6), ("instance", 366)):
        with pytest.raises(RefusedError, match="nothing was sent"):
            kms.rotator.set_period(kms.read(name), days)
    with pytest.raises(RefusedError, match="nothing was sent"):
        kms.rotator.rotate(kms.read("default"))

    assert not CHANGES & kms.asked().keys()


@pytest.mark.parametrize("action", sorted(CHANGES))
def test_a_change_is_sent_once_whatever_becomes_of_it(kms: Kms, action: str) -> None:
    instance_key(kms, age=10)
    key = kms.read("instance")

    def change() -> None:
        if action == "CreateKeyVersion":
            kms.rotator.rotate(key)
        else:
            kms.rotator.set_period(key, 90)

    kms.emulator.faults.add(Fault(FaultKind.REFUSED, action, code="Rejected.Throttling", status=429))
    with pytest.raises(ThrottledError):
        change()
    kms.emulator.faults.add(Fault(FaultKind.LOST_ANSWER, action))
    with pytest.raises(OutcomeUnknownError):
        change()
    kms.world.deny("alibaba", ALIBABA_ACCOUNT, Operation.ROTATE)
    with pytest.raises(AccessDeniedError):
        change()

    assert kms.asked()[action] == 3


@pytest.mark.parametrize("kind", ["acting", "dry_running", Purpose.MAIL, Purpose.FREEZE])
def test_a_rotator_takes_no_session_that_can_do_more_or_less(kms: Kms, kind: str | Purpose) -> None:
    other = kms.session.only_for(kind) if isinstance(kind, Purpose) else getattr(kms.session, kind)()

    with pytest.raises(InvalidInputError, match="rotating keys needs a session that can do nothing else"):
        AlibabaKeyRotator(other)
    other.close()
    with pytest.raises(InvalidInputError):
        AlibabaKeyRotator(kms.session)


def test_what_comes_from_a_session_for_keys_is_for_keys(kms: Kms) -> None:
    for other in (kms.rotating.acting(), kms.rotating.only_for(Purpose.FREEZE), kms.rotating.only_for(Purpose.MAIL)):
        assert other.purpose is Purpose.ROTATE
        for operation in ("DisableKey", "ScheduleKeyDeletion", "ImportKeyMaterial"):
            with pytest.raises(AccessDeniedError, match="refused before sending"):
                other.call(SHARD, "kms", operation, KeyId="key-1")
        other.close()
    with pytest.raises(AccessDeniedError, match="refused before sending"):
        kms.session.acting().call(SHARD, "kms", "CreateKeyVersion", KeyId="key-1")
    assert kms.asked() == {}


# --- what the emulator refuses


@pytest.mark.parametrize(
    ("state", "code"),
    [
        (KeyState.DISABLED, "Rejected.Disabled"),
        (KeyState.PENDING_DELETION, "Rejected.PendingDeletion"),
        (KeyState.PENDING_IMPORT, "Rejected.PendingImport"),
    ],
)
def test_a_key_that_is_not_enabled_takes_no_change(kms: Kms, state: KeyState, code: str) -> None:
    instance_key(kms, state=state)

    assert kms.cloud.refusal("CreateKeyVersion", KeyId="key-instance") == code
    assert kms.cloud.refusal("UpdateRotationPolicy", ON, KeyId="key-instance", RotationInterval="30d") == code


def test_the_vendors_matrix_is_refused_in_its_words(kms: Kms) -> None:
    instance_key(kms)
    kms.add("pair", spec="RSA_2048", usage=KeyUsage.SIGN)
    kms.add("imported", origin=KeyOrigin.IMPORTED)
    kms.add("service", manager=KeyManager.CLOUD)
    kms.add("paid", add_on=True)

    for name in ("pair", "imported", "service"):
        for action, more in (("CreateKeyVersion", {}), ("UpdateRotationPolicy", {**ON, "RotationInterval": "365d"})):
            assert kms.cloud.refusal(action, more, KeyId=f"key-{name}") == "Rejected.UnsupportedOperation"
    assert kms.cloud.refusal("CreateKeyVersion", KeyId="key-paid") == "Rejected.UnsupportedOperation"
    for name, intervals in (("instance", ("6d", "366d", "12h", "1000s", "d")), ("paid", ("90d", "364d", "1y"))):
        for interval in intervals:
            found = kms.cloud.refusal("UpdateRotationPolicy", ON, KeyId=f"key-{name}", RotationInterval=interval)
            assert found == "InvalidParameter", interval
    assert kms.cloud.refusal("UpdateRotationPolicy", ON, KeyId="key-instance") == "MissingRotationInterval"
    assert kms.cloud.refusal("UpdateRotationPolicy", ON, KeyId="alias/x", RotationInterval="7d").endswith("KeyNotFound")


def test_rotation_can_be_turned_off_by_others(kms: Kms) -> None:
    key = instance_key(kms, period_days=90, age=10)
    kms.cloud.ask("UpdateRotationPolicy", KeyId="key-instance", EnableAutomaticRotation="false")

    assert key.period_days is None
    assert kms.read("instance").rotation.automatic is False


def test_pages_and_parameters_are_as_published(kms: Kms) -> None:
    kms.add("mine", aliases=["x"], tags={"team": "nlp"})

    assert kms.cloud.refusal("ListKeys", PageSize="101") == "InvalidParameter"
    assert kms.cloud.refusal("ListKeys", Filters="[]") == "Emulator.NotModelled"
    assert kms.cloud.refusal("DescribeKey") == "MissingKeyId"
    assert kms.cloud.refusal("DescribeKey", KeyId="key-other") == "Forbidden.KeyNotFound"
    assert kms.cloud.refusal("DescribeKey", KeyId="alias/other") == "Forbidden.AliasNotFound"
    assert kms.cloud.ask("DescribeKey", KeyId="alias/x")["KeyMetadata"]["KeyId"] == "key-mine"
    assert kms.cloud.ask("ListKeys")["PageSize"] == 10
    assert kms.cloud.ask("ListResourceTags", KeyId="key-mine")["Tags"]["Tag"][0]["TagValue"] == "nlp"
    assert kms.cloud.refusal("ListTagResources", ResourceType="secret") == "Emulator.NotModelled"
    assert kms.cloud.ask("DescribeAccountKmsStatus")["AccountStatus"] == "Enabled"


def test_rates_are_refused_as_kms_does() -> None:
    with cloud_of(alibaba_machine("gpu", does.idle(), AT - DAY), rates={"ListKeys": (1, 0.001)}) as limited:
        limited.ask("ListKeys")
        assert limited.refusal("ListKeys") == "Rejected.Throttling"
        assert limited.ask("ListKeys", region="cn-shanghai")["TotalCount"] == 0


def test_times_are_told_to_the_second(kms: Kms) -> None:
    kms.add("mine", age=1)
    told = kms.cloud.ask("DescribeKey", KeyId="key-mine")["KeyMetadata"]

    assert told["CreationDate"] == "2026-03-01T09:00:00Z"
    assert told["LastRotationDate"] == told["CreationDate"]
