"""moto behind a layer that can throttle, deny, lose answers and falsify pages; on loopback only."""

from __future__ import annotations

import io
import os
import re
import socket
import threading
import urllib.parse
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import boto3
import botocore.session
from botocore.credentials import Credentials, ReadOnlyCredentials
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

from cloudstand.aws.compute.hastening import hastening
from cloudstand.aws.core.patching import applied
from costguard.providers.aws.core.session import RATES
from costguard.providers.kit.core.pacing import Pacer

_MADE_UP_TOKEN = re.compile(rb"&NextToken=again")

Change = Callable[[bytes], bytes]


@dataclass
class Fault:
    """What happens to the next `times` requests of `action`, or of those whose body holds `holding`."""

    action: str
    times: int
    status: int = 0
    code: str = ""
    lose_answer: bool = False
    change: Change | None = None
    canned: bytes = b""
    holding: str = ""


@dataclass
class StandIn:
    """A WSGI application around moto; `requests` lists (action, decoded form) in order of arrival."""

    app: Any
    url: str = ""
    faults: list[Fault] = field(default_factory=list)
    requests: list[tuple[str, dict[str, list[str]]]] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def reset(self) -> None:
        self.faults.clear()
        self.requests.clear()

    def fail(self, action: str, status: int, code: str, *, times: int = 1_000, holding: str = "") -> None:
        self.faults.append(Fault(action, times, status=status, code=code, holding=holding))

    def lose_answers(self, action: str, *, times: int = 1_000) -> None:
        """The request takes effect, then the connection breaks."""
        self.faults.append(Fault(action, times, lose_answer=True))

    def change_answers(self, action: str, change: Change, *, times: int = 1_000) -> None:
        self.faults.append(Fault(action, times, change=change))

    def answer(self, action: str, body: str) -> None:
        """Always this, without asking moto."""
        self.faults.append(Fault(action, 1_000, canned=body.encode()))

    def count(self, action: str) -> int:
        return sum(name == action for name, _ in self.requests)

    def __call__(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        known = _MADE_UP_TOKEN.sub(b"", body)  # moto has only one page
        environ.update({"wsgi.input": io.BytesIO(known), "CONTENT_LENGTH": str(len(known))})
        form = urllib.parse.parse_qs(body.decode("latin1"))
        target = str(environ.get("HTTP_X_AMZ_TARGET") or "").rpartition(".")[2]
        action = target or (form.get("Action") or [str(environ["PATH_INFO"]).rpartition("/")[2]])[0]
        with self._lock:
            self.requests.append((action, form))
            fault = next(
                (f for f in self.faults if f.action == action and f.times > 0 and f.holding in body.decode("latin1")),
                None,
            )
            if fault is not None:
                fault.times -= 1
        if fault is None:
            return self._moto(environ, start)
        if fault.lose_answer:
            list(self._moto(environ, lambda *_: None))
            connection: socket.socket = environ["werkzeug.socket"]
            connection.shutdown(socket.SHUT_RDWR)
            return []
        if fault.canned:
            start("200 OK", [("Content-Type", "text/xml"), ("Content-Length", str(len(fault.canned)))])
            return [fault.canned]
        if fault.change is not None:
            return self._changed(environ, start, fault.change)
        return _error(fault, start, json=bool(target))

    def _moto(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        answer: Iterable[bytes] = self.app(environ, start)
        return answer

    def _changed(self, environ: dict[str, Any], start: Callable[..., Any], change: Change) -> Iterable[bytes]:
        seen: list[Any] = []
        body = change(b"".join(self._moto(environ, lambda *arguments: seen.extend(arguments[:2]))))
        headers = [(name, value) for name, value in seen[1] if name.lower() != "content-length"]
        start(seen[0], [*headers, ("Content-Length", str(len(body)))])
        return [body]


def _error(fault: Fault, start: Callable[..., Any], *, json: bool) -> list[bytes]:
    if json:
        body = f'{{"__type":"{fault.code}","message":"injected"}}'
    else:
        error = f"<Error><Code>{fault.code}</Code><Message>injected</Message></Error>"
        body = f"<Response><Errors>{error}</Errors><RequestID>r</RequestID></Response>"
    kind = "application/x-amz-json-1.1" if json else "text/xml"
    start(f"{fault.status} Injected", [("Content-Type", kind), ("Content-Length", str(len(body)))])
    return [body.encode()]


class _Quiet(WSGIRequestHandler):
    """Says nothing: what moto lacks ends in a traceback for each request."""

    def log(self, type: str, message: str, *args: Any) -> None:  # noqa: A002 - the base class names it
        pass


@contextmanager
def aws_stand_in() -> Iterator[StandIn]:
    os.environ["MOTO_EC2_LOAD_DEFAULT_AMIS"] = "false"  # else 1,300 snapshots of images are ours
    stand_in = StandIn(DomainDispatcherApplication(create_backend_app))
    server = make_server("127.0.0.1", 0, stand_in, threaded=True, request_handler=_Quiet)
    stand_in.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    _SHARED[stand_in.url] = {}
    try:
        with applied(hastening()):
            yield stand_in
    finally:
        for client in _SHARED.pop(stand_in.url).values():
            client.close()
        server.shutdown()
        thread.join()
        server.server_close()


def new_account() -> str:
    """An account nobody used before: moto makes it on first use."""
    return f"{uuid.uuid4().int % 10**12:012d}"


_SETUP = boto3.Session()  # one for all: the API models are read once
_KEYS: ContextVar[ReadOnlyCredentials] = ContextVar("_KEYS")
_SHARED: dict[str, dict[tuple[str, str], Any]] = {}
"""By the address of a running stand-in: clients by service and region. Building one for EC2 takes 12 ms."""


class _Lent(Credentials):
    """Credentials of whoever is calling."""

    def __init__(self) -> None:
        super().__init__("lent", "lent")

    def get_frozen_credentials(self) -> ReadOnlyCredentials:
        return _KEYS.get()


def _lending() -> boto3.Session:
    session: Any = botocore.session.Session()
    session._credentials = _Lent()  # noqa: SLF001 - what boto3 and botocore's own examples do
    return boto3.Session(botocore_session=session)


_LENDING: Any = _lending()  # the service is a variable, so no stub fits


class _As:
    """A shared client, used with one account's credentials; its connections are the stand-in's to close."""

    def __init__(self, client: Any, keys: ReadOnlyCredentials) -> None:
        self._client = client
        self._keys = keys

    def __getattr__(self, name: str) -> Any:
        operation = getattr(self._client, name)

        def call(**asked: Any) -> Any:
            before = _KEYS.set(self._keys)
            try:
                return operation(**asked)
            finally:
                _KEYS.reset(before)

        return call

    def close(self) -> None:
        """Nothing of its own is open."""


def setup_client(service: str, url: str, region: str, credentials: dict[str, str]) -> Any:
    """A client to arrange things with; `credentials` are named as the SDK's environment variables."""
    keys = {name.lower(): value for name, value in credentials.items()}
    connect: Any = _SETUP.client  # the service is a variable, so no stub fits
    if url not in _SHARED:
        return connect(service, endpoint_url=url, region_name=region, **keys)
    own = ReadOnlyCredentials(
        keys["aws_access_key_id"], keys["aws_secret_access_key"], keys.get("aws_session_token"), None
    )
    shared = _SHARED[url]
    if (service, region) not in shared:
        shared[service, region] = _LENDING.client(service, endpoint_url=url, region_name=region)
    return _As(shared[service, region], own)


def credentials_of(url: str, account: str) -> dict[str, str]:
    """Credentials of a role in `account`, as the SDK's environment variables."""
    root = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}
    sts = setup_client("sts", url, "us-east-1", root)
    issued = sts.assume_role(RoleArn=f"arn:aws:iam::{account}:role/tests", RoleSessionName="tests")["Credentials"]
    sts.close()
    return {
        "AWS_ACCESS_KEY_ID": issued["AccessKeyId"],
        "AWS_SECRET_ACCESS_KEY": issued["SecretAccessKey"],
        "AWS_SESSION_TOKEN": issued["SessionToken"],
    }


def patient_pacer() -> Pacer:
    """Never waits: its clock moves by what it is told to sleep."""
    moved = [0.0]

    def sleep(seconds: float) -> None:
        moved[0] += seconds

    return Pacer(RATES, monotonic=lambda: moved[0], sleep=sleep, chance=lambda: 1.0)
