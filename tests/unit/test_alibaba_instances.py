"""One element of DescribeInstances as an instance, and what its type carries."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pytest

from costguard.domain.errors import ProviderError
from costguard.domain.refs import Shard
from costguard.domain.resources import Accelerator, AcceleratorKind, Billing, Instance, InstanceState, Keeper, ManagedBy
from costguard.providers.alibaba.compute.instance_types import facts_of, may_carry_accelerator, unread_facts
from costguard.providers.alibaba.compute.instances import elastic_address, keeper_of, secondary_interfaces, to_instance
from costguard.providers.alibaba.core.products import flattened, host_of, is_region, items_in, json_list, time_of

SHARD = Shard("alibaba", "1234567890123456", "cn-hangzhou")
A10 = Accelerator(AcceleratorKind.NVIDIA_GPU, "A10", 1, 24.0)


def described(**changes: Any) -> dict[str, Any]:
    ordinary: dict[str, Any] = {
        "InstanceId": "i-1",
        "InstanceName": "trainer",
        "InstanceType": "ecs.gn7i-c8g1.2xlarge",
        "Status": "Running",
        "StoppedMode": "Not-applicable",
        "InstanceChargeType": "PostPaid",
        "SpotStrategy": "NoSpot",
        "StartTime": "2026-02-21T09:00Z",
        "CreationTime": "2026-01-21T09:00Z",
        "ZoneId": "cn-hangzhou-i",
        "Tags": {"Tag": [{"TagKey": "team", "TagValue": "nlp"}]},
        "DeletionProtection": False,
        "OperationLocks": {"LockReason": []},
        "PublicIpAddress": {"IpAddress": []},
        "EipAddress": {"AllocationId": "", "IpAddress": ""},
    }
    return {**ordinary, **changes}


def instance(**changes: Any) -> Instance:
    return to_instance(SHARD, described(**changes), A10, 0.0)


def test_an_ordinary_machine_is_read_whole() -> None:
    found = instance()

    assert found.state is InstanceState.RUNNING
    assert found.billing is Billing.ON_DEMAND
    assert found.run_epoch == "2026-02-21T09:00Z"
    assert found.launched_at == datetime(2026, 2, 21, 9, 0, tzinfo=timezone.utc)
    assert (found.name, found.zone, found.tags) == ("trainer", "cn-hangzhou-i", {"team": "nlp"})
    assert not found.billed_while_stopped
    assert found.protected_by == ()


def test_a_machine_never_started_has_no_run_and_no_age() -> None:
    found = instance(StartTime="", Status="Pending")

    assert (found.run_epoch, found.launched_at, found.state) == ("", None, InstanceState.PENDING)


@pytest.mark.parametrize(
    ("status", "mode", "billed"),
    [
        ("Stopped", "KeepCharging", True),
        ("Stopped", "Not-applicable", True),
        ("Stopped", "StopCharging", False),
        ("Running", "Not-applicable", False),
        ("Stopping", "KeepCharging", False),
    ],
)
def test_only_a_stopped_machine_tells_whether_its_bill_goes_on(status: str, mode: str, *, billed: bool) -> None:
    assert instance(Status=status, StoppedMode=mode).billed_while_stopped is billed


@pytest.mark.parametrize(
    ("changes", "billing"),
    [
        ({"InstanceChargeType": "PrePaid"}, Billing.PREPAID),
        ({"InstanceChargeType": "PrePaid", "SpotStrategy": "SpotAsPriceGo"}, Billing.PREPAID),
        ({"SpotStrategy": "SpotAsPriceGo"}, Billing.SPOT),
        ({"SpotStrategy": "SpotWithPriceLimit"}, Billing.SPOT),
        ({"SpotStrategy": "SomethingNew"}, Billing.UNKNOWN),
        ({"InstanceChargeType": ""}, Billing.UNKNOWN),
        ({"InstanceChargeType": "SomethingNew"}, Billing.UNKNOWN),
        ({"DedicatedHostAttribute": {"DedicatedHostId": "dh-1"}}, Billing.RESERVED),
        ({"EcsCapacityReservationAttr": {"CapacityReservationId": "crp-1"}}, Billing.RESERVED),
    ],
)
def test_how_it_is_paid_for(changes: dict[str, Any], billing: Billing) -> None:
    assert instance(**changes).billing is billing


def test_what_is_not_known_is_no_state_to_act_on() -> None:
    assert instance(Status="Hibernating").state is InstanceState.UNKNOWN


def test_deletion_protection_and_every_lock_protect() -> None:
    locks = {"LockReason": [{"LockReason": "security"}, {"LockReason": "Recycling"}]}

    found = instance(DeletionProtection=True, OperationLocks=locks)

    assert found.protected_by == ("locked_recycling", "locked_security", "termination_protection")


def test_an_elastic_address_outlives_a_stop_and_a_plain_one_does_not() -> None:
    plain = instance(PublicIpAddress={"IpAddress": ["203.0.113.7"]})
    elastic = described(EipAddress={"IpAddress": "203.0.113.8", "AllocationId": "eip-1"})

    assert (plain.public_ip, plain.public_ip_is_kept) == ("203.0.113.7", False)
    kept = to_instance(SHARD, elastic, A10, 0.0)
    assert (kept.public_ip, kept.public_ip_is_kept, elastic_address(elastic)) == ("203.0.113.8", True, "eip-1")


@pytest.mark.parametrize("nothing", [{"Tag": []}, {}, ""])
def test_no_tags_come_in_many_forms(nothing: Any) -> None:
    assert instance(Tags=nothing).tags == {}
    assert to_instance(SHARD, {k: v for k, v in described().items() if k != "Tags"}, A10, 0.0).tags == {}


@pytest.mark.parametrize(
    "changes",
    [
        {"Tags": {"Tag": "team"}},
        {"Tags": {"Tag": [{"Key": "team", "Value": "nlp"}]}},
        {"Tags": {"Tag": [{"TagKey": "a", "TagValue": "1"}, {"TagKey": "a", "TagValue": "2"}]}},
        {"Tags": [7]},
        {"Tags": 7},
        {"Tags": None},
        {"Tags": {"Tag": None}},
        {"DeletionProtection": "false"},
        {"DeletionProtection": None},
        {"StartTime": "yesterday"},
        {"StartTime": "2026-02-30T09:00Z"},
        {"StartTime": None},
        {"OperationLocks": {"LockReason": [{}]}},
        {"InstanceId": ""},
        {"Status": 1},
        {"PublicIpAddress": {"IpAddress": [7]}},
        {"EipAddress": []},
    ],
)
def test_a_field_of_another_form_makes_the_answer_untrusted(changes: dict[str, Any]) -> None:
    """Read as "none", a tag or a protection that is there would be lost."""
    with pytest.raises((TypeError, ValueError, ProviderError)):
        instance(**changes)


def test_minutes_and_seconds_are_both_times() -> None:
    assert time_of({"T": "2026-02-21T09:00Z"}, "T") == time_of({"T": "2026-02-21T09:00:00Z"}, "T")
    assert time_of({"T": ""}, "T") is None


def test_only_further_interfaces_are_asked_about() -> None:
    interfaces = [
        {"NetworkInterfaceId": "eni-1", "Type": "Primary"},
        {"NetworkInterfaceId": "eni-2", "Type": "Secondary"},
    ]

    assert secondary_interfaces(described(NetworkInterfaces={"NetworkInterface": interfaces})) == ["eni-2"]


@pytest.mark.parametrize(
    ("tags", "keeper"),
    [
        ({}, None),
        ({"team": "nlp"}, None),
        ({"acs:rm:rgId": "rg-1", "acs:tag:createdby": "sub:1", "acs:ros:stackId": "s"}, None),
        ({"acs:autoscaling:scalingGroupId": "asg-1"}, ManagedBy(Keeper.AUTOSCALING, "asg-1")),
        ({"acs:autoscaling:other": ""}, ManagedBy(Keeper.AUTOSCALING, "other")),
        (
            {"acs:autoscaling:scalingGroupId": "asg-1", "ack.aliyun.com": "c-1"},
            ManagedBy(Keeper.KUBERNETES, "c-1"),
        ),
        ({"kubernetes.io/cluster/c-2": "owned"}, ManagedBy(Keeper.KUBERNETES, "c-2")),
        ({"acs:emr:clusterId": "C-3"}, ManagedBy(Keeper.CLOUD_SERVICE, "C-3")),
        ({"acs:somethingnew:id": "x"}, ManagedBy(Keeper.CLOUD_SERVICE, "acs:somethingnew:id")),
        ({"costguard:component": "function"}, ManagedBy(Keeper.COSTGUARD, "function")),
    ],
)
def test_who_keeps_it_is_told_by_tags(tags: dict[str, str], keeper: ManagedBy | None) -> None:
    assert keeper_of(tags) == keeper


def a_type(name: str, spec: str, devices: int = 1, category: str = "", **more: Any) -> dict[str, Any]:
    return {"InstanceTypeId": name, "GPUSpec": spec, "GPUAmount": devices, "InstanceCategory": category, **more}


@pytest.mark.parametrize(
    ("described_type", "kind", "count"),
    [
        (a_type("ecs.gn7i-c8g1.2xlarge", "NVIDIA A10"), AcceleratorKind.NVIDIA_GPU, 1),
        (a_type("ecs.ebmgn8v.48xlarge", "GPU H", 8, "ECS Bare Metal"), AcceleratorKind.NVIDIA_GPU, 8),
        (a_type("ecs.gn8is.2xlarge", "G49", 1, "Compute-optimized with GPU"), AcceleratorKind.NVIDIA_GPU, 1),
        (a_type("ecs.brandnew.large", "G50", 1, "Compute-optimized with GPU"), AcceleratorKind.NVIDIA_GPU, 1),
        (a_type("ecs.sccgn7ex.32xlarge", "GPU H", 8, "Super Computing Cluster"), AcceleratorKind.NVIDIA_GPU, 8),
        (a_type("ecs.ga1.xlarge", "AMD S7150", 1), AcceleratorKind.AMD_GPU, 1),
        (a_type("ecs.ebmga8.48xlarge", "GPU X", 8), AcceleratorKind.AMD_GPU, 8),
        (a_type("ecs.f1-c8f1.2xlarge", "INTEL ARRIA 10"), AcceleratorKind.FPGA, 1),
        (a_type("ecs.f3-c16f1.4xlarge", "Xilinx VU9p"), AcceleratorKind.FPGA, 1),
        (a_type("ecs.f5.large", "AGF 027"), AcceleratorKind.FPGA, 1),
        (a_type("ecs.brandnew.large", "X", 1, "Compute-optimized with FPGA"), AcceleratorKind.FPGA, 1),
        (a_type("ecs.video-trans.26xlarge", "NETINT T408"), AcceleratorKind.MEDIA, 1),
        (a_type("ecs.ebman1.26xlarge", "AliNPU", 4), AcceleratorKind.OTHER, 4),
        (a_type("ecs.gp7.16xlarge", "PPU 810", 4, "Compute-optimized with GPU"), AcceleratorKind.OTHER, 4),
        (a_type("ecs.brandnew.large", "X", 1), AcceleratorKind.OTHER, 1),
        (a_type("ecs.vgn6i-m4.xlarge", "NVIDIA T4*1/4"), AcceleratorKind.NVIDIA_GPU, 0.25),
        (a_type("ecs.vgn6i-m4.xlarge", "NVIDIA T4", GPUMemorySize=4.0), AcceleratorKind.NVIDIA_GPU, 0.25),
        (a_type("ecs.vgn6i-m4.xlarge", "NVIDIA T4 * 1/4", 0), AcceleratorKind.NVIDIA_GPU, 0.25),
        (a_type("ecs.sgn7i-vws-m2.xlarge", "NVIDIA A10", GPUMemorySize=2.0), AcceleratorKind.NVIDIA_GPU, 1 / 12),
    ],
)
def test_a_count_of_gpus_does_not_mean_gpus(
    described_type: dict[str, Any], kind: AcceleratorKind, count: float
) -> None:
    found = facts_of(described_type).accelerator

    assert found is not None
    assert found.kind is kind
    assert found.count == pytest.approx(count)


@pytest.mark.parametrize(
    ("described_type", "count"),
    [
        (a_type("ecs.sgn8ia-m2.xlarge", "GPU L", GPUMemorySize=2.0), 2 / 48),
        (a_type("ecs.sgn8ia-m16.8xlarge", "", GPUMemorySize=16.0), 1 / 3),
        (a_type("ecs.sgn8ia-m24.12xlarge", "NVIDIA L20", GPUMemorySize=24.0), 0.5),
        (a_type("ecs.sgn8ia-m48.24xlarge", "GPU L", GPUMemorySize=48.0), 1),
        (a_type("ecs.sgn8ia-m4.2xlarge", "GPU L"), 4 / 48),  # no memory is told: the name has it
        (a_type("ecs.sgn8ia-m4.2xlarge", "", 0), 4 / 48),  # nor any device
        (a_type("ecs.sgn8ga-wy-m8.4xlarge", "GPU L", GPUMemorySize=8.0), 1 / 6),
        (a_type("ecs.sgn6i-vws-m2.xlarge", "G16", GPUMemorySize=2.0), 1 / 8),
        (a_type("ecs.vgn6i-m4-vws.xlarge", "G16"), 0.25),
        (a_type("ecs.sgn7i-vws-m2s.xlarge", "G24"), 1 / 12),
        (a_type("ecs.vgn7i-vws-m24.7xlarge", "NVIDIA A10", GPUMemorySize=24.0), 1),
        (a_type("ecs.vgn5i-m1.large", "G8", GPUMemorySize=1.0), 1 / 8),
        (a_type("ecs.sgn99.large", "G50", GPUMemorySize=2.0), 1),  # of what card, nobody says
        (a_type("ecs.gn8is.2xlarge", "G49", GPUMemorySize=24.0), 1),  # whole cards are not sold by the GiB
    ],
)
def test_a_slice_counts_as_a_part_also_where_its_card_is_masked(described_type: dict[str, Any], count: float) -> None:
    found = facts_of(described_type).accelerator

    assert found is not None
    assert found.kind is AcceleratorKind.NVIDIA_GPU
    assert found.count == pytest.approx(count)


def test_a_type_without_devices_has_no_accelerator() -> None:
    assert facts_of(a_type("ecs.g7.xlarge", "", 0)).accelerator is None


@pytest.mark.parametrize(
    ("more", "gib"),
    [
        ({}, 0.0),
        ({"LocalStorageAmount": 0}, 0.0),
        ({"LocalStorageAmount": 2, "LocalStorageCapacity": 440}, 880.0),
        ({"LocalStorageAmount": 2}, None),
        ({"LocalStorageCategory": "local_ssd_pro"}, None),
    ],
)
def test_local_disks_of_unknown_size_count_as_there(more: dict[str, Any], gib: float | None) -> None:
    assert facts_of(a_type("ecs.gn5-c4g1.xlarge", "NVIDIA P100", **more)).local_disk_gib == gib


@pytest.mark.parametrize(
    ("found", "may"),
    [
        (described(GPUAmount=1), True),
        (described(GPUAmount=0), True),
        (described(InstanceType="ecs.g7.xlarge", GPUAmount=0, GPUSpec=""), False),
        (described(InstanceType="ecs.g7.xlarge", GPUSpec="G50"), True),
        (described(InstanceType="ecs.g7.xlarge"), False),
    ],
)
def test_a_machine_is_looked_at_when_count_card_or_family_say_so(found: dict[str, Any], *, may: bool) -> None:
    assert may_carry_accelerator(found) is may


def test_a_type_nobody_describes_is_shown_when_its_family_is_known() -> None:
    assert unread_facts("ecs.gn99.large").accelerator == Accelerator(AcceleratorKind.OTHER, "", 0)
    assert unread_facts("ecs.g99.large").accelerator is None


def test_parameters_are_written_as_the_api_reads_them() -> None:
    assert flattened({"InstanceId": ["i-1", "i-2"], "DryRun": True, "Force": False, "PageSize": 50}) == {
        "InstanceId.1": "i-1",
        "InstanceId.2": "i-2",
        "DryRun": "true",
        "Force": "false",
        "PageSize": "50",
    }
    assert flattened({"Tag": [{"Key": "a", "Value": ""}], "SystemDisk": {"Size": 40}}) == {
        "Tag.1.Key": "a",
        "Tag.1.Value": "",
        "SystemDisk.Size": "40",
    }


@pytest.mark.parametrize("value", [[], (), {}, None, 1.5, b"x", [[]]])
def test_what_has_no_form_is_not_left_out(value: Any) -> None:
    """Left out, an empty list of ids would mean every machine."""
    with pytest.raises(TypeError):
        flattened({"InstanceId": value})
    with pytest.raises(ValueError, match="without anything"):
        json_list([])


@pytest.mark.parametrize("answer", [{}, {"A": ""}, {"A": {}}, {"A": {"B": []}}, {"A": {"B": ""}}])
def test_an_empty_list_comes_in_many_forms(answer: dict[str, Any]) -> None:
    assert items_in(answer, "A.B", "ecs:X") == []


@pytest.mark.parametrize("region", ["", "cn", "cn-hangzhou.evil.example/", "CN-HANGZHOU", "cn-hangzhou\n", "x" * 80])
def test_what_is_no_region_becomes_no_host(region: str) -> None:
    assert not is_region(region)
    with pytest.raises(ValueError, match="no region"):
        host_of("alibaba", "ecs", region)


def test_hosts_of_regions_the_sdk_does_not_know_are_their_own() -> None:
    assert host_of("alibaba", "ecs", "cn-wulanchabu") == "ecs.cn-wulanchabu.aliyuncs.com"
    assert host_of("alibaba", "cms", "na-south-1") == "metrics.na-south-1.aliyuncs.com"
    assert host_of("alibaba-intl", "resourcedirectory", "") == "resourcedirectory-intl.aliyuncs.com"
