"""What a plain boto3 client sees of the sandbox: EC2, CloudWatch and prices as AWS documents them, on a moved clock."""

from __future__ import annotations

import gc
import json
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from functools import partial
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from typing_extensions import Self

from cloudstand.aws.compute.catalogue import TYPES
from cloudstand.aws.core.server import Refused
from cloudstand.aws.emulator import EmbeddedAws
from cloudstand.clock import MovedClock
from cloudstand.demo.fleet import aws_fleet
from cloudstand.errors import MisuseError
from cloudstand.fleets import EAST, PRODUCT, RESEARCH, WEST, aws_machine
from cloudstand.wire.door import WorldDoor
from cloudstand.world import workload as does
from cloudstand.world.cloud import World
from cloudstand.world.fleet import Disk, MachineSpec
from cloudstand.world.kinds import Billing, InstanceState

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=timezone.utc)
_SESSION = boto3.session.Session()  # one, so that the API models are read once
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


class Aws:
    """A small AWS, its clock, its truth, and clients for it."""

    def __init__(self, *fleet: MachineSpec) -> None:
        self.clock = MovedClock(NOW)
        self.world = World(fleet, NOW)
        self._open = ExitStack()
        door = WorldDoor(self.world, self.clock)
        self.embedded = self._open.enter_context(EmbeddedAws(self.world, door, "sesame", "ap-east-1"))
        self.ids = [spec.native_id for spec in fleet]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def client(self, service: str, region: str = EAST, keys: dict[str, str] | None = None) -> Any:
        ours = self.embedded.credentials
        own = {"aws_access_key_id": ours.access_key_id, "aws_secret_access_key": ours.secret_access_key}
        connect: Any = _SESSION.client  # the service is a variable, so no stub fits
        made = connect(service, region_name=region, endpoint_url=self.embedded.url, **(keys or own))
        return self._open.enter_context(closing(made))

    def member(self, service: str, region: str = EAST) -> Any:
        answer = self.client("sts").assume_role(
            RoleArn=f"arn:aws:iam::{PRODUCT}:role/costguard", RoleSessionName="costguard", ExternalId="sesame"
        )["Credentials"]
        keys = {
            "aws_access_key_id": answer["AccessKeyId"],
            "aws_secret_access_key": answer["SecretAccessKey"],
            "aws_session_token": answer["SessionToken"],
        }
        return self.client(service, region, keys)

    def seen(self, index: int = 0) -> dict[str, Any]:
        answer = self.client("ec2").describe_instances(InstanceIds=[self.ids[index]])
        found: dict[str, Any] = answer["Reservations"][0]["Instances"][0]
        return found

    def code_of(self, call: Callable[[], Any]) -> str:
        with pytest.raises(ClientError) as refused:
            call()
        return str(refused.value.response["Error"]["Code"])


def machine(name: str = "box", kind: str = "g5.xlarge", **more: Any) -> MachineSpec:
    return aws_machine(name, kind, more.pop("workload", does.idle()), more.pop("since", NOW - 9 * DAY), **more)


@pytest.fixture
def aws() -> Iterator[Aws]:
    disks = (Disk(100), Disk(500, device="/dev/sdf", deleted_with_instance=False))
    with Aws(machine(disks=disks, kept_address=True, tags={"team": "research"})) as running:
        yield running


@pytest.fixture
def demo() -> Iterator[Aws]:
    with Aws(*aws_fleet(NOW)) as running:
        yield running


def test_the_demo_starts_quickly() -> None:
    begun = time.perf_counter()
    with Aws(*aws_fleet(NOW)):
        assert time.perf_counter() - begun < 3


def test_two_accounts_are_one_organisation_and_truly_apart(demo: Aws) -> None:
    accounts = demo.client("organizations").list_accounts()["Accounts"]
    assert [(account["Id"], account["Status"]) for account in accounts] == [(RESEARCH, "ACTIVE"), (PRODUCT, "ACTIVE")]
    assert demo.client("sts").get_caller_identity()["Account"] == RESEARCH
    assert demo.member("sts").get_caller_identity()["Account"] == PRODUCT
    counts = {}
    for account, connect in ((RESEARCH, demo.client), (PRODUCT, demo.member)):
        for region in (EAST, WEST):
            reservations = connect("ec2", region).describe_instances()["Reservations"]
            counts[account, region] = sum(len(reservation["Instances"]) for reservation in reservations)
    assert counts == {(RESEARCH, EAST): 5, (RESEARCH, WEST): 3, (PRODUCT, EAST): 9, (PRODUCT, WEST): 4}


def test_a_role_needs_its_external_id_and_its_account(demo: Aws) -> None:
    sts = demo.client("sts")
    ours, foreign = (f"arn:aws:iam::{account}:role/costguard" for account in (PRODUCT, "999900001111"))
    wrong: tuple[dict[str, str], ...] = (
        {"RoleArn": ours},
        {"RoleArn": ours, "ExternalId": "wrong"},
        {"RoleArn": foreign, "ExternalId": "sesame"},
    )
    for asked in wrong:
        assert demo.code_of(partial(sts.assume_role, RoleSessionName="x1", **asked)) == "AccessDenied"


def test_any_other_keys_are_the_management_account(demo: Aws) -> None:
    keys = {"aws_access_key_id": "AKIAIOSFODNN7EXAMPLE", "aws_secret_access_key": "anything"}
    assert demo.client("sts", keys=keys).get_caller_identity()["Account"] == RESEARCH


def test_regions_not_opted_in_are_named_only_when_asked_for(demo: Aws) -> None:
    ec2 = demo.client("ec2")
    assert [region["RegionName"] for region in ec2.describe_regions()["Regions"]] == [WEST, EAST]
    everything = ec2.describe_regions(AllRegions=True)["Regions"]
    assert everything[-1]["RegionName"] == "ap-east-1"
    assert everything[-1]["OptInStatus"] == "not-opted-in"
    opted = [{"Name": "opt-in-status", "Values": ["opt-in-not-required", "opted-in"]}]
    assert len(ec2.describe_regions(AllRegions=True, Filters=opted)["Regions"]) == 2


def test_moto_shows_every_machine_as_the_world_has_it(demo: Aws) -> None:
    shown: dict[str, Any] = {}
    for connect in (demo.client, demo.member):
        for region in (EAST, WEST):
            for reservation in connect("ec2", region).describe_instances()["Reservations"]:
                shown.update((instance["InstanceId"], instance) for instance in reservation["Instances"])
    assert shown.keys() == demo.world.machines.keys()
    for native_id, instance in shown.items():
        truth = demo.world.machines[native_id]
        tags = {tag["Key"]: tag["Value"] for tag in instance["Tags"]}
        assert instance["InstanceType"] == truth.spec.instance_type
        assert instance["LaunchTime"] == truth.launched_at
        assert instance["State"]["Name"] == truth.state.value
        assert tags == truth.tags
        assert instance.get("InstanceLifecycle") == ("spot" if truth.spec.billing is Billing.SPOT else None)
        assert ("CapacityReservationId" in instance) == (truth.spec.billing is Billing.RESERVED)
        attached = {mapping["Ebs"]["VolumeId"] for mapping in instance["BlockDeviceMappings"]}
        assert attached == {volume.native_id for volume in demo.world.volumes_of(native_id)}


def test_stop_snapshot_terminate_as_a_client_lives_it(aws: Aws) -> None:
    ec2, native_id = aws.client("ec2"), aws.ids[0]
    (change,) = ec2.stop_instances(InstanceIds=[native_id])["StoppingInstances"]
    assert (change["PreviousState"]["Name"], change["CurrentState"]["Name"]) == ("running", "stopping")
    assert aws.seen()["State"] == {"Code": 64, "Name": "stopping"}
    aws.clock.advance(2 * MINUTE)
    stopped = aws.seen()
    assert stopped["State"] == {"Code": 80, "Name": "stopped"}
    assert stopped["StateTransitionReason"] == "User initiated (2026-03-02 09:00:00 GMT)"
    assert stopped["StateReason"]["Code"] == "Client.UserInitiatedShutdown"

    volumes = [mapping["Ebs"]["VolumeId"] for mapping in stopped["BlockDeviceMappings"]]
    for volume in volumes:
        tags = [{"ResourceType": "snapshot", "Tags": [{"Key": "decision", "Value": "d-1"}]}]
        made = ec2.create_snapshot(VolumeId=volume, TagSpecifications=tags, Description="before the end")
        assert (made["State"], made["StartTime"]) == ("pending", aws.clock.now())
    aws.clock.advance(15 * MINUTE)
    of_root = [{"Name": "volume-id", "Values": volumes[:1]}]
    (small,) = ec2.describe_snapshots(OwnerIds=["self"], Filters=of_root)["Snapshots"]
    assert (small["State"], small["Progress"], small["Tags"]) == (
        "completed",
        "100%",
        [{"Key": "decision", "Value": "d-1"}],
    )
    states = {snapshot["VolumeId"]: snapshot["State"] for snapshot in ec2.describe_snapshots()["Snapshots"]}
    assert states == {volumes[0]: "completed", volumes[1]: "pending"}

    aws.clock.advance(HOUR)
    ec2.terminate_instances(InstanceIds=[native_id])
    assert aws.seen()["State"]["Name"] == "shutting-down"
    aws.clock.advance(2 * MINUTE)
    assert aws.seen()["State"]["Name"] == "terminated"
    (left,) = ec2.describe_volumes()["Volumes"]
    assert (left["VolumeId"], left["State"], left["Attachments"]) == (volumes[1], "available", [])
    (address,) = ec2.describe_addresses()["Addresses"]
    assert not address.get("InstanceId")
    assert {snapshot["State"] for snapshot in ec2.describe_snapshots()["Snapshots"]} == {"completed"}

    aws.clock.advance(2 * HOUR)
    assert ec2.describe_instances()["Reservations"] == []
    assert aws.code_of(lambda: ec2.describe_instances(InstanceIds=[native_id])).startswith("InvalidInstanceID")
    acted = [event.what for event in aws.world.history if event.by == "api"]
    assert acted == ["stop", "create_snapshot", "create_snapshot", "terminate"]


def test_a_disk_that_is_attached_or_detached_later_is_shown_so(aws: Aws) -> None:
    ec2, machine = aws.client("ec2"), aws.ids[0]
    of_it = [{"Name": "attachment.instance-id", "Values": [machine]}]

    def shown() -> tuple[set[str], set[str]]:
        listed = {each["VolumeId"] for each in ec2.describe_volumes(Filters=of_it)["Volumes"]}
        (instance,) = ec2.describe_instances(InstanceIds=[machine])["Reservations"][0]["Instances"]
        return listed, {each["Ebs"]["VolumeId"] for each in instance["BlockDeviceMappings"]}

    first, _ = shown()
    late = aws.world.attach(machine, Disk(50, device="/dev/sdz"), "owner")
    assert shown() == ({*first, late}, {*first, late})
    aws.world.detach(late, "owner")
    assert shown() == (first, first)


def test_a_start_has_a_new_launch_time_and_no_reason(aws: Aws) -> None:
    ec2 = aws.client("ec2")
    before = aws.seen()["LaunchTime"]
    ec2.stop_instances(InstanceIds=aws.ids)
    aws.clock.advance(5 * MINUTE)
    ec2.start_instances(InstanceIds=aws.ids)
    aws.clock.advance(MINUTE)
    started = aws.seen()
    assert (before, started["LaunchTime"]) == (NOW - 9 * DAY, NOW + 5 * MINUTE)
    assert (started["State"]["Name"], started["StateTransitionReason"]) == ("running", "")


def test_what_owners_do_to_the_world_is_seen_at_once(aws: Aws) -> None:
    native_id = aws.ids[0]
    aws.world.tag(native_id, "keep", "yes", "owner")
    aws.world.protect(native_id, "termination_protection", "owner")
    aws.world.stop(native_id, "owner")
    assert {tag["Key"] for tag in aws.seen()["Tags"]} == {"Name", "team", "keep"}
    ec2 = aws.client("ec2")
    attribute = ec2.describe_instance_attribute(InstanceId=native_id, Attribute="disableApiTermination")
    assert attribute["DisableApiTermination"] == {"Value": True}
    assert aws.seen()["State"]["Name"] == "stopping"


def test_what_clients_do_is_heard_by_the_world(aws: Aws) -> None:
    ec2, native_id = aws.client("ec2"), aws.ids[0]
    ec2.create_tags(Resources=[native_id], Tags=[{"Key": "keep", "Value": "yes"}])
    ec2.delete_tags(Resources=[native_id], Tags=[{"Key": "team"}])
    ec2.modify_instance_attribute(InstanceId=native_id, DisableApiTermination={"Value": True})
    truth = aws.world.machines[native_id]
    assert (truth.tags, truth.protections) == ({"Name": "box", "keep": "yes"}, {"termination_protection"})
    assert aws.code_of(lambda: ec2.terminate_instances(InstanceIds=[native_id])) == "OperationNotPermitted"
    ec2.modify_instance_attribute(InstanceId=native_id, DisableApiTermination={"Value": False})
    assert truth.protections == set()


def test_refusals_carry_the_codes_of_ec2() -> None:
    spot = machine("spot", billing=Billing.SPOT, one_time_spot=True)
    ended = machine("ended")
    scarce = machine("scarce", no_capacity=True)
    with Aws(spot, ended, scarce) as aws:
        ec2 = aws.client("ec2")
        ec2.terminate_instances(InstanceIds=[ended.native_id])
        ec2.stop_instances(InstanceIds=[scarce.native_id])
        stopping = aws.code_of(lambda: ec2.start_instances(InstanceIds=[scarce.native_id]))
        aws.clock.advance(2 * MINUTE)
        assert stopping == "IncorrectInstanceState"
        assert aws.code_of(lambda: ec2.stop_instances(InstanceIds=[spot.native_id])) == "UnsupportedOperation"
        assert aws.code_of(lambda: ec2.stop_instances(InstanceIds=[ended.native_id])) == "IncorrectInstanceState"
        assert aws.code_of(lambda: ec2.start_instances(InstanceIds=[ended.native_id])) == "IncorrectInstanceState"
        assert (
            aws.code_of(lambda: ec2.start_instances(InstanceIds=[scarce.native_id])) == "InsufficientInstanceCapacity"
        )
        assert aws.code_of(lambda: ec2.stop_instances(InstanceIds=["i-0"])) == "InvalidInstanceID.NotFound"
        assert aws.code_of(lambda: ec2.create_snapshot(VolumeId="vol-0")) == "InvalidVolume.NotFound"
        assert aws.code_of(lambda: ec2.create_tags(Resources=["i-0"], Tags=[{"Key": "a", "Value": "b"}])) == "InvalidID"
        dry = aws.code_of(lambda: ec2.stop_instances(InstanceIds=[spot.native_id], DryRun=True))
        assert dry == "DryRunOperation"
        both = [scarce.native_id, spot.native_id]
        ec2_before = len(aws.world.history)
        assert aws.code_of(lambda: ec2.stop_instances(InstanceIds=both)) == "UnsupportedOperation"
        assert len(aws.world.history) == ec2_before, "a batch is refused whole"


def test_ending_twice_succeeds_twice_and_happens_once(aws: Aws) -> None:
    ec2 = aws.client("ec2")
    for _ in range(2):
        ec2.terminate_instances(InstanceIds=aws.ids)
    assert [event.what for event in aws.world.history] == ["terminate"]


def test_another_accounts_machine_does_not_exist_for_us(demo: Aws) -> None:
    theirs = next(spec.native_id for spec in demo.world.fleet if (spec.account, spec.region) == (PRODUCT, EAST))
    ec2 = demo.client("ec2")
    assert demo.code_of(lambda: ec2.stop_instances(InstanceIds=[theirs])) == "InvalidInstanceID.NotFound"


def test_what_the_world_does_not_model_is_refused(aws: Aws) -> None:
    ec2 = aws.client("ec2")
    launch = partial(ec2.run_instances, ImageId="ami-1", MinCount=1, MaxCount=1)
    assert aws.code_of(launch) == "UnsupportedOperation"
    assert aws.code_of(lambda: ec2.delete_volume(VolumeId="vol-1")) == "UnsupportedOperation"


def test_several_snapshots_leave_out_what_is_asked(aws: Aws) -> None:
    ec2 = aws.client("ec2")
    data = aws.world.volumes_of(aws.ids[0])[1].native_id
    asked = {"InstanceId": aws.ids[0], "ExcludeDataVolumeIds": [data]}
    (made,) = ec2.create_snapshots(InstanceSpecification=asked)["Snapshots"]
    assert (made["State"], made["VolumeSize"]) == ("pending", 100)


def test_several_snapshots_are_answered_as_the_service_model_has_them(aws: Aws) -> None:
    """Every volume of the machine, begun at one moment, with the tags asked for beside those of its volume."""
    ec2 = aws.client("ec2")
    root, data = (volume.native_id for volume in aws.world.volumes_of(aws.ids[0]))
    ec2.create_tags(Resources=[data], Tags=[{"Key": "of", "Value": "the volume"}])
    answer = ec2.create_snapshots(
        InstanceSpecification={"InstanceId": aws.ids[0]},
        Description="made together",
        CopyTagsFromSource="volume",
        TagSpecifications=[{"ResourceType": "snapshot", "Tags": [{"Key": "a", "Value": "b"}]}],
    )
    made = {one["VolumeId"]: one for one in answer["Snapshots"]}
    shape = ec2.meta.service_model.operation_model("CreateSnapshots").output_shape.members["Snapshots"].member
    told = {"SnapshotId", "VolumeId", "State", "VolumeSize", "StartTime", "Progress", "OwnerId", "Encrypted", "Tags"}
    assert set(made) == {root, data}
    assert told <= shape.members.keys()
    assert all(told | {"Description"} == one.keys() for one in made.values())
    assert {(one["State"], one["StartTime"], one["Description"]) for one in made.values()} == {
        ("pending", made[root]["StartTime"], "made together")
    }
    tags = {volume: {tag["Key"]: tag["Value"] for tag in one["Tags"]} for volume, one in made.items()}
    assert tags == {root: {"a": "b"}, data: {"a": "b", "of": "the volume"}}


def test_several_snapshots_leave_out_the_first_disk_where_that_is_asked(aws: Aws) -> None:
    data = aws.world.volumes_of(aws.ids[0])[1].native_id
    asked = {"InstanceId": aws.ids[0], "ExcludeBootVolume": True}
    (made,) = aws.client("ec2").create_snapshots(InstanceSpecification=asked)["Snapshots"]
    assert made["VolumeId"] == data


def test_several_snapshots_fail_together(aws: Aws) -> None:
    ec2 = aws.client("ec2")
    aws.world.snapshots_fail(aws.world.volumes_of(aws.ids[0])[1].native_id)
    made = ec2.create_snapshots(InstanceSpecification={"InstanceId": aws.ids[0]})["Snapshots"]
    aws.clock.advance(DAY)
    ids = [one["SnapshotId"] for one in made]
    assert {one["State"] for one in ec2.describe_snapshots(SnapshotIds=ids)["Snapshots"]} == {"error"}


def test_spot_requests_and_reservations_are_described(demo: Aws) -> None:
    ec2 = demo.member("ec2")
    (request,) = ec2.describe_spot_instance_requests()["SpotInstanceRequests"]
    assert (request["Type"], request["State"]) == ("one-time", "active")
    (instance,) = (
        instance
        for reservation in ec2.describe_instances()["Reservations"]
        for instance in reservation["Instances"]
        if instance.get("InstanceLifecycle") == "spot"
    )
    assert instance["SpotInstanceRequestId"] == request["SpotInstanceRequestId"]
    assert ec2.describe_reserved_instances()["ReservedInstances"] == []
    (price, *_) = ec2.describe_spot_price_history(InstanceTypes=["g4dn.12xlarge"])["SpotPriceHistory"]
    assert Decimal(price["SpotPrice"]) == Decimal("1.5648")


def test_prepaid_machines_have_reserved_instances() -> None:
    prepaid = [machine(name, billing=Billing.PREPAID) for name in ("a", "b")]
    with Aws(*prepaid) as aws:
        (reserved,) = aws.client("ec2").describe_reserved_instances()["ReservedInstances"]
    assert (reserved["InstanceType"], reserved["InstanceCount"], reserved["State"]) == ("g5.xlarge", 2, "active")


def test_a_lent_address_goes_with_a_stop_and_an_own_one_stays() -> None:
    lent, own = machine("lent"), machine("own", kept_address=True)
    with Aws(lent, own) as aws:
        owners = [aws.seen(index)["NetworkInterfaces"][0]["Association"]["IpOwnerId"] for index in (0, 1)]
        assert owners == ["amazon", RESEARCH]
        address = aws.seen(1)["PublicIpAddress"]
        aws.client("ec2").stop_instances(InstanceIds=aws.ids)
        aws.clock.advance(2 * MINUTE)
        assert "PublicIpAddress" not in aws.seen(0)
        assert aws.seen(1)["PublicIpAddress"] == address
        (kept,) = aws.client("ec2").describe_addresses()["Addresses"]
        assert (kept["PublicIp"], kept["InstanceId"]) == (address, own.native_id)


def test_the_catalogue_agrees_with_describe_instance_types(aws: Aws) -> None:
    answer = aws.client("ec2").describe_instance_types(InstanceTypes=list(TYPES))["InstanceTypes"]
    for entry in answer:
        facts = TYPES[entry["InstanceType"]]
        devices = entry["GpuInfo"]["Gpus"] if "GpuInfo" in entry else entry["NeuronInfo"]["NeuronDevices"]
        assert [(one["Name"], one["Count"], one["MemoryInfo"]["SizeInMiB"]) for one in devices] == [
            (facts.model, facts.count, facts.memory_mib)
        ]
        assert entry.get("InstanceStorageInfo", {}).get("TotalSizeInGB", 0) == facts.local_disk_gb


def test_named_instance_types_are_quick(demo: Aws) -> None:
    ec2 = demo.client("ec2")
    names = ["g5.xlarge", "p4d.24xlarge", "trn1.2xlarge"]
    begun = time.perf_counter()
    answer = ec2.describe_instance_types(InstanceTypes=names)["InstanceTypes"]
    assert time.perf_counter() - begun < 0.5
    assert {entry["InstanceType"]: entry["InstanceStorageSupported"] for entry in answer} == dict.fromkeys(names, True)
    assert demo.code_of(lambda: ec2.describe_instance_types(InstanceTypes=["g5.none"])) == "InvalidInstanceType"


def gpu_metrics(aws: Aws, native_id: str, name: str = "nvidia_smi_utilization_gpu") -> list[dict[str, Any]]:
    cloudwatch = aws.client("cloudwatch")
    answer = cloudwatch.list_metrics(
        Namespace="CWAgent", MetricName=name, Dimensions=[{"Name": "InstanceId", "Value": native_id}]
    )
    found: list[dict[str, Any]] = answer["Metrics"]
    return found


def read(aws: Aws, metrics: list[dict[str, Any]], stats: tuple[str, ...], **more: Any) -> dict[str, list[float]]:
    period = more.pop("Period", 3600)
    queries = [
        {"Id": f"q{index}_{stat}", "MetricStat": {"Metric": metric, "Period": period, "Stat": stat}}
        for index, metric in enumerate(metrics)
        for stat in stats
    ]
    asked = {"StartTime": NOW - DAY, "EndTime": NOW, "ScanBy": "TimestampAscending", **more}
    results = aws.client("cloudwatch").get_metric_data(MetricDataQueries=queries, **asked)["MetricDataResults"]
    return {result["Id"]: result["Values"] for result in results}


def test_one_series_a_gpu_is_listed_with_the_agents_dimensions() -> None:
    spec = machine(kind="g4dn.12xlarge", workload=does.partly_idle(2))
    with Aws(spec) as aws:
        metrics = gpu_metrics(aws, spec.native_id)
        assert {pair["Name"] for pair in metrics[0]["Dimensions"]} == {
            "InstanceId",
            "InstanceType",
            "ImageId",
            "index",
            "name",
            "arch",
            "host",
        }
        values = read(aws, metrics, ("Maximum", "SampleCount"))
    assert [max(values[f"q{card}_Maximum"]) > 70 for card in range(4)] == [True, True, False, True]
    assert all(values[f"q{card}_SampleCount"] == [60.0] * 24 for card in range(4))


def test_dimensions_match_as_an_exact_set_in_any_order() -> None:
    spec = machine()
    with Aws(spec) as aws:
        (metric,) = gpu_metrics(aws, spec.native_id)
        turned = {**metric, "Dimensions": metric["Dimensions"][::-1]}
        only_id = {**metric, "Dimensions": [pair for pair in metric["Dimensions"] if pair["Name"] == "InstanceId"]}
        values = read(aws, [turned, only_id], ("SampleCount",))
    assert values == {"q0_SampleCount": [60.0] * 24, "q1_SampleCount": []}


def test_minutes_and_hours_tell_the_same(aws: Aws) -> None:
    metrics = gpu_metrics(aws, aws.ids[0], "nvidia_smi_power_draw")
    hours = read(aws, metrics, ("Maximum", "Average", "Minimum", "Sum"))
    minutes = read(aws, metrics, ("Maximum",), Period=60)["q0_Maximum"]
    by_hour = [minutes[first : first + 60] for first in range(0, len(minutes), 60)]
    assert hours["q0_Maximum"] == pytest.approx([max(hour) for hour in by_hour])
    assert hours["q0_Minimum"] == pytest.approx([min(hour) for hour in by_hour])
    assert hours["q0_Average"] == pytest.approx([sum(hour) / 60 for hour in by_hour])
    assert hours["q0_Sum"] == pytest.approx([sum(hour) for hour in by_hour])


def test_ec2s_own_metrics_come_every_five_minutes_in_bytes() -> None:
    spec = machine(workload=does.busy())
    with Aws(spec) as aws:
        of_machine = [{"Name": "InstanceId", "Value": spec.native_id}]
        names = ("CPUUtilization", "NetworkIn", "NetworkOut")
        metrics = [{"Namespace": "AWS/EC2", "MetricName": name, "Dimensions": of_machine} for name in names]
        values = read(aws, metrics, ("Maximum", "SampleCount"))
        fine = read(aws, metrics[:1], ("Maximum",), Period=60)["q0_Maximum"]
    assert values["q0_SampleCount"] == [12.0] * 24
    assert 40 < max(values["q0_Maximum"]) <= 55
    both = max(values["q1_Maximum"]) + max(values["q2_Maximum"])
    assert both / 300 == pytest.approx(does.BUSY.network_bytes_per_second, rel=0.1)
    assert len(fine) == 24 * 12, "asking for minutes gives the stored points only"


def test_metrics_follow_the_moved_clock_and_end_with_the_run(aws: Aws) -> None:
    metrics = gpu_metrics(aws, aws.ids[0])
    later = {"StartTime": NOW, "EndTime": NOW + 4 * HOUR}
    assert read(aws, metrics, ("SampleCount",), **later) == {"q0_SampleCount": []}
    aws.clock.advance(90 * MINUTE)
    assert read(aws, metrics, ("SampleCount",), **later) == {"q0_SampleCount": [60.0, 30.0]}
    aws.client("ec2").stop_instances(InstanceIds=aws.ids)
    aws.clock.advance(3 * HOUR)
    assert read(aws, metrics, ("SampleCount",), **later) == {"q0_SampleCount": [60.0, 30.0]}
    cloudwatch = aws.client("cloudwatch")
    assert cloudwatch.list_metrics(Namespace="CWAgent", RecentlyActive="PT3H")["Metrics"] == []
    assert len(cloudwatch.list_metrics(Namespace="CWAgent")["Metrics"]) == 2
    aws.clock.advance(15 * DAY)
    assert cloudwatch.list_metrics(Namespace="CWAgent")["Metrics"] == []


def test_machines_without_device_metrics_are_not_listed() -> None:
    quiet = (machine("none", workload=does.no_data()), machine("neuron", "trn1.2xlarge"))
    with Aws(*quiet) as aws:
        listed = aws.client("cloudwatch").list_metrics()["Metrics"]
    assert {metric["Namespace"] for metric in listed} == {"AWS/EC2"}
    assert len(listed) == 6


def test_get_metric_data_has_the_limits_of_cloudwatch(aws: Aws) -> None:
    (metric,) = gpu_metrics(aws, aws.ids[0])
    query = {"MetricStat": {"Metric": metric, "Period": 60, "Stat": "Maximum"}}
    cloudwatch = aws.client("cloudwatch")
    window = {"StartTime": NOW - DAY, "EndTime": NOW}
    many = [{"Id": f"q{index}", **query} for index in range(501)]
    assert aws.code_of(lambda: cloudwatch.get_metric_data(MetricDataQueries=many, **window)) == "ValidationError"
    first = cloudwatch.get_metric_data(MetricDataQueries=many[:3], MaxDatapoints=3000, **window)
    second = cloudwatch.get_metric_data(MetricDataQueries=many[:3], NextToken=first["NextToken"], **window)
    assert [result["Id"] for result in first["MetricDataResults"]] == ["q0", "q1"]
    assert [result["Id"] for result in second["MetricDataResults"]] == ["q2"]
    assert "NextToken" not in second
    newest_first = first["MetricDataResults"][0]["Timestamps"]
    assert newest_first == sorted(newest_first, reverse=True)
    expression = [{"Id": "e1", "Expression": "SELECT MAX(x) FROM y", "Period": 60}]
    assert aws.code_of(lambda: cloudwatch.get_metric_data(MetricDataQueries=expression, **window)) == "ValidationError"
    odd = [{"Id": "q0", "MetricStat": {"Metric": metric, "Period": 60, "Stat": "p99"}}]
    assert aws.code_of(lambda: cloudwatch.get_metric_data(MetricDataQueries=odd, **window)) == "ValidationError"


def test_statistics_agree_with_metric_data(aws: Aws) -> None:
    (metric,) = gpu_metrics(aws, aws.ids[0], "nvidia_smi_power_draw")
    answer = aws.client("cloudwatch").get_metric_statistics(
        **metric, Period=3600, Statistics=["Maximum", "SampleCount"], StartTime=NOW - DAY, EndTime=NOW
    )
    points = sorted(answer["Datapoints"], key=lambda point: point["Timestamp"])
    assert [point["Maximum"] for point in points] == pytest.approx(read(aws, [metric], ("Maximum",))["q0_Maximum"])
    assert {point["SampleCount"] for point in points} == {60.0}


def test_list_metrics_comes_in_pages_of_500() -> None:
    with Aws(*(machine(f"box-{index}", "p4d.24xlarge") for index in range(40))) as aws:
        cloudwatch = aws.client("cloudwatch")
        pages = [page["Metrics"] for page in cloudwatch.get_paginator("list_metrics").paginate(Namespace="CWAgent")]
    assert [len(page) for page in pages] == [500, 140]


def test_the_price_list_quotes_every_type_disk_snapshot_and_address(demo: Aws) -> None:
    pricing = demo.client("pricing")

    def quoted(service: str, **fields: str) -> list[Decimal]:
        filters = [{"Type": "TERM_MATCH", "Field": name, "Value": value} for name, value in fields.items()]
        pages = pricing.get_paginator("get_products").paginate(ServiceCode=service, Filters=filters)
        products = [json.loads(text) for page in pages for text in page["PriceList"]]
        terms = [term for product in products for term in product["terms"]["OnDemand"].values()]
        return [Decimal(rate["pricePerUnit"]["USD"]) for term in terms for rate in term["priceDimensions"].values()]

    for spec in demo.world.fleet:
        assert spec.hourly is not None
        found = quoted(
            "AmazonEC2",
            instanceType=spec.instance_type,
            regionCode=spec.region,
            operatingSystem="Linux",
            tenancy="Shared",
            capacitystatus="Used",
            preInstalledSw="NA",
        )
        assert found == [spec.hourly.amount]
    assert quoted("AmazonEC2", volumeApiName="gp3", regionCode=EAST) == [Decimal("0.08")]
    assert quoted("AmazonEC2", productFamily="Storage Snapshot", regionCode=EAST) == [Decimal("0.05")]
    assert quoted("AmazonVPC", regionCode=WEST, group="VPCPublicIPv4Address") == [Decimal("0.005")] * 2
    assert quoted("AmazonEC2", instanceType="g5.none") == []
    assert len(quoted("AmazonEC2")) == len(quoted("AmazonEC2", regionCode=EAST)) * 2


def test_a_test_can_have_calls_refused(demo: Aws) -> None:
    gateway = demo.embedded.gateway
    denied = Refused("ec2", "DescribeInstances", "UnauthorizedOperation", "You are not authorized.", region=WEST)
    gateway.refused.append(denied)
    try:
        west = demo.client("ec2", WEST)
        assert demo.code_of(west.describe_instances) == "UnauthorizedOperation"
        assert demo.client("ec2", EAST).describe_instances()["Reservations"]
    finally:
        gateway.refused.remove(denied)
    assert ("ec2", "DescribeInstances", RESEARCH, WEST) in {
        (call.service, call.action, call.account, call.region) for call in gateway.calls
    }


def test_dynamodb_serves_many_threads(demo: Aws) -> None:
    table = demo.client("dynamodb")
    table.create_table(
        TableName="ledger",
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: table.put_item(TableName="ledger", Item={"id": {"S": str(number)}}), range(60)))
    assert table.scan(TableName="ledger")["Count"] == 60


def test_a_machine_may_begin_stopped() -> None:
    spec = replace(machine(), state=InstanceState.STOPPED, stopped_since=NOW - 4 * HOUR)
    with Aws(spec) as aws:
        seen = aws.seen()
    assert seen["State"]["Name"] == "stopped"
    assert seen["StateTransitionReason"] == "User initiated (2026-03-02 05:00:00 GMT)"


def test_two_at_a_time_are_refused_and_the_first_goes_on(aws: Aws) -> None:
    with pytest.raises(MisuseError, match="another sandbox runs"):
        Aws(machine())
    assert aws.seen()["State"]["Name"] == "running"


def test_nothing_listens_once_it_is_closed() -> None:
    with Aws(machine()) as aws:
        port = int(aws.embedded.url.rsplit(":", 1)[1])
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=5)


def test_one_after_another_start_afresh_and_leave_nothing() -> None:
    for _ in range(2):
        with Aws(machine()) as aws:
            aws.client("ec2").terminate_instances(InstanceIds=aws.ids)
            aws.clock.advance(2 * HOUR)
            assert aws.client("ec2").describe_instances()["Reservations"] == []
            assert len(aws.client("organizations").list_accounts()["Accounts"]) == 1
        gc.collect()  # an unclosed socket would warn here, and warnings are errors
