"""CloudAudit: what was done in an account, in every region, as the vendor tells it."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from typing import Any

from cloudstand.tencent.core.asking import Answer, Asked
from cloudstand.tencent.core.errors import ApiError, not_modelled
from cloudstand.world.records import TrailLook
from cloudstand.world.trail import LAUNCH, REMEMBERS, TrailEvent, looks_at, trail_of

_USUAL = 10
_LONGEST = timedelta(days=30)
_FIRST_TOKEN = 16_805_138_109_322_956  # as one was recorded: a number far too large for an offset
_NAMES = {LAUNCH: "RunInstances", "stop": "StopInstances", "start": "StartInstances", "terminate": "TerminateInstances"}


def describe_events(asked: Asked) -> Answer:
    """DescribeEvents: the conditions hold together, and `ListOver` says whether there is more."""
    since, until = (datetime.fromtimestamp(asked.parameters[name], timezone.utc) for name in ("StartTime", "EndTime"))
    if since > until:
        raise ApiError("InvalidParameterValue.Time", "StartTime is after EndTime.", "开始时间不能大于结束时间。")
    if until - since >= _LONGEST or since < asked.now - REMEMBERS - timedelta(minutes=1):
        raise ApiError("InvalidParameter.Time", "less than 30 days of the last 90.", "查询时间跨度小于30天。")
    if {"AttributeKey": "EventName", "AttributeValue": "DescribeEvents"} in asked.get("LookupAttributes", []):
        looks = looks_at(asked.world, asked.settings.cloud, asked.account)
        events = [_look(asked, look) for look in looks if since <= look.at <= until]
    else:
        acts = trail_of(asked.world, asked.settings.cloud, asked.account)
        events = [_event(asked, act) for act in acts if since <= act.at <= until and _meant(asked, act)]
    asked.world.looks.append(TrailLook(asked.now, asked.shard, asked.identity.session, asked.agent))
    start = asked.get("NextToken", _FIRST_TOKEN) - _FIRST_TOKEN
    if not 0 <= start <= len(events):
        raise ApiError("InvalidParameter", "no such token.", "参数错误。")
    end = start + min(asked.get("MaxResults", _USUAL), asked.memory.trail.page)
    return {
        "ListOver": end >= len(events),
        "NextToken": _FIRST_TOKEN + end,
        "Events": events[start:end],
        "TotalCount": 0,  # no longer counted
    }


def _meant(asked: Asked, event: TrailEvent) -> bool:
    told = {"EventName": _NAMES[event.what], "ActionType": "Write", "ResourceType": "cvm"}
    told["ResourceName"] = _resource(event)
    for condition in asked.get("LookupAttributes", []):
        if condition["AttributeKey"] not in told:
            raise not_modelled(condition["AttributeKey"])
        if told[condition["AttributeKey"]] != condition["AttributeValue"]:
            return False
    return True


def _resource(event: TrailEvent) -> str:
    """What the call was permitted for: of a launch no machine yet."""
    return "instance/*" if event.what == LAUNCH else f"instance/{event.machine.native_id}"


def _event(asked: Asked, event: TrailEvent) -> dict[str, Any]:
    spec, name, at = event.machine.spec, _NAMES[event.what], int(event.at.timestamp())
    made = {"InstanceIdSet": [event.machine.native_id]} if event.what == LAUNCH else {}
    identity = _identity(asked, event)
    told = {
        "userIdentity": identity,
        "eventRegion": spec.region,
        "eventVersion": 3,
        "errorCode": "0",
        "errorMessage": "",
        "requestID": event.event_id,
        "eventID": event.event_id,
        "apiVersion": "3.0",
        "eventType": "ApiCall",
        "actionType": "Write",
        "httpMethod": "POST",
        "apiErrorCode": 0,
        "apiErrorMessage": "",
        "userAgent": "SDK_PYTHON_3.0.1459",
        "eventTime": at,
        "sourceIPAddress": "192.0.2.7",
        "resourceType": "cvm",
        "eventName": name,
        "eventSource": "cvm.tencentcloudapi.com",
        "requestParameters": "{}",
        "responseElements": json.dumps({**made, "RequestId": event.event_id}),
        "resources": json.dumps([f"qcs::cvm:{spec.region}:uin/{spec.account}:{_resource(event)}"]),
        "resourceName": _resource(event),
        "resourceSet": [],
        "tags": [],
    }
    return {
        "CloudAuditEvent": json.dumps(told, ensure_ascii=False),
        "EventId": event.event_id,
        "EventName": name,
        "EventNameCn": "创建实例" if event.what == LAUNCH else "",
        "EventTime": str(at),
        "EventSource": "cvm.tencentcloudapi.com",
        "EventRegion": spec.region,
        "ResourceRegion": spec.region,
        "ResourceTypeCn": "云服务器",
        "Resources": {"ResourceName": _resource(event), "ResourceType": "cvm"},
        "Username": identity["userName"],
        "AccountID": int(spec.account),
        "SecretId": "",
        "ErrorCode": 0,
        "RequestID": event.event_id,
        "SourceIPAddress": "192.0.2.7",
        "Location": "",
    }


def _look(asked: Asked, look: TrailLook) -> dict[str, Any]:
    principal = f"4611686018427397919:{look.session}" if look.session else "100015596048"
    kind = "CAMRole" if look.session else "CAMUser"
    told = {
        "userIdentity": {"accountId": asked.account, "principalId": principal, "type": kind, "userName": "guard"},
        "eventRegion": look.shard.region,
        "eventVersion": 3,
        "errorCode": "0",
        "eventID": look.event_id,
        "eventType": "ApiCall",
        "actionType": "Read",
        "userAgent": look.agent,
        "eventTime": int(look.at.timestamp()),
        "eventName": "DescribeEvents",
        "eventSource": "cloudaudit.tencentcloudapi.com",
        "resourceType": "cloudaudit",
    }
    return {
        "CloudAuditEvent": json.dumps(told),
        "EventId": look.event_id,
        "EventName": "DescribeEvents",
        "EventTime": str(int(look.at.timestamp())),
        "EventSource": "cloudaudit.tencentcloudapi.com",
        "EventRegion": look.shard.region,
        "Resources": {"ResourceName": "", "ResourceType": "cloudaudit"},
        "Username": "guard",
        "AccountID": int(asked.account),
        "ErrorCode": 0,
    }


def _identity(asked: Asked, event: TrailEvent) -> dict[str, Any]:
    kind, _, rest = event.by.partition("/")
    told = {"accountId": asked.account, "secretId": "", "sessionContext": ""}
    if kind == "root":
        return {**told, "principalId": asked.account, "type": "Root", "userName": "root"}
    if kind == "user":
        return {**told, "principalId": "100015596048", "type": "CAMUser", "userName": rest}
    role, slash, session = rest.partition("/")
    principal = "4611686018427397919" + (f":{session}" if slash else "")
    return {**told, "principalId": principal, "type": "CAMRole", "userName": role}
