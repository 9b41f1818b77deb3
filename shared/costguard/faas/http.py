"""HTTP as the three hosts hand it over, and back: one request, one reply, the body byte for byte. Pure.

What each host hands over, and where that is documented:

* lambda: a function URL's event, payload format 2.0: `rawPath`, `rawQueryString`, `requestContext.http.method`,
  `headers` in small letters, several of one name joined by commas, `body` as text, in base64 where `isBase64Encoded`.
  The answer has `statusCode`, `headers`, `body`, `isBase64Encoded`. (Lambda developer guide, "Invoking function URLs")
* fc: bytes of JSON with `version` "v1", `rawPath`, `queryParameters`, `headers`, `requestContext.http.method`, `body`,
  `isBase64Encoded`; the answer as on Lambda. (Function Compute 3.0, "Use an HTTP trigger to invoke a function")
* scf: a function URL's event for an event function: `httpMethod`, `path`, `queryString`, `headers`, `body` as text.
  The answer has `statusCode`, `headers`, `body`. (SCF, "Function URL overview")
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from typing_extensions import assert_never

from costguard.domain.errors import InvalidInputError
from costguard.faas.invocation import Host, kind_of

LARGEST_BODY = 512 * 1024  # a click brings the whole message it was made in: 50 blocks, percent-encoded
_LARGEST_EVENT = 2 * LARGEST_BODY  # base64, and headers
_MOST_HEADERS = 200
_LONGEST_HEADER = 16 * 1024
_LONGEST_PATH = 2048
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"})


class TooLargeError(InvalidInputError):
    """The request is larger than anything that is answered here."""


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """One request. Names of `headers` are in small letters, `body` are the bytes that were sent, `query` has no `?`."""

    method: str
    path: str
    query: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class HttpReply:
    """One answer, text in UTF-8."""

    status: int
    body: str = ""
    content_type: str = "text/plain; charset=utf-8"
    headers: Mapping[str, str] = field(default_factory=dict)


def is_http(event: object) -> bool:
    """Whether an event, decoded, has the form of a request of one of the hosts."""
    return isinstance(event, Mapping) and ("rawPath" in event or "httpMethod" in event)


def host_of_request(event: object) -> Host:
    """The host whose requests have such keys; without a host's own mark, Lambda."""
    if isinstance(event, (bytes, bytearray)) or (isinstance(event, Mapping) and event.get("version") == "v1"):
        return Host.FC
    return Host.SCF if isinstance(event, Mapping) and "httpMethod" in event else Host.LAMBDA


def read_request(event: object, host: Host) -> HttpRequest:
    """What was requested.

    Raises:
        InvalidInputError: not the event of an HTTP request on that host; names what was found, never its contents.
        TooLargeError: longer than half a MiB.
    """
    host = host_of_request(event) if host is Host.LOCAL else host
    if isinstance(event, (bytes, bytearray)):
        event = _decoded(bytes(event))
    if not isinstance(event, Mapping) or not is_http(event):
        raise _wrong(kind_of(event))
    match host:
        case Host.SCF:
            return _request(event, event.get("httpMethod"), event.get("path"), _joined(event.get("queryString")))
        case Host.LAMBDA | Host.LOCAL:
            return _request(event, _method(event), event.get("rawPath"), event.get("rawQueryString", ""))
        case Host.FC:
            return _request(event, _method(event), event.get("rawPath"), _joined(event.get("queryParameters")))
        case _:
            assert_never(host)


def write_reply(reply: HttpReply, host: Host) -> dict[str, Any]:
    """What the handler returns for it."""
    headers = {
        "Content-Type": reply.content_type,
        "Cache-Control": "no-store",
        "X-Content-Type-Options": "nosniff",
        **reply.headers,
    }
    answer: dict[str, Any] = {"statusCode": reply.status, "headers": headers, "body": reply.body}
    return answer if host is Host.SCF else {**answer, "isBase64Encoded": False}


def _request(event: Mapping[str, Any], method: object, path: object, query: object) -> HttpRequest:
    if not isinstance(method, str) or method not in _METHODS:
        raise _wrong("method", kind_of(method))
    if not isinstance(path, str) or not isinstance(query, str) or max(len(path), len(query)) > _LONGEST_PATH:
        raise _wrong("path", kind_of(path), "and query", kind_of(query))
    return HttpRequest(method, path or "/", query, _headers(event.get("headers")), _body(event))


def _method(event: Mapping[str, Any]) -> object:
    context = event.get("requestContext")
    http = context.get("http") if isinstance(context, Mapping) else None
    return http.get("method") if isinstance(http, Mapping) else None


def _headers(found: object) -> dict[str, str]:
    """Two of one name, in whatever letters, are joined as hosts join them: then neither is what it claims to be."""
    if not isinstance(found, Mapping) or len(found) > _MOST_HEADERS:
        raise _wrong("headers", kind_of(found))
    headers: dict[str, str] = {}
    for name, value in found.items():
        if not isinstance(name, str) or not isinstance(value, str) or len(value) > _LONGEST_HEADER:
            raise _wrong("a header that is no text, or a long one")
        known = name.lower()
        headers[known] = f"{headers[known]},{value}" if known in headers else value
    return headers


def _body(event: Mapping[str, Any]) -> bytes:
    body, encoded = event.get("body"), event.get("isBase64Encoded", False)
    body = "" if body is None else body
    if not isinstance(body, str) or not isinstance(encoded, bool):
        raise _wrong("body", kind_of(body), "and isBase64Encoded", kind_of(encoded))
    if len(body) > _LARGEST_EVENT:
        raise TooLargeError("HTTP request: longer than anything that is answered here")
    try:
        raw = base64.b64decode(body, validate=True) if encoded else body.encode()
    except (binascii.Error, ValueError) as err:  # UnicodeEncodeError, of half a surrogate, is one
        raise _wrong("a body that cannot be told in bytes") from err
    if len(raw) > LARGEST_BODY:
        raise TooLargeError("HTTP request: longer than anything that is answered here")
    return raw


def _joined(found: object) -> str:
    """The query again as an address has it; hosts that take it apart leave nothing else."""
    if found is None or found == "":
        return ""
    if not isinstance(found, Mapping) or not all(
        isinstance(part, str) and len(part) <= _LONGEST_PATH for pair in found.items() for part in pair
    ):
        raise _wrong("query", kind_of(found))
    return urlencode(dict(found), errors="replace")


def _decoded(event: bytes) -> object:
    if len(event) > 2 * _LARGEST_EVENT:
        raise TooLargeError("HTTP request: longer than anything that is answered here")
    try:
        decoded: object = json.loads(event.decode("utf-8-sig"))
    except (ValueError, RecursionError) as err:
        raise _wrong("bytes that are not JSON in UTF-8:", type(err).__name__) from err
    return decoded


def _wrong(*found: str) -> InvalidInputError:
    return InvalidInputError(
        f"HTTP event: found {' '.join(found)}; expected the event of a function URL or HTTP trigger"
    )
