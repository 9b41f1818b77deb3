"""Where moto, unpatched, differs from AWS. A test that fails here means that moto closed a gap: drop its patch."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from functools import cache
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from botocore import xform_name
from botocore.exceptions import ClientError
from botocore.parsers import ResponseParserError
from moto import mock_aws, settings
from moto.backends import list_of_moto_modules
from moto.core.responses import ActionResult
from moto.core.serialize import AttributePicker, ResponseSerializer, XFormedAttributePicker
from moto.core.utils import get_service_model, method_names_from_class
from moto.ec2.models import ec2_backends
from moto.ec2.responses import EC2Response

from cloudstand.aws.compute.hastening import hastening
from cloudstand.aws.core import gaps
from cloudstand.aws.core.patching import Patch, applied
from cloudstand.aws.emulator import EmbeddedAws
from cloudstand.clock import MovedClock
from cloudstand.demo.fleet import aws_fleet
from cloudstand.fleets import PRODUCT, RESEARCH
from cloudstand.wire.door import WorldDoor
from cloudstand.world.cloud import World

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=timezone.utc)


@pytest.fixture
def moto() -> Iterator[None]:
    """Moto as it comes, but for the images, which only cost time."""
    with applied(gaps.before_seeding()), mock_aws():
        yield


@cache
def client(service: str) -> Any:
    """Shared, as it remembers nothing of a cloud; each start of moto would have the API models read anew."""
    return boto3.client(service, region_name="us-east-1")  # type: ignore[call-overload] # the service is a variable


def launched(ec2: Any, **more: Any) -> str:
    made = ec2.run_instances(ImageId="ami-12345678", MinCount=1, MaxCount=1, InstanceType="g5.xlarge", **more)
    return str(made["Instances"][0]["InstanceId"])


def seen(ec2: Any, native_id: str) -> dict[str, Any]:
    found: dict[str, Any] = ec2.describe_instances(InstanceIds=[native_id])["Reservations"][0]["Instances"][0]
    return found


@pytest.mark.usefixtures("moto")
def test_moto_calls_lent_addresses_the_accounts_own() -> None:
    ec2 = client("ec2")
    (interface,) = seen(ec2, launched(ec2))["NetworkInterfaces"]
    assert interface["Association"]["IpOwnerId"] == "123456789012", "AWS says amazon"


def test_moto_loads_all_images(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MOTO_EC2_LOAD_DEFAULT_AMIS", raising=False)  # another test of this process may have set it
    assert settings.ec2_load_default_amis() is True


@pytest.mark.usefixtures("moto")
def test_moto_stops_at_once_says_utc_and_keeps_the_launch_time_over_a_start() -> None:
    ec2 = client("ec2")
    native_id = launched(ec2)
    before = seen(ec2, native_id)["LaunchTime"]
    ec2.stop_instances(InstanceIds=[native_id])
    stopped = seen(ec2, native_id)
    assert stopped["State"]["Name"] == "stopped"
    assert stopped["StateTransitionReason"].endswith("UTC)")
    ec2.start_instances(InstanceIds=[native_id])
    assert seen(ec2, native_id)["LaunchTime"] == before


@pytest.mark.usefixtures("moto")
def test_moto_stops_one_time_spot() -> None:
    ec2 = client("ec2")
    native_id = launched(ec2, InstanceMarketOptions={"MarketType": "spot"})
    assert seen(ec2, native_id)["InstanceLifecycle"] == "spot"
    ec2.stop_instances(InstanceIds=[native_id])
    assert seen(ec2, native_id)["State"]["Name"] == "stopped"


@pytest.mark.usefixtures("moto")
def test_moto_stops_and_starts_what_is_terminated() -> None:
    ec2 = client("ec2")
    native_id = launched(ec2)
    ec2.terminate_instances(InstanceIds=[native_id])
    assert seen(ec2, native_id)["State"]["Name"] == "terminated"
    ec2.start_instances(InstanceIds=[native_id])
    assert seen(ec2, native_id)["State"]["Name"] == "running"


@pytest.mark.usefixtures("moto")
def test_moto_completes_snapshots_at_once_and_ignores_exclusions() -> None:
    ec2 = client("ec2")
    native_id = launched(ec2)
    volume = seen(ec2, native_id)["BlockDeviceMappings"][0]["Ebs"]["VolumeId"]
    assert ec2.create_snapshot(VolumeId=volume)["State"] == "completed"
    asked = {"InstanceId": native_id, "ExcludeDataVolumeIds": [volume]}
    assert len(ec2.create_snapshots(InstanceSpecification=asked)["Snapshots"]) == 1


@pytest.mark.usefixtures("moto")
def test_moto_tags_what_does_not_exist() -> None:
    ec2 = client("ec2")
    gone = "i-0123456789abcdef0"
    ec2.create_tags(Resources=[gone], Tags=[{"Key": "a", "Value": "b"}])
    ec2.delete_tags(Resources=[gone], Tags=[{"Key": "a"}])


@pytest.mark.usefixtures("moto")
def test_moto_lets_attributes_change_behind_our_back() -> None:
    ec2 = client("ec2")
    native_id = launched(ec2)
    ec2.modify_instance_attribute(InstanceId=native_id, DisableApiTermination={"Value": True})
    attribute = ec2.describe_instance_attribute(InstanceId=native_id, Attribute="disableApiTermination")
    assert attribute["DisableApiTermination"]["Value"] is True


@pytest.mark.usefixtures("moto")
def test_moto_lists_regions_that_are_not_opted_in_and_ignores_the_filter() -> None:
    filters = [{"Name": "opt-in-status", "Values": ["opt-in-not-required", "opted-in"]}]
    statuses = {region["OptInStatus"] for region in client("ec2").describe_regions(Filters=filters)["Regions"]}
    assert "not-opted-in" in statuses


@pytest.mark.usefixtures("moto")
def test_moto_has_no_reserved_instances() -> None:
    with pytest.raises((ResponseParserError, NotImplementedError, ClientError)):
        client("ec2").describe_reserved_instances()


@pytest.mark.usefixtures("moto")
def test_moto_dates_every_spot_request_2015_and_quotes_one_price() -> None:
    ec2 = client("ec2")
    wanted = {"ImageId": "ami-12345678", "InstanceType": "g5.xlarge"}
    (request,) = ec2.request_spot_instances(SpotPrice="1", LaunchSpecification=wanted)["SpotInstanceRequests"]
    assert request["CreateTime"].year == 2015
    assert len(ec2.describe_instances()["Reservations"]) == 1, "and an instance comes with it"
    history = ec2.describe_spot_price_history(InstanceTypes=["g5.xlarge"])["SpotPriceHistory"]
    assert {entry["SpotPrice"] for entry in history} == {"0.00001"}


@pytest.mark.usefixtures("moto")
def test_moto_matches_dimensions_in_some_orders_and_by_superset() -> None:
    cloudwatch = client("cloudwatch")
    now = datetime.now(timezone.utc).replace(second=0, microsecond=0)
    pairs = [{"Name": "InstanceId", "Value": "i-1"}, {"Name": "arch", "Value": "Ampere"}]
    data = {"MetricName": "gpu", "Dimensions": pairs, "Value": 1.0, "Timestamp": now - timedelta(minutes=5)}
    cloudwatch.put_metric_data(Namespace="CWAgent", MetricData=[data, data])
    window = {"StartTime": now - timedelta(hours=1), "EndTime": now + timedelta(hours=1)}

    def values(dimensions: list[dict[str, str]]) -> list[float]:
        metric = {"Namespace": "CWAgent", "MetricName": "gpu", "Dimensions": dimensions}
        query = {"Id": "q1", "MetricStat": {"Metric": metric, "Period": 3600, "Stat": "SampleCount"}}
        (result,) = cloudwatch.get_metric_data(MetricDataQueries=[query], **window)["MetricDataResults"]
        found: list[float] = result["Values"]
        return found

    assert values(pairs)
    assert not values(pairs[::-1])
    superset = cloudwatch.get_metric_statistics(
        Namespace="CWAgent", MetricName="gpu", Dimensions=pairs[:1], Period=3600, Statistics=["Sum"], **window
    )
    assert superset["Datapoints"], "CloudWatch would find nothing"
    assert len(cloudwatch.list_metrics(Namespace="CWAgent")["Metrics"]) == 2, "one entry a datum"


@pytest.mark.usefixtures("moto")
def test_moto_assumes_any_role_with_any_external_id() -> None:
    sts = client("sts")
    assert sts.get_caller_identity()["Account"] == "123456789012", "whoever asks"
    role = "arn:aws:iam::999900001111:role/nobody"
    assert sts.assume_role(RoleArn=role, RoleSessionName="x1", ExternalId="wrong")["Credentials"]


def test_moto_has_no_price_list() -> None:
    assert "pricing" not in list_of_moto_modules()


def test_moto_looks_for_its_folders_and_for_every_handler_anew() -> None:
    assert list_of_moto_modules() is not list_of_moto_modules()
    assert method_names_from_class(EC2Response) is not method_names_from_class(EC2Response)
    while_running = {patch.name: patch.replacement for patch in hastening()}
    names, modules = while_running["method_names_from_class"], while_running["list_of_moto_modules"]
    assert names(EC2Response) == method_names_from_class(EC2Response)
    assert names(EC2Response) is names(EC2Response)
    assert list(modules()) == list(list_of_moto_modules())


@pytest.mark.parametrize("picker", [AttributePicker(), XFormedAttributePicker()], ids=lambda one: type(one).__name__)
def test_moto_takes_the_values_of_fields_by_the_names_it_always_did(picker: AttributePicker) -> None:
    quick = next(patch.replacement for patch in hastening() if patch.name == "get_value")
    output = get_service_model("ec2").operation_model("DescribeInstances").output_shape
    instance = output.members["Reservations"].member.members["Instances"].member
    serializer: Any = SimpleNamespace(
        _value_picker=picker, operation_model=SimpleNamespace(service_model=None), path=["x"]
    )
    for field, shape in instance.members.items():
        shape.parent = instance
        names = {field, shape.serialization["name"], xform_name(field), field.removeprefix("Instance"), shape.name}
        held: list[dict[str, Any]] = [
            *({name: "found"} for name in names),
            {field: None},
            {},
            {name: name for name in names},
        ]
        for value in (*held, *(SimpleNamespace(**one) for one in held)):
            assert quick(serializer, value, field, shape) == ResponseSerializer.get_value(
                serializer, value, field, shape
            ), (field, value)


def test_patches_are_undone_even_after_a_failure() -> None:
    original, inherited = EC2Response.stop_instances, "stop_instances" not in vars(EC2Response)
    patch = Patch(EC2Response, "stop_instances", lambda _: ActionResult({}), "a test")

    def fail() -> None:
        with applied([patch]):
            assert EC2Response.stop_instances is patch.replacement
            raise RuntimeError("on purpose")

    with pytest.raises(RuntimeError, match="on purpose"):
        fail()
    assert EC2Response.stop_instances is original
    assert ("stop_instances" not in vars(EC2Response)) is inherited


def test_moto_is_itself_again_when_the_sandbox_closes() -> None:
    world, as_it_was = World(aws_fleet(NOW), NOW), settings.ec2_load_default_amis
    accounts = set(ec2_backends)
    with EmbeddedAws(world, WorldDoor(world, MovedClock(NOW)), "sesame", "ap-east-1") as aws:
        assert aws.url.startswith("http://127.0.0.1:")
        assert settings.ec2_load_default_amis is not as_it_was
        assert {RESEARCH, PRODUCT} <= set(ec2_backends)
        assert "stop_instances" in vars(EC2Response)
    assert settings.ec2_load_default_amis is as_it_was
    assert set(ec2_backends) == accounts - {RESEARCH, PRODUCT}
    assert "stop_instances" not in vars(EC2Response)


def test_every_patch_says_why() -> None:
    for patch in gaps.before_seeding():
        assert patch.reason
