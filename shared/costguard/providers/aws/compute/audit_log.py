"""Who launched an EC2 instance, by CloudTrail's event history.

Permissions: those of `Feature.TRAIL` in permissions.py.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from costguard.domain.refs import Shard
from costguard.domain.resources import Launch
from costguard.providers.aws.core import errors
from costguard.providers.aws.core.session import AwsSession
from costguard.providers.kit.compute.audit_log import AuditLog, Window, name_in
from costguard.providers.kit.core.fields import Fields, moment, named, part, parts, present, text

LOOKUP = "cloudtrail:LookupEvents"
_PAGE = 50  # the most it gives
_RUN, _EC2 = "RunInstances", "ec2.amazonaws.com"
_SERVICE_ROLE = "AWSServiceRoleFor"
_CONSOLE = "signin.amazonaws.com"


class AwsAuditLog(AuditLog[AwsSession]):
    """For one partition of AWS: who called RunInstances.

    By the id of each instance, around the moment its first network interface was attached; two requests a second are
    let through in a region of an account, and 90 days are kept. The mark of a deployment is the role session
    (`arn:aws:sts::…:assumed-role/ROLE/SESSION`) and, where a function has its host's role, whose session Lambda names
    after the function, the user agent.

    API: CloudTrail LookupEvents in one region, which it records like any other management event; an event is there
    after 5 minutes on average ("How CloudTrail works", and "CloudTrail record contents": userAgent, userIdentity).
    """

    lookup = LOOKUP
    _gap = staticmethod(errors.gap)

    def _pages(self, shard: Shard, key: str, value: str, window: Window) -> Iterator[list[Any]]:
        return self._session.pages(
            shard,
            "cloudtrail",
            "LookupEvents",
            "Events",
            LookupAttributes=[{"AttributeKey": key, "AttributeValue": value}],
            StartTime=window.since,
            EndTime=window.until,
            MaxResults=_PAGE,
        )

    def _launch_in(self, event: Fields, native_id: str) -> Launch | None:
        return launch_in(event, native_id)

    def _asker(self, event: Fields) -> tuple[datetime, str]:
        told = _told(event)
        return _at(event), f"{text(part(told, 'userIdentity'), 'arn')} {text(told, 'userAgent')}"


def launch_in(event: Fields, native_id: str) -> Launch | None:
    """The launch of this instance that an event tells of; None where it is about something else, or failed.

    Raises:
        TypeError, ValueError: not as documented, or the event of another instance.
    """
    if named(event, "EventName") != _RUN or named(event, "EventSource") != _EC2:
        return None
    if native_id not in {text(resource, "ResourceName") for resource in parts(event, "Resources")}:
        message = "an event of another instance"
        raise ValueError(message)
    told = _told(event)
    if text(told, "errorCode"):
        return None
    return Launch(launcher(part(told, "userIdentity")), _at(event), named(event, "EventId"))


def _told(event: Fields) -> Fields:
    told = json.loads(named(event, "CloudTrailEvent"))
    if not isinstance(told, dict):
        message = "CloudTrailEvent is no structure"
        raise TypeError(message)
    return told


def _at(event: Fields) -> datetime:
    return present(moment(event, "EventTime"), "EventTime")


def launcher(identity: Fields) -> str:
    """Who that is: `user/…`, `role/NAME/SESSION`, `root`, or `service/…`, which is no person.

    A service that launches in its own name has a role of its own, or none at all; one that was told to by a person
    (CloudFormation, the console) leaves that person's identity here.

    Raises:
        TypeError, ValueError: not as documented, or of a kind that launches nothing.
    """
    kind, invoked_by = named(identity, "type"), text(identity, "invokedBy")
    if kind == "IAMUser":
        return f"user/{name_in(text(identity, 'userName'))}"
    if kind == "AssumedRole":
        role, session = _in_arn(identity, "assumed-role", 2)
        return f"service/{name_in(invoked_by or role)}" if role.startswith(_SERVICE_ROLE) else f"role/{role}/{session}"
    if kind == "FederatedUser":
        return f"federated/{_in_arn(identity, 'federated-user', 1)[0]}"
    if kind == "AWSService":
        return f"service/{name_in(invoked_by)}"
    if kind == "Root":  # so did services before they had roles
        return f"service/{name_in(invoked_by)}" if invoked_by not in ("", _CONSOLE) else "root"
    if kind == "IdentityCenterUser":
        return f"user/{name_in(text(part(identity, 'onBehalfOf'), 'userId'))}"
    if kind == "AWSAccount":
        return f"account/{name_in(text(identity, 'accountId'))}"
    message = "an identity of an unknown kind"
    raise ValueError(message)


def _in_arn(identity: Fields, kind: str, names: int) -> list[str]:
    """The names at the end of `arn:aws:sts::111122223333:assumed-role/NAME/SESSION`."""
    what, *found = named(identity, "arn").split(":", 5)[-1].split("/")
    if what != kind or len(found) != names:
        message = f"an ARN of no {kind}"
        raise ValueError(message)
    return [name_in(name) for name in found]
