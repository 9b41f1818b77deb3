"""API 3.0 on the wire: TC3-HMAC-SHA256 recomputed from the secret, the common headers, and the envelope of answers.

Action, version, region and token are not part of what is signed: they are taken from the headers, as the cloud does.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from cloudstand.tencent.core.credentials import Accounts, Identity
from cloudstand.tencent.core.errors import ApiError, missing
from cloudstand.wire.messages import Request

ALGORITHM = "TC3-HMAC-SHA256"
JSON = "application/json"  # exactly: with a charset behind it the vendor's own SDK no longer sees errors
_WINDOW = timedelta(seconds=300)
_AUTHORIZATION = re.compile(
    ALGORITHM + r" Credential=([^/\s]+)/(\d{4}-\d{2}-\d{2})/([a-z0-9]+)/tc3_request,\s*"
    r"SignedHeaders=([a-z0-9;-]+),\s*Signature=([0-9a-f]{64})"
)


@dataclass(frozen=True, slots=True)
class Signed:
    """What the Authorization header says."""

    key_id: str
    date: str
    service: str
    headers: tuple[str, ...]
    signature: str


@dataclass(frozen=True, slots=True)
class Heading:
    """The common parameters of a request whose signature is right."""

    identity: Identity
    service: str
    version: str
    action: str
    region: str


def heading_of(request: Request, accounts: Accounts, wall: datetime, now: datetime) -> Heading:
    """Who asks for what. Signing is checked by the clock on the wall, tokens expire by the world's (`now`).

    Raises:
        ApiError: the request is not signed, not rightly, not now, or not by anybody known.
    """
    if urlsplit(request.path).path not in {"", "/"}:
        raise ApiError("InvalidRequest", "the path of every request is /.", "请求路径错误。")
    signed = _signed(request)
    timestamp = _header(request, "x-tc-timestamp", "Timestamp")
    _check_time(timestamp, signed, wall)
    identity = accounts.identity(signed.key_id)
    if identity is None:
        raise ApiError("AuthFailure.SecretIdNotFound", "the SecretId is not found.", "密钥不存在。")
    expected = signature(request, signed, identity.keys.secret, timestamp)
    if not hmac.compare_digest(expected, signed.signature):
        raise ApiError(
            "AuthFailure.SignatureFailure",
            "the signature does not match the request.",
            "签名错误。请对照文档检查签名过程。",
        )
    _check_token(request, identity, now)
    return Heading(
        identity,
        signed.service,
        _header(request, "x-tc-version", "Version"),
        _header(request, "x-tc-action", "Action"),
        request.headers.get("x-tc-region", ""),
    )


def signature(request: Request, signed: Signed, secret: str, timestamp: str) -> str:
    """What the signature of this request must be."""
    payload = b"" if request.method == "GET" else request.body
    if request.headers.get("x-tc-content-sha256") == "UNSIGNED-PAYLOAD":
        payload = b"UNSIGNED-PAYLOAD"
    headers = "".join(f"{name}:{request.headers.get(name, '').strip().lower()}\n" for name in signed.headers)
    canonical = "\n".join(
        (
            request.method,
            "/",
            request.query if request.method == "GET" else "",
            headers,
            ";".join(signed.headers),
            hashlib.sha256(payload).hexdigest(),
        )
    )
    scope = f"{signed.date}/{signed.service}/tc3_request"
    to_sign = "\n".join((ALGORITHM, timestamp, scope, hashlib.sha256(canonical.encode()).hexdigest()))
    key = f"TC3{secret}".encode()
    for part in (signed.date, signed.service, "tc3_request"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return hmac.new(key, to_sign.encode(), hashlib.sha256).hexdigest()


def body_of(request: Request) -> Mapping[str, Any]:
    """The parameters of a POST.

    Raises:
        ApiError: the body is no JSON object, or not labelled as JSON.
    """
    if not request.headers.get("content-type", "").lower().startswith(JSON):
        raise ApiError("InvalidRequest", "the body must be application/json.", "请求体格式错误。")
    try:
        found = json.loads(request.body)
    except ValueError as err:
        raise ApiError("InvalidParameter", "the body is not valid JSON.", "请求体不是合法的JSON。") from err
    if not isinstance(found, dict):
        raise ApiError("InvalidParameter", "the body is no JSON object.", "请求体不是合法的JSON。")
    return found


def query_of(request: Request) -> dict[str, str]:
    """The parameters of a GET as they were sent."""
    return dict(parse_qsl(request.query, keep_blank_values=True))


def enveloped(request_id: str, fields: Mapping[str, Any]) -> bytes:
    """An answer's body; the same envelope holds results and errors."""
    return json.dumps({"Response": {**fields, "RequestId": request_id}}, ensure_ascii=False).encode()


def _signed(request: Request) -> Signed:
    header = request.headers.get("authorization")
    if header is None:
        raise missing("Authorization")
    found = _AUTHORIZATION.fullmatch(header.strip())
    if found is None:
        raise ApiError("AuthFailure.InvalidAuthorization", "the Authorization header is not TC3.", "请求头部非法。")
    key_id, date, service, names, given = found.groups()
    headers = tuple(names.split(";"))
    if not {"content-type", "host"} <= set(headers):
        raise ApiError("AuthFailure.InvalidAuthorization", "content-type and host must be signed.", "请求头部非法。")
    if not key_id.startswith("AKID"):
        raise ApiError("AuthFailure.InvalidSecretId", "the SecretId is not one of the cloud API.", "密钥非法。")
    return Signed(key_id, date, service, headers, given)


def _check_time(timestamp: str, signed: Signed, wall: datetime) -> None:
    if not (timestamp.isascii() and timestamp.isdigit() and len(timestamp) <= 11):  # noqa: PLR2004 - 11 digits reach 5138
        raise ApiError("InvalidParameter", "X-TC-Timestamp is no Unix time.", "时间戳错误。")
    moment = datetime.fromtimestamp(int(timestamp), timezone.utc)
    if abs(moment - wall) > _WINDOW:
        raise ApiError("AuthFailure.SignatureExpire", "the signature has expired.", "签名过期。")
    if moment.strftime("%Y-%m-%d") != signed.date:
        raise ApiError("AuthFailure.SignatureFailure", "the date of the credential scope is wrong.", "签名错误。")


def _check_token(request: Request, identity: Identity, now: datetime) -> None:
    token = request.headers.get("x-tc-token", "")
    expired = identity.expires_at is not None and now >= identity.expires_at
    if expired or not hmac.compare_digest(token.encode(), identity.keys.token.encode()):
        raise ApiError("AuthFailure.TokenFailure", "the token is not valid, or no longer.", "Token错误。")


def _header(request: Request, header: str, name: str) -> str:
    found = request.headers.get(header, "")
    if not found:
        raise missing(name)
    return found
