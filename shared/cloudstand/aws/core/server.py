"""A loopback server in this process: the gateway in front of moto, one request at a time."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from email.utils import formatdate
from functools import partial
from io import BytesIO
from threading import Thread
from typing import Any
from urllib.parse import parse_qs
from xml.sax.saxutils import escape

from moto.iam import models as iam
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from werkzeug.serving import BaseWSGIServer, make_server

from cloudstand.aws.billing.desk import Billing
from cloudstand.aws.billing.prices import UnknownTokenError, get_products
from cloudstand.aws.compute.trail import CloudTrail
from cloudstand.aws.core.questions import RefusedQuestionError
from cloudstand.aws.kms.keys import Kms
from cloudstand.aws.network.changes import CHANGES as NETWORK_CHANGES
from cloudstand.clock import Clock

_READS = ("Describe", "Get", "List")
_CHANGES = frozenset(
    {
        "StopInstances",
        "StartInstances",
        "TerminateInstances",
        "CreateSnapshot",
        "CreateSnapshots",
        "CreateTags",
        "DeleteTags",
        "ModifyInstanceAttribute",
        *NETWORK_CHANGES,
    }
)
_ACCOUNT_IN_ARN = 4  # arn:aws:iam::111122223333:role/name
_OK, _BAD_REQUEST = "200 OK", "400 Bad Request"

Environ = dict[str, Any]
StartResponse = Callable[[str, list[tuple[str, str]]], Any]


@dataclass(frozen=True, slots=True)
class Call:
    """What a request asks for. `account` is whom its keys belong to."""

    service: str
    action: str
    account: str
    region: str


@dataclass(frozen=True, slots=True)
class Refused:
    """An answer the gateway gives instead of moto. None for an account or region means any."""

    service: str
    action: str
    code: str
    message: str
    account: str | None = None
    region: str | None = None

    def matches(self, call: Call) -> bool:
        """Whether this call gets it."""
        return (
            (self.service, self.action) == (call.service, call.action)
            and self.account in (None, call.account)
            and self.region in (None, call.region)
        )


class Gateway:
    """WSGI: one request at a time, the world brought up to date first.

    One lock for moto, whose DynamoDB breaks under threads, and for the world, which other wires show too. EC2 calls
    that change something the world does not model are refused, so that it stays true.
    """

    def __init__(
        self,
        refresh: Callable[[], None],
        regions: tuple[str, ...],
        assumable: Callable[[str], bool],
        external_id: str,
        lock: AbstractContextManager[Any],
        billing: Billing,
        keys: Kms,
        trail: CloudTrail,
    ) -> None:
        self._moto = DomainDispatcherApplication(create_backend_app)
        self._refresh = refresh
        self._regions = regions
        self._assumable = assumable
        self._external_id = external_id
        self._lock = lock
        self.billing = billing
        self.keys = keys
        self.trail = trail
        self.refused: list[Refused] = []
        self.calls: list[Call] = []

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        """Answer one request."""
        with self._lock:
            body = _whole_body(environ)
            call = _call_of(environ, body)
            self.calls.append(call)
            for refused in self.refused:
                if refused.matches(call):
                    return _error(call, refused.code, refused.message, start_response)
            if call.service == "pricing":
                return self._prices(call, body, start_response)
            if call.service in self.billing.services:
                billed = partial(self.billing.answer, call.service, call.action, call.account, call.region)
                return self._answered(call, billed, body, start_response)
            if call.service == self.keys.service:
                answering = partial(self.keys.answer, call.action, call.account, call.region)
                return self._answered(call, answering, body, start_response)
            if call.service == self.trail.service:
                agent = environ.get("HTTP_USER_AGENT", "")
                asking = partial(self.trail.answer, call.action, call.account, call.region, agent=agent)
                return self._answered(call, asking, body, start_response)
            if call.service == "ec2" and not call.action.startswith(_READS) and call.action not in _CHANGES:
                return _error(call, "UnsupportedOperation", f"The sandbox has no {call.action}.", start_response)
            if call.action == "AssumeRole" and not self._may_assume(body):
                return _error(call, "AccessDenied", "User is not authorized to perform: sts:AssumeRole", start_response)
            self._refresh()
            answer = self._moto(environ, start_response)
            try:
                return [b"".join(answer)]
            finally:
                if hasattr(answer, "close"):
                    answer.close()

    def _may_assume(self, body: bytes) -> bool:
        """Whether the role is in an account of the world or its organisation, with its ExternalId; moto asks none."""
        asked = parse_qs(body.decode("utf-8", "replace"))
        arn = asked.get("RoleArn", [""])[0].split(":")
        return len(arn) > _ACCOUNT_IN_ARN and (
            self._assumable(arn[_ACCOUNT_IN_ARN]) and asked.get("ExternalId") == [self._external_id]
        )

    def _answered(
        self,
        call: Call,
        answering: Callable[[Mapping[str, Any]], dict[str, Any]],
        body: bytes,
        start_response: StartResponse,
    ) -> Iterable[bytes]:
        self._refresh()
        try:
            answer = answering(json.loads(body or b"{}"))
        except RefusedQuestionError as err:
            return _error(call, err.code, err.message, start_response)
        return _reply(_OK, "application/x-amz-json-1.1", json.dumps(answer).encode(), start_response)

    def _prices(self, call: Call, body: bytes, start_response: StartResponse) -> Iterable[bytes]:
        if call.action != "GetProducts":
            return _error(call, "InvalidParameterException", f"The sandbox has no {call.action}.", start_response)
        try:
            answer = get_products(json.loads(body or b"{}"), self._regions)
        except UnknownTokenError as err:
            return _error(call, "InvalidNextTokenException", str(err), start_response)
        return _reply(_OK, "application/x-amz-json-1.1", json.dumps(answer).encode(), start_response)


class LoopbackServer:
    """Serves a WSGI application on 127.0.0.1 at a free port until closed, from threads of its own, in silence.

    `clock` is the time its answers are dated with.
    """

    def __init__(self, application: Callable[..., Iterable[bytes]], clock: Clock) -> None:
        self._server: BaseWSGIServer = make_server(
            "127.0.0.1", 0, application, threaded=True, request_handler=_handler(clock)
        )
        self._thread = Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        """Stop serving and close the socket."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _SilentHandler(MotoRequestHandler):
    def log(self, type: str, message: str, *args: Any) -> None:  # noqa: A002 - werkzeug's own signature
        """Say nothing: the story's output belongs to the command line."""


def _handler(clock: Clock) -> type[_SilentHandler]:
    class DatedHandler(_SilentHandler):
        def date_time_string(self, timestamp: float | None = None) -> str:
            return formatdate(clock.now().timestamp() if timestamp is None else timestamp, usegmt=True)

    return DatedHandler


def _whole_body(environ: Environ) -> bytes:
    body: bytes = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    environ["wsgi.input"] = BytesIO(body)
    return body


def _call_of(environ: Environ, body: bytes) -> Call:
    """Service and region from the signature, the action from wherever the protocol keeps it."""
    access_key, region, service = "", "", ""
    for part in environ.get("HTTP_AUTHORIZATION", "").replace(",", " ").split():
        if part.startswith("Credential="):
            access_key, _, region, service, _ = part.removeprefix("Credential=").split("/")
    target = environ.get("HTTP_X_AMZ_TARGET", "")
    path = environ.get("PATH_INFO", "")
    if target:
        action = target.rsplit(".", 1)[-1]
    elif "/operation/" in path:  # the CBOR protocol names it in the path
        action = path.rsplit("/", 1)[-1]
    else:
        action = parse_qs(body.decode("utf-8", "replace")).get("Action", [""])[0]
    service = {"monitoring": "cloudwatch"}.get(service, service)
    return Call(service, action, iam.get_account_id_from(access_key), region)


def _error(call: Call, code: str, message: str, start_response: StartResponse) -> Iterable[bytes]:
    if call.service == "ec2":
        text = (
            f"<Response><Errors><Error><Code>{code}</Code><Message>{escape(message)}</Message></Error></Errors>"
            "<RequestID>sandbox</RequestID></Response>"
        )
        return _reply(_BAD_REQUEST, "text/xml", text.encode(), start_response)
    if call.service == "sts":
        text = (
            f"<ErrorResponse><Error><Type>Sender</Type><Code>{code}</Code><Message>{escape(message)}</Message></Error>"
            "<RequestId>sandbox</RequestId></ErrorResponse>"
        )
        return _reply(_BAD_REQUEST, "text/xml", text.encode(), start_response)
    body = json.dumps({"__type": code, "message": message}).encode()
    return _reply(_BAD_REQUEST, "application/x-amz-json-1.1", body, start_response)


def _reply(status: str, kind: str, body: bytes, start_response: StartResponse) -> Iterable[bytes]:
    headers = [("Content-Type", kind), ("Content-Length", str(len(body))), ("x-amzn-RequestId", "sandbox")]
    start_response(status, headers)
    return [body]
