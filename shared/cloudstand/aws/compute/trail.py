"""CloudTrail's event history over a world: moto has trails, and no events to look up."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any

from cloudstand.aws.core.questions import RefusedQuestionError
from cloudstand.world.cloud import World
from cloudstand.world.places import Place
from cloudstand.world.records import Operation, TrailLook
from cloudstand.world.trail import LAUNCH, TrailDesk, TrailEvent, looks_at, trail_of

_PARTITIONS = ("aws", "aws-cn", "aws-us-gov")
_MOST = 50
_NAMES = {LAUNCH: "RunInstances", "stop": "StopInstances", "start": "StartInstances", "terminate": "TerminateInstances"}
_KEYS = frozenset({"EventId", "EventName", "ReadOnly", "Username", "ResourceType", "ResourceName", "EventSource"})


class CloudTrail:
    """The event history of every account and region."""

    service = "cloudtrail"

    def __init__(self, world: World) -> None:
        self._world = world
        self.desk = TrailDesk()

    def answer(
        self, action: str, account: str, region: str, request: Mapping[str, Any], agent: str = ""
    ) -> dict[str, Any]:
        """Answer one request of `account`, and record it as the user agent's.

        Raises:
            RefusedQuestionError: as CloudTrail would.
        """
        if action != "LookupEvents":
            raise RefusedQuestionError("UnknownOperationException", f"The sandbox has no {action}.")
        if not self._world.may("aws", account, Operation.TRAIL):
            caller = f"arn:aws:sts::{account}:assumed-role/costguard/costguard"
            message = f"User: {caller} is not authorized to perform: cloudtrail:LookupEvents because no identity-based"
            raise RefusedQuestionError("AccessDeniedException", f"{message} policy allows it")
        found = self._looks(account, region, request) if _about_looks(request) else self._acts(account, region, request)
        self._world.looks.append(TrailLook(self._world.now, Place(self._cloud(region), account, region), agent=agent))
        most = request.get("MaxResults", _MOST)
        if isinstance(most, bool) or not isinstance(most, int) or not 1 <= most <= _MOST:
            raise RefusedQuestionError("InvalidMaxResultsException", "MaxResults must be between 1 and 50.")
        start = _place(request.get("NextToken"), request)
        end = start + min(most, self.desk.page)
        answer: dict[str, Any] = {"Events": found[start:end]}
        return {**answer, "NextToken": f"{end}/{_said(request)}"} if end < len(found) else answer

    def _looks(self, account: str, region: str, request: Mapping[str, Any]) -> list[dict[str, Any]]:
        looks = looks_at(self._world, self._cloud(region), account, region)
        return [_look(look) for look in looks if _in_time(look.at, request)]

    def _cloud(self, region: str) -> str:
        return "aws-cn" if region.startswith("cn-") else "aws-us-gov" if region.startswith("us-gov-") else "aws"

    def _acts(self, account: str, region: str, request: Mapping[str, Any]) -> list[dict[str, Any]]:
        return [_event(event) for event in self._events(account, region) if _asked_for(event, request)]

    def _events(self, account: str, region: str) -> list[TrailEvent]:
        clouds = (trail_of(self._world, cloud, account) for cloud in _PARTITIONS)
        return [event for events in clouds for event in events if event.machine.spec.region == region]


def _about_looks(request: Mapping[str, Any]) -> bool:
    return request.get("LookupAttributes") == [{"AttributeKey": "EventName", "AttributeValue": "LookupEvents"}]


def _in_time(at: datetime, request: Mapping[str, Any]) -> bool:
    since, until = (request.get(name) for name in ("StartTime", "EndTime"))
    if since is not None and until is not None and since > until:
        raise RefusedQuestionError("InvalidTimeRangeException", "The start time is after the end time.")
    if since is not None and at.timestamp() < since:
        return False
    return until is None or at.timestamp() <= until


def _asked_for(event: TrailEvent, request: Mapping[str, Any]) -> bool:
    if not _in_time(event.at, request):
        return False
    attributes = request.get("LookupAttributes", [])
    if len(attributes) > 1 or any(each.get("AttributeKey") not in _KEYS for each in attributes):
        raise RefusedQuestionError("InvalidLookupAttributesException", "The lookup attribute is not valid.")
    told = {
        "EventId": {event.event_id},
        "EventName": {_NAMES[event.what]},
        "ReadOnly": {"false"},
        "Username": {event.by.rpartition("/")[2]},
        "ResourceType": {"AWS::EC2::Instance"},
        "ResourceName": {event.machine.native_id},
        "EventSource": {"ec2.amazonaws.com"},
    }
    return all(each.get("AttributeValue") in told[each["AttributeKey"]] for each in attributes)


def _event(event: TrailEvent) -> dict[str, Any]:
    name, native_id = _NAMES[event.what], event.machine.native_id
    told = {
        "eventVersion": "1.09",
        "userIdentity": _identity(event),
        "eventTime": event.at.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "eventSource": "ec2.amazonaws.com",
        "eventName": name,
        "awsRegion": event.machine.spec.region,
        "sourceIPAddress": "192.0.2.7",
        "userAgent": "aws-cli/2.17.0",
        "requestParameters": {"instancesSet": {"items": [{"minCount": 1, "maxCount": 1}]}},
        "responseElements": {"instancesSet": {"items": [{"instanceId": native_id}]}},
        "eventID": event.event_id,
        "readOnly": False,
        "eventType": "AwsApiCall",
        "managementEvent": True,
        "recipientAccountId": event.machine.spec.account,
        "eventCategory": "Management",
    }
    others = [("AWS::EC2::Subnet", "subnet-0a1b2c3d"), ("AWS::EC2::Ami", "ami-12345678")]
    about = [("AWS::EC2::Instance", native_id), *(others if event.what == LAUNCH else [])]
    return {
        "EventId": event.event_id,
        "EventName": name,
        "ReadOnly": "false",
        "EventTime": event.at.replace(microsecond=0).timestamp(),
        "EventSource": "ec2.amazonaws.com",
        "Username": event.by.rpartition("/")[2],
        "Resources": [{"ResourceType": kind, "ResourceName": each} for kind, each in about],
        "CloudTrailEvent": json.dumps(told),
    }


def _look(look: TrailLook) -> dict[str, Any]:
    """As CloudTrail records its own LookupEvents: by whom is in the event, and nothing in `Resources`."""
    account = look.shard.account
    told = {
        "eventVersion": "1.09",
        "userIdentity": {"type": "IAMUser", "arn": f"arn:aws:iam::{account}:user/guard", "userName": "guard"},
        "eventTime": look.at.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "eventSource": "cloudtrail.amazonaws.com",
        "eventName": "LookupEvents",
        "awsRegion": look.shard.region,
        "userAgent": look.agent,
        "readOnly": True,
        "eventID": look.event_id,
        "eventType": "AwsApiCall",
        "managementEvent": True,
        "recipientAccountId": account,
        "eventCategory": "Management",
    }
    return {
        "EventId": look.event_id,
        "EventName": "LookupEvents",
        "ReadOnly": "true",
        "EventTime": look.at.replace(microsecond=0).timestamp(),
        "EventSource": "cloudtrail.amazonaws.com",
        "Username": "guard",
        "Resources": [],
        "CloudTrailEvent": json.dumps(told),
    }


def _identity(event: TrailEvent) -> dict[str, Any]:
    account = event.machine.spec.account
    kind, _, rest = event.by.partition("/")
    if kind == "root":
        root = {"type": "Root", "principalId": account, "arn": f"arn:aws:iam::{account}:root"}
        return {**root, "accountId": account}
    if kind == "user":
        arn = f"arn:aws:iam::{account}:user/{rest}"
        return {"type": "IAMUser", "principalId": "AIDAEXAMPLE", "arn": arn, "accountId": account, "userName": rest}
    if kind == "service":
        role, session = "AWSServiceRoleForAutoScaling", "AutoScaling"
    else:
        role, _, session = rest.partition("/")
    path = "aws-service-role/" + rest + "/" if kind == "service" else ""
    issuer = f"arn:aws:iam::{account}:role/{path}{role}"
    return {
        "type": "AssumedRole",
        "principalId": f"AROAEXAMPLE:{session}",
        "arn": f"arn:aws:sts::{account}:assumed-role/{role}/{session}",
        "accountId": account,
        "sessionContext": {
            "sessionIssuer": {"type": "Role", "arn": issuer, "accountId": account, "userName": role},
            "attributes": {"creationDate": datetime.isoformat(event.at), "mfaAuthenticated": "false"},
        },
        **({"invokedBy": rest} if kind == "service" else {}),
    }


def _said(request: Mapping[str, Any]) -> str:
    """What a token is bound to: CloudTrail refuses one that comes with other parameters."""
    return json.dumps({key: value for key, value in request.items() if key != "NextToken"}, sort_keys=True)


def _place(token: Any, request: Mapping[str, Any]) -> int:
    if token is None:
        return 0
    place, _, said = str(token).partition("/")
    if not place.isdigit() or said != _said(request):
        raise RefusedQuestionError("InvalidNextTokenException", "The token is invalid, or of another question.")
    return int(place)
