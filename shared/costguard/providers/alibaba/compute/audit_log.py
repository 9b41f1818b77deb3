"""Who launched an ECS instance, by ActionTrail.

Permissions: those of `Feature.TRAIL` in permissions.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timezone
from typing import Any

from costguard.domain.refs import Shard
from costguard.domain.resources import Launch
from costguard.providers.alibaba.core import errors
from costguard.providers.alibaba.core.products import items_in, needed_time
from costguard.providers.alibaba.core.session import AlibabaSession
from costguard.providers.kit.compute.audit_log import AuditLog, Window, name_in
from costguard.providers.kit.core.fields import Fields, named, part, text

LOOKUP = "actiontrail:LookupEvents"
_PAGE = 50  # the most it gives
_LAUNCHES = frozenset({"RunInstances", "CreateInstance"})
_ECS, _BY_SERVICE = "ecs", "AliyunServiceEvent"
_SERVICE_ROLE, _DEFAULT_ROLE = "aliyunservicerolefor", ("aliyun", "defaultrole")


class AlibabaAuditLog(AuditLog[AlibabaSession]):
    """For one site of Alibaba Cloud: who called RunInstances or CreateInstance.

    By the id of each instance, around its CreationTime, in its region; two requests a second are let through, and 90
    days are kept. The mark of a deployment is the role session (`userName`: ROLE:SESSION) and the user agent.

    API: ActionTrail LookupEvents in one region, which it records ("Query ActionTrail events by assuming a RAM role"
    shows such an event; "Structure of a management event": userAgent).
    """

    lookup = LOOKUP
    _gap = staticmethod(errors.gap)

    def _pages(self, shard: Shard, key: str, value: str, window: Window) -> Iterator[list[Any]]:
        return self._session.pages(
            shard,
            "actiontrail",
            "LookupEvents",
            "Events",
            LookupAttribute=[{"Key": key, "Value": value}],
            StartTime=_written(window.since),
            EndTime=_written(window.until),
            MaxResults=_PAGE,
        )

    def _launch_in(self, event: Fields, native_id: str) -> Launch | None:
        return launch_in(event, native_id)

    def _asker(self, event: Fields) -> tuple[datetime, str]:
        who = f"{text(part(event, 'userIdentity'), 'userName')} {text(event, 'userAgent')}"
        return needed_time(event, "eventTime"), who


def launch_in(event: Fields, native_id: str) -> Launch | None:
    """The launch of this instance that an event tells of; None where it is about something else, or failed.

    Raises:
        TypeError, ValueError: not as documented, or the event of another instance.
    """
    if named(event, "eventName") not in _LAUNCHES or named(event, "serviceName").lower() != _ECS:
        return None
    if native_id not in _instances_of(event):
        message = "an event of another instance"
        raise ValueError(message)
    if text(event, "errorCode"):
        return None
    by = launcher(part(event, "userIdentity"), by_service=text(event, "eventType") == _BY_SERVICE)
    return Launch(by, needed_time(event, "eventTime"), named(event, "eventId"))


def launcher(identity: Fields, *, by_service: bool = False) -> str:
    """Who that is: `user/…`, `role/NAME/SESSION`, `root`, or `service/…`, which is no person.

    Services launch with roles that Alibaba Cloud names (`AliyunServiceRoleFor…`, `Aliyun…DefaultRole`). `by_service`:
    the event is one of a service's own.

    Raises:
        TypeError, ValueError: not as documented, or of an unknown kind.
    """
    kind, name = named(identity, "type"), text(identity, "userName")
    if kind == "root-account":
        return "root"
    if kind == "system" or by_service:
        return f"service/{name_in(name.partition(':')[0] or text(identity, 'principalId'))}"
    if kind == "ram-user":
        return f"user/{name_in(name)}"
    if kind == "assumed-role":
        role, colon, session = name.partition(":")
        if _of_a_service(role):
            return f"service/{name_in(role)}"
        return f"role/{name_in(role)}/{name_in(session)}" if colon else f"role/{name_in(role)}"
    message = "an identity of an unknown kind"
    raise ValueError(message)


def _of_a_service(role: str) -> bool:
    plain = role.casefold()
    begins, ends = _DEFAULT_ROLE
    return plain.startswith(_SERVICE_ROLE) or (plain.startswith(begins) and plain.endswith(ends))


def _instances_of(event: Fields) -> set[str]:
    """Every id among the resources the event refers to, whatever their kind is called."""
    found: set[str] = set()
    for ids in part(event, "referencedResources").values():
        if not isinstance(ids, list) or not all(isinstance(each, str) for each in ids):
            message = "referencedResources holds no lists of texts"
            raise TypeError(message)
        found.update(ids)
    made = event.get("responseElements")
    if isinstance(made, Mapping):
        found.add(text(made, "InstanceId"))
        found.update(each for each in items_in(made, "InstanceIdSets.InstanceIdSet", LOOKUP) if isinstance(each, str))
    return found


def _written(moment: datetime) -> str:
    return moment.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
