"""What goes wrong between the emulator and its caller, how often it may be asked, and how strictly it reads."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from tests.contract.alibaba_asking import AT, DAY, HANGZHOU, HOUR, MINUTE, Cloud, Refused, cloud_of

from cloudstand.alibaba.core.actions import ACTIONS, PUBLISHED_RATES
from cloudstand.alibaba.core.errors import ApiError
from cloudstand.alibaba.core.parameters import Table
from cloudstand.alibaba.tables import TABLES
from cloudstand.fleets import ALIBABA_ACCOUNT, alibaba_machine
from cloudstand.wire.faults import Fault, FaultKind
from cloudstand.world import workload as does
from cloudstand.world.fleet import made_up_id

PLAIN = alibaba_machine("plain", does.idle(), AT - 3 * DAY)
DISK = made_up_id("alibaba", "volume", PLAIN.native_id, "/dev/xvda")


@pytest.fixture
def cloud() -> Iterator[Cloud]:
    with cloud_of(PLAIN) as opened:
        yield opened


@pytest.mark.parametrize(
    ("code", "status", "expected"),
    [
        ("Throttling", 0, 400),
        ("Throttling.User", 0, 400),
        ("ServiceUnavailable", 0, 503),
        ("InternalError", 0, 500),
        ("Rejected.Throttling", 429, 429),
    ],
)
def test_a_refusal_comes_with_its_code_and_status(cloud: Cloud, code: str, status: int, expected: int) -> None:
    cloud.emulator.faults.add(Fault(FaultKind.REFUSED, "DescribeInstances", code=code, status=status))
    with pytest.raises(Refused) as caught:
        cloud.ask("DescribeInstances")
    assert (caught.value.code, caught.value.status) == (code, expected)
    assert cloud.refusal("DescribeInstances") == ""


SEEN_AS = {
    FaultKind.RESET: "SDK.HttpError",
    FaultKind.NOT_JSON: "SDK.UnknownServerError",
    FaultKind.LOST_ANSWER: "SDK.HttpError",
    FaultKind.TRUNCATED: "half an answer",  # the SDK hands it over as a success: HTTP 200, and half the bytes
    FaultKind.WRONG_TYPE: "",  # it looks at no content type
}


@pytest.mark.parametrize(
    ("kind", "done"),
    [
        (FaultKind.RESET, False),
        (FaultKind.NOT_JSON, False),
        (FaultKind.LOST_ANSWER, True),
        (FaultKind.TRUNCATED, True),
        (FaultKind.WRONG_TYPE, True),
    ],
)
def test_a_stop_is_done_or_not_whatever_of_its_answer_arrives(cloud: Cloud, kind: FaultKind, done: bool) -> None:  # noqa: FBT001
    cloud.emulator.faults.add(Fault(kind, "StopInstance"))
    code = cloud.refusal("StopInstance", InstanceId=PLAIN.native_id)
    assert code == SEEN_AS[kind]
    assert cloud.instance(PLAIN.native_id)["Status"] == ("Stopping" if done else "Running")


def test_silence_is_nothing_done() -> None:
    with cloud_of(PLAIN) as cloud:
        cloud.emulator.faults.add(Fault(FaultKind.STALLED, "StopInstance"))
        assert cloud.refusal("StopInstance", InstanceId=PLAIN.native_id, patience=0.05) == "SDK.HttpError"
        assert cloud.instance(PLAIN.native_id)["Status"] == "Running"


def test_an_error_may_be_lost_as_well(cloud: Cloud) -> None:
    cloud.emulator.faults.add(Fault(FaultKind.LOST_ANSWER, "StopInstance"))
    assert cloud.refusal("StopInstance", InstanceId="i-missing") == "SDK.HttpError"


def test_a_repeated_copy_without_a_token_would_be_a_second_one(cloud: Cloud) -> None:
    """An answer that was lost, and the same request again: with a ClientToken one copy, without it two."""
    for token, copies in (({"ClientToken": "run-1"}, 1), ({}, 3)):
        for _ in range(2):
            cloud.emulator.faults.add(Fault(FaultKind.LOST_ANSWER, "CreateSnapshot"))
            assert cloud.refusal("CreateSnapshot", {"DiskId": DISK, **token}) == "SDK.HttpError"
            cloud.clock.advance(HOUR)
        assert len(cloud.ask("DescribeSnapshots")["Snapshots"]["Snapshot"]) == copies


def test_an_account_may_ask_only_so_often() -> None:
    """Regions have their own count in ECS, and share one in CloudMonitor."""
    with cloud_of(PLAIN, rates={"DescribeInstances": (2, 0), "DescribeMetricMetaList": (2, 0)}) as cloud:
        for _ in range(2):
            cloud.ask("DescribeInstances")
            cloud.ask("DescribeMetricMetaList")
        assert cloud.refusal("DescribeInstances") == "Throttling.User"
        assert cloud.refusal("DescribeInstances", region="cn-beijing") == ""
        assert cloud.refusal("DescribeMetricMetaList", region="cn-beijing") == "Throttling.User"
        assert cloud.refusal("DescribeRegions") == ""
        assert cloud.emulator.limits.throttled == 2
    assert PUBLISHED_RATES["DescribeMetricList"] == (50, 50)


def test_every_action_has_its_published_parameters_and_no_other() -> None:
    assert set(TABLES) == set(ACTIONS)


ASKED = {"RegionId": HANGZHOU, "InstanceId.1": "i-1"}


@pytest.mark.parametrize(
    ("action", "sent", "code"),
    [
        ("StopInstances", {"RegionId": HANGZHOU}, "MissingInstanceId"),
        ("StopInstances", {"InstanceId.1": "i-1"}, "MissingRegionId"),
        ("StopInstances", {**ASKED, "InstanceId.0": "i"}, "InvalidParameter"),
        ("StopInstances", {**ASKED, "InstanceId.101": "i"}, "InvalidParameter"),
        ("StopInstances", {**ASKED, "InstanceId": "i"}, "InvalidParameter"),
        ("StopInstances", {**ASKED, "instanceId.2": "i"}, "InvalidParameter"),
        ("StopInstances", {**ASKED, "StoppedMode": "stopcharging"}, "InvalidParameter"),
        ("StopInstances", {**ASKED, "DryRun": "True"}, "InvalidParameter"),  # how the SDK writes a Python bool
        ("StopInstances", {**ASKED, "DryRun": ""}, "InvalidParameter"),
        ("StopInstances", {**ASKED, "Force": "true"}, "InvalidParameter"),  # DeleteInstances has it
        ("StopInstances", {**ASKED, "ClientToken": "x"}, "InvalidParameter"),  # and this one has none
        ("StopInstances", {**ASKED, "OwnerId": "12"}, ""),
        ("StopInstances", {**ASKED, "OwnerId": "me"}, "InvalidParameter"),
        ("StopInstances", {**ASKED, "InstanceId.7": "i-7"}, ""),  # gaps in the numbers are nobody's business
        ("DescribeInstances", {"RegionId": HANGZHOU, "MaxResult": "10"}, "InvalidParameter"),
        ("DescribeInstances", {"RegionId": HANGZHOU, "MaxResults": "1e2"}, "InvalidParameter"),
        ("DescribeInstances", {"RegionId": HANGZHOU, "PageSize": "101"}, "InvalidParameter"),
        ("DescribeInstances", {"RegionId": HANGZHOU, "Tags.1.Key": "team"}, "InvalidParameter"),
        ("DescribeInstances", {"RegionId": HANGZHOU, "Tag.1": "team"}, "InvalidParameter"),
        ("DescribeInstances", {"RegionId": HANGZHOU, "VpcId": "vpc-1"}, "Emulator.NotModelled"),
        ("DescribeInstances", {"RegionId": HANGZHOU, "InstanceIds": "[1]"}, "InvalidInstanceIds.Malformed"),
        ("TagResources", {"RegionId": HANGZHOU, "ResourceType": "disk", "ResourceId.1": "d"}, "MissingTag"),
        (
            "TagResources",
            {"RegionId": HANGZHOU, "ResourceType": "disk", "ResourceId.1": "d", "Tag.1.Value": "v"},
            "MissingTag1Key",
        ),
    ],
)
def test_parameters_are_read_as_published(action: str, sent: dict[str, str], code: str) -> None:
    table = TABLES["ecs", action]
    if not code:
        assert table.read(sent).single
        return
    with pytest.raises(ApiError) as caught:
        table.read(sent)
    assert caught.value.code == code


def test_lists_come_in_the_order_of_their_numbers() -> None:
    asked = TABLES["ecs", "StopInstances"].read(
        {"RegionId": HANGZHOU, "InstanceId.10": "c", "InstanceId.2": "b", "InstanceId.1": "a"}
    )
    assert asked.many("InstanceId") == ["a", "b", "c"]


@pytest.mark.parametrize("line", ["Name", "Name! ", "Na me text", "Name text 1-2 3"])
def test_a_table_that_cannot_be_read_does_not_start(line: str) -> None:
    with pytest.raises(ValueError, match="not a line of a table"):
        Table(line)


def test_what_was_asked_is_remembered(cloud: Cloud) -> None:
    cloud.ask("DescribeInstances")
    cloud.refusal("StopInstance", InstanceId="i-missing")
    assert [(call.service, call.action, call.account, call.region) for call in cloud.emulator.calls] == [
        ("ecs", "DescribeInstances", ALIBABA_ACCOUNT, HANGZHOU),
        ("ecs", "StopInstance", ALIBABA_ACCOUNT, HANGZHOU),
    ]
    assert json.dumps(cloud.ask("DescribeRegions")).count("RequestId") == 1
    first, second = (cloud.ask("DescribeRegions")["RequestId"] for _ in range(2))
    assert first != second
    cloud.clock.advance(MINUTE)
