"""Who launched a CVM instance, by CloudAudit.

Permissions: those of `Feature.TRAIL` in permissions.py.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import datetime, timezone
from typing import Any

from costguard.domain.refs import Shard
from costguard.domain.resources import Instance, Launch
from costguard.providers.kit.compute.audit_log import AuditLog, Window, name_in
from costguard.providers.kit.core.calls import Calls, by_token
from costguard.providers.kit.core.fields import Fields, as_documented, flag, named, part, parts, text
from costguard.providers.tencent.core import errors
from costguard.providers.tencent.core.products import told

LOOKUP = "cloudaudit:DescribeEvents"
_PAGE = 50  # the most it gives
_RUN = "RunInstances"
_OF_INSTANCES = "instance/"
_SERVICE_ROLES = ("_QCSRole", "_QCSLinkedRole")
_ANY_ROLE = "roleUser"
"""What older documents say a role is called in events, whichever it is."""


class TencentAuditLog(AuditLog[Calls]):
    """For one site of Tencent Cloud: who called RunInstances.

    Every RunInstances of the account around the CreatedTime of each instance, as a launch is permitted for no instance
    yet and its event may name none: whose it was its answer tells. 20 requests a second are let through, and 90 days
    are kept. The mark of a deployment is the user agent, which has what the SDK was told to call itself
    (X-TC-RequestClient), and the role session, where `principalId` has one.

    API: CloudAudit DescribeEvents of all regions ("Viewing Event Details in Operation Record": actionType Read and
    Write, userAgent). No document lists which read operations are recorded; a stop is a write, and always is.
    """

    lookup = LOOKUP
    marks = ("DescribeEvents", "StopInstances")
    _gap = staticmethod(errors.gap)

    def _asked(self, instance: Instance) -> tuple[str, str]:
        del instance
        return "EventName", _RUN

    def _pages(self, shard: Shard, key: str, value: str, window: Window) -> Iterator[list[Any]]:
        account = Shard(shard.cloud, shard.account)  # the trail is one for all regions

        def ask(page: dict[str, str]) -> dict[str, Any]:
            more = {"NextToken": int(page["NextToken"])} if page else {}
            answer = self._session.call(
                account,
                "cloudaudit",
                "DescribeEvents",
                StartTime=int(window.since.timestamp()),
                EndTime=int(window.until.timestamp()),
                MaxResults=_PAGE,
                LookupAttributes=[{"AttributeKey": key, "AttributeValue": value}],
                **more,
            )
            return dict(answer)

        return by_token(LOOKUP, ask, _listed, _next_page)

    def _launch_in(self, event: Fields, native_id: str) -> Launch | None:
        return launch_in(event, native_id)

    def _asker(self, event: Fields) -> tuple[datetime, str]:
        detail = _detail(event)
        return _at(event), f"{text(part(detail, 'userIdentity'), 'principalId')} {text(detail, 'userAgent')}"


def launch_in(event: Fields, native_id: str) -> Launch | None:
    """The launch of this instance that an event tells of; None where it is another's, or failed."""
    if named(event, "EventName") != _RUN:
        return None
    detail = _detail(event)
    if native_id not in _instances_of(event, detail) or _failed(detail):
        return None
    return Launch(launcher(part(detail, "userIdentity")), _at(event), named(event, "EventId"))


def _detail(event: Fields) -> Fields:
    detail = json.loads(named(event, "CloudAuditEvent"))
    if not isinstance(detail, dict):
        message = "CloudAuditEvent is no structure"
        raise TypeError(message)
    return detail


def launcher(identity: Fields) -> str:
    """Who that is: `user/…`, `role/…`, `root`, or `service/…`, which is no person.

    A user that was deleted since is told by number. The documents tell of a role only its name: its session, where the
    principal's id has one.
    """
    kind, name, principal = named(identity, "type"), text(identity, "userName"), text(identity, "principalId")
    if kind == "Root":
        return "root"
    if kind == "CAMUser":
        return f"user/{name_in(name or principal)}"
    number, colon, session = principal.partition(":")
    role = name_in(number if name in ("", _ANY_ROLE) else name)
    if any(mark in role for mark in _SERVICE_ROLES):
        return f"service/{role}"
    return f"role/{role}/{name_in(session)}" if colon else f"role/{role}"


def _instances_of(event: Fields, detail: Fields) -> set[str]:
    """The ids in the answer of the call, and those it was permitted for."""
    names = text(part(told(event, "Resources"), "Resources"), "ResourceName").split("|")
    found = {name.removeprefix(_OF_INSTANCES) for name in names if name.startswith(_OF_INSTANCES)}
    answer = text(told(detail, "responseElements"), "responseElements")
    answered = json.loads(answer) if answer else {}
    made = answered.get("InstanceIdSet", []) if isinstance(answered, Mapping) else None
    if not isinstance(made, list) or not all(isinstance(each, str) for each in made):
        message = "InstanceIdSet is no list of ids"
        raise TypeError(message)
    return found.union(made)


def _failed(detail: Fields) -> bool:
    """Codes are numbers, numbers as texts, or words; those of success are 0 and nothing."""
    return any(str(detail.get(key) or 0) != "0" for key in ("errorCode", "apiErrorCode"))


def _at(event: Fields) -> datetime:
    """EventTime: seconds since 1970, as a text."""
    written = named(event, "EventTime")
    if not (written.isascii() and written.isdigit() and len(written) <= len("9999999999")):
        message = "EventTime is no number of seconds"
        raise ValueError(message)
    return datetime.fromtimestamp(int(written), timezone.utc)


def _listed(answer: Fields) -> list[Fields]:
    with as_documented(LOOKUP):
        if "Events" not in answer:
            message = "Events is missing"
            raise ValueError(message)
        return parts(answer, "Events")


def _next_page(answer: Fields) -> str:
    if "ListOver" not in answer:
        message = "ListOver is missing"
        raise ValueError(message)
    if flag(answer, "ListOver"):
        return ""
    token = answer.get("NextToken")
    if isinstance(token, bool) or not isinstance(token, int) or token < 0:  # larger than anything that is counted
        message = "NextToken is no whole number"
        raise ValueError(message)
    return str(token)
