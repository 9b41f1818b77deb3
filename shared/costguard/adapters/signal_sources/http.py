"""A small HTTP client for metrics backends: one POST, no redirects, no proxy taken from the environment.

A redirect or a proxy that nobody configured here could send the authorization header elsewhere, so neither is followed.
The name is looked up once, every address it stands for is judged, and the connection is made to what was judged: a name
that means something else a moment later (DNS rebinding) gains nothing. A connection is opened for each request and
closed with it.
"""

from __future__ import annotations

import ipaddress
import socket
import ssl
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Protocol
from urllib.parse import urlencode, urlsplit

from costguard.domain.errors import (
    AccessDeniedError,
    InvalidInputError,
    ProviderError,
    ThrottledError,
    TruncatedReadError,
    UnavailableError,
)
from costguard.domain.hosts import KEPT, is_kept, stands_for

if TYPE_CHECKING:
    from http.client import HTTPConnection

Resolve = Callable[[str, int], Sequence[str]]
"""The IP addresses of a host, at a port."""

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1", "[::1]"})
"""Names of this machine: what is sent there in the clear is not seen by others."""

_MOST_TRIED = 3  # addresses of one host
_MAX_BODY_BYTES = 64 * 1024 * 1024  # 25 instances of 8 cards over 14 days are under 8 MB


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """What came back: the status and the whole body."""

    status: int
    body: bytes


class PostForm(Protocol):
    """Posts a form to a path below a fixed address."""

    def __call__(self, path: str, form: Mapping[str, str]) -> HttpAnswer:
        """The answer, whatever its status.

        Raises:
            TruncatedReadError: the body ended early or is larger than 64 MiB.
            UnavailableError: no answer came.
        """


class HttpEndpoint:
    """One backend at a fixed `url` (`https://metrics.example.com/prometheus`).

    `authorization` is the whole header value (`Bearer …`), sent with every request and never logged. Without `private`
    the host may have public addresses only. `timeout` bounds connecting and each wait for bytes. `resolve` and
    `tls` stand in for this system's resolver and certificates.

    Raises:
        InvalidInputError: the address is not http or https with a host, carries credentials or a query, or would send
            the authorization unencrypted to another machine.
    """

    def __init__(
        self,
        url: str,
        *,
        authorization: str = "",
        private: bool = True,
        timeout: timedelta = timedelta(seconds=30),
        resolve: Resolve | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError as err:
            message = f"the address {url!r} cannot be read: {err}"
            raise InvalidInputError(message) from err
        if parts.username is not None or parts.password is not None:
            message = f"the address of {parts.hostname} carries credentials; give them as the authorization setting"
            raise InvalidInputError(message)
        if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query or parts.fragment:
            message = f"{url!r} is not a server address; expected https://host[:port][/path]"
            raise InvalidInputError(message)
        self._tls = parts.scheme == "https"
        self._host = parts.hostname
        self._port = port or (443 if self._tls else 80)
        self._within_reach = _here if authorization and not self._tls else _anywhere if private else _public
        self._resolve = resolve or resolved
        self._context = tls
        if authorization and not self._tls and self._host not in LOOPBACK:
            message = f"the authorization would reach {self._host} unencrypted; write https://"
            raise InvalidInputError(message)
        self._path = parts.path.rstrip("/")
        self._timeout = timeout.total_seconds()
        self._headers = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
        if authorization:
            self._headers["Authorization"] = authorization

    def __repr__(self) -> str:
        return f"HttpEndpoint({'https' if self._tls else 'http'}://{self._host}{self._path})"

    def post_form(self, path: str, form: Mapping[str, str]) -> HttpAnswer:
        """Post `form` to `path` below the address; reads only, so it may be repeated. See `PostForm`."""
        from http.client import (
            HTTPConnection,
            HTTPException,
            HTTPSConnection,
            IncompleteRead,
        )

        addresses = self._judged(path)
        connect = HTTPSConnection if self._tls else HTTPConnection
        connection = connect(self._host, self._port, timeout=self._timeout)
        try:
            self._open(connection, addresses)
            connection.request("POST", self._path + path, urlencode(form), self._headers)
            response = connection.getresponse()
            body = response.read(_MAX_BODY_BYTES + 1)
            # a sized read ends quietly where the connection broke; what was promised is then still due
            cut = len(body) > _MAX_BODY_BYTES or bool(response.length)
            status = response.status
        except IncompleteRead as err:
            message = f"{self._host} ended its answer after {len(err.partial)} bytes"
            raise TruncatedReadError(message, operation=path) from err
        except (OSError, HTTPException) as err:
            message = f"{self._host} did not answer: {str(err) or type(err).__name__}"
            raise UnavailableError(message, operation=path) from err
        finally:
            connection.close()
        if cut:
            message = f"{self._host} ended its answer early, or sent more than {_MAX_BODY_BYTES >> 20} MiB"
            raise TruncatedReadError(message, operation=path)
        return HttpAnswer(status, body)

    def _judged(self, operation: str) -> Sequence[str]:
        """Where the host is now, every address of which may be connected to."""
        try:
            found = list(dict.fromkeys(self._resolve(self._host, self._port)))
        except (OSError, UnicodeError) as err:
            message = f"{self._host} cannot be looked up: {type(err).__name__}"
            raise UnavailableError(message, operation=operation) from err
        if not found:
            message = f"{self._host} has no address"
            raise UnavailableError(message, operation=operation)
        for address in found:
            problem = _refused_address(address) or self._within_reach(address)
            if problem:
                message = f"{self._host} was not asked: its name stands for {problem}"
                raise AccessDeniedError(message, operation=operation)
        return found[:_MOST_TRIED]

    def _open(self, connection: HTTPConnection, addresses: Sequence[str]) -> None:
        last: OSError | None = None
        for address in addresses:
            try:
                plain = socket.create_connection((address, self._port), timeout=self._timeout)
                break
            except OSError as err:
                last = err
        else:
            raise last or OSError("no address")
        connection.sock = plain  # closed with the connection
        if self._tls:
            context = self._context or ssl.create_default_context()
            connection.sock = context.wrap_socket(plain, server_hostname=self._host)


def resolved(host: str, port: int) -> Sequence[str]:
    """What this system's resolver says."""
    return [str(found[4][0]) for found in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]


def _refused_address(address: str) -> str:
    try:
        return KEPT if is_kept(ipaddress.ip_address(address.partition("%")[0])) else ""
    except ValueError:
        return "something that is no IP address"


def _anywhere(_: str) -> str:
    return ""


def _public(address: str) -> str:
    whole = ipaddress.ip_address(address.partition("%")[0])
    if all(each.is_global and not each.is_multicast for each in (whole, *stands_for(whole))):
        return ""
    return "a private address; write private: before it in COSTGUARD_PROMETHEUS_HOSTS if it is one of your own network"


def _here(address: str) -> str:
    if ipaddress.ip_address(address.partition("%")[0]).is_loopback:
        return ""
    return "another machine, which the authorization would reach unencrypted; write https://"


def http_post(
    url: str,
    *,
    authorization: str = "",
    private: bool = True,
    timeout: timedelta = timedelta(seconds=30),
    resolve: Resolve | None = None,
) -> PostForm:
    """What posts forms below `url`; see `HttpEndpoint`."""
    return HttpEndpoint(url, authorization=authorization, private=private, timeout=timeout, resolve=resolve).post_form


def refused(answer: HttpAnswer, said: str, *, operation: str) -> ProviderError:
    """The error that an answer other than 200 stands for; `said` is what the server gave as its reason."""
    message = f"HTTP {answer.status}: {said}" if said else f"HTTP {answer.status}"
    code = str(answer.status)
    if answer.status in {401, 403, 407}:
        return AccessDeniedError(message, operation=operation, code=code)
    if answer.status == 429:  # noqa: PLR2004 - Too Many Requests
        return ThrottledError(message, operation=operation, code=code)
    if answer.status >= 500:  # noqa: PLR2004 - the server's own faults
        return UnavailableError(message, operation=operation, code=code)
    return ProviderError(message, operation=operation, code=code)
