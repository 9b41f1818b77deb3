"""ECS as the emulator shows it: pages and filters, states in time, what a stop saves, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from math import ceil
from typing import Any

import pytest
from tests.contract.alibaba_asking import AT, CPU_ONLY, DAY, HANGZHOU, HOUR, MINUTE, Cloud, Refused, cloud_of

from cloudstand.alibaba.compute.catalogue import TYPES
from cloudstand.alibaba.standalone import default_fleet
from cloudstand.fleets import ALIBABA_ACCOUNT, alibaba_machine
from cloudstand.world import workload as does
from cloudstand.world.fleet import Disk, MachineSpec
from cloudstand.world.kinds import Accelerator, AcceleratorKind, Billing, InstanceState

MEMBER = "1098765432109876"
OLD = AT - 30 * DAY
ROOT = Disk(100, "/dev/xvda", "cloud_essd")
KEPT = Disk(500, "/dev/xvdb", "cloud_efficiency", deleted_with_instance=False)


def machine(name: str, kind: str = "ecs.gn7i-c8g1.2xlarge", **more: Any) -> MachineSpec:
    return alibaba_machine(name, does.idle(), OLD, kind, **more)


PLAIN = machine("plain", tags={"team": "research", "owner": "vision"}, disks=(ROOT, KEPT), public_ip="203.0.113.9")
PROTECTED = machine("protected", protections=("termination_protection",))
PREPAID = machine("prepaid", billing=Billing.PREPAID, prepaid_until=AT + DAY)
EXPIRED = machine("expired", billing=Billing.PREPAID, prepaid_until=AT - DAY)
SPOT = machine("spot", billing=Billing.SPOT)
LOCAL = machine("local", "ecs.gn5-c4g1.xlarge")
BILLS_ON = machine("bills-on", stop_keeps_billing=True)
ADDRESSED = machine("addressed", kept_address=True)
STOPPED = machine("stopped", state=InstanceState.STOPPED, stopped_since=AT - DAY, no_capacity=True)
SLICE = machine("slice", "ecs.vgn6i-m4.xlarge")
WEB = machine("web", "ecs.g7.xlarge", accelerator=CPU_ONLY)
MADE_UP = machine("made-up", accelerator=Accelerator(AcceleratorKind.NVIDIA_GPU, "L20", 0.5, 24), region="eu-central-1")
NEXT_DOOR = machine("next-door", account=MEMBER)
ELSEWHERE = machine("elsewhere", region="cn-beijing")
MINE = (PLAIN, PROTECTED, PREPAID, EXPIRED, SPOT, LOCAL, BILLS_ON, ADDRESSED, STOPPED, SLICE, WEB)


@pytest.fixture
def cloud() -> Iterator[Cloud]:
    with cloud_of(*MINE, NEXT_DOOR, ELSEWHERE) as opened:
        yield opened


def stop(cloud: Cloud, *specs: MachineSpec, mode: str = "StopCharging", batch: str = "SuccessFirst") -> list[str]:
    ids = {f"InstanceId.{number}": spec.native_id for number, spec in enumerate(specs, 1)}
    answer = cloud.ask("StopInstances", {**ids, "StoppedMode": mode, "BatchOptimization": batch})
    return [one["Code"] for one in answer["InstanceResponses"]["InstanceResponse"]]


def stopped(cloud: Cloud, spec: MachineSpec, mode: str = "StopCharging") -> dict[str, object]:
    """The machine once a stop of this mode is over."""
    assert stop(cloud, spec, mode=mode) == ["200"]
    cloud.clock.advance(2 * MINUTE)
    return cloud.instance(spec.native_id)


def names(cloud: Cloud, **filters: str) -> set[str]:
    found = cloud.ask("DescribeInstances", {"MaxResults": "100", **filters})["Instances"]["Instance"]
    return {one["InstanceName"] for one in found}


def test_regions_come_with_their_endpoints(cloud: Cloud) -> None:
    found = cloud.ask("DescribeRegions", AcceptLanguage="en-US")["Regions"]["Region"]
    wulanchabu = next(region for region in found if region["RegionId"] == "cn-wulanchabu")
    assert wulanchabu["RegionEndpoint"] == "ecs.cn-wulanchabu.aliyuncs.com"
    assert wulanchabu["LocalName"] == "China (Ulanqab)"
    assert cloud.refusal("DescribeInstances", region="cn-atlantis") == "InvalidRegionId.NotFound"


@pytest.mark.parametrize(("asked", "size"), [("1", 10), ("60", 60), ("1000", 100)])
def test_pages_hold_from_ten_to_a_hundred_whatever_is_asked(asked: str, size: int) -> None:
    fleet = [alibaba_machine(f"m{number}", does.idle(), OLD) for number in range(130)]
    with cloud_of(*fleet) as cloud:
        pages = cloud.pages("DescribeInstances", ("Instances", "Instance"), MaxResults=asked)
    assert [len(page) for page in pages[:-1]] == [size] * (len(pages) - 1)
    assert {one["InstanceId"] for page in pages for one in page} == {spec.native_id for spec in fleet}


def test_by_token_the_total_means_nothing_and_by_number_it_does(cloud: Cloud) -> None:
    by_token = cloud.ask("DescribeInstances", MaxResults="10")
    assert (len(by_token["Instances"]["Instance"]), by_token["TotalCount"]) == (10, 0)
    by_number = cloud.ask("DescribeInstances", PageNumber="2", PageSize="10")
    assert len(by_number["Instances"]["Instance"]) == len(MINE) - 10
    assert (by_number["TotalCount"], by_number["NextToken"]) == (len(MINE), "")
    assert len(cloud.ask("DescribeInstances")["Instances"]["Instance"]) == 10  # without a word about pages


def test_an_account_and_a_region_are_all_that_is_seen(cloud: Cloud) -> None:
    assert names(cloud) == {spec.name for spec in MINE}
    beijing = cloud.ask("DescribeInstances", region="cn-beijing")["Instances"]["Instance"]
    assert [one["InstanceName"] for one in beijing] == ["elsewhere"]


def test_an_empty_list_of_ids_is_a_filter_that_nothing_fits(cloud: Cloud) -> None:
    assert names(cloud, InstanceIds="[]") == set()
    assert names(cloud, InstanceIds=json.dumps([PLAIN.native_id, NEXT_DOOR.native_id])) == {"plain"}
    assert cloud.refusal("DescribeInstances", InstanceIds=PLAIN.native_id) == "InvalidInstanceIds.Malformed"
    assert cloud.refusal("DescribeInstances", InstanceIds=json.dumps(["i"] * 101)) == "InvalidInstanceIds.Malformed"


def test_filters_are_heeded(cloud: Cloud) -> None:
    assert names(cloud, Status="Stopped") == {"stopped"}
    assert names(cloud, InstanceChargeType="PrePaid") == {"prepaid", "expired"}
    assert names(cloud, InstanceTypeFamily="ecs.gn5") == {"local"}
    assert names(cloud, InstanceName="p*d") == {"protected", "prepaid"}
    assert names(cloud, **{"Tag.1.Key": "team", "Tag.1.Value": "research", "Tag.2.Key": "owner"}) == {"plain"}
    assert names(cloud, **{"Tag.1.Key": "team", "Tag.1.Value": "platform"}) == set()


def test_times_are_told_to_the_minute_and_what_never_expires_says_so(cloud: Cloud) -> None:
    plain, prepaid = cloud.instance(PLAIN.native_id), cloud.instance(PREPAID.native_id)
    assert plain["StartTime"] == plain["CreationTime"] == "2026-01-31T09:00Z"
    assert plain["ExpiredTime"] == "2999-09-08T16:00Z"
    assert (prepaid["InstanceChargeType"], prepaid["ExpiredTime"]) == ("PrePaid", "2026-03-03T09:00Z")


def test_devices_are_counted_whatever_they_are(cloud: Cloud) -> None:
    """GPUAmount is a whole number, on slices of a card too, and says nothing of what the devices are."""
    told = {name: cloud.instance(spec.native_id) for name, spec in (("plain", PLAIN), ("slice", SLICE), ("web", WEB))}
    assert (told["plain"]["GPUAmount"], told["plain"]["GPUSpec"]) == (1, "NVIDIA A10")
    assert (told["slice"]["GPUAmount"], told["slice"]["GPUSpec"]) == (1, "NVIDIA T4*1/4")
    assert (told["web"]["GPUAmount"], told["web"]["GPUSpec"]) == (0, "")
    types = {one["InstanceTypeId"]: one for one in cloud.ask("DescribeInstanceTypes")["InstanceTypes"]["InstanceType"]}
    assert types["ecs.f3-c16f1.4xlarge"]["GPUAmount"] == 1
    assert types["ecs.f3-c16f1.4xlarge"]["InstanceCategory"] == "Compute-optimized with FPGA"
    assert types["ecs.vgn6i-m4.xlarge"]["GPUMemorySize"] == 4.0


def test_types_are_found_by_name_ten_at_a_time(cloud: Cloud) -> None:
    wanted = {f"InstanceTypes.{number}": name for number, name in enumerate(sorted(TYPES)[:10], 1)}
    found = cloud.ask("DescribeInstanceTypes", wanted)["InstanceTypes"]["InstanceType"]
    assert [one["InstanceTypeId"] for one in found] == sorted(TYPES)[:10]
    assert cloud.refusal("DescribeInstanceTypes", {**wanted, "InstanceTypes.11": "x"}) == "InvalidParameter"
    least = cloud.ask("DescribeInstanceTypes", MinimumGPUAmount="8")["InstanceTypes"]["InstanceType"]
    assert {one["GPUAmount"] for one in least} == {8}
    pages = cloud.pages("DescribeInstanceTypes", ("InstanceTypes", "InstanceType"), MaxResults="7")
    assert sum(len(page) for page in pages) == len(TYPES)


def test_empty_lists_come_in_every_shape_that_was_seen(cloud: Cloud) -> None:
    found = cloud.ask("DescribeInstances", MaxResults="100")["Instances"]["Instance"]
    shapes = {json.dumps(one.get("OperationLocks", "absent")) for one in found}
    assert shapes == {'{"LockReason": []}', '""', "{}", '"absent"'}


def test_who_may_not_ask_is_answered_with_nothing_and_no_error(cloud: Cloud) -> None:
    cloud.world.deny("alibaba", ALIBABA_ACCOUNT, "DescribeInstances")
    cloud.world.deny("alibaba", ALIBABA_ACCOUNT, "DescribeDisks")
    answer = cloud.ask("DescribeInstances", MaxResults="100")
    answer.pop("RequestId")
    assert answer == {"Instances": {"Instance": []}, "NextToken": "", "PageNumber": 1, "PageSize": 10, "TotalCount": 0}
    assert cloud.ask("DescribeDisks")["Disks"] == {"Disk": []}
    assert cloud.refusal("DescribeInstances", DryRun="true") == "Forbidden.RAM"
    assert cloud.refusal("DescribeDisks", DryRun="true") == "Forbidden.RAM"
    cloud.world.allow("alibaba", ALIBABA_ACCOUNT, "DescribeInstances")
    assert cloud.refusal("DescribeInstances", DryRun="true") == "DryRunOperation"


def test_since_the_end_of_2025_it_is_refused_instead() -> None:
    """The vendor announced it for 20 December 2025; an emulator is told which of the two to be."""
    with cloud_of(PLAIN, forbids_lists=True) as cloud:
        cloud.emulator.allowed[ALIBABA_ACCOUNT] = {"ecs:DescribeRegions"}
        for action in ("DescribeInstances", "DescribeDisks"):
            with pytest.raises(Refused) as caught:
                cloud.ask(action)
            assert (caught.value.code, caught.value.status) == ("Forbidden.RAM", 403)


def test_an_economical_stop_takes_a_minute_and_ends_the_bill(cloud: Cloud) -> None:
    assert stop(cloud, PLAIN) == ["200"]
    assert cloud.instance(PLAIN.native_id)["Status"] == "Stopping"
    cloud.clock.advance(2 * MINUTE)
    told = cloud.instance(PLAIN.native_id)
    assert (told["Status"], told["StoppedMode"]) == ("Stopped", "StopCharging")
    assert told["StartTime"] == "2026-01-31T09:00Z"  # of the last start: a stop changes nothing
    assert "203.0.113.9" not in json.dumps(told)  # the plain address is gone with it


@pytest.mark.parametrize(
    ("spec", "mode"),
    [(LOCAL, "Not-applicable"), (PREPAID, "Not-applicable"), (BILLS_ON, "KeepCharging"), (SPOT, "StopCharging")],
    ids=lambda value: value.name if isinstance(value, MachineSpec) else value,
)
def test_an_economical_stop_is_ignored_in_silence_where_it_cannot_be(
    cloud: Cloud, spec: MachineSpec, mode: str
) -> None:
    told = stopped(cloud, spec)
    assert (told["Status"], told["StoppedMode"]) == ("Stopped", mode)
    assert cloud.world.machines[spec.native_id].billed_while_stopped is (mode != "StopCharging")


def test_a_standard_stop_bills_on_and_keeps_the_address_until_an_economical_one(cloud: Cloud) -> None:
    told = stopped(cloud, PLAIN, mode="KeepCharging")
    assert told["StoppedMode"] == "KeepCharging"
    assert "203.0.113.9" in json.dumps(told)
    cloud.ask("StartInstances", {"InstanceId.1": PLAIN.native_id})
    cloud.clock.advance(MINUTE)
    assert stopped(cloud, PLAIN)["StoppedMode"] == "StopCharging"


def test_a_start_begins_a_new_run(cloud: Cloud) -> None:
    stopped(cloud, PLAIN)
    cloud.clock.advance(HOUR)
    started = cloud.ask("StartInstances", {"InstanceId.1": PLAIN.native_id})["InstanceResponses"]["InstanceResponse"]
    assert [(one["PreviousStatus"], one["CurrentStatus"]) for one in started] == [("Stopped", "Starting")]
    cloud.clock.advance(MINUTE)
    told = cloud.instance(PLAIN.native_id)
    assert (told["Status"], told["StartTime"], told["CreationTime"]) == (
        "Running",
        "2026-03-02T10:02Z",
        "2026-01-31T09:00Z",
    )
    address = told["PublicIpAddress"]["IpAddress"]
    assert address
    assert address != ["203.0.113.9"]
    assert cloud.refusal("StartInstance", InstanceId=STOPPED.native_id) == "OperationDenied.NoStock"


def test_a_batch_fails_whole_or_each_answers_for_itself(cloud: Cloud) -> None:
    assert stop(cloud, PLAIN, STOPPED, NEXT_DOOR) == ["200", "IncorrectInstanceStatus", "InvalidInstanceId.NotFound"]
    with pytest.raises(Refused) as caught:
        stop(cloud, SPOT, STOPPED, batch="AllTogether")
    assert (caught.value.code, caught.value.status) == ("IncorrectInstanceStatus", 403)
    assert cloud.instance(SPOT.native_id)["Status"] == "Running"
    assert cloud.refusal("StopInstance", InstanceId=PLAIN.native_id) == "IncorrectInstanceStatus"  # stopping already
    missing = cloud.refusal("StopInstance", InstanceId="i-missing")
    assert missing == "InvalidInstanceId.NotFound"


def test_dry_runs_change_nothing_and_answer_as_errors(cloud: Cloud) -> None:
    plain = {"InstanceId.1": PLAIN.native_id, "DryRun": "true"}
    assert cloud.refusal("StopInstances", plain) == "DRYRUN.SUCCESS"
    assert cloud.refusal("StopInstance", InstanceId=PLAIN.native_id, DryRun="true") == "DryRunOperation"
    assert cloud.refusal("DeleteInstances", plain) == "DRYRUN.SUCCESS"  # of a running machine: it looks at none
    assert cloud.refusal("DeleteInstance", InstanceId=PLAIN.native_id, DryRun="true") == "IncorrectInstanceStatus"
    unlooked = {"InstanceId.1": STOPPED.native_id, "DryRun": "true", "BatchOptimization": "SuccessFirst"}
    assert cloud.refusal("StopInstances", unlooked) == "DRYRUN.SUCCESS"
    assert cloud.refusal("StopInstances", {**unlooked, "BatchOptimization": "AllTogether"}) == "IncorrectInstanceStatus"
    cloud.world.deny("alibaba", ALIBABA_ACCOUNT, "DeleteInstances")
    assert cloud.refusal("DeleteInstances", plain) == "Forbidden.RAM"
    assert {one.by for one in cloud.world.history} <= {"administrator"}


@pytest.mark.parametrize(
    ("spec", "more", "code"),
    [
        (PLAIN, {}, "IncorrectInstanceStatus"),
        (PLAIN, {"Force": "true"}, ""),
        (STOPPED, {}, ""),
        (PROTECTED, {"Force": "true"}, "InvalidOperation.DeletionProtection"),
        (PREPAID, {"Force": "true", "TerminateSubscription": "true"}, "ChargeTypeViolation"),
        (EXPIRED, {"Force": "true"}, "ChargeTypeViolation"),
        (EXPIRED, {"Force": "true", "TerminateSubscription": "true"}, ""),
        (SPOT, {"Force": "true"}, ""),
        (NEXT_DOOR, {"Force": "true"}, "InvalidInstanceId.NotFound"),
        (ELSEWHERE, {"Force": "true"}, "InvalidInstanceId.NotFound"),
    ],
    ids=lambda value: value.name if isinstance(value, MachineSpec) else None,
)
def test_only_what_may_go_is_released(cloud: Cloud, spec: MachineSpec, more: dict[str, str], code: str) -> None:
    assert cloud.refusal("DeleteInstances", {"InstanceId.1": spec.native_id, **more}) == code
    cloud.clock.advance(2 * MINUTE)
    assert ((spec.native_id in json.dumps(cloud.ask("DescribeInstances", PageSize="100"))) or spec not in MINE) is bool(
        code
    )


def test_one_bad_id_keeps_the_whole_release_from_happening(cloud: Cloud) -> None:
    both = {"InstanceId.1": STOPPED.native_id, "InstanceId.2": PROTECTED.native_id, "Force": "true"}
    assert cloud.refusal("DeleteInstances", both) == "InvalidOperation.DeletionProtection"
    cloud.clock.advance(2 * MINUTE)
    assert cloud.instance(STOPPED.native_id)["Status"] == "Stopped"


def test_protection_is_lifted_by_its_attribute(cloud: Cloud) -> None:
    assert cloud.instance(PROTECTED.native_id)["DeletionProtection"] is True
    cloud.ask("ModifyInstanceAttribute", InstanceId=PROTECTED.native_id, DeletionProtection="false")
    assert cloud.instance(PROTECTED.native_id)["DeletionProtection"] is False
    prepaid = cloud.refusal("ModifyInstanceAttribute", InstanceId=PREPAID.native_id, DeletionProtection="true")
    assert prepaid == "ChargeTypeViolation"


def test_what_is_being_released_says_so_and_is_then_not_listed(cloud: Cloud) -> None:
    cloud.ask("DeleteInstances", {"InstanceId.1": PLAIN.native_id, "Force": "true"})
    assert cloud.instance(PLAIN.native_id)["Status"] == "Stopping"
    cloud.clock.advance(MINUTE)
    assert names(cloud, InstanceIds=json.dumps([PLAIN.native_id])) == set()
    assert cloud.refusal("StopInstance", InstanceId=PLAIN.native_id) == "InvalidInstanceId.NotFound"


def test_statuses_and_attributes_are_told_on_their_own(cloud: Cloud) -> None:
    ids = {"InstanceId.1": PLAIN.native_id, "InstanceId.2": STOPPED.native_id}
    told = cloud.ask("DescribeInstanceStatus", ids)["InstanceStatuses"]["InstanceStatus"]
    assert [one["Status"] for one in told] == ["Running", "Stopped"]
    assert cloud.refusal("DescribeInstanceStatus", PageSize="51") == "InvalidParameter"
    attribute = cloud.ask("DescribeInstanceAttribute", InstanceId=PLAIN.native_id)
    assert attribute["InstanceType"] == PLAIN.instance_type
    assert not {"Tags", "DeletionProtection", "GPUAmount"} & set(attribute)


def test_prices_come_in_parts_and_the_sum_is_not_the_machines(cloud: Cloud) -> None:
    price = cloud.ask("DescribePrice", InstanceType="ecs.gn7i-c8g1.2xlarge")["PriceInfo"]["Price"]
    parts = {one["Resource"]: one["TradePrice"] for one in price["DetailInfos"]["DetailInfo"]}
    assert (price["Currency"], parts["instanceType"]) == ("CNY", 12.7)
    assert price["TradePrice"] == pytest.approx(12.7 + parts["systemDisk"])
    spot = cloud.ask("DescribePrice", InstanceType="ecs.gn7i-c8g1.2xlarge", SpotStrategy="SpotAsPriceGo")
    first = spot["PriceInfo"]["Price"]["DetailInfos"]["DetailInfo"][0]
    assert (first["OriginalPrice"], first["TradePrice"]) == (12.7, 5.08)
    disk = cloud.ask(
        "DescribePrice", {"ResourceType": "disk", "DataDisk.1.Category": "cloud_essd", "DataDisk.1.Size": "100"}
    )
    assert disk["PriceInfo"]["Price"]["TradePrice"] == 0.21
    retired = cloud.refusal("DescribePrice", InstanceType="ecs.t1.small")
    assert retired == "InvalidInstanceType.ValueNotSupported"
    assert cloud.refusal("DescribePrice") == "MissingInstanceType"
    assert cloud.refusal("DescribePrice", ResourceType="disk") == "MissingDataDisk1Category"


def test_the_international_site_charges_in_dollars() -> None:
    fleet = machine("intl", cloud="alibaba-intl")
    with cloud_of(fleet, cloud="alibaba-intl") as cloud:
        price = cloud.ask("DescribePrice", InstanceType="ecs.g7.xlarge")["PriceInfo"]["Price"]
        assert price["Currency"] == "USD"
        assert price["DetailInfos"]["DetailInfo"][0]["TradePrice"] == pytest.approx(1 / 7.2, abs=1e-6)
        assert cloud.instance(fleet.native_id)["InstanceName"] == "intl"


def test_the_catalogue_agrees_with_the_fleets() -> None:
    """One price and one number of cards a type, whoever is asked."""
    for kind, facts in TYPES.items():
        spec = machine("one", kind)
        assert spec.hourly is not None
        assert (spec.hourly.amount, ceil(spec.accelerator.count)) == (facts.hourly_cny, facts.gpus)
        assert spec.local_disk_gib == facts.local_disks * facts.local_gib
        assert spec.accelerator.memory_gib == facts.gpu_gib


def test_a_type_that_no_catalogue_has_follows_from_its_machine() -> None:
    spec = replace(MADE_UP, instance_type="ecs.gn99i-c8g1.2xlarge", region="cn-hangzhou")
    with cloud_of(spec) as cloud:
        told = cloud.instance(spec.native_id)
        assert (told["GPUAmount"], told["GPUSpec"], told["InstanceTypeFamily"]) == (1, "NVIDIA L20*1/2", "ecs.gn99i")
        (kind,) = cloud.ask("DescribeInstanceTypes", {"InstanceTypes.1": spec.instance_type})["InstanceTypes"][
            "InstanceType"
        ]
        assert (kind["GPUAmount"], kind["InstanceCategory"]) == (1, "Visual Compute-optimized")
        price = cloud.ask("DescribePrice", InstanceType=spec.instance_type)["PriceInfo"]["Price"]
        assert price["DetailInfos"]["DetailInfo"][0]["TradePrice"] == 12.7


def test_the_default_fleet_has_one_of_everything() -> None:
    with cloud_of(*default_fleet(AT)) as cloud:
        assert cloud.emulator.accounts == (ALIBABA_ACCOUNT, MEMBER)
        found = cloud.ask("DescribeInstances", MaxResults="100", region=HANGZHOU)["Instances"]["Instance"]
        assert {one["GPUSpec"] for one in found} >= {"NVIDIA A10", "GPU H", "NVIDIA T4*1/4", "Xilinx VU9p", ""}
