"""ActionTrail: what was done in a region of an account, as the vendor tells it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from cloudstand.alibaba.core.errors import invalid, not_modelled
from cloudstand.alibaba.core.paging import place_of, token_of
from cloudstand.alibaba.core.site import ApiCall
from cloudstand.alibaba.core.times import second
from cloudstand.world.cloud import World
from cloudstand.world.places import Place
from cloudstand.world.records import TrailLook
from cloudstand.world.trail import LAUNCH, REMEMBERS, TrailEvent, looks_at, trail_of

_USUAL = 20
_USUAL_SPAN = timedelta(days=7)
_NAMES = {LAUNCH: "RunInstances", "stop": "StopInstances", "start": "StartInstances", "terminate": "DeleteInstances"}


def lookup_events(call: ApiCall, world: World) -> Mapping[str, Any]:
    """LookupEvents, by token; the last page has none.

    Raises:
        ApiError: no time, one that nothing is kept of, or a condition that is not modelled.
    """
    since = _moment(call, "StartTime", world.now - _USUAL_SPAN)
    until = _moment(call, "EndTime", world.now)
    if since > until:
        raise invalid("StartTime", "It is after EndTime.")
    if since < world.now - REMEMBERS - timedelta(minutes=1):
        raise invalid("StartTime", "Events are kept for 90 days.")
    if _about_looks(call):
        looks = looks_at(world, call.site.cloud, call.account, call.region)
        events = [_look(call, look) for look in looks if since <= look.at <= until]
    else:
        events = [
            _event(call, event)
            for event in trail_of(world, call.site.cloud, call.account)
            if event.machine.spec.region == call.region and since <= event.at <= until and _meant(call, event)
        ]
    here = Place(call.site.cloud, call.account, call.region)
    world.looks.append(TrailLook(world.now, here, call.caller.session, call.agent))
    if call.asked.text("Direction") == "FORWARD":
        events.reverse()
    start = place_of(call.action, call.asked.text("NextToken")) if call.asked.text("NextToken") else 0
    size = min(call.asked.whole("MaxResults") or _USUAL, call.site.trail.page)
    end = start + size
    return {
        "StartTime": second(since),
        "EndTime": second(until),
        "Events": events[start:end],
        **({"NextToken": token_of(call.action, end)} if end < len(events) else {}),
    }


def _moment(call: ApiCall, name: str, usual: datetime) -> datetime:
    written = call.asked.text(name)
    if not written:
        return usual
    try:
        return datetime.strptime(written.replace("Z", "+0000"), "%Y-%m-%dT%H:%M:%S%z")
    except ValueError as err:
        raise invalid(name, "Expected YYYY-MM-DDThh:mm:ssZ.") from err


def _meant(call: ApiCall, event: TrailEvent) -> bool:
    told = {
        "ServiceName": "Ecs",
        "EventName": _NAMES[event.what],
        "EventId": event.event_id,
        "ResourceType": "ACS::ECS::Instance",
        "ResourceName": event.machine.native_id,
        "EventRW": "Write",
    }
    for condition in call.asked.groups("LookupAttribute"):
        if condition.get("Key") not in told:
            raise not_modelled("the condition", str(condition.get("Key")))
        if told[str(condition["Key"])] != condition.get("Value"):
            return False
    return True


def _event(call: ApiCall, event: TrailEvent) -> dict[str, Any]:
    native_id = event.machine.native_id
    made = {"InstanceIdSets": {"InstanceIdSet": [native_id]}} if event.what == LAUNCH else {}
    return {
        "eventId": event.event_id,
        "eventVersion": "1",
        "eventName": _NAMES[event.what],
        "eventRW": "Write",
        "eventSource": f"ecs.{call.region}.aliyuncs.com",
        "eventTime": second(event.at),
        "eventType": "ApiCall",
        "serviceName": "Ecs",
        "apiVersion": "2014-05-26",
        "acsRegion": call.region,
        "isGlobal": False,
        "requestId": event.event_id.upper(),
        "requestParameters": {"RegionId": call.region},
        "responseElements": {"RequestId": event.event_id.upper(), **made},
        "referencedResources": {"ACS::ECS::Instance": [native_id]},
        "sourceIpAddress": "192.0.2.7",
        "userAgent": "AlibabaCloud",
        "errorCode": "",
        "errorMessage": "",
        "userIdentity": _identity(call, event),
    }


def _about_looks(call: ApiCall) -> bool:
    (condition, *more) = call.asked.groups("LookupAttribute") or [{}]
    return not more and (condition.get("Key"), condition.get("Value")) == ("EventName", "LookupEvents")


def _look(call: ApiCall, look: TrailLook) -> dict[str, Any]:
    """As in "Query ActionTrail events by assuming a RAM role"."""
    who = {"type": "ram-user", "principalId": "288153348682784898", "accountId": call.account, "userName": "guard"}
    if look.session:
        principal = f"343597926003930001:{look.session}"
        who |= {"type": "assumed-role", "principalId": principal, "userName": f"costguard:{look.session}"}
    return {
        "eventId": look.event_id,
        "eventVersion": "1",
        "eventName": "LookupEvents",
        "eventRW": "Read",
        "eventSource": f"actiontrail.{call.region}.aliyuncs.com",
        "eventTime": second(look.at),
        "eventType": "ApiCall",
        "serviceName": "Actiontrail",
        "apiVersion": "2020-07-06",
        "acsRegion": call.region,
        "userAgent": look.agent,
        "errorCode": "",
        "userIdentity": who,
    }


def _identity(call: ApiCall, event: TrailEvent) -> dict[str, Any]:
    kind, _, rest = event.by.partition("/")
    session = {"sessionContext": {"attributes": {"mfaAuthenticated": "false", "creationDate": second(event.at)}}}
    if kind == "root":
        return {"type": "root-account", "principalId": call.account, "accountId": call.account, "userName": "root"}
    if kind == "user":
        return {"type": "ram-user", "principalId": "288153348682784898", "accountId": call.account, "userName": rest}
    name = rest.replace("/", ":") if kind == "role" else f"{rest}:{call.account}"
    principal = f"343597926003930001:{name.partition(':')[2]}"
    role = {"type": "assumed-role", "principalId": principal, "accountId": call.account, "userName": name}
    return {**role, **session}
