"""A small HTTP client for metrics backends: one POST, no redirects, no proxy taken from the environment.

A redirect or a proxy that nobody configured here could send the authorization header elsewhere, so
neither is followed. A connection is opened for each request and closed with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol
from urllib.parse import urlencode, urlsplit

from costguard.domain.errors import (
    AccessDeniedError,
    InvalidInputError,
    ProviderError,
    ThrottledError,
    TruncatedReadError,
    UnavailableError,
)

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

    `authorization` is the whole header value (`Bearer …`), sent with every request and never logged.
    `timeout` bounds connecting and each wait for bytes.

    Raises:
        InvalidInputError: the address is not http or https with a host, or carries credentials or a query.
    """

    def __init__(self, url: str, *, authorization: str = "", timeout: timedelta = timedelta(seconds=30)) -> None:
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
        self._port = port
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

        connect = HTTPSConnection if self._tls else HTTPConnection
        connection = connect(self._host, self._port, timeout=self._timeout)
        try:
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


def http_post(url: str, *, authorization: str = "", timeout: timedelta = timedelta(seconds=30)) -> PostForm:
    """What posts forms below `url`; see `HttpEndpoint`."""
    return HttpEndpoint(url, authorization=authorization, timeout=timeout).post_form


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
