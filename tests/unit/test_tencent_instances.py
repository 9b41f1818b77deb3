"""From DescribeInstances to instances, without a request: what real bodies look like, and what not to believe."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pytest

from costguard.domain.refs import Shard
from costguard.domain.resources import Accelerator, AcceleratorKind, Billing, Instance, InstanceState, Keeper, ManagedBy
from costguard.providers.tencent.compute.instance_types import (
    CardFacts,
    accelerator_of,
    local_disk_gib,
    may_carry_accelerator,
    type_facts,
    zone_facts,
)
from costguard.providers.tencent.compute.instances import attached_disk_ids, keeper_of, to_instance
from costguard.providers.tencent.core.products import moment, parse_moment, tags_of

SHARD = Shard("tencent", "100012345678", "ap-singapore")
T4 = Accelerator(AcceleratorKind.NVIDIA_GPU, "T4", 1)
PLAIN = CardFacts(cards=1, model="", card_memory_gib=None, fpgas=0, has_local_disks=False)


def described(**more: Any) -> dict[str, Any]:
    return {
        "InstanceId": "ins-aaaaaaaa",
        "InstanceName": "box",
        "InstanceType": "GN7.2XLARGE32",
        "Placement": {"Zone": "ap-singapore-2", "ProjectId": 0, "HostId": None},
        "InstanceState": "RUNNING",
        "RestrictState": "NORMAL",
        "InstanceChargeType": "POSTPAID_BY_HOUR",
        "RenewFlag": None,
        "CreatedTime": "2022-09-06T03:07:37Z",
        "ExpiredTime": None,
        "Tags": [],
        "SystemDisk": {"DiskId": "disk-aaaaaaaa", "DiskType": "CLOUD_PREMIUM", "DiskSize": 50},
        "DataDisks": None,
        "PublicIpAddresses": None,
        "StopChargingMode": "NOT_APPLICABLE",
        "DisableApiTermination": False,
        "LatestOperation": "RunInstances",
        "LatestOperationState": "SUCCESS",
        "LatestOperationRequestId": "request-1",
        "GPUInfo": {"GPUCount": 1.0, "GPUId": ["0000:00:08.0"], "GPUType": "NVIDIA T4"},
        **more,
    }


def instance(**more: Any) -> Instance:
    return to_instance(SHARD, described(**more), T4, 0.0)


def test_a_machine_tells_what_it_is() -> None:
    found = instance(Tags=[{"Key": "team", "Value": "nlp"}], PublicIpAddresses=["203.0.113.7"])
    assert found.ref.native_id == "ins-aaaaaaaa"
    assert (found.name, found.zone, found.public_ip) == ("box", "ap-singapore-2", "203.0.113.7")
    assert found.launched_at == found.created_at == datetime(2022, 9, 6, 3, 7, 37, tzinfo=timezone.utc)
    assert found.tags == {"team": "nlp"}
    assert found.protected_by == ()


@pytest.mark.parametrize(
    ("told", "state"),
    [
        ("RUNNING", InstanceState.RUNNING),
        ("STARTING", InstanceState.PENDING),
        ("STOPPING", InstanceState.STOPPING),
        ("STOPPED", InstanceState.STOPPED),
        ("TERMINATING", InstanceState.TERMINATING),
        ("SHUTDOWN", InstanceState.UNKNOWN),
        ("RESCUE_MODE", InstanceState.UNKNOWN),
        ("LAUNCH_FAILED", InstanceState.UNKNOWN),
        ("SOMETHING_NEW", InstanceState.UNKNOWN),
    ],
)
def test_the_recycle_bin_and_what_is_not_known_are_never_acted_on(told: str, state: InstanceState) -> None:
    assert instance(InstanceState=told).state is state


@pytest.mark.parametrize("restricted", ["EXPIRED", "PROTECTIVELY_ISOLATED", "SOMETHING_NEW"])
def test_what_the_cloud_has_isolated_is_never_acted_on(restricted: str) -> None:
    assert instance(RestrictState=restricted).state is InstanceState.UNKNOWN


@pytest.mark.parametrize(
    ("more", "billing"),
    [
        ({}, Billing.ON_DEMAND),
        ({"InstanceChargeType": "SPOTPAID"}, Billing.SPOT),
        ({"InstanceChargeType": "PREPAID"}, Billing.PREPAID),
        ({"InstanceChargeType": "CDHPAID"}, Billing.RESERVED),
        ({"InstanceChargeType": "CDCPAID"}, Billing.RESERVED),
        ({"InstanceChargeType": "UNDERWRITE"}, Billing.RESERVED),
        ({"InstanceChargeType": "SOMETHING_NEW"}, Billing.UNKNOWN),
        ({"Placement": {"HostId": "host-1"}}, Billing.RESERVED),
        ({"DedicatedClusterId": "cluster-1"}, Billing.RESERVED),
        ({"DedicatedClusterId": ""}, Billing.ON_DEMAND),
        ({"Placement": {"DedicatedResourcePackIds": ["rpp-1"]}}, Billing.RESERVED),
    ],
)
def test_what_is_paid_for_already_is_not_on_demand(more: dict[str, Any], billing: Billing) -> None:
    assert instance(**more).billing is billing


@pytest.mark.parametrize(
    ("charge", "flag", "renewed"),
    [
        ("PREPAID", "NOTIFY_AND_AUTO_RENEW", True),
        ("PREPAID", "NOTIFY_AND_MANUAL_RENEW", False),
        ("PREPAID", "DISABLE_NOTIFY_AND_MANUAL_RENEW", False),
        ("PREPAID", "SOMETHING_NEW", None),
        ("PREPAID", None, None),
        ("POSTPAID_BY_HOUR", "NOTIFY_AND_AUTO_RENEW", None),
    ],
)
def test_only_a_prepaid_machine_is_renewed_and_only_where_it_is_told(charge: str, flag: Any, renewed: Any) -> None:
    assert instance(InstanceChargeType=charge, RenewFlag=flag).auto_renew is renewed


def test_a_renewal_that_is_no_text_makes_the_machine_untrusted() -> None:
    with pytest.raises(TypeError):
        instance(InstanceChargeType="PREPAID", RenewFlag=True)


@pytest.mark.parametrize(
    ("state", "latest", "run_epoch", "stopped_by"),
    [
        ("RUNNING", "RunInstances", "request-1", ""),
        ("RUNNING", "StartInstances", "request-1", ""),
        ("RUNNING", "ModifyInstancesAttribute", "request-1", ""),
        ("RUNNING", "StopInstances", "request-1", ""),  # a stop that failed
        ("STOPPED", "StopInstances", "", "request-1"),
        ("STOPPING", "StopInstances", "", "request-1"),
        ("STOPPED", "ModifyInstancesAttribute", "request-1", ""),
        ("TERMINATING", "TerminateInstances", "", ""),
        ("SHUTDOWN", "TerminateInstances", "", ""),
    ],
)
def test_of_a_stopped_machine_its_stop_is_told_and_not_its_run(
    state: str, latest: str, run_epoch: str, stopped_by: str
) -> None:
    found = instance(InstanceState=state, LatestOperation=latest)
    assert (found.run_epoch, found.stopped_by) == (run_epoch, stopped_by)


def test_no_latest_operation_is_no_run_epoch() -> None:
    found = instance(LatestOperation=None, LatestOperationState=None, LatestOperationRequestId=None)
    assert (found.run_epoch, found.stopped_by) == ("", "")


@pytest.mark.parametrize(
    ("state", "mode", "billed"),
    [
        ("STOPPED", "STOP_CHARGING", False),
        ("STOPPED", "KEEP_CHARGING", True),
        ("STOPPED", "NOT_APPLICABLE", True),
        ("STOPPED", "", True),
        ("RUNNING", "NOT_APPLICABLE", False),
    ],
)
def test_a_stop_that_ended_no_bill_says_so(state: str, mode: str, *, billed: bool) -> None:
    assert instance(InstanceState=state, StopChargingMode=mode).billed_while_stopped is billed


def test_protection_stands_in_the_listing() -> None:
    assert instance(DisableApiTermination=True).protected_by == ("termination_protection",)


def test_a_system_disk_of_the_host_cannot_be_stopped() -> None:
    local = {"DiskId": "ldisk-1", "DiskType": "LOCAL_SSD", "DiskSize": 50}
    assert instance(SystemDisk=local).cannot_stop == "instance_store_root"
    assert instance().cannot_stop == ""


@pytest.mark.parametrize("addresses", [None, []])
def test_no_public_address_is_null_or_empty(addresses: Any) -> None:
    assert instance(PublicIpAddresses=addresses).public_ip == ""


@pytest.mark.parametrize(
    "broken",
    [
        {"Tags": None},
        {"Tags": [{"Key": "a", "Value": "1"}, {"Key": "a", "Value": "2"}]},
        {"Tags": [{"Value": "nameless"}]},
        {"Tags": [{"Key": "a", "tagKey": "b", "Value": "1"}]},
        {"Tags": ["a"]},
        {"PublicIpAddresses": "203.0.113.7"},
        {"PublicIpAddresses": [None]},
        {"CreatedTime": "yesterday"},
        {"InstanceId": ""},
        {"InstanceState": None},
        {"DisableApiTermination": "false"},
        {"RestrictState": 1},
        {"SystemDisk": []},
        {"Placement": None},
    ],
    ids=lambda broken: str(broken)[:40],
)
def test_a_field_of_another_form_is_not_believed(broken: dict[str, Any]) -> None:
    with pytest.raises((ValueError, TypeError)):
        instance(**broken)


def test_tags_that_were_left_out_are_not_none() -> None:
    """The one that protects could be among them."""
    without = described()
    del without["Tags"]
    with pytest.raises(ValueError, match="Tags is missing"):
        to_instance(SHARD, without, T4, 0.0)


@pytest.mark.parametrize(
    "tag",
    [
        {"Key": "keep", "Value": "yes"},
        {"tagKey": "keep", "tagValue": "yes"},
        {"TagKey": "keep", "TagValue": "yes"},
        {"Key": "keep", "Value": "yes", "tagKey": "keep", "tagValue": "yes"},
    ],
)
def test_tags_are_read_in_every_spelling(tag: dict[str, str]) -> None:
    assert tags_of({"Tags": [tag]}, "Tags") == {"keep": "yes"}


@pytest.mark.parametrize(
    ("written", "hour"),
    [
        ("2022-09-06T03:07:37Z", 3),
        ("2022-09-06T03:07:37+00:00", 3),
        ("2022-09-06T11:07:37+08:00", 3),
        ("2022-09-06T01:37:37-01:30", 3),
        ("2022-09-06 11:07:37", 3),  # CBS: UTC+8, in Singapore and in Ashburn as well
    ],
)
def test_times_without_an_offset_are_eight_hours_ahead_wherever_they_are_from(written: str, hour: int) -> None:
    assert parse_moment(written) == datetime(2022, 9, 6, hour, 7, 37, tzinfo=timezone.utc)


@pytest.mark.parametrize("none", [None, ""])
def test_no_time_is_null_in_one_product_and_empty_in_another(none: Any) -> None:
    assert moment({"DeadlineTime": none}, "DeadlineTime") is None


@pytest.mark.parametrize(
    "written", ["2022-09-06", "06/09/2022", "2022-13-06 11:07:37", "1662433657", "2022-09-06T1:7:3Z"]
)
def test_what_is_no_time_is_not_guessed_at(written: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse_moment(written)


@pytest.mark.parametrize(
    "name", ["S5.MEDIUM4", "SA5.2XLARGE16", "M6.LARGE16", "IT5.8XLARGE128", "C6.LARGE8", "BC1.LARGE8"]
)
def test_families_without_cards_are_not_asked_about(name: str) -> None:
    assert not may_carry_accelerator(name)


@pytest.mark.parametrize(
    "name", ["GN7.2XLARGE32", "GT4.4XLARGE96", "PNV4.7XLARGE116", "HCCPNV4h.48XLARGE1024", "XYZ1.LARGE8", ""]
)
def test_families_that_nobody_knows_are_asked_about(name: str) -> None:
    assert may_carry_accelerator(name)


def test_a_part_of_a_card_is_a_fraction() -> None:
    sliced = described(InstanceType="GN7.LARGE20", GPUInfo={"GPUCount": 0.25, "GPUId": [], "GPUType": "NVIDIA T4"})
    found = accelerator_of(sliced, None)
    assert found == Accelerator(AcceleratorKind.NVIDIA_GPU, "T4", 0.25)


def test_without_its_own_word_the_type_tells() -> None:
    """Real bodies of 2022 to 2024 have no GPUInfo at all."""
    old = described()
    del old["GPUInfo"]
    facts = CardFacts(cards=2, model="NVIDIA V100", card_memory_gib=32, fpgas=0, has_local_disks=False)
    assert accelerator_of(old, facts) == Accelerator(AcceleratorKind.NVIDIA_GPU, "V100", 2, 32)
    assert accelerator_of(old, CardFacts(0, "", None, 0, has_local_disks=False)) is None


def test_without_any_word_the_family_name_shows_an_accelerator_nobody_can_measure() -> None:
    unknown = described(InstanceType="GN99.LARGE8")
    del unknown["GPUInfo"]
    assert accelerator_of(unknown, None) == Accelerator(AcceleratorKind.OTHER, "", 0)
    assert accelerator_of({**unknown, "InstanceType": "XYZ1.LARGE8"}, None) is None


@pytest.mark.parametrize(
    ("name", "model", "kind"),
    [
        ("PNV6.32XLARGE1280", "PNV6", AcceleratorKind.NVIDIA_GPU),
        ("HCCPNV6.96XLARGE2304", "GPU H", AcceleratorKind.NVIDIA_GPU),
        ("PNV5b.8XLARGE96", "G48", AcceleratorKind.NVIDIA_GPU),
        ("Pnv5i.8XLARGE96", "G48", AcceleratorKind.NVIDIA_GPU),
        ("GN10Xp.2XLARGE40", "-", AcceleratorKind.NVIDIA_GPU),
        ("GC49.8XLARGE96", "GC49", AcceleratorKind.OTHER),  # of this family nobody says whose cards it has
        ("NEW1.2XLARGE32", "G48", AcceleratorKind.OTHER),
        ("PNV9.2XLARGE32", "紫霄 V1", AcceleratorKind.OTHER),
        ("PNV9.2XLARGE32", "Kunlun P800", AcceleratorKind.OTHER),
        ("GN9.2XLARGE32", "Ascend910B", AcceleratorKind.OTHER),
        ("GN9.2XLARGE32", "AMD MI300X", AcceleratorKind.AMD_GPU),
    ],
)
def test_a_masked_card_is_what_its_family_is_named_for(name: str, model: str, kind: AcceleratorKind) -> None:
    """Unless its name says whose it is."""
    found = accelerator_of(described(InstanceType=name, GPUInfo={"GPUCount": 8, "GPUType": model}), None)
    assert found == Accelerator(kind, model.removeprefix("AMD "), 8)


@pytest.mark.parametrize(
    ("own", "of_type", "model"),
    [
        ({"GPUCount": 2, "GPUType": "G48"}, "NVIDIA L20", "L20"),
        ({"GPUCount": 2}, "NVIDIA L20", "L20"),
        ({"GPUCount": 2, "GPUType": "NVIDIA L20"}, "G48", "L20"),
        ({"GPUCount": 2, "GPUType": "G48"}, "", "G48"),
        ({"GPUCount": 2, "GPUType": None}, "G48", "G48"),
    ],
)
def test_a_card_has_the_name_that_tells_whose_it_is(own: dict[str, Any], of_type: str, model: str) -> None:
    facts = CardFacts(cards=2, model=of_type, card_memory_gib=48, fpgas=0, has_local_disks=False)
    found = accelerator_of(described(InstanceType="PNV5b.8XLARGE96", GPUInfo=own), facts)
    assert found == Accelerator(AcceleratorKind.NVIDIA_GPU, model, 2, 48)


@pytest.mark.parametrize(
    ("name", "model", "kind"),
    [
        ("GN7.2XLARGE32", "", AcceleratorKind.NVIDIA_GPU),
        ("NEW1.2XLARGE32", "Tesla T4", AcceleratorKind.NVIDIA_GPU),
        ("NEW1.2XLARGE32", "H20", AcceleratorKind.NVIDIA_GPU),
        ("GA1.2XLARGE32", "AMD S7150", AcceleratorKind.AMD_GPU),
        ("GI1.2XLARGE32", "Intel SG1", AcceleratorKind.OTHER),
        ("GI9.2XLARGE32", "Intel Arc A770", AcceleratorKind.OTHER),
        ("NEW1.2XLARGE32", "", AcceleratorKind.OTHER),
    ],
)
def test_only_cards_with_a_metric_count_as_measurable(name: str, model: str, kind: AcceleratorKind) -> None:
    found = accelerator_of(described(InstanceType=name, GPUInfo={"GPUCount": 1, "GPUType": model}), None)
    assert found is not None
    assert found.kind is kind


LOCAL = {"DiskId": "ldisk-1", "DiskType": "LOCAL_NVME", "DiskSize": 3570}


@pytest.mark.parametrize(
    ("disks", "facts", "size"),
    [
        (None, PLAIN, 0.0),
        ([LOCAL, {**LOCAL, "DiskId": "ldisk-2"}], PLAIN, 7140.0),
        ([{**LOCAL, "DiskSize": 0}], PLAIN, None),
        (None, None, None),
        (None, CardFacts(1, "", None, 0, has_local_disks=True), None),
        (None, CardFacts(1, "", None, 0, has_local_disks=None), None),
    ],
    ids=["none", "two", "of no size", "type unknown", "type has some", "type does not say"],
)
def test_local_disks_are_present_unless_the_type_says_that_it_has_none(
    disks: Any, facts: CardFacts | None, size: float | None
) -> None:
    assert local_disk_gib(described(DataDisks=disks), facts) == size


def test_local_disks_are_no_volumes() -> None:
    cloud = {"DiskId": "disk-bbbbbbbb", "DiskType": "CLOUD_SSD", "DiskSize": 100}
    assert attached_disk_ids(described(DataDisks=[LOCAL, cloud])) == {"disk-aaaaaaaa", "disk-bbbbbbbb"}


def test_a_disk_without_an_id_is_no_answer() -> None:
    with pytest.raises(ValueError, match="DiskId"):
        attached_disk_ids(described(DataDisks=[{"DiskType": "CLOUD_SSD", "DiskSize": 100}]))


def test_one_type_is_described_by_zone_and_charge_type() -> None:
    entry = {"Gpu": 1, "GpuCount": 0.5, "Fpga": 0, "StorageBlockAmount": 0, "LocalDiskTypeList": []}
    assert zone_facts([entry, {**entry, "GpuCount": None}]) == CardFacts(1.0, "", None, 0.0, has_local_disks=False)
    assert zone_facts([entry]).cards == 0.5
    assert zone_facts([{**entry, "StorageBlockAmount": 4}]).has_local_disks
    assert zone_facts([{**entry, "LocalDiskTypeList": [{"Required": "REQUIRED"}]}]).has_local_disks
    assert not zone_facts([{**entry, "LocalDiskTypeList": [{"Required": "OPTIONAL"}]}]).has_local_disks


def test_the_other_api_spells_the_same_otherwise_and_may_leave_out_what_is_new() -> None:
    assert type_facts([{"GPU": 8, "FPGA": 0}]) == CardFacts(8.0, "", None, 0.0, has_local_disks=None)
    entry = {"GPU": 0, "GpuCount": 0.25, "FPGA": 0, "GpuType": "T4", "GpuMemory": 16.0}
    assert type_facts([entry]) == CardFacts(0.25, "T4", 16.0, 0.0, has_local_disks=None)


@pytest.mark.parametrize(
    ("tags", "name", "keeper"),
    [
        ({}, "box", None),
        ({"costguard:component": "runner"}, "box", ManagedBy(Keeper.COSTGUARD, "runner")),
        (
            {"tencentcloud:autoscaling:auto-scaling-group-id": "asg-1"},
            "box",
            ManagedBy(Keeper.AUTOSCALING, "asg-1"),
        ),
        ({"tke-clusterId": "cls-1"}, "box", ManagedBy(Keeper.KUBERNETES, "cls-1")),
        (
            {"tencentcloud:autoscaling:auto-scaling-group-id": "asg-1"},
            "as-tke-np-7lmwo8pi",
            ManagedBy(Keeper.AUTOSCALING, "asg-1"),
        ),
        ({}, "tke_cls-13rigq6t_worker", ManagedBy(Keeper.KUBERNETES, "cls-13rigq6t")),
        ({}, "tke-np-ol06goby-worker", ManagedBy(Keeper.KUBERNETES, "np-ol06goby")),
        ({}, "as-tke-np-7lmwo8pi", ManagedBy(Keeper.KUBERNETES, "np-7lmwo8pi")),
        ({}, "emr-o88f3whr_core_1", ManagedBy(Keeper.CLOUD_SERVICE, "emr-o88f3whr")),
        ({}, "tken", None),
    ],
)
def test_keepers_give_themselves_away(tags: dict[str, str], name: str, keeper: ManagedBy | None) -> None:
    assert keeper_of(tags, name) == keeper
