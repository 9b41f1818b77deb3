"""Requests of the two platforms to a container's own HTTP server, as the event and context that handlers know. Pure.

* fc: `POST /invoke` with the event as its body; what comes over an HTTP trigger arrives as it was sent. Headers
  `x-fc-…` tell of the call, the role's keys among them; answers carry `x-fc-status`: 200, or 404 for an error.
  (Function Compute, "Code development for Custom Container runtimes", "Context and log format of custom runtimes")
* scf: `POST /event-invoke` with the event as its body; a web function's requests arrive as they were sent. Headers
  `X-Scf-…` tell of the call, the role's keys among them. (SCF, "WebServer Image Function")

No header of a platform's own reaches a function as part of a request: keys are among them.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from costguard.domain.errors import InvalidInputError
from costguard.faas.events import Host

PLATFORM_HEADERS = ("x-fc-", "x-scf-")
EVENT_PATHS = {Host.FC: "/invoke", Host.SCF: "/event-invoke"}
INITIALIZE_PATHS = frozenset({"/initialize", "/pre-stop", "/pre-freeze"})
_SHORTEST_IN_MILLISECONDS = 1000
_FC_KEYS = ("access_key_id", "access_key_secret", "security_token")
_SCF_KEYS = {
    "x-scf-secret-id": "TENCENTCLOUD_SECRETID",
    "x-scf-secret-key": "TENCENTCLOUD_SECRETKEY",
    "x-scf-session-token": "TENCENTCLOUD_SESSIONTOKEN",
}


@dataclass(frozen=True, slots=True)
class Received:
    """One request as it came. Names of `headers` are in small letters; `target` has the query."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def path(self) -> str:
        """Without the query."""
        return urlsplit(self.target).path or "/"


def is_event(received: Received, host: Host) -> bool:
    """Whether the platform hands an event over, rather than what somebody sent.

    FC says which in a header that nobody outside can send.
    """
    told = received.headers.get("x-fc-control-path", "") if host is Host.FC else ""
    return received.method == "POST" and (told or received.path) == EVENT_PATHS[host]


def request_id(received: Received, host: Host) -> str:
    """The platform's name for this call."""
    return received.headers.get(f"x-{host.value}-request-id", "")


def event_of(received: Received, host: Host) -> object:
    """What the platform's own runtime would hand over: bytes on FC, a dict on SCF.

    Raises:
        InvalidInputError: no JSON.
    """
    if host is Host.FC:
        return received.body
    try:
        event: object = json.loads(received.body.decode("utf-8-sig")) if received.body.strip() else {}
    except (ValueError, RecursionError) as err:
        message = f"the event is no JSON in UTF-8 ({type(err).__name__})"
        raise InvalidInputError(message) from err
    return event


def request_event(received: Received, host: Host) -> object:
    """A request from outside in the form in which the platform's own runtime would hand it over."""
    query = dict(parse_qsl(urlsplit(received.target).query, keep_blank_values=True))
    headers = {name: value for name, value in received.headers.items() if not name.startswith(PLATFORM_HEADERS)}
    body = base64.b64encode(received.body).decode()
    shared = {"headers": headers, "body": body, "isBase64Encoded": True}
    if host is Host.SCF:
        return {"httpMethod": received.method, "path": received.path, "queryString": query, **shared}
    http = {"method": received.method, "path": received.path}
    event = {"version": "v1", "rawPath": received.path, "queryParameters": query, "requestContext": {"http": http}}
    return json.dumps({**event, **shared}).encode()


def context_of(received: Received, host: Host) -> Any:
    """The context that the platform's own runtime would make of these headers."""
    headers = received.headers
    if host is Host.SCF:
        return {
            "request_id": request_id(received, host),
            "time_limit_in_ms": _milliseconds(headers.get("x-scf-timeout", "")),
            "function_name": headers.get("x-scf-name", ""),
            "tencentcloud_region": headers.get("x-scf-region", ""),
        }
    keys = {name: headers.get(f"x-fc-{name.replace('_', '-')}", "") for name in _FC_KEYS}
    return SimpleNamespace(
        request_id=request_id(received, host),
        credentials=SimpleNamespace(**keys),
        function=SimpleNamespace(
            name=headers.get("x-fc-function-name", ""), timeout=headers.get("x-fc-function-timeout", "")
        ),
        region=headers.get("x-fc-region", ""),
        account_id=headers.get("x-fc-account-id", ""),
    )


def environment_of(received: Received, host: Host) -> Mapping[str, str]:
    """What the platform's own runtime would leave in the environment for this call: its mark, region, the role's keys.

    Keys are taken whole or not at all: half of one with half of an older one would be nobody's. On SCF they are taken
    from events alone: whether somebody outside can send such headers to a web function is not documented.
    """
    headers = received.headers
    if host is Host.FC:
        told = {"FC_FUNCTION_NAME": headers.get("x-fc-function-name") or "container"}
        return {**told, "FC_REGION": headers["x-fc-region"]} if headers.get("x-fc-region") else told
    told = {"TENCENTCLOUD_RUNENV": "SCF"}
    if headers.get("x-scf-region"):
        told["TENCENTCLOUD_REGION"] = headers["x-scf-region"]
    keys = {variable: headers.get(name, "") for name, variable in _SCF_KEYS.items()}
    return {**told, **keys} if all(keys.values()) and is_event(received, host) else told


def _milliseconds(told: str) -> int | None:
    """The time allowed; None where it is not told.

    The documents name no unit. No function is given 1,000 s, so that less is seconds and more is milliseconds: where
    that is wrong the deadline is too early, which only ends a run in good time.
    """
    if not (told.isascii() and told.isdigit()):
        return None
    count = int(told)
    return count if count >= _SHORTEST_IN_MILLISECONDS else count * 1000
