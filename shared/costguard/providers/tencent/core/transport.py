"""The only importer of Tencent's SDK: it signs and sends, everything else is done here and without its help.

What the SDK does of its own accord, and how it is kept from doing so:

* It looks for errors only where the content type is exactly `application/json`, and takes an error labelled
  otherwise for a success: bodies are read and judged here, whatever their label.
* Its retryer repeats calls that were accepted, and its region breaker sends them elsewhere: neither is used.
* Its timeout is for each read, so a body that drips never ends: the body is read here against a deadline.
* It raises what `requests` raises, its own class around that, or KeyError: all become `SendingError`.
* It logs signatures and tokens, changes the process's warning filters when loaded and on some answers, and
  lets a `.netrc` file overwrite its signature: silenced, undone, and not asked.
* Its client is not made for several threads: each is lent to one caller at a time.
"""

from __future__ import annotations

import json
import logging
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

from costguard.domain.errors import InvalidInputError
from costguard.providers.kit.core.credentials import Keys
from costguard.providers.kit.core.pacing import date_told, on_this_machine
from costguard.providers.tencent.core.products import GLOBAL, ROOT_DOMAINS, VERSIONS

_CONNECT_SECONDS = 5.0
_READ_SECONDS = 20.0
_WHOLE_SECONDS = 30.0  # of one request and its answer
_CHUNK = 65_536
_LARGEST_ANSWER = 64 * 1024 * 1024
_NEVER_SENT = frozenset({"ConnectTimeout", "ConnectTimeoutError", "NewConnectionError", "NameResolutionError"})
_OK = 200


class SendingError(Exception):
    """No usable answer came. `sent` False: the request cannot have arrived."""

    def __init__(self, what: str, detail: str, *, sent: bool, status: int = _OK) -> None:
        super().__init__(f"{what}: {detail}" if detail else what)
        self.what = what
        self.sent = sent
        self.status = status


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back: the fields of `Response`, its error if it is one, and the clock of whoever answered.

    `error` holds code and message. `date` is None where the answer told none.
    """

    fields: Mapping[str, Any]
    error: tuple[str, str] | None
    date: datetime | None


def checked_endpoint(endpoint: str) -> str:
    """`endpoint`, an address that stands in for the whole cloud; empty for the cloud itself.

    Raises:
        InvalidInputError: no address, or requests with secrets would leave this machine unencrypted.
    """
    if not endpoint:
        return ""
    parts = urlsplit(endpoint)
    if parts.scheme not in {"http", "https"} or not parts.netloc or "@" in parts.netloc or parts.path.strip("/"):
        message = f"COSTGUARD_TENCENT_ENDPOINT: expected http(s)://host:port, found {parts.scheme or 'no scheme'}"
        raise InvalidInputError(message)
    if parts.scheme == "http" and not on_this_machine(endpoint):
        message = "COSTGUARD_TENCENT_ENDPOINT: http is for a stand-in on this machine; use https"
        raise InvalidInputError(message)
    return endpoint


@dataclass(frozen=True, slots=True)
class _Sdk:
    """The parts of the SDK that are used. `broken_body` is what reading from its connections may raise."""

    client: Any
    credential: Any
    client_profile: Any
    http_profile: Any
    fault: type[Exception]
    broken_body: type[Exception]


@lru_cache(maxsize=1)
def _sdk() -> _Sdk:
    """The SDK, loaded when first used; process-wide filters and loggers are as before."""
    with warnings.catch_warnings():  # loading it ignores warnings for the whole process
        from tencentcloud.common.common_client import CommonClient
        from tencentcloud.common.credential import Credential
        from tencentcloud.common.exception import TencentCloudSDKException
        from tencentcloud.common.http.request import requests
        from tencentcloud.common.profile.client_profile import ClientProfile
        from tencentcloud.common.profile.http_profile import HttpProfile

    log = logging.getLogger("tencentcloud_sdk_common")
    log.setLevel(logging.CRITICAL + 1)
    log.propagate = False  # at debug level it prints Authorization and X-TC-Token
    below = requests.packages.urllib3.exceptions.HTTPError  # `requests` wraps it where it reads the body itself
    return _Sdk(CommonClient, Credential, ClientProfile, HttpProfile, TencentCloudSDKException, below)


class Transport:
    """Signs, sends and reads; clients are lent out by product, and kept with their connections. Serves many threads."""

    def __init__(
        self,
        cloud: str,
        endpoint: str = "",
        *,
        agent: str = "costguard",
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._agent = agent
        self._endpoint = checked_endpoint(endpoint)
        self._root_domain = ROOT_DOMAINS[cloud]
        self._monotonic = monotonic
        self._idle: dict[str, list[Any]] = {}
        self._lock = threading.Lock()
        self._closed = False

    @property
    def is_stand_in(self) -> bool:
        """Whether something else answers in place of Tencent Cloud."""
        return bool(self._endpoint)

    def send(
        self,
        keys: Keys,
        region: str,
        service: str,
        action: str,
        parameters: Mapping[str, Any],
        *,
        sending: Callable[[], None],
        anew: bool = False,
        seconds: float | None = None,
    ) -> Reply:
        """One request, once. `sending` is called just before it leaves; `seconds` bound the whole exchange.

        `anew` uses a new connection: on a kept one that the other side has just closed, a request that never
        arrived cannot be told from one whose answer was lost.

        Raises:
            SendingError: no usable answer came.
        """
        allowed = _WHOLE_SECONDS if seconds is None else min(_WHOLE_SECONDS, max(0.1, seconds))
        ends_at = self._monotonic() + allowed
        fault, started = _sdk().fault, False
        with self._lent(service) as client:
            connection = client.request.conn
            if anew:
                connection._session.close()  # noqa: SLF001 - the SDK has no close of its own
            connection.timeout = (min(_CONNECT_SECONDS, allowed), min(_READ_SECONDS, allowed))
            try:
                client.credential = _credential(keys)
                client.region = "" if service in GLOBAL else region
                sending()
                started = True
                answer = client._call(action, dict(parameters))  # noqa: SLF001 - `call` would judge the answer its way
            except fault as err:
                code, message = getattr(err, "code", None), getattr(err, "message", None)
                sent = started and not _never_sent(err)
                raise SendingError(str(code or type(err).__name__), str(message or ""), sent=sent) from err
            except (OSError, ValueError, TypeError, LookupError, AttributeError) as err:
                raise SendingError(type(err).__name__, str(err), sent=started) from err
            return self._read(answer, ends_at)

    def close(self) -> None:
        """Close every connection; clients are built anew if asked for again."""
        with self._lock:
            self._closed = True
            idle = [client for clients in self._idle.values() for client in clients]
            self._idle.clear()
        for client in idle:
            _close(client)

    def _read(self, answer: Any, ends_at: float) -> Reply:
        try:
            body = self._body(answer, ends_at)
        except (OSError, ValueError, AttributeError, LookupError, _sdk().broken_body) as err:
            raise SendingError(type(err).__name__, str(err), sent=True) from err
        finally:
            answer.close()
        date = date_told(answer.headers.get("Date"))
        try:
            document = json.loads(body)
        except (ValueError, RecursionError) as err:
            raise _unusable(answer, "it is no JSON") from err
        fields = document.get("Response") if isinstance(document, dict) else None
        if not isinstance(fields, dict):
            raise _unusable(answer, "it has no Response")
        error = fields.get("Error")
        if error is None and "Error" not in fields:
            if answer.status_code != _OK:
                raise _unusable(answer, "its status does not fit")
            return Reply(fields, None, date)
        told = error if isinstance(error, dict) else {}
        code, message = told.get("Code"), told.get("Message")
        known = code if isinstance(code, str) and code else "Unknown"
        return Reply(fields, (known, message if isinstance(message, str) else ""), date)

    def _body(self, answer: Any, ends_at: float) -> bytes:
        """All of it: as it comes, and not beyond the deadline, which the SDK's timeout starts anew with each byte."""
        parts, size = [], 0
        while part := answer.raw.read1(_CHUNK, decode_content=True):
            parts.append(part)
            size += len(part)
            if self._monotonic() > ends_at:
                message = "the answer did not end in time"
                raise TimeoutError(message)
            if size > _LARGEST_ANSWER:
                message = "the answer is larger than any documented one"
                raise ValueError(message)
        return b"".join(parts)

    @contextmanager
    def _lent(self, service: str) -> Iterator[Any]:
        with self._lock:
            idle = self._idle.get(service)
            client = idle.pop() if idle else None
        if client is None:
            client = self._new_client(service)
        kept = False
        try:
            yield client
            kept = True
        finally:
            with self._lock:
                kept = kept and not self._closed
                if kept:
                    self._idle.setdefault(service, []).append(client)
            if not kept:
                _close(client)

    def _new_client(self, service: str) -> Any:
        sdk = _sdk()
        parts = urlsplit(self._endpoint)
        http = sdk.http_profile(
            protocol=parts.scheme or "https",
            endpoint=parts.netloc or None,
            rootDomain=self._root_domain,
            reqTimeout=_READ_SECONDS,
        )
        profile = sdk.client_profile(
            httpProfile=http,
            signMethod="TC3-HMAC-SHA256",
            language="en-US",
            disable_region_breaker=True,
            request_client=self._agent,
        )
        try:
            client = sdk.client(service, VERSIONS[service], None, "", profile)
        except sdk.fault as err:
            raise SendingError(type(err).__name__, str(err), sent=False) from err
        connection = client.request.conn
        connection._session.trust_env = False  # noqa: SLF001 - a .netrc entry would replace the signature
        if on_this_machine(self._endpoint):
            connection.proxy = None  # a stand-in on this machine is not behind one
        with self._lock:
            self._closed = False
        return client


def _credential(keys: Keys) -> Any:
    return _sdk().credential(keys.key_id, keys.secret, keys.token or None)


def _close(client: Any) -> None:
    client.request.conn._session.close()  # noqa: SLF001 - the SDK has no close of its own


def _never_sent(err: BaseException) -> bool:
    """Whether connecting failed already: the SDK keeps only the text, Python keeps what it came from."""
    seen: set[int] = set()
    cause: BaseException | None = err
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        if type(cause).__name__ in _NEVER_SENT:
            return True
        cause = cause.__cause__ or cause.__context__
    return False


def _unusable(answer: Any, why: str) -> SendingError:
    status = answer.status_code if isinstance(answer.status_code, int) else 0
    return SendingError("UnusableAnswer", f"HTTP {status}: {why}", sent=True, status=status)
