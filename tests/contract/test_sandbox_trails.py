"""The audit trails of the sandbox: what they tell, page by page, and what they refuse as their vendors document it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import moto.cloudtrail.responses
import pytest
from tests.contract.trail_worlds import MADE, START, TRAILS, USER, TrailRig
from tests.world_ports.inventory import WorldInventory
from tests.world_ports.trail import WorldAuditLog
from tests.world_ports.translate import to_product

from cloudstand.clock import MovedClock
from cloudstand.fleets import aws_machine
from cloudstand.world import workload as does
from cloudstand.world.cloud import World
from cloudstand.world.trail import REMEMBERS, trail_of
from costguard.domain.errors import ProviderError

MINUTE = timedelta(minutes=1)


def opened(name: str) -> Iterator[TrailRig]:
    with TRAILS[name]() as made:
        yield made


@pytest.fixture(scope="module")
def aws() -> Iterator[TrailRig]:
    yield from opened("aws")


@pytest.fixture(scope="module")
def alibaba() -> Iterator[TrailRig]:
    yield from opened("alibaba")


@pytest.fixture(scope="module")
def tencent() -> Iterator[TrailRig]:
    yield from opened("tencent")


def refusal(rig: TrailRig, **parameters: Any) -> str:
    with pytest.raises(ProviderError) as caught:
        rig.question(**parameters)
    return caught.value.code


def by(key: str, value: str) -> list[dict[str, str]]:
    return [{"AttributeKey": key, "AttributeValue": value}]


def seconds(**moments: Any) -> dict[str, Any]:
    return {name: int(moment.timestamp()) for name, moment in moments.items()}


def test_moto_still_has_no_event_history() -> None:
    """Where this fails, moto has closed the gap, and `cloudstand/aws/compute/trail.py` may go."""
    assert not hasattr(moto.cloudtrail.responses.CloudTrailResponse, "lookup_events")


def test_cloudtrail_pages_with_a_token_that_is_bound_to_its_question(aws: TrailRig) -> None:
    launches = by("EventName", "RunInstances")
    first = aws.question(LookupAttributes=launches, MaxResults=2)
    second = aws.question(LookupAttributes=launches, MaxResults=2, NextToken=first["NextToken"])

    assert [len(first["Events"]), len(second["Events"])] == [2, 2]
    assert len({event["EventId"] for event in (*first["Events"], *second["Events"])}) == 4
    assert refusal(aws, MaxResults=2, NextToken=first["NextToken"]) == "InvalidNextTokenException"


def test_cloudtrail_refuses_what_its_reference_refuses(aws: TrailRig) -> None:
    two = [*by("EventName", "RunInstances"), *by("ReadOnly", "false")]

    assert refusal(aws, LookupAttributes=two) == "InvalidLookupAttributesException"
    assert refusal(aws, MaxResults=51) == "InvalidMaxResultsException"
    assert refusal(aws, StartTime=START, EndTime=START - MINUTE) == "InvalidTimeRangeException"


def test_cloudtrail_keeps_the_events_of_a_region_and_of_the_time_asked_for(aws: TrailRig) -> None:
    assert aws.question(EndTime=MADE - MINUTE)["Events"] == []
    assert aws.question(StartTime=MADE - MINUTE, EndTime=MADE + MINUTE)["Events"]
    assert aws.question(region="eu-west-1")["Events"] == []


def test_actiontrail_ends_without_a_token_and_goes_either_way(alibaba: TrailRig) -> None:
    pages: list[list[str]] = []
    token: dict[str, Any] = {}
    while True:
        answer = alibaba.question(MaxResults=2, Direction="FORWARD", **token)
        pages.append([event["eventId"] for event in answer["Events"]])
        if "NextToken" not in answer:
            break
        token = {"NextToken": answer["NextToken"]}
    back = [event["eventId"] for event in alibaba.question(MaxResults=50)["Events"]]

    assert [each for page in pages for each in page] == back[::-1]
    assert len(pages) > 1


def test_actiontrail_refuses_times_of_another_form_and_before_it_remembers(alibaba: TrailRig) -> None:
    old = (START - REMEMBERS - timedelta(days=1)).strftime("%Y-%m-%dT%H:%M:%SZ")

    assert refusal(alibaba, StartTime="2026-03-02 09:00:00") == "InvalidParameter"
    assert refusal(alibaba, StartTime=old) == "InvalidParameter"
    assert refusal(alibaba, MaxResults=51) == "InvalidParameter"
    assert refusal(alibaba, LookupAttribute=[{"Key": "User", "Value": "x"}]) == "Emulator.NotModelled"


def test_actiontrail_holds_both_of_two_conditions(alibaba: TrailRig) -> None:
    def found(name: str) -> int:
        named = [{"Key": "ResourceName", "Value": alibaba.ids[USER]}, {"Key": "EventName", "Value": name}]
        return len(alibaba.question(LookupAttribute=named)["Events"])

    assert (found("RunInstances"), found("StopInstances")) == (1, 0)


def test_cloudaudit_pages_until_the_list_is_over(tencent: TrailRig) -> None:
    asked = {**seconds(StartTime=MADE - MINUTE, EndTime=START), "MaxResults": 2}
    first = tencent.question(**asked)
    second = tencent.question(**asked, NextToken=first["NextToken"])

    assert (first["ListOver"], second["ListOver"]) == (False, True)
    assert len({event["EventId"] for event in (*first["Events"], *second["Events"])}) == 4


def test_cloudaudit_refuses_what_its_page_refuses(tencent: TrailRig) -> None:
    month = timedelta(days=30)
    asked = seconds(StartTime=START - MINUTE, EndTime=START)

    assert refusal(tencent, **seconds(StartTime=START - month, EndTime=START)) == "InvalidParameter.Time"
    assert (
        refusal(tencent, **seconds(StartTime=START - 4 * month, EndTime=START - 3.5 * month)) == "InvalidParameter.Time"
    )
    assert refusal(tencent, **seconds(StartTime=START, EndTime=START - MINUTE)) == "InvalidParameterValue.Time"
    assert refusal(tencent, **asked, MaxResults=51) == "InvalidParameterValue.MaxResult"
    assert refusal(tencent, **asked, LookupAttributes=by("Whoever", "x")) == "InvalidParameterValue.attributeKey"
    assert refusal(tencent, **asked, NextToken=7) == "InvalidParameter"


def test_a_launch_is_not_found_by_the_machine_on_tencent(tencent: TrailRig) -> None:
    """It was permitted for `instance/*`: the id stands in its answer only."""
    named = by("ResourceName", f"instance/{tencent.ids[USER]}")

    assert tencent.question(**seconds(StartTime=MADE - MINUTE, EndTime=START), LookupAttributes=named)["Events"] == []


def test_a_worlds_trail_forgets_after_ninety_days_and_tells_who_did_what() -> None:
    clock = MovedClock(START)
    machine = aws_machine("box", "g5.xlarge", does.idle(), MADE, launched_by="user/vision-lead")
    world = World([machine], START)
    world.stop(machine.native_id, "costguard")
    trail, inventory = WorldAuditLog(world, clock), WorldInventory(world, clock)
    (seen,) = inventory.read(to_product(machine.shard)).instances

    told = trail_of(world, "aws", machine.account)
    assert [(event.what, event.by) for event in told] == [
        ("stop", "role/costguard/costguard"),
        ("launch", "user/vision-lead"),
    ]
    assert trail.launches([seen]).launches[seen.ref].by == "user/vision-lead"
    clock.advance(REMEMBERS)
    assert trail.launches([seen]).launches == {}
