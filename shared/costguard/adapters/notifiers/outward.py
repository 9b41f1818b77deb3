"""One POST to an address that somebody wrote into a policy, without being led anywhere else.

The name is looked up once, every address it stands for is judged, and the connection is made to what was judged: a name
that means something else a moment later (DNS rebinding) gains nothing. No redirects, no proxies, no answer without end.
"""

from __future__ import annotations

import io
import ipaddress
import re
import socket
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, urlsplit

from costguard.domain.errors import NoticeError, RejectedNoticeError
from costguard.domain.hosts import KEPT, is_kept, stands_for

if TYPE_CHECKING:
    from http.client import HTTPConnection

Resolve = Callable[[str, int], Sequence[str]]
"""The IP addresses of a host, at a port."""

_LONGEST_ADDRESS = 2000
_LEGAL = re.compile(r"""[!#-;=?-\[\]_a-z~]+""")  # ASCII without spaces, and without what addresses must encode
_MOST_TRIED = 3  # addresses of one host
_CONNECT_SECONDS = 5.0
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


@dataclass(frozen=True, slots=True)
class OutwardAddress:
    """An address taken apart. `shown` is what errors may say of it: paths and queries often hold a secret."""

    tls: bool
    host: str
    port: int
    target: str
    shown: str


@dataclass(frozen=True, slots=True)
class Response:
    """The head of an answer, and as much of its body as was asked for."""

    status: int
    headers: Mapping[str, str]
    body: bytes = b""


def place_of(url: str, *, private: bool) -> OutwardAddress:
    """`url` taken apart: https, or http to this machine itself where `private` addresses are allowed.

    Raises:
        RejectedNoticeError: it is no such address.
    """
    parts = _split(url)
    host = "" if parts is None else parts.hostname or ""
    if parts is None or not host or parts.fragment or "@" in parts.netloc or not _may_be(parts.scheme, host, private):
        raise RejectedNoticeError(
            "a webhook's address is not of the form https://HOST/PATH, in ASCII, without user, password or #; "
            "write other letters percent-encoded, and a host as xn--…"
        )
    tls = parts.scheme == "https"
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return OutwardAddress(tls, host, parts.port or (443 if tls else 80), target, f"{parts.scheme}://{parts.netloc}")


def _split(url: str) -> SplitResult | None:
    """Its parts; None where it could be read in two ways, or not at all."""
    if len(url) > _LONGEST_ADDRESS or not _LEGAL.fullmatch(url):
        return None
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    return None if port == 0 else parts


def _may_be(scheme: str, host: str, private: bool) -> bool:  # noqa: FBT001 - as the functions it serves say it
    return scheme == "https" or (scheme == "http" and private and host in _LOOPBACK)


def resolved(host: str, port: int) -> Sequence[str]:
    """What this system's resolver says."""
    return [str(found[4][0]) for found in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]


def judged(place: OutwardAddress, resolve: Resolve, *, private: bool) -> Sequence[str]:
    """The addresses of `place`, every one of which may be connected to.

    Raises:
        RejectedNoticeError: one may not.
        NoticeError: it has none now.
    """
    try:
        found = list(dict.fromkeys(resolve(place.host, place.port)))
    except (OSError, UnicodeError) as err:
        text = f"the webhook {place.shown}: its name cannot be looked up: {type(err).__name__}"
        raise NoticeError(text) from err
    for address in found:
        problem = _problem(address, private=private)
        if problem:
            text = f"the webhook {place.shown} is not called: its name stands for {problem}"
            raise RejectedNoticeError(text)
    if not found:
        text = f"the webhook {place.shown}: its name has no address"
        raise NoticeError(text)
    return found[:_MOST_TRIED]


def _problem(address: str, *, private: bool) -> str:
    try:
        whole = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return "something that is no IP address"
    if is_kept(whole):
        return KEPT
    for each in (whole, *stands_for(whole)):
        if not private and (not each.is_global or each.is_multicast):
            return "a private address; set COSTGUARD_WEBHOOK_PRIVATE=1 if webhooks may reach your own network"
    return ""


def post(
    place: OutwardAddress,
    addresses: Sequence[str],
    body: bytes,
    headers: Mapping[str, str],
    *,
    timeout: timedelta,
    tls: ssl.SSLContext | None = None,
    most: int = 0,
) -> Response:
    """Send `body` to the first of `addresses` that answers the call, once, and read the head of the answer.

    Of the answer's body at most `most` bytes are read, all within `timeout`.

    Raises:
        NoticeError: no connection, or no whole head of an answer: it may have arrived all the same.
    """
    from http.client import HTTPConnection, HTTPException

    ends_at = time.monotonic() + timeout.total_seconds()
    host = f"[{place.host}]" if ":" in place.host else place.host
    usual = place.port == (443 if place.tls else 80)
    connection = HTTPConnection(place.host, place.port)
    try:
        connection.sock = _Timed(_connected(place, addresses, ends_at, tls), ends_at)
        named = {"Host": host if usual else f"{host}:{place.port}", "Connection": "close", **headers}
        return _exchanged(connection, place.target, body, named, most)
    except ssl.SSLCertVerificationError as err:
        text = f"the webhook {place.shown} shows a certificate that is not trusted: {err.verify_message}"
        raise NoticeError(text) from err
    except (HTTPException, OSError, ValueError) as err:
        text = f"the webhook {place.shown} did not answer: {type(err).__name__}"
        raise NoticeError(text) from err
    finally:
        connection.close()


def _exchanged(connection: HTTPConnection, target: str, body: bytes, headers: Mapping[str, str], most: int) -> Response:
    connection.request("POST", target, body, headers)
    answer = connection.getresponse()
    try:
        said = answer.read(most) if most else b""
        return Response(answer.status, dict(answer.getheaders()), said)
    finally:
        answer.close()


def _connected(
    place: OutwardAddress, addresses: Sequence[str], ends_at: float, tls: ssl.SSLContext | None
) -> socket.socket:
    context = (tls or ssl.create_default_context()) if place.tls else None
    plain = _reached(addresses, place.port, ends_at)
    if context is None:
        return plain
    try:
        return context.wrap_socket(plain, server_hostname=place.host)
    except (OSError, ValueError):
        plain.close()
        raise


def _reached(addresses: Sequence[str], port: int, ends_at: float) -> socket.socket:
    last: OSError | None = None
    for address in addresses:
        try:
            return socket.create_connection((address, port), timeout=_left(ends_at, _CONNECT_SECONDS))
        except OSError as err:
            last = err
    raise last or OSError("no address")


def _left(ends_at: float, most: float = float("inf")) -> float:
    left = ends_at - time.monotonic()
    if left <= 0:
        raise TimeoutError("the time for a webhook's answer is used up")
    return min(left, most)


class _Timed:
    """A socket for `http.client` that ends in time, however slowly an answer drips."""

    def __init__(self, sock: socket.socket, ends_at: float) -> None:
        self._sock = sock
        self._ends_at = ends_at
        self._reading: _Reading | None = None

    def sendall(self, block: Any) -> None:
        self._sock.settimeout(_left(self._ends_at))
        self._sock.sendall(block)

    def makefile(self, *_: Any, **__: Any) -> io.BufferedReader:
        self._reading = _Reading(self._sock, self._ends_at)
        return io.BufferedReader(self._reading)

    def close(self) -> None:
        """As with any socket: while an answer is still read from it, that keeps it open."""
        if self._reading is None or self._reading.closed:
            self._sock.close()


class _Reading(io.RawIOBase):
    def __init__(self, sock: socket.socket, ends_at: float) -> None:
        self._sock = sock
        self._ends_at = ends_at

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._sock.settimeout(_left(self._ends_at))
        return self._sock.recv_into(buffer)

    def close(self) -> None:
        super().close()
        self._sock.close()
