"""What is made of a trail's events: a launcher, nothing, or an answer that is not believed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.builders import NOW, instance

from costguard.domain.errors import ProviderError, TruncatedReadError, UnavailableError
from costguard.domain.resources import Launch
from costguard.providers.alibaba.compute import audit_log as alibaba
from costguard.providers.aws.compute import audit_log as aws
from costguard.providers.aws.core import errors
from costguard.providers.kit.compute import audit_log as launching
from costguard.providers.tencent.compute import audit_log as tencent

AT = datetime(2026, 3, 2, 9, 0, 30, tzinfo=timezone.utc)
MADE = "i-0123456789abcdef0"
_ACCOUNT = "111122223333"


def on_aws(identity: Mapping[str, Any], *, told: Mapping[str, Any] | None = None, **more: Any) -> Launch | None:
    inner = {"eventName": "RunInstances", "userIdentity": dict(identity), **(told or {})}
    event = {
        "EventId": "e-1",
        "EventName": "RunInstances",
        "EventSource": "ec2.amazonaws.com",
        "EventTime": AT,
        "Resources": [{"ResourceName": MADE}, {"ResourceName": "subnet-1"}],
        "CloudTrailEvent": json.dumps(inner),
        **more,
    }
    return aws.launch_in(event, MADE)


def on_alibaba(identity: Mapping[str, Any], **more: Any) -> Launch | None:
    event = {
        "eventId": "e-1",
        "eventName": "RunInstances",
        "serviceName": "Ecs",
        "eventTime": "2026-03-02T09:00:30Z",
        "referencedResources": {"ACS::ECS::Instance": [MADE]},
        "userIdentity": dict(identity),
        **more,
    }
    return alibaba.launch_in(event, MADE)


def on_tencent(identity: Mapping[str, Any], *, told: Mapping[str, Any] | None = None, **more: Any) -> Launch | None:
    answer = json.dumps({"InstanceIdSet": [MADE], "RequestId": "r-1"})
    inner = {"userIdentity": dict(identity), "errorCode": "0", "apiErrorCode": 0, "responseElements": answer}
    event = {
        "EventId": "e-1",
        "EventName": "RunInstances",
        "EventTime": str(int(AT.timestamp())),
        "Resources": {"ResourceName": "instance/*", "ResourceType": "cvm"},
        "CloudAuditEvent": json.dumps({**inner, **(told or {})}),
        **more,
    }
    return tencent.launch_in(event, MADE)


ASSUMED = f"arn:aws:sts::{_ACCOUNT}:assumed-role"
SCALING = "AWSServiceRoleForAutoScaling"


@pytest.mark.parametrize(
    ("identity", "by"),
    [
        ({"type": "IAMUser", "userName": "vision"}, "user/vision"),
        ({"type": "IAMUser", "userName": "vision", "invokedBy": "cloudformation.amazonaws.com"}, "user/vision"),
        ({"type": "AssumedRole", "arn": f"{ASSUMED}/train/lead@example.com"}, "role/train/lead@example.com"),
        ({"type": "AssumedRole", "arn": f"{ASSUMED}/{SCALING}/AutoScaling"}, f"service/{SCALING}"),
        (
            {
                "type": "AssumedRole",
                "arn": f"{ASSUMED}/{SCALING}/AutoScaling",
                "invokedBy": "autoscaling.amazonaws.com",
            },
            "service/autoscaling.amazonaws.com",
        ),
        ({"type": "AWSService", "invokedBy": "spot.amazonaws.com"}, "service/spot.amazonaws.com"),
        ({"type": "Root"}, "root"),
        ({"type": "Root", "invokedBy": "signin.amazonaws.com"}, "root"),
        ({"type": "Root", "invokedBy": "autoscaling.amazonaws.com"}, "service/autoscaling.amazonaws.com"),
        ({"type": "FederatedUser", "arn": f"arn:aws:sts::{_ACCOUNT}:federated-user/vision"}, "federated/vision"),
        ({"type": "IdentityCenterUser", "onBehalfOf": {"userId": "94482488-3041"}}, "user/94482488-3041"),
        ({"type": "AWSAccount", "accountId": "444455556666"}, "account/444455556666"),
    ],
)
def test_every_documented_kind_of_caller_on_aws_has_a_name(identity: Mapping[str, Any], by: str) -> None:
    assert on_aws(identity) == Launch(by, AT, "e-1")


@pytest.mark.parametrize(
    ("identity", "by"),
    [
        ({"type": "ram-user", "userName": "vision"}, "user/vision"),
        ({"type": "assumed-role", "userName": "train:lead@example.com"}, "role/train/lead@example.com"),
        ({"type": "assumed-role", "userName": "train"}, "role/train"),
        ({"type": "assumed-role", "userName": "AliyunESSDefaultRole:1234"}, "service/AliyunESSDefaultRole"),
        (
            {"type": "assumed-role", "userName": "aliyunserviceroleforautoscaling:ess"},
            "service/aliyunserviceroleforautoscaling",
        ),
        ({"type": "root-account", "userName": "root"}, "root"),
        ({"type": "system", "userName": "ess"}, "service/ess"),
    ],
)
def test_every_documented_kind_of_caller_on_alibaba_has_a_name(identity: Mapping[str, Any], by: str) -> None:
    assert on_alibaba(identity) == Launch(by, AT, "e-1")


def test_an_event_of_a_service_itself_is_no_persons_on_alibaba() -> None:
    told = on_alibaba({"type": "assumed-role", "userName": "eci:x"}, eventType="AliyunServiceEvent")

    assert told is not None
    assert told.by == "service/eci"


@pytest.mark.parametrize(
    ("identity", "by"),
    [
        ({"type": "CAMUser", "userName": "vision", "principalId": "100015596048"}, "user/vision"),
        ({"type": "CAMUser", "userName": "", "principalId": "100015596048"}, "user/100015596048"),
        ({"type": "Root", "userName": "root"}, "root"),
        (
            {"type": "CAMRole", "userName": "train", "principalId": "4611:lead@example.com"},
            "role/train/lead@example.com",
        ),
        ({"type": "CAMRole", "userName": "train", "principalId": "4611"}, "role/train"),
        ({"type": "CAMRole", "userName": "roleUser", "principalId": "4611"}, "role/4611"),
        ({"type": "CAMRole", "userName": "AS_QCSLinkedRoleInCvm"}, "service/AS_QCSLinkedRoleInCvm"),
        ({"type": "CAMRole", "userName": "TKE_QCSRole"}, "service/TKE_QCSRole"),
    ],
)
def test_every_known_kind_of_caller_on_tencent_has_a_name(identity: Mapping[str, Any], by: str) -> None:
    assert on_tencent(identity) == Launch(by, AT, "e-1")


PERSON = {"type": "IAMUser", "userName": "vision"}
RAM = {"type": "ram-user", "userName": "vision"}
CAM = {"type": "CAMUser", "userName": "vision"}


def test_a_call_that_failed_launched_nothing() -> None:
    assert on_aws(PERSON, told={"errorCode": "Client.InsufficientInstanceCapacity"}) is None
    assert on_alibaba(RAM, errorCode="OperationDenied.NoStock") is None
    assert on_tencent(CAM, told={"apiErrorCode": "ResourceInsufficient.SpecifiedInstanceType"}) is None
    assert on_tencent(CAM, told={"errorCode": 4, "apiErrorCode": ""}) is None


def test_what_else_was_done_to_it_is_no_launch() -> None:
    assert on_aws(PERSON, EventName="StartInstances") is None
    assert on_aws(PERSON, EventSource="lightsail.amazonaws.com") is None
    assert on_alibaba(RAM, eventName="StartInstances") is None
    assert on_alibaba(RAM, serviceName="Eci") is None
    assert on_tencent(CAM, EventName="StartInstances") is None


def test_a_launch_of_other_machines_in_the_same_minute_is_no_launch_of_this_one() -> None:
    """CloudAudit finds every launch of those minutes, whoever's."""
    others = json.dumps({"InstanceIdSet": ["ins-other"]})

    assert on_tencent(CAM, told={"responseElements": others}) is None
    assert on_tencent(CAM, told={"responseElements": ""}) is None
    assert (
        on_tencent(CAM, told={"responseElements": ""}, Resources={"ResourceName": f"instance/{MADE}|x/1"}) is not None
    )


@pytest.mark.parametrize(
    "identity",
    [
        {},
        {"type": "IAMUser"},
        {"type": "IAMUser", "userName": ["vision"]},
        {"type": "IAMUser", "userName": "a/b"},
        {"type": "IAMUser", "userName": "vision\n@channel"},
        {"type": "IAMUser", "userName": "x" * 300},
        {"type": "AssumedRole", "arn": f"{ASSUMED}/train"},
        {"type": "AssumedRole", "arn": f"arn:aws:iam::{_ACCOUNT}:role/train/x"},
        {"type": "AssumedRole"},
        {"type": "AWSService"},
        {"type": "SomethingNew", "userName": "vision"},
    ],
)
def test_an_identity_of_another_form_names_nobody_on_aws(identity: Mapping[str, Any]) -> None:
    with pytest.raises((ValueError, TypeError)):
        on_aws(identity)


@pytest.mark.parametrize(
    "identity",
    [{}, {"type": "ram-user"}, {"type": "ram-user", "userName": None}, {"type": "assumed-role", "userName": "train:"}],
)
def test_an_identity_of_another_form_names_nobody_on_alibaba(identity: Mapping[str, Any]) -> None:
    with pytest.raises((ValueError, TypeError)):
        on_alibaba(identity)


@pytest.mark.parametrize("identity", [{}, {"type": "CAMUser"}, {"type": "CAMUser", "userName": 7}, {"type": "CAMRole"}])
def test_an_identity_of_another_form_names_nobody_on_tencent(identity: Mapping[str, Any]) -> None:
    with pytest.raises((ValueError, TypeError)):
        on_tencent(identity)


@pytest.mark.parametrize(
    "wrong",
    [
        {"Resources": []},
        {"Resources": [{"ResourceName": "i-other"}]},
        {"CloudTrailEvent": "[]"},
        {"CloudTrailEvent": "{"},
        {"EventTime": None},
        {"EventId": ""},
        {"EventName": None},
    ],
)
def test_an_event_of_another_form_is_not_believed_on_aws(wrong: Mapping[str, Any]) -> None:
    with pytest.raises((ValueError, TypeError)):
        on_aws(PERSON, **wrong)


@pytest.mark.parametrize(
    "wrong",
    [
        {"referencedResources": {}},
        {"referencedResources": {"ACS::ECS::Instance": MADE}},
        {"referencedResources": {"ACS::ECS::Instance": [7]}},
        {"eventTime": "yesterday"},
        {"eventId": ""},
        {"userIdentity": "vision"},
    ],
)
def test_an_event_of_another_form_is_not_believed_on_alibaba(wrong: Mapping[str, Any]) -> None:
    with pytest.raises((ValueError, TypeError)):
        on_alibaba(RAM, **wrong)


@pytest.mark.parametrize(
    "wrong",
    [
        {"EventTime": "2026-03-02 09:00:30"},
        {"EventTime": 1772442030},
        {"EventId": ""},
        {"CloudAuditEvent": "[]"},
        {"Resources": "instance"},
    ],
)
def test_an_event_of_another_form_is_not_believed_on_tencent(wrong: Mapping[str, Any]) -> None:
    with pytest.raises((ValueError, TypeError)):
        on_tencent(CAM, **wrong)


def test_the_id_of_what_was_made_may_stand_in_the_answer_alone_on_alibaba() -> None:
    made = {"responseElements": {"InstanceIdSets": {"InstanceIdSet": [MADE]}}, "referencedResources": {}}
    created = {"responseElements": {"InstanceId": MADE}, "referencedResources": {}, "eventName": "CreateInstance"}

    assert on_alibaba(RAM, **made) is not None
    assert on_alibaba(RAM, **created) is not None


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.just(MADE),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=4,
)
WHOLE: Mapping[str, tuple[Any, Mapping[str, Any]]] = {
    "aws": (
        aws.launch_in,
        {
            "EventId": "e-1",
            "EventName": "RunInstances",
            "EventSource": "ec2.amazonaws.com",
            "EventTime": AT,
            "Resources": [{"ResourceName": MADE}],
            "CloudTrailEvent": json.dumps({"userIdentity": PERSON}),
        },
    ),
    "alibaba": (
        alibaba.launch_in,
        {
            "eventId": "e-1",
            "eventName": "RunInstances",
            "serviceName": "Ecs",
            "eventTime": "2026-03-02T09:00:30Z",
            "referencedResources": {"ACS::ECS::Instance": [MADE]},
            "responseElements": {"InstanceIdSets": {"InstanceIdSet": [MADE]}},
            "userIdentity": RAM,
        },
    ),
    "tencent": (
        tencent.launch_in,
        {
            "EventId": "e-1",
            "EventName": "RunInstances",
            "EventTime": str(int(AT.timestamp())),
            "Resources": {"ResourceName": f"instance/{MADE}"},
            "CloudAuditEvent": json.dumps({"userIdentity": CAM}),
        },
    ),
}


@pytest.mark.parametrize("provider", sorted(WHOLE))
@given(data=st.data())
@settings(max_examples=60)
def test_whatever_stands_in_a_field_somebody_is_named_nobody_or_it_is_an_error_of_ours(
    provider: str, data: st.DataObject
) -> None:
    launch_in, whole = WHOLE[provider]
    key = data.draw(st.sampled_from(sorted(whole)))
    value = data.draw(ANYTHING | ANYTHING.map(json.dumps))

    try:
        found = launching.launch_among([{**whole, key: value}], "x:y", launch_in, MADE)
    except ProviderError:
        return
    assert found is None or (found.by == "user/vision" and found.event_id)


def test_two_who_both_launched_one_machine_are_not_believed() -> None:
    def launch_in(event: Mapping[str, Any], native_id: str) -> Launch:
        return Launch(str(event["by"]), AT, native_id)

    alike = launching.launch_among([{"by": "user/a"}, {"by": "user/a"}], "x:y", launch_in, MADE)

    assert alike == Launch("user/a", AT, MADE)
    with pytest.raises(ProviderError):
        launching.launch_among([{"by": "user/a"}, {"by": "user/b"}], "x:y", launch_in, MADE)


def test_a_trail_of_endless_pages_is_given_up() -> None:
    pages = ([{"EventName": "StopInstances"}] for _ in iter(int, 1))

    with pytest.raises(TruncatedReadError):
        list(launching.events_of(pages, "x:y"))


@pytest.mark.parametrize(
    ("made", "since", "until"),
    [
        (NOW - timedelta(days=5), timedelta(days=-5, minutes=-15), timedelta(days=-5, minutes=15)),
        (NOW - timedelta(minutes=5), timedelta(minutes=-20), timedelta(0)),
        (NOW - timedelta(days=90), timedelta(days=-90, minutes=5), timedelta(days=-90, minutes=15)),
    ],
)
def test_a_launch_is_looked_for_around_the_making_and_never_before_what_is_kept(
    made: datetime, since: timedelta, until: timedelta
) -> None:
    assert launching.window_of(instance(created_at=made), NOW) == launching.Window(NOW + since, NOW + until)


@pytest.mark.parametrize("made", [None, NOW - timedelta(days=90, minutes=11), NOW + timedelta(minutes=1)])
def test_nothing_is_asked_where_no_trail_could_tell(made: datetime | None) -> None:
    assert launching.window_of(instance(created_at=made), NOW) is None


def test_one_answer_that_fails_leaves_the_others_their_own() -> None:
    machines = [instance(f"i-{number}", created_at=NOW - timedelta(days=1)) for number in range(3)]

    def ask(one: Any, _: launching.Window) -> Launch | None:
        if one.ref.native_id == "i-1":
            raise UnavailableError("down", operation="x:y", code="Down")
        return Launch("user/a", AT, one.ref.native_id)

    report = launching.looked_up(machines, NOW, ask, errors.gap)

    assert {ref.native_id for ref in report.launches} == {"i-0", "i-2"}
    assert [gap.detail for gap in report.gaps] == ["down (1 of 3 machines: i-1)"]
    assert replace(report.gaps[0], detail="").what == "launches"
