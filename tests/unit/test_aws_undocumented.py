"""Answers of AWS that are not as documented: a gap or an unknown outcome, never a shorter list."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from typing import Any

import pytest

from costguard.domain.actions import Action, Verb
from costguard.domain.errors import OutcomeUnknownError, ProviderError
from costguard.domain.refs import ResourceRef, Shard
from costguard.domain.resources import Billing
from costguard.ports import Target
from costguard.providers.aws.compute.executor import AwsExecutor
from costguard.providers.aws.compute.instance_types import AwsTypes
from costguard.providers.aws.compute.source import AwsInventory
from costguard.providers.aws.core.session import AwsSession

SHARD = Shard("aws", "111122223333", "us-east-1")
LAUNCHED = datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone.utc)
MACHINE: dict[str, Any] = {
    "InstanceId": "i-1",
    "InstanceType": "g5g.xlarge",
    "State": {"Name": "running"},
    "LaunchTime": LAUNCHED,
    "Tags": [{"Key": "keep", "Value": ""}],
}
BARE = {**MACHINE, "Tags": []}
TYPE = {
    "InstanceType": "g5g.xlarge",
    "InstanceStorageSupported": False,
    "GpuInfo": {"Gpus": [{"Manufacturer": "NVIDIA", "Name": "T4g", "Count": 1}]},
}
VOLUME = {"VolumeId": "vol-1", "Size": 8, "Attachments": [{"InstanceId": "i-1"}]}
BOOK: dict[str, Any] = {
    "DescribeInstances": {"Reservations": [{"Instances": [MACHINE]}]},
    "DescribeInstanceTypes": {"InstanceTypes": [TYPE]},
    "DescribeReservedInstances": {"ReservedInstances": []},
    "DescribeVolumes": {"Volumes": [VOLUME]},
    "DescribeSnapshots": {"Snapshots": []},
    "DescribeAddresses": {"Addresses": []},
    "disableApiTermination": {"DisableApiTermination": {"Value": False}},
    "disableApiStop": {"DisableApiStop": {"Value": False}},
    "GetCallerIdentity": {"Account": "111122223333", "Arn": "arn:aws:sts::111122223333:assumed-role/r/s"},
    "ListAccounts": {"Accounts": [{"Id": "111122223333", "Status": "ACTIVE"}]},
    "DescribeRegions": {"Regions": [{"RegionName": "us-east-1"}]},
}


class Answering(AwsSession):
    """Answers from a book instead of the network."""

    def __init__(self, *, may_change: bool = False, **changed: Any) -> None:
        super().__init__(may_change=may_change)
        self._book: Mapping[str, Any] = {**BOOK, **changed}

    def _send(self, _: str, __: str, ___: str, operation: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
        answer: dict[str, Any] = self._book[parameters.get("Attribute", operation)]
        return answer

    def _open(self, key: str, credentials: Any, operation: str = "") -> None:
        """No connection is needed."""


def inventory(**changed: Any) -> AwsInventory:
    return AwsInventory(Answering(**changed), catalogue=AwsTypes())


def test_the_book_describes_one_machine() -> None:
    found = inventory().read(SHARD)
    assert [instance.ref.native_id for instance in found.instances] == ["i-1"]
    assert found.gaps == ()
    assert len(inventory().details([found.instances[0].ref])) == 1


@pytest.mark.parametrize(
    "changed",
    [
        {"DescribeInstances": {"Reservations": [None]}},
        {"DescribeInstances": {"Reservations": [{"Instances": [None]}]}},
        {"DescribeInstances": {"Reservations": [{"Instances": [{**MACHINE, "Tags": None}]}]}},
        {"DescribeInstances": {"Reservations": [{"Instances": [MACHINE]}], "NextToken": ["again"]}},
        {"DescribeInstances": {"Reservations": [{"Instances": [MACHINE]}], "NextToken": 0}},
        {"DescribeInstanceTypes": {"InstanceTypes": [{**TYPE, "GpuInfo": None}]}},
        {"DescribeInstanceTypes": {"InstanceTypes": [{"GpuInfo": {}}]}},
    ],
)
def test_a_page_of_another_form_is_a_gap_in_the_inventory(changed: dict[str, Any]) -> None:
    assert not inventory(**changed).read(SHARD).complete


@pytest.mark.parametrize("listed", [[MACHINE, BARE], [BARE, MACHINE]])
def test_a_machine_described_in_two_ways_is_not_believed(listed: list[dict[str, Any]]) -> None:
    """Of two descriptions the one without the tag must not win, neither in the scan nor in the last look."""
    changed = {"DescribeInstances": {"Reservations": [{"Instances": listed}]}}
    found = inventory(**changed).read(SHARD)
    assert [gap.what for gap in found.gaps] == ["inventory"]
    with pytest.raises(ProviderError, match="described twice"):
        inventory(**changed).details([ResourceRef("aws", "111122223333", "us-east-1", "instance", "i-1")])


def test_a_machine_that_a_shifting_page_repeats_is_listed_once() -> None:
    found = inventory(DescribeInstances={"Reservations": [{"Instances": [MACHINE, dict(MACHINE)]}]}).read(SHARD)
    assert len(found.instances) == 1
    assert found.complete


@pytest.mark.parametrize("reservation", [None, {}, {"State": None}, {"State": "active", "InstanceType": "g5g.xlarge"}])
def test_reservations_of_another_form_make_every_billing_unknown(reservation: object) -> None:
    found = inventory(DescribeReservedInstances={"ReservedInstances": [reservation]}).read(SHARD)
    assert [instance.billing for instance in found.instances] == [Billing.UNKNOWN]
    assert [gap.what for gap in found.gaps] == ["billing"]


@pytest.mark.parametrize(("state", "billing"), [("retired", Billing.ON_DEMAND), ("renewing", Billing.RESERVED)])
def test_a_reservation_in_a_state_nobody_knows_may_cover_an_instance(state: str, billing: Billing) -> None:
    reservation = {"State": state, "InstanceType": "g5g.xlarge", "InstanceCount": 1, "Scope": "Region"}
    found = inventory(DescribeReservedInstances={"ReservedInstances": [reservation]}).read(SHARD)
    assert [instance.billing for instance in found.instances] == [billing]


@pytest.mark.parametrize(
    "changed",
    [
        {"DescribeVolumes": {"Volumes": [{**VOLUME, "Size": "8"}]}},
        {"DescribeVolumes": {"Volumes": [{**VOLUME, "Attachments": None}]}},
        {"DescribeSnapshots": {"Snapshots": [{"SnapshotId": "s", "VolumeId": "vol-1", "State": "completed"}]}},
        {
            "DescribeSnapshots": {
                "Snapshots": [
                    {"SnapshotId": "s", "VolumeId": "vol-1", "StartTime": LAUNCHED.replace(tzinfo=None)},
                ]
            }
        },
        {"DescribeAddresses": {"Addresses": [{}]}},
    ],
)
def test_details_of_another_form_are_an_error(changed: dict[str, Any]) -> None:
    with pytest.raises(ProviderError):
        inventory(**changed).details([ResourceRef("aws", "111122223333", "us-east-1", "instance", "i-1")])


@pytest.mark.parametrize("answer", [{"DisableApiStop": []}, {"DisableApiStop": {"Value": "false"}}, {}])
def test_a_protection_of_another_form_is_an_error_and_never_off(answer: dict[str, Any]) -> None:
    ref = ResourceRef("aws", "111122223333", "us-east-1", "instance", "i-1")
    with pytest.raises(ProviderError):
        inventory(disableApiStop=answer).protections(ref, ["stop_protection"])
    assert inventory(disableApiStop=answer).protections(ref, ["termination_protection"]) == ()


@pytest.mark.parametrize("volume", [{"VolumeId": "vol-ffffffff"}, {"VolumeId": "vol-other"}, {"VolumeId": ""}, {}])
def test_a_copied_snapshot_is_of_no_volume_and_breaks_nothing(volume: dict[str, str]) -> None:
    """Whatever AWS writes there is arbitrary."""
    ref = ResourceRef("aws", "111122223333", "us-east-1", "instance", "i-1")
    own = {"SnapshotId": "snap-1", "VolumeId": "vol-1", "State": "completed", "StartTime": LAUNCHED}
    copied = {"SnapshotId": "snap-copied", "State": "completed", "StartTime": LAUNCHED, **volume}
    found = inventory(DescribeSnapshots={"Snapshots": [copied, own]}).details([ref])[ref]
    assert [each.ref.native_id for each in found.snapshots] == ["snap-1"]


def test_a_volume_that_is_called_as_copies_are_has_no_snapshot() -> None:
    ref = ResourceRef("aws", "111122223333", "us-east-1", "instance", "i-1")
    copied = {"SnapshotId": "snap-1", "VolumeId": "vol-ffffffff", "State": "completed", "StartTime": LAUNCHED}
    volumes = {"Volumes": [{**VOLUME, "VolumeId": "vol-ffffffff"}]}
    found = inventory(DescribeVolumes=volumes, DescribeSnapshots={"Snapshots": [copied]}).details([ref])[ref]
    assert (len(found.volumes), found.snapshots) == (1, ())


def test_a_volume_listed_twice_is_copied_once() -> None:
    ref = ResourceRef("aws", "111122223333", "us-east-1", "instance", "i-1")
    details = inventory(DescribeVolumes={"Volumes": [VOLUME, dict(VOLUME)]}).details([ref])
    assert len(details[ref].volumes) == 1


@pytest.mark.parametrize(
    "accounts",
    [
        [{"Id": 111122223333, "Status": "ACTIVE"}],
        [{"Status": "ACTIVE"}],
        [None],
        [{"Id": "444455556666", "Status": "SUSPENDED"}, {"Id": "444455556666", "Status": "ACTIVE"}],
        [{"Id": "444455556666", "Status": "SUSPENDED"}, {"Id": "444455556666", "Status": 7}],
    ],
)
def test_a_listing_of_accounts_that_cannot_be_read_closes_none(accounts: list[Any]) -> None:
    """A closed account's cases are closed: that takes a listing beyond doubt."""
    target = Target("aws", "111122223333", organisation=True)
    found = inventory(ListAccounts={"Accounts": accounts}).discover(target)
    assert found.closed_accounts == ()
    assert "accounts" in {gap.what for gap in found.gaps}


@pytest.mark.parametrize("identity", [{}, {"Account": None, "Arn": "x"}, {"Account": "me", "Arn": 10**5000}])
def test_an_identity_of_another_form_is_an_error_of_ours(identity: dict[str, Any]) -> None:
    with pytest.raises(ProviderError):
        inventory(GetCallerIdentity=identity).discover(Target("aws"))


def stop(answer: Any) -> Callable[[], object]:
    ref = ResourceRef("aws", "111122223333", "us-east-1", "instance", "i-1")
    action = Action("a", "d", Verb.STOP, ref, ref, "e", "c", 1, "r", "digest")
    executor = AwsExecutor(Answering(may_change=True, StopInstances=answer))
    return lambda: executor.execute(action)


@pytest.mark.parametrize(
    "answer",
    [
        {"StoppingInstances": [None]},
        {"StoppingInstances": "i-1"},
        {"StoppingInstances": [{"InstanceId": ["i-1"]}]},
        {"StoppingInstances": [{"InstanceId": "i-1"}], "ResponseMetadata": []},
    ],
)
def test_an_unreadable_answer_to_a_change_leaves_its_outcome_unknown(answer: dict[str, Any]) -> None:
    with pytest.raises(OutcomeUnknownError, match="may have taken effect"):
        stop(answer)()


@pytest.mark.parametrize(("count", "together"), [(1, False), (2, True), (128, True), (129, False)])
def test_a_set_is_of_two_volumes_and_of_no_more_than_one_call_takes(count: int, *, together: bool) -> None:
    """EBS user guide, "Create multi-volume Amazon EBS snapshots": the root volume and up to 127 data volumes."""
    mapped = [{"DeviceName": f"/dev/{n}", "Ebs": {"VolumeId": f"vol-{n}"}} for n in range(count)]
    machine = {**MACHINE, "BlockDeviceMappings": mapped}
    volumes = [{**VOLUME, "VolumeId": f"vol-{n}"} for n in range(count)]
    read = inventory(
        DescribeInstances={"Reservations": [{"Instances": [machine]}]}, DescribeVolumes={"Volumes": volumes}
    )
    (ref,) = (instance.ref for instance in read.read(SHARD).instances)
    assert read.details([ref])[ref].copied_together is together


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"Snapshots": []},
        {"Snapshots": "vol-1"},
        {"Snapshots": [{"VolumeId": "vol-1", "SnapshotId": "snap-1"}]},
        {"Snapshots": [{"VolumeId": "vol-1", "SnapshotId": "snap-1"}, {"VolumeId": "vol-2", "SnapshotId": ""}]},
        {"Snapshots": [{"VolumeId": "vol-1", "SnapshotId": "snap-1"}, {"SnapshotId": "snap-2"}]},
    ],
)
def test_an_answer_that_is_no_whole_set_leaves_its_outcome_unknown(answer: dict[str, Any]) -> None:
    ref = ResourceRef("aws", "111122223333", "us-east-1", "instance", "i-1")
    volumes = tuple(ref.sibling("volume", f"vol-{n}") for n in (1, 2))
    action = Action("a", "d", Verb.SNAPSHOT, ref, ref, "e", "c", 1, "r", "digest", copies=volumes)
    with pytest.raises(OutcomeUnknownError, match="may have"):
        AwsExecutor(Answering(may_change=True, CreateSnapshots=answer)).execute(action)
