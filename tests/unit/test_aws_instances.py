"""From DescribeInstances and DescribeInstanceTypes to instances, without a request."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pytest

from costguard.domain.refs import Shard
from costguard.domain.resources import Accelerator, AcceleratorKind, Billing, Instance, InstanceState, Keeper, ManagedBy
from costguard.providers.aws.compute.commitments import covered_by
from costguard.providers.aws.compute.instance_types import facts_of, may_carry_accelerator, unread_facts
from costguard.providers.aws.compute.instances import keeper_of, to_instance, volume_ids, volumes_deleted_with
from costguard.providers.kit.compute.source import TypeFacts

SHARD = Shard("aws", "111122223333", "us-east-1")
T4 = Accelerator(AcceleratorKind.NVIDIA_GPU, "T4", 1)
LAUNCHED = datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone.utc)


def described(native_id: str = "i-1", **more: Any) -> dict[str, Any]:
    return {
        "InstanceId": native_id,
        "InstanceType": "g4dn.xlarge",
        "State": {"Name": "running"},
        "LaunchTime": LAUNCHED,
        "Placement": {"AvailabilityZone": "us-east-1a", "Tenancy": "default"},
        "PlatformDetails": "Linux/UNIX",
        "RootDeviceType": "ebs",
        **more,
    }


def instance(native_id: str = "i-1", **more: Any) -> Instance:
    return to_instance(SHARD, described(native_id, **more), T4, 0.0)


@pytest.mark.parametrize(
    ("more", "billing"),
    [
        ({}, Billing.ON_DEMAND),
        ({"InstanceLifecycle": "spot"}, Billing.SPOT),
        ({"InstanceLifecycle": "capacity-block"}, Billing.RESERVED),
        ({"InstanceLifecycle": "scheduled"}, Billing.RESERVED),
        ({"InstanceLifecycle": "interruptible-capacity-reservation"}, Billing.RESERVED),
        ({"InstanceLifecycle": "something-new"}, Billing.UNKNOWN),
        ({"CapacityReservationId": "cr-1"}, Billing.RESERVED),
        ({"CapacityBlockId": "cb-1"}, Billing.RESERVED),
        ({"Placement": {"Tenancy": "host", "HostId": "h-1"}}, Billing.RESERVED),
        ({"Placement": {"Tenancy": "host"}}, Billing.RESERVED),
        ({"Placement": {"Tenancy": "dedicated"}}, Billing.ON_DEMAND),
    ],
)
def test_capacity_already_paid_for_is_not_on_demand(more: dict[str, Any], billing: Billing) -> None:
    assert instance(**more).billing is billing


@pytest.mark.parametrize(
    ("more", "cannot_stop"),
    [
        ({}, ""),
        ({"InstanceLifecycle": "spot"}, "one_time_spot"),
        ({"RootDeviceType": "instance-store"}, "instance_store_root"),
        ({"RootDeviceType": "instance-store", "InstanceLifecycle": "spot"}, "instance_store_root"),
    ],
)
def test_what_cannot_stop_says_why(more: dict[str, Any], cannot_stop: str) -> None:
    assert instance(**more).cannot_stop == cannot_stop


@pytest.mark.parametrize("zone_name", ["GMT", "UTC"])
def test_the_time_of_a_stop_is_read_from_its_reason(zone_name: str) -> None:
    stopped = instance(
        State={"Name": "stopped"}, StateTransitionReason=f"User initiated (2026-01-03 03:04:05 {zone_name})"
    )

    assert stopped.stopped_at == datetime(2026, 1, 3, 3, 4, 5, tzinfo=timezone.utc)


@pytest.mark.parametrize("reason", ["", "Server.SpotInstanceShutdown", "User initiated (2026-99-99 03:04:05 GMT)"])
def test_an_unreadable_reason_gives_no_time(reason: str) -> None:
    assert instance(State={"Name": "stopped"}, StateTransitionReason=reason).stopped_at is None


def test_a_running_instance_was_not_stopped() -> None:
    assert instance(StateTransitionReason="User initiated (2026-01-03 03:04:05 GMT)").stopped_at is None


def test_a_state_nobody_knows_is_unknown() -> None:
    assert instance(State={"Name": "hibernating"}).state is InstanceState.UNKNOWN
    assert instance(State={}).state is InstanceState.UNKNOWN


def test_an_instance_without_launch_time_has_no_run_epoch() -> None:
    without = {key: value for key, value in described().items() if key != "LaunchTime"}
    found = to_instance(SHARD, without, T4, 0.0)

    assert (found.run_epoch, found.launched_at) == ("", None)


def test_a_restart_changes_the_run_epoch() -> None:
    assert instance().run_epoch != instance(LaunchTime=LAUNCHED.replace(hour=4)).run_epoch


def interface(owner: str, index: int = 0) -> dict[str, Any]:
    return {
        "Association": {"PublicIp": "203.0.113.7", "IpOwnerId": owner},
        "Attachment": {"DeviceIndex": index, "AttachTime": LAUNCHED.replace(year=2025)},
    }


def test_an_elastic_address_outlives_a_stop_and_amazons_own_does_not() -> None:
    amazons, elastic = (
        instance(PublicIpAddress="203.0.113.7", NetworkInterfaces=[interface(owner)])
        for owner in ("amazon", "111122223333")
    )

    assert amazons.public_ip == elastic.public_ip == "203.0.113.7"
    assert not amazons.public_ip_is_kept
    assert elastic.public_ip_is_kept


def test_creation_is_when_the_first_interface_was_attached() -> None:
    assert instance(NetworkInterfaces=[interface("amazon")]).created_at == LAUNCHED.replace(year=2025)
    assert instance(NetworkInterfaces=[interface("amazon", 1)]).created_at is None


def test_tags_are_kept_as_given() -> None:
    found = instance(Tags=[{"Key": "Name", "Value": "a\tb"}, {"Key": "empty"}])

    assert found.tags == {"Name": "a\tb", "empty": ""}
    assert found.name == "a\tb"


def test_windows_is_told_from_linux() -> None:
    assert instance(PlatformDetails="Windows with SQL Server Standard").operating_system == "windows"
    assert instance(PlatformDetails="Red Hat Enterprise Linux").operating_system == "linux"


def test_volumes_are_those_of_the_block_devices() -> None:
    item = described(
        BlockDeviceMappings=[
            {"DeviceName": "/dev/sda1", "Ebs": {"VolumeId": "vol-1", "DeleteOnTermination": True}},
            {"DeviceName": "/dev/sdb", "Ebs": {"VolumeId": "vol-2", "DeleteOnTermination": False}},
            {"DeviceName": "/dev/sdc"},
        ]
    )

    assert list(volume_ids(item)) == ["vol-1", "vol-2"]
    assert volumes_deleted_with(item) == {"vol-1"}


@pytest.mark.parametrize(
    ("tags", "operator", "expected"),
    [
        ({}, None, None),
        ({}, {"Managed": False}, None),
        ({}, {"Managed": True, "Principal": "eks.amazonaws.com"}, ManagedBy(Keeper.KUBERNETES, "eks.amazonaws.com")),
        ({}, {"Managed": True, "Principal": "ecs.amazonaws.com"}, ManagedBy(Keeper.CLOUD_SERVICE, "ecs.amazonaws.com")),
        ({}, {"Managed": True}, ManagedBy(Keeper.CLOUD_SERVICE, "aws")),
        ({"eks:cluster-name": "prod"}, None, ManagedBy(Keeper.KUBERNETES, "prod")),
        ({"kubernetes.io/cluster/": ""}, None, ManagedBy(Keeper.KUBERNETES, "kubernetes.io/cluster/")),
        ({"KubernetesCluster": ""}, None, ManagedBy(Keeper.KUBERNETES, "KubernetesCluster")),
        (
            {"AWSBatchServiceTag": "batch", "aws:autoscaling:groupName": "asg"},
            None,
            ManagedBy(Keeper.CLOUD_SERVICE, "batch"),
        ),
        ({"parallelcluster:cluster-name": "hpc"}, None, ManagedBy(Keeper.CLOUD_SERVICE, "hpc")),
        ({"aws:ec2:fleet-id": "fleet-1"}, None, ManagedBy(Keeper.AUTOSCALING, "fleet-1")),
        ({"costguard:component": "worker", "eks:cluster-name": "prod"}, None, ManagedBy(Keeper.COSTGUARD, "worker")),
        ({"Kubernetes.io/cluster/x": "a tag of one's own"}, None, None),
        ({"Vendor": "Databricks", "ClusterId": "0123"}, None, ManagedBy(Keeper.CLOUD_SERVICE, "Databricks 0123")),
        ({"Vendor": "databricks"}, None, ManagedBy(Keeper.CLOUD_SERVICE, "Databricks")),
        ({"Vendor": "Dell", "ClusterId": "0123"}, None, None),
        ({"anyscale-cloud-id": "cld_1"}, None, ManagedBy(Keeper.CLOUD_SERVICE, "Anyscale cld_1")),
        (
            {"skypilot-cluster-name": "sky-a", "ray-cluster-name": "sky-a"},
            None,
            ManagedBy(Keeper.CONTROLLER, "SkyPilot sky-a"),
        ),
        (
            {"ray-cluster-name": "tune", "ray-node-type": "head"},
            None,
            ManagedBy(Keeper.CONTROLLER, "Ray tune"),
        ),
        ({"ray-project": "one's own"}, None, None),
        ({"spotinst:aws:ec2:group:id": "sig-1"}, None, ManagedBy(Keeper.AUTOSCALING, "Spot.io sig-1")),
        ({"cast:cluster-id": "c-1"}, None, ManagedBy(Keeper.KUBERNETES, "CAST AI c-1")),
        ({"aws:pcs:cluster-id": "pcs_1"}, None, ManagedBy(Keeper.CLOUD_SERVICE, "AWS PCS pcs_1")),
        ({"kops.k8s.io/instancegroup": "nodes"}, None, ManagedBy(Keeper.KUBERNETES, "nodes")),
        (
            {"ghr:Application": "github-action-runner", "aws:ec2:fleet-id": "fleet-1"},
            None,
            ManagedBy(Keeper.CONTROLLER, "GitHub runners github-action-runner"),
        ),
        (
            {"AWSApplicationMigrationServiceManaged": "mgn.amazonaws.com"},
            None,
            ManagedBy(Keeper.CLOUD_SERVICE, "mgn.amazonaws.com"),
        ),
        (
            {"AWSElasticDisasterRecoveryManaged": "drs.amazonaws.com"},
            None,
            ManagedBy(Keeper.CLOUD_SERVICE, "drs.amazonaws.com"),
        ),
        ({"CreatedBy": "EC2 Image Builder"}, None, ManagedBy(Keeper.CLOUD_SERVICE, "EC2 Image Builder")),
        ({"CreatedBy": "terraform"}, None, None),
        ({"res:EnvironmentName": "res-1"}, None, ManagedBy(Keeper.CONTROLLER, "RES res-1")),
        (
            {"determined-resource-pool": "a100", "determined-master-address": "http://10.0.0.1:8080"},
            None,
            ManagedBy(Keeper.CONTROLLER, "Determined a100"),
        ),
        (
            {"DeadlineTrackedAWSResource": "SpotEventPlugin"},
            None,
            ManagedBy(Keeper.CONTROLLER, "Deadline SpotEventPlugin"),
        ),
        ({"owner": "dstack", "dstack_project": "main"}, None, ManagedBy(Keeper.CONTROLLER, "dstack main")),
        (
            {},
            {"Managed": True, "Principal": "sagemaker.amazonaws.com"},
            ManagedBy(Keeper.CLOUD_SERVICE, "sagemaker.amazonaws.com"),
        ),
    ],
)
def test_a_keeper_shows_by_tag_or_operator(
    tags: dict[str, str], operator: dict[str, Any] | None, expected: ManagedBy | None
) -> None:
    assert keeper_of(tags, operator) == expected


# --- types


def gpu(maker: str, **more: Any) -> dict[str, Any]:
    device = {"Name": "X", "Manufacturer": maker, "Count": 1, "MemoryInfo": {"SizeInMiB": 8192}, **more}
    return {"InstanceType": "x", "InstanceStorageSupported": False, "GpuInfo": {"Gpus": [device]}}


@pytest.mark.parametrize(
    ("maker", "kind"),
    [
        ("NVIDIA", AcceleratorKind.NVIDIA_GPU),
        ("AMD", AcceleratorKind.AMD_GPU),
        ("Habana", AcceleratorKind.GAUDI),
        ("Qualcomm", AcceleratorKind.QUALCOMM),
        ("Newcomer", AcceleratorKind.OTHER),
    ],
)
def test_the_maker_tells_the_kind(maker: str, kind: AcceleratorKind) -> None:
    assert facts_of(gpu(maker)) == TypeFacts(Accelerator(kind, "X", 1, 8.0), 0.0)


def test_a_slice_of_a_card_counts_as_its_fraction() -> None:
    found = facts_of(gpu("NVIDIA", Count=0, LogicalGpuCount=1, GpuPartitionSize=0.125)).accelerator

    assert found is not None
    assert found.count == 0.125


def test_a_type_without_devices_has_no_accelerator() -> None:
    assert facts_of({"InstanceType": "m5.large"}).accelerator is None
    assert facts_of({"InstanceType": "m5.large", "GpuInfo": {"Gpus": []}}).accelerator is None


@pytest.mark.parametrize(
    ("storage", "expected"),
    [
        ({}, None),
        ({"InstanceStorageSupported": False}, 0.0),
        ({"InstanceStorageSupported": True}, None),
        ({"InstanceStorageSupported": True, "InstanceStorageInfo": {}}, None),
        ({"InstanceStorageSupported": True, "InstanceStorageInfo": {"TotalSizeInGB": 0}}, None),
        ({"InstanceStorageSupported": True, "InstanceStorageInfo": {"TotalSizeInGB": 900}}, 838.2),
    ],
)
def test_a_local_disk_of_unknown_size_is_not_none_at_all(storage: dict[str, Any], expected: float | None) -> None:
    assert facts_of({"InstanceType": "x", **storage}).local_disk_gib == expected


@pytest.mark.parametrize(
    "name", ["g4dn.xlarge", "p5.48xlarge", "inf2.xlarge", "trn2u.48xlarge", "zz9.large", "p6e-gb200.36xlarge"]
)
def test_accelerated_and_unknown_families_are_asked_about(name: str) -> None:
    assert may_carry_accelerator(name)


@pytest.mark.parametrize("name", ["m5.large", "t3.micro", "c7i-flex.large", "r8g.metal-24xl", "u7in-32tb.224xlarge"])
def test_plain_families_are_not(name: str) -> None:
    assert not may_carry_accelerator(name)


def test_an_undescribed_type_is_unmeasurable_if_its_name_says_accelerator() -> None:
    assert unread_facts("g9x.large") == TypeFacts(Accelerator(AcceleratorKind.OTHER, "", 0), None)
    assert unread_facts("p99e-gb300.36xlarge").accelerator is not None
    assert unread_facts("zz9.large") == TypeFacts(None, None)


# --- reserved instances


def reservation(count: int, instance_type: str = "g4dn.xlarge", **more: Any) -> dict[str, Any]:
    return {
        "InstanceType": instance_type,
        "InstanceCount": count,
        "Scope": "Region",
        "InstanceTenancy": "default",
        "ProductDescription": "Linux/UNIX",
        **more,
    }


def fleet(*sizes: str) -> list[Instance]:
    """Instances i-0, i-1, … each started an hour after the one before."""
    return [
        instance(f"i-{index}", InstanceType=size, LaunchTime=LAUNCHED.replace(hour=index))
        for index, size in enumerate(sizes)
    ]


def test_the_longest_running_are_covered_and_no_more_than_were_bought() -> None:
    machines = fleet("g4dn.xlarge", "g4dn.xlarge", "g4dn.xlarge")

    assert covered_by([reservation(2)], machines) == {"i-0", "i-1"}
    assert covered_by([reservation(0)], machines) == frozenset()
    assert covered_by([reservation(9)], machines) == {"i-0", "i-1", "i-2"}


def test_a_zonal_reservation_covers_its_zone_only() -> None:
    zonal = reservation(1, Scope="Availability Zone", AvailabilityZone="us-east-1b")

    assert covered_by([zonal], fleet("g4dn.xlarge")) == frozenset()
    assert covered_by([{**zonal, "AvailabilityZone": "us-east-1a"}], fleet("g4dn.xlarge")) == {"i-0"}


def test_platform_and_tenancy_must_match() -> None:
    windows, dedicated = reservation(1, ProductDescription="Windows"), reservation(1, InstanceTenancy="dedicated")

    assert covered_by([windows, dedicated], fleet("g4dn.xlarge")) == frozenset()


def test_what_a_regional_reservation_has_left_spreads_over_its_family() -> None:
    """Two of 4xlarge are eight of xlarge; one covered in part counts as covered."""
    assert covered_by([reservation(1, "g4dn.2xlarge")], fleet("g4dn.xlarge", "g4dn.xlarge", "g4dn.xlarge")) == {
        "i-0",
        "i-1",
    }
    assert covered_by([reservation(1, "g4dn.xlarge")], fleet("g4dn.metal", "g5.xlarge")) == {"i-0"}


def test_stopped_and_spot_instances_use_up_no_reservation() -> None:
    stopped = instance("i-0", State={"Name": "stopped"})
    spot = instance("i-1", InstanceLifecycle="spot")
    running = instance("i-2", LaunchTime=LAUNCHED.replace(hour=9))

    assert covered_by([reservation(1)], [stopped, spot, running]) == {"i-2"}


@pytest.mark.parametrize(
    "more",
    [
        {"Tags": None},
        {"Tags": 0},
        {"Tags": {}},
        {"Tags": [{"Value": "x"}]},
        {"Tags": [{"Key": "keep", "Value": None}]},
        {"Tags": [{"Key": "keep", "Value": ""}, {"Key": "keep", "Value": "no"}]},
        {"InstanceLifecycle": None},
        {"InstanceLifecycle": False},
        {"CapacityReservationId": 0},
        {"Placement": []},
        {"Placement": {"Tenancy": None}},
        {"State": None},
        {"State": {"Name": 16}},
        {"LaunchTime": LAUNCHED.replace(tzinfo=None)},
        {"LaunchTime": "2026-01-02T03:04:05Z"},
        {"Operator": {"Managed": "true"}},
        {"RootDeviceType": False},
        {"InstanceId": ""},
    ],
)
def test_a_field_of_another_type_is_never_read_as_none(more: dict[str, Any]) -> None:
    """Each of these would have lost what protects the machine, or have broken the run."""
    with pytest.raises((TypeError, ValueError)):
        instance(**more)


@pytest.mark.parametrize("count", [-1, True, "1", float("nan"), 10**400, None])
def test_a_count_of_cards_that_is_none_is_refused(count: object) -> None:
    with pytest.raises((TypeError, ValueError)):
        facts_of({"InstanceType": "x", "GpuInfo": {"Gpus": [{"Manufacturer": "NVIDIA", "Count": count}]}})


@pytest.mark.parametrize("size", [-5, "0", float("nan"), False, 1e-300])
def test_a_size_of_local_disks_that_is_none_is_not_no_disk(size: object) -> None:
    with pytest.raises((TypeError, ValueError)):
        facts_of({"InstanceStorageInfo": {"TotalSizeInGB": size}})


def test_a_reservation_that_does_not_say_how_many_covers_nobody_in_silence_no_more() -> None:
    reservation = {"InstanceType": "g4dn.xlarge", "Scope": "Region", "ProductDescription": "Linux/UNIX"}
    with pytest.raises(ValueError, match="InstanceCount"):
        covered_by([reservation], [instance()])
